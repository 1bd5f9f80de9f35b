//! Schemas of replies in the words an endpoint takes.

use super::properties::{any_schema, instances, schemas};
use aish_provider::codec::schema::{DEPTH_MAX, ReplyDialect, is_strict, project_reply};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::borrow::Cow;

use ReplyDialect::{Closed, Grammar, GrammarObject, Object};

const ALL: [ReplyDialect; 4] = [Object, GrammarObject, Grammar, Closed];

/// Asserts a reply's schema in a dialect; null stands for words.
#[track_caller]
fn check(dialect: ReplyDialect, schema: &Value, expect: &Value) {
    let projected = project_reply(schema, dialect).map_or(Value::Null, Cow::into_owned);
    assert_eq!(&projected, expect, "{dialect:?}: {projected:#}");
}

/// SPEC 7.2: the top level stays what it is, or there is no projection: a list is never asked for as an object.
#[test]
fn tops() {
    let item = json!({"type": "integer"});
    for top in [
        json!({"type": "array", "items": item, "minItems": 2}),
        json!({"type": "string", "enum": ["x", "y"]}),
        json!({"type": "number"}),
        json!({"anyOf": [{"type": "object", "properties": {"a": item}, "required": ["a"]},
            {"type": "object", "properties": {"b": item}, "required": ["b"]}]}),
    ] {
        check(Grammar, &top, &top);
        for dialect in [Object, GrammarObject, Closed] {
            check(dialect, &top, &Value::Null);
        }
    }
}

/// SPEC 7.2: what is an object, however it says so, stays one.
#[test]
fn objects() {
    let one = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let closed = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"],
        "additionalProperties": false});
    let referred = json!({"$ref": "#/$defs/t", "$defs": {"t": one}});
    let untyped = json!({"properties": {"n": {"type": "integer"}}, "required": ["n"]});
    for schema in [&one, &referred, &untyped] {
        check(Object, schema, &one);
        check(GrammarObject, schema, &one);
        check(Closed, schema, &closed);
    }
    check(Grammar, &referred, &one);
    assert!(matches!(project_reply(&one, Object), Some(Cow::Borrowed(_))));
    let odd = json!({"type": "object", "properties": {"p": {"not": {}, "minLength": 3}}});
    check(Object, &odd, &odd);
    check(
        GrammarObject,
        &json!({"type": "object"}),
        &json!({"type": "object", "properties": {}, "additionalProperties": true}),
    );
}

/// Asserts what a property's schema becomes in a schema that Anthropic takes; null stands for words.
#[track_caller]
fn check_closed(schema: &Value, expect: &Value) {
    let whole = json!({"type": "object", "properties": {"p": schema}, "$defs": {"t": {"type": "string"},
        "r": {"type": "object", "properties": {"next": {"$ref": "#/$defs/r"}}}}});
    let expect = if expect.is_null() {
        Value::Null
    } else {
        json!({"type": "object", "properties": {"p": expect}, "additionalProperties": false})
    };
    check(Closed, &whole, &expect);
}

/// SPEC 7.2: Anthropic refuses open objects and bounds; the model is told of them all the same.
#[test]
fn closed() {
    let cases = [
        (
            json!({"type": "integer", "minimum": 1, "description": "How many."}),
            json!({"type": "integer", "description": "How many. (minimum: 1)"}),
        ),
        (
            json!({"type": "string", "minLength": 2, "format": "date", "pattern": "^(?=a).*$"}),
            json!({"type": "string", "format": "date", "description": "(minLength: 2, pattern: \"^(?=a).*$\")"}),
        ),
        (
            json!({"type": "string", "pattern": "^[a-c]+$"}),
            json!({"type": "string", "pattern": "^[a-c]+$"}),
        ),
        (
            json!({"type": "array", "items": {"type": "object", "properties": {"a": {"$ref": "#/$defs/t"}}}, "minItems": 2}),
            json!({"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}},
                "additionalProperties": false}, "description": "(minItems: 2)"}),
        ),
        (
            json!({"type": "array", "items": {"type": "null"}, "minItems": 1}),
            json!({"type": "array", "items": {"type": "null"}, "minItems": 1}),
        ),
        (
            json!({"type": ["string", "null"], "maxLength": 5}),
            json!({"anyOf": [{"type": "string"}, {"type": "null"}], "description": "(maxLength: 5)"}),
        ),
        (
            json!({"enum": ["a", 1, null]}),
            json!({"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "integer", "enum": [1]},
                {"type": "null", "enum": [null]}]}),
        ),
        (json!({"const": "a"}), json!({"type": "string", "enum": ["a"]})),
        (
            json!({"oneOf": [{"type": "boolean"}, {"$ref": "#/$defs/t"}]}),
            json!({"anyOf": [{"type": "boolean"}, {"type": "string"}]}),
        ),
        (
            json!({"type": "object", "additionalProperties": false}),
            json!({"type": "object", "properties": {}, "additionalProperties": false}),
        ),
    ];
    for (schema, expect) in cases {
        check_closed(&schema, &expect);
    }
}

/// SPEC 7.2: a schema that Anthropic cannot be told is told the model in words.
#[test]
fn not_closed() {
    for schema in [
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}}),
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": true}),
        json!({"type": "object", "patternProperties": {"^x": {"type": "string"}}}),
        json!({"type": "object", "properties": {}, "required": ["a"]}),
        json!({"type": "object"}),
        json!({"type": "array"}),
        json!({"type": "array", "items": {"type": "string"}, "prefixItems": [{"type": "null"}]}),
        json!({"enum": [{"a": 1}]}),
        json!({"$ref": "#/$defs/r"}),
        json!({}),
        json!(true),
    ] {
        check_closed(&schema, &Value::Null);
    }
    let mut deep = json!({"type": "string"});
    for _ in 0..=DEPTH_MAX {
        deep = json!({"type": "array", "items": deep});
    }
    check_closed(&deep, &Value::Null);
}

/// SPEC 7.2: OpenAI's strict mode is asked for where the schema is as it wants it, and nowhere else.
#[test]
fn strict() {
    let with = |property: Value| json!({"type": "object", "properties": {"a": property}, "required": ["a"], "additionalProperties": false});
    let text = || json!({"type": "string"});
    let referring = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/t"}}, "required": ["a"],
        "additionalProperties": false, "$defs": {"t": with(text())}});
    for schema in [
        with(text()),
        with(with(text())),
        with(json!({"type": ["string", "null"]})),
        with(json!({"anyOf": [with(text()), {"type": "null"}]})),
        with(json!({"type": "array", "items": with(text())})),
        json!({"type": "object", "properties": {"properties": text()}, "required": ["properties"],
            "additionalProperties": false}),
        referring,
    ] {
        assert!(is_strict(&schema), "{schema}");
    }
    let mut deep = with(text());
    for _ in 0..20 {
        deep = with(deep);
    }
    for schema in [
        json!({"type": "object"}),
        json!({"type": "object", "properties": {"a": text()}, "additionalProperties": false}),
        json!({"type": "object", "properties": {"a": text()}, "required": ["a"]}),
        with(json!({})),
        with(json!(true)),
        with(json!({"type": "string", "minLength": 1})),
        with(json!({"type": "array", "items": {"type": "object", "properties": {"b": text()}, "required": ["b"]}})),
        with(json!({"oneOf": [text()]})),
        with(json!({"anyOf": [{"type": "object"}]})),
        with(json!({"type": ["object", "null"]})),
        deep,
    ] {
        assert!(!is_strict(&schema), "{schema}");
    }
}

/// Asserts what Anthropic's reference says of schemas.
fn assert_closed(schema: &Value) {
    let fields = schema.as_object().unwrap();
    for name in fields.keys() {
        let known = [
            "type",
            "title",
            "description",
            "enum",
            "anyOf",
            "properties",
            "required",
        ];
        let known = known
            .iter()
            .chain(&["additionalProperties", "items", "minItems", "format", "pattern"]);
        assert!(known.into_iter().any(|known| known == name), "{name} in {schema:#}");
    }
    assert!(
        fields.contains_key("type") != fields.contains_key("anyOf"),
        "{schema:#}"
    );
    if schema["type"] == "object" {
        assert_eq!(schema["additionalProperties"], false, "{schema:#}");
    }
    let properties = schema["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(_, schema)| schema);
    let alternatives = schema["anyOf"].as_array().into_iter().flatten();
    properties
        .chain(alternatives)
        .chain(fields.get("items"))
        .for_each(assert_closed);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    /// SPEC 7.2: where a grammar is made of the schema, every reply that fits can still be given.
    #[test]
    fn grammars_are_never_narrower(schema in schemas(), instance in instances()) {
        let mut schema = schema;
        if let Some(fields) = schema.as_object_mut() {
            fields.insert("$defs".to_owned(), json!({"d": {"type": ["integer", "string"]}}));
        }
        if jsonschema::is_valid(&schema, &instance) {
            let projected = project_reply(&schema, Grammar).unwrap();
            prop_assert!(jsonschema::is_valid(&projected, &instance), "{:#}", projected);
        }
    }

    /// SPEC 7.2, 12: whatever the schema, what is sent is of the dialect, and nothing panics.
    #[test]
    fn any_reply_schema(schema in prop_oneof![schemas(), any_schema()]) {
        for dialect in ALL {
            let projected = project_reply(&schema, dialect);
            if let (Object | GrammarObject | Closed, Some(projected)) = (dialect, &projected) {
                prop_assert_eq!(&projected["type"], "object");
            }
            if let (Closed, Some(projected)) = (dialect, projected) {
                assert_closed(&projected);
            }
        }
        let _known = is_strict(&schema);
    }
}
