//! Where the calls of a turn run when somebody goes on with it from elsewhere (SPEC 3.3, 5.6).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use serde_json::json;
use support::fake_server::FakeServer;
use support::ledger::{export, of_kind, only_session};
use support::pty::key;
use support::reply::Reply;
use support::sandbox::Sandbox;

/// A command that waits for an answer in the folder `here` of the project; there is a folder `there` too.
fn waiting() -> (FakeServer, Sandbox, String) {
    let server = FakeServer::script([Reply::call("c1", "bash", json!({"command": "touch ran"}))]);
    let sandbox = Sandbox::with_model(&server).file("here/x", "").file("there/x", "");
    sandbox.run(&["-p", "do it", "--cd", "here"]).exits(3);
    let id = only_session(&sandbox);
    (server, sandbox, id)
}

/// What is said when a turn goes on where it began.
fn told(sandbox: &Sandbox) -> String {
    let here = sandbox.path("here").canonicalize().unwrap();
    format!("[aish] working in {}, where this turn began", here.display())
}

/// SPEC 3.3, 5.6: what was approved runs where it was asked about, from wherever the answer comes; the next turn is here again.
#[test]
fn an_approval_holds_from_anywhere() {
    let (server, sandbox, id) = waiting();
    server.push(Reply::text("done"));
    server.push(Reply::text("and here"));
    let output = sandbox
        .run(&["resume", &id, "--approve", "call_1_1", "--cd", "there"])
        .success();
    assert_eq!(output.stdout, "done\n");
    assert!(output.stderr.contains(&told(&sandbox)), "{output:?}");
    assert!(sandbox.path("here/ran").exists() && !sandbox.path("there/ran").exists());
    sandbox
        .run(&["-p", "and now?", "--continue", "--cd", "there"])
        .success();
    let events = export(&sandbox, &id);
    let began = of_kind(&events, "turn_started");
    assert!(
        began[1]["data"]["directory"].as_str().unwrap().ends_with("/there"),
        "{began:?}"
    );
}

/// SPEC 3.3: where the turn began here, nothing is said of it.
#[test]
fn nothing_is_said_at_home() {
    let (server, sandbox, id) = waiting();
    server.push(Reply::text("done"));
    let output = sandbox
        .run(&["resume", &id, "--approve", "call_1_1", "--cd", "here"])
        .success();
    assert!(!output.stderr.contains("working in"), "{output:?}");
    assert!(sandbox.path("here/ran").exists());
}

/// SPEC 3.3: at the prompt the turn goes on where it began as well, and the prompt is back where it was.
#[test]
fn at_the_prompt() {
    let (server, sandbox, _) = waiting();
    server.push(Reply::text("done"));
    let mut terminal = sandbox.terminal(&["--continue", "--cd", "there"]).size(24, 200).start();
    terminal.wait_for_text("[y/N/a/s/?]");
    terminal.send_line("y");
    terminal.wait_for_text("done");
    let screen = terminal.wait_for_text("there fake ❯");
    assert!(screen.contains(&told(&sandbox)), "{screen}");
    assert!(sandbox.path("here/ran").exists() && !sandbox.path("there/ran").exists());
    terminal.send_line("!touch typed");
    terminal.wait_for_prompts(2);
    assert!(sandbox.path("there/typed").exists());
    terminal.send(key::CTRL_D);
    assert_eq!(terminal.wait_exit().code(), Some(0));
}

/// SPEC 10.2, 10.4, 3.7: a directory that is gone, or in whose place there is a link, is named and nothing runs; at a terminal
/// the turn can be ended, so that the session goes on.
#[test]
fn a_directory_that_is_gone() {
    let (server, sandbox, id) = waiting();
    let here = sandbox.path("here").canonicalize().unwrap();
    std::fs::remove_dir_all(&here).unwrap();
    let refused = || {
        let output = sandbox.run(&["resume", &id, "--approve", "call_1_1"]).exits(2);
        assert!(
            output.stderr.contains(&format!("it began in {}", here.display())),
            "{output:?}"
        );
    };
    refused();
    std::os::unix::fs::symlink(sandbox.path("there"), &here).unwrap();
    refused();
    assert!(!sandbox.path("there/ran").exists());

    let mut terminal = sandbox.terminal(&["--continue"]).start();
    terminal.wait_for_text("end the turn instead? [y/N]");
    terminal.send_line("y");
    terminal.wait_for_text("fake ❯");
    server.push(Reply::text("here I am"));
    terminal.send_line("are you there?");
    terminal.wait_for_text("here I am");
    terminal.wait_for_prompt();
    terminal.send(key::CTRL_D);
    assert_eq!(terminal.wait_exit().code(), Some(0));
}

/// SPEC 2.6, 3.3: a turn that was cut off is finished where it began, and the question after it is asked from here.
#[test]
fn a_turn_that_was_cut_off() {
    let server = FakeServer::script([
        Reply::stream().says("slow\n").stalls(),
        Reply::call("c1", "file_write", json!({"path": "ran", "content": "here"})),
        Reply::text("finished"),
        Reply::call("c2", "file_write", json!({"path": "ran", "content": "there"})),
        Reply::text("done"),
    ]);
    let sandbox = Sandbox::with_model(&server).file("here/x", "").file("there/x", "");
    let run = sandbox.start(&["-p", "do it", "--cd", "here", "--approval", "full"]);
    run.wait_for_stdout("slow");
    run.signal(rustix::process::Signal::KILL);
    run.finish();
    let arguments = ["-p", "and now?", "--continue", "--cd", "there", "--approval", "full"];
    let output = sandbox.run(&arguments).success();
    assert!(output.stderr.contains(&told(&sandbox)), "{output:?}");
    for place in ["here", "there"] {
        let ran = std::fs::read_to_string(sandbox.path(place).join("ran")).unwrap();
        assert_eq!(ran, place);
    }
    server.assert_done();
}
