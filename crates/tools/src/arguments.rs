//! The argument text of a call → checked arguments (SPEC 3.8), in three steps: parse, coerce, check.
//!
//! Small models write `"10"` for 10, `null` for what they leave out, or the whole object as a string. Where only one
//! meaning is possible the value is put right ([`coerce`]), and the value put right is what is inspected, shown and
//! run. Everything else is an error that names the parameter ([`check`]).

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{ValidationError, Validator};
use serde_json::{Map, Value};

/// How alike two names must be for one to be suggested for the other; 1 is the same.
const SUGGESTION_SIMILARITY_MIN: f64 = 0.75;
/// Shortest name that counts as part of a longer one, so that `path` is suggested for `file_path`.
const SUGGESTION_PART_LEN_MIN: usize = 3;

/// Parses the argument text; empty text means no arguments.
///
/// # Errors
/// `Invalid JSON arguments: <what> at line L column C`, or that it is no object.
pub(crate) fn parse(text: &str) -> Result<Map<String, Value>, String> {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    let value: Value = serde_json::from_str(text).map_err(|error| format!("Invalid JSON arguments: {error}"))?;
    match value {
        Value::Object(map) => Ok(map),
        Value::Null => Ok(Map::new()),
        Value::String(inner) => match serde_json::from_str(&inner) {
            Ok(Value::Object(map)) => Ok(map),
            Ok(_) | Err(_) => Err("Invalid JSON arguments: expected an object, found a string".to_owned()),
        },
        other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_)) => Err(format!(
            "Invalid JSON arguments: expected an object, found {}",
            with_article(type_of(&other))
        )),
    }
}

/// Puts right what can only have been meant one way, guided by the types the schema asks for.
pub(crate) fn coerce(arguments: &mut Map<String, Value>, schema: &Value) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return;
    };
    let required = required_names(schema);
    arguments.retain(|name, value| {
        let Some(types) = properties.get(name).map(types_of).filter(|types| !types.is_empty()) else {
            return true;
        };
        let is_optional = !required.contains(&name.as_str());
        if is_optional && is_left_out(value, &types) {
            return false;
        }
        if let Some(coerced) = coerced(value, &types) {
            *value = coerced;
        }
        true
    });
}

/// `null`, or an empty string where no string belongs.
fn is_left_out(value: &Value, types: &[&str]) -> bool {
    match value {
        Value::Null => !types.contains(&"null"),
        Value::String(text) => text.trim().is_empty() && !types.contains(&"string"),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => false,
    }
}

/// The one value of a wanted type that `value` can stand for, if it is not of such a type already.
fn coerced(value: &Value, types: &[&str]) -> Option<Value> {
    let wants = |name: &str| types.contains(&name);
    match value {
        Value::String(_) if wants("string") => None,
        Value::String(text) => {
            let text = text.trim();
            let parsed: Value = match text {
                "True" | "TRUE" => Value::Bool(true),
                "False" | "FALSE" => Value::Bool(false),
                other => serde_json::from_str(other).ok()?,
            };
            let parsed = coerced(&parsed, types).unwrap_or(parsed);
            let name = type_of(&parsed);
            (name != "null" && (wants(name) || (name == "integer" && wants("number")))).then_some(parsed)
        }
        Value::Number(number) if wants("integer") && !wants("number") && number.is_f64() => {
            let float = number.as_f64()?;
            let is_whole = float.fract() == 0.0 && float.abs() <= 2f64.powi(53);
            is_whole.then(|| Value::from(float as i64))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Checks arguments against a compiled schema.
///
/// # Errors
/// The first thing wrong, in words that name the parameter, e.g. `Missing required parameter: path`. A misspelled name
/// comes before the missing one it probably stands for.
pub(crate) fn check(arguments: &Value, schema: &Value, validator: &Validator) -> Result<(), String> {
    let errors: Vec<ValidationError<'_>> = validator.iter_errors(arguments).collect();
    let rank = |error: &ValidationError<'_>| match message(error, schema) {
        text if text.contains("did you mean") => 0,
        text if text.starts_with("Missing") => 1,
        _ => 2,
    };
    match errors.iter().min_by_key(|error| rank(error)) {
        Some(error) => Err(message(error, schema)),
        None => Ok(()),
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "dozens of schema keywords share one message"
)]
fn message(error: &ValidationError<'_>, schema: &Value) -> String {
    let path = error.instance_path().to_string();
    let name = path.trim_start_matches('/').replace('/', ".");
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            let property = property.as_str().unwrap_or_default();
            let place = if name.is_empty() {
                String::new()
            } else {
                format!("{name}.")
            };
            format!("Missing required parameter: {place}{property}")
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let unknown = unexpected.first().map(String::as_str).unwrap_or_default();
            unknown_parameter(unknown, schema)
        }
        ValidationErrorKind::Type { kind } => format!(
            "Parameter {} must be {}, not {}",
            shown_name(&name),
            wanted_types(kind),
            with_article(type_of(error.instance()))
        ),
        ValidationErrorKind::Enum { options } => {
            format!("Parameter {} must be one of {options}", shown_name(&name))
        }
        ValidationErrorKind::Minimum { limit } => {
            format!("Parameter {} must be at least {limit}", shown_name(&name))
        }
        ValidationErrorKind::Maximum { limit } => {
            format!("Parameter {} must be at most {limit}", shown_name(&name))
        }
        ValidationErrorKind::MinLength { .. } => format!("Parameter {} is too short", shown_name(&name)),
        _ => format!("Parameter {}: {error}", shown_name(&name)),
    }
}

fn shown_name(name: &str) -> &str {
    if name.is_empty() { "(all)" } else { name }
}

/// `Unknown parameter: x`, with the known name it is most like.
fn unknown_parameter(unknown: &str, schema: &Value) -> String {
    let known = schema.get("properties").and_then(Value::as_object);
    match known.and_then(|known| most_like(unknown, known.keys().map(String::as_str))) {
        Some(name) => format!("Unknown parameter: {unknown} (did you mean {name}?)"),
        None => format!("Unknown parameter: {unknown}"),
    }
}

/// The known name that `unknown` probably stands for.
pub(crate) fn most_like<'a>(unknown: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let similarity = |name: &str| {
        let is_part = |part: &str, whole: &str| part.len() >= SUGGESTION_PART_LEN_MIN && whole.contains(part);
        if is_part(name, unknown) || is_part(unknown, name) {
            return 1.0;
        }
        strsim::jaro_winkler(unknown, name)
    };
    known
        .map(|name| (similarity(name), name))
        .filter(|(similarity, _)| *similarity >= SUGGESTION_SIMILARITY_MIN)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

fn required_names(schema: &Value) -> Vec<&str> {
    let required = schema.get("required").and_then(Value::as_array);
    required.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The types a property's schema names; none when it does not say.
fn types_of(property: &Value) -> Vec<&str> {
    match property.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => Vec::new(),
    }
}

/// The type of a value in JSON Schema's words.
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

fn wanted_types(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(name) => with_article(&name.to_string()),
        TypeKind::Multiple(names) => {
            let names: Vec<String> = names.iter().map(|name| with_article(&name.to_string())).collect();
            names.join(" or ")
        }
    }
}

/// `a string`, `an integer`, `null`.
fn with_article(name: &str) -> String {
    match name {
        "null" => name.to_owned(),
        "integer" | "array" | "object" => format!("an {name}"),
        _ => format!("a {name}"),
    }
}
