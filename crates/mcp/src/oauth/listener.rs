//! Where the browser comes back to after a login: one address of this machine, for one answer (RFC 8252 section 7.3).
//!
//! Anything on this machine, and every page in the browser, can send requests here: they are bounded, and only the one with this
//! login's state counts.

use crate::http::excerpt;
use crate::{ErrorKind, McpError};
use aish_core::secret::Secret;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;
use url::Url;

/// The path of the address.
const PATH: &str = "/callback";
/// Connections at once; further ones wait. Browsers open some that they never use.
const CONNECTIONS_MAX: usize = 8;
/// Bytes of a request's head.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// How long a request may take to come, and an answer to go.
const EXCHANGE_TIMEOUT_MS: u64 = 10_000;
/// Requests with another state that a login outlives.
const STRAYS_MAX: usize = 200;

/// Waits for the browser. Dropping it ends all of it.
pub(super) struct Listener {
    redirect: String,
    answers: mpsc::Receiver<Result<Secret, McpError>>,
    task: JoinHandle<()>,
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Listener {
    /// Listens on a free port of 127.0.0.1 for the answer to one login.
    pub(super) async fn start(expected: Expected) -> Result<Self, McpError> {
        let bound = TcpListener::bind(("127.0.0.1", 0)).await;
        let bound = bound.and_then(|listener| Ok((listener.local_addr()?, listener)));
        let (address, listener) = bound.map_err(|error| {
            let message = format!("no port to wait for the browser on: {error}");
            McpError::new(ErrorKind::Unreachable, message)
        })?;
        let redirect = format!("http://{address}{PATH}");
        let (sender, answers) = mpsc::channel(1);
        let desk = Desk {
            expected,
            redirect: redirect.clone(),
            sender,
            strays: AtomicUsize::new(0),
        };
        let task = tokio::spawn(accept(listener, Arc::new(desk)));
        Ok(Self {
            redirect,
            answers,
            task,
        })
    }

    /// The address, for the authorization server.
    pub(super) fn redirect(&self) -> &str {
        &self.redirect
    }

    /// The code that the browser brings for this login. Requests with another state are passed over: anything on this machine can
    /// send them. One with the state of this login and from another issuer ends it: the person was sent here by somebody else.
    pub(super) async fn code(&mut self) -> Result<Secret, McpError> {
        let answer = self.answers.recv().await;
        answer.unwrap_or_else(|| Err(McpError::new(ErrorKind::Closed, "the wait for the browser ended")))
    }
}

/// What the answer to this login must carry.
pub(super) struct Expected {
    pub(super) state: Secret,
    pub(super) issuer: Option<String>,
    /// Whether the issuer always says who it is (RFC 9207).
    pub(super) sends_issuer: bool,
}

impl Expected {
    fn is_meant_by(&self, answer: &Url) -> bool {
        value(answer, "state").as_deref() == Some(self.state.expose())
    }

    /// The code of an answer that has the state of this login.
    fn code(&self, answer: &Url) -> Result<Secret, McpError> {
        let refused = |why: String| Err(McpError::new(ErrorKind::Protocol, why));
        match (value(answer, "iss"), &self.issuer) {
            // Compared as texts (RFC 9207 section 2.4).
            (Some(issuer), Some(expected)) if issuer == *expected => {}
            (None, _) if !self.sends_issuer => {}
            (Some(_), None) if !self.sends_issuer => {}
            (Some(other), _) => return refused(format!("another issuer answered: {}", excerpt(&other))),
            (None, _) => return refused("the answer does not say who gave it (iss)".to_owned()),
        }
        if let Some(error) = value(answer, "error") {
            let said = value(answer, "error_description").unwrap_or_default();
            let why = format!("not allowed: {}", excerpt(&format!("{error} {said}")));
            return Err(McpError::new(ErrorKind::Cancelled, why));
        }
        match value(answer, "code").filter(|code| !code.is_empty()) {
            Some(code) => Ok(Secret::new(code)),
            None => refused("the browser's answer has no code".to_owned()),
        }
    }
}

/// A parameter of an answer. A name twice is no value at all: whoever checks the one and uses the other is deceived.
fn value(answer: &Url, name: &str) -> Option<String> {
    let mut values = answer.query_pairs().filter(|(key, _)| key == name);
    let first = values.next().map(|(_, value)| value.into_owned());
    first.filter(|_| values.next().is_none())
}

/// Receives the requests of all connections.
struct Desk {
    expected: Expected,
    redirect: String,
    sender: mpsc::Sender<Result<Secret, McpError>>,
    /// How many came with another state.
    strays: AtomicUsize,
}

impl Desk {
    /// Takes a request, and says what the browser shows: a status and a sentence.
    fn take(&self, head: &str) -> (&'static str, &'static str) {
        let Some(answer) = target(head, &self.redirect) else {
            return ("404 Not Found", "There is nothing here.");
        };
        if !self.expected.is_meant_by(&answer) {
            if self.strays.fetch_add(1, Ordering::Relaxed) >= STRAYS_MAX {
                let why = format!("more than {STRAYS_MAX} answers came that are not those of this login (state)");
                // Where there is an answer already, it counts.
                let _ = self.sender.try_send(Err(McpError::new(ErrorKind::Protocol, why)));
            }
            return ("400 Bad Request", "This is no answer to the login that aish waits for.");
        }
        let code = self.expected.code(&answer);
        let page = match &code {
            Ok(_) => ("200 OK", "aish has the answer. This page can be closed."),
            Err(error) if error.kind == ErrorKind::Cancelled => {
                ("200 OK", "Not allowed; see the terminal. This page can be closed.")
            }
            Err(_) => ("400 Bad Request", "aish cannot use this answer; see the terminal."),
        };
        match self.sender.try_send(code) {
            Ok(()) => page,
            Err(_) => ("409 Conflict", "There was an answer already."),
        }
    }
}

async fn accept(listener: TcpListener, desk: Arc<Desk>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        let Ok((socket, _)) = listener.accept().await else {
            // Out of descriptors, which passes.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let desk = Arc::clone(&desk);
        tokio::spawn(async move {
            let limit = Duration::from_millis(EXCHANGE_TIMEOUT_MS);
            // What does not come in time is no answer.
            let _ = tokio::time::timeout(limit, exchange(socket, &desk)).await;
            drop(place);
        });
    }
}

/// Reads one request and answers it.
async fn exchange(mut socket: TcpStream, desk: &Desk) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < HEAD_BYTES_MAX {
        if socket.read_buf(&mut head).await? == 0 {
            break;
        }
    }
    let (status, words) = desk.take(&String::from_utf8_lossy(&head));
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\n\
         cache-control: no-store\r\nreferrer-policy: no-referrer\r\nx-content-type-options: nosniff\r\n\r\n{words}\n",
        words.len() + 1
    );
    socket.write_all(answer.as_bytes()).await?;
    socket.shutdown().await
}

/// The address of a request for our path.
fn target(head: &str, redirect: &str) -> Option<Url> {
    let mut words = head.lines().next()?.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    let base = Url::parse(redirect).ok()?;
    let url = base.join(target).ok()?;
    (method == "GET" && url.path() == PATH && url.origin() == base.origin() && url.query().is_some()).then_some(url)
}
