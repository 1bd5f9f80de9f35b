//! Replies: what streams and bodies of this format mean, as Anthropic writes them and as others do.

use super::*;
use aish_core::event::ReplyStop;
use aish_core::message::text_of;
use aish_provider::{Delta, ErrorKind, ReplyCall};

fn tool_use(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "weather__get", "input": {}})
}

fn made(id: &str, arguments: &str) -> ReplyCall {
    ReplyCall {
        provider_id: Some(id.to_owned()),
        name: "weather.get".to_owned(),
        arguments: arguments.to_owned(),
    }
}

/// SPEC 7.2, 7.3: thinking, text and calls, block by block, and what they cost.
#[test]
fn a_whole_reply() {
    let stream = whole_stream(
        &[
            start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
            json!({"type": "ping"}),
            delta(0, json!({"type": "thinking_delta", "thinking": "Two "})),
            delta(0, json!({"type": "thinking_delta", "thinking": "cities."})),
            delta(0, json!({"type": "signature_delta", "signature": "Eq=+/"})),
            stop(0),
            start(1, json!({"type": "text", "text": ""})),
            text_delta(1, "Looking."),
            delta(1, json!({"type": "citations_delta", "citation": {"cited_text": "x"}})),
            stop(1),
            start(2, tool_use("toolu_1")),
            input_delta(2, ""),
            input_delta(2, "{\"city\":"),
            input_delta(2, "\"Rome\"}"),
            stop(2),
            start(3, tool_use("toolu_2")),
            stop(3),
        ],
        "tool_use",
    );
    let reply = decode_whole(&stream);
    assert_eq!(reply.parts, [signed("Two cities.", "Eq=+/"), Part::text("Looking.")]);
    assert_eq!(
        reply.calls,
        [made("toolu_1", "{\"city\":\"Rome\"}"), made("toolu_2", "")]
    );
    assert_eq!(reply.stop, ReplyStop::ToolCalls);
    assert_eq!(reply.model.as_deref(), Some("claude-x"));
    let usage = reply.usage.unwrap();
    assert_eq!(
        (usage.input_tokens, usage.cached_tokens, usage.cache_write_tokens),
        (18, 3, 5)
    );
    assert_eq!((usage.output_tokens, usage.model.as_deref()), (20, Some("claude-x")));
}

/// SPEC 7.3: what the reasons to stop mean.
#[test]
fn stops() {
    for (reason, text_only, with_call) in [
        ("end_turn", ReplyStop::End, ReplyStop::ToolCalls),
        ("stop_sequence", ReplyStop::End, ReplyStop::ToolCalls),
        ("tool_use", ReplyStop::End, ReplyStop::ToolCalls),
        ("max_tokens", ReplyStop::Length, ReplyStop::Length),
        ("model_context_window_exceeded", ReplyStop::Length, ReplyStop::Length),
        ("refusal", ReplyStop::Refused, ReplyStop::Refused),
        ("pause_turn", ReplyStop::Paused, ReplyStop::ToolCalls),
        ("something_new", ReplyStop::End, ReplyStop::ToolCalls),
    ] {
        let text = [start(0, json!({"type": "text", "text": "Hi"})), stop(0)];
        assert_eq!(decode_whole(&whole_stream(&text, reason)).stop, text_only, "{reason}");
        let call = [start(0, tool_use("t")), input_delta(0, "{}"), stop(0)];
        let reply = decode_whole(&whole_stream(&call, reason));
        assert_eq!(
            (reply.stop, reply.calls.len()),
            (with_call, usize::from(with_call == ReplyStop::ToolCalls)),
            "{reason}"
        );
    }
}

/// SPEC 7.3, 10.4: a refusal says why, in the API's words and not in the model's.
#[test]
fn refusals_say_why() {
    let explained = json!({"type": "refusal", "category": "cyber", "explanation": "It may harm."});
    for (details, reason) in [
        (explained, "refusal (cyber): It may harm."),
        (json!({"type": "refusal", "category": null}), "refusal"),
        (json!(null), "refusal"),
    ] {
        let delta = json!({"stop_reason": "refusal", "stop_details": details});
        let events = [begin(), json!({"type": "message_delta", "delta": delta})];
        let body = json!({"type": "message", "content": [], "stop_reason": "refusal", "stop_details": details});
        for reply in [decode_whole(&stream(&events)), decode_body(&body)] {
            assert_eq!(
                (reply.stop, reply.reason.as_deref()),
                (ReplyStop::Refused, Some(reason))
            );
            assert_eq!(reply.parts, []);
        }
    }
    let cut = whole_stream(
        &[start(0, json!({"type": "text", "text": "Hi"})), stop(0)],
        "something_new",
    );
    assert_eq!(decode_whole(&cut).reason, None, "a reply that is whole needs no excuse");
}

/// SPEC 7.2, 9.7: blocks of the provider's own are kept in their place, completed by their deltas.
#[test]
fn blocks_of_the_provider() {
    let redacted = json!({"type": "redacted_thinking", "data": "EmwKAhgBEgy"});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [
        {"type": "web_search_result", "url": "https://e.example", "encrypted_content": "Eo8=", "page_age": null}]});
    let stream = whole_stream(
        &[
            start(0, redacted.clone()),
            stop(0),
            start(
                1,
                json!({"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}),
            ),
            input_delta(1, "{\"query\": \"we"),
            input_delta(1, "ather\"}"),
            stop(1),
            start(2, found.clone()),
            stop(2),
            start(3, json!({"type": "text", "text": ""})),
            text_delta(3, "It "),
            stop(3),
            start(4, json!({"type": "text", "text": "", "citations": []})),
            text_delta(4, "rains."),
            stop(4),
            start(5, json!({"type": "compaction", "content": null})),
            delta(5, json!({"type": "compaction_delta", "content": "Earlier: "})),
            delta(5, json!({"type": "compaction_delta", "content": "rain."})),
            stop(5),
        ],
        "end_turn",
    );
    let expect = [
        own_block(redacted),
        own_block(
            json!({"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "weather"}}),
        ),
        own_block(found),
        Part::text("It "),
        Part::text("rains."),
        own_block(json!({"type": "compaction", "content": "Earlier: rain."})),
    ];
    assert_eq!(decode_whole(&stream).parts, expect);
}

/// SPEC 7.3: a provider's tool whose input was cut is no block to be sent back.
#[test]
fn a_cut_input_of_a_providers_tool() {
    let half = [
        start(
            0,
            json!({"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}),
        ),
        input_delta(0, "{\"query\": \"we"),
    ];
    assert!(decode_whole(&whole_stream(&half, "max_tokens")).parts.is_empty());
}

/// SPEC 7.4: starts left out, indices missing, used twice or absurd, inputs whole in the start, unknown kinds of events.
#[test]
fn quirks_of_gateways() {
    let said = |payloads: &[Value]| text_of(&decode_whole(&whole_stream(payloads, "end_turn")).parts);
    assert_eq!(said(&[text_delta(0, "a"), text_delta(0, "b")]), "ab");
    assert_eq!(said(&[text_delta(1_000_000_000, "a"), text_delta(u64::MAX, "b")]), "ab");
    assert_eq!(
        said(&[json!({"type": "content_block_delta", "delta": {"type": "text_delta", "text": "a"}})]),
        "a"
    );
    assert_eq!(
        said(&[json!({"type": "new_kind", "delta": {"text": "x"}}), text_delta(0, "a")]),
        "a"
    );
    assert_eq!(
        said(&[
            json!({"type": "content_block_start", "index": 0}),
            start(1, json!(null)),
            start(1, json!([1]))
        ]),
        ""
    );

    let called = |payloads: &[Value]| decode_whole(&whole_stream(payloads, "tool_use")).calls;
    let whole = json!({"type": "tool_use", "id": "t", "name": "weather__get", "input": {"city": "Rome"}});
    let rome = "{\"city\":\"Rome\"}";
    assert_eq!(called(&[start(0, whole.clone()), stop(0)]), [made("t", rome)]);
    assert_eq!(called(&[start(0, whole.clone())]), [made("t", rome)], "never stopped");
    assert_eq!(
        called(&[start(0, whole), input_delta(0, rome), stop(0)]),
        [made("t", rome)],
        "said twice"
    );
    let text = json!({"type": "tool_use", "id": "t", "name": "weather__get", "input": rome});
    assert_eq!(called(&[start(0, text), stop(0)]), [made("t", rome)]);
    assert_eq!(
        called(&[start(1, tool_use("t")), input_delta(0, rome)]),
        [made("t", rome)],
        "another index"
    );
    let twice = [
        start(0, tool_use("t")),
        input_delta(0, rome),
        start(0, tool_use("u")),
        input_delta(0, rome),
    ];
    assert_eq!(called(&twice), [made("t", rome), made("u", rome)]);
    let interleaved = [
        start(0, tool_use("t")),
        start(1, tool_use("u")),
        input_delta(1, "{\"a\""),
        input_delta(0, "{\"city\":"),
        input_delta(1, ":1}"),
        input_delta(0, "\"Rome\"}"),
    ];
    assert_eq!(called(&interleaved), [made("t", rome), made("u", "{\"a\":1}")]);
}

/// SPEC 7.4: a signature that comes after another block spoke is not taken for that one's.
#[test]
fn late_signatures() {
    let thinking = || start(0, json!({"type": "thinking", "thinking": "hm"}));
    let signature = || delta(0, json!({"type": "signature_delta", "signature": "late"}));
    for between in [start(1, json!({"type": "text", "text": "a"})), start(1, tool_use("t"))] {
        let reply = decode_whole(&whole_stream(&[thinking(), between, signature()], "end_turn"));
        assert_eq!(reply.parts[0], Part::thinking("hm"));
        let signatures = reply
            .parts
            .iter()
            .filter(|part| matches!(part, Part::Thinking { signature: Some(_), .. }));
        assert_eq!(signatures.count(), 0, "{:?}", reply.parts);
    }
    let silent = [
        start(0, json!({"type": "thinking", "thinking": ""})),
        signature(),
        stop(0),
        start(1, json!({"type": "thinking", "thinking": "", "signature": "second"})),
        stop(1),
    ];
    let reply = decode_whole(&whole_stream(&silent, "end_turn"));
    assert_eq!(reply.parts, [signed("", "late"), signed("", "second")]);
}

/// SPEC 7.4: the last count is right, whatever payload it came in, unless it is a zero among zeros.
#[test]
fn usage_comes_in_pieces() {
    let stream = stream(&[
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 0, "output_tokens": 0}}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"input_tokens": 7,
            "cache_read_input_tokens": 2, "output_tokens": 5, "output_tokens_details": {"thinking_tokens": 3}}}),
        json!({"type": "message_delta", "delta": {}, "usage": {"input_tokens": 0, "output_tokens": 0}}),
        json!({"type": "message_delta", "delta": 3, "usage": "none"}),
    ]);
    let usage = decode_whole(&stream).usage.unwrap();
    assert_eq!((usage.input_tokens, usage.cached_tokens), (9, 2));
    assert_eq!((usage.output_tokens, usage.reasoning_tokens), (5, 3));
}

/// SPEC 7.4, 7.6: an error in the middle keeps what was said, runs nothing, and says whether asking again may help.
#[test]
fn errors_in_the_middle() {
    let with = |error: Value| {
        let call = [
            begin(),
            start(0, json!({"type": "text", "text": "Hi"})),
            start(1, tool_use("t")),
            input_delta(1, "{}"),
        ];
        decode_whole(&(stream(&call) + &stream(&[error]) + &stream(&end("tool_use"))))
    };
    for (tag, kind) in [
        ("overloaded_error", ErrorKind::Status(529)),
        ("rate_limit_error", ErrorKind::Status(429)),
        ("api_error", ErrorKind::Status(500)),
        ("authentication_error", ErrorKind::Auth),
        ("invalid_request_error", ErrorKind::Status(400)),
    ] {
        let reply = with(json!({"type": "error", "error": {"type": tag, "message": "Overloaded"}}));
        let error = reply.error.unwrap();
        assert_eq!((error.kind, error.message.as_str()), (kind, "Overloaded"));
        assert_eq!((reply.stop, reply.calls.len()), (ReplyStop::Truncated, 0));
        assert_eq!(text_of(&reply.parts), "Hi");
    }
    for data in ["{\"message\":\"boom\"}", "boom"] {
        let reply = decode_whole(&format!("{}event: error\ndata: {data}\n\n", stream(&[begin()])));
        assert_eq!(reply.error.unwrap().message, "boom");
    }
}

/// SPEC 7.4: what is no JSON, or no object, is refused and quoted.
#[test]
fn broken_payloads() {
    for data in ["nonsense", "[1]", "{\"type\":", "3"] {
        let event = sse::Event {
            name: "content_block_delta".into(),
            data: data.into(),
            id: "".into(),
        };
        let error = Anthropic.decoder().event(&event, &mut |_| {}).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Protocol, "{data}");
        assert!(error.message.contains("anthropic"), "{}", error.message);
        assert_eq!(
            Anthropic.decoder().body(data, &mut |_| {}).unwrap_err().kind,
            ErrorKind::Protocol
        );
    }
}

/// SPEC 7.4: a server that does not stream, or pretends to, and error bodies with status 200.
#[test]
fn whole_bodies() {
    let body = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "content": [
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "text", "text": "Hi"},
        {"type": "text", "text": "there"},
        {"type": "tool_use", "id": "t", "name": "weather__get", "input": {"city": "Rome"}},
        {"type": "tool_use", "id": "u", "name": "weather__get", "input": {}},
    ], "stop_reason": "tool_use", "usage": {"input_tokens": 4, "output_tokens": 2}});
    for reply in [decode_body(&body), decode_whole(&stream(std::slice::from_ref(&body)))] {
        assert_eq!(
            reply.parts,
            [signed("hm", "sig"), Part::text("Hi"), Part::text("there")]
        );
        assert_eq!(reply.calls, [made("t", "{\"city\":\"Rome\"}"), made("u", "")]);
        assert_eq!(
            (reply.stop, reply.usage.unwrap().input_tokens),
            (ReplyStop::ToolCalls, 4)
        );
    }
    let endless =
        json!({"type": "message", "content": [{"type": "tool_use", "id": "t", "name": "weather__get", "input": {}}]});
    assert_eq!(decode_body(&endless).stop, ReplyStop::Truncated);
    for body in [
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
        json!({"error": {"type": "overloaded_error", "message": "Overloaded"}}),
    ] {
        assert_eq!(decode_body(&body).error.unwrap().kind, ErrorKind::Status(529));
    }
    assert!(decode_body(&json!({"detail": "no"})).error.is_some());
}

/// SPEC 7.3: text and thinking are shown as they come.
#[test]
fn deltas_come_at_once() {
    let payloads = [
        begin(),
        start(0, json!({"type": "thinking", "thinking": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "hm"})),
        start(1, json!({"type": "text", "text": ""})),
        text_delta(1, "Hi"),
        start(2, tool_use("t")),
    ];
    let (mut decoder, mut assembler) = (Anthropic.decoder(), assembler());
    let mut shown = Vec::new();
    for payload in payloads {
        let data = payload.to_string();
        let event = sse::Event {
            name: "".into(),
            data: data.into(),
            id: "".into(),
        };
        decoder
            .event(&event, &mut |piece| assembler.push(piece, &mut shown))
            .unwrap();
    }
    let expect = [
        Delta::Thinking("hm".to_owned()),
        Delta::Text("Hi".to_owned()),
        Delta::CallBegun {
            name: "weather.get".to_owned(),
        },
    ];
    assert_eq!(shown, expect);
}

/// SPEC 12: what a peer sends cannot make the reader grow without end.
#[test]
fn bounds() {
    let many: Vec<Value> = (0..2_000)
        .map(|index| start(index, json!({"type": "text", "text": ""})))
        .collect();
    assert_eq!(decode_whole(&stream(&many)).error.unwrap().kind, ErrorKind::TooLarge);
    let big = "x".repeat(1 << 20);
    let growing: Vec<Value> = std::iter::once(start(0, json!({"type": "server_tool_use", "id": "s", "input": {}})))
        .chain((0..6).map(|_| input_delta(0, &big)))
        .collect();
    assert_eq!(decode_whole(&stream(&growing)).error.unwrap().kind, ErrorKind::TooLarge);
    let kept: Vec<Value> = (0..6)
        .map(|index| start(index, json!({"type": "redacted_thinking", "data": big})))
        .collect();
    assert_eq!(decode_whole(&stream(&kept)).error.unwrap().kind, ErrorKind::TooLarge);
}
