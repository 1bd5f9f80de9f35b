//! An answer counts once, however often, late, or from how many places it comes (SPEC 9.4).

use super::app::{Served, accepted, place, refused, replied, results, route, waits_for};
use crate::support::fake_server::FakeServer;
use crate::support::http::Response;
use crate::support::ledger::text;
use crate::support::poll_until;
use crate::support::reply::Reply;
use serde_json::{Value, json};
use std::time::Duration;

/// A model that calls `pick` so many times and then says `done`.
fn chain(calls: usize) -> FakeServer {
    let call = |n: usize| Reply::call(&format!("c{n}"), "pick", json!({ "n": n }));
    FakeServer::script((1..=calls).map(call).chain([Reply::text("done")]))
}

/// SPEC 9.4: the same answer again gets the same reply and does nothing; another answer is refused.
#[test]
fn twice() {
    let model = chain(2);
    let sandbox = place(&model);
    let served = Served::start(&sandbox);
    let first = served.chat("go", &["pick"]);
    let second = accepted(&served.answer(&first, "one"));
    assert_eq!(accepted(&served.answer(&first, "one")), second);
    refused(&served.answer(&first, "another"), 409, "already_answered");
    let last = accepted(&served.answer(&second, "two"));
    replied(&last, "done");
    assert_eq!(accepted(&served.answer(&second, "two")), last);
    refused(&served.answer(&second, "else"), 409, "already_answered");
    assert_eq!(results(model.requests().last().unwrap()), ["one", "two"]);
    model.assert_done();
}

/// SPEC 9.4: late and out of order: an answer to a call of long ago is what it was when it was given.
#[test]
fn late_and_out_of_order() {
    let model = chain(3);
    let sandbox = place(&model);
    let served = Served::start(&sandbox);
    let first = served.chat("go", &["pick"]);
    let second = accepted(&served.answer(&first, "one"));
    let third = accepted(&served.answer(&second, "two"));
    let last = accepted(&served.answer(&third, "three"));
    replied(&last, "done");
    assert_eq!(accepted(&served.answer(&second, "two")), third);
    assert_eq!(accepted(&served.answer(&first, "one")), second);
    refused(&served.answer(&first, "two"), 409, "already_answered");
    model.assert_done();
}

/// SPEC 9.4: the same answer that comes while the first is still worked on waits for it and gets the same reply.
#[test]
fn twice_at_once() {
    let model = FakeServer::script([Reply::call("c1", "pick", json!({})), Reply::text("done").stalls_first()]);
    let sandbox = place(&model);
    let served = Served::start(&sandbox);
    let pending = served.chat("go", &["pick"]);
    let answers: Vec<Response> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(|| served.answer(&pending, "one"))).collect();
        model.wait_for_requests(2);
        model.release();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let replies: Vec<Value> = answers.iter().map(accepted).collect();
    assert_eq!(replies[0], replies[1]);
    replied(&replies[0], "done");
    model.assert_done();
}

/// SPEC 9.4: a continuation that never was is 404, and so is one that is nearly right.
#[test]
fn unknown_continuations() {
    let model = chain(1);
    let sandbox = place(&model);
    let served = Served::start(&sandbox);
    let pending = served.chat("go", &["pick"]);
    let real = text(&pending["session_id"]);
    let last = if real.ends_with('0') { '1' } else { '0' };
    let near = format!("{}{last}", &real[..real.len() - 1]);
    for id in [
        near.as_str(),
        "br-1-1",
        "nonsense",
        "..",
        "%2e%2e",
        "0190a6c0-0000-7000-8000-000000000000",
    ] {
        let response = served.post(&format!("/api/sessions/{id}/tool_result"), &json!({"content": "x"}));
        assert_eq!(response.status, 404, "{id}: {response:?}");
    }
    replied(&accepted(&served.answer(&pending, "one")), "done");
}

/// SPEC 9.4: what has waited for too long is 410, its turn is closed, and the conversation goes on.
#[test]
fn expired() {
    let model = FakeServer::script([Reply::call("c1", "pick", json!({})), Reply::text("hello again")]);
    let sandbox = place(&model).config("[serve]\npending_ttl_s = 1\n");
    let served = Served::start(&sandbox);
    let pending = served.chat("go", &["pick"]);
    let session = format!("/api/sessions/{}", text(&pending["conversation_id"]));
    poll_until("the call expires", Duration::from_secs(60), || {
        (accepted(&served.get(&session))["state"] == "idle").then_some(())
    });
    refused(&served.answer(&pending, "too late"), 410, "expired");
    refused(&served.answer(&pending, "too late"), 410, "expired");
    let body = json!({"message": "still there?", "conversation_id": pending["conversation_id"]});
    replied(&accepted(&served.post("/api/chat", &body)), "hello again");
    assert!(!model.requests()[1].json.to_string().contains("too late"));
    model.assert_done();
}

/// SPEC 9.4: a conversation that waits takes no message until its call is answered or the turn is cancelled.
#[test]
fn a_message_meanwhile() {
    let model = FakeServer::script([
        Reply::call("c1", "pick", json!({})),
        Reply::text("done"),
        Reply::call("c2", "pick", json!({})),
        Reply::text("new topic"),
    ]);
    let sandbox = place(&model);
    let served = Served::start(&sandbox);
    let pending = served.chat("go", &["pick"]);
    let say = |text: &str| {
        let body = json!({"message": text, "conversation_id": pending["conversation_id"]});
        served.post("/api/chat", &body)
    };
    refused(&say("hello?"), 409, "conversation_waits");
    replied(&accepted(&served.answer(&pending, "one")), "done");
    let again = accepted(&say("and another"));
    waits_for(&again, "pick");
    accepted(&served.post(&route(&again, "cancel"), &json!({})));
    let late = served.answer(&again, "nobody waits");
    assert!(matches!(late.status, 409 | 410), "{late:?}");
    replied(&accepted(&say("something else")), "new topic");
    assert!(!model.requests()[3].json.to_string().contains("nobody waits"));
    model.assert_done();
}

/// SPEC 9.4: a request with an `Idempotency-Key` is done once: again it is answered the same, with another body it is refused.
#[test]
fn idempotency_keys() {
    let model = FakeServer::script([
        Reply::call("c1", "pick", json!({})),
        Reply::text("done"),
        Reply::text("another conversation"),
    ]);
    let sandbox = place(&model);
    let served = Served::start(&sandbox);
    let chat = json!({"message": "go"});
    let key = |key: &'static str| [("Idempotency-Key", key)];
    let pending = accepted(&served.post_with("/api/chat", &key("k1"), &chat));
    assert_eq!(accepted(&served.post_with("/api/chat", &key("k1"), &chat)), pending);
    let other = json!({"message": "something else"});
    refused(
        &served.post_with("/api/chat", &key("k1"), &other),
        422,
        "idempotency_key_reused",
    );
    let path = route(&pending, "tool_result");
    let answer = json!({"call_id": pending["call_id"], "content": "one"});
    refused(
        &served.post_with(&path, &key("k1"), &answer),
        422,
        "idempotency_key_reused",
    );
    let last = accepted(&served.post_with(&path, &key("k2"), &answer));
    replied(&last, "done");
    assert_eq!(accepted(&served.post_with(&path, &key("k2"), &answer)), last);
    let changed = json!({"call_id": pending["call_id"], "content": "two"});
    refused(
        &served.post_with(&path, &key("k2"), &changed),
        422,
        "idempotency_key_reused",
    );
    // The message of long ago is still answered as it was, although the conversation has gone on.
    assert_eq!(accepted(&served.post_with("/api/chat", &key("k1"), &chat)), pending);
    let fresh = accepted(&served.post_with("/api/chat", &key("k3"), &chat));
    assert_ne!(fresh["conversation_id"], pending["conversation_id"]);
    model.assert_done();
}

/// SPEC 9.4: a key's request that comes again while it is worked on is the same request.
#[test]
fn an_idempotency_key_at_once() {
    let model = FakeServer::script([Reply::text("hello").stalls_first()]);
    let sandbox = place(&model);
    let served = Served::start(&sandbox);
    let body = json!({"message": "hi"});
    let answers: Vec<Value> = std::thread::scope(|scope| {
        let post = || accepted(&served.post_with("/api/chat", &[("Idempotency-Key", "k")], &body));
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(post)).collect();
        model.wait_for_requests(1);
        model.release();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:#?}");
    model.assert_done();
}
