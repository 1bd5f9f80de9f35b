//! What is said about what this server does: counted ([`Metrics`]), written down ([`Log`]) and traced. All three see the same things:
//! requests as they are answered, and runs of turns as they end.

use crate::error::{ApiError, Cause, ErrorKind};
use crate::log::{Line, Log, RequestLine, Tokens, TurnLine};
use crate::metrics::{Metrics, Now};
use crate::ready::Readiness;
use crate::routes;
use crate::trace::{self, Attribute, Exporter, Kind, Parent, Place, Span, Traces};
use aish_core::event::{Body as EventBody, Usage};
use aish_core::id::SessionId;
use aish_engine::{Conversations, Fault, Observer, Ran, WaitingCount, now_ms};
use aish_listen::RequestId;
use axum::body::Body;
use http::{Request, Response, StatusCode};
use hyper::body::{Bytes, Frame, SizeHint};
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// How long the count of turns that wait is good: it is read from the ledger.
const WAITING_KEPT_S: u64 = 5;
/// How long the ledger may take to count them.
const WAITING_TIMEOUT_S: u64 = 2;
/// How long the last spans and lines may take to be sent, each.
const FLUSH_TIMEOUT_MS: u64 = 400;
/// The method and the route of a request that was not let in.
const TURNED_AWAY: &str = "-";
/// What is counted for a client that hung up before it was answered; nginx has made the number known.
const HUNG_UP: u16 = 499;

/// All of it.
pub(crate) struct Telemetry {
    metrics: Metrics,
    log: Option<Log>,
    exporter: Option<Exporter>,
    waiting: Mutex<Option<(Instant, WaitingCount)>>,
    ready: Readiness,
    /// Whose secrets are kept out of the log.
    conversations: Weak<Conversations>,
}

/// The turn that an answer is about, for traces; among the answer's extensions, as the session's id is for the log.
#[derive(Clone, Debug)]
pub(crate) struct TurnOf(pub(crate) SessionId, pub(crate) u64);

/// An open event stream.
pub(crate) struct Open {
    telemetry: Arc<Telemetry>,
    failed: StreamFailed,
}

/// Why a stream failed after its answer had begun; among the answer's extensions.
#[derive(Clone, Debug, Default)]
struct StreamFailed(Arc<OnceLock<Cause>>);

impl Open {
    /// The answer that the stream is.
    pub(crate) fn mark<B>(&self, answer: &mut Response<B>) {
        answer.extensions_mut().insert(self.failed.clone());
    }

    /// The stream ends with this.
    pub(crate) fn failed(&self, error: &ApiError) {
        if let Some(cause) = error.cause() {
            if cause.fault == Fault::Ledger {
                self.telemetry.ledger_failed();
            }
            let _ = self.failed.0.set(cause.clone());
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.telemetry.metrics.stream_closed();
    }
}

/// A request that is being answered. Dropped without an answer, its client has hung up.
pub(crate) struct Asked {
    telemetry: Arc<Telemetry>,
    head: Option<Head>,
}

/// What is kept of a request.
struct Head {
    method: String,
    route: &'static str,
    id: String,
    /// The id in its path, of a session or a continuation.
    named: Option<String>,
    began: Instant,
    began_ms: u64,
    parent: Option<Parent>,
}

/// What is kept of its answer.
struct Answered {
    head: Head,
    status: StatusCode,
    session: Option<SessionId>,
    turn: Option<Place>,
    cause: Option<Cause>,
    stream: Option<StreamFailed>,
    bytes: u64,
}

impl Telemetry {
    pub(crate) fn new(conversations: &Arc<Conversations>, log: Option<Log>, traces: Option<Traces>) -> Arc<Self> {
        Arc::new(Self {
            metrics: Metrics::new(),
            log,
            exporter: traces.map(Exporter::new),
            waiting: Mutex::default(),
            ready: Readiness::default(),
            conversations: Arc::downgrade(conversations),
        })
    }

    /// Looks whether the ledger takes what is written.
    pub(crate) async fn look_at_ledger(&self, conversations: &Conversations) -> Result<(), ApiError> {
        self.ready.look(conversations, &self.metrics).await
    }

    /// The ledger failed a request or a turn.
    fn ledger_failed(&self) {
        self.metrics.store_failed();
        self.ready.failed();
    }

    /// A stream is about to be sent.
    pub(crate) fn stream(self: &Arc<Self>) -> Open {
        self.metrics.stream_opened();
        Open {
            telemetry: Arc::clone(self),
            failed: StreamFailed::default(),
        }
    }

    pub(crate) fn connections(&self, count: usize) {
        self.metrics.connections(count);
    }

    /// A request is about to be answered.
    pub(crate) fn asked<B>(self: &Arc<Self>, request: &Request<B>) -> Asked {
        let id = request.extensions().get::<RequestId>();
        let is_traced = self.exporter.is_some();
        self.of(Head {
            method: request.method().to_string(),
            route: routes::pattern(request.uri().path()),
            id: id.map(ToString::to_string).unwrap_or_default(),
            named: routes::id_in(request.uri().path()).map(str::to_owned),
            began: Instant::now(),
            began_ms: now_ms(),
            parent: is_traced.then(|| trace::parent(request.headers())).flatten(),
        })
    }

    /// A request was not let in: nobody looked at what it wants.
    pub(crate) fn turned_away(self: &Arc<Self>, id: &RequestId) -> Asked {
        self.of(Head {
            method: TURNED_AWAY.to_owned(),
            route: TURNED_AWAY,
            id: id.to_string(),
            named: None,
            began: Instant::now(),
            began_ms: now_ms(),
            parent: None,
        })
    }

    fn of(self: &Arc<Self>, head: Head) -> Asked {
        Asked {
            telemetry: Arc::clone(self),
            head: Some(head),
        }
    }

    /// Sends spans to their collector, for ever. Where there is none it waits for ever: whoever serves ends with it.
    pub(crate) async fn run(&self) {
        match &self.exporter {
            Some(exporter) => exporter.run().await,
            None => std::future::pending().await,
        }
    }

    /// Sends and writes what is left, within seconds.
    pub(crate) async fn finish(&self) {
        let within = Duration::from_millis(FLUSH_TIMEOUT_MS);
        if let Some(exporter) = &self.exporter {
            exporter.flush(within).await;
        }
        if let Some(log) = self.log.clone() {
            // The thread that waits is not one that others wait for; that it is gone is as good as that it has waited.
            let _ = tokio::task::spawn_blocking(move || log.flush(within)).await;
        }
    }

    /// What `GET /metrics` answers.
    pub(crate) async fn text(&self, conversations: &Conversations) -> String {
        let now = Now {
            running: conversations.running_count(),
            waiting: self.waiting(conversations).await,
            spans_dropped: self.exporter.as_ref().map(Exporter::dropped),
            lines_dropped: self.log.as_ref().map(Log::dropped),
        };
        self.metrics.text(&now)
    }

    async fn waiting(&self, conversations: &Conversations) -> Option<WaitingCount> {
        let kept = || self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let known = *kept();
        if let Some((at, count)) = known
            && at.elapsed() < Duration::from_secs(WAITING_KEPT_S)
        {
            return Some(count);
        }
        let counting = tokio::time::timeout(Duration::from_secs(WAITING_TIMEOUT_S), conversations.waiting_count());
        if let Ok(Ok(count)) = counting.await {
            *kept() = Some((Instant::now(), count));
            Some(count)
        } else {
            self.metrics.store_failed();
            None
        }
    }

    fn answered(&self, answered: &Answered) {
        let head = &answered.head;
        if let Some(log) = &self.log {
            let failed = answered.stream.as_ref().and_then(|stream| stream.0.get());
            let cause = answered.cause.as_ref().or(failed);
            let problem = cause.and_then(|cause| self.shown(&cause.text));
            let line = RequestLine {
                request_id: &head.id,
                method: &head.method,
                route: head.route,
                status: answered.status.as_u16(),
                duration_ms: milliseconds(head.began.elapsed()),
                bytes: answered.bytes,
                session: answered
                    .session
                    .as_ref()
                    .map(SessionId::as_str)
                    .or(head.named.as_deref()),
                problem: problem.as_deref(),
            };
            log.write(now_ms(), &Line::Request(line));
        }
        if let (Some(exporter), Some(Parent(parent))) = (&self.exporter, &head.parent) {
            exporter.take(request_span(answered, parent));
        }
    }
}

impl Telemetry {
    /// Text without the secrets that this process knows; nothing where nobody is left to know them.
    fn shown(&self, text: &str) -> Option<String> {
        let conversations = self.conversations.upgrade()?;
        Some(conversations.shown(text.to_owned()))
    }
}

impl Observer for Telemetry {
    fn ran(&self, ran: &Ran<'_>) {
        self.metrics.ran(ran);
        if ran.problem.is_some_and(|problem| problem.fault == Fault::Ledger) {
            self.ledger_failed();
        }
        if let Some(log) = &self.log {
            log.write(now_ms(), &Line::Turn(turn_line(ran)));
        }
        if let Some(exporter) = &self.exporter {
            let ended = trace::spans(ran, &|model| exporter.provider(model));
            ended.into_iter().for_each(|span| exporter.take(span));
        }
    }
}

/// What the log says of a run.
fn turn_line<'a>(ran: &Ran<'a>) -> TurnLine<'a> {
    let model = ran.of_turn().filter_map(trace::model_after).last();
    let (mut reason, mut usage) = ("left", Usage::default());
    for event in ran.written() {
        if let EventBody::Usage(data) = &event.body {
            usage.add(data);
        } else if let EventBody::Suspended(_) = &event.body {
            reason = "waiting";
        } else if let EventBody::Resumed(_) = &event.body {
            reason = "left";
        } else if let EventBody::TurnEnded(data) = &event.body {
            reason = data.reason.word();
        }
    }
    let times = || ran.written().map(|event| event.time);
    let (first, last) = (times().next().unwrap_or(0), times().last().unwrap_or(0));
    TurnLine {
        session: ran.session.as_str(),
        turn: ran.turn,
        model: model.unwrap_or_default(),
        reason: if ran.problem.is_some() { "failed" } else { reason },
        duration_ms: last.saturating_sub(first),
        usage: Tokens {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
        },
        problem: ran.problem.map(|problem| problem.text),
    }
}

impl Asked {
    /// Counts the answer; it is written down once its last byte was taken or nobody takes it any more.
    pub(crate) fn answer(mut self, response: Response<Body>) -> Response<Body> {
        let Some(head) = self.head.take() else { return response };
        let telemetry = Arc::clone(&self.telemetry);
        let status = response.status();
        let metrics = &telemetry.metrics;
        metrics.answered(&head.method, head.route, status, head.began.elapsed());
        if let Some(kind) = response.extensions().get::<ErrorKind>() {
            metrics.refused(kind.word());
        }
        let (mut parts, body) = response.into_parts();
        let cause = parts.extensions.remove::<Cause>();
        let is_ledgers = cause.as_ref().is_some_and(|cause| cause.fault == Fault::Ledger);
        // What a probe finds it has counted itself, and it is known for what it is.
        if is_ledgers && head.route != routes::READYZ {
            telemetry.ledger_failed();
        }
        let answered = Answered {
            head,
            status,
            session: parts.extensions.get::<SessionId>().cloned(),
            turn: parts
                .extensions
                .get::<TurnOf>()
                .map(|TurnOf(session, turn)| trace::turn_place(session.as_str(), *turn)),
            cause,
            stream: parts.extensions.remove(),
            bytes: 0,
        };
        let body = Body::new(Sent {
            body,
            answered,
            telemetry,
        });
        Response::from_parts(parts, body)
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        let Some(head) = self.head.take() else { return };
        let status = StatusCode::from_u16(HUNG_UP).unwrap_or(StatusCode::BAD_REQUEST);
        let telemetry = &self.telemetry;
        telemetry
            .metrics
            .answered(&head.method, head.route, status, head.began.elapsed());
        telemetry.answered(&Answered {
            head,
            status,
            session: None,
            turn: None,
            cause: None,
            stream: None,
            bytes: 0,
        });
    }
}

/// The body of an answer, whose bytes are counted as they are taken.
struct Sent {
    body: Body,
    answered: Answered,
    telemetry: Arc<Telemetry>,
}

impl hyper::body::Body for Sent {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled {
            let bytes = frame.data_ref().map_or(0, Bytes::len);
            self.answered.bytes += u64::try_from(bytes).unwrap_or(u64::MAX);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        self.telemetry.answered(&self.answered);
    }
}

/// A request as a part of what its client does.
fn request_span(answered: &Answered, parent: &Place) -> Span {
    let head = &answered.head;
    let status = u64::from(answered.status.as_u16());
    Span {
        place: Place {
            trace: parent.trace.clone(),
            span: trace::request_span_id(&head.id, head.began_ms, &parent.span),
        },
        parent: Some(parent.span.clone()),
        name: format!("{} {}", head.method, head.route),
        kind: Kind::Server,
        start_ms: head.began_ms,
        end_ms: head.began_ms + milliseconds(head.began.elapsed()),
        attributes: vec![
            ("http.request.method", Attribute::Text(head.method.clone())),
            ("http.route", Attribute::Text(head.route.to_owned())),
            ("http.response.status_code", Attribute::Number(status)),
        ],
        error: (status >= 500).then(|| status.to_string()),
        link: answered.turn.clone(),
    }
}

fn milliseconds(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use aish_engine::Problem;

    /// SPEC 9.8: a turn that could not go on is the ledger's fault where the ledger failed, and only there.
    #[test]
    fn whose_fault() {
        let telemetry = Telemetry {
            metrics: Metrics::new(),
            log: None,
            exporter: None,
            waiting: Mutex::default(),
            ready: Readiness::default(),
            conversations: Weak::new(),
        };
        let failures = |fault| {
            let text = "it broke";
            telemetry.ran(&Ran {
                session: &SessionId::new("s-1"),
                turn: 1,
                events: &[],
                from: 1,
                problem: Some(Problem { text, fault }),
            });
            let text = telemetry.metrics.text(&Now {
                running: 0,
                waiting: None,
                spans_dropped: None,
                lines_dropped: None,
            });
            let count = |name: &str| {
                text.lines()
                    .find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok())
            };
            (count("aish_turns_broken_total"), count("aish_store_errors_total"))
        };
        assert_eq!(failures(Fault::Other), (Some(1), Some(0)));
        assert_eq!(failures(Fault::Ledger), (Some(2), Some(1)));
    }
}
