//! Schemas for servers that make a grammar of them.

use super::flatten::{Flat, Walk};
use super::{ENUM_VALUES_MAX, REPEAT_MAX, TYPES, pattern, types};
use serde_json::{Map, Value, json};

/// Formats that grammars know; they take others for no format at all, or for an error.
const FORMATS: &[&str] = &["date", "time", "date-time", "uuid"];

/// Numbers beyond this are no longer whole in a double, which is how they are read.
const NUMBER_MAX: f64 = 9_007_199_254_740_991.0;

/// Fields that say what is taken without a `type`.
const SHAPES: &[&str] = &[
    "enum",
    "const",
    "anyOf",
    "properties",
    "items",
    "prefixItems",
    "pattern",
];

impl<'s> Walk<'s> {
    /// The schema, where `outer` is the type that a schema around these alternatives names.
    pub(super) fn grammar(&mut self, schema: &'s Value, outer: Option<&'s Value>, depth: usize) -> Value {
        if !self.enter(depth) {
            return any();
        }
        self.flattened(schema, |walk, flat| walk.grammar_of(flat, outer, depth))
    }

    fn grammar_of(&mut self, flat: &Flat<'s>, outer: Option<&'s Value>, depth: usize) -> Value {
        let mut out = self.words(flat);
        let kind = flat.fields.get("type").copied();
        let kind = if types(kind).is_empty() { outer } else { kind };
        if let Some(alternatives) = flat.alternatives() {
            let each = alternatives.iter().map(|schema| self.grammar(schema, kind, depth + 1));
            let each = each.collect();
            let name = if flat.fields.contains_key("anyOf") {
                "anyOf"
            } else {
                "oneOf"
            };
            out.insert(name.to_owned(), Value::Array(each));
            return Value::Object(out);
        }
        for (name, value) in &flat.fields {
            if let Some(value) = self.grammar_field(name, value, flat, depth) {
                out.insert((*name).to_owned(), value);
            }
        }
        if let Some(properties) = &flat.properties {
            let properties = properties.iter();
            let properties =
                properties.map(|(name, schema)| ((*name).to_owned(), self.grammar(schema, None, depth + 1)));
            out.insert("properties".to_owned(), Value::Object(properties.collect()));
        }
        if !flat.required.is_empty() {
            out.insert("required".to_owned(), json!(flat.required));
        }
        match types(kind).as_slice() {
            [] if SHAPES.iter().any(|name| out.contains_key(*name)) || is_told_by_others(&out) => {}
            // Without a type llama.cpp takes a schema for an object, or refuses it.
            [] => {
                out.insert("type".to_owned(), json!(TYPES));
            }
            // One in a list stays in a list: nothing needs to change.
            [only] if kind.is_some_and(Value::is_string) => {
                out.insert("type".to_owned(), json!(only));
            }
            several => {
                out.insert("type".to_owned(), json!(several));
            }
        }
        Value::Object(out)
    }

    /// A field as a grammar can hold it, if it can.
    fn grammar_field(&mut self, name: &str, value: &'s Value, flat: &Flat<'s>, depth: usize) -> Option<Value> {
        match name {
            "enum" => {
                let values = value.as_array()?;
                let is_kept = (1..=ENUM_VALUES_MAX).contains(&values.len()) && self.takes(value);
                is_kept.then(|| value.clone())
            }
            "const" => self.takes(value).then(|| value.clone()),
            "format" => value.as_str().filter(|name| FORMATS.contains(name)).map(Value::from),
            "pattern" => pattern::for_grammar(value.as_str()?).map(Value::from),
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => {
                let is_kept = value.as_f64().is_some_and(|number| number.abs() <= NUMBER_MAX);
                is_kept.then(|| value.clone())
            }
            "minLength" | "maxLength" | "minItems" | "maxItems" => {
                let is_kept = value.as_u64().is_some_and(|count| count <= REPEAT_MAX);
                is_kept.then(|| value.clone())
            }
            "items" if value.is_object() => Some(self.grammar(value, None, depth + 1)),
            "items" | "prefixItems" => {
                let items = value.as_array().filter(|items| !items.is_empty())?.iter();
                let items = items.map(|schema| self.grammar(schema, None, depth + 1));
                Some(Value::Array(items.collect()))
            }
            "additionalProperties" if !flat.is_patterned => match value {
                Value::Bool(_) => Some(value.clone()),
                Value::Object(fields) if fields.is_empty() => Some(Value::Bool(true)),
                Value::Object(_) => Some(self.grammar(value, None, depth + 1)),
                Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => None,
            },
            _ => None,
        }
    }
}

/// Takes anything, said so that no server reads it as an object.
fn any() -> Value {
    json!({"type": TYPES})
}

/// True where `additionalProperties` alone says that it is about an object.
fn is_told_by_others(out: &Map<String, Value>) -> bool {
    out.get("additionalProperties")
        .is_some_and(|others| *others != Value::Bool(true))
}
