//! Why a reply was withheld or broken off, as one line of the provider's words: its word for it, what it is about, and what
//! it says of it, e.g. `SAFETY (dangerous content): blocked by policy`.

use serde_json::{Map, Value};

/// The line; empty parts are left out.
pub(super) fn reason(word: &str, about: &[String], says: &str) -> String {
    let mut line = word.to_owned();
    if !about.is_empty() {
        line = format!("{line} ({})", about.join(", "));
    }
    if says.is_empty() {
        return line;
    }
    format!("{line}: {says}")
}

/// What Azure's filters caught, from its `content_filter_results` by category:
/// <https://learn.microsoft.com/en-us/azure/ai-foundry/openai/concepts/content-filter>.
pub(super) fn filtered(results: &Map<String, Value>) -> Vec<String> {
    let caught = results.iter().filter(|(_, result)| result["filtered"] == true);
    caught.map(|(category, _)| readable(category)).collect()
}

/// A category as people write it: `HARM_CATEGORY_DANGEROUS_CONTENT` is `dangerous content`.
pub(super) fn readable(category: &str) -> String {
    let name = category.strip_prefix("HARM_CATEGORY_").unwrap_or(category);
    name.to_ascii_lowercase().replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lines() {
        let about = ["hate".to_owned(), readable("HARM_CATEGORY_SEXUALLY_EXPLICIT")];
        assert_eq!(reason("SAFETY", &about, ""), "SAFETY (hate, sexually explicit)");
        assert_eq!(reason("refusal", &[], "It may harm."), "refusal: It may harm.");
    }

    #[test]
    fn categories() {
        let results = json!({"self_harm": {"filtered": true, "severity": "high"}, "hate": {"filtered": false}, "x": 1});
        assert_eq!(filtered(results.as_object().unwrap_or(&Map::new())), ["self harm"]);
    }
}
