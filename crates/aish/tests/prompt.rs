//! The conversational prompt on a terminal, as a person sees it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(dead_code)]

mod support;

use serde_json::json;
use support::fake_server::{FakeServer, Received};
use support::pty::{Signal, key};
use support::reply::Reply;
use support::sandbox::Sandbox;

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
    terminal.wait_for_prompts(1);
    terminal.send_line("hi");
    let screen = terminal.wait_for_prompts(2);
    assert!(screen.contains("hello there"), "{screen}");
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
    terminal.wait_for_prompts(1);
    terminal.send_line("write it");
    let screen = terminal.wait_for_text("[y/N/a/s/?]");
    assert!(screen.contains("│ one") && screen.contains("│ two"), "{screen}");
    assert!(!sandbox.project().join("notes.txt").exists());
    terminal.send_line("y");
    let screen = terminal.wait_for_prompts(2);
    assert!(screen.contains("written"), "{screen}");
    assert_eq!(
        std::fs::read_to_string(sandbox.project().join("notes.txt")).unwrap(),
        "one\ntwo\n"
    );
    terminal.send(key::CTRL_D);
    assert_eq!(terminal.wait_exit().code(), Some(0));
    server.assert_done();
}

/// SPEC 5.6: a yes typed before the question was there approves nothing: it is a line like any other, and waits.
#[test]
fn a_yes_in_advance() {
    let server = FakeServer::script([
        Reply::call("c1", "file_write", json!({ "path": "x", "content": "x" })).stalls_first(),
        Reply::text("as you wish"),
        Reply::text("yes what?"),
    ]);
    let sandbox = Sandbox::with_model(&server);
    let mut terminal = sandbox.terminal(&[]).start();
    terminal.wait_for_prompts(1);
    terminal.send_line("write it");
    server.wait_for_requests(1);
    terminal.send_line("?y");
    terminal.send("y");
    terminal.wait_for("both", |screen| screen.contents().contains("1 queued ❯ y"));
    server.release();
    terminal.wait_for_text("[y/N/a/s/?]");
    terminal.send_line("n use another name");
    let screen = terminal.wait_for_text("yes what?");
    assert!(screen.contains("as you wish"), "{screen}");
    assert!(!sandbox.project().join("x").exists());
    assert!(sent(&server.requests()[1]).contains("use another name"));
    terminal.wait_for("the rest on the line", |screen| {
        screen.contents().lines().last().is_some_and(|row| row.contains("❯ y"))
    });
    terminal.send(key::CTRL_U);
    terminal.wait_for_prompt();
    terminal.send(key::CTRL_D);
    assert_eq!(terminal.wait_exit().code(), Some(0));
}

/// SPEC 8.7: Ctrl-C stops a stream and gives the prompt back; twice quits nothing.
#[test]
fn ctrl_c_stops_a_stream() {
    let server = FakeServer::script([
        Reply::stream()
            .says("one two ")
            .stalls()
            .says("three")
            .finish("stop")
            .done(),
        Reply::text("still here"),
    ]);
    let sandbox = Sandbox::with_model(&server);
    let mut terminal = sandbox.terminal(&[]).start();
    terminal.wait_for_prompts(1);
    terminal.send_line("count");
    terminal.wait_for_text("one two");
    terminal.send(key::CTRL_C);
    terminal.wait_for_prompts(2);
    terminal.send(key::CTRL_C);
    terminal.wait_for_prompts(3);
    terminal.send(key::CTRL_C);
    terminal.wait_for_prompts(4);
    terminal.send_line("and now?");
    terminal.wait_for_text("still here");
    terminal.wait_for_prompt();
    terminal.send(key::CTRL_D);
    assert_eq!(terminal.wait_exit().code(), Some(0));
}

/// SPEC 8.7: Ctrl-C at the approval prompt stops the turn; nothing runs.
#[test]
fn ctrl_c_at_the_question() {
    let server = FakeServer::script([Reply::call("c1", "file_write", json!({ "path": "x", "content": "x" }))]);
    let sandbox = Sandbox::with_model(&server);
    let mut terminal = sandbox.terminal(&[]).start();
    terminal.wait_for_prompts(1);
    terminal.send_line("write it");
    terminal.wait_for_text("[y/N/a/s/?]");
    terminal.send(key::CTRL_C);
    terminal.wait_for_prompts(2);
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
    terminal.wait_for_prompts(1);
    terminal.send_line("!echo begun; sleep 1000");
    terminal.wait_for("its output", |screen| screen.contents().contains("\nbegun"));
    terminal.send(key::CTRL_C);
    terminal.wait_for_prompts(2);
    terminal.send_line(":quit");
    assert_eq!(terminal.wait_exit().code(), Some(0));
    sandbox.assert_nothing_runs();
}

/// SPEC 8.3: a command's output goes along with the next question; a bare `cd` moves the session.
#[test]
fn commands_and_directories() {
    let server = FakeServer::script([Reply::text("seen")]);
    let sandbox = Sandbox::with_model(&server).file("below/marker", "x");
    let mut terminal = sandbox.terminal(&[]).start();
    terminal.wait_for_prompts(1);
    terminal.send_line("!cd below");
    terminal.wait_for_text("below fake ❯");
    terminal.send_line("!ls; false");
    let screen = terminal.wait_for_text("─ exit 1 ─");
    assert!(screen.contains("\nmarker"), "{screen}");
    terminal.send_line("what is there?");
    terminal.wait_for_text("seen");
    terminal.wait_for_prompt();
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
    terminal.wait_for_prompts(1);
    terminal.send_line("the first question");
    terminal.wait_for_prompts(2);
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
    terminal.wait_for_prompt();
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
    terminal.wait_for_prompts(1);
    terminal.send("\x1b[200~!touch pasted\nsecond line\n\x1b[201~");
    terminal.wait_for_text("second line");
    terminal.send(key::CTRL_C);
    terminal.wait_for_prompts(2);
    terminal.send("\x1b[200~one\nother\x1b[201~");
    terminal.wait_for_text("· other");
    assert!(server.requests().is_empty());
    terminal.send(key::ENTER);
    terminal.wait_for_text("got it");
    terminal.wait_for_prompt();
    assert!(sent(&server.only_request()).contains("one\\nother"));
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
        output
            .stdout
            .contains("one\ncommand: echo typed\n    typed\ndone: exit 0"),
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
    terminal.wait_for_prompts(1);
    terminal.send_line("hi");
    let screen = terminal.wait_for_prompts(2);
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
    terminal.wait_for_prompts(1);
    terminal.send_line("one");
    server.wait_for_requests(1);
    terminal.send("two\r");
    server.release();
    terminal.wait_for_prompts(3);
    terminal.send(key::CTRL_D);
    let status = terminal.wait_exit();
    assert_eq!(status.code(), Some(0));
    let screen = terminal.screen_text();
    assert!(
        screen.contains("the first answer") && screen.contains("the second answer"),
        "{screen}"
    );
    assert!(sent(&server.requests()[1]).contains("two"));
}

/// SPEC 5.3: `s` shows the rule, saves it, and the same call is not asked about again.
#[test]
fn a_saved_rule() {
    let push = || json!({ "command": "touch pushed" });
    let server = FakeServer::script([
        Reply::call("c1", "bash", push()),
        Reply::text("first"),
        Reply::call("c2", "bash", push()),
        Reply::text("second"),
    ]);
    let sandbox = Sandbox::with_model(&server);
    let mut terminal = sandbox.terminal(&[]).start();
    terminal.wait_for_prompts(1);
    terminal.send_line("push");
    terminal.wait_for_text("[y/N/a/s/?]");
    terminal.send_line("s");
    let screen = terminal.wait_for_text("save this rule? [y/N]");
    assert!(screen.contains("allow from now on: bash(touch pushed)"), "{screen}");
    terminal.send_line("y");
    terminal.wait_for_prompts(2);
    let config = std::fs::read_to_string(sandbox.home().join("config.toml")).unwrap();
    assert!(config.contains("bash(touch pushed)"), "{config}");
    terminal.send(key::CTRL_D);
    assert_eq!(terminal.wait_exit().code(), Some(0));

    let mut terminal = sandbox.terminal(&[]).start();
    terminal.wait_for_prompts(1);
    terminal.send_line("push again");
    let screen = terminal.wait_for_prompts(2);
    assert!(screen.contains("second") && !screen.contains("[y/N/a/s/?]"), "{screen}");
    terminal.send(key::CTRL_D);
    assert_eq!(terminal.wait_exit().code(), Some(0));
}

/// SPEC 3.2, 2.6: a call that was cut off by a crash is named as in doubt and not run again; the person says whether the
/// turn goes on.
#[test]
fn after_a_crash() {
    let command = json!({ "command": "echo x >> ran; sleep 1000" });
    let server = FakeServer::script([Reply::call("c1", "bash", command), Reply::text("I see")]);
    let sandbox = Sandbox::with_model(&server).config("[approval]\nmode = \"full\"\n");
    let mut terminal = sandbox.terminal(&[]).start();
    terminal.wait_for_text("[full] fake ❯");
    terminal.send_line("run it");
    terminal.wait_for("the frame", |screen| screen.contents().contains("─── bash(command="));
    terminal.signal(Signal::KILL);
    terminal.wait_exit();

    let mut terminal = sandbox.terminal(&["--continue"]).start();
    let screen = terminal.wait_for_text("go on with it? [Y/n]");
    assert!(screen.contains("[aish] in doubt: bash(command="), "{screen}");
    terminal.send_line("");
    terminal.wait_for_text("I see");
    terminal.wait_for("the prompt", |screen| screen.contents().contains("[full] fake ❯"));
    let history = terminal.history_text();
    assert_eq!(history.matches("[aish] in doubt:").count(), 1, "{history}");
    terminal.send(key::CTRL_D);
    assert_eq!(terminal.wait_exit().code(), Some(0));
    let ran = std::fs::read_to_string(sandbox.project().join("ran")).unwrap_or_default();
    assert!(ran.lines().count() <= 1, "{ran}");
}

/// SPEC 3.6: at the limit the person is offered to go on, as a new turn.
#[test]
fn going_on_after_the_limit() {
    let list = |id| Reply::call(id, "glob", json!({ "pattern": "*" }));
    let server = FakeServer::script([
        list("c1"),
        Reply::text("summed up"),
        list("c2"),
        Reply::text("summed up again"),
    ]);
    let sandbox = Sandbox::with_model(&server).config_first("max_tool_turns = 1\n");
    let mut terminal = sandbox.terminal(&[]).start();
    terminal.wait_for_prompts(1);
    terminal.send_line("look around");
    terminal.wait_for_text("more rounds of calls? [y/N]");
    terminal.send_line("y");
    terminal.wait_for_text("summed up again");
    terminal.wait_for("the second offer", |screen| {
        screen.contents().matches("[y/N]").count() == 2
    });
    terminal.send_line("n");
    terminal.wait_for_prompts(2);
    terminal.send(key::CTRL_D);
    assert_eq!(terminal.wait_exit().code(), Some(0));
}

/// SPEC 2.8: sessions are listed and gone back to; SPEC 8.5: a cut result is shown whole.
#[test]
fn meta_commands() {
    let names = (0..60).map(|n| format!("file{n:02}.txt"));
    let server = FakeServer::script([
        Reply::call("c1", "glob", json!({ "pattern": "*.txt" })),
        Reply::text("many"),
    ]);
    let sandbox = names.fold(Sandbox::with_model(&server), |sandbox, name| sandbox.file(&name, "x"));
    // No pager is to be found: the whole result is printed.
    let mut terminal = sandbox.terminal(&[]).env("PATH", "/nonexistent").start();
    terminal.wait_for_prompts(1);
    terminal.send_line("list them");
    terminal.wait_for_text("more lines (:show call_1_1)");
    terminal.wait_for_prompts(1);
    assert!(!terminal.history_text().contains("file59.txt"));
    terminal.send_line(":show call_1_1");
    terminal.wait_for_text("file59.txt");
    terminal.wait_for_prompts(1);
    terminal.send_line(":quit");
    assert_eq!(terminal.wait_exit().code(), Some(0));

    // One that is found gets it instead.
    let pager = "#!/bin/sh\nn=0\nwhile read -r line; do n=$((n+1)); done\necho \"paged $n lines\"\n";
    let sandbox = sandbox.file("bin/less", pager);
    let runnable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(sandbox.path("bin/less"), runnable).unwrap();
    let bin = sandbox.path("bin").to_str().unwrap().to_owned();
    let mut terminal = sandbox.terminal(&["--continue"]).env("PATH", bin).start();
    terminal.wait_for_text("more lines (:show call_1_1)");
    terminal.wait_for_prompts(1);
    terminal.send_line(":show");
    terminal.wait_for_text("paged 60 lines");
    terminal.send_line(":quit");
    assert_eq!(terminal.wait_exit().code(), Some(0));

    let mut terminal = sandbox.terminal(&[]).start();
    terminal.wait_for_prompts(1);
    terminal.send_line(":sessions");
    let screen = terminal.wait_for_prompts(2);
    assert!(screen.contains("list them"), "{screen}");
    terminal.send_line(":resume");
    terminal.wait_for_text("❯ list them");
    terminal.send_line(":quti");
    terminal.wait_for_text("did you mean :quit?");
    terminal.send_line(":quit");
    assert_eq!(terminal.wait_exit().code(), Some(0));
}

/// SPEC 8.9: completion, `NO_COLOR`, and terminals that take no escape sequences.
#[test]
fn terminals_differ() {
    let server = FakeServer::script([Reply::text("plain")]);
    let sandbox = Sandbox::with_model(&server);
    let mut terminal = sandbox.terminal(&[]).env("NO_COLOR", "1").start();
    terminal.wait_for_prompts(1);
    terminal.send(":qu\t");
    terminal.wait_for_text("fake : :quit");
    terminal.send(key::ENTER);
    assert_eq!(terminal.wait_exit().code(), Some(0));
    terminal.assert_never_wrote(b"\x1b[2m");

    let mut terminal = sandbox.terminal(&[]).env("TERM", "dumb").start();
    terminal.wait_for_prompts(1);
    terminal.send_line("hi");
    terminal.wait_for_prompts(2);
    terminal.send(key::CTRL_C);
    terminal.wait_for_prompts(3);
    terminal.send(key::CTRL_D);
    assert_eq!(terminal.wait_exit().code(), Some(0));
    terminal.assert_never_wrote(b"\x1b");
}
