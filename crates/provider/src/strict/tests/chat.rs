//! Chat completions, and the templates behind them.

use super::*;

fn call(id: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "glob", "arguments": "{\"pattern\":\"*\"}"}})
}

fn result(id: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": "a.rs"})
}

fn tool(name: &str) -> Value {
    let parameters = json!({
        "type": "object", "properties": {"pattern": {"type": "string"}}, "required": ["pattern"], "additionalProperties": false,
    });
    json!({"type": "function", "function": {"name": name, "description": "d", "parameters": parameters}})
}

/// A request that everybody takes.
fn good() -> Value {
    json!({
        "model": "m",
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "which files?"},
            {"role": "assistant", "content": "", "tool_calls": [call("abcdefgh1"), call("abcdefgh2")]},
            result("abcdefgh1"),
            result("abcdefgh2"),
            {"role": "assistant", "content": "two"},
            {"role": "user", "content": "thanks"},
        ],
        "tools": [tool("glob"), tool("grep")],
        "tool_choice": "none",
        "stream": true,
        "stream_options": {"include_usage": true},
    })
}

/// A request without tools.
fn plain() -> Value {
    json!({"model": "m", "messages": [{"role": "user", "content": "hello"}]})
}

/// What every server of the format refuses.
const SHARED: &[(Break, &str)] = &[
    (|b| b["tools"] = json!([]), "empty array"),
    (|b| b["tools"] = json!({}), "expected an array"),
    (
        |b| set(b, "/tools/0/function/name", json!("git.status")),
        "does not match pattern",
    ),
    (
        |b| set(b, "/tools/0/function/name", json!("x".repeat(65))),
        "does not match pattern",
    ),
    (|b| set(b, "/tools/1/function/name", json!("glob")), "unique"),
    (|b| remove(b, "/tools/0/function", "name"), "tools[0].function.name"),
    (
        |b| set(b, "/tools/0/function/parameters/type", json!("array")),
        "must be a JSON Schema of",
    ),
    (|b| b["tool_choice"] = json!("never"), "tool_choice"),
    (|b| remove(b, "", "tools"), "only allowed when 'tools' are specified"),
    (|b| b["max_tokens"] = json!(0), "below minimum"),
    (|b| b["messages"] = json!([]), "too short"),
    (|b| set(b, "/messages/1/role", json!("function")), "Supported values"),
    (|b| set(b, "/messages/1/content", json!("")), "said nothing"),
    (|b| set(b, "/messages/1/content", json!([])), "empty array"),
    (
        |b| set(b, "/messages/1/content", json!([{"type": "text", "text": ""}])),
        "non-empty",
    ),
    (
        |b| set(b, "/messages/5/content", Value::Null),
        "expected a string, got null",
    ),
    (|b| set(b, "/messages/5/tool_calls", json!([])), "empty array"),
    (|b| remove(b, "/messages", "3"), "out of call order"),
    (
        |b| remove(b, "/messages", "4"),
        "did not have response messages: abcdefgh2",
    ),
    (
        |b| remove(b, "/messages", "2"),
        "must be a response to a preceeding message",
    ),
    (
        |b| insert(b, "/messages", 5, result("abcdefgh2")),
        "must be a response to a preceeding message",
    ),
    (
        |b| b["messages"].as_array_mut().unwrap().swap(3, 4),
        "out of call order",
    ),
    (
        |b| insert(b, "/messages", 3, json!({"role": "user", "content": "wait"})),
        "did not have response messages",
    ),
    (
        |b| set(b, "/messages/2/tool_calls/1/id", json!("abcdefgh1")),
        "must be unique",
    ),
    (
        |b| set(b, "/messages/2/tool_calls/0/id", json!("")),
        "Missing required parameter",
    ),
    (
        |b| set(b, "/messages/2/tool_calls/0/type", json!("custom")),
        "Supported values",
    ),
    (
        |b| set(b, "/messages/2/tool_calls/0/function/name", json!("a.b")),
        "does not match pattern",
    ),
    (
        |b| set(b, "/messages/2/tool_calls/0/function/arguments", json!("")),
        "Failed to parse tool call arguments",
    ),
    (
        |b| set(b, "/messages/2/tool_calls/0/function/arguments", json!("{no")),
        "Failed to parse tool call arguments",
    ),
    (
        |b| set(b, "/messages/2/tool_calls/0/function/arguments", json!("[]")),
        "of an object",
    ),
    (
        |b| set(b, "/messages/2/tool_calls/0/function/arguments", json!({})),
        "expected a string",
    ),
    (|b| b["response_format"] = json!({"type": "xml"}), "Supported values"),
    (
        |b| b["response_format"] = json!({"type": "json_schema", "json_schema": {"schema": {}}}),
        "json_schema.name",
    ),
    (
        |b| b["response_format"] = json!({"type": "json_schema", "json_schema": {"name": "a"}}),
        "json_schema.schema",
    ),
];

/// SPEC 3.7, 6.7: what all servers of chat completions refuse.
#[test]
fn shared_rules() {
    for api in [Api::OpenaiChat, Api::Template, Api::MistralTemplate, Api::LlamaCpp] {
        takes(api, &plain());
        refuses(api, &good(), SHARED);
    }
}

/// SPEC 7.4: what OpenAI's own API refuses besides.
#[test]
fn openai() {
    refuses(
        Api::OpenaiChat,
        &good(),
        &[
            (|b| remove(b, "", "model"), "model"),
            (
                |b| b["cache_prompt"] = json!(true),
                "Unrecognized request argument supplied: cache_prompt",
            ),
            (
                |b| set(b, "/messages/5/reasoning_content", json!("hm")),
                "reasoning_content",
            ),
            (|b| b["stream"] = json!(false), "stream_options"),
            (
                |b| {
                    b["max_tokens"] = json!(9);
                    b["max_completion_tokens"] = json!(9);
                },
                "at the same time",
            ),
            (
                |b| {
                    let id = "x".repeat(41);
                    set(b, "/messages/2/tool_calls/0/id", json!(id));
                    set(b, "/messages/3/tool_call_id", json!(id));
                },
                "string too long",
            ),
            (
                |b| {
                    set(b, "/tools/0/function/strict", json!(true));
                    remove(b, "/tools/0/function/parameters", "additionalProperties");
                },
                "'additionalProperties' is required",
            ),
            (
                |b| {
                    set(b, "/tools/0/function/strict", json!(true));
                    set(b, "/tools/0/function/parameters/required", json!([]));
                },
                "'required' is required",
            ),
        ],
    );
    let image = |url: &str| json!([{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": url}}]);
    let mut seeing = plain();
    seeing["messages"][0]["content"] = image("data:image/png;base64,AAAA");
    takes(Api::OpenaiChat, &seeing);
    seeing["messages"][0]["content"] = image("data:image/tiff;base64,AAAA");
    assert!(
        complaint(Api::OpenaiChat, &seeing)
            .unwrap()
            .contains("unsupported image")
    );
    let mut showing = good();
    showing["messages"][3]["content"] = image("data:image/png;base64,AAAA");
    assert!(complaint(Api::OpenaiChat, &showing).unwrap().contains("role 'tool'"));
}

/// SPEC 7.5: templates want roles to take turns, a system message only at the beginning, and nothing empty.
#[test]
fn templates() {
    let breaks: &[(Break, &str)] = &[
        (
            |b| push(b, "/messages", json!({"role": "user", "content": "more"})),
            "must alternate",
        ),
        (|b| remove(b, "/messages", "5"), "must alternate"),
        (|b| remove(b, "/messages", "1"), "must alternate"),
        (|b| remove(b, "/messages", "6"), "Expected last role User or Tool"),
        (
            |b| insert(b, "/messages", 2, json!({"role": "system", "content": "x"})),
            "must be at the beginning",
        ),
        (|b| set(b, "/messages/0/role", json!("developer")), "developer"),
        (
            |b| set(b, "/messages/5/content", json!(" ")),
            "either content or tool_calls",
        ),
    ];
    refuses(Api::Template, &good(), breaks);
    refuses(Api::MistralTemplate, &good(), breaks);
    let steered = json!({"model": "m", "messages": [
        {"role": "user", "content": "a"}, {"role": "assistant", "content": "", "tool_calls": [call("abcdefgh1")]},
        result("abcdefgh1"),
    ]});
    takes(Api::MistralTemplate, &steered);
    refuses(
        Api::MistralTemplate,
        &steered,
        &[
            (
                |b| push(b, "/messages", json!({"role": "user", "content": "b"})),
                "must alternate",
            ),
            (
                |b| {
                    set(b, "/messages/1/tool_calls/0/id", json!("call_1234"));
                    set(b, "/messages/2/tool_call_id", json!("call_1234"));
                },
                "with a length of 9",
            ),
            (
                |b| {
                    set(b, "/messages/1/tool_calls/0/id", json!("abcdefgh12"));
                    set(b, "/messages/2/tool_call_id", json!("abcdefgh12"));
                },
                "with a length of 9",
            ),
        ],
    );
}

/// SPEC 7.5: a template may know neither a system role nor tools.
#[test]
fn gemma() {
    let good = json!({"model": "m", "messages": [
        {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"},
    ]});
    refuses(
        Api::GemmaTemplate,
        &good,
        &[
            (
                |b| insert(b, "/messages", 0, json!({"role": "system", "content": "x"})),
                "System role not supported",
            ),
            (
                |b| {
                    set(b, "/messages/1/tool_calls", json!([call("1")]));
                    insert(b, "/messages", 2, result("1"));
                },
                "must alternate",
            ),
            (|b| remove(b, "/messages", "0"), "must alternate"),
        ],
    );
}

/// SPEC 3.8: llama.cpp parses argument text again and answers 500; it sees no images without a projector, and makes grammars of
/// schemas.
#[test]
fn llama_cpp() {
    let status = |body: &Value| check(Api::LlamaCpp, "/chat/completions", [], body).unwrap_err().status;
    let mut body = good();
    body["messages"][2]["tool_calls"][0]["function"]["arguments"] = json!("{no");
    assert_eq!(status(&body), 500);
    let mut body = plain();
    body["messages"][0]["content"] = json!([{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]);
    assert_eq!(status(&body), 500);
    assert!(
        complaint(Api::LlamaCpp, &body)
            .unwrap()
            .contains("image input is not supported")
    );
    let place = "/tools/0/function/parameters/properties/pattern";
    assert!(good().pointer(place).is_some());
    refuses(
        Api::LlamaCpp,
        &good(),
        &[
            (|b| remove(b, "/messages", "6"), "prefill"),
            (
                |b| {
                    set(
                        b,
                        "/tools/0/function/parameters/properties/pattern/pattern",
                        json!("a+"),
                    )
                },
                "must start with '^'",
            ),
            (
                |b| {
                    set(
                        b,
                        "/tools/0/function/parameters/properties/pattern/pattern",
                        json!("^(?!a)$"),
                    )
                },
                "Unsupported pattern syntax",
            ),
            (
                |b| {
                    set(
                        b,
                        "/tools/0/function/parameters/properties/pattern/$ref",
                        json!("https://x.example/s"),
                    )
                },
                "Unsupported ref",
            ),
        ],
    );
}
