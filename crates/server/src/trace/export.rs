//! Spans on their way to a collector: OTLP over HTTP, as JSON (OpenTelemetry protocol 1.x).
//!
//! A bounded queue, batches, one request at a time. A collector that is slow or gone loses spans, which are counted, and slows nothing.

use super::{Attribute, Kind, Place, Span};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{Mutex, mpsc};
use tokio::time::{Instant, timeout, timeout_at};

/// Spans that wait.
const QUEUE_SPANS_MAX: usize = 4_096;
/// Spans of one request.
const BATCH_SPANS_MAX: usize = 512;
/// How long the first span of a batch waits for others.
const BATCH_TIMEOUT_MS: u64 = 2_000;
/// What a provider is called that nobody knows.
const OTHER_PROVIDER: &str = "_OTHER";
/// How long a collector may take for a request.
const SEND_TIMEOUT_S: u64 = 10;

/// Sends a body of JSON to a collector; the error says why it was not taken.
type Send = dyn Fn(Vec<u8>) -> BoxFuture<'static, Result<(), String>> + std::marker::Send + Sync;

/// Who answers as a model of that name, in the words of the conventions: `openai`, `anthropic`, `gcp.gemini`, …
type Provider = dyn Fn(&str) -> Option<&'static str> + std::marker::Send + Sync;

/// Where traces go.
#[derive(Clone)]
pub struct Traces {
    send: Arc<Send>,
    provider: Arc<Provider>,
}

impl Traces {
    /// Traces are handed to `send` as bodies for the `/v1/traces` of a collector, of the type `application/json`; one at a time.
    /// `provider` says who answers as a model of some name, in the words of the conventions (`openai`, `anthropic`, `gcp.gemini`).
    pub fn new(
        send: impl Fn(Vec<u8>) -> BoxFuture<'static, Result<(), String>> + std::marker::Send + Sync + 'static,
        provider: impl Fn(&str) -> Option<&'static str> + std::marker::Send + Sync + 'static,
    ) -> Self {
        Self {
            send: Arc::new(send),
            provider: Arc::new(provider),
        }
    }
}

impl fmt::Debug for Traces {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Traces").finish_non_exhaustive()
    }
}

/// Takes spans, and sends them while [`Exporter::run`] is driven.
pub(crate) struct Exporter {
    send: Arc<Send>,
    spans: mpsc::Sender<Span>,
    queue: Mutex<Queue>,
    dropped: AtomicU64,
    provider: Arc<Provider>,
}

struct Queue {
    waiting: mpsc::Receiver<Span>,
    batch: Vec<Span>,
}

impl Exporter {
    pub(crate) fn new(traces: Traces) -> Self {
        let (spans, waiting) = mpsc::channel(QUEUE_SPANS_MAX);
        Self {
            send: traces.send,
            provider: traces.provider,
            spans,
            queue: Mutex::new(Queue {
                waiting,
                batch: Vec::new(),
            }),
            dropped: AtomicU64::new(0),
        }
    }

    /// Who answers as that model.
    pub(crate) fn provider(&self, model: &str) -> &'static str {
        (self.provider)(model).unwrap_or(OTHER_PROVIDER)
    }

    /// Takes a span, if there is room for it.
    pub(crate) fn take(&self, span: Span) {
        if self.spans.try_send(span).is_err() {
            self.lose(1);
        }
    }

    /// Spans that no collector got.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    fn lose(&self, count: usize) {
        self.dropped
            .fetch_add(u64::try_from(count).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Sends what comes, for ever.
    pub(crate) async fn run(&self) {
        let mut queue = self.queue.lock().await;
        loop {
            queue.fill(Duration::from_millis(BATCH_TIMEOUT_MS)).await;
            self.send(&mut queue.batch).await;
        }
    }

    /// Sends what is there, within that time.
    pub(crate) async fn flush(&self, within: Duration) {
        let flushing = async {
            let mut queue = self.queue.lock().await;
            while !(queue.batch.is_empty() && queue.waiting.is_empty()) {
                queue.fill(Duration::ZERO).await;
                self.send(&mut queue.batch).await;
            }
        };
        // What is not sent by then is lost.
        let _ = timeout(within, flushing).await;
    }

    async fn send(&self, batch: &mut Vec<Span>) {
        let body = otlp(batch).to_string().into_bytes();
        let sent = timeout(Duration::from_secs(SEND_TIMEOUT_S), (self.send)(body)).await;
        if !matches!(sent, Ok(Ok(()))) {
            self.lose(batch.len());
        }
        batch.clear();
    }
}

impl Queue {
    /// Waits for a span, and for those that come soon after it.
    async fn fill(&mut self, patience: Duration) {
        if self.batch.is_empty() {
            self.waiting.recv_many(&mut self.batch, BATCH_SPANS_MAX).await;
        }
        let until = Instant::now() + patience;
        while self.batch.len() < BATCH_SPANS_MAX {
            let room = BATCH_SPANS_MAX - self.batch.len();
            match timeout_at(until, self.waiting.recv_many(&mut self.batch, room)).await {
                Ok(1..) => {}
                Ok(0) | Err(_) => return,
            }
        }
    }
}

/// A batch as the protocol wants it: ids in hexadecimal, 64-bit numbers as texts.
fn otlp(spans: &[Span]) -> Value {
    let version = env!("CARGO_PKG_VERSION");
    let resource = [
        attribute("service.name", &Attribute::Text("aish".to_owned())),
        attribute("service.version", &Attribute::Text(version.to_owned())),
    ];
    let spans: Vec<Value> = spans.iter().map(span).collect();
    json!({"resourceSpans": [{
        "resource": {"attributes": resource},
        "scopeSpans": [{"scope": {"name": "aish", "version": version}, "spans": spans}],
    }]})
}

fn span(span: &Span) -> Value {
    let mut attributes: Vec<Value> = span
        .attributes
        .iter()
        .map(|(name, value)| attribute(name, value))
        .collect();
    let mut written = json!({
        "traceId": span.place.trace,
        "spanId": span.place.span,
        "name": span.name,
        "kind": match span.kind {
            Kind::Internal => 1,
            Kind::Server => 2,
            Kind::Client => 3,
        },
        "startTimeUnixNano": nanoseconds(span.start_ms),
        "endTimeUnixNano": nanoseconds(span.end_ms),
    });
    if let Some(parent) = &span.parent {
        written["parentSpanId"] = json!(parent);
    }
    if let Some(error) = &span.error {
        attributes.push(attribute("error.type", &Attribute::Text(error.clone())));
        written["status"] = json!({"code": 2, "message": error});
    }
    if let Some(Place { trace, span }) = &span.link {
        written["links"] = json!([{"traceId": trace, "spanId": span}]);
    }
    written["attributes"] = attributes.into();
    written
}

fn attribute(name: &str, value: &Attribute) -> Value {
    let text = |text: &String| json!({"stringValue": text});
    let value = match value {
        Attribute::Text(said) => text(said),
        Attribute::Number(number) => json!({"intValue": number.to_string()}),
        Attribute::Texts(texts) => {
            let values: Vec<Value> = texts.iter().map(text).collect();
            json!({"arrayValue": {"values": values}})
        }
    };
    json!({"key": name, "value": value})
}

fn nanoseconds(unix_ms: u64) -> String {
    (u128::from(unix_ms) * 1_000_000).to_string()
}

#[cfg(test)]
#[path = "export_tests.rs"]
mod tests;
