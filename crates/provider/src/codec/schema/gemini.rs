//! Schemas as Gemini's `parameters` take them: a subset of OpenAPI 3.0, one type to a schema.

use super::flatten::{Flat, Walk};
use super::{ENUM_VALUES_MAX, type_of, types, words};
use serde_json::{Map, Value, json};

/// Formats, with the type that may have them.
const FORMATS: &[(&str, &str)] = &[
    ("string", "date-time"),
    ("number", "float"),
    ("number", "double"),
    ("integer", "int32"),
    ("integer", "int64"),
];

/// Bytes of values that a description lists, where `enum` cannot.
const LISTED_BYTES_MAX: usize = 1 << 10;

/// A type, and whether null is taken beside it.
type Kinds<'k> = (Vec<&'k str>, bool);

impl<'s> Walk<'s> {
    /// The schema, where `outer` is the type that a schema around these alternatives names.
    pub(super) fn gemini(&mut self, schema: &'s Value, outer: Option<&'s Value>, depth: usize) -> Value {
        if !self.enter(depth) {
            return any(Map::new());
        }
        self.flattened(schema, |walk, flat| walk.gemini_of(flat, outer, depth))
    }

    fn gemini_of(&mut self, flat: &Flat<'s>, outer: Option<&'s Value>, depth: usize) -> Value {
        let mut out = self.words(flat);
        let kind = flat.fields.get("type").copied();
        let kind = if types(kind).is_empty() { outer } else { kind };
        if let Some(alternatives) = flat.alternatives() {
            return self.gemini_alternatives(out, alternatives, kind, flat, depth);
        }
        let values = self.values(flat);
        let (kinds, is_nullable) = kinds(flat, kind, values.as_deref());
        if let Some(values) = &values {
            list(&mut out, values);
        }
        match kinds.as_slice() {
            [] => return any(out),
            [only] => {
                self.typed(&mut out, only, flat, values.as_deref(), depth);
                if is_nullable {
                    nullable(&mut out);
                }
            }
            several => {
                let each = several.iter().map(|kind| {
                    let mut one = Map::new();
                    self.typed(&mut one, kind, flat, values.as_deref(), depth);
                    Value::Object(one)
                });
                let each = each.collect();
                out.insert("anyOf".to_owned(), Value::Array(each));
                if is_nullable {
                    nullable(&mut out);
                }
            }
        }
        Value::Object(out)
    }

    /// Alternatives, where null is none of them but a word beside them.
    fn gemini_alternatives(
        &mut self,
        mut out: Map<String, Value>,
        alternatives: &'s [Value],
        kind: Option<&'s Value>,
        flat: &Flat<'s>,
        depth: usize,
    ) -> Value {
        let is_null =
            |schema: &&Value| types(schema.get("type")) == ["null"] || schema.get("const") == Some(&Value::Null);
        let mut is_nullable = flat.fields.get("nullable") == Some(&&Value::Bool(true));
        is_nullable |= alternatives.iter().any(|schema| is_null(&schema));
        let rest: Vec<&Value> = alternatives.iter().filter(|schema| !is_null(schema)).collect();
        let mut each: Vec<Value> = Vec::new();
        for schema in rest {
            let schema = self.gemini(schema, kind, depth + 1);
            if !each.contains(&schema) {
                each.push(schema);
            }
        }
        match (each.pop(), each.is_empty()) {
            (None, _) => return any(out),
            (Some(Value::Object(only)), true) => {
                for (name, value) in only {
                    out.entry(name).or_insert(value);
                }
            }
            (Some(last), _) => {
                each.push(last);
                out.insert("anyOf".to_owned(), Value::Array(each));
            }
        }
        if is_nullable {
            nullable(&mut out);
        }
        Value::Object(out)
    }

    /// The values of `enum` or `const`.
    fn values(&mut self, flat: &Flat<'s>) -> Option<Vec<&'s Value>> {
        let values: Vec<&Value> = match (flat.fields.get("enum"), flat.fields.get("const")) {
            (_, Some(only)) => vec![only],
            (Some(Value::Array(values)), None) => values.iter().collect(),
            (_, None) => return None,
        };
        let is_kept = (1..=ENUM_VALUES_MAX).contains(&values.len()) && values.iter().all(|value| self.takes(value));
        is_kept.then_some(values)
    }

    /// What a schema says of one type: words of another type are refused.
    fn typed(
        &mut self,
        out: &mut Map<String, Value>,
        kind: &str,
        flat: &Flat<'s>,
        values: Option<&[&Value]>,
        depth: usize,
    ) {
        out.insert("type".to_owned(), json!(kind));
        let field = |name| flat.fields.get(name).copied();
        if let Some(format) = field("format")
            .and_then(Value::as_str)
            .filter(|name| FORMATS.contains(&(kind, name)))
        {
            out.insert("format".to_owned(), json!(format));
        }
        match kind {
            "object" => self.object(out, flat, depth),
            "array" => {
                let items = self.items(flat, depth);
                out.insert("items".to_owned(), items);
                for name in ["minItems", "maxItems"] {
                    out.extend(
                        field(name)
                            .filter(|count| count.is_u64())
                            .map(|count| (name.to_owned(), count.clone())),
                    );
                }
            }
            "string" => {
                if let Some(texts) = values.and_then(texts) {
                    out.insert("enum".to_owned(), json!(texts));
                }
            }
            "number" | "integer" => {
                // An exclusive bound has no word: the bound itself takes one value more.
                for (name, exclusive) in [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")] {
                    let bound = field(name).filter(|bound| bound.is_number());
                    let bound = bound.or_else(|| field(exclusive).filter(|bound| bound.is_number()));
                    out.extend(bound.map(|bound| (name.to_owned(), bound.clone())));
                }
            }
            _ => {}
        }
    }

    fn object(&mut self, out: &mut Map<String, Value>, flat: &Flat<'s>, depth: usize) {
        let Some(properties) = flat.properties.as_ref().filter(|properties| !properties.is_empty()) else {
            return;
        };
        let required: Vec<&str> = flat
            .required
            .iter()
            .copied()
            .filter(|name| properties.contains_key(name))
            .collect();
        let properties = properties.iter();
        let properties = properties.map(|(name, schema)| ((*name).to_owned(), self.gemini(schema, None, depth + 1)));
        out.insert("properties".to_owned(), Value::Object(properties.collect()));
        if !required.is_empty() {
            out.insert("required".to_owned(), json!(required));
        }
    }

    /// What the items of a list are; those of a tuple are one of its kinds.
    fn items(&mut self, flat: &Flat<'s>, depth: usize) -> Value {
        let mut schemas: Vec<&'s Value> = Vec::new();
        let mut is_tuple = false;
        for name in ["prefixItems", "items", "additionalItems"] {
            match flat.fields.get(name) {
                Some(Value::Array(tuple)) => {
                    is_tuple = true;
                    schemas.extend(tuple);
                }
                Some(schema @ Value::Object(_)) if name != "additionalItems" || is_tuple => schemas.push(schema),
                _ => {}
            }
        }
        // A tuple that does not say what follows it takes anything there.
        let is_closed = ["items", "additionalItems"]
            .iter()
            .any(|name| matches!(flat.fields.get(name), Some(Value::Bool(false) | Value::Object(_))));
        let mut each: Vec<Value> = Vec::new();
        for schema in schemas {
            let schema = self.gemini(schema, None, depth + 1);
            if !each.contains(&schema) {
                each.push(schema);
            }
        }
        match each.len() {
            0 => any(Map::new()),
            _ if is_tuple && !is_closed => any(Map::new()),
            1 => each.pop().unwrap_or_default(),
            _ => json!({"anyOf": each}),
        }
    }
}

/// The types that are taken, without null, and whether null is.
fn kinds<'k>(flat: &Flat<'k>, kind: Option<&'k Value>, values: Option<&[&'k Value]>) -> Kinds<'k> {
    let mut kinds = types(kind);
    let mut is_nullable = flat.fields.get("nullable") == Some(&&Value::Bool(true));
    if let Some(values) = values {
        let named = |value: &&Value| type_of(value);
        let of_values: Vec<&str> = values.iter().map(named).collect();
        if kinds.is_empty() {
            for kind in of_values.iter().copied() {
                if !kinds.contains(&kind) {
                    kinds.push(kind);
                }
            }
        }
        // A type that none of the values has would be a promise of more.
        kinds.retain(|kind| of_values.contains(kind) || *kind == "integer" || (*kind == "number"));
    } else if kinds.is_empty() {
        // Without a type a word says what it is about only if the value is that: nothing is promised.
        kinds = match () {
            () if flat.properties.is_some() => vec!["object"],
            () if flat.fields.contains_key("items") => vec!["array"],
            () => Vec::new(),
        };
    }
    let before = kinds.len();
    kinds.retain(|kind| *kind != "null");
    is_nullable |= kinds.len() < before;
    if kinds.contains(&"number") {
        kinds.retain(|kind| *kind != "integer");
    }
    (kinds, is_nullable)
}

/// The values where `enum` can list them: strings, and none of them empty. Null is told apart.
fn texts<'v>(values: &[&'v Value]) -> Option<Vec<&'v str>> {
    let mut texts = Vec::new();
    for value in values.iter().filter(|value| !value.is_null()) {
        let text = value.as_str().filter(|text| !text.is_empty())?;
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    (!texts.is_empty()).then_some(texts)
}

/// Lists values in the description where `enum` cannot.
fn list(out: &mut Map<String, Value>, values: &[&Value]) {
    if texts(values).is_some() {
        return;
    }
    let listed = values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if listed.len() > LISTED_BYTES_MAX {
        return;
    }
    let before = out.get("description").and_then(Value::as_str).unwrap_or_default();
    let description = format!("{before} One of: {listed}.");
    out.insert("description".to_owned(), json!(description.trim_start()));
}

fn nullable(out: &mut Map<String, Value>) {
    out.insert("nullable".to_owned(), Value::Bool(true));
}

/// Takes anything, as far as that can be said: every schema must name its type.
fn any(said: Map<String, Value>) -> Value {
    let mut out = words(&said);
    let each = json!([{"type": "string"}, {"type": "number"}, {"type": "boolean"}, {"type": "object"},
        {"type": "array", "items": {"type": "string"}}]);
    out.insert("anyOf".to_owned(), each);
    nullable(&mut out);
    Value::Object(out)
}
