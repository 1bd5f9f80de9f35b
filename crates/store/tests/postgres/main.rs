//! The ledger in PostgreSQL when things go wrong: a server that crashes, connections that are cut at the worst moment, drivers
//! that were stopped and come back. What holds for every store is in `contract`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod crashes;
mod cuts;
mod databases;
mod encryption;
mod fences;
mod handed;
mod news;
mod races;
#[path = "../support/postgres.rs"]
mod server;

use aish_core::event::{Body, Draft};
use aish_core::id::{ContinuationId, SessionId};
use aish_store::postgres::{PostgresStore, PostgresUrl};
use aish_store::{Durability, Hold, Store, StoreError};
use serde_json::json;
use server::{LOOK_EVERY, PATIENCE};

fn store(url: &str) -> PostgresStore {
    PostgresStore::new(PostgresUrl::parse(url).unwrap()).unwrap()
}

/// The `n`th session of a test.
fn session(n: u64) -> SessionId {
    SessionId::from_parts(1_700_000_000_000 + n, u128::from(n))
}

fn says(text: &str) -> Draft {
    Draft::user(1, text)
}

/// An event as the ledger has it.
fn draft(kind: &str, data: &serde_json::Value) -> Draft {
    Draft::new(1, kind, Body::decode(kind, &data.to_string()).unwrap())
}

fn suspended(continuation: &ContinuationId) -> Draft {
    draft(
        "suspended",
        &json!({"continuation": continuation, "call_id": "call_1_1"}),
    )
}

fn resumed(continuation: &ContinuationId) -> Draft {
    draft("resumed", &json!({"continuation": continuation}))
}

async fn append(store: &dyn Store, session: &SessionId, seq: u64, drafts: Vec<Draft>) -> Result<u64, StoreError> {
    let appended = store
        .append(session, seq, drafts, 1, Durability::Committed, Hold::Nothing)
        .await?;
    Ok(appended.events.last().map_or(seq, |event| event.seq))
}

async fn contents(store: &dyn Store, session: &SessionId) -> Vec<String> {
    let events = store.load(session, 0).await.unwrap();
    assert!(events.iter().map(|event| event.seq).eq(1..=events.len() as u64));
    events.into_iter().map(|event| event.content).collect()
}
