//! Asking about several calls of one reply, in both fronts that can ask (SPEC 3.4, 5.3).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use serde_json::json;
use support::fake_server::FakeServer;
use support::ledger::{of_kind, only_export, text};
use support::pty::{Terminal, key};
use support::reply::Reply;
use support::sandbox::Sandbox;

/// The end of a question.
const QUESTION: &str = "[y/N/a/s/?]";

/// SPEC 5.3: a word that was begun when a call is asked about is typed to its end where it was begun, and answers nothing.
#[test]
fn half_a_word_is_no_answer() {
    let call = json!({ "command": "touch made" }).to_string();
    let server = FakeServer::script([
        Reply::stream()
            .says("First ")
            .stalls()
            .says("second")
            .call_begins(0, "c1", "bash")
            .call_arguments(0, &call)
            .finish("tool_calls")
            .done(),
        Reply::text("as you wish"),
    ]);
    let sandbox = Sandbox::with_model(&server);
    let terminal = sandbox.terminal(&[]).start();
    terminal.wait_for_prompt();
    terminal.send_line("?go");
    terminal.wait_for_text("First");
    terminal.send("thank ");
    terminal.wait_for_text("thank ▏");
    server.release();
    terminal.wait_for_text("First second");
    // The question comes in between, and waits for the last of them.
    terminal.types_below("thank ", "you for all");
    terminal.wait_for("the question", |screen| {
        screen.contents().trim_end().ends_with(QUESTION)
    });
    terminal.send_line("");
    terminal.wait_for_text("as you wish");
    terminal.wait_for("the line that was begun", |screen| {
        screen.contents().trim_end().ends_with("thank you for all")
    });
    assert!(!sandbox.path("made").exists());
    terminal.send(key::CTRL_U);
    terminal.wait_for_prompt();
}

/// Two writes with a command between them, all in one reply.
fn batch() -> FakeServer {
    let write = |path: &str| json!({ "path": path, "content": "x" });
    FakeServer::script([
        Reply::calls(&[
            ("c1", "file_write", write("one")),
            ("c2", "bash", json!({ "command": "touch two" })),
            ("c3", "file_write", write("three")),
        ]),
        Reply::text("all done"),
    ])
}

/// Answers the first write with these lines, each with what is shown next, and the command for once; the other write must not be asked about.
fn answer(terminal: &Terminal, first: &[(&str, &str)]) {
    terminal.wait_for_text("path=\"one\")'?");
    for (line, next) in first {
        terminal.send_line(line);
        terminal.wait_for_text(next);
    }
    let screen = terminal.wait_for_text("call 'bash(command=\"touch two\")'?");
    assert!(
        screen.contains("[aish] file_write(") && screen.contains("path=\"three\"): "),
        "what is covered is told: {screen}"
    );
    terminal.send_line("y");
    let screen = terminal.wait_for_text("all done");
    assert!(!screen.contains("path=\"three\")'?"), "{screen}");
}

/// Who answered each call, and by which rule.
fn assert_answered(sandbox: &Sandbox) {
    let events = only_export(sandbox);
    let answered = of_kind(&events, "call_answered");
    let who: Vec<(&str, &str)> = answered
        .iter()
        .map(|event| (text(&event["data"]["call_id"]), text(&event["data"]["by"])))
        .collect();
    assert_eq!(
        who,
        [("call_1_1", "terminal"), ("call_1_3", "rule"), ("call_1_2", "terminal")]
    );
    for file in ["one", "two", "three"] {
        assert!(sandbox.path(file).exists(), "{file}");
    }
}

/// SPEC 5.3, 3.4: an answer for the session covers the calls of the same reply that are still open.
#[test]
fn a_session_s_answer_covers_the_rest() {
    let server = batch();
    let sandbox = Sandbox::with_model(&server);
    let mut terminal = sandbox.terminal(&[]).start();
    terminal.wait_for_text("fake ❯");
    terminal.send_line("do it");
    answer(&terminal, &[("a", "call 'bash(")]);
    terminal.wait_for_prompt();
    terminal.send(key::CTRL_D);
    assert_eq!(terminal.wait_exit().code(), Some(0));
    assert_answered(&sandbox);
    server.assert_done();
}

/// SPEC 5.3, 10.2: the same for one prompt and out, with a rule that is saved.
#[test]
fn a_saved_answer_covers_the_rest_in_one_shot() {
    let server = batch();
    let sandbox = Sandbox::with_model(&server);
    let mut terminal = sandbox.terminal(&["-p", "do it"]).start();
    answer(&terminal, &[("s", "save this rule? [y/N]"), ("y", "call 'bash(")]);
    assert_eq!(terminal.wait_exit().code(), Some(0));
    assert_answered(&sandbox);
    let config = std::fs::read_to_string(sandbox.home().join("config.toml")).unwrap();
    assert!(config.contains("file_write"), "{config}");
}

/// SPEC 5.3: a rule that cannot be saved is no yes: the question is asked again, in one-shot use as at the prompt.
#[test]
fn a_rule_that_cannot_be_saved() {
    let server = FakeServer::script([
        Reply::call("c1", "bash", json!({ "command": "touch ran" })),
        Reply::text("as you wish"),
    ]);
    let sandbox = Sandbox::with_model(&server).config("[approval]\nallow = []\n");
    let mut terminal = sandbox.terminal(&["-p", "do it"]).start();
    terminal.wait_for_text(QUESTION);
    // Broken under its feet: what is no TOML any more is not added to.
    std::fs::write(sandbox.home().join("config.toml"), "[approval\n").unwrap();
    terminal.send_line("s");
    terminal.wait_for_text("save this rule? [y/N]");
    terminal.send_line("y");
    terminal.wait_for("the question again", |screen| {
        let contents = screen.contents();
        contents.contains("[aish] the rule was not saved") && contents.matches(QUESTION).count() == 2
    });
    terminal.send_line("n");
    assert_eq!(terminal.wait_exit().code(), Some(0));
    assert!(!sandbox.path("ran").exists());
}
