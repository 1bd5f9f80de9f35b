//! What payloads of the Responses API say, as far as anybody needs it; every field may be missing.

use crate::codec::lenient::{Count, List, Object, Str};
use aish_core::event::Usage;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// An event of a stream, or a failure that came instead of one.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Event<'a> {
    #[serde(borrow)]
    pub(super) r#type: Str<'a>,
    pub(super) output_index: Count,
    #[serde(borrow)]
    pub(super) item_id: Str<'a>,
    #[serde(borrow)]
    pub(super) call_id: Str<'a>,
    #[serde(borrow)]
    pub(super) name: Str<'a>,
    pub(super) content_index: Count,
    pub(super) summary_index: Count,
    #[serde(borrow)]
    pub(super) delta: Str<'a>,
    #[serde(borrow)]
    pub(super) text: Str<'a>,
    #[serde(borrow)]
    pub(super) refusal: Str<'a>,
    #[serde(borrow)]
    pub(super) arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) part: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) item: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) response: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
    /// `response` where the payload is a whole response without an event around it.
    #[serde(borrow)]
    pub(super) object: Str<'a>,
}

/// A response, under way or whole.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Response<'a> {
    #[serde(borrow)]
    pub(super) status: Str<'a>,
    #[serde(borrow)]
    pub(super) model: Str<'a>,
    #[serde(borrow)]
    pub(super) output: Option<List<&'a RawValue>>,
    #[serde(borrow)]
    pub(super) usage: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) incomplete_details: Option<&'a RawValue>,
    /// What Azure's filters found.
    #[serde(borrow)]
    pub(super) content_filters: List<&'a RawValue>,
}

/// What one of Azure's filters found.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Filter {
    pub(super) content_filter_results: Object<Map<String, Value>>,
}

/// Why a response is incomplete.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Incomplete<'a> {
    #[serde(borrow)]
    pub(super) reason: Str<'a>,
}

/// An item of a response's output.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Item<'a> {
    #[serde(borrow)]
    pub(super) r#type: Str<'a>,
    #[serde(borrow)]
    pub(super) id: Str<'a>,
    #[serde(borrow)]
    pub(super) call_id: Str<'a>,
    #[serde(borrow)]
    pub(super) name: Str<'a>,
    #[serde(borrow)]
    pub(super) arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) content: List<&'a RawValue>,
    #[serde(borrow)]
    pub(super) summary: List<&'a RawValue>,
    #[serde(borrow)]
    pub(super) encrypted_content: Str<'a>,
}

/// A part of an item's content or summary.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Part<'a> {
    #[serde(borrow)]
    pub(super) r#type: Str<'a>,
    #[serde(borrow)]
    pub(super) text: Str<'a>,
    #[serde(borrow)]
    pub(super) refusal: Str<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Tokens<'a> {
    input_tokens: Count,
    output_tokens: Count,
    #[serde(borrow)]
    input_tokens_details: Option<&'a RawValue>,
    #[serde(borrow)]
    output_tokens_details: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct TokenDetails {
    cached_tokens: Count,
    reasoning_tokens: Count,
}

/// What a value says, if it is an object; else nothing at all.
pub(super) fn read<'a, T: Deserialize<'a> + Default>(raw: Option<&'a RawValue>) -> T {
    let object = raw.map(RawValue::get).filter(|text| text.starts_with('{'));
    object
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default()
}

/// The tokens of a reply. What was cached is part of the input, what was reasoning part of the output.
pub(super) fn usage(raw: &RawValue) -> Usage {
    let tokens: Tokens<'_> = read(Some(raw));
    let input: TokenDetails = read(tokens.input_tokens_details);
    let output: TokenDetails = read(tokens.output_tokens_details);
    Usage {
        input_tokens: tokens.input_tokens.0.unwrap_or(0),
        output_tokens: tokens.output_tokens.0.unwrap_or(0),
        cached_tokens: input.cached_tokens.0.unwrap_or(0),
        reasoning_tokens: output.reasoning_tokens.0.unwrap_or(0),
        ..Usage::default()
    }
}
