//! What a model is sent and what it answers with, free of any provider's wire format.
//!
//! A codec in `aish-provider` turns [`Message`]s into one provider's request; the projection
//! ([`crate::projection`]) makes them from the ledger.

use crate::id::CallId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A block of a message, verbatim and in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Plain text.
    Text {
        /// The text.
        text: String,
    },
    /// What a model thought before it answered.
    Thinking {
        /// The readable text, possibly a summary, possibly empty.
        text: String,
        /// The provider's signature or encrypted form, to be sent back unchanged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
        /// The wire format the signature belongs to, e.g. `anthropic`; none where nothing is signed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        format: Option<String>,
    },
    /// Text that came along with a question: standard input, a mentioned file, kept command output (SPEC 8.3).
    Context {
        /// What it is, e.g. `stdin`.
        label: String,
        /// The text.
        text: String,
    },
    /// An image.
    Image {
        /// Its media type, e.g. `image/png`.
        media_type: String,
        /// Its bytes in base64.
        data: String,
    },
    /// A block only its provider understands (a provider-side tool, encrypted reasoning), kept verbatim.
    Provider {
        /// The wire format it belongs to, e.g. `anthropic`.
        format: String,
        /// The block as received.
        block: Value,
    },
    /// Where a call of this reply stood among its blocks. Only there when the place says something: a block follows the
    /// call, or the call is signed; other calls follow all blocks.
    Call {
        /// Which call of the reply, from 0.
        index: usize,
        /// The provider's signature of the call, to be sent back unchanged (Gemini).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    /// A tool call whose stream was cut: kept as evidence, never run and never sent (SPEC 7.3).
    PartialCall {
        /// The name as far as it came.
        name: String,
        /// The argument text as far as it came.
        arguments: String,
    },
}

impl Part {
    /// A text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// Thinking that nobody signed.
    pub fn thinking(text: impl Into<String>) -> Self {
        Self::Thinking {
            text: text.into(),
            signature: None,
            format: None,
        }
    }
}

/// The text blocks of a message, joined.
pub fn text_of(parts: &[Part]) -> String {
    let mut out = String::new();
    for part in parts {
        if let Part::Text { text } = part {
            out.push_str(text);
        }
    }
    out
}

/// A call as the model is reminded of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageCall {
    /// Our id, unique in the session.
    pub id: CallId,
    /// The provider's own id where it differs.
    pub provider_id: Option<String>,
    /// The tool's name as people see it (`alias.tool` for MCP).
    pub name: String,
    /// A JSON object as text; always valid, repaired where the model's own was not (SPEC 3.8).
    pub arguments: String,
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// From the person: text, context, images.
    User {
        /// The blocks, in order.
        parts: Vec<Part>,
    },
    /// From a model: one reply, its calls grouped.
    Assistant {
        /// The blocks, in order, without the calls.
        parts: Vec<Part>,
        /// The calls, in order. Each is followed by exactly one [`Message::Tool`], in the same order.
        calls: Vec<MessageCall>,
        /// The model that said it, by its configured name; thinking and a provider's own blocks go back to the same one only.
        model: Option<String>,
    },
    /// The result of one call.
    Tool {
        /// Which call.
        call_id: CallId,
        /// The provider's own id of that call where it differs.
        provider_id: Option<String>,
        /// The tool's name.
        name: String,
        /// What the model is given.
        output: String,
        /// False for errors, refusals and interruptions.
        success: bool,
        /// Images that came with it, in order.
        parts: Vec<Part>,
    },
}

/// A tool as it is offered to a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The name as people see it.
    pub name: String,
    /// What it does, for the model.
    #[serde(default)]
    pub description: String,
    /// A JSON Schema of its arguments: `{"type":"object",…}`.
    pub input_schema: Value,
}

/// Whether a model may call tools in its next reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolChoice {
    /// As it likes.
    Auto,
    /// Not at all: the turn's limit is reached and it should sum up (SPEC 3.6).
    None,
}
