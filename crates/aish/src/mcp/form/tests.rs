//! Every kind of field the protocol has, what it takes, and what it refuses.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use super::*;
use serde_json::json;

/// The one field of a form whose schema is this.
fn field(schema: Value) -> Field {
    let form = json!({ "type": "object", "properties": { "f": schema } });
    Form::read(&form).unwrap().fields.remove(0)
}

fn takes(schema: Value, line: &str, value: Value) {
    let field = field(schema);
    assert_eq!(field.check(line), Ok(Typed::Value(value)), "{field:?}: {line:?}");
}

fn refuses(schema: Value, line: &str, why: &str) {
    let field = field(schema);
    let problem = field.check(line).unwrap_err();
    assert!(problem.contains(why), "{field:?}: {line:?}: {problem}");
}

/// SPEC 6.9: text is held against its length and its format.
#[test]
fn text() {
    let sized = json!({ "type": "string", "minLength": 2, "maxLength": 3 });
    takes(sized.clone(), " äö ", json!("äö"));
    refuses(sized.clone(), "a", "2 to 3 characters; these are 1");
    refuses(sized, "abcd", "2 to 3 characters");
    let of = |format: &str| json!({ "type": "string", "format": format });
    takes(of("email"), "a@example.com", json!("a@example.com"));
    refuses(of("email"), "example.com", "no email address");
    takes(of("uri"), "https://example.com/x", json!("https://example.com/x"));
    refuses(of("uri"), "example com", "no address");
    takes(of("date"), "2026-07-28", json!("2026-07-28"));
    refuses(of("date"), "2026-02-30", "no date");
    takes(of("date-time"), "2026-07-28T12:00:00Z", json!("2026-07-28T12:00:00Z"));
    refuses(of("date-time"), "2026-07-28", "no date and time");
    takes(of("colour"), "red", json!("red"));
}

/// SPEC 6.9: numbers are held against their bounds, whole ones are whole.
#[test]
fn numbers() {
    let whole = json!({ "type": "integer", "minimum": 1, "maximum": 100 });
    takes(whole.clone(), "42", json!(42));
    refuses(whole.clone(), "4.2", "no whole number");
    refuses(whole.clone(), "0", "1 to 100");
    refuses(whole, "x", "no whole number");
    takes(json!({ "type": "number" }), "4.25", json!(4.25));
    takes(json!({ "type": "number" }), "-3", json!(-3));
    refuses(json!({ "type": "number" }), "NaN", "no number");
    refuses(json!({ "type": "number", "maximum": 1.5 }), "2", "at most 1.5");
    takes(json!({ "type": "boolean" }), "Yes", json!(true));
    takes(json!({ "type": "boolean" }), "n", json!(false));
    refuses(json!({ "type": "boolean" }), "maybe", "y or n");
}

/// SPEC 6.9: choices are numbered, with or without titles, one or several (SEP-1330 and the names of before).
#[test]
fn choices() {
    let plain = json!({ "type": "string", "enum": ["red", "green"] });
    takes(plain.clone(), "2", json!("green"));
    takes(plain.clone(), "red", json!("red"));
    refuses(plain.clone(), "3", "1 to 2");
    refuses(plain, "0", "1 to 2");
    let named = json!({ "type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"] });
    assert_eq!(field(named.clone()).choices()[1].title, "Green");
    takes(named, "1", json!("r"));
    let titled = json!({ "type": "string", "oneOf": [{ "const": "r", "title": "Red" }, { "const": "g" }] });
    takes(titled.clone(), "Red", json!("r"));
    takes(titled, "2", json!("g"));
    let several = json!({
        "type": "array", "minItems": 1, "maxItems": 2, "items": { "anyOf": [
            { "const": "r", "title": "Red" }, { "const": "g", "title": "Green" }, { "const": "b", "title": "Blue" },
        ] },
    });
    takes(several.clone(), "3, 1,3", json!(["b", "r"]));
    refuses(several.clone(), "1,2,3", "1 to 2 of them");
    refuses(several, "4", "1 to 3");
    takes(
        json!({ "type": "array", "items": { "type": "string", "enum": ["a"] } }),
        "1",
        json!(["a"]),
    );
}

/// SPEC 6.9: what nobody typed has its default (SEP-1034), is left out, or is asked for again.
#[test]
fn nothing_typed() {
    let check = |schema: Value, shown: &str| {
        let field = field(schema.clone());
        assert_eq!(field.default_text().as_deref(), Some(shown));
        assert_eq!(field.check("  "), Ok(Typed::Value(schema["default"].clone())));
    };
    check(json!({ "type": "string", "default": "x" }), "x");
    check(json!({ "type": "integer", "default": 7 }), "7");
    check(json!({ "type": "boolean", "default": false }), "n");
    check(json!({ "type": "string", "enum": ["a", "b"], "default": "b" }), "2");
    check(
        json!({ "type": "array", "items": { "enum": ["a", "b"] }, "default": ["b", "a"] }),
        "2, 1",
    );
    assert_eq!(field(json!({ "type": "string" })).check(""), Ok(Typed::LeftOut));
    // A default that the field would not take is none.
    for schema in [
        json!({ "type": "integer", "default": "7" }),
        json!({ "type": "string", "enum": ["a"], "default": "b" }),
        json!({ "type": "integer", "default": 99, "maximum": 5 }),
        json!({ "type": "number", "default": 0.5, "minimum": 1 }),
        json!({ "type": "string", "default": "x", "minLength": 2 }),
        json!({ "type": "string", "default": "nobody", "format": "email" }),
        json!({ "type": "array", "items": { "enum": ["a", "b"] }, "default": [], "minItems": 1 }),
        json!({ "type": "array", "items": { "enum": ["a", "b"] }, "default": ["a", "a"] }),
    ] {
        assert_eq!(field(schema).default, None);
    }
    let form = json!({ "properties": { "a": { "type": "string" }, "b": { "type": "string" } }, "required": ["b"] });
    let fields = Form::read(&form).unwrap().fields;
    assert_eq!((fields[0].name.as_str(), fields[1].name.as_str()), ("b", "a"));
    assert!(fields[0].check("").unwrap_err().contains("needed"));
}

/// SPEC 6.9: a default binds nobody: a field that may be left out can be left out all the same.
#[test]
fn a_default_that_is_not_taken() {
    let mut field = field(json!({ "type": "string", "default": "x" }));
    assert_eq!(field.check(" - "), Ok(Typed::LeftOut));
    field.need = Need::Required;
    assert_eq!(field.check("-"), Ok(Typed::Value(json!("-"))));
    field.need = Need::Optional;
    field.default = None;
    assert_eq!(field.check("-"), Ok(Typed::Value(json!("-"))));
}

/// SPEC 6.9: a form that cannot be filled in is refused as a whole, and bounded.
#[test]
fn forms_that_are_none() {
    let refused = |schema: Value| assert!(Form::read(&schema).is_err(), "{schema}");
    refused(json!({ "properties": [] }));
    refused(json!({ "properties": { "a": { "type": "object" } } }));
    refused(json!({ "properties": { "a": {} } }));
    refused(json!({ "properties": { "a": { "type": "string", "enum": [] } } }));
    refused(json!({ "properties": { "a": { "type": "array", "items": { "type": "string" } } } }));
    refused(json!({ "properties": { "": { "type": "string" } } }));
    refused(json!({ "properties": { "x".repeat(LABEL_CHARS_MAX + 1): { "type": "string" } } }));
    let many: Vec<String> = (0..=CHOICES_MAX).map(|n| n.to_string()).collect();
    refused(json!({ "properties": { "a": { "type": "string", "enum": many } } }));
    let fields: serde_json::Map<String, Value> = (0..=FIELDS_MAX)
        .map(|n| (n.to_string(), json!({ "type": "boolean" })))
        .collect();
    refused(json!({ "properties": fields }));
    assert!(Form::read(&json!({})).unwrap().fields.is_empty());
}

/// SPEC 6.9: a field that asks for a secret is noticed by its name, its title or its description.
#[test]
fn secrets() {
    let asks = |name: &str, title: &str, description: &str| {
        let field = json!({ "type": "string", "title": title, "description": description });
        let form = json!({ "properties": { name: field } });
        !Form::read(&form).unwrap().secrets().is_empty()
    };
    for name in [
        "api_key",
        "authToken",
        "pwd",
        "userPwd",
        "PIN",
        "pin2",
        "loginPIN",
        "PINEntry",
        "otp",
        "2fa",
        "2FA_code",
        "cvv",
        "card-cvc",
        "ssn",
        "recovery codes",
        "mnemonic",
        "passcode",
    ] {
        assert!(asks(name, "", "") && asks("x", name, ""), "{name}");
    }
    assert!(asks("x", "Your Pass-Word", "") && asks("x", "", "Your password, please") && asks("x", "", "API keys"));
    for name in [
        "name",
        "key",
        "shopping",
        "opinion",
        "spin",
        "compass",
        "passenger",
        "footprint",
        "pinned",
    ] {
        assert!(!asks(name, name, name), "{name}");
    }
    assert!(asks("pass", "", "") && !asks("x", "", "how many tests pass"));
    assert!(!asks("x", "", "how many sub-tokenizers"));
}
