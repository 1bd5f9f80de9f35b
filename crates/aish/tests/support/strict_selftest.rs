//! Tests of what the strict fake server takes and refuses.

use serde_json::{Value, json};

use crate::support::strict::{Strictness, violation};

/// Messages that are checked with one tool on offer.
fn check(strictness: Strictness, messages: &Value, complaint: Option<&str>) {
    let function = json!({"name": "glob", "parameters": {"type": "object"}});
    let body = json!({"messages": messages, "tools": [{"type": "function", "function": function}]});
    let found = violation(&body, strictness);
    match (complaint, &found) {
        (None, None) => {}
        (Some(part), Some(whole)) if whole.contains(part) => {}
        _ => panic!("expected {complaint:?}, found {found:?} for {messages}"),
    }
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn says(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

fn calls(calls: &[(&str, &str)]) -> Value {
    let call = |(id, arguments): &(&str, &str)| {
        let function = json!({"name": "glob", "arguments": arguments});
        json!({"id": id, "type": "function", "function": function})
    };
    json!({"role": "assistant", "content": null, "tool_calls": calls.iter().map(call).collect::<Vec<_>>()})
}

fn result(id: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": "x"})
}

#[test]
fn strict_servers_take_good_conversations() {
    let system = json!({"role": "system", "content": "be brief"});
    let round = json!([
        system,
        user("a"),
        calls(&[("1", "{}"), ("2", "{}")]),
        result("1"),
        result("2"),
        says("b"),
        user("c")
    ]);
    for strictness in [Strictness::Lenient, Strictness::Api, Strictness::Template] {
        check(strictness, &round, None);
        check(
            strictness,
            &json!([user("a"), calls(&[("1", "{}")]), result("1")]),
            None,
        );
    }
}

#[test]
fn strict_servers_refuse_what_real_ones_refuse() {
    let system = json!({"role": "system", "content": "be brief"});
    let api = |messages: Value, complaint: &str| check(Strictness::Api, &messages, Some(complaint));
    api(json!([]), "messages is empty");
    api(json!([user("a"), result("1")]), "must answer a preceding call");
    api(
        json!([user("a"), calls(&[("1", "{}")]), user("b")]),
        "did not have response messages: 1",
    );
    api(
        json!([user("a"), calls(&[("1", "{}")])]),
        "did not have response messages: 1",
    );
    api(
        json!([user("a"), calls(&[("1", "{}")]), result("1"), result("1")]),
        "must answer a preceding call",
    );
    api(
        json!([user("a"), calls(&[("1", "{}"), ("2", "{}")]), result("2")]),
        "out of call order",
    );
    api(
        json!([user("a"), calls(&[("1", "{}"), ("1", "{}")])]),
        "duplicate call id",
    );
    api(
        json!([user("a"), calls(&[("1", "")]), result("1")]),
        "failed to parse arguments",
    );
    api(json!([user("a"), calls(&[("1", "[]")]), result("1")]), "not an object");
    api(
        json!([system, user("a"), system, user("b")]),
        "must be at the beginning",
    );
    api(
        json!([user("a"), {"role": "assistant", "content": null}, user("b")]),
        "neither content nor tool_calls",
    );
    api(json!([user("a"), {"role": "function", "content": ""}]), "unknown role");
    let template = |messages: Value, complaint: &str| check(Strictness::Template, &messages, Some(complaint));
    template(json!([user("a"), user("b")]), "must alternate");
    template(json!([says("a"), user("b")]), "must alternate");
    template(
        json!([user("a"), calls(&[("1", "{}")]), result("1"), user("b")]),
        "must alternate",
    );
    template(json!([user("a"), says("b")]), "last message");
}

#[test]
fn strict_servers_refuse_bad_tool_lists() {
    let refused = |extra: Value, complaint: &str| {
        let mut body = json!({"messages": [user("a")]});
        body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        let found = violation(&body, Strictness::Api).unwrap_or_default();
        assert!(found.contains(complaint), "{found:?}");
    };
    let tool = |name: &str| json!({"type": "function", "function": {"name": name, "parameters": {"type": "object"}}});
    refused(json!({"tools": []}), "too short");
    refused(json!({"tool_choice": "none"}), "only allowed when tools are specified");
    refused(json!({"tools": [tool("git.status")]}), "must match");
    refused(json!({"tools": [tool(&"x".repeat(65))]}), "must match");
    refused(json!({"tools": [tool("a"), tool("a")]}), "unique");
}
