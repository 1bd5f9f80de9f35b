//! A TCP server that follows a script: one list of steps for each connection, in the order they come.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

/// What the server does next. A connection begins by reading one request and ends by being closed.
#[derive(Clone)]
pub enum Step {
    /// Writes these bytes.
    Write(Vec<u8>),
    /// Reads another request.
    Read,
    /// Waits for the test to say go.
    Wait(Arc<Mutex<Option<oneshot::Receiver<()>>>>),
    /// Writes that many bytes of a letter, or as many as the client takes.
    Flood(usize),
    /// Does nothing more, with the connection open.
    Hang,
}

impl Step {
    /// A step that waits, and what makes it go on.
    pub fn gate() -> (oneshot::Sender<()>, Self) {
        let (go, wait) = oneshot::channel();
        (go, Self::Wait(Arc::new(Mutex::new(Some(wait)))))
    }
}

/// A response that ends with its connection.
pub fn response(status: &str, headers: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\nconnection: close\r\n{headers}\r\n{body}").into_bytes()
}

/// A response after which the connection can be used again.
pub fn chunked(status: &str, body: &str) -> Vec<u8> {
    let size = body.len();
    format!("HTTP/1.1 {status}\r\ntransfer-encoding: chunked\r\n\r\n{size:x}\r\n{body}\r\n0\r\n\r\n").into_bytes()
}

#[derive(Default)]
struct Seen {
    requests: Mutex<Vec<String>>,
    connections: AtomicUsize,
    flooded: AtomicUsize,
}

/// The server; it ends with the test's runtime.
pub struct Server {
    address: SocketAddr,
    seen: Arc<Seen>,
}

impl Server {
    pub async fn start(scripts: Vec<Vec<Step>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Seen::default());
        let watching = Arc::clone(&seen);
        let mut scripts: VecDeque<_> = scripts.into();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                watching.connections.fetch_add(1, Ordering::SeqCst);
                let script = scripts.pop_front().unwrap_or_default();
                tokio::spawn(follow(script, socket, Arc::clone(&watching)));
            }
        });
        Self { address, seen }
    }

    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The requests so far, head and body as text.
    pub fn requests(&self) -> Vec<String> {
        self.seen.requests.lock().unwrap().clone()
    }

    pub fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::SeqCst)
    }

    /// How many bytes a client took of a flood, its socket's buffers included.
    pub fn flooded(&self) -> usize {
        self.seen.flooded.load(Ordering::SeqCst)
    }
}

async fn follow(script: Vec<Step>, mut socket: TcpStream, seen: Arc<Seen>) {
    let steps = std::iter::once(Step::Read).chain(script);
    for step in steps {
        match step {
            Step::Read => match read_request(&mut socket).await {
                Some(request) => seen.requests.lock().unwrap().push(request),
                None => return,
            },
            Step::Write(bytes) => {
                if socket.write_all(&bytes).await.is_err() {
                    return;
                }
            }
            Step::Wait(gate) => {
                let gate = gate.lock().unwrap().take().unwrap();
                gate.await.unwrap();
            }
            Step::Flood(bytes) => {
                let piece = vec![b'x'; 1 << 16];
                for _ in 0..bytes / piece.len() {
                    if socket.write_all(&piece).await.is_err() {
                        return;
                    }
                    seen.flooded.fetch_add(piece.len(), Ordering::SeqCst);
                }
            }
            Step::Hang => std::future::pending().await,
        }
    }
    // Closing with unread bytes would reset the connection and lose what was written.
    let _closed = socket.shutdown().await;
}

async fn read_request(socket: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return Some(text);
            }
        }
        let mut piece = [0; 4096];
        match socket.read(&mut piece).await {
            Ok(0) | Err(_) => return None,
            Ok(read) => bytes.extend_from_slice(&piece[..read]),
        }
    }
}
