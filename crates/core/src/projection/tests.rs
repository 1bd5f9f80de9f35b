//! What a model is sent, by examples. A script tells the ledger, one event a line; [`check`] compares the messages.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use crate::event::*;
use crate::id::SessionId;
use crate::message::text_of;

/// `turn N`, `user TEXT`, `say TEXT`, `call a b`, `result a TEXT`, `closing TEXT`, `clear`, `system TEXT`; `@N` after a
/// reply's verb: it has seen events up to N. Turn 0, before any `turn`: an imported log, whose calls have no reply.
fn ledger(script: &str) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    let mut turn = 0;
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        let (verb, seen) = verb.split_once('@').unwrap_or((verb, "0"));
        let reply_id = ReplyId::new(format!("reply_{}", events.len()));
        let reply = |stop, parts| {
            Body::Assistant(Assistant {
                reply_id: reply_id.clone(),
                parts,
                model: Some("desk".into()),
                attempt: 1,
                stop,
                context_seq: seen.parse().unwrap(),
                reason: None,
                fallback: None,
            })
        };
        let thought = Part::thinking("hm");
        let half = Part::PartialCall {
            name: "bash".into(),
            arguments: "{\"comm".into(),
        };
        let bodies = match verb {
            "turn" => {
                turn = rest.parse().unwrap();
                vec![Draft::turn_started(turn, TurnStarted::default())]
            }
            "user" => vec![Draft::user(turn, rest)],
            "system" => vec![Draft::new(turn, rest, Body::System(Parts::default()))],
            "say" => vec![Draft::new(turn, rest, reply(ReplyStop::End, Vec::new()))],
            "think" => vec![Draft::new(turn, rest, reply(ReplyStop::End, vec![thought]))],
            "cut" => vec![Draft::new(turn, rest, reply(ReplyStop::Truncated, vec![half]))],
            "closing" => vec![Draft::new(turn, rest, reply(ReplyStop::Closing, Vec::new()))],
            "clear" => vec![Draft::new(0, "", Body::Clear)],
            "call" => calls(turn, rest, reply(ReplyStop::ToolCalls, Vec::new()), &reply_id),
            "result" => vec![result(turn, rest)],
            other => panic!("no such line: {other}"),
        };
        for draft in bodies {
            let seq = events.len() as u64 + 1;
            events.push(draft.place(&SessionId::new("s"), seq, 0));
        }
    }
    events
}

fn calls(turn: u64, ids: &str, reply: Body, reply_id: &ReplyId) -> Vec<Draft> {
    let imported = turn == 0;
    let mut drafts = if imported {
        Vec::new()
    } else {
        vec![Draft::new(turn, "", reply)]
    };
    for id in ids.split(' ') {
        let (id, arguments) = id.split_once(':').unwrap_or((id, ""));
        let call = ToolCall {
            id: CallId::new(id),
            call_type: "function".into(),
            function: Function {
                name: "bash".into(),
                arguments: arguments.into(),
            },
            reply_id: (!imported).then(|| reply_id.clone()),
            provider_id: None,
        };
        drafts.push(Draft::tool_call(turn, call));
    }
    drafts
}

fn result(turn: u64, rest: &str) -> Draft {
    let (id, output) = rest.split_once(' ').unwrap_or((rest, "done"));
    let data = ToolResult {
        tool_call_id: CallId::new(id),
        name: "bash".into(),
        output: output.into(),
        success: true,
        end: ResultEnd::Completed,
        parts: Vec::new(),
    };
    Draft::tool_result(turn, output, data)
}

fn shown(message: &Message) -> String {
    match message {
        Message::User { parts } => format!("user {}", text_of(parts)),
        Message::Assistant { parts, calls, .. } => {
            let calls: String = calls
                .iter()
                .map(|call| format!(" {}{}", call.id, call.arguments))
                .collect();
            format!("assistant {}{calls}", text_of(parts).replace('\n', "|"))
        }
        Message::Tool { call_id, output, .. } => format!("tool {call_id} {output}"),
    }
}

#[track_caller]
fn check(script: &str, expected: &[&str]) {
    let messages: Vec<String> = project(&ledger(script)).messages.iter().map(shown).collect();
    assert_eq!(messages, expected, "of\n{script}");
}

const LOST: &str = r#"{"error":"interrupted: the end of this call is not known"}"#;

/// SPEC 2.7: exactly one result per call, in call order, the calls of one reply in one message.
#[test]
fn calls_are_grouped_and_their_results_in_call_order() {
    check(
        "turn 1\n user q\n call a b\n result b second\n result a first\n say done",
        &[
            "user q",
            "assistant  a{} b{}",
            "tool a first",
            "tool b second",
            "assistant done",
        ],
    );
}

/// SPEC 2.6: orphans are repaired, never sent.
#[test]
fn orphans_are_repaired() {
    let lost = format!("tool a {LOST}");
    check("turn 1\n user q\n call a", &["user q", "assistant  a{}", &lost]);
    check("turn 1\n user q\n result a\n say done", &["user q", "assistant done"]);
    check(
        "turn 1\n user q\n result a early\n call a",
        &["user q", "assistant  a{}", &lost],
    );
    check("turn 1\n user q\n call a\n clear\n result a\n user r", &["user r"]);
}

/// SPEC 3.5a: a result that comes after a synthesised one is kept, not projected; nor is one of another turn.
#[test]
fn the_first_result_counts() {
    check(
        "turn 1\n user q\n call a\n result a cut\n closing stop\n turn 2\n result a late",
        &["user q", "assistant  a{}", "tool a cut", "assistant stop"],
    );
    let lost = format!("tool a {LOST}");
    check(
        "turn 1\n user q\n closing stop\n turn 2\n user r\n call a\n turn 1\n result a astray",
        &["user q", "assistant stop", "user r", "assistant  a{}", &lost],
    );
}

/// SPEC 3.5a: a message typed meanwhile comes after the results of the round, where the next reply saw it.
#[test]
fn steering_comes_where_it_was_seen() {
    check(
        "turn 1\n user q\n call@2 a\n user steer\n result a\n say@6 done",
        &[
            "user q",
            "assistant  a{}",
            "tool a done",
            "user steer",
            "assistant done",
        ],
    );
    check(
        "turn 1\n user q\n user steer\n say@2 done\n say@4 more",
        &["user q", "assistant done", "user steer", "assistant more"],
    );
    check(
        "turn 1\n user q\n user steer\n closing stop",
        &["user q", "user steer", "assistant stop"],
    );
    check("turn 1\n user q\n user steer", &["user q", "user steer"]);
    check(
        "turn 1\n user q\n user steer\n say done",
        &["user q", "user steer", "assistant done"],
    );
}

/// SPEC 3.7: two replies in a row are one message; one that said nothing is none.
#[test]
fn assistant_messages_never_stand_side_by_side() {
    check(
        "turn 1\n user q\n cut half\n closing [stopped]",
        &["user q", "assistant half|[stopped]"],
    );
    check(
        "turn 1\n user q\n say\n think\n cut\n say done",
        &["user q", "assistant done"],
    );
    check(
        "turn 1\n user q\n say one\n call a\n result a",
        &["user q", "assistant one a{}", "tool a done"],
    );
}

/// What only its own model understands is not sent under another one's name.
#[test]
fn thinking_is_not_handed_to_another_model() {
    let mut events = ledger("turn 1\n user q\n think\n say done");
    let Body::Assistant(thought) = &mut events[2].body else {
        panic!()
    };
    thought.parts.push(Part::text("text"));
    let Body::Assistant(said) = &mut events[3].body else {
        panic!()
    };
    said.model = Some("cloud".into());
    let projection = project(&events);
    let Some(Message::Assistant { parts, model, .. }) = projection.messages.get(1) else {
        panic!()
    };
    assert_eq!(model.as_deref(), Some("cloud"));
    assert!(parts.iter().all(|part| matches!(part, Part::Text { .. })), "{parts:?}");
}

/// SPEC 7.3: a call of a reply that was cut is kept in the ledger and never sent.
#[test]
fn cut_calls_are_not_sent() {
    let mut events = ledger("turn 1\n user q\n call a\n say done");
    let Body::Assistant(reply) = &mut events[2].body else {
        panic!()
    };
    reply.stop = ReplyStop::Length;
    let shown: Vec<String> = project(&events).messages.iter().map(shown).collect();
    assert_eq!(shown, ["user q", "assistant done"]);
}

/// SPEC 2.10: imported logs have no replies; their calls group by neighbourhood, and ids that servers repeat are told apart.
#[test]
fn imported_logs_are_valid_requests() {
    check(
        "user q\n call call_0 call_1\n result call_0 x\n result call_1 y\n call call_0\n result call_0 z\n say done",
        &[
            "user q",
            "assistant  call_0{} call_1{}",
            "tool call_0 x",
            "tool call_1 y",
            "assistant  call_0_2{}",
            "tool call_0_2 z",
            "assistant done",
        ],
    );
    check(
        "say hello\n user q",
        &[
            "user (the conversation began before this point)",
            "assistant hello",
            "user q",
        ],
    );
    check("user\n say a", &["user (no text)", "assistant a"]);
}

/// SPEC 2.9: clearing empties the context.
#[test]
fn clear_empties_the_context() {
    check("turn 1\n user q\n say a\n clear", &[]);
    check("turn 1\n user q\n say a\n clear\n turn 2\n user r", &["user r"]);
    assert_eq!(project(&ledger("system be brief\n user q")).system, ["be brief"]);
}

/// SPEC 4.3: request prefixes stay stable: what was sent once is sent the same again.
#[test]
fn a_request_begins_with_the_one_before() {
    let script = "turn 1\n user q\n call@2 a b\n result b\n user steer\n result a\n say@9 done\n turn 2\n user r\n cut x\n closing stop";
    let events = ledger(script);
    let asked_at = [2, 8, 11];
    let requests: Vec<Vec<Message>> = asked_at.iter().map(|seq| project(&events[..*seq]).messages).collect();
    let all = project(&events).messages;
    for request in requests {
        assert_eq!(all.get(..request.len()), Some(&request[..]));
    }
}

/// SPEC 3.8: a later request carries arguments that parse.
#[test]
fn arguments_are_repaired() {
    let cases = [
        ("", "{}"),
        ("  ", "{}"),
        ("null", "{}"),
        (" {\"a\":1} ", "{\"a\":1}"),
        ("\"{\\\"a\\\":1}\"", "{\"a\":1}"),
        ("{\"a\":", "{\"invalid_arguments\":\"{\\\"a\\\":\"}"),
        ("[1]", "{\"invalid_arguments\":\"[1]\"}"),
        ("{\"a\":1}{", "{\"invalid_arguments\":\"{\\\"a\\\":1}{\"}"),
    ];
    for (raw, repaired) in cases {
        assert_eq!(repaired_arguments(raw), repaired, "{raw}");
    }
    check(
        "turn 1\n user q\n call a:{\n result a",
        &["user q", r#"assistant  a{"invalid_arguments":"{"}"#, "tool a done"],
    );
}

/// SPEC 4.3: head and tail of a long result are kept, and no more than the bound; one that fits is unchanged.
#[test]
fn long_results_are_cut_in_the_middle() {
    let exact = "x".repeat(6000);
    assert_eq!(cut_result(&exact, 6000), exact);
    for text in ["abc\n".repeat(2000), "é".repeat(7000), "🦀\"\\".repeat(3000)] {
        let cut = cut_result(&text, 6000);
        assert!(cut.chars().count() <= 6000, "{}", cut.chars().count());
        assert!(cut.chars().count() > 5800, "{}", cut.chars().count());
        assert!(cut.starts_with(text.get(..12).unwrap()) && cut.ends_with(text.get(text.len() - 6..).unwrap()));
        assert!(
            cut.contains(&format!("of {} characters left out", text.chars().count())),
            "{cut}"
        );
    }
    assert!(cut_result(&"x".repeat(100), 10).len() > 10, "the cut is always stated");
}

/// SPEC 4.3, 3.6: in a built-in tool's JSON the `output` is cut; the other fields, such as the limit's, stay readable.
#[test]
fn the_output_of_a_json_result_is_cut() {
    let text = "line \"one\"\n\u{1b}[0m".repeat(1000);
    let whole = json!({ "output": text, "exit_code": 3, "limit_reached": true }).to_string();
    let cut = cut_result(&whole, 6000);
    assert!(cut.chars().count() <= 6000, "{}", cut.chars().count());
    let object: Value = serde_json::from_str(&cut).unwrap();
    assert_eq!(object["exit_code"], 3);
    assert_eq!(object["limit_reached"], true);
    let output = object["output"].as_str().unwrap();
    assert!(output.starts_with("line \"one\"\n") && output.contains("characters left out"));
    // Where something else is what is long, cutting the output would not help.
    let elsewhere = json!({ "output": "short", "error": "x".repeat(9000) }).to_string();
    assert!(cut_result(&elsewhere, 6000).chars().count() <= 6000);
}
