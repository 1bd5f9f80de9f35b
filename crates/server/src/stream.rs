//! Event streams (SPEC 9.8): what happens in a session, from the ledger first and then as it happens, without gap or duplicate.
//!
//! A stream is a body that is asked for its next frame ([`Follower::next`]): it reads the ledger page by page up to its end, then
//! follows the engine's [`Reader`], whose items are made into bytes once for all readers. One that finds an event missing reads the
//! ledger again. Nothing is kept for a reader but its place, one page, and its place in the ring: whoever does not take what is sent
//! is cut by the listener, whoever falls behind by a whole ring is cut here, and no turn waits for either.

mod frame;

#[cfg(test)]
pub(crate) use frame::Delta;

use crate::error::ApiError;
use crate::telemetry::Open;
use aish_core::id::SessionId;
use aish_engine::{Conversations, Live, Reader, ServeError, Ticket};
use axum::body::Body;
use axum::response::Response;
use futures_util::FutureExt as _;
use futures_util::stream::unfold;
use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::body::Bytes;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// The type of an event stream.
pub(crate) const EVENT_STREAM: &str = "text/event-stream";
/// How long a stream says nothing before it says that it lives.
const KEEP_ALIVE_S: u64 = 15;
/// Events that are read from the ledger at a time: one may be a megabyte.
const EVENTS_AT_ONCE: usize = 16;

/// What a stream is of.
enum Scope {
    /// One turn after one request, up to what the request comes to; the place of that request.
    Turn(Box<Ticket>),
    /// A session, for ever; whether its reader was told where it stands.
    Session { told: bool },
}

/// Where a reader is.
enum Phase {
    /// It reads the ledger; with what will be told from some event on, once it has come that far.
    Reading(Option<Reader>),
    /// It has read everything, and is told.
    Live(Reader),
    /// The turn is over or waits: what it came to is still to be said.
    Ending,
    /// Nothing follows.
    Over,
}

/// One reader's stream.
struct Follower {
    conversations: Arc<Conversations>,
    session: SessionId,
    scope: Scope,
    phase: Phase,
    /// The last event that was sent, or that the reader had.
    last: u64,
    /// Up to where the ledger was read again: an event that was told of is there.
    read_until: u64,
    frames: VecDeque<Bytes>,
    draining: Pin<Box<dyn Future<Output = ()> + Send>>,
    _open: Open,
}

/// The stream of a turn after the request that began it or went on with it, up to its envelope.
pub(crate) fn of_turn(conversations: Arc<Conversations>, mut ticket: Ticket, open: Open) -> Response {
    let (session, last) = (ticket.session.clone(), ticket.seq.saturating_sub(1));
    // What was begun by this request is told from its first event on, deltas included; else it is in the ledger.
    let phase = ticket.take_live().map_or(Phase::Reading(None), Phase::Live);
    let scope = Scope::Turn(Box::new(ticket));
    respond(Follower::new(conversations, (session, last), (scope, phase), open))
}

/// The stream of a session after one of its events.
pub(crate) fn of_session(conversations: Arc<Conversations>, place: (SessionId, u64), open: Open) -> Response {
    let scope = Scope::Session { told: false };
    respond(Follower::new(conversations, place, (scope, Phase::Reading(None)), open))
}

/// Whether a client takes an event stream for an answer.
pub(crate) fn is_wanted(headers: &HeaderMap) -> bool {
    let accepts = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepts.flat_map(|value| value.split(',')).any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let is_it = parts
            .next()
            .is_some_and(|essence| essence.eq_ignore_ascii_case(EVENT_STREAM));
        is_it && !parts.any(|part| matches!(part, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
    })
}

fn respond(follower: Follower) -> Response {
    let frames = unfold(follower, async |mut follower| {
        let frame = follower.next().await?;
        Some((Ok::<_, Infallible>(frame), follower))
    });
    let mut response = Response::new(Body::from_stream(frames));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
    // nginx collects an answer unless it is told not to.
    let unbuffered = HeaderName::from_static("x-accel-buffering");
    headers.insert(unbuffered, HeaderValue::from_static("no"));
    response
}

impl Follower {
    fn new(
        conversations: Arc<Conversations>,
        (session, last): (SessionId, u64),
        (scope, phase): (Scope, Phase),
        open: Open,
    ) -> Self {
        Self {
            draining: Box::pin(conversations.draining()),
            conversations,
            session,
            scope,
            phase,
            last,
            read_until: 0,
            frames: VecDeque::new(),
            _open: open,
        }
    }

    /// What is sent next; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(frame) = self.frames.pop_front() {
                return Some(frame);
            }
            match std::mem::replace(&mut self.phase, Phase::Over) {
                Phase::Reading(reader) => self.read(reader).await,
                Phase::Live(reader) => self.follow(reader).await,
                Phase::Ending => self.end().await,
                Phase::Over => return None,
            }
        }
    }

    /// Reads one page of the ledger.
    async fn read(&mut self, reader: Option<Reader>) {
        let page = self
            .conversations
            .events(&self.session, self.last, EVENTS_AT_ONCE)
            .await;
        let page = match page {
            Ok(page) => page,
            Err(error) => return self.fail(error),
        };
        for event in &page {
            self.last = event.seq;
            let frame = frame::event(&self.conversations, &self.session, event);
            self.frames.push_back(frame.into());
            if self.ends_with(event.turn, event.seq, &event.kind) {
                self.phase = Phase::Ending;
                return;
            }
        }
        let is_end = page.len() < EVENTS_AT_ONCE;
        self.phase = match reader {
            reader if !is_end => Phase::Reading(reader),
            None => Phase::Reading(Some(self.conversations.follow(&self.session, self.last))),
            Some(reader) => {
                let told_from = reader.has_seen(self.last);
                if told_from > self.last.max(self.read_until) {
                    self.read_until = told_from;
                    Phase::Reading(Some(reader))
                } else {
                    self.tell_standing().await;
                    Phase::Live(reader)
                }
            }
        };
    }

    /// Whoever comes to a session that waits or is over is told so, as those were who were there.
    async fn tell_standing(&mut self) {
        let Scope::Session { told } = &mut self.scope else {
            return;
        };
        if std::mem::replace(told, true) {
            return;
        }
        // What came to be since the ledger was read is still to be told, with what it came to.
        if let Ok(Some((seq, envelope))) = self.conversations.last_told(&self.session).await
            && seq <= self.last
        {
            self.frames.push_back(frame::envelope(envelope).into());
        }
    }

    /// Waits for what happens next.
    async fn follow(&mut self, mut reader: Reader) {
        let item = match reader.next().now_or_never() {
            Some(item) => item,
            None => tokio::select! {
                item = reader.next() => item,
                () = &mut self.draining => return self.leave(),
                () = tokio::time::sleep(Duration::from_secs(KEEP_ALIVE_S)) => {
                    self.frames.push_back(Bytes::from_static(frame::KEEP_ALIVE));
                    self.phase = Phase::Live(reader);
                    return;
                }
            },
        };
        let is_turn = matches!(self.scope, Scope::Turn(_));
        let Some(item) = item else {
            // It has fallen behind. A session's reader comes back by itself; a request is still owed its envelope.
            self.phase = if is_turn { Phase::Reading(None) } else { Phase::Over };
            return;
        };
        self.phase = match &item.live {
            Live::Event(event) if event.seq <= self.last => Phase::Live(reader),
            Live::Event(event) if event.seq > self.last + 1 => Phase::Reading(Some(reader)),
            Live::Event(event) if self.ends_with(event.turn, event.seq, event.body.kind()) => Phase::Ending,
            Live::Failed(_) if is_turn => Phase::Ending,
            Live::Failed(_) => Phase::Over,
            Live::Event(_) | Live::Notice(_) | Live::Told(_) => Phase::Live(reader),
        };
        let is_shown = match &item.live {
            Live::Event(event) => event.seq == self.last + 1,
            Live::Notice(_) => true,
            // A request is told what it came to by itself.
            Live::Told(_) | Live::Failed(_) => !is_turn,
        };
        if !is_shown {
            return;
        }
        if let Live::Event(event) = &item.live {
            self.last = event.seq;
        }
        let frame = item.frame(|live| frame::live(&self.conversations, live));
        if !frame.is_empty() {
            self.frames.push_back(Bytes::from_owner(frame));
        }
    }

    /// Whether an event is what the request came to.
    fn ends_with(&self, turn: u64, seq: u64, kind: &str) -> bool {
        match &self.scope {
            Scope::Turn(ticket) => {
                turn == ticket.turn && seq > ticket.seq && matches!(kind, "suspended" | "turn_ended")
            }
            Scope::Session { .. } => false,
        }
    }

    /// Says what the request came to.
    async fn end(&mut self) {
        let Scope::Turn(ticket) = &self.scope else { return };
        match self.conversations.told(Ticket::clone(ticket)).await {
            Ok(envelope) => self.frames.push_back(frame::envelope(envelope).into()),
            Err(error) => self.fail(error),
        }
    }

    /// This process is about to end.
    fn leave(&mut self) {
        match &self.scope {
            // A turn that runs here may still come to something.
            Scope::Turn(_) => self.phase = Phase::Ending,
            Scope::Session { .. } => self.fail(ServeError::Draining),
        }
    }

    fn fail(&mut self, error: ServeError) {
        self.frames.push_back(frame::error(&ApiError::from(error)).into());
        self.phase = Phase::Over;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// SPEC 9.1: who asks for a stream by its type.
    #[test]
    fn asked_for() {
        let check = |accept: &str, expect: bool| {
            let headers = HeaderMap::from_iter([(ACCEPT, accept.parse().unwrap())]);
            assert_eq!(is_wanted(&headers), expect, "{accept}");
        };
        check("text/event-stream", true);
        check("application/json, Text/Event-Stream;q=0.5", true);
        check("text/event-stream; q=0", false);
        check("*/*", false);
        check("application/json", false);
        assert!(!is_wanted(&HeaderMap::new()));
    }
}
