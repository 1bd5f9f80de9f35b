//! What must be known of a model to talk to it: where it is, which wire format it speaks, and its quirks.
//!
//! A profile is plain data. The configuration makes it, codecs and [`crate::http`] read it, nobody changes it.

use crate::codec::schema::SchemaDialect;
use std::str::FromStr;

/// The sampling temperature for `openai-chat` unless the configuration says otherwise (SPEC 7.1): tool calls want few
/// surprises.
pub const TEMPERATURE_DEFAULT: f64 = 0.2;

/// A wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// OpenAI chat completions: llama.cpp, Ollama, vLLM, LM Studio, OpenRouter and many more.
    OpenaiChat,
    /// OpenAI Responses.
    OpenaiResponses,
    /// Anthropic Messages.
    Anthropic,
    /// Google Gemini.
    Gemini,
}

impl Format {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::OpenaiChat, Self::OpenaiResponses, Self::Anthropic, Self::Gemini];

    /// The name as the configuration writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenaiChat => "openai-chat",
            Self::OpenaiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        }
    }
}

/// A provider format this program does not speak.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown provider `{0}` (known: openai-chat, openai-responses, anthropic, gemini)")]
pub struct UnknownFormat(String);

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        let known = Self::ALL.into_iter().find(|format| format.name() == name);
        known.ok_or_else(|| UnknownFormat(name.to_owned()))
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

/// Who gives the standing instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SystemRole {
    /// The format's own place for them.
    #[default]
    System,
    /// `developer`, which OpenAI's reasoning models prefer.
    Developer,
    /// The first message of the user: some templates (Gemma's) have no system role.
    User,
}

/// How strictly user and assistant must take turns (SPEC 7.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Alternation {
    /// Neighbours of one role are joined, which is all that most servers want.
    #[default]
    Joined,
    /// Besides, a result must be followed by the assistant: an assistant line is put between a result and a user message
    /// (Mistral's templates).
    Strict,
}

/// Whether something is sent to this model or left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Support {
    /// Sent.
    #[default]
    Yes,
    /// Left out, or told in words: the endpoint refuses it.
    No,
}

impl Support {
    /// True where it is sent.
    pub fn is_yes(self) -> bool {
        self == Self::Yes
    }
}

/// How hard a model should think before it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reasoning {
    /// Not at all, where it can be switched off.
    Off,
    /// Little.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
}

/// A tool that the provider runs itself: it is never gated here, and its blocks are kept verbatim (SPEC 9.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderTool {
    /// Search on the web.
    WebSearch,
}

/// What a model's own thinking is sent back as in `openai-chat`, which has no field for it of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThinkingBack {
    /// Not at all: templates take it out again anyway.
    #[default]
    Dropped,
    /// As `reasoning_content` beside the replies of the turn under way: models that think between calls lose their thread
    /// without it, and some APIs refuse a call without it (DeepSeek, Kimi).
    ReasoningContent,
}

/// A model and how to talk to it.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelProfile {
    /// The wire format.
    pub format: Format,
    /// What the official SDKs take: with `/v1` for the OpenAI formats, the bare origin for Anthropic and Gemini.
    pub base_url: String,
    /// The model's name at its provider.
    pub model: String,
    /// The sampling temperature; `None` leaves the field out, for models that refuse it.
    pub temperature: Option<f64>,
    /// Tokens that fit the model's context, where known.
    pub context_window: Option<u64>,
    /// Tokens a reply may have unless the request says so itself; `None` leaves it to the server.
    pub max_output_tokens: Option<u64>,
    /// Tokens that the endpoint lets a reply have, whoever asks for more; `None` where it has not said.
    pub output_tokens_max: Option<u64>,
    /// The field that says so, in `openai-chat`.
    pub max_tokens_field: MaxTokensField,
    /// How results and earlier calls are put.
    pub tool_role: ToolRole,
    /// How tools are named on the wire.
    pub wire_names: WireNaming,
    /// Which ids calls have on the wire.
    pub wire_call_ids: WireCallIds,
    /// How many calls one reply may hold.
    pub calls: CallsPerReply,
    /// Who gives the standing instructions.
    pub system_role: SystemRole,
    /// How strictly roles take turns.
    pub alternation: Alternation,
    /// Whether tools are offered at all.
    pub tools: Support,
    /// Whether images are sent; else they are named in words.
    pub images: Support,
    /// Whether the reply is streamed; else it comes in one piece.
    pub streaming: Support,
    /// Whether `stream_options` is sent, in `openai-chat`.
    pub stream_usage: Support,
    /// Whether `response_format` or its like is sent; else the schema is told in words.
    pub structured_output: Support,
    /// Whether `parallel_tool_calls` or its like may be sent.
    pub parallel_field: Support,
    /// Whether a request may offer tools and forbid calling them; else it does not offer them then, in `openai-chat`.
    pub choice_none: Support,
    /// Whether what is stable in a request is marked for the provider's cache, in `anthropic`.
    pub cache_marks: Support,
    /// How schemas of tools are written.
    pub schemas: SchemaDialect,
    /// How hard it thinks; `None` leaves it to the server.
    pub reasoning: Option<Reasoning>,
    /// Whether a summary of its reasoning is asked for, in `openai-responses`.
    pub reasoning_summary: Support,
    /// Whether its reasoning is asked for in encrypted form, to be sent back, in `openai-responses`.
    pub encrypted_reasoning: Support,
    /// What its own thinking is sent back as, in `openai-chat`.
    pub thinking_back: ThinkingBack,
    /// Tools that the provider runs itself.
    pub provider_tools: Vec<ProviderTool>,
}

impl ModelProfile {
    /// A model of this format with the defaults of the format and of the address's owner.
    pub fn new(format: Format, base_url: impl Into<String>, model: impl Into<String>) -> Self {
        let base_url = base_url.into();
        let is_openai = base_url.starts_with("https://api.openai.com/");
        Self {
            format,
            model: model.into(),
            temperature: match format {
                Format::OpenaiChat => Some(TEMPERATURE_DEFAULT),
                Format::OpenaiResponses | Format::Anthropic | Format::Gemini => None,
            },
            context_window: None,
            max_output_tokens: None,
            output_tokens_max: None,
            max_tokens_field: if is_openai {
                MaxTokensField::MaxCompletionTokens
            } else {
                MaxTokensField::MaxTokens
            },
            tool_role: ToolRole::Native,
            wire_names: WireNaming::Underscore,
            wire_call_ids: WireCallIds::Own,
            calls: CallsPerReply::Any,
            system_role: SystemRole::System,
            alternation: Alternation::Joined,
            tools: Support::Yes,
            images: Support::Yes,
            streaming: Support::Yes,
            stream_usage: Support::Yes,
            structured_output: Support::Yes,
            parallel_field: Support::Yes,
            choice_none: Support::Yes,
            cache_marks: if base_url.starts_with("https://api.anthropic.com") {
                Support::Yes
            } else {
                Support::No
            },
            schemas: match format {
                Format::OpenaiChat if is_openai => SchemaDialect::Full,
                Format::OpenaiChat => SchemaDialect::Grammar,
                Format::OpenaiResponses | Format::Anthropic => SchemaDialect::Full,
                Format::Gemini => SchemaDialect::Gemini,
            },
            reasoning: None,
            reasoning_summary: Support::Yes,
            encrypted_reasoning: Support::Yes,
            thinking_back: ThinkingBack::Dropped,
            provider_tools: Vec::new(),
            base_url,
        }
    }

    /// An `openai-chat` model with the defaults.
    pub fn openai_chat(base_url: impl Into<String>, model: impl Into<String>) -> Self {
        Self::new(Format::OpenaiChat, base_url, model)
    }

    /// Tokens that a reply is asked to have at most. `asked` is what the request itself says.
    pub fn output_tokens(&self, asked: Option<u64>) -> Option<u64> {
        let wanted = asked.or(self.max_output_tokens);
        match (wanted, self.output_tokens_max) {
            (Some(wanted), Some(max)) => Some(wanted.min(max)),
            (wanted, max) => wanted.or(max),
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
        assert_eq!(
            error,
            "unknown provider `gopher` (known: openai-chat, openai-responses, anthropic, gemini)"
        );
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

    /// SPEC 7.4: nobody asks for a longer reply than the endpoint allows.
    #[test]
    fn length_of_the_reply() {
        for (request, configured, allowed, expect) in [
            (None, None, None, None),
            (None, Some(500), None, Some(500)),
            (Some(50), Some(500), None, Some(50)),
            (Some(500), None, Some(100), Some(100)),
            (Some(50), Some(500), Some(100), Some(50)),
            (None, Some(500), Some(100), Some(100)),
            (None, None, Some(100), Some(100)),
        ] {
            let mut profile = ModelProfile::openai_chat("http://127.0.0.1:8080/v1", "m");
            (profile.max_output_tokens, profile.output_tokens_max) = (configured, allowed);
            assert_eq!(
                profile.output_tokens(request),
                expect,
                "{request:?} {configured:?} {allowed:?}"
            );
        }
    }
}
