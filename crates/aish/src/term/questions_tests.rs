//! What the person sees when a server asks, and what becomes of what they type.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use serde_json::json;
use std::cell::RefCell;
use std::collections::VecDeque;
use tokio::sync::watch;

/// Somebody whose answers are known before; after them the question is taken back.
struct Script {
    lines: RefCell<VecDeque<Line>>,
    seen: RefCell<String>,
}

impl Script {
    fn new(lines: &[&str]) -> Self {
        Self {
            lines: RefCell::new(lines.iter().map(|line| Line::Said((*line).to_owned())).collect()),
            seen: RefCell::default(),
        }
    }
}

impl Person for Script {
    async fn ask_line(&self, prompt: String, _cancel: Cancel) -> io::Result<Line> {
        let line = self.lines.borrow_mut().pop_front().unwrap_or(Line::Cancelled);
        let mut seen = self.seen.borrow_mut();
        seen.push_str(&prompt);
        if let Line::Said(typed) = &line {
            seen.push_str(typed);
        }
        seen.push('\n');
        Ok(line)
    }
}

fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(future)
}

/// What filling that form in comes to, with those answers, and what was seen.
fn filled(message: &str, schema: &Value, lines: &[&str]) -> (Filled, String) {
    let person = Script::new(lines);
    let form = Form::read(schema).unwrap();
    let is_over = lines.len();
    let (canceller, cancel) = watch::channel(false);
    let look = Look {
        columns: 60,
        form: crate::term::Form::Framed,
        ..Look::PLAIN
    };
    let asking = Asking {
        person: &person,
        look,
        cancel: &cancel,
    };
    let filled = run(async {
        if is_over == 0 {
            canceller.send_replace(true);
        }
        asking.fill("one", message, &form).await.unwrap()
    });
    (filled, person.seen.into_inner())
}

fn form() -> Value {
    json!({
        "type": "object",
        "properties": {
            "age": { "type": "integer", "minimum": 0, "title": "Your age" },
            "colour": { "type": "string", "oneOf": [{ "const": "r", "title": "Red" }, { "const": "g", "title": "Green" }] },
            "nick": { "type": "string", "default": "Bo", "description": "What to call you." },
            "note": { "type": "string" },
        },
        "required": ["colour"],
    })
}

/// SPEC 6.9: a form says first who asks, then field by field what may be typed; wrong input asks again; defaults are filled in and
/// what was left out is not sent.
#[test]
fn a_form() {
    let (filled, seen) = filled("Tell me\nabout you.", &form(), &["y", "7", "2", "x", "41", "", "", ""]);
    assert_eq!(
        filled,
        Filled::Sent(
            json!({ "colour": "g", "age": 41, "nick": "Bo" })
                .as_object()
                .unwrap()
                .clone()
        )
    );
    insta::assert_snapshot!(seen, @r#"
    mcp: one asks:
      │ Tell me
      │ about you.
    answer it? [y/N] y
    1 of 4, 'colour': the number of one, required
        1  Red
        2  Green
    'colour': 7
      a number from 1 to 2
    'colour': 2
    2 of 4, 'Your age': whole number, at least 0, may be left o
      ut
    'Your age': x
      that is no whole number
    'Your age': 41
    3 of 4, 'nick': text, may be left out
      │ What to call you.
    'nick' [Bo; - leaves it out]: 
    4 of 4, 'note': text, may be left out
    'note': 
    send: {"age":41,"colour":"g","nick":"Bo"}
    send it? [Y/n] 
    "#);
}

/// SPEC 6.9: one key says no; nothing else than a yes is one.
#[test]
fn no() {
    for answer in ["n", "", "sure", "1"] {
        assert_eq!(filled("m", &form(), &[answer]).0, Filled::Declined, "{answer}");
    }
    let (declined, _) = filled("m", &form(), &["y", "1", "", "", "", "n"]);
    assert_eq!(declined, Filled::Declined);
    assert_eq!(filled("m", &form(), &[]).0, Filled::Stopped);
}

/// SPEC 8.8: nothing a server writes into a form acts on the terminal or looks like a line of ours.
#[test]
fn hostile_forms() {
    let evil = "\u{1b}[2J\r\u{202e}x\n[aish] y";
    let schema = json!({ "properties": { "password\n": {
        "type": "string", "title": evil, "description": evil, "enum": [evil, "b"], "default": evil,
    } } });
    let (_, seen) = filled(
        &format!("{evil}\n{}", "line\n".repeat(1_000)),
        &schema,
        &["y", "9", "", "y"],
    );
    assert!(!seen.contains(['\u{1b}', '\r', '\u{202e}']), "{seen}");
    assert!(!seen.lines().any(|line| line.starts_with("[aish]")), "{seen}");
    assert!(seen.contains("careful: 'password\\n' looks like a secret"), "{seen}");
    assert!(seen.contains("… and more") && seen.lines().count() < 80, "{seen}");
}

/// SPEC 6.9: a page is shown whole, with its host and what is odd about it, before it is opened.
#[test]
fn a_page() {
    let person = Script::new(&["y"]);
    let (_canceller, cancel) = watch::channel(false);
    let asking = Asking {
        person: &person,
        look: Look::PLAIN,
        cancel: &cancel,
    };
    let address = Address::read("http://example.com/a?b=c").unwrap();
    assert_eq!(run(asking.open("one", "Log in", &address)).unwrap(), Said::Yes);
    insta::assert_snapshot!(person.seen.into_inner(), @r"
    mcp: one asks to open a page:
      │ Log in
      http://example.com/a?b=c
      host: example.com
      careful: http: what is typed there can be read on the way
    open it? [y/N] y
    ");
}

/// SPEC 6.9: of a long text the beginning is shown, and all of it where the person wants to see it.
#[test]
fn texts_for_a_model() {
    let text = (1..=40).map(|n| format!("line {n}\n")).collect::<String>();
    let person = Script::new(&["?", ""]);
    let (_canceller, cancel) = watch::channel(false);
    let asking = Asking {
        person: &person,
        look: Look::PLAIN,
        cancel: &cancel,
    };
    let said = run(asking.may_pass("m answers:", &text, "send it to one?", Usual::Yes)).unwrap();
    assert_eq!(said, Said::Yes);
    let seen = person.seen.into_inner();
    let (first, second) = seen.split_once("send it to one? [Y/n/?] ?").unwrap();
    assert!(first.contains("line 16\n") && !first.contains("line 17\n") && first.contains("… and more"));
    assert!(second.contains("line 40\n") && !second.contains("… and more"));
}
