//! What every request built from a ledger must be, whatever the ledger holds (SPEC 2.6, 2.7, 3.7).

use aish_core::event::{Body, Event, ReplyStop};
use aish_core::id::CallId;
use aish_core::message::{Message, Part, text_of};
use aish_core::projection::Projection;
use std::collections::HashSet;

/// Begins with its user; every call has exactly one result, at once and in call order; no result stands alone; no two
/// plain assistant messages in a row; ids are unique and arguments are objects; nothing is empty.
pub fn assert_well_formed(projection: &Projection) {
    let messages = &projection.messages;
    if let Some(first) = messages.first() {
        assert!(matches!(first, Message::User { .. }), "begins with {first:?}");
    }
    let mut ids = HashSet::new();
    let mut due: Vec<CallId> = Vec::new();
    let mut plain_before = false;
    for message in messages {
        match message {
            Message::User { parts } => {
                assert!(due.is_empty(), "a user message before the results of {due:?}");
                assert!(!parts.is_empty(), "an empty user message");
                plain_before = false;
            }
            Message::Assistant { parts, calls, .. } => {
                assert!(due.is_empty(), "a reply before the results of {due:?}");
                assert!(!plain_before, "two plain assistant messages in a row");
                assert!(!parts.is_empty() || !calls.is_empty(), "an empty reply");
                assert!(!parts.iter().any(|part| matches!(part, Part::PartialCall { .. })));
                for call in calls {
                    assert!(ids.insert(call.id.clone()), "{} is used twice", call.id);
                    let arguments: serde_json::Value = serde_json::from_str(&call.arguments).unwrap();
                    assert!(arguments.is_object(), "arguments {arguments}");
                }
                due = calls.iter().map(|call| call.id.clone()).rev().collect();
                plain_before = calls.is_empty();
            }
            Message::Tool { call_id, .. } => {
                assert_eq!(due.pop().as_ref(), Some(call_id), "a result out of place");
                plain_before = false;
            }
        }
    }
    assert!(due.is_empty(), "no results for {due:?}");
}

/// The conversation ends in text of the assistant's: the strictest template takes another question after it (SPEC 3.7).
pub fn assert_ends_in_text(projection: &Projection) {
    let last = projection.messages.last();
    let Some(Message::Assistant { parts, calls, .. }) = last else {
        panic!("ends with {last:?}");
    };
    assert!(calls.is_empty(), "ends with calls");
    assert!(!text_of(parts).trim().is_empty(), "ends with an empty reply");
}

/// Every call of the ledger that can be sent is, in call order, with the first result it got (SPEC 2.7, 3.5a).
pub fn assert_sends_all_calls(events: &[Event], projection: &Projection) {
    let cut: HashSet<_> = events
        .iter()
        .filter_map(|event| match &event.body {
            Body::Assistant(data) if !matches!(data.stop, ReplyStop::End | ReplyStop::ToolCalls) => {
                Some(&data.reply_id)
            }
            _ => None,
        })
        .collect();
    let expected: Vec<(CallId, Option<String>)> = events
        .iter()
        .filter_map(Event::tool_call)
        .filter(|call| call.reply_id.as_ref().is_none_or(|id| !cut.contains(id)))
        .map(|call| {
            let mut results = events.iter().filter_map(Event::tool_result);
            let result = results.find(|result| result.tool_call_id == call.id);
            (call.id.clone(), result.map(|result| result.output.clone()))
        })
        .collect();
    let sent = projection.messages.iter().filter_map(|message| match message {
        Message::Tool { call_id, output, .. } => Some((call_id.clone(), Some(output.clone()))),
        Message::User { .. } | Message::Assistant { .. } => None,
    });
    for ((call_id, output), (expected_id, expected_output)) in sent.clone().zip(&expected) {
        assert_eq!(call_id, *expected_id, "results are out of order");
        if expected_output.is_some() {
            assert_eq!(output, *expected_output, "not the first result of {call_id}");
        }
    }
    assert_eq!(sent.count(), expected.len(), "not every call has its result");
}
