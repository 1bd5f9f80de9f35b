//! What a person at a terminal has of the conversations that apps have (SPEC 9.2, 9.5, 10.4): they are in the same ledger.

use super::app::{Served, accepted, place, refused, replied};
use crate::support::fake_server::FakeServer;
use crate::support::ledger::text;
use crate::support::pty::key;
use crate::support::reply::Reply;
use serde_json::json;

/// SPEC 3.5a, 9.2: nothing can be said in a conversation that waits for its app, until the person ends the turn that waits; the app
/// is told.
#[test]
fn an_app_that_does_not_come_back() {
    let model = FakeServer::script([Reply::call("c1", "pick", json!({})), Reply::text("so we go on")]);
    let sandbox = place(&model);
    let served = Served::start(&sandbox);
    let pending = served.chat("go", &["pick"]);
    let id = text(&pending["conversation_id"]);

    let mut terminal = sandbox.terminal(&["--resume", id]).start();
    terminal.wait_for_text("waits for its client: pick()");
    terminal.wait_for_prompts(1);
    let asks = "end the turn instead? [y/N]";
    terminal.send_line("never mind");
    terminal.wait_for_text(asks);
    terminal.send_line("n");
    terminal.wait_for_prompts(2);
    assert_eq!(model.requests().len(), 1);
    terminal.send_line("never mind");
    terminal.wait_for("the second question", |screen| {
        screen.contents().matches(asks).count() == 2
    });
    terminal.send_line("y");
    terminal.wait_for_text("so we go on");
    terminal.wait_for_prompt();
    terminal.send(key::CTRL_D);
    assert_eq!(terminal.wait_exit().code(), Some(0));
    refused(&served.answer(&pending, "too late"), 409, "not_waiting");
    model.assert_done();
}

/// SPEC 5.6, 9.3: a yes that an app asks for can be given at a terminal; the app that gives it as well gets what came of it.
#[test]
fn a_yes_at_a_terminal() {
    let model = FakeServer::script([
        Reply::call("c1", "bash", json!({"command": "echo x >> ran"})),
        Reply::text("it ran"),
    ]);
    let sandbox = place(&model);
    let served = Served::start(&sandbox);
    let pending = served.chat("go", &[]);
    let id = text(&pending["conversation_id"]);
    let shown = sandbox.run(&["sessions", "show", id]).success();
    let waits = format!(
        "waits for an answer: bash(command=\"echo x >> ran\") ({}",
        text(&pending["call_id"])
    );
    assert!(shown.stderr.contains(&waits), "{}", shown.stderr);
    let mut terminal = sandbox.terminal(&["resume", id]).start();
    terminal.wait_for_text("[y/N/a/s/?]");
    terminal.send_line("y");
    terminal.wait_for_text("it ran");
    terminal.wait_for_prompt();
    terminal.send(key::CTRL_D);
    assert_eq!(terminal.wait_exit().code(), Some(0));
    replied(&accepted(&served.approval(&pending, "approve")), "it ran");
    assert_eq!(std::fs::read_to_string(sandbox.path("ran")).unwrap(), "x\n");
    model.assert_done();
}
