//! The open file, as one of the store's threads holds it: opened by the first command, closed by a failure that may have
//! broken it, opened again by the next (SPEC 2.5: the disk may be back).

use super::batch::Batch;
use super::fail::Failure;
use super::group::{self, Change, Undone};
use super::{derived, health, open, read, search, waiting};
use crate::lease::GivenBack;
use crate::query::Query;
use crate::{
    Durability, Hit, KnownRequest, Pending, RawEvent, SessionFilter, SessionSummary, StoreError, TypedLine,
    WaitingCount,
};
use aish_core::id::{ContinuationId, SessionId};
use rusqlite::Connection;
use std::ops::ControlFlow;
use std::path::PathBuf;

/// How many bits SQLite counts a file's versions in.
const DATA_VERSION_BITS: u32 = 32;

/// One file and the connection to it.
pub(super) struct Ledger {
    path: PathBuf,
    open: Option<Open>,
    times_opened: u64,
}

struct Open {
    connection: Connection,
    /// What the connection's commits are worth now.
    durability: Option<Durability>,
}

impl Ledger {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            open: None,
            times_opened: 0,
        }
    }

    /// Makes changes, in one transaction if that can be, and answers each.
    pub(super) fn change(&mut self, mut group: Vec<Box<dyn Change>>) {
        let failure = match self.make(&mut group) {
            Ok(outcomes) => {
                for (change, outcome) in group.into_iter().zip(outcomes) {
                    let attempt = change.attempt();
                    change.answer(self.settle(attempt, outcome));
                }
                return;
            }
            Err(Undone::ByOne(failure)) => {
                self.drop_if_broken(&failure);
                group.into_iter().for_each(|change| self.change(vec![change]));
                return;
            }
            Err(Undone::All(failure)) => failure,
        };
        self.drop_if_broken(&failure);
        // The failure itself, with what caused it, is the last one's; the others are told the same.
        let Some(last) = group.pop() else { return };
        for change in group {
            let told = failure.again().explain(change.attempt(), &self.path);
            change.answer(Err(told));
        }
        let attempt = last.attempt();
        last.answer(Err(failure.explain(attempt, &self.path)));
    }

    fn make(&mut self, group: &mut [Box<dyn Change>]) -> Result<Vec<Result<(), Failure>>, Undone> {
        let everybodys = |failure: Failure| Undone::All(failure);
        let open = self.open().map_err(|error| everybodys(error.into()))?;
        open.make_durable(group::strictest(group))
            .map_err(|error| everybodys(error.into()))?;
        group::make_together(&open.connection, group)
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

    pub(super) fn abandoned(
        &mut self,
        quiet_since: u64,
        now: u64,
        given_back: &GivenBack,
        limit: usize,
    ) -> Result<Vec<SessionId>, StoreError> {
        self.with("searching", |connection| {
            waiting::abandoned(connection, quiet_since, now, given_back, limit)
        })
    }

    pub(super) fn request(&mut self, key: &str) -> Result<Option<KnownRequest>, StoreError> {
        self.with("searching", |connection| waiting::request(connection, key))
    }

    /// The sessions that are not in the index of words up to their ends.
    pub(super) fn unindexed(&mut self) -> Result<Vec<i64>, StoreError> {
        self.write("searching", Durability::Committed, |connection| {
            search::unindexed(connection)
        })
    }

    /// The index of words can be made again: a power cut may take it.
    pub(super) fn index(&mut self, sessions: &[i64]) -> Result<(), StoreError> {
        self.write("searching", Durability::Committed, |connection| {
            search::index(connection, sessions)
        })
    }

    pub(super) fn search(&mut self, query: &Query, limit: usize) -> Result<Vec<Hit>, StoreError> {
        self.with("searching", |connection| search::search(connection, query, limit))
    }

    /// A number that is another one once another connection has written to the file, or this one was opened again: then nobody
    /// knows.
    pub(super) fn data_version(&mut self) -> Result<u64, StoreError> {
        let version = self.with("looking at", |connection| waiting::data_version(connection))?;
        Ok((self.times_opened << DATA_VERSION_BITS) | u64::from(version))
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
            None => {
                let connection = open::open(&self.path)?;
                self.times_opened += 1;
                Open {
                    connection,
                    durability: None,
                }
            }
        };
        Ok(self.open.insert(open))
    }

    fn settle<T>(&mut self, attempt: &str, result: Result<T, Failure>) -> Result<T, StoreError> {
        result.map_err(|failure| {
            self.drop_if_broken(&failure);
            failure.explain(attempt, &self.path)
        })
    }

    fn drop_if_broken(&mut self, failure: &Failure) {
        if failure.breaks_connection() {
            self.open = None;
        }
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
mod tests;
