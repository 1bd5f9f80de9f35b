//! Numbers of tokens that a server names when it refuses a request as too long.
//!
//! A refusal for length mostly says how much would have been taken, each server in its own words. They are found by what
//! stands before the number: the phrases of a table are looked for in turn, the surest first, and the first one with a number
//! right behind it counts. A number that is not there is no error: whoever asks goes on without.

/// A window smaller than this is a misreading: no model has one.
const WINDOW_TOKENS_MIN: u64 = 256;

/// What stands before the window, lower case.
const WINDOW_PHRASES: &[&str] = &[
    // llama.cpp's field, and LM Studio: "n_keep: 5000>= n_ctx: 4096"
    "n_ctx",
    // Gemini
    "maximum number of tokens allowed",
    // vLLM, SGLang, TGI
    "maximum model length",
    "maximum allowed length",
    "`max_new_tokens` must be <=",
    // Mistral: "too large for model with 32768 maximum context length"
    "too large for model with",
    // OpenAI and whoever repeats its words
    "maximum context length",
    "available context size",
    // xAI, Moonshot, Alibaba, Cohere, GitHub
    "maximum prompt length",
    "model token limit",
    "range of input length should be [1,",
    "prompt cannot exceed",
    "exceeds the limit",
    // Anthropic: "199000 + 8192 > 200000", "215000 tokens > 200000 maximum"
    "> ",
    "context length",
    "context size",
    "context window",
    "context limit",
];

/// Names of the field that bounds a reply, and what it counts, lower case.
const REPLY_WORDS: &[&str] = &[
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "maxoutputtokens",
    "max_new_tokens",
    "maximum tokens",
    "output tokens",
    "completion tokens",
];

/// What stands before the most that a reply may have, lower case.
const REPLY_PHRASES: &[&str] = &[
    // Groq, OpenAI, and OpenAI's Responses
    "less than or equal to",
    "at most",
    "a value <=",
    // DeepSeek and Alibaba: "the valid range of max_tokens is [1, 8192]"
    "[1,",
    // Bedrock
    "model limit of",
    // Anthropic: "max_tokens: 8192 > 4096"
    "> ",
];

/// What stands before a number that is one too many (Gemini: "from 1 (inclusive) to 8193 (exclusive)").
const REPLY_PHRASE_EXCLUSIVE: &str = "(inclusive) to";

/// Words that may stand between a phrase and its number.
const FILLERS: &[&str] = &["is", "of", "only", "to"];

/// Units that are not tokens.
const OTHER_UNITS: &[&str] = &["byte", "char", "kb", "mb", "image", "message"];

/// The model's context window in tokens, as the message of an [overflow](crate::ErrorKind::ContextOverflow) names it. Of
/// other messages it says nothing.
pub fn window_in(message: &str) -> Option<u64> {
    let words = message.to_ascii_lowercase();
    first_of(&words, WINDOW_PHRASES).filter(|window| *window >= WINDOW_TOKENS_MIN)
}

/// The most tokens that a reply may have, as a refusal of the request's own number names it.
pub(crate) fn output_tokens_in(message: &str) -> Option<u64> {
    if !is_about_reply(message) {
        return None;
    }
    let words = message.to_ascii_lowercase();
    let exclusive = first_of(&words, &[REPLY_PHRASE_EXCLUSIVE]).map(|end| end.saturating_sub(1));
    let most = exclusive.or_else(|| first_of(&words, REPLY_PHRASES));
    most.filter(|tokens| *tokens > 0)
}

/// True where the words are about a reply's length.
pub(crate) fn is_about_reply(message: &str) -> bool {
    let words = message.to_ascii_lowercase();
    words.contains("completion") || REPLY_WORDS.iter().any(|name| words.contains(name))
}

/// The number of tokens behind the first of these phrases that has one.
fn first_of(words: &str, phrases: &[&str]) -> Option<u64> {
    phrases.iter().find_map(|phrase| {
        let mut places = words.match_indices(phrase);
        places.find_map(|(at, _)| tokens_at(words.get(at + phrase.len()..)?))
    })
}

/// The number that a text begins with, fillers aside, unless it counts something else than tokens.
fn tokens_at(text: &str) -> Option<u64> {
    let mut text = text;
    loop {
        text = text.trim_start_matches([' ', '(', '[', ':', '=', '`', '\'', '"']);
        let filler = FILLERS
            .iter()
            .find_map(|filler| text.strip_prefix(filler)?.strip_prefix(' '));
        match filler {
            Some(rest) => text = rest,
            None => break,
        }
    }
    let end = text.find(|c: char| !c.is_ascii_digit() && c != ',' && c != '_');
    let (number, rest) = text.split_at(end.unwrap_or(text.len()));
    let unit = rest.trim_start();
    // `128k` and `0.5` are no whole numbers of tokens.
    let is_part = rest.starts_with(|c: char| c.is_ascii_alphabetic());
    if is_part || is_fraction(rest) || OTHER_UNITS.iter().any(|other| unit.starts_with(other)) {
        return None;
    }
    // A comma within groups thousands, one behind ends a clause.
    let number = number.trim_end_matches([',', '_']).replace([',', '_'], "");
    number.parse().ok()
}

fn is_fraction(rest: &str) -> bool {
    let behind = rest.strip_prefix('.');
    behind.is_some_and(|behind| behind.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 7.4: an overflow tells how large the window is, in the words of each server.
    #[test]
    fn windows() {
        for (message, window) in [
            // llama.cpp, tools/server
            (
                "request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it",
                8192,
            ),
            ("no room (n_ctx: 4096)", 4096),
            // OpenAI, OpenRouter, DeepSeek, vLLM
            (
                "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
                8192,
            ),
            (
                "This endpoint's maximum context length is 131,072 tokens. However, you requested about 140000",
                131_072,
            ),
            (
                "However, the model's context length is only 4096 tokens, resulting in a maximum input length of 4096",
                4096,
            ),
            (
                "The decoder prompt (length 9000) is longer than the maximum model length of 8192. Make sure",
                8192,
            ),
            // SGLang, TGI
            (
                "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
                4096,
            ),
            (
                "Input length (5000 tokens) exceeds the maximum allowed length (4095 tokens). Use a shorter input",
                4095,
            ),
            (
                "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens and 200 new ones",
                4096,
            ),
            // Anthropic
            ("prompt is too long: 215000 tokens > 200000 maximum", 200_000),
            (
                "input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000, decrease input length",
                200_000,
            ),
            // Gemini
            (
                "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
                1_048_576,
            ),
            (
                "The input token count exceeds the maximum number of tokens allowed 1048576.",
                1_048_576,
            ),
            // LM Studio
            (
                "However, the model is loaded with context length of only 4096 tokens, which is not enough",
                4096,
            ),
            (
                "prompt is greater than the context length (n_keep: 5000>= n_ctx: 4096). Try to load",
                4096,
            ),
            // Mistral, xAI, Moonshot, Alibaba, Cohere, GitHub
            (
                "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
                32768,
            ),
            (
                "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
                131_072,
            ),
            (
                "Invalid request: Your request exceeded model token limit: 131072",
                131_072,
            ),
            ("Range of input length should be [1, 30720]", 30720),
            (
                "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 8283.",
                4081,
            ),
            ("prompt token count of 140000 exceeds the limit of 128000", 128_000),
        ] {
            assert_eq!(window_in(message), Some(window), "{message}");
            assert_eq!(
                window_in(&format!("POST http://127.0.0.1:8080/v1: 400: {message}")),
                Some(window),
                "{message}"
            );
        }
    }

    /// SPEC 7.4: how long a reply may be, in the words of each server:
    /// <https://github.com/deepseek-ai/DeepSeek-V3/issues/69>, <https://github.com/open-webui/open-webui/issues/10507>.
    #[test]
    fn replies() {
        for (message, tokens) in [
            (
                "max_tokens: 8192 > 4096, which is the maximum allowed number of output tokens for claude-3-haiku",
                Some(4096),
            ),
            (
                "max_tokens is too large: 32768. This model supports at most 16384 completion tokens, whereas you",
                Some(16384),
            ),
            (
                "`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than",
                Some(8192),
            ),
            (
                "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]",
                Some(8192),
            ),
            ("Range of max_tokens should be [1, 16384]", Some(16384)),
            (
                "Unable to submit request because it has a maxOutputTokens value of 65536 but the supported range is from 1 \
                (inclusive) to 8193 (exclusive). Update the value and try again.",
                Some(8192),
            ),
            (
                "The maximum tokens you requested exceeds the model limit of 4096. Try again with a lower one",
                Some(4096),
            ),
            (
                "Invalid 'max_output_tokens': integer above maximum value. Expected a value <= 16384, but got 32768",
                Some(16384),
            ),
            (
                "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got 5 instead.",
                None,
            ),
            ("`max_tokens` must be greater than `thinking.budget_tokens`", None),
            (
                "Unsupported parameter: 'max_tokens' is not supported with this model.",
                None,
            ),
            ("max_tokens must be at most 0", None),
            ("temperature must be less than or equal to 2", None),
        ] {
            assert_eq!(output_tokens_in(message), tokens, "{message}");
        }
    }

    /// SPEC 7.4: a number that is no window is not taken for one.
    #[test]
    fn no_windows() {
        for message in [
            "",
            "Input is too long for requested model.",
            "Please reduce the length of the messages or completion.",
            "the request exceeds the available context size. try increasing the context size",
            // MiniMax: the number is the error's
            "invalid params, context window exceeds limit (2013)",
            "image exceeds 5 MB maximum: 6000096 bytes > 5242880 bytes",
            "maximum context length is 128k tokens",
            "maximum context length is 99999999999999999999999 tokens",
            "context length 1.5",
            "context length is \u{e9}8192",
            "context size (0 tokens)",
            "> ",
        ] {
            assert_eq!(window_in(message), None, "{message}");
        }
    }
}
