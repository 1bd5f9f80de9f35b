//! Event streams (SPEC 9.8): what happens in a session, from the ledger first and then as it happens, without gap or duplicate.
//!
//! A stream is a body that is asked for its next frame ([`Follower::next`]): it reads the ledger batch by batch up to its end, then
//! follows the engine's [`Reader`], whose items are made into bytes once for all readers. One that finds an event missing reads the
//! ledger again. Nothing is kept for a reader but its place, one batch, and its place in the ring: whoever does not take what is sent
//! is cut by the listener, whoever falls behind by a whole ring is cut here, and no turn waits for either.
//!
//! Of a session, each event that says where a turn stands is followed by that envelope, which is folded from the events that the
//! reader was sent ([`Telling`]): what races in the session can neither lose nor repeat one. Nor can a cut between the two: an
//! envelope has an id of its own, so that a reader that comes back says whether it has it ([`Place`]).

mod frame;

#[cfg(test)]
pub(crate) use frame::Delta;
pub(crate) use frame::OF_ENVELOPE;

use crate::batches::Batches;
use crate::error::ApiError;
use crate::telemetry::{Open, Telemetry};
use aish_core::event::Event;
use aish_core::id::SessionId;
use aish_engine::{Conversations, Fault, Item, Live, RawEvent, Reader, ServeError, Telling, Ticket, may_tell, tells};
use axum::body::Body;
use axum::response::Response;
use futures_util::stream::unfold;
use futures_util::{FutureExt as _, Stream, StreamExt as _};
use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::body::Bytes;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// The type of an event stream.
pub(crate) const EVENT_STREAM: &str = "text/event-stream";
/// How long a stream says nothing before it says that it lives.
const KEEP_ALIVE_S: u64 = 15;

/// Readers that have a batch read and made into frames at a time: it may be a megabyte, and turns go on between two of them.
const READ_AT_ONCE: usize = 2;

/// Bytes of events that are not made into frames where turns run.
const LONG_BYTES: usize = 64 * 1024;

/// Makes streams; clones share what they may take.
#[derive(Clone)]
pub(crate) struct Streams {
    conversations: Arc<Conversations>,
    telemetry: Arc<Telemetry>,
    reading: Arc<Semaphore>,
}

/// Where the reader of a session was when it comes.
pub(crate) struct Place {
    /// The last event that it has; 0 before the first.
    pub(crate) last: u64,
    /// That event, where the reader may have been cut before its envelope.
    pub(crate) untold: Option<RawEvent>,
}

/// What a stream is of.
enum Scope {
    /// One turn after one request, up to what the request comes to; the place of that request.
    Turn(Box<Ticket>),
    /// A session, for ever.
    Session(Box<Telling>),
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
    reading: Arc<Semaphore>,
    session: SessionId,
    scope: Scope,
    phase: Phase,
    /// The last event that was sent, or that the reader had.
    last: u64,
    /// The event whose envelope was sent last, or that the reader had.
    last_told: u64,
    /// An event that the reader has, whose envelope comes before everything else.
    untold: Option<RawEvent>,
    /// Up to where the ledger was read again: an event that was told of is there.
    read_until: u64,
    batches: Batches,
    frames: VecDeque<Bytes>,
    draining: Pin<Box<dyn Future<Output = ()> + Send>>,
    open: Open,
}

impl Streams {
    pub(crate) fn new(conversations: Arc<Conversations>, telemetry: Arc<Telemetry>) -> Self {
        Self {
            conversations,
            telemetry,
            reading: Arc::new(Semaphore::new(READ_AT_ONCE)),
        }
    }

    /// The stream of a turn after the request that began it or went on with it, up to its envelope.
    pub(crate) fn of_turn(&self, mut ticket: Ticket) -> Response {
        let place = (ticket.session.clone(), ticket.seq.saturating_sub(1));
        // What was begun by this request is told from its first event on, deltas included; else it is in the ledger.
        let phase = match ticket.take_live() {
            Some(live) => Phase::Live(live),
            // Only what it came to: nobody may be there to go on with it, and then it would be followed for ever.
            None if ticket.is_at_terminal() => Phase::Ending,
            None => Phase::Reading(None),
        };
        let scope = Scope::Turn(Box::new(ticket));
        respond(Follower::new(self, place, (scope, phase)))
    }

    /// The stream of a session from where its reader was.
    pub(crate) fn of_session(&self, session: SessionId, place: Place) -> Response {
        let scope = Scope::Session(Box::default());
        let follower = Follower::new(self, (session, place.last), (scope, Phase::Reading(None)));
        respond(Follower {
            last_told: if place.untold.is_some() { 0 } else { place.last },
            untold: place.untold,
            ..follower
        })
    }
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
    let mut response = Response::new(());
    follower.open.mark(&mut response);
    let frames = unfold(follower, async |mut follower| {
        let frame = follower.next().await?;
        Some((Ok::<_, Infallible>(frame), follower))
    });
    let mut response = response.map(|()| Body::from_stream(kept_alive(frames)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
    // nginx collects an answer unless it is told not to.
    let unbuffered = HeaderName::from_static("x-accel-buffering");
    headers.insert(unbuffered, HeaderValue::from_static("no"));
    response
}

/// Frames as they come, and a word in between when there are none for long: a proxy closes what it takes for dead, whatever the
/// stream waits for.
fn kept_alive(
    frames: impl Stream<Item = Result<Bytes, Infallible>> + Send,
) -> impl Stream<Item = Result<Bytes, Infallible>> + Send {
    unfold(Box::pin(frames), async |mut frames| {
        let frame = tokio::time::timeout(Duration::from_secs(KEEP_ALIVE_S), frames.next()).await;
        let frame = frame.unwrap_or(Some(Ok(Bytes::from_static(frame::KEEP_ALIVE))));
        Some((frame?, frames))
    })
}

impl Follower {
    fn new(streams: &Streams, (session, last): (SessionId, u64), (scope, phase): (Scope, Phase)) -> Self {
        Self {
            draining: Box::pin(streams.conversations.draining()),
            conversations: Arc::clone(&streams.conversations),
            reading: Arc::clone(&streams.reading),
            open: streams.telemetry.stream(),
            session,
            scope,
            phase,
            last,
            last_told: 0,
            untold: None,
            read_until: 0,
            batches: Batches::new(),
            frames: VecDeque::new(),
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

    /// Reads one batch of the ledger.
    async fn read(&mut self, reader: Option<Reader>) {
        // It is never closed.
        let _place = Arc::clone(&self.reading).acquire_owned().await;
        if let Some(event) = self.untold.take()
            && let Err(error) = self.tell(&event).await
        {
            return self.fail(error);
        }
        let batch = self
            .batches
            .next(&self.conversations, (&self.session, self.last), usize::MAX)
            .await;
        let batch = match batch {
            Ok(batch) => batch,
            Err(error) => return self.fail(error),
        };
        let making = frames_of(Arc::clone(&self.conversations), self.session.clone(), batch.events);
        // One that panics ends this stream, and its reader comes back.
        let Some((events, frames)) = making.await else { return };
        for (event, frame) in events.iter().zip(frames) {
            self.last = event.seq;
            self.frames.push_back(frame);
            if self.ends_with(event.turn, event.seq, &event.kind) {
                self.phase = Phase::Ending;
                return;
            }
            if let Err(error) = self.tell(event).await {
                return self.fail(error);
            }
        }
        self.phase = match reader {
            reader if !batch.is_last => Phase::Reading(reader),
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

    /// Says where the turn stands with an event from the ledger, where it says that.
    async fn tell(&mut self, event: &RawEvent) -> Result<(), ServeError> {
        let Scope::Session(telling) = &mut self.scope else {
            return Ok(());
        };
        let mut told = telling.take_raw(&self.session, event);
        if !telling.is_whole() && may_tell(&event.kind) {
            **telling = telling_at(&self.conversations, &self.session, event.seq).await?;
            told = telling.at_raw(&self.session, event);
        }
        if let Some(envelope) = told {
            self.last_told = event.seq;
            self.frames.push_back(frame::told(event.seq, envelope).into());
        }
        Ok(())
    }

    /// The same with an event that happens now.
    async fn tell_live(&mut self, event: &Event, item: &Item) -> Result<(), ServeError> {
        let Scope::Session(telling) = &mut self.scope else {
            return Ok(());
        };
        telling.take(event);
        let envelope = telling.at(event);
        if envelope.is_none() && (telling.is_whole() || !may_tell(event.body.kind())) {
            return Ok(());
        }
        let make = async || {
            let told = match envelope {
                Some(envelope) => Some(envelope),
                // Those who came in the middle of the turn have it read by one of them.
                None => telling_at(&self.conversations, &self.session, event.seq)
                    .await?
                    .at(event),
            };
            Ok::<_, ServeError>(told.map(|told| frame::told(event.seq, told)).unwrap_or_default())
        };
        let frame = item.told(make).await?;
        if !frame.is_empty() {
            self.last_told = event.seq;
        }
        self.push(Bytes::from_owner(frame));
        Ok(())
    }

    /// Whoever comes to a session that waits or is over is told so, as those were who were there.
    async fn tell_standing(&mut self) {
        if matches!(self.scope, Scope::Turn(_)) || self.last_told == self.last {
            return;
        }
        // What came to be since the ledger was read is still to be told, with what it came to.
        if let Ok(Some((seq, envelope))) = self.conversations.last_told(&self.session).await
            && (self.last_told + 1..=self.last).contains(&seq)
        {
            self.last_told = seq;
            // A reader that is beyond it stays there.
            self.push(Bytes::from(if seq == self.last {
                frame::told(seq, envelope)
            } else {
                frame::envelope(envelope)
            }));
        }
    }

    fn push(&mut self, frame: Bytes) {
        if !frame.is_empty() {
            self.frames.push_back(frame);
        }
    }

    /// Waits for what happens next.
    async fn follow(&mut self, mut reader: Reader) {
        let item = match reader.next().now_or_never() {
            Some(item) => item,
            None => tokio::select! {
                item = reader.next() => item,
                () = &mut self.draining => return self.leave(),
            },
        };
        let is_turn = matches!(self.scope, Scope::Turn(_));
        let Some(item) = item else {
            // It has fallen behind. A session's reader comes back by itself; a request is still owed its envelope.
            self.phase = if is_turn { Phase::Reading(None) } else { Phase::Over };
            return;
        };
        let next = self.last + 1;
        self.phase = match &item.live {
            Live::Event(event) if event.seq > next => Phase::Reading(Some(reader)),
            Live::Long(seq) if *seq >= next => Phase::Reading(Some(reader)),
            Live::Event(event) if event.seq == next && self.ends_with(event.turn, next, event.body.kind()) => {
                Phase::Ending
            }
            Live::Failed(_) if is_turn => Phase::Ending,
            Live::Failed(_) => Phase::Over,
            Live::Event(_) | Live::Long(_) | Live::Notice(_) => Phase::Live(reader),
        };
        let is_shown = match &item.live {
            Live::Event(event) => event.seq == next,
            Live::Notice(_) => true,
            Live::Long(_) => false,
            // A request is told what it came to by itself.
            Live::Failed(_) => !is_turn,
        };
        if !is_shown {
            return;
        }
        let frame = item.frame(|live| frame::live(&self.conversations, live));
        self.push(Bytes::from_owner(frame));
        if let Live::Event(event) = &item.live {
            self.last = event.seq;
            if let Err(error) = self.tell_live(event, &item).await {
                self.fail(error);
            }
        }
    }

    /// Whether an event is what the request came to.
    fn ends_with(&self, turn: u64, seq: u64, kind: &str) -> bool {
        match &self.scope {
            Scope::Turn(ticket) => turn == ticket.turn && seq > ticket.seq && tells(kind),
            Scope::Session(_) => false,
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
            Scope::Session(_) => self.fail(ServeError::Draining),
        }
    }

    fn fail(&mut self, error: ServeError) {
        let error = ApiError::from(error);
        self.open.failed(&error);
        self.frames.push_back(frame::error(&error).into());
        self.phase = Phase::Over;
    }
}

/// The frames of these events. Long ones are made on a thread of their own: looking for secrets in a megabyte takes milliseconds, in
/// which turns would stand still. None where that panicked.
async fn frames_of(
    conversations: Arc<Conversations>,
    session: SessionId,
    events: Vec<RawEvent>,
) -> Option<(Vec<RawEvent>, Vec<Bytes>)> {
    let bytes: usize = events.iter().map(|event| event.content.len() + event.data.len()).sum();
    let make = move || {
        let frame = |event| Bytes::from(frame::event(&conversations, &session, event));
        let frames = events.iter().map(frame).collect();
        (events, frames)
    };
    if bytes < LONG_BYTES {
        return Some(make());
    }
    tokio::task::spawn_blocking(make).await.ok()
}

/// The turn of an event, up to it; nothing of one that cannot be read.
async fn telling_at(conversations: &Conversations, session: &SessionId, seq: u64) -> Result<Telling, ServeError> {
    match conversations.telling_at(session, seq).await {
        Err(ServeError::Engine(error)) if Fault::of(&error) == Fault::Other => Ok(Telling::default()),
        read => read,
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

    /// SPEC 9.8: a stream that waits, for whatever it is, says every 15 seconds that it lives; what comes in between comes whole.
    #[tokio::test(start_paused = true)]
    async fn waiting_is_not_silent() {
        let slow = unfold(0, async |frame: u64| {
            tokio::time::sleep(Duration::from_secs(40 * frame)).await;
            (frame < 2).then(|| (Ok(Bytes::from(format!("frame {frame}"))), frame + 1))
        });
        let heard: Vec<Bytes> = kept_alive(slow).map(Result::unwrap).collect().await;
        let alive = frame::KEEP_ALIVE;
        let expect: [&[u8]; 9] = [b"frame 0", alive, alive, b"frame 1", alive, alive, alive, alive, alive];
        assert_eq!(heard, expect);
    }
}
