//! What each kind of event carries (the `data` of SPEC 2.4): plain records, lenient where old ledgers lack a field.

use super::{Proposed, RequestKey, Served};
use crate::action::Digest;
use crate::id::{CallId, ReplyId};
use crate::limits::Limits;
use crate::message::Part;
use crate::policy::{ApprovalMode, Grant, Verdict};
use crate::turn::StopReason;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A reply of a model, without the calls, which are events of their own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assistant {
    /// Groups the calls of this reply.
    pub reply_id: ReplyId,
    /// The blocks, verbatim and in order.
    #[serde(default)]
    pub parts: Vec<Part>,
    /// Who said it; null for text that aish itself put in to close a turn.
    #[serde(default)]
    pub model: Option<String>,
    /// Which attempt this was, from 1.
    #[serde(default)]
    pub attempt: u32,
    /// How it ended.
    pub stop: ReplyStop,
    /// The last event the request was built from: a message typed later was not seen by this reply (SPEC 3.5a).
    #[serde(default)]
    pub context_seq: u64,
    /// Why it was withheld or broke off, in the provider's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The model to ask instead where this reply said nothing and may not be asked for again (SPEC 7.6).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
}

/// How a reply ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplyStop {
    /// The model had said what it wanted to say.
    End,
    /// It waits for the results of its calls.
    ToolCalls,
    /// The provider paused a long turn of its own tools: it goes on when the reply is sent back (SPEC 7.6).
    Paused,
    /// The length limit cut it.
    Length,
    /// The stream broke off.
    Truncated,
    /// The provider withheld it.
    Refused,
    /// A person interrupted it.
    Interrupted,
    /// Not a model's: text that closes a turn (SPEC 3.7).
    Closing,
}

/// A call a model made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Our id, unique in the session.
    pub id: CallId,
    /// Always `function`.
    #[serde(rename = "type", default = "function_type")]
    pub call_type: String,
    /// Name and arguments.
    pub function: Function,
    /// The reply that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_id: Option<ReplyId>,
    /// The provider's own id where it differs from ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
}

/// Name and arguments of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Function {
    /// The tool's name as people see it.
    pub name: String,
    /// The JSON text exactly as received (SPEC 2.2).
    #[serde(default)]
    pub arguments: String,
}

fn function_type() -> String {
    "function".to_owned()
}

/// The end of a call, whatever its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// Which call.
    pub tool_call_id: CallId,
    /// The tool's name.
    #[serde(default)]
    pub name: String,
    /// The whole captured result: JSON text for built-in tools, plain text for MCP and client tools (SPEC 4).
    #[serde(default, deserialize_with = "text_or_json")]
    pub output: String,
    /// False for errors, refusals, interruptions and an MCP `isError`.
    #[serde(default)]
    pub success: bool,
    /// Images that came with it, in order; absent when there are none (SPEC 6.5).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// What kind of end it was; absent when the tool ran to its own end.
    #[serde(default, skip_serializing_if = "ResultEnd::is_completed")]
    pub end: ResultEnd,
}

/// What kind of end a call came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultEnd {
    /// The tool ran, here or at the client, and gave this result, possibly an error.
    #[default]
    Completed,
    /// A person said no.
    Declined,
    /// A deny rule said no.
    Denied,
    /// It could not be run: bad arguments, unknown tool.
    Invalid,
    /// It was never started: the turn ended first.
    NotRun,
    /// It was started and its end is not known: its effect is in doubt.
    Interrupted,
    /// The turn's limit was reached.
    Limit,
    /// Another call of the same reply was the same: that one's result, given again.
    Duplicate,
}

impl ResultEnd {
    fn is_completed(&self) -> bool {
        *self == Self::Completed
    }
}

fn text_or_json<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::String(text) => text,
        Value::Null => String::new(),
        other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => other.to_string(),
    })
}

/// The first event of a turn: everything a fold needs that is not an event.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TurnStarted {
    /// The bounds in force.
    #[serde(default)]
    pub limits: Limits,
    /// The approval mode in force.
    #[serde(default)]
    pub mode: ApprovalMode,
    /// The name of the model asked, as configured.
    #[serde(default)]
    pub model: String,
    /// The working directory, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// What its client declared, where it has one somewhere else; absent at a terminal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served: Option<Served>,
}

/// Where a call runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallSource {
    /// A tool of this process.
    #[default]
    Builtin,
    /// A tool of an MCP server, called from this process.
    Mcp,
    /// The remote client executes it; this process waits (SPEC 9.2).
    Client,
}

/// What the gate said of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallGated {
    /// Which call.
    pub call_id: CallId,
    /// Allow, ask, deny, or invalid (it cannot be run at all).
    pub verdict: Verdict,
    /// Which rule said so, readable.
    pub rule: String,
    /// The digest of its action; absent when it is invalid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// Where it would run.
    #[serde(default)]
    pub source: CallSource,
    /// True when it is proven to change nothing: such calls may run side by side.
    #[serde(default)]
    pub read_only: bool,
    /// The model's answer for an invalid call: `{"error":"…"}` as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A person's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It may run.
    Approve,
    /// It may not.
    Deny,
}

/// How far an approval reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerScope {
    /// This call.
    #[default]
    Once,
    /// This tool (for commands: this exact command) for the rest of the session.
    Session,
    /// As `Session`, and a rule was saved in the configuration.
    Saved,
}

/// Who answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnsweredBy {
    /// A person at a terminal, or a script on their behalf.
    Terminal,
    /// A remote client.
    Client,
    /// A standing rule.
    Rule,
}

/// An answer to a call that was asked about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallAnswered {
    /// Which call.
    pub call_id: CallId,
    /// Yes or no.
    pub answer: Answer,
    /// The digest of what was shown.
    pub digest: Digest,
    /// Who said it.
    pub by: AnsweredBy,
    /// How far it reaches.
    #[serde(default)]
    pub scope: AnswerScope,
    /// What is not asked about again in this session; absent when only this call is meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<Grant>,
    /// The person's reason for a no, told to the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The key under which it may be sent again, where it answers a terminal's call from elsewhere; that of an answer to a suspension
    /// is in [`Resumed`](super::Resumed).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<RequestKey>,
}

/// A call is about to run; in the ledger before it does (SPEC 3.2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallStarted {
    /// Which call.
    pub call_id: CallId,
    /// The digest of what runs.
    pub digest: Digest,
}

/// A request to a model failed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelFailed {
    /// What kind of failure, e.g. `connect`, `http_429`, `truncated`, `empty`.
    pub error: String,
    /// Which attempt, from 1.
    pub attempt: u32,
    /// Whether any of its text was shown: then it is not asked again silently.
    pub text_shown: bool,
    /// Whether asking again may help.
    #[serde(default)]
    pub retryable: bool,
    /// How long to wait first, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// The model that failed, by its configured name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The model to ask instead, once this one may not be asked again (SPEC 7.6).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
}

/// Why a turn was cancelled or ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cancelled {
    /// Readable, e.g. `interrupted by the user`.
    pub reason: String,
}

/// The last event of a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnEnded {
    /// Why it ended.
    pub reason: StopReason,
}

/// A shell command the user ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Command {
    /// The line as typed.
    pub line: String,
    /// Where it ran.
    #[serde(default)]
    pub directory: String,
    /// Its exit status; null when a signal ended it or it is unknown.
    #[serde(default)]
    pub status: Option<i32>,
    /// How long it took, in milliseconds.
    #[serde(default)]
    pub duration_ms: u64,
    /// Its output as clean text, bounded.
    #[serde(default)]
    pub output: String,
    /// How it came to be run, if a reply proposed it; absent for what the person typed (SPEC 8.4).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposed: Option<Proposed>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Tokens of one reply, as the provider counted them. `input_tokens` is the whole request, cached or not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the request.
    #[serde(default)]
    pub input_tokens: u64,
    /// Tokens of the reply.
    #[serde(default)]
    pub output_tokens: u64,
    /// Tokens of the request that a cache answered.
    #[serde(default)]
    pub cached_tokens: u64,
    /// Tokens of the request that were written into a cache, where the provider counts them (and charges more for them).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_write_tokens: u64,
    /// Tokens of the reply that were thinking, where the provider counts them; part of `output_tokens`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reasoning_tokens: u64,
    /// Which model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

impl Usage {
    /// Adds the counts of another reply, and takes over its model. Whatever a server counts, it stays a number.
    pub fn add(&mut self, more: &Self) {
        for (sum, count) in [
            (&mut self.input_tokens, more.input_tokens),
            (&mut self.output_tokens, more.output_tokens),
            (&mut self.cached_tokens, more.cached_tokens),
            (&mut self.cache_write_tokens, more.cache_write_tokens),
            (&mut self.reasoning_tokens, more.reasoning_tokens),
        ] {
            *sum = sum.saturating_add(count);
        }
        self.model.clone_from(&more.model);
    }
}

/// A message's extra blocks; null in the ledger when there are none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Parts {
    /// Blocks besides the text in `content`, in order.
    #[serde(default)]
    pub parts: Vec<Part>,
}
