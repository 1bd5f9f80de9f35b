//! OpenAI's Responses.

use super::*;

fn good() -> Value {
    let parameters = json!({
        "type": "object", "properties": {"n": {"type": "string"}}, "required": ["n"], "additionalProperties": false,
    });
    json!({
        "model": "m",
        "instructions": "be brief",
        "store": false,
        "stream": true,
        "include": ["reasoning.encrypted_content"],
        "max_output_tokens": 16,
        "tools": [
            {"type": "function", "name": "glob", "description": "d", "parameters": parameters, "strict": true},
            {"type": "web_search"},
        ],
        "tool_choice": "auto",
        "text": {"format": {"type": "json_schema", "name": "reply", "schema": {"type": "object"}}},
        "input": [
            {"role": "user", "content": [
                {"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": "data:image/png;base64,AA"},
            ]},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "xyz"},
            {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "glob", "arguments": "{}"},
            {"type": "function_call", "call_id": "call_2", "name": "glob", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "call_1", "output": "x"},
            {"type": "function_call_output", "call_id": "call_2", "output": ""},
            {"type": "web_search_call", "id": "ws_1", "status": "completed"},
            {"type": "message", "role": "assistant", "id": "msg_1", "content": [{"type": "output_text", "text": "b"}]},
            {"role": "user", "content": "c"},
        ],
    })
}

/// SPEC 7.2: what Responses refuses.
#[test]
fn responses() {
    takes(Api::OpenaiResponses, &json!({"model": "m", "input": "hello"}));
    refuses(
        Api::OpenaiResponses,
        &good(),
        &[
            (|b| remove(b, "", "model"), "model"),
            (
                |b| b["messages"] = json!([]),
                "Unrecognized request argument supplied: messages",
            ),
            (|b| b["input"] = json!([]), "'input'"),
            (|b| b["max_output_tokens"] = json!(15), "below minimum"),
            (|b| b["tools"] = json!([]), "empty array"),
            (|b| remove(b, "", "tools"), "only allowed when 'tools' are specified"),
            (|b| set(b, "/tools/0/name", json!("a.b")), "does not match pattern"),
            (|b| set(b, "/tools/1", b["tools"][0].clone()), "unique"),
            (|b| set(b, "/tools/1/type", json!("search")), "tools[1].type"),
            (|b| remove(b, "/tools/0/parameters", "type"), "must be a JSON Schema of"),
            (
                |b| set(b, "/tools/0/parameters/required", json!([])),
                "'required' is required",
            ),
            (|b| remove(b, "/text/format", "name"), "text.format.name"),
            (|b| remove(b, "/text/format", "schema"), "text.format.schema"),
            (|b| set(b, "/text/format/strict", json!(true)), "'additionalProperties'"),
            (
                |b| remove(b, "/input", "2"),
                "No tool call found for function call output with call_id call_1",
            ),
            (
                |b| remove(b, "/input", "4"),
                "No tool output found for function call call_1",
            ),
            (|b| set(b, "/input/5/call_id", json!("call_1")), "No tool call found"),
            (|b| set(b, "/input/3/call_id", json!("call_1")), "unique"),
            (|b| set(b, "/input/2/call_id", json!("x".repeat(65))), "string too long"),
            (|b| set(b, "/input/2/name", json!("a.b")), "does not match pattern"),
            (|b| set(b, "/input/2/arguments", json!("{")), "Failed to parse"),
            (|b| set(b, "/input/2/id", json!("call_1")), "begins with 'fc'"),
            (|b| set(b, "/input/1/id", json!("fc_2")), "begins with 'rs'"),
            (|b| set(b, "/input/7/id", json!("rs_9")), "begins with 'msg'"),
            (|b| push(b, "/input", b["input"][6].clone()), "must be unique"),
            (|b| remove(b, "/input/5", "output"), "input[5].output"),
            (|b| remove(b, "/input/1", "summary"), "input[1].summary"),
            (|b| remove(b, "/input/1", "encrypted_content"), "not found"),
            (
                |b| {
                    push(
                        b,
                        "/input",
                        json!({"type": "reasoning", "summary": [], "encrypted_content": "x"}),
                    )
                },
                "following item",
            ),
            (
                |b| insert(b, "/input", 2, json!({"role": "user", "content": "wait"})),
                "without its required following item",
            ),
            (|b| remove(b, "/input/6", "id"), "input[6].id"),
            (|b| set(b, "/input/6/type", json!("item_reference_x")), "input[6].type"),
            (|b| set(b, "/input/0/content", json!([])), "empty"),
            (|b| set(b, "/input/8/content", json!("")), "empty"),
            (|b| set(b, "/input/0/content/0/text", json!("")), "content[0].text"),
            (|b| set(b, "/input/0/content/1/image_url", json!("AA")), "image_url"),
            (
                |b| set(b, "/input/7/content/0/type", json!("input_text")),
                "Supported values are: 'output_text'",
            ),
            (|b| set(b, "/input/0/role", json!("tool")), "input[0].role"),
        ],
    );
}
