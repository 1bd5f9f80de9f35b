//! What tokens of a model cost, in its provider's own unit: US dollars per million.

/// More than anybody asks, in US dollars per million tokens: what is dearer is a slip, or a server's joke.
pub const PRICE_USD_MAX: f64 = 1_000_000.0;

/// The prices of a model, in US dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    /// Tokens sent that were not in the provider's cache.
    pub input: f64,
    /// Tokens of the reply, thinking included.
    pub output: f64,
    /// Tokens sent that were read from the cache; without it, as `input`.
    pub cached: Option<f64>,
    /// Tokens sent that were written to the cache; without it, as `input`.
    pub cache_write: Option<f64>,
}
