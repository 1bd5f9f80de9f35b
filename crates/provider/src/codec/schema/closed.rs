//! Schemas for Anthropic's structured output, which compiles them and refuses the request for the first thing it cannot:
//! <https://docs.anthropic.com/en/docs/build-with-claude/structured-outputs>.
//!
//! | the schema says | sent is |
//! |---|---|
//! | an object with properties | the same, closed by `additionalProperties: false` |
//! | an object that asks for other properties, or names none | nothing: closed, it could not hold what it is for |
//! | bounds on numbers, lengths, counts, most formats and patterns | a remark in the description: who asked holds the reply to them |
//! | `oneOf`, several types | `anyOf` |
//! | `const` | an `enum` of one |
//! | a schema within itself, lists of anything, values that are no scalars | nothing |
//!
//! Nothing of a part means nothing of the whole: its words say it all.

use super::flatten::{Flat, Walk};
use super::{pattern, type_of, types};
use serde_json::{Map, Value, json};

/// Formats that the API knows.
const FORMATS: &[&str] = &[
    "date-time",
    "time",
    "date",
    "duration",
    "email",
    "hostname",
    "uri",
    "ipv4",
    "ipv6",
    "uuid",
];

/// The most that a list may be asked to hold at least.
const MIN_ITEMS_MAX: u64 = 1;

/// What the API refuses and the model can be told.
const TOLD: &[&str] = &[
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "minItems",
    "maxItems",
    "uniqueItems",
];

impl<'s> Walk<'s> {
    /// The schema, where `outer` is the type that a schema around these alternatives names; none where it cannot be put so.
    pub(super) fn closed(&mut self, schema: &'s Value, outer: Option<&'s Value>, depth: usize) -> Option<Value> {
        if !self.enter(depth) {
            return None;
        }
        self.flattened(schema, |walk, flat| walk.closed_of(flat, outer, depth))
    }

    fn closed_of(&mut self, flat: &Flat<'s>, outer: Option<&'s Value>, depth: usize) -> Option<Value> {
        if self.is_recursive() {
            return None;
        }
        let mut out = self.words(flat);
        let kind = flat.fields.get("type").copied();
        let kind = if types(kind).is_empty() { outer } else { kind };
        if let Some(alternatives) = flat.alternatives() {
            let each = alternatives.iter().map(|schema| self.closed(schema, kind, depth + 1));
            out.insert("anyOf".to_owned(), Value::Array(each.collect::<Option<_>>()?));
            return Some(Value::Object(out));
        }
        let mut kinds = types(kind);
        if kinds.is_empty() {
            kinds = kinds_by_shape(flat);
        }
        let values = values(flat);
        if let Some(values) = &values {
            kinds.retain(|kind| values.iter().any(|value| is_of(kind, value)));
        }
        let each = kinds
            .iter()
            .map(|kind| self.closed_type(kind, flat, values.as_deref(), depth));
        let mut each = each.collect::<Option<Vec<_>>>()?;
        tell(&mut out, flat, &each);
        let only = each.pop()?;
        if each.is_empty() {
            out.extend(only);
        } else {
            each.push(only);
            out.insert("anyOf".to_owned(), json!(each));
        }
        Some(Value::Object(out))
    }

    /// What is said of values of one type.
    fn closed_type(
        &mut self,
        kind: &str,
        flat: &Flat<'s>,
        values: Option<&[&'s Value]>,
        depth: usize,
    ) -> Option<Map<String, Value>> {
        let mut out = Map::new();
        out.insert("type".to_owned(), json!(kind));
        let field = |name: &str| flat.fields.get(name).copied();
        if let Some(values) = values {
            let own: Vec<&Value> = values.iter().copied().filter(|value| is_of(kind, value)).collect();
            let is_scalar = own.iter().all(|value| !value.is_object() && !value.is_array());
            let listed = json!(own);
            let is_kept = is_scalar && self.takes(&listed);
            out.insert("enum".to_owned(), listed);
            return is_kept.then_some(out);
        }
        match kind {
            "object" => {
                let is_closed = field("additionalProperties") == Some(&Value::Bool(false));
                let is_open = field("additionalProperties").is_some() || flat.properties.is_none();
                if flat.is_patterned || (is_open && !is_closed) {
                    return None;
                }
                let properties = flat.properties.iter().flatten();
                let properties =
                    properties.map(|(name, schema)| Some(((*name).to_owned(), self.closed(schema, None, depth + 1)?)));
                let properties = properties.collect::<Option<Map<_, _>>>()?;
                if !flat.required.iter().all(|name| properties.contains_key(*name)) {
                    return None;
                }
                out.insert("properties".to_owned(), Value::Object(properties));
                if !flat.required.is_empty() {
                    out.insert("required".to_owned(), json!(flat.required));
                }
                out.insert("additionalProperties".to_owned(), Value::Bool(false));
            }
            "array" => {
                let items = field("items").filter(|_| field("prefixItems").is_none())?;
                out.insert("items".to_owned(), self.closed(items, None, depth + 1)?);
                copy(&mut out, "minItems", field("minItems").filter(|count| is_small(count)));
            }
            "string" => {
                let is_known = |name: &&Value| name.as_str().is_some_and(|name| FORMATS.contains(&name));
                copy(&mut out, "format", field("format").filter(is_known));
                let pattern = field("pattern").and_then(Value::as_str).and_then(pattern::for_grammar);
                copy(&mut out, "pattern", pattern.map(Value::from).as_ref());
            }
            _ => {}
        }
        Some(out)
    }
}

fn copy(out: &mut Map<String, Value>, name: &str, value: Option<&Value>) {
    out.extend(value.map(|value| (name.to_owned(), value.clone())));
}

fn is_small(count: &Value) -> bool {
    count.as_u64().is_some_and(|count| count <= MIN_ITEMS_MAX)
}

/// What a schema without a type is about; nothing where it says nothing, because the API wants to be told.
fn kinds_by_shape<'f>(flat: &Flat<'f>) -> Vec<&'f str> {
    if let Some(values) = values(flat) {
        let mut kinds: Vec<&str> = Vec::new();
        for kind in values.into_iter().map(type_of) {
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        return kinds;
    }
    match () {
        () if flat.properties.is_some() => vec!["object"],
        () if flat.fields.contains_key("items") => vec!["array"],
        () => Vec::new(),
    }
}

/// The values that a schema lists.
fn values<'f>(flat: &Flat<'f>) -> Option<Vec<&'f Value>> {
    if let Some(only) = flat.fields.get("const") {
        return Some(vec![only]);
    }
    Some(flat.fields.get("enum")?.as_array()?.iter().collect())
}

fn is_of(kind: &str, value: &Value) -> bool {
    let own = type_of(value);
    own == kind || (kind == "number" && own == "integer")
}

/// Puts into the description what is not in any of the schemas.
fn tell(out: &mut Map<String, Value>, flat: &Flat<'_>, sent: &[Map<String, Value>]) {
    let is_left_out = |name: &&&str| {
        sent.iter()
            .all(|fields| fields.get(**name) != flat.fields.get(**name).copied())
    };
    let told = TOLD
        .iter()
        .filter(|name| flat.fields.contains_key(**name))
        .filter(is_left_out);
    let told: Vec<String> = told
        .filter_map(|name| Some(format!("{name}: {}", flat.fields.get(name)?)))
        .collect();
    if told.is_empty() {
        return;
    }
    let before = out.get("description").and_then(Value::as_str).unwrap_or_default();
    let description = format!("{before} ({})", told.join(", "));
    out.insert("description".to_owned(), json!(description.trim_start()));
}
