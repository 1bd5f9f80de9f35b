//! Turns as traces (OpenTelemetry, semantic conventions for generative AI): `invoke_agent` over the whole turn, under it a `chat`
//! for each request to a model and an `execute_tool` for each call that was executed, here or at the client.
//!
//! Spans are a view of the ledger: their times are those of events, and their ids follow from session, turn and event. So a turn that
//! one server began and another ended is one trace, each of whose spans is exported once: by whoever wrote the event that ends it. What
//! was said and what tools were given is not in them.

mod context;
mod export;

pub(crate) use context::{Parent, parent};
pub(crate) use export::Exporter;
pub use export::Traces;

use aish_core::Digest;
use aish_core::event::{Body, CallSource, Event, ReplyStop, ResultEnd, Usage};
use aish_core::id::CallId;
use aish_engine::Ran;
use std::collections::BTreeMap;

/// Hexadecimal digits of the id of a trace.
const TRACE_CHARS: usize = 32;
/// Of a span.
const SPAN_CHARS: usize = 16;

/// What a span is a part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Internal,
    Server,
    Client,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Attribute {
    Text(String),
    Number(u64),
    Texts(Vec<String>),
}

/// A span and the trace it belongs to, by id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) trace: String,
    pub(crate) span: String,
}

/// A piece of work. Times are in milliseconds since the Unix epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) place: Place,
    pub(crate) parent: Option<String>,
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) start_ms: u64,
    pub(crate) end_ms: u64,
    pub(crate) attributes: Vec<(&'static str, Attribute)>,
    /// What went wrong, one word.
    pub(crate) error: Option<String>,
    /// Work in another trace that this goes with.
    pub(crate) link: Option<Place>,
}

/// Where a turn is among all traces.
pub(crate) fn turn_place(session: &str, turn: u64) -> Place {
    let name = format!("{session} {turn}");
    Place {
        trace: digits(&name, TRACE_CHARS),
        span: span_id(&name, "turn"),
    }
}

/// The id of the span of a request.
pub(crate) fn request_span_id(request: &str, began_ms: u64, parent: &str) -> String {
    span_id(request, &format!("{began_ms} {parent}"))
}

fn span_id(turn: &str, what: &str) -> String {
    digits(&format!("{turn} {what}"), SPAN_CHARS)
}

fn digits(name: &str, count: usize) -> String {
    Digest::of(name).to_string().chars().take(count).collect()
}

/// The model that a turn asks from an event on, by its configured name, where the event says so: what a turn begins with, until a reply
/// says who gave it.
pub(crate) fn model_after(event: &Event) -> Option<&str> {
    if let Body::TurnStarted(data) = &event.body {
        Some(&data.model)
    } else if let Body::Assistant(data) = &event.body {
        data.model.as_deref()
    } else {
        None
    }
}

/// The spans that a run of a turn brought to their end; `provider` says who answers as a model.
pub(crate) fn spans(ran: &Ran<'_>, provider: &dyn Fn(&str) -> &'static str) -> Vec<Span> {
    let mut view = View::of(ran, provider);
    for event in ran.of_turn() {
        view.take(event);
    }
    let ended = view.spans.into_iter().filter(|(seq, _)| *seq >= ran.from);
    ended.map(|(_, span)| span).collect()
}

/// A turn, read event by event.
struct View<'a> {
    provider: &'a dyn Fn(&str) -> &'static str,
    turn: Place,
    session: &'a str,
    name: String,
    began_ms: u64,
    /// The model that was asked last, until its reply says so itself.
    model: &'a str,
    usage: Usage,
    /// When what a model was asked after had come.
    asked_ms: u64,
    /// When calls were handed to whoever executes them, and who that is.
    begun: BTreeMap<&'a CallId, u64>,
    sources: BTreeMap<&'a CallId, CallSource>,
    /// With the event that ends each.
    spans: Vec<(u64, Span)>,
}

impl<'a> View<'a> {
    fn of(ran: &Ran<'a>, provider: &'a dyn Fn(&str) -> &'static str) -> Self {
        let session = ran.session.as_str();
        Self {
            provider,
            turn: turn_place(session, ran.turn),
            session,
            name: format!("{session} {}", ran.turn),
            began_ms: 0,
            model: "",
            usage: Usage::default(),
            asked_ms: 0,
            begun: BTreeMap::new(),
            sources: BTreeMap::new(),
            spans: Vec::new(),
        }
    }

    fn take(&mut self, event: &'a Event) {
        if self.began_ms == 0 {
            (self.began_ms, self.asked_ms) = (event.time, event.time);
        }
        self.model = model_after(event).unwrap_or(self.model);
        if let Body::Assistant(data) = &event.body {
            if let Some(model) = &data.model {
                self.chat(event, model, stop_word(data.stop), None);
            }
        } else if let Body::ModelFailed(data) = &event.body {
            let model = data.model.as_deref().unwrap_or(self.model);
            self.chat(event, model, "error", Some(data.error.clone()));
        } else if let Body::Usage(usage) = &event.body {
            self.used(usage);
        } else if let Body::CallGated(data) = &event.body {
            self.sources.insert(&data.call_id, data.source);
        } else if let Body::CallStarted(data) = &event.body {
            self.begun.insert(&data.call_id, event.time);
        } else if let Body::Suspended(data) = &event.body {
            let clients = data
                .call_id
                .as_ref()
                .filter(|id| self.sources.get(id) == Some(&CallSource::Client));
            if let Some(id) = clients {
                self.begun.insert(id, event.time);
            }
        } else if let Body::ToolResult(_) = &event.body {
            self.tool(event);
        } else if let Body::TurnEnded(data) = &event.body {
            self.whole(event, data.reason.word());
        }
        let is_asked_after = matches!(
            event.body,
            Body::User(_) | Body::ToolResult(_) | Body::ModelFailed(_) | Body::Assistant(_)
        );
        if is_asked_after {
            self.asked_ms = event.time;
        }
    }

    fn span(&self, what: &str, name: String, (start_ms, end_ms): (u64, u64)) -> Span {
        Span {
            place: Place {
                trace: self.turn.trace.clone(),
                span: span_id(&self.name, what),
            },
            parent: Some(self.turn.span.clone()),
            name,
            kind: Kind::Internal,
            start_ms,
            end_ms: end_ms.max(start_ms),
            attributes: vec![("gen_ai.conversation.id", Attribute::Text(self.session.to_owned()))],
            error: None,
            link: None,
        }
    }

    fn chat(&mut self, event: &Event, model: &str, stop: &str, error: Option<String>) {
        let times = (self.asked_ms, event.time);
        let mut span = self.span(&format!("chat {}", event.seq), format!("chat {model}"), times);
        span.kind = Kind::Client;
        span.attributes.extend([
            ("gen_ai.operation.name", Attribute::Text("chat".to_owned())),
            (
                "gen_ai.provider.name",
                Attribute::Text((self.provider)(model).to_owned()),
            ),
            ("gen_ai.request.model", Attribute::Text(model.to_owned())),
            (
                "gen_ai.response.finish_reasons",
                Attribute::Texts(vec![stop.to_owned()]),
            ),
        ]);
        span.error = error;
        self.spans.push((event.seq, span));
    }

    /// The tokens of a reply are an event of their own, after it.
    fn used(&mut self, usage: &Usage) {
        self.usage.add(usage);
        let chat = self.spans.iter_mut().rev().find(|(_, span)| span.kind == Kind::Client);
        if let Some((_, span)) = chat {
            span.attributes.extend(tokens(usage));
            if let Some(model) = &usage.model {
                let model = Attribute::Text(model.clone());
                span.attributes.push(("gen_ai.response.model", model));
            }
        }
    }

    fn tool(&mut self, event: &Event) {
        let Body::ToolResult(data) = &event.body else { return };
        let id = &data.tool_call_id;
        let is_executed = matches!(data.end, ResultEnd::Completed | ResultEnd::Interrupted);
        let Some(begun_ms) = self.begun.remove(id).filter(|_| is_executed) else {
            return;
        };
        let is_clients = self.sources.get(id) == Some(&CallSource::Client);
        let what = format!("tool {id}");
        let mut span = self.span(&what, format!("execute_tool {}", data.name), (begun_ms, event.time));
        span.attributes.extend([
            ("gen_ai.operation.name", Attribute::Text("execute_tool".to_owned())),
            ("gen_ai.tool.name", Attribute::Text(data.name.clone())),
            ("gen_ai.tool.call.id", Attribute::Text(id.to_string())),
            // In the conventions' words a function is what a client executes, an extension what the agent's side does.
            (
                "gen_ai.tool.type",
                Attribute::Text(if is_clients { "function" } else { "extension" }.to_owned()),
            ),
        ]);
        if data.end == ResultEnd::Interrupted {
            span.error = Some("interrupted".to_owned());
        } else if !data.success {
            span.error = Some("tool_error".to_owned());
        }
        self.spans.push((event.seq, span));
    }

    fn whole(&mut self, event: &Event, reason: &str) {
        let mut span = self.span("turn", "invoke_agent aish".to_owned(), (self.began_ms, event.time));
        span.parent = None;
        span.attributes.extend([
            ("gen_ai.operation.name", Attribute::Text("invoke_agent".to_owned())),
            ("gen_ai.agent.name", Attribute::Text("aish".to_owned())),
            ("gen_ai.request.model", Attribute::Text(self.model.to_owned())),
            (
                "gen_ai.response.finish_reasons",
                Attribute::Texts(vec![reason.to_owned()]),
            ),
        ]);
        span.attributes.extend(tokens(&self.usage));
        if matches!(reason, "model_failed" | "truncated") {
            span.error = Some(reason.to_owned());
        }
        self.spans.push((event.seq, span));
    }
}

fn tokens(usage: &Usage) -> [(&'static str, Attribute); 2] {
    [
        ("gen_ai.usage.input_tokens", Attribute::Number(usage.input_tokens)),
        ("gen_ai.usage.output_tokens", Attribute::Number(usage.output_tokens)),
    ]
}

fn stop_word(stop: ReplyStop) -> &'static str {
    match stop {
        ReplyStop::End => "stop",
        ReplyStop::ToolCalls => "tool_calls",
        ReplyStop::Paused => "paused",
        ReplyStop::Length => "length",
        ReplyStop::Truncated => "truncated",
        ReplyStop::Refused => "content_filter",
        ReplyStop::Interrupted => "interrupted",
        ReplyStop::Closing => "closing",
    }
}

#[cfg(test)]
#[path = "trace/tests.rs"]
mod tests;
