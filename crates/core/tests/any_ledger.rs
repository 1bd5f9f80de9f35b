//! Whatever a ledger holds (a copy cut short, an imported log, events of a newer or a broken program), folding it never
//! panics, what it says is a valid request, and the turn it leaves open can be driven to an end (SPEC 2.4, 2.6, 3.7).
//!
//! Events are drawn from a small pool of ids and numbers, so that they hit each other often, and stand in any order.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

mod support;

use aish_core::action::Digest;
use aish_core::event::{
    Answer, AnswerScope, AnsweredBy, Assistant, Body, CallAnswered, CallGated, CallSource, CallStarted, CallSuspended,
    CallTakenUp, Cancelled, Command, Draft, Event, Function, ModelFailed, Parts, ReplyStop, ResultEnd, Resumed,
    Suspended, ToolCall, ToolResult, TurnEnded, TurnStarted, Usage,
};
use aish_core::id::{CallId, ContinuationId, ReplyId, SessionId};
use aish_core::limits::Limits;
use aish_core::message::Part;
use aish_core::policy::{Grant, Verdict};
use aish_core::session::Session;
use aish_core::turn::{StopReason, Turn};
use serde_json::{Value, json};
use support::request::{assert_ends_in_text, assert_well_formed};
use support::rng::{Rng, SeedOnPanic};

const LEDGERS: u64 = 10_000;
const EVENTS_MAX: usize = 60;

fn call_id(rng: &mut Rng) -> CallId {
    CallId::nth(1, rng.below(4))
}

fn reply_id(rng: &mut Rng) -> ReplyId {
    ReplyId::nth(1, rng.below(4))
}

fn digest(rng: &mut Rng) -> Digest {
    Digest::new(rng.pick(&["one", "two"]))
}

fn assistant(rng: &mut Rng) -> Body {
    let stops = [
        ReplyStop::End,
        ReplyStop::End,
        ReplyStop::ToolCalls,
        ReplyStop::ToolCalls,
        ReplyStop::Paused,
        ReplyStop::Length,
        ReplyStop::Truncated,
        ReplyStop::Refused,
        ReplyStop::Interrupted,
        ReplyStop::Closing,
    ];
    let parts = [
        Part::text(""),
        Part::text("text"),
        Part::Thinking {
            text: "hm".into(),
            signature: Some("signed".into()),
            format: Some("anthropic".into()),
        },
        Part::Provider {
            format: "anthropic".into(),
            block: json!({}),
        },
        Part::PartialCall {
            name: "bash".into(),
            arguments: "{".into(),
        },
    ];
    let count = rng.below(3);
    Body::Assistant(Assistant {
        reply_id: reply_id(rng),
        parts: (0..count).map(|_| rng.pick(&parts)).collect(),
        model: rng.pick(&[None, Some("desk".into()), Some("cloud".into())]),
        attempt: rng.pick(&[0, 1, 2, u32::MAX]),
        stop: rng.pick(&stops),
        context_seq: rng.pick(&[0, 0, 3, 20, u64::MAX]),
        reason: None,
        fallback: None,
    })
}

fn call_event(rng: &mut Rng) -> Body {
    let arguments = ["", "{}", "{\"a\":1}", "{bad", "[]", "\"{}\"", "\u{0}"];
    let answer = CallAnswered {
        call_id: call_id(rng),
        answer: rng.pick(&[Answer::Approve, Answer::Deny]),
        digest: digest(rng),
        by: AnsweredBy::Client,
        scope: AnswerScope::Session,
        grant: rng.percent(50).then(|| Grant {
            tool: rng.pick(&["bash", "glob"]).into(),
            command: None,
        }),
        reason: None,
        request: None,
    };
    match rng.below(7) {
        4 => Body::CallSuspended(CallSuspended {
            call_id: call_id(rng),
            asks: vec!["\u{1b}?".into()],
            state: rng.pick(&[Value::Null, json!({ "requestState": "x" })]),
        }),
        5 => Body::CallTakenUp(CallTakenUp {
            call_id: call_id(rng),
            digest: digest(rng),
        }),
        0 => Body::ToolCall(ToolCall {
            id: call_id(rng),
            call_type: "function".into(),
            function: Function {
                name: "bash".into(),
                arguments: rng.pick(&arguments).into(),
            },
            reply_id: rng.percent(80).then(|| reply_id(rng)),
            provider_id: None,
        }),
        1 => Body::CallGated(CallGated {
            call_id: call_id(rng),
            verdict: rng.pick(&[Verdict::Allow, Verdict::Ask, Verdict::Deny, Verdict::Invalid]),
            rule: String::new(),
            digest: rng.percent(80).then(|| digest(rng)),
            source: rng.pick(&[CallSource::Builtin, CallSource::Mcp, CallSource::Client]),
            read_only: rng.percent(50),
            error: None,
        }),
        2 => Body::CallAnswered(answer),
        3 => Body::CallStarted(CallStarted {
            call_id: call_id(rng),
            digest: digest(rng),
        }),
        _ => Body::ToolResult(result(rng)),
    }
}

fn result(rng: &mut Rng) -> ToolResult {
    let ends = [
        ResultEnd::Completed,
        ResultEnd::Declined,
        ResultEnd::Denied,
        ResultEnd::Invalid,
        ResultEnd::NotRun,
        ResultEnd::Interrupted,
        ResultEnd::Limit,
        ResultEnd::Duplicate,
    ];
    ToolResult {
        tool_call_id: call_id(rng),
        name: String::new(),
        output: rng
            .pick(&["", "{\"output\":\"ééé\"}", "plain text, rather long"])
            .into(),
        success: rng.percent(50),
        end: rng.pick(&ends),
        parts: Vec::new(),
    }
}

fn turn_event(rng: &mut Rng) -> Body {
    let reasons = [
        StopReason::End,
        StopReason::Limit,
        StopReason::Declined,
        StopReason::Cancelled,
    ];
    let continuation = ContinuationId::new(rng.pick(&["x", "y"]));
    match rng.below(6) {
        0 => Body::TurnStarted(TurnStarted {
            limits: Limits {
                max_tool_turns: rng.pick(&[0, 1, u32::MAX]),
                max_tool_depth: rng.pick(&[0, 1, u32::MAX]),
                max_model_attempts: rng.pick(&[0, 2, u32::MAX]),
                max_result_chars: rng.pick(&[0, 10, usize::MAX]),
            },
            ..TurnStarted::default()
        }),
        1 => Body::ModelFailed(ModelFailed {
            error: "connect".into(),
            attempt: rng.pick(&[0, 1, u32::MAX]),
            text_shown: rng.percent(50),
            retryable: rng.percent(50),
            retry_after_ms: Some(u64::MAX),
            fallback: rng.percent(20).then(|| rng.pick(&["b", "c"]).to_owned()),
            model: None,
        }),
        2 => Body::Suspended(Suspended {
            continuation,
            call_id: rng.percent(50).then(|| CallId::nth(1, 1)),
            expires: rng.percent(50).then_some(u64::MAX),
        }),
        3 => Body::Resumed(Resumed {
            continuation,
            answer: None,
            request: None,
        }),
        4 => Body::Cancelled(Cancelled { reason: String::new() }),
        _ => Body::TurnEnded(TurnEnded {
            reason: rng.pick(&reasons),
        }),
    }
}

fn other_event(rng: &mut Rng) -> Body {
    match rng.below(9) {
        0 => Body::System(Parts::default()),
        1 => Body::Command(Command::default()),
        2 => Body::Usage(Usage::default()),
        3 => Body::Clear,
        4 => Body::Rewind(Value::Null),
        5 => Body::Compaction(json!({})),
        6 => Body::Unknown {
            kind: "dream".into(),
            data: json!([1]),
        },
        7 => Body::Note(Value::Null),
        _ => Body::Fork(Value::Null),
    }
}

fn any_event(rng: &mut Rng, seq: u64) -> Event {
    let body = match rng.below(100) {
        0..15 => Body::User(Parts::default()),
        15..40 => assistant(rng),
        40..75 => call_event(rng),
        75..93 => turn_event(rng),
        _ => other_event(rng),
    };
    let turn = rng.pick(&[0, 1, 1, 1, 1, 1, 1, 2, 2, u64::MAX]);
    let content = rng.pick(&["", " ", "text", "\u{202e}text"]);
    let seq = if rng.percent(99) { seq } else { rng.pick(&[0, u64::MAX]) };
    Draft::new(turn, content, body).place(&SessionId::new("s"), seq, 0)
}

fn any_ledger(rng: &mut Rng) -> Vec<Event> {
    let count = 1 + rng.below(EVENTS_MAX);
    let mut events: Vec<Event> = (1..=count as u64).map(|seq| any_event(rng, seq)).collect();
    if rng.percent(70) {
        // Without a beginning nothing of a turn would be folded at all.
        let started = Draft::turn_started(1, TurnStarted::default());
        events.insert(0, started.place(&SessionId::new("s"), 1, 0));
    }
    events
}

/// SPEC 2.4, 2.6: any sequence of events folds and projects to a valid request; taken in one by one it gives the same.
#[test]
fn any_events_fold_and_project() {
    for seed in 0..LEDGERS {
        let _seed = SeedOnPanic(seed);
        let mut rng = Rng::new(seed);
        let events = any_ledger(&mut rng);
        let mut lived = Session::new(SessionId::new("s"));
        for event in &events {
            let _outside_reading = (lived.turn().map(Turn::next), lived.next_turn(), lived.context_len());
            lived.accept(event.clone());
        }
        let loaded = Session::load(SessionId::new("s"), events);
        assert_eq!(format!("{loaded:?}"), format!("{lived:?}"));
        assert_well_formed(&loaded.projection());
    }
}

/// SPEC 2.4: what an event says survives being written down and read again.
#[test]
fn any_event_survives_the_ledger() {
    let mut rng = Rng::new(1);
    for seq in 0..LEDGERS {
        let event = any_event(&mut rng, seq);
        let read = Body::decode(event.body.kind(), &event.body.data_json()).unwrap();
        assert_eq!(read, event.body);
    }
}

/// SPEC 3.7: no ledger leaves a session that cannot go on: the turn it leaves open can be cancelled, and the next one begun.
#[test]
fn any_session_can_go_on() {
    for seed in 0..LEDGERS {
        let _seed = SeedOnPanic(seed);
        let events = any_ledger(&mut Rng::new(seed));
        if events
            .iter()
            .any(|event| event.seq == u64::MAX || event.turn == u64::MAX)
        {
            // Nothing comes after the last number there is.
            continue;
        }
        let mut session = Session::load(SessionId::new("s"), events);
        let closing = session.open_turn().map(|turn| turn.cancelling("stopped"));
        if let Some(drafts) = closing {
            session.append(0, drafts).unwrap();
            // An event that may not stand where it stands is still told, and may be the last word.
            if session.passed_over() == 0 {
                assert_ends_in_text(&session.projection());
            }
        }
        let turn = session.next_turn();
        let question = vec![
            Draft::turn_started(turn, TurnStarted::default()),
            Draft::user(turn, "go on"),
        ];
        session.append(0, question).unwrap();
        assert_well_formed(&session.projection());
    }
}
