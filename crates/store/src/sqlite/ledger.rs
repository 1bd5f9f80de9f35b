//! The open file, as the store's one thread holds it: opened by the first command, closed by a failure that may have
//! broken it, opened again by the next (SPEC 2.5: the disk may be back).

use super::batch::Batch;
use super::fail::Failure;
use super::{derived, health, open, read, search, waiting, write};
use crate::query::Query;
use crate::{
    Durability, Hit, KnownRequest, Lease, Owner, Pending, RawEvent, SessionFilter, SessionSummary, StoreError,
    TypedLine, WaitingCount,
};
use aish_core::event::Event;
use aish_core::id::{ContinuationId, SessionId};
use rusqlite::Connection;
use std::ops::ControlFlow;
use std::path::PathBuf;

/// One file and the connection to it.
pub(super) struct Ledger {
    path: PathBuf,
    open: Option<Open>,
}

struct Open {
    connection: Connection,
    /// What the connection's commits are worth now.
    durability: Option<Durability>,
}

impl Ledger {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, open: None }
    }

    pub(super) fn append(
        &mut self,
        append: write::Append<'_>,
        durability: Durability,
    ) -> Result<Vec<Event>, StoreError> {
        self.write("appending to", durability, |connection| {
            write::append(connection, append)
        })
    }

    pub(super) fn load(
        &mut self,
        session: &SessionId,
        after_seq: u64,
        hand_on: &mut dyn FnMut(Batch) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.with("reading", |connection| {
            read::load(connection, session, after_seq, hand_on)
        })
    }

    pub(super) fn load_raw(
        &mut self,
        session: &SessionId,
        after_seq: u64,
        limit: usize,
    ) -> Result<Vec<RawEvent>, StoreError> {
        self.with("reading", |connection| {
            read::load_raw(connection, session, after_seq, limit)
        })
    }

    pub(super) fn list(&mut self, filter: &SessionFilter) -> Result<Vec<SessionSummary>, StoreError> {
        self.with("listing the sessions of", |connection| read::list(connection, filter))
    }

    pub(super) fn find(&mut self, prefix: &str) -> Result<SessionId, StoreError> {
        self.with("searching", |connection| read::find(connection, prefix))
    }

    pub(super) fn typed(&mut self, lines_max: usize, not_by: &str) -> Result<Vec<TypedLine>, StoreError> {
        self.with("looking back in", |connection| {
            read::typed(connection, lines_max, not_by)
        })
    }

    pub(super) fn continuation(&mut self, id: &ContinuationId) -> Result<Option<Pending>, StoreError> {
        self.with("searching", |connection| waiting::continuation(connection, id))
    }

    pub(super) fn waiting_under(&mut self, session: &SessionId) -> Result<Option<Pending>, StoreError> {
        self.with("searching", |connection| waiting::waiting_under(connection, session))
    }

    pub(super) fn waiting_count(&mut self) -> Result<WaitingCount, StoreError> {
        self.with("counting", |connection| waiting::waiting_count(connection))
    }

    pub(super) fn expired(&mut self, now: u64, limit: usize) -> Result<Vec<Pending>, StoreError> {
        self.with("searching", |connection| waiting::expired(connection, now, limit))
    }

    pub(super) fn abandoned(&mut self, quiet_since: u64, now: u64, limit: usize) -> Result<Vec<SessionId>, StoreError> {
        self.with("searching", |connection| {
            waiting::abandoned(connection, quiet_since, now, limit)
        })
    }

    pub(super) fn request(&mut self, key: &str) -> Result<Option<KnownRequest>, StoreError> {
        self.with("searching", |connection| waiting::request(connection, key))
    }

    /// The index it needs can be made again: a power cut may take it.
    pub(super) fn search(&mut self, query: &Query, limit: usize) -> Result<Vec<Hit>, StoreError> {
        self.write("searching", Durability::Committed, |connection| {
            search::search(connection, query, limit)
        })
    }

    pub(super) fn data_version(&mut self) -> Result<u64, StoreError> {
        self.with("looking at", |connection| waiting::data_version(connection))
    }

    /// A lease need not outlive a power cut: its owner does not either.
    pub(super) fn acquire(
        &mut self,
        session: &SessionId,
        owner: &Owner,
        now: u64,
        until: u64,
    ) -> Result<Lease, StoreError> {
        self.write("taking a lease in", Durability::Committed, |connection| {
            write::acquire(connection, session, owner, now, until)
        })
    }

    pub(super) fn renew(&mut self, lease: &Lease, until: u64) -> Result<(), StoreError> {
        self.write("renewing a lease in", Durability::Committed, |connection| {
            write::renew(connection, lease, until)
        })
    }

    pub(super) fn release(&mut self, lease: &Lease) -> Result<(), StoreError> {
        self.write("giving back a lease in", Durability::Committed, |connection| {
            write::release(connection, lease)
        })
    }

    pub(super) fn rebuild_indexes(&mut self) -> Result<(), StoreError> {
        self.write("rebuilding the indexes of", Durability::Committed, derived::rebuild)
    }

    pub(super) fn health(&mut self) -> Result<health::Health, StoreError> {
        self.with("looking at", |connection| health::of(connection))
    }

    fn write<T>(
        &mut self,
        attempt: &str,
        durability: Durability,
        work: impl FnOnce(&mut Connection) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        let open = self.open()?;
        let result = open
            .make_durable(durability)
            .map_err(Failure::from)
            .and_then(|()| work(&mut open.connection));
        self.settle(attempt, result)
    }

    fn with<T>(
        &mut self,
        attempt: &str,
        work: impl FnOnce(&mut Connection) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        let result = work(&mut self.open()?.connection);
        self.settle(attempt, result)
    }

    fn open(&mut self) -> Result<&mut Open, StoreError> {
        let open = match self.open.take() {
            Some(open) => open,
            None => Open {
                connection: open::open(&self.path)?,
                durability: None,
            },
        };
        Ok(self.open.insert(open))
    }

    fn settle<T>(&mut self, attempt: &str, result: Result<T, Failure>) -> Result<T, StoreError> {
        result.map_err(|failure| {
            if failure.breaks_connection() {
                self.open = None;
            }
            failure.explain(attempt, &self.path)
        })
    }
}

impl Open {
    /// Sets what the next commit is worth: with write-ahead logging, NORMAL never waits for the disk, FULL waits at
    /// each commit. It cannot be changed inside a transaction.
    fn make_durable(&mut self, durability: Durability) -> rusqlite::Result<()> {
        if self.durability != Some(durability) {
            let synchronous = match durability {
                Durability::Synced => "PRAGMA synchronous = FULL",
                Durability::Committed => "PRAGMA synchronous = NORMAL",
            };
            self.connection.execute_batch(synchronous)?;
            self.durability = Some(durability);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use aish_core::event::Draft;

    fn append(ledger: &mut Ledger, expected_seq: u64, text: &str) -> Result<Vec<Event>, StoreError> {
        let session = SessionId::new("s");
        let append = write::Append {
            session: &session,
            expected_seq,
            drafts: vec![Draft::user(0, "small"), Draft::user(0, text)],
            time: 1,
            lease: None,
        };
        ledger.append(append, Durability::Synced)
    }

    fn count(ledger: &mut Ledger) -> usize {
        ledger.load_raw(&SessionId::new("s"), 0, usize::MAX).unwrap().len()
    }

    /// SPEC 2.5: on a full disk nothing is half-appended, the error says what was tried, and once there is room again
    /// the same ledger goes on.
    #[test]
    fn a_full_disk_appends_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let mut ledger = Ledger::new(directory.path().join("ledger.db"));
        append(&mut ledger, 0, "fits").unwrap();
        let connection = &ledger.open().unwrap().connection;
        let pages: i64 = connection.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
        connection
            .query_row(&format!("PRAGMA max_page_count = {}", pages + 1), [], |_| Ok(()))
            .unwrap();

        let big = "x".repeat(1_000_000);
        let error = append(&mut ledger, 2, &big).unwrap_err();
        assert!(matches!(error, StoreError::Io { .. }), "{error:?}");
        assert!(error.to_string().starts_with("appending to the ledger "), "{error}");

        assert_eq!(count(&mut ledger), 2);
        append(&mut ledger, 2, &big).unwrap();
        assert_eq!(count(&mut ledger), 4);
    }

    /// SPEC 11: what must survive a power cut is written under `synchronous=FULL`, the rest is not.
    #[test]
    fn durability_is_as_asked() {
        let directory = tempfile::tempdir().unwrap();
        let mut ledger = Ledger::new(directory.path().join("ledger.db"));
        let mut check = |durability: Durability, expect: i64| {
            let seen = ledger
                .write("testing", durability, |connection| {
                    Ok(connection.query_row("PRAGMA synchronous", [], |row| row.get::<_, i64>(0))?)
                })
                .unwrap();
            assert_eq!(seen, expect, "{durability:?}");
        };
        check(Durability::Synced, 2);
        check(Durability::Committed, 1);
        check(Durability::Synced, 2);
    }
}
