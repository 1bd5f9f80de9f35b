//! What real APIs and chat templates refuse, as pure functions over a request's JSON.
//!
//! This file owns [`check`]: a request goes in as it would go over the wire, and out comes nothing, or the [`Refusal`] that
//! the real server would answer with, status and body. It shares no type with the codecs, so that a mistake of theirs cannot
//! hide here. There is one module for each [`Api`]; what several of them refuse alike is in `shape`. Each rule says where it
//! is known from: the provider's documentation, or an issue that quotes the refusal.
//!
//! Where real servers take more than one way, the rules here take the one that all take, so that whatever passes is safe:
//! results stand in call order, ids are unique in the whole conversation, and nothing is empty.
//!
//! ```
//! use aish_provider::strict::{Api, check};
//! let body = serde_json::json!({"model": "m", "messages": [{"role": "user", "content": "hello"}], "tools": []});
//! let refusal = check(Api::OpenaiChat, "/chat/completions", [], &body).unwrap_err();
//! assert_eq!(refusal.status, 400);
//! ```

mod anthropic;
mod chat;
mod gemini;
mod responses;
mod shape;
mod template;

use serde_json::{Value, json};

/// Who looks at the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Api {
    /// OpenAI's chat completions.
    OpenaiChat,
    /// A server of chat completions whose template wants user and assistant to take turns.
    Template,
    /// The same with Mistral's template: ids of nine letters and digits besides.
    MistralTemplate,
    /// The same with Gemma's template: no system role, and neither tools nor results.
    GemmaTemplate,
    /// `llama-server` with a model that sees no images.
    LlamaCpp,
    /// OpenAI's Responses.
    OpenaiResponses,
    /// Anthropic's Messages.
    Anthropic,
    /// Google's `generateContent`.
    Gemini,
}

impl Api {
    /// Every one.
    pub const ALL: [Self; 8] = [
        Self::OpenaiChat,
        Self::Template,
        Self::MistralTemplate,
        Self::GemmaTemplate,
        Self::LlamaCpp,
        Self::OpenaiResponses,
        Self::Anthropic,
        Self::Gemini,
    ];
}

/// How the server answers a request it refuses.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// The body, in the shape of that server's errors.
    pub body: Value,
    /// The words in it that say why.
    pub message: String,
}

/// What is wrong with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Complaint {
    status: u16,
    message: String,
}

/// Whether a request passes a rule.
type Passed<T = ()> = Result<T, Complaint>;

/// A complaint with status 400, which is what nearly all of them have.
fn refuse<T>(message: impl Into<String>) -> Passed<T> {
    let message = message.into();
    Err(Complaint { status: 400, message })
}

/// Whether that API would take this request. `path` is what follows the base URL, `headers` are named in lower case.
///
/// # Errors
/// It would not; see the [`Refusal`].
pub fn check<'h>(
    api: Api,
    path: &str,
    headers: impl IntoIterator<Item = (&'h str, &'h str)>,
    body: &Value,
) -> Result<(), Refusal> {
    let headers: Vec<(&str, &str)> = headers.into_iter().collect();
    let checked = match api {
        Api::OpenaiChat => chat::check(body),
        Api::Template => template::check(body, &template::PLAIN),
        Api::MistralTemplate => template::check(body, &template::MISTRAL),
        Api::GemmaTemplate => template::check(body, &template::GEMMA),
        Api::LlamaCpp => template::check_llama_cpp(body),
        Api::OpenaiResponses => responses::check(body),
        Api::Anthropic => anthropic::check(path, &headers, body),
        Api::Gemini => gemini::check(path, body),
    };
    checked.map_err(|complaint| Refusal {
        status: complaint.status,
        body: error_body(api, &complaint),
        message: complaint.message,
    })
}

/// An error as that server writes it.
fn error_body(api: Api, complaint: &Complaint) -> Value {
    let Complaint { status, message } = complaint;
    match api {
        // https://platform.openai.com/docs/guides/error-codes
        Api::OpenaiChat | Api::OpenaiResponses => json!({
            "error": { "message": message, "type": "invalid_request_error", "param": null, "code": null },
        }),
        // The shape of vLLM's and Mistral's, e.g. https://github.com/charmbracelet/crush/issues/279
        Api::Template | Api::MistralTemplate | Api::GemmaTemplate => json!({
            "object": "error", "message": message, "type": "invalid_request_error", "param": null, "code": status,
        }),
        // As recorded from a real server.
        Api::LlamaCpp => {
            let kind = if *status < 500 {
                "invalid_request_error"
            } else {
                "server_error"
            };
            json!({ "error": { "code": status, "message": message, "type": kind } })
        }
        // https://docs.anthropic.com/en/api/errors
        Api::Anthropic => json!({
            "type": "error",
            "error": { "type": "invalid_request_error", "message": message },
            "request_id": "req_strict",
        }),
        // https://ai.google.dev/gemini-api/docs/troubleshooting
        Api::Gemini => json!({ "error": { "code": status, "message": message, "status": "INVALID_ARGUMENT" } }),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests;
