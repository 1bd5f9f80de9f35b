//! Schemas of tools in the words an endpoint takes; those of replies are in `reply`.
//!
//! Arguments are always validated against the tool's own schema (SPEC 3.8), so what is left out here is only a hint lost,
//! while one keyword too many costs the whole request: servers compile all tools of a request into one grammar and refuse it
//! for the first thing they do not know. So a projection is an allow-list, and it never narrows: what the tool takes, its
//! projection takes (but for lists of lists where Gemini is told nothing of their items).
//!
//! | | [`SchemaDialect::Grammar`] | [`SchemaDialect::Gemini`] |
//! |---|---|---|
//! | `$ref` within the schema, `allOf` | written out, recursion [`RECURSION_MAX`] times | the same |
//! | several types, no type | a list of types | `anyOf`, `nullable` |
//! | `anyOf`, `oneOf` | as they are, alone | `anyOf`, alone |
//! | `const`, `enum` | as they are | `enum` where all are strings, else told in the description |
//! | `pattern` | where a grammar can hold it | no |
//! | `format` | the few that grammars know | the few that the API knows |
//! | lengths and counts | up to [`REPEAT_MAX`] | of lists only |
//! | `additionalProperties` | as it is | no |
//! | all else | no | no |
//!
//! The top level is always an object with `properties`; alternatives there become one object that takes them all. The same
//! schema gives the same result for ever, and a projected schema is projected to itself.
//!
//! Facts of the servers: llama.cpp `common/json-schema-to-grammar.cpp` (unanchored patterns and unknown types fail the request,
//! an empty schema means an object, shorthand classes are copied into the grammar unread); vLLM's list of what xgrammar lacks
//! (`multipleOf`, `uniqueItems`, `contains`, `minProperties`, `patternProperties`, `propertyNames`); Gemini's `Schema` message,
//! which refuses fields it has no name for, and answers 400 to `enum` of numbers, to lists without `items` and to keywords of
//! another type than the schema's.

use serde_json::{Map, Value, json};
use std::borrow::Cow;

mod closed;
mod flatten;
mod gemini;
mod grammar;
mod pattern;
mod reply;
mod top;

use flatten::Walk;
pub use reply::{ReplyDialect, is_strict, project_reply};
use top::finished;

/// Schemas that are looked at for one tool, references written out.
pub const NODES_MAX: usize = 10_000;

/// How deep a schema is looked into.
pub const DEPTH_MAX: usize = 64;

/// How often a schema may occur within itself before it is cut short.
pub const RECURSION_MAX: usize = 2;

/// Bytes of words (titles, descriptions, values) that are taken over for one tool.
pub const WORD_BYTES_MAX: usize = 1 << 20;

/// The largest count of repetitions that grammars are asked for; llama.cpp refuses more.
pub const REPEAT_MAX: u64 = 2000;

/// Values of one `enum`: each is a branch of the grammar.
pub const ENUM_VALUES_MAX: usize = 1000;

/// What an endpoint takes of JSON Schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaDialect {
    /// All of it, but no alternatives at the top and always of an object.
    Full,
    /// What grammars of local servers (llama.cpp, Ollama, LM Studio, vLLM) are made from: references resolved, no
    /// look-around in patterns, no keyword that a grammar cannot hold.
    Grammar,
    /// What Gemini takes.
    Gemini,
}

/// A tool's schema in that dialect; borrowed where it needs no change.
pub fn project(schema: &Value, dialect: SchemaDialect) -> Cow<'_, Value> {
    let mut walk = Walk::new(schema);
    let projected = match dialect {
        SchemaDialect::Full if !has_alternatives(schema) => return typed(schema),
        SchemaDialect::Full | SchemaDialect::Grammar => top::object(walk.grammar(schema, None, 0), &top::GRAMMAR),
        SchemaDialect::Gemini => top::object(walk.gemini(schema, None, 0), &top::GEMINI),
    };
    if projected == *schema {
        Cow::Borrowed(schema)
    } else {
        Cow::Owned(projected)
    }
}

/// True where a schema has at its top what no API takes there, however much of JSON Schema it takes further down:
/// <https://github.com/mobile-next/mobile-mcp/issues/344>.
fn has_alternatives(schema: &Value) -> bool {
    let keywords = ["anyOf", "oneOf", "allOf", "enum", "not", "$ref"];
    keywords.iter().any(|keyword| schema.get(keyword).is_some())
}

/// The schema, saying that it is one of an object, which all APIs want to be told.
fn typed(schema: &Value) -> Cow<'_, Value> {
    if schema.get("type").and_then(Value::as_str) == Some("object") {
        return Cow::Borrowed(schema);
    }
    Cow::Owned(finished(schema.as_object().cloned().unwrap_or_default()))
}

/// True where an object within the schema names no properties: Gemini's `parameters` refuse it, whatever it is meant to hold.
pub fn has_open_object(schema: &Value) -> bool {
    let fields = match schema {
        Value::Object(fields) => fields,
        Value::Array(items) => return items.iter().any(has_open_object),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return false,
    };
    let is_open = |schema: &Value| {
        let has_properties = schema
            .get("properties")
            .and_then(Value::as_object)
            .is_some_and(|p| !p.is_empty());
        schema.get("type").and_then(Value::as_str) == Some("object") && !has_properties
    };
    let properties = fields.get("properties").and_then(Value::as_object);
    let children = properties.into_iter().flat_map(Map::values);
    let children = children.chain(fields.get("items"));
    let mut children = children.chain(fields.get("anyOf").and_then(Value::as_array).into_iter().flatten());
    children.any(|child| is_open(child) || has_open_object(child))
}

/// The types there are.
const TYPES: &[&str] = &["string", "number", "integer", "boolean", "object", "array", "null"];

/// The known types that a `type` names, each once; none where it says nothing.
fn types(kind: Option<&Value>) -> Vec<&str> {
    let named: Vec<&str> = match kind {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => Vec::new(),
    };
    // A name that is no type says that we do not know what is meant: then anything is.
    if named.iter().any(|name| !TYPES.contains(name)) {
        return Vec::new();
    }
    let mut known: Vec<&str> = Vec::new();
    for name in named {
        if !known.contains(&name) {
            known.push(name);
        }
    }
    known
}

/// The type that a value has.
fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// A schema that says what it takes in words only, besides these fields.
fn words(fields: &Map<String, Value>) -> Map<String, Value> {
    let words = ["title", "description"].into_iter();
    let words = words.filter_map(|key| Some((key.to_owned(), fields.get(key)?.clone())));
    words.collect()
}

/// An object of nothing.
fn empty_object() -> Value {
    json!({"type": "object", "properties": {}})
}
