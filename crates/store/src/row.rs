//! An event as a database gives it back: columns of text and numbers, decoded here, or handed on as they were written.

use crate::{RawEvent, StoreError};
use aish_core::event::{Body, EVENT_VERSION, Event};
use aish_core::id::SessionId;

/// One row of `events`, borrowed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Columns<'a> {
    pub(crate) seq: u64,
    pub(crate) turn: u64,
    pub(crate) time: u64,
    pub(crate) version: u32,
    pub(crate) kind: &'a str,
    pub(crate) content: &'a str,
    pub(crate) data: &'a str,
}

impl Columns<'_> {
    /// The event. The data is decoded straight into its type.
    pub(crate) fn decode(self, session: &SessionId) -> Result<Event, StoreError> {
        let body = Body::decode(self.kind, self.data).map_err(|error| {
            let what = if self.version > EVENT_VERSION {
                format!("written by a newer aish, kind {}", self.kind)
            } else {
                format!("kind {}", self.kind)
            };
            unreadable(session, self.seq, &what, &error)
        })?;
        Ok(Event {
            session: session.clone(),
            seq: self.seq,
            turn: self.turn,
            time: self.time,
            version: self.version,
            content: self.content.to_owned(),
            body,
        })
    }

    /// The event as written.
    pub(crate) fn to_raw(self) -> RawEvent {
        RawEvent {
            seq: self.seq,
            turn: self.turn,
            time: self.time,
            version: self.version,
            kind: self.kind.to_owned(),
            content: self.content.to_owned(),
            data: self.data.to_owned(),
        }
    }
}

/// An event that is no text, or not the shape of its kind.
pub(crate) fn unreadable(session: &SessionId, seq: u64, what: &str, error: &dyn std::fmt::Display) -> StoreError {
    StoreError::Format(format!(
        "event {seq} of session {session} ({what}) cannot be read: {error}. `aish sessions export` still writes it as it is"
    ))
}

/// An event for an index only: one that cannot be read counts, and says nothing else.
pub(crate) fn counted(session: &SessionId, raw: RawEvent) -> Event {
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
