//! Which words of a refusal lead to which [`Change`].
//!
//! Each refusal's source stands beside its words in the tests.

use super::change::Change;

/// A row of the table. Words are lower case; `…` in a phrase stands for anything.
pub(super) struct Rule {
    pub(super) change: Change,
    /// Names of fields: with one of [`REFUSALS`] beside it, a field is refused.
    pub(super) fields: &'static [&'static str],
    /// Phrases that say it by themselves.
    pub(super) phrases: &'static [&'static str],
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

/// The rows for a request that is refused. The first that fits and would change anything counts: what is about this one
/// conversation stands before what is about the endpoint.
pub(super) const RULES: &[Rule] = &[
    Rule {
        change: Change::OwnReplies,
        fields: &["thinking.signature"],
        phrases: &[
            "invalid_encrypted_content",
            "encrypted content… could not be",
            "without its required",
            "items are not persisted",
            "invalid `signature` in",
            "invalid signature in",
            "thinking`… cannot be modified",
            "thinking blocks… cannot be modified",
            "must start with a thinking block",
            "expected `thinking`",
            "thought signature… not valid",
            "thought_signature… not valid",
            "invalid thought",
            "corrupted thought",
            "missing a thought_signature",
            "missing a `thought_signature`",
            "missing thought_signature",
        ],
    },
    Rule {
        change: Change::RefusedImages,
        fields: &[],
        phrases: &[
            "could not process image",
            "unable to process input image",
            "unable to process image",
            "failed to process image",
            "failed to decode image",
            "failed to load image",
            "cannot identify image",
            "unsupported image",
            "invalid image",
            "invalid base64 image",
            "invalid_image",
            "image_parse_error",
            "image data… valid",
            "provided image is not valid",
            "image exceeds",
            "image is too large",
            "image too large",
            "image size… exceed",
            "image dimensions",
            "too many images",
            "payload size exceeds",
            "image appears to be",
            "image: unknown format",
        ],
    },
    Rule {
        change: Change::OutputTokens,
        fields: &[],
        phrases: &["tokens"],
    },
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
        fields: &["web_search", "web search", "google_search", "google search"],
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
        change: Change::EncryptedReasoning,
        fields: &["reasoning.encrypted_content", "'include'"],
        phrases: &["encrypted content… not support"],
    },
    Rule {
        change: Change::ReasoningSummary,
        fields: &["reasoning.summary", "reasoning summar"],
        phrases: &[],
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

/// Phrases for a request of too many bytes.
const TOO_MANY_BYTES: &[&str] = &[
    "request_too_large",
    "exceeds the maximum size",
    "entity too large",
    "payload too large",
    "payload size exceeds",
];

/// The rows for a conversation that does not fit: its images may be too large, or the reply that is asked for.
pub(super) const OVERFLOW_RULES: &[Rule] = &[
    Rule {
        change: Change::RefusedImages,
        fields: &[],
        phrases: TOO_MANY_BYTES,
    },
    Rule {
        change: Change::ReplyRoom,
        fields: &[],
        phrases: &["tokens", "completion"],
    },
];

impl Rule {
    /// True where the words, in lower case, say it.
    pub(super) fn fits(&self, words: &str) -> bool {
        let is_refusal = REFUSALS.iter().any(|refusal| words.contains(refusal));
        self.fields.iter().any(|field| is_refusal && words.contains(field))
            || self.phrases.iter().any(|phrase| has_phrase(words, phrase))
    }
}

/// `…` in a phrase stands for anything.
pub(super) fn has_phrase(words: &str, phrase: &str) -> bool {
    let mut rest = Some(words);
    for piece in phrase.split('…') {
        rest = rest.and_then(|rest| rest.split_once(piece)).map(|(_, rest)| rest);
    }
    rest.is_some()
}
