//! A TCP server that gives each connection one written answer, and remembers what it was asked.

use aish_core::secret::Secret;
use aish_mcp::http::HttpClient;
use aish_mcp::{ErrorKind, HttpEndpoint, McpError};
use futures_util::StreamExt;
use rmcp::model::{ClientJsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse};
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The token that all clients here have: it must come out nowhere.
pub const TOKEN: &str = "token-that-nobody-may-see";

/// What a connection is answered with, after its one request.
pub enum Answer {
    /// These bytes; then the connection is closed.
    Bytes(Vec<u8>),
    /// These bytes, then a piece again and again, at most that many bytes.
    Flood(Vec<u8>, Vec<u8>, usize),
}

/// A response of a server that closes its connections and says nothing of lengths, as lmcp does.
pub fn response(status: &str, headers: &str, body: &str) -> Answer {
    Answer::Bytes(format!("HTTP/1.1 {status}\r\nconnection: close\r\n{headers}\r\n{body}").into_bytes())
}

/// A response that is an event stream.
pub fn events(body: &str) -> Answer {
    response("200 OK", "content-type: text/event-stream\r\n", body)
}

/// A response that is JSON.
pub fn json_body(body: &str) -> Answer {
    response("200 OK", "content-type: application/json\r\n", body)
}

#[derive(Default)]
struct Seen {
    requests: Mutex<Vec<String>>,
    flooded: AtomicUsize,
}

/// The server; it ends with the test's runtime.
pub struct Server {
    address: SocketAddr,
    seen: Arc<Seen>,
}

impl Server {
    /// Listens; each connection gets the next answer.
    pub async fn start(answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Seen::default());
        let watching = Arc::clone(&seen);
        let mut answers: VecDeque<_> = answers.into();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                if let Some(answer) = answers.pop_front() {
                    tokio::spawn(give(answer, socket, Arc::clone(&watching)));
                }
            }
        });
        Self { address, seen }
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// The requests so far, head and body as text.
    pub fn requests(&self) -> Vec<String> {
        self.seen.requests.lock().unwrap().clone()
    }

    /// How many bytes of a flood a client took, its socket's buffers included.
    pub fn flooded(&self) -> usize {
        self.seen.flooded.load(Ordering::SeqCst)
    }

    /// A client of it, with [`TOKEN`].
    pub fn client(&self) -> HttpClient {
        client(&endpoint(&self.url()))
    }
}

/// An endpoint with [`TOKEN`].
pub fn endpoint(url: &str) -> HttpEndpoint {
    HttpEndpoint {
        url: url.to_owned(),
        token: Some(Secret::new(TOKEN)),
        headers: vec![("X-Key".to_owned(), Secret::new("key-that-nobody-may-see"))],
    }
}

/// A client that follows no redirect and uses no proxy.
pub fn reqwest_client() -> reqwest::Client {
    // A second test of the process finds it installed.
    let _installed = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .build()
        .unwrap()
}

/// A client of an endpoint.
pub fn client(endpoint: &HttpEndpoint) -> HttpClient {
    HttpClient::new(endpoint, &reqwest_client()).unwrap()
}

/// The request that all tests post.
pub const ID: RequestId = RequestId::Number(7);

/// What posting a message came to.
pub async fn post(
    client: &HttpClient,
    message: Value,
    session: Option<&str>,
) -> Result<StreamableHttpPostResponse, McpError> {
    let message: ClientJsonRpcMessage = serde_json::from_value(message).unwrap();
    let posted = client
        .post_message("".into(), message, session.map(Into::into), None, HashMap::new())
        .await;
    posted.map_err(|error| match error {
        StreamableHttpError::Client(error) => error,
        other => panic!("{other:?}"),
    })
}

/// What the request came to: the messages for the SDK, and the failure that is kept.
pub async fn ask(client: &HttpClient, session: Option<&str>) -> (Vec<Value>, Option<McpError>) {
    let request = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "t"}});
    let messages = match post(client, request, session).await {
        Ok(StreamableHttpPostResponse::Json(message, _)) => vec![serde_json::to_value(message).unwrap()],
        Ok(StreamableHttpPostResponse::Sse(stream, _)) => {
            let data: Vec<_> = stream.filter_map(|sse| async { sse.unwrap().data }).collect().await;
            data.iter()
                .map(|data| {
                    // What comes out is read by the SDK without a second look.
                    let _readable: ServerJsonRpcMessage = serde_json::from_str(data).unwrap();
                    serde_json::from_str(data).unwrap()
                })
                .collect()
        }
        Ok(StreamableHttpPostResponse::Accepted) => Vec::new(),
        Ok(other) => panic!("{other:?}"),
        Err(error) => {
            assert_eq!(
                client.failures().take(&ID).as_ref(),
                Some(&error),
                "the failure is kept"
            );
            return (Vec::new(), Some(error));
        }
    };
    (messages, client.failures().take(&ID))
}

/// The failure that one answer comes to.
pub async fn failure(answer: Answer, session: Option<&str>) -> (ErrorKind, String) {
    let server = Server::start(vec![answer]).await;
    let (messages, error) = ask(&server.client(), session).await;
    assert_eq!(messages, Vec::<Value>::new());
    let error = error.unwrap();
    assert!(!format!("{error:?}").contains("nobody-may-see"), "{error:?}");
    (error.kind, error.message.replace(&server.url(), "URL"))
}

async fn give(answer: Answer, mut socket: TcpStream, seen: Arc<Seen>) {
    let Some(request) = read_request(&mut socket).await else {
        return;
    };
    seen.requests.lock().unwrap().push(request);
    match answer {
        Answer::Bytes(bytes) => {
            if socket.write_all(&bytes).await.is_err() {
                return;
            }
        }
        Answer::Flood(head, piece, bytes_max) => {
            if socket.write_all(&head).await.is_err() {
                return;
            }
            while seen.flooded.load(Ordering::SeqCst) < bytes_max {
                if socket.write_all(&piece).await.is_err() {
                    return;
                }
                seen.flooded.fetch_add(piece.len(), Ordering::SeqCst);
            }
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
