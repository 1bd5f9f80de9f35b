//! What an error of this format means: `{"type":"error","error":{"type","message"}}`.
//!
//! The reader of errors that all formats share takes the words; here the `type` decides the kind, because it says the same
//! whether the error is an answer or comes in the middle of a reply (the API's reference, "Errors").

use crate::codec::failure;
use crate::{ErrorKind, ProviderError};
use serde_json::Value;

/// Words of a message that say a conversation is too long, lower case; they come as `invalid_request_error`.
const OVERFLOW_WORDS: &[&str] = &["prompt is too long", "exceed context limit"];

/// What a refused request means.
pub(super) fn of_status(status: u16, body: &str) -> ProviderError {
    let error = failure::of_status(status, body);
    let value: Value = serde_json::from_str(body).unwrap_or_default();
    typed(error, value.get("error").unwrap_or(&Value::Null))
}

/// What an error inside a reply that had begun with status 200 means.
pub(super) fn of_stream(error_value: &Value) -> ProviderError {
    typed(failure::of_stream(error_value), error_value)
}

/// The same error, its kind by its type where that says more.
fn typed(error: ProviderError, value: &Value) -> ProviderError {
    let message = error.message.to_ascii_lowercase();
    let tag = value.get("type").and_then(Value::as_str).unwrap_or_default();
    let kind = match tag {
        "invalid_request_error" if OVERFLOW_WORDS.iter().any(|word| message.contains(word)) => {
            ErrorKind::ContextOverflow
        }
        // Of bytes, not of tokens; less conversation helps against both.
        "request_too_large" => ErrorKind::ContextOverflow,
        "authentication_error" | "permission_error" => ErrorKind::Auth,
        "billing_error" => ErrorKind::Status(402),
        "not_found_error" => ErrorKind::Status(404),
        "rate_limit_error" => ErrorKind::Status(429),
        "api_error" => ErrorKind::Status(500),
        "timeout_error" => ErrorKind::Status(504),
        "overloaded_error" => ErrorKind::Status(529),
        "invalid_request_error" if error.kind == ErrorKind::Stream => ErrorKind::Status(400),
        _ => error.kind,
    };
    ProviderError { kind, ..error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(tag: &str, message: &str, kind: ErrorKind) {
        let body =
            serde_json::json!({"type": "error", "error": {"type": tag, "message": message}, "request_id": "req_1"});
        let refused = of_status(400, &body.to_string());
        assert_eq!((refused.kind, refused.message.as_str()), (kind, message));
        let streamed = of_stream(body.get("error").unwrap_or(&Value::Null));
        assert_eq!((streamed.kind, streamed.message.as_str()), (kind, message));
    }

    /// SPEC 7.6: an error means the same as an answer and in the middle of a reply.
    #[test]
    fn kinds() {
        check("overloaded_error", "Overloaded", ErrorKind::Status(529));
        check("rate_limit_error", "slow down", ErrorKind::Status(429));
        check("api_error", "Internal server error", ErrorKind::Status(500));
        check("timeout_error", "too slow", ErrorKind::Status(504));
        check("authentication_error", "invalid x-api-key", ErrorKind::Auth);
        check("permission_error", "no", ErrorKind::Auth);
        check("invalid_request_error", "max_tokens: required", ErrorKind::Status(400));
        check(
            "request_too_large",
            "Request exceeds the maximum size",
            ErrorKind::ContextOverflow,
        );
        for message in [
            "prompt is too long: 210000 tokens > 200000 maximum",
            "input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000",
        ] {
            check("invalid_request_error", message, ErrorKind::ContextOverflow);
        }
        assert!(ErrorKind::Status(529).is_retryable());
    }

    /// SPEC 7.4: other servers' errors keep their meaning.
    #[test]
    fn other_shapes() {
        let body = r#"{"error":{"code":400,"message":"no room","type":"exceed_context_size_error","n_ctx":4096}}"#;
        assert_eq!(of_status(400, body).kind, ErrorKind::ContextOverflow);
        assert_eq!(of_status(529, "overloaded").kind, ErrorKind::Status(529));
        assert_eq!(of_status(401, "").kind, ErrorKind::Auth);
    }
}
