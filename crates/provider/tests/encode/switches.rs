//! What the profile says an endpoint refuses, and how requests are written without it.

use super::{assistant, check, encode, profile, result, spec, user};
use aish_core::message::{Message, Part, ToolChoice};
use aish_provider::codec::Codec;
use aish_provider::codec::openai_chat::OpenaiChat;
use aish_provider::profile::{Alternation, CallsPerReply, Reasoning, Support, SystemRole};
use aish_provider::{ModelProfile, Request};
use serde_json::{Value, json};

/// The whole body of a request with a tool.
fn body(profile: &ModelProfile, tool_choice: ToolChoice, schema: Option<&Value>) -> Value {
    let (messages, tools) = ([user("hi")], [spec("srv.read")]);
    let request = Request {
        model: "tested",
        system: "Be brief.",
        messages: &messages,
        tools: &tools,
        tool_choice,
        max_output_tokens: None,
        schema,
    };
    serde_json::from_slice(&OpenaiChat.encode(request, profile).unwrap().body).unwrap()
}

/// SPEC 7.5, 7.4: a field that an endpoint refuses is not sent, and nothing else changes.
#[test]
fn refused_fields() {
    type Change = fn(&mut ModelProfile);
    let cases: [(&str, Change, Value); 7] = [
        ("stream_options", |p| p.stream_usage = Support::No, Value::Null),
        ("stream", |p| p.streaming = Support::No, json!(false)),
        ("stream_options", |p| p.streaming = Support::No, Value::Null),
        ("tools", |p| p.tools = Support::No, Value::Null),
        ("temperature", |p| p.temperature = None, Value::Null),
        (
            "reasoning_effort",
            |p| p.reasoning = Some(Reasoning::High),
            json!("high"),
        ),
        ("parallel_tool_calls", |p| p.calls = CallsPerReply::One, json!(false)),
    ];
    let usual = body(&profile(), ToolChoice::Auto, None);
    for (field, change, expect) in cases {
        let mut changed = profile();
        change(&mut changed);
        let body = body(&changed, ToolChoice::Auto, None);
        assert_eq!(body[field], expect, "{field}");
        assert_ne!(usual[field], expect, "{field}");
        assert_eq!(body["messages"], usual["messages"], "{field}");
    }
    let one = ModelProfile {
        calls: CallsPerReply::One,
        parallel_field: Support::No,
        ..profile()
    };
    assert_eq!(body(&one, ToolChoice::Auto, None)["parallel_tool_calls"], Value::Null);
}

/// SPEC 3.6: the last request of a turn forbids calls, or offers none where that cannot be said.
#[test]
fn forbidden_calls() {
    let said = body(&profile(), ToolChoice::None, None);
    assert_eq!((&said["tool_choice"], said["tools"].is_array()), (&json!("none"), true));
    let cannot = ModelProfile {
        choice_none: Support::No,
        ..profile()
    };
    let left_out = body(&cannot, ToolChoice::None, None);
    assert_eq!(
        (&left_out["tool_choice"], &left_out["tools"]),
        (&Value::Null, &Value::Null)
    );
    assert!(body(&cannot, ToolChoice::Auto, None)["tools"].is_array());
}

/// SPEC 7.2: thinking is switched off in the words of nearby servers' templates, which clouds refuse.
#[test]
fn thinking_off() {
    for (base_url, expect) in [
        ("http://127.0.0.1:8080/v1", json!({"enable_thinking": false})),
        ("http://[::1]:8080/v1", json!({"enable_thinking": false})),
        ("http://desk.local/v1", json!({"enable_thinking": false})),
        ("https://models.example/v1", Value::Null),
    ] {
        let off = ModelProfile {
            reasoning: Some(Reasoning::Off),
            ..ModelProfile::openai_chat(base_url, "m")
        };
        let body = body(&off, ToolChoice::Auto, None);
        assert_eq!(
            (&body["chat_template_kwargs"], &body["reasoning_effort"]),
            (&expect, &json!("none"))
        );
    }
}

/// A request without tools; they and a grammar exclude each other on local servers.
fn body_without_tools(profile: &ModelProfile, schema: &Value) -> Value {
    let messages = [user("hi")];
    let request = Request {
        model: "tested",
        system: "Be brief.",
        messages: &messages,
        tools: &[],
        tool_choice: ToolChoice::Auto,
        max_output_tokens: None,
        schema: Some(schema),
    };
    serde_json::from_slice(&OpenaiChat.encode(request, profile).unwrap().body).unwrap()
}

/// Asserts that the schema is told in words and nowhere else.
#[track_caller]
fn check_words(body: &Value, schema: &Value) {
    assert_eq!(body["response_format"], Value::Null);
    let system = body["messages"][0]["content"].as_str().unwrap();
    assert!(
        system.starts_with("Be brief.\n\n") && system.contains(&schema.to_string()),
        "{system}"
    );
}

/// SPEC 7.2: the schema of the reply has a field, or is told in words where the endpoint refuses it.
#[test]
fn structured_output() {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    let with = body_without_tools(&profile(), &schema);
    let expect = json!({"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}});
    assert_eq!(
        (&with["response_format"], &with["messages"][0]["content"]),
        (&expect, &json!("Be brief."))
    );
    let cannot = ModelProfile {
        structured_output: Support::No,
        ..profile()
    };
    check_words(&body_without_tools(&cannot, &schema), &schema);
}

/// SPEC 7.2: llama.cpp refuses a grammar beside tools, and others would hold every call to it.
#[test]
fn structured_output_beside_tools() {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    check_words(&body(&profile(), ToolChoice::Auto, Some(&schema)), &schema);
    let untold = ModelProfile {
        tools: Support::No,
        ..profile()
    };
    let field = |profile: &ModelProfile| body(profile, ToolChoice::Auto, Some(&schema))["response_format"].clone();
    let expect = json!({"name": "reply", "schema": schema});
    assert_eq!(field(&untold)["json_schema"], expect);
    let cloud = ModelProfile::openai_chat("https://models.example.com/v1", "m");
    assert_eq!(field(&cloud)["json_schema"], expect);
}

/// SPEC 7.2: a list stays a list where a grammar is made of it, and is told in words where only objects are taken.
#[test]
fn structured_output_of_other_things_than_objects() {
    let list = json!({"type": "array", "items": {"type": "integer"}});
    let near = body_without_tools(&profile(), &list);
    assert_eq!(near["response_format"]["json_schema"]["schema"], list);
    for url in ["https://models.example.com/v1", "https://api.openai.com/v1"] {
        check_words(&body_without_tools(&ModelProfile::openai_chat(url, "m"), &list), &list);
    }
}

/// SPEC 7.2: OpenAI's own strict mode, where the schema is as it wants it.
#[test]
fn structured_output_is_strict() {
    let strict = |schema: Value| {
        let openai = ModelProfile::openai_chat("https://api.openai.com/v1", "m");
        body_without_tools(&openai, &schema)["response_format"]["json_schema"]["strict"].clone()
    };
    let closed = json!({"type": "object", "properties": {"a": {"type": "null"}}, "required": ["a"],
        "additionalProperties": false});
    assert_eq!(strict(closed), true);
    assert_eq!(strict(json!({"type": "object"})), false);
}

/// SPEC 7.5: standing instructions where a template knows no system role, or another one.
#[test]
fn system_roles() {
    let with = |system_role| ModelProfile {
        system_role,
        ..profile()
    };
    let developer = encode(&with(SystemRole::Developer), &[user("a")], &[]);
    assert_eq!(
        developer["messages"][0],
        json!({"role": "developer", "content": "Be brief."})
    );
    let first = encode(&with(SystemRole::User), &[user("a"), assistant("b", &[])], &[]);
    let expect = json!([
        {"role": "user", "content": "Be brief.\n\na"},
        {"role": "assistant", "content": "b"},
    ]);
    assert_eq!(Value::from(&first["messages"].as_array().unwrap()[..2]), expect);
}

/// SPEC 7.5: where a template demands it, the assistant speaks between a result and the user, and the user begins.
#[test]
fn strict_alternation() {
    let strict = ModelProfile {
        alternation: Alternation::Strict,
        ..profile()
    };
    let messages = [
        assistant("", &[(1, "", "{}"), (2, "", "{}")]),
        result(1, "one"),
        result(2, "two"),
        user("stop"),
        user("now"),
    ];
    let body = encode(&strict, &messages, &[]);
    let roles: Vec<&str> = body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    let expect = ["system", "user", "assistant", "tool", "tool", "assistant", "user"];
    assert_eq!(roles, expect);
    assert!(!body["messages"][5]["content"].as_str().unwrap().is_empty());
    let joined = encode(&profile(), &messages, &[]);
    assert_eq!(joined["messages"].as_array().unwrap().len(), 5);
}

/// SPEC 7.5: an endpoint without tools is told of earlier calls and results in words.
#[test]
fn no_tools() {
    let none = ModelProfile {
        tools: Support::No,
        ..profile()
    };
    let messages = [user("a"), assistant("", &[(1, "x", "{\"p\":1}")]), result(1, "one")];
    let expect = json!([
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "[call: srv.read]\n{\"p\":1}"},
        {"role": "user", "content": "[tool: srv.read]\none"},
    ]);
    check(&none, &messages, expect);
}

/// SPEC 6.5: a model that takes no images is told that there was one.
#[test]
fn no_images() {
    let none = ModelProfile {
        images: Support::No,
        ..profile()
    };
    let image = Message::User {
        parts: vec![
            Part::text("what"),
            Part::Image {
                media_type: "image/png".to_owned(),
                data: "iVBORw0KGgo=".to_owned(),
            },
        ],
    };
    let expect = json!([
        {"role": "user", "content": "what\n\n[image left out: this model does not take image/png]"},
    ]);
    check(&none, &[image], expect);
}
