//! What is counted of a turn, label by label, and that whoever reads the text can.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use aish_core::event::{Draft, Event};
use aish_core::id::SessionId;
use aish_engine::{Fault, Problem};
use serde_json::{Value, json};

/// The events of a turn, from kinds and data.
fn turn(events: &[(&str, Value)]) -> Vec<Event> {
    let session = SessionId::new("s-1");
    let place = |(seq, (kind, data)): (u64, &(&str, Value))| {
        let body = Body::decode(kind, &data.to_string()).unwrap();
        Draft::new(1, *kind, body).place(&session, seq, 1_000 * seq)
    };
    (1..).zip(events).map(place).collect()
}

fn text_of(runs: &[(&[Event], u64, Option<&str>)]) -> String {
    let metrics = Metrics::new();
    for (events, from, problem) in runs {
        metrics.ran(&Ran {
            session: &SessionId::new("s-1"),
            turn: 1,
            events,
            from: *from,
            problem: problem.map(|text| Problem {
                text,
                fault: Fault::Other,
            }),
        });
    }
    metrics.text(&Now {
        running: 3,
        waiting: Some(WaitingCount { client: 2, approval: 1 }),
        spans_dropped: Some(4),
        lines_dropped: None,
    })
}

fn call(id: &str, name: &str, source: &str, end: &str) -> [(&'static str, Value); 3] {
    let function = json!({"name": name, "arguments": "{}"});
    [
        ("tool_call", json!({"id": id, "type": "function", "function": function})),
        (
            "call_gated",
            json!({"call_id": id, "verdict": "allow", "rule": "", "source": source}),
        ),
        (
            "tool_result",
            json!({"tool_call_id": id, "name": name, "output": "", "success": end == "completed", "end": end}),
        ),
    ]
}

/// SPEC 9.8: what a turn did is counted once its run is over: only what was written in that run, a client's tools as one.
#[test]
fn of_a_turn() {
    let mut events = vec![
        ("turn_started", json!({"model": "desk", "served": {}})),
        (
            "model_failed",
            json!({"error": "http_503", "attempt": 1, "text_shown": false, "model": "desk"}),
        ),
        (
            "assistant",
            json!({"reply_id": "r", "model": "desk", "stop": "tool_calls"}),
        ),
        (
            "usage",
            json!({"input_tokens": 10, "output_tokens": 3, "cached_tokens": 4, "model": "m"}),
        ),
    ];
    events.extend(call("call_1_1", "bash", "builtin", "denied"));
    events.extend(call("call_1_2", "open_door", "client", "completed"));
    events.push(("suspended", json!({"continuation": "c1", "call_id": "call_1_2"})));
    events.push(("resumed", json!({"continuation": "c1"})));
    events.push(("assistant", json!({"reply_id": "r2", "model": null, "stop": "closing"})));
    events.push(("turn_ended", json!({"reason": "end"})));
    let events = turn(&events);
    let resumed = events
        .iter()
        .find(|event| matches!(event.body, Body::Resumed(_)))
        .unwrap()
        .seq;
    let before: Vec<Event> = events.iter().filter(|event| event.seq < resumed).cloned().collect();
    let text = text_of(&[(&before, 1, None), (&events, resumed, Some("the disk"))]);
    for line in [
        "aish_turns_started_total 1",
        "aish_turns_suspended_total 1",
        "aish_turns_resumed_total 1",
        "aish_turns_broken_total 1",
        "aish_turns_running 3",
        "aish_turns_waiting{for=\"client\"} 2",
        "aish_turns_waiting{for=\"approval\"} 1",
        "aish_turns_ended_total{reason=\"end\"} 1",
        "aish_model_replies_total{model=\"desk\"} 1",
        "aish_model_failures_total{model=\"desk\",error=\"http_503\"} 1",
        "aish_model_tokens_total{model=\"desk\",type=\"input\"} 10",
        "aish_model_tokens_total{model=\"desk\",type=\"cached\"} 4",
        "aish_tool_calls_total{tool=\"bash\",end=\"denied\"} 1",
        "aish_tool_calls_total{tool=\"client\",end=\"ok\"} 1",
        "aish_trace_spans_dropped_total 4",
        "aish_store_errors_total 0",
    ] {
        assert!(text.lines().any(|known| known == line), "{line}\n{text}");
    }
    assert!(!text.contains("open_door"), "{text}");
    assert!(!text.contains("aish_log_lines_dropped_total"), "{text}");
}

/// SPEC 9.8: names that are made up are bounded, and none of them breaks a line.
#[test]
fn names() {
    let mut events = Vec::new();
    for n in 0..3 * NAMES_MAX {
        events.extend(call(
            &format!("call_1_{n}"),
            &format!("made \"up\"\n\\{n}"),
            "builtin",
            "invalid",
        ));
        let said = json!({"reply_id": "r", "model": format!("m{n}"), "stop": "end"});
        events.push(("assistant", said));
        events.push((
            "model_failed",
            json!({"error": format!("e{n}"), "attempt": 1, "text_shown": false}),
        ));
    }
    let text = text_of(&[(&turn(&events), 1, None)]);
    for (family, label) in [
        ("aish_tool_calls_total", "tool=\"other\""),
        ("aish_model_tokens_total", "model=\"other\""),
        ("aish_model_failures_total", "error=\"other\""),
    ] {
        let samples = || text.lines().filter(|line| line.starts_with(&format!("{family}{{")));
        assert!(samples().count() <= 5 * (NAMES_MAX + 1), "{family}");
        assert!(samples().any(|line| line.contains(label)), "{family}: {text}");
    }
    assert!(text.contains(r#"tool="made \"up\"\n\\0""#), "{text}");
}

/// SPEC 9.8: a duration is in the bucket of its bound and in all above it.
#[test]
fn durations() {
    let metrics = Metrics::new();
    for milliseconds in [1, 2, 60, 900_000] {
        let took = Duration::from_millis(milliseconds);
        metrics.answered("GET", "/healthz", StatusCode::OK, took);
    }
    metrics.answered("BREW", "/healthz", StatusCode::OK, Duration::ZERO);
    let text = metrics.text(&Now {
        running: 0,
        waiting: None,
        spans_dropped: None,
        lines_dropped: Some(0),
    });
    for line in [
        "aish_http_request_duration_seconds_bucket{route=\"/healthz\",le=\"0.001\"} 2",
        "aish_http_request_duration_seconds_bucket{route=\"/healthz\",le=\"0.005\"} 3",
        "aish_http_request_duration_seconds_bucket{route=\"/healthz\",le=\"0.1\"} 4",
        "aish_http_request_duration_seconds_bucket{route=\"/healthz\",le=\"600\"} 4",
        "aish_http_request_duration_seconds_bucket{route=\"/healthz\",le=\"+Inf\"} 5",
        "aish_http_request_duration_seconds_count{route=\"/healthz\"} 5",
        "aish_http_requests_total{route=\"/healthz\",method=\"GET\",status=\"200\"} 4",
        "aish_http_requests_total{route=\"/healthz\",method=\"other\",status=\"200\"} 1",
        "aish_log_lines_dropped_total 0",
    ] {
        assert!(text.lines().any(|known| known == line), "{line}\n{text}");
    }
    assert!(!text.contains("aish_turns_waiting"), "{text}");
}

/// SPEC 9.8: whatever a provider counts, the sum is a number.
#[test]
fn counts_without_end() {
    let counted = |reply: &str| {
        [
            ("assistant", json!({"reply_id": reply, "model": "desk", "stop": "end"})),
            ("usage", json!({"input_tokens": u64::MAX, "output_tokens": 1})),
        ]
    };
    let events = turn(&[counted("r1"), counted("r2")].concat());
    let text = text_of(&[(&events, 1, None)]);
    let sum = format!("aish_model_tokens_total{{model=\"desk\",type=\"input\"}} {}", u64::MAX);
    assert!(text.lines().any(|line| line == sum), "{text}");
    assert!(text.contains("type=\"output\"} 2"), "{text}");
}
