//! What a store answers about turns that wait, requests that were made, and words that were said.

use aish_core::action::Digest;
use aish_core::event::{Body, Event, RequestKey};
use aish_core::id::{CallId, ContinuationId, SessionId};

/// A suspension of a turn, from the index of continuations (DESIGN rule 10).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// Its one-shot id.
    pub continuation: ContinuationId,
    /// The session that was suspended.
    pub session: SessionId,
    /// The place of its `suspended` event.
    pub seq: u64,
    /// The call whose answer or result it waits for; none if the turn was suspended for another reason.
    pub call: Option<CallId>,
    /// When it is over, in milliseconds since the Unix epoch; none for never.
    pub expires: Option<u64>,
    /// What became of it.
    pub state: PendingState,
}

impl Pending {
    /// Whether it waits.
    pub(crate) fn is_open(&self) -> bool {
        self.state == PendingState::Open
    }

    /// Whether it was to be over by that moment, in milliseconds since the Unix epoch.
    pub fn is_over(&self, now: u64) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }
}

/// What became of a suspension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PendingState {
    /// It waits.
    Open,
    /// What it waited for came.
    Answered,
    /// The turn ended, or another began, before that.
    Closed,
}

/// How many sessions wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitingCount {
    /// For their client, to execute a call.
    pub client: u64,
    /// For somebody's yes or no, or for what a call asks.
    pub approval: u64,
}

/// A request that was made under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownRequest {
    /// The session it went to.
    pub session: SessionId,
    /// The place of the event that records it: a `turn_started`, a `resumed`, or a `call_answered`.
    pub seq: u64,
    /// Of what it said.
    pub digest: Digest,
}

/// An event that holds the words somebody looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The session.
    pub session: SessionId,
    /// Its place there.
    pub seq: u64,
    /// Milliseconds since the Unix epoch.
    pub time: u64,
    /// `user`, `assistant` or `command`.
    pub kind: String,
    /// A piece of it around the words, at most [`Hit::SNIPPET_CHARS_MAX`] characters; hostile until escaped.
    pub snippet: String,
}

impl Hit {
    /// The longest snippet, in characters.
    pub const SNIPPET_CHARS_MAX: usize = 240;
}

/// The key that an event takes, if it records a request.
pub(crate) fn request_of(event: &Event) -> Option<&RequestKey> {
    if let Body::TurnStarted(data) = &event.body {
        data.served.as_ref()?.request.as_ref()
    } else if let Body::Resumed(data) = &event.body {
        data.request.as_ref()
    } else if let Body::CallAnswered(data) = &event.body {
        data.request.as_ref()
    } else {
        None
    }
}

/// The text of an event that can be searched for; `None` for what nobody said.
pub(crate) fn searchable(event: &Event) -> Option<&str> {
    if let Body::Command(data) = &event.body {
        Some(&data.line)
    } else if let Body::User(_) | Body::Assistant(_) = &event.body {
        Some(&event.content)
    } else {
        None
    }
}
