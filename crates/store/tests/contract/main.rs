//! The contract of [`Store`], asked of every store there is. What only a file can do is in `ledger.rs` and `processes.rs`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod appends;
mod holds;
mod leases;
mod lists;
#[cfg(feature = "postgres")]
#[path = "../support/postgres.rs"]
#[allow(dead_code, reason = "not everything a server can do is asked of it here")]
mod postgres;
mod served;
mod typed;
mod waits;
mod words;

use aish_core::event::{Draft, Event};
use aish_core::id::SessionId;
use aish_store::memory::MemoryStore;
use aish_store::sqlite::SqliteStore;
use aish_store::{Durability, Hold, Store, StoreError};
use std::any::Any;
use std::time::Duration;

/// How long anything may take that a test waits for.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks whether it has happened.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A new, empty store, and what must outlive it.
struct Fixture {
    name: &'static str,
    store: Box<dyn Store>,
    _beneath: Box<dyn Any>,
}

/// One of each.
fn fixtures() -> Vec<Fixture> {
    let directory = tempfile::tempdir().unwrap();
    vec![
        Fixture {
            name: "sqlite",
            store: Box::new(SqliteStore::new(directory.path().join("ledger.db"))),
            _beneath: Box::new(directory),
        },
        Fixture {
            name: "memory",
            store: Box::new(MemoryStore::new()),
            _beneath: Box::new(()),
        },
        #[cfg(feature = "postgres")]
        in_postgres(),
    ]
}

#[cfg(feature = "postgres")]
fn in_postgres() -> Fixture {
    let mut server = postgres::PostgresServer::start();
    let url = aish_store::postgres::PostgresUrl::parse(&server.database()).unwrap();
    Fixture {
        name: "postgres",
        store: Box::new(aish_store::postgres::PostgresStore::new(url).unwrap()),
        _beneath: Box::new(server),
    }
}

/// The `n`th session of a test.
fn session(n: u64) -> SessionId {
    SessionId::from_parts(1_700_000_000_000 + n, u128::from(n) * 0x9e37_79b9_7f4a_7c15)
}

fn says(text: &str) -> Draft {
    Draft::user(1, text)
}

/// Appends without a lease, at the time of its seq.
async fn append(
    store: &dyn Store,
    session: &SessionId,
    expected_seq: u64,
    drafts: Vec<Draft>,
) -> Result<Vec<Event>, StoreError> {
    store
        .append(
            session,
            expected_seq,
            drafts,
            expected_seq + 1,
            Durability::Committed,
            Hold::Nothing,
        )
        .await
        .map(|appended| appended.events)
}

async fn contents(store: &dyn Store, session: &SessionId) -> Vec<String> {
    let events = store.load(session, 0).await.unwrap();
    events.into_iter().map(|event| event.content).collect()
}
