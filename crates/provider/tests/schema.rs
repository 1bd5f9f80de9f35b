//! Schemas of tools in the words an endpoint takes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use aish_provider::codec::schema::{DEPTH_MAX, NODES_MAX, SchemaDialect, has_open_object, project};
use serde_json::{Value, json};
use std::borrow::Cow;

use SchemaDialect::{Full, Gemini, Grammar};

#[path = "schema/properties.rs"]
mod properties;
#[path = "schema/replies.rs"]
mod replies;

/// Asserts a tool's schema in a dialect; what is projected is projected to itself.
#[track_caller]
fn check(dialect: SchemaDialect, schema: &Value, expect: &Value) {
    let projected = project(schema, dialect).into_owned();
    assert_eq!(&projected, expect, "{projected:#}");
    assert!(
        matches!(project(&projected, dialect), Cow::Borrowed(same) if same == expect),
        "{projected:#}"
    );
}

/// Asserts what a property's schema becomes.
#[track_caller]
fn check_property(dialect: SchemaDialect, schema: &Value, expect: &Value) {
    let whole = |schema: &Value| json!({"type": "object", "properties": {"p": schema}});
    check(dialect, &whole(schema), &whole(expect));
}

fn anything() -> Value {
    json!({"type": ["string", "number", "integer", "boolean", "object", "array", "null"]})
}

/// SPEC 7.4: nothing is changed for a server that takes all of JSON Schema, nor where nothing needs to be.
#[test]
fn borrowed() {
    let odd = json!({"type": "object", "properties": {"p": {"$ref": "#/x", "not": {}, "type": "any"}}});
    assert!(matches!(project(&odd, Full), Cow::Borrowed(_)));
    let plain = json!({"type": "object", "properties": {"path": {"type": "string", "description": "d"}},
        "required": ["path"]});
    for dialect in [Full, Grammar, Gemini] {
        assert!(matches!(project(&plain, dialect), Cow::Borrowed(_)), "{dialect:?}");
    }
}

/// SPEC 7.4: references are written out, those within themselves a few times.
#[test]
fn references() {
    let schema = json!({"type": "object", "$schema": "x", "$id": "y", "properties": {
        "a": {"$ref": "#/$defs/A", "description": "own"}, "b": {"$ref": "#/definitions/B~1C"}, "c": {"$ref": "https://x.example"}},
        "$defs": {"A": {"type": "string", "description": "theirs", "default": "z"}},
        "definitions": {"B/C": {"type": "integer", "minimum": 1}}});
    let properties = json!({"a": {"type": "string", "description": "own"}, "b": {"type": "integer", "minimum": 1},
        "c": anything()});
    check(Grammar, &schema, &json!({"type": "object", "properties": properties}));
    let tree = json!({"type": "object", "properties": {"name": {"type": "string"},
        "children": {"type": "array", "items": {"$ref": "#"}}}});
    let level = |items: Value| json!({"type": "object", "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": items}}});
    check(Grammar, &tree, &level(level(level(json!({"type": "object"})))));
    check(Gemini, &tree, &level(level(level(json!({"type": "object"})))));
    let endless = json!({"$ref": "#"});
    check(
        Grammar,
        &endless,
        &json!({"type": "object", "properties": {}, "additionalProperties": true}),
    );
}

/// SPEC 7.4: parts of `allOf` are one schema.
#[test]
fn all_of() {
    let schema = json!({"allOf": [
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
        {"properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["b", "a"]}]});
    let one = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}},
        "required": ["a", "b"]});
    check(Grammar, &schema, &one);
    check(Gemini, &schema, &one);
    // As pydantic writes an enumeration with a default.
    let schema = json!({"allOf": [{"type": "string", "enum": ["x"]}], "default": "x"});
    check_property(Grammar, &schema, &json!({"type": "string", "enum": ["x"]}));
}

/// SPEC 7.4: keywords that a grammar cannot hold, or that a server refuses, are left out.
#[test]
fn grammar_keywords() {
    let object = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"],
        "additionalProperties": false});
    let mut schema = object.clone();
    for (name, value) in [
        ("$comment", json!("c")),
        ("not", json!({"type": "null"})),
        ("if", json!({})),
        ("then", json!({})),
        ("else", json!({})),
        ("dependentSchemas", json!({"a": {}})),
        ("propertyNames", json!({"pattern": "x"})),
        ("unevaluatedProperties", json!(false)),
        ("minProperties", json!(1)),
        ("examples", json!([1])),
        ("x-order", json!(1)),
    ] {
        schema[name] = value;
    }
    check(Grammar, &schema, &object);
    schema["patternProperties"] = json!({"^x": {"type": "string"}});
    let mut open = object.clone();
    open.as_object_mut().unwrap().remove("additionalProperties");
    check(Grammar, &schema, &open);
    let string = json!({"type": "string"});
    check_property(
        Grammar,
        &json!({"type": "string", "maxLength": 100_000, "format": "uri", "contentEncoding": "base64"}),
        &string,
    );
    let bounded = json!({"type": "string", "maxLength": 2000, "format": "date-time"});
    check_property(Grammar, &bounded, &bounded);
    check_property(
        Grammar,
        &json!({"type": "string", "format": 7, "minLength": "x", "enum": []}),
        &string,
    );
    let list = json!({"type": "array", "items": {"type": "integer", "multipleOf": 2}, "uniqueItems": true,
        "maxItems": 1_000_000_000});
    check_property(Grammar, &list, &json!({"type": "array", "items": {"type": "integer"}}));
    let several = json!({"type": ["string", "null"]});
    check_property(Grammar, &several, &several);
}

/// SPEC 7.4: llama.cpp refuses a schema that names no type, or one it does not know.
#[test]
fn grammar_without_a_type() {
    check_property(Grammar, &json!({}), &anything());
    check_property(Grammar, &json!(true), &anything());
    check_property(Grammar, &json!({"type": "any"}), &anything());
    let mut told = anything();
    told["description"] = json!("d");
    check_property(Grammar, &json!({"description": "d"}), &told);
    for kept in [
        json!({"enum": ["a", 1, null]}),
        json!({"const": {"a": 1}}),
        json!({"properties": {"x": {"type": "string"}}}),
        json!({"items": {"type": "string"}}),
    ] {
        check_property(Grammar, &kept, &kept);
    }
}

/// SPEC 7.4: alternatives stand alone: servers read them or what is beside them, not both.
#[test]
fn alternatives() {
    let schema = json!({"type": "string", "description": "d", "anyOf": [{"format": "date"}, {"minLength": 1}, {"type": "null"}]});
    check_property(
        Grammar,
        &schema,
        &json!({"description": "d", "anyOf": [{"type": "string", "format": "date"}, {"type": "string", "minLength": 1}, {"type": "null"}]}),
    );
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]});
    check_property(
        Grammar,
        &schema,
        &json!({"type": "object", "properties": {"a": {"type": "string"}}}),
    );
}

/// SPEC 7.4: arguments are an object: alternatives at the top become one that takes them all.
#[test]
fn top_level() {
    let empty = json!({"type": "object", "properties": {}});
    for schema in [json!({"type": "string"}), json!({"type": "null"})] {
        check(Grammar, &schema, &empty);
        check(Gemini, &schema, &empty);
    }
    let any = json!({"type": "object", "properties": {}, "additionalProperties": true});
    for schema in [json!(null), json!({}), json!("x"), json!([]), json!({"type": "object"})] {
        check(Grammar, &schema, &any);
        check(Gemini, &schema, &empty);
    }
    let union = json!({"description": "d", "oneOf": [
        {"type": "object", "properties": {"kind": {"const": "a"}, "n": {"type": "integer"}}, "required": ["kind", "n"], "additionalProperties": false},
        {"type": "object", "properties": {"kind": {"const": "b"}, "n": {"type": "string"}}, "required": ["kind"], "additionalProperties": false},
        {"type": "null"}]});
    check(
        Grammar,
        &union,
        &json!({"type": "object", "description": "d", "properties": {"kind": {"enum": ["a", "b"]},
            "n": {"anyOf": [{"type": "integer"}, {"type": "string"}]}}, "required": ["kind"], "additionalProperties": false}),
    );
    check(
        Gemini,
        &union,
        &json!({"type": "object", "description": "d", "properties": {"kind": {"type": "string", "enum": ["a", "b"]},
            "n": {"anyOf": [{"type": "integer"}, {"type": "string"}]}}, "required": ["kind"]}),
    );
}

/// SPEC 7.4: a pattern is kept where a grammar means the same by it.
#[test]
fn patterns() {
    let kept = |pattern: &str| {
        let schema = json!({"type": "object", "properties": {"p": {"type": "string", "pattern": pattern}}});
        let projected = project(&schema, Grammar);
        projected["properties"]["p"]
            .get("pattern")
            .map(|kept| kept.as_str().unwrap().to_owned())
    };
    for (pattern, written) in [
        ("^[a-z]+$", "^[a-z]+$"),
        (r"^\d{4}-\d{2}$", "^[0-9]{4}-[0-9]{2}$"),
        (r"^[\w.-]+@[\w-]+$", "^[A-Za-z0-9_.-]+@[A-Za-z0-9_-]+$"),
        (r"^(?:a|b)*c?$", "^(a|b)*c?$"),
        (r"^([0-9]{1,3}\.){3}[0-9]{1,3}$", r"^([0-9]{1,3}\.){3}[0-9]{1,3}$"),
        (r"^[\-a]{2,}\/x$", "^[a-]{2,}/x$"),
    ] {
        assert_eq!(kept(pattern).as_deref(), Some(written), "{pattern}");
        assert_eq!(kept(written).as_deref(), Some(written), "{written}");
    }
    for pattern in [
        "",
        "^",
        "$",
        "^$",
        "abc",
        "^abc",
        r"^abc\$",
        "^(?=a)b$",
        "^(?<!a)b$",
        "^(?<n>a)$",
        r"^(a)\1$",
        r"^\bfoo$",
        r"^\s+$",
        r"^\S$",
        r"^\p{L}$",
        "^.*$",
        "^[^/]+$",
        "^a|b$",
        "^a*?$",
        "^a++$",
        "^a{3001}$",
        "^(a{100}){100}$",
        "^a{,3}$",
        "^a{x}$",
        "^a{3,1}$",
        "^a{+3}$",
        "^*a$",
        "^(|a)$",
        "^(a|)$",
        "^()$",
        "^(a$",
        "^a)$",
        "^[a$",
        "^[]$",
        r"^[\w-.]$",
        "^[z-a]$",
        "^[!-~]$",
        "^a\"b$",
        r"^a\\b$",
        "^é$",
        r"^\",
        "^a\nb$",
    ] {
        assert_eq!(kept(pattern), None, "{pattern}");
    }
    assert_eq!(kept(&format!("^{}$", "a".repeat(5000))), None);
    assert_eq!(kept(&format!("^{}a{}$", "(".repeat(100), ")".repeat(100))), None);
}

/// SPEC 7.4: Gemini's words: one type to a schema, null beside it, values as strings.
#[test]
fn gemini_words() {
    for (schema, expect) in [
        (
            json!({"type": ["string", "null"], "default": null}),
            json!({"type": "string", "nullable": true}),
        ),
        (
            json!({"anyOf": [{"type": "string"}, {"type": "null"}], "title": "T"}),
            json!({"type": "string", "nullable": true, "title": "T"}),
        ),
        (
            json!({"type": ["string", "integer"], "minimum": 1}),
            json!({"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 1}]}),
        ),
        (json!({"type": ["number", "integer"]}), json!({"type": "number"})),
        (json!({"const": "x"}), json!({"type": "string", "enum": ["x"]})),
        (
            json!({"enum": ["a", "b", null]}),
            json!({"type": "string", "enum": ["a", "b"], "nullable": true}),
        ),
        (
            json!({"type": "integer", "enum": [1, 2], "description": "Level."}),
            json!({"type": "integer", "description": "Level. One of: 1, 2."}),
        ),
        (
            json!({"enum": ["", "a"]}),
            json!({"type": "string", "description": "One of: \"\", \"a\"."}),
        ),
        (
            json!({"type": "integer", "exclusiveMinimum": 0, "maximum": 9, "format": "uint8"}),
            json!({"type": "integer", "minimum": 0, "maximum": 9}),
        ),
        (
            json!({"type": "string", "format": "date-time", "properties": {"a": {}}, "pattern": "^a$", "minLength": 1}),
            json!({"type": "string", "format": "date-time"}),
        ),
        (
            json!({"type": "array", "items": [{"type": "string"}, {"type": "integer"}], "additionalItems": false, "minItems": 2}),
            json!({"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}, "minItems": 2}),
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a", "gone"], "additionalProperties": false}),
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}),
        ),
        (
            json!({"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
            json!({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
        ),
    ] {
        check_property(Gemini, &schema, &expect);
    }
}

/// SPEC 7.4: every schema that Gemini is sent names its type, every list its items.
#[test]
fn gemini_types() {
    fn is_typed(schema: &Value) -> bool {
        let children = schema.get("anyOf").and_then(Value::as_array).into_iter().flatten();
        let properties = schema
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(|p| p.values());
        let has_type = schema.get("type").is_some_and(Value::is_string) ^ schema.get("anyOf").is_some();
        let is_list = schema.get("type") == Some(&json!("array"));
        has_type
            && is_list == schema.get("items").is_some()
            && children.chain(properties).chain(schema.get("items")).all(is_typed)
    }
    for schema in [
        json!({}),
        json!({"type": "array"}),
        json!({"type": "array", "items": {}}),
        json!({"description": "d"}),
        json!({"const": null}),
        json!({"type": "null"}),
        json!({"anyOf": []}),
        json!({"anyOf": [{"type": "null"}]}),
        json!({"type": "array", "prefixItems": [{"type": "string"}]}),
        json!({"items": {"properties": {"a": {"enum": [1, "a", {"b": 1}]}}}}),
    ] {
        let whole = json!({"type": "object", "properties": {"p": schema}});
        let projected = project(&whole, Gemini);
        assert!(is_typed(&projected), "{projected:#}");
        check(Gemini, &whole, &projected);
    }
}

/// An object of unknown properties cannot be said in Gemini's `parameters`.
#[test]
fn open_objects() {
    let whole = |schema: Value| json!({"type": "object", "properties": {"p": schema}});
    assert!(!has_open_object(&json!({"type": "object", "properties": {}})));
    assert!(!has_open_object(&whole(json!({"type": "string"}))));
    for open in [
        json!({"type": "object"}),
        json!({"type": "array", "items": {"type": "object", "properties": {}}}),
        json!({"anyOf": [{"type": "string"}, {"type": "object"}]}),
    ] {
        assert!(has_open_object(&whole(open)));
    }
}

/// SPEC 12: no schema of a peer's takes more than its bounds.
#[test]
fn bounds() {
    let branches: Vec<Value> = (0..40).map(|_| json!({"$ref": "#/$defs/n"})).collect();
    let wide = json!({"$ref": "#/$defs/n", "$defs": {"n": {"type": "array", "items": {"anyOf": branches},
        "description": "x".repeat(10_000)}}});
    let wide = json!({"type": "object", "properties": {"p": wide["$defs"]["n"]}, "$defs": wide["$defs"]});
    let mut chain = json!({"type": "object", "properties": {}});
    for n in 0..300 {
        let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
        chain["$defs"][format!("d{n}")] = json!({"allOf": [next, next]});
    }
    chain["properties"]["p"] = json!({"$ref": "#/$defs/d0"});
    let mut deep = json!({"type": "string"});
    for _ in 0..1000 {
        deep = json!({"type": "array", "items": deep});
    }
    let deep = json!({"type": "object", "properties": {"p": deep}});
    for schema in [&wide, &chain, &deep] {
        for dialect in [Grammar, Gemini] {
            let projected = project(schema, dialect).into_owned();
            let text = projected.to_string();
            assert!(text.len() < 400 * NODES_MAX, "{}", text.len());
            assert!(text.matches("\"items\"").count() <= DEPTH_MAX + NODES_MAX);
            assert_eq!(*project(&projected, dialect), projected);
        }
    }
}
