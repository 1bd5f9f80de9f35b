//! Exports, and the corpus of ledgers that earlier versions wrote.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use aish_core::event::{Body, Event, KINDS};
use aish_core::id::SessionId;
use aish_core::session::Session;
use aish_core::turn::{StopReason, Turn};
use aish_store::RawEvent;
use aish_store::export::{jsonl_line, markdown, markdown_head};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeSet;

/// Every kind of event, as the first version exported it.
const V1: &str = include_str!("ledgers/v1.jsonl");

/// Reads a line of an export back.
fn parse(line: &str) -> (SessionId, RawEvent) {
    let fields: std::collections::BTreeMap<String, &RawValue> = serde_json::from_str(line).unwrap();
    let text = |name: &str| serde_json::from_str::<String>(fields[name].get()).unwrap();
    let number = |name: &str| serde_json::from_str::<u64>(fields[name].get()).unwrap();
    let event = RawEvent {
        seq: number("seq"),
        turn: number("turn"),
        time: number("time"),
        version: u32::try_from(number("version")).unwrap(),
        kind: text("kind"),
        content: text("content"),
        data: fields["data"].get().to_owned(),
    };
    (SessionId::new(text("session")), event)
}

fn raw(kind: &str, content: &str, data: &str) -> RawEvent {
    RawEvent {
        seq: 3,
        turn: 1,
        time: 1_700_000_000_123,
        version: 1,
        kind: kind.into(),
        content: content.into(),
        data: data.into(),
    }
}

/// SPEC 2.4: a ledger of every earlier version folds, every kind in it, and each known field is read: written again by
/// this version, nothing of it is missing or changed.
#[test]
fn earlier_ledgers_fold() {
    for (version, corpus, kinds_known) in [(1, V1, 27)] {
        let mut kinds = BTreeSet::new();
        let (id, _) = parse(corpus.lines().next().unwrap());
        let mut session = Session::new(id);
        for line in corpus.lines() {
            let (session_id, raw) = parse(line);
            let body = Body::decode(&raw.kind, &raw.data).unwrap_or_else(|error| panic!("{error}: {line}"));
            let event = Event {
                session: session_id,
                seq: raw.seq,
                turn: raw.turn,
                time: raw.time,
                version: raw.version,
                content: raw.content,
                body,
            };
            assert_eq!(event.version, version, "{line}");
            assert_contains(&event.to_json(), &serde_json::from_str(line).unwrap(), line);
            session.apply(event).unwrap_or_else(|error| panic!("{error}: {line}"));
            kinds.insert(raw.kind);
        }
        assert!(!session.is_read_only());
        assert_eq!(session.turn().and_then(Turn::ended), Some(StopReason::Cancelled));
        // A kind that a later version adds is not in an earlier corpus.
        assert!(kinds.iter().all(|kind| KINDS.contains(&kind.as_str())));
        assert_eq!(kinds.len(), kinds_known);
    }
}

/// Everything in `was` is in `is`; a later version may write more.
fn assert_contains(is: &Value, was: &Value, line: &str) {
    match (is, was) {
        (Value::Object(is), Value::Object(was)) => {
            for (name, value) in was {
                let Some(kept) = is.get(name) else {
                    panic!("{name} is lost: {line}")
                };
                assert_contains(kept, value, line);
            }
        }
        _ => assert_eq!(is, was, "{line}"),
    }
}

/// SPEC 2.10: an export is one event a line and gives back each event as it was written, data to the byte.
#[test]
fn json_lines_round_trip() {
    let session = SessionId::new("s\"1");
    let data = r#"{ "b" : 1.0, "a":"\u00e9\n" , "n":12345678901234567890123}"#;
    let event = raw("hologram", "two\nlines \u{1b}[0m \"quoted\"", data);
    let line = jsonl_line(&session, &event);
    assert!(!line.contains(['\n', '\u{1b}']), "{line}");
    assert!(line.ends_with(&format!(r#""data":{data}}}"#)), "{line}");
    assert_eq!(parse(&line), (session, event));
}

/// SPEC 2.10: a line of an export is the event as `--output jsonl` writes it.
#[test]
fn json_lines_are_the_events() {
    for line in V1.lines() {
        let (session, raw) = parse(line);
        assert_eq!(jsonl_line(&session, &raw), line);
    }
}

/// SPEC 2.10: every line can be read, whatever a damaged ledger holds.
#[test]
fn broken_data_is_a_string() {
    let session = SessionId::new("s");
    for (data, expect) in [
        ("{\"a\":\r\n1}", "{\"a\":  1}"),
        ("{oops\n", r#""{oops\n""#),
        ("1} , \"kind\":\"x\"", r#""1} , \"kind\":\"x\"""#),
        ("", r#""""#),
    ] {
        let line = jsonl_line(&session, &raw("note", "", data));
        assert!(line.ends_with(&format!(r#""data":{expect}}}"#)), "{line}");
        serde_json::from_str::<Value>(&line).unwrap();
    }
}

/// SPEC 2.10: a conversation reads as one, without what is not said in it.
#[test]
fn markdown_is_the_conversation() {
    let session = SessionId::new("s-1");
    let mut text = markdown_head(&session, "what is *here*?\nmore");
    let events: Vec<RawEvent> = V1.lines().map(|line| parse(line).1).collect();
    text.push_str(&markdown(&events));
    let expect = include_str!("ledgers/v1.md");
    assert_eq!(text, expect);
}

/// SPEC 2.10, 8.8: no output can end its fence and no text can pass for a heading of the export.
#[test]
fn markdown_is_fenced_safely() {
    let escape = "a\n```\n## User\n````\nb";
    let data = serde_json::json!({"tool_call_id": "c", "name": "a`b", "output": escape, "success": false});
    let section = markdown(&[raw("tool_result", "<b>1</b>", &data.to_string())]);
    assert_eq!(
        section,
        format!("\n## Failed of ``a`b``\n\n\\<b\\>1\\</b\\>\n\n`````\n{escape}\n`````\n")
    );

    let said = "# Title\n  ## User\ntext\n---\n```sh\n# comment\n";
    let section = markdown(&[raw("user", said, "null")]);
    assert_eq!(
        section,
        "\n## User\n\n### Title\n#### User\ntext\n\\---\n```sh\n# comment\n```\n"
    );
}
