//! What every request built from a ledger must be, whatever the ledger holds (SPEC 2.6, 2.7, 3.7).

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
