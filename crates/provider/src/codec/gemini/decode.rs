//! Payloads of Gemini to pieces: a chunk of a stream, a whole reply, or a list of chunks where the endpoint does not stream
//! events.
//!
//! Each is a `GenerateContentResponse`. A call comes whole in one part, but only a reason to finish says that the reply is
//! whole. Parts that are neither text nor calls are kept as they came; so is what a search found, which stands beside the
//! parts, as a block of its own: it is shown and put to other models, and not sent back.

use super::contents::GROUNDING;
use crate::codec::lenient::{self, Count, List, Object, Str};
use crate::codec::{CallFragment, Decoder, Finish, Piece, Sink, failure, withheld};
use crate::profile::Format;
use crate::{ProviderError, sse};
use aish_core::event::Usage;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::borrow::Cow;

/// Bytes of what a search found that are kept.
const GROUNDING_BYTES_MAX: usize = 256 << 10;

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Payload<'a> {
    #[serde(borrow)]
    candidates: List<Object<Candidate<'a>>>,
    #[serde(borrow)]
    prompt_feedback: Object<Feedback<'a>>,
    usage_metadata: Object<Tokens>,
    #[serde(borrow)]
    model_version: Str<'a>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    /// Some gateways put the whole payload in here.
    #[serde(borrow)]
    response: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Candidate<'a> {
    index: Count,
    #[serde(borrow)]
    content: Object<Content<'a>>,
    #[serde(borrow)]
    finish_reason: Str<'a>,
    #[serde(borrow)]
    finish_message: Str<'a>,
    #[serde(borrow)]
    safety_ratings: List<Object<Rating<'a>>>,
    #[serde(borrow)]
    grounding_metadata: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Content<'a> {
    #[serde(borrow)]
    parts: List<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Part<'a> {
    #[serde(borrow)]
    text: Str<'a>,
    #[serde(borrow)]
    thought: Option<&'a RawValue>,
    #[serde(borrow)]
    thought_signature: Str<'a>,
    #[serde(borrow)]
    function_call: Object<Call<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Call<'a> {
    #[serde(borrow)]
    id: Str<'a>,
    #[serde(borrow)]
    name: Str<'a>,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Feedback<'a> {
    #[serde(borrow)]
    block_reason: Str<'a>,
    #[serde(borrow)]
    block_reason_message: Str<'a>,
    #[serde(borrow)]
    safety_ratings: List<Object<Rating<'a>>>,
}

/// How harmful something is in one respect.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Rating<'a> {
    #[serde(borrow)]
    category: Str<'a>,
    #[serde(borrow)]
    probability: Str<'a>,
    #[serde(borrow)]
    blocked: Option<&'a RawValue>,
}

#[derive(Clone, Copy, Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Tokens {
    prompt_token_count: Count,
    tool_use_prompt_token_count: Count,
    candidates_token_count: Count,
    thoughts_token_count: Count,
    cached_content_token_count: Count,
}

/// Reads one reply.
#[derive(Default)]
pub(super) struct Reader {
    /// Calls that have begun.
    calls: u64,
    /// The counts so far: each chunk has those that it has.
    tokens: Tokens,
    /// What a search found, until the reply ends: chunks repeat and complete it.
    grounding: Option<Value>,
}

impl Decoder for Reader {
    fn event(&mut self, event: &sse::Event<'_>, sink: &mut Sink<'_>) -> Result<(), ProviderError> {
        let data = event.data.trim();
        match data {
            "" => Ok(()),
            // Said by proxies only.
            "[DONE]" => {
                sink(Piece::Done);
                Ok(())
            }
            data if data.starts_with('[') => self.list(data, sink),
            data => self.payload("an event of the stream", data, event.name == "error", sink),
        }
    }

    fn body(&mut self, body: &str, sink: &mut Sink<'_>) -> Result<(), ProviderError> {
        // A whole body may begin with a byte-order mark, which no JSON parser takes.
        let body = body.trim_start_matches('\u{FEFF}').trim();
        if body.starts_with('[') {
            self.list(body, sink)
        } else {
            self.payload("the reply", body, false, sink)
        }
    }
}

impl Reader {
    /// Reads a list of payloads, one after the other: what came before a cut counts as said.
    fn list(&mut self, text: &str, sink: &mut Sink<'_>) -> Result<(), ProviderError> {
        let mut rest = text.strip_prefix('[').unwrap_or(text).trim_start();
        loop {
            if rest.starts_with(']') {
                return Ok(());
            }
            let mut items = serde_json::Deserializer::from_str(rest).into_iter::<&RawValue>();
            match items.next() {
                Some(Ok(item)) => self.payload("a chunk of the reply", item.get(), false, sink)?,
                Some(Err(error)) => return Err(broken("the reply", rest, &error.to_string())),
                None => return Err(broken("the reply", text, "it has no end")),
            }
            rest = rest.get(items.byte_offset()..).unwrap_or_default().trim_start();
            rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
        }
    }

    fn payload(&mut self, what: &str, text: &str, is_error: bool, sink: &mut Sink<'_>) -> Result<(), ProviderError> {
        let payload: Payload<'_> = match lenient::payload(text) {
            Ok(payload) => payload,
            Err(_) if is_error => {
                sink(Piece::Error(failure::of_stream(&Value::String(text.to_owned()))));
                return Ok(());
            }
            Err(why) => return Err(broken(what, text, &why)),
        };
        match payload.response.filter(|_| payload.candidates.0.is_empty()) {
            Some(inner) => {
                let inner = lenient::payload(inner.get()).map_err(|why| broken(what, text, &why))?;
                self.pieces(inner, is_error.then_some(text), sink);
            }
            None => self.pieces(payload, is_error.then_some(text), sink),
        }
        Ok(())
    }

    /// `failure` is the text of an event that is called an error, whatever is in it.
    fn pieces(&mut self, payload: Payload<'_>, failure: Option<&str>, sink: &mut Sink<'_>) {
        let error = payload.error.map(RawValue::get).filter(|error| *error != "null");
        if let Some(error) = error.or(failure) {
            let error = serde_json::from_str(error).unwrap_or_default();
            return sink(Piece::Error(failure::of_stream(&error)));
        }
        if let Some(model) = payload.model_version.non_empty() {
            sink(Piece::Model(model));
        }
        if let Some(tokens) = payload.usage_metadata.0 {
            sink(Piece::Usage(self.usage(&tokens)));
        }
        let feedback = payload.prompt_feedback.0.unwrap_or_default();
        for candidate in payload.candidates.0.into_iter().filter_map(|candidate| candidate.0) {
            // Only one is ever asked for; a server that sends more would mix them up.
            if candidate.index.0.unwrap_or(0) == 0 {
                self.candidate(candidate, sink);
            }
        }
        let reason = feedback.block_reason.non_empty();
        if let Some(reason) = reason.filter(|reason| !is_unspecified(reason)) {
            let says = feedback.block_reason_message.0.unwrap_or_default();
            let about = rated_high(feedback.safety_ratings);
            sink(Piece::Reason(withheld::reason(&reason, &about, &says).into()));
            sink(Piece::Finish(Finish::Refused));
        }
    }

    fn candidate(&mut self, candidate: Candidate<'_>, sink: &mut Sink<'_>) {
        for part in candidate.content.0.unwrap_or_default().parts.0 {
            self.part(part, sink);
        }
        if let Some(raw) = candidate.grounding_metadata
            && raw.get().len() <= GROUNDING_BYTES_MAX
        {
            let found: Option<Value> = serde_json::from_str(raw.get()).ok();
            self.grounding = found.filter(|found| found.as_object().is_some_and(|found| !found.is_empty()));
        }
        let reason = candidate.finish_reason.non_empty();
        if let Some(reason) = reason.filter(|reason| !is_unspecified(reason)) {
            if let Some(found) = self.grounding.take() {
                sink(block(json!({ GROUNDING: found })));
            }
            let finish = finish(&reason);
            match finish {
                Finish::Refused | Finish::Aborted | Finish::Other => {
                    let says = candidate.finish_message.0.unwrap_or_default();
                    let about = rated_high(candidate.safety_ratings);
                    sink(Piece::Reason(withheld::reason(&reason, &about, &says).into()));
                }
                Finish::Stop | Finish::ToolCalls | Finish::Paused | Finish::Length => {}
            }
            sink(Piece::Finish(finish));
        }
    }

    fn part(&mut self, raw: &RawValue, sink: &mut Sink<'_>) {
        let raw = raw.get();
        let Some(part) = Some(raw).filter(|raw| raw.starts_with('{')) else {
            return;
        };
        let Ok(part) = serde_json::from_str::<Part<'_>>(part) else {
            return;
        };
        let signature = part.thought_signature.non_empty();
        let is_thought = part.thought.is_some_and(|thought| thought.get() == "true");
        match (part.function_call.0, part.text.0) {
            (Some(call), _) => self.call(call, signature, sink),
            (None, Some(text)) => said(text, is_thought, signature, sink),
            (None, None) => match serde_json::from_str(raw) {
                Ok(Value::Object(fields)) if fields.keys().all(|name| name.starts_with("thought")) => {
                    said(Cow::Borrowed(""), is_thought, signature, sink);
                }
                Ok(whole) => sink(block(whole)),
                Err(_) => {}
            },
        }
    }

    /// A call has its own number, because two calls of one tool may look the same; one without a name goes on with the last.
    fn call(&mut self, call: Call<'_>, signature: Option<Cow<'_, str>>, sink: &mut Sink<'_>) {
        let name = call.name.non_empty();
        if name.is_some() || self.calls == 0 {
            self.calls += 1;
        }
        sink(Piece::Call(CallFragment {
            index: Some(self.calls - 1),
            id: call.id.non_empty(),
            name,
            arguments: call.args.and_then(lenient::arguments),
            signature,
        }));
    }

    /// The counts so far. What was thought is counted beside the reply, and what a tool of the provider's put into the
    /// request beside the request.
    fn usage(&mut self, tokens: &Tokens) -> Usage {
        let newer = |known: &mut Count, count: Count| known.0 = count.0.or(known.0);
        let known = &mut self.tokens;
        newer(&mut known.prompt_token_count, tokens.prompt_token_count);
        newer(
            &mut known.tool_use_prompt_token_count,
            tokens.tool_use_prompt_token_count,
        );
        newer(&mut known.candidates_token_count, tokens.candidates_token_count);
        newer(&mut known.thoughts_token_count, tokens.thoughts_token_count);
        newer(&mut known.cached_content_token_count, tokens.cached_content_token_count);
        let sum = |one: Count, other: Count| one.0.unwrap_or(0).saturating_add(other.0.unwrap_or(0));
        Usage {
            input_tokens: sum(known.prompt_token_count, known.tool_use_prompt_token_count),
            output_tokens: sum(known.candidates_token_count, known.thoughts_token_count),
            cached_tokens: known.cached_content_token_count.0.unwrap_or(0),
            reasoning_tokens: known.thoughts_token_count.0.unwrap_or(0),
            ..Usage::default()
        }
    }
}

/// Text or a thought, and its signature. The signature of text stands alone behind it; that of a thought belongs to it.
fn said(text: Cow<'_, str>, is_thought: bool, signature: Option<Cow<'_, str>>, sink: &mut Sink<'_>) {
    if !text.is_empty() {
        sink(if is_thought {
            Piece::Thinking(text)
        } else {
            Piece::Text(text)
        });
    }
    let Some(text) = signature else { return };
    if !is_thought {
        sink(Piece::Boundary);
    }
    let format = Format::Gemini;
    sink(Piece::Signature { format, text });
    sink(Piece::Boundary);
}

/// What something was blocked for, or may have been: <https://ai.google.dev/api/generate-content#SafetyRating>.
fn rated_high(ratings: List<Object<Rating<'_>>>) -> Vec<String> {
    let ratings = ratings.0.into_iter().filter_map(|rating| rating.0);
    let high = ratings.filter(|rating| {
        let is_blocked = rating.blocked.is_some_and(|blocked| blocked.get() == "true");
        is_blocked || matches!(rating.probability.0.as_deref(), Some("HIGH" | "MEDIUM"))
    });
    high.filter_map(|rating| Some(withheld::readable(&rating.category.non_empty()?)))
        .collect()
}

fn block(block: Value) -> Piece<'static> {
    let format = Format::Gemini;
    Piece::Block { format, block }
}

/// What stands for no value at all.
fn is_unspecified(word: &str) -> bool {
    word.ends_with("_UNSPECIFIED")
}

/// <https://ai.google.dev/api/generate-content#FinishReason>
fn finish(reason: &str) -> Finish {
    match reason {
        "STOP" => Finish::Stop,
        "MAX_TOKENS" => Finish::Length,
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION" => Finish::Refused,
        // The model's slip, or nobody's: nothing of it runs.
        "MALFORMED_FUNCTION_CALL"
        | "UNEXPECTED_TOOL_CALL"
        | "TOO_MANY_TOOL_CALLS"
        | "MISSING_THOUGHT_SIGNATURE"
        | "MALFORMED_RESPONSE"
        | "OTHER"
        | "IMAGE_OTHER"
        | "NO_IMAGE" => Finish::Aborted,
        _ => Finish::Other,
    }
}

fn broken(what: &str, text: &str, why: &str) -> ProviderError {
    crate::codec::broken(Format::Gemini, what, text, why)
}
