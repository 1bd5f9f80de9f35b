//! Anthropic's Messages.

use super::*;

/// What a call's id is named where it is answered.
const ANSWERED_ID: &str = concat!("tool_", "use_id");

fn result(id: &str) -> Value {
    json!({"type": "tool_result", ANSWERED_ID: id, "content": "x", "is_error": false})
}

fn question(text: &str) -> Value {
    json!({"role": "user", "content": [{"type": "text", "text": text}]})
}

/// A turn under way, with thinking on.
fn good() -> Value {
    json!({
        "model": "m",
        "max_tokens": 4096,
        "stream": true,
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "system": [{"type": "text", "text": "be brief", "cache_control": {"type": "ephemeral"}}],
        "tools": [
            {"name": "glob", "description": "d", "input_schema": {"type": "object"}, "cache_control": {"type": "ephemeral"}},
            {"type": "web_search_20250305", "name": "web_search"},
        ],
        "tool_choice": {"type": "auto"},
        "messages": [
            {"role": "user", "content": [
                {"type": "text", "text": "a"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}},
            ]},
            {"role": "assistant", "content": [
                {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
                {"type": "web_search_tool_result", ANSWERED_ID: "srvtoolu_1", "content": []},
                {"type": "text", "text": "b"},
            ]},
            question("c"),
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "xyz"},
                {"type": "tool_use", "id": "toolu_1", "name": "glob", "input": {}},
                {"type": "tool_use", "id": "toolu_2", "name": "glob", "input": {}},
            ]},
            {"role": "user", "content": [
                result("toolu_1"), result("toolu_2"), {"type": "text", "text": "and", "cache_control": {"type": "ephemeral"}},
            ]},
        ],
    })
}

/// SPEC 7.2: what Anthropic refuses of the fields of a request.
#[test]
fn fields_of_a_request() {
    takes(
        Api::Anthropic,
        &json!({"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "hello"}]}),
    );
    refuses(
        Api::Anthropic,
        &good(),
        &[
            (|b| remove(b, "", "model"), "model"),
            (|b| remove(b, "", "max_tokens"), "max_tokens"),
            (
                |b| b["max_tokens"] = json!(1024),
                "greater than `thinking.budget_tokens`",
            ),
            (
                |b| b["thinking"]["budget_tokens"] = json!(1023),
                "greater than or equal to 1024",
            ),
            (|b| b["temperature"] = json!(0.2), "temperature"),
            (|b| b["tool_choice"] = json!({"type": "any"}), "forces tool use"),
            (|b| b["tool_choice"] = json!("none"), "tool_choice"),
            (|b| b["parallel_tool_calls"] = json!(true), "parallel_tool_calls"),
            (|b| b["tools"] = json!([]), "empty array"),
            (|b| remove(b, "", "tools"), "tool_choice"),
            (
                |b| {
                    remove(b, "", "tools");
                    remove(b, "", "tool_choice");
                },
                "must define tools",
            ),
            (|b| set(b, "/tools/0/name", json!("a.b")), "does not match pattern"),
            (|b| set(b, "/tools/0/name", json!("web_search")), "unique"),
            (
                |b| set(b, "/tools/0/input_schema", json!({})),
                "must be a JSON Schema of",
            ),
            (|b| set(b, "/tools/1/type", json!("function")), "expected tags"),
            (|b| b["system"] = json!(""), "non-empty"),
            (|b| set(b, "/system/0/text", json!(" ")), "non-empty"),
            (
                |b| {
                    let mark = json!({"type": "ephemeral"});
                    set(b, "/messages/0/content/0/cache_control", mark.clone());
                    set(b, "/messages/2/content/0/cache_control", mark);
                },
                "Found 5",
            ),
            (
                |b| set(b, "/messages/3/content/0/cache_control", json!({})),
                "Extra inputs",
            ),
        ],
    );
    let without = check(Api::Anthropic, "/v1/messages", [], &good()).unwrap_err();
    assert!(without.message.contains("anthropic-version"));
    assert!(
        check(
            Api::Anthropic,
            "/messages",
            [("anthropic-version", "2023-06-01")],
            &good()
        )
        .is_err()
    );
}

/// SPEC 2.7, 3.7: who speaks when, and which results answer which calls.
#[test]
fn turns() {
    refuses(
        Api::Anthropic,
        &good(),
        &[
            (|b| b["messages"] = json!([]), "at least one message"),
            (|b| remove(b, "/messages", "0"), "alternate"),
            (|b| insert(b, "/messages", 1, question("b")), "alternate"),
            (|b| remove(b, "/messages", "4"), "prefill"),
            (|b| set(b, "/messages/0/content", json!([])), "non-empty content"),
            (|b| set(b, "/messages/0/content", json!("")), "non-empty content"),
            (|b| set(b, "/messages/0/content/0/text", json!(" \n")), "non-whitespace"),
            (
                |b| set(b, "/messages/0/content/1/source/media_type", json!("image/tiff")),
                "media_type",
            ),
            (|b| set(b, "/messages/0/content/1/source/data", json!("")), "empty"),
            (
                |b| push(b, "/messages/1/content", b["messages"][0]["content"][1].clone()),
                "not allowed in 'assistant'",
            ),
            (
                |b| push(b, "/messages/0/content", b["messages"][3]["content"][0].clone()),
                "not allowed in 'user'",
            ),
            (
                |b| remove(b, "/messages/4/content", "0"),
                "without `tool_result` blocks immediately after",
            ),
            (|b| push(b, "/messages/4/content", result("toolu_9")), "unexpected"),
            (|b| push(b, "/messages/2/content", result("toolu_1")), "unexpected"),
            (
                |b| push(b, "/messages/4/content", result("toolu_2")),
                "without `tool_result` blocks",
            ),
            (
                |b| insert(b, "/messages/4/content", 0, json!({"type": "text", "text": "x"})),
                "without `tool_result` blocks",
            ),
            (
                |b| b["messages"][4]["content"].as_array_mut().unwrap().swap(0, 1),
                "without `tool_result` blocks",
            ),
            (
                |b| set(b, "/messages/3/content/1/id", json!("call 1")),
                "should match pattern",
            ),
            (|b| set(b, "/messages/3/content/2/id", json!("toolu_1")), "unique"),
            (
                |b| set(b, "/messages/3/content/1/input", json!("{}")),
                "valid dictionary",
            ),
            (
                |b| set(b, "/messages/3/content/1/name", json!("a.b")),
                "does not match pattern",
            ),
            (|b| set(b, "/messages/4/content/0/content", json!({})), "valid string"),
            (
                |b| {
                    set(
                        b,
                        "/messages/4/content/0/content",
                        json!([{"type": "text", "text": ""}]),
                    )
                },
                "non-empty",
            ),
        ],
    );
}

/// SPEC 7.6: thinking goes back signed and first, a provider's call with its result, and a paused reply as it was.
#[test]
fn signed_and_paused() {
    refuses(
        Api::Anthropic,
        &good(),
        &[
            (
                |b| remove(b, "/messages/3/content/0", "signature"),
                "signature: Field required",
            ),
            (
                |b| remove(b, "/messages/3/content/0", "thinking"),
                "thinking: Field required",
            ),
            (|b| remove(b, "/messages/3/content", "0"), "Expected `thinking`"),
            (
                |b| b["messages"][3]["content"].as_array_mut().unwrap().swap(0, 1),
                "Expected `thinking`",
            ),
            (
                |b| remove(b, "/messages/1/content", "1"),
                "without a corresponding result",
            ),
            (|b| remove(b, "/messages/1/content", "0"), "without its call"),
        ],
    );
    let mut without_thinking = good();
    remove(&mut without_thinking, "", "thinking");
    remove(&mut without_thinking, "/messages/3/content", "0");
    takes(Api::Anthropic, &without_thinking);
    let paused = json!({
        "model": "m",
        "max_tokens": 9,
        "tools": [{"type": "web_search_20250305", "name": "web_search"}],
        "messages": [question("a"), {"role": "assistant", "content": [
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
        ]}],
    });
    refuses(
        Api::Anthropic,
        &paused,
        &[
            (
                |b| push(b, "/messages/1/content", json!({"type": "text", "text": "hm "})),
                "trailing whitespace",
            ),
            (
                |b| set(b, "/messages/1/content/0", json!({"type": "text", "text": "hm"})),
                "prefill",
            ),
            (
                |b| {
                    push(
                        b,
                        "/messages/1/content",
                        json!({"type": "tool_use", "id": "t", "name": "glob", "input": {}}),
                    )
                },
                "without `tool_result` blocks",
            ),
        ],
    );
}

/// SPEC 7.2: structured output compiles the schema: objects are closed, values have no bounds.
#[test]
fn structured_output() {
    let closed = json!({
        "model": "m",
        "max_tokens": 9,
        "messages": [question("a")],
        "output_config": {"format": {"type": "json_schema", "schema": {"type": "object", "additionalProperties": false,
            "properties": {"a": {"type": "array", "items": {"type": "integer"}}}}}},
    });
    takes(Api::Anthropic, &closed);
    refuses(
        Api::Anthropic,
        &closed,
        &[
            (
                |b| remove(b, "/output_config/format/schema", "additionalProperties"),
                "'additionalProperties' must be explicitly set to false",
            ),
            (
                |b| set(b, "/output_config/format/schema/properties/a/items/minimum", json!(1)),
                "'minimum' is not supported",
            ),
        ],
    );
}
