//! A disk that fails is a visible warning, not the end of the session (SPEC 2.5): the session goes on in memory, says so, and
//! saves what it can when the disk is back.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use aish_core::event::{Body, Command, Draft};
use aish_engine::{Driver, EngineError, Notices, now_ms};
use aish_provider::scripted::Act;
use aish_store::memory::MemoryStore;
use aish_store::sqlite::SqliteStore;
use aish_store::{Durability, Hold, Store};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use support::probe::{Doing, Probe};
use support::watched::{Fate, Watched};
use support::{World, another_owner, ask, asking, assert_saved, assert_settled, done, drive, finish, kinds, never};
use support::{statuses, within, yes};

/// How far ahead of its end a lease is taken over, in milliseconds.
const LATER_MS: u64 = 3_600_000;

/// A disk with a switch.
struct Disk {
    ledger: Arc<dyn Store>,
    store: Arc<Watched>,
    fails: Arc<AtomicBool>,
}

impl Disk {
    fn new() -> Self {
        let ledger: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let fails = Arc::new(AtomicBool::new(false));
        let now = Arc::clone(&fails);
        let store = Watched::deciding(Arc::clone(&ledger), move |_, _| {
            if now.load(Ordering::SeqCst) {
                Fate::Fail
            } else {
                Fate::Write
            }
        });
        Self { ledger, store, fails }
    }

    fn set_fails(&self, fails: bool) {
        self.fails.store(fails, Ordering::SeqCst);
        self.store.set_loads_fail(fails);
    }

    async fn saved(&self, driver: &Driver) -> usize {
        self.ledger.load(driver.session().id(), 0).await.unwrap().len()
    }
}

fn probe_call() -> Act {
    Act::calls(&[("probe", r#"{"n":1}"#)])
}

/// SPEC 2.5: a whole turn, tools and approvals included, without a disk; the person is told once that it fails and once that
/// everything is saved.
#[tokio::test]
async fn a_turn_without_a_disk() {
    let disk = Disk::new();
    let probe = Probe::writer("probe", Doing::Answer("ran".to_owned()));
    let acts = [
        Act::text("first"),
        probe_call(),
        Act::text("second"),
        Act::text("third"),
    ];
    let world = World::over(disk.store.clone(), acts, vec![probe.clone()]);
    let notices = Notices::new();
    let mut driver = world.driver();
    driver.watch(&notices);
    finish(&mut driver, "one").await;
    let before = disk.saved(&driver).await;

    disk.set_fails(true);
    driver.watch(&notices);
    driver.start("two", Vec::new()).await.unwrap();
    assert!(driver.is_unsaved());
    let pending = asking(within(driver.drive(&notices, never())).await.unwrap());
    driver.answer(yes(&pending[0])).await.unwrap();
    let finished = done(within(driver.drive(&notices, never())).await.unwrap());
    assert_eq!((finished.reply.as_str(), probe.runs()), ("second", 1));
    assert_settled(driver.session());
    assert!(driver.is_unsaved());
    assert_eq!(disk.saved(&driver).await, before);
    let lines = statuses(&notices);
    assert!(
        lines.len() == 1 && lines[0].starts_with("the ledger cannot be written"),
        "{lines:?}"
    );

    disk.set_fails(false);
    driver.watch(&notices);
    driver.start("three", Vec::new()).await.unwrap();
    done(within(driver.drive(&notices, never())).await.unwrap());
    assert_eq!(
        statuses(&notices),
        ["the ledger can be written again; everything is saved"]
    );
    assert_settled(driver.session());
    assert_saved(&driver).await;
}

/// SPEC 2.5: whatever append the disk fails at, and comes back after, all is saved and nothing is lost or told twice.
#[tokio::test]
async fn a_disk_that_fails_for_a_while() {
    const APPENDS: usize = 9;
    for first in 1..=APPENDS {
        for last in first..=APPENDS {
            let store = Watched::deciding(Arc::new(MemoryStore::new()), move |n, _| {
                if (first..=last).contains(&n) {
                    Fate::Fail
                } else {
                    Fate::Write
                }
            });
            let probe = Probe::writer("probe", Doing::Answer("ran".to_owned()));
            let acts = [probe_call(), Act::text("one"), Act::text("two")];
            let world = World::over(store, acts, vec![probe.clone()]).full();
            let notices = Notices::with_events();
            let mut driver = world.driver();
            driver.watch(&notices);
            for question in ["first", "second"] {
                driver.start(question, Vec::new()).await.unwrap();
                done(within(driver.drive(&notices, never())).await.unwrap());
            }
            // A process that ends tries once more.
            while driver.is_unsaved() {
                driver.settle().await;
            }
            assert_settled(driver.session());
            assert_saved(&driver).await;
            assert_eq!(probe.runs(), 1, "{first} to {last}");
            let told = notices.drain().into_iter().filter_map(|notice| {
                if let aish_engine::Notice::Recorded(event) = notice {
                    Some(event.seq)
                } else {
                    None
                }
            });
            let all: Vec<u64> = (1..=driver.session().last_seq()).collect();
            assert_eq!(told.collect::<Vec<u64>>(), all, "{first} to {last}");
        }
    }
}

/// SPEC 2.5: there may never have been a disk: the ledger's place cannot even be opened.
#[tokio::test]
async fn no_ledger_at_all() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "in the way").unwrap();
    let store = Arc::new(SqliteStore::new(folder.path().join("file").join("ledger.db")));
    let world = World::over(store, [Act::text("hello")], Vec::new());
    let notices = Notices::new();
    let mut driver = world.driver();
    driver.watch(&notices);
    driver.start("hello?", Vec::new()).await.unwrap();
    let finished = done(within(driver.drive(&notices, never())).await.unwrap());
    assert_eq!(finished.reply, "hello");
    assert!(driver.is_unsaved());
    assert!(statuses(&notices)[0].starts_with("the ledger cannot be written"));
}

/// What another process, whose disk works, writes meanwhile.
async fn meanwhile(disk: &Disk, driver: &Driver, drafts: Vec<Draft>) {
    let id = driver.session().id();
    let seq = u64::try_from(disk.saved(driver).await).unwrap();
    let ledger = &disk.ledger;
    ledger
        .append(id, seq, drafts, now_ms(), Durability::Synced, Hold::Nothing)
        .await
        .unwrap();
}

/// SPEC 2.5, 3.5b: what another aish wrote meanwhile stands, and ours follows it.
#[tokio::test]
async fn others_wrote_meanwhile() {
    let disk = Disk::new();
    let acts = [Act::text("one"), Act::text("two"), Act::text("three")];
    let world = World::over(disk.store.clone(), acts, Vec::new());
    let mut driver = world.driver();
    finish(&mut driver, "first").await;
    disk.set_fails(true);
    finish(&mut driver, "second").await;
    let command = Draft::new(0, "ls (exit 0)", Body::Command(Command::default()));
    meanwhile(&disk, &driver, vec![command]).await;
    disk.set_fails(false);
    finish(&mut driver, "third").await;
    assert_settled(driver.session());
    assert_saved(&driver).await;
    assert!(kinds(driver.session()).contains(&"command"));
    let ended = kinds(driver.session())
        .into_iter()
        .filter(|kind| *kind == "turn_ended")
        .count();
    assert_eq!(ended, 3);
}

/// SPEC 2.5, 2.11: where another aish began the same turn meanwhile, theirs stands whole and ours is dropped whole; the person
/// is told, and nothing of ours falls into theirs.
#[tokio::test]
async fn others_began_the_same_turn() {
    let disk = Disk::new();
    let world = World::over(disk.store.clone(), [Act::text("one"), Act::text("two")], Vec::new());
    let notices = Notices::new();
    let mut driver = world.driver();
    finish(&mut driver, "first").await;
    disk.set_fails(true);
    finish(&mut driver, "ours").await;
    let there = World::owned(disk.ledger.clone(), another_owner(), [Act::text("done")], Vec::new());
    let id = driver.session().id().clone();
    let mut other = Driver::open(Arc::clone(&there.engine), id).await.unwrap();
    finish(&mut other, "theirs").await;
    disk.set_fails(false);
    driver.watch(&notices);
    let lost = driver.clear().await;
    assert!(matches!(lost, Err(EngineError::Invalid { .. })), "{lost:?}");
    assert_saved(&driver).await;
    assert_settled(driver.session());
    assert_eq!(driver.session().events(), other.session().events());
    let lines = statuses(&notices);
    assert!(lines.iter().any(|line| line.contains("were dropped")), "{lines:?}");
}

/// SPEC 2.12: a drive that finds its turn lost once it has the lease gives it back: the session is not its own to keep others out of.
#[tokio::test]
async fn a_turn_that_is_lost_keeps_no_lease() {
    let disk = Disk::new();
    let world = World::over(disk.store.clone(), [Act::text("one")], Vec::new());
    let mut driver = world.driver();
    finish(&mut driver, "first").await;
    disk.set_fails(true);
    driver.start("ours", Vec::new()).await.unwrap();
    let acts = [Act::text("done"), Act::text("done again")];
    let there = World::owned(disk.ledger.clone(), another_owner(), acts, Vec::new());
    let id = driver.session().id().clone();
    let mut other = Driver::open(Arc::clone(&there.engine), id).await.unwrap();
    finish(&mut other, "theirs").await;
    disk.set_fails(false);
    let lost = drive(&mut driver).await;
    assert!(matches!(lost, Err(EngineError::Invalid { .. })), "{lost:?}");
    finish(&mut other, "theirs again").await;
}

/// SPEC 2.5: the disk fails once more while what was unsaved is being joined to what others wrote: the rest is not lost.
#[tokio::test]
async fn it_fails_again_halfway() {
    let ledger: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let failing = Arc::new(std::sync::Mutex::new(Vec::<usize>::new()));
    let fails_at = Arc::clone(&failing);
    let store = Watched::deciding(Arc::clone(&ledger), move |n, _| {
        if fails_at.lock().unwrap().contains(&n) {
            Fate::Fail
        } else {
            Fate::Write
        }
    });
    let world = World::over(store.clone(), [Act::text("one"), Act::text("two")], Vec::new());
    let mut driver = world.driver();
    driver.start("first", Vec::new()).await.unwrap();
    // The reply and the end of the turn are not written; then another's event is in the way of them.
    *failing.lock().unwrap() = vec![2, 3];
    done(drive(&mut driver).await.unwrap());
    assert!(driver.is_unsaved());
    let command = Draft::new(0, "ls (exit 0)", Body::Command(Command::default()));
    let id = driver.session().id();
    ledger
        .append(id, 2, vec![command], now_ms(), Durability::Synced, Hold::Nothing)
        .await
        .unwrap();
    let next = store.appends() + 1;
    *failing.lock().unwrap() = vec![next + 2];
    driver.settle().await;
    assert!(driver.is_unsaved());
    assert_settled(driver.session());
    driver.settle().await;
    assert_saved(&driver).await;
    assert_settled(driver.session());
}

/// SPEC 2.12: a driver whose disk fails and whose lease was taken over meanwhile stops, and does not write over the other.
#[tokio::test]
async fn a_lease_lost_meanwhile() {
    let ledger: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let theirs = Arc::clone(&ledger);
    // The result is not written the first time; before the next attempt, somebody takes the session over.
    let failed = Arc::new(AtomicBool::new(false));
    let hook: support::watched::Hook = Box::new(move |_, drafts| {
        let (theirs, failed) = (Arc::clone(&theirs), Arc::clone(&failed));
        Box::pin(async move {
            if !matches!(drafts[0].body, Body::ToolResult(_)) || failed.swap(true, Ordering::SeqCst) {
                return Fate::Write;
            }
            let sessions = theirs.list(aish_store::SessionFilter::default()).await.unwrap();
            let now = now_ms() + LATER_MS;
            theirs
                .acquire(&sessions[0].id, &another_owner(), now, now + LATER_MS)
                .await
                .unwrap();
            Fate::Fail
        })
    });
    let probe = Probe::writer("probe", Doing::Answer("ran".to_owned()));
    let store = Watched::new(ledger, hook);
    let world = World::over(store, [probe_call(), Act::text("never said")], vec![probe]).full();
    let mut driver = world.driver();
    driver.start("go", Vec::new()).await.unwrap();
    let lost = drive(&mut driver).await;
    assert!(matches!(lost, Err(EngineError::LeaseLost(_))), "{lost:?}");
}

/// SPEC 2.5: a session that was never opened cannot be conjured up: opening one whose ledger cannot be read is an error.
#[tokio::test]
async fn opening_needs_the_disk() {
    let disk = Disk::new();
    let world = World::over(disk.store.clone(), [Act::text("one")], Vec::new());
    let mut driver = world.driver();
    ask(&mut driver, "first").await;
    disk.set_fails(true);
    let id = driver.session().id().clone();
    let opened = Driver::open(Arc::clone(&world.engine), id).await;
    assert!(matches!(opened, Err(EngineError::Store(_))), "{:?}", opened.map(|_| ()));
}
