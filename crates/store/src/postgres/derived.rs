//! The derived tables: [`SessionIndex`] kept in rows, which each append follows in its own transaction.

use super::fail::Failure;
use super::rows::{signed, storable, unsigned};
use crate::index::{SessionIndex, WaitingCall};
use crate::waiting::request_of;
use crate::{Pending, PendingState, StoreError};
use aish_core::event::{Body, Event, RequestKey};
use aish_core::id::{CallId, ContinuationId, SessionId};
use deadpool_postgres::{GenericClient, Transaction};
use futures_util::future::try_join;
use tokio_postgres::Row;

/// What [`pending`] reads.
macro_rules! select_pending {
    ($rest:literal) => {
        concat!(
            "SELECT continuation, session, seq, call, expires, state FROM aish.pending ",
            $rest
        )
    };
}
pub(super) use select_pending;

/// The index as it stands; of the suspensions, those that wait. `row` is [`super::write`]'s. Where nobody holds that row, what is read
/// here may be newer than it, and never older.
pub(super) async fn read(client: &impl GenericClient, session: &SessionId, row: &Row) -> Result<SessionIndex, Failure> {
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
        (index.waiting_calls, index.pending) =
            try_join(read_waiting_calls(client, session), read_open(client, session)).await?;
    }
    Ok(index)
}

async fn read_waiting_calls(client: &impl GenericClient, session: &SessionId) -> Result<Vec<WaitingCall>, Failure> {
    let select = client
        .prepare_cached(
            "SELECT call, needs_answer, at_client FROM aish.waiting_calls WHERE session = $1 ORDER BY position",
        )
        .await?;
    let rows = client.query(&select, &[&storable(session.as_str())]).await?;
    let calls = rows.iter().map(|row| {
        Ok(WaitingCall {
            call: CallId::new(row.try_get::<_, String>(0)?),
            needs_answer: row.try_get(1)?,
            at_client: row.try_get(2)?,
        })
    });
    calls.collect()
}

async fn read_open(client: &impl GenericClient, session: &SessionId) -> Result<Vec<Pending>, Failure> {
    let select = client
        .prepare_cached(select_pending!("WHERE session = $1 AND state = 'open' ORDER BY seq"))
        .await?;
    let rows = client.query(&select, &[&storable(session.as_str())]).await?;
    rows.iter().map(pending).collect()
}

/// A row of [`select_pending`].
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
    // What is claimed is settled by that; one that is opened by this very append is yet to be written.
    let is_new = |id: &ContinuationId| before.pending.iter().all(|known| known.continuation != *id);
    for event in events {
        if let Body::Resumed(data) = &event.body
            && !is_new(&data.continuation)
        {
            index
                .pending
                .retain(|pending| pending.continuation != data.continuation);
        }
    }
    Ok(index)
}

/// One that this session never was suspended under (an imported log may hold anything), or was by this very append, is nobody
/// else's to claim.
async fn claim_one(transaction: &Transaction<'_>, session: &SessionId, id: &ContinuationId) -> Result<(), Failure> {
    let update = transaction
        .prepare_cached(
            "UPDATE aish.pending SET state = 'answered' WHERE continuation = $1 AND session = $2 AND state = 'open'",
        )
        .await?;
    let (id_stored, session) = (storable(id.as_str()), storable(session.as_str()));
    if transaction.execute(&update, &[&id_stored, &session]).await? > 0 {
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
