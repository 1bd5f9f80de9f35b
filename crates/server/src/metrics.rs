//! What is counted, for `GET /metrics` (SPEC 9.8).
//!
//! Every set of labels is bounded: routes are patterns, never paths; a client's tools are one; names beyond [`NAMES_MAX`] are
//! `other`. What turns do is counted once a run of theirs is over, from the events it wrote: by the process that wrote them, so that
//! the sum over all servers of a ledger is right. One lock is held for the moment of a few additions.

mod process;
mod text;

pub(crate) use text::CONTENT_TYPE;

use crate::trace::model_after;
use aish_core::event::{Body, CallSource, ResultEnd, ToolResult, Usage};
use aish_core::id::CallId;
use aish_engine::{Ran, WaitingCount};
use http::StatusCode;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use text::Page;

/// Models, and tools, and kinds of failure, that are counted by their name.
const NAMES_MAX: usize = 100;
/// What all others are called.
const OTHER: &str = "other";
/// Upper bounds of durations, in seconds: a probe takes a millisecond, a turn minutes.
const BUCKETS_S: [f64; 14] = [
    0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0, 120.0, 600.0,
];

/// All of it.
pub(crate) struct Metrics {
    counts: Mutex<Counts>,
    connections: AtomicUsize,
    streams: AtomicUsize,
    store_errors: AtomicU64,
    began: SystemTime,
}

#[derive(Default)]
struct Counts {
    requests: BTreeMap<(&'static str, &'static str, u16), u64>,
    durations: BTreeMap<&'static str, Histogram>,
    refusals: BTreeMap<&'static str, u64>,
    turns: Turns,
    ended: BTreeMap<&'static str, u64>,
    models: BTreeMap<String, Model>,
    failures: BTreeMap<(String, String), u64>,
    tools: BTreeMap<(String, &'static str), u64>,
}

#[derive(Default)]
struct Turns {
    started: u64,
    suspended: u64,
    resumed: u64,
    broken: u64,
}

#[derive(Default)]
struct Model {
    replies: u64,
    tokens: Usage,
}

#[derive(Default)]
struct Histogram {
    /// How many were within each bound, and no lower one.
    within: [u64; BUCKETS_S.len()],
    count: u64,
    sum_s: f64,
}

/// What is only known at the moment of asking.
pub(crate) struct Now {
    /// Turns that run.
    pub(crate) running: usize,
    /// Turns that wait, if the ledger says it.
    pub(crate) waiting: Option<WaitingCount>,
    /// Spans that were thrown away.
    pub(crate) spans_dropped: Option<u64>,
    /// Lines of the log that were.
    pub(crate) lines_dropped: Option<u64>,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        Self {
            counts: Mutex::default(),
            connections: AtomicUsize::new(0),
            streams: AtomicUsize::new(0),
            store_errors: AtomicU64::new(0),
            began: SystemTime::now(),
        }
    }

    /// A request got its answer, or the head of one that goes on.
    pub(crate) fn answered(&self, method: &str, route: &'static str, status: StatusCode, took: Duration) {
        let mut counts = self.counts();
        let key = (route, method_label(method), status.as_u16());
        *counts.requests.entry(key).or_default() += 1;
        counts.durations.entry(route).or_default().add(took.as_secs_f64());
    }

    /// A request was refused.
    pub(crate) fn refused(&self, kind: &'static str) {
        *self.counts().refusals.entry(kind).or_default() += 1;
    }

    /// The ledger could not be read or written.
    pub(crate) fn store_failed(&self) {
        self.store_errors.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn connections(&self, count: usize) {
        self.connections.store(count, Ordering::Relaxed);
    }

    pub(crate) fn stream_opened(&self) {
        self.streams.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn stream_closed(&self) {
        self.streams.fetch_sub(1, Ordering::Relaxed);
    }

    /// A run of a turn is over.
    pub(crate) fn ran(&self, ran: &Ran<'_>) {
        let mut counts = self.counts();
        counts.turns.broken += u64::from(ran.problem.is_some());
        let sources = sources(ran);
        // By its configured name; the tokens of a reply are an event after it, and say the provider's.
        let mut asked = "";
        for event in ran.of_turn() {
            asked = model_after(event).unwrap_or(asked);
            if event.seq < ran.from {
                continue;
            }
            if let Body::TurnStarted(_) = &event.body {
                counts.turns.started += 1;
            } else if let Body::Suspended(_) = &event.body {
                counts.turns.suspended += 1;
            } else if let Body::Resumed(_) = &event.body {
                counts.turns.resumed += 1;
            } else if let Body::TurnEnded(ended) = &event.body {
                *counts.ended.entry(ended.reason.word()).or_default() += 1;
            } else if let Body::Assistant(reply) = &event.body {
                if let Some(model) = &reply.model {
                    counts.model(model).replies += 1;
                }
            } else if let Body::ModelFailed(failed) = &event.body {
                counts.failed(failed.model.as_deref().unwrap_or(asked), &failed.error);
            } else if let Body::Usage(usage) = &event.body {
                counts.model(asked).tokens.add(usage);
            } else if let Body::ToolResult(result) = &event.body {
                let name = match sources.get(&result.tool_call_id) {
                    Some(CallSource::Client) => "client",
                    Some(CallSource::Builtin | CallSource::Mcp) | None => &result.name,
                };
                counts.called(name, end_label(result));
            }
        }
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All of it, as Prometheus reads it.
    pub(crate) fn text(&self, now: &Now) -> String {
        let mut page = Page::default();
        page.gauge("aish_build_info", "Which version this is.");
        page.sample(&[("version", env!("CARGO_PKG_VERSION"))], 1);
        self.write_http(&mut page);
        self.write_turns(&mut page, now);
        self.write_models(&mut page);
        page.counter(
            "aish_store_errors_total",
            "Times that the ledger could not be read or written.",
        );
        page.sample(&[], self.store_errors.load(Ordering::Relaxed));
        if let Some(dropped) = now.spans_dropped {
            page.counter(
                "aish_trace_spans_dropped_total",
                "Spans that the collector of traces did not take in time.",
            );
            page.sample(&[], dropped);
        }
        if let Some(dropped) = now.lines_dropped {
            page.counter(
                "aish_log_lines_dropped_total",
                "Lines that whoever reads the log did not take in time.",
            );
            page.sample(&[], dropped);
        }
        process::write(&mut page, self.began);
        page.finish()
    }

    fn write_http(&self, page: &mut Page) {
        let counts = self.counts();
        page.counter(
            "aish_http_requests_total",
            "Requests that were answered; 499 where the client hung up before.",
        );
        for ((route, method, status), count) in &counts.requests {
            let labels = [("route", *route), ("method", *method), ("status", &status.to_string())];
            page.sample(&labels, count);
        }
        page.histogram(
            "aish_http_request_duration_seconds",
            "From the head of a request to the head of its answer.",
        );
        for (route, durations) in &counts.durations {
            durations.write(page, route);
        }
        page.counter(
            "aish_http_refusals_total",
            "Requests that were refused, by the kind of error.",
        );
        for (kind, count) in &counts.refusals {
            page.sample(&[("kind", kind)], count);
        }
        page.counter("aish_claims_lost_total", "Answers that came after another answer.");
        page.sample(&[], counts.refusals.get("already_answered").unwrap_or(&0));
        page.gauge("aish_http_connections", "Open connections.");
        page.sample(&[], self.connections.load(Ordering::Relaxed));
        page.gauge("aish_event_streams", "Open event streams.");
        page.sample(&[], self.streams.load(Ordering::Relaxed));
    }

    fn write_turns(&self, page: &mut Page, now: &Now) {
        let counts = self.counts();
        let turns = &counts.turns;
        page.gauge("aish_turns_running", "Turns that run in this process.");
        page.sample(&[], now.running);
        if let Some(waiting) = now.waiting {
            page.gauge("aish_turns_waiting", "Turns in the ledger that wait, by what for.");
            page.sample(&[("for", "client")], waiting.client);
            page.sample(&[("for", "approval")], waiting.approval);
        }
        for (name, help, count) in [
            ("aish_turns_started_total", "Turns begun here.", turns.started),
            (
                "aish_turns_suspended_total",
                "Times that a turn was left to wait here.",
                turns.suspended,
            ),
            (
                "aish_turns_resumed_total",
                "Times that a turn was gone on with here.",
                turns.resumed,
            ),
            (
                "aish_turns_broken_total",
                "Times that a turn could not go on here.",
                turns.broken,
            ),
        ] {
            page.counter(name, help);
            page.sample(&[], count);
        }
        page.counter("aish_turns_ended_total", "Turns that ended here, by why.");
        for (reason, count) in &counts.ended {
            page.sample(&[("reason", reason)], count);
        }
        page.counter(
            "aish_tool_calls_total",
            "Calls that came to an end, by tool and end; those of clients are one.",
        );
        for ((tool, end), count) in &counts.tools {
            page.sample(&[("tool", tool), ("end", end)], count);
        }
    }

    fn write_models(&self, page: &mut Page) {
        let counts = self.counts();
        page.counter("aish_model_replies_total", "Replies of models.");
        for (name, model) in &counts.models {
            page.sample(&[("model", name)], model.replies);
        }
        page.counter(
            "aish_model_failures_total",
            "Requests to models that failed, by what went wrong.",
        );
        for ((model, error), count) in &counts.failures {
            page.sample(&[("model", model), ("error", error)], count);
        }
        page.counter(
            "aish_model_tokens_total",
            "Tokens as providers count them. Cached and written ones are among the input, reasoning among the output.",
        );
        for (name, model) in &counts.models {
            let tokens = &model.tokens;
            for (kind, count) in [
                ("input", tokens.input_tokens),
                ("output", tokens.output_tokens),
                ("cached", tokens.cached_tokens),
                ("cache_write", tokens.cache_write_tokens),
                ("reasoning", tokens.reasoning_tokens),
            ] {
                page.sample(&[("model", name), ("type", kind)], count);
            }
        }
    }
}

impl Counts {
    fn model(&mut self, name: &str) -> &mut Model {
        let name = bounded(name, OTHER, self.models.keys().map(String::as_str));
        self.models.entry(name.to_owned()).or_default()
    }

    fn failed(&mut self, model: &str, error: &str) {
        let known = self
            .failures
            .keys()
            .map(|(model, error)| (model.as_str(), error.as_str()));
        let (model, error) = bounded((model, error), (OTHER, OTHER), known);
        *self.failures.entry((model.to_owned(), error.to_owned())).or_default() += 1;
    }

    fn called(&mut self, tool: &str, end: &'static str) {
        // A model may make names up.
        let tool = bounded(tool, OTHER, self.tools.keys().map(|(tool, _)| tool.as_str()));
        *self.tools.entry((tool.to_owned(), end)).or_default() += 1;
    }
}

impl Histogram {
    fn add(&mut self, seconds: f64) {
        let bounds = BUCKETS_S.iter().zip(&mut self.within);
        if let Some((_, within)) = bounds.into_iter().find(|(bound, _)| seconds <= **bound) {
            *within += 1;
        }
        self.count += 1;
        self.sum_s += seconds;
    }

    fn write(&self, page: &mut Page, route: &str) {
        let mut so_far = 0;
        for (bound, within) in BUCKETS_S.iter().zip(&self.within) {
            so_far += within;
            page.part("_bucket", &[("route", route), ("le", &bound.to_string())], so_far);
        }
        page.part("_bucket", &[("route", route), ("le", "+Inf")], self.count);
        page.part("_sum", &[("route", route)], self.sum_s);
        page.part("_count", &[("route", route)], self.count);
    }
}

/// Where the calls of a turn run.
fn sources<'a>(ran: &Ran<'a>) -> BTreeMap<&'a CallId, CallSource> {
    let gated = ran.of_turn().filter_map(|event| {
        let Body::CallGated(gated) = &event.body else {
            return None;
        };
        Some((&gated.call_id, gated.source))
    });
    gated.collect()
}

/// What something is counted as: by its name where that is known or there is room for another one, else as one of the others.
fn bounded<K: PartialEq>(name: K, other: K, known: impl Iterator<Item = K>) -> K {
    let mut count = 0;
    for known in known {
        if known == name {
            return name;
        }
        count += 1;
    }
    if count < NAMES_MAX { name } else { other }
}

fn end_label(result: &ToolResult) -> &'static str {
    match result.end {
        ResultEnd::Completed if result.success => "ok",
        ResultEnd::Completed => "error",
        ResultEnd::Declined => "declined",
        ResultEnd::Denied => "denied",
        ResultEnd::Invalid => "invalid",
        ResultEnd::NotRun => "not_run",
        ResultEnd::Interrupted => "interrupted",
        ResultEnd::Limit => "limit",
        ResultEnd::Duplicate => "duplicate",
    }
}

fn method_label(method: &str) -> &'static str {
    let known = ["GET", "POST", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", "-"];
    known.into_iter().find(|known| *known == method).unwrap_or(OTHER)
}

#[cfg(test)]
#[path = "metrics/tests.rs"]
mod tests;
