//! Appending: one transaction under READ COMMITTED.
//!
//! The row of the session is locked first, and with it everything that is derived of the session: what is read after that
//! holds until the commit. The row of the lease is locked as well (`FOR SHARE`), so that a take-over comes wholly before or
//! wholly after.
//!
//! **A lost answer to COMMIT.** If the connection breaks there, the events may be kept or not. Each append has a random number
//! that is stored with its first event. The work is simply done again: it waits for the row, which the lost transaction holds
//! until it has ended one way or the other, and then either finds its own number in its own place, or nothing of it.
//!
//! **Durability.** Both kinds are on the disk before the answer. [`Durability::Committed`](crate::Durability::Committed) asks
//! for less, but a database is another process than ours, and would forget by its crash what we go on from.

use super::derived;
use super::fail::Failure;
use super::lease;
use super::rows::{self, Words, signed, storable, unsigned};
use crate::index::SessionIndex;
use crate::{Lease, StoreError};
use aish_core::event::{Draft, Event};
use aish_core::id::SessionId;
use deadpool_postgres::{GenericClient, Object, Transaction};
use futures_util::future::try_join;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio_postgres::{IsolationLevel, Row};

/// What is to be appended, however often it takes.
pub(super) struct Append {
    session: SessionId,
    expected_seq: u64,
    events: Vec<Event>,
    lease: Option<Lease>,
    /// Tells this append from every other.
    number: i64,
    /// Set once the database was told to commit, until it said whether it did.
    may_be_kept: AtomicBool,
}

impl Append {
    pub(super) fn new(
        session: &SessionId,
        expected_seq: u64,
        drafts: Vec<Draft>,
        time: u64,
        lease: Option<&Lease>,
    ) -> Result<Self, StoreError> {
        let random = getrandom::u64().map_err(|error| StoreError::Io {
            attempt: "appending to the ledger".to_owned(),
            source: Box::new(error),
        })?;
        let seqs = (1..).map(|n: u64| expected_seq.saturating_add(n));
        let placed = seqs.zip(drafts).map(|(seq, draft)| draft.place(session, seq, time));
        Ok(Self {
            session: session.clone(),
            expected_seq,
            events: placed.collect(),
            lease: lease.cloned(),
            number: i64::from_ne_bytes(random.to_ne_bytes()),
            may_be_kept: AtomicBool::new(false),
        })
    }

    /// True if nobody knows whether the events are kept.
    pub(super) fn may_be_kept(&self) -> bool {
        self.may_be_kept.load(Ordering::Relaxed)
    }

    fn conflict(&self, actual: u64) -> Failure {
        Failure::Store(StoreError::Conflict {
            session: self.session.clone(),
            expected: self.expected_seq,
            actual,
        })
    }
}

/// Appends, or finds that it already has.
pub(super) async fn append(client: &mut Object, append: &Append) -> Result<Vec<Event>, Failure> {
    let transaction = client
        .build_transaction()
        .isolation_level(IsolationLevel::ReadCommitted)
        .start()
        .await?;
    let (row, held) = try_join(lock(&transaction, &append.session), async {
        match &append.lease {
            Some(lease) => lease::shared(&transaction, &lease.session).await,
            None => Ok(None),
        }
    })
    .await?;
    let actual = row.as_ref().map_or(Ok(0), |row| row.try_get(0).map(unsigned))?;
    // First of all: whoever was let in before is not refused because of what came later.
    if append.may_be_kept() && actual > append.expected_seq && is_ours(&transaction, append).await? {
        return Ok(append.events.clone());
    }
    if row.is_some() {
        // With its row in hand, no earlier attempt is still under way.
        append.may_be_kept.store(false, Ordering::Relaxed);
    }
    if let Some(lease) = &append.lease {
        crate::lease::check_current(held.as_ref(), lease)?;
    }
    if actual != append.expected_seq {
        return Err(append.conflict(actual));
    }
    if append.events.is_empty() {
        return Ok(Vec::new());
    }
    let before = match &row {
        Some(row) => derived::read(&transaction, &append.session, row).await?,
        None => SessionIndex::default(),
    };
    write(&transaction, append, &before).await?;
    append.may_be_kept.store(true, Ordering::Relaxed);
    transaction
        .commit()
        .await
        .map_err(|error| Failure::Unknown(Box::new(Failure::Sql(error))))?;
    append.may_be_kept.store(false, Ordering::Relaxed);
    Ok(append.events.clone())
}

/// The session's row, which nobody else changes until the transaction ends.
async fn lock(transaction: &Transaction<'_>, session: &SessionId) -> Result<Option<Row>, Failure> {
    let select = transaction
        .prepare_cached(
            "SELECT last_seq, created, updated, title, directory, open_turn, served, awaits
             FROM aish.sessions WHERE id = $1 FOR UPDATE",
        )
        .await?;
    Ok(transaction.query_opt(&select, &[&storable(session.as_str())]).await?)
}

/// Whether the event after the expected one was written by this very append.
async fn is_ours(transaction: &Transaction<'_>, append: &Append) -> Result<bool, Failure> {
    let select = transaction
        .prepare_cached("SELECT write FROM aish.events WHERE session = $1 AND seq = $2")
        .await?;
    let first = signed(append.expected_seq.saturating_add(1));
    let row = transaction
        .query_opt(&select, &[&storable(append.session.as_str()), &first])
        .await?;
    let number: Option<i64> = row.map(|row| row.try_get(0)).transpose()?.flatten();
    Ok(number == Some(append.number))
}

async fn write(transaction: &Transaction<'_>, append: &Append, before: &SessionIndex) -> Result<(), Failure> {
    let after = derived::claim(transaction, before, &append.events).await?;
    // Nothing is sent behind this until it is known that nobody else made the session at the same moment.
    let model = derived::model_of(&append.events);
    derived::write_summary(transaction, &append.session, append.expected_seq, &after, model).await?;
    try_join(
        insert(transaction, append),
        derived::write_waits(transaction, &append.session, before, &after),
    )
    .await?;
    Ok(())
}

/// The columns of the events, one list each: as many events as there are go in one statement.
#[derive(Default)]
struct Columns {
    seqs: Vec<i64>,
    turns: Vec<i64>,
    times: Vec<i64>,
    versions: Vec<i64>,
    kinds: Vec<String>,
    contents: Vec<String>,
    data: Vec<Option<String>>,
    exact: Vec<Option<Vec<u8>>>,
    words: Vec<Option<String>>,
}

impl Columns {
    fn push(&mut self, event: &Event) {
        let data = event.body.data_json();
        self.seqs.push(signed(event.seq));
        self.turns.push(signed(event.turn));
        self.times.push(signed(event.time));
        self.versions.push(i64::from(event.version));
        self.kinds.push(storable(event.body.kind()).into_owned());
        self.contents.push(storable(&event.content).into_owned());
        self.data.push((data != "null").then_some(data));
        self.exact.push(rows::exact(&event.content));
        self.words.push(Words::of(event).map(|words| words.vector()));
    }
}

async fn insert(transaction: &Transaction<'_>, append: &Append) -> Result<(), Failure> {
    let mut columns = Columns::default();
    append.events.iter().for_each(|event| columns.push(event));
    let statement = transaction
        .prepare_cached(
            "INSERT INTO aish.events
                 (session, seq, turn, time, version, kind, content, data, exact, words, write)
             SELECT $1, e.seq, e.turn, e.time, e.version, e.kind, e.content, e.data, e.exact, e.words::tsvector,
                 CASE WHEN e.seq = $2 THEN $3::bigint END
             FROM unnest($4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::text[], $9::text[], $10::text[],
                 $11::bytea[], $12::text[]) AS e (seq, turn, time, version, kind, content, data, exact, words)",
        )
        .await?;
    let first = signed(append.expected_seq.saturating_add(1));
    transaction
        .execute(
            &statement,
            &[
                &storable(append.session.as_str()),
                &first,
                &append.number,
                &columns.seqs,
                &columns.turns,
                &columns.times,
                &columns.versions,
                &columns.kinds,
                &columns.contents,
                &columns.data,
                &columns.exact,
                &columns.words,
            ],
        )
        .await?;
    Ok(())
}
