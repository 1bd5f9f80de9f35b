//! A server asks a model (`sampling/createMessage`, SPEC 6.9): the person sees what is asked and what was answered, and says yes
//! to both. Nothing of the conversation goes along, whatever the server wishes (`includeContext`), and no tools.

use super::desk::{Answer, Given};
use super::evidence::shortened;
use crate::term::questions::{Asking, Said, Usual};
use crate::term::tty::Person;
use aish_core::event::{ReplyStop, Usage};
use aish_core::message::{Message, Part, ToolChoice, text_of};
use aish_core::sanitize;
use aish_engine::{Engine, Model};
use aish_provider::{Reply, Request};
use aish_tools::{Cancel, cancelled};
use serde_json::{Value, json};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Messages that a server may send.
const MESSAGES_MAX: usize = 64;
/// Characters of all of them together.
const CHARS_MAX: usize = 400_000;
/// Tokens that a reply may have at most, whatever the server asks for.
const OUTPUT_TOKENS_MAX: u64 = 8_192;
/// How long a model may take.
const MODEL_WAIT_S: u64 = 600;

/// What a server has a model say.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    system: String,
    messages: Vec<Message>,
    tokens_max: u64,
    has_images: bool,
}

impl Wanted {
    /// Reads the parameters of the request.
    ///
    /// # Errors
    /// They cannot be put to a model; one line for the server and the person.
    fn read(params: &Value) -> Result<Self, String> {
        if params.get("tools").is_some_and(|tools| !tools.is_null()) {
            return Err("tools in sampling were not offered and are not supported".to_owned());
        }
        let messages = params.get("messages").and_then(Value::as_array);
        let messages = messages.filter(|messages| !messages.is_empty());
        let messages = messages.ok_or("there are no messages to answer")?;
        if messages.len() > MESSAGES_MAX {
            return Err(format!(
                "{} messages are too many, {MESSAGES_MAX} are taken",
                messages.len()
            ));
        }
        let system = params.get("systemPrompt").and_then(Value::as_str).unwrap_or_default();
        let messages: Vec<Message> = messages.iter().map(message).collect::<Result<_, _>>()?;
        let wanted = Self {
            system: system.to_owned(),
            has_images: messages.iter().any(|message| parts(message).iter().any(is_image)),
            messages,
            tokens_max: params
                .get("maxTokens")
                .and_then(Value::as_u64)
                .filter(|tokens| *tokens > 0)
                .map_or(OUTPUT_TOKENS_MAX, |tokens| tokens.min(OUTPUT_TOKENS_MAX)),
        };
        if wanted.text().chars().nth(CHARS_MAX).is_some() {
            return Err(format!("more than {CHARS_MAX} characters are not passed on"));
        }
        Ok(wanted)
    }

    /// All of it, as a person reads it.
    fn text(&self) -> String {
        let mut text = String::new();
        if !self.system.is_empty() {
            text.push_str(&format!("system: {}\n", self.system));
        }
        for message in &self.messages {
            let who = match message {
                Message::User { .. } => "user",
                Message::Assistant { .. } => "assistant",
                Message::Tool { .. } => "tool",
            };
            let said: Vec<&str> = parts(message)
                .iter()
                .map(|part| match part {
                    Part::Text { text } => text.as_str(),
                    Part::Image { .. } => "[an image]",
                    Part::Thinking { .. }
                    | Part::Context { .. }
                    | Part::Provider { .. }
                    | Part::Call { .. }
                    | Part::PartialCall { .. } => "",
                })
                .collect();
            text.push_str(&format!("{who}: {}\n", said.join("\n")));
        }
        text
    }
}

fn parts(message: &Message) -> &[Part] {
    match message {
        Message::User { parts } | Message::Assistant { parts, .. } => parts,
        Message::Tool { .. } => &[],
    }
}

fn is_image(part: &Part) -> bool {
    matches!(part, Part::Image { .. })
}

/// `{"role":"user"|"assistant","content":block or [block, …]}`.
fn message(message: &Value) -> Result<Message, String> {
    let content = message.get("content").unwrap_or(&Value::Null);
    let blocks = match content {
        Value::Array(blocks) => blocks.as_slice(),
        Value::Object(_) => std::slice::from_ref(content),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            return Err("a message without content".to_owned());
        }
    };
    let parts: Vec<Part> = blocks.iter().map(part).collect::<Result<_, _>>()?;
    match message.get("role").and_then(Value::as_str) {
        Some("user") => Ok(Message::User { parts }),
        Some("assistant") if parts.iter().any(is_image) => Err("an image that an assistant said".to_owned()),
        Some("assistant") => Ok(Message::Assistant {
            parts,
            calls: Vec::new(),
            model: None,
        }),
        Some(_) | None => Err("a message that is neither the user's nor the assistant's".to_owned()),
    }
}

fn part(block: &Value) -> Result<Part, String> {
    let text = |key: &str| block.get(key).and_then(Value::as_str).map(str::to_owned);
    match (text("type").as_deref(), text("text"), text("data"), text("mimeType")) {
        (Some("text"), Some(text), _, _) => Ok(Part::Text { text }),
        (Some("image"), _, Some(data), Some(media_type)) => Ok(Part::Image { media_type, data }),
        (kind, _, _, _) => Err(format!(
            "content of the kind {} is not passed on",
            kind.unwrap_or("(none)")
        )),
    }
}

/// Asks the person, then the session's model, then whether the server may have the answer.
///
/// # Errors
/// The terminal failed.
pub async fn sample<P: Person>(
    asking: &Asking<'_, P>,
    server: &str,
    params: &Value,
    engine: &Arc<Engine>,
) -> io::Result<Answer> {
    let failed = |problem: String| Answer::Failed(shortened(&problem));
    let wanted = match Wanted::read(params) {
        Ok(wanted) => wanted,
        Err(problem) => return Ok(failed(problem)),
    };
    let model = match engine.models.model(&engine.settings().model) {
        Ok(model) => model,
        Err(problem) => return Ok(failed(problem)),
    };
    if wanted.has_images && !model.images {
        return Ok(failed("the model takes no images".to_owned()));
    }
    let name = sanitize::single_line(&model.name).into_owned();
    let head = format!("mcp: {server} asks a model:");
    let question = format!("let it ask {name}?");
    match asking.may_pass(&head, &wanted.text(), &question, Usual::No).await? {
        Said::Yes => {}
        Said::No => return Ok(Answer::Declined),
        Said::Stopped => return Ok(Answer::Dismissed),
    }
    let reply = match ask(&wanted, &model, asking.cancel).await {
        Ok(Some(reply)) => reply,
        Ok(None) => return Ok(Answer::Dismissed),
        Err(problem) => return Ok(failed(problem)),
    };
    let text = text_of(&reply.parts);
    let head = format!("{name} answers:");
    let question = format!("send it to {server}?");
    Ok(match asking.may_pass(&head, &text, &question, Usual::Yes).await? {
        Said::Yes => Answer::Given(given(&reply, &model, &text)),
        Said::No => Answer::Declined,
        Said::Stopped => Answer::Dismissed,
    })
}

/// One attempt at one reply; `None` where it was taken back.
async fn ask(wanted: &Wanted, model: &Model, cancel: &Cancel) -> Result<Option<Reply>, String> {
    let request = Request {
        model: &model.name,
        system: &wanted.system,
        messages: &wanted.messages,
        tools: &[],
        tool_choice: ToolChoice::None,
        max_output_tokens: Some(wanted.tokens_max.min(model.max_output_tokens.unwrap_or(u64::MAX))),
        schema: None,
    };
    let replied = async {
        let mut stream = model.provider.send(request).await.map_err(|error| error.message)?;
        let mut deltas = Vec::new();
        while stream.next(&mut deltas).await {
            // Nothing is shown as it comes: the person judges the whole.
            deltas.clear();
        }
        let reply = stream.finish();
        match &reply.error {
            Some(error) if text_of(&reply.parts).is_empty() => Err(error.message.clone()),
            Some(_) | None => Ok(Some(reply)),
        }
    };
    let mut cancel = cancel.clone();
    tokio::select! {
        biased;
        () = cancelled(&mut cancel) => Ok(None),
        replied = replied => replied,
        () = tokio::time::sleep(Duration::from_secs(MODEL_WAIT_S)) => {
            Err(format!("{} did not answer within {MODEL_WAIT_S} s", model.name))
        }
    }
}

/// The result of `sampling/createMessage`.
fn given(reply: &Reply, model: &Model, text: &str) -> Given {
    let stop = match reply.stop {
        ReplyStop::Length => "maxTokens",
        ReplyStop::End
        | ReplyStop::ToolCalls
        | ReplyStop::Paused
        | ReplyStop::Truncated
        | ReplyStop::Refused
        | ReplyStop::Interrupted
        | ReplyStop::Closing => "endTurn",
    };
    let result = json!({
        "role": "assistant",
        "content": { "type": "text", "text": text },
        "model": reply.model.clone().unwrap_or_else(|| model.name.clone()),
        "stopReason": stop,
    });
    let usage = reply.usage.clone().map(|usage| Usage {
        model: Some(model.name.clone()),
        ..usage
    });
    Given {
        members: match result {
            Value::Object(members) => members,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Default::default(),
        },
        unkept: Vec::new(),
        usage,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    fn refused(params: Value, why: &str) {
        let problem = Wanted::read(&params).unwrap_err();
        assert!(problem.contains(why), "{problem}");
    }

    /// SPEC 6.9: what is asked is what is shown; nothing else goes along.
    #[test]
    fn reads_what_the_protocol_has() {
        let wanted = Wanted::read(&json!({
            "messages": [
                {"role": "user", "content": {"type": "text", "text": "6 times 7?"}},
                {"role": "assistant", "content": [{"type": "text", "text": "41"}]},
                {"role": "user", "content": {"type": "image", "data": "AAAA", "mimeType": "image/png"}},
            ],
            "systemPrompt": "Be brief.", "maxTokens": 1_000_000, "includeContext": "allServers", "temperature": 2,
        }))
        .unwrap();
        assert_eq!(
            wanted.text(),
            "system: Be brief.\nuser: 6 times 7?\nassistant: 41\nuser: [an image]\n"
        );
        assert_eq!((wanted.tokens_max, wanted.has_images), (OUTPUT_TOKENS_MAX, true));
    }

    /// SPEC 6.9: what cannot be put to a model is refused with its reason.
    #[test]
    fn refusals() {
        let user = |content: Value| json!({ "messages": [{ "role": "user", "content": content }] });
        refused(json!({}), "no messages");
        refused(json!({ "messages": [] }), "no messages");
        refused(user(json!("text")), "without content");
        refused(user(json!({ "type": "audio", "data": "", "mimeType": "" })), "audio");
        refused(json!({ "messages": [{ "role": "system", "content": [] }] }), "neither");
        refused(
            user(json!({ "type": "text", "text": "x".repeat(CHARS_MAX) })),
            "characters",
        );
        let mut tools = user(json!({ "type": "text", "text": "x" }));
        tools["tools"] = json!([]);
        refused(tools, "tools");
        let many = vec![json!({ "role": "user", "content": [] }); MESSAGES_MAX + 1];
        refused(json!({ "messages": many }), "too many");
    }
}
