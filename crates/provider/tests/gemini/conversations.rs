//! The conversation in a request.

use super::{encode, profile, profile_of, reader, request, user};
use aish_core::id::CallId;
use aish_core::message::{Message, MessageCall, Part};
use aish_provider::ModelProfile;
use aish_provider::profile::{Support, ToolRole};
use proptest::prelude::*;
use serde_json::{Value, json};

fn call(n: usize) -> MessageCall {
    MessageCall {
        id: CallId::nth(1, n),
        provider_id: None,
        name: "srv.read".to_owned(),
        arguments: format!(r#"{{"n":{n}}}"#),
    }
}

fn said(model: &str, parts: Vec<Part>, calls: Vec<MessageCall>) -> Message {
    Message::Assistant {
        parts,
        calls,
        model: Some(model.to_owned()),
    }
}

fn result(n: usize, output: &str) -> Message {
    Message::Tool {
        call_id: CallId::nth(1, n),
        provider_id: None,
        name: "srv.read".to_owned(),
        output: output.to_owned(),
        success: output != "no",
        parts: Vec::new(),
    }
}

fn check(profile: &ModelProfile, messages: &[Message], contents: &Value) {
    let tools = [reader()];
    let body = encode(profile, request(messages, &tools));
    assert_eq!(&body["contents"], contents, "{:#}", body["contents"]);
}

fn text(role: &str, text: &str) -> Value {
    json!({"role": role, "parts": [{"text": text}]})
}

fn function_call(n: usize) -> Value {
    json!({"functionCall": {"name": "srv__read", "args": {"n": n}}})
}

fn signed(mut part: Value, signature: &str) -> Value {
    part["thoughtSignature"] = json!(signature);
    part
}

fn response(field: &str, text: &str) -> Value {
    json!({"functionResponse": {"name": "srv__read", "response": {field: text}}})
}

/// SPEC 2.7: as many responses as calls, in their order, in one message right behind them, whatever came between.
#[test]
fn calls_and_responses() {
    check(
        &profile_of("gemini-2.5-pro"),
        &[
            user("read"),
            said("tested", vec![Part::text("Yes.")], vec![call(0), call(1), call(2)]),
            result(1, "one"),
            user("wait"),
            result(0, "no"),
            said("tested", vec![Part::text("Done.")], vec![]),
            user("thanks"),
        ],
        &json!([
            text("user", "read"),
            {"role": "model", "parts": [{"text": "Yes."}, function_call(0), function_call(1), function_call(2)]},
            {"role": "user", "parts": [response("error", "no"), response("output", "one"),
                response("error", "interrupted: the end of this call is not known"), {"text": "wait"}]},
            text("model", "Done."),
            text("user", "thanks"),
        ]),
    );
    // A second result is told in words, the first counts; so is a result of nobody's.
    check(
        &profile_of("gemini-2.5-pro"),
        &[
            user("a"),
            said("tested", vec![], vec![call(0)]),
            result(0, "b"),
            result(0, "c"),
        ],
        &json!([
            text("user", "a"),
            {"role": "model", "parts": [function_call(0)]},
            {"role": "user", "parts": [response("output", "b"), {"text": "[tool: srv.read]\nc"}]},
        ]),
    );
    check(
        &profile(),
        &[user("a"), result(7, "b")],
        &json!([{"role": "user", "parts": [{"text": "a"}, {"text": "[tool: srv.read]\nb"}]}]),
    );
}

/// SPEC 7.2: the API's own ids go back to it, ours and others' stay here.
#[test]
fn ids() {
    let own = MessageCall {
        provider_id: Some("fc-1".to_owned()),
        ..call(0)
    };
    for (model, has_id) in [("tested", true), ("other", false)] {
        let messages = [user("read"), said(model, vec![], vec![own.clone()]), result(0, "x")];
        let tools = [reader()];
        let body = encode(&profile_of("gemini-2.5-pro"), request(&messages, &tools));
        let called = &body["contents"][1]["parts"][0]["functionCall"];
        let answered = &body["contents"][2]["parts"][0]["functionResponse"];
        assert_eq!(called.get("id").is_some(), has_id);
        assert_eq!(called.get("id"), answered.get("id"));
    }
}

/// SPEC 7.4, 7.6: signatures go back where they came, verbatim.
#[test]
fn signatures() {
    let thinking = |text: &str, signature: Option<&str>| Part::Thinking {
        text: text.to_owned(),
        signature: signature.map(str::to_owned),
        format: signature.map(|_| "gemini".to_owned()),
    };
    let place = |index: usize, signature: Option<&str>| Part::Call {
        index,
        signature: signature.map(str::to_owned),
    };
    let parts = vec![
        thinking("unsigned", None),
        thinking("hm", Some("S1")),
        Part::text("Yes."),
        thinking("", Some("S2")),
        place(1, Some("S3")),
        place(1, Some("twice")),
        Part::text("And"),
        place(9, Some("none")),
        Part::Provider {
            format: "gemini".to_owned(),
            block: json!({"executableCode": {"code": "1"}, "thoughtSignature": "S4"}),
        },
        Part::Provider {
            format: "gemini".to_owned(),
            block: json!({"groundingMetadata": {}}),
        },
    ];
    let rest = json!({"role": "user", "parts": [response("output", "b"), response("output", "a")]});
    let messages = [
        user("read"),
        said("tested", parts, vec![call(0), call(1)]),
        result(0, "a"),
        result(1, "b"),
    ];
    check(
        &profile(),
        &messages,
        &json!([
            text("user", "read"),
            {"role": "model", "parts": [{"text": "hm", "thought": true, "thoughtSignature": "S1"}, {"text": "Yes."},
                {"text": "", "thoughtSignature": "S2"}, signed(function_call(1), "S3"), {"text": "And"},
                {"executableCode": {"code": "1"}, "thoughtSignature": "S4"}, function_call(0)]},
            rest,
        ]),
    );
}

/// SPEC 7.6: the third generation refuses unsigned calls: another model's get the stand-in the API documents for that.
#[test]
fn calls_of_other_models() {
    let messages = [
        user("read"),
        said(
            "other",
            vec![
                Part::Call {
                    index: 0,
                    signature: Some("theirs".to_owned()),
                },
                Part::thinking("hm"),
            ],
            vec![call(0), call(1)],
        ),
        result(0, "a"),
        result(1, "b"),
    ];
    let contents = |first: Value| {
        json!([
            text("user", "read"),
            {"role": "model", "parts": [first, {"text": "<thinking>\nhm\n</thinking>"}, function_call(1)]},
            {"role": "user", "parts": [response("output", "a"), response("output", "b")]},
        ])
    };
    check(
        &profile(),
        &messages,
        &contents(signed(function_call(0), "skip_thought_signature_validator")),
    );
    check(&profile_of("gemini-2.5-pro"), &messages, &contents(function_call(0)));
}

/// SPEC 7.5: user and model take turns, the user first and last, and nothing is empty.
#[test]
fn turns() {
    check(
        &profile(),
        &[
            said("tested", vec![Part::text("a")], vec![]),
            said("tested", vec![Part::text("b")], vec![]),
            user(""),
            said("tested", vec![Part::text("")], vec![]),
            user("c"),
            user("d"),
            said("tested", vec![Part::text("e")], vec![]),
        ],
        &json!([
            text("user", "(go on)"),
            {"role": "model", "parts": [{"text": "a"}, {"text": "b"}]},
            {"role": "user", "parts": [{"text": "c"}, {"text": "d"}]},
            text("model", "e"),
            text("user", "(go on)"),
        ]),
    );
    check(&profile(), &[], &json!([text("user", "(go on)")]));
}

/// SPEC 7.5: calls and results as text, for models that take no functions.
#[test]
fn without_functions() {
    let messages = [user("read"), said("tested", vec![], vec![call(0)]), result(0, "a")];
    let contents = json!([
        text("user", "read"),
        text("model", "[call: srv.read]\n{\"n\":0}"),
        text("user", "[tool: srv.read]\na"),
    ]);
    for gemma in [
        ModelProfile {
            tool_role: ToolRole::Text,
            ..profile()
        },
        ModelProfile {
            tools: Support::No,
            ..profile()
        },
    ] {
        check(&gemma, &messages, &contents);
    }
}

/// SPEC 8.3: what came along is labelled; images of kinds the API takes are sent, others told of.
#[test]
fn what_came_along() {
    let image = |media_type: &str| Part::Image {
        media_type: media_type.to_owned(),
        data: "QUJD".to_owned(),
    };
    let message = Message::User {
        parts: vec![
            Part::text("see"),
            image("image/png"),
            image("image/gif"),
            Part::Context {
                label: "stdin".to_owned(),
                text: "x\n".to_owned(),
            },
        ],
    };
    let told =
        "[image left out: this model does not take image/gif]\n\n<context label=\"stdin\">\nx\n</context>\n\nsee";
    check(
        &profile(),
        std::slice::from_ref(&message),
        &json!([{"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": "QUJD"}}, {"text": told}]}]),
    );
    let blind = ModelProfile {
        images: Support::No,
        ..profile()
    };
    let body = encode(&blind, request(&[message], &[]));
    assert!(!body.to_string().contains("inlineData"));
}

/// Conversations as no projection makes them.
fn messages() -> impl Strategy<Value = Vec<Message>> {
    let part = prop_oneof![
        "[a ]{0,2}".prop_map(Part::text),
        (0usize..3, proptest::option::of("s")).prop_map(|(index, signature)| Part::Call { index, signature }),
        ("[a]{0,1}", proptest::option::of("s")).prop_map(|(text, signature)| Part::Thinking {
            text,
            format: signature.as_ref().map(|_| "gemini".to_owned()),
            signature,
        }),
    ];
    let parts = || proptest::collection::vec(part.clone(), 0..4);
    let message = prop_oneof![
        parts().prop_map(|parts| Message::User { parts }),
        (parts(), 0usize..3, "(tested|other)").prop_map(|(parts, calls, model)| said(
            &model,
            parts,
            (0..calls).map(call).collect()
        )),
        (0usize..3).prop_map(|n| result(n, "x")),
    ];
    proptest::collection::vec(message, 0..8)
}

proptest! {
    /// SPEC 2.7, 7.5: whatever the conversation, roles alternate, nothing is empty, and responses match the calls before.
    #[test]
    fn any_conversation(messages in messages()) {
        let tools = [reader()];
        let body = encode(&profile(), request(&messages, &tools));
        let contents = body["contents"].as_array().unwrap();
        prop_assert!(contents.len() % 2 == 1);
        let mut called = 0;
        for (at, content) in contents.iter().enumerate() {
            prop_assert_eq!(&content["role"], if at % 2 == 0 { "user" } else { "model" });
            let parts = content["parts"].as_array().unwrap();
            let count = |field: &str| parts.iter().filter(|part| part.get(field).is_some()).count();
            prop_assert!(!parts.is_empty());
            prop_assert!(parts.iter().all(|part| part["text"] != "" || part.get("thoughtSignature").is_some()));
            prop_assert_eq!(count("functionResponse"), called);
            called = count("functionCall");
            let first = parts.iter().find(|part| part.get("functionCall").is_some());
            prop_assert!(first.is_none_or(|first| first.get("thoughtSignature").is_some()));
        }
        prop_assert_eq!(called, 0);
    }
}
