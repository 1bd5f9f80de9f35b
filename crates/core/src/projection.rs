//! From the ledger to what a model is sent (SPEC 2.6, 2.7).
//!
//! The ledger may hold orphans: a call without a result after a crash, a result without a call. They are repaired here and
//! never sent: every call gets exactly one result, in call order, right after the reply that made it. What a model sees of a
//! long result is cut here too, by the bound its turn began with, so that the beginning of a request never changes.

use crate::event::{Assistant, Body, Event, ReplyStop, ToolCall, ToolResult};
use crate::id::{CallId, ReplyId};
use crate::limits::Limits;
use crate::message::{Message, MessageCall, Part};
use serde_json::{Map, Value, json};
use std::collections::HashMap;

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
    for event in events {
        projector.event(event);
    }
    projector.flush_steering(u64::MAX);
    projector.out
}

struct Projector<'a> {
    out: Projection,
    /// The calls of each reply, in call order; replies of imported logs have no id and group by neighbourhood.
    calls: HashMap<&'a ReplyId, Vec<&'a ToolCall>>,
    /// The first result of each call: the one that counts.
    results: HashMap<&'a CallId, (&'a ToolResult, usize)>,
    /// Messages typed while a turn ran, until a reply has seen them.
    steering: Vec<(u64, Message)>,
    turn: u64,
    turn_asked: bool,
}

impl<'a> Projector<'a> {
    fn new(events: &'a [Event]) -> Self {
        let mut calls: HashMap<&ReplyId, Vec<&ToolCall>> = HashMap::new();
        let mut results = HashMap::new();
        let mut chars_max = Limits::default().max_result_chars;
        for event in events {
            if let Body::TurnStarted(started) = &event.body {
                chars_max = started.limits.max_result_chars;
            }
            if let Some(call) = event.tool_call()
                && let Some(reply) = &call.reply_id
            {
                calls.entry(reply).or_default().push(call);
            }
            if let Some(result) = event.tool_result() {
                results.entry(&result.tool_call_id).or_insert((result, chars_max));
            }
        }
        Self {
            out: Projection::default(),
            calls,
            results,
            steering: Vec::new(),
            turn: 0,
            turn_asked: false,
        }
    }

    fn event(&mut self, event: &'a Event) {
        if let Body::System(_) = &event.body {
            self.out.system.push(event.content.clone());
        } else if let Body::User(data) = &event.body {
            self.user(event, &data.parts);
        } else if let Body::Assistant(data) = &event.body {
            self.assistant(data, &event.content);
        } else if let Some(call) = event.tool_call().filter(|call| call.reply_id.is_none()) {
            // Calls of a reply come out with it; one without a reply (an imported log) stands alone.
            self.assistant_message(Vec::new(), &[call], None);
        }
    }

    fn user(&mut self, event: &Event, parts: &[Part]) {
        if event.turn != self.turn {
            self.flush_steering(u64::MAX);
            self.turn = event.turn;
            self.turn_asked = false;
        }
        let mut parts = parts.to_vec();
        if !event.content.is_empty() || parts.is_empty() {
            parts.push(Part::text(event.content.as_str()));
        }
        let message = Message::User { parts };
        if event.turn > 0 && self.turn_asked {
            self.steering.push((event.seq, message));
        } else {
            self.out.messages.push(message);
        }
        self.turn_asked = true;
    }

    fn assistant(&mut self, data: &'a Assistant, content: &str) {
        if data.stop == ReplyStop::Closing {
            self.flush_steering(u64::MAX);
            self.assistant_message(vec![Part::text(content)], &[], None);
            return;
        }
        self.flush_steering(data.context_seq);
        let calls = self.calls.remove(&data.reply_id).unwrap_or_default();
        let mut parts: Vec<Part> = data
            .parts
            .iter()
            .filter(|part| !matches!(part, Part::PartialCall { .. }))
            .cloned()
            .collect();
        if parts.is_empty() && !content.is_empty() {
            parts.push(Part::text(content));
        }
        self.assistant_message(parts, &calls, data.model.clone());
    }

    /// Adds an assistant message and the results of its calls; joins it to the one before where that needs no result.
    fn assistant_message(&mut self, parts: Vec<Part>, calls: &[&'a ToolCall], model: Option<String>) {
        if parts.is_empty() && calls.is_empty() {
            return;
        }
        let calls_out = calls.iter().map(|call| message_call(call)).collect();
        match self.out.messages.last_mut() {
            Some(Message::Assistant {
                parts: before,
                calls: none,
                ..
            }) if none.is_empty() => {
                if !before.is_empty() && !parts.is_empty() {
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
        for call in calls {
            self.result(call);
        }
    }

    fn result(&mut self, call: &ToolCall) {
        let (output, success) = match self.results.get(&call.id) {
            Some((result, chars_max)) => (cut_result(&result.output, *chars_max), result.success),
            None => (
                json!({ "error": "interrupted: the end of this call is not known" }).to_string(),
                false,
            ),
        };
        self.out.messages.push(Message::Tool {
            call_id: call.id.clone(),
            provider_id: call.provider_id.clone(),
            name: call.function.name.clone(),
            output,
            success,
        });
    }

    /// Puts messages typed meanwhile where the next reply saw them.
    fn flush_steering(&mut self, seen_seq: u64) {
        let messages = &mut self.out.messages;
        self.steering.retain_mut(|(seq, message)| {
            let seen = *seq <= seen_seq;
            if seen {
                messages.push(std::mem::replace(message, Message::User { parts: Vec::new() }));
            }
            !seen
        });
    }
}

fn message_call(call: &ToolCall) -> MessageCall {
    MessageCall {
        id: call.id.clone(),
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

/// What a model sees of a result: whole, or head and tail with the cut stated (SPEC 4.3). In a built-in tool's JSON it is
/// the `output` text that is cut, so that the rest stays readable.
pub fn cut_result(output: &str, chars_max: usize) -> String {
    // Bytes are never fewer than characters: the cheap test settles nearly all.
    if output.len() <= chars_max || output.chars().count() <= chars_max {
        return output.to_owned();
    }
    if output.starts_with('{')
        && let Ok(mut object) = serde_json::from_str::<Map<String, Value>>(output)
        && let Some(Value::String(text)) = object.get("output")
    {
        let rest = output.chars().count().saturating_sub(text.chars().count());
        let cut = cut_text(text, chars_max.saturating_sub(rest));
        object.insert("output".to_owned(), Value::String(cut));
        return Value::Object(object).to_string();
    }
    cut_text(output, chars_max)
}

fn cut_text(text: &str, chars_max: usize) -> String {
    let total = text.chars().count();
    if total <= chars_max {
        return text.to_owned();
    }
    let head = chars_max * 2 / 3;
    let tail = chars_max - head;
    let at = |n: usize| text.char_indices().nth(n).map_or(text.len(), |(at, _)| at);
    let (first, last) = (
        text.get(..at(head)).unwrap_or_default(),
        text.get(at(total - tail)..).unwrap_or_default(),
    );
    format!(
        "{first}\n[... {} of {total} characters left out; ask for a part (a range, a filter) to see them ...]\n{last}",
        total - chars_max
    )
}

#[cfg(test)]
#[path = "projection/tests.rs"]
mod tests;
