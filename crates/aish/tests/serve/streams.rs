//! What can be watched while it happens, and read again afterwards (SPEC 9.1, 9.8).

use super::app::{Served, accepted, good, message, place, replied, route, waits_for};
use crate::support::fake_server::FakeServer;
use crate::support::http::{self, Event, Events};
use crate::support::ledger::{export, text};
use crate::support::reply::Reply;
use serde_json::{Value, json};

impl Served {
    /// Reads an event stream; a body makes it a POST.
    fn events(&self, path: &str, further: &[(&str, &str)], body: Option<&Value>) -> Events {
        let (host, token) = self.names();
        let headers = [&good(&host, &token), further].concat();
        let method = if body.is_some() { "POST" } else { "GET" };
        let body = body.map(Value::to_string).unwrap_or_default();
        Events::open(self.port, method, path, &headers, &body)
    }
}

/// The text of the deltas among these events.
fn streamed(events: &[Event]) -> String {
    let deltas = events
        .iter()
        .filter(|event| event.kind == "delta" && event.data["type"] == "text");
    deltas.map(|event| text(&event.data["text"])).collect()
}

/// The events among these that the ledger has: their numbers.
fn seqs(events: &[Event]) -> Vec<u64> {
    events.iter().filter_map(|event| event.id).collect()
}

/// SPEC 9.1: on request the reply comes while the model writes it, and the envelope ends the stream.
#[test]
fn a_streamed_reply() {
    let ways: [(Value, &[(&str, &str)]); 2] = [
        (json!({"message": "hi", "stream": true}), &[]),
        (json!({"message": "hi"}), &[("Accept", "text/event-stream")]),
    ];
    for (body, headers) in ways {
        let model = FakeServer::script([Reply::halting("hel", "lo")]);
        let sandbox = place(&model);
        let served = Served::start(&sandbox);
        let mut stream = served.events("/api/chat", headers, Some(&body));
        // It comes while the model is still in the middle.
        let first = stream.until("delta");
        assert_eq!(first.data["text"], "hel", "{first:?}");
        assert_eq!(first.id, None);
        model.release();
        let rest = stream.rest();
        assert_eq!(streamed(&rest), "lo");
        let last = rest.last().unwrap();
        assert_eq!(last.kind, "envelope", "{rest:?}");
        replied(&last.data, "hello");
        let told: Vec<&str> = rest
            .iter()
            .filter(|event| event.id.is_some())
            .map(|event| event.kind.as_str())
            .collect();
        assert!(told.contains(&"assistant") && told.contains(&"turn_ended"), "{told:?}");
    }
}

/// SPEC 9.1, 9.3: a streamed turn that waits ends its stream with the pending envelope; the answer may be streamed as well.
#[test]
fn a_streamed_chain() {
    let model = FakeServer::script([Reply::call("c1", "pick", json!({})), Reply::text("done")]);
    let sandbox = place(&model);
    let served = Served::start(&sandbox);
    let accept = [("Accept", "text/event-stream")];
    let pending = served
        .events("/api/chat", &accept, Some(&message("go", &["pick"])))
        .until("envelope")
        .data;
    waits_for(&pending, "pick");
    let answer = json!({"call_id": pending["call_id"], "content": "red"});
    let path = route(&pending, "tool_result");
    let rest = served.events(&path, &accept, Some(&answer)).rest();
    assert_eq!(streamed(&rest), "done");
    replied(&rest.last().unwrap().data, "done");
}

/// SPEC 9.8: the events of a session are those of the ledger, from any place on, and go on live.
#[test]
fn events_of_a_session() {
    let model = FakeServer::script([Reply::text("one"), Reply::halting("tw", "o")]);
    let sandbox = place(&model);
    let served = Served::start(&sandbox);
    let first = served.chat("first", &[]);
    let id = text(&first["conversation_id"]);
    let path = format!("/api/sessions/{id}/events");
    let ledger = export(&sandbox, id);
    let numbers: Vec<u64> = ledger.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    let mut all = served.events(&path, &[], None);
    let read: Vec<Event> = numbers.iter().map(|_| all.next().unwrap()).collect();
    assert_eq!(seqs(&read), numbers);
    let told: Vec<(&Value, &str)> = read
        .iter()
        .map(|event| (&event.data["content"], event.kind.as_str()))
        .collect();
    let kept: Vec<(&Value, &str)> = ledger
        .iter()
        .map(|event| (&event["content"], text(&event["kind"])))
        .collect();
    assert_eq!(told, kept);
    let middle = numbers[numbers.len() / 2];
    let mut later = served.events(&path, &[("Last-Event-ID", &middle.to_string())], None);
    assert_eq!(later.next().unwrap().id, Some(middle + 1));
    std::thread::scope(|scope| {
        let body = json!({"message": "second", "conversation_id": id});
        let turn = scope.spawn(move || (body.clone(), served.post("/api/chat", &body)));
        // Both watchers see the turn while it happens.
        assert_eq!(all.until("delta").data["text"], "tw");
        assert_eq!(later.until("delta").data["text"], "tw");
        model.release();
        let reply = all.until("assistant");
        assert_eq!(reply.data["content"], "two");
        assert!(reply.id > numbers.last().copied());
        replied(&all.until("envelope").data, "two");
        replied(&accepted(&turn.join().unwrap().1), "two");
    });
}

/// SPEC 9.8: a reader that reads nothing slows no turn and no other reader.
#[test]
fn a_reader_that_is_stuck() {
    let chunks = 20_000;
    let mut reply = Reply::stream();
    for _ in 0..chunks {
        reply = reply.says("a piece of text that is streamed to whoever reads; ");
    }
    let model = FakeServer::script([Reply::text("one"), reply.finish("stop").done()]);
    let sandbox = place(&model);
    let served = Served::start(&sandbox);
    let first = served.chat("first", &[]);
    let id = text(&first["conversation_id"]);
    let path = format!("/api/sessions/{id}/events");
    let stuck = served.events(&path, &[], None);
    let mut reads = served.events(&path, &[], None);
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || (reads.until("turn_ended"), reads.until("turn_ended")));
        let second = accepted(&served.post("/api/chat", &json!({"message": "second", "conversation_id": id})));
        assert_eq!(text(&second["reply"]).matches("a piece").count(), chunks);
        reader.join().unwrap();
    });
    drop(stuck);
}

/// SPEC 9.8: events of a session that there is not, and ids that are none.
#[test]
fn events_that_cannot_be() {
    let model = FakeServer::script([Reply::text("one")]);
    let sandbox = place(&model);
    let served = Served::start(&sandbox);
    assert_eq!(served.get("/api/sessions/br-1-1/events").status, 404);
    let first = served.chat("first", &[]);
    let path = format!("/api/sessions/{}/events", text(&first["conversation_id"]));
    let bad = served
        .ask("GET", &path, &[("Last-Event-ID", "the last one")], "")
        .unwrap();
    assert_eq!(bad.status, 422, "{bad:?}");
}

/// SPEC 9.8: figures for Prometheus, for whoever has the token.
#[test]
fn metrics() {
    let model = FakeServer::script([Reply::text("one")]);
    let sandbox = place(&model);
    let served = Served::start(&sandbox);
    served.chat("first", &[]);
    let metrics = served.get("/metrics");
    assert_eq!(metrics.status, 200, "{metrics:?}");
    assert!(metrics.body.contains("# TYPE "), "{metrics:?}");
    let host = format!("127.0.0.1:{}", served.port);
    let bare = http::ask(served.port, "GET", "/metrics", &[("Host", &host)], "").unwrap();
    assert_eq!(bare.status, 401, "{bare:?}");
}
