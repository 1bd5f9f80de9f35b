//! What events carry for a turn whose client is somewhere else (SPEC 9): the tools it executes, and how the turn waits for it.

use crate::action::Digest;
use crate::id::{CallId, ContinuationId};
use crate::message::ToolSpec;
use serde::{Deserialize, Serialize};

/// What a client declared when it began a turn; a turn at a terminal has none of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Served {
    /// The tools that the client executes, in the order it declared them. A call of any other name that this process cannot run
    /// is the client's as well (SPEC 9.2).
    #[serde(default)]
    pub tools: Vec<ToolSpec>,
    /// The key under which the request may be sent again without beginning another turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<RequestKey>,
}

/// A request that may be sent again: by its `Idempotency-Key`, and by what it said (SPEC 9.4).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestKey {
    /// As the client sent it.
    pub key: String,
    /// Of the route and the body: another one under the same key is refused.
    pub digest: Digest,
}

/// A turn waits for somebody outside this process (SPEC 9.2, 9.6).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Suspended {
    /// The one-shot id of this suspension.
    pub continuation: ContinuationId,
    /// The call whose answer or result it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallId>,
    /// When it no longer waits, in milliseconds since the Unix epoch; absent for never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
}

impl Suspended {
    /// Whether it waits no longer at that moment, in milliseconds since the Unix epoch.
    pub fn is_over(&self, now: u64) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }
}

/// What a turn waited for came. In one append with the answer or the result itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Resumed {
    /// The suspension that is over.
    pub continuation: ContinuationId,
    /// Of what was answered: the same answer again changes nothing, another one is refused (SPEC 9.4).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Digest>,
    /// The key under which the answer may be sent again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<RequestKey>,
}
