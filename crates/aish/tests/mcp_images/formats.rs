//! A model of each wire format that calls one tool and then says something, as its server streams it.

use super::support::reply::Reply;
use super::support::wire::Received;
use aish_provider::profile::Format;
use aish_provider::strict::{Api, check};
use serde_json::{Value, json};

/// What the model says once it has the result.
pub const LAST_WORDS: &str = "a logo";

/// Answers a request of that format: with a call of `tool` (its name on the wire) until there is a result. What the real server
/// would refuse is refused.
pub fn answer(format: Format, tool: &'static str, request: &Received) -> Reply {
    if request.method != "POST" {
        return Reply::error(404, "no such page");
    }
    let path = request.path.trim_start_matches("/v1/").trim_start_matches('/');
    let (api, path) = match format {
        Format::OpenaiChat => (Api::OpenaiChat, format!("/{path}")),
        Format::OpenaiResponses => (Api::OpenaiResponses, format!("/{path}")),
        Format::Anthropic => (Api::Anthropic, format!("/v1/{path}")),
        Format::Gemini => (Api::Gemini, format!("/{path}")),
    };
    let headers = request
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    if let Err(refusal) = check(api, &path, headers, &request.json) {
        return Reply::json(refusal.status, &refusal.body);
    }
    let has_result = ["\"tool\"", "function_call_output", "tool_result", "functionResponse"]
        .iter()
        .any(|mark| String::from_utf8_lossy(&request.body).contains(mark));
    match (format, has_result) {
        (Format::OpenaiChat, false) => Reply::call("c1", tool, json!({})),
        (Format::OpenaiChat, true) => Reply::text(LAST_WORDS),
        (Format::OpenaiResponses, _) => responses(if has_result { None } else { Some(tool) }),
        (Format::Anthropic, _) => anthropic(if has_result { None } else { Some(tool) }),
        (Format::Gemini, _) => gemini(if has_result { None } else { Some(tool) }),
    }
}

fn events(events: &[Value]) -> Reply {
    let stream = Reply::bare_stream();
    events.iter().fold(stream, |stream, event| stream.event(event))
}

fn responses(call: Option<&str>) -> Reply {
    let item = match call {
        Some(name) => {
            json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": name, "arguments": "{}",
            "status": "completed"})
        }
        None => json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": LAST_WORDS, "annotations": []}]}),
    };
    let response =
        |status: &str, output: Value| json!({"id": "resp_1", "status": status, "output": output, "model": "fake"});
    events(&[
        json!({"type": "response.created", "response": response("in_progress", json!([]))}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": response("completed", json!([item]))}),
    ])
}

fn anthropic(call: Option<&str>) -> Reply {
    let (block, delta, stop) = match call {
        Some(name) => (
            json!({"type": "tool_use", "id": "toolu_1", "name": name, "input": {}}),
            json!({"type": "input_json_delta", "partial_json": "{}"}),
            "tool_use",
        ),
        None => (
            json!({"type": "text", "text": ""}),
            json!({"type": "text_delta", "text": LAST_WORDS}),
            "end_turn",
        ),
    };
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "fake", "content": [],
        "usage": {"input_tokens": 1, "output_tokens": 1}});
    events(&[
        json!({"type": "message_start", "message": message}),
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 5}}),
        json!({"type": "message_stop"}),
    ])
}

fn gemini(call: Option<&str>) -> Reply {
    let part = match call {
        Some(name) => json!({"functionCall": {"name": name, "args": {}}, "thoughtSignature": "c2lnbmVk"}),
        None => json!({"text": LAST_WORDS}),
    };
    let content = json!({"role": "model", "parts": [part]});
    events(&[json!({"candidates": [{"index": 0, "content": content, "finishReason": "STOP"}]})])
}
