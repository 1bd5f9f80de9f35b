//! Schemas of servers: bounded, and made of what cannot hurt whoever checks against them.
//!
//! A model is offered a tool's schema as its server wrote it ([`input_schema`]). Calls are checked against a part of it
//! ([`checkable`]): the server checks its own arguments anyway, and what is left out could cost us a lot, since references may
//! lead in circles or double at every step, and patterns may take for ever.

use serde_json::{Map, Value, json};

/// Bytes of a schema as JSON.
pub(super) const SCHEMA_BYTES_MAX: usize = 128 << 10;
/// Levels of a schema.
const SCHEMA_DEPTH_MAX: usize = 64;

/// The schema of a tool that has none: an object of anything.
fn anything() -> Value {
    json!({"type": "object", "properties": {}})
}

/// A tool's schema as models are offered it: an object with `type` and `properties`.
///
/// # Errors
/// What is wrong with it, as the end of a sentence.
pub(super) fn input_schema(said: Option<&Value>) -> Result<Value, String> {
    let mut map = match said {
        None | Some(Value::Null) => return Ok(anything()),
        Some(schema @ Value::Object(map)) => {
            check_size(schema)?;
            map.clone()
        }
        Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            return Err("has a schema that is no object".to_owned());
        }
    };
    let is_object = match map.get("type") {
        None | Some(Value::Null) => true,
        Some(Value::String(name)) => name == "object",
        Some(Value::Array(names)) => names.iter().any(|name| name == "object"),
        Some(Value::Bool(_) | Value::Number(_) | Value::Object(_)) => false,
    };
    if !is_object {
        return Err("has a schema of something other than an object".to_owned());
    }
    map.insert("type".to_owned(), Value::String("object".to_owned()));
    if !map.get("properties").is_some_and(Value::is_object) {
        map.insert("properties".to_owned(), Value::Object(Map::new()));
    }
    Ok(Value::Object(map))
}

/// The schema of a structured result: an object within the bounds.
///
/// # Errors
/// What is wrong with it, as the end of a sentence.
pub(super) fn output_schema(said: Option<&Value>) -> Result<Option<Value>, String> {
    match said {
        None | Some(Value::Null) => Ok(None),
        Some(schema @ Value::Object(_)) => check_size(schema).map(|()| Some(schema.clone())),
        Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            Err("has a schema that is no object".to_owned())
        }
    }
}

fn check_size(schema: &Value) -> Result<(), String> {
    if !is_shallow(schema, SCHEMA_DEPTH_MAX) {
        return Err(format!("has a schema of more than {SCHEMA_DEPTH_MAX} levels"));
    }
    let bytes = schema.to_string().len();
    if bytes > SCHEMA_BYTES_MAX {
        return Err(format!("has a schema of {bytes} bytes, more than {SCHEMA_BYTES_MAX}"));
    }
    Ok(())
}

fn is_shallow(value: &Value, levels_left: usize) -> bool {
    let mut parts: Box<dyn Iterator<Item = &Value>> = match value {
        Value::Object(map) => Box::new(map.values()),
        Value::Array(items) => Box::new(items.iter()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return true,
    };
    levels_left > 0 && parts.all(|part| is_shallow(part, levels_left - 1))
}

/// The part of a schema that is checked before a call is sent. It accepts whatever the whole schema accepts, in every draft of
/// JSON Schema, and checking takes time in proportion to the arguments and the schema.
pub(crate) fn checkable(schema: &Value) -> Value {
    let Value::Object(map) = schema else {
        return Value::Bool(true);
    };
    // In older drafts nothing beside a reference counts.
    if map.contains_key("$ref") || map.contains_key("$dynamicRef") || map.contains_key("$recursiveRef") {
        return Value::Bool(true);
    }
    let mut kept = Map::new();
    for (keyword, value) in map {
        if let Some((keyword, value)) = checkable_keyword(keyword, value, map) {
            kept.insert(keyword.to_owned(), value);
        }
    }
    Value::Object(kept)
}

fn checkable_keyword<'a>(keyword: &'a str, value: &Value, beside: &Map<String, Value>) -> Option<(&'a str, Value)> {
    let all = |schemas: &Value| Some(Value::Array(schemas.as_array()?.iter().map(checkable).collect()));
    let value = match keyword {
        "type" if is_type(value) => value.clone(),
        "required" if is_list_of_names(value) => value.clone(),
        "enum" if value.as_array().is_some_and(|values| !values.is_empty()) => value.clone(),
        "minimum" | "maximum" if value.is_number() => value.clone(),
        "minLength" | "maxLength" | "minItems" | "maxItems" if value.is_u64() => value.clone(),
        // Names that a pattern allows are not among the properties.
        "additionalProperties" if value == false && !beside.contains_key("patternProperties") => value.clone(),
        "items" if value.is_object() && !beside.contains_key("prefixItems") => checkable(value),
        "properties" => {
            let properties = value.as_object()?.iter();
            Value::Object(
                properties
                    .map(|(name, schema)| (name.clone(), checkable(schema)))
                    .collect(),
            )
        }
        // Of two schemas of which each accepts more than it did, more than one may fit: `oneOf` becomes `anyOf`.
        "anyOf" => all(value).filter(is_filled)?,
        "oneOf" if !beside.contains_key("anyOf") => return Some(("anyOf", all(value).filter(is_filled)?)),
        "allOf" => all(value).filter(is_filled)?,
        _ => return None,
    };
    Some((keyword, value))
}

fn is_filled(list: &Value) -> bool {
    list.as_array().is_some_and(|list| !list.is_empty())
}

fn is_list_of_names(value: &Value) -> bool {
    value.as_array().is_some_and(|names| names.iter().all(Value::is_string))
}

/// One of JSON Schema's types, or a list of them.
fn is_type(value: &Value) -> bool {
    let is_name = |name: &Value| {
        let names = ["null", "boolean", "object", "array", "number", "string", "integer"];
        name.as_str().is_some_and(|name| names.contains(&name))
    };
    match value {
        Value::Array(names) => !names.is_empty() && names.iter().all(is_name),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => is_name(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is checked of a schema asks for no more than the schema does.
    #[test]
    fn the_checkable_part() {
        let check = |schema: Value, expect: Value| assert_eq!(checkable(&schema), expect);
        check(
            json!({
                "$schema": "http://json-schema.org/draft-07/schema#",
                "type": "object",
                "properties": {
                    "city": {"$ref": "#/$defs/City", "type": "string"},
                    "n": {"anyOf": [{"type": "integer", "multipleOf": 2}, {"type": "null"}]},
                    "one": {"oneOf": [{"const": 1}, {"type": "string", "pattern": "(a+)+$"}]},
                    "tuple": {"type": "array", "items": {"type": "string"}, "prefixItems": [{}]},
                    "odd": {"type": "text", "required": true, "enum": [], "minLength": "1", "exclusiveMinimum": true},
                },
                "required": ["city"],
                "additionalProperties": false,
            }),
            json!({
                "type": "object",
                "properties": {
                    "city": true,
                    "n": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                    "one": {"anyOf": [{}, {"type": "string"}]},
                    "tuple": {"type": "array"},
                    "odd": {},
                },
                "required": ["city"],
                "additionalProperties": false,
            }),
        );
        check(
            json!({"patternProperties": {"^x": {}}, "additionalProperties": false}),
            json!({}),
        );
    }
}
