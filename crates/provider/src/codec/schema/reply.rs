//! Schemas of replies (structured output).
//!
//! They differ from tools' in two ways: the top level must stay what it is, because the reply is held against it, and a
//! projection may be narrower, because nobody but the model has to fit it. What cannot be kept is no projection at all: then
//! the schema is told in words, which costs less than a field that never lets a fitting reply through.

use super::flatten::Walk;
use super::{has_alternatives, top};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// What an endpoint takes as the schema of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyDialect {
    /// All of JSON Schema, of an object (OpenAI).
    Object,
    /// What grammars are made from, of an object: clouds that serve open models.
    GrammarObject,
    /// What grammars are made from, of anything: llama.cpp, Ollama, LM Studio, vLLM.
    Grammar,
    /// Objects that hold the properties they name and no others, without bounds on values (Anthropic).
    Closed,
}

/// A reply's schema in that dialect, borrowed where it needs no change; none where it cannot be put so.
pub fn project_reply(schema: &Value, dialect: ReplyDialect) -> Option<Cow<'_, Value>> {
    let projected = match dialect {
        ReplyDialect::Object if is_object(schema) && !has_alternatives(schema) => return Some(Cow::Borrowed(schema)),
        ReplyDialect::Object | ReplyDialect::GrammarObject => of_object(Walk::new(schema).grammar(schema, None, 0))?,
        ReplyDialect::Grammar => Walk::new(schema).grammar(schema, None, 0),
        ReplyDialect::Closed => Walk::new(schema).closed(schema, None, 0).filter(is_object)?,
    };
    Some(if projected == *schema {
        Cow::Borrowed(schema)
    } else {
        Cow::Owned(projected)
    })
}

fn is_object(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("object")
}

/// The same as an object's, if it takes one and says nothing that only alternatives could.
fn of_object(schema: Value) -> Option<Value> {
    let fields = schema.as_object()?;
    let is_other = ["anyOf", "oneOf", "enum", "const"]
        .iter()
        .any(|name| fields.contains_key(*name));
    (!is_other && top::is_object(fields)).then(|| top::object(schema, &top::GRAMMAR))
}

/// Levels that OpenAI's strict mode looks into.
const STRICT_DEPTH_MAX: usize = 10;

/// What strict mode knows; with anything else the request is refused:
/// <https://platform.openai.com/docs/guides/structured-outputs#supported-schemas>.
const STRICT_FIELDS: &[&str] = &[
    "$defs",
    "$ref",
    "$schema",
    "additionalProperties",
    "anyOf",
    "const",
    "definitions",
    "description",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "items",
    "maxItems",
    "maximum",
    "minItems",
    "minimum",
    "multipleOf",
    "properties",
    "required",
    "title",
    "type",
];

/// What tells of a schema what it takes; strict mode wants one of them.
const STRICT_SHAPES: &[&str] = &["type", "anyOf", "$ref", "enum", "const"];

/// Whether a schema is as OpenAI's strict mode wants it: every object is closed and requires all it has, and there is no word
/// that the mode does not know.
pub fn is_strict(schema: &Value) -> bool {
    is_strict_at(schema, 0)
}

fn is_strict_at(schema: &Value, depth: usize) -> bool {
    let Some(fields) = schema.as_object().filter(|_| depth <= STRICT_DEPTH_MAX) else {
        return false;
    };
    let is_known = fields.keys().all(|name| STRICT_FIELDS.contains(&name.as_str()));
    let has_shape = STRICT_SHAPES.iter().any(|name| fields.contains_key(*name));
    let named = |name: &str| fields.get(name).and_then(Value::as_object);
    let mut groups = ["properties", "$defs", "definitions"].into_iter().filter_map(named);
    let alternatives = fields.get("anyOf").and_then(Value::as_array).into_iter().flatten();
    let mut inner = alternatives.chain(fields.get("items"));
    is_known
        && has_shape
        && (!is_about_object(fields) || is_closed(fields))
        && groups.all(|group| group.values().all(|schema| is_strict_at(schema, depth + 1)))
        && inner.all(|schema| is_strict_at(schema, depth + 1))
}

fn is_about_object(fields: &Map<String, Value>) -> bool {
    fields.contains_key("properties") || super::types(fields.get("type")).contains(&"object")
}

fn is_closed(fields: &Map<String, Value>) -> bool {
    let required = fields.get("required").and_then(Value::as_array);
    let is_required = |name: &String| required.is_some_and(|all| all.iter().any(|one| one == name.as_str()));
    let properties = fields.get("properties").and_then(Value::as_object);
    fields.get("additionalProperties") == Some(&Value::Bool(false))
        && properties.is_none_or(|properties| properties.keys().all(is_required))
}
