//! Appending.
//!
//! **At one go.** What is derived of the session is known ([`Known`]: who drives a turn appends again and again to a session that nobody
//! else writes to) or read first, without a lock. Then the append is the one statement of `placing`, which writes nothing if the session
//! is not where it was read: with an append comes whatever is derived of a session, so a continuation that waited there still waits,
//! and this claims it.
//!
//! **Step by step.** Where that wrote nothing, and always where a request's key is taken (which is of no session) or a continuation is
//! claimed that does not wait, it is a transaction under READ COMMITTED. The row of the lease is locked first, so that a take-over comes
//! wholly before or wholly after, and then that of the session, and with it everything that is derived of the session: what is read
//! after that holds until the commit.
//!
//! **A lost answer to COMMIT.** If the connection breaks there, the events may be kept or not. Each append has a random number
//! that is stored with its first event. The work is simply done again, step by step: it waits for the row, which the lost transaction
//! holds until it has ended one way or the other, and then either finds its own number in its own place, or nothing of it. A lost
//! statement that the server had not begun holds no row, and may still be on its way: it writes nothing once the session has gone on or
//! the lease is another's, but until then nobody may say that the append failed.
//!
//! **Durability.** Both kinds are on the disk before the answer. [`Durability::Committed`](crate::Durability::Committed) asks
//! for less, but a database is another process than ours, and would forget by its crash what we go on from.

use super::derived;
use super::fail::Failure;
use super::lease::{self, ClockOffset};
use super::placing::{EventRows, Placed, Placing, Taken, place};
use super::rows::{signed, storable, unsigned};
use crate::index::SessionIndex;
use crate::waiting::request_of;
use crate::{Hold, Lease, Pending, StoreError};
use aish_core::event::{Body, Draft, Event};
use aish_core::id::SessionId;
use deadpool_postgres::{GenericClient, Object, Transaction};
use futures_util::future::try_join;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use tokio_postgres::Row;

/// Sessions whose index is known at once; more than turns usually run.
const KNOWN_MAX: usize = 1_024;

/// What was derived of sessions when this process last appended to them, while their turns run: a turn that waits or is over is in
/// the database and nowhere else (SPEC 9.5).
#[derive(Debug, Default)]
pub(super) struct Known(Mutex<HashMap<SessionId, SessionIndex>>);

impl Known {
    /// Takes out what is known of a session, if it is of that event.
    fn take(&self, session: &SessionId, seq: u64) -> Option<SessionIndex> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.remove(session).filter(|index| index.events == seq)
    }

    fn keep(&self, session: &SessionId, mut index: SessionIndex) {
        index.pending.retain(Pending::is_open);
        if index.open_turn.is_none() || !index.pending.is_empty() {
            return;
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KNOWN_MAX {
            // What is not known is read.
            known.clear();
        }
        known.insert(session.clone(), index);
    }
}

/// What is to be appended, however often it takes.
pub(super) struct Append {
    session: SessionId,
    expected_seq: u64,
    /// In the places that they have if nobody else was faster.
    pub(super) events: Vec<Event>,
    rows: EventRows,
    hold: Hold,
    /// By its maker's clock, in milliseconds since the Unix epoch.
    time: u64,
    /// Tells this append from every other.
    number: i64,
    /// Set once the database was told to commit, until it is settled: a second attempt that fails says nothing of the first.
    may_be_kept: AtomicBool,
}

impl Append {
    pub(super) fn new(
        session: &SessionId,
        expected_seq: u64,
        drafts: Vec<Draft>,
        time: u64,
        hold: Hold,
    ) -> Result<Self, StoreError> {
        let random = getrandom::u64().map_err(|error| StoreError::Io {
            attempt: "appending to the ledger".to_owned(),
            source: Box::new(error),
        })?;
        let seqs = (1..).map(|n: u64| expected_seq.saturating_add(n));
        let placed = seqs.zip(drafts).map(|(seq, draft)| draft.place(session, seq, time));
        let events: Vec<Event> = placed.collect();
        let number = i64::from_ne_bytes(random.to_ne_bytes());
        Ok(Self {
            session: session.clone(),
            expected_seq,
            rows: EventRows::new(number, &events),
            events,
            hold,
            time,
            number,
            may_be_kept: AtomicBool::new(false),
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
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

/// What an append came to.
struct Came {
    /// What is derived of the session now, if that is known.
    index: Option<SessionIndex>,
    /// The lease that was taken with it.
    taken: Option<Taken>,
}

/// Appends, or finds that it already has; the lease that is in hand after it.
pub(super) async fn append(
    client: &mut Object,
    append: &Append,
    known: &Known,
    offset: &ClockOffset,
) -> Result<Option<Lease>, Failure> {
    let came = match at_one_go(client, append, known).await? {
        Some(came) => came,
        None => step_by_step(client, append).await?,
    };
    if let Some(index) = came.index {
        known.keep(&append.session, index);
    }
    if let Hold::Takes { owner, .. } = &append.hold
        && let Some(taken) = came.taken
    {
        offset.note(taken.database_now, append.time);
        return Ok(Some(Lease {
            session: append.session.clone(),
            owner: owner.clone(),
            fence: taken.fence,
        }));
    }
    Ok(append.hold.left(append.events.len()))
}

/// Writes it at one go; `None` if it cannot be, or was not: then nothing is written.
async fn at_one_go(client: &Object, append: &Append, known: &Known) -> Result<Option<Came>, Failure> {
    let takes_key = append.events.iter().any(|event| request_of(event).is_some());
    if append.is_empty() || append.may_be_kept() || takes_key {
        return Ok(None);
    }
    let Some(before) = before(client, append, known).await? else {
        return Ok(None);
    };
    let Some(after) = followed(&before, &append.events) else {
        return Ok(None);
    };
    append.may_be_kept.store(true, Ordering::Relaxed);
    match write(client, append, &before, &after).await {
        Ok(placed) => {
            append.may_be_kept.store(false, Ordering::Relaxed);
            Ok(match placed {
                Placed::Not => None,
                Placed::Written(taken) => Some(Came {
                    index: Some(after),
                    taken,
                }),
            })
        }
        Err(failure) if failure.is_refusal() => {
            append.may_be_kept.store(false, Ordering::Relaxed);
            Err(failure)
        }
        // It may have been the commit that failed, or its answer that was not understood.
        Err(failure) => Err(Failure::Unknown(Box::new(failure))),
    }
}

/// What is derived of the session where the append expects it to be; `None` if it is not there.
async fn before(client: &Object, append: &Append, known: &Known) -> Result<Option<SessionIndex>, Failure> {
    if append.expected_seq == 0 {
        return Ok(Some(SessionIndex::default()));
    }
    if let Some(index) = known.take(&append.session, append.expected_seq) {
        return Ok(Some(index));
    }
    let Some(row) = look(client, &append.session, "").await? else {
        return Ok(None);
    };
    let index = derived::read(client, &append.session, &row).await?;
    Ok(Some(index).filter(|index| index.events == append.expected_seq))
}

/// What the index comes to by these events; `None` if they resume what does not wait, as far as it says.
fn followed(before: &SessionIndex, events: &[Event]) -> Option<SessionIndex> {
    let mut after = before.clone();
    for event in events {
        if let Body::Resumed(data) = &event.body {
            let mut open = after.pending.iter().filter(|pending| pending.is_open());
            open.find(|pending| pending.continuation == data.continuation)?;
        }
        after.apply(event);
    }
    Some(after)
}

async fn step_by_step(client: &mut Object, append: &Append) -> Result<Came, Failure> {
    let transaction = GenericClient::transaction(client).await?;
    // The lease first, as by the one statement: of two that want both, none waits for what the other has.
    let (held, row) = try_join(
        async {
            match &append.hold {
                Hold::Keeps(lease) => lease::locked(&transaction, &lease.session, "FOR SHARE").await,
                Hold::GivesBack(lease) => lease::locked(&transaction, &lease.session, "FOR NO KEY UPDATE").await,
                Hold::Nothing | Hold::Takes { .. } => Ok(None),
            }
        },
        look(&transaction, &append.session, "FOR UPDATE"),
    )
    .await?;
    let actual = row.as_ref().map_or(Ok(0), |row| row.try_get(0).map(unsigned))?;
    // First of all: whoever was let in before is not refused because of what came later.
    if append.may_be_kept() && actual > append.expected_seq && is_ours(&transaction, append).await? {
        return Ok(Came {
            index: None,
            // Whoever wants it asks for it: it is its owner's already, or was never taken.
            taken: None,
        });
    }
    if let Some(lease) = append.hold.lease() {
        crate::lease::check_current(held.as_ref(), lease)?;
    }
    if actual != append.expected_seq {
        return Err(append.conflict(actual));
    }
    let before = match &row {
        Some(row) => derived::read(&transaction, &append.session, row).await?,
        None => SessionIndex::default(),
    };
    if append.is_empty() {
        return Ok(Came {
            index: Some(before),
            taken: None,
        });
    }
    let after = derived::claim(&transaction, &before, &append.events).await?;
    let Placed::Written(taken) = write(&transaction, append, &before, &after).await? else {
        // Somebody else made the session at the same moment.
        return Err(Failure::Raced);
    };
    append.may_be_kept.store(true, Ordering::Relaxed);
    transaction
        .commit()
        .await
        .map_err(|error| Failure::Unknown(Box::new(Failure::Sql(error))))?;
    append.may_be_kept.store(false, Ordering::Relaxed);
    Ok(Came {
        index: Some(after),
        taken,
    })
}

async fn write(
    client: &impl GenericClient,
    append: &Append,
    before: &SessionIndex,
    after: &SessionIndex,
) -> Result<Placed, Failure> {
    let placing = Placing {
        session: &append.session,
        expected_seq: append.expected_seq,
        before,
        after,
        rows: &append.rows,
        hold: &append.hold,
        now: append.time,
    };
    place(client, &placing).await
}

/// The session's row; `FOR UPDATE`, nobody else changes it until the transaction ends.
async fn look(client: &impl GenericClient, session: &SessionId, lock: &'static str) -> Result<Option<Row>, Failure> {
    let select = client
        .prepare_cached(&format!(
            "SELECT last_seq, created, updated, title, directory, open_turn, served, awaits
             FROM aish.sessions WHERE id = $1 {lock}"
        ))
        .await?;
    Ok(client.query_opt(&select, &[&storable(session.as_str())]).await?)
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
