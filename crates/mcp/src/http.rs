//! The HTTP half of a connection: POST, GET and DELETE through the program's own client, with our bounds and our leniency.
//!
//! This file owns [`HttpClient`], which is what the SDK's transport sends and receives with, and [`transport`], which makes that
//! transport for an endpoint. Everything the SDK gets from here is a message that it can use or a failure; what was wrong is kept
//! in [`Failures`], by the request's id, because the SDK's own errors forget it.
//!
//! Rules, each with a reason: credentials are ours alone and never given to the SDK, which shows them in its errors; a POST that
//! fails is one request that failed, and is never sent again by itself, because it may have been carried out; what is no
//! request needs no more than a success (SPEC 6.2: servers answer notifications in every way there is); content types are
//! taken for hints, as servers forget them.

use crate::oauth::Bearer;
use crate::{ErrorKind, HttpEndpoint, McpError};
use futures_util::stream::BoxStream;
use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Method, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, RequestId};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream::Sse;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

mod body;
pub(crate) mod credentials;
mod events;
mod failures;
mod reading;
mod refusal;
mod remote;
mod reopening;
mod stream;

pub(crate) use body::{Body, BodyError};
pub use failures::Failures;
pub(crate) use reading::excerpt;
pub(crate) use remote::{innermost, without_credentials};

use body::{BODY_BYTES_MAX, Form};
use reading::Piece;
use refusal::{Refusal, Session};
use remote::{Draft, LAST_EVENT_ID, Remote, SESSION_ID};
use reopening::Stream;
use stream::Purpose;

/// Tries to open a stream again that cannot be opened, and how long the waits between them get.
const REOPEN_TRIES_MAX: usize = 5;
const REOPEN_WAIT_MS_MAX: u64 = 10_000;
/// How long a server may take to accept what has no answer.
const NOTIFY_TIMEOUT_MS: u64 = 10_000;

/// What a POST may be answered with. The specification asks for both in every one.
const ACCEPT_BOTH: &str = "application/json, text/event-stream";
const ACCEPT_EVENTS: &str = "text/event-stream";

type Headers = HashMap<HeaderName, HeaderValue>;
type HttpError = StreamableHttpError<McpError>;

/// The SDK's transport to an endpoint, and the failures of its requests. Must be called within a runtime.
///
/// `client` must not follow redirects to another origin: configured headers and the request itself would go there.
/// A redirect that it hands back is a failure that says where it leads.
///
/// # Errors
/// The address is none, or a configured header cannot be sent or is the protocol's own.
pub fn transport(
    endpoint: &HttpEndpoint,
    client: &reqwest::Client,
) -> Result<(StreamableHttpClientTransport<HttpClient>, Failures), McpError> {
    transport_with(endpoint, client, None)
}

/// The same, with whoever gives the token that a person allowed, where the configuration has none.
pub(crate) fn transport_with(
    endpoint: &HttpEndpoint,
    client: &reqwest::Client,
    bearer: Option<Bearer>,
) -> Result<(StreamableHttpClientTransport<HttpClient>, Failures), McpError> {
    let client = HttpClient(Arc::new(Remote::new(endpoint, client, bearer)?));
    let failures = client.failures();
    // The client knows its own address and headers: what is in the configuration may end up in a log.
    let mut config = StreamableHttpClientTransportConfig::with_uri(client.0.shown());
    config.allow_stateless = true;
    // Connecting anew is the supervisor's business, and nothing is repeated blindly.
    config.reinit_on_expired_session = false;
    let mut patience = ExponentialBackoff::default();
    patience.max_times = Some(REOPEN_TRIES_MAX);
    patience.max_delay = Some(Duration::from_millis(REOPEN_WAIT_MS_MAX));
    config.retry_config = Arc::new(patience);
    Ok((StreamableHttpClientTransport::with_client(client, config), failures))
}

/// Sends and receives for the SDK; clones share everything. The address and the credentials are those it was made with,
/// whatever the SDK says.
#[derive(Clone)]
pub struct HttpClient(Arc<Remote>);

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HttpClient").field(&self.0.shown()).finish()
    }
}

impl HttpClient {
    /// A client of one endpoint.
    ///
    /// # Errors
    /// As [`transport`].
    pub fn new(endpoint: &HttpEndpoint, client: &reqwest::Client) -> Result<Self, McpError> {
        Ok(Self(Arc::new(Remote::new(endpoint, client, None)?)))
    }

    /// Why its requests failed.
    pub fn failures(&self) -> Failures {
        self.0.failures.clone()
    }

    /// Posts a message.
    async fn post(
        &self,
        message: ClientJsonRpcMessage,
        session: Option<&str>,
        extra: Headers,
    ) -> Result<StreamableHttpPostResponse, McpError> {
        let body = serde_json::to_string(&message)
            .map_err(|_| self.0.error(ErrorKind::Protocol, "the message cannot be written"))?;
        let draft = Draft {
            method: Method::POST,
            accept: ACCEPT_BOTH,
            with: session.map(|id| (SESSION_ID, id)).into_iter().collect(),
            extra,
            body: Some(body),
        };
        let session = session.map_or(Session::None, |_| Session::Named);
        let ClientJsonRpcMessage::Request(request) = message else {
            let limit = Duration::from_millis(NOTIFY_TIMEOUT_MS);
            return match tokio::time::timeout(limit, self.tell(draft, session)).await {
                Ok(told) => told,
                Err(_) => Err(self
                    .0
                    .error(ErrorKind::Timeout, "a notification was not accepted in time")),
            }
            .inspect_err(|error| self.0.failures.put(None, error.clone()));
        };
        let asked = self.ask(draft, session, &request.id).await;
        asked.inspect_err(|error| self.0.failures.put(Some(&request.id), error.clone()))
    }

    /// Posts what has no answer: every success will do, whatever is in its body.
    async fn tell(&self, draft: Draft<'_>, session: Session) -> Result<StreamableHttpPostResponse, McpError> {
        let response = self.0.send(draft).await?;
        if response.status().is_success() {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        match refusal::read(&self.0, response, None, session).await {
            Refusal::Failure(error) => Err(error),
            // An answer to what asked nothing.
            Refusal::Answer(_) => Ok(StreamableHttpPostResponse::Accepted),
        }
    }

    /// Posts a request.
    async fn ask(
        &self,
        draft: Draft<'_>,
        session: Session,
        request: &RequestId,
    ) -> Result<StreamableHttpPostResponse, McpError> {
        let response = self.0.send(draft).await?;
        let status = response.status();
        if !status.is_success() {
            return match refusal::read(&self.0, response, Some(request), session).await {
                Refusal::Answer(answer) => Ok(StreamableHttpPostResponse::Json(*answer, None)),
                Refusal::Failure(error) => Err(error),
            };
        }
        let new_session = response.headers().get(SESSION_ID);
        let new_session = new_session.and_then(|id| id.to_str().ok()).map(str::to_owned);
        if status == StatusCode::ACCEPTED && session == Session::Named {
            // The answer may come on the session's own stream.
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let mut body = Body::new(response);
        match body.form().await.map_err(|error| self.0.broken(&error))? {
            Form::Empty => {
                let why = format!("{} with no answer in it", status.as_str());
                Err(self.0.error(ErrorKind::Protocol, &why))
            }
            Form::Events => {
                let purpose = Purpose::Answer(request.clone());
                let events = stream::of_body(Arc::clone(&self.0), body, purpose);
                Ok(StreamableHttpPostResponse::Sse(events, new_session))
            }
            Form::Text => self.text(body, status, request, new_session).await,
        }
    }

    /// Reads an answer that is one text.
    async fn text(
        &self,
        body: Body,
        status: StatusCode,
        request: &RequestId,
        new_session: Option<String>,
    ) -> Result<StreamableHttpPostResponse, McpError> {
        let kind = body.content_type();
        let bytes = body.whole(BODY_BYTES_MAX).await.map_err(|error| match error {
            BodyError::TooLarge => {
                let why = format!("it sent an answer of more than {} MB", BODY_BYTES_MAX >> 20);
                self.0.error(ErrorKind::TooLarge, &why)
            }
            BodyError::Broken(error) => self.0.broken(&error),
        })?;
        let unusable = |why: &str| {
            let why = format!("{} with {kind}: {why}", status.as_str());
            self.0.error(ErrorKind::Protocol, &why)
        };
        let text = String::from_utf8_lossy(&bytes);
        let mut messages = self.0.messages(&text).map_err(|why| unusable(&why))?;
        if messages.len() > 1 {
            let stream = stream::of_messages(Arc::clone(&self.0), messages, request.clone());
            return Ok(StreamableHttpPostResponse::Sse(stream, new_session));
        }
        let message = messages.pop().ok_or_else(|| unusable("no answer in it"))?;
        match reading::piece(message, Some(request)) {
            Piece::Answer(message) => Ok(StreamableHttpPostResponse::Json(message.parsed, new_session)),
            Piece::Nonsense(why) => Err(unusable(&why)),
            Piece::SomeAnswer(_) | Piece::Aside(_) => Err(unusable("no answer in it")),
        }
    }

    /// Opens a stream: for news, or with an event's id for the rest of one that broke off.
    async fn listen(
        &self,
        session: Option<&str>,
        last_event: Option<&str>,
        extra: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, HttpError> {
        let kind = last_event.map_or(Stream::News, |_| Stream::Rest);
        if !self.0.reopening.allows(kind) {
            return Err(HttpError::ServerDoesNotSupportSse);
        }
        let session = session.map(|id| (SESSION_ID, id));
        let draft = Draft {
            method: Method::GET,
            accept: ACCEPT_EVENTS,
            with: session
                .into_iter()
                .chain(last_event.map(|id| (LAST_EVENT_ID, id)))
                .collect(),
            extra,
            body: None,
        };
        let response = self.0.send(draft).await.map_err(HttpError::Client)?;
        let status = response.status();
        if status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED {
            // It may be back in a moment.
            let why = format!("{} to the request for a stream", status.as_str());
            return Err(HttpError::Client(
                self.0.error(ErrorKind::Status(status.as_u16()), &why),
            ));
        }
        let body = Body::new(response);
        if !status.is_success() || !body.is_event_stream() {
            return Err(HttpError::ServerDoesNotSupportSse);
        }
        let purpose = Purpose::Listen(kind, Instant::now());
        Ok(stream::of_body(Arc::clone(&self.0), body, purpose))
    }

    /// Ends a session. That a server does not know how to is no failure.
    async fn end(&self, session: &str, extra: Headers) -> Result<(), McpError> {
        let draft = Draft {
            method: Method::DELETE,
            accept: ACCEPT_BOTH,
            with: vec![(SESSION_ID, session)],
            extra,
            body: None,
        };
        self.0.send(draft).await.map(|_| ())
    }
}

impl StreamableHttpClient for HttpClient {
    type Error = McpError;

    async fn post_message(
        &self,
        _uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let posted = self.post(message, session_id.as_deref(), custom_headers).await;
        posted.map_err(HttpError::Client)
    }

    async fn delete_session(
        &self,
        _uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<(), HttpError> {
        self.end(&session_id, custom_headers).await.map_err(HttpError::Client)
    }

    async fn get_stream(
        &self,
        _uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, HttpError> {
        self.listen(session_id.as_deref(), last_event_id.as_deref(), custom_headers)
            .await
    }
}
