//! Streams as OpenAI's reference documents them, and as servers leave parts of them out.

use super::*;
use aish_core::event::{ReplyStop, Usage};
use aish_core::message::text_of;
use aish_provider::ErrorKind;
use serde_json::json;

/// A response as its last event carries it.
fn response(status: &str, output: &[Value]) -> Value {
    json!({"id": "resp_1", "object": "response", "status": status, "model": "gpt-5-2025-08-07", "error": null,
        "incomplete_details": null, "output": output, "usage": {"input_tokens": 100, "output_tokens": 40,
        "total_tokens": 140, "input_tokens_details": {"cached_tokens": 64},
        "output_tokens_details": {"reasoning_tokens": 24}}})
}

fn completed(output: &[Value]) -> Value {
    json!({"type": "response.completed", "response": response("completed", output)})
}

fn created() -> Value {
    json!({"type": "response.created", "response": {"id": "resp_1", "object": "response", "status": "in_progress",
        "model": "gpt-5-2025-08-07", "output": []}})
}

fn added(index: u64, item: &Value) -> Value {
    json!({"type": "response.output_item.added", "output_index": index, "item": item})
}

fn done(index: u64, item: &Value) -> Value {
    json!({"type": "response.output_item.done", "output_index": index, "item": item})
}

fn reasoning() -> Value {
    json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "gAAAA+/=", "summary": [
        {"type": "summary_text", "text": "**Plan**"}, {"type": "summary_text", "text": "Ask twice."}]})
}

fn message(text: &str) -> Value {
    json!({"type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
        "content": [{"type": "output_text", "annotations": [], "logprobs": [], "text": text}]})
}

fn call(nth: u64, city: &str) -> Value {
    json!({"type": "function_call", "id": format!("fc_{nth}"), "call_id": format!("call_{nth}"), "status": "completed",
        "name": "weather__get", "arguments": format!("{{\"city\":\"{city}\"}}")})
}

fn begun(call: &Value) -> Value {
    let mut call = call.clone();
    call["arguments"] = json!("");
    call["status"] = json!("in_progress");
    call
}

fn delta(kind: &str, index: u64, id: &str, delta: &str) -> Value {
    json!({"type": format!("response.{kind}.delta"), "output_index": index, "item_id": id, "content_index": 0,
        "delta": delta})
}

fn summary(kind: &str, part: u64, text: &str) -> Value {
    json!({"type": format!("response.reasoning_summary_{kind}"), "output_index": 0, "item_id": "rs_1",
        "summary_index": part, "delta": text, "part": {"type": "summary_text", "text": text}})
}

/// Reasoning, then two calls whose fragments interleave.
fn documented() -> String {
    let (paris, rome) = (call(1, "Paris"), call(2, "Rome"));
    let whole = |index: u64, call: &Value| {
        json!({"type": "response.function_call_arguments.done", "output_index": index, "item_id": call["id"],
            "arguments": call["arguments"]})
    };
    stream_of(&[
        created(),
        json!({"type": "response.in_progress", "response": {"status": "in_progress"}}),
        added(0, &json!({"type": "reasoning", "id": "rs_1", "summary": []})),
        summary("part.added", 0, ""),
        summary("text.delta", 0, "**Pl"),
        summary("text.delta", 0, "an**"),
        json!({"type": "response.reasoning_summary_text.done", "item_id": "rs_1", "output_index": 0, "summary_index": 0,
            "text": "**Plan**"}),
        summary("part.added", 1, ""),
        summary("text.delta", 1, "Ask twice."),
        summary("part.done", 1, "Ask twice."),
        done(0, &reasoning()),
        added(1, &begun(&paris)),
        added(2, &begun(&rome)),
        delta("function_call_arguments", 1, "fc_1", "{\"city\":"),
        delta("function_call_arguments", 2, "fc_2", "{\"ci"),
        delta("function_call_arguments", 1, "fc_1", "\"Paris\"}"),
        delta("function_call_arguments", 2, "fc_2", "ty\":\"Rome\"}"),
        whole(2, &rome),
        whole(1, &paris),
        done(1, &paris),
        done(2, &rome),
        completed(&[reasoning(), paris, rome]),
    ])
}

/// SPEC 7.2, 7.3: reasoning is shown in its readable form and kept whole; fragments of calls go to their call.
#[test]
fn reasoning_and_parallel_calls() {
    let reply = decode_whole(&documented());
    assert_eq!(reply.stop, ReplyStop::ToolCalls);
    assert_eq!(
        calls(&reply),
        [
            ("weather.get", "{\"city\":\"Paris\"}"),
            ("weather.get", "{\"city\":\"Rome\"}")
        ]
    );
    let ids: Vec<_> = reply
        .calls
        .iter()
        .map(|call| call.provider_id.as_deref().unwrap())
        .collect();
    assert_eq!(ids, ["call_1", "call_2"]);
    let block = Part::Provider {
        format: "openai-responses".to_owned(),
        block: reasoning(),
    };
    assert_eq!(reply.parts, [Part::thinking("**Plan**\n\nAsk twice."), block]);
    let usage = Usage {
        input_tokens: 100,
        output_tokens: 40,
        cached_tokens: 64,
        reasoning_tokens: 24,
        model: Some("gpt-5-2025-08-07".to_owned()),
        ..Usage::default()
    };
    assert_eq!(reply.usage, Some(usage));
}

/// SPEC 7.4, 7.3: the same however it comes; cut anywhere, nothing of it runs.
#[test]
fn documented_streams_decode_the_same_however_they_come() {
    check_arrivals(&documented(), "documented");
}

/// SPEC 9.7: the provider's own search is kept verbatim where it stood.
#[test]
fn web_search() {
    let search = json!({"type": "web_search_call", "id": "ws_1", "status": "completed",
        "action": {"type": "search", "query": "llamas"}});
    let stream = stream_of(&[
        created(),
        added(
            0,
            &json!({"type": "web_search_call", "id": "ws_1", "status": "in_progress"}),
        ),
        json!({"type": "response.web_search_call.in_progress", "output_index": 0, "item_id": "ws_1"}),
        json!({"type": "response.web_search_call.searching", "output_index": 0, "item_id": "ws_1"}),
        json!({"type": "response.web_search_call.completed", "output_index": 0, "item_id": "ws_1"}),
        done(0, &search),
        added(
            1,
            &json!({"type": "message", "id": "msg_1", "role": "assistant", "content": []}),
        ),
        json!({"type": "response.content_part.added", "output_index": 1, "item_id": "msg_1", "content_index": 0,
            "part": {"type": "output_text", "text": ""}}),
        delta("output_text", 1, "msg_1", "They "),
        delta("output_text", 1, "msg_1", "spit."),
        json!({"type": "response.output_text.annotation.added", "output_index": 1, "item_id": "msg_1",
            "annotation": {"type": "url_citation", "url": "https://example.com"}}),
        json!({"type": "response.output_text.done", "output_index": 1, "item_id": "msg_1", "content_index": 0,
            "text": "They spit."}),
        done(1, &message("They spit.")),
        completed(&[search.clone(), message("They spit.")]),
    ]);
    let reply = decode_whole(&stream);
    let block = Part::Provider {
        format: "openai-responses".to_owned(),
        block: search,
    };
    assert_eq!(reply.parts, [block, Part::text("They spit.")]);
    assert_eq!(reply.stop, ReplyStop::End);
    check_arrivals(&stream, "web search");
}

/// SPEC 7.4: whatever of its repetitions a server leaves out, an item is read, and read once.
#[test]
fn said_in_one_place_only() {
    let output = [reasoning(), message("Hi."), call(1, "Paris")];
    let ends: Vec<Value> = (0..).zip(&output).map(|(index, item)| done(index, item)).collect();
    let begins: Vec<Value> = (0..).zip(&output).map(|(index, item)| added(index, item)).collect();
    let texts = [
        json!({"type": "response.output_text.done", "output_index": 1, "item_id": "msg_1", "text": "Hi."}),
        json!({"type": "response.content_part.done", "output_index": 1, "item_id": "msg_1",
            "part": {"type": "output_text", "text": "Hi."}}),
        json!({"type": "response.function_call_arguments.done", "output_index": 2, "item_id": "fc_1",
            "name": "weather__get", "arguments": "{\"city\":\"Paris\"}"}),
    ];
    let (none, all) = (completed(&[]), completed(&output));
    let whole = decode_body(&response("completed", &output).to_string());
    assert_eq!(whole.parts.len(), 3);
    assert_eq!(calls(&whole), [("weather.get", "{\"city\":\"Paris\"}")]);
    for (what, payloads) in [
        ("only with the whole response", vec![all.clone()]),
        ("only at each item's end", [ends.clone(), vec![none.clone()]].concat()),
        (
            "at its end and with the response",
            [ends.clone(), vec![all.clone()]].concat(),
        ),
        (
            "at its beginning and with the response",
            [begins.clone(), vec![all.clone()]].concat(),
        ),
        (
            "everywhere",
            [begins, texts.to_vec(), ends, vec![all.clone(), all]].concat(),
        ),
    ] {
        let reply = decode_whole(&stream_of(&payloads));
        assert_eq!(calls(&reply), calls(&whole), "{what}");
        assert_eq!(text_of(&reply.parts), "Hi.", "{what}");
        assert_eq!(thinking(&reply), "**Plan**\n\nAsk twice.", "{what}");
        // Where a call was announced before it, the rest comes after the call's place.
        let blocks = reply.parts.iter().filter(|part| !matches!(part, Part::Call { .. }));
        assert_eq!(blocks.count(), whole.parts.len(), "{what}: {:?}", reply.parts);
        assert_eq!(reply.stop, ReplyStop::ToolCalls, "{what}");
    }
    let reply = decode_whole(&stream_of(&[texts.to_vec(), vec![none]].concat()));
    assert_eq!(
        (calls(&reply), text_of(&reply.parts)),
        (calls(&whole), "Hi.".to_owned())
    );
}

/// SPEC 7.4: arguments may be an object; what they are announced with is a placeholder unless there is something in it.
#[test]
fn shapes_of_arguments() {
    let with = |arguments: Value| {
        let mut call = call(1, "Paris");
        call["arguments"] = arguments;
        call
    };
    let whole = with(json!({"city": "Paris"}));
    let reply = decode_whole(&stream_of(&[added(0, &begun(&whole)), done(0, &whole), completed(&[])]));
    assert_eq!(calls(&reply), [("weather.get", "{\"city\":\"Paris\"}")]);

    let fragment = delta("function_call_arguments", 0, "fc_1", "{\"city\":\"Paris\"}");
    for first in [json!("{}"), json!({}), json!(null), json!("{\"city\":\"Paris\"}")] {
        let payloads = [added(0, &with(first.clone())), fragment.clone(), completed(&[])];
        let reply = decode_whole(&stream_of(&payloads));
        assert_eq!(calls(&reply), [("weather.get", "{\"city\":\"Paris\"}")], "{first}");
    }
    let payloads = [added(0, &with(json!("{\"city\":\"Paris\"}"))), completed(&[])];
    let announced = decode_whole(&stream_of(&payloads));
    assert_eq!(calls(&announced), [("weather.get", "{\"city\":\"Paris\"}")]);
    let empty = with(json!(""));
    let reply = decode_whole(&stream_of(&[added(0, &empty), done(0, &empty), completed(&[empty])]));
    assert_eq!(calls(&reply), [("weather.get", "")]);
}

/// SPEC 7.3: fragments of a call of which nobody says that they are all of it count only when they are a whole object.
#[test]
fn fragments_that_nobody_confirms() {
    for (fragment, stop) in [
        ("{\"city\":", ReplyStop::Truncated),
        ("{\"city\":1}", ReplyStop::ToolCalls),
    ] {
        let fragment = delta("function_call_arguments", 0, "fc_1", fragment);
        let payloads = [added(0, &begun(&call(1, "Paris"))), fragment, completed(&[])];
        assert_eq!(decode_whole(&stream_of(&payloads)).stop, stop);
    }
}

/// SPEC 7.4: the end of a call's arguments was lost on the way, or the server spells the whole in another way; the call is
/// the one it tells; <https://github.com/anomalyco/opencode/pull/44862>.
#[test]
fn fragments_that_differ_from_the_whole() {
    for (fragment, expect) in [
        ("{\"city\":", "{\"city\":\"Paris\"}"),
        ("{ \"city\": \"Paris\" }", "{ \"city\": \"Paris\" }"),
    ] {
        let fragment = delta("function_call_arguments", 0, "fc_1", fragment);
        let paris = call(1, "Paris");
        let payloads = [added(0, &begun(&paris)), fragment, done(0, &paris), completed(&[paris])];
        assert_eq!(calls(&decode_whole(&stream_of(&payloads))), [("weather.get", expect)]);
    }
}

/// SPEC 7.4: what a model refuses to say is said, and the reply counts as withheld.
#[test]
fn a_refusal() {
    let item = json!({"type": "message", "id": "msg_1", "role": "assistant",
        "content": [{"type": "refusal", "refusal": "I can't help."}]});
    let pieces = [
        delta("refusal", 0, "msg_1", "I can't "),
        delta("refusal", 0, "msg_1", "help."),
        json!({"type": "response.refusal.done", "output_index": 0, "item_id": "msg_1", "refusal": "I can't help."}),
        done(0, &item),
    ];
    for payloads in [
        [pieces.to_vec(), vec![completed(std::slice::from_ref(&item))]].concat(),
        vec![completed(&[item])],
    ] {
        let reply = decode_whole(&stream_of(&payloads));
        assert_eq!(reply.parts, [Part::text("I can't help.")]);
        assert_eq!((reply.stop, reply.reason), (ReplyStop::End, None));
    }
}

/// SPEC 7.3, 7.4: why a response is not complete; a call in it never runs.
#[test]
fn incomplete_responses() {
    for (status, reason, stop) in [
        ("incomplete", "max_output_tokens", ReplyStop::Length),
        ("incomplete", "content_filter", ReplyStop::Refused),
        ("incomplete", "a new one", ReplyStop::Truncated),
        ("cancelled", "", ReplyStop::Truncated),
        ("in_progress", "", ReplyStop::Truncated),
    ] {
        let mut response = response(status, &[call(1, "Paris")]);
        response["incomplete_details"] = json!({"reason": reason});
        let event = json!({"type": format!("response.{status}"), "response": response});
        for reply in [decode_whole(&stream_of(&[event])), decode_body(&response.to_string())] {
            assert_eq!(reply.stop, stop, "{status}, {reason}");
            assert!(reply.calls.is_empty(), "{status}, {reason}");
            let why = match (status, stop) {
                (_, ReplyStop::Length) => None,
                ("incomplete", _) => Some(reason),
                _ => Some(status),
            };
            // No event of a stream says that it is over while it is under way.
            if status != "in_progress" {
                assert_eq!(reply.reason.as_deref(), why, "{status}, {reason}");
            }
        }
    }
}

/// SPEC 10.4: Azure tells what its filters caught.
#[test]
fn filters_say_why() {
    let mut response = response("incomplete", &[]);
    response["incomplete_details"] = json!({"reason": "content_filter"});
    response["content_filters"] = json!([{"blocked": true, "source_type": "completion",
        "content_filter_results": {"self_harm": {"filtered": true}, "hate": {"filtered": false}}}, null]);
    let reply = decode_body(&response.to_string());
    assert_eq!(reply.reason.as_deref(), Some("content_filter (self harm)"));
}

/// SPEC 7.4, 10.4: failures in a stream that began well, in each of their shapes, keep their words and their meaning.
#[test]
fn failures() {
    let failed = |error: Value| {
        let mut response = response("failed", &[]);
        response["error"] = error;
        json!({"type": "response.failed", "response": response})
    };
    let limited = json!({"code": "rate_limit_exceeded", "message": "Slow down."});
    for (event, kind, message) in [
        (failed(limited.clone()), ErrorKind::Status(429), "Slow down."),
        (
            failed(json!({"code": "server_error", "message": "Oops."})),
            ErrorKind::Stream,
            "Oops.",
        ),
        (
            failed(json!({"code": "invalid_prompt", "message": "No."})),
            ErrorKind::Status(400),
            "No.",
        ),
        (
            failed(json!({"code": "context_length_exceeded", "message": "Too long."})),
            ErrorKind::ContextOverflow,
            "Too long.",
        ),
        (failed(Value::Null), ErrorKind::Stream, "the response failed"),
        (
            json!({"type": "error", "code": "server_error", "message": "Oops.", "param": null}),
            ErrorKind::Stream,
            "Oops.",
        ),
        (
            json!({"type": "error", "error": limited}),
            ErrorKind::Status(429),
            "Slow down.",
        ),
        (
            json!({"type": "", "error": {"code": 400, "message": "No.", "type": "invalid_request_error"}}),
            ErrorKind::Status(400),
            "No.",
        ),
    ] {
        let stream = stream_of(&[created(), delta("output_text", 0, "msg_1", "Well"), event]);
        let reply = decode_whole(&stream);
        let error = reply.error.unwrap();
        assert_eq!((error.kind, error.message.as_str()), (kind, message));
        assert_eq!(reply.stop, ReplyStop::Truncated);
        assert_eq!(reply.parts, [Part::text("Well")]);
    }
    let plain = decode_whole("event: error\ndata: out of memory\n\n").error.unwrap();
    assert_eq!(
        (plain.kind, plain.message.as_str()),
        (ErrorKind::Stream, "out of memory")
    );
    let body = decode_body(r#"{"error": {"message": "No.", "code": 400}}"#)
        .error
        .unwrap();
    assert_eq!((body.kind, body.message.as_str()), (ErrorKind::Status(400), "No."));
    let detail = decode_body(r#"{"detail": "Not found"}"#).error.unwrap();
    assert_eq!(detail.message, "Not found");
}

/// SPEC 7.4: payloads of any shape are read without a panic, and what is no payload is told as such.
#[test]
fn nonsense() {
    for data in [
        "[]",
        "1",
        "{\"type\":1}",
        "{\"type\":\"response.created\",\"response\":7}",
        "{}",
        "nonsense",
    ] {
        let is_json = data.starts_with('{');
        let event = sse::Event {
            name: "".into(),
            data: data.into(),
            id: "".into(),
        };
        let mut pieces = 0;
        let read = OpenaiResponses.decoder().event(&event, &mut |_| pieces += 1);
        assert_eq!((read.is_ok(), pieces), (is_json, 0), "{data}");
    }
    for value in [
        json!(null),
        json!(1),
        json!([1]),
        json!({"type": 1}),
        json!({"type": "reasoning", "summary": [1, {}]}),
    ] {
        let odd = [
            added(0, &value),
            done(0, &value),
            json!({"type": "response.content_part.done", "part": value}),
            json!({"type": "response.function_call_arguments.done", "arguments": value}),
            json!({"type": "response.output_text.delta", "delta": value, "output_index": value, "item_id": value}),
            json!({"type": "response.an_event_to_come", "response": value}),
            json!({"type": "response.completed", "response": {"output": [value], "usage": value, "status": value}}),
        ];
        let reply = decode_whole(&stream_of(&odd));
        assert_eq!(reply.error, None, "{value}");
        // Nobody named a tool, so that none can run.
        assert!(reply.calls.iter().all(|call| call.name.is_empty()), "{value}");
    }
}
