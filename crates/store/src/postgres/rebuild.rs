//! The derived tables made again, from the events alone: a session at a time, so that the others go on meanwhile.

use super::derived;
use super::fail::Failure;
use super::placing::{EventRows, Placed, Placing, place};
use super::read;
use super::rows::storable;
use crate::Hold;
use crate::index::SessionIndex;
use crate::row::counted;
use crate::waiting::request_of;
use aish_core::event::Event;
use aish_core::id::SessionId;
use deadpool_postgres::{GenericClient, Object};

/// Events read at once: a session may be larger than the memory it is worth.
const BATCH_EVENTS: usize = 1_000;

/// All sessions that have events.
pub(super) async fn sessions(client: &Object) -> Result<Vec<SessionId>, Failure> {
    let select = client
        .prepare_cached("SELECT DISTINCT session FROM aish.events")
        .await?;
    let rows = client.query(&select, &[]).await?;
    let ids = rows.iter().map(|row| Ok(SessionId::new(row.try_get::<_, String>(0)?)));
    ids.collect()
}

/// Derives what is known of a session again.
pub(super) async fn session(client: &mut Object, session: &SessionId) -> Result<(), Failure> {
    let transaction = GenericClient::transaction(client).await?;
    let id = storable(session.as_str());
    // The row of the session first: nobody appends until this is done.
    for sql in [
        "DELETE FROM aish.sessions WHERE id = $1",
        "DELETE FROM aish.waiting_calls WHERE session = $1",
        "DELETE FROM aish.pending WHERE session = $1",
        "DELETE FROM aish.requests WHERE session = $1",
    ] {
        let delete = transaction.prepare_cached(sql).await?;
        transaction.execute(&delete, &[&id]).await?;
    }
    let mut index = SessionIndex::default();
    let mut rows = EventRows::default();
    loop {
        let batch = read::load_raw(&transaction, session, index.events, BATCH_EVENTS).await?;
        let events: Vec<Event> = batch.into_iter().map(|raw| counted(session, raw)).collect();
        for event in &events {
            index.apply(event);
            if let Some(asked) = request_of(event) {
                // Whoever has it had it first.
                derived::takes_key(&transaction, event, asked).await?;
            }
        }
        rows.note_model(&events);
        if events.len() < BATCH_EVENTS {
            break;
        }
    }
    let placing = Placing {
        session,
        expected_seq: 0,
        before: &SessionIndex::default(),
        after: &index,
        rows: &rows,
        hold: &Hold::Nothing,
        now: 0,
    };
    match place(&transaction, &placing).await? {
        Placed::Written(_) => {}
        Placed::Not => return Err(Failure::Raced),
    }
    transaction.commit().await?;
    Ok(())
}
