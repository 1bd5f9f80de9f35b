//! The derived tables: [`SessionIndex`] kept in the file, followed by each append in its own transaction, and rebuilt
//! from the events when asked. All of it happens inside a transaction that holds the write lock.

use super::fail::Failure;
use super::read::load_raw;
use super::waiting::storable;
use crate::index::{SessionIndex, WaitingCall};
use crate::row::counted;
use crate::waiting::request_of;
use crate::{Pending, PendingState, StoreError};
use aish_core::event::{Body, Event, RequestKey};
use aish_core::id::{CallId, ContinuationId, SessionId};
use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};

/// Events read at once while rebuilding: a session may be larger than the memory it is worth.
const REBUILD_BATCH_EVENTS: usize = 1_000;

/// Brings the index of a session to its new events, the last of the ledger.
///
/// Claiming is conditional on the index: what is resumed must wait as this transaction sees it, and a key must be free.
pub(super) fn follow(transaction: &Connection, number: i64, events: &[Event]) -> Result<(), Failure> {
    fold(transaction, number, events, |index, event| {
        index.check_claim(event)?;
        if let Body::Resumed(data) = &event.body {
            claim(transaction, number, &data.continuation)?;
        }
        match request_of(event) {
            Some(asked) if !takes_key(transaction, number, event.seq, asked)? => {
                Err(Failure::Store(StoreError::KeyUsed(asked.key.clone())))
            }
            Some(_) | None => Ok(()),
        }
    })
}

/// Folds events into the index of their session, each once `admit` has let it in.
fn fold(
    transaction: &Connection,
    number: i64,
    events: &[Event],
    admit: impl Fn(&SessionIndex, &Event) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let Some(first) = events.first() else {
        return Ok(());
    };
    let mut index = read_index(transaction, number, &first.session)?;
    let calls_before = index.waiting_calls.clone();
    for event in events {
        admit(&index, event)?;
        index.apply(event);
        if let Body::Suspended(_) = event.body
            && let Some(pending) = index.pending.last()
        {
            insert_pending(transaction, number, event.seq, pending)?;
        }
    }
    write_index(transaction, number, &calls_before, &index)?;
    Ok(())
}

/// Claims what is resumed, if it waits. One that this session never was suspended under (an imported log may hold anything) is
/// nobody's to claim.
fn claim(transaction: &Connection, number: i64, id: &ContinuationId) -> Result<(), Failure> {
    let claimed = transaction
        .prepare_cached(
            "UPDATE pending SET state = 'answered' WHERE continuation = ?1 AND number = ?2 AND state = 'open'",
        )?
        .execute(params![id.as_str(), number])?;
    let is_known = || {
        transaction
            .prepare_cached("SELECT 1 FROM pending WHERE continuation = ?1 AND number = ?2")?
            .exists(params![id.as_str(), number])
    };
    if claimed == 0 && is_known()? {
        return Err(Failure::Store(StoreError::Claimed(id.clone())));
    }
    Ok(())
}

/// Takes the key of a request; false where another one has it.
fn takes_key(transaction: &Connection, number: i64, seq: u64, asked: &RequestKey) -> Result<bool, Failure> {
    let taken = transaction
        .prepare_cached("INSERT OR IGNORE INTO requests (key, number, seq, digest) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![asked.key, number, seq, asked.digest.as_str()])?;
    Ok(taken > 0)
}

/// Derives every index again, from the events alone.
pub(super) fn rebuild(connection: &mut Connection) -> Result<(), Failure> {
    let transaction = Transaction::new(connection, TransactionBehavior::Immediate)?;
    transaction.execute_batch(
        "DELETE FROM summaries; DELETE FROM waiting_calls; DELETE FROM pending; DELETE FROM requests;",
    )?;
    let sessions: Vec<(i64, String)> = transaction
        .prepare("SELECT number, id FROM sessions")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    for (number, id) in sessions {
        let session = SessionId::new(id);
        let mut after_seq = 0;
        loop {
            let batch = load_raw(&transaction, &session, after_seq, REBUILD_BATCH_EVENTS)?;
            let Some(last) = batch.last() else { break };
            after_seq = last.seq;
            let events: Vec<Event> = batch.into_iter().map(|raw| counted(&session, raw)).collect();
            fold(&transaction, number, &events, |_, event| {
                // What is written is written: of a key that stands twice the first counts.
                if let Some(asked) = request_of(event) {
                    takes_key(&transaction, number, event.seq, asked)?;
                }
                Ok(())
            })?;
        }
    }
    transaction.commit()?;
    Ok(())
}

/// The index as it stands; of the suspensions, those that wait.
fn read_index(transaction: &Connection, number: i64, session: &SessionId) -> rusqlite::Result<SessionIndex> {
    let summary = transaction
        .prepare_cached(
            "SELECT created, updated, events, title, directory, open_turn, served FROM summaries WHERE number = ?1",
        )?
        .query_row([number], |row| {
            Ok(SessionIndex {
                created: row.get(0)?,
                updated: row.get(1)?,
                events: row.get(2)?,
                title: row.get(3)?,
                directory: row.get(4)?,
                open_turn: row.get(5)?,
                served: row.get(6)?,
                waiting_calls: Vec::new(),
                pending: Vec::new(),
            })
        })
        .optional()?;
    let Some(mut index) = summary else {
        return Ok(SessionIndex::default());
    };
    index.waiting_calls = transaction
        .prepare_cached("SELECT call, needs_answer, at_client FROM waiting_calls WHERE number = ?1 ORDER BY position")?
        .query_map([number], |row| {
            Ok(WaitingCall {
                call: CallId::new(row.get::<_, String>(0)?),
                needs_answer: row.get(1)?,
                at_client: row.get(2)?,
            })
        })?
        .collect::<Result<_, _>>()?;
    index.pending = transaction
        .prepare_cached(
            "SELECT continuation, seq, call, expires FROM pending WHERE number = ?1 AND state = 'open' ORDER BY seq",
        )?
        .query_map([number], |row| {
            Ok(Pending {
                continuation: ContinuationId::new(row.get::<_, String>(0)?),
                session: session.clone(),
                seq: row.get(1)?,
                call: row.get::<_, Option<String>>(2)?.map(CallId::new),
                expires: row.get(3)?,
                state: PendingState::Open,
            })
        })?
        .collect::<Result<_, _>>()?;
    Ok(index)
}

fn insert_pending(transaction: &Connection, number: i64, seq: u64, pending: &Pending) -> rusqlite::Result<()> {
    // An id that was used before is an error of its maker; the events are the truth and the first use stands.
    transaction
        .prepare_cached(
            "INSERT OR IGNORE INTO pending (continuation, number, seq, call, state, expires) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![
            pending.continuation.as_str(),
            number,
            seq,
            pending.call.as_ref().map(CallId::as_str),
            pending.state.as_str(),
            pending.expires.map(storable),
        ])?;
    Ok(())
}

fn write_index(
    transaction: &Connection,
    number: i64,
    calls_before: &[WaitingCall],
    index: &SessionIndex,
) -> rusqlite::Result<()> {
    transaction
        .prepare_cached(
            "INSERT OR REPLACE INTO summaries (number, created, updated, events, title, directory, open_turn, waiting, served)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?
        .execute(params![
            number,
            index.created,
            index.updated,
            index.events,
            index.title,
            index.directory,
            index.open_turn,
            index.is_waiting(),
            index.served,
        ])?;
    if calls_before != index.waiting_calls.as_slice() {
        transaction
            .prepare_cached("DELETE FROM waiting_calls WHERE number = ?1")?
            .execute([number])?;
        let mut insert = transaction.prepare_cached(
            "INSERT INTO waiting_calls (number, position, call, needs_answer, at_client) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?;
        for (position, waiting) in index.waiting_calls.iter().enumerate() {
            insert.execute(params![
                number,
                position,
                waiting.call.as_str(),
                waiting.needs_answer,
                waiting.at_client
            ])?;
        }
    }
    let mut settle =
        transaction.prepare_cached("UPDATE pending SET state = ?1 WHERE continuation = ?2 AND number = ?3")?;
    for pending in index.pending.iter().filter(|pending| !pending.is_open()) {
        settle.execute(params![pending.state.as_str(), pending.continuation.as_str(), number])?;
    }
    Ok(())
}
