//! What goes to standard output and to the screen, and what never does: hostile characters in JSON, secrets at the prompt; what
//! a script gets when there is nothing to report; and standard input that never comes (SPEC 8.8, 10.2, 10.3, 10.5).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use rustix::process::Signal;
use serde_json::json;
use std::io::Write as _;
use support::fake_server::FakeServer;
use support::ledger::only_session;
use support::pty::key;
use support::reply::Reply;
use support::sandbox::{Output, Sandbox};

/// A made-up key.
const KEY: &str = "sk-test-example-0123456789abcdefghij";
/// Characters that act on a terminal, reorder text or hide in it, although JSON does not escape them.
const HOSTILE: &str = "\u{9b}31m\u{7f}\u{202e}\u{200b}\u{e0041}";

/// SPEC 8.8, 10.3: JSON says what was said, without a character that a terminal or a reader could be deceived by.
#[test]
fn json_is_harmless() {
    let reply = format!("a{HOSTILE}b é 日本");
    let server = FakeServer::builder()
        .otherwise({
            let reply = reply.clone();
            move |_| Reply::text(&reply)
        })
        .start();
    let sandbox = Sandbox::with_model(&server);
    let one = sandbox.run(&["-p", "hi", "--output", "json"]).success();
    assert_eq!(one.json()["reply"], json!(reply));
    let id = only_session(&sandbox);
    let export = sandbox.run(&["sessions", "export", &id]).success();
    let lines = sandbox.run(&["-p", "hi", "--output", "jsonl"]).success();
    for output in [&one, &export, &lines] {
        assert!(
            !output.stdout.contains(|c| HOSTILE.contains(c) && c > '\u{7e}'),
            "{output:?}"
        );
        assert!(output.stdout.contains("é 日本"), "{output:?}");
    }
    let said = |output: &Output| {
        let events = output.json_lines();
        let said = events.iter().find(|event| event["kind"] == "assistant").unwrap();
        said["content"].clone()
    };
    assert_eq!((said(&export), said(&lines)), (json!(reply), json!(reply)));
}

/// SPEC 10.3: to a program the reply is the text that was said, in any script and with its line ends; but no control character
/// goes with it, since what reads it may show it on a terminal.
#[test]
fn text_for_a_program() {
    let server = FakeServer::script([Reply::stream()
        .says("می\u{200c}خواهم\r")
        .says("\n\u{202e}x\u{1b}[31m\u{9b}")
        .finish("stop")
        .done()]);
    let output = Sandbox::with_model(&server).run(&["-p", "hi"]).success();
    assert_eq!(output.stdout, "می\u{200c}خواهم\r\n\u{202e}x\\x1b[31m\\u{9b}\n");
}

/// SPEC 8.8: on a terminal the same reply is shown with everything odd made visible.
#[test]
fn text_for_a_terminal() {
    let server = FakeServer::script([Reply::text("x\u{202e}y\u{200b}z")]);
    let sandbox = Sandbox::with_model(&server);
    let mut terminal = sandbox.terminal(&["-p", "hi"]).start();
    assert_eq!(terminal.wait_exit().code(), Some(0));
    let screen = terminal.screen_text();
    assert!(screen.contains("x\\u{202e}y\\u{200b}z"), "{screen}");
}

/// SPEC 10.5: at the prompt too a secret is not shown: not in the model's words, however they are cut, not by a call, not in
/// what it prints and not when it is shown again.
#[test]
fn secrets_at_the_prompt() {
    let (start, end) = KEY.split_at(12);
    let server = FakeServer::script([
        Reply::stream()
            .says("it is ")
            .says(start)
            .says(end)
            .says(".")
            .finish("stop")
            .done(),
        Reply::call("c1", "bash", json!({ "command": format!("cat dump.txt; echo {KEY}") })),
        Reply::text("as you see"),
    ]);
    let sandbox = Sandbox::with_model(&server)
        .config("key_env = \"FAKE_KEY\"")
        .env("FAKE_KEY", KEY)
        .file("dump.txt", format!("key={KEY}\n"));
    let mut terminal = sandbox.terminal(&["--approval", "full"]).size(60, 100).start();
    terminal.wait_for_prompts(1);
    terminal.send_line("which key?");
    let screen = terminal.wait_for_prompts(2);
    assert!(screen.contains("it is [redacted:FAKE_KEY]."), "{screen}");
    terminal.send_line("print it");
    let screen = terminal.wait_for_prompts(3);
    assert!(screen.contains("key=[redacted:FAKE_KEY]"), "{screen}");
    assert!(screen.contains("echo [redacted:FAKE_KEY]"), "{screen}");
    terminal.send_line(":show");
    let screen = terminal.wait_for_prompts(4);
    assert_eq!(screen.matches("key=[redacted:FAKE_KEY]").count(), 2, "{screen}");
    terminal.send(key::CTRL_D);
    assert_eq!(terminal.wait_exit().code(), Some(0));
    terminal.assert_never_wrote(KEY.as_bytes());
    let mut terminal = sandbox.terminal(&["--continue"]).size(60, 100).start();
    let screen = terminal.wait_for_prompts(1);
    assert!(screen.contains("key=[redacted:FAKE_KEY]"), "{screen}");
    terminal.send(key::CTRL_D);
    assert_eq!(terminal.wait_exit().code(), Some(0));
    terminal.assert_never_wrote(KEY.as_bytes());
}

/// SPEC 10.3, 10.4: standard input that says nothing is waited for, which is told; what comes then still counts.
#[test]
fn standard_input_that_comes_late() {
    let server = FakeServer::script([Reply::text("fine")]);
    let sandbox = Sandbox::with_model(&server);
    let (run, mut input) = sandbox.start_with_open_input(&["-p", "review this"]);
    run.wait_for_stderr("[aish] waiting for standard input; </dev/null skips it\n");
    input.write_all(b"+ a line\n").unwrap();
    drop(input);
    assert_eq!(run.finish().success().stdout, "fine\n");
    assert!(server.only_request().last_text().contains("+ a line"));
}

/// SPEC 10.2, 12: Ctrl-C ends the wait for standard input.
#[test]
fn standard_input_that_never_comes() {
    let server = FakeServer::script([]);
    let sandbox = Sandbox::with_model(&server);
    let (run, _input) = sandbox.start_with_open_input(&["-p", "review this", "--output", "json"]);
    run.wait_for_stderr("waiting for standard input");
    run.signal(Signal::INT);
    let output = run.finish().exits(130);
    assert_eq!(output.json()["stop_reason"], "cancelled");
    assert!(server.requests().is_empty());
}

/// SPEC 10.3: a script that asked for an object gets one, whatever went wrong; the exit code and the words stay what they are.
#[test]
fn an_object_for_every_failure() {
    let check = |output: &Output, says: &str| {
        let object = output.json();
        assert_eq!(
            (&object["stop_reason"], &object["reply"]),
            (&json!("error"), &json!(""))
        );
        assert!(object["error"].as_str().unwrap().contains(says), "{object}");
        assert!(output.stderr.contains(says), "{output:?}");
    };
    let sandbox = Sandbox::new();
    let output = sandbox.run(&["-p", "hi", "--output", "json"]).exits(2);
    check(&output, "there is no model to ask");
    let server = FakeServer::script([Reply::stream().says("slow\n").stalls()]);
    let sandbox = Sandbox::with_model(&server);
    let unknown = sandbox.run(&["-p", "hi", "--resume", "nowhere", "--output", "json"]);
    check(&unknown.exits(2), "nowhere");
    let run = sandbox.start(&["-p", "hi"]);
    run.wait_for_stdout("slow");
    let leased = sandbox.run(&["-p", "me too", "--continue", "--output", "json"]);
    check(&leased.exits(1), &format!("process {}", run.pid().as_raw_nonzero()));
    run.signal(Signal::INT);
    run.finish().exits(130);
}
