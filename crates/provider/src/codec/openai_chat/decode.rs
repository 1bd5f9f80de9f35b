//! Payloads of chat completions to pieces: a chunk of a stream, or a whole reply.
//!
//! The two differ only in `delta` against `message`, so one structure reads both. A payload is parsed once, straight
//! into borrowed fields; only errors go through a `Value`.

use super::own::Details;
use crate::codec::lenient::{self, Content, Count, List, Object, Str};
use crate::codec::template::{Template, Voice};
use crate::codec::{CallFragment, Finish, Piece, Sink, failure, withheld};
use crate::profile::Format;
use crate::{ProviderError, sse};
use aish_core::event::Usage;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;

#[derive(Deserialize, Default)]
#[serde(default)]
struct Payload<'a> {
    #[serde(borrow)]
    choices: Option<List<Choice<'a>>>,
    #[serde(borrow)]
    model: Str<'a>,
    /// Apart, like `message` below: most chunks have none.
    usage: Option<Box<Object<Tokens>>>,
    x_groq: Option<Box<Object<Groq>>>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    object: Str<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Choice<'a> {
    index: Count,
    #[serde(borrow)]
    delta: Object<Delta<'a>>,
    /// Instead of `delta` where the reply comes whole. Apart, because every chunk of a stream would carry its room along.
    #[serde(borrow)]
    message: Option<Box<Object<Delta<'a>>>>,
    #[serde(borrow)]
    finish_reason: Str<'a>,
    /// What the provider behind OpenRouter called it.
    #[serde(borrow)]
    native_finish_reason: Option<&'a RawValue>,
    /// What Azure's filters found, by category.
    #[serde(borrow)]
    content_filter_results: Option<&'a RawValue>,
    /// Kimi counts here.
    usage: Option<Box<Object<Tokens>>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Delta<'a> {
    #[serde(borrow)]
    content: Content<'a>,
    #[serde(borrow)]
    reasoning_content: Content<'a>,
    #[serde(borrow)]
    reasoning: Content<'a>,
    reasoning_details: List<Object<Map<String, Value>>>,
    #[serde(borrow)]
    refusal: Str<'a>,
    #[serde(borrow)]
    tool_calls: List<Object<Call<'a>>>,
    #[serde(borrow)]
    function_call: Object<Function<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Call<'a> {
    index: Count,
    #[serde(borrow)]
    id: Str<'a>,
    #[serde(borrow)]
    function: Object<Function<'a>>,
    /// Gemini's compatible endpoint signs its calls here.
    #[serde(borrow)]
    extra_content: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Function<'a> {
    #[serde(borrow)]
    name: Str<'a>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Groq {
    usage: Object<Tokens>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Tokens {
    prompt_tokens: Count,
    completion_tokens: Count,
    prompt_tokens_details: Object<PromptDetails>,
    completion_tokens_details: Object<ReplyDetails>,
    /// Kimi's place for it.
    cached_tokens: Count,
    /// DeepSeek's place for it.
    prompt_cache_hit_tokens: Count,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct PromptDetails {
    cached_tokens: Count,
    cache_write_tokens: Count,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ReplyDetails {
    reasoning_tokens: Count,
}

impl Tokens {
    fn usage(self) -> Usage {
        let prompt = self.prompt_tokens_details.0.unwrap_or_default();
        let reply = self.completion_tokens_details.0.unwrap_or_default();
        let cached = [prompt.cached_tokens, self.cached_tokens, self.prompt_cache_hit_tokens];
        Usage {
            input_tokens: self.prompt_tokens.0.unwrap_or(0),
            output_tokens: self.completion_tokens.0.unwrap_or(0),
            cached_tokens: cached.iter().find_map(|count| count.0).unwrap_or(0),
            cache_write_tokens: prompt.cache_write_tokens.0.unwrap_or(0),
            reasoning_tokens: reply.reasoning_tokens.0.unwrap_or(0),
            ..Usage::default()
        }
    }
}

/// Reads the payload of one event.
pub(super) fn event(
    event: &sse::Event<'_>,
    details: &mut Details,
    template: &mut Template,
    sink: &mut Sink<'_>,
) -> Result<(), ProviderError> {
    let data = event.data.trim();
    // Some gateways keep a connection alive with `null`.
    if data.is_empty() || data == "null" {
        return Ok(());
    }
    if data == "[DONE]" {
        sink(Piece::Done);
        return Ok(());
    }
    // The model it names was told with the payload that it is like.
    if event.name != "error"
        && let Some(piece) = template.fill(data)
    {
        sink(piece);
        return Ok(());
    }
    template.forget();
    match lenient::payload::<Payload<'_>>(data) {
        Ok(payload) if event.name == "error" && payload.error.is_none() => failed(data, sink),
        Ok(payload) => {
            if let Some((voice, text)) = only_text(&payload) {
                template.keep(data, voice, text);
            }
            pieces(payload, data, details, sink)
        }
        Err(_) if event.name == "error" => {
            sink(Piece::Error(failure::of_stream(&Value::String(data.to_owned()))));
            Ok(())
        }
        Err(why) => Err(broken("an event of the stream", data, &why)),
    }
}

/// Reads a whole reply. It ends the stream, but without a reason to finish it is still no whole reply.
pub(super) fn body(body: &str, details: &mut Details, sink: &mut Sink<'_>) -> Result<(), ProviderError> {
    let payload: Payload<'_> = lenient::payload(body).map_err(|why| broken("the reply", body, &why))?;
    if payload.choices.is_none() && payload.error.is_none() {
        return failed(body, sink);
    }
    pieces(payload, body, details, sink)?;
    sink(Piece::Done);
    Ok(())
}

/// The text or thinking of a payload that says nothing else, as [`pieces`] would take it; but for the model it names. Only
/// what stands in the payload as it is said: without escapes, and not in blocks.
fn only_text<'a>(payload: &Payload<'a>) -> Option<(Voice, &'a str)> {
    let Payload {
        choices: Some(List(choices)),
        model: _,
        usage: None,
        x_groq: None,
        error: None,
        object,
    } = payload
    else {
        return None;
    };
    let [
        Choice {
            index,
            delta: Object(Some(delta)),
            message: None,
            finish_reason,
            native_finish_reason: _,
            content_filter_results: _,
            usage: None,
        },
    ] = choices.as_slice()
    else {
        return None;
    };
    let Delta {
        content: Content { text, thinking },
        reasoning_content,
        reasoning,
        reasoning_details: List(details),
        refusal,
        tool_calls: List(calls),
        function_call: Object(None),
    } = delta
    else {
        return None;
    };
    let is_more = object.0.as_deref() == Some("error")
        || index.0.unwrap_or(0) != 0
        || !finish_reason.is_empty()
        || !refusal.is_empty()
        || !details.is_empty()
        || !calls.is_empty()
        || !thinking.is_empty();
    if is_more {
        return None;
    }
    let (voice, text) = match [text, &reasoning_content.text, &reasoning.text].map(|text| text.is_empty()) {
        [false, true, true] => (Voice::Text, text),
        [true, false, _] => (Voice::Thinking, &reasoning_content.text),
        [true, true, false] => (Voice::Thinking, &reasoning.text),
        [false, _, _] | [true, true, true] => return None,
    };
    match text {
        Cow::Borrowed(text) => Some((voice, text)),
        Cow::Owned(_) => None,
    }
}

fn pieces(payload: Payload<'_>, text: &str, details: &mut Details, sink: &mut Sink<'_>) -> Result<(), ProviderError> {
    if let Some(error) = payload.error {
        let error = serde_json::from_str(error.get()).unwrap_or_default();
        sink(Piece::Error(failure::of_stream(&error)));
        return Ok(());
    }
    if payload.object.0.as_deref() == Some("error") {
        return failed(text, sink);
    }
    if let Some(model) = payload.model.non_empty() {
        sink(Piece::Model(model));
    }
    let groq = payload.x_groq.and_then(|groq| groq.0).and_then(|groq| groq.usage.0);
    let mut tokens = payload.usage.and_then(|usage| usage.0).or(groq);
    for mut choice in payload.choices.unwrap_or_default().0 {
        // Only one choice is ever asked for; a server that sends more would mix them up.
        if choice.index.0.unwrap_or(0) == 0 {
            tokens = tokens.or(choice.usage.take().and_then(|usage| usage.0));
            choice_pieces(choice, details, sink);
        }
    }
    if let Some(tokens) = tokens {
        sink(Piece::Usage(tokens.usage()));
    }
    Ok(())
}

fn choice_pieces(choice: Choice<'_>, details: &mut Details, sink: &mut Sink<'_>) {
    let message = || choice.message.and_then(|message| message.0);
    let delta = choice.delta.0.or_else(message).unwrap_or_default();
    // Some servers send their thinking under both names.
    let reasoning = if delta.reasoning_content.text.is_empty() {
        delta.reasoning.text
    } else {
        delta.reasoning_content.text
    };
    for thinking in [reasoning, delta.content.thinking] {
        if !thinking.is_empty() {
            sink(Piece::Thinking(thinking));
        }
    }
    details.take(
        delta
            .reasoning_details
            .0
            .into_iter()
            .filter_map(|detail| detail.0)
            .collect(),
    );
    if !delta.content.text.is_empty() {
        sink(Piece::Text(delta.content.text));
    }
    // What the model says in refusing is its answer: it is read as one, and asking again would not change it.
    if let Some(refusal) = delta.refusal.non_empty() {
        sink(Piece::Text(refusal));
    }
    for call in delta.tool_calls.0.into_iter().filter_map(|call| call.0) {
        let function = call.function.0.unwrap_or_default();
        sink(Piece::Call(CallFragment {
            index: call.index.0,
            id: call.id.non_empty(),
            name: function.name.non_empty(),
            arguments: function.arguments.and_then(lenient::arguments),
            signature: call.extra_content.map(|raw| Cow::Borrowed(raw.get())),
        }));
    }
    if let Some(function) = delta.function_call.0 {
        sink(Piece::Call(CallFragment {
            index: Some(0),
            id: None,
            name: function.name.non_empty(),
            arguments: function.arguments.and_then(lenient::arguments),
            signature: None,
        }));
    }
    let Some(reason) = choice.finish_reason.non_empty() else {
        return;
    };
    let finish = finish(&reason);
    match finish {
        Finish::Refused | Finish::Aborted | Finish::Other => {
            let native: Option<String> = choice.native_finish_reason.and_then(read);
            let results: Option<Map<String, Value>> = choice.content_filter_results.and_then(read);
            let about = results.as_ref().map(withheld::filtered).unwrap_or_default();
            let says = native.filter(|native| *native != reason).unwrap_or_default();
            sink(Piece::Reason(withheld::reason(&reason, &about, &says).into()));
        }
        Finish::Stop | Finish::ToolCalls | Finish::Paused | Finish::Length => {}
    }
    if let Some(block) = details.block() {
        sink(Piece::Block {
            format: Format::OpenaiChat,
            block,
        });
    }
    sink(Piece::Finish(finish));
}

/// A value, if it is of that type.
fn read<T: DeserializeOwned>(raw: &RawValue) -> Option<T> {
    serde_json::from_str(raw.get()).ok()
}

fn finish(reason: &str) -> Finish {
    match reason {
        "stop" | "eos" | "eos_token" | "end_turn" | "stop_sequence" => Finish::Stop,
        "tool_calls" | "tool_call" | "tool_use" | "function_call" => Finish::ToolCalls,
        "length" | "max_tokens" | "model_length" => Finish::Length,
        "content_filter" | "refusal" | "safety" => Finish::Refused,
        "error" | "abort" | "aborted" | "cancelled" | "insufficient_system_resource" => Finish::Aborted,
        _ => Finish::Other,
    }
}

/// A payload that is an error as a whole.
fn failed(text: &str, sink: &mut Sink<'_>) -> Result<(), ProviderError> {
    let value = serde_json::from_str(text).unwrap_or_default();
    sink(Piece::Error(failure::of_stream(&value)));
    Ok(())
}

fn broken(what: &str, text: &str, why: &str) -> ProviderError {
    crate::codec::broken(Format::OpenaiChat, what, text, why)
}
