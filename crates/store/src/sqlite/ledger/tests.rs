//! What is on the disk when, and what becomes of changes that are made together.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::super::group::{Asked, Work};
use super::super::keeper::Keeper;
use super::super::write::{Acquire, Append};
use super::*;
use crate::{Appended, Hold, Lease, Owner};
use aish_core::event::Draft;
use rusqlite::params;
use tempfile::TempDir;
use tokio::sync::oneshot::Receiver;
use tokio::sync::oneshot::channel;

type Replied<T> = Receiver<Result<T, StoreError>>;

fn ledger() -> (TempDir, Ledger) {
    let directory = tempfile::tempdir().unwrap();
    let ledger = Ledger::new(directory.path().join("ledger.db"));
    (directory, ledger)
}

fn asked<W: Work>(work: W) -> (Box<dyn Change>, Replied<W::Made>) {
    let (reply, replied) = channel();
    let asked = Asked {
        work,
        reply,
        unfinished: Keeper::new("nobody's").begin(),
    };
    (Box::new(asked), replied)
}

fn append_to(session: &str, expected_seq: u64, text: &str, durability: Durability) -> Append {
    append_as(Hold::Nothing, session, expected_seq, text, durability)
}

fn append_as(hold: Hold, session: &str, expected_seq: u64, text: &str, durability: Durability) -> Append {
    let drafts = vec![Draft::user(0, "small"), Draft::user(0, text)];
    Append::new(&SessionId::new(session), expected_seq, drafts, 1, durability, hold)
}

/// A small one and one of that text, without company.
fn append(ledger: &mut Ledger, expected_seq: u64, text: &str) -> Result<Appended, StoreError> {
    let (change, mut replied) = asked(append_to("s", expected_seq, text, Durability::Synced));
    ledger.change(vec![change]);
    replied.try_recv().unwrap()
}

fn count(ledger: &mut Ledger, session: &str) -> usize {
    ledger.load_raw(&SessionId::new(session), 0, usize::MAX).unwrap().len()
}

/// No more than one page may be added from now on.
fn fill_the_disk(ledger: &mut Ledger) {
    let connection = &ledger.open().unwrap().connection;
    let pages: i64 = connection.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
    let limit = format!("PRAGMA max_page_count = {}", pages + 1);
    connection.query_row(&limit, [], |_| Ok(())).unwrap();
}

fn synchronous(ledger: &mut Ledger) -> i64 {
    let connection = &ledger.open().unwrap().connection;
    connection
        .query_row("PRAGMA synchronous", [], |row| row.get(0))
        .unwrap()
}

/// SPEC 2.5: on a full disk nothing is half-appended, the error says what was tried, and once there is room again
/// the same ledger goes on.
#[test]
fn a_full_disk_appends_nothing() {
    let (_directory, mut ledger) = ledger();
    append(&mut ledger, 0, "fits").unwrap();
    fill_the_disk(&mut ledger);

    let big = "x".repeat(1_000_000);
    let error = append(&mut ledger, 2, &big).unwrap_err();
    assert!(matches!(error, StoreError::Io { .. }), "{error:?}");
    assert!(error.to_string().starts_with("appending to the ledger "), "{error}");

    assert_eq!(count(&mut ledger, "s"), 2);
    append(&mut ledger, 2, &big).unwrap();
    assert_eq!(count(&mut ledger, "s"), 4);
}

/// SPEC 11: what must survive a power cut is written under `synchronous=FULL`, the rest is not; a group as the strictest asks.
#[test]
fn durability_is_as_asked() {
    let (_directory, mut ledger) = ledger();
    let mut check = |durabilities: &[Durability], expect: i64| {
        let new = |durability: &Durability| append_to(&format!("{durabilities:?}"), u64::MAX, "", *durability);
        let changes = durabilities.iter().map(|durability| asked(new(durability)).0);
        ledger.change(changes.collect());
        assert_eq!(synchronous(&mut ledger), expect, "{durabilities:?}");
    };
    check(&[Durability::Synced], 2);
    check(&[Durability::Committed, Durability::Committed], 1);
    check(&[Durability::Committed, Durability::Synced, Durability::Committed], 2);
    check(&[Durability::Committed], 1);
}

/// SPEC 2.11: of changes that are made together each has its own answer, a refused one leaves nothing behind, and a later one
/// sees those before it.
#[test]
fn one_refused_does_not_touch_the_others() {
    let (_directory, mut ledger) = ledger();
    let (owner, other) = (Owner("owner".to_owned()), Owner("other".to_owned()));
    let session = SessionId::new("a");
    let (first, mut first_told) = asked(append_to("a", 0, "one", Durability::Committed));
    let (late, mut late_told) = asked(append_to("a", 0, "late", Durability::Committed));
    let (taken, mut taken_told) = asked(Acquire::new(&session, &owner, 1, 9));
    let (refused, mut refused_told) = asked(Acquire::new(&session, &other, 1, 9));
    let lease = Lease {
        session: session.clone(),
        owner: owner.clone(),
        fence: 1,
    };
    let (under, mut under_told) = asked(append_as(Hold::Keeps(lease.clone()), "a", 2, "two", Durability::Synced));
    let (elsewhere, mut elsewhere_told) = asked(append_to("b", 0, "three", Durability::Synced));
    ledger.change(vec![first, late, taken, refused, under, elsewhere]);

    assert_eq!(first_told.try_recv().unwrap().unwrap().events.len(), 2);
    let late = late_told.try_recv().unwrap().unwrap_err();
    assert!(matches!(late, StoreError::Conflict { actual: 2, .. }), "{late:?}");
    assert_eq!(taken_told.try_recv().unwrap().unwrap(), lease);
    let refused = refused_told.try_recv().unwrap().unwrap_err();
    assert!(matches!(refused, StoreError::Leased { .. }), "{refused:?}");
    assert_eq!(under_told.try_recv().unwrap().unwrap().events[1].seq, 4);
    assert_eq!(elsewhere_told.try_recv().unwrap().unwrap().events[1].seq, 2);
    assert_eq!((count(&mut ledger, "a"), count(&mut ledger, "b")), (4, 2));
}

/// SPEC 2.5: one that the disk has no room for is refused alone, also where it took the transaction of others down.
#[test]
fn one_too_large_does_not_touch_the_others() {
    let (_directory, mut ledger) = ledger();
    append(&mut ledger, 0, "fits").unwrap();
    fill_the_disk(&mut ledger);
    let (before, mut before_told) = asked(append_to("s", 2, "small", Durability::Committed));
    let (big, mut big_told) = asked(append_to("big", 0, &"x".repeat(1_000_000), Durability::Committed));
    let (after, mut after_told) = asked(append_to("s", 4, "small", Durability::Committed));
    // The limit is the connection's: it holds until a failure has the file opened again.
    ledger.change(vec![before, big, after]);
    assert_eq!(before_told.try_recv().unwrap().unwrap().events.len(), 2);
    assert_eq!(after_told.try_recv().unwrap().unwrap().events.len(), 2);
    // By then there was room.
    assert_eq!(big_told.try_recv().unwrap().unwrap().events.len(), 2);
    assert_eq!((count(&mut ledger, "s"), count(&mut ledger, "big")), (6, 2));
}

/// Breaks a rule that is only looked at by the commit.
struct BreaksAtCommit;

impl Work for BreaksAtCommit {
    type Made = ();

    const ATTEMPT: &'static str = "breaking";

    fn durability(&self) -> Durability {
        Durability::Committed
    }

    fn make(&mut self, connection: &Connection) -> Result<(), Failure> {
        connection.execute("INSERT INTO children (parent) VALUES (?1)", params![7])?;
        Ok(())
    }

    fn made(self) {}
}

/// SPEC 2.11: what could not be committed is nobody's: all are told so, and the next change goes on from what was there before.
#[test]
fn a_commit_that_fails_is_everybodys() {
    let (_directory, mut ledger) = ledger();
    append(&mut ledger, 0, "before").unwrap();
    let tables = "PRAGMA foreign_keys = ON; CREATE TABLE parents (id INTEGER PRIMARY KEY);
        CREATE TABLE children (parent INTEGER REFERENCES parents (id) DEFERRABLE INITIALLY DEFERRED)";
    ledger.open().unwrap().connection.execute_batch(tables).unwrap();
    let (one, mut one_told) = asked(append_to("s", 2, "one", Durability::Synced));
    let (breaks, mut breaks_told) = asked(BreaksAtCommit);
    let (other, mut other_told) = asked(append_to("other", 0, "other", Durability::Committed));
    ledger.change(vec![one, breaks, other]);

    let told = one_told.try_recv().unwrap().unwrap_err().to_string();
    assert!(
        told.starts_with("appending to the ledger ") && told.contains("FOREIGN KEY"),
        "{told}"
    );
    let told = breaks_told.try_recv().unwrap().unwrap_err().to_string();
    assert!(told.starts_with("breaking the ledger "), "{told}");
    assert!(other_told.try_recv().unwrap().is_err());
    assert_eq!((count(&mut ledger, "s"), count(&mut ledger, "other")), (2, 0));
    append(&mut ledger, 2, "after").unwrap();
}

/// Writes only when it is committed: what an index of words has gathered goes to the file then.
struct GrowsAtCommit;

impl Work for GrowsAtCommit {
    type Made = ();

    const ATTEMPT: &'static str = "growing";

    fn durability(&self) -> Durability {
        Durability::Committed
    }

    fn make(&mut self, connection: &Connection) -> Result<(), Failure> {
        let words: String = (0..20_000).map(|n| format!("{n:x} ")).collect();
        connection.execute("INSERT INTO grows (rowid, words) VALUES (1, ?1)", params![words])?;
        Ok(())
    }

    fn made(self) {}
}

/// SPEC 2.5, 2.11: a disk that is found full only at the commit is not everybody's failure: each change is made again by itself.
#[test]
fn a_disk_that_is_full_at_the_commit() {
    let (_directory, mut ledger) = ledger();
    append(&mut ledger, 0, "fits").unwrap();
    let table = "CREATE VIRTUAL TABLE grows USING fts5 (words, content = '', columnsize = 0)";
    ledger.open().unwrap().connection.execute_batch(table).unwrap();
    fill_the_disk(&mut ledger);
    let (small, _small_told) = asked(append_to("s", 2, "small", Durability::Committed));
    let (grows, _grows_told) = asked(GrowsAtCommit);
    let undone = ledger.make(&mut [small, grows]);
    assert!(matches!(undone, Err(Undone::ByOne(_))), "{undone:?}");

    let (small, mut small_told) = asked(append_to("s", 2, "small", Durability::Committed));
    let (grows, mut grows_told) = asked(GrowsAtCommit);
    ledger.change(vec![small, grows]);
    assert_eq!(small_told.try_recv().unwrap().unwrap().events.len(), 2);
    // By then there was room.
    grows_told.try_recv().unwrap().unwrap();
    assert_eq!(count(&mut ledger, "s"), 4);
}

/// Looks whether somebody was told already.
struct Looks(Replied<Appended>);

impl Work for Looks {
    type Made = Replied<Appended>;

    const ATTEMPT: &'static str = "looking at";

    fn durability(&self) -> Durability {
        Durability::Committed
    }

    fn make(&mut self, _: &Connection) -> Result<(), Failure> {
        assert!(self.0.try_recv().is_err(), "told before the commit");
        Ok(())
    }

    fn made(self) -> Self::Made {
        self.0
    }
}

/// SPEC 11: nobody is told of a change before the commit that holds it.
#[test]
fn told_after_the_commit() {
    let (_directory, mut ledger) = ledger();
    let (change, told) = asked(append_to("s", 0, "one", Durability::Synced));
    let (looks, mut looked) = asked(Looks(told));
    ledger.change(vec![change, looks]);
    let mut told = looked.try_recv().unwrap().unwrap();
    assert_eq!(told.try_recv().unwrap().unwrap().events.len(), 2);
}

/// SPEC 2.12: after a failure nobody knows what others wrote meanwhile, whatever number SQLite begins to count with again.
#[test]
fn a_file_opened_again_is_of_another_version() {
    let (_directory, mut ledger) = ledger();
    let before = ledger.data_version().unwrap();
    assert_eq!(ledger.data_version().unwrap(), before);
    ledger.open = None;
    assert_ne!(ledger.data_version().unwrap(), before);
}

/// SPEC 2.10: what another process has indexed since somebody looked is not indexed again.
#[test]
fn indexed_by_somebody_else_meanwhile() {
    let (directory, mut ledger) = ledger();
    append(&mut ledger, 0, "a needle").unwrap();
    let unindexed = ledger.unindexed().unwrap();
    assert_eq!(unindexed.len(), 1);
    let mut other = Ledger::new(directory.path().join("ledger.db"));
    other.index(&unindexed).unwrap();
    ledger.index(&unindexed).unwrap();
    assert!(ledger.unindexed().unwrap().is_empty());
    let words = "SELECT count(*) FROM said WHERE said MATCH 'needle'";
    let connection = &ledger.open().unwrap().connection;
    let found: i64 = connection.query_row(words, [], |row| row.get(0)).unwrap();
    assert_eq!(found, 1);
    assert_eq!(ledger.search(&Query::parse("needle"), 9).unwrap().len(), 1);
}
