//! What strikes the terminal from outside: signals, after which it is given back as it was found, and a window that changes its
//! size.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(dead_code)]

mod support;

use support::fake_server::FakeServer;
use support::pty::{Signal, Terminal, TerminalCommand, key};
use support::reply::Reply;
use support::sandbox::Sandbox;
use support::{default_wait, poll_until};

/// SPEC 8.7: the terminal is sane after a signal, wherever it struck, with the exit code a shell expects.
#[test]
fn signals() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::QUIT, 131)] {
        let server = FakeServer::script([Reply::stream().says("begun\n").stalls().done()]);
        let sandbox = Sandbox::with_model(&server);
        let mut terminal = sandbox.terminal(&[]).start();
        terminal.wait_for_prompts(1);
        terminal.signal(signal);
        assert_eq!(terminal.wait_exit().code(), Some(code), "at the prompt");
        assert_eq!(terminal.settings(), *terminal.settings_at_start(), "at the prompt");

        let mut terminal = sandbox.terminal(&[]).start();
        terminal.wait_for_prompts(1);
        terminal.send_line("hi");
        terminal.wait_for_text("begun");
        terminal.signal(signal);
        assert_eq!(terminal.wait_exit().code(), Some(code), "in a turn");
        assert_eq!(terminal.settings(), *terminal.settings_at_start(), "in a turn");

        let mut terminal = sandbox.terminal(&[]).start();
        terminal.wait_for_prompts(1);
        terminal.send_line("!echo begun; sleep 1000");
        terminal.wait_for("its output", |screen| screen.contents().contains("\nbegun"));
        terminal.signal(signal);
        assert_eq!(terminal.wait_exit().code(), Some(code), "in a command");
        sandbox.assert_nothing_runs();
    }
}

/// An interactive shell with jobs, in which aish was typed: the one who can continue it.
fn in_a_shell(sandbox: &Sandbox) -> Terminal {
    let shell = TerminalCommand::new("bash").args(&["--norc", "--noprofile", "-i"]);
    let terminal = sandbox.in_terminal(shell).env("PS1", "shell> ").start();
    terminal.wait_for_text("shell>");
    terminal.send_line(env!("CARGO_BIN_EXE_aish"));
    terminal.wait_for_prompts(1);
    terminal
}

/// SPEC 8.7, 8.2: stopped in the middle of a turn, aish gives the terminal back to its shell, and goes on where it was.
#[test]
fn stop_and_go_on() {
    let server = FakeServer::script([Reply::stream()
        .says("first half ")
        .stalls()
        .says("second half")
        .finish("stop")
        .done()]);
    let sandbox = Sandbox::with_model(&server);
    let mut terminal = in_a_shell(&sandbox);
    terminal.send_line("count");
    terminal.wait_for_text("first half");
    assert!(!terminal.settings().is_cooked());
    terminal.send(key::CTRL_Z);
    terminal.wait_for("the shell's word", |screen| screen.contents().contains("Stopped"));
    terminal.wait_for("the shell's prompt", |screen| {
        screen.contents().trim_end().ends_with("shell>")
    });
    terminal.send_line("fg");
    poll_until("the terminal to be taken again", default_wait(), || {
        (!terminal.settings().is_cooked()).then_some(())
    });
    server.release();
    terminal.wait_for_text("second half");
    terminal.wait_for_prompts(2);
    terminal.send(key::CTRL_D);
    terminal.wait_for("the shell's prompt", |screen| {
        screen.contents().trim_end().ends_with("shell>")
    });
    terminal.send_line("exit");
    assert_eq!(terminal.wait_exit().code(), Some(0));
}

/// SPEC 8.7, 12: where aish is the terminal's own program nobody could continue it: the stop key stops nothing, in a turn and at a
/// question.
#[test]
fn nobody_to_go_on() {
    let server = FakeServer::script([
        Reply::stream().says("one ").stalls().says("two").finish("stop").done(),
        Reply::call("c1", "bash", serde_json::json!({ "command": "touch made" })),
        Reply::text("made it"),
    ]);
    let sandbox = Sandbox::with_model(&server);
    let mut terminal = sandbox.terminal(&[]).start();
    terminal.wait_for_prompts(1);
    terminal.send_line("count");
    terminal.wait_for_text("one");
    let during = terminal.settings();
    terminal.send(key::CTRL_Z);
    server.release();
    terminal.wait_for_prompts(2);
    terminal.wait_for_text("one two");
    terminal.send_line("make it");
    terminal.wait_for_text("[y/N/a/s/?]");
    // Twice: the first has been dealt with when the second is shown.
    terminal.send(key::CTRL_Z);
    terminal.wait_for_text("^Z");
    terminal.send(key::CTRL_Z);
    terminal.wait_for_text("^Z^Z");
    assert_ne!(terminal.settings(), during, "lines are edited at a question");
    terminal.send_line("y");
    terminal.wait_for_text("made it");
    assert!(sandbox.path("made").exists());
    terminal.wait_for_prompts(3);
    terminal.send(key::CTRL_D);
    assert_eq!(terminal.wait_exit().code(), Some(0));
    assert_eq!(terminal.settings(), *terminal.settings_at_start());
}

/// SPEC 8.9: a window that changes its size in the middle of a stream stops nothing; what is framed after it fits the new width.
#[test]
fn resized_in_a_stream() {
    let server = FakeServer::script([
        Reply::stream()
            .says("half ")
            .stalls()
            .says("more")
            .finish("stop")
            .done(),
        Reply::call("c1", "glob", serde_json::json!({ "pattern": "*.rs" })),
        Reply::text("none here"),
    ]);
    let sandbox = Sandbox::with_model(&server);
    let mut terminal = sandbox.terminal(&[]).size(24, 90).start();
    terminal.wait_for_text("fake ❯");
    terminal.send_line("one");
    terminal.wait_for_text("half");
    terminal.resize(30, 50);
    server.release();
    terminal.wait_for_text("half more");
    terminal.wait_for("the prompt", |screen| screen.contents().matches("fake ❯").count() >= 2);
    terminal.send_line("two");
    terminal.wait_for_text("none here");
    let rules = terminal.look(|screen| {
        let rows: Vec<String> = screen.rows(0, 50).filter(|row| row.starts_with("───")).collect();
        rows
    });
    assert_eq!(rules.len(), 2, "{rules:?}");
    assert!(
        rules
            .iter()
            .all(|rule| (40..50).contains(&rule.trim_end().chars().count())),
        "{rules:?}"
    );
    terminal.wait_for("the prompt", |screen| screen.contents().matches("fake ❯").count() >= 3);
    terminal.send(key::CTRL_D);
    assert_eq!(terminal.wait_exit().code(), Some(0));
    assert_eq!(terminal.settings(), *terminal.settings_at_start());
}
