//! Several replicas that want the same.

use super::server::PostgresServer;
use super::{append, contents, resumed, says, session, store, suspended};
use aish_core::id::ContinuationId;
use aish_store::postgres::PostgresStore;
use aish_store::{PendingState, Store as _, StoreError};
use std::sync::Arc;

const REPLICAS: usize = 4;
const ANSWERS: usize = 8;
/// How many are raced for; another number by this variable.
const CONTINUATIONS: u64 = 40;
const CONTINUATIONS_VARIABLE: &str = "AISH_RACES";

fn continuations() -> u64 {
    std::env::var(CONTINUATIONS_VARIABLE).map_or(CONTINUATIONS, |count| count.parse().unwrap())
}

/// SPEC 9.4: of answers that race on several replicas exactly one is appended, for each suspension.
#[tokio::test]
async fn one_answer_wins() {
    let mut server = PostgresServer::start();
    let url = server.database();
    let replicas: Vec<Arc<PostgresStore>> = (0..REPLICAS).map(|_| Arc::new(store(&url))).collect();
    for n in 0..continuations() {
        let id = ContinuationId::new(format!("br-{n}"));
        let begun = vec![super::draft("turn_started", &serde_json::json!({})), suspended(&id)];
        append(replicas[0].as_ref(), &session(n), 0, begun).await.unwrap();
        let answers = (0..ANSWERS).map(|answer| {
            let (replica, id) = (Arc::clone(&replicas[answer % REPLICAS]), id.clone());
            tokio::spawn(async move {
                let mut seen = 2;
                // Whoever was late by an event that is no answer looks again; here, every event is one.
                loop {
                    let drafts = vec![resumed(&id), says(&format!("answer {answer}"))];
                    match append(replica.as_ref(), &session(n), seen, drafts).await {
                        Err(StoreError::Conflict { actual, .. }) => seen = actual,
                        result => return result,
                    }
                }
            })
        });
        let mut won = Vec::new();
        for (answer, task) in answers.collect::<Vec<_>>().into_iter().enumerate() {
            match task.await.unwrap() {
                Ok(_) => won.push(answer),
                Err(StoreError::Claimed(claimed)) => assert_eq!(claimed, id),
                Err(error) => panic!("{error}"),
            }
        }
        let [winner] = won[..] else {
            panic!("{} answers won", won.len());
        };
        let found = contents(replicas[1].as_ref(), &session(n)).await;
        assert_eq!(found.last(), Some(&format!("answer {winner}")));
        assert_eq!(found.len(), 4);
        let pending = replicas[2].continuation(&id).await.unwrap().unwrap();
        assert_eq!(pending.state, PendingState::Answered);
    }
}

/// SPEC 9.4: of requests that race under one key on several replicas exactly one is kept.
#[tokio::test]
async fn one_request_takes_the_key() {
    let mut server = PostgresServer::start();
    let url = server.database();
    let replicas: Vec<Arc<PostgresStore>> = (0..REPLICAS).map(|_| Arc::new(store(&url))).collect();
    for round in 0..continuations() {
        let requests = (0..ANSWERS as u64).map(|n| {
            let replica = Arc::clone(&replicas[n as usize % REPLICAS]);
            tokio::spawn(async move {
                let served = serde_json::json!({"served": {"request": {"key": format!("key {round}"), "digest": "d"}}});
                let drafts = vec![super::draft("turn_started", &served)];
                append(replica.as_ref(), &session(round * 100 + n), 0, drafts).await
            })
        });
        let mut kept = Vec::new();
        for (n, task) in (0u64..).zip(requests.collect::<Vec<_>>()) {
            match task.await.unwrap() {
                Ok(_) => kept.push(session(round * 100 + n)),
                Err(StoreError::KeyUsed(key)) => assert_eq!(key, format!("key {round}")),
                Err(error) => panic!("{error}"),
            }
        }
        let known = replicas[0].request(&format!("key {round}")).await.unwrap().unwrap();
        assert_eq!(kept, [known.session]);
    }
}
