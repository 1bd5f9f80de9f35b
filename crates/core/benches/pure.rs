//! What the pure parts cost that run for every piece of text, every request and every call (SPEC 11).
#![allow(clippy::unwrap_used, missing_docs)]

use aish_core::action::{Action, Effect};
use aish_core::event::{Assistant, CallSource, Draft, Event, Function, ReplyStop, ToolCall, ToolResult, TurnStarted};
use aish_core::id::{CallId, ReplyId, SessionId};
use aish_core::policy::{ApprovalMode, Policy, Rule, SoFar};
use aish_core::redact::Redactor;
use aish_core::{event::Body, projection, sanitize};
use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};

/// Messages of the conversation that is projected.
const MESSAGES: usize = 1_000;
/// Messages of one round: a question, a reply with a call, its result, an answer.
const MESSAGES_PER_TURN: usize = 4;
const RESULT_BYTES: usize = 2_000;
const TEXT_BYTES: usize = 64 * 1024;
const RULES: usize = 60;
/// A piece of a stream.
const PIECE: &str = " a few words of it";

fn main() {
    divan::main();
}

/// Text as models write it, and text where every character must be looked at or escaped.
const TEXTS: [&str; 3] = ["plain", "multilingual", "hostile"];

#[divan::bench(args = TEXTS)]
fn sanitiser(bencher: Bencher<'_, '_>, kind: &str) {
    let piece = match kind {
        "plain" => "plain words and `code`\n",
        "multilingual" => "Größe, 日本語, naïve\n",
        _ => "a\x1b[\u{202e}",
    };
    let text = piece.repeat(TEXT_BYTES / piece.len());
    bencher
        .counter(BytesCount::of_str(&text))
        .bench(|| sanitize::multi_line(divan::black_box(&text)).len());
}

/// A stream of short pieces, as models send them, past some keys (SPEC 11: 20,000 streamed chunks).
#[divan::bench(args = [0, 3, 30])]
fn redactor(bencher: Bencher<'_, '_>, secrets: usize) {
    let named = (0..secrets).map(|n| (format!("KEY_{n}"), format!("secret-number-{n:020}")));
    let redactor = Redactor::new(named);
    bencher.counter(BytesCount::of_str(PIECE)).bench(|| {
        let piece = divan::black_box(PIECE);
        redactor.settled_len(piece) + redactor.redact(piece).len()
    });
}

fn turn(turn: u64) -> Vec<Draft> {
    let reply = |n| Assistant {
        reply_id: ReplyId::nth(turn, n),
        parts: Vec::new(),
        model: Some("m".to_owned()),
        attempt: 1,
        stop: ReplyStop::End,
        context_seq: 0,
        reason: None,
        fallback: None,
    };
    let call = ToolCall {
        id: CallId::nth(turn, 1),
        call_type: "function".to_owned(),
        function: Function {
            name: "grep".to_owned(),
            arguments: r#"{"pattern":"fn main","path":"src"}"#.to_owned(),
        },
        reply_id: Some(ReplyId::nth(turn, 1)),
        provider_id: None,
    };
    let result = ToolResult {
        tool_call_id: CallId::nth(turn, 1),
        name: "grep".to_owned(),
        output: "x".repeat(RESULT_BYTES),
        success: true,
        end: aish_core::event::ResultEnd::Completed,
        parts: Vec::new(),
    };
    vec![
        Draft::turn_started(turn, TurnStarted::default()),
        Draft::user(turn, "where is it?"),
        Draft::new(turn, "I look.", Body::Assistant(reply(1))),
        Draft::tool_call(turn, call),
        Draft::tool_result(turn, "1 match", result),
        Draft::new(turn, "There.", Body::Assistant(reply(2))),
    ]
}

fn conversation() -> Vec<Event> {
    let id = SessionId::from_parts(0, 7);
    let turns = u64::try_from(MESSAGES / MESSAGES_PER_TURN).unwrap();
    let drafts = (1..=turns).flat_map(turn);
    (1..).zip(drafts).map(|(seq, draft)| draft.place(&id, seq, 0)).collect()
}

#[divan::bench]
fn projection_of_1_000_messages(bencher: Bencher<'_, '_>) {
    let events = conversation();
    assert_eq!(projection::project(&events).messages.len(), MESSAGES);
    bencher
        .counter(ItemsCount::new(MESSAGES))
        .bench(|| projection::project(divan::black_box(&events)));
}

/// A judgement by the default, with many rules to look through first.
#[divan::bench]
fn judge(bencher: Bencher<'_, '_>) {
    let mut policy = Policy::new("/home/user/project");
    for n in 0..RULES {
        let rule = Rule::parse(&format!("bash(git log --grep=word{n} *)")).unwrap();
        policy.allow.push(rule);
    }
    let action = Action {
        tool: "file_read".to_owned(),
        arguments: serde_json::json!({"path": "src/main.rs"}),
        effects: vec![Effect::Read {
            path: "/home/user/project/src/main.rs".into(),
        }],
    };
    bencher.bench(|| {
        policy.judge(
            divan::black_box(&action),
            CallSource::Builtin,
            ApprovalMode::Ask,
            SoFar::default(),
        )
    });
}
