//! Asking about several calls of one reply, in both fronts that can ask (SPEC 3.4, 5.3).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use aish_core::SessionId;
use aish_core::event::{Body, Draft};
use aish_store::sqlite::SqliteStore;
use aish_store::{Durability, Hold, Store as _};
use serde_json::json;
use support::fake_server::FakeServer;
use support::ledger::{of_kind, only_export, only_session, text};
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

/// Answers the call that the only session asks about, as a server does that a client told so.
fn answer_elsewhere(sandbox: &Sandbox, answer: &str) {
    let events = only_export(sandbox);
    let gated = &of_kind(&events, "call_gated")[0]["data"];
    let data = json!({
        "call_id": gated["call_id"],
        "digest": gated["digest"],
        "answer": answer,
        "by": "client",
    });
    let draft = Draft::new(1, answer, Body::decode("call_answered", &data.to_string()).unwrap());
    let (id, seq) = (
        SessionId::new(only_session(sandbox)),
        u64::try_from(events.len()).unwrap(),
    );
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let store = SqliteStore::new(sandbox.ledger());
    let append = store.append(&id, seq, vec![draft], 1, Durability::Synced, Hold::Nothing);
    runtime.block_on(append).unwrap();
}

/// SPEC 3.5b, 9.9: a question that somebody answers from another device is taken back at the terminal, in both fronts; the turn goes on
/// with that answer, and the terminal with whatever comes next.
#[test]
fn a_question_that_is_answered_from_elsewhere() {
    for (answer, told) in [
        ("approve", "approved from somewhere else"),
        ("deny", "declined from somewhere else"),
    ] {
        for arguments in [vec![], vec!["-p", "go"]] {
            let call = json!({ "command": "touch made" });
            let server = FakeServer::script([Reply::calls(&[("c1", "bash", call)]), Reply::text("as you wish")]);
            let sandbox = Sandbox::with_model(&server);
            let mut terminal = sandbox.terminal(&arguments).start();
            if arguments.is_empty() {
                terminal.wait_for_prompt();
                terminal.send_line("?go");
            }
            terminal.wait_for("the question", |screen| {
                screen.contents().trim_end().ends_with(QUESTION)
            });
            answer_elsewhere(&sandbox, answer);
            terminal.wait_for_text(told);
            terminal.wait_for_text("as you wish");
            assert_eq!(sandbox.path("made").exists(), answer == "approve");
            if arguments.is_empty() {
                terminal.wait_for_prompt();
                terminal.send_line("echo still $((40 + 2))");
                terminal.wait_for_text("still 42");
                terminal.wait_for_prompt();
                terminal.send(key::CTRL_D);
            }
            assert_eq!(terminal.wait_exit().code(), Some(0));
            let events = only_export(&sandbox);
            let answered = of_kind(&events, "call_answered");
            assert_eq!(answered.len(), 1, "{answered:?}");
        }
    }
}
