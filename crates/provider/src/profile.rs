//! What must be known of a model to talk to it: where it is, which wire format it speaks, and its quirks.
//!
//! A profile is plain data. The configuration makes it, codecs and [`crate::http`] read it, nobody changes it.

use std::str::FromStr;

/// The sampling temperature for `openai-chat` unless the configuration says otherwise (SPEC 7.1): tool calls want few
/// surprises.
pub const TEMPERATURE_DEFAULT: f64 = 0.2;

/// A wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// OpenAI chat completions: llama.cpp, Ollama, vLLM, LM Studio, OpenRouter and many more.
    OpenaiChat,
}

impl Format {
    /// The name as the configuration writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenaiChat => "openai-chat",
        }
    }
}

/// A provider format this program does not speak.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown provider `{0}` (known: openai-chat)")]
pub struct UnknownFormat(String);

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        match name {
            "openai-chat" => Ok(Self::OpenaiChat),
            other => Err(UnknownFormat(other.to_owned())),
        }
    }
}

/// How a tool's name is written on the wire (SPEC 6.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WireNaming {
    /// `alias.tool` becomes `alias__tool`, which every provider accepts.
    #[default]
    Underscore,
    /// The dot stays.
    Dot,
}

/// How results and earlier calls are put to the model (SPEC 7.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolRole {
    /// As `tool` messages and `tool_calls`.
    #[default]
    Native,
    /// As text in user and assistant messages, for templates that know neither.
    Text,
}

/// Which ids the calls of a conversation have on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WireCallIds {
    /// The provider's own while it is unique in the conversation, else ours.
    #[default]
    Own,
    /// Nine letters and digits, made from ours: some templates refuse everything else (SPEC 7.5).
    NineCharacters,
}

/// The field that bounds a reply's tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaxTokensField {
    /// `max_tokens`, which every compatible server knows.
    MaxTokens,
    /// `max_completion_tokens`, which OpenAI's own newer models insist on.
    MaxCompletionTokens,
}

/// How many calls one reply may hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallsPerReply {
    /// As many as the model likes.
    #[default]
    Any,
    /// One: very small models that may go on calling go on until their context is full. The server is asked to hold them to
    /// it, and what it sends beyond is not waited for.
    One,
}

/// A model and how to talk to it.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelProfile {
    /// The wire format.
    pub format: Format,
    /// What the official SDKs take: with `/v1` for the OpenAI formats.
    pub base_url: String,
    /// The model's name at its provider.
    pub model: String,
    /// The sampling temperature; `None` leaves the field out, for models that refuse it.
    pub temperature: Option<f64>,
    /// Tokens that fit the model's context, where known.
    pub context_window: Option<u64>,
    /// Tokens a reply may have unless the request says so itself; `None` leaves it to the server.
    pub max_output_tokens: Option<u64>,
    /// The field that says so.
    pub max_tokens_field: MaxTokensField,
    /// How results and earlier calls are put.
    pub tool_role: ToolRole,
    /// How tools are named on the wire.
    pub wire_names: WireNaming,
    /// Which ids calls have on the wire.
    pub wire_call_ids: WireCallIds,
    /// How many calls one reply may hold.
    pub calls: CallsPerReply,
}

impl ModelProfile {
    /// An `openai-chat` model with the defaults.
    pub fn openai_chat(base_url: impl Into<String>, model: impl Into<String>) -> Self {
        let base_url = base_url.into();
        let max_tokens_field = if base_url.starts_with("https://api.openai.com/") {
            MaxTokensField::MaxCompletionTokens
        } else {
            MaxTokensField::MaxTokens
        };
        Self {
            format: Format::OpenaiChat,
            base_url,
            model: model.into(),
            temperature: Some(TEMPERATURE_DEFAULT),
            context_window: None,
            max_output_tokens: None,
            max_tokens_field,
            tool_role: ToolRole::Native,
            wire_names: WireNaming::Underscore,
            wire_call_ids: WireCallIds::Own,
            calls: CallsPerReply::Any,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// SPEC 7.1: the provider is named as in the configuration; another name is refused with the known ones.
    #[test]
    fn format_names() {
        assert_eq!("openai-chat".parse::<Format>().unwrap().name(), "openai-chat");
        let error = "gopher".parse::<Format>().unwrap_err().to_string();
        assert_eq!(error, "unknown provider `gopher` (known: openai-chat)");
    }

    /// SPEC 7.1: the default temperature of `openai-chat` is 0.2.
    #[test]
    fn defaults() {
        let profile = ModelProfile::openai_chat("http://127.0.0.1:8080/v1", "m");
        assert_eq!(profile.temperature, Some(0.2));
        assert_eq!(profile.max_tokens_field, MaxTokensField::MaxTokens);
        let cloud = ModelProfile::openai_chat("https://api.openai.com/v1", "m");
        assert_eq!(cloud.max_tokens_field, MaxTokensField::MaxCompletionTokens);
    }
}
