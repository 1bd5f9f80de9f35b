//! Answers that race (SPEC 9.4): several clients answer the same call at once, on several servers, each with something else. One answer
//! counts, and the others are told.
//!
//! `AISH_RACES` says how many calls are raced for.

use super::app::{Served, accepted, place, refused, replied};
use super::postgres::PostgresServer;
use super::replicas::{CALLS, events, model, replicas};
use crate::support::http::Response;
use crate::support::ledger::{kinds, of_kind, text};
use crate::support::random::number;
use serde_json::Value;
use std::sync::Barrier;

/// Clients that answer the same call at once.
const RACERS: usize = 8;

/// Calls that are raced for, unless `AISH_RACES` says otherwise.
const RACES: u64 = 30;

/// Races for every call of conversations until enough calls were raced for.
fn race(servers: &[&Served]) {
    let races = usize::try_from(number("AISH_RACES").unwrap_or(RACES)).unwrap();
    let mut applied = 0;
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
        applied += given.len();
    }
    eprintln!(
        "{applied} answers of {} applied, on {} servers",
        applied * RACERS,
        servers.len()
    );
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
