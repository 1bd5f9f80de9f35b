//! Replies of a model as the ledger has them, for the tests of what is done with them.

use aish_core::event::{Assistant, Body, Draft, ReplyStop};
use aish_core::id::ReplyId;
use aish_core::message::Part;

/// The nth reply of a turn, which came to its end.
pub fn reply(turn: u64, nth: usize, text: &str, parts: Vec<Part>) -> Draft {
    let data = Assistant {
        reply_id: ReplyId::nth(turn, nth),
        parts,
        model: None,
        attempt: 1,
        stop: ReplyStop::End,
        context_seq: 0,
        reason: None,
        fallback: None,
    };
    Draft::new(turn, text, Body::Assistant(data))
}
