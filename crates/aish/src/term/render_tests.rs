//! What a person sees for each notice, on narrow and wide terminals, with styles and without.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::render::Renderer;
use super::{Colour, Form, Look, Output, Stream};
use aish_core::event::{Command, ResultEnd, Usage};
use aish_core::id::CallId;
use aish_core::redact::Redactor;
use aish_engine::Notice;
use std::time::Duration;

pub(super) fn look(columns: usize, colour: Colour) -> Look {
    Look {
        columns,
        rows: 12,
        colour,
        form: Form::Framed,
        ..Look::PLAIN
    }
}

pub(super) fn renderer(look: Look) -> Renderer {
    Renderer::new(look, Redactor::default())
}

/// Each notice a second and a half after the one before.
pub(super) fn rendered(look: Look, notices: &[Notice]) -> Output {
    let mut renderer = renderer(look);
    let mut out = Output::new();
    for (n, notice) in notices.iter().enumerate() {
        renderer.notice(notice, Duration::from_millis(1_500 * n as u64), &mut out);
    }
    renderer.finish(&mut out);
    out
}

/// For snapshots: escape bytes made visible.
fn text(look: Look, notices: &[Notice]) -> String {
    rendered(look, notices).text().replace('\x1b', "␛")
}

fn plain(notices: &[Notice]) -> String {
    text(Look::PLAIN, notices)
}

fn at_40(notices: &[Notice]) -> String {
    text(look(40, Colour::Off), notices)
}

fn at_80(notices: &[Notice]) -> String {
    text(look(80, Colour::Off), notices)
}

fn coloured(notices: &[Notice]) -> String {
    text(look(80, Colour::On), notices)
}

pub(super) fn call() -> CallId {
    CallId::nth(1, 2)
}

pub(super) fn said(text: &str) -> Notice {
    Notice::Text(text.to_owned())
}

pub(super) fn started(readable: &str) -> Notice {
    Notice::CallStarted {
        call: call(),
        readable: readable.to_owned(),
    }
}

pub(super) fn printed(text: &str) -> Notice {
    Notice::ToolOutput {
        call: call(),
        text: text.to_owned(),
    }
}

pub(super) fn ended(readable: &str, output: &str, summary: &str) -> Notice {
    Notice::CallEnded {
        call: call(),
        readable: readable.to_owned(),
        output: output.to_owned(),
        summary: summary.to_owned(),
        success: true,
        end: ResultEnd::Completed,
    }
}

pub(super) fn failed(readable: &str, summary: &str, end: ResultEnd) -> Notice {
    Notice::CallEnded {
        call: call(),
        readable: readable.to_owned(),
        output: serde_json::json!({ "error": summary }).to_string(),
        summary: summary.to_owned(),
        success: false,
        end,
    }
}

const GLOB: &str = r#"glob(pattern="*.c", path="src/")"#;

fn found() -> Vec<Notice> {
    vec![
        said("I'll look."),
        Notice::CallBegun { name: "glob".into() },
        Notice::ReplyEnded,
        started(GLOB),
        ended(GLOB, r#"{"output":"src/a.c\nsrc/b.c","count":2}"#, "2 files found"),
        said("Two files."),
        Notice::ReplyEnded,
    ]
}

/// SPEC 8.5: a call is set off by rules, its result indented.
#[test]
fn a_round_of_tools() {
    insta::assert_snapshot!(at_40(&found()), @r#"
    I'll look.
    … glob
    ─── glob(pattern="*.c", path="src/") ──
        src/a.c
        src/b.c
    ─── 2 files found · 1.5 s ─────────────
    Two files.
    "#);
    insta::assert_snapshot!(at_80(&found()), @r#"
    I'll look.
    … glob
    ─── glob(pattern="*.c", path="src/") ──────────────────────────────────────────
        src/a.c
        src/b.c
    ─── 2 files found · 1.5 s ─────────────────────────────────────────────────────
    Two files.
    "#);
    insta::assert_snapshot!(coloured(&found()), @r#"
    I'll look.
    ␛[2m… glob␛[0m
    ␛[2m─── glob(pattern="*.c", path="src/") ──────────────────────────────────────────␛[0m
    ␛[2m    src/a.c
        src/b.c␛[0m
    ␛[2m─── 2 files found · 1.5 s ─────────────────────────────────────────────────────␛[0m
    Two files.
    "#);
    insta::assert_snapshot!(plain(&found()), @r#"
    I'll look.
    call: glob(pattern="*.c", path="src/")
        src/a.c
        src/b.c
    done: 2 files found, 1.5 s
    Two files.
    "#);
}

/// SPEC 8.5: full arguments always, however long; SPEC 8.9: nothing is wider than the terminal.
#[test]
fn long_calls_are_whole() {
    let readable = r#"file_write(path="notes.txt", content="one\ntwo\nthree and a long line that does not fit\n")"#;
    let notices = [
        started(readable),
        ended(
            readable,
            r#"{"output":"Wrote 47 bytes to notes.txt","bytes":47}"#,
            "Wrote 47 bytes to notes.txt",
        ),
    ];
    insta::assert_snapshot!(at_40(&notices), @r#"
    ─── file_write(path="notes.txt", conten
        t="one\ntwo\nthree and a long line 
        that does not fit\n") ─────────────
    ─── Wrote 47 bytes to notes.txt · 1.5 s
    "#);
    insta::assert_snapshot!(at_80(&notices), @r#"
    ─── file_write(path="notes.txt", content="one\ntwo\nthree and a long line that 
        does not fit\n") ──────────────────────────────────────────────────────────
    ─── Wrote 47 bytes to notes.txt · 1.5 s ───────────────────────────────────────
    "#);
}

/// SPEC 6.9: how far a call has come is shown beside its result, not instead of it.
#[test]
fn how_far_a_call_has_come() {
    let step = |line: &str| Notice::CallStep {
        call: call(),
        tool: "one.t".to_owned(),
        line: line.to_owned(),
    };
    let notices = [
        started("one.t()"),
        step("half \u{1b}[2J"),
        ended("one.t()", "a\nb", "2 lines"),
    ];
    insta::assert_snapshot!(plain(&notices), @r"
    call: one.t()
        half \x1b[2J
        a
        b
    done: 2 lines, 3.0 s
    ");
}

/// SPEC 8.5: a command's output appears while it runs and is not repeated; a long one says how to see the rest.
#[test]
fn output_as_it_comes() {
    let bash = r#"bash(command="seq 12")"#;
    let pieces: Vec<Notice> = (1..=12).map(|n| printed(&format!("{n}\n"))).collect();
    let whole: String = (1..=12).map(|n| format!("{n}\n")).collect();
    let output = serde_json::json!({ "output": whole, "exit_code": 0 }).to_string();
    let mut notices = vec![started(bash)];
    notices.extend(pieces);
    notices.push(ended(bash, &output, "exit 0"));
    insta::assert_snapshot!(at_80(&notices), @r#"
    ─── bash(command="seq 12") ────────────────────────────────────────────────────
        1
        2
        3
        4
        5
        6
        7
        8
        … 4 more lines (:show call_1_2)
    ─── exit 0 · 19.5 s ───────────────────────────────────────────────────────────
    "#);
    insta::assert_snapshot!(plain(&[started(bash), ended(bash, &output, "exit 0")]), @r#"
    call: bash(command="seq 12")
        1
        2
        3
        4
        5
        6
        7
        8
        9
        10
        11
        12
    done: exit 0, 1.5 s
    "#);
}

/// SPEC 8.5: a failed call is red and says what kind of end it came to.
#[test]
fn failures() {
    let check = |summary: &str, end, expect: &str| {
        let shown = plain(&[failed("file_read(path=\"x\")", summary, end)]);
        assert_eq!(shown, format!("call: file_read(path=\"x\")\n{expect}\n"));
    };
    check("File not found: x", ResultEnd::Completed, "failed: File not found: x");
    check("declined by the user", ResultEnd::Declined, "declined by the user");
    check("denied by policy: x", ResultEnd::Denied, "denied by policy: x");
    check("Unknown tool: y", ResultEnd::Invalid, "not run: Unknown tool: y");
    check(
        "its end is not known",
        ResultEnd::Interrupted,
        "in doubt: its end is not known",
    );
    insta::assert_snapshot!(coloured(&[failed(GLOB, "Invalid pattern: *[", ResultEnd::Completed)]), @r#"
    ␛[2m─── glob(pattern="*.c", path="src/") ──────────────────────────────────────────␛[0m
    ␛[31m─── failed: Invalid pattern: *[ ───────────────────────────────────────────────␛[0m
    "#);
}

/// Calls that run side by side end in any order: each result stands under its own call.
#[test]
fn side_by_side() {
    let other = CallId::nth(1, 3);
    let notices = [
        started("glob(pattern=\"a\")"),
        Notice::CallStarted {
            call: other.clone(),
            readable: "grep(pattern=\"b\")".into(),
        },
        ended("glob(pattern=\"a\")", r#"{"output":"a"}"#, "1 file found"),
        Notice::CallEnded {
            call: other,
            readable: "grep(pattern=\"b\")".into(),
            output: r#"{"output":"b:1: b"}"#.into(),
            summary: "1 match".into(),
            success: true,
            end: ResultEnd::Completed,
        },
    ];
    insta::assert_snapshot!(plain(&notices), @r#"
    call: glob(pattern="a")
    call: grep(pattern="b")
    call: glob(pattern="a")
        a
    done: 1 file found, 3.0 s
    call: grep(pattern="b")
        b:1: b
    done: 1 match, 3.0 s
    "#);
}

/// Thinking is set off, each line of it; models begin with empty lines, which nobody needs.
#[test]
fn thinking() {
    let notices = [
        Notice::Thinking("\n\nLet me ".into()),
        Notice::Thinking("see.\nYes".into()),
        said("\n\nHello"),
        said(" there\n"),
        Notice::ReplyEnded,
    ];
    insta::assert_snapshot!(coloured(&notices), @"
    ␛[2m┊ Let me ␛[0m␛[2msee.
    ┊ Yes␛[0m

    Hello there
    ");
    insta::assert_snapshot!(plain(&notices), @"
    thinking: Let me see.
    thinking: Yes
    Hello there
    ");
}

/// SPEC 7.6: a retry says what went wrong and how long it waits. SPEC 10.4: status lines begin with `[aish]`, on a line of
/// their own and on their own stream. SPEC 10.5: one that comes in the middle of a word does not cut it in two.
#[test]
fn status_lines() {
    let notices = [
        said("half a wo"),
        Notice::Retrying {
            attempt: 2,
            wait_ms: 1_500,
            problem: "the server is overloaded (503)".into(),
        },
        said("rd and more "),
        Notice::Status("tool-call depth limit reached".into()),
        Notice::Usage(Usage::default()),
    ];
    insta::assert_snapshot!(plain(&notices), @"
    half a wo
    [aish] the server is overloaded (503): trying again in 2 s (attempt 2)
    rd and more 
    [aish] tool-call depth limit reached
    ");
    let out = rendered(Look::PLAIN, &notices);
    assert_eq!(out.only(Stream::Reply), "half a wo\nrd and more \n");
    assert!(out.only(Stream::Status).lines().all(|line| line.starts_with("[aish] ")));
}

/// SPEC 7.6: a model other than the one expected is named.
#[test]
fn another_model() {
    let mut renderer = renderer(Look::PLAIN);
    let mut out = Output::new();
    renderer.expect_model("desk");
    for model in ["desk", "cloud", "cloud"] {
        renderer.notice(&Notice::Asking { model: model.into() }, Duration::ZERO, &mut out);
    }
    assert_eq!(out.text(), "[aish] asking cloud\n");
}

/// SPEC 10.5: no secret in a status line.
#[test]
fn status_lines_are_redacted() {
    let secrets = Redactor::new([("DESK_KEY".to_owned(), "hunter2hunter2".to_owned())]);
    let mut renderer = Renderer::new(Look::PLAIN, secrets);
    let mut out = Output::new();
    renderer.notice(
        &Notice::Status("401 for hunter2hunter2".into()),
        Duration::ZERO,
        &mut out,
    );
    assert_eq!(out.text(), "[aish] 401 for [redacted:DESK_KEY]\n");
}

/// SPEC 8.5: the user's own command is framed and shown whole.
#[test]
fn own_commands() {
    let shown = |status, output: &str| {
        let mut renderer = renderer(look(60, Colour::Off));
        let mut out = Output::new();
        renderer.command_begun("make", &mut out);
        renderer.notice(&Notice::CommandOutput(output.into()), Duration::ZERO, &mut out);
        renderer.command_ended(
            &Command {
                status,
                duration_ms: 65_000,
                output: output.into(),
                ..Command::default()
            },
            &mut out,
        );
        out.text()
    };
    insta::assert_snapshot!(shown(Some(2), "cc a.c\nerror"), @"
    ─── ! make ────────────────────────────────────────────────
        cc a.c
        error
    ─── failed: exit 2 · 1 min 5 s ────────────────────────────
    ");
    let long = "x\n".repeat(100);
    assert_eq!(shown(None, &long).lines().count(), 102);
}
