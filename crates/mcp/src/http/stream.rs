//! A response that is an event stream, as the SDK reads it: only messages that it can use, bounded, and never without an end
//! that the request hears of.
//!
//! A stream that fails beyond repair ends with an error *as the request's answer*. The SDK would open any other stream that
//! fails again; this way it is the one request that fails, once.

use super::body::Body;
use super::events::{EVENT_BYTES_MAX, EventTooLong, Events};
use super::reading::{self, Piece};
use super::remote::Remote;
use super::reopening::{Brought, Stream};
use crate::{ErrorKind, McpError};
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use rmcp::model::{ErrorData, RequestId, ServerJsonRpcMessage};
use serde_json::Value;
use sse_stream::Sse;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

/// Bytes of all that comes before the answer to one request.
const STREAM_BYTES_MAX: usize = 64 << 20;

/// What the SDK reads.
pub(super) type Sses = BoxStream<'static, Result<Sse, sse_stream::Error>>;

/// What a stream is for.
pub(super) enum Purpose {
    /// The answer to this request.
    Answer(RequestId),
    /// Whatever comes, since it was opened.
    Listen(Stream, Instant),
    /// Nothing more: the request has its answer. What still comes is read and dropped, so that the connection can be used again.
    Done,
}

/// The stream of a response.
pub(super) fn of_body(remote: Arc<Remote>, body: Body, purpose: Purpose) -> Sses {
    Reader::new(remote, Some(body), purpose).into_stream()
}

/// The stream of messages that came together in one body.
pub(super) fn of_messages(remote: Arc<Remote>, messages: Vec<Value>, request: RequestId) -> Sses {
    let mut reader = Reader::new(remote, None, Purpose::Answer(request));
    for message in messages {
        reader.take_message(message, Sse::default());
    }
    reader.into_stream()
}

struct Reader {
    remote: Arc<Remote>,
    /// What is still to come; `None` at the end.
    body: Option<Body>,
    purpose: Purpose,
    events: Events,
    bytes: usize,
    /// What is ready to be read.
    ready: VecDeque<Sse>,
    brought: Brought,
    /// Why no answer came, as far as it is known.
    missed: Option<McpError>,
}

impl Reader {
    fn new(remote: Arc<Remote>, body: Option<Body>, purpose: Purpose) -> Self {
        Self {
            remote,
            body,
            purpose,
            events: Events::default(),
            bytes: 0,
            ready: VecDeque::new(),
            brought: Brought::Nothing,
            missed: None,
        }
    }

    fn into_stream(self) -> Sses {
        stream::unfold(self, |mut reader| async move {
            let sse = reader.next().await?;
            Some((Ok(sse), reader))
        })
        .boxed()
    }

    async fn next(&mut self) -> Option<Sse> {
        loop {
            if let Some(sse) = self.ready.pop_front() {
                return Some(sse);
            }
            let Some(body) = &mut self.body else {
                self.miss();
                return None;
            };
            match body.chunk().await {
                Ok(Some(chunk)) => self.take_chunk(&chunk),
                Ok(None) => {
                    self.body = None;
                    let mut events = VecDeque::new();
                    self.events.finish(&mut events);
                    self.take_events(events);
                }
                Err(error) => {
                    self.body = None;
                    self.missed = Some(self.remote.broken(&error));
                }
            }
        }
    }

    fn take_chunk(&mut self, chunk: &[u8]) {
        self.bytes = self.bytes.saturating_add(chunk.len());
        if matches!(self.purpose, Purpose::Done) {
            if self.bytes > STREAM_BYTES_MAX {
                self.body = None;
            }
            return;
        }
        let mut events = VecDeque::new();
        let fed = self.events.feed(chunk, &mut events);
        self.take_events(events);
        match (fed, &self.purpose) {
            (Err(EventTooLong), _) => {
                self.fail(&format!("it sent an event of more than {} MB", EVENT_BYTES_MAX >> 20));
            }
            (Ok(()), Purpose::Answer(_)) if self.bytes > STREAM_BYTES_MAX => {
                self.fail(&format!(
                    "it sent more than {} MB without an answer",
                    STREAM_BYTES_MAX >> 20
                ));
            }
            (Ok(()), Purpose::Answer(_) | Purpose::Listen(..) | Purpose::Done) => {}
        }
    }

    fn take_events(&mut self, events: VecDeque<Sse>) {
        for mut event in events {
            let data = event.data.take().unwrap_or_default();
            let is_message = matches!(event.event.as_deref(), None | Some("" | "message"));
            if !is_message || data.trim().is_empty() {
                // An id or a delay is for the SDK; anything else, as the address that old servers announce, for nobody.
                if event.id.is_some() || event.retry.is_some() {
                    self.ready.push_back(event);
                }
                continue;
            }
            match self.remote.messages(&data) {
                Ok(messages) => {
                    for message in messages {
                        let place = Sse {
                            id: event.id.clone(),
                            retry: event.retry,
                            ..Sse::default()
                        };
                        self.take_message(message, place);
                    }
                }
                Err(why) => self.missed = Some(self.nonsense(&why)),
            }
        }
    }

    fn take_message(&mut self, message: Value, mut place: Sse) {
        let request = match &self.purpose {
            Purpose::Answer(request) => Some(request),
            Purpose::Listen(..) => None,
            Purpose::Done => return,
        };
        let message = match reading::piece(message, request) {
            Piece::Answer(message) | Piece::SomeAnswer(message) | Piece::Aside(message) => message,
            Piece::Nonsense(why) => {
                self.missed = Some(self.nonsense(&why));
                return;
            }
        };
        let answered = match &message.parsed {
            ServerJsonRpcMessage::Response(response) => Some(&response.id),
            ServerJsonRpcMessage::Error(error) => error.id.as_ref(),
            ServerJsonRpcMessage::Request(_) | ServerJsonRpcMessage::Notification(_) => None,
        };
        if let Some(answered) = answered {
            // The rest of a stream that broke off has brought the answer.
            let _answered_after_all = self.remote.failures.take(answered);
            if request.is_some() {
                self.purpose = Purpose::Done;
            }
        }
        self.brought = Brought::Messages;
        place.data = Some(message.value.to_string());
        self.ready.push_back(place);
    }

    /// Ends the stream: nothing more of it is read, and the request has failed.
    fn fail(&mut self, why: &str) {
        self.body = None;
        let error = self.remote.error(ErrorKind::TooLarge, why);
        match &self.purpose {
            Purpose::Answer(request) => {
                self.remote.failures.put(Some(request), error.clone());
                let answer =
                    ServerJsonRpcMessage::error(ErrorData::internal_error(error.message, None), Some(request.clone()));
                self.ready.push_back(Sse {
                    data: serde_json::to_string(&answer).ok(),
                    ..Sse::default()
                });
                self.purpose = Purpose::Done;
            }
            Purpose::Listen(..) | Purpose::Done => self.remote.failures.put(None, error),
        }
    }

    /// The end, without what was waited for. An earlier one may have come with an id, in which case the SDK asks for the rest: then
    /// what is kept here is forgotten when the answer comes.
    fn miss(&mut self) {
        match &self.purpose {
            Purpose::Answer(request) => {
                let error = self.missed.take();
                let error = error.unwrap_or_else(|| self.remote.error(ErrorKind::Closed, "it ended without an answer"));
                self.remote.failures.put(Some(request), error);
            }
            Purpose::Listen(stream, since) => {
                self.remote.reopening.ended(*stream, self.brought, since.elapsed());
            }
            Purpose::Done => {}
        }
    }

    fn nonsense(&self, why: &str) -> McpError {
        self.remote
            .error(ErrorKind::Protocol, &format!("no answer came: {why}"))
    }
}
