//! Requests as chat completions want them: what the recordings do not show.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use aish_core::id::CallId;
use aish_core::message::{Message, MessageCall, Part, ToolChoice, ToolSpec};
use aish_provider::codec::Codec;
use aish_provider::codec::openai_chat::OpenaiChat;
use aish_provider::profile::{ThinkingBack, ToolRole, WireCallIds};
use aish_provider::{ModelProfile, Request};
use serde_json::{Value, json};

#[path = "encode/switches.rs"]
mod switches;

fn profile() -> ModelProfile {
    ModelProfile::openai_chat("http://127.0.0.1:8080/v1", "m")
}

fn user(text: &str) -> Message {
    Message::User {
        parts: vec![Part::text(text)],
    }
}

fn assistant(text: &str, calls: &[(usize, &str, &str)]) -> Message {
    let calls = calls.iter().map(|(n, provider_id, arguments)| MessageCall {
        id: CallId::nth(1, *n),
        provider_id: (!provider_id.is_empty()).then(|| (*provider_id).to_owned()),
        name: "srv.read".to_owned(),
        arguments: (*arguments).to_owned(),
    });
    Message::Assistant {
        parts: vec![Part::text(text)],
        calls: calls.collect(),
        model: None,
    }
}

fn result(n: usize, output: &str) -> Message {
    Message::Tool {
        call_id: CallId::nth(1, n),
        provider_id: None,
        name: "srv.read".to_owned(),
        output: output.to_owned(),
        success: true,
        parts: Vec::new(),
    }
}

fn encode(profile: &ModelProfile, messages: &[Message], tools: &[ToolSpec]) -> Value {
    let request = Request {
        model: "tested",
        system: "Be brief.",
        messages,
        tools,
        tool_choice: ToolChoice::Auto,
        max_output_tokens: None,
        schema: None,
    };
    serde_json::from_slice(&OpenaiChat.encode(request, profile).unwrap().body).unwrap()
}

/// Asserts what a conversation becomes, after the system message.
#[track_caller]
fn check(profile: &ModelProfile, messages: &[Message], expect: Value) {
    let body = encode(profile, messages, &[]);
    assert_eq!(body["messages"][0], json!({"role": "system", "content": "Be brief."}));
    let rest = &body["messages"].as_array().unwrap()[1..];
    assert_eq!(&Value::from(rest), &expect);
}

fn wire_call(id: &str, arguments: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "srv__read", "arguments": arguments}})
}

/// SPEC 6.7: without tools there is no such field, nor a choice; SPEC 7.1: the temperature is 0.2 or left out.
#[test]
fn fields_that_are_left_out() {
    let body = encode(&profile(), &[user("hi")], &[]);
    let object = body.as_object().unwrap();
    let fields: Vec<&str> = object.keys().map(String::as_str).collect();
    assert_eq!(fields, ["messages", "model", "stream", "stream_options", "temperature"]);
    assert_eq!(body["temperature"], 0.2);
    assert_eq!(body["stream_options"], json!({"include_usage": true}));
    let plain = ModelProfile {
        temperature: None,
        max_output_tokens: Some(9),
        ..profile()
    };
    let body = encode(&plain, &[user("hi")], &[]);
    assert_eq!((body.get("temperature"), &body["max_tokens"]), (None, &json!(9)));
    let cloud = ModelProfile {
        max_output_tokens: Some(9),
        ..ModelProfile::openai_chat("https://api.openai.com/v1", "m")
    };
    let body = encode(&cloud, &[user("hi")], &[]);
    assert_eq!(
        (body.get("max_tokens"), &body["max_completion_tokens"]),
        (None, &json!(9))
    );
}

/// SPEC 7.5: roles alternate, because neighbours of one role are joined.
#[test]
fn neighbours_are_joined() {
    let messages = [
        user("a"),
        user("b"),
        assistant("c", &[]),
        assistant("d", &[(1, "", "{}")]),
        result(1, "r"),
        user("e"),
        // Nothing in it can be sent.
        Message::Assistant {
            parts: vec![Part::PartialCall {
                name: "x".to_owned(),
                arguments: "{".to_owned(),
            }],
            calls: Vec::new(),
            model: None,
        },
        user("f"),
    ];
    let expect = json!([
        {"role": "user", "content": "a\n\nb"},
        {"role": "assistant", "content": "c\n\nd", "tool_calls": [wire_call("call_1_1", "{}")]},
        {"role": "tool", "tool_call_id": "call_1_1", "content": "r"},
        {"role": "user", "content": "e\n\nf"},
    ]);
    check(&profile(), &messages, expect);
}

/// SPEC 3.8, 2.4: argument text is never empty; ids are the provider's while they are unique, and results carry the
/// same ones.
#[test]
fn arguments_and_ids() {
    let messages = [
        user("a"),
        assistant("", &[(1, "call_0", ""), (2, "call_0", "{\"p\":1}"), (3, "", " ")]),
        result(1, "one"),
        result(2, "two"),
        result(3, "three"),
    ];
    let expect = json!([
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "", "tool_calls": [
            wire_call("call_0", "{}"), wire_call("call_1_2", "{\"p\":1}"), wire_call("call_1_3", "{}"),
        ]},
        {"role": "tool", "tool_call_id": "call_0", "content": "one"},
        {"role": "tool", "tool_call_id": "call_1_2", "content": "two"},
        {"role": "tool", "tool_call_id": "call_1_3", "content": "three"},
    ]);
    check(&profile(), &messages, expect);
}

/// SPEC 7.5: ids of nine letters and digits, each its own and the same every time.
#[test]
fn nine_character_ids() {
    let nine = ModelProfile {
        wire_call_ids: WireCallIds::NineCharacters,
        ..profile()
    };
    let messages = [
        assistant("", &[(1, "call_0", "{}"), (2, "", "{}")]),
        result(1, "one"),
        result(2, "two"),
    ];
    let body = encode(&nine, &messages, &[]);
    let calls = &body["messages"][1]["tool_calls"];
    let ids: Vec<&str> = [&calls[0]["id"], &calls[1]["id"]]
        .map(|id| id.as_str().unwrap())
        .to_vec();
    assert!(
        ids.iter()
            .all(|id| id.len() == 9 && id.bytes().all(|b| b.is_ascii_alphanumeric())),
        "{ids:?}"
    );
    assert_ne!(ids[0], ids[1]);
    assert_eq!(body["messages"][2]["tool_call_id"], ids[0]);
    assert_eq!(body["messages"][3]["tool_call_id"], ids[1]);
    assert_eq!(encode(&nine, &messages, &[]), body);
}

/// SPEC 7.5: without a tool role, results are text of the user's and calls text of the model's.
#[test]
fn tool_role_as_text() {
    let text = ModelProfile {
        tool_role: ToolRole::Text,
        ..profile()
    };
    let messages = [
        user("a"),
        assistant("I look.", &[(1, "x", "{\"p\":1}"), (2, "y", "")]),
        result(1, "one"),
        result(2, "two"),
        user("b"),
    ];
    let expect = json!([
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "I look.\n\n[call: srv.read]\n{\"p\":1}\n\n[call: srv.read]\n{}"},
        {"role": "user", "content": "[tool: srv.read]\none\n\n[tool: srv.read]\ntwo\n\nb"},
    ]);
    check(&text, &messages, expect);
}

/// SPEC 8.3, 10.3: what came along stands before the question under its label, and cannot forge one.
#[test]
fn context_comes_first() {
    let messages = [Message::User {
        parts: vec![
            Part::text("What is this?"),
            Part::Context {
                label: "std\"in\n".to_owned(),
                text: "line\n".to_owned(),
            },
        ],
    }];
    let expect = json!([
        {"role": "user", "content": "<context label=\"std in \">\nline\n</context>\n\nWhat is this?"},
    ]);
    check(&profile(), &messages, expect);
}

/// SPEC 6.5: images are data URLs; text beside them becomes a block.
#[test]
fn images() {
    let image = Message::User {
        parts: vec![
            Part::Image {
                media_type: "image/png".to_owned(),
                data: "iVBORw0KGgo=".to_owned(),
            },
            Part::text("what"),
        ],
    };
    let expect = json!([{"role": "user", "content": [
        {"type": "text", "text": "before"},
        {"type": "text", "text": "what"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
        {"type": "text", "text": "after"},
    ]}]);
    check(&profile(), &[user("before"), image, user("after")], expect);
}

/// SPEC 6.1: tools are offered under the names that calls in the conversation have.
#[test]
fn tools() {
    let body = encode(
        &profile(),
        &[assistant("", &[(1, "", "{}")]), result(1, "r")],
        &[spec("srv.read"), spec("srv__read")],
    );
    let offered = body["tools"][0]["function"]["name"].as_str().unwrap();
    assert!(offered.starts_with("srv__read_"), "{offered}");
    assert_eq!(body["tools"][1]["function"]["name"], "srv__read");
    assert_eq!(body["messages"][1]["tool_calls"][0]["function"]["name"], offered);
    assert_eq!(body["tools"][0]["type"], "function");
    assert_eq!(body["tools"][0]["function"]["parameters"], spec("").input_schema);
}

fn spec(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: "reads".to_owned(),
        input_schema: json!({"type": "object", "properties": {"p": {"type": "string"}}}),
    }
}

/// A reply of the model that is asked: it thought, spoke and called.
fn own_reply(extra: Vec<Part>, calls: &[(usize, &str, &str)]) -> Message {
    let Message::Assistant { parts, calls, .. } = assistant("I look.", calls) else {
        panic!("no reply");
    };
    Message::Assistant {
        parts: extra.into_iter().chain(parts).collect(),
        calls,
        model: Some("tested".to_owned()),
    }
}

/// SPEC 2.4, 7.6: thinking goes back to the model that thought it where its API demands it, and every reply then has some:
/// <https://api-docs.deepseek.com/guides/thinking_mode>, <https://github.com/anomalyco/opencode/issues/10996>.
#[test]
fn reasoning_content() {
    let back = ModelProfile {
        thinking_back: ThinkingBack::ReasoningContent,
        ..profile()
    };
    let messages = [
        user("a"),
        own_reply(
            vec![Part::thinking("Two "), Part::thinking("cities.")],
            &[(1, "", "{}")],
        ),
        result(1, "r"),
        own_reply(Vec::new(), &[]),
        user("b"),
    ];
    let written = encode(&back, &messages, &[]);
    assert_eq!(written["messages"][2]["reasoning_content"], "Two cities.");
    assert_eq!(written["messages"][4]["reasoning_content"], " ");
    let dropped = encode(&profile(), &messages, &[]);
    assert_eq!(dropped["messages"][2].get("reasoning_content"), None);
}

/// SPEC 2.4, 9.7: what a provider wants back beside the text goes back as it came; other blocks and broken ones do not.
#[test]
fn own_blocks() {
    let details = json!({"reasoning_details": [{"type": "reasoning.encrypted", "data": "AA"}]});
    let provider = |block: &Value| Part::Provider {
        format: "openai-chat".to_owned(),
        block: block.clone(),
    };
    let signed = |signature: &str| Part::Call {
        index: 0,
        signature: Some(signature.to_owned()),
    };
    let google = "{\"google\":{\"thought_signature\":\"c2ln\"}}";
    let said = |parts| {
        encode(
            &profile(),
            &[user("a"), own_reply(parts, &[(1, "", "{}")]), result(1, "r")],
            &[],
        )
    };
    let written = said(vec![provider(&details), signed(google)]);
    assert_eq!(
        written["messages"][2]["reasoning_details"],
        details["reasoning_details"]
    );
    let call = &written["messages"][2]["tool_calls"][0];
    assert_eq!(call["extra_content"]["google"]["thought_signature"], "c2ln");
    let written = said(vec![provider(&json!({"role": "system"})), signed("c2ln")]);
    assert_eq!(written["messages"][2]["role"], "assistant");
    assert_eq!(written["messages"][2]["tool_calls"][0].get("extra_content"), None);
}
