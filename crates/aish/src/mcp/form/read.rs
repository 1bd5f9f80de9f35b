//! Schemas of forms, read leniently in what they say and strictly in what they ask for.

use super::{
    CHOICES_MAX, Choice, DESCRIPTION_CHARS_MAX, FIELDS_MAX, Field, Form, Format, Kind, LABEL_CHARS_MAX, Need, Numbers,
    count_fits, number_fits, text_value,
};
use serde_json::{Map, Value};

pub(super) fn form(schema: &Value) -> Result<Form, String> {
    let no_fields = Map::new();
    let properties = match schema.get("properties") {
        Some(Value::Object(properties)) => properties,
        None | Some(Value::Null) => &no_fields,
        Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            return Err("its form is no schema of fields".to_owned());
        }
    };
    if properties.len() > FIELDS_MAX {
        return Err(format!(
            "its form has {} fields, {FIELDS_MAX} are taken",
            properties.len()
        ));
    }
    let required = strings(schema.get("required"));
    let fields = properties.iter().map(|(name, field)| {
        let need = if required.contains(name) {
            Need::Required
        } else {
            Need::Optional
        };
        read_field(name, need, field)
    });
    let mut fields: Vec<Field> = fields.collect::<Result<_, _>>()?;
    // Members of a JSON object have no order: what must be filled in comes first, the rest by name.
    fields.sort_by_key(|field| field.need);
    Ok(Form { fields })
}

fn read_field(name: &str, need: Need, schema: &Value) -> Result<Field, String> {
    if name.is_empty() || name.chars().count() > LABEL_CHARS_MAX {
        return Err("a field of its form has no usable name".to_owned());
    }
    let kind = kind_of(schema).ok_or_else(|| format!("the field {name} of its form is of a kind that is not known"))?;
    let title = text(schema, "title", LABEL_CHARS_MAX).filter(|title| !title.trim().is_empty());
    let mut field = Field {
        name: name.to_owned(),
        title: title.unwrap_or_else(|| name.to_owned()),
        description: text(schema, "description", DESCRIPTION_CHARS_MAX).unwrap_or_default(),
        need,
        default: None,
        kind,
    };
    // A default that is no value of the field is none.
    field.default = schema
        .get("default")
        .filter(|default| is_value(&field.kind, default))
        .cloned();
    Ok(field)
}

fn kind_of(schema: &Value) -> Option<Kind> {
    let count = |key: &str| schema.get(key).and_then(Value::as_u64);
    let number = |key: &str| schema.get(key).and_then(Value::as_f64);
    match schema.get("type")?.as_str()? {
        "string" => match choices(schema) {
            Some(choices) => bounded(choices).map(Kind::One),
            None => Some(Kind::Text {
                chars_min: count("minLength"),
                chars_max: count("maxLength"),
                format: schema.get("format").and_then(Value::as_str).and_then(format_of),
            }),
        },
        "number" | "integer" => Some(Kind::Number {
            numbers: match schema.get("type").and_then(Value::as_str) {
                Some("integer") => Numbers::Whole,
                Some(_) | None => Numbers::Any,
            },
            min: number("minimum"),
            max: number("maximum"),
        }),
        "boolean" => Some(Kind::Boolean),
        "array" => Some(Kind::Several {
            choices: bounded(choices(schema.get("items")?)?)?,
            items_min: count("minItems"),
            items_max: count("maxItems"),
        }),
        _ => None,
    }
}

/// Formats that nobody knows constrain nothing, as in JSON Schema.
fn format_of(name: &str) -> Option<Format> {
    match name {
        "email" => Some(Format::Email),
        "uri" => Some(Format::Uri),
        "date" => Some(Format::Date),
        "date-time" => Some(Format::DateTime),
        _ => None,
    }
}

/// `enum`, with the `enumNames` of before 2025-11-25, or `oneOf`/`anyOf` of constants with titles; `None` without any.
fn choices(schema: &Value) -> Option<Vec<Choice>> {
    if let Some(Value::Array(values)) = schema.get("enum") {
        let titles = strings(schema.get("enumNames"));
        let choices = values.iter().enumerate().filter_map(|(n, value)| {
            let value = value.as_str()?.to_owned();
            let title = titles.get(n).cloned().unwrap_or_else(|| value.clone());
            Some(Choice { value, title })
        });
        return Some(choices.collect());
    }
    let titled = schema.get("oneOf").or_else(|| schema.get("anyOf"))?.as_array()?;
    let choices = titled.iter().filter_map(|choice| {
        let value = choice.get("const")?.as_str()?.to_owned();
        let title = choice.get("title").and_then(Value::as_str).map(str::to_owned);
        Some(Choice {
            title: title.unwrap_or_else(|| value.clone()),
            value,
        })
    });
    Some(choices.collect())
}

/// Nothing to choose from, or more than anybody reads, is no field.
fn bounded(mut choices: Vec<Choice>) -> Option<Vec<Choice>> {
    for choice in &mut choices {
        choice.title = cut(&choice.title, LABEL_CHARS_MAX);
    }
    (1..=CHOICES_MAX).contains(&choices.len()).then_some(choices)
}

/// Whether a default is what could have been typed: a person who takes it must not send what the form itself forbids.
fn is_value(kind: &Kind, value: &Value) -> bool {
    let is_choice = |choices: &[Choice], value: &Value| choices.iter().any(|choice| *value == choice.value);
    match (kind, value) {
        (
            Kind::Text {
                chars_min,
                chars_max,
                format,
            },
            Value::String(text),
        ) => {
            let is_short = text.chars().count() <= DESCRIPTION_CHARS_MAX;
            is_short && text_value(text, (*chars_min, *chars_max), *format).is_ok()
        }
        (Kind::Number { numbers, min, max }, Value::Number(number)) => {
            let is_known = *numbers == Numbers::Any || number.is_i64();
            is_known && number_fits(number, (*min, *max)).is_ok()
        }
        (Kind::Boolean, Value::Bool(_)) => true,
        (Kind::One(choices), value) => is_choice(choices, value),
        (
            Kind::Several {
                choices,
                items_min,
                items_max,
            },
            Value::Array(items),
        ) => {
            let are_choices = items.len() <= choices.len() && items.iter().all(|item| is_choice(choices, item));
            let is_repeated = items
                .iter()
                .enumerate()
                .any(|(at, item)| items.iter().take(at).any(|it| it == item));
            are_choices && !is_repeated && count_fits(items.len(), (*items_min, *items_max)).is_ok()
        }
        (Kind::Text { .. } | Kind::Number { .. } | Kind::Boolean | Kind::Several { .. }, _) => false,
    }
}

fn strings(value: Option<&Value>) -> Vec<String> {
    let items = value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn text(schema: &Value, key: &str, chars_max: usize) -> Option<String> {
    schema.get(key).and_then(Value::as_str).map(|text| cut(text, chars_max))
}

fn cut(text: &str, chars_max: usize) -> String {
    text.chars().take(chars_max).collect()
}
