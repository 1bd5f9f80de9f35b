//! The conversational prompt on a terminal, as a person sees it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(dead_code)]

mod support;

use serde_json::json;
use support::fake_server::{FakeServer, Received};
use support::pty::{Signal, Terminal, key};
use support::reply::Reply;
use support::sandbox::Sandbox;

/// The end of the prompt of the fake model.
const PROMPT: &str = "fake ❯";

/// Waits until the prompt stands that many times on the screen.
fn wait_for_prompts(terminal: &Terminal, times: usize) -> String {
    terminal.wait_for("the prompt", |screen| {
        screen.contents().matches(PROMPT).count() == times
    })
}

/// All that a request says of the conversation.
fn sent(request: &Received) -> String {
    serde_json::to_string(request.messages()).unwrap()
}

/// SPEC 8.1, 8.7: a question is answered, the prompt comes back, Ctrl-D leaves with code 0 and the terminal as it was.
#[test]
fn a_question() {
    let server = FakeServer::script([Reply::text("hello **there**")]);
    let sandbox = Sandbox::with_model(&server);
    let mut terminal = sandbox.terminal(&[]).start();
    wait_for_prompts(&terminal, 1);
    terminal.send_line("hi");
    let screen = wait_for_prompts(&terminal, 2);
    assert!(screen.contains("hello **there**"), "{screen}");
    terminal.send(key::CTRL_D);
    assert_eq!(terminal.wait_exit().code(), Some(0));
    assert_eq!(terminal.settings(), *terminal.settings_at_start());
    server.assert_done();
}

/// SPEC 5.3: a write is asked for with all its arguments; a yes runs it, once.
#[test]
fn an_approval() {
    let write = json!({ "path": "notes.txt", "content": "one\ntwo\n" });
    let server = FakeServer::script([Reply::call("c1", "file_write", write), Reply::text("written")]);
    let sandbox = Sandbox::with_model(&server);
    let mut terminal = sandbox.terminal(&[]).start();
    wait_for_prompts(&terminal, 1);
    terminal.send_line("write it");
    let screen = terminal.wait_for_text("[y/N/a/s/?]");
    assert!(screen.contains("│ one") && screen.contains("│ two"), "{screen}");
    assert!(!sandbox.project().join("notes.txt").exists());
    terminal.send_line("y");
    let screen = wait_for_prompts(&terminal, 2);
    assert!(screen.contains("written"), "{screen}");
    assert_eq!(
        std::fs::read_to_string(sandbox.project().join("notes.txt")).unwrap(),
        "one\ntwo\n"
    );
    terminal.send(key::CTRL_D);
    assert_eq!(terminal.wait_exit().code(), Some(0));
    server.assert_done();
}

/// SPEC 5.6: a yes typed before the question was there approves nothing.
#[test]
fn a_yes_in_advance() {
    let server = FakeServer::script([
        Reply::call("c1", "file_write", json!({ "path": "x", "content": "x" })).stalls_first(),
        Reply::text("as you wish"),
    ]);
    let sandbox = Sandbox::with_model(&server);
    let mut terminal = sandbox.terminal(&[]).start();
    wait_for_prompts(&terminal, 1);
    terminal.send_line("write it");
    server.wait_for_requests(1);
    terminal.send_line("y");
    terminal.send_line("y");
    server.release();
    terminal.wait_for_text("[y/N/a/s/?]");
    terminal.send_line("n use another name");
    let screen = wait_for_prompts(&terminal, 2);
    assert!(screen.contains("as you wish"), "{screen}");
    assert!(!sandbox.project().join("x").exists());
    assert!(sent(&server.requests()[1]).contains("use another name"));
    terminal.send(key::CTRL_D);
    assert_eq!(terminal.wait_exit().code(), Some(0));
}

/// SPEC 8.7: Ctrl-C stops a stream and gives the prompt back; twice quits nothing.
#[test]
fn ctrl_c_stops_a_stream() {
    let server = FakeServer::script([
        Reply::stream()
            .says("one two")
            .stalls()
            .says("three")
            .finish("stop")
            .done(),
        Reply::text("still here"),
    ]);
    let sandbox = Sandbox::with_model(&server);
    let mut terminal = sandbox.terminal(&[]).start();
    wait_for_prompts(&terminal, 1);
    terminal.send_line("count");
    terminal.wait_for_text("one two");
    terminal.send(key::CTRL_C);
    wait_for_prompts(&terminal, 2);
    terminal.send(key::CTRL_C);
    wait_for_prompts(&terminal, 3);
    terminal.send(key::CTRL_C);
    wait_for_prompts(&terminal, 4);
    terminal.send_line("and now?");
    terminal.wait_for_text("still here");
    terminal.send(key::CTRL_D);
    assert_eq!(terminal.wait_exit().code(), Some(0));
}

/// SPEC 8.7: Ctrl-C at the approval prompt stops the turn; nothing runs.
#[test]
fn ctrl_c_at_the_question() {
    let server = FakeServer::script([Reply::call("c1", "file_write", json!({ "path": "x", "content": "x" }))]);
    let sandbox = Sandbox::with_model(&server);
    let mut terminal = sandbox.terminal(&[]).start();
    wait_for_prompts(&terminal, 1);
    terminal.send_line("write it");
    terminal.wait_for_text("[y/N/a/s/?]");
    terminal.send(key::CTRL_C);
    wait_for_prompts(&terminal, 2);
    assert!(!sandbox.project().join("x").exists());
    terminal.send(key::CTRL_D);
    assert_eq!(terminal.wait_exit().code(), Some(0));
}

/// SPEC 8.7: a running command stops as well.
#[test]
fn ctrl_c_stops_a_command() {
    let server = FakeServer::script([]);
    let sandbox = Sandbox::with_model(&server);
    let mut terminal = sandbox.terminal(&[]).start();
    wait_for_prompts(&terminal, 1);
    terminal.send_line("!echo begun; sleep 1000");
    terminal.wait_for("its output", |screen| screen.contents().contains("    begun"));
    terminal.send(key::CTRL_C);
    wait_for_prompts(&terminal, 2);
    terminal.send_line(":quit");
    assert_eq!(terminal.wait_exit().code(), Some(0));
}

/// SPEC 8.3: a command's output goes along with the next question; a bare `cd` moves the session.
#[test]
fn commands_and_directories() {
    let server = FakeServer::script([Reply::text("seen")]);
    let sandbox = Sandbox::with_model(&server).file("below/marker", "x");
    let mut terminal = sandbox.terminal(&[]).start();
    wait_for_prompts(&terminal, 1);
    terminal.send_line("!cd below");
    terminal.wait_for_text("below fake ❯");
    terminal.send_line("!ls; false");
    let screen = terminal.wait_for_text("failed: exit 1");
    assert!(screen.contains("    marker"), "{screen}");
    terminal.send_line("what is there?");
    terminal.wait_for_text("seen");
    assert!(sent(&server.only_request()).contains("marker"));
    terminal.send(key::CTRL_D);
    assert_eq!(terminal.wait_exit().code(), Some(0));
}

/// SPEC 2.8: a restored session shows its conversation; SPEC 5.6: what waits in it is asked at once.
#[test]
fn a_restored_session() {
    let server = FakeServer::script([
        Reply::text("the first answer"),
        Reply::call("c1", "file_write", json!({ "path": "x", "content": "x" })),
        Reply::text("done"),
    ]);
    let sandbox = Sandbox::with_model(&server);
    let mut terminal = sandbox.terminal(&[]).start();
    wait_for_prompts(&terminal, 1);
    terminal.send_line("the first question");
    wait_for_prompts(&terminal, 2);
    terminal.send_line("write it");
    terminal.wait_for_text("[y/N/a/s/?]");
    terminal.signal(Signal::TERM);
    assert_eq!(terminal.wait_exit().code(), Some(143));
    assert_eq!(terminal.settings(), *terminal.settings_at_start());

    let mut terminal = sandbox.terminal(&["--continue"]).start();
    let screen = terminal.wait_for_text("[y/N/a/s/?]");
    assert!(screen.contains("[aish] session restored: "), "{screen}");
    assert!(
        screen.contains("❯ the first question") && screen.contains("the first answer"),
        "{screen}"
    );
    terminal.send_line("y");
    terminal.wait_for_text("done");
    assert_eq!(std::fs::read_to_string(sandbox.project().join("x")).unwrap(), "x");
    terminal.send(key::CTRL_D);
    assert_eq!(terminal.wait_exit().code(), Some(0));
    server.assert_done();
}

/// SPEC 8.9: a pasted text of several lines becomes one message, and only Enter sends it.
#[test]
fn pasted_lines() {
    let server = FakeServer::script([Reply::text("got it")]);
    let sandbox = Sandbox::with_model(&server);
    let mut terminal = sandbox.terminal(&[]).start();
    wait_for_prompts(&terminal, 1);
    terminal.send("\x1b[200~!touch pasted\nsecond line\n\x1b[201~");
    terminal.wait_for_text("second line");
    terminal.send(key::CTRL_C);
    wait_for_prompts(&terminal, 2);
    terminal.send("\x1b[200~first\nsecond\x1b[201~");
    terminal.wait_for_text("· second");
    assert!(server.requests().is_empty());
    terminal.send(key::ENTER);
    terminal.wait_for_text("got it");
    assert!(sent(&server.only_request()).contains("first\\nsecond"));
    terminal.send(key::CTRL_D);
    assert_eq!(terminal.wait_exit().code(), Some(0));
}

/// SPEC 8.9: a plain mode without a terminal; SPEC 10.2: the last turn decides the exit code.
#[test]
fn piped_lines() {
    let server = FakeServer::script([Reply::text("one"), Reply::error(400, "no")]);
    let sandbox = Sandbox::with_model(&server);
    let output = sandbox.run_with_input(&[], b"first\n:model\n!echo typed\nsecond\n");
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(
        output.stdout.contains("one\n--- ! echo typed\n    typed\n--- exit 0"),
        "{output:?}"
    );
    assert!(output.stderr.contains("[aish] model: fake"), "{output:?}");
    assert!(!output.stdout.contains('\x1b') && !output.stderr.contains('\x1b'));
}

/// SPEC 5.6: without a terminal nothing is allowed and nothing hangs.
#[test]
fn nobody_to_ask() {
    let server = FakeServer::script([Reply::call("c1", "file_write", json!({ "path": "x", "content": "x" }))]);
    let sandbox = Sandbox::with_model(&server);
    let output = sandbox.run_with_input(&[], b"write it\nnever read\n");
    assert_eq!(output.code, Some(3), "{output:?}");
    assert!(output.stderr.contains("aish resume "), "{output:?}");
    assert!(!sandbox.project().join("x").exists());
}

/// SPEC 8.8: what a model says cannot control the terminal.
#[test]
fn hostile_text() {
    let server = FakeServer::script([Reply::text("\x1b]0;owned\x07\u{9b}2J\u{202e}x")]);
    let sandbox = Sandbox::with_model(&server);
    let mut terminal = sandbox.terminal(&[]).start();
    wait_for_prompts(&terminal, 1);
    terminal.send_line("hi");
    let screen = wait_for_prompts(&terminal, 2);
    assert!(screen.contains("\\x1b]0;owned\\x07\\u{9b}2J\\u{202e}x"), "{screen}");
    terminal.assert_never_wrote(b"\x1b]0;owned");
    terminal.send(key::CTRL_D);
    assert_eq!(terminal.wait_exit().code(), Some(0));
}

/// SPEC 3.5a: a message typed while a turn runs is queued, and asked when the turn is over.
#[test]
fn typed_ahead() {
    let server = FakeServer::script([
        Reply::text("the first answer").stalls_first(),
        Reply::text("the second answer"),
    ]);
    let sandbox = Sandbox::with_model(&server);
    let mut terminal = sandbox.terminal(&[]).start();
    wait_for_prompts(&terminal, 1);
    terminal.send_line("one");
    server.wait_for_requests(1);
    terminal.send("two\r\x04");
    server.release();
    let status = terminal.wait_exit();
    assert_eq!(status.code(), Some(0));
    let screen = terminal.screen_text();
    assert!(
        screen.contains("the first answer") && screen.contains("the second answer"),
        "{screen}"
    );
    assert!(sent(&server.requests()[1]).contains("two"));
}
