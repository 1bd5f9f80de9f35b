//! From the ledger to what a model is sent (SPEC 2.6, 2.7).
//!
//! The ledger may hold orphans: a call without a result after a crash, a result without a call. They are repaired here and
//! never sent: every call gets exactly one result, in call order, right after the reply that made it. What a model sees of a
//! long result is cut here too, by the bound its turn began with, so that the beginning of a request never changes.

use crate::event::{Assistant, Body, Event, ReplyStop, ToolCall, ToolResult};
use crate::id::{CallId, ReplyId};
use crate::image::Image;
use crate::limits::Limits;
use crate::message::{Message, MessageCall, Part, text_of};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};

mod cut;

pub use cut::cut_result;

/// What stands for a user's message of nothing at all.
const NO_TEXT: &str = "(no text)";

/// What stands before a conversation whose beginning is not in the context.
const BEGINNING_LOST: &str = "(the conversation began before this point)";

/// What the model is told of a call that no result was ever recorded for.
const NO_RESULT: &str = "interrupted: the end of this call is not known";

/// What a model is sent of a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Projection {
    /// Standing instructions of the session's own, in order.
    pub system: Vec<String>,
    /// The conversation.
    pub messages: Vec<Message>,
}

/// The events since the context was last cleared.
pub fn context(events: &[Event]) -> &[Event] {
    let start = events
        .iter()
        .rposition(|event| matches!(event.body, Body::Clear))
        .map_or(0, |at| at + 1);
    events.get(start..).unwrap_or_default()
}

/// Projects a session's events.
pub fn project(events: &[Event]) -> Projection {
    let events = context(events);
    let mut projector = Projector::new(events);
    for (at, event) in events.iter().enumerate() {
        projector.event(at, event);
    }
    projector.finish()
}

struct Projector<'a> {
    out: Projection,
    index: Index<'a>,
    /// Calls no reply claims (an imported log, a reply that is lost), until the group they make up is over.
    loose_calls: Vec<Place<'a, ToolCall>>,
    /// Messages typed while a turn ran, until a reply has seen them.
    steering: Vec<(u64, Message)>,
    /// The last turn whose question was seen: another message within it is steering.
    asked_turn: u64,
    /// True when the last reply was paused by its provider: what follows continues it in the middle.
    is_paused: bool,
    /// Which of the instructions are a client's: what it says later takes their place.
    of_client: Option<usize>,
    /// Ids sent so far: two calls of one request never share one, whatever an imported log says.
    sent_ids: HashSet<CallId>,
}

/// An event's data and where it stands.
struct Place<'a, T> {
    at: usize,
    turn: u64,
    data: &'a T,
}

/// What a projection has to look ahead for.
#[derive(Default)]
struct Index<'a> {
    /// Where each reply stands.
    replies: HashMap<(u64, &'a ReplyId), usize>,
    /// The calls of each reply, in call order.
    calls: HashMap<(u64, &'a ReplyId), Vec<Place<'a, ToolCall>>>,
    /// The results of each call, in the order they came.
    results: HashMap<(u64, &'a CallId), Vec<Place<'a, ToolResult>>>,
    /// How much of a result a model sees, by turn.
    chars_max: HashMap<u64, usize>,
    /// The turns that a client elsewhere began.
    served: HashSet<u64>,
}

impl<'a> Index<'a> {
    fn new(events: &'a [Event]) -> Self {
        let mut index = Self::default();
        for (at, event) in events.iter().enumerate() {
            let turn = event.turn;
            if let Body::TurnStarted(started) = &event.body {
                index.chars_max.insert(turn, started.limits.max_result_chars);
                if started.served.is_some() {
                    index.served.insert(turn);
                }
            } else if let Body::Assistant(data) = &event.body {
                index.replies.entry((turn, &data.reply_id)).or_insert(at);
            } else if let Body::ToolCall(data) = &event.body {
                if let Some(reply) = data
                    .reply_id
                    .as_ref()
                    .filter(|id| index.replies.contains_key(&(turn, *id)))
                {
                    let calls = index.calls.entry((turn, reply)).or_default();
                    calls.push(Place { at, turn, data });
                }
            } else if let Body::ToolResult(data) = &event.body {
                let results = index.results.entry((turn, &data.tool_call_id)).or_default();
                results.push(Place { at, turn, data });
            }
        }
        index
    }

    /// Whether a reply that stands before it claims this call.
    fn is_claimed(&self, turn: u64, at: usize, call: &'a ToolCall) -> bool {
        let reply = call.reply_id.as_ref().and_then(|id| self.replies.get(&(turn, id)));
        reply.is_some_and(|reply_at| *reply_at < at)
    }

    /// The result that counts for a call: the first after it (SPEC 3.5a).
    fn result(&self, call: &Place<'a, ToolCall>) -> Option<&'a ToolResult> {
        let results = self.results.get(&(call.turn, &call.data.id))?;
        let after = results.iter().find(|result| result.at > call.at)?;
        Some(after.data)
    }

    fn result_chars_max(&self, turn: u64) -> usize {
        let known = self.chars_max.get(&turn).copied();
        known.unwrap_or_else(|| Limits::default().max_result_chars)
    }
}

impl<'a> Projector<'a> {
    fn new(events: &'a [Event]) -> Self {
        Self {
            out: Projection::default(),
            index: Index::new(events),
            loose_calls: Vec::new(),
            steering: Vec::new(),
            asked_turn: 0,
            is_paused: false,
            of_client: None,
            sent_ids: HashSet::new(),
        }
    }

    fn event(&mut self, at: usize, event: &'a Event) {
        if let Body::System(_) = &event.body {
            self.system(event);
        } else if let Body::User(data) = &event.body {
            self.flush_loose_calls();
            self.user(event, &data.parts);
        } else if let Body::Assistant(data) = &event.body {
            self.flush_loose_calls();
            self.assistant(event, data);
        } else if let Body::ToolCall(data) = &event.body {
            if !self.index.is_claimed(event.turn, at, data) {
                let turn = event.turn;
                self.loose_calls.push(Place { at, turn, data });
            }
        } else if let Body::ToolResult(_) = &event.body {
            self.flush_loose_calls();
        }
    }

    fn finish(mut self) -> Projection {
        self.flush_loose_calls();
        self.flush_steering(u64::MAX);
        if matches!(self.out.messages.first(), Some(Message::Assistant { .. })) {
            // Strict templates and some providers refuse a conversation that its user did not begin.
            let parts = vec![Part::text(BEGINNING_LOST)];
            self.out.messages.insert(0, Message::User { parts });
        }
        self.out
    }

    fn system(&mut self, event: &Event) {
        let told = self.of_client.and_then(|at| self.out.system.get_mut(at));
        match told.filter(|_| self.index.served.contains(&event.turn)) {
            Some(before) => before.clone_from(&event.content),
            None => {
                if self.index.served.contains(&event.turn) {
                    self.of_client = Some(self.out.system.len());
                }
                self.out.system.push(event.content.clone());
            }
        }
    }

    fn user(&mut self, event: &Event, parts: &[Part]) {
        let steers = event.turn > 0 && event.turn == self.asked_turn;
        let mut parts = parts.to_vec();
        if !event.content.is_empty() {
            parts.push(Part::text(event.content.as_str()));
        } else if parts.is_empty() {
            // Providers refuse an empty message.
            parts.push(Part::text(NO_TEXT));
        }
        let message = Message::User { parts };
        if steers {
            self.steering.push((event.seq, message));
            return;
        }
        self.flush_steering(u64::MAX);
        self.out.messages.push(message);
        if event.turn > 0 {
            self.asked_turn = event.turn;
        }
    }

    fn assistant(&mut self, event: &'a Event, data: &'a Assistant) {
        if data.stop == ReplyStop::Closing {
            self.flush_steering(u64::MAX);
            self.assistant_message(vec![Part::text(event.content.as_str())], &[], None);
            return;
        }
        // Zero: written without that knowledge, so the reply is taken to have seen everything before it.
        self.flush_steering(if data.context_seq == 0 {
            event.seq
        } else {
            data.context_seq
        });
        let calls = self.index.calls.remove(&(event.turn, &data.reply_id));
        // Calls of a reply that was cut are evidence, never sent: a model must not see half a call as one it made.
        let calls = calls.filter(|_| !data.stop.is_cut()).unwrap_or_default();
        let mut parts: Vec<Part> = data.parts.iter().filter(|part| is_sendable(part)).cloned().collect();
        if text_of(&parts).is_empty() && !event.content.is_empty() {
            // Plain text stands in `content` alone.
            parts.push(Part::text(event.content.as_str()));
        }
        if calls.is_empty() {
            parts.retain(|part| !matches!(part, Part::Call { .. }));
        }
        self.assistant_message(parts, &calls, data.model.clone());
        self.is_paused = data.stop == ReplyStop::Paused;
    }

    /// Adds an assistant message and the results of its calls; joins it to the one before where that needs no result.
    fn assistant_message(&mut self, parts: Vec<Part>, calls: &[Place<'a, ToolCall>], model: Option<String>) {
        if calls.is_empty() && !parts.iter().any(says_something) {
            // An empty reply was asked for again; sending it back would only be refused.
            return;
        }
        let continues = std::mem::take(&mut self.is_paused);
        let ids: Vec<CallId> = calls.iter().map(|call| self.unique_id(&call.data.id)).collect();
        let calls_out = calls.iter().zip(&ids).map(|(call, id)| message_call(call.data, id));
        let calls_out: Vec<MessageCall> = calls_out.collect();
        match self.out.messages.last_mut() {
            Some(Message::Assistant {
                parts: before,
                calls: none,
                model: model_before,
            }) if none.is_empty() => {
                if model.is_some() && *model_before != model {
                    // What only its own model understands may not be sent to another one under its name.
                    before.retain(|part| !matches!(part, Part::Thinking { .. } | Part::Provider { .. }));
                    *model_before = model;
                }
                if !before.is_empty() && !parts.is_empty() && !continues {
                    before.push(Part::text("\n"));
                }
                before.extend(parts);
                *none = calls_out;
            }
            Some(_) | None => self.out.messages.push(Message::Assistant {
                parts,
                calls: calls_out,
                model,
            }),
        }
        for (call, id) in calls.iter().zip(ids) {
            self.result(call, id);
        }
    }

    fn result(&mut self, call: &Place<'a, ToolCall>, call_id: CallId) {
        let chars_max = self.index.result_chars_max(call.turn);
        let (output, success, parts) = match self.index.result(call) {
            // Only images belong there, whatever an imported log says.
            Some(result) => (
                cut_result(&result.output, chars_max),
                result.success,
                result
                    .parts
                    .iter()
                    .filter(|part| Image::of(part).is_some())
                    .cloned()
                    .collect(),
            ),
            None => (json!({ "error": NO_RESULT }).to_string(), false, Vec::new()),
        };
        self.out.messages.push(Message::Tool {
            call_id,
            provider_id: call.data.provider_id.clone(),
            name: call.data.function.name.clone(),
            output,
            success,
            parts,
        });
    }

    fn unique_id(&mut self, id: &CallId) -> CallId {
        let mut unique = id.clone();
        let mut n: u32 = 1;
        while !self.sent_ids.insert(unique.clone()) {
            n += 1;
            unique = CallId::new(format!("{id}_{n}"));
        }
        unique
    }

    fn flush_loose_calls(&mut self) {
        let calls = std::mem::take(&mut self.loose_calls);
        if !calls.is_empty() {
            self.assistant_message(Vec::new(), &calls, None);
        }
    }

    /// Puts messages typed meanwhile where the next reply saw them.
    fn flush_steering(&mut self, seen_seq: u64) {
        let messages = &mut self.out.messages;
        for (seq, message) in std::mem::take(&mut self.steering) {
            if seq <= seen_seq {
                messages.push(message);
            } else {
                self.steering.push((seq, message));
            }
        }
    }
}

/// True for a block a later request may carry.
fn is_sendable(part: &Part) -> bool {
    match part {
        Part::Text { text } => !text.is_empty(),
        Part::PartialCall { .. } => false,
        Part::Thinking { .. }
        | Part::Context { .. }
        | Part::Image { .. }
        | Part::Provider { .. }
        | Part::Call { .. } => true,
    }
}

/// True for a block that makes a message of its own: a reply that only thought, or sent blanks, said nothing.
fn says_something(part: &Part) -> bool {
    match part {
        Part::Text { text } => !text.trim().is_empty(),
        Part::Thinking { .. } | Part::Call { .. } | Part::PartialCall { .. } => false,
        Part::Context { .. } | Part::Image { .. } | Part::Provider { .. } => true,
    }
}

fn message_call(call: &ToolCall, id: &CallId) -> MessageCall {
    MessageCall {
        id: id.clone(),
        provider_id: call.provider_id.clone(),
        name: call.function.name.clone(),
        arguments: repaired_arguments(&call.function.arguments),
    }
}

/// Arguments as a later request may carry them: a JSON object always, for some servers parse them again and would refuse
/// the whole conversation for ever (SPEC 3.8).
pub fn repaired_arguments(arguments: &str) -> String {
    let trimmed = arguments.trim();
    if trimmed.is_empty() {
        return "{}".to_owned();
    }
    match serde_json::from_str::<Value>(trimmed) {
        Ok(Value::Object(_)) => trimmed.to_owned(),
        Ok(Value::String(inner)) if matches!(serde_json::from_str(&inner), Ok(Value::Object(_))) => inner,
        Ok(Value::Null) => "{}".to_owned(),
        Ok(Value::String(_) | Value::Bool(_) | Value::Number(_) | Value::Array(_)) | Err(_) => {
            json!({ "invalid_arguments": trimmed }).to_string()
        }
    }
}

#[cfg(test)]
#[path = "projection/tests.rs"]
mod tests;
