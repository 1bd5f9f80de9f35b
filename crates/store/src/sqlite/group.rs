//! Group commit: changes that wait for the file at the same moment share one transaction, and so one wait for the disk.
//!
//! Each change is made in a savepoint of its own, and has an answer of its own: one that is refused leaves nothing behind and does not
//! touch the others. Nobody is answered before the commit that holds the change, and the commit is as durable as the strictest of
//! the group asks. A commit that fails is everybody's failure.
//!
//! A disk that is full, or any other failure that makes SQLite give up the whole transaction, may be the fault of a single change:
//! then each is made again, in a transaction of its own ([`Undone::ByOne`]). Only a change that is larger than
//! what is kept in memory meets a full disk itself; any other leaves that to the commit.

use super::fail::Failure;
use super::keeper::Unfinished;
use crate::{Durability, StoreError};
use rusqlite::Connection;
use tokio::sync::oneshot;

/// A piece of work that changes the file, and may be done again after it was undone.
pub(super) trait Work: Send + 'static {
    /// What it gives to whoever asked.
    type Made: Send + 'static;

    /// For messages, as in `appending to`.
    const ATTEMPT: &'static str;

    /// What its commit must be worth.
    fn durability(&self) -> Durability;

    /// Does it. There is a transaction already, which holds the write lock: what is checked is still true at the commit.
    fn make(&mut self, connection: &Connection) -> Result<(), Failure>;

    /// What it came to; asked for once it is committed.
    fn made(self) -> Self::Made;
}

/// Work that somebody waits for.
pub(super) struct Asked<W: Work> {
    pub(super) work: W,
    pub(super) reply: oneshot::Sender<Result<W::Made, StoreError>>,
    pub(super) unfinished: Unfinished,
}

/// [`Asked`], whatever is asked.
pub(super) trait Change: Send {
    /// See [`Work::ATTEMPT`].
    fn attempt(&self) -> &'static str;
    /// See [`Work::durability`].
    fn durability(&self) -> Durability;
    /// See [`Work::make`].
    fn make(&mut self, connection: &Connection) -> Result<(), Failure>;
    /// Tells whoever waits; nobody may any more.
    fn answer(self: Box<Self>, outcome: Result<(), StoreError>);
}

impl<W: Work> Change for Asked<W> {
    fn attempt(&self) -> &'static str {
        W::ATTEMPT
    }

    fn durability(&self) -> Durability {
        self.work.durability()
    }

    fn make(&mut self, connection: &Connection) -> Result<(), Failure> {
        self.work.make(connection)
    }

    fn answer(self: Box<Self>, outcome: Result<(), StoreError>) {
        let Self {
            work,
            reply,
            unfinished,
        } = *self;
        drop(unfinished);
        let _ = reply.send(outcome.map(|()| work.made()));
    }
}

/// Why nothing of a group is in the file.
#[derive(Debug)]
pub(super) enum Undone {
    /// A failure that is everybody's: there was no transaction to be had, or it could not be committed.
    All(Failure),
    /// One of several changes took the transaction down: without it the others may well be made.
    ByOne(Failure),
}

/// The durability that all of a group are content with.
pub(super) fn strictest(group: &[Box<dyn Change>]) -> Durability {
    let is_synced = group.iter().any(|change| change.durability() == Durability::Synced);
    if is_synced {
        Durability::Synced
    } else {
        Durability::Committed
    }
}

/// Makes a group of changes in one transaction, which is committed when this returns: what each came to.
pub(super) fn make_together(
    connection: &Connection,
    group: &mut [Box<dyn Change>],
) -> Result<Vec<Result<(), Failure>>, Undone> {
    let all = |error: rusqlite::Error| Undone::All(error.into());
    run(connection, "BEGIN IMMEDIATE").map_err(all)?;
    let made = match group {
        [change] => make_alone(connection, change),
        group => make_each(connection, group),
    };
    let done = made.and_then(|outcomes| {
        let is_alone = outcomes.len() == 1;
        match run(connection, "COMMIT").map_err(Failure::from) {
            Ok(()) => Ok(outcomes),
            Err(failure) if failure.is_disk_full() && !is_alone => Err(Undone::ByOne(failure)),
            Err(failure) => Err(Undone::All(failure)),
        }
    });
    // Some failures have ended the transaction already.
    if done.is_err() && !connection.is_autocommit() {
        run(connection, "ROLLBACK").map_err(all)?;
    }
    done
}

/// A change without company needs no savepoint: what is refused undoes the transaction.
fn make_alone(connection: &Connection, change: &mut Box<dyn Change>) -> Result<Vec<Result<(), Failure>>, Undone> {
    change.make(connection).map_err(Undone::All)?;
    Ok(vec![Ok(())])
}

fn make_each(connection: &Connection, group: &mut [Box<dyn Change>]) -> Result<Vec<Result<(), Failure>>, Undone> {
    let all = |error: rusqlite::Error| Undone::All(error.into());
    let mut outcomes = Vec::with_capacity(group.len());
    for change in group {
        run(connection, "SAVEPOINT change").map_err(all)?;
        let outcome = change.make(connection);
        if let Err(failure) = outcome {
            if connection.is_autocommit() || failure.breaks_connection() {
                return Err(Undone::ByOne(failure));
            }
            run(connection, "ROLLBACK TO change").map_err(all)?;
            outcomes.push(Err(failure));
        } else {
            outcomes.push(Ok(()));
        }
        run(connection, "RELEASE change").map_err(all)?;
    }
    Ok(outcomes)
}

fn run(connection: &Connection, statement: &'static str) -> rusqlite::Result<()> {
    connection.prepare_cached(statement)?.execute([])?;
    Ok(())
}
