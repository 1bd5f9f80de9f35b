//! Where the browser comes back to after a login: one address of this machine, for one answer (RFC 8252 section 7.3).
//!
//! Anything on this machine, and every page in the browser, can send requests here: they are bounded, and only the one with this
//! login's state counts.

use crate::http::excerpt;
use crate::{ErrorKind, McpError};
use aish_core::secret::Secret;
use std::sync::Arc;
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

/// Waits for the browser. Dropping it ends all of it.
pub(super) struct Listener {
    redirect: String,
    answers: mpsc::Receiver<Url>,
    task: JoinHandle<()>,
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Listener {
    /// Listens on a free port of 127.0.0.1.
    pub(super) async fn start() -> Result<Self, McpError> {
        let bound = TcpListener::bind(("127.0.0.1", 0)).await;
        let bound = bound.and_then(|listener| Ok((listener.local_addr()?, listener)));
        let (address, listener) = bound.map_err(|error| {
            let message = format!("no port to wait for the browser on: {error}");
            McpError::new(ErrorKind::Unreachable, message)
        })?;
        let redirect = format!("http://{address}{PATH}");
        let (sender, answers) = mpsc::channel(1);
        let task = tokio::spawn(accept(listener, redirect.clone(), sender));
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

    /// The code that the browser brings for this login. A request with another state, or from another issuer, ends it: the person
    /// was sent here by somebody else.
    pub(super) async fn code(&mut self, expected: &Expected<'_>) -> Result<Secret, McpError> {
        let answer = self.answers.recv().await;
        let answer = answer.ok_or_else(|| McpError::new(ErrorKind::Closed, "the wait for the browser ended"))?;
        expected.code(&answer)
    }
}

/// What the answer to this login must carry.
pub(super) struct Expected<'a> {
    pub(super) state: &'a str,
    pub(super) issuer: Option<&'a str>,
    /// Whether the issuer always says who it is (RFC 9207).
    pub(super) sends_issuer: bool,
}

impl Expected<'_> {
    fn code(&self, answer: &Url) -> Result<Secret, McpError> {
        let refused = |why: String| Err(McpError::new(ErrorKind::Protocol, why));
        let value = |name: &str| {
            let mut values = answer.query_pairs().filter(|(key, _)| key == name);
            let first = values.next().map(|(_, value)| value.into_owned());
            // A name twice is no value at all: whoever checks the one and uses the other is deceived.
            first.filter(|_| values.next().is_none())
        };
        if value("state").as_deref() != Some(self.state) {
            return refused("the browser's answer is not that of this login (state)".to_owned());
        }
        match (value("iss"), self.issuer) {
            // Compared as texts (RFC 9207 section 2.4).
            (Some(issuer), Some(expected)) if issuer == expected => {}
            (None, _) if !self.sends_issuer => {}
            (Some(_), None) if !self.sends_issuer => {}
            (Some(other), _) => return refused(format!("another issuer answered: {}", excerpt(&other))),
            (None, _) => return refused("the answer does not say who gave it (iss)".to_owned()),
        }
        if let Some(error) = value("error") {
            let said = value("error_description").unwrap_or_default();
            let why = format!("not allowed: {}", excerpt(&format!("{error} {said}")));
            return Err(McpError::new(ErrorKind::Cancelled, why));
        }
        match value("code").filter(|code| !code.is_empty()) {
            Some(code) => Ok(Secret::new(code)),
            None => refused("the browser's answer has no code".to_owned()),
        }
    }
}

async fn accept(listener: TcpListener, redirect: String, sender: mpsc::Sender<Url>) {
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
        let (redirect, sender) = (redirect.clone(), sender.clone());
        tokio::spawn(async move {
            let limit = Duration::from_millis(EXCHANGE_TIMEOUT_MS);
            // What does not come in time is no answer.
            let _ = tokio::time::timeout(limit, exchange(socket, &redirect, &sender)).await;
            drop(place);
        });
    }
}

/// Reads one request and answers it.
async fn exchange(mut socket: TcpStream, redirect: &str, sender: &mpsc::Sender<Url>) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < HEAD_BYTES_MAX {
        if socket.read_buf(&mut head).await? == 0 {
            break;
        }
    }
    let target = target(&String::from_utf8_lossy(&head), redirect);
    let (status, words) = match target {
        Some(url) => match sender.try_send(url) {
            Ok(()) => ("200 OK", "aish has the answer. This page can be closed."),
            Err(_) => ("409 Conflict", "There was an answer already."),
        },
        None => ("404 Not Found", "There is nothing here."),
    };
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
