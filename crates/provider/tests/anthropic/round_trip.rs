//! What a reply said goes back as it came: the API checks signatures and refuses blocks that were changed.

use super::*;
use aish_core::event::ReplyStop;
use proptest::prelude::*;

/// The reply as the conversation holds it.
fn message_of(reply: Reply) -> Message {
    let calls = reply.calls.into_iter().enumerate().map(|(index, call)| MessageCall {
        id: CallId::nth(1, index + 1),
        provider_id: call.provider_id,
        name: call.name,
        arguments: call.arguments,
    });
    assistant(reply.parts, calls.collect())
}

/// Streams the blocks, each text in small pieces, and sends the reply back: the blocks must be the same.
#[track_caller]
fn check(blocks: &[Value], reason: &str) {
    let mut payloads = Vec::new();
    for (index, block) in (0..).zip(blocks) {
        let mut begun = block.clone();
        let fields = match block["type"].as_str() {
            Some("text") => &[("text", "text_delta")][..],
            Some("thinking") => &[("thinking", "thinking_delta"), ("signature", "signature_delta")],
            _ => &[],
        };
        for (field, _) in fields {
            begun[field] = json!("");
        }
        let mut input = None;
        if let Some(object) = block.get("input") {
            begun["input"] = json!({});
            input = Some(object.to_string());
        }
        payloads.push(start(index, begun));
        for (field, kind) in fields {
            for c in block[field].as_str().unwrap().chars() {
                payloads.push(delta(index, json!({"type": kind, *field: c.to_string()})));
            }
        }
        payloads.extend(
            input
                .iter()
                .flat_map(|input| input.chars())
                .map(|c| input_delta(index, &c.to_string())),
        );
        payloads.push(stop(index));
    }
    let streamed = decode_whole(&whole_stream(&payloads, reason));
    let body = decode_body(&json!({"type": "message", "content": blocks, "stop_reason": reason}));
    assert_eq!(streamed.parts, body.parts);
    let mut conversation = vec![user("a"), message_of(streamed)];
    let calls = blocks.iter().filter(|block| block["type"] == "tool_use").count();
    conversation.extend((1..=calls).map(|n| result(n, "r")));
    let wire = messages(&conversation);
    assert_eq!(wire[1]["content"], Value::from(blocks));
}

fn thought(text: &str, signature: &str) -> Value {
    json!({"type": "thinking", "thinking": text, "signature": signature})
}

/// SPEC 7.2, 2.4: thinking, calls between text, and a provider's tools, in order.
#[test]
fn replies_go_back_as_they_came() {
    let searched =
        json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [
        {"type": "web_search_result", "title": "T", "url": "https://e.example", "encrypted_content": "Eo8=", "page_age": null}]});
    check(
        &[
            thought("One.\n", "Eq1=/+"),
            json!({"type": "redacted_thinking", "data": "EmwK"}),
            wire_text("Looking. "),
            searched.clone(),
            found.clone(),
            thought("", "Eq2="),
            thought("Three.", "Eq3="),
            wire_text("It "),
            wire_text("rains."),
            wire_call("toolu_1", &json!({"city": "Rome"})),
            wire_call("toolu_2", &json!({})),
        ],
        "tool_use",
    );
    check(
        &[
            wire_call("toolu_1", &json!({})),
            wire_text("between"),
            wire_call("toolu_2", &json!({})),
        ],
        "tool_use",
    );
    check(&[thought("hm", "Eq="), wire_text("Searching."), searched], "pause_turn");
}

/// SPEC 7.6: a paused reply says so and has no calls.
#[test]
fn a_pause_is_a_pause() {
    let half = start(
        0,
        json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}),
    );
    assert_eq!(
        decode_whole(&whole_stream(&[half, stop(0)], "pause_turn")).stop,
        ReplyStop::Paused
    );
}

fn any_block() -> impl Strategy<Value = Value> {
    prop_oneof![
        "x[a-zé<>/ ]{0,12}[x<]".prop_map(|text| wire_text(&text)),
        ("[a-z\n]{0,12}", "[A-Za-z0-9+/=]{1,12}").prop_map(|(text, signature)| thought(&text, &signature)),
        "[A-Za-z0-9+/=]{1,12}".prop_map(|data| json!({"type": "redacted_thinking", "data": data})),
        ("[a-z]{1,6}", any::<u32>()).prop_map(|(key, value)| wire_call("", &json!({key: value}))),
    ]
}

proptest! {
    /// SPEC 7.2: the same for any order of blocks.
    #[test]
    fn any_reply_goes_back_as_it_came(mut blocks in proptest::collection::vec(any_block(), 1..10)) {
        let mut calls = 0;
        for block in &mut blocks {
            if block["type"] == "tool_use" {
                calls += 1;
                block["id"] = json!(format!("toolu_{calls}"));
            }
        }
        // Nothing may end with thinking.
        blocks.push(wire_text("end"));
        check(&blocks, if calls > 0 { "tool_use" } else { "end_turn" });
    }

    /// SPEC 7.4, 12: payloads of any shape neither panic nor make a call out of nothing.
    #[test]
    fn any_payload_is_survived(
        kinds in proptest::collection::vec((0_usize..8, any::<Option<u8>>(), 0_usize..8), 0..20),
    ) {
        let kind = ["content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_start",
            "message_stop", "ping", "content_block_start"];
        let value = [json!(null), json!([]), json!("x"), json!({}), json!({"type": "tool_use", "name": 3, "input": [1]}),
            json!({"type": "text_delta", "text": "a"}), json!({"type": "input_json_delta", "partial_json": "{"}),
            json!({"type": "web_search_tool_result", "content": "x", "usage": []})];
        let payloads: Vec<Value> = kinds
            .iter()
            .map(|(at, index, what)| {
                let what = &value[*what];
                json!({"type": kind[*at], "index": index, "content_block": what, "delta": what, "message": what})
            })
            .collect();
        let text = stream(&payloads);
        let reply = decode_whole(&text);
        prop_assert!(reply.calls.is_empty());
        prop_assert_eq!(decode(text.as_bytes().chunks(1)), reply);
    }
}
