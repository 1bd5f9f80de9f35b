//! What a format or an endpoint has no place for, put in words.
//!
//! Every codec needs some of these texts, and a conversation that moves from one model to another should read the same to
//! both. The forms are part of requests: changing one changes every prefix that a server has cached.

use aish_core::message::MessageCall;
use serde_json::Value;

/// Adds a paragraph.
pub(crate) fn join(text: &mut String, next: &str) {
    if !text.is_empty() && !next.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(next);
}

/// What came along with a question, under its label (SPEC 8.3).
pub(crate) fn context(label: &str, text: &str) -> String {
    // The label stands in an attribute, which it must not be able to leave.
    let label = label.replace(['"', '\n', '<', '>'], " ");
    format!(
        "<context label=\"{label}\">\n{}\n</context>",
        text.trim_end_matches('\n')
    )
}

/// The kinds of images that OpenAI and Anthropic take; another one would be refused with every later request of its session:
/// <https://platform.openai.com/docs/guides/images-vision>, <https://docs.anthropic.com/en/docs/build-with-claude/vision>.
pub(crate) const IMAGE_TYPES: &[&str] = &["image/jpeg", "image/png", "image/gif", "image/webp"];

/// An image that this model is not sent.
pub(crate) fn image_left_out(media_type: &str) -> String {
    format!("[image left out: this model does not take {media_type}]")
}

/// What stands before the images of a result that could not go into the result itself.
pub(crate) fn images_of_result(name: &str) -> String {
    format!("[images of the result of {name}]")
}

/// What the assistant says between a result and the user, where roles must alternate strictly (SPEC 7.5).
pub(crate) const SEEN: &str = "(I have the results.)";

/// An earlier call, where there is no place for calls (SPEC 7.5).
pub(crate) fn call(call: &MessageCall) -> String {
    format!("[call: {}]\n{}", call.name, arguments(call))
}

/// A result, where there is no place for results (SPEC 7.5).
pub(crate) fn result(name: &str, output: &str) -> String {
    format!("[tool: {name}]\n{output}")
}

/// A schema the reply must fit, where there is no field for it.
pub(crate) fn schema(schema: &Value) -> String {
    format!("Answer with one JSON value that fits this JSON Schema and with nothing else:\n{schema}")
}

/// The argument text; servers that parse it again fail on an empty one.
pub(crate) fn arguments(call: &MessageCall) -> &str {
    if call.arguments.trim().is_empty() {
        "{}"
    } else {
        &call.arguments
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 8.3: what came along cannot pass for anything else.
    #[test]
    fn a_label_stays_in_its_place() {
        assert_eq!(
            context("a\">\n<b", "text\n\n"),
            "<context label=\"a    b\">\ntext\n</context>"
        );
    }

    #[test]
    fn paragraphs() {
        let mut text = String::new();
        for next in ["", "a", "", "b"] {
            join(&mut text, next);
        }
        assert_eq!(text, "a\n\nb");
    }
}
