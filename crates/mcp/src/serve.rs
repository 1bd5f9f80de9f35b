//! The other direction: tools of this program, offered to MCP clients (SPEC 6.10).
//!
//! A [`Backend`] has the tools and decides over their calls; this module is the protocol around it, in both eras, over standard
//! input and output ([`stdio`]) or HTTP ([`http`]). A call that somebody must be asked about *returns* ([`Ended::Asks`]); how the
//! client is asked is the protocol's business: a request inside the call (up to 2025-11-25), or a result that asks and a second
//! call that answers (2026-07-28). A client that can ask nobody counts as [`Consent::Nobody`]: the backend refuses.
//!
//! Everything a client sends is bounded here. Nothing it says of itself decides anything.

mod consent;
mod handler;
pub mod http;
mod progress;
mod sessions;
pub mod stdio;

use crate::offer::Hints;
use aish_core::message::ToolSpec;
use aish_tools::{Cancel, Progress};
use futures_util::future::BoxFuture;
use std::sync::Arc;

/// Bytes of one message of a client.
pub const MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A tool on offer.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// Its name, what it does and what it takes.
    pub spec: ToolSpec,
    /// What it does to the world, honestly.
    pub hints: Hints,
}

/// A call of a client.
#[derive(Clone)]
pub struct Call {
    /// The tool's name.
    pub tool: String,
    /// The arguments, JSON text of an object.
    pub arguments: String,
    /// What the client says it is; hostile until escaped.
    pub client: String,
    /// Where the call tells how far it is.
    pub progress: Arc<dyn Progress>,
    /// Turns true when the client does not want the result any more.
    pub cancel: Cancel,
}

/// How far a call came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// To its end, whatever it was.
    Result(CallResult),
    /// Somebody must allow it first: [`Backend::answer`] goes on with it.
    Asks(Question),
}

/// What a call came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallResult {
    /// What the client is told.
    pub text: String,
    /// Whether it worked.
    pub success: bool,
}

/// What somebody must say before a call runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The whole question, with every argument; escaped.
    pub message: String,
    /// Names the call that waits, and cannot be guessed.
    pub ticket: String,
}

/// What the person behind a client said to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consent {
    /// Yes, this once.
    Given,
    /// No.
    Refused,
    /// Nobody could be asked, or nobody answered in time.
    Nobody,
    /// Something came that is no answer: the question stands.
    Unclear,
}

/// Whoever has the tools.
pub trait Backend: Send + Sync + 'static {
    /// What is offered, always in the same order.
    fn tools(&self) -> Vec<Tool>;

    /// What a client's model should know of it all.
    fn instructions(&self) -> String;

    /// Begins a call. Dropping the future does not end the call: its `cancel` does.
    fn call(&self, call: Call) -> BoxFuture<'_, Ended>;

    /// Goes on with a call that asked; it asks again where the answer is unclear. It is refused when it is not the one that the ticket was given for, so that what was
    /// shown is what runs.
    fn answer<'a>(&'a self, ticket: &'a str, call: Call, consent: Consent) -> BoxFuture<'a, Ended>;
}
