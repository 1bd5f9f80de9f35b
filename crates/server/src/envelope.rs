//! What clients are answered: where a turn stands (SPEC 9.1, 9.2, 9.6), and what a session holds (SPEC 9.8), field by field.

use aish_engine::{Envelope, Waiting};
use serde::Serialize;
use serde_json::value::RawValue;

/// Where a turn stands: over, or waiting for somebody.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Envelope"))]
#[serde(untagged)]
pub(crate) enum Reply {
    /// The turn is over.
    Final(FinalReply),
    /// The client must execute a tool.
    Tool(ToolPending),
    /// Somebody must say whether a call may run.
    Approval(ApprovalPending),
}

/// A turn that is over.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct FinalReply {
    /// What the model says; `[stopped: …]` where the turn did not end by itself.
    reply: String,
    /// The model that answered last, by its name in the configuration.
    model: String,
    /// Always true.
    #[cfg_attr(test, schemars(extend("const" = true)))]
    agentic: bool,
    /// The tools that ran or were handed to the client, in order.
    tools_used: Vec<String>,
    /// The conversation, to go on with.
    conversation_id: String,
}

/// A turn that waits for its client to execute a tool.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ToolPending {
    /// Always true.
    #[cfg_attr(test, schemars(extend("const" = true)))]
    tool_pending: bool,
    /// The one-shot continuation: where the result is posted to.
    session_id: String,
    /// The conversation.
    conversation_id: String,
    /// The call, to be quoted with the result.
    call_id: String,
    /// The tool, as the model called it.
    tool_name: String,
    /// Its arguments, as the model wrote them.
    #[cfg_attr(test, schemars(with = "serde_json::Map<String, serde_json::Value>"))]
    tool_input: Box<RawValue>,
    /// The model that called it.
    model: String,
    /// Always true.
    #[cfg_attr(test, schemars(extend("const" = true)))]
    agentic: bool,
    /// The tools that ran or were handed to the client so far, this one included.
    tools_used: Vec<String>,
}

/// A turn that waits for somebody to allow a call.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ApprovalPending {
    /// Always true.
    #[cfg_attr(test, schemars(extend("const" = true)))]
    approval_pending: bool,
    /// The one-shot continuation: where the approval is posted to.
    session_id: String,
    /// The conversation.
    conversation_id: String,
    /// The call.
    call_id: String,
    /// The tool, as the model called it.
    tool_name: String,
    /// Its arguments, to be shown whole.
    #[cfg_attr(test, schemars(with = "serde_json::Map<String, serde_json::Value>"))]
    tool_input: Box<RawValue>,
    /// What the approval quotes, so that what was shown is what runs.
    digest: String,
    /// The rule that asks.
    reason: String,
    /// The model that called it.
    model: String,
    /// Always true.
    #[cfg_attr(test, schemars(extend("const" = true)))]
    agentic: bool,
    /// The tools that ran or were handed to the client so far.
    tools_used: Vec<String>,
}

impl From<Envelope> for Reply {
    fn from(envelope: Envelope) -> Self {
        let (model, tools_used) = (envelope.model, envelope.tools_used);
        let conversation_id = envelope.session.to_string();
        match envelope.reply {
            Waiting::ForNothing(ended) => Self::Final(FinalReply {
                reply: ended.reply,
                model,
                agentic: true,
                tools_used,
                conversation_id,
            }),
            Waiting::ForTool(call) => Self::Tool(ToolPending {
                tool_pending: true,
                session_id: call.answer_to.to_string(),
                conversation_id,
                call_id: call.call_id.to_string(),
                tool_name: call.tool,
                tool_input: object(call.input),
                model,
                agentic: true,
                tools_used,
            }),
            Waiting::ForApproval(call) => Self::Approval(ApprovalPending {
                approval_pending: true,
                session_id: call.answer_to.to_string(),
                conversation_id,
                call_id: call.call_id.to_string(),
                tool_name: call.tool,
                tool_input: object(call.input),
                digest: call.digest.map(|digest| digest.to_string()).unwrap_or_default(),
                reason: call.reason,
                model,
                agentic: true,
                tools_used,
            }),
        }
    }
}

/// The text of a JSON object as it stands; null for what is none, which no call that waits has.
fn object(text: String) -> Box<RawValue> {
    let is_object = text.trim_start().starts_with('{');
    let read = RawValue::from_string(text).ok().filter(|_| is_object);
    read.unwrap_or_else(|| RawValue::NULL.to_owned())
}

/// A session, as in a list.
#[derive(Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Summary {
    /// Its id: the `conversation_id` of envelopes.
    pub(crate) id: String,
    /// What it is about: the beginning of its first message.
    pub(crate) title: String,
    /// When it began, in milliseconds since the Unix epoch.
    pub(crate) created: u64,
    /// When something last happened in it.
    pub(crate) updated: u64,
    /// How many events it has.
    pub(crate) events: u64,
    /// Whether it waits for an answer.
    pub(crate) waiting: bool,
    /// Where its tools run.
    pub(crate) directory: Option<String>,
}

/// `GET /api/sessions`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct SessionList {
    /// The latest first.
    pub(crate) sessions: Vec<Summary>,
}

/// What a session does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    /// Nothing: it can be said something to.
    Idle,
    /// A turn runs.
    Running,
    /// It waits for an answer.
    Pending,
}

/// `GET /api/sessions/{id}`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct SessionPage {
    /// Which it is.
    pub(crate) session: Summary,
    /// What it does.
    pub(crate) state: State,
    /// What it waits for.
    pub(crate) pending: Option<Reply>,
    /// Its events after the one asked for, in order, as an export has them.
    #[cfg_attr(test, schemars(with = "Vec<LedgerEvent>"))]
    pub(crate) events: Vec<Box<RawValue>>,
    /// Whether there are more.
    pub(crate) more: bool,
}

/// An event, as an export has it.
#[cfg(test)]
#[derive(schemars::JsonSchema)]
#[allow(dead_code)]
pub(crate) struct LedgerEvent {
    /// Whose it is.
    session: String,
    /// Its place in the session: 1, 2, 3, …
    seq: u64,
    /// The turn it belongs to; 0 outside any turn.
    turn: u64,
    /// Milliseconds since the Unix epoch.
    time: u64,
    /// The version of the program's event format that wrote it.
    version: u32,
    /// What happened; kinds may be added.
    kind: String,
    /// Readable, one line or the whole text.
    content: String,
    /// What its kind says (null for nothing).
    data: serde_json::Value,
}
