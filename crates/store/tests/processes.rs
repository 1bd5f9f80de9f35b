//! The ledger under many processes, and under processes that are killed. The writers are this test binary, run again with
//! [`LEDGER_VARIABLE`] set.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use aish_core::event::Draft;
use aish_core::id::SessionId;
use aish_store::sqlite::SqliteStore;
use aish_store::{Durability, Hold, Owner, Store, StoreError};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

/// Where a writer finds the ledger; its presence makes a test run a writer.
const LEDGER_VARIABLE: &str = "AISH_TEST_WRITER_LEDGER";
/// How many events a writer appends before it ends; without it, it goes on until it is killed.
const COUNT_VARIABLE: &str = "AISH_TEST_WRITER_COUNT";

const WRITERS: usize = 4;
const APPENDS_EACH: usize = 250;
const KILLS: u64 = 100;
/// A writer is killed after at most this many of its appends.
const ACKNOWLEDGED_BEFORE_KILL_MAX: u64 = 12;

fn session() -> SessionId {
    SessionId::from_parts(1_700_000_000_000, 42)
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().unwrap()
}

/// Not a test of its own: what the other tests run as a process. It appends to the one session of the ledger, looks again on
/// a conflict, and prints each event once its append returned.
#[test]
fn writer_process() {
    let Some(path) = std::env::var_os(LEDGER_VARIABLE) else {
        return;
    };
    let count = std::env::var(COUNT_VARIABLE).map_or(usize::MAX, |count| count.parse().unwrap());
    let store = SqliteStore::new(path);
    runtime().block_on(async {
        let session = session();
        let owner = Owner::this_process().0;
        let mut seen = 0;
        let mut written = 0;
        while written < count {
            let text = format!("{owner}#{written}");
            let durability = if written % 8 == 0 {
                Durability::Synced
            } else {
                Durability::Committed
            };
            match store
                .append(
                    &session,
                    seen,
                    vec![Draft::user(0, text.clone())],
                    0,
                    durability,
                    Hold::Nothing,
                )
                .await
            {
                Ok(appended) => {
                    seen = appended.events[0].seq;
                    written += 1;
                    let mut out = std::io::stdout().lock();
                    writeln!(out, "ack {seen} {text}").unwrap();
                    out.flush().unwrap();
                }
                Err(StoreError::Conflict { actual, .. }) => seen = actual,
                Err(error) => panic!("{error}"),
            }
        }
    });
}

/// A running writer and the lines it prints.
struct Writer {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Writer {
    fn start(ledger: &Path, count: Option<usize>) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["writer_process", "--exact", "--nocapture"])
            .env(LEDGER_VARIABLE, ledger);
        if let Some(count) = count {
            command.env(COUNT_VARIABLE, count.to_string());
        }
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, lines }
    }

    /// The next event it says it has appended; none when it says no more.
    fn acknowledged(&mut self) -> Option<(u64, String)> {
        loop {
            let line = self.lines.next()?.unwrap();
            // A killed writer may leave half a line: that one was not acknowledged.
            let mut words = line.split_whitespace();
            // The harness may have left "test writer_process ... " before it on the same line.
            if words.by_ref().any(|word| word == "ack")
                && let (Some(seq), Some(text)) = (words.next(), words.next())
                && let Ok(seq) = seq.parse()
                && text.contains('#')
            {
                return Some((seq, text.to_owned()));
            }
        }
    }
}

fn contents(ledger: &Path) -> Vec<(u64, String)> {
    let store = SqliteStore::new(ledger);
    let events = runtime().block_on(store.load(&session(), 0)).unwrap();
    events.into_iter().map(|event| (event.seq, event.content)).collect()
}

/// SPEC 2.10, 2.11: several processes write one session at once: no append is lost, none is doubled, no seq is missing,
/// and "busy" reaches nobody.
#[test]
fn processes_share_a_session() {
    let directory = tempfile::tempdir().unwrap();
    let ledger = directory.path().join("new/ledger.db");
    let mut writers: Vec<Writer> = (0..WRITERS)
        .map(|_| Writer::start(&ledger, Some(APPENDS_EACH)))
        .collect();
    let mut acknowledged = BTreeMap::new();
    for writer in &mut writers {
        while let Some((seq, text)) = writer.acknowledged() {
            assert_eq!(acknowledged.insert(seq, text), None, "event {seq} was given twice");
        }
        assert!(writer.process.wait().unwrap().success());
    }
    assert_eq!(acknowledged.len(), WRITERS * APPENDS_EACH);
    assert!(acknowledged.keys().copied().eq(1..=(WRITERS * APPENDS_EACH) as u64));
    assert!(contents(&ledger).into_iter().eq(acknowledged));
}

/// SPEC 2.5, 12: whatever a writer was doing when it was killed, every event it had acknowledged is there, in its place,
/// and the ledger is whole.
#[test]
fn killed_writers_lose_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let ledger = directory.path().join("ledger.db");
    let mut acknowledged = BTreeMap::new();
    for round in 0..KILLS {
        // The points are spread, not random, so that a failure can be had again.
        let appends = 1 + round * 7 % ACKNOWLEDGED_BEFORE_KILL_MAX;
        let mut victim = Writer::start(&ledger, None);
        for _ in 0..appends {
            acknowledged.extend(victim.acknowledged());
        }
        victim.process.kill().unwrap();
        acknowledged.extend(std::iter::from_fn(|| victim.acknowledged()));
        victim.process.wait().unwrap();
    }
    let events = contents(&ledger);
    assert!(events.iter().map(|(seq, _)| *seq).eq(1..=events.len() as u64));
    let events: BTreeMap<u64, String> = events.into_iter().collect();
    for (seq, text) in &acknowledged {
        assert_eq!(events.get(seq), Some(text), "event {seq} was acknowledged");
    }
    assert!(acknowledged.len() as u64 >= KILLS);
    let connection = rusqlite::Connection::open(&ledger).unwrap();
    let verdict: String = connection
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(verdict, "ok");
}

/// SPEC 2.12: the lease of a killed process is free at once, though its time is not up.
#[test]
fn the_lease_of_a_killed_process_is_free() {
    let directory = tempfile::tempdir().unwrap();
    let ledger = directory.path().join("ledger.db");
    let mut writer = Writer::start(&ledger, None);
    // A writer names itself in what it writes.
    let (_, text) = writer.acknowledged().unwrap();
    let owner = Owner(text.split('#').next().unwrap().to_owned());
    let store = SqliteStore::new(&ledger);
    runtime().block_on(async {
        let ours = Owner::this_process();
        store.acquire(&session(), &owner, 0, u64::MAX >> 1).await.unwrap();
        let error = store.acquire(&session(), &ours, 1, 2).await.unwrap_err();
        assert!(matches!(error, StoreError::Leased { .. }), "{error:?}");
        writer.process.kill().unwrap();
        writer.process.wait().unwrap();
        store.acquire(&session(), &ours, 1, 2).await.unwrap();
    });
}
