//! Payloads of chat completions to pieces: a chunk of a stream, or a whole reply.
//!
//! The two differ only in `delta` against `message`, so one structure reads both. A payload is parsed once, straight
//! into borrowed fields; only errors go through a `Value`.

use crate::codec::lenient::{Content, Count, List, Str};
use crate::codec::{CallFragment, Finish, Piece, Sink, failure};
use crate::profile::Format;
use crate::{ProviderError, sse};
use aish_core::event::Usage;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;

#[derive(Deserialize, Default)]
#[serde(default)]
struct Payload<'a> {
    #[serde(borrow)]
    choices: Option<List<Choice<'a>>>,
    #[serde(borrow)]
    model: Str<'a>,
    usage: Option<Tokens>,
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
    delta: Option<Delta<'a>>,
    /// Instead of `delta` where the reply comes whole. Apart, because every chunk of a stream would carry its room along.
    #[serde(borrow)]
    message: Option<Box<Delta<'a>>>,
    #[serde(borrow)]
    finish_reason: Str<'a>,
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
    #[serde(borrow)]
    refusal: Str<'a>,
    #[serde(borrow)]
    tool_calls: List<Call<'a>>,
    #[serde(borrow)]
    function_call: Option<Function<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Call<'a> {
    index: Count,
    #[serde(borrow)]
    id: Str<'a>,
    #[serde(borrow)]
    function: Option<Function<'a>>,
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
struct Tokens {
    prompt_tokens: Count,
    completion_tokens: Count,
    prompt_tokens_details: Option<TokenDetails>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct TokenDetails {
    cached_tokens: Count,
}

/// Reads the payload of one event.
pub(super) fn event(event: &sse::Event<'_>, sink: &mut Sink<'_>) -> Result<(), ProviderError> {
    let data = event.data.trim();
    if data.is_empty() {
        return Ok(());
    }
    if data == "[DONE]" {
        sink(Piece::Done);
        return Ok(());
    }
    match parse(data) {
        Ok(payload) if event.name == "error" && payload.error.is_none() => failed(data, sink),
        Ok(payload) => pieces(payload, data, sink),
        Err(_) if event.name == "error" => {
            sink(Piece::Error(failure::of_stream(&Value::String(data.to_owned()))));
            Ok(())
        }
        Err(why) => Err(broken("an event of the stream", data, &why)),
    }
}

/// Reads a whole reply. It ends the stream, but without a reason to finish it is still no whole reply.
pub(super) fn body(body: &str, sink: &mut Sink<'_>) -> Result<(), ProviderError> {
    let payload = parse(body).map_err(|why| broken("the reply", body, &why))?;
    if payload.choices.is_none() && payload.error.is_none() {
        return failed(body, sink);
    }
    pieces(payload, body, sink)?;
    sink(Piece::Done);
    Ok(())
}

fn parse(text: &str) -> Result<Payload<'_>, String> {
    // A whole body may begin with a byte-order mark, which no JSON parser takes.
    let text = text.trim_start_matches('\u{FEFF}').trim_start();
    // A derived structure would also take a list for an object, its fields by position.
    if !text.starts_with('{') {
        return Err("no JSON object".to_owned());
    }
    serde_json::from_str(text).map_err(|error| error.to_string())
}

fn pieces(payload: Payload<'_>, text: &str, sink: &mut Sink<'_>) -> Result<(), ProviderError> {
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
    for choice in payload.choices.unwrap_or_default().0 {
        // Only one choice is ever asked for; a server that sends more would mix them up.
        if choice.index.0.unwrap_or(0) == 0 {
            choice_pieces(choice, sink);
        }
    }
    if let Some(tokens) = payload.usage {
        sink(Piece::Usage(Usage {
            input_tokens: tokens.prompt_tokens.0.unwrap_or(0),
            output_tokens: tokens.completion_tokens.0.unwrap_or(0),
            cached_tokens: tokens
                .prompt_tokens_details
                .and_then(|details| details.cached_tokens.0)
                .unwrap_or(0),
            model: None,
            ..Usage::default()
        }));
    }
    Ok(())
}

fn choice_pieces(choice: Choice<'_>, sink: &mut Sink<'_>) {
    let delta = choice
        .delta
        .or(choice.message.map(|message| *message))
        .unwrap_or_default();
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
    if !delta.content.text.is_empty() {
        sink(Piece::Text(delta.content.text));
    }
    let refusal = delta.refusal.non_empty();
    let is_refused = refusal.is_some();
    if let Some(refusal) = refusal {
        sink(Piece::Text(refusal));
    }
    for call in delta.tool_calls.0 {
        let function = call.function.unwrap_or_default();
        sink(Piece::Call(CallFragment {
            index: call.index.0,
            id: call.id.non_empty(),
            name: function.name.non_empty(),
            arguments: function.arguments.and_then(arguments),
            signature: None,
        }));
    }
    if let Some(function) = delta.function_call {
        sink(Piece::Call(CallFragment {
            index: Some(0),
            id: None,
            name: function.name.non_empty(),
            arguments: function.arguments.and_then(arguments),
            signature: None,
        }));
    }
    match choice.finish_reason.non_empty() {
        Some(reason) => sink(Piece::Finish(finish(&reason))),
        None if is_refused => sink(Piece::Finish(Finish::Refused)),
        None => {}
    }
}

/// The argument text: the string's content, or the object as it is written. Null is nothing.
fn arguments(raw: &RawValue) -> Option<Cow<'_, str>> {
    let raw = raw.get();
    match raw.as_bytes().first() {
        Some(b'"') => serde_json::from_str::<Str<'_>>(raw).ok()?.0,
        Some(b'n') | None => None,
        Some(_) => Some(Cow::Borrowed(raw)),
    }
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
