//! Serving any number of clients over HTTP, at one path: streamable HTTP of both eras (MCP, transports).
//!
//! The SDK has sessions, streams and the rules of their headers. Around it, here: who is let in (`guard`), how many
//! connections and sessions there may be, how long a request may take to arrive and how large it may be.

use super::guard::Guard;
use super::handler::Handler;
use super::{Backend, MESSAGE_BYTES_MAX};
use crate::wire::{VALUES_MAX, count_values};
use aish_core::secret::Secret;
use aish_tools::Cancel;
use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Where the protocol is spoken.
pub const PATH: &str = "/mcp";
/// Connections at once; more wait to be accepted.
const CONNECTIONS_MAX: usize = 64;
/// Sessions at once; more are refused. Many clients go without ending theirs, so there is room for those.
const SESSIONS_MAX: usize = 1_000;
/// A session nobody has used for as long is forgotten. A command may be silent for an hour.
const SESSION_IDLE_S: u64 = 65 * 60;
/// How long the head of a request may take to arrive, and how long a connection may lie idle.
const HEAD_TIMEOUT_S: u64 = 10;
/// Bytes of the head of a request, and of what is read at a time.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// How long the body of a request may take to arrive.
const BODY_TIMEOUT_S: u64 = 30;
/// How long open requests may take when it all ends.
const DRAIN_TIMEOUT_MS: u64 = 1_000;
/// How long to wait after no connection could be accepted, e.g. for want of file descriptors.
const ACCEPT_PAUSE_MS: u64 = 100;
/// The header that names a session (MCP, transports, session management).
const SESSION_HEADER: &str = "mcp-session-id";

type Service = StreamableHttpService<Handler, LocalSessionManager>;
type Answer = Response<BoxBody<Bytes, Infallible>>;

/// What all connections share.
struct Server {
    guard: Guard,
    service: Service,
    sessions: Arc<LocalSessionManager>,
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
    let address = listener.local_addr()?;
    if token.is_none() && !address.ip().is_loopback() {
        let problem = "without a token only this machine itself can be served";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
    }
    let mut sessions = LocalSessionManager::default();
    sessions.session_config.keep_alive = Some(Duration::from_secs(SESSION_IDLE_S));
    let sessions = Arc::new(sessions);
    let config = StreamableHttpServerConfig::default()
        .with_json_response(true)
        // Ours says the same of any address that is listened at.
        .disable_allowed_hosts()
        .with_max_request_body_bytes(MESSAGE_BYTES_MAX);
    let end_sessions = config.cancellation_token.clone();
    let hung_up = stop.clone();
    let server = Arc::new(Server {
        guard: Guard { address, token },
        service: StreamableHttpService::new(
            move || Ok(Handler::new(Arc::clone(&backend), hung_up.clone())),
            Arc::clone(&sessions),
            config,
        ),
        sessions,
    });
    let mut connections = JoinSet::new();
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let accepted = tokio::select! {
            biased;
            () = aish_tools::cancelled(&mut stop) => break,
            accepted = accept(&listener, &room) => accepted,
        };
        let Some((stream, place)) = accepted else { continue };
        let (server, stop) = (Arc::clone(&server), stop.clone());
        connections.spawn(async move {
            connection(&server, stream, stop).await;
            drop(place);
        });
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    end_sessions.cancel();
    let drain = async { while connections.join_next().await.is_some() {} };
    // What is not over by then is dropped with the set.
    let _ = tokio::time::timeout(Duration::from_millis(DRAIN_TIMEOUT_MS), drain).await;
    Ok(())
}

/// The next connection, once there is room for it; `None` when it could not be had.
async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> Option<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let place = Arc::clone(room).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => Some((stream, place)),
        Err(_) => {
            tokio::time::sleep(Duration::from_millis(ACCEPT_PAUSE_MS)).await;
            None
        }
    }
}

/// Answers the requests of one connection. That it broke is the client's affair.
async fn connection(server: &Arc<Server>, stream: TcpStream, mut stop: Cancel) {
    let answering = service_fn(|request| {
        let server = Arc::clone(server);
        async move { Ok::<_, Infallible>(server.answer(request).await) }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_secs(HEAD_TIMEOUT_S))
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), answering);
    let mut serving = std::pin::pin!(serving);
    tokio::select! {
        _ = &mut serving => return,
        () = aish_tools::cancelled(&mut stop) => serving.as_mut().graceful_shutdown(),
    }
    let _ = serving.await;
}

impl Server {
    async fn answer(&self, request: Request<Incoming>) -> Answer {
        if let Err((status, why)) = self.guard.admit(request.headers()) {
            return refusal(status, why);
        }
        if request.uri().path() != PATH {
            return refusal(StatusCode::NOT_FOUND, "the protocol is spoken at /mcp");
        }
        if self.would_open_a_session(&request) && self.sessions.sessions.read().await.len() >= SESSIONS_MAX {
            return refusal(StatusCode::SERVICE_UNAVAILABLE, "too many sessions are open");
        }
        match read(request).await {
            Ok(request) => self.service.handle(request).await,
            Err((status, why)) => refusal(status, why),
        }
    }

    fn would_open_a_session(&self, request: &Request<Incoming>) -> bool {
        request.method() == Method::POST && !request.headers().contains_key(SESSION_HEADER)
    }
}

/// The request with its body read whole: in time, and within its bounds.
async fn read(request: Request<Incoming>) -> Result<Request<Full<Bytes>>, (StatusCode, &'static str)> {
    let (head, body) = request.into_parts();
    let reading = Limited::new(body, MESSAGE_BYTES_MAX).collect();
    let body = match tokio::time::timeout(Duration::from_secs(BODY_TIMEOUT_S), reading).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
            return Err((StatusCode::PAYLOAD_TOO_LARGE, "the message is too long"));
        }
        Ok(Err(_)) => return Err((StatusCode::BAD_REQUEST, "the message broke off")),
        Err(_) => return Err((StatusCode::REQUEST_TIMEOUT, "the message did not arrive in time")),
    };
    if count_values(&body) > VALUES_MAX {
        return Err((StatusCode::PAYLOAD_TOO_LARGE, "the message has too many values"));
    }
    Ok(Request::from_parts(head, Full::new(body)))
}

/// An answer that is none of the protocol's. The connection ends with it: what the client still sends is not read.
fn refusal(status: StatusCode, why: &'static str) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from_static(why.as_bytes())).boxed());
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    answer
}
