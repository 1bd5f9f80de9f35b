//! What a server's error means: one reader for the shapes that all formats share.
//!
//! `{"error":{"message","type","code"}}`, `{"error":"text"}`, `{"object":"error","message"}`, `{"detail":…}`, or no
//! JSON at all. The server's words are quoted; the kind is what the caller acts on.

use super::quote;
use crate::{ErrorKind, ProviderError};
use serde_json::Value;

/// Words by which servers say that a conversation is too long, in `type`, `code` or the message; lower case.
const OVERFLOW_WORDS: &[&str] = &[
    "exceed_context_size",
    "context_length_exceeded",
    "exceeds the available context size",
    "maximum context length",
    "context window",
    "context length",
    "prompt is too long",
    "input is too long",
    "too many tokens",
];

/// Words by which servers say that their chat template cannot render the conversation; lower case.
const TEMPLATE_WORDS: &[&str] = &[
    "template",
    "jinja",
    "conversation roles must alternate",
    "unknown role",
    "invalid role",
];

/// What a refused request means. `status` is the HTTP status.
pub fn of_status(status: u16, body: &str) -> ProviderError {
    let said = Said::read(body);
    let kind = match status {
        401 | 403 => ErrorKind::Auth,
        400 | 413 | 422 | 500 if said.is_overflow() => ErrorKind::ContextOverflow,
        status => ErrorKind::Status(status),
    };
    error(kind, &said.message)
}

/// What an error inside a reply that had begun with status 200 means.
pub fn of_stream(error_value: &Value) -> ProviderError {
    let said = Said::of_value(error_value);
    let kind = match said.status {
        _ if said.is_overflow() => ErrorKind::ContextOverflow,
        Some(401 | 403) => ErrorKind::Auth,
        Some(status @ 400..=499) => ErrorKind::Status(status),
        Some(_) | None => ErrorKind::Stream,
    };
    error(kind, &said.message)
}

/// True when an error says that the chat template refused the conversation (SPEC 7.5).
pub fn is_template_error(error: &ProviderError) -> bool {
    let message = error.message.to_ascii_lowercase();
    matches!(error.kind, ErrorKind::Status(400 | 422 | 500)) && TEMPLATE_WORDS.iter().any(|word| message.contains(word))
}

fn error(kind: ErrorKind, message: &str) -> ProviderError {
    ProviderError {
        kind,
        message: quote(message),
        retry_after: None,
    }
}

/// What the server said.
struct Said {
    message: String,
    /// `type` and `code`, lower case.
    tags: String,
    /// A numeric `code`.
    status: Option<u16>,
}

impl Said {
    fn read(body: &str) -> Self {
        match serde_json::from_str::<Value>(body) {
            Ok(value) => Self::of_value(value.get("error").filter(|error| !error.is_null()).unwrap_or(&value)),
            // A proxy's page: its words without the tags would be no clearer.
            Err(_) if body.trim_start().starts_with('<') => Self::text("the server answered with a web page"),
            Err(_) => Self::text(body),
        }
    }

    fn of_value(error: &Value) -> Self {
        let word = |key: &str| match error.get(key) {
            Some(Value::String(text)) => text.clone(),
            Some(value @ (Value::Number(_) | Value::Array(_) | Value::Object(_))) => value.to_string(),
            Some(Value::Null | Value::Bool(_)) | None => String::new(),
        };
        let message = ["message", "detail", "error"]
            .iter()
            .map(|key| word(key))
            .find(|text| !text.is_empty());
        let message = match (message, error) {
            (Some(message), _) => message,
            (None, Value::String(text)) => text.clone(),
            (None, other) => other.to_string(),
        };
        Self {
            message,
            tags: format!("{} {}", word("type"), word("code")).to_ascii_lowercase(),
            status: word("code").parse().ok(),
        }
    }

    fn text(text: &str) -> Self {
        Self {
            message: text.to_owned(),
            tags: String::new(),
            status: None,
        }
    }

    fn is_overflow(&self) -> bool {
        let message = self.message.to_ascii_lowercase();
        OVERFLOW_WORDS
            .iter()
            .any(|word| self.tags.contains(word) || message.contains(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(status: u16, body: &str, kind: ErrorKind, message: &str) {
        let error = of_status(status, body);
        assert_eq!((error.kind, error.message.as_str()), (kind, message));
    }

    /// SPEC 10.4: the server's own words, whatever shape they come in.
    #[test]
    fn shapes() {
        check(
            404,
            r#"{"error":{"message":"no such model","code":404}}"#,
            ErrorKind::Status(404),
            "no such model",
        );
        check(
            400,
            r#"{"error":"model not\nfound"}"#,
            ErrorKind::Status(400),
            "model not found",
        );
        check(
            400,
            r#"{"object":"error","message":"bad","code":400}"#,
            ErrorKind::Status(400),
            "bad",
        );
        check(
            422,
            r#"{"detail":[{"msg":"x"}]}"#,
            ErrorKind::Status(422),
            r#"[{"msg":"x"}]"#,
        );
        check(
            502,
            "<html>Bad gateway",
            ErrorKind::Status(502),
            "the server answered with a web page",
        );
        check(503, "", ErrorKind::Status(503), "");
        check(401, r#"{"error":{"message":"bad key"}}"#, ErrorKind::Auth, "bad key");
    }

    /// SPEC 7.4: a conversation that does not fit is told apart from other refusals.
    #[test]
    fn overflow() {
        for body in [
            r#"{"error":{"code":400,"message":"no room","type":"exceed_context_size_error","n_ctx":4096}}"#,
            r#"{"error":{"code":"context_length_exceeded","message":"no room"}}"#,
            r#"{"error":{"message":"no room: This model's maximum context length is 8192 tokens"}}"#,
        ] {
            assert_eq!(of_status(400, body).kind, ErrorKind::ContextOverflow, "{body}");
            assert_eq!(of_status(429, body).kind, ErrorKind::Status(429), "{body}");
        }
    }

    /// SPEC 7.4: an error inside a stream keeps its meaning.
    #[test]
    fn inside_a_stream() {
        let kind = |json: &str| of_stream(&serde_json::from_str(json).unwrap_or_default()).kind;
        assert_eq!(kind(r#"{"code":500,"message":"x"}"#), ErrorKind::Stream);
        assert_eq!(kind(r#"{"code":"429","message":"x"}"#), ErrorKind::Status(429));
        assert_eq!(
            kind(r#"{"code":400,"type":"exceed_context_size_error"}"#),
            ErrorKind::ContextOverflow
        );
        assert_eq!(kind(r#""overloaded""#), ErrorKind::Stream);
    }

    /// SPEC 7.5: a template that knows no tool role is recognised.
    #[test]
    fn template() {
        let body = r#"{"error":{"message":"Jinja Exception: Conversation roles must alternate"}}"#;
        assert!(is_template_error(&of_status(500, body)));
        assert!(!is_template_error(&of_status(429, body)));
        assert!(!is_template_error(&of_status(500, "out of memory")));
    }
}
