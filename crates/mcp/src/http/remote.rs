//! The server's side of every request: its address, the headers that go along, and errors that do not show them.

use super::credentials;
use super::failures::Failures;
use super::reading::{self, excerpt};
use super::reopening::Reopening;
use crate::oauth::Bearer;
use crate::{ErrorKind, HttpEndpoint, McpError};
use aish_core::redact::Redactor;
use aish_core::secret::Secret;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Response, StatusCode, Url};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashMap;
use std::error::Error;

/// The header that carries a session's id.
pub(super) const SESSION_ID: &str = "mcp-session-id";
/// The header that says where a stream is to go on.
pub(super) const LAST_EVENT_ID: &str = "last-event-id";

/// Headers that the protocol or the connection sets itself: a configured one would break it, or smuggle.
const RESERVED: [&str; 12] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    LAST_EVENT_ID,
    SESSION_ID,
    "mcp-protocol-version",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
/// Headers of the newer protocol that repeat a request's body.
const RESERVED_STARTS: [&str; 3] = ["mcp-method", "mcp-name", "mcp-param-"];

/// One server, as all requests to it share it.
pub(super) struct Remote {
    client: reqwest::Client,
    url: Url,
    /// The address as it is shown: without credentials and without its query, which may hold some.
    shown: String,
    /// The token and the configured headers.
    headers: HeaderMap,
    redactor: Redactor,
    /// What no answer is to repeat: less than the errors, as other headers may be words of every day.
    echoes: Redactor,
    /// Gives the token that a person allowed; `None` where the configuration has one.
    bearer: Option<Bearer>,
    pub(super) failures: Failures,
    pub(super) reopening: Reopening,
}

/// A request without its address and its credentials.
#[derive(Clone)]
pub(super) struct Draft<'a> {
    pub(super) method: Method,
    pub(super) accept: &'static str,
    /// Header and value of what belongs to this request: a session, an event.
    pub(super) with: Vec<(&'static str, &'a str)>,
    /// What the SDK wants to go along: the protocol's version and what repeats the body.
    pub(super) extra: HashMap<HeaderName, HeaderValue>,
    pub(super) body: Option<String>,
}

impl Remote {
    /// Reads an endpoint.
    ///
    /// # Errors
    /// Its address is none, or a header cannot be sent.
    pub(super) fn new(
        endpoint: &HttpEndpoint,
        client: &reqwest::Client,
        bearer: Option<Bearer>,
    ) -> Result<Self, McpError> {
        let unusable = |why: String| McpError::new(ErrorKind::Unusable, why);
        let url = Url::parse(&endpoint.url)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
            .ok_or_else(|| unusable("its url is no http:// or https:// address".to_owned()))?;
        let mut headers = HeaderMap::new();
        let mut secrets = Vec::new();
        if let Some(token) = &endpoint.token {
            let value = HeaderValue::from_str(&format!("Bearer {}", token.expose()))
                .map_err(|_| unusable("its token has characters that no header can carry".to_owned()))?;
            headers.insert(AUTHORIZATION, value);
        }
        for (name, value) in &endpoint.headers {
            let shown = excerpt(name);
            let header = HeaderName::from_bytes(name.as_bytes())
                .map_err(|_| unusable(format!("`{shown}` is no name of a header")))?;
            if RESERVED.contains(&header.as_str())
                || RESERVED_STARTS.iter().any(|start| header.as_str().starts_with(start))
            {
                return Err(unusable(format!(
                    "the header `{shown}` is the protocol's own: remove it from `headers`"
                )));
            }
            if header == AUTHORIZATION && endpoint.token.is_some() {
                return Err(unusable(
                    "it has both a token and a header `Authorization`: remove one".to_owned(),
                ));
            }
            let value_of = HeaderValue::from_str(value.expose())
                .map_err(|_| unusable(format!("the value of the header `{shown}` cannot be sent")))?;
            headers.append(header, value_of);
            secrets.push((name.clone(), value.expose().to_owned()));
        }
        for value in headers.values_mut() {
            value.set_sensitive(true);
        }
        let known = credentials::of_endpoint(endpoint, &url);
        secrets.extend(known.iter().cloned());
        secrets.extend(url.query().map(|query| ("query".to_owned(), query.to_owned())));
        Ok(Self {
            client: client.clone(),
            shown: without_credentials(&url),
            url,
            bearer: bearer.filter(|_| !headers.contains_key(AUTHORIZATION)),
            headers,
            redactor: Redactor::new(secrets),
            echoes: Redactor::new(known),
            failures: Failures::default(),
            reopening: Reopening::default(),
        })
    }

    /// The address as it may be shown.
    pub(super) fn shown(&self) -> &str {
        &self.shown
    }

    /// Sends a request and waits for the head of its response. One that a token was refused for was not carried out: it is sent
    /// once more where there is another token.
    pub(super) async fn send(&self, draft: Draft<'_>) -> Result<Response, McpError> {
        let Some(bearer) = &self.bearer else {
            return self.send_with(draft, None).await;
        };
        let token = bearer.token().await;
        let response = self.send_with(draft.clone(), token.as_ref()).await?;
        let refused = token.filter(|_| response.status() == StatusCode::UNAUTHORIZED);
        let Some(refused) = refused else {
            return Ok(response);
        };
        match bearer.next(&refused).await? {
            Some(next) => self.send_with(draft, Some(&next)).await,
            None => Ok(response),
        }
    }

    async fn send_with(&self, draft: Draft<'_>, token: Option<&Secret>) -> Result<Response, McpError> {
        let mut headers = self.headers.clone();
        if let Some(token) = token {
            let value = HeaderValue::from_str(&format!("Bearer {}", token.expose()));
            let mut value = value.map_err(|_| self.error(ErrorKind::Protocol, "its token fits no header"))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        // The SDK is not asked to carry any of ours, so what it adds is the protocol's.
        headers.extend(draft.extra);
        headers.insert(ACCEPT, HeaderValue::from_static(draft.accept));
        for (name, value) in draft.with {
            let value = HeaderValue::from_str(value)
                .map_err(|_| self.error(ErrorKind::Protocol, "it gave an id that no header can carry"))?;
            headers.insert(name, value);
        }
        let mut request = self.client.request(draft.method, self.url.clone());
        if let Some(body) = draft.body {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            request = request.body(body);
        }
        request
            .headers(headers)
            .send()
            .await
            .map_err(|error| self.not_sent(&error))
    }

    /// What a person does about a refusal, where a login can help.
    pub(super) async fn advice(&self, challenge: Option<&str>, status: StatusCode) -> Option<String> {
        self.bearer.as_ref()?.advice(challenge, status.as_u16()).await
    }

    /// A failure: the address, and why, without anything that is secret.
    pub(super) fn error(&self, kind: ErrorKind, why: &str) -> McpError {
        McpError::new(kind, self.redacted(&format!("{}: {why}", self.shown)))
    }

    /// Text of the server without anything that is secret: some repeat the headers they were sent.
    pub(super) fn redacted(&self, text: &str) -> String {
        let text = self.redactor.redact(text).into_owned();
        match &self.bearer {
            Some(bearer) => bearer.redacted(&text),
            None => text,
        }
    }

    /// The messages in a text of the server, without the credentials that it was sent: some repeat them in results, descriptions and
    /// logs, and from there it would get into the ledger and to the model.
    ///
    /// # Errors
    /// As [`reading::messages`].
    pub(super) fn messages(&self, text: &str) -> Result<Vec<Value>, String> {
        let mut messages = reading::messages(&self.without_echoes(text))?;
        for message in &mut messages {
            self.take_out_echoes(message);
        }
        Ok(messages)
    }

    /// The text without the credentials that the server was sent.
    pub(super) fn without_echoes<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let text = self.echoes.redact_values(text);
        let Some(bearer) = &self.bearer else { return text };
        match bearer.echoes().redact_values(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(without) => Cow::Owned(without),
        }
    }

    /// The same of every text in a value: JSON has several ways to write one.
    fn take_out_echoes(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(without) = self.without_echoes(text) {
                    *text = without;
                }
            }
            Value::Array(values) => values.iter_mut().for_each(|value| self.take_out_echoes(value)),
            Value::Object(fields) => fields.values_mut().for_each(|value| self.take_out_echoes(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// An answer that broke off.
    pub(super) fn broken(&self, error: &reqwest::Error) -> McpError {
        self.error(
            ErrorKind::Closed,
            &format!("the answer broke off: {}", innermost(error)),
        )
    }

    fn not_sent(&self, error: &reqwest::Error) -> McpError {
        if error.is_timeout() {
            self.error(ErrorKind::Unreachable, "no connection in time")
        } else if error.is_connect() || error.is_builder() {
            self.error(ErrorKind::Unreachable, &innermost(error))
        } else {
            // The request may have arrived: whoever repeats it has to know that.
            let why = format!("the connection ended before an answer: {}", innermost(error));
            self.error(ErrorKind::Closed, &why)
        }
    }
}

/// An address without user, password, query and fragment.
pub(crate) fn without_credentials(url: &Url) -> String {
    let mut shown = url.clone();
    // These fail only for addresses that cannot have a user at all.
    let _unchanged = shown.set_username("").and_then(|()| shown.set_password(None));
    shown.set_query(None);
    shown.set_fragment(None);
    shown.to_string()
}

/// The cause behind an error, which is what a person can do something about.
pub(crate) fn innermost(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    excerpt(&cause.to_string())
}
