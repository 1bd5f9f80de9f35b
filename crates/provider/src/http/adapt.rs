//! Endpoints that refuse a field, and what is done about it (SPEC 7.4, 7.5).
//!
//! Servers of one format differ in what they take, and only say so when asked. This file reads such a refusal and changes the
//! profile, so that the same request can be written again in another way, now and from then on. It is a table from words to a
//! [`Change`]: the first row that fits the words and would change anything counts, so that nothing is tried twice. Only a
//! refusal of the request itself is read: never a key, a limit or an overflow, and nothing after a reply has begun.

use crate::codec::schema::SchemaDialect;
use crate::profile::{
    Alternation, CallsPerReply, MaxTokensField, ModelProfile, Support, SystemRole, ThinkingBack, ToolRole, WireCallIds,
    WireNaming,
};
use crate::{ErrorKind, ProviderError, Request};
use aish_core::message::{Message, Part, ToolChoice};
use std::sync::{Arc, Mutex, PoisonError};

#[cfg(test)]
mod tests;

/// How often one request is written anew.
pub(super) const ADAPTATIONS_MAX: usize = 4;

/// The profile of an endpoint with what it has taught this process.
#[derive(Debug)]
pub(super) struct Learned(Mutex<Arc<ModelProfile>>);

impl Learned {
    pub(super) fn new(profile: ModelProfile) -> Self {
        Self(Mutex::new(Arc::new(profile)))
    }

    /// The profile to ask with.
    pub(super) fn profile(&self) -> Arc<ModelProfile> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Remembers that requests are taken when they are written like this.
    pub(super) fn learn(&self, profile: Arc<ModelProfile>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = profile;
    }
}

/// What is in a request, as far as a refusal can be about it.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each says whether something is there")]
pub(super) struct Asked {
    has_system: bool,
    has_tools: bool,
    has_calls: bool,
    /// A message of the user's comes right after a result.
    has_steering: bool,
    has_images: bool,
    has_schema: bool,
    has_max_tokens: bool,
    is_choice_none: bool,
}

impl Asked {
    pub(super) fn of(request: Request<'_>, profile: &ModelProfile) -> Self {
        let has_image = |message: &Message| match message {
            Message::User { parts } => parts.iter().any(|part| matches!(part, Part::Image { .. })),
            Message::Assistant { .. } | Message::Tool { .. } => false,
        };
        let has_call = |message: &Message| match message {
            Message::Assistant { calls, .. } => !calls.is_empty(),
            Message::Tool { .. } => true,
            Message::User { .. } => false,
        };
        Self {
            has_system: !request.system.is_empty(),
            has_tools: !request.tools.is_empty(),
            has_calls: request.messages.iter().any(has_call),
            has_steering: request
                .messages
                .windows(2)
                .any(|pair| matches!(pair, [Message::Tool { .. }, Message::User { .. }])),
            has_images: request.messages.iter().any(has_image),
            has_schema: request.schema.is_some(),
            has_max_tokens: request.max_output_tokens.or(profile.max_output_tokens).is_some(),
            is_choice_none: request.tool_choice == ToolChoice::None,
        }
    }
}

/// Another way to ask, and what to tell the person.
#[derive(Debug)]
pub(super) struct Adapted {
    pub(super) profile: Arc<ModelProfile>,
    pub(super) remark: String,
}

/// What can be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
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
    Reasoning,
    CacheMarks,
    ProviderTools,
    ToolRole,
}

/// A row of the table. Words are lower case; `…` in a phrase stands for anything.
struct Rule {
    change: Change,
    /// Names of fields: with one of [`REFUSALS`] beside it, a field is refused.
    fields: &'static [&'static str],
    /// Phrases that say it by themselves.
    phrases: &'static [&'static str],
}

/// Words that say of a field that it is not taken.
const REFUSALS: &[&str] = &[
    "support", // not supported, unsupported, does not support
    "unknown",
    "unrecognized",
    "unexpected",
    "not permitted",
    "not allowed",
    "not enabled",
    "not available",
    "not implemented",
    "not one of",
    "invalid",
    "extra inputs",
    "extra fields",
    "additional propert",
    "deprecated",
    "cannot",
    "must",
    "disabled",
];

/// Each refusal's source stands beside its words in the tests.
const RULES: &[Rule] = &[
    Rule {
        change: Change::NineIds,
        fields: &[],
        phrases: &["length of 9"],
    },
    Rule {
        change: Change::MaxTokensField,
        fields: &["max_completion_tokens"],
        phrases: &[],
    },
    Rule {
        change: Change::Temperature,
        fields: &["temperature"],
        phrases: &[],
    },
    Rule {
        change: Change::StreamUsage,
        fields: &["stream_options", "include_usage"],
        phrases: &[],
    },
    Rule {
        change: Change::ParallelField,
        fields: &["parallel_tool_calls", "disable_parallel_tool_use", "parallel tool"],
        phrases: &[],
    },
    Rule {
        change: Change::Names,
        fields: &["function.name", "function name", "tools.0.name"],
        phrases: &["does not match pattern"],
    },
    Rule {
        change: Change::ProviderTools,
        fields: &["web_search", "google_search"],
        phrases: &[],
    },
    Rule {
        change: Change::ChoiceNone,
        fields: &["tool_choice", "tool choice"],
        phrases: &[],
    },
    Rule {
        change: Change::Schemas,
        fields: &["input_schema", "function.parameters", "function_declarations"],
        phrases: &[
            "failed to parse grammar",
            "unrecognized schema",
            "schema conversion failed",
            "invalid schema for function",
            "invalid tool schema",
            "error parsing grammar",
            "unsupported schema",
        ],
    },
    Rule {
        change: Change::StructuredOutput,
        fields: &[
            "response_format",
            "json_schema",
            "response_schema",
            "output_config",
            "output_format",
            "text.format",
        ],
        phrases: &[
            "grammar constraints with tools",
            "structured output… support",
            "json mode… support",
            "response mime type… unsupported",
            "failed to parse grammar",
        ],
    },
    Rule {
        change: Change::Tools,
        fields: &[],
        phrases: &[
            "not support tools",
            "not support tool",
            "support tool use",
            "not support function",
            "tools is not supported",
            "tools are not supported",
            "tool use is not supported",
            "tool calling is not supported",
            "function calling is not",
            "tool choice requires --enable-auto-tool-choice",
            "tools param requires --jinja",
            "unsupported param: tools",
        ],
    },
    Rule {
        change: Change::StrictAlternation,
        fields: &[],
        phrases: &[
            "must alternate",
            "unexpected role 'user' after role 'tool'",
            "expected last role user or tool",
        ],
    },
    Rule {
        change: Change::DeveloperRole,
        fields: &["developer"],
        phrases: &[],
    },
    Rule {
        change: Change::SystemRole,
        fields: &[
            "system role",
            "system message",
            "system prompt",
            "system instruction",
            "'system'",
        ],
        phrases: &["developer instruction is not enabled", "only user and assistant roles"],
    },
    Rule {
        change: Change::Images,
        fields: &[
            "image_url",
            "image input",
            "image content",
            "input_image",
            "vision",
            "images",
        ],
        phrases: &["mmproj", "not a multimodal model", "multimodal… not support"],
    },
    Rule {
        change: Change::ThinkingBack,
        fields: &[],
        phrases: &[
            "missing `reasoning_content`",
            "missing reasoning_content",
            "reasoning_content is missing",
            "reasoning_content` in the thinking mode must be passed back",
        ],
    },
    Rule {
        change: Change::ThinkingNotBack,
        fields: &[],
        phrases: &[
            "reasoning_content… not permitted",
            "reasoning_content… not allowed",
            "reasoning_content… not supported",
            "extra… reasoning_content",
            "unexpected… reasoning_content",
            "unknown… reasoning_content",
            "unrecognized… reasoning_content",
        ],
    },
    Rule {
        change: Change::Reasoning,
        fields: &[
            "reasoning_effort",
            "reasoning.effort",
            "reasoning.summary",
            "chat_template_kwargs",
            "chat_template is",
            "enable_thinking",
            "thinking",
            "thinking_config",
            "think value",
        ],
        phrases: &[],
    },
    Rule {
        change: Change::CacheMarks,
        fields: &["cache_control"],
        phrases: &[],
    },
    Rule {
        change: Change::Streaming,
        fields: &["'stream'", "`stream`", "streaming"],
        phrases: &["must be verified to stream", "stream mode… support"],
    },
    Rule {
        change: Change::ToolRole,
        fields: &["role", "tool_calls", "tool_call_id"],
        phrases: &["template", "jinja", "must alternate"],
    },
];

/// How to ask instead, where the server's words say what it does not take. `said` is its error with nothing around it.
pub(super) fn adapt(said: &ProviderError, profile: &ModelProfile, asked: Asked) -> Option<Adapted> {
    match said.kind {
        ErrorKind::Status(400 | 404 | 422 | 500 | 501) | ErrorKind::Stream => {}
        ErrorKind::Status(_)
        | ErrorKind::Connect
        | ErrorKind::Broken
        | ErrorKind::Timeout
        | ErrorKind::ContextOverflow
        | ErrorKind::Auth
        | ErrorKind::Protocol
        | ErrorKind::TooLarge => return None,
    }
    let words = said.message.to_ascii_lowercase();
    RULES.iter().filter(|rule| rule.fits(&words)).find_map(|rule| {
        let mut changed = profile.clone();
        rule.change.make(&mut changed, asked);
        (changed != *profile).then(|| Adapted {
            profile: Arc::new(changed),
            remark: rule.change.remark(),
        })
    })
}

impl Rule {
    fn fits(&self, words: &str) -> bool {
        let is_refusal = REFUSALS.iter().any(|refusal| words.contains(refusal));
        self.fields.iter().any(|field| is_refusal && words.contains(field))
            || self.phrases.iter().any(|phrase| has_phrase(words, phrase))
    }
}

fn has_phrase(words: &str, phrase: &str) -> bool {
    let mut rest = Some(words);
    for piece in phrase.split('…') {
        rest = rest.and_then(|rest| rest.split_once(piece)).map(|(_, rest)| rest);
    }
    rest.is_some()
}

impl Change {
    /// Makes the change, where the request has what it is about.
    fn make(self, profile: &mut ModelProfile, asked: Asked) {
        match self {
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
            Self::Images if asked.has_images => profile.images = Support::No,
            Self::Schemas if profile.schemas == SchemaDialect::Full && (asked.has_tools || asked.has_schema) => {
                profile.schemas = SchemaDialect::Grammar;
            }
            Self::StructuredOutput if asked.has_schema => profile.structured_output = Support::No,
            Self::ThinkingBack => profile.thinking_back = ThinkingBack::ReasoningContent,
            Self::ThinkingNotBack => profile.thinking_back = ThinkingBack::Dropped,
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
            | Self::ToolRole => {}
        }
    }

    /// One line: what was refused, what is done now, and what to write into the configuration to have it so at once.
    fn remark(self) -> String {
        let (refused, now, key) = match self {
            Self::Temperature => ("temperature", "asked without it", "temperature = 1"),
            Self::MaxTokensField => ("the field for the reply's length", "asked with the other one", ""),
            Self::StreamUsage => ("stream_options", "asked without; tokens may not be counted", ""),
            Self::Streaming => ("streaming", "the reply comes in one piece", "stream = false"),
            Self::ParallelField => ("parallel_tool_calls", "asked without it", ""),
            Self::ChoiceNone => (
                "tool_choice \"none\"",
                "tools are left out where none may be called",
                "",
            ),
            Self::Tools => ("tools", "asked without them: it can only talk", "tools = false"),
            Self::Names => (
                "dots in names of tools",
                "asked with underscores",
                "wire_names = \"underscore\"",
            ),
            Self::NineIds => ("our ids of calls", "asked with nine characters", "call_ids = \"nine\""),
            Self::StrictAlternation => (
                "the order of roles",
                "asked with strict turns",
                "strict_alternation = true",
            ),
            Self::DeveloperRole => (
                "the developer role",
                "asked with the system role",
                "system_role = \"system\"",
            ),
            Self::SystemRole => ("the system role", "asked in the user's name", "system_role = \"user\""),
            Self::Images => ("images", "they are named in words", "images = false"),
            Self::Schemas => ("a schema", "asked with plainer ones", "schema = \"grammar\""),
            Self::StructuredOutput => (
                "structured output",
                "the schema is told in words",
                "structured_output = false",
            ),
            Self::ThinkingBack => (
                "replies without their thinking",
                "it is sent back",
                "thinking_back = true",
            ),
            Self::ThinkingNotBack => ("thinking sent back", "asked without it", "thinking_back = false"),
            Self::Reasoning => ("the setting for thinking", "left to the server", ""),
            Self::CacheMarks => ("cache marks", "asked without them", "prompt_cache = false"),
            Self::ProviderTools => ("the provider's own tools", "asked without them", "provider_tools = []"),
            Self::ToolRole => ("tool messages", "results are told as text", "use_tool_role = false"),
        };
        let mut remark = format!("the server refuses {refused}: {now}");
        if !key.is_empty() {
            remark.push_str(&format!(" (`{key}` for this model asks so at once)"));
        }
        remark
    }
}
