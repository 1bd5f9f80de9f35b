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
