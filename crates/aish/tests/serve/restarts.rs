//! Nothing that waits is lost when a server dies or ends, and any server of the store goes on with it (SPEC 9.5).

use super::app::{Served, accepted, message, place, replied, results, route, waits_for};
use crate::support::fake_server::FakeServer;
use crate::support::http::read_response;
use crate::support::ledger::{export, of_kind, text};
use crate::support::reply::Reply;
use crate::support::{default_wait, poll_until};
use serde_json::{Value, json};
use std::fs;

/// Conversations that wait while the server dies.
const WAITING: usize = 20;

/// What a session is at, as soon as it is at that.
fn until_state(served: &Served, id: &Value, state: &str) -> Value {
    let path = format!("/api/sessions/{}", text(id));
    poll_until(&format!("the session is {state}"), default_wait(), || {
        let session = accepted(&served.get(&path));
        (session["state"] == state).then_some(session)
    })
}

/// SPEC 9.5: conversations that wait survive `kill -9`; answered to a new server each goes on where it was.
#[test]
fn killed_while_they_wait() {
    let model = FakeServer::builder()
        .otherwise(|request| match results(request).last() {
            None => Reply::call("c1", "pick", json!({"of": request.last_text()})),
            Some(result) => Reply::text(&format!("got {result}")),
        })
        .start();
    let sandbox = place(&model);
    let served = Served::start(&sandbox);
    let pending: Vec<Value> = (0..WAITING)
        .map(|n| served.chat(&format!("number {n}"), &["pick"]))
        .collect();
    served.kill_9();
    let served = Served::start(&sandbox);
    for (n, pending) in pending.iter().enumerate().rev() {
        assert!(text(&pending["tool_input"]["of"]).ends_with(&format!("number {n}")));
        let last = accepted(&served.answer(pending, &format!("answer {n}")));
        replied(&last, &format!("got answer {n}"));
        assert_eq!(last["conversation_id"], pending["conversation_id"]);
    }
}

/// SPEC 9.5: a chain whose server is killed and started again at every step.
#[test]
fn a_chain_over_restarts() {
    let steps = 5;
    let call = |n: usize| Reply::call(&format!("c{n}"), "pick", json!({ "n": n }));
    let model = FakeServer::script((1..=steps).map(call).chain([Reply::text("done")]));
    let sandbox = place(&model);
    let mut served = Served::start(&sandbox);
    let mut pending = served.chat("go", &["pick"]);
    for n in 1..=steps {
        waits_for(&pending, "pick");
        served.kill_9();
        served = Served::start(&sandbox);
        pending = accepted(&served.answer(&pending, &n.to_string()));
    }
    replied(&pending, "done");
    assert_eq!(results(model.requests().last().unwrap()), ["1", "2", "3", "4", "5"]);
    model.assert_done();
}

/// SPEC 9.5: a second server on the same store answers for the first, in turns, and both know what was answered.
#[test]
fn two_servers() {
    let model = FakeServer::script([
        Reply::call("c1", "pick", json!({})),
        Reply::call("c2", "pick", json!({})),
        Reply::text("done"),
    ]);
    let sandbox = place(&model);
    let (one, other) = (Served::start(&sandbox), Served::start(&sandbox));
    let first = one.chat("go", &["pick"]);
    let second = accepted(&other.answer(&first, "1"));
    assert_eq!(accepted(&one.answer(&first, "1")), second);
    let last = accepted(&one.answer(&second, "2"));
    replied(&last, "done");
    assert_eq!(accepted(&other.answer(&second, "2")), last);
    model.assert_done();
}

/// SPEC 9.4, 9.5: killed after an answer was taken and before it was answered: the same answer to a new server gets the reply,
/// and has counted once.
#[test]
fn killed_after_an_answer_was_taken() {
    let model = FakeServer::builder()
        .reply(Reply::call("c1", "pick", json!({})))
        .reply(Reply::hangs())
        .otherwise(|_| Reply::text("done"))
        .start();
    let sandbox = place(&model);
    let served = Served::start(&sandbox);
    let pending = served.chat("go", &["pick"]);
    served.kill_9_meanwhile(&route(&pending, "tool_result"), &[], &answer(&pending), || {
        model.wait_for_requests(2);
    });
    let served = Served::start(&sandbox);
    replied(&accepted(&served.answer(&pending, "red")), "done");
    let requests = model.requests();
    assert_eq!(results(requests.last().unwrap()), ["red"]);
    let events = export(&sandbox, text(&pending["conversation_id"]));
    assert_eq!(of_kind(&events, "tool_result").len(), 1);
    assert_eq!(of_kind(&events, "resumed").len(), 1);
}

fn answer(pending: &Value) -> Value {
    json!({"call_id": pending["call_id"], "content": "red"})
}

/// SPEC 2.6, 9.5, 12: a built-in command that a crash cut off is in doubt: nobody runs it again, and the model is told.
#[test]
fn killed_while_a_command_runs() {
    let model = FakeServer::builder()
        .reply(Reply::call(
            "c1",
            "bash",
            json!({"command": "echo ran >> ran; sleep 600"}),
        ))
        .otherwise(|_| Reply::text("I see"))
        .start();
    let sandbox = place(&model).config("[approval]\nmode = \"full\"\n");
    let served = Served::start(&sandbox);
    let ran = sandbox.path("ran");
    let (key, body) = ([("Idempotency-Key", "k")], json!({"message": "go"}));
    served.kill_9_meanwhile("/api/chat", &key, &body, || {
        // The shell makes the file before it writes into it.
        poll_until("the command runs", default_wait(), || {
            fs::read_to_string(&ran).ok().filter(|text| !text.is_empty())
        });
    });
    let served = Served::start(&sandbox);
    let again = accepted(&served.post_with("/api/chat", &key, &body));
    replied(&again, "I see");
    assert_eq!(fs::read_to_string(&ran).unwrap(), "ran\n");
    let told = results(model.requests().last().unwrap());
    assert!(told[0].contains("interrupted"), "{told:?}");
}

/// SPEC 9.5: a turn that nobody drives any more is taken over by a server that runs, without being asked.
#[test]
fn taken_over() {
    let model = FakeServer::builder()
        .reply(Reply::hangs())
        .otherwise(|_| Reply::text("done"))
        .start();
    let sandbox = place(&model);
    let (dies, lives) = (Served::start(&sandbox), Served::start(&sandbox));
    dies.kill_9_meanwhile("/api/chat", &[], &message("go", &[]), || {
        model.wait_for_requests(1);
    });
    model.wait_for_requests(2);
    let id = accepted(&lives.get("/api/sessions"))["sessions"][0]["id"].clone();
    until_state(&lives, &id, "idle");
    let events = export(&sandbox, text(&id));
    assert_eq!(events.last().unwrap()["kind"], "turn_ended");
    assert_eq!(of_kind(&events, "user").len(), 1);
}

/// SPEC 9.5: an app that went away finds what its message came to.
#[test]
fn the_app_went_away() {
    let model = FakeServer::script([Reply::call("c1", "pick", json!({})).stalls_first(), Reply::text("done")]);
    let sandbox = place(&model);
    let served = Served::start(&sandbox);
    let gone = served.begin("/api/chat", &[], &message("go", &["pick"])).unwrap();
    model.wait_for_requests(1);
    drop(gone);
    model.release();
    let id = accepted(&served.get("/api/sessions"))["sessions"][0]["id"].clone();
    let session = until_state(&served, &id, "pending");
    replied(&accepted(&served.answer(&session["pending"], "1")), "done");
    model.assert_done();
}

/// SPEC 9.8: asked to end, it takes no more work, ends within its limit, and the next server goes on with what was under way.
#[test]
fn drained() {
    let model = FakeServer::builder()
        .reply(Reply::call("c1", "pick", json!({})))
        .reply(Reply::hangs())
        .otherwise(|_| Reply::text("done"))
        .start();
    let sandbox = place(&model);
    let served = Served::start(&sandbox);
    let pending = served.chat("go", &["pick"]);
    let mut cut = served
        .begin(&route(&pending, "tool_result"), &[], &answer(&pending))
        .unwrap();
    model.wait_for_requests(2);
    served.terminate().success();
    let response = read_response(&mut cut);
    assert!(response.is_err() || response.is_ok_and(|response| response.status == 503));
    let served = Served::start(&sandbox);
    replied(&accepted(&served.answer(&pending, "red")), "done");
    assert_eq!(results(model.requests().last().unwrap()), ["red"]);
    served.terminate().success();
    sandbox.assert_nothing_runs();
}
