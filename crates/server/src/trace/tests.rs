//! Turns as spans: which there are, whose, from when to when, and what is in them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use aish_core::event::Draft;
use aish_core::id::SessionId;
use serde_json::{Value, json};

/// Events of turn 1, each with its time.
fn turn(events: &[(u64, &str, Value)]) -> Vec<Event> {
    let session = SessionId::new("s-1");
    let place = |(seq, (time, kind, data)): (u64, &(u64, &str, Value))| {
        let body = Body::decode(kind, &data.to_string()).unwrap();
        Draft::new(1, *kind, body).place(&session, seq, *time)
    };
    (1..).zip(events).map(place).collect()
}

fn spans_of(events: &[Event], from: u64) -> Vec<Span> {
    let ran = Ran {
        session: &SessionId::new("s-1"),
        turn: 1,
        events,
        from,
        problem: None,
    };
    spans(&ran, &|model| if model == "cloud" { "anthropic" } else { "openai" })
}

fn attribute<'a>(span: &'a Span, name: &str) -> &'a Attribute {
    let found = span.attributes.iter().find(|(known, _)| *known == name);
    &found.unwrap_or_else(|| panic!("no {name}: {span:?}")).1
}

fn text(said: &str) -> Attribute {
    Attribute::Text(said.to_owned())
}

/// A turn that fails once, calls a tool here and one of the client's, and ends.
fn one_of_everything() -> Vec<Event> {
    let call = |id: &str, name: &str| {
        let function = json!({"name": name, "arguments": "{\"secret\":1}"});
        json!({"id": id, "type": "function", "function": function})
    };
    let gated = |id: &str, source: &str| json!({"call_id": id, "verdict": "allow", "rule": "", "source": source});
    let result = |id: &str, name: &str, success: bool| json!({"tool_call_id": id, "name": name, "output": "secret", "success": success});
    turn(&[
        (100, "turn_started", json!({"model": "desk", "served": {}})),
        (101, "user", Value::Null),
        (
            150,
            "model_failed",
            json!({"error": "http_503", "attempt": 1, "text_shown": false, "model": "desk"}),
        ),
        (
            300,
            "assistant",
            json!({"reply_id": "r", "model": "cloud", "stop": "tool_calls"}),
        ),
        (300, "tool_call", call("call_1_1", "bash")),
        (300, "tool_call", call("call_1_2", "open_door")),
        (
            300,
            "usage",
            json!({"input_tokens": 10, "output_tokens": 3, "model": "m-2"}),
        ),
        (301, "call_gated", gated("call_1_1", "builtin")),
        (301, "call_gated", gated("call_1_2", "client")),
        (310, "call_started", json!({"call_id": "call_1_1", "digest": "d"})),
        (320, "tool_result", result("call_1_1", "bash", false)),
        (330, "suspended", json!({"continuation": "c1", "call_id": "call_1_2"})),
        (900, "resumed", json!({"continuation": "c1"})),
        (900, "tool_result", result("call_1_2", "open_door", true)),
        (
            950,
            "assistant",
            json!({"reply_id": "r2", "model": "cloud", "stop": "end"}),
        ),
        (
            950,
            "usage",
            json!({"input_tokens": 20, "output_tokens": 5, "model": "cloud"}),
        ),
        (951, "turn_ended", json!({"reason": "end"})),
    ])
}

/// SPEC 9.8: a request to a model and a call that was executed are spans of the turn's, at the times of the events around them.
#[test]
fn a_whole_turn() {
    let spans = spans_of(&one_of_everything(), 1);
    let shown: Vec<(&str, u64, u64, Option<&str>)> = spans
        .iter()
        .map(|span| (span.name.as_str(), span.start_ms, span.end_ms, span.error.as_deref()))
        .collect();
    assert_eq!(
        shown,
        [
            ("chat desk", 101, 150, Some("http_503")),
            ("chat cloud", 150, 300, None),
            ("execute_tool bash", 310, 320, Some("tool_error")),
            ("execute_tool open_door", 330, 900, None),
            ("chat cloud", 900, 950, None),
            ("invoke_agent aish", 100, 951, None),
        ]
    );
    let (root, parts) = spans.split_last().unwrap();
    assert_eq!((root.place.clone(), &root.parent), (turn_place("s-1", 1), &None));
    assert!(parts.iter().all(|span| span.parent.as_ref() == Some(&root.place.span)));
    assert!(parts.iter().all(|span| span.place.trace == root.place.trace));
    let mut ids: Vec<&str> = spans.iter().map(|span| span.place.span.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), spans.len());
    assert_eq!(
        (root.place.trace.len(), root.place.span.len()),
        (TRACE_CHARS, SPAN_CHARS)
    );
    assert_eq!(attribute(&spans[0], "gen_ai.provider.name"), &text("openai"));
    assert_eq!(attribute(&spans[1], "gen_ai.provider.name"), &text("anthropic"));
    assert_eq!(attribute(&spans[1], "gen_ai.operation.name"), &text("chat"));
    assert_eq!(
        attribute(&spans[1], "gen_ai.usage.input_tokens"),
        &Attribute::Number(10)
    );
    assert_eq!(
        attribute(&spans[4], "gen_ai.usage.output_tokens"),
        &Attribute::Number(5)
    );
    assert_eq!(attribute(root, "gen_ai.usage.input_tokens"), &Attribute::Number(30));
    assert_eq!(attribute(root, "gen_ai.conversation.id"), &text("s-1"));
    assert_eq!(attribute(&spans[3], "gen_ai.tool.call.id"), &text("call_1_2"));
    assert_eq!(attribute(&spans[3], "gen_ai.tool.type"), &text("function"));
    assert!(!format!("{spans:?}").contains("secret"));
}

/// SPEC 9.5, 9.8: begun on one server and ended on another, a turn is one trace, and every span is told once.
#[test]
fn in_two_runs() {
    let all = one_of_everything();
    let waits = all
        .iter()
        .position(|event| matches!(event.body, Body::Suspended(_)))
        .unwrap()
        + 1;
    let first = spans_of(&all[..waits], 1);
    let second = spans_of(&all, u64::try_from(waits).unwrap() + 1);
    assert_eq!([first, second].concat(), spans_of(&all, 1));
}

/// SPEC 9.8: what was not executed is no span.
#[test]
fn calls_that_did_not_run() {
    let result = json!({"tool_call_id": "call_1_1", "name": "bash", "output": "", "success": false, "end": "declined"});
    let events = turn(&[
        (1, "turn_started", json!({"model": "desk"})),
        (2, "tool_result", result),
        (3, "turn_ended", json!({"reason": "model_failed"})),
    ]);
    let spans = spans_of(&events, 1);
    assert_eq!(spans.len(), 1);
    assert_eq!(spans[0].error.as_deref(), Some("model_failed"));
}
