//! What the database answers about turns that wait, requests that were made, and words that were said.

use super::derived::{pending, select_pending};
use super::fail::Failure;
use super::rows::{self, EVENT_COLUMNS, signed, storable, unsigned, wanted};
use crate::query::{Query, snippet};
use crate::waiting::searchable;
use crate::{Hit, KnownRequest, Pending, WaitingCount};
use aish_core::action::Digest;
use aish_core::id::{ContinuationId, SessionId};
use deadpool_postgres::{GenericClient, Object};
use tokio_postgres::Row;

/// What became of a suspension.
pub(super) async fn continuation(client: &Object, id: &ContinuationId) -> Result<Option<Pending>, Failure> {
    let select = client
        .prepare_cached(select_pending!("WHERE continuation = $1"))
        .await?;
    let row = client.query_opt(&select, &[&storable(id.as_str())]).await?;
    row.as_ref().map(pending).transpose()
}

/// The suspension that a session waits under.
pub(super) async fn waiting_under(client: &Object, session: &SessionId) -> Result<Option<Pending>, Failure> {
    let select = client
        .prepare_cached(select_pending!(
            "WHERE session = $1 AND state = 'open' ORDER BY seq DESC LIMIT 1"
        ))
        .await?;
    let row = client.query_opt(&select, &[&storable(session.as_str())]).await?;
    row.as_ref().map(pending).transpose()
}

/// How many sessions wait.
pub(super) async fn waiting_count(client: &Object) -> Result<WaitingCount, Failure> {
    let select = client
        .prepare_cached(
            "SELECT count(*) FILTER (WHERE NOT asks), count(*) FILTER (WHERE asks)
             FROM (SELECT coalesce(bool_or(needs_answer), false) AS asks
                   FROM aish.sessions LEFT JOIN aish.waiting_calls ON session = id WHERE waiting GROUP BY id) AS waits",
        )
        .await?;
    let row = client.query_one(&select, &[]).await?;
    Ok(WaitingCount {
        client: unsigned(row.try_get(0)?),
        approval: unsigned(row.try_get(1)?),
    })
}

/// Suspensions that wait although their time is over.
pub(super) async fn expired(client: &Object, now: u64, limit: usize) -> Result<Vec<Pending>, Failure> {
    let select = client
        .prepare_cached(select_pending!(
            "WHERE state = 'open' AND expires <= $1 ORDER BY expires LIMIT $2"
        ))
        .await?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = client.query(&select, &[&signed(now), &limit]).await?;
    rows.iter().map(pending).collect()
}

/// What was asked under a key.
pub(super) async fn request(client: &Object, key: &str) -> Result<Option<KnownRequest>, Failure> {
    let select = client
        .prepare_cached("SELECT session, seq, digest FROM aish.requests WHERE key = $1")
        .await?;
    let row = client.query_opt(&select, &[&storable(key)]).await?;
    row.map(|row| {
        Ok(KnownRequest {
            session: SessionId::new(row.try_get::<_, String>(0)?),
            seq: unsigned(row.try_get(1)?),
            digest: Digest::new(row.try_get::<_, String>(2)?),
        })
    })
    .transpose()
}

/// Events that are compared to give the best of them first: a word that stands everywhere is not worth more.
const COMPARED_MAX: usize = 20_000;

/// Finds events that hold everything that is looked for.
pub(super) async fn search(client: &Object, query: &Query, limit: usize) -> Result<Vec<Hit>, Failure> {
    let Some(first) = query.first_word() else {
        return Ok(Vec::new());
    };
    let select = client
        .prepare_cached(&format!(
            "SELECT {EVENT_COLUMNS}, session FROM
                 (SELECT *, ts_rank_cd(words, CAST($1::text AS tsquery)) AS worth FROM aish.events
                  WHERE words @@ CAST($1::text AS tsquery) LIMIT {COMPARED_MAX}) AS found
             ORDER BY worth DESC, time DESC LIMIT $2"
        ))
        .await?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = client.query(&select, &[&wanted(&query.terms), &limit]).await?;
    rows.iter().map(|row| hit(row, first)).collect()
}

fn hit(row: &Row, first: &str) -> Result<Hit, Failure> {
    let session = SessionId::new(row.try_get::<_, String>(8)?);
    let event = rows::columns(row, &session)?.decode(&session)?;
    Ok(Hit {
        snippet: snippet(searchable(&event).unwrap_or_default(), first),
        seq: event.seq,
        time: event.time,
        kind: event.body.kind().to_owned(),
        session,
    })
}
