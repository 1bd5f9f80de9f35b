//! The top level of a tool's schema: an object with properties, whatever the tool says.
//!
//! Arguments are always an object. A tool that offers alternatives at the top gets one object that takes all of them: the
//! properties of each, and required what all of them require.

use super::{empty_object, types, words};
use serde_json::{Map, Value, json};

/// What a dialect has at the top.
pub(super) struct Shape {
    /// Whether other properties than the named are said to be welcome: to a grammar, what is not named is forbidden.
    has_others: bool,
}

/// Grammars: an object without properties takes no property at all.
pub(super) const GRAMMAR: Shape = Shape { has_others: true };

/// Gemini: there is no word for it.
pub(super) const GEMINI: Shape = Shape { has_others: false };

/// A projected schema as the top level of a tool's.
pub(super) fn object(schema: Value, shape: &Shape) -> Value {
    let Value::Object(mut fields) = schema else {
        return empty_object();
    };
    let alternatives = fields.remove("anyOf").or_else(|| fields.remove("oneOf"));
    if let Some(Value::Array(alternatives)) = alternatives {
        return together(&fields, alternatives, shape);
    }
    if !is_object(&fields) {
        return finished(words(&fields));
    }
    fields.remove("nullable");
    if shape.has_others && !fields.contains_key("properties") {
        // With properties, be they none, a grammar forbids all others unless told.
        fields.entry("additionalProperties").or_insert(Value::Bool(true));
    }
    finished(fields)
}

/// True where a projected schema takes an object.
pub(super) fn is_object(fields: &Map<String, Value>) -> bool {
    match types(fields.get("type")).as_slice() {
        [] => ["properties", "additionalProperties"]
            .iter()
            .any(|name| fields.contains_key(*name)),
        kinds => kinds.contains(&"object"),
    }
}

/// What is said of an object, as one.
pub(super) fn finished(mut fields: Map<String, Value>) -> Value {
    fields.insert("type".to_owned(), json!("object"));
    fields.entry("properties").or_insert_with(|| json!({}));
    Value::Object(fields)
}

/// One object that takes what each of the alternatives takes.
fn together(said: &Map<String, Value>, alternatives: Vec<Value>, shape: &Shape) -> Value {
    let mut out = words(said);
    let mut properties: Map<String, Value> = Map::new();
    let mut required: Option<Vec<String>> = None;
    let mut is_closed = true;
    for alternative in alternatives {
        let takes = alternative
            .as_object()
            .is_some_and(|fields| fields.contains_key("anyOf") || is_object(fields));
        let Value::Object(mut one) = object(alternative, shape) else {
            continue;
        };
        if !takes {
            continue;
        }
        is_closed &= one.get("additionalProperties") == Some(&Value::Bool(false));
        let names = one.remove("required");
        let names: Vec<String> = names
            .and_then(|names| serde_json::from_value(names).ok())
            .unwrap_or_default();
        required = Some(match required {
            Some(before) => before.into_iter().filter(|name| names.contains(name)).collect(),
            None => names,
        });
        if let Some(Value::Object(own)) = one.remove("properties") {
            for (name, schema) in own {
                let both = match properties.remove(&name) {
                    Some(before) => either(before, schema),
                    None => schema,
                };
                properties.insert(name, both);
            }
        }
    }
    out.insert("properties".to_owned(), Value::Object(properties));
    if let Some(required) = required.filter(|names| !names.is_empty()) {
        out.insert("required".to_owned(), json!(required));
    }
    if shape.has_others {
        out.insert("additionalProperties".to_owned(), Value::Bool(!is_closed));
    }
    finished(out)
}

/// A schema that takes what either takes. Two values that tell alternatives apart become one list of values.
fn either(one: Value, other: Value) -> Value {
    if one == other {
        return one;
    }
    if let (Some(values), Some(more)) = (values(&one), values(&other))
        && one.get("type") == other.get("type")
    {
        let mut all = values;
        all.extend(
            more.into_iter()
                .filter(|value| !all.contains(value))
                .collect::<Vec<_>>(),
        );
        let mut out = one.as_object().map(words).unwrap_or_default();
        out.extend(one.get("type").map(|kind| ("type".to_owned(), kind.clone())));
        out.insert("enum".to_owned(), Value::Array(all));
        return Value::Object(out);
    }
    let mut each = Vec::new();
    for schema in [one, other] {
        match schema
            .as_object()
            .filter(|fields| fields.len() == 1)
            .and_then(|fields| fields.get("anyOf"))
        {
            Some(Value::Array(more)) => each.extend(more.clone()),
            Some(_) | None => each.push(schema),
        }
    }
    each.dedup();
    json!({"anyOf": each})
}

/// The values of a schema that is a list of values and says nothing else.
fn values(schema: &Value) -> Option<Vec<Value>> {
    let fields = schema.as_object()?;
    let is_plain = fields
        .keys()
        .all(|name| ["type", "title", "description", "enum", "const"].contains(&name.as_str()));
    match (fields.get("const"), fields.get("enum")) {
        (Some(only), None) if is_plain => Some(vec![only.clone()]),
        (None, Some(Value::Array(values))) if is_plain => Some(values.clone()),
        _ => None,
    }
}
