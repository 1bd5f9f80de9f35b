//! What a person at a terminal has of the conversations that apps have (SPEC 9.2, 9.5, 10.4): they are in the same ledger.

use super::app::{Served, accepted, place, refused, replied, tool};
use crate::support::fake_server::FakeServer;
use crate::support::ledger::text;
use crate::support::pty::{Terminal, key};
use crate::support::reply::Reply;
use crate::support::sandbox::Sandbox;
use crate::support::{default_wait, poll_until};
use serde_json::{Value, json};

/// A terminal in a conversation that waits for its app.
fn beside_its_app(sandbox: &Sandbox, id: &str) -> Terminal {
    let terminal = sandbox.terminal(&["--resume", id]).start();
    terminal.wait_for_text("waits for its client: pick()");
    terminal.wait_for_prompts(1);
    terminal
}

/// SPEC 3.5a, 9.2: nothing can be said in a conversation that waits for its app, until the person ends the turn that waits; the app
/// is told.
#[test]
fn an_app_that_does_not_come_back() {
    let model = FakeServer::script([Reply::call("c1", "pick", json!({})), Reply::text("so we go on")]);
    let sandbox = place(&model);
    let served = Served::start(&sandbox);
    let pending = served.chat("go", &["pick"]);
    let id = text(&pending["conversation_id"]);

    let mut terminal = beside_its_app(&sandbox, id);
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

/// SPEC 3.5b, 9.2: a turn that its app has gone on with is not ended by a person who was asked before about one that waited; and
/// where the app has answered already, nobody is asked.
#[test]
fn an_app_that_comes_back_meanwhile() {
    let model = FakeServer::script([
        Reply::call("c1", "pick", json!({})),
        Reply::stream()
            .says("the app ")
            .stalls()
            .says("goes on")
            .finish("stop")
            .done(),
        Reply::call("c2", "pick", json!({})),
        Reply::text("picked again"),
        Reply::text("and so do we"),
    ]);
    let sandbox = place(&model);
    let served = Served::start(&sandbox);
    let pending = served.chat("go", &["pick"]);
    let id = text(&pending["conversation_id"]);
    let mut terminal = beside_its_app(&sandbox, id);
    terminal.send_line("?never mind");
    terminal.wait_for_text("end the turn instead? [y/N]");
    let reply = std::thread::scope(|scope| {
        let answered = scope.spawn(|| accepted(&served.answer(&pending, "a")));
        poll_until("the app's next request", default_wait(), || {
            (model.requests().len() == 2).then_some(())
        });
        terminal.send_line("y");
        terminal.wait_for_text("the conversation has gone on");
        model.release();
        answered.join().unwrap()
    });
    replied(&reply, "the app goes on");

    let body = json!({"message": "once more", "tools": [tool("pick")], "conversation_id": id});
    let pending = accepted(&served.post("/api/chat", &body));
    replied(&accepted(&served.answer(&pending, "b")), "picked again");
    terminal.wait_for_prompts(2);
    terminal.send_line("?and now");
    let screen = terminal.wait_for_text("and so do we");
    assert_eq!(screen.matches("end the turn instead?").count(), 1, "{screen}");
    terminal.wait_for_prompt();
    terminal.send(key::CTRL_D);
    assert_eq!(terminal.wait_exit().code(), Some(0));
    model.assert_done();
}

/// A terminal that asks about the first of these commands, in a place that is served too.
fn asks_for(sandbox: &Sandbox, command: &str) -> Terminal {
    let terminal = sandbox.terminal(&[]).start();
    terminal.wait_for_prompt();
    terminal.send_line("?go");
    terminal.wait_for_text(&format!("command=\"{command}\")'? [y/N/a/s/?]"));
    terminal
}

/// What the only conversation there waits for.
fn waits_for(served: &Served) -> Value {
    let id = accepted(&served.get("/api/sessions?limit=1"))["sessions"][0]["id"].clone();
    accepted(&served.get(&format!("/api/sessions/{}?limit=1", text(&id))))["pending"].clone()
}

/// SPEC 3.3: a yes that is typed just after its question was answered over HTTP is no yes to the question that comes in its place.
#[test]
fn a_yes_to_a_question_that_was_taken_back() {
    let command = |name: &str| json!({"command": format!("touch {name}")});
    let model = FakeServer::script([
        Reply::calls(&[("c1", "bash", command("one")), ("c2", "bash", command("two"))]),
        Reply::text("as you wish"),
    ]);
    let sandbox = place(&model);
    let served = Served::start(&sandbox);
    let terminal = asks_for(&sandbox, "touch one");
    served.approval(&waits_for(&served), "deny");
    terminal.wait_for_text("declined from somewhere else meanwhile");
    terminal.send_line("y");
    let screen = terminal.wait_for_text("command=\"touch two\")'? [y/N/a/s/?]");
    assert!(screen.contains("declined from somewhere else meanwhile"), "{screen}");
    terminal.send_line("n");
    terminal.wait_for_text("as you wish");
    terminal.wait_for_prompt();
    assert!(!sandbox.path("one").exists() && !sandbox.path("two").exists());
}

/// SPEC 3.3, 5.3: nor is a yes to the rule that was offered in it said to the model.
#[test]
fn a_yes_to_a_rule_that_was_taken_back() {
    let model = FakeServer::script([
        Reply::call("c1", "bash", json!({"command": "touch one"})),
        Reply::text("as you wish"),
        Reply::text("good bye"),
    ]);
    let sandbox = place(&model);
    let served = Served::start(&sandbox);
    let terminal = asks_for(&sandbox, "touch one");
    terminal.send_line("s");
    terminal.wait_for_text("save this rule? [y/N]");
    served.approval(&waits_for(&served), "deny");
    terminal.wait_for_text("declined from somewhere else meanwhile");
    terminal.send_line("y");
    terminal.wait_for_text("as you wish");
    terminal.wait_for_prompt();
    terminal.send_line("?that was all");
    terminal.wait_for_text("good bye");
    let requests = model.requests();
    let said = requests.last().unwrap().messages().iter();
    let said: Vec<&str> = said
        .filter(|one| one["role"] == "user")
        .map(|one| text(&one["content"]))
        .collect();
    assert_eq!(said.len(), 2, "{said:?}");
    model.assert_done();
}
