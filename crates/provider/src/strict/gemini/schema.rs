//! What Gemini takes of a schema in `parameters` and `responseSchema`: <https://ai.google.dev/api/caching#Schema>.

use crate::strict::shape::{fields, items, text};
use crate::strict::{Passed, refuse};
use serde_json::Value;

/// Fields of a schema; every other keyword is an unknown name: <https://github.com/nanbingxyz/5ire/issues/42>.
const FIELDS: &[&str] = &[
    "type",
    "format",
    "title",
    "description",
    "nullable",
    "enum",
    "maxItems",
    "minItems",
    "properties",
    "required",
    "minProperties",
    "maxProperties",
    "minLength",
    "maxLength",
    "pattern",
    "example",
    "anyOf",
    "propertyOrdering",
    "default",
    "items",
    "minimum",
    "maximum",
];

const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "array", "object", "null"];

pub(super) fn check(schema: &Value, place: &str) -> Passed {
    super::known(schema, FIELDS, place)?;
    let kind = text(&schema["type"]).to_ascii_lowercase();
    if schema.get("type").is_some() && !TYPES.contains(&kind.as_str()) {
        return refuse(format!(
            "Invalid value at '{place}.type' (type.googleapis.com/google.ai.generativelanguage.v1beta.Type): {}",
            schema["type"]
        ));
    }
    match kind.as_str() {
        // https://github.com/pipecat-ai/pipecat-flows/issues/110
        "object" if fields(&schema["properties"]).next().is_none() => {
            return refuse(format!(
                "* GenerateContentRequest.{place}.properties: should be non-empty for OBJECT type"
            ));
        }
        "array" if !schema["items"].is_object() => {
            return refuse(format!("* GenerateContentRequest.{place}.items: missing field."));
        }
        "" if schema.get("anyOf").is_none() => {
            return refuse(format!("* GenerateContentRequest.{place}: must have a type or any_of"));
        }
        _ => {}
    }
    enumeration(schema, &kind, place)?;
    format(schema, &kind, place)?;
    let known = |name: &Value| schema["properties"].get(text(name)).is_some();
    if let Some(name) = items(&schema["required"]).iter().find(|name| !known(name)) {
        return refuse(format!(
            "* GenerateContentRequest.{place}.required: property is not defined: {name}"
        ));
    }
    for (name, property) in fields(&schema["properties"]) {
        check(property, &format!("{place}.properties[{name}]"))?;
    }
    for inner in items(&schema["anyOf"]) {
        check(inner, &format!("{place}.any_of"))?;
    }
    match schema.get("items") {
        Some(inner) => check(inner, &format!("{place}.items")),
        None => Ok(()),
    }
}

fn enumeration(schema: &Value, kind: &str, place: &str) -> Passed {
    let Some(values) = schema.get("enum") else {
        return Ok(());
    };
    if kind != "string" {
        return refuse(format!(
            "* GenerateContentRequest.{place}.enum: only allowed for STRING type"
        ));
    }
    let values = items(values);
    if values.is_empty() || values.iter().any(|value| text(value).is_empty()) {
        return refuse(format!("* GenerateContentRequest.{place}.enum[0]: cannot be empty"));
    }
    Ok(())
}

fn format(schema: &Value, kind: &str, place: &str) -> Passed {
    let Some(format) = schema["format"].as_str() else {
        return Ok(());
    };
    let known: &[&str] = match kind {
        "string" => &["enum", "date-time"],
        "number" => &["float", "double"],
        "integer" => &["int32", "int64"],
        _ => &[],
    };
    if known.contains(&format) {
        Ok(())
    } else {
        refuse(format!(
            "* GenerateContentRequest.{place}.format: only {known:?} are supported for this type"
        ))
    }
}
