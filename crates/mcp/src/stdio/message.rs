//! A line into messages: leniently, and without taking more memory for it than is bounded here.
//!
//! What is no message is a [`Fault`]: it is noted and passed over, the connection goes on. A reply that cannot be read, but
//! whose id can, becomes an error reply, so that whoever waits for it hears so at once.

use super::lines::{LINE_BYTES_MAX, Line};
use crate::wire::{VALUES_MAX, count_values, raw};
use aish_core::sanitize::single_line;
use rmcp::model::{ErrorCode, ErrorData, JsonRpcError, RequestId, ServerJsonRpcMessage};
use serde_json::Value;

/// Messages in one line, for servers that send several as an array (JSON-RPC 2.0, section 6).
const BATCH_MESSAGES_MAX: usize = 1_000;
/// Characters of a line that a fault quotes.
const QUOTE_CHARS_MAX: usize = 200;

/// The code of an error reply that stands for a reply which was too large. It is of our own making: servers have -32099 to
/// -32000 for theirs (JSON-RPC 2.0, section 5.1).
pub const TOO_LARGE_CODE: i32 = -31_001;
/// The code of an error reply that stands for a reply which was none.
pub const UNREADABLE_CODE: i32 = -31_002;

/// Why a line, or an item of a batch, was passed over: one escaped line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault(pub(super) String);

/// What a line holds, in its order.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) messages: Vec<ServerJsonRpcMessage>,
    pub(super) faults: Vec<Fault>,
}

/// Reads a line.
pub(super) fn read(line: &Line) -> Read {
    let mut read = Read::default();
    match line {
        Line::TooLong { head, tail } => read.too_large(head, tail, &format!("longer than {LINE_BYTES_MAX} bytes")),
        Line::Whole(bytes) if bytes.iter().all(u8::is_ascii_whitespace) => {}
        Line::Whole(bytes) if count_values(bytes) > VALUES_MAX => {
            read.too_large(bytes, bytes, &format!("of more than {VALUES_MAX} values"));
        }
        Line::Whole(bytes) => {
            let text = String::from_utf8_lossy(bytes);
            match serde_json::from_str(text.trim_start_matches('\u{feff}')) {
                Ok(Value::Array(items)) => read.batch(items),
                Ok(value) => read.item(value),
                Err(_) => read.fault("not JSON", &text),
            }
        }
    }
    read
}

impl Read {
    fn batch(&mut self, items: Vec<Value>) {
        let surplus = items.len().saturating_sub(BATCH_MESSAGES_MAX);
        if surplus > 0 {
            self.fault("too many messages at once", &format!("{surplus} left out"));
        }
        for item in items.into_iter().take(BATCH_MESSAGES_MAX) {
            self.item(item);
        }
    }

    fn item(&mut self, value: Value) {
        let value = raw::keep(value);
        let error = match as_message(&value) {
            Ok(message) => return self.messages.push(message),
            Err(error) => error,
        };
        self.fault("not a message of the protocol", &value.to_string());
        let is_reply = value.get("method").is_none();
        if let Some(id) = value.get("id").and_then(as_id).filter(|_| is_reply) {
            let told = value.get("error").and_then(told_by).unwrap_or(error);
            self.error_reply(id, UNREADABLE_CODE, told);
        }
    }

    fn too_large(&mut self, head: &[u8], tail: &[u8], how: &str) {
        self.fault(
            &format!("a message {how}"),
            &String::from_utf8_lossy(head.get(..QUOTE_CHARS_MAX).unwrap_or(head)),
        );
        if let Some(id) = id_at_begin(head).or_else(|| id_at_end(tail)) {
            self.error_reply(id, TOO_LARGE_CODE, format!("its answer is {how}"));
        }
    }

    fn error_reply(&mut self, id: RequestId, code: i32, message: String) {
        let error = ErrorData::new(ErrorCode(code), message, None);
        self.messages
            .push(ServerJsonRpcMessage::Error(JsonRpcError::new(Some(id), error)));
    }

    fn fault(&mut self, what: &str, text: &str) {
        let quote: String = text.chars().take(QUOTE_CHARS_MAX).collect();
        self.faults
            .push(Fault(format!("passed over, {what}: {}", single_line(&quote))));
    }
}

/// Reads a value as a message; says why it is none.
fn as_message(value: &Value) -> Result<ServerJsonRpcMessage, String> {
    serde::Deserialize::deserialize(value).map_err(|error: serde_json::Error| error.to_string())
}

/// What an error object says that has not all that it must have, or an error that is only text.
fn told_by(error: &Value) -> Option<String> {
    let text = error.get("message").unwrap_or(error);
    text.as_str().map(str::to_owned)
}

fn as_id(value: &Value) -> Option<RequestId> {
    serde::Deserialize::deserialize(value).ok()
}

/// The id of a reply that has it before anything that is not a plain value.
fn id_at_begin(head: &[u8]) -> Option<RequestId> {
    let mut rest = head.trim_ascii_start().strip_prefix(b"{")?;
    // The members before the id: `jsonrpc`, and nothing else that is known.
    for _ in 0..2 {
        let (key, after) = plain_value(rest)?;
        let (value, after) = plain_value(after.trim_ascii_start().strip_prefix(b":")?)?;
        if key == "id" {
            return as_id(&value);
        }
        rest = after.trim_ascii_start().strip_prefix(b",")?;
    }
    None
}

/// The id of a reply that has it as its last member, or before `jsonrpc` as the last.
fn id_at_end(tail: &[u8]) -> Option<RequestId> {
    const KEY: &[u8] = b"\"id\"";
    let at = tail.windows(KEY.len()).rposition(|window| window == KEY)?;
    let after = tail.get(at + KEY.len()..)?.trim_ascii_start().strip_prefix(b":")?;
    let (id, after) = plain_value(after)?;
    let mut after = after.trim_ascii();
    if let Some(member) = after.strip_prefix(b",") {
        let (key, value) = plain_value(member)?;
        let (_, end) = plain_value(value.trim_ascii_start().strip_prefix(b":")?)?;
        after = end.trim_ascii();
        if key != "jsonrpc" {
            return None;
        }
    }
    (after == b"}").then(|| as_id(&id))?
}

/// A text or number at the front of JSON text, and what follows it.
fn plain_value(text: &[u8]) -> Option<(Value, &[u8])> {
    let mut values = serde_json::Deserializer::from_slice(text).into_iter::<Value>();
    let value = values
        .next()?
        .ok()
        .filter(|value| value.is_string() || value.is_number())?;
    let rest = text.get(values.byte_offset()..)?;
    Some((value, rest))
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
