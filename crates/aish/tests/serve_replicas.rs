//! Several servers, each with a home of its own, that share a database (SPEC 9.5): as good as one.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "serve/app.rs"]
#[allow(dead_code, reason = "not everything an app does is done here")]
mod app;
#[path = "../../store/tests/support/postgres.rs"]
#[allow(dead_code, reason = "not everything a database can do is asked of it here")]
mod postgres;
mod support;

use app::{Served, accepted, place, replied, results, route, waits_for};
use postgres::PostgresServer;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::thread;
use support::fake_server::FakeServer;
use support::ledger::text;
use support::reply::Reply;
use support::sandbox::Sandbox;
use support::{default_wait, poll_until};

/// Suspensions that are raced for, the answers to each, and the replicas they go to; other numbers by these variables.
const RACES: usize = 12;
const RACES_VARIABLE: &str = "AISH_TEST_SERVE_RACES";
const ANSWERS: usize = 8;
const REPLICAS: usize = 2;
const REPLICAS_VARIABLE: &str = "AISH_TEST_SERVE_REPLICAS";

/// How often the database crashes while answers go on.
const CRASHES: usize = 5;

fn number(variable: &str, default: usize) -> usize {
    std::env::var(variable).map_or(default, |count| count.parse().unwrap())
}

fn start(sandbox: &Sandbox, database: &str) -> Served {
    Served::start_with(sandbox, &["--token-env", "SERVE_TEST_TOKEN", "--store", database])
}

/// A model that calls `pick` until it has had this many results, then says the last.
fn picks(rounds: usize) -> FakeServer {
    FakeServer::builder()
        .otherwise(move |request| {
            let results = results(request);
            match results.last() {
                Some(last) if results.len() >= rounds => Reply::text(&format!("got {last}")),
                _ => Reply::call("c1", "pick", json!({"of": results.len()})),
            }
        })
        .start()
}

/// SPEC 9.5: any replica goes on with what another began, also after that one was killed, and all of them say the same.
#[test]
fn any_replica_goes_on() {
    let mut database = PostgresServer::start();
    let url = database.database_by_port();
    let model = picks(3);
    let homes = [place(&model), place(&model)];
    let (one, other) = (start(&homes[0], &url), start(&homes[1], &url));
    let first = one.chat("go", &["pick"]);
    waits_for(&first, "pick");
    let second = accepted(&other.answer(&first, "1"));
    assert_eq!(accepted(&one.answer(&first, "1")), second);
    one.kill_9();
    let third = accepted(&other.answer(&second, "2"));
    let one = start(&homes[0], &url);
    let last = accepted(&one.answer(&third, "3"));
    replied(&last, "got 3");
    assert_eq!(accepted(&other.answer(&third, "3")), last);
    for served in [&one, &other] {
        let sessions = accepted(&served.get("/api/sessions"));
        assert_eq!(sessions["sessions"][0]["id"], first["conversation_id"]);
        assert!(!served.said().contains("pass"), "{}", served.said());
    }
}

/// SPEC 9.4, 9.5: of answers that race on several replicas exactly one is applied, and the others are told.
#[test]
fn one_answer_is_applied() {
    let mut database = PostgresServer::start();
    let url = database.database();
    let model = picks(1);
    let homes: Vec<Sandbox> = (0..number(REPLICAS_VARIABLE, REPLICAS))
        .map(|_| place(&model))
        .collect();
    let replicas: Vec<Served> = homes.iter().map(|home| start(home, &url)).collect();
    for _ in 0..number(RACES_VARIABLE, RACES) {
        let pending = replicas[0].chat("go", &["pick"]);
        let answers: Vec<Value> = thread::scope(|scope| {
            let race = |n: usize| {
                let (replica, pending) = (&replicas[n % replicas.len()], &pending);
                scope.spawn(move || replica.answer(pending, &format!("answer {n}")))
            };
            let racing: Vec<_> = (0..ANSWERS).map(race).collect();
            let answered = racing.into_iter().map(|racing| racing.join().unwrap());
            answered
                .filter(|response| {
                    assert!(matches!(response.status, 200 | 409), "{response:?}");
                    response.status == 200
                })
                .map(|response| response.json())
                .collect()
        });
        let [applied] = &answers[..] else {
            panic!("{} answers were applied", answers.len());
        };
        let session = accepted(&replicas[1].get(&format!("/api/sessions/{}", text(&pending["conversation_id"]))));
        let events = session["events"].as_array().unwrap();
        let kept: Vec<&Value> = events.iter().filter(|event| event["kind"] == "tool_result").collect();
        assert_eq!(kept.len(), 1, "{session}");
        replied(applied, &format!("got {}", text(&kept[0]["data"]["output"])));
    }
}

/// SPEC 9.5, 12: a turn whose server was killed is taken over by another replica, without being asked.
#[test]
fn taken_over_by_a_replica() {
    let mut database = PostgresServer::start();
    let url = database.database();
    let model = FakeServer::builder()
        .reply(Reply::hangs())
        .otherwise(|_| Reply::text("done"))
        .start();
    let homes = [place(&model), place(&model)];
    let (dies, lives) = (start(&homes[0], &url), start(&homes[1], &url));
    thread::scope(|scope| {
        let cut = scope.spawn(|| dies.ask("POST", "/api/chat", &[], &json!({"message": "go"}).to_string()));
        model.wait_for_requests(1);
        dies.running().signal(Signal::KILL);
        assert!(cut.join().unwrap().is_err(), "a killed server answered");
    });
    model.wait_for_requests(2);
    let id = accepted(&lives.get("/api/sessions"))["sessions"][0]["id"].clone();
    let path = format!("/api/sessions/{}", text(&id));
    poll_until("the turn is over", default_wait(), || {
        (accepted(&lives.get(&path))["state"] == "idle").then_some(())
    });
}

/// SPEC 9.4, 9.5, 12: the database crashes while answers go on: each is applied once, and none that was acknowledged is lost.
#[test]
fn the_database_crashes() {
    let mut database = PostgresServer::start();
    let url = database.database_by_port();
    let rounds = CRASHES * 4;
    let model = picks(rounds);
    let home = place(&model);
    let served = start(&home, &url);
    let mut pending = served.chat("go", &["pick"]);
    for n in 1..=rounds {
        let answer = json!({"call_id": pending["call_id"], "content": n.to_string()}).to_string();
        let path = route(&pending, "tool_result");
        pending = thread::scope(|scope| {
            let answering = scope.spawn(|| {
                poll_until("the answer is taken", default_wait(), || {
                    // An app sends the same again as long as the server could not say.
                    let response = served.ask("POST", &path, &[], &answer).unwrap();
                    assert!(matches!(response.status, 200 | 500 | 503), "{response:?}");
                    (response.status == 200).then(|| response.json())
                })
            });
            if n % 4 == 0 {
                database.restart_immediately();
            }
            answering.join().unwrap()
        });
    }
    replied(&pending, &format!("got {rounds}"));
    let expect: Vec<String> = (1..=rounds).map(|n| n.to_string()).collect();
    assert_eq!(results(model.requests().last().unwrap()), expect);
}
