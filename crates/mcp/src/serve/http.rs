//! Serving any number of clients over HTTP, at one path: streamable HTTP of both eras (MCP, transports).
//!
//! The SDK has sessions, streams and the rules of their headers. Around it, here: who is let in (`guard`), how many
//! connections (`newcomers`) and sessions (`sessions`) there may be, how long a request may take to arrive and how large it may
//! be.

use super::guard::Guard;
use super::handler::Handler;
use super::newcomers::{Newcomer, Newcomers};
use super::sessions::Sessions;
use super::{Backend, MESSAGE_BYTES_MAX};
use crate::wire::{VALUES_MAX, count_values};
use aish_core::secret::Secret;
use aish_tools::Cancel;
use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde::Deserialize;
use std::borrow::Cow;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

/// Where the protocol is spoken.
pub const PATH: &str = "/mcp";
/// Connections at once; more wait, or take the place of one that was not let in yet.
const CONNECTIONS_MAX: usize = 64;
/// How long the head of a request may take to arrive, and how long a connection may lie idle.
const HEAD_TIMEOUT_S: u64 = 10;
/// Bytes of the head of a request, and of what is read at a time.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Bytes of the message that begins a session, and values in it: it is kept for as long as the session.
const INITIALIZE_BYTES_MAX: usize = 64 * 1024;
const INITIALIZE_VALUES_MAX: usize = 1_000;
/// How long the body of a request may take to arrive.
const BODY_TIMEOUT_S: u64 = 30;
/// How long open requests may take when it all ends.
const DRAIN_TIMEOUT_MS: u64 = 1_000;
/// How long to wait after no connection could be accepted, e.g. for want of file descriptors.
const ACCEPT_PAUSE_MS: u64 = 100;
/// The header that names a session (MCP, transports, session management).
const SESSION_HEADER: &str = "mcp-session-id";
/// The method that begins one (MCP, lifecycle).
const INITIALIZE: &str = "initialize";

type Service = StreamableHttpService<Handler, LocalSessionManager>;
type Answer = Response<BoxBody<Bytes, Infallible>>;

/// What all connections share.
struct Server {
    guard: Guard,
    service: Service,
    sessions: Arc<Sessions>,
    newcomers: Arc<Newcomers>,
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
    let sessions = Arc::new(Sessions::new());
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
            Arc::clone(&sessions.manager),
            config,
        ),
        sessions: Arc::clone(&sessions),
        newcomers: Arc::default(),
    });
    let mut connections = JoinSet::new();
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut minding = std::pin::pin!(sessions.end_calls_of_the_gone());
    loop {
        let accepted = tokio::select! {
            biased;
            () = aish_tools::cancelled(&mut stop) => break,
            () = &mut minding => continue,
            accepted = accept(&listener, &room, &server.newcomers) => accepted,
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
    newcomers: &Newcomers,
) -> Option<(TcpStream, OwnedSemaphorePermit)> {
    let Ok((stream, _)) = listener.accept().await else {
        tokio::time::sleep(Duration::from_millis(ACCEPT_PAUSE_MS)).await;
        return None;
    };
    if let Ok(place) = Arc::clone(room).try_acquire_owned() {
        return Some((stream, place));
    }
    newcomers.make_room();
    let place = Arc::clone(room).acquire_owned().await.ok()?;
    Some((stream, place))
}

/// Answers the requests of one connection. That it broke is the client's affair.
async fn connection(server: &Arc<Server>, stream: TcpStream, mut stop: Cancel) {
    let (newcomer, sent_away) = server.newcomers.arrive();
    let newcomer = Arc::new(newcomer);
    let answering = service_fn(|request| {
        let (server, newcomer) = (Arc::clone(server), Arc::clone(&newcomer));
        async move { Ok::<_, Infallible>(server.answer(request, &newcomer).await) }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_secs(HEAD_TIMEOUT_S))
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), answering);
    let mut serving = std::pin::pin!(serving);
    tokio::select! {
        _ = &mut serving => return,
        () = sent_away => return,
        () = aish_tools::cancelled(&mut stop) => serving.as_mut().graceful_shutdown(),
    }
    let _ = serving.await;
}

impl Server {
    async fn answer(&self, request: Request<Incoming>, newcomer: &Newcomer) -> Answer {
        if let Err((status, why)) = self.guard.admit(request.headers()) {
            return refusal(status, why);
        }
        newcomer.admit();
        if request.uri().path() != PATH {
            return refusal(StatusCode::NOT_FOUND, "the protocol is spoken at /mcp");
        }
        let Some(id) = session_id(request.headers()) else {
            return match read(request).await {
                Ok(request) if begins_a_session(&request) => self.begin(request).await,
                Ok(request) => self.service.handle(request.map(Full::new)).await,
                Err((status, why)) => refusal(status, why),
            };
        };
        if request.method() == Method::DELETE {
            self.sessions.end(&id);
        }
        let used = self.sessions.enter(&id);
        let mut request = match read(request).await {
            Ok(request) => request.map(Full::new),
            Err((status, why)) => return refusal(status, why),
        };
        let Some((in_use, end)) = used else {
            return self.service.handle(request).await;
        };
        request.extensions_mut().insert(end);
        let answer = self.service.handle(request).await;
        // The session is in use until the answer is sent or given up, a stream as well.
        answer.map(|body| {
            let holding = body.map_frame(move |frame| {
                let _ = &in_use;
                frame
            });
            holding.boxed()
        })
    }

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
        let answer = self.service.handle(request.map(Full::new)).await;
        if let Some(id) = session_id(answer.headers()) {
            self.sessions.begun(&id);
        }
        answer
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

/// The request with its body read whole: in time, and within its bounds.
async fn read(request: Request<Incoming>) -> Result<Request<Bytes>, (StatusCode, &'static str)> {
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
    Ok(Request::from_parts(head, body))
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
