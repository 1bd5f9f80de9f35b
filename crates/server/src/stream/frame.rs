//! What stands in an event stream, frame by frame (WHATWG HTML, "Server-sent events"). Every frame's data is one line of JSON.

use crate::envelope::Reply;
use crate::error::ApiError;
use aish_core::event::Event;
use aish_core::id::SessionId;
use aish_engine::{Conversations, Envelope, Live, Notice, RawEvent, ServeError};
use serde::Serialize;

/// What the id of an envelope has after the place of its event: whoever was cut between the two says by it which of them they have.
pub(crate) const OF_ENVELOPE: &str = ".e";
/// Says that the stream still lives.
pub(super) const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";
/// What an event is called whose kind is no word.
const STRANGE_KIND: &str = "event";

/// What no event says, or only later.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Delta<'a> {
    /// What it is a piece of.
    #[serde(rename = "type")]
    what: Piece,
    /// The piece.
    text: &'a str,
    /// The call, where it is of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    call_id: Option<&'a str>,
    /// The tool, where it is of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
}

/// What a delta is a piece of.
#[derive(Clone, Copy, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum Piece {
    /// The reply.
    Text,
    /// The thinking before it.
    Thinking,
    /// The model begins to write a call.
    CallBegun,
    /// A call begins to run.
    CallStarted,
    /// What a running tool prints.
    ToolOutput,
    /// Something that people should know.
    Status,
    /// The model is asked again after a failure.
    Retrying,
}

impl<'a> Delta<'a> {
    fn plain(what: Piece, text: &'a str) -> Self {
        Self {
            what,
            text,
            call_id: None,
            name: None,
        }
    }

    /// What a notice says to clients, if anything.
    fn of(notice: &'a Notice) -> Option<Self> {
        Some(match notice {
            Notice::Text(text) => Self::plain(Piece::Text, text),
            Notice::Thinking(text) => Self::plain(Piece::Thinking, text),
            Notice::CallBegun { name } => Self {
                name: Some(name),
                ..Self::plain(Piece::CallBegun, name)
            },
            Notice::CallStarted { call, readable } => Self {
                call_id: Some(call.as_str()),
                ..Self::plain(Piece::CallStarted, readable)
            },
            Notice::ToolOutput { call, text } => Self {
                call_id: Some(call.as_str()),
                ..Self::plain(Piece::ToolOutput, text)
            },
            Notice::CallStep { call, tool, line } => Self {
                call_id: Some(call.as_str()),
                name: Some(tool),
                ..Self::plain(Piece::Status, line)
            },
            Notice::Retrying { problem, .. } => Self::plain(Piece::Retrying, problem),
            Notice::Status(line) => Self::plain(Piece::Status, line),
            // What these say is an event, or is nothing to a client.
            Notice::Asking { .. }
            | Notice::ReplyEnded
            | Notice::CommandOutput(_)
            | Notice::Beside(_)
            | Notice::CallEnded { .. }
            | Notice::Usage(_)
            | Notice::Recorded(_) => return None,
        })
    }
}

/// An event of the ledger, under its place: where a reader that comes back goes on.
pub(super) fn event(conversations: &Conversations, session: &SessionId, event: &RawEvent) -> Vec<u8> {
    let is_word = |kind: &str| !kind.is_empty() && kind.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    let kind = Some(event.kind.as_str()).filter(|kind| is_word(kind));
    let (id, kind) = (event.seq, kind.unwrap_or(STRANGE_KIND));
    let line = conversations.exported(session, event);
    format!("id: {id}\nevent: {kind}\ndata: {line}\n\n").into_bytes()
}

/// What happens, as all readers are sent it; empty for what is nothing to them.
pub(super) fn live(conversations: &Conversations, live: &Live) -> Vec<u8> {
    match live {
        Live::Event(happened) => {
            let happened: &Event = happened;
            event(conversations, &happened.session, &RawEvent::from(happened))
        }
        Live::Notice(notice) => match Delta::of(notice).map(|delta| serde_json::to_string(&delta)) {
            Some(Ok(line)) => named("delta", &conversations.shown(line)),
            Some(Err(_)) | None => Vec::new(),
        },
        Live::Long(_) => Vec::new(),
        Live::Failed(problem) => error(&ServeError::Stopped(problem.clone()).into()),
    }
}

/// Where the turn stands, as the request would have been answered without a stream.
pub(super) fn envelope(told: Envelope) -> Vec<u8> {
    // Texts are always JSON.
    let line = serde_json::to_string(&Reply::from(told)).unwrap_or_default();
    named("envelope", &line)
}

/// The same after the event that says so, under the id that comes after that one's.
pub(super) fn told(seq: u64, told: Envelope) -> Vec<u8> {
    let mut frame = format!("id: {seq}{OF_ENVELOPE}\n").into_bytes();
    frame.extend(envelope(told));
    frame
}

/// Why it does not go on.
pub(super) fn error(error: &ApiError) -> Vec<u8> {
    named("error", &String::from_utf8_lossy(&error.json()))
}

fn named(name: &str, line: &str) -> Vec<u8> {
    // The arguments of a call are as a model wrote them: outside its texts, a line break is white space.
    let line = line.replace(['\n', '\r'], " ");
    format!("event: {name}\ndata: {line}\n\n").into_bytes()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use aish_core::id::CallId;
    use serde_json::{Value, json};

    /// SPEC 9.8: what a delta is, field by field; what is nothing to a client is none.
    #[test]
    fn deltas() {
        let check = |notice: Notice, expect: Value| {
            let delta = Delta::of(&notice).map_or(Value::Null, |delta| serde_json::to_value(&delta).unwrap());
            assert_eq!(delta, expect);
        };
        let call = || CallId::nth(1, 2);
        check(Notice::Text("a\nb".into()), json!({"type": "text", "text": "a\nb"}));
        check(Notice::Thinking("hm".into()), json!({"type": "thinking", "text": "hm"}));
        check(
            Notice::CallBegun { name: "bash".into() },
            json!({"type": "call_begun", "text": "bash", "name": "bash"}),
        );
        let readable = "bash(command=\"ls\")";
        check(
            Notice::CallStarted {
                call: call(),
                readable: readable.into(),
            },
            json!({"type": "call_started", "text": readable, "call_id": "call_1_2"}),
        );
        check(
            Notice::ToolOutput {
                call: call(),
                text: "x".into(),
            },
            json!({"type": "tool_output", "text": "x", "call_id": "call_1_2"}),
        );
        let retrying = Notice::Retrying {
            attempt: 2,
            wait_ms: 10,
            problem: "503".into(),
        };
        check(retrying, json!({"type": "retrying", "text": "503"}));
        check(Notice::Status("s".into()), json!({"type": "status", "text": "s"}));
        check(Notice::ReplyEnded, Value::Null);
    }

    /// SPEC 9.8: nothing that anybody wrote ends a frame or begins another field.
    #[test]
    fn one_line() {
        let text = String::from_utf8(named("envelope", "{\"tool_input\":{\n\"a\":\r\n1}}")).unwrap();
        assert_eq!(text, "event: envelope\ndata: {\"tool_input\":{ \"a\":  1}}\n\n");
        let failed = ApiError::new(crate::ErrorKind::Unavailable, "no\n\nevent: x");
        let text = String::from_utf8(error(&failed)).unwrap();
        assert_eq!(text.lines().count(), 3, "{text}");
    }
}
