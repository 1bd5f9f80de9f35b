//! What MCP servers ask while a call runs, and what became of it (SPEC 6.9).
//!
//! [`ServerAsked`] and [`ServerAnswered`] are evidence only: no fold depends on them. A question that has no answer in the ledger
//! was taken back together with the call it belongs to, or with the process. [`CallSuspended`] and [`CallTakenUp`] are steps of a
//! call whose server waits for the answer without holding anything open.

use super::data::Usage;
use crate::action::Digest;
use crate::id::CallId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A server asked something.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerAsked {
    /// Which question of this process, from 1: its answer quotes it.
    pub question: u64,
    /// The server's alias.
    pub server: String,
    /// The call inside which it asked, where only one of that server ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallId>,
    /// What for.
    pub wants: ServerWants,
    /// What it asked as it came, bounded: the parameters of its request.
    #[serde(default)]
    pub asked: Value,
}

/// What a server asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerWants {
    /// Values for the fields of a form.
    Form,
    /// That a person opens an address.
    Url,
    /// A model's answer.
    Sampling,
}

/// A question of a server has its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerAnswered {
    /// Which question.
    pub question: u64,
    /// The server's alias.
    pub server: String,
    /// The call inside which it asked, where only one of that server ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallId>,
    /// How it was answered.
    pub outcome: ServerOutcome,
    /// What the server was sent, as arguments of a call are kept; values of fields that seem to ask for a secret are not.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub sent: Value,
    /// Why, where it is not the person's plain yes or no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Tokens that a model used for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// How a question of a server was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerOutcome {
    /// Yes, and this was sent.
    Accepted,
    /// No, or nobody was there.
    Declined,
    /// The question was dismissed: Ctrl-C.
    Dismissed,
    /// It could not be answered.
    Failed,
}

/// A call cannot go on before somebody answers what it asks, and nobody was there: it waits, and nothing of it runs meanwhile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallSuspended {
    /// Which call.
    pub call_id: CallId,
    /// What it asks, a line for each question; whoever ran it has escaped and bounded them.
    #[serde(default)]
    pub asks: Vec<String>,
    /// What whoever runs it needs to go on, as it was given: for an MCP server its `inputRequests` and `requestState`.
    #[serde(default)]
    pub state: Value,
}

/// What a suspended call asked is answered, and it is about to go on; in the ledger before it does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallTakenUp {
    /// Which call.
    pub call_id: CallId,
    /// The digest of what goes on: that of what was started.
    pub digest: Digest,
}
