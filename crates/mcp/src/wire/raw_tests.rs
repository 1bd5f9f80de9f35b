//! What a server said comes through the SDK as it was.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use rmcp::model::ServerJsonRpcMessage;

fn through_the_sdk(result: &Value) -> (ServerResult, Value) {
    let message = keep(json!({"jsonrpc": "2.0", "id": 1, "result": result}));
    let ServerJsonRpcMessage::Response(response) = serde_json::from_value(message).expect("a message") else {
        panic!("not a response: {result}");
    };
    (response.result.clone(), restore(response.result))
}

/// SPEC 6.5: whatever is in a result arrives as the server sent it, known to the SDK or not.
#[test]
fn results_arrive_whole() {
    let results = [
        json!({"content": [{"type": "text", "text": "hi", "annotations": {"priority": 7, "new": true}}], "isError": false}),
        json!({"content": [{"type": "hologram", "data": [1, 2]}], "structuredContent": {"a": 1.0}, "_meta": {"x": 1}}),
        json!({"content": [], "structuredContent": null, "unknown": "kept"}),
        json!({"messages": [{"role": "narrator", "content": {"type": "text", "text": "x"}}]}),
        json!({"completion": {"values": ["a"], "hasMore": "yes"}}),
        json!({"contents": [{"uri": "a:b", "text": "t", "blob": "AA=="}]}),
        json!({"resultType": "input_required", "inputRequests": {}, "requestState": "s"}),
        json!({"resultType": "complete"}),
        json!({"action": "accept", "content": {}}),
        json!({RAW_KEY: "of the server"}),
        json!({}),
        json!(null),
        json!([1, 2]),
        json!("text"),
    ];
    for result in results {
        let (seen, restored) = through_the_sdk(&result);
        assert!(matches!(seen, ServerResult::CustomResult(_)), "{seen:?}");
        assert_eq!(restored, result);
    }
}

/// The results that the SDK must understand are understood, and arrive whole all the same.
#[test]
fn results_of_the_sdk_arrive_whole() {
    let hello = json!({
        "protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": true, "odd": 1}, "future": {}},
        "serverInfo": {"name": "s", "version": "1", "mascot": "owl"}, "_meta": {"a": 1},
    });
    let (seen, restored) = through_the_sdk(&hello);
    assert!(matches!(seen, ServerResult::InitializeResult(_)), "{seen:?}");
    assert_eq!(restored, hello);
    let tools = json!({"tools": [
        {"name": "a", "inputSchema": {"type": "object", "$defs": {"x": {}}}, "annotations": {"readOnlyHint": true, "new": 1}},
    ], "nextCursor": "n", "extra": 1});
    let (seen, restored) = through_the_sdk(&tools);
    assert!(matches!(seen, ServerResult::ListToolsResult(_)), "{seen:?}");
    assert_eq!(restored, tools);
    let odd = json!({"tools": [{"name": 5}, "no tool"]});
    assert_eq!(through_the_sdk(&odd).1, odd);
}

/// A request of a server keeps parameters that no type of the SDK has.
#[test]
fn requests_arrive_whole() {
    let params = json!({"message": 5, "requestedSchema": {"type": "object", "properties": {"a": {"type": "colour"}}}});
    let message = keep(json!({"id": 0, "method": "elicitation/create", "params": params}));
    let ServerJsonRpcMessage::Request(request) = serde_json::from_value(message).unwrap() else {
        panic!("not a request");
    };
    let rmcp::model::ServerRequest::CustomRequest(request) = request.request else {
        panic!("read by the SDK");
    };
    assert_eq!(called(&request.method), "elicitation/create");
    assert_eq!(request.params, Some(params));
}
