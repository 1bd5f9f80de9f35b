//! What a person types while a turn runs: shown below the stream, queued, told to the turn, or kept for the prompt (SPEC 3.5a, 8.7).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use serde_json::json;
use support::fake_server::FakeServer;
use support::pty::{Signal, Terminal, TerminalCommand, key};
use support::reply::Reply;
use support::sandbox::Sandbox;
use support::{default_wait, poll_until};

const ALT_ENTER: &str = "\x1b\r";
/// What only the line below the stream has in it.
const TRACES: [&str; 3] = ["▏", "Esc stops", "type ahead"];

/// A turn that was begun and has said so much.
fn in_a_turn(server: &FakeServer, said: &str) -> (Sandbox, Terminal) {
    let sandbox = Sandbox::with_model(server);
    let terminal = sandbox.terminal(&[]).start();
    terminal.wait_for_prompt();
    terminal.send_line("?go");
    terminal.wait_for_text(said);
    (sandbox, terminal)
}

/// The prompt with that line on it, as the last row; a hint may stand behind it.
fn wait_for_line(terminal: &Terminal, line: &str) {
    let wanted = format!("fake ❯ {line}");
    terminal.wait_for(&format!("the line {line:?}"), |screen| {
        let rows = screen.contents();
        rows.trim_end().lines().last().is_some_and(|row| row.contains(&wanted))
    });
}

/// Leaves with an empty line; all is as it was, and nothing of the line below is left on the screen or above it.
fn leave(mut terminal: Terminal) {
    terminal.send(key::CTRL_U);
    terminal.wait_for_prompt();
    terminal.send(key::CTRL_D);
    assert_eq!(terminal.wait_exit().code(), Some(0));
    assert_eq!(terminal.settings(), *terminal.settings_at_start());
    assert!(terminal.look(|screen| !screen.hide_cursor() && !screen.bracketed_paste()));
    let history = terminal.history_text();
    for trace in TRACES {
        assert!(!history.contains(trace), "{trace} in\n{history}");
    }
}

/// The last message of the user in that request.
fn asked(server: &FakeServer, request: usize) -> String {
    let body = server.wait_for_requests(request + 1)[request].json.clone();
    let said = body["messages"].as_array().unwrap().iter().rev();
    let last = said.into_iter().find(|message| message["role"] == "user").unwrap();
    last["content"].as_str().unwrap().to_owned()
}

/// SPEC 3.5a: lines sent while a turn runs wait and are then sent in their order, each as if it had been typed at the prompt;
/// what was not sent is on the prompt's line.
#[test]
fn lines_wait_for_the_end() {
    let server = FakeServer::script([
        Reply::halting("first half ", "and the rest"),
        Reply::text("the second answer"),
    ]);
    let (_sandbox, terminal) = in_a_turn(&server, "first");
    terminal.send("?and then");
    terminal.wait_for_text("❯ ?and then▏");
    terminal.send(key::ENTER);
    terminal.wait_for_text("1 queued");
    terminal.send_line(":model");
    terminal.wait_for_text("2 queued");
    terminal.send("not sent");
    terminal.wait_for_text("❯ not sent▏");
    server.release();
    terminal.wait_for_text("first half and the rest");
    terminal.wait_for_text("the second answer");
    wait_for_line(&terminal, "not sent");
    let screen = terminal.screen_text();
    let at = |text: &str| screen.find(text).unwrap_or_else(|| panic!("{text} in\n{screen}"));
    assert!(at("❯ ?and then") < at("the second answer"));
    assert!(at("the second answer") < at(": :model"));
    assert_eq!(asked(&server, 1), "and then");
    server.assert_done();
    leave(terminal);
}

/// SPEC 3.5a: the last line that waits can be had back and changed.
#[test]
fn back_for_editing() {
    let server = FakeServer::script([Reply::halting("first ", "last"), Reply::text("the answer")]);
    let (_sandbox, terminal) = in_a_turn(&server, "first");
    terminal.send_line("?one two");
    terminal.wait_for_text("1 queued");
    terminal.send(key::UP);
    terminal.wait_for_text("❯ ?one two▏");
    terminal.send("\x17日本語");
    terminal.send(key::BACKSPACE);
    terminal.wait_for_text("❯ ?one 日本▏");
    terminal.send(key::ENTER);
    terminal.wait_for_text("1 queued");
    server.release();
    terminal.wait_for_text("the answer");
    assert_eq!(asked(&server, 1), "one 日本");
    leave(terminal);
}

/// SPEC 8.7: Escape and Ctrl-C stop the turn, and what was to come after it is the person's again; Ctrl-D does nothing.
#[test]
fn stopping() {
    for stop in [key::ESCAPE, key::CTRL_C] {
        let server = FakeServer::script([Reply::halting("first ", "last")]);
        let (_sandbox, terminal) = in_a_turn(&server, "first");
        terminal.send_line("?later");
        terminal.wait_for_text("1 queued");
        terminal.send(key::CTRL_D);
        terminal.send("draft");
        terminal.wait_for_text("❯ draft▏");
        terminal.send(stop);
        terminal.wait_for_text("[aish] stopped");
        terminal.wait_for("both lines", |screen| {
            screen.contents().trim_end().ends_with("fake ❯ ?later\n· draft")
        });
        assert_eq!(server.requests().len(), 1);
        terminal.send(key::CTRL_C);
        terminal.wait_for_prompt();
        leave(terminal);
    }
}

/// SPEC 8.7: a line that is offered corrected comes before those that wait; where it is given up, nothing behind it runs.
#[test]
fn giving_up_a_correction() {
    let server = FakeServer::script([Reply::halting("first ", "last")]);
    let (sandbox, terminal) = in_a_turn(&server, "first");
    terminal.send_line("gti status");
    terminal.wait_for_text("1 queued");
    terminal.send_line("!touch made");
    terminal.wait_for_text("2 queued");
    server.release();
    terminal.wait_for("the correction", |screen| {
        screen.contents().trim_end().ends_with("$ git status")
    });
    terminal.send(key::CTRL_C);
    terminal.wait_for("the line that waited", |screen| {
        screen.contents().trim_end().ends_with("$ !touch made")
    });
    assert!(!sandbox.path("made").exists());
    leave(terminal);
}

/// SPEC 3.5a: a line can be told to the turn while it runs: the model sees it in the next reply, and the screen where it was said.
#[test]
fn steering() {
    let server = FakeServer::script([
        Reply::halting("One, two, ", "three."),
        Reply::text("Quatre, cinq."),
        Reply::text("another turn"),
    ]);
    let (_sandbox, terminal) = in_a_turn(&server, "One,");
    terminal.send("in French");
    terminal.wait_for_text("❯ in French▏");
    terminal.send(ALT_ENTER);
    terminal.wait_for("it to be told", |screen| {
        screen.contents().lines().any(|row| row.trim_end() == "❯ in French")
    });
    server.release();
    terminal.wait_for_text("Quatre, cinq.");
    terminal.wait_for_prompt();
    assert_eq!(asked(&server, 1), "in French");
    let roles = server.requests()[1].roles();
    assert!(roles.ends_with("user assistant user"), "{roles}");
    terminal.send_line("?next");
    terminal.wait_for_text("another turn");
    leave(terminal);
}

/// SPEC 8.9, 8.1: what is pasted while a turn runs sends nothing, and is on the prompt's line afterwards; where it would go is shown.
#[test]
fn pasting() {
    let server = FakeServer::script([Reply::halting("first ", "last")]);
    let (_sandbox, terminal) = in_a_turn(&server, "first");
    assert!(terminal.look(vt100::Screen::bracketed_paste));
    terminal.send("\x1b[200~rm one\rrm two\x1b[201~");
    terminal.wait_for_text("$ rm one⏎rm two▏");
    server.release();
    terminal.wait_for_text("first last");
    terminal.wait_for("the paste on the line", |screen| {
        screen.contents().trim_end().ends_with("rm one\n· rm two")
    });
    terminal.send(key::CTRL_C);
    terminal.wait_for_prompt();
    leave(terminal);
}

/// SPEC 3.5a: what is pasted and sent while a turn runs is one question, and what is typed as one command over several rows is one.
#[test]
fn several_rows_are_one_line() {
    let server = FakeServer::script([Reply::halting("first ", "last"), Reply::text("the answer")]);
    let (sandbox, terminal) = in_a_turn(&server, "first");
    terminal.send("\x1b[200~?what is\rthis\r\rand that\x1b[201~");
    terminal.wait_for_text("❯ ?what is⏎this⏎⏎and that▏");
    terminal.send(key::ENTER);
    terminal.wait_for_text("1 queued");
    terminal.send("cat > made <<END\rone\r\rtwo\rEND\r");
    terminal.wait_for_text("2 queued");
    terminal.send("for i in 1 2\rdo");
    terminal.wait_for_text("for i in 1 2⏎do▏");
    server.release();
    terminal.wait_for("the rows that were not sent", |screen| {
        screen.contents().trim_end().ends_with("$ for i in 1 2\n· do")
    });
    assert_eq!(asked(&server, 1), "what is\nthis\n\nand that");
    assert_eq!(std::fs::read_to_string(sandbox.path("made")).unwrap(), "one\n\ntwo\n");
    terminal.send(key::CTRL_C);
    terminal.wait_for_prompt();
    leave(terminal);
}

/// SPEC 5.3: a question in between has the terminal: nothing is drawn below it, its answer is not typed ahead, and what was typed
/// before is still there behind it.
#[test]
fn a_question_in_between() {
    let server = FakeServer::script([
        Reply::stream()
            .says("Let me see. ")
            .stalls()
            .call_begins(0, "c1", "bash")
            .call_arguments(0, &json!({ "command": "touch made" }).to_string())
            .finish("tool_calls")
            .done(),
        Reply::halting("as you ", "wish"),
    ]);
    let (sandbox, terminal) = in_a_turn(&server, "Let me");
    terminal.send("yes, half a line");
    terminal.wait_for_text("❯ yes, half a line▏");
    server.release();
    terminal.wait_for("the question", |screen| {
        screen.contents().trim_end().ends_with("[y/N/a/s/?]")
    });
    let asked = terminal.screen_text();
    assert!(TRACES.iter().all(|trace| !asked.contains(trace)), "{asked}");
    assert!(terminal.settings().is_cooked());
    terminal.send_line("n");
    terminal.wait_for_text("as");
    terminal.wait_for_text("❯ yes, half a line▏");
    server.release();
    wait_for_line(&terminal, "yes, half a line");
    assert!(!sandbox.path("made").exists());
    leave(terminal);
}

/// SPEC 3.5a: no key is lost where a turn ends and the editor begins, whichever of them sees it.
#[test]
fn no_key_is_lost() {
    const KEYS: usize = 120;
    for arguments in [&[] as &[&str], &["--plain"]] {
        let server = FakeServer::script([Reply::halting("first ", "last")]);
        let sandbox = Sandbox::with_model(&server);
        let terminal = sandbox.terminal(arguments).start();
        terminal.wait_for_prompt();
        terminal.send_line("?go");
        terminal.wait_for_text("first");
        for n in 0..KEYS {
            if n == KEYS / 3 {
                server.release();
            }
            terminal.send(if n % 10 == 9 { "é" } else { "x" });
            std::thread::yield_now();
        }
        terminal.wait_for_text("first last");
        let typed = "xxxxxxxxxé".repeat(KEYS / 10);
        terminal.wait_for("all of it", |screen| {
            let rows: String = screen.contents().lines().collect();
            rows.ends_with(&typed)
        });
        leave(terminal);
    }
}

/// SPEC 8.7: stopped and continued, the terminal is its shell's in between: a cursor, no brackets, nothing below the stream.
#[test]
fn stopped_and_continued() {
    let server = FakeServer::script([Reply::halting("first half ", "second half")]);
    let sandbox = Sandbox::with_model(&server);
    let shell = TerminalCommand::new("bash").args(&["--norc", "--noprofile", "-i"]);
    let terminal = sandbox.in_terminal(shell).env("PS1", "shell> ").start();
    terminal.wait_for_text("shell>");
    terminal.send_line(env!("CARGO_BIN_EXE_aish"));
    terminal.wait_for_prompt();
    terminal.send_line("?go");
    terminal.wait_for_text("first");
    terminal.send("typed");
    terminal.wait_for_text("❯ typed▏");
    terminal.send(key::CTRL_Z);
    terminal.wait_for("the shell's prompt", |screen| {
        let text = screen.contents();
        text.contains("Stopped") && text.trim_end().ends_with("shell>") && !screen.hide_cursor()
    });
    assert!(!terminal.screen_text().contains("▏"));
    terminal.send_line("fg");
    terminal.wait_for_text("❯ typed▏");
    server.release();
    terminal.wait_for_text("second half");
    wait_for_line(&terminal, "typed");
    terminal.send(key::CTRL_U);
    terminal.wait_for_prompt();
    terminal.send(key::CTRL_D);
    terminal.wait_for("the shell's prompt", |screen| {
        screen.contents().trim_end().ends_with("shell>")
    });
}

/// SPEC 8.7: a signal to leave takes the line below along, and gives the cursor back.
#[test]
fn told_to_leave() {
    for signal in [Signal::TERM, Signal::HUP] {
        let server = FakeServer::script([Reply::halting("first ", "last")]);
        let (_sandbox, mut terminal) = in_a_turn(&server, "first");
        terminal.send("typed");
        terminal.wait_for_text("❯ typed▏");
        terminal.signal(signal);
        terminal.wait_exit();
        assert_eq!(terminal.settings(), *terminal.settings_at_start());
        assert!(terminal.look(|screen| !screen.hide_cursor() && !screen.bracketed_paste()));
        let left = terminal.history_text();
        assert!(TRACES.iter().all(|trace| !left.contains(trace)), "{left}");
    }
}

/// SPEC 8.9: a window that changes its size under the line leaves nothing of it behind.
#[test]
fn resized_under_it() {
    let server = FakeServer::script([Reply::halting("first half ", "second half")]);
    let (_sandbox, terminal) = in_a_turn(&server, "first");
    terminal.send("typed");
    for columns in [40, 100, 30, 80] {
        terminal.resize(24, columns);
        terminal.wait_for("the line in its width", |screen| {
            let rows: Vec<String> = screen.rows(0, columns).collect();
            rows.iter().filter(|row| row.contains("❯ typed▏")).count() == 1
                && rows.iter().any(|row| row.contains("Esc stops")) == (columns >= 80)
        });
    }
    server.release();
    wait_for_line(&terminal, "typed");
    leave(terminal);
}

/// SPEC 8.7: a program that is started on the terminal finds it as aish did, not as it is between two lines.
#[test]
fn a_pager_gets_the_terminal_as_it_was() {
    let rows: String = (0..100).map(|n| format!("row {n}\n")).collect();
    let server = FakeServer::script([
        Reply::call("c1", "file_read", json!({ "path": "rows" })),
        Reply::text("that many"),
    ]);
    let sandbox = Sandbox::with_model(&server)
        .file("rows", rows)
        .file(
            "pager",
            "cat >/dev/null; stty -a </dev/tty >settings; mv settings told\n",
        )
        .env("PAGER", "sh pager");
    let terminal = sandbox.terminal(&[]).start();
    terminal.wait_for_prompt();
    terminal.send_line("?how many rows");
    terminal.wait_for_text("that many");
    terminal.wait_for_prompt();
    terminal.send_line(":show");
    let told = poll_until("the pager", default_wait(), || {
        std::fs::read_to_string(sandbox.path("told")).ok()
    });
    let modes: Vec<&str> = told.split_whitespace().collect();
    for mode in ["icanon", "echo", "icrnl", "isig", "-noflsh"] {
        assert!(modes.contains(&mode), "{mode} in {told}");
    }
    leave(terminal);
}

/// SPEC 8.9: where nothing is drawn, nothing is typed ahead either: the terminal keeps what is typed for the next line.
#[test]
fn dumb_terminals_have_no_line_below() {
    let server = FakeServer::script([Reply::halting("first ", "last"), Reply::text("the answer")]);
    let sandbox = Sandbox::with_model(&server);
    let mut terminal = sandbox.terminal(&[]).env("TERM", "dumb").start();
    terminal.wait_for_prompt();
    terminal.send_line("go");
    terminal.wait_for_text("first");
    terminal.send("and then\n");
    server.release();
    terminal.wait_for_text("the answer");
    terminal.wait_for_prompt();
    assert_eq!(asked(&server, 1), "and then");
    assert!(!terminal.transcript().contains(&0x1b));
    terminal.send(key::CTRL_D);
    poll_until("its end", default_wait(), || (!terminal.is_running()).then_some(()));
}
