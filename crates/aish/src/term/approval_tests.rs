//! The approval prompt: every answer there is, and what is shown of a call.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::approval::{Decision, Question, Reply, decide, in_sight, parse, prompt};
use super::tty::{Line, Person};
use super::{Colour, Form, Look};
use aish_core::Digest;
use aish_core::action::{Action, Effect, Hint};
use aish_core::id::CallId;
use aish_engine::Pending;
use aish_tools::Cancel;
use proptest::prelude::*;
use serde_json::json;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use tokio::sync::watch;

const LOOK: Look = Look {
    columns: 60,
    rows: 24,
    colour: Colour::Off,
    form: Form::Framed,
    ..Look::PLAIN
};

fn pending(tool: &str, arguments: &str) -> Pending {
    Pending {
        call_id: CallId::nth(3, 1),
        tool: tool.to_owned(),
        arguments: arguments.to_owned(),
        readable: String::new(),
        digest: Digest::new("0123456789abcdef"),
        rule: "mode ask".to_owned(),
    }
}

fn command() -> (Pending, Action) {
    let arguments = json!({ "command": "git push" });
    let action = Action {
        tool: "bash".to_owned(),
        effects: vec![Effect::Execute {
            command: "git push".to_owned(),
            directory: "/tmp".into(),
            parts: aish_core::parts::Parts::default(),
        }],
        arguments: arguments.clone(),
    };
    let pending = Pending {
        digest: action.digest(),
        ..pending("bash", &arguments.to_string())
    };
    (pending, action)
}

fn shown(pending: &Pending) -> String {
    let question = Question {
        pending,
        action: None,
        place: (1, 1),
    };
    prompt(&question, LOOK)
}

/// SPEC 6.8, 8.8: the difference to what was approved stands before the question, and nothing in it acts on the terminal.
#[test]
fn a_changed_definition() {
    let action = Action {
        tool: "mail.send".to_owned(),
        arguments: json!({}),
        effects: vec![Effect::Delegate {
            definition: Digest::new("d"),
            hint: Hint::Unknown,
            changed: Some(
                "description: \"Sends\" → \"Sends it to everybody you know, at once\"\nparameter \u{1b}[2J removed"
                    .to_owned(),
            ),
        }],
    };
    let pending = Pending {
        digest: action.digest(),
        rule: "its definition changed since it was approved".to_owned(),
        ..pending("mail.send", "{}")
    };
    let question = Question {
        pending: &pending,
        action: Some(&action),
        place: (1, 1),
    };
    insta::assert_snapshot!(prompt(&question, LOOK), @r#"
    asked because: its definition changed since it was approved
       · call_3_1 · 5e99f65c5f0d
      this tool is not the one that was approved:
        │ description: "Sends" → "Sends it to everybody you kno
        ╎ w, at once"
        │ parameter \x1b[2J removed
    call 'mail.send()'? [y/N/a/s/?] 
    "#);
}

/// SPEC 5.3: begins with y or Y, exactly `a`, exactly `s`, exactly `?`; SPEC 5.5: a no may carry a reason.
#[test]
fn answers() {
    let no = |reason: Option<&str>| Reply::No {
        reason: reason.map(str::to_owned),
    };
    let check = |line: &str, expect: Reply| assert_eq!(parse(Some(line)), expect, "{line:?}");
    for yes in ["y", "Y", "yes", "Yep", "yolo", "y\t"] {
        check(yes, Reply::Once);
    }
    check("a", Reply::Session);
    check("s", Reply::Save);
    check("?", Reply::Explain);
    for other in [
        "", " ", "n", "N", "no", "A", "S", "all", "a ", " a", "s!", "??", " y", "jes", "sure", "ok", "\u{443}",
    ] {
        check(other, no(None));
    }
    check("n use git mv instead", no(Some("use git mv instead")));
    check("No, wrong file", no(Some("wrong file")));
    check("never mind", no(None));
    assert_eq!(parse(None), no(None));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// SPEC 5.3: no line but those that begin with y, and `a`, allows anything at once.
    #[test]
    fn anything_else_is_no(line in "\\PC{0,8}") {
        let allows = matches!(parse(Some(&line)), Reply::Once | Reply::Session);
        prop_assert_eq!(allows, line.starts_with(['y', 'Y']) || line == "a");
    }

    /// SPEC 8.8: no argument draws on the terminal; SPEC 5.3: none forges the question's own line.
    #[test]
    fn arguments_stay_behind_their_mark(text in "(\\PC|\n|\x1b|\r){0,80}", key in "\\PC{1,6}") {
        let arguments = json!({ key: text, "z": [text] }).to_string();
        let shown = shown(&pending("file_write", &arguments));
        prop_assert!(shown.chars().all(|c| c == '\n' || !c.is_control()), "{:?}", shown);
        for (n, line) in shown.lines().enumerate() {
            let ours = n < 2 || line.starts_with("    ") || line.starts_with(")'?") || line.starts_with(", ") || line.starts_with("[y/N");
            prop_assert!(ours, "{:?} in {:?}", line, shown);
        }
        prop_assert!(shown.ends_with("[y/N/a/s/?] "));
    }
}

/// SPEC 5.3: one line where one line is enough, in the order the model wrote.
#[test]
fn short_calls() {
    insta::assert_snapshot!(shown(&pending("git.log", r#"{"path":"x","count":3}"#)), @r#"
    asked because: mode ask · call_3_1 · 0123456789ab
    call 'git.log(path="x", count=3)'? [y/N/a/s/?]
    "#);
    insta::assert_snapshot!(shown(&pending("git.log", "")), @"
    asked because: mode ask · call_3_1 · 0123456789ab
    call 'git.log()'? [y/N/a/s/?]
    ");
    insta::assert_snapshot!(shown(&pending("git.log", r#"{"path":"#)), @r#"
    asked because: mode ask · call_3_1 · 0123456789ab
    call 'git.log({"path":)'? [y/N/a/s/?]
    "#);
}

/// SPEC 5.3: all arguments, escaped and whole; lines as lines.
#[test]
fn long_calls() {
    let content = "fn main() {\n\tprintln!(\"\x1b[31mhi\");\n\n    // a line that is much too long for a terminal of this width\n}\n";
    let arguments = json!({ "content": content, "path": "src/main.rs" }).to_string();
    insta::assert_snapshot!(shown(&pending("file_write", &arguments)), @r#"
    asked because: mode ask · call_3_1 · 0123456789ab
    call 'file_write(content=
        │ fn main() {
        │         println!("\x1b[31mhi");
        │
        │     // a line that is much too long for a terminal of
        ╎  this width
        │ }
    , path="src/main.rs")'? [y/N/a/s/?]
    "#);
    let arguments = json!({ "path": "a", "old": "x\ny", "new": "x" }).to_string();
    insta::assert_snapshot!(shown(&pending("file_edit", &arguments)), @r#"
    asked because: mode ask · call_3_1 · 0123456789ab
    call 'file_edit(new="x", old=
        │ x
        │ y
        (no line break at the end)
    , path="a")'? [y/N/a/s/?]
    "#);
    let long = json!({ "command": format!("echo {}", "word ".repeat(20)) }).to_string();
    insta::assert_snapshot!(shown(&pending("bash", &long)), @r#"
    asked because: mode ask · call_3_1 · 0123456789ab
    call 'bash(command="echo word word word word word word word
         word word word word word word word word word word word
         word word ")'? [y/N/a/s/?]
    "#);
}

/// A person with answers at hand.
struct Scripted {
    answers: RefCell<VecDeque<Line>>,
    asked: RefCell<String>,
}

impl Person for Scripted {
    async fn ask_line(&self, prompt: String, _cancel: Cancel) -> io::Result<Line> {
        self.asked.borrow_mut().push_str(&prompt);
        let answer = self.answers.borrow_mut().pop_front().unwrap_or(Line::End);
        if let Line::Said(line) = &answer {
            self.asked.borrow_mut().push_str(&format!("{line}\n"));
        }
        Ok(answer)
    }
}

fn decided(action: Option<&Action>, pending: &Pending, answers: &[&str]) -> (Decision, String) {
    let said = |line: &&str| match *line {
        "^D" => Line::End,
        "^C" => Line::Cancelled,
        line => Line::Said(line.to_owned()),
    };
    let person = Scripted {
        answers: RefCell::new(answers.iter().map(said).collect()),
        asked: RefCell::default(),
    };
    let question = Question {
        pending,
        action,
        place: (2, 3),
    };
    let (_keep, cancel) = watch::channel(false);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let decision = runtime.block_on(decide(&person, &question, LOOK, &cancel)).unwrap();
    (decision, person.asked.into_inner())
}

/// SPEC 5.3: `s` shows the rule first; `?` explains; both ask again.
#[test]
fn conversations() {
    let (pending, action) = command();
    let check = |answers: &[&str], expect: Decision| {
        let (decision, asked) = decided(Some(&action), &pending, answers);
        assert_eq!(decision, expect, "{answers:?}");
        asked
    };
    let no = || Decision::No { reason: None };
    let save = || Decision::Save {
        rule: "bash(git push)".to_owned(),
    };
    check(&["y"], Decision::Once);
    check(&["a"], Decision::Session);
    check(&["^D"], no());
    check(&["^C"], Decision::Cancelled);
    check(&["s", "y"], save());
    check(&["s", "", "n"], no());
    check(&["s", "^C"], Decision::Cancelled);
    check(&["s", "^D", "^D"], no());
    insta::assert_snapshot!(check(&["?", "s", "y"], save()), @r#"
    2 of 3, asked because: mode ask · call_3_1 · 8a849d8f815c
    call 'bash(command="git push")'? [y/N/a/s/?] ?
      y         run this call, once
      n REASON  refuse, and tell the model why; any other answer refuses as well
      a         allow exactly this command until this session is over
      s         saves a rule for it, after showing it: bash(git push)
      Ctrl-C    stop the whole turn
    call 'bash(command="git push")'? [y/N/a/s/?] s
      allow from now on: bash(git push)
      save this rule? [y/N] y
    "#);
}

/// SPEC 3.3: no rule is offered for a call that would no longer do what was judged.
#[test]
fn no_rule_without_an_action() {
    let (pending, mut action) = command();
    action.effects.clear();
    for action in [None, Some(&action)] {
        let (decision, asked) = decided(action, &pending, &["s", "y"]);
        assert_eq!(decision, Decision::Once);
        assert!(asked.contains("No rule can be made"), "{asked}");
    }
}

/// SPEC 5.3: what stands before a long gap stays in sight, and the gap is told.
#[test]
fn gaps_are_told() {
    let gap = " ".repeat(1_900);
    assert_eq!(in_sight(&format!("rm x;{gap}ls")), "rm x; ⟨1900 blanks⟩ ls");
    assert_eq!(in_sight("a    b "), "a    b ");
}
