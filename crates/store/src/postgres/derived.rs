//! The derived tables: [`SessionIndex`] kept in rows, followed by each append in its own transaction, under the lock on the
//! session's row.

use super::fail::Failure;
use super::rows::{signed, storable, unsigned};
use crate::index::{SessionIndex, WaitingCall};
use crate::waiting::request_of;
use crate::{Pending, PendingState, StoreError};
use aish_core::event::{Body, Event, RequestKey};
use aish_core::id::{CallId, ContinuationId, SessionId};
use deadpool_postgres::{GenericClient, Transaction};
use futures_util::future::try_join3;
use tokio_postgres::Row;

/// The index as it stands; of the suspensions, those that wait. `row` is that of [`super::write`]'s lock.
pub(super) async fn read(
    transaction: &Transaction<'_>,
    session: &SessionId,
    row: &Row,
) -> Result<SessionIndex, Failure> {
    let mut index = SessionIndex {
        events: unsigned(row.try_get(0)?),
        created: unsigned(row.try_get(1)?),
        updated: unsigned(row.try_get(2)?),
        title: row.try_get(3)?,
        directory: row.try_get(4)?,
        open_turn: row.try_get::<_, Option<i64>>(5)?.map(unsigned),
        served: row.try_get(6)?,
        waiting_calls: Vec::new(),
        pending: Vec::new(),
    };
    if row.try_get::<_, bool>(7)? {
        index.waiting_calls = read_waiting_calls(transaction, session).await?;
        index.pending = read_open(transaction, session).await?;
    }
    Ok(index)
}

async fn read_waiting_calls(transaction: &Transaction<'_>, session: &SessionId) -> Result<Vec<WaitingCall>, Failure> {
    let select = transaction
        .prepare_cached(
            "SELECT call, needs_answer, at_client FROM aish.waiting_calls WHERE session = $1 ORDER BY position",
        )
        .await?;
    let rows = transaction.query(&select, &[&storable(session.as_str())]).await?;
    let calls = rows.iter().map(|row| {
        Ok(WaitingCall {
            call: CallId::new(row.try_get::<_, String>(0)?),
            needs_answer: row.try_get(1)?,
            at_client: row.try_get(2)?,
        })
    });
    calls.collect()
}

async fn read_open(transaction: &Transaction<'_>, session: &SessionId) -> Result<Vec<Pending>, Failure> {
    let select = transaction
        .prepare_cached(
            "SELECT continuation, session, seq, call, expires, state FROM aish.pending
             WHERE session = $1 AND state = 'open' ORDER BY seq",
        )
        .await?;
    let rows = transaction.query(&select, &[&storable(session.as_str())]).await?;
    rows.iter().map(pending).collect()
}

/// A row of `continuation, session, seq, call, expires, state`.
pub(super) fn pending(row: &Row) -> Result<Pending, Failure> {
    Ok(Pending {
        continuation: ContinuationId::new(row.try_get::<_, String>(0)?),
        session: SessionId::new(row.try_get::<_, String>(1)?),
        seq: unsigned(row.try_get(2)?),
        call: row.try_get::<_, Option<String>>(3)?.map(CallId::new),
        expires: row.try_get::<_, Option<i64>>(4)?.map(unsigned),
        state: PendingState::parse(row.try_get(5)?),
    })
}

/// Folds the new events, claiming what they resume and taking the keys of their requests: what is resumed must wait as this
/// transaction sees it, and a key must be free.
pub(super) async fn claim(
    transaction: &Transaction<'_>,
    before: &SessionIndex,
    events: &[Event],
) -> Result<SessionIndex, Failure> {
    let mut index = before.clone();
    for event in events {
        index.check_claim(event)?;
        if let Body::Resumed(data) = &event.body {
            claim_one(transaction, &event.session, &data.continuation).await?;
        }
        if let Some(asked) = request_of(event)
            && !takes_key(transaction, event, asked).await?
        {
            return Err(Failure::Store(StoreError::KeyUsed(asked.key.clone())));
        }
        index.apply(event);
    }
    Ok(index)
}

/// One that this session never was suspended under (an imported log may hold anything), or was by this very append, is nobody
/// else's to claim.
async fn claim_one(transaction: &Transaction<'_>, session: &SessionId, id: &ContinuationId) -> Result<(), Failure> {
    let update = transaction
        .prepare_cached(
            "UPDATE aish.pending SET state = 'answered' WHERE continuation = $1 AND session = $2 AND state = 'open'
             RETURNING seq",
        )
        .await?;
    let (id_stored, session) = (storable(id.as_str()), storable(session.as_str()));
    if transaction.query_opt(&update, &[&id_stored, &session]).await?.is_some() {
        return Ok(());
    }
    let select = transaction
        .prepare_cached("SELECT 1 FROM aish.pending WHERE continuation = $1 AND session = $2")
        .await?;
    match transaction.query_opt(&select, &[&id_stored, &session]).await? {
        Some(_) => Err(Failure::Store(StoreError::Claimed(id.clone()))),
        None => Ok(()),
    }
}

/// Takes the key of a request; false if another one has it.
pub(super) async fn takes_key(
    transaction: &Transaction<'_>,
    event: &Event,
    asked: &RequestKey,
) -> Result<bool, Failure> {
    let insert = transaction
        .prepare_cached(
            "INSERT INTO aish.requests (key, session, seq, digest) VALUES ($1, $2, $3, $4) ON CONFLICT (key) DO NOTHING",
        )
        .await?;
    let (key, session) = (storable(&asked.key), storable(event.session.as_str()));
    let taken = transaction
        .execute(&insert, &[&key, &session, &signed(event.seq), &asked.digest.as_str()])
        .await?;
    Ok(taken > 0)
}

/// The model that the last turn among these events was begun for.
pub(super) fn model_of(events: &[Event]) -> Option<&str> {
    events.iter().rev().find_map(|event| {
        let Body::TurnStarted(data) = &event.body else {
            return None;
        };
        Some(data.model.as_str())
    })
}

/// Writes the session's row: a new one if nothing was expected, else the one that still is at the expected event. Without a new
/// `model` the old one stays.
pub(super) async fn write_summary(
    transaction: &Transaction<'_>,
    session: &SessionId,
    expected_seq: u64,
    index: &SessionIndex,
    model: Option<&str>,
) -> Result<(), Failure> {
    // Both take the same parameters.
    let sql = if expected_seq == 0 {
        "INSERT INTO aish.sessions
             (id, last_seq, created, updated, title, directory, open_turn, served, waiting, to_drive, awaits, model)
         SELECT $1, $2, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13 WHERE $3 = 0::bigint
         ON CONFLICT (id) DO NOTHING"
    } else {
        "UPDATE aish.sessions SET last_seq = $2, created = $4, updated = $5, title = $6, directory = $7, open_turn = $8,
             served = $9, waiting = $10, to_drive = $11, awaits = $12, model = coalesce($13, model)
         WHERE id = $1 AND last_seq = $3"
    };
    let statement = transaction.prepare_cached(sql).await?;
    let written = transaction
        .execute(
            &statement,
            &[
                &storable(session.as_str()),
                &signed(index.events),
                &signed(expected_seq),
                &signed(index.created),
                &signed(index.updated),
                &storable(&index.title),
                &storable(&index.directory),
                &index.open_turn.map(signed),
                &index.served,
                &index.is_waiting(),
                &index.is_to_be_driven(),
                &awaits(index),
                &model.map(storable),
            ],
        )
        .await?;
    if written == 0 {
        return Err(Failure::Raced);
    }
    Ok(())
}

fn is_open(pending: &Pending) -> bool {
    pending.state == PendingState::Open
}

/// Whether the next append has to look at more than the session's row.
fn awaits(index: &SessionIndex) -> bool {
    !index.waiting_calls.is_empty() || index.pending.iter().any(is_open)
}

/// Writes what changed of the calls that wait and of the suspensions.
pub(super) async fn write_waits(
    transaction: &Transaction<'_>,
    session: &SessionId,
    before: &SessionIndex,
    after: &SessionIndex,
) -> Result<(), Failure> {
    let was_open = |pending: &&Pending| {
        before
            .pending
            .iter()
            .any(|known| known.continuation == pending.continuation)
    };
    let (known, new): (Vec<&Pending>, Vec<&Pending>) = after.pending.iter().partition(was_open);
    let settled: Vec<&Pending> = known.into_iter().filter(|pending| !is_open(pending)).collect();
    try_join3(
        async {
            if before.waiting_calls == after.waiting_calls {
                return Ok(());
            }
            write_waiting_calls(transaction, session, &after.waiting_calls).await
        },
        insert_pending(transaction, &new),
        settle(transaction, session, &settled),
    )
    .await?;
    Ok(())
}

async fn write_waiting_calls(
    transaction: &Transaction<'_>,
    session: &SessionId,
    calls: &[WaitingCall],
) -> Result<(), Failure> {
    let session = storable(session.as_str());
    let delete = transaction
        .prepare_cached("DELETE FROM aish.waiting_calls WHERE session = $1")
        .await?;
    transaction.execute(&delete, &[&session]).await?;
    if calls.is_empty() {
        return Ok(());
    }
    let insert = transaction
        .prepare_cached(
            "INSERT INTO aish.waiting_calls (session, position, call, needs_answer, at_client)
             SELECT $1, w.position, w.call, w.needs_answer, w.at_client
             FROM unnest($2::text[], $3::bool[], $4::bool[]) WITH ORDINALITY AS w (call, needs_answer, at_client, position)",
        )
        .await?;
    let ids: Vec<_> = calls.iter().map(|waiting| storable(waiting.call.as_str())).collect();
    let needs_answer: Vec<bool> = calls.iter().map(|waiting| waiting.needs_answer).collect();
    let at_client: Vec<bool> = calls.iter().map(|waiting| waiting.at_client).collect();
    transaction
        .execute(&insert, &[&session, &ids, &needs_answer, &at_client])
        .await?;
    Ok(())
}

async fn insert_pending(transaction: &Transaction<'_>, new: &[&Pending]) -> Result<(), Failure> {
    for pending in new {
        // An id that was used before is an error of its maker; the events are the truth and the first use stands.
        let insert = transaction
            .prepare_cached(
                "INSERT INTO aish.pending (continuation, session, seq, call, expires, state) VALUES ($1, $2, $3, $4, $5, $6)
                 ON CONFLICT (continuation) DO NOTHING",
            )
            .await?;
        let call = pending.call.as_ref().map(|call| storable(call.as_str()));
        transaction
            .execute(
                &insert,
                &[
                    &storable(pending.continuation.as_str()),
                    &storable(pending.session.as_str()),
                    &signed(pending.seq),
                    &call,
                    &pending.expires.map(signed),
                    &pending.state.as_str(),
                ],
            )
            .await?;
    }
    Ok(())
}

async fn settle(transaction: &Transaction<'_>, session: &SessionId, settled: &[&Pending]) -> Result<(), Failure> {
    for pending in settled {
        let update = transaction
            .prepare_cached("UPDATE aish.pending SET state = $3 WHERE continuation = $1 AND session = $2")
            .await?;
        let (id, session) = (storable(pending.continuation.as_str()), storable(session.as_str()));
        transaction
            .execute(&update, &[&id, &session, &pending.state.as_str()])
            .await?;
    }
    Ok(())
}
