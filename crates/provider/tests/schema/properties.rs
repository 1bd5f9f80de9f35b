//! What holds for any schema.

use aish_provider::codec::schema::SchemaDialect::{Gemini, Grammar};
use aish_provider::codec::schema::project;
use proptest::prelude::*;
use serde_json::{Value, json};

/// A schema of the simple kinds that tools have.
pub fn schemas() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "string"})),
        Just(json!({"type": ["string", "null"], "maxLength": 2})),
        Just(json!({"type": "integer", "exclusiveMinimum": 0})),
        Just(json!({"enum": ["a", "b", 1, null]})),
        Just(json!({"const": "a"})),
        Just(json!({"type": "string", "pattern": r"^\d+$"})),
        Just(json!({"type": "number", "minimum": 1, "multipleOf": 2})),
        Just(json!({"type": "boolean"})),
        Just(json!({"$ref": "#/$defs/d"})),
        Just(json!({})),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let properties = proptest::collection::btree_map("[a-c]", inner.clone(), 0..3);
        prop_oneof![
            (properties, any::<bool>(), any::<bool>()).prop_map(|(properties, is_required, is_closed)| {
                let required: Vec<&String> = properties.keys().filter(|_| is_required).collect();
                json!({"type": "object", "properties": properties, "required": required, "additionalProperties": !is_closed})
            }),
            inner.clone().prop_map(|items| json!({"type": "array", "items": items, "maxItems": 2})),
            proptest::collection::vec(inner.clone(), 1..4).prop_map(|each| json!({"anyOf": each})),
            proptest::collection::vec(inner.clone(), 1..3).prop_map(|each| json!({"allOf": each})),
            (inner.clone(), inner).prop_map(|(one, other)| json!({"type": "object", "oneOf": [one, other]})),
        ]
    })
}

/// Values that such schemas may take.
pub fn instances() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!("a")),
        Just(json!("12")),
        Just(json!("long")),
        Just(json!(1)),
        Just(json!(4)),
        Just(json!(0.5)),
        Just(json!(true)),
        Just(json!(null)),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            proptest::collection::btree_map("[a-c]", inner.clone(), 0..3).prop_map(|fields| json!(fields)),
            proptest::collection::vec(inner, 0..3).prop_map(|items| json!(items)),
        ]
    })
}

/// Gemini's `nullable` in the words of JSON Schema.
fn as_json_schema(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let is_nullable = fields.get("nullable") == Some(&Value::Bool(true));
            let rest = fields.iter().filter(|(name, _)| *name != "nullable");
            let rest: serde_json::Map<_, _> = rest
                .map(|(name, value)| (name.clone(), as_json_schema(value)))
                .collect();
            if is_nullable {
                json!({"anyOf": [rest, {"type": "null"}]})
            } else {
                Value::Object(rest)
            }
        }
        Value::Array(items) => items.iter().map(as_json_schema).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => schema.clone(),
    }
}

/// A list in a list, of whose items Gemini is told less than there is to tell.
fn has_nested_list(value: &Value) -> bool {
    match value {
        Value::Array(items) => items
            .iter()
            .any(|item| item.is_array() || !item.is_string() || has_nested_list(item)),
        Value::Object(fields) => fields.values().any(has_nested_list),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    /// SPEC 7.4: what a tool takes, its projected schema takes; and a second projection changes nothing.
    #[test]
    fn never_narrower(schema in schemas(), instance in instances()) {
        let mut whole = json!({"type": "object", "properties": {"p": schema}, "$defs": {"d": {"type": ["integer", "string"]}}});
        let arguments = json!({"p": instance});
        for _ in 0..2 {
            let is_taken = jsonschema::is_valid(&whole, &arguments);
            for dialect in [Grammar, Gemini] {
                let projected = project(&whole, dialect);
                prop_assert_eq!(&project(&projected, dialect), &projected);
                if is_taken && !(dialect == Gemini && has_nested_list(&instance)) {
                    prop_assert!(jsonschema::is_valid(&as_json_schema(&projected), &arguments), "{:#}", projected);
                }
            }
            // Then the schema itself at the top, where an object is all it can be.
            let defs = whole["$defs"].clone();
            let other = json!({"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]});
            whole = json!({"anyOf": [whole, other], "$defs": defs});
        }
    }

    /// SPEC 12: no schema panics, whatever stands where.
    #[test]
    fn any_json(schema in any_schema()) {
        for dialect in [Grammar, Gemini] {
            let projected = project(&schema, dialect).into_owned();
            prop_assert_eq!(&projected["type"], "object");
            prop_assert!(projected["properties"].is_object());
            prop_assert_eq!(&*project(&projected, dialect), &projected);
        }
    }
}

/// JSON with the words of schemas in any place.
pub fn any_schema() -> impl Strategy<Value = Value> {
    let names = prop_oneof![
        "(type|enum|const|items|prefixItems|properties|required|anyOf|oneOf|allOf|pattern|format|minimum|maxItems)",
        "(additionalProperties|patternProperties|nullable|description|title|exclusiveMinimum)",
        Just("$ref".to_owned()),
    ];
    let leaf = prop_oneof![
        "(string|object|array|null|integer|any|#|#/properties|date|\\^a\\$|x)".prop_map(Value::from),
        (-3i64..3).prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
    ];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            proptest::collection::btree_map(names.clone(), inner.clone(), 0..5).prop_map(|fields| json!(fields)),
            proptest::collection::vec(inner, 0..3).prop_map(|items| json!(items)),
        ]
    })
}
