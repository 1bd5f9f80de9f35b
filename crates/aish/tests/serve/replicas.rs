//! Several servers on one store (SPEC 9.4, 9.5): on this machine by its ledger, on several by PostgreSQL. Any of them answers for any
//! other, of racing answers one wins, and one that was thought dead changes nothing when it wakes.
//!
//! Each server of the PostgreSQL tests has a home of its own, as on another machine. `AISH_RACES` says how many calls are raced for.

#[path = "../../../store/tests/support/postgres.rs"]
#[allow(dead_code)]
mod postgres;

use super::app::{Served, TOKEN_VARIABLE, accepted, message, place, refused, replied, results};
use crate::support::fake_server::{FakeServer, Received};
use crate::support::http::Response;
use crate::support::ledger::{kinds, of_kind, text};
use crate::support::random::number;
use crate::support::reply::Reply;
use crate::support::sandbox::Sandbox;
use crate::support::{default_wait, poll_until};
use postgres::PostgresServer;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::sync::Barrier;

/// Clients that answer the same call at once.
const RACERS: usize = 8;

/// Calls that are raced for, unless `AISH_RACES` says otherwise.
const RACES: u64 = 30;

/// How often a request is sent that waits for a lease to end.
const TRIES_MAX: usize = 3;

/// Calls of one conversation.
const CALLS: usize = 10;

/// Calls the app so many times, and then says that it is done.
fn model() -> FakeServer {
    let respond = |request: &Received| match results(request).len() {
        CALLS => Reply::text("done"),
        n => Reply::call(&format!("c{n}"), "pick", json!({ "n": n })),
    };
    FakeServer::builder().otherwise(respond).start()
}

/// Servers on that database, each with a home of its own.
fn replicas(model: &FakeServer, url: &str, count: usize) -> Vec<(Served, Sandbox)> {
    let start = |_| {
        let sandbox = place(model);
        let served = Served::start_with(&sandbox, &["--token-env", TOKEN_VARIABLE, "--store", url]);
        (served, sandbox)
    };
    (0..count).map(start).collect()
}

/// The events of a session as a server shows them.
fn events(served: &Served, id: &Value) -> Vec<Value> {
    let page = accepted(&served.get(&format!("/api/sessions/{}?limit=1000", text(id))));
    assert_eq!(page["more"], false);
    page["events"].as_array().unwrap().clone()
}

/// Races for every call of conversations until enough calls were raced for.
fn race(servers: &[&Served]) {
    let races = usize::try_from(number("AISH_RACES").unwrap_or(RACES)).unwrap();
    for _ in 0..races.div_ceil(CALLS) {
        let mut pending = servers[0].chat("go", &["pick"]);
        let mut won = Vec::new();
        for number in 0..CALLS {
            let (envelope, content) = race_once(servers, &pending, number);
            won.push(content);
            pending = envelope;
        }
        replied(&pending, "done");
        let happened = events(servers[0], &pending["conversation_id"]);
        assert_eq!(of_kind(&happened, "resumed").len(), CALLS, "{}", kinds(&happened));
        let given = of_kind(&happened, "tool_result");
        let given: Vec<&str> = given.iter().map(|result| text(&result["data"]["output"])).collect();
        assert_eq!(given, won);
    }
}

/// All clients answer the call, each with something else; gives what the one that won was told, and its answer.
fn race_once(servers: &[&Served], pending: &Value, number: usize) -> (Value, String) {
    let start = Barrier::new(RACERS);
    let run = |racer: usize| {
        let content = format!("call {number}, client {racer}");
        start.wait();
        (servers[racer % servers.len()].answer(pending, &content), content)
    };
    let outcomes: Vec<(Response, String)> = std::thread::scope(|scope| {
        let run = &run;
        let threads: Vec<_> = (0..RACERS).map(|racer| scope.spawn(move || run(racer))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let (winners, losers): (Vec<_>, Vec<_>) = outcomes.iter().partition(|(response, _)| response.status == 200);
    assert_eq!(winners.len(), 1, "{outcomes:#?}");
    for (response, _) in losers {
        refused(response, 409, "already_answered");
    }
    (accepted(&winners[0].0), winners[0].1.clone())
}

/// SPEC 9.4: four servers on one ledger.
#[test]
fn races_on_one_machine() {
    let model = model();
    let sandbox = place(&model);
    let servers: Vec<Served> = (0..4).map(|_| Served::start(&sandbox)).collect();
    race(&servers.iter().collect::<Vec<_>>());
}

/// SPEC 9.4, 9.5: two and four servers on a database.
#[test]
fn races_of_replicas() {
    let mut database = PostgresServer::start();
    for count in [2, 4] {
        let model = model();
        let servers = replicas(&model, &database.database(), count);
        race(&servers.iter().map(|(served, _)| served).collect::<Vec<_>>());
    }
}

/// SPEC 9.4, 9.5: what one replica began any other goes on with; repeats are known everywhere.
#[test]
fn any_replica() {
    let mut database = PostgresServer::start();
    let model = model();
    let servers = replicas(&model, &database.database_by_port(), 3);
    let of = |n: usize| &servers[n % servers.len()].0;
    let key = [("Idempotency-Key", "one-key")];
    let body = message("go", &["pick"]);
    let first = accepted(&of(0).post_with("/api/chat", &key, &body));
    assert_eq!(accepted(&of(1).post_with("/api/chat", &key, &body)), first);
    refused(
        &of(2).post_with("/api/chat", &key, &message("else", &[])),
        422,
        "idempotency_key_reused",
    );
    let mut pending = first.clone();
    for n in 0..CALLS {
        let next = accepted(&of(n).answer(&pending, &n.to_string()));
        assert_eq!(accepted(&of(n + 1).answer(&pending, &n.to_string())), next);
        pending = next;
    }
    replied(&pending, "done");
    for (served, _) in &servers {
        let listed = accepted(&served.get("/api/sessions"));
        assert_eq!(listed["sessions"][0]["id"], first["conversation_id"], "{listed}");
    }
}

/// A model that never answers the first request, and says that it is done to all others.
fn model_that_hangs_once() -> FakeServer {
    FakeServer::builder()
        .reply(Reply::halting("what nobody", " waits for"))
        .otherwise(|_| Reply::text("done"))
        .start()
}

/// Waits until the only session is over, as that server sees it, and gives its events.
fn over(served: &Served) -> Vec<Value> {
    let id = accepted(&served.get("/api/sessions"))["sessions"][0]["id"].clone();
    poll_until("the turn is over", default_wait(), || {
        let happened = events(served, &id);
        (happened.last()?["kind"] == "turn_ended").then_some(happened)
    })
}

/// SPEC 2.12, 9.5: a replica that dies in the middle of a turn is taken over by another, whose client gets the reply.
#[test]
fn a_dead_replica() {
    let mut database = PostgresServer::start();
    let model = model_that_hangs_once();
    let mut servers = replicas(&model, &database.database(), 2);
    let (lives, dies) = (servers.remove(1), servers.remove(0));
    let key = [("Idempotency-Key", "k")];
    let body = message("go", &[]);
    let cut = dies.0.begin("/api/chat", &key, &body).unwrap();
    model.wait_for_requests(1);
    dies.0.kill_9();
    drop(cut);
    replied(&accepted(&lives.0.post_with("/api/chat", &key, &body)), "done");
    assert_eq!(of_kind(&over(&lives.0), "assistant").len(), 1);
}

/// SPEC 2.12, 9.5: a replica that stands still for longer than its lease is taken over; when it wakes it writes nothing more.
#[test]
fn a_replica_that_wakes() {
    let mut database = PostgresServer::start();
    let model = model_that_hangs_once();
    let mut servers = replicas(&model, &database.database(), 2);
    let (lives, sleeps) = (servers.remove(1), servers.remove(0));
    let key = [("Idempotency-Key", "k")];
    let body = message("go", &["pick"]);
    let asked = sleeps.0.begin("/api/chat", &key, &body).unwrap();
    model.wait_for_requests(1);
    sleeps.0.running().signal(Signal::STOP);
    // The lease is longer than a test waits for one answer: the request is sent again, as a client would.
    let sent = (0..TRIES_MAX).find_map(|_| lives.0.ask("POST", "/api/chat", &key, &body.to_string()).ok());
    replied(&accepted(&sent.expect("an answer")), "done");
    let before = over(&lives.0);
    sleeps.0.running().signal(Signal::CONT);
    model.release();
    // Whoever asked it is told what the other one came to.
    let mut asked = asked;
    replied(
        &accepted(&crate::support::http::read_response(&mut asked).unwrap()),
        "done",
    );
    let after = over(&sleeps.0);
    assert_eq!(kinds(&after), kinds(&before));
    assert!(!after.iter().any(|event| event.to_string().contains("what nobody")));
}
