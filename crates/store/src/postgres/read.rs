//! What reads the ledger: events, whole or undecoded, the list of sessions, and what was typed. A long answer is asked for in
//! pages, so that none of its statements takes long and none of its rows waits in memory for all the others.

use super::fail::Failure;
use super::rows::{self, EVENT_COLUMNS, signed, storable, unsigned};
use crate::index::resolve;
use crate::typed::Gathered;
use crate::{ID_PREFIX_CHARS_MIN, RawEvent, SessionFilter, SessionSummary, StoreError, TypedKind, TypedLine};
use aish_core::event::{Command, Event, TurnStarted};
use aish_core::id::SessionId;
use deadpool_postgres::{GenericClient, Object};
use tokio_postgres::Row;

/// Events of one page; each may be a megabyte.
const PAGE_EVENTS: usize = 128;
/// Typed lines of one page.
const PAGE_LINES: i64 = 200;

/// The events after `after_seq`, decoded.
pub(super) async fn load(client: &Object, session: &SessionId, after_seq: u64) -> Result<Vec<Event>, Failure> {
    let mut events: Vec<Event> = Vec::new();
    loop {
        let seen = events.last().map_or(after_seq, |event| event.seq);
        let page = page(client, session, seen, PAGE_EVENTS).await?;
        for row in &page {
            events.push(rows::columns(row, session)?.decode(session)?);
        }
        if page.len() < PAGE_EVENTS {
            return Ok(events);
        }
    }
}

/// The events after `after_seq`, at most `limit`, as written.
pub(super) async fn load_raw(
    client: &impl GenericClient,
    session: &SessionId,
    after_seq: u64,
    limit: usize,
) -> Result<Vec<RawEvent>, Failure> {
    let mut events: Vec<RawEvent> = Vec::new();
    loop {
        let seen = events.last().map_or(after_seq, |event| event.seq);
        let wanted = PAGE_EVENTS.min(limit.saturating_sub(events.len()));
        let page = page(client, session, seen, wanted).await?;
        for row in &page {
            events.push(rows::columns(row, session)?.to_raw());
        }
        if page.len() < PAGE_EVENTS || events.len() >= limit {
            return Ok(events);
        }
    }
}

async fn page(
    client: &impl GenericClient,
    session: &SessionId,
    after_seq: u64,
    limit: usize,
) -> Result<Vec<Row>, Failure> {
    let select = client
        .prepare_cached(&format!(
            "SELECT {EVENT_COLUMNS} FROM aish.events WHERE session = $1 AND seq > $2 ORDER BY seq LIMIT $3"
        ))
        .await?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let session = storable(session.as_str());
    Ok(client.query(&select, &[&session, &signed(after_seq), &limit]).await?)
}

/// The sessions, the most recently used first.
pub(super) async fn list(client: &Object, filter: &SessionFilter) -> Result<Vec<SessionSummary>, Failure> {
    let select = client
        .prepare_cached(
            "SELECT id, created, updated, last_seq, title, directory, waiting FROM aish.sessions
             WHERE ($1::text IS NULL OR directory = $1) AND ($2::text IS NULL OR model IS DISTINCT FROM $2)
                 AND ($3::text[] IS NULL OR id = ANY ($3))
                 AND ($4::text IS NULL OR (updated, id) < (SELECT updated, id FROM aish.sessions WHERE id = $4))
             ORDER BY updated DESC, id DESC LIMIT $5",
        )
        .await?;
    let directory = filter.directory.as_deref().map(storable);
    let not_by = filter.not_by.as_deref().map(storable);
    let only = filter
        .only
        .as_deref()
        .map(|only| only.iter().map(|id| storable(id.as_str())).collect::<Vec<_>>());
    let before = filter.before.as_ref().map(|id| storable(id.as_str()));
    let limit = filter.limit.map(|limit| i64::try_from(limit).unwrap_or(i64::MAX));
    let rows = client
        .query(&select, &[&directory, &not_by, &only, &before, &limit])
        .await?;
    rows.iter().map(summary).collect()
}

fn summary(row: &Row) -> Result<SessionSummary, Failure> {
    Ok(SessionSummary {
        id: SessionId::new(row.try_get::<_, String>(0)?),
        created: unsigned(row.try_get(1)?),
        updated: unsigned(row.try_get(2)?),
        events: unsigned(row.try_get(3)?),
        title: row.try_get(4)?,
        directory: row.try_get(5)?,
        waiting: row.try_get(6)?,
    })
}

/// The one session whose id is, begins with or ends with `prefix`.
pub(super) async fn find(client: &Object, prefix: &str) -> Result<SessionId, Failure> {
    let ids = |rows: Vec<Row>| -> Result<Vec<SessionId>, Failure> {
        let ids = rows.iter().map(|row| Ok(SessionId::new(row.try_get::<_, String>(0)?)));
        ids.collect()
    };
    let stored = storable(prefix);
    let exact = client
        .prepare_cached("SELECT id FROM aish.sessions WHERE id = $1")
        .await?;
    if let Some(found) = ids(client.query(&exact, &[&stored]).await?)?.pop() {
        return Ok(found);
    }
    if prefix.chars().count() < ID_PREFIX_CHARS_MIN {
        return Err(Failure::Store(StoreError::NotFound(prefix.to_owned())));
    }
    let either_end = client
        .prepare_cached(
            "SELECT id FROM aish.sessions
             WHERE left(id, char_length($1::text)) = $1 OR right(id, char_length($1::text)) = $1",
        )
        .await?;
    Ok(resolve(prefix, ids(client.query(&either_end, &[&stored]).await?)?)?)
}

/// The lines that were typed, the newest first. Where a message was said is in the event before it.
pub(super) async fn typed(client: &Object, lines_max: usize, not_by: &str) -> Result<Vec<TypedLine>, Failure> {
    let select = client
        .prepare_cached(
            "SELECT e.time, e.session, e.seq, e.kind, left(e.content, 16385), CASE WHEN e.kind = 'command' THEN e.data END,
                 CASE WHEN e.kind = 'user' THEN before.data END
             FROM aish.events e LEFT JOIN aish.events before
                 ON before.session = e.session AND before.seq = e.seq - 1 AND before.kind = 'turn_started'
             WHERE e.kind IN ('user', 'command') AND (e.time, e.session, e.seq) < ($1, $2, $3)
             ORDER BY e.time DESC, e.session DESC, e.seq DESC LIMIT $4",
        )
        .await?;
    let mut gathered = Gathered::new(lines_max);
    let (mut time, mut session, mut seq) = (i64::MAX, String::new(), i64::MAX);
    while !gathered.is_full() {
        let page = client.query(&select, &[&time, &session, &seq, &PAGE_LINES]).await?;
        let Some(last) = page.last() else { break };
        (time, session, seq) = (last.try_get(0)?, last.try_get(1)?, last.try_get(2)?);
        for row in &page {
            look_at(row, not_by, &mut gathered)?;
        }
    }
    Ok(gathered.into_lines())
}

fn look_at(row: &Row, not_by: &str, gathered: &mut Gathered) -> Result<(), Failure> {
    let time = unsigned(row.try_get(0)?);
    if gathered.is_full() {
        return Ok(());
    }
    if row.try_get::<_, &str>(3)? == "command" {
        let data: Option<&str> = row.try_get(5)?;
        // What cannot be read was not typed, as far as anybody can tell.
        let command: Command = data
            .and_then(|data| serde_json::from_str(data).ok())
            .unwrap_or_default();
        gathered.look_at(&command.line, |text| TypedLine {
            text,
            kind: TypedKind::Command,
            time,
            directory: command.directory.clone(),
        });
        return Ok(());
    }
    let begun: Option<TurnStarted> = row
        .try_get::<_, Option<&str>>(6)?
        .and_then(|data| serde_json::from_str(data).ok());
    if begun.as_ref().is_some_and(|begun| begun.model == not_by) {
        gathered.pass_over();
        return Ok(());
    }
    gathered.look_at(row.try_get(4)?, |text| TypedLine {
        text,
        kind: TypedKind::Message,
        time,
        directory: begun.and_then(|begun| begun.directory).unwrap_or_default(),
    });
    Ok(())
}
