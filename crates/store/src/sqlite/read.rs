//! What reads the ledger: events, whole or undecoded, and the list of sessions.

use super::batch::Batch;
use super::fail::Failure;
use super::schema::Place;
use crate::index::resolve;
use crate::row::{Columns, unreadable};
use crate::typed::Gathered;
use crate::{ID_PREFIX_CHARS_MIN, RawEvent, SessionFilter, SessionSummary, StoreError, TypedKind, TypedLine};
use aish_core::event::TurnStarted;
use aish_core::id::SessionId;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension as _, Row, named_params, params};
use std::ops::ControlFlow;

const SELECT_EVENTS: &str = "SELECT place, turn, time, version, kind, content, data FROM events
    WHERE place > ?1 AND place <= ?2 ORDER BY place LIMIT ?3";

/// Events handed on at once: enough that handing on costs nothing, few enough that the first is decoded soon.
const BATCH_EVENTS_MAX: usize = 512;
/// A batch is handed on once it has this much text, however few events that is.
const BATCH_TEXT_BYTES: usize = 1 << 20;

/// `LIMIT` without a limit.
const UNLIMITED: i64 = -1;

/// The number of a session in this file, if it is there.
pub(super) fn session_number(connection: &Connection, session: &SessionId) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached("SELECT number FROM sessions WHERE id = ?1")?
        .query_row([session.as_str()], |row| row.get(0))
        .optional()
}

/// The seq of a session's last event, 0 if it has none.
pub(super) fn last_seq(connection: &Connection, number: i64) -> rusqlite::Result<u64> {
    connection
        .prepare_cached("SELECT max(place) FROM events WHERE place > ?1 AND place <= ?2")?
        .query_row(params![Place::new(number, 0).0, Place::last_of(number).0], |row| {
            Ok(row.get::<_, Option<i64>>(0)?.map_or(0, |place| Place(place).seq()))
        })
}

/// Hands on the events after `after_seq`, batch by batch, until there are no more or `hand_on` says that nobody waits.
pub(super) fn load(
    connection: &Connection,
    session: &SessionId,
    after_seq: u64,
    hand_on: &mut dyn FnMut(Batch) -> ControlFlow<()>,
) -> Result<(), Failure> {
    let Some(number) = session_number(connection, session)? else {
        return Ok(());
    };
    let mut statement = connection.prepare_cached(SELECT_EVENTS)?;
    let bounds = params![Place::new(number, after_seq).0, Place::last_of(number).0, UNLIMITED];
    let mut rows = statement.query(bounds)?;
    let mut batch = Batch::default();
    while let Some(row) = rows.next()? {
        batch.push(columns(row, session)?);
        let is_full = batch.len() >= BATCH_EVENTS_MAX || batch.text_bytes() >= BATCH_TEXT_BYTES;
        if is_full && hand_on(std::mem::take(&mut batch)).is_break() {
            return Ok(());
        }
    }
    if !batch.is_empty() {
        let _ = hand_on(batch);
    }
    Ok(())
}

/// The events after `after_seq`, at most `limit`, as written.
pub(super) fn load_raw(
    connection: &Connection,
    session: &SessionId,
    after_seq: u64,
    limit: usize,
) -> Result<Vec<RawEvent>, Failure> {
    let Some(number) = session_number(connection, session)? else {
        return Ok(Vec::new());
    };
    let mut statement = connection.prepare_cached(SELECT_EVENTS)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = statement.query(params![
        Place::new(number, after_seq).0,
        Place::last_of(number).0,
        limit
    ])?;
    let mut events = Vec::new();
    while let Some(row) = rows.next()? {
        events.push(columns(row, session)?.to_raw());
    }
    Ok(events)
}

/// A row of [`SELECT_EVENTS`].
fn columns<'a>(row: &'a Row<'_>, session: &SessionId) -> Result<Columns<'a>, Failure> {
    let seq = Place(row.get(0)?).seq();
    let text = |column: usize| match row.get_ref(column)? {
        ValueRef::Null => Ok("null"),
        value @ (ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Text(_) | ValueRef::Blob(_)) => value
            .as_str()
            .map_err(|error| Failure::Store(unreadable(session, seq, "no text", &error))),
    };
    Ok(Columns {
        seq,
        turn: row.get(1)?,
        time: row.get(2)?,
        version: row.get(3)?,
        kind: text(4)?,
        content: text(5)?,
        data: text(6)?,
    })
}

/// The sessions, the most recently used first.
pub(super) fn list(connection: &Connection, filter: &SessionFilter) -> Result<Vec<SessionSummary>, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT id, created, updated, events, title, directory, waiting, number FROM summaries JOIN sessions USING (number)
         WHERE (:directory IS NULL OR directory = :directory)
           AND (:only IS NULL OR id IN (SELECT value FROM json_each(:only)))
           AND (:before IS NULL OR (updated, id) < (
             SELECT updated, id FROM summaries JOIN sessions USING (number) WHERE id = :before))
         ORDER BY updated DESC, id DESC",
    )?;
    let only = filter
        .only
        .as_ref()
        .map(|ids| serde_json::Value::from_iter(ids.iter().map(SessionId::as_str)).to_string());
    let before = filter.before.as_ref().map(SessionId::as_str);
    let mut rows = statement.query(named_params! {":directory": filter.directory, ":only": only, ":before": before})?;
    let limit = filter.limit.unwrap_or(usize::MAX);
    let mut summaries = Vec::new();
    while summaries.len() < limit
        && let Some(row) = rows.next()?
    {
        // Looked at one by one: a short list needs the last turns of few sessions.
        if let Some(model) = &filter.not_by
            && last_model(connection, row.get("number")?)?.as_ref() == Some(model)
        {
            continue;
        }
        summaries.push(SessionSummary {
            id: SessionId::new(row.get::<_, String>(0)?),
            created: row.get(1)?,
            updated: row.get(2)?,
            events: row.get(3)?,
            title: row.get(4)?,
            directory: row.get(5)?,
            waiting: row.get(6)?,
        });
    }
    Ok(summaries)
}

/// The model that a session's last turn was begun for; `None` where there is no turn, or one that cannot be read.
fn last_model(connection: &Connection, number: i64) -> rusqlite::Result<Option<String>> {
    let data: Option<Option<String>> = connection
        .prepare_cached(
            "SELECT data FROM events WHERE place > ?1 AND place <= ?2 AND kind = 'turn_started'
             ORDER BY place DESC LIMIT 1",
        )?
        .query_row(params![Place::new(number, 0).0, Place::last_of(number).0], |row| {
            row.get(0)
        })
        .optional()?;
    let started = data
        .flatten()
        .and_then(|data| serde_json::from_str::<TurnStarted>(&data).ok());
    Ok(started.map(|started| started.model))
}

/// The index `typed` answers all of it but where a message was said, which is in the event before.
const SELECT_TYPED: &str = "SELECT kind, time,
        substr(CASE WHEN kind = 'command' AND json_valid(data) THEN data ->> '$.line' ELSE content END, 1, 16385),
        CASE WHEN kind = 'command' AND json_valid(data) THEN data ->> '$.directory' END,
        place
    FROM events INDEXED BY typed WHERE kind IN ('user', 'command') ORDER BY time DESC, place DESC";

/// The lines that were typed, the newest first.
pub(super) fn typed(connection: &Connection, lines_max: usize, not_by: &str) -> Result<Vec<TypedLine>, Failure> {
    let mut gathered = Gathered::new(lines_max);
    let mut statement = connection.prepare_cached(SELECT_TYPED)?;
    let mut rows = statement.query([])?;
    while !gathered.is_full()
        && let Some(row) = rows.next()?
    {
        let kind = match row.get_ref(0)?.as_str() {
            Ok("command") => TypedKind::Command,
            Ok(_) | Err(_) => TypedKind::Message,
        };
        let begun = match kind {
            TypedKind::Command => None,
            TypedKind::Message => begun_before(connection, row.get(4)?)?,
        };
        if begun.as_ref().is_some_and(|begun| begun.model == not_by) {
            gathered.pass_over();
            continue;
        }
        let time = row.get(1)?;
        let directory: Option<String> = row.get(3)?;
        // A line that is not text was not typed.
        let text = row.get_ref(2)?.as_str().unwrap_or_default();
        gathered.look_at(text, |text| TypedLine {
            text,
            kind,
            time,
            directory: directory
                .or(begun.and_then(|begun| begun.directory))
                .unwrap_or_default(),
        });
    }
    Ok(gathered.into_lines())
}

/// The beginning of the turn, if it is the event before.
fn begun_before(connection: &Connection, place: i64) -> rusqlite::Result<Option<TurnStarted>> {
    let data: Option<Option<String>> = connection
        .prepare_cached("SELECT data FROM events WHERE place = ?1 AND kind = 'turn_started'")?
        .query_row([place - 1], |row| row.get(0))
        .optional()?;
    Ok(data.flatten().and_then(|data| serde_json::from_str(&data).ok()))
}

/// The one session whose id is, begins with or ends with `prefix`.
pub(super) fn find(connection: &Connection, prefix: &str) -> Result<SessionId, Failure> {
    let exact = SessionId::new(prefix);
    if session_number(connection, &exact)?.is_some() {
        return Ok(exact);
    }
    if prefix.chars().count() < ID_PREFIX_CHARS_MIN {
        return Err(Failure::Store(StoreError::NotFound(prefix.to_owned())));
    }
    let mut statement = connection.prepare_cached(
        "SELECT id FROM sessions WHERE substr(id, 1, length(?1)) = ?1 OR substr(id, -length(?1)) = ?1",
    )?;
    let ids = statement.query_map([prefix], |row| Ok(SessionId::new(row.get::<_, String>(0)?)))?;
    Ok(resolve(prefix, ids.collect::<Result<_, _>>()?)?)
}
