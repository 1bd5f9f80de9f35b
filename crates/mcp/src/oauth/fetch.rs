//! Requests of a login: to whom they may go, how long they may take and how much of an answer is read.

use crate::http::{Body, BodyError, excerpt, innermost, without_credentials};
use crate::{ErrorKind, McpError};
use aish_core::secret::Secret;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{RequestBuilder, StatusCode};
use serde_json::Value;
use std::time::Duration;
use url::{Host, Url};

/// Bytes of a metadata document, a registration or a token's answer.
const DOCUMENT_BYTES_MAX: usize = 256 << 10;
/// How long one request may take, its answer included.
const FETCH_TIMEOUT_MS: u64 = 15_000;

/// Sends the requests of a login to one server.
#[derive(Clone)]
pub(super) struct Fetch {
    client: reqwest::Client,
    /// Whether the server is on this machine: only then may others of this machine take part.
    is_local: bool,
}

/// An answer that could be read.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    /// `Null` for what is no JSON.
    pub(super) body: Value,
}

impl Fetch {
    /// Refuses a server that a token must not be sent to.
    pub(super) fn new(client: &reqwest::Client, server: &Url) -> Result<Self, McpError> {
        let fetch = Self {
            client: client.clone(),
            is_local: is_loopback(server),
        };
        fetch.allow(server)?;
        Ok(fetch)
    }

    /// Whether an address may be asked: https, or a server of this machine where the MCP server is one itself (RFC 6749
    /// section 3.1.2.1, RFC 8252 section 7.3).
    pub(super) fn allow(&self, url: &Url) -> Result<(), McpError> {
        let is_allowed = match url.scheme() {
            "https" => self.is_local || !is_loopback(url),
            "http" => self.is_local && is_loopback(url),
            _ => false,
        };
        let has_user = !url.username().is_empty() || url.password().is_some();
        if is_allowed && url.has_host() && !has_user {
            return Ok(());
        }
        let why = if has_user {
            "an address with a user's name in it takes no part in a login"
        } else {
            "a login needs https"
        };
        Err(failure(url, ErrorKind::Protocol, why))
    }

    /// Reads an address of a document, as a server wrote it.
    pub(super) fn address(&self, text: &str, what: &str) -> Result<Url, McpError> {
        let url = Url::parse(text).map_err(|_| {
            let message = format!("its {what} is no address: {}", excerpt(text));
            McpError::new(ErrorKind::Protocol, message)
        })?;
        self.allow(&url)?;
        Ok(url)
    }

    /// Fetches a document; `None` when it is not there.
    pub(super) async fn document(&self, url: &Url) -> Result<Option<Value>, McpError> {
        let request = self.client.get(url.clone());
        let answer = self.answer(url, request).await?;
        match answer.status {
            status if status.is_success() && answer.body.is_object() => Ok(Some(answer.body)),
            // Servers answer what they do not know with a page, or ask for a login there too.
            status if status.is_success() || status.is_client_error() => Ok(None),
            status => Err(failure(url, ErrorKind::Status(status.as_u16()), status.as_str())),
        }
    }

    /// Posts JSON.
    pub(super) async fn post_json(&self, url: &Url, body: &Value) -> Result<Answer, McpError> {
        let request = self.client.post(url.clone());
        let request = request.header(CONTENT_TYPE, "application/json").body(body.to_string());
        self.answer(url, request).await
    }

    /// Posts a form, with a header `Authorization` or without.
    pub(super) async fn post_form(
        &self,
        url: &Url,
        form: &[(&str, &str)],
        authorization: Option<&Secret>,
    ) -> Result<Answer, McpError> {
        let body = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(form)
            .finish();
        let request = self.client.post(url.clone()).body(body);
        let mut request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        if let Some(secret) = authorization {
            let value = HeaderValue::from_str(secret.expose());
            let mut value = value.map_err(|_| failure(url, ErrorKind::Protocol, "its client secret fits no header"))?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        self.answer(url, request).await
    }

    async fn answer(&self, url: &Url, request: RequestBuilder) -> Result<Answer, McpError> {
        self.allow(url)?;
        let exchange = async {
            let response = request.header(ACCEPT, "application/json").send().await;
            let response = response.map_err(|error| failure(url, ErrorKind::Unreachable, &innermost(&error)))?;
            let status = response.status();
            if status.is_redirection() || response.url().origin() != url.origin() {
                return Err(failure(
                    url,
                    ErrorKind::Protocol,
                    "it redirects, which no login follows",
                ));
            }
            let body = Body::new(response).whole(DOCUMENT_BYTES_MAX).await;
            let body = body.map_err(|error| match error {
                BodyError::TooLarge => {
                    let why = format!("it sent more than {} KB", DOCUMENT_BYTES_MAX >> 10);
                    failure(url, ErrorKind::TooLarge, &why)
                }
                BodyError::Broken(error) => failure(url, ErrorKind::Closed, &innermost(&error)),
            })?;
            Ok(Answer {
                status,
                body: serde_json::from_slice(&body).unwrap_or_default(),
            })
        };
        let limit = Duration::from_millis(FETCH_TIMEOUT_MS);
        let late = || failure(url, ErrorKind::Timeout, "no answer in time");
        tokio::time::timeout(limit, exchange)
            .await
            .unwrap_or_else(|_| Err(late()))
    }
}

/// A failure at an address.
pub(super) fn failure(url: &Url, kind: ErrorKind, why: &str) -> McpError {
    McpError::new(kind, format!("{}: {why}", without_credentials(url)))
}

/// Whether an address is on this machine.
pub(super) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}
