//! What the ledger costs: opening, resuming a long session, appending (SPEC 11).
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use aish_core::event::{Body, Command, Draft};
use aish_core::id::SessionId;
use aish_store::sqlite::SqliteStore;
use aish_store::{Durability, Hold, SessionFilter, Store};
use divan::Bencher;
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// The size that SPEC 11 gives a figure for.
const EVENTS: u64 = 100_000;
const BATCH_EVENTS: u64 = 1_000;
/// What was typed of them.
const LINES: u64 = 10_000;

fn main() {
    divan::main();
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().build().unwrap()
}

fn session() -> SessionId {
    SessionId::from_parts(1_700_000_000_000, 7)
}

/// A round of a turn as most are: a reply, its call, the gate, the start, the result, the tokens.
fn round() -> Vec<Draft> {
    let output = "src/main.rs: a line of code that was found\\n".repeat(8);
    [
        ("assistant", r#"{"reply_id":"reply_1_1","parts":[{"type":"text","text":"I will look at it."}],"model":"m","attempt":1,"stop":"tool_calls","context_seq":9}"#.to_owned()),
        ("tool_call", r#"{"id":"call_1_1","type":"function","function":{"name":"grep","arguments":"{\"pattern\":\"x\"}"},"reply_id":"reply_1_1"}"#.to_owned()),
        ("call_gated", format!(r#"{{"call_id":"call_1_1","verdict":"allow","rule":"read-only","digest":"{}","source":"builtin","read_only":true}}"#, "a".repeat(64))),
        ("call_started", format!(r#"{{"call_id":"call_1_1","digest":"{}"}}"#, "a".repeat(64))),
        ("tool_result", format!(r#"{{"tool_call_id":"call_1_1","name":"grep","output":"{output}","success":true}}"#)),
        ("usage", r#"{"input_tokens":4000,"output_tokens":30,"cached_tokens":3900}"#.to_owned()),
    ]
    .into_iter()
    .map(|(kind, data)| Draft::new(1, "a readable line about it", Body::decode(kind, &data).unwrap()))
    .collect()
}

fn ledger(events: u64) -> (TempDir, std::path::PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ledger.db");
    let store = SqliteStore::new(&path);
    let drafts = round();
    let mut seq = 0;
    while seq < events {
        let count = BATCH_EVENTS.min(events - seq);
        let batch = drafts
            .iter()
            .cycle()
            .take(usize::try_from(count).unwrap())
            .cloned()
            .collect();
        runtime()
            .block_on(store.append(&session(), seq, batch, seq, Durability::Committed, Hold::Nothing))
            .unwrap();
        seq += count;
    }
    drop(store);
    (directory, path)
}

/// From nothing to the first answer, and the file closed again.
#[divan::bench]
fn open_and_list(bencher: Bencher<'_, '_>) {
    let (_directory, path) = ledger(6);
    let runtime = runtime();
    bencher.bench_local(|| {
        let store = SqliteStore::new(&path);
        runtime.block_on(store.list(SessionFilter::default())).unwrap()
    });
}

#[divan::bench(sample_count = 20, sample_size = 1)]
fn load_100_000_events(bencher: Bencher<'_, '_>) {
    let (_directory, path) = ledger(EVENTS);
    let runtime = runtime();
    bencher
        .with_inputs(|| SqliteStore::new(&path))
        .bench_local_values(|store| {
            let events = runtime.block_on(store.load(&session(), 0)).unwrap();
            assert_eq!(events.len() as u64, EVENTS);
            (store, events)
        });
}

/// Ten thousand lines, typed among 100,000 events.
#[divan::bench(sample_count = 20, sample_size = 1)]
fn look_back_at_10_000_lines(bencher: Bencher<'_, '_>) {
    let (_directory, path) = ledger(EVENTS - LINES);
    let store = SqliteStore::new(&path);
    let runtime = runtime();
    let lines: Vec<Draft> = (0..LINES).map(typed).collect();
    runtime
        .block_on(store.append(
            &session(),
            EVENTS - LINES,
            lines,
            9,
            Durability::Committed,
            Hold::Nothing,
        ))
        .unwrap();
    drop(store);
    bencher
        .with_inputs(|| SqliteStore::new(&path))
        .bench_local_values(|store| {
            let lines = runtime.block_on(store.typed(10_000, "")).unwrap();
            assert_eq!(lines.len() as u64, LINES);
            (store, lines)
        });
}

/// Every other one a command, with an output.
fn typed(n: u64) -> Draft {
    if n.is_multiple_of(2) {
        return Draft::user(1, format!("what does line {n} of the log say, and why?"));
    }
    let command = Command {
        line: format!("grep -rn pattern-{n} src"),
        directory: "/srv/app".to_owned(),
        output: "src/main.rs: a line of code that was found\n".repeat(50),
        ..Command::default()
    };
    Draft::new(0, format!("{} (exit 0)", command.line), Body::Command(command))
}

#[divan::bench(args = [Durability::Committed, Durability::Synced])]
fn append_one(bencher: Bencher<'_, '_>, durability: Durability) {
    let (_directory, path) = ledger(6);
    let store = SqliteStore::new(path);
    let runtime = runtime();
    let mut seq = 6;
    bencher.bench_local(|| {
        let drafts = vec![Draft::user(1, "a question")];
        runtime
            .block_on(store.append(&session(), seq, drafts, 9, durability, Hold::Nothing))
            .unwrap();
        seq += 1;
    });
}
