//! Serving any number of clients over HTTP, at one path: streamable HTTP of both eras (MCP, transports).
//!
//! The SDK has sessions, streams and the rules of their headers. Around it is [`aish_listen`]: who is let in, how many connections,
//! how long a request may take to arrive. Here: how many sessions there may be (`sessions`), and how large a message.

use super::handler::Handler;
use super::sessions::Sessions;
use super::{Backend, MESSAGE_BYTES_MAX};
use crate::wire::{VALUES_MAX, count_values};
use aish_core::secret::Secret;
use aish_listen::{Bodies, Guard, Limits, Refusal, RequestId, Service};
use aish_tools::Cancel;
use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde::Deserialize;
use std::borrow::Cow;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// Where the protocol is spoken.
pub const PATH: &str = "/mcp";
/// Bytes of the message that begins a session, and values in it: it is kept for as long as the session.
const INITIALIZE_BYTES_MAX: usize = 64 * 1024;
const INITIALIZE_VALUES_MAX: usize = 1_000;
/// How long the body of a request may take to arrive.
const BODY_TIMEOUT_S: u64 = 30;
/// Bytes of all messages that are on their way at once.
const MESSAGES_BYTES_MAX: usize = 16 * MESSAGE_BYTES_MAX;
/// The header that names a session (MCP, transports, session management).
const SESSION_HEADER: &str = "mcp-session-id";
/// The method that begins one (MCP, lifecycle).
const INITIALIZE: &str = "initialize";

type Protocol = StreamableHttpService<Handler, LocalSessionManager>;
type Answer = Response<BoxBody<Bytes, Infallible>>;

/// What all connections share.
struct Server {
    protocol: Protocol,
    bodies: Bodies,
    sessions: Arc<Sessions>,
}

/// Serves until `stop` turns true. Without a token everybody on this machine is let in, so that is for loopback only.
///
/// # Errors
/// The listener has no address, or not one of this machine's own and no token.
pub async fn serve(
    backend: Arc<dyn Backend>,
    listener: TcpListener,
    token: Option<Secret>,
    mut stop: Cancel,
) -> io::Result<()> {
    let guard = Guard::new(listener.local_addr()?, token, Vec::new())?;
    let sessions = Arc::new(Sessions::new());
    let config = StreamableHttpServerConfig::default()
        .with_json_response(true)
        // The guard says the same of any address that is listened at.
        .disable_allowed_hosts()
        .with_max_request_body_bytes(MESSAGE_BYTES_MAX);
    let end_sessions = config.cancellation_token.clone();
    let hung_up = stop.clone();
    let server = Server {
        protocol: StreamableHttpService::new(
            move || Ok(Handler::new(Arc::clone(&backend), hung_up.clone())),
            Arc::clone(&sessions.manager),
            config,
        ),
        bodies: Bodies::new(
            MESSAGE_BYTES_MAX,
            MESSAGES_BYTES_MAX,
            Duration::from_secs(BODY_TIMEOUT_S),
        ),
        sessions: Arc::clone(&sessions),
    };
    let serving = aish_listen::serve(server, listener, (guard, Limits::default()), stop.clone());
    let end_sessions = async {
        aish_tools::cancelled(&mut stop).await;
        end_sessions.cancel();
        std::future::pending::<()>().await;
    };
    tokio::select! {
        biased;
        served = serving => served,
        () = sessions.end_calls_of_the_gone() => Ok(()),
        () = end_sessions => Ok(()),
    }
}

impl Service for Server {
    type Body = BoxBody<Bytes, Infallible>;

    fn refuse(&self, refusal: Refusal, _: &RequestId) -> Answer {
        refusal.answer(Full::new(Bytes::from_static(refusal.message().as_bytes())).boxed())
    }

    async fn answer(&self, request: Request<Incoming>) -> Answer {
        if request.uri().path() != PATH {
            return refusal(StatusCode::NOT_FOUND, "the protocol is spoken at /mcp");
        }
        let Some(id) = session_id(request.headers()) else {
            return match self.read(request).await {
                Ok(request) if begins_a_session(&request) => self.begin(request).await,
                Ok(request) => self.protocol.handle(request.map(Full::new)).await,
                Err(refusal) => refusal,
            };
        };
        if request.method() == Method::DELETE {
            self.sessions.end(&id);
        }
        let used = self.sessions.enter(&id);
        let mut request = match self.read(request).await {
            Ok(request) => request.map(Full::new),
            Err(refusal) => return refusal,
        };
        let Some((in_use, end)) = used else {
            return self.protocol.handle(request).await;
        };
        request.extensions_mut().insert(end);
        let answer = self.protocol.handle(request).await;
        // The session is in use until the answer is sent or given up, a stream as well.
        answer.map(|body| {
            let holding = body.map_frame(move |frame| {
                let _ = &in_use;
                frame
            });
            holding.boxed()
        })
    }
}

impl Server {
    /// Begins a session, if its client asks in few words.
    async fn begin(&self, request: Request<Bytes>) -> Answer {
        let message = request.body();
        if message.len() > INITIALIZE_BYTES_MAX || count_values(message) > INITIALIZE_VALUES_MAX {
            return refusal(
                StatusCode::PAYLOAD_TOO_LARGE,
                "that is too much to begin a session with",
            );
        }
        if !self.sessions.make_room().await {
            return refusal(StatusCode::SERVICE_UNAVAILABLE, "too many sessions are in use");
        }
        let answer = self.protocol.handle(request.map(Full::new)).await;
        if let Some(id) = session_id(answer.headers()) {
            self.sessions.begun(&id);
        }
        answer
    }

    /// The request with its message read whole: in time, and within its bounds.
    async fn read(&self, request: Request<Incoming>) -> Result<Request<Bytes>, Answer> {
        let id = RequestId::of(request.headers());
        let read = self.bodies.read(request).await;
        let request = read.map_err(|refusal| self.refuse(refusal, &id))?;
        if count_values(request.body()) > VALUES_MAX {
            return Err(refusal(
                StatusCode::PAYLOAD_TOO_LARGE,
                "the message has too many values",
            ));
        }
        Ok(request)
    }
}

fn session_id(headers: &HeaderMap) -> Option<String> {
    let id = headers.get(SESSION_HEADER)?.to_str().ok()?;
    Some(id.to_owned())
}

/// Whether a message that names no session may begin one. One that cannot be read counts as such: the SDK says what is wrong.
fn begins_a_session(request: &Request<Bytes>) -> bool {
    #[derive(Deserialize)]
    struct Named<'a> {
        #[serde(borrow)]
        method: Option<Cow<'a, str>>,
    }
    let named = serde_json::from_slice::<Named<'_>>(request.body());
    request.method() == Method::POST
        && named.map_or(true, |named| named.method.is_some_and(|method| method == INITIALIZE))
}

/// An answer that is none of the protocol's. The connection ends with it: what the client still sends is not read.
fn refusal(status: StatusCode, why: &'static str) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from_static(why.as_bytes())).boxed());
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    answer
}
