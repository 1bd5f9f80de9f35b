//! The events of the ledger: what happened, in the one form that memory, the store, an export and every view share
//! (SPEC 2.4).
//!
//! A [`Draft`] is an event that has no place yet; a store gives it one (`session`, `seq`, `time`) and it becomes an
//! [`Event`]. As JSON an event is one flat object:
//! `{"session","seq","turn","time","version","kind","content","data"}`, `time` in milliseconds since the Unix epoch,
//! `turn` 0 outside any turn.

use crate::id::SessionId;
use crate::message::Part;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

mod data;
mod proposal;
mod served;
mod servers;

pub use data::*;
pub use proposal::*;
pub use served::*;
pub use servers::*;

/// The version this program writes. A higher one in a ledger was written by a newer aish.
pub const EVENT_VERSION: u32 = 1;

/// One event in its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Whose it is.
    pub session: SessionId,
    /// Its place in the session: 1, 2, 3, … without gaps.
    pub seq: u64,
    /// The turn it belongs to, counted from 1; 0 outside any turn.
    pub turn: u64,
    /// Milliseconds since the Unix epoch.
    pub time: u64,
    /// The version of the program's event format that wrote it.
    pub version: u32,
    /// Readable, one line or the whole text.
    pub content: String,
    /// What it is, with its data.
    pub body: Body,
}

/// An event that has no place yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// The turn it belongs to; 0 outside any turn.
    pub turn: u64,
    /// Readable, one line or the whole text.
    pub content: String,
    /// What it is, with its data.
    pub body: Body,
}

macro_rules! bodies {
    ($($(#[$doc:meta])* $kind:literal $variant:ident $(($data:ty))? ,)*) => {
        /// What happened, by kind.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Body {
            $($(#[$doc])* $variant $(($data))?,)*
            /// Written by a newer aish: kept as it is, and its session opens read-only (SPEC 2.4).
            Unknown {
                /// The kind as written.
                kind: String,
                /// The data as written.
                data: Value,
            },
        }

        /// Every kind this program knows, as written in the ledger.
        pub const KINDS: &[&str] = &[$($kind),*];

        impl Body {
            /// The kind as written in the ledger.
            pub fn kind(&self) -> &str {
                match self {
                    $(bodies!(@pattern $variant $(, $data)?) => $kind,)*
                    Self::Unknown { kind, .. } => kind,
                }
            }

            /// Reads a body from the ledger's `kind` and `data` (JSON text, empty or `null` where there is none).
            ///
            /// # Errors
            /// The data of a known kind does not have its shape.
            pub fn decode(kind: &str, data: &str) -> Result<Self, serde_json::Error> {
                let data = if data.is_empty() { "null" } else { data };
                Ok(match kind {
                    $($kind => bodies!(@decode $variant, data $(, $data)?),)*
                    other => Self::Unknown { kind: other.to_owned(), data: serde_json::from_str(data)? },
                })
            }
        }
    };
    (@pattern $variant:ident, $data:ty) => { Self::$variant(_) };
    (@pattern $variant:ident) => { Self::$variant };
    (@decode $variant:ident, $text:ident, $data:ty) => { Self::$variant(decode_data::<$data>($text)?) };
    (@decode $variant:ident, $text:ident) => { Self::$variant };
}

bodies! {
    /// Standing instructions of this session, from its user or client.
    "system" System(Parts),
    /// The user said something; `content` is the text.
    "user" User(Parts),
    /// A model replied, or aish closed a turn; `content` is the text.
    "assistant" Assistant(Assistant),
    /// A model called a tool.
    "tool_call" ToolCall(ToolCall),
    /// A call ended.
    "tool_result" ToolResult(ToolResult),
    /// A turn began.
    "turn_started" TurnStarted(TurnStarted),
    /// The gate judged a call.
    "call_gated" CallGated(CallGated),
    /// Somebody answered a call that was asked about.
    "call_answered" CallAnswered(CallAnswered),
    /// A call is about to run.
    "call_started" CallStarted(CallStarted),
    /// An MCP server asked something while a call ran (SPEC 6.9).
    "server_asked" ServerAsked(ServerAsked),
    /// What it asked has its answer.
    "server_answered" ServerAnswered(ServerAnswered),
    /// A call waits for somebody to answer what it asks (SPEC 6.9).
    "call_suspended" CallSuspended(CallSuspended),
    /// A call that waited is about to go on.
    "call_taken_up" CallTakenUp(CallTakenUp),
    /// A request to a model failed.
    "model_failed" ModelFailed(ModelFailed),
    /// The turn waits for somebody outside this process.
    "suspended" Suspended(Suspended),
    /// What it waited for came.
    "resumed" Resumed(Resumed),
    /// Somebody cancelled the turn.
    "cancelled" Cancelled(Cancelled),
    /// The turn is over.
    "turn_ended" TurnEnded(TurnEnded),
    /// The user ran a command.
    "command" Command(Command),
    /// Tokens of one reply.
    "usage" Usage(Usage),
    /// The context was emptied; the ledger was not (SPEC 2.9).
    "clear" Clear,
    /// A checkpoint was set.
    "mark" Mark(Value),
    /// The context was set back to a checkpoint.
    "rewind" Rewind(Value),
    /// This session branched from another.
    "fork" Fork(Value),
    /// Earlier messages were summed up.
    "compaction" Compaction(Value),
    /// Something to remember across sessions.
    "memory" Memory(Value),
    /// A remark that changes nothing.
    "note" Note(Value),
}

fn decode_data<T: serde::de::DeserializeOwned + DataOrNull>(text: &str) -> Result<T, serde_json::Error> {
    if text == "null"
        && let Some(empty) = T::when_null()
    {
        return Ok(empty);
    }
    serde_json::from_str(text)
}

/// What `"data": null` means for a kind.
trait DataOrNull: Sized {
    fn when_null() -> Option<Self> {
        None
    }
}

impl DataOrNull for Parts {
    fn when_null() -> Option<Self> {
        Some(Self::default())
    }
}
impl DataOrNull for TurnStarted {
    fn when_null() -> Option<Self> {
        Some(Self::default())
    }
}
impl DataOrNull for Assistant {}
impl DataOrNull for ToolCall {}
impl DataOrNull for ToolResult {}
impl DataOrNull for CallGated {}
impl DataOrNull for CallAnswered {}
impl DataOrNull for CallStarted {}
impl DataOrNull for ServerAsked {}
impl DataOrNull for ServerAnswered {}
impl DataOrNull for CallSuspended {}
impl DataOrNull for CallTakenUp {}
impl DataOrNull for ModelFailed {}
impl DataOrNull for Suspended {}
impl DataOrNull for Resumed {}
impl DataOrNull for Cancelled {}
impl DataOrNull for TurnEnded {}
impl DataOrNull for Command {}
impl DataOrNull for Usage {}
impl DataOrNull for Value {}

impl Body {
    /// The `data` column: JSON text, `null` where there is none.
    pub fn data_json(&self) -> String {
        fn text<T: Serialize>(data: &T) -> String {
            // Every data type here has string keys and finite numbers: writing it cannot fail.
            serde_json::to_string(data).unwrap_or_else(|_| "null".to_owned())
        }
        match self {
            Self::System(data) | Self::User(data) if data.parts.is_empty() => "null".to_owned(),
            Self::System(data) | Self::User(data) => text(data),
            Self::Assistant(data) => text(data),
            Self::ToolCall(data) => text(data),
            Self::ToolResult(data) => text(data),
            Self::TurnStarted(data) => text(data),
            Self::CallGated(data) => text(data),
            Self::CallAnswered(data) => text(data),
            Self::CallStarted(data) => text(data),
            Self::ServerAsked(data) => text(data),
            Self::ServerAnswered(data) => text(data),
            Self::CallSuspended(data) => text(data),
            Self::CallTakenUp(data) => text(data),
            Self::ModelFailed(data) => text(data),
            Self::Suspended(data) => text(data),
            Self::Resumed(data) => text(data),
            Self::Cancelled(data) => text(data),
            Self::TurnEnded(data) => text(data),
            Self::Command(data) => text(data),
            Self::Usage(data) => text(data),
            Self::Clear => "null".to_owned(),
            Self::Mark(data)
            | Self::Rewind(data)
            | Self::Fork(data)
            | Self::Compaction(data)
            | Self::Memory(data)
            | Self::Note(data)
            | Self::Unknown { data, .. } => text(data),
        }
    }

    /// True for the kinds that make up the conversation (SPEC 2.1).
    pub fn is_conversation(&self) -> bool {
        matches!(
            self,
            Self::System(_) | Self::User(_) | Self::Assistant(_) | Self::ToolCall(_) | Self::ToolResult(_)
        )
    }
}

impl Event {
    /// The call, if this event is one.
    pub fn tool_call(&self) -> Option<&ToolCall> {
        if let Body::ToolCall(call) = &self.body {
            Some(call)
        } else {
            None
        }
    }

    /// The result of a call, if this event is one.
    pub fn tool_result(&self) -> Option<&ToolResult> {
        if let Body::ToolResult(result) = &self.body {
            Some(result)
        } else {
            None
        }
    }

    /// The event as one flat JSON object, as exports and `--output jsonl` write it.
    pub fn to_json(&self) -> Value {
        let mut map = Map::new();
        map.insert("session".into(), self.session.as_str().into());
        map.insert("seq".into(), self.seq.into());
        map.insert("turn".into(), self.turn.into());
        map.insert("time".into(), self.time.into());
        map.insert("version".into(), self.version.into());
        map.insert("kind".into(), self.body.kind().into());
        map.insert("content".into(), self.content.as_str().into());
        let data = serde_json::from_str(&self.body.data_json()).unwrap_or(Value::Null);
        map.insert("data".into(), data);
        Value::Object(map)
    }
}

impl Draft {
    /// A draft of any kind.
    pub fn new(turn: u64, content: impl Into<String>, body: Body) -> Self {
        Self {
            turn,
            content: content.into(),
            body,
        }
    }

    /// Gives the draft its place.
    pub fn place(self, session: &SessionId, seq: u64, time: u64) -> Event {
        Event {
            session: session.clone(),
            seq,
            turn: self.turn,
            time,
            version: EVENT_VERSION,
            content: self.content,
            body: self.body,
        }
    }

    /// The user's text, without extra blocks.
    pub fn user(turn: u64, text: impl Into<String>) -> Self {
        Self::user_with(turn, text, Vec::new())
    }

    /// The user's text with extra blocks.
    pub fn user_with(turn: u64, text: impl Into<String>, parts: Vec<Part>) -> Self {
        Self::new(turn, text, Body::User(Parts { parts }))
    }

    /// The first event of a turn.
    pub fn turn_started(turn: u64, data: TurnStarted) -> Self {
        Self::new(turn, format!("turn {turn} started"), Body::TurnStarted(data))
    }

    /// A model's call; the content is readable, e.g. `glob(pattern="*.c", path="src/")` (SPEC 2.2).
    pub fn tool_call(turn: u64, data: ToolCall) -> Self {
        let content = readable_call(&data.function.name, &data.function.arguments);
        Self::new(turn, content, Body::ToolCall(data))
    }

    /// A call's end; the content is a readable summary, e.g. `3 files found` (SPEC 2.3).
    pub fn tool_result(turn: u64, summary: impl Into<String>, data: ToolResult) -> Self {
        Self::new(turn, summary, Body::ToolResult(data))
    }
}

/// A call as a person reads it: `name(key="value", n=3)`, or the raw text in parentheses when it is no JSON object.
/// Arguments are in the order they came in.
pub fn readable_call(name: &str, arguments: &str) -> String {
    let arguments = arguments.trim();
    if arguments.is_empty() {
        return format!("{name}()");
    }
    let Ok(OrderedObject(entries)) = serde_json::from_str(arguments) else {
        return format!("{name}({arguments})");
    };
    let fields: Vec<String> = entries
        .into_iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    format!("{name}({})", fields.join(", "))
}

/// A JSON object's entries in the order they were written.
struct OrderedObject(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for OrderedObject {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> serde::de::Visitor<'de> for Entries {
            type Value = OrderedObject;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a JSON object")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<OrderedObject, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(OrderedObject(entries))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}
