//! The built-in list of prices, as the providers publish them for pay as you go. A row that is wrong or missing is put right
//! with `price` in `[models.NAME]`.
//!
//! Where from: the providers' own pages, by way of the public collection models.dev (its state of July 2026), with the Claude,
//! GPT-6 and DeepSeek rows of October 2026. A model is left out where its price depends on more than tokens.

use aish_provider::price::Price;

/// A model's price, for requests up to a size.
pub(super) struct Row {
    /// The beginning of the model's name; a version may follow.
    pub(super) name: &'static str,
    /// Tokens of a request that the price is for; `None`: any.
    pub(super) input_tokens_max: Option<u64>,
    /// The price.
    pub(super) price: Price,
}

/// Of any request: input, cached input, output.
const fn row(name: &'static str, input: f64, cached: Option<f64>, output: f64) -> Row {
    Row {
        name,
        input_tokens_max: None,
        price: Price {
            input,
            cached,
            cache_write: None,
            output,
        },
    }
}

/// Of any request, where writing into the cache has a price: input, cached input, written input, output.
const fn written(name: &'static str, input: f64, cached: f64, cache_write: f64, output: f64) -> Row {
    Row {
        name,
        input_tokens_max: None,
        price: Price {
            input,
            cached: Some(cached),
            cache_write: Some(cache_write),
            output,
        },
    }
}

/// The same row, for requests of at most so many tokens.
const fn up_to(input_tokens_max: u64, row: Row) -> Row {
    Row {
        input_tokens_max: Some(input_tokens_max),
        ..row
    }
}

/// The list; US dollars per million tokens.
pub(super) const ROWS: &[Row] = &[
    // Anthropic; written into a cache for five minutes.
    written("claude-fable-5-1", 10.0, 0.25, 12.5, 50.0),
    written("claude-fable-5", 10.0, 1.0, 12.5, 50.0),
    written("claude-opus-5-5", 4.0, 0.2, 5.0, 20.0),
    written("claude-opus-5", 5.0, 0.5, 6.25, 25.0),
    written("claude-opus-4-8", 5.0, 0.5, 6.25, 25.0),
    written("claude-opus-4-7", 5.0, 0.5, 6.25, 25.0),
    written("claude-opus-4-6", 5.0, 0.5, 6.25, 25.0),
    written("claude-opus-4-5", 5.0, 0.5, 6.25, 25.0),
    written("claude-opus-4-1", 15.0, 1.5, 18.75, 75.0),
    written("claude-opus-4-0", 15.0, 1.5, 18.75, 75.0),
    written("claude-opus-4", 15.0, 1.5, 18.75, 75.0),
    written("claude-sonnet-5-5", 2.0, 0.1, 2.5, 10.0),
    written("claude-sonnet-5", 2.0, 0.2, 2.5, 10.0),
    written("claude-sonnet-4-6", 3.0, 0.3, 3.75, 15.0),
    written("claude-sonnet-4-5", 3.0, 0.3, 3.75, 15.0),
    written("claude-sonnet-4-0", 3.0, 0.3, 3.75, 15.0),
    written("claude-sonnet-4", 3.0, 0.3, 3.75, 15.0),
    written("claude-3-7-sonnet", 3.0, 0.3, 3.75, 15.0),
    up_to(100_000, written("claude-haiku-5-5", 0.1, 0.01, 0.125, 0.5)),
    written("claude-haiku-5-5", 0.5, 0.05, 0.625, 2.5),
    written("claude-haiku-4-5", 1.0, 0.1, 1.25, 5.0),
    written("claude-3-5-haiku", 0.8, 0.08, 1.0, 4.0),
    // OpenAI.
    up_to(272_000, written("gpt-6-sol", 2.0, 0.2, 2.5, 10.0)),
    up_to(272_000, written("gpt-6-luna", 0.1, 0.01, 0.125, 0.5)),
    up_to(272_000, row("gpt-5.5", 5.0, Some(0.5), 30.0)),
    row("gpt-5.5", 10.0, Some(1.0), 45.0),
    up_to(272_000, row("gpt-5.4", 2.5, Some(0.25), 15.0)),
    row("gpt-5.4", 5.0, Some(0.5), 22.5),
    row("gpt-5.4-mini", 0.75, Some(0.075), 4.5),
    row("gpt-5.4-nano", 0.2, Some(0.02), 1.25),
    row("gpt-5.2", 1.75, Some(0.175), 14.0),
    row("gpt-5.2-pro", 21.0, None, 168.0),
    row("gpt-5.1", 1.25, Some(0.125), 10.0),
    row("gpt-5", 1.25, Some(0.125), 10.0),
    row("gpt-5-mini", 0.25, Some(0.025), 2.0),
    row("gpt-5-nano", 0.05, Some(0.005), 0.4),
    row("gpt-5-pro", 15.0, None, 120.0),
    row("gpt-4.1", 2.0, Some(0.5), 8.0),
    row("gpt-4.1-mini", 0.4, Some(0.1), 1.6),
    row("gpt-4.1-nano", 0.1, Some(0.025), 0.4),
    row("gpt-4o", 2.5, Some(1.25), 10.0),
    row("gpt-4o-mini", 0.15, Some(0.075), 0.6),
    row("o1", 15.0, Some(7.5), 60.0),
    row("o3", 2.0, Some(0.5), 8.0),
    row("o3-mini", 1.1, Some(0.55), 4.4),
    row("o3-pro", 20.0, None, 80.0),
    row("o4-mini", 1.1, Some(0.275), 4.4),
    // Google; text.
    row("gemini-3.5-flash", 1.5, Some(0.15), 9.0),
    up_to(200_000, row("gemini-3.1-pro", 2.0, Some(0.2), 12.0)),
    row("gemini-3.1-pro", 4.0, Some(0.4), 18.0),
    row("gemini-3.1-flash-lite", 0.25, Some(0.025), 1.5),
    up_to(200_000, row("gemini-3-pro", 2.0, Some(0.2), 12.0)),
    row("gemini-3-pro", 4.0, Some(0.4), 18.0),
    row("gemini-3-flash", 0.5, Some(0.05), 3.0),
    up_to(200_000, row("gemini-2.5-pro", 1.25, Some(0.125), 10.0)),
    row("gemini-2.5-pro", 2.5, Some(0.25), 15.0),
    row("gemini-2.5-flash", 0.3, Some(0.03), 2.5),
    row("gemini-2.5-flash-lite", 0.1, Some(0.01), 0.4),
    row("gemini-2.0-flash", 0.1, Some(0.025), 0.4),
    row("gemini-2.0-flash-lite", 0.075, None, 0.3),
    // DeepSeek, outside the peak hours of China, in which it is twice that.
    row("deepseek-flash", 0.15, Some(0.003), 0.6),
    row("deepseek-v4-pro", 0.66, Some(0.022), 1.98),
    // Mistral.
    row("mistral-large-latest", 0.5, None, 1.5),
    row("mistral-large-2512", 0.5, None, 1.5),
    row("mistral-large-2411", 2.0, None, 6.0),
    row("mistral-medium-2604", 1.5, None, 7.5),
    row("mistral-medium-2508", 0.4, None, 2.0),
    row("mistral-medium-2505", 0.4, None, 2.0),
    row("mistral-small-latest", 0.15, None, 0.6),
    row("mistral-small-2603", 0.15, None, 0.6),
    row("mistral-small-2506", 0.1, None, 0.3),
    row("magistral-medium", 2.0, None, 5.0),
    row("codestral", 0.3, None, 0.9),
    row("devstral-latest", 0.4, None, 2.0),
    row("devstral-2512", 0.4, None, 2.0),
    row("devstral-medium", 0.4, None, 2.0),
    row("ministral-8b", 0.1, None, 0.1),
    row("ministral-3b", 0.04, None, 0.04),
    // xAI.
    up_to(200_000, row("grok-4.3", 1.25, Some(0.2), 2.5)),
    row("grok-4.3", 2.5, Some(0.4), 5.0),
];
