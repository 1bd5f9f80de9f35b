//! What several APIs refuse alike: names, ids, lists that are empty, fields nobody knows.

use super::{Passed, refuse};
use serde_json::{Map, Value};
use std::collections::HashSet;

/// The longest name of a tool, which providers share: <https://platform.openai.com/docs/api-reference/chat/create>.
pub(super) const NAME_CHARS_MAX: usize = 64;

/// The elements of a list; none for anything else.
pub(super) fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The text of a string; empty for anything else.
pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The fields of an object; none for anything else.
pub(super) fn fields(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

/// A string of these characters and no longer than that.
pub(super) fn is_word(word: &str, chars_max: usize, also: &[char]) -> bool {
    (1..=chars_max).contains(&word.chars().count())
        && word.chars().all(|c| c.is_ascii_alphanumeric() || also.contains(&c))
}

/// `^[a-zA-Z0-9_-]{1,64}$`, for names of tools and schemas.
pub(super) fn name<'v>(value: &'v Value, place: &str) -> Passed<&'v str> {
    match value.as_str() {
        Some(name) if is_word(name, NAME_CHARS_MAX, &['_', '-']) => Ok(name),
        Some(name) => refuse(format!(
            "Invalid '{place}': string does not match pattern. Expected a string that matches the pattern \
             '^[a-zA-Z0-9_-]{{1,64}}$': {name:?}"
        )),
        None => refuse(format!("Missing required parameter: '{place}'.")),
    }
}

/// A list that is not empty, or none at all: <https://github.com/vllm-project/vllm/pull/39780>,
/// <https://github.com/microsoft/autogen/issues/5814>.
pub(super) fn list_or_nothing<'v>(body: &'v Value, field: &str) -> Passed<Option<&'v [Value]>> {
    match body.get(field) {
        None => Ok(None),
        Some(Value::Array(list)) if list.is_empty() => refuse(format!(
            "Invalid '{field}': empty array. Expected an array with minimum length 1, but got an empty array instead."
        )),
        Some(Value::Array(list)) => Ok(Some(list)),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_)) => {
            refuse(format!("Invalid type for '{field}': expected an array."))
        }
    }
}

/// No field that the API does not know.
pub(super) fn only_known(value: &Value, known: &[&str], place: &str) -> Passed {
    match fields(value).find(|(key, _)| !known.contains(&key.as_str())) {
        Some((key, _)) => refuse(format!("Unrecognized request argument supplied: {place}{key}")),
        None => Ok(()),
    }
}

/// A number of tokens that is at least that, where it is there.
pub(super) fn tokens_min(body: &Value, field: &str, min: u64) -> Passed {
    match body.get(field) {
        None => Ok(()),
        Some(count) if count.as_u64().is_some_and(|count| count >= min) => Ok(()),
        Some(count) => refuse(format!(
            "Invalid '{field}': integer below minimum value. Expected a value >= {min}, but got {count} instead."
        )),
    }
}

/// The schema of a tool's arguments is one of an object, and offers no alternatives at its top:
/// <https://github.com/mobile-next/mobile-mcp/issues/344>, <https://github.com/anthropics/claude-code/issues/5973>.
pub(super) fn object_schema(schema: &Value, place: &str) -> Passed {
    if schema["type"] != "object" {
        return refuse(format!(
            "Invalid schema for function '{place}': schema must be a JSON Schema of 'type: \"object\"'."
        ));
    }
    match ["oneOf", "anyOf", "allOf", "enum", "not"]
        .iter()
        .find(|keyword| schema.get(**keyword).is_some())
    {
        Some(keyword) => refuse(format!(
            "Invalid schema for function '{place}': schema does not support '{keyword}' at the top level"
        )),
        None => Ok(()),
    }
}

/// A schema that is sent as `strict` closes each object and requires each property:
/// <https://platform.openai.com/docs/guides/structured-outputs#supported-schemas>.
pub(super) fn strict_schema(schema: &Value, place: &str) -> Passed {
    if schema["type"] == "object" || schema.get("properties").is_some() {
        if schema["additionalProperties"] != Value::Bool(false) {
            return refuse(format!(
                "Invalid schema for '{place}': 'additionalProperties' is required to be supplied and to be false."
            ));
        }
        let required = items(&schema["required"]);
        if let Some((name, _)) = fields(&schema["properties"]).find(|(name, _)| !required.iter().any(|r| r == *name)) {
            return refuse(format!(
                "Invalid schema for '{place}': 'required' is required to be an array including every key in properties. \
                 Missing '{name}'."
            ));
        }
    }
    for (_, property) in fields(&schema["properties"]).chain(fields(&schema["$defs"])) {
        strict_schema(property, place)?;
    }
    schema.get("items").map_or(Ok(()), |items| strict_schema(items, place))
}

/// What Anthropic's structured output refuses, besides what it cannot compile:
/// <https://docs.anthropic.com/en/docs/build-with-claude/structured-outputs>.
pub(super) fn closed_schema(schema: &Value, place: &str) -> Passed {
    const BOUNDS: [&str; 6] = ["minimum", "maximum", "multipleOf", "minLength", "maxLength", "maxItems"];
    if schema["type"] == "object" && schema["additionalProperties"] != Value::Bool(false) {
        return refuse(format!(
            "{place}: For 'object' type, 'additionalProperties' must be explicitly set to false"
        ));
    }
    if let Some(bound) = BOUNDS.iter().find(|bound| schema.get(**bound).is_some()) {
        return refuse(format!(
            "{place}: For '{}' type, property '{bound}' is not supported",
            text(&schema["type"])
        ));
    }
    let properties = fields(&schema["properties"]).map(|(_, schema)| schema);
    let mut inner = properties.chain(items(&schema["anyOf"])).chain(schema.get("items"));
    inner.try_for_each(|schema| closed_schema(schema, place))
}

/// Argument text: whoever renders a call for the model parses it, and wants an object. llama.cpp answers 500 for ever, see the
/// recordings in this crate's tests.
pub(super) fn arguments(value: &Value, place: &str) -> Passed {
    let Some(text) = value.as_str() else {
        return refuse(format!("Invalid type for '{place}': expected a string."));
    };
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(_)) => Ok(()),
        Ok(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            refuse(format!("'{place}' is not the JSON text of an object"))
        }
        Err(why) => refuse(format!("Failed to parse tool call arguments as JSON: {place}: {why}")),
    }
}

/// Tells what was there before.
#[derive(Default)]
pub(super) struct Unique<'v>(HashSet<&'v str>);

impl<'v> Unique<'v> {
    /// Refuses what is there already.
    pub(super) fn add(&mut self, word: &'v str, what: &str) -> Passed {
        if self.0.insert(word) {
            Ok(())
        } else {
            refuse(format!("{what} must be unique: {word}"))
        }
    }
}
