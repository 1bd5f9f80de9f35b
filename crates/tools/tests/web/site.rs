//! A server on this machine that answers each path as it is told, down to the bytes and the moment they are sent.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// How a path is answered.
#[derive(Clone)]
pub enum Answer {
    /// With these bytes, then the connection is closed.
    Bytes(Vec<u8>),
    /// With these bytes, and then with nothing more.
    Stall(Vec<u8>),
    /// With these bytes, and then with this again and again, until nobody reads.
    Endless(Vec<u8>, Vec<u8>),
}

/// A running server; it ends with the runtime of its test.
pub struct Site {
    pub port: u16,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Site {
    /// Serves these paths; as a proxy, these whole addresses. Any other is not found.
    pub async fn serving<P: Into<String>>(answers: impl IntoIterator<Item = (P, Answer)>) -> Self {
        let answers: BTreeMap<String, Answer> = answers
            .into_iter()
            .map(|(path, answer)| (path.into(), answer))
            .collect();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (answers, heard) = (Arc::new(answers), Arc::clone(&requests));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&answers), Arc::clone(&heard)));
            }
        });
        Self { port, requests }
    }

    /// An address on it.
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// The heads of the requests so far.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

async fn serve(mut stream: TcpStream, answers: Arc<BTreeMap<String, Answer>>, heard: Arc<Mutex<Vec<String>>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    let head = String::from_utf8(head).unwrap();
    let path = head.split(' ').nth(1).unwrap().to_owned();
    heard.lock().unwrap().push(head);
    let answer = answers.get(&path).cloned();
    match answer.unwrap_or_else(|| response("404 Not Found", "text/plain", "nothing here")) {
        Answer::Bytes(bytes) => {
            let _ = stream.write_all(&bytes).await;
            let _ = stream.shutdown().await;
        }
        Answer::Stall(bytes) => {
            let _ = stream.write_all(&bytes).await;
            // Until the client goes.
            let _ = stream.read_u8().await;
        }
        Answer::Endless(bytes, again) => {
            let _ = stream.write_all(&bytes).await;
            while stream.write_all(&again).await.is_ok() {}
        }
    }
}

/// A whole response.
pub fn response(status: &str, content_type: &str, body: impl AsRef<[u8]>) -> Answer {
    let body = body.as_ref();
    let length = format!("content-length: {}\r\n", body.len());
    let mut bytes = head(status, &format!("content-type: {content_type}\r\n{length}"));
    bytes.extend_from_slice(body);
    Answer::Bytes(bytes)
}

/// A page.
pub fn page(html: &str) -> Answer {
    response("200 OK", "text/html; charset=utf-8", html)
}

/// A redirect.
pub fn redirect(to: &str) -> Answer {
    let headers = format!("location: {to}\r\nset-cookie: seen=1\r\ncontent-length: 0\r\n");
    Answer::Bytes(head("302 Found", &headers))
}

/// The head of a response; the connection is closed after it.
pub fn head(status: &str, headers: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\nconnection: close\r\n{headers}\r\n").into_bytes()
}

/// So many bytes, packed.
pub fn packed(bytes: usize) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    let piece = vec![b'a'; 1 << 20];
    for _ in 0..bytes / piece.len() {
        encoder.write_all(&piece).unwrap();
    }
    encoder.finish().unwrap()
}
