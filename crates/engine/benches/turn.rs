//! What the engine itself costs: a round of one call over both stores (the model and the tool take no time of their own), fifty
//! rounds of one turn, and opening a session of 100,000 events (SPEC 11).
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "../tests/support/mod.rs"]
mod support;

use aish_core::event::Draft;
use aish_core::id::SessionId;
use aish_engine::Driver;
use aish_provider::scripted::Act;
use aish_store::memory::MemoryStore;
use aish_store::sqlite::SqliteStore;
use aish_store::{Durability, Hold, Store};
use aish_tools::Tool;
use divan::Bencher;
use divan::counter::ItemsCount;
use std::sync::Arc;
use support::World;
use support::probe::{Doing, Probe};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// The size that SPEC 11 gives a figure for.
const EVENTS: u64 = 100_000;
/// The events of one turn of one round: begun, asked, replied, called, gated, started, answered, replied, ended.
const EVENTS_OF_TURN: u64 = 9;
/// Events that are written at once while the long session is made.
const BATCH_EVENTS: usize = 9_000;
/// Rounds of a turn that do not reach the default limit.
const ROUNDS: [usize; 2] = [1, 49];

fn main() {
    divan::main();
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

#[derive(Clone, Copy, Debug)]
enum Ledger {
    Memory,
    File,
}

impl Ledger {
    fn store(self, folder: &TempDir) -> Arc<dyn Store> {
        match self {
            Self::Memory => Arc::new(MemoryStore::new()),
            Self::File => Arc::new(SqliteStore::new(folder.path().join("ledger.db"))),
        }
    }
}

fn probe() -> Arc<dyn Tool> {
    Probe::reader("probe", Doing::Answer("ran".to_owned()))
}

/// A turn of so many rounds, the last reply and the end of the turn included.
fn turn(bencher: Bencher<'_, '_>, ledger: Ledger, rounds: usize) {
    let runtime = runtime();
    let folder = tempfile::tempdir().unwrap();
    let store = ledger.store(&folder);
    bencher
        .counter(ItemsCount::new(rounds))
        .with_inputs(|| {
            let mut acts = vec![Act::calls(&[("probe", r#"{"n":1}"#)]); rounds];
            acts.push(Act::text("done"));
            World::over(Arc::clone(&store), acts, vec![probe()])
        })
        .bench_values(|world| {
            runtime.block_on(async {
                let mut driver = world.driver();
                support::finish(&mut driver, "go").await
            })
        });
}

#[divan::bench(args = ROUNDS)]
fn turn_in_memory(bencher: Bencher<'_, '_>, rounds: usize) {
    turn(bencher, Ledger::Memory, rounds);
}

#[divan::bench(args = ROUNDS)]
fn turn_in_a_file(bencher: Bencher<'_, '_>, rounds: usize) {
    turn(bencher, Ledger::File, rounds);
}

/// A session of so many turns of one round each, as the engine itself writes them.
async fn long_session(store: &Arc<dyn Store>) -> SessionId {
    let one = World::with(
        [Act::calls(&[("probe", r#"{"n":1}"#)]), Act::text("done")],
        vec![probe()],
    );
    let mut driver = one.driver();
    support::finish(&mut driver, "go").await;
    let id = driver.session().id().clone();
    let mut drafts = Vec::new();
    let mut seq = 0;
    for turn in 1..=EVENTS / EVENTS_OF_TURN {
        drafts.extend(driver.session().events().iter().map(|event| {
            let data = event.body.data_json();
            let data = data
                .replace("call_1_", &format!("call_{turn}_"))
                .replace("reply_1_", &format!("reply_{turn}_"))
                .replace(r#""context_seq":"#, r#""context_seq":0,"was":"#);
            let body = aish_core::Body::decode(event.body.kind(), &data).unwrap();
            Draft::new(turn, event.content.clone(), body)
        }));
        if drafts.len() >= BATCH_EVENTS {
            let batch = std::mem::take(&mut drafts);
            seq = append(store, &id, seq, batch).await;
        }
    }
    append(store, &id, seq, drafts).await;
    id
}

async fn append(store: &Arc<dyn Store>, id: &SessionId, seq: u64, drafts: Vec<Draft>) -> u64 {
    let appended = seq + u64::try_from(drafts.len()).unwrap();
    store
        .append(id, seq, drafts, 1, Durability::Committed, Hold::Nothing)
        .await
        .unwrap();
    appended
}

#[divan::bench(args = [Ledger::Memory, Ledger::File])]
fn open_a_long_session(bencher: Bencher<'_, '_>, ledger: Ledger) {
    let runtime = runtime();
    let folder = tempfile::tempdir().unwrap();
    let store = ledger.store(&folder);
    let id = runtime.block_on(long_session(&store));
    let world = World::over(store, Vec::new(), vec![probe()]);
    bencher.counter(ItemsCount::new(EVENTS)).bench_local(|| {
        let engine = Arc::clone(&world.engine);
        let driver = runtime.block_on(Driver::open(engine, id.clone())).unwrap();
        assert_eq!(driver.session().passed_over(), 0);
        driver.session().last_seq()
    });
}

/// What is done with a long session once it is open: the next turn, over all its events. The scripted model keeps a copy of
/// the request, which is part of the figure.
#[divan::bench(sample_count = 20)]
fn a_turn_at_the_end_of_a_long_session(bencher: Bencher<'_, '_>) {
    let runtime = runtime();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let id = runtime.block_on(long_session(&store));
    bencher
        .with_inputs(|| {
            let world = World::over(Arc::clone(&store), [Act::text("done")], vec![probe()]);
            let opening = Driver::open(Arc::clone(&world.engine), id.clone());
            let driver = runtime.block_on(opening).unwrap();
            (world, driver)
        })
        .bench_refs(|(_, driver)| runtime.block_on(support::finish(driver, "go")));
}
