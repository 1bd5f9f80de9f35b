//! What can go wrong with a server: one kind for each thing a person does about it, and one line that says it.

use crate::InputRequired;
use std::fmt;

/// What kind of failure it is: what may be done about it depends on this alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// It cannot be reached, or its program cannot be started.
    Unreachable,
    /// Nothing can be sent to it as it is configured: an address that is none, a header that no request can carry.
    Unusable,
    /// It did not answer in time.
    Timeout,
    /// It wants to know who asks (401); the challenge of its `WWW-Authenticate` header, if there was one.
    Unauthorized {
        /// The header's value, for the search of an authorization server (RFC 9728).
        challenge: Option<String>,
    },
    /// It knows who asks and refuses (403).
    Forbidden,
    /// It has forgotten the session (404, or 400 where servers say it so).
    SessionLost,
    /// Another status of HTTP.
    Status(u16),
    /// What it sent is not the protocol.
    Protocol,
    /// What it sent is larger than is taken from it.
    TooLarge,
    /// A JSON-RPC error: the server's own words.
    Rpc {
        /// The code, e.g. -32602.
        code: i64,
    },
    /// Its process ended, or the connection did.
    Closed,
    /// It speaks no version of the protocol that aish does.
    Version,
    /// The person, or the program, stopped waiting.
    Cancelled,
    /// It asks something before it goes on, and nobody is here: the request waits for whoever has the answers (2026-07-28).
    InputRequired(Box<InputRequired>),
}

/// A failure. The message is one line for a person, without the alias in front; it is not escaped, and may hold what a server
/// said, but never a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpError {
    /// What may be done about it.
    pub kind: ErrorKind,
    /// What was tried and what went wrong.
    pub message: String,
}

impl McpError {
    /// A failure of that kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }

    /// True where the same request may find a server that answers after connecting anew.
    pub fn is_connection(&self) -> bool {
        self.kind.lasts() == Lasts::Connection
    }
}

/// How long a failure may last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lasts {
    /// As long as this connection: the server may be there for the next one.
    Connection,
    /// A while: the same may work later.
    AWhile,
    /// Until something is changed, here or there.
    UntilChanged,
}

impl ErrorKind {
    pub(crate) fn lasts(&self) -> Lasts {
        match self {
            Self::Unreachable | Self::SessionLost | Self::Closed => Lasts::Connection,
            Self::Timeout | Self::Status(500..=599 | 429) => Lasts::AWhile,
            Self::Unusable
            | Self::Unauthorized { .. }
            | Self::Forbidden
            | Self::Status(_)
            | Self::Protocol
            | Self::TooLarge
            | Self::Rpc { .. }
            | Self::Version
            | Self::Cancelled
            | Self::InputRequired(_) => Lasts::UntilChanged,
        }
    }
}

impl fmt::Display for McpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for McpError {}
