//! What a call came to: the content blocks of a result as text for a model, and what else is in them.

use aish_core::message::Part;
use serde_json::Value;

/// A result, read from the raw JSON of `tools/call`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// All text, joined with line feeds (SPEC 6.5).
    pub text: String,
    /// Images, for models that take them.
    pub images: Vec<Part>,
    /// What was there besides text, one line each, e.g. `an image (image/png, 12 KB)`.
    pub remarks: Vec<String>,
    /// `isError`.
    pub is_error: bool,
}

impl Outcome {
    /// Reads a result, keeping at most `bytes_max` of text.
    pub fn read(result: &Value, bytes_max: usize) -> Self {
        let _ = (result, bytes_max);
        Self::default()
    }
}
