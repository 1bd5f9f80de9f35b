//! The structures of a request, written straight to bytes from borrowed text.

use super::thinking::Thinking;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;

#[derive(Serialize)]
pub(super) struct Body<'a> {
    pub(super) model: &'a str,
    pub(super) max_tokens: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) system: Vec<Block<'a>>,
    pub(super) messages: Vec<Wire<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_choice: Option<Choice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) output_config: Option<OutputConfig<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) temperature: Option<f64>,
    pub(super) stream: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Role {
    User,
    Assistant,
}

/// A message on the wire.
#[derive(Debug, Serialize)]
pub(super) struct Wire<'a> {
    pub(super) role: Role,
    pub(super) content: Vec<Block<'a>>,
}

/// A block of a message.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Image {
        source: Source<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    ToolUse {
        id: String,
        name: String,
        input: Input<'a>,
    },
    ToolResult {
        tool_use_id: String,
        content: ResultContent<'a>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    /// A block of Anthropic's own, as it was received.
    #[serde(untagged)]
    Verbatim(&'a Value),
}

/// What a call gave: text, or blocks where there are images.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum ResultContent<'a> {
    Text(Cow<'a, str>),
    Blocks(Vec<Block<'a>>),
}

impl<'a> Block<'a> {
    pub(super) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text {
            text: text.into(),
            cache_control: None,
        }
    }

    /// Marks that the request up to this block is worth caching. Blocks that do not take a mark stay as they are.
    pub(super) fn mark(&mut self) {
        match self {
            Self::Text { cache_control, .. }
            | Self::Image { cache_control, .. }
            | Self::ToolResult { cache_control, .. } => *cache_control = Some(CacheControl::Ephemeral),
            Self::Thinking { .. } | Self::ToolUse { .. } | Self::Verbatim(_) => {}
        }
    }

    /// The type of a verbatim block.
    pub(super) fn verbatim_type(&self) -> Option<&'a str> {
        match self {
            Self::Verbatim(block) => block.get("type").and_then(Value::as_str),
            Self::Text { .. }
            | Self::Image { .. }
            | Self::Thinking { .. }
            | Self::ToolUse { .. }
            | Self::ToolResult { .. } => None,
        }
    }

    /// Whether it is thinking that the API signed.
    pub(super) fn is_thinking(&self) -> bool {
        matches!(self, Self::Thinking { .. }) || self.verbatim_type() == Some("redacted_thinking")
    }
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(super) enum CacheControl {
    Ephemeral,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(super) enum Source<'a> {
    Base64 { media_type: &'a str, data: &'a str },
}

/// The arguments of a call: always an object.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Input<'a> {
    /// As the model wrote them.
    Raw(&'a RawValue),
    /// None that the format takes.
    Empty {},
}

impl<'a> Input<'a> {
    pub(super) fn of(arguments: &'a str) -> Self {
        match serde_json::from_str::<&RawValue>(arguments) {
            Ok(raw) if raw.get().starts_with('{') => Self::Raw(raw),
            Ok(_) | Err(_) => Self::Empty {},
        }
    }
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Tool<'a> {
    /// One of ours.
    Own {
        name: String,
        description: &'a str,
        input_schema: Cow<'a, Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    /// One that the provider runs.
    Server {
        r#type: &'static str,
        name: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
}

impl Tool<'_> {
    /// Marks that the tools up to this one are worth caching.
    pub(super) fn mark(&mut self) {
        match self {
            Self::Own { cache_control, .. } | Self::Server { cache_control, .. } => {
                *cache_control = Some(CacheControl::Ephemeral);
            }
        }
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(super) enum Choice {
    /// One call at most.
    Auto { disable_parallel_tool_use: bool },
    /// None.
    None,
}

#[derive(Serialize)]
pub(super) struct OutputConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) format: Option<OutputFormat<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum OutputFormat<'a> {
    JsonSchema { schema: Cow<'a, Value> },
}
