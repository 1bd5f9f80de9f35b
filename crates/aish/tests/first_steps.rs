//! What somebody meets who has just arrived and does not know how aish wants things written.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use serde_json::json;
use support::fake_server::FakeServer;
use support::pty::key;
use support::reply::Reply;
use support::sandbox::Sandbox;

/// SPEC 10.2, 10.4: a prompt with nothing in it is a mistake that is told, not a request. A script whose variable is empty
/// would otherwise pay for an answer to nothing.
#[test]
fn an_empty_prompt() {
    let server = FakeServer::script([]);
    let sandbox = Sandbox::with_model(&server);
    for prompt in ["", " \n", "-"] {
        let output = sandbox.run(&["-p", prompt]).exits(2);
        assert_eq!(output.stdout, "", "{prompt:?}");
        assert!(
            output.stderr.contains("[aish] there is nothing to ask"),
            "{prompt:?}: {}",
            output.stderr
        );
    }
    server.assert_done();
}

/// SPEC 8.5: a result that only says what the frame's foot says is not shown twice.
#[test]
fn a_write_is_told_once() {
    let write = Reply::call("c1", "file_write", json!({ "path": "a.txt", "content": "hello" }));
    let server = FakeServer::script([write, Reply::text("done")]);
    let sandbox = Sandbox::with_model(&server);
    let mut terminal = sandbox.terminal(&["--approval", "full"]).start();
    terminal.wait_for_text("❯");
    terminal.send_line("write it");
    let screen = terminal.wait_for("the next prompt", |screen| screen.contents().matches('❯').count() == 2);
    assert_eq!(screen.to_lowercase().matches("wrote 5 bytes").count(), 1, "{screen}");
    terminal.send(key::CTRL_D);
    assert_eq!(terminal.wait_exit().code(), Some(0));
    server.assert_done();
}
