//! Models behind one trait: a request of canonical messages in, a stream of deltas out, one assembled reply at the end.
//!
//! This crate owns the [`Provider`] trait, the event-stream parser ([`sse`]), one pure codec per wire format
//! ([`codec`]), what must be known of a model ([`profile`]), the assembly of a reply from pieces ([`assemble`]), the
//! HTTP that carries them ([`http`], over a client from [`client`]), the table of providers ([`preset`]), the search for a
//! model where none is configured ([`discover`]), questions that find out what a model can do ([`probe`]), and a scripted
//! fake ([`scripted`]). It knows nothing of turns, policy or configuration files.
//!
//! Blocking and streaming are one path: whoever wants no deltas ignores them and takes the [`Reply`].

use aish_core::event::{ReplyStop, Usage};
use aish_core::message::{Message, Part, ToolChoice, ToolSpec};
use futures_util::future::BoxFuture;
use std::time::Duration;

pub mod assemble;
pub mod client;
pub mod codec;
pub mod discover;
pub mod http;
pub mod preset;
pub mod price;
pub mod probe;
pub mod profile;
mod retry_after;
pub mod scripted;
pub mod sse;
#[cfg(any(test, feature = "strict"))]
pub mod strict;

pub use http::HttpProvider;
pub use profile::ModelProfile;

/// What a model is asked. Borrowed: a long conversation is not copied to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The model's name in the configuration, as in [`Message::Assistant`]: what it thought and its provider's own blocks go
    /// back to it alone; other models get them as text, see [`mod@codec::handover`].
    pub model: &'a str,
    /// Standing instructions; empty for none.
    pub system: &'a str,
    /// The conversation, each call followed by exactly one result.
    pub messages: &'a [Message],
    /// The tools offered; when empty the request has no such field at all (SPEC 6.7).
    pub tools: &'a [ToolSpec],
    /// Whether tools may be called.
    pub tool_choice: ToolChoice,
    /// Tokens the reply may have; `None` leaves it to the server.
    pub max_output_tokens: Option<u64>,
    /// A JSON Schema the text of the reply must fit (structured output); none leaves it free.
    pub schema: Option<&'a serde_json::Value>,
}

/// A piece of a reply, for whoever watches; the [`Reply`] holds all of it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delta {
    /// Text to show.
    Text(String),
    /// Thinking to show dimmed.
    Thinking(String),
    /// A call's name is known; its arguments are still coming.
    CallBegun {
        /// The tool's name as people see it.
        name: String,
    },
}

/// A call as a model made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyCall {
    /// The provider's id, if it gave one.
    pub provider_id: Option<String>,
    /// The tool's name as people see it.
    pub name: String,
    /// The argument text exactly as received; empty when none came.
    pub arguments: String,
}

/// A whole reply.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// The blocks, verbatim and in order, without the calls.
    pub parts: Vec<Part>,
    /// The calls, in order; empty unless every one of them is whole (SPEC 7.3).
    pub calls: Vec<ReplyCall>,
    /// How it ended.
    pub stop: ReplyStop,
    /// Tokens, as far as the provider told.
    pub usage: Option<Usage>,
    /// The model the provider says it was.
    pub model: Option<String>,
    /// An error the stream itself reported after it had begun (SPEC 7.4: an error body with status 200).
    pub error: Option<ProviderError>,
    /// Why it was withheld or broke off, in the provider's words; none where they said nothing of it.
    pub reason: Option<String>,
    /// What a person should know of how it came about, one line each, e.g. that the server refused a field and was asked
    /// without it.
    pub remarks: Vec<String>,
}

/// Why a request to a model failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ProviderError {
    /// What kind of failure.
    pub kind: ErrorKind,
    /// What was tried and what went wrong, one line, no secrets.
    pub message: String,
    /// What the server asked us to wait (`Retry-After`).
    pub retry_after: Option<Duration>,
}

impl ProviderError {
    /// The tokens that fit the model's context, where the server's words say it.
    pub fn context_window(&self) -> Option<u64> {
        codec::failure::window_in(&self.message)
    }
}

/// What kind of failure a request met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// No connection, or it broke before the reply began.
    Connect,
    /// The connection broke after the reply had begun.
    Broken,
    /// Nothing came for longer than allowed.
    Timeout,
    /// The server answered with this status.
    Status(u16),
    /// The conversation does not fit the model's context.
    ContextOverflow,
    /// Key missing or refused.
    Auth,
    /// The answer was not what the wire format promises.
    Protocol,
    /// A bound of ours was passed (a line, an argument or a reply too long).
    TooLarge,
    /// The stream reported an error of its own after it had begun.
    Stream,
}

impl ErrorKind {
    /// True where asking again may help (SPEC 7.6).
    pub fn is_retryable(self) -> bool {
        match self {
            Self::Connect | Self::Broken | Self::Timeout | Self::Stream => true,
            Self::Status(status) => matches!(status, 408 | 409 | 429 | 500..=599),
            Self::ContextOverflow | Self::Auth | Self::Protocol | Self::TooLarge => false,
        }
    }

    /// True where the peer went away, as against telling of a failure: a reply that had begun is then cut, not refused.
    pub fn is_lost(self) -> bool {
        matches!(self, Self::Connect | Self::Broken | Self::Timeout)
    }

    /// The word written into the ledger, e.g. `connect`, `http_429`.
    pub fn word(self) -> String {
        match self {
            Self::Connect => "connect".to_owned(),
            Self::Timeout => "timeout".to_owned(),
            Self::Status(status) => format!("http_{status}"),
            Self::ContextOverflow => "context_overflow".to_owned(),
            Self::Auth => "auth".to_owned(),
            Self::Protocol => "protocol".to_owned(),
            Self::TooLarge => "too_large".to_owned(),
            Self::Stream => "stream".to_owned(),
            Self::Broken => "broken".to_owned(),
        }
    }
}

/// A reply under way.
pub trait ReplyStream: Send {
    /// Waits for the next pieces and adds them to `out`; `Ok(false)` when the reply is over (then call `finish`).
    /// Dropping the future loses nothing: it may be raced against a cancellation.
    fn next<'a>(&'a mut self, out: &'a mut Vec<Delta>) -> BoxFuture<'a, bool>;

    /// The reply as far as it came. Before `next` said it is over, this is a reply cut short: its stop is
    /// [`ReplyStop::Truncated`] and its calls are kept as [`Part::PartialCall`].
    fn finish(self: Box<Self>) -> Reply;
}

/// Something that answers.
pub trait Provider: Send + Sync {
    /// Sends a request and waits until the reply begins. One attempt: retrying is the caller's, who can be seen waiting.
    ///
    /// # Errors
    /// The reply did not begin.
    fn send<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Box<dyn ReplyStream>, ProviderError>>;
}
