//! Requests: the form and the order of messages that the API insists on.

use super::*;
use aish_provider::codec::handover::GO_ON;
use aish_provider::profile::{ProviderTool, Support, ToolRole, WireCallIds};

/// SPEC 7.5, 2.7: roles alternate, the user begins, results come first and together, what was typed meanwhile after them.
#[test]
fn messages_are_in_order() {
    let conversation = [
        assistant(vec![Part::text("welcome")], vec![]),
        user("a"),
        user("b"),
        assistant(
            vec![Part::text("c")],
            vec![call(1, "toolu_1", "{\"city\":\"Rome\"}"), call(2, "toolu_2", "{}")],
        ),
        result(1, "18C"),
        result(2, "12C"),
        user("and Oslo"),
        assistant(vec![Part::text("d")], vec![]),
        // Nothing in these can be sent.
        user("  "),
        assistant(vec![Part::thinking("hm")], vec![]),
        assistant(vec![Part::text("e")], vec![]),
        user("f"),
    ];
    let expect = json!([
        {"role": "user", "content": [wire_text(GO_ON)]},
        {"role": "assistant", "content": [wire_text("welcome")]},
        {"role": "user", "content": [wire_text("a"), wire_text("b")]},
        {"role": "assistant", "content": [
            wire_text("c"),
            wire_call("toolu_1", &json!({"city": "Rome"})),
            wire_call("toolu_2", &json!({})),
        ]},
        {"role": "user", "content": [
            wire_result("toolu_1", "18C"),
            wire_result("toolu_2", "12C"),
            wire_text("and Oslo"),
        ]},
        {"role": "assistant", "content": [wire_text("d"), wire_text("e")]},
        {"role": "user", "content": [wire_text("f")]},
    ]);
    assert_eq!(messages(&conversation), expect);
    assert_eq!(messages(&[]), json!([{"role": "user", "content": [wire_text(GO_ON)]}]));
}

/// A result of a call typed into before it came (SPEC 3.5a) still comes first.
#[test]
fn results_come_first_whatever_was_typed() {
    let conversation = [
        user("a"),
        assistant(vec![], vec![call(1, "toolu_1", "{}"), call(2, "toolu_2", "{}")]),
        result(1, "r"),
        user("steer"),
        result(2, "s"),
    ];
    let expect = json!({"role": "user", "content": [
        wire_result("toolu_1", "r"),
        wire_result("toolu_2", "s"),
        wire_text("steer"),
    ]});
    assert_eq!(messages(&conversation)[2], expect);
}

/// SPEC 3.7, 2.3: a failure is marked; a blank output is not sent blank, and a result without a call is told as text.
#[test]
fn results() {
    let failed = |n, output: &str| match result(n, output) {
        Message::Tool {
            call_id,
            provider_id,
            name,
            output,
            ..
        } => Message::Tool {
            call_id,
            provider_id,
            name,
            output,
            success: false,
            parts: Vec::new(),
        },
        other => other,
    };
    let conversation = [
        user("a"),
        assistant(vec![], vec![call(1, "t1", "{}"), call(2, "t2", "{}")]),
        failed(1, "no such city"),
        failed(2, " \n"),
        result(3, "nobody asked"),
        result(1, "twice"),
    ];
    let expect = json!([
        {"type": "tool_result", "tool_use_id": "t1", "content": "no such city", "is_error": true},
        {"type": "tool_result", "tool_use_id": "t2", "content": "[no output]", "is_error": true},
        wire_text("[tool: weather.get]\nnobody asked"),
        wire_text("[tool: weather.get]\ntwice"),
    ]);
    assert_eq!(messages(&conversation)[2]["content"], expect);
}

/// SPEC 3.8, 2.4: arguments are an object, byte for byte the model's; ids are unique and of letters the API takes.
#[test]
fn arguments_and_ids() {
    let conversation = [
        user("a"),
        assistant(
            vec![],
            vec![
                call(1, "functions.get:0", ""),
                call(2, "same", "[1]"),
                call(3, "same", r#"{"b":1.50,"a":12345678901234567890123}"#),
            ],
        ),
        result(1, "r"),
        result(2, "s"),
        result(3, "t"),
    ];
    let tools = [tool()];
    let bytes = encoded(request(&conversation, &tools), &profile()).body;
    let text = String::from_utf8(bytes).unwrap();
    assert!(
        text.contains(r#""input":{"b":1.50,"a":12345678901234567890123}"#),
        "{text}"
    );
    let wire = messages(&conversation);
    let ids: Vec<&str> = wire[1]["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| block["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["call_1_1", "same", "call_1_3"]);
    assert_eq!(wire[1]["content"][0]["input"], json!({}));
    assert_eq!(wire[1]["content"][1]["input"], json!({}));
    let answered: Vec<&str> = wire[2]["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| block["tool_use_id"].as_str().unwrap())
        .collect();
    assert_eq!(answered, ids);

    let nine = ModelProfile {
        wire_call_ids: WireCallIds::NineCharacters,
        ..profile()
    };
    let wire = body(request(&conversation, &tools), &nine);
    assert_eq!(wire["messages"][1]["content"][1]["id"].as_str().unwrap().len(), 9);
}

/// SPEC 8.3, 4.5: images go as they are where they are taken, else they are named; what came along is labelled.
#[test]
fn questions_with_more_than_text() {
    let image = |media_type: &str| Part::Image {
        media_type: media_type.to_owned(),
        data: "AAAA".to_owned(),
    };
    let conversation = [Message::User {
        parts: vec![
            Part::Context {
                label: "stdin".to_owned(),
                text: "a\nb\n".to_owned(),
            },
            image("image/png"),
            image("image/svg+xml"),
            Part::text("what?"),
        ],
    }];
    let source = json!({"type": "base64", "media_type": "image/png", "data": "AAAA"});
    let context = "<context label=\"stdin\">\na\nb\n</context>";
    let left_out = |kind: &str| format!("[image left out: this model does not take {kind}]");
    let expect = json!([
        {"type": "image", "source": source},
        wire_text(&format!("{context}\n\n{}\n\nwhat?", left_out("image/svg+xml"))),
    ]);
    assert_eq!(messages(&conversation)[0]["content"], expect);
    let blind = ModelProfile {
        images: Support::No,
        ..profile()
    };
    let expect = format!(
        "{context}\n\n{}\n\n{}\n\nwhat?",
        left_out("image/png"),
        left_out("image/svg+xml")
    );
    assert_eq!(
        body(request(&conversation, &[]), &blind)["messages"][0]["content"],
        json!([wire_text(&expect)])
    );
}

/// SPEC 7.5, 6.7: where there is no place for calls, they and their results are text; without tools there never is.
#[test]
fn calls_as_text() {
    let conversation = [
        user("a"),
        assistant(vec![Part::text("b")], vec![call(1, "t1", "{\"city\":\"Rome\"}")]),
        result(1, "18C"),
        user("c"),
    ];
    let expect = json!([
        {"role": "user", "content": [wire_text("a")]},
        {"role": "assistant", "content": [wire_text("b"), wire_text("[call: weather.get]\n{\"city\":\"Rome\"}")]},
        {"role": "user", "content": [wire_text("[tool: weather.get]\n18C"), wire_text("c")]},
    ]);
    let tools = [tool()];
    let as_text = ModelProfile {
        tool_role: ToolRole::Text,
        ..profile()
    };
    let no_tools = ModelProfile {
        tools: Support::No,
        provider_tools: vec![ProviderTool::WebSearch],
        ..profile()
    };
    for (offered, profile, has_tools) in [
        (&tools[..], &as_text, true),
        (&[], &profile(), false),
        (&tools, &no_tools, false),
    ] {
        let body = body(request(&conversation, offered), profile);
        assert_eq!(body["messages"], expect);
        assert_eq!(body.get("tools").is_some(), has_tools);
        assert_eq!(body.get("tool_choice"), None);
    }
}

/// SPEC 7.6: a paused reply goes back last, as it came but for white space at its end; a half-made call of a provider's tool
/// is kept there and nowhere else.
#[test]
fn paused_replies() {
    let half = json!({"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "x"}});
    let reply = assistant(vec![Part::text("Searching."), own_block(half.clone())], vec![]);
    let paused = [user("a"), reply.clone()];
    let expect = json!([
        {"role": "user", "content": [wire_text("a")]},
        {"role": "assistant", "content": [wire_text("Searching."), half]},
    ]);
    assert_eq!(messages(&paused), expect);

    let dropped = messages(&[user("a"), reply.clone(), user("b")]);
    assert_eq!(dropped[1]["content"], json!([wire_text("Searching.")]));

    // Its continuation is the same message again.
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []});
    let rest = assistant(vec![own_block(found.clone()), Part::text("Found. \n")], vec![]);
    let joined = messages(&[user("a"), reply, rest.clone()]);
    assert_eq!(joined.as_array().unwrap().len(), 2);
    assert_eq!(
        joined[1]["content"],
        json!([wire_text("Searching."), half, found, wire_text("Found.")])
    );

    // Any other reply at the end would be one begun for the model, which newer ones refuse.
    let ended = messages(&[user("a"), assistant(vec![Part::text("b ")], vec![])]);
    assert_eq!(ended[1]["content"], json!([wire_text("b ")]));
    assert_eq!(ended[2]["content"], json!([wire_text(GO_ON)]));

    let orphan = messages(&[user("a"), rest, user("b")]);
    assert_eq!(orphan[1]["content"], json!([wire_text("Found. \n")]));
}

/// SPEC 7.3: places of calls that make no sense cannot break a request.
#[test]
fn places_of_calls() {
    let at = |index| Part::Call { index, signature: None };
    let conversation = [
        user("a"),
        assistant(
            vec![
                at(1),
                Part::text("b"),
                at(1),
                at(7),
                Part::text(" "),
                Part::PartialCall {
                    name: "x".to_owned(),
                    arguments: "{".to_owned(),
                },
            ],
            vec![call(1, "t1", "{}"), call(2, "t2", "{}")],
        ),
        result(1, "r"),
        result(2, "s"),
    ];
    let expect = json!([wire_call("t2", &json!({})), wire_text("b"), wire_call("t1", &json!({}))]);
    assert_eq!(messages(&conversation)[1]["content"], expect);
}
