//! Requests: what OpenAI's reference asks for and llama.cpp takes.

use super::*;
use aish_core::id::CallId;
use aish_core::message::{Message, MessageCall, ToolChoice, ToolSpec};
use aish_provider::profile::{
    Alternation, CallsPerReply, Format, ProviderTool, Reasoning, Support, SystemRole, ToolRole, WireCallIds,
};
use aish_provider::{ModelProfile, Request};
use serde_json::json;

/// The configured name of the model that is asked.
const ASKED: &str = "cloud";

fn local() -> ModelProfile {
    ModelProfile::new(Format::OpenaiResponses, "http://127.0.0.1:8080/v1", "m")
}

fn openai(model: &str) -> ModelProfile {
    ModelProfile::new(Format::OpenaiResponses, "https://api.openai.com/v1", model)
}

fn user(text: &str) -> Message {
    Message::User {
        parts: vec![Part::text(text)],
    }
}

fn assistant(parts: Vec<Part>, calls: Vec<MessageCall>) -> Message {
    Message::Assistant {
        parts,
        calls,
        model: Some(ASKED.to_owned()),
    }
}

fn call(n: usize, provider_id: &str, arguments: &str) -> MessageCall {
    MessageCall {
        id: CallId::nth(1, n),
        provider_id: (!provider_id.is_empty()).then(|| provider_id.to_owned()),
        name: "srv.read".to_owned(),
        arguments: arguments.to_owned(),
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

fn place(index: usize) -> Part {
    Part::Call { index, signature: None }
}

fn own(block: Value) -> Part {
    Part::Provider {
        format: "openai-responses".to_owned(),
        block,
    }
}

fn tool() -> ToolSpec {
    ToolSpec {
        name: "srv.read".to_owned(),
        description: "reads".to_owned(),
        input_schema: json!({"type": "object", "properties": {"p": {"type": "string"}}}),
    }
}

fn ask<'a>(messages: &'a [Message], tools: &'a [ToolSpec]) -> Request<'a> {
    Request {
        model: ASKED,
        system: "Be brief.",
        messages,
        tools,
        tool_choice: ToolChoice::Auto,
        max_output_tokens: None,
        schema: None,
    }
}

fn encode(profile: &ModelProfile, request: Request<'_>) -> Value {
    serde_json::from_slice(&OpenaiResponses.encode(request, profile).unwrap().body).unwrap()
}

fn wire_user(text: &str) -> Value {
    json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
}

fn wire_text(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": []})
}

fn wire_said(at: usize, texts: &[&str]) -> Value {
    json!({"type": "message", "role": "assistant", "id": format!("msg_{at}"), "status": "completed",
        "content": texts.iter().map(|text| wire_text(text)).collect::<Vec<_>>()})
}

fn wire_call(id: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "call_id": id, "name": "srv__read", "arguments": arguments})
}

fn wire_result(id: &str, output: &str) -> Value {
    json!({"type": "function_call_output", "call_id": id, "output": output})
}

/// Asserts what a conversation becomes.
#[track_caller]
fn check(profile: &ModelProfile, messages: &[Message], expect: Value) {
    assert_eq!(encode(profile, ask(messages, &[]))["input"], expect);
}

/// SPEC 7.2, 6.7: the least a request says. Nothing is stored at the provider.
#[test]
fn fields_that_are_left_out() {
    let body = encode(&local(), ask(&[user("hi")], &[]));
    let expect = json!({"model": "m", "instructions": "Be brief.", "input": [wire_user("hi")], "store": false,
        "stream": true});
    assert_eq!(body, expect);
    let encoded = OpenaiResponses.encode(ask(&[user("hi")], &[]), &local()).unwrap();
    assert_eq!(encoded.path, "/responses");
    let key = OpenaiResponses.key_header();
    assert_eq!((key.name, key.prefix), ("authorization", "Bearer "));
}

/// SPEC 7.2: what the profile says is sent.
#[test]
fn fields_of_the_profile() {
    let profile = ModelProfile {
        temperature: Some(0.5),
        max_output_tokens: Some(9),
        calls: CallsPerReply::One,
        streaming: Support::No,
        reasoning: Some(Reasoning::High),
        provider_tools: vec![ProviderTool::WebSearch],
        ..local()
    };
    let (messages, tools) = ([user("hi")], [tool()]);
    let request = Request {
        tool_choice: ToolChoice::None,
        ..ask(&messages, &tools)
    };
    let body = encode(&profile, request);
    let expect = json!({"model": "m", "instructions": "Be brief.", "input": [wire_user("hi")], "store": false,
        "stream": false, "temperature": 0.5, "max_output_tokens": 9, "parallel_tool_calls": false, "tool_choice": "none",
        "tools": [
            {"type": "function", "name": "srv__read", "description": "reads", "strict": false,
                "parameters": tools[0].input_schema},
            {"type": "web_search"},
        ],
        "reasoning": {"effort": "high", "summary": "auto"}, "include": ["reasoning.encrypted_content"]});
    assert_eq!(body, expect);
    let silent = ModelProfile {
        parallel_field: Support::No,
        tools: Support::No,
        ..profile
    };
    let body = encode(&silent, request);
    for field in ["parallel_tool_calls", "tools", "tool_choice"] {
        assert_eq!(body.get(field), None, "{field}");
    }
}

/// SPEC 7.2: at OpenAI, encrypted reasoning is asked of those models only that do not refuse the request for it, and no
/// fewer tokens than it takes.
#[test]
fn what_openai_insists_on() {
    let request = Request {
        max_output_tokens: Some(1),
        ..ask(&[], &[])
    };
    let body = encode(&openai("gpt-5"), request);
    assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));
    assert_eq!(body["max_output_tokens"], 16);
    assert_eq!(body.get("reasoning"), None);
    // https://github.com/pydantic/pydantic-ai/issues/2865
    assert_eq!(encode(&openai("gpt-4o"), request).get("include"), None);
    // What an account or a model refuses of it is left out alone.
    let mut unverified = openai("gpt-5");
    (unverified.reasoning, unverified.reasoning_summary) = (Some(Reasoning::High), Support::No);
    let body = encode(&unverified, request);
    assert_eq!(body["reasoning"], json!({"effort": "high"}));
    assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));
    unverified.encrypted_reasoning = Support::No;
    assert_eq!(encode(&unverified, request).get("include"), None);
    let off = ModelProfile {
        reasoning: Some(Reasoning::Off),
        ..openai("gpt-5.1")
    };
    assert_eq!(encode(&off, request)["reasoning"], json!({"effort": "none"}));
}

/// SPEC 7.2: structured output, strict where the schema allows it, in words where the endpoint has no field for it.
#[test]
fn structured_output() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"],
        "additionalProperties": false});
    let request = Request {
        schema: Some(&schema),
        ..ask(&[], &[])
    };
    let format = json!({"type": "json_schema", "name": "reply", "schema": schema, "strict": true});
    assert_eq!(encode(&local(), request)["text"], json!({"format": format}));
    let open = json!({"type": "object"});
    let request = Request {
        schema: Some(&open),
        ..request
    };
    assert_eq!(encode(&local(), request)["text"]["format"]["strict"], false);
    let words = ModelProfile {
        structured_output: Support::No,
        ..local()
    };
    let body = encode(&words, request);
    assert_eq!(body.get("text"), None);
    let instructions = body["instructions"].as_str().unwrap();
    assert!(instructions.starts_with("Be brief.\n\n") && instructions.contains(r#"{"type":"object"}"#));
}

/// SPEC 7.2: llama.cpp ignores the field in this format, so that a server nearby is told in words as well; beside tools in words
/// only, because others would hold every call to the grammar. What is no object is told OpenAI in words.
#[test]
fn structured_output_in_words() {
    let sent = |profile: &ModelProfile, schema: &Value, tools: &[ToolSpec]| {
        let request = Request {
            schema: Some(schema),
            ..ask(&[], tools)
        };
        let body = encode(profile, request);
        let is_told = body["instructions"].as_str().unwrap().contains(&schema.to_string());
        (body.get("text").is_some(), is_told)
    };
    let object = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let list = json!({"type": "array", "items": {"type": "string"}});
    let tools = [tool()];
    assert_eq!(sent(&local(), &object, &[]), (true, true));
    assert_eq!(sent(&local(), &object, &tools), (false, true));
    assert_eq!(sent(&openai("gpt-5"), &object, &tools), (true, false));
    assert_eq!(sent(&openai("gpt-5"), &list, &tools), (false, true));
}

/// SPEC 7.2, 7.5: standing instructions have a field, or are a message, or the beginning of the first question.
#[test]
fn system_roles() {
    let with = |system_role| ModelProfile { system_role, ..local() };
    let body = encode(&with(SystemRole::Developer), ask(&[user("hi")], &[]));
    let developer = json!({"type": "message", "role": "developer",
        "content": [{"type": "input_text", "text": "Be brief."}]});
    assert_eq!(
        (body.get("instructions"), &body["input"]),
        (None, &json!([developer, wire_user("hi")]))
    );
    let body = encode(&with(SystemRole::User), ask(&[user("hi")], &[]));
    assert_eq!(
        (body.get("instructions"), &body["input"]),
        (None, &json!([wire_user("Be brief.\n\nhi")]))
    );
}

/// SPEC 2.4, 3.8, 7.5: neighbours are one message, argument text is never empty, each result answers the one call before it.
#[test]
fn conversations() {
    let messages = [
        user("a"),
        user("b"),
        assistant(vec![Part::text("c")], Vec::new()),
        assistant(
            vec![Part::text("d")],
            vec![call(1, "call_0", ""), call(2, "call_0", "{\"p\":1}")],
        ),
        result(1, "one"),
        result(2, "two"),
        result(2, "again"),
        assistant(
            vec![Part::PartialCall {
                name: "x".to_owned(),
                arguments: "{".to_owned(),
            }],
            Vec::new(),
        ),
        user("e"),
    ];
    let expect = json!([
        wire_user("a\n\nb"),
        wire_said(1, &["c", "d"]),
        wire_call("call_0", "{}"),
        wire_call("call_1_2", "{\"p\":1}"),
        wire_result("call_0", "one"),
        wire_result("call_1_2", "two"),
        wire_user("[tool: srv.read]\nagain\n\ne"),
    ]);
    check(&local(), &messages, expect);
}

/// SPEC 7.2: a reply's items in the order they had: reasoning, searches, texts and calls.
#[test]
fn replies_in_order() {
    let reasoning =
        json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAA=", "status": "completed"});
    let sent = json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAA="});
    let search = json!({"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"query": "q"}});
    let parts = vec![
        Part::thinking("a summary"),
        own(reasoning.clone()),
        own(search.clone()),
        Part::text("I look."),
        place(1),
        place(7),
        place(1),
        Part::text("Meanwhile."),
    ];
    let calls = vec![call(1, "", "{}"), call(2, "", "{}")];
    let messages = [
        user("a"),
        assistant(parts, calls),
        result(1, "one"),
        result(2, "two"),
        // Reasoning that led to nothing.
        assistant(vec![Part::text("b"), own(reasoning.clone())], Vec::new()),
        user("c"),
        assistant(vec![own(reasoning)], Vec::new()),
        user("d"),
    ];
    let expect = json!([
        wire_user("a"),
        sent,
        search,
        wire_said(3, &["I look."]),
        wire_call("call_1_2", "{}"),
        wire_said(5, &["Meanwhile."]),
        wire_call("call_1_1", "{}"),
        wire_result("call_1_1", "one"),
        wire_result("call_1_2", "two"),
        wire_said(9, &["b"]),
        wire_user("c\n\nd"),
    ]);
    check(&local(), &messages, expect);
}

/// SPEC 7.2: what the provider could not find again, or would wait for an answer to, is not sent.
#[test]
fn items_that_are_not_sent() {
    let blocks = [
        json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": null}),
        json!({"type": "custom_tool_call", "id": "ct_1", "call_id": "c", "name": "x", "input": ""}),
        json!({"id": "no type"}),
        json!(7),
    ];
    let parts = blocks.into_iter().map(own).chain([Part::text("b")]).collect();
    let messages = [user("a"), assistant(parts, Vec::new()), user("c")];
    check(
        &local(),
        &messages,
        json!([wire_user("a"), wire_said(1, &["b"]), wire_user("c")]),
    );
}

/// SPEC 7.2, 7.4: what was decoded goes back as it was: encrypted reasoning byte for byte, readable reasoning of an open
/// model under its id, each right before what it led to.
#[test]
fn replies_go_back_as_they_came() {
    let encrypted = json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "gAAAA+/=", "content": [],
        "summary": [{"type": "summary_text", "text": "**Plan**"}]});
    let readable = json!({"type": "reasoning", "id": "rs_2", "summary": [],
        "content": [{"type": "reasoning_text", "text": "hm"}]});
    let called = json!({"type": "function_call", "call_id": "call_1", "name": "srv__read", "arguments": "{\"p\":1}"});
    for reasoning in [encrypted, readable] {
        let output = json!([reasoning, wire_said(2, &["I look."]), called]);
        let reply = decode_body(&json!({"status": "completed", "output": output}).to_string());
        let calls = vec![call(
            1,
            reply.calls[0].provider_id.as_deref().unwrap(),
            &reply.calls[0].arguments,
        )];
        let messages = [user("a"), assistant(reply.parts, calls), result(1, "one")];
        let input = encode(&local(), ask(&messages, &[]))["input"].take();
        assert_eq!(input.as_array().unwrap()[1..4], output.as_array().unwrap()[..]);
    }
}

/// SPEC 7.2: to another model, what was thought and searched is text.
#[test]
fn handed_over() {
    let reasoning = json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAA="});
    let messages = [
        user("a"),
        Message::Assistant {
            parts: vec![own(reasoning), Part::text("b")],
            calls: Vec::new(),
            model: Some("another".to_owned()),
        },
        user("c"),
    ];
    check(
        &local(),
        &messages,
        json!([wire_user("a"), wire_said(1, &["b"]), wire_user("c")]),
    );
}

/// SPEC 7.5: without a tool role, results are text of the user's and calls text of the model's.
#[test]
fn tool_role_as_text() {
    let messages = [
        user("a"),
        assistant(vec![Part::text("I look.")], vec![call(1, "x", "{\"p\":1}")]),
        result(1, "one"),
        user("b"),
    ];
    let expect = json!([
        wire_user("a"),
        wire_said(1, &["I look.", "[call: srv.read]\n{\"p\":1}"]),
        wire_user("[tool: srv.read]\none\n\nb"),
    ]);
    let text = ModelProfile {
        tool_role: ToolRole::Text,
        ..local()
    };
    let none = ModelProfile {
        tools: Support::No,
        ..local()
    };
    check(&text, &messages, expect.clone());
    check(&none, &messages, expect);
}

/// SPEC 7.5: strict alternation and ids of nine letters and digits.
#[test]
fn strict_templates() {
    let strict = ModelProfile {
        alternation: Alternation::Strict,
        wire_call_ids: WireCallIds::NineCharacters,
        ..local()
    };
    let messages = [
        user("a"),
        assistant(Vec::new(), vec![call(1, "x", "{}")]),
        result(1, "one"),
        user("b"),
    ];
    let input = encode(&strict, ask(&messages, &[]))["input"].take();
    let roles: Vec<&str> = input
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["role"].as_str().or(item["type"].as_str()).unwrap())
        .collect();
    assert_eq!(
        roles,
        ["user", "function_call", "function_call_output", "assistant", "user"]
    );
    assert_eq!(input[1]["call_id"].as_str().unwrap().len(), 9);
    assert_eq!(input[1]["call_id"], input[2]["call_id"]);
}

/// SPEC 6.5, 8.3: context stands before the question under its label, images after it, or words for them.
#[test]
fn context_and_images() {
    let messages = [Message::User {
        parts: vec![
            Part::Image {
                media_type: "image/png".to_owned(),
                data: "iVBORw0KGgo=".to_owned(),
            },
            Part::text("What?"),
            Part::Context {
                label: "stdin".to_owned(),
                text: "line\n".to_owned(),
            },
        ],
    }];
    let text = "<context label=\"stdin\">\nline\n</context>\n\nWhat?";
    let image = json!({"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,iVBORw0KGgo="});
    let expect = json!([{"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}, image]}]);
    check(&local(), &messages, expect);
    let blind = ModelProfile {
        images: Support::No,
        ..local()
    };
    let input = encode(&blind, ask(&messages, &[]))["input"].take();
    let said = input[0]["content"][0]["text"].as_str().unwrap();
    assert!(said.starts_with(text) && said.contains("image/png"), "{said}");
    assert_eq!(input[0]["content"].as_array().unwrap().len(), 1);
}
