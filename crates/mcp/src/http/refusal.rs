//! What a status that is no success means, and what a person is told of it.

use super::body::Body;
use super::reading::{self, Message, Piece, excerpt};
use super::remote::{Remote, without_credentials};
use crate::{ErrorKind, McpError};
use reqwest::header::{CONTENT_TYPE, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE};
use reqwest::{Response, StatusCode};
use rmcp::model::{RequestId, ServerJsonRpcMessage};
use serde_json::Value;
use std::time::Duration;

/// Bytes of a refusal that are read, and how long they may take.
const REFUSAL_BYTES_MAX: usize = 64 << 10;
const REFUSAL_TIMEOUT_MS: u64 = 5000;
/// Characters of a challenge that are kept: an address and some scopes.
const CHALLENGE_CHARS_MAX: usize = 2000;
/// JSON-RPC's code for a method that is unknown: the request was understood, whatever the status says.
const METHOD_NOT_FOUND: i64 = -32601;

/// Whether the request named a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Session {
    /// It did.
    Named,
    /// It did not.
    None,
}

/// What a refusal comes to.
pub(super) enum Refusal {
    /// The server answered the request with an error of JSON-RPC.
    Answer(Box<ServerJsonRpcMessage>),
    /// It did not.
    Failure(McpError),
}

/// Reads a response that is no success, to a request or, without an id, to something that has no answer.
pub(super) async fn read(
    remote: &Remote,
    response: Response,
    request: Option<&RequestId>,
    session: Session,
) -> Refusal {
    let status = response.status();
    let head = Head::of(remote, &response);
    let mut body = Vec::new();
    let limit = Duration::from_millis(REFUSAL_TIMEOUT_MS);
    // What came within the time is enough.
    let _in_time = tokio::time::timeout(limit, Body::new(response).beginning(REFUSAL_BYTES_MAX, &mut body)).await;
    let body = String::from_utf8_lossy(&body);
    // Before anything is cut: no half of a token is one.
    let body = remote.without_echoes(&body);
    let answer = request.and_then(|request| answer(remote, &body, request));
    let code = answer
        .as_ref()
        .and_then(|message| message.value.pointer("/error/code")?.as_i64());
    let said = said(&body, head.is_page);
    let advice = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => remote.advice(head.challenge.as_deref(), status).await,
        _ => None,
    };
    let kind = match (status, session) {
        (StatusCode::UNAUTHORIZED, _) => ErrorKind::Unauthorized {
            challenge: head.challenge,
        },
        (StatusCode::FORBIDDEN, _) => ErrorKind::Forbidden,
        (StatusCode::NOT_FOUND, Session::Named) if code != Some(METHOD_NOT_FOUND) => ErrorKind::SessionLost,
        (StatusCode::BAD_REQUEST, Session::Named) if said.to_ascii_lowercase().contains("session") => {
            ErrorKind::SessionLost
        }
        (StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE, _) => ErrorKind::Status(status.as_u16()),
        (status, _) => match answer {
            Some(message) => return Refusal::Answer(Box::new(message.parsed)),
            None => ErrorKind::Status(status.as_u16()),
        },
    };
    let name = status
        .canonical_reason()
        .map(|name| format!(" {name}"))
        .unwrap_or_default();
    let mut why = format!("{}{name}", status.as_str());
    for more in [head.redirect.unwrap_or(said), head.wait] {
        if !more.is_empty() {
            why.push_str(": ");
            why.push_str(&more);
        }
    }
    Refusal::Failure(match advice {
        Some(advice) => McpError::new(kind, remote.redacted(&advice)),
        None => remote.error(kind, &why),
    })
}

/// What the headers of a refusal say.
struct Head {
    challenge: Option<String>,
    /// Where it wants the request to go, in words.
    redirect: Option<String>,
    /// How long to wait, in words; empty for nothing said.
    wait: String,
    /// True for a page for a browser, whose text is of no use.
    is_page: bool,
}

impl Head {
    fn of(remote: &Remote, response: &Response) -> Self {
        let status = response.status();
        let header = |name| {
            response
                .headers()
                .get(name)
                .map(|value| String::from_utf8_lossy(value.as_bytes()))
        };
        let from = response.url();
        let redirect = status
            .is_redirection()
            .then(|| match header(LOCATION).map(|to| from.join(&to)) {
                Some(Ok(to)) if to.origin() == from.origin() => {
                    format!("it redirects to {}: set url to it", excerpt(&without_credentials(&to)))
                }
                Some(Ok(to)) => format!(
                    "it redirects to {}, another origin, where credentials do not go: set url to it if that is right",
                    excerpt(&without_credentials(&to))
                ),
                Some(Err(_)) | None => "it redirects to nowhere".to_owned(),
            });
        let wait = match header(RETRY_AFTER) {
            Some(wait) if wait.bytes().all(|byte| byte.is_ascii_digit()) => {
                format!("try again in {} s", excerpt(&wait))
            }
            Some(wait) => format!("try again after {}", excerpt(&wait)),
            None => String::new(),
        };
        Self {
            challenge: challenge(remote, response),
            redirect,
            wait,
            is_page: header(CONTENT_TYPE).is_some_and(|value| value.to_ascii_lowercase().starts_with("text/html")),
        }
    }
}

/// What it asks for: servers that take several kinds of proof send a header for each.
fn challenge(remote: &Remote, response: &Response) -> Option<String> {
    let all = response.headers().get_all(WWW_AUTHENTICATE).into_iter();
    let all: Vec<_> = all.map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
    let whole = (!all.is_empty()).then(|| all.join(", "))?;
    Some(remote.redacted(&whole).chars().take(CHALLENGE_CHARS_MAX).collect())
}

/// The JSON-RPC error that a body is, as the answer to the request: whoever refuses a request often has not read its id.
fn answer(remote: &Remote, body: &str, request: &RequestId) -> Option<Message> {
    let mut messages = remote.messages(body).ok()?;
    let mut message = messages
        .pop()
        .filter(|message| messages.is_empty() && message.get("error").is_some())?;
    // An error of another form, as `{"error":"invalid_token"}`, is the refusal's text and nothing more.
    message.pointer("/error/code")?.as_i64()?;
    message.as_object_mut()?.remove("id");
    match reading::piece(message, Some(request)) {
        Piece::Answer(message) => Some(message),
        Piece::SomeAnswer(_) | Piece::Aside(_) | Piece::Nonsense(_) => None,
    }
}

/// What a refusal says, in a few words.
fn said(body: &str, is_page: bool) -> String {
    let parsed: Option<Value> = reading::messages(body).ok().and_then(|mut messages| messages.pop());
    let Some(parsed) = parsed else {
        return if is_page { String::new() } else { excerpt(body) };
    };
    ["/error/message", "/error_description", "/message", "/detail", "/error"]
        .into_iter()
        .find_map(|path| parsed.pointer(path)?.as_str())
        .map_or_else(|| excerpt(body), excerpt)
}
