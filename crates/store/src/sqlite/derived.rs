//! The derived tables: [`SessionIndex`] kept in the file, followed by each append in its own transaction, and rebuilt
//! from the events when asked.

use super::fail::Failure;
use super::read::load_raw;
use crate::index::{SessionIndex, WaitingCall};
use crate::{Pending, PendingState, RawEvent};
use aish_core::event::{Body, Event};
use aish_core::id::{CallId, ContinuationId, SessionId};
use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};

/// Events read at once while rebuilding: a session may be larger than the memory it is worth.
const REBUILD_BATCH_EVENTS: usize = 1_000;

impl PendingState {
    fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Answered => "answered",
            Self::Closed => "closed",
        }
    }

    fn parse(text: &str) -> Self {
        match text {
            "open" => Self::Open,
            "answered" => Self::Answered,
            // Nothing waits for a state of a newer aish.
            _ => Self::Closed,
        }
    }
}

/// Brings the index of a session to its new events, the last of the ledger.
pub(super) fn follow(transaction: &Transaction<'_>, number: i64, events: &[Event]) -> rusqlite::Result<()> {
    let Some(first) = events.first() else {
        return Ok(());
    };
    let mut index = read_index(transaction, number, &first.session)?;
    let before = index.clone();
    for event in events {
        index.apply(event);
        if let Body::Suspended(_) = event.body
            && let Some(pending) = index.pending.last()
        {
            insert_pending(transaction, number, event.seq, pending)?;
        }
    }
    write_index(transaction, number, &before, &index)
}

/// Derives every index again, from the events alone.
pub(super) fn rebuild(connection: &mut Connection) -> Result<(), Failure> {
    let transaction = Transaction::new(connection, TransactionBehavior::Immediate)?;
    transaction.execute_batch("DELETE FROM summaries; DELETE FROM waiting_calls; DELETE FROM pending;")?;
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
            let events: Vec<Event> = batch.into_iter().map(|raw| event(&session, raw)).collect();
            follow(&transaction, number, &events)?;
        }
    }
    transaction.commit()?;
    Ok(())
}

/// An event for the index only: one that cannot be read counts, and says nothing else.
fn event(session: &SessionId, raw: RawEvent) -> Event {
    let body = Body::decode(&raw.kind, &raw.data).unwrap_or(Body::Unknown {
        kind: raw.kind,
        data: serde_json::Value::Null,
    });
    Event {
        session: session.clone(),
        seq: raw.seq,
        turn: raw.turn,
        time: raw.time,
        version: raw.version,
        content: raw.content,
        body,
    }
}

/// What became of a suspension.
pub(super) fn pending(connection: &Connection, continuation: &ContinuationId) -> Result<Option<Pending>, Failure> {
    let found = connection
        .prepare_cached(
            "SELECT sessions.id, call, state FROM pending JOIN sessions USING (number) WHERE continuation = ?1",
        )?
        .query_row([continuation.as_str()], |row| {
            Ok(Pending {
                continuation: continuation.clone(),
                session: SessionId::new(row.get::<_, String>(0)?),
                call: row.get::<_, Option<String>>(1)?.map(CallId::new),
                state: PendingState::parse(row.get_ref(2)?.as_str()?),
            })
        })
        .optional()?;
    Ok(found)
}

/// The index as it stands; of the suspensions, those that wait.
fn read_index(transaction: &Transaction<'_>, number: i64, session: &SessionId) -> rusqlite::Result<SessionIndex> {
    let summary = transaction
        .prepare_cached(
            "SELECT created, updated, events, title, directory, open_turn FROM summaries WHERE number = ?1",
        )?
        .query_row([number], |row| {
            Ok(SessionIndex {
                created: row.get(0)?,
                updated: row.get(1)?,
                events: row.get(2)?,
                title: row.get(3)?,
                directory: row.get(4)?,
                open_turn: row.get(5)?,
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
        .prepare_cached("SELECT continuation, call FROM pending WHERE number = ?1 AND state = 'open' ORDER BY seq")?
        .query_map([number], |row| {
            Ok(Pending {
                continuation: ContinuationId::new(row.get::<_, String>(0)?),
                session: session.clone(),
                call: row.get::<_, Option<String>>(1)?.map(CallId::new),
                state: PendingState::Open,
            })
        })?
        .collect::<Result<_, _>>()?;
    Ok(index)
}

fn insert_pending(transaction: &Transaction<'_>, number: i64, seq: u64, pending: &Pending) -> rusqlite::Result<()> {
    // An id that was used before is an error of its maker; the events are the truth and the first use stands.
    transaction
        .prepare_cached(
            "INSERT OR IGNORE INTO pending (continuation, number, seq, call, state) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![
            pending.continuation.as_str(),
            number,
            seq,
            pending.call.as_ref().map(CallId::as_str),
            pending.state.as_str(),
        ])?;
    Ok(())
}

fn write_index(
    transaction: &Transaction<'_>,
    number: i64,
    before: &SessionIndex,
    index: &SessionIndex,
) -> rusqlite::Result<()> {
    transaction
        .prepare_cached(
            "INSERT OR REPLACE INTO summaries (number, created, updated, events, title, directory, open_turn, waiting)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
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
        ])?;
    if before.waiting_calls != index.waiting_calls {
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
    for pending in index
        .pending
        .iter()
        .filter(|pending| pending.state != PendingState::Open)
    {
        settle.execute(params![pending.state.as_str(), pending.continuation.as_str(), number])?;
    }
    Ok(())
}
