//! What can be changed about requests, and what the person is told of it.

use super::super::way::Way;
use super::asked::Asked;
use super::rules::has_phrase;
use crate::codec::failure;
use crate::codec::schema::SchemaDialect;
use crate::profile::{
    Alternation, CallsPerReply, Format, MaxTokensField, ModelProfile, Support, SystemRole, TEMPERATURE_DEFAULT,
    ThinkingBack, ToolRole, WireCallIds, WireNaming,
};
use std::sync::Arc;

/// What part of the window a reply may have where it had asked for more than half of it, and nothing else fitted.
const REPLY_SHARE: u64 = 4;

/// Words that say of the temperature that 1 is the only one allowed; `…` stands for anything.
const ONLY_ONE: &[&str] = &[
    "only the default (1)",
    "only be set to 1",
    "only 1 is allowed",
    "must be 1",
    "must be set to 1",
];

/// What can be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    OwnReplies,
    RefusedImages,
    OutputTokens,
    ReplyRoom,
    Temperature,
    MaxTokensField,
    StreamUsage,
    Streaming,
    ParallelField,
    ChoiceNone,
    Tools,
    Names,
    NineIds,
    StrictAlternation,
    DeveloperRole,
    SystemRole,
    Images,
    Schemas,
    StructuredOutput,
    ThinkingBack,
    ThinkingNotBack,
    EncryptedReasoning,
    ReasoningSummary,
    Reasoning,
    CacheMarks,
    ProviderTools,
    ToolRole,
}

impl Change {
    /// Makes the change, where the request has what it is about.
    pub(super) fn make(self, way: &mut Way, asked: &Asked, words: &str) {
        let profile = Arc::make_mut(&mut way.profile);
        match self {
            Self::OwnReplies => way.refuse_replies(&asked.own_replies),
            Self::RefusedImages => way.refuse_images(asked.images_meant(way, words)),
            Self::OutputTokens => profile.output_tokens_max = output_tokens(profile, asked, words),
            Self::ReplyRoom => profile.output_tokens_max = reply_room(profile, asked, words),
            Self::Temperature => profile.temperature = None,
            Self::MaxTokensField if asked.has_max_tokens => {
                profile.max_tokens_field = match profile.max_tokens_field {
                    MaxTokensField::MaxTokens => MaxTokensField::MaxCompletionTokens,
                    MaxTokensField::MaxCompletionTokens => MaxTokensField::MaxTokens,
                };
            }
            Self::StreamUsage => profile.stream_usage = Support::No,
            Self::Streaming => profile.streaming = Support::No,
            Self::ParallelField if profile.calls == CallsPerReply::One => profile.parallel_field = Support::No,
            Self::ChoiceNone if asked.is_choice_none && asked.has_tools => profile.choice_none = Support::No,
            Self::Tools if asked.has_tools || asked.has_calls => profile.tools = Support::No,
            Self::Names if asked.has_tools => profile.wire_names = WireNaming::Underscore,
            Self::NineIds if asked.has_calls => profile.wire_call_ids = WireCallIds::NineCharacters,
            // Without, the request would be the same again: then it is the tool role that the template cannot place.
            Self::StrictAlternation if asked.has_steering => profile.alternation = Alternation::Strict,
            Self::DeveloperRole if profile.system_role == SystemRole::Developer => {
                profile.system_role = SystemRole::System;
            }
            Self::SystemRole if asked.has_system => profile.system_role = SystemRole::User,
            Self::Images if !asked.images.is_empty() => profile.images = Support::No,
            Self::Schemas if profile.schemas == SchemaDialect::Full && (asked.has_tools || asked.has_schema) => {
                profile.schemas = SchemaDialect::Grammar;
            }
            Self::StructuredOutput if asked.has_schema => profile.structured_output = Support::No,
            Self::ThinkingBack => profile.thinking_back = ThinkingBack::ReasoningContent,
            Self::ThinkingNotBack => profile.thinking_back = ThinkingBack::Dropped,
            Self::EncryptedReasoning if profile.format == Format::OpenaiResponses => {
                profile.encrypted_reasoning = Support::No;
            }
            Self::ReasoningSummary if profile.format == Format::OpenaiResponses => {
                profile.reasoning_summary = Support::No;
            }
            Self::Reasoning => profile.reasoning = None,
            Self::CacheMarks => profile.cache_marks = Support::No,
            Self::ProviderTools => profile.provider_tools.clear(),
            Self::ToolRole if asked.has_calls => profile.tool_role = ToolRole::Text,
            Self::MaxTokensField
            | Self::ParallelField
            | Self::ChoiceNone
            | Self::Tools
            | Self::Names
            | Self::NineIds
            | Self::DeveloperRole
            | Self::SystemRole
            | Self::Images
            | Self::Schemas
            | Self::StructuredOutput
            | Self::StrictAlternation
            | Self::EncryptedReasoning
            | Self::ReasoningSummary
            | Self::ToolRole => {}
        }
    }

    /// What was refused, for a list of such.
    pub(super) fn refused(self) -> &'static str {
        self.told().refused
    }

    /// One line: what was refused, what is done now, and what to write into the configuration to have it so at once.
    pub(super) fn remark(self, before: &ModelProfile, after: &ModelProfile, words: &str) -> String {
        let Told { refused, now, key } = self.told();
        let mut remark = format!("the server refuses {refused}: {now}");
        let advice = match key {
            Key::None => None,
            Key::Is(key) => Some(at_once(key)),
            Key::Temperature => temperature_advice(before, words),
            Key::OutputTokens => after
                .output_tokens_max
                .map(|tokens| at_once(&format!("max_output_tokens = {tokens}"))),
        };
        if let Some(advice) = advice {
            remark.push_str(&format!(" ({advice})"));
        }
        remark
    }

    fn told(self) -> Told {
        let told = |refused, now, key| Told { refused, now, key };
        match self {
            Self::OwnReplies => told("thinking it made itself", "told as another model's words", Key::None),
            Self::RefusedImages => told("an image", "told in words; other images are still sent", Key::None),
            Self::OutputTokens => told("so long a reply", "asked for a shorter one", Key::OutputTokens),
            Self::ReplyRoom => told(
                "so long a reply beside this conversation",
                "asked for a shorter one",
                Key::OutputTokens,
            ),
            Self::Temperature => told("temperature", "asked without it", Key::Temperature),
            Self::MaxTokensField => told(
                "the field for the reply's length",
                "asked with the other one",
                Key::None,
            ),
            Self::StreamUsage => told("stream_options", "asked without; tokens may not be counted", Key::None),
            Self::Streaming => told("streaming", "the reply comes in one piece", Key::Is("stream = false")),
            Self::ParallelField => told("parallel_tool_calls", "asked without it", Key::None),
            Self::ChoiceNone => told(
                "tool_choice \"none\"",
                "tools are left out where none may be called",
                Key::None,
            ),
            Self::Tools => told(
                "tools",
                "asked without them: it can only talk",
                Key::Is("tools = false"),
            ),
            Self::Names => told(
                "dots in names of tools",
                "asked with underscores",
                Key::Is("wire_names = \"underscore\""),
            ),
            Self::NineIds => told(
                "our ids of calls",
                "asked with nine characters",
                Key::Is("call_ids = \"nine\""),
            ),
            Self::StrictAlternation => told(
                "the order of roles",
                "asked with strict turns",
                Key::Is("strict_alternation = true"),
            ),
            Self::DeveloperRole => told(
                "the developer role",
                "asked with the system role",
                Key::Is("system_role = \"system\""),
            ),
            Self::SystemRole => told(
                "the system role",
                "asked in the user's name",
                Key::Is("system_role = \"user\""),
            ),
            Self::Images => told("images", "they are named in words", Key::Is("images = false")),
            Self::Schemas => told("a schema", "asked with plainer ones", Key::Is("schema = \"grammar\"")),
            Self::StructuredOutput => told(
                "structured output",
                "the schema is told in words",
                Key::Is("structured_output = false"),
            ),
            Self::ThinkingBack => told(
                "replies without their thinking",
                "it is sent back",
                Key::Is("thinking_back = true"),
            ),
            Self::ThinkingNotBack => told(
                "thinking sent back",
                "asked without it",
                Key::Is("thinking_back = false"),
            ),
            Self::EncryptedReasoning => told("encrypted reasoning", "asked without it", Key::None),
            Self::ReasoningSummary => told("a summary of the reasoning", "asked without one", Key::None),
            Self::Reasoning => told("the setting for thinking", "left to the server", Key::None),
            Self::CacheMarks => told("cache marks", "asked without them", Key::Is("prompt_cache = false")),
            Self::ProviderTools => told(
                "the provider's own tools",
                "asked without them",
                Key::Is("provider_tools = []"),
            ),
            Self::ToolRole => told(
                "tool messages",
                "results are told as text",
                Key::Is("use_tool_role = false"),
            ),
        }
    }
}

/// The most tokens of a reply, where the words say it and more were asked for.
fn output_tokens(profile: &ModelProfile, asked: &Asked, words: &str) -> Option<u64> {
    let asked_for = profile.output_tokens(asked.output_tokens).unwrap_or(u64::MAX);
    let allowed = failure::output_tokens_in(words).filter(|allowed| *allowed < asked_for);
    allowed.or(profile.output_tokens_max)
}

/// The most tokens of a reply, where it had asked for most of the window.
fn reply_room(profile: &ModelProfile, asked: &Asked, words: &str) -> Option<u64> {
    let asked_for = profile.output_tokens(asked.output_tokens).unwrap_or_default();
    let window = failure::window_in(words).filter(|_| failure::is_about_reply(words));
    let room = window
        .filter(|window| asked_for > *window / 2)
        .map(|window| window / REPLY_SHARE);
    room.or(profile.output_tokens_max)
}

/// What the person is told of a change.
struct Told {
    refused: &'static str,
    now: &'static str,
    key: Key,
}

/// What to write into the configuration of the model.
enum Key {
    /// Nothing says it.
    None,
    /// This.
    Is(&'static str),
    /// It depends on what the temperature was.
    Temperature,
    /// The number that the server named.
    OutputTokens,
}

fn at_once(setting: &str) -> String {
    format!("`{setting}` for this model asks so at once")
}

/// How to have a refused temperature left out at once; where it is our own default, no setting does that.
fn temperature_advice(before: &ModelProfile, words: &str) -> Option<String> {
    let allows_one = ONLY_ONE.iter().any(|phrase| has_phrase(words, phrase));
    let is_default = before.temperature == Some(TEMPERATURE_DEFAULT);
    match before.format {
        Format::OpenaiChat if allows_one => Some(at_once("temperature = 1")),
        Format::OpenaiChat if is_default => None,
        Format::OpenaiChat | Format::OpenaiResponses | Format::Anthropic | Format::Gemini => {
            Some("remove `temperature` of this model to ask so at once".to_owned())
        }
    }
}
