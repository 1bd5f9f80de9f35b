//! A request as chat completions want it.
//!
//! Written straight to bytes from borrowed structures. Choices that real servers forced, see the recorded exchanges: an
//! assistant message with calls has `content: ""` (null breaks some templates, a missing one some servers), argument
//! text is never empty (llama.cpp answers 500 for ever), there is no `tools` field without tools (SPEC 6.7), and
//! neighbours of one role are joined, because strict templates want roles to alternate (SPEC 7.5).

use super::PATH;
use crate::codec::Encoded;
use crate::codec::names::{WireNames, fnv1a};
use crate::profile::{CallsPerReply, MaxTokensField, ModelProfile, ToolRole, WireCallIds};
use crate::{ErrorKind, ProviderError, Request};
use aish_core::id::CallId;
use aish_core::message::{Message, MessageCall, Part, ToolChoice, ToolSpec};
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Wire<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    stream: bool,
    stream_options: StreamOptions,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: ToolFunction<'a>,
}

#[derive(Serialize)]
struct ToolFunction<'a> {
    name: Cow<'a, str>,
    description: &'a str,
    parameters: &'a Value,
}

/// A message on the wire.
#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum Wire<'a> {
    System {
        content: &'a str,
    },
    User {
        content: Content<'a>,
    },
    Assistant {
        content: String,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<WireCall<'a>>,
    },
    Tool {
        tool_call_id: String,
        content: &'a str,
    },
}

/// Text, or blocks where there are images: not every server takes blocks.
#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(String),
    Blocks(Vec<Block<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text { text: String },
    ImageUrl { image_url: ImageUrl<'a> },
}

struct ImageUrl<'a> {
    media_type: &'a str,
    data: &'a str,
}

impl Serialize for ImageUrl<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut object = serializer.serialize_struct("ImageUrl", 1)?;
        // `format_args` goes straight into the output: an image is megabytes.
        object.serialize_field("url", &format_args!("data:{};base64,{}", self.media_type, self.data))?;
        object.end()
    }
}

#[derive(Serialize)]
struct WireCall<'a> {
    id: String,
    r#type: &'static str,
    function: WireFunction<'a>,
}

#[derive(Serialize)]
struct WireFunction<'a> {
    name: String,
    arguments: &'a str,
}

/// Writes a request.
pub(super) fn encode(request: Request<'_>, profile: &ModelProfile) -> Result<Encoded, ProviderError> {
    let in_messages = request.messages.iter().flat_map(names_in);
    let offered = request.tools.iter().map(|tool| tool.name.as_str());
    let names = WireNames::new(profile.wire_names, offered.chain(in_messages));
    let max_tokens = request.max_output_tokens.or(profile.max_output_tokens);
    let (max_tokens, max_completion_tokens) = match profile.max_tokens_field {
        MaxTokensField::MaxTokens => (max_tokens, None),
        MaxTokensField::MaxCompletionTokens => (None, max_tokens),
    };
    let is_forbidden = request.tool_choice == ToolChoice::None && !request.tools.is_empty();
    let body = Body {
        model: &profile.model,
        messages: Writer::new(profile, &names).write(request),
        tools: request.tools.iter().map(|tool| wire_tool(tool, &names)).collect(),
        tool_choice: is_forbidden.then_some("none"),
        parallel_tool_calls: (profile.calls == CallsPerReply::One && !request.tools.is_empty()).then_some(false),
        temperature: profile.temperature,
        max_tokens,
        max_completion_tokens,
        stream: true,
        stream_options: StreamOptions { include_usage: true },
    };
    let body = serde_json::to_vec(&body).map_err(|error| ProviderError {
        kind: ErrorKind::Protocol,
        message: format!("cannot write the request: {error}"),
        retry_after: None,
    })?;
    Ok(Encoded {
        path: PATH.into(),
        headers: vec![
            ("content-type", "application/json".into()),
            ("accept", "text/event-stream, application/json".into()),
        ],
        body,
        names,
    })
}

fn names_in(message: &Message) -> Vec<&str> {
    match message {
        Message::Assistant { calls, .. } => calls.iter().map(|call| call.name.as_str()).collect(),
        Message::User { .. } | Message::Tool { .. } => Vec::new(),
    }
}

fn wire_tool<'a>(tool: &'a ToolSpec, names: &WireNames) -> Tool<'a> {
    Tool {
        r#type: "function",
        function: ToolFunction {
            name: Cow::Owned(names.wire(&tool.name).into_owned()),
            description: &tool.description,
            parameters: &tool.input_schema,
        },
    }
}

/// Writes the messages of one request, joining neighbours.
struct Writer<'a, 'n> {
    profile: &'n ModelProfile,
    names: &'n WireNames,
    out: Vec<Wire<'a>>,
    /// The ids on the wire, by ours.
    ids: HashMap<&'a CallId, String>,
    /// Those that are taken.
    used: HashSet<String>,
}

impl<'a, 'n> Writer<'a, 'n> {
    fn new(profile: &'n ModelProfile, names: &'n WireNames) -> Self {
        Self {
            profile,
            names,
            out: Vec::new(),
            ids: HashMap::new(),
            used: HashSet::new(),
        }
    }

    fn write(mut self, request: Request<'a>) -> Vec<Wire<'a>> {
        if !request.system.is_empty() {
            self.out.push(Wire::System {
                content: request.system,
            });
        }
        for message in request.messages {
            match (message, self.profile.tool_role) {
                (Message::User { parts }, _) => self.user(user_content(parts)),
                (Message::Assistant { parts, calls, .. }, ToolRole::Native) => {
                    let calls = calls.iter().map(|call| self.call(call)).collect();
                    self.assistant(said(parts), calls);
                }
                (Message::Assistant { parts, calls, .. }, ToolRole::Text) => {
                    let text = said(parts);
                    let calls = calls
                        .iter()
                        .map(|call| format!("[call: {}]\n{}", call.name, arguments(call)));
                    let blocks: Vec<String> = [text]
                        .into_iter()
                        .filter(|text| !text.is_empty())
                        .chain(calls)
                        .collect();
                    self.assistant(blocks.join("\n\n"), Vec::new());
                }
                (Message::Tool { call_id, output, .. }, ToolRole::Native) => {
                    let id = self.ids.get(call_id).cloned();
                    self.out.push(Wire::Tool {
                        tool_call_id: id.unwrap_or_else(|| call_id.as_str().to_owned()),
                        content: output,
                    });
                }
                (Message::Tool { name, output, .. }, ToolRole::Text) => {
                    self.user(Content::Text(format!("[tool: {name}]\n{output}")));
                }
            }
        }
        self.out
    }

    fn user(&mut self, content: Content<'a>) {
        match (self.out.last_mut(), content) {
            (Some(Wire::User { content: last }), content) => last.join(content),
            (_, content) => self.out.push(Wire::User { content }),
        }
    }

    /// A reply. One that said and called nothing that can be sent (thinking, a cut call) is left out.
    fn assistant(&mut self, text: String, calls: Vec<WireCall<'a>>) {
        if text.is_empty() && calls.is_empty() {
            return;
        }
        match self.out.last_mut() {
            Some(Wire::Assistant { content, tool_calls }) if tool_calls.is_empty() => {
                join(content, &text);
                *tool_calls = calls;
            }
            _ => self.out.push(Wire::Assistant {
                content: text,
                tool_calls: calls,
            }),
        }
    }

    fn call(&mut self, call: &'a MessageCall) -> WireCall<'a> {
        let own = call
            .provider_id
            .as_ref()
            .filter(|id| !id.is_empty() && !self.used.contains(*id));
        let id = match (self.profile.wire_call_ids, own) {
            (WireCallIds::Own, Some(own)) => own.clone(),
            (WireCallIds::Own, None) => call.id.as_str().to_owned(),
            (WireCallIds::NineCharacters, _) => nine_characters(call.id.as_str()),
        };
        self.used.insert(id.clone());
        self.ids.insert(&call.id, id.clone());
        WireCall {
            id,
            r#type: "function",
            function: WireFunction {
                name: self.names.wire(&call.name).into_owned(),
                arguments: arguments(call),
            },
        }
    }
}

impl<'a> Content<'a> {
    /// Adds the content of the next message of the same role.
    fn join(&mut self, next: Content<'a>) {
        match (self, next) {
            (Self::Text(text), Self::Text(next)) => join(text, &next),
            (Self::Blocks(blocks), Self::Blocks(next)) => blocks.extend(next),
            (Self::Blocks(blocks), Self::Text(text)) => blocks.push(Block::Text { text }),
            (this @ Self::Text(_), Self::Blocks(next)) => {
                let first = std::mem::replace(this, Self::Blocks(Vec::new()));
                if let (Self::Text(text), Self::Blocks(blocks)) = (first, this) {
                    blocks.push(Block::Text { text });
                    blocks.extend(next);
                }
            }
        }
    }
}

fn join(text: &mut String, next: &str) {
    if !text.is_empty() && !next.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(next);
}

/// The argument text; servers that parse it again fail on an empty one.
fn arguments(call: &MessageCall) -> &str {
    if call.arguments.trim().is_empty() {
        "{}"
    } else {
        &call.arguments
    }
}

/// What a reply said. Thinking is not sent back: this format has no place for it, and a cut call is only evidence.
fn said(parts: &[Part]) -> String {
    aish_core::message::text_of(parts)
}

/// What came along first, each piece under its label, then what was asked.
fn user_content(parts: &[Part]) -> Content<'_> {
    let mut text = String::new();
    for part in parts {
        if let Part::Context { label, text: context } = part {
            let label = label.replace(['"', '\n', '<', '>'], " ");
            join(
                &mut text,
                &format!(
                    "<context label=\"{label}\">\n{}\n</context>",
                    context.trim_end_matches('\n')
                ),
            );
        }
    }
    join(&mut text, &aish_core::message::text_of(parts));
    let images: Vec<Block<'_>> = parts.iter().filter_map(image).collect();
    if images.is_empty() {
        return Content::Text(text);
    }
    let mut blocks = Vec::with_capacity(images.len() + 1);
    if !text.is_empty() {
        blocks.push(Block::Text { text });
    }
    blocks.extend(images);
    Content::Blocks(blocks)
}

fn image(part: &Part) -> Option<Block<'_>> {
    match part {
        Part::Image { media_type, data } => Some(Block::ImageUrl {
            image_url: ImageUrl { media_type, data },
        }),
        Part::Text { .. }
        | Part::Thinking { .. }
        | Part::Context { .. }
        | Part::Provider { .. }
        | Part::Call { .. }
        | Part::PartialCall { .. } => None,
    }
}

/// Nine letters and digits that stand for an id, the same ones each time.
fn nine_characters(id: &str) -> String {
    let mut rest = fnv1a(id, 0);
    let digits = (0..9).filter_map(|_| {
        let digit = u32::try_from(rest % 36).ok();
        rest /= 36;
        digit.and_then(|digit| char::from_digit(digit, 36))
    });
    digits.collect()
}
