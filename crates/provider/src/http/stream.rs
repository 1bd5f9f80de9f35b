//! A reply under way over HTTP.
//!
//! Bytes go through the event-stream parser, the codec and the assembler as they come. What kind of body it is, is
//! decided by its first letter, not by its content type, which servers get wrong. Every wait ends: see [`Phase`].

use super::adapt::{Asked, adapt};
use super::body::{Body, Came};
use super::way::{Learned, Way};
use super::{Target, innermost};
use crate::assemble::{Assembler, Ending, REPLY_BYTES_MAX, too_large};
use crate::client::Timeouts;
use crate::codec::{Codec, Decoder, Piece};
use crate::{Delta, ErrorKind, ProviderError, Reply, ReplyStream, sse};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// How long the end of the body may take after the stream said that nothing follows: it usually comes with the same
/// packet, and reading it keeps the connection for the next round.
const DRAIN_TIMEOUT_MS: u64 = 250;

/// What is waited for, and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The first event: the first-byte timeout, whatever comments a server sends meanwhile.
    Waiting,
    /// The next chunk: the idle timeout; and the next event: the first-byte timeout.
    Streaming,
    /// The count of tokens, the reply having said why it ends. Running out of time is no error.
    Finished,
    /// The end of the body. Running out of time is no error.
    Done,
}

/// What kind of body it is.
#[derive(Debug)]
enum BodyKind {
    /// Not known yet: only white space came.
    Unknown,
    /// An event stream.
    Events,
    /// One JSON document, because the server does not stream or answers with an error.
    Json(Vec<u8>),
}

/// What this exchange teaches about the endpoint.
pub(super) struct Lesson {
    learned: Arc<Learned>,
    /// How the request was written.
    way: Arc<Way>,
    asked: Asked,
    remarks: Vec<String>,
}

impl Lesson {
    pub(super) fn new(learned: Arc<Learned>, way: Arc<Way>, asked: Asked, remarks: Vec<String>) -> Self {
        Self {
            learned,
            way,
            asked,
            remarks,
        }
    }

    /// Takes a refusal that came as the first event of a stream (LM Studio answers 200 and then tells of its template). The
    /// request cannot be written anew here; it is worth asking again, and then it is right.
    fn take(&mut self, error: ProviderError) -> ProviderError {
        let Some(adapted) = adapt(error.kind, &error.message, &self.way, &self.asked) else {
            return error;
        };
        self.learned.learn(adapted.way);
        self.remarks.push(adapted.remark);
        ProviderError {
            kind: ErrorKind::Stream,
            ..error
        }
    }
}

/// A reply under way.
pub(super) struct HttpStream {
    /// The rest of the body; none once it ended or is of no more use.
    body: Option<Body>,
    decoder: Box<dyn Decoder>,
    kind: BodyKind,
    parser: sse::Parser,
    assembler: Assembler,
    target: Target,
    lesson: Option<Lesson>,
    timeouts: Timeouts,
    phase: Phase,
    last_event: Instant,
    deadline: Instant,
}

impl HttpStream {
    pub(super) fn new(
        response: reqwest::Response,
        codec: &'static dyn Codec,
        assembler: Assembler,
        target: Target,
        timeouts: Timeouts,
    ) -> Self {
        let now = Instant::now();
        Self {
            body: Some(Body::of(response)),
            decoder: codec.decoder(),
            kind: BodyKind::Unknown,
            parser: sse::Parser::new(),
            assembler,
            target,
            lesson: None,
            timeouts,
            phase: Phase::Waiting,
            last_event: now,
            deadline: now + Duration::from_secs(timeouts.first_byte_timeout_s),
        }
    }

    /// The same, which may teach something.
    pub(super) fn with_lesson(self, lesson: Lesson) -> Self {
        Self {
            lesson: Some(lesson),
            ..self
        }
    }

    /// Takes what came of waiting for more.
    fn came(&mut self, came: Came, out: &mut Vec<Delta>) {
        match came {
            Ok(Some(chunk)) => self.take(&chunk, out),
            Ok(None) => self.end(out),
            Err(error) => {
                let why = format!("the connection broke: {}", innermost(&error));
                let error = self.target.error(ErrorKind::Broken, &why);
                self.broke(error, out);
            }
        }
    }

    /// Takes a chunk and adds the deltas in it to `out`.
    fn take(&mut self, chunk: &[u8], out: &mut Vec<Delta>) {
        if matches!(self.kind, BodyKind::Unknown) {
            self.kind = self.kind_of(chunk);
        }
        match &mut self.kind {
            BodyKind::Unknown | BodyKind::Events => {
                let is_event = self.events(Some(chunk), out);
                self.wait_on(is_event);
            }
            BodyKind::Json(body) if body.len() + chunk.len() > REPLY_BYTES_MAX => {
                self.fail(&too_large(&format!("the reply is longer than {REPLY_BYTES_MAX} bytes")));
            }
            BodyKind::Json(body) => {
                body.extend_from_slice(chunk);
                self.wait_on(true);
            }
        }
        if self.assembler.has_failed() || self.assembler.has_enough() {
            // Nothing that follows counts: closing the connection stops the server.
            self.body = None;
        }
    }

    fn kind_of(&mut self, chunk: &[u8]) -> BodyKind {
        let first = chunk
            .iter()
            .find(|byte| !(byte.is_ascii_whitespace() || b"\xEF\xBB\xBF".contains(byte)));
        match first {
            None => BodyKind::Unknown,
            Some(b'{' | b'[') => BodyKind::Json(Vec::new()),
            Some(b'<') => {
                let why = "the answer is a web page, not a model's: check base_url";
                self.assembler.fail(self.target.error(ErrorKind::Protocol, why));
                BodyKind::Events
            }
            Some(_) => BodyKind::Events,
        }
    }

    /// Reads events from a chunk, or what is left of them at the end. True if there were any.
    fn events(&mut self, chunk: Option<&[u8]>, out: &mut Vec<Delta>) -> bool {
        let (decoder, assembler, target) = (&mut self.decoder, &mut self.assembler, &self.target);
        let lesson = &mut self.lesson;
        let mut is_event = false;
        let mut sink = |event: sse::Event<'_>| {
            is_event = true;
            if assembler.has_failed() {
                return;
            }
            let read = decoder.event(&event, &mut |piece| push(piece, assembler, target, lesson, out));
            match read {
                // Without its end an event may be cut, which says nothing against the server.
                Err(error) if chunk.is_some() => assembler.fail(target.explain(&error)),
                Ok(()) | Err(_) => {}
            }
        };
        let fed = match chunk {
            Some(chunk) => self.parser.feed(chunk, &mut sink),
            None => self.parser.finish(&mut sink),
        };
        if let Err(error) = fed {
            self.fail(&too_large(&error.to_string()));
        }
        is_event
    }

    /// Sets the next deadline, after a chunk with or without an event in it.
    fn wait_on(&mut self, is_event: bool) {
        let now = Instant::now();
        let seconds = Duration::from_secs;
        if is_event {
            self.last_event = now;
        }
        let phase = match self.phase {
            _ if self.assembler.is_done() => Phase::Done,
            _ if self.assembler.has_finished() => Phase::Finished,
            Phase::Waiting if !is_event => Phase::Waiting,
            Phase::Waiting | Phase::Streaming | Phase::Finished | Phase::Done => Phase::Streaming,
        };
        let is_new = std::mem::replace(&mut self.phase, phase) != phase;
        match phase {
            Phase::Waiting => {}
            Phase::Streaming => {
                let idle = now + seconds(self.timeouts.idle_timeout_s);
                let silence = self.last_event + seconds(self.timeouts.first_byte_timeout_s);
                self.deadline = idle.min(silence);
            }
            // Once only: more chunks do not prolong the end.
            Phase::Finished if is_new => self.deadline = now + seconds(self.timeouts.after_finish_timeout_s),
            Phase::Done if is_new => self.deadline = now + Duration::from_millis(DRAIN_TIMEOUT_MS),
            Phase::Finished | Phase::Done => {}
        }
    }

    /// The body is at its end.
    fn end(&mut self, out: &mut Vec<Delta>) {
        self.body = None;
        if let BodyKind::Json(body) = &mut self.kind {
            let body = std::mem::take(body);
            let (assembler, target, lesson) = (&mut self.assembler, &self.target, &mut self.lesson);
            let text = String::from_utf8_lossy(&body);
            let read = self
                .decoder
                .body(&text, &mut |piece| push(piece, assembler, target, lesson, out));
            if let Err(error) = read {
                self.fail(&error);
            }
        } else {
            self.events(None, out);
        }
        self.assembler.flush(out);
    }

    /// No more came, in time or at all.
    fn broke(&mut self, error: ProviderError, out: &mut Vec<Delta>) {
        match self.phase {
            Phase::Waiting | Phase::Streaming => {
                self.body = None;
                self.assembler.fail(error);
                self.assembler.flush(out);
            }
            Phase::Finished | Phase::Done => self.end(out),
        }
    }

    fn fail(&mut self, error: &ProviderError) {
        self.assembler.fail(self.target.explain(error));
    }

    fn timed_out(&self) -> ProviderError {
        let seconds = match self.phase {
            Phase::Waiting => self.timeouts.first_byte_timeout_s,
            Phase::Streaming | Phase::Finished | Phase::Done => self.timeouts.idle_timeout_s,
        };
        self.target.timeout(seconds)
    }
}

/// Hands a piece on. An error in a stream does not say who was asked, and may repeat a secret; one before anything else may
/// be a refusal that teaches something.
fn push(
    piece: Piece<'_>,
    assembler: &mut Assembler,
    target: &Target,
    lesson: &mut Option<Lesson>,
    out: &mut Vec<Delta>,
) {
    let piece = match piece {
        Piece::Error(error) => {
            let error = match lesson.as_mut().filter(|_| !assembler.has_begun()) {
                Some(lesson) => lesson.take(error),
                None => error,
            };
            Piece::Error(target.explain(&error))
        }
        piece @ (Piece::Text(_)
        | Piece::Thinking(_)
        | Piece::Signature { .. }
        | Piece::Boundary
        | Piece::Block { .. }
        | Piece::Call(_)
        | Piece::Finish(_)
        | Piece::Reason(_)
        | Piece::Usage(_)
        | Piece::Model(_)
        | Piece::Done) => piece,
    };
    assembler.push(piece, out);
}

impl ReplyStream for HttpStream {
    fn next<'a>(&'a mut self, out: &'a mut Vec<Delta>) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let mut fresh = Vec::new();
            // The only wait is for a chunk, and what was waited for is taken in the same poll: dropping this future
            // loses nothing.
            while let Some(body) = &mut self.body {
                match timeout_at(self.deadline, body.next()).await {
                    Ok(came) => self.came(came, &mut fresh),
                    Err(_) => self.broke(self.timed_out(), &mut fresh),
                }
                if !fresh.is_empty() {
                    out.append(&mut fresh);
                    return true;
                }
            }
            self.assembler.flush(&mut fresh);
            let is_more = !fresh.is_empty();
            out.append(&mut fresh);
            is_more
        })
    }

    fn finish(self: Box<Self>) -> Reply {
        let ending = if self.body.is_some() { Ending::Cut } else { Ending::Read };
        let mut reply = self.assembler.finish(ending);
        reply.remarks = self.lesson.map(|lesson| lesson.remarks).unwrap_or_default();
        reply
    }
}
