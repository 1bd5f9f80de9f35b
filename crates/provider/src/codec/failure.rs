//! What a server's error means: one reader for all formats.
//!
//! The server's words are found by `said` whatever shape they come in, and quoted; the kind, which is what the caller acts
//! on, is told from the status and from words that servers are known to use. Where a person can do something that the words
//! do not say, it is said behind them.

use super::quote;
use crate::{ErrorKind, ProviderError};
use serde_json::Value;

mod bounds;
mod said;
#[cfg(test)]
mod tests;

pub use bounds::window_in;
pub(crate) use bounds::{is_about_reply, output_tokens_in};
use said::Said;

/// Words by which servers say that a conversation is too long, in a tag or the message; lower case.
const OVERFLOW_WORDS: &[&str] = &[
    "context length",
    "context_length",
    "context window",
    "context limit",
    "context size",
    "context_size",
    "context overflow",
    // Anthropic, Bedrock
    "prompt is too long",
    "input is too long",
    "too many input tokens",
    // Gemini
    "exceeds the maximum number of tokens allowed",
    // vLLM, SGLang, TGI
    "longer than the maximum model length",
    "exceeds the maximum allowed length",
    "tokens + `max_new_tokens` must be",
    // Mistral, Groq, xAI, Cohere
    "too large for model with",
    "reduce the length of the messages",
    "maximum prompt length",
    "too many tokens",
    // Moonshot, Alibaba, GitHub
    "model token limit",
    "range of input length should be",
    "prompt token count",
];

/// Words by which servers say that a key is missing or wrong where the status does not.
const KEY_WORDS: &[&str] = &[
    "api key not valid",
    "api_key_invalid",
    "invalid api key",
    "incorrect api key",
    "invalid_api_key",
    "api key expired",
];

/// Words by which servers say that somebody must pay first: waiting does not help, whatever the status says.
const MONEY_WORDS: &[&str] = &[
    "insufficient_quota",
    "exceeded your current quota, please check your plan and billing",
    "billing_hard_limit_reached",
    "billing hard limit",
    "billing_not_active",
    "credit balance is too low",
    "insufficient balance",
    "insufficient credits",
    "requires more credits",
    "spending limit",
    "payment required",
];

/// Words by which servers say that they could not read the call their model wrote. It is the model's slip and not the
/// request's: asked again, it usually writes another.
const BAD_CALL_WORDS: &[&str] = &["tool_use_failed", "output_parse_failed"];

/// Words by which servers say that there is no such model.
const NO_MODEL_WORDS: &[&str] = &[
    "model_not_found",
    "no such model",
    "model not found",
    "unknown model",
    "invalid model",
    "is not a valid model",
    "model does not exist",
    "not found for api version",
];

/// Tags that every refused request has and that say nothing of why.
const EMPTY_TAGS: &[&str] = &[
    "invalid_request_error",
    "invalid_argument",
    "bad_request",
    "bad request",
];

/// What a refusal says beside its words, lower case, with spaces between: `type`, `code` and the name of the field it is
/// about (`param`), of every level.
pub(crate) fn tags(body: &str) -> String {
    let tags = Said::read(body).tags;
    EMPTY_TAGS.iter().fold(tags, |tags, empty| tags.replace(empty, ""))
}

/// What a refused request means. `status` is the HTTP status. A bill to be paid is [`ErrorKind::Status`] 402 whatever the
/// status was, because asking again does not help.
pub fn of_status(status: u16, body: &str) -> ProviderError {
    let said = Said::read(body);
    let kind = match status {
        401 | 403 => ErrorKind::Auth,
        400..=499 if said.has(MONEY_WORDS) => ErrorKind::Status(402),
        400 if said.has(KEY_WORDS) => ErrorKind::Auth,
        400 | 422 | 500 if said.has(BAD_CALL_WORDS) => ErrorKind::Stream,
        400 | 413 | 422 | 500 if said.has(OVERFLOW_WORDS) => ErrorKind::ContextOverflow,
        status => ErrorKind::Status(status),
    };
    error(kind, &said)
}

/// What an error inside a reply that had begun with status 200 means.
pub fn of_stream(error_value: &Value) -> ProviderError {
    let said = Said::of_value(error_value);
    let kind = match said.status {
        _ if said.has(MONEY_WORDS) => ErrorKind::Status(402),
        _ if said.has(BAD_CALL_WORDS) => ErrorKind::Stream,
        _ if said.has(OVERFLOW_WORDS) => ErrorKind::ContextOverflow,
        Some(401 | 403) => ErrorKind::Auth,
        Some(status @ 400..=499) => ErrorKind::Status(status),
        Some(_) | None => ErrorKind::Stream,
    };
    error(kind, &said)
}

fn error(kind: ErrorKind, said: &Said) -> ProviderError {
    let mut message = quote(&said.message);
    if let Some(advice) = advice(kind, said) {
        add_words(&mut message, advice);
    }
    // Whoever makes room for the conversation reads the window in the message.
    if let Some(window) = said
        .window
        .filter(|_| kind == ErrorKind::ContextOverflow && window_in(&message).is_none())
    {
        add_words(&mut message, &format!("(n_ctx: {window})"));
    }
    ProviderError {
        kind,
        message,
        retry_after: said.wait,
    }
}

fn add_words(message: &mut String, words: &str) {
    message.push_str(if message.is_empty() { "" } else { " " });
    message.push_str(words);
}

/// What a person can do that the server does not say.
fn advice(kind: ErrorKind, said: &Said) -> Option<&'static str> {
    match kind {
        ErrorKind::Status(400 | 404 | 422) if said.is_about_model() => Some("(`aish models list` shows what there is)"),
        ErrorKind::Status(_)
        | ErrorKind::Connect
        | ErrorKind::Broken
        | ErrorKind::Timeout
        | ErrorKind::ContextOverflow
        | ErrorKind::Auth
        | ErrorKind::Protocol
        | ErrorKind::TooLarge
        | ErrorKind::Stream => None,
    }
}

impl Said {
    /// True where a tag or the message has one of these words.
    fn has(&self, words: &[&str]) -> bool {
        let message = self.message.to_ascii_lowercase();
        words
            .iter()
            .any(|word| self.tags.contains(word) || message.contains(word))
    }

    fn is_about_model(&self) -> bool {
        let message = self.message.to_ascii_lowercase();
        let is_missing = ["not found", "does not exist", "not exist"]
            .iter()
            .any(|word| message.contains(word));
        self.has(NO_MODEL_WORDS) || (message.contains("model") && is_missing)
    }
}
