//! An HTTP/1.1 client on raw sockets: it says what a test wants said, also what no client library would, and reads an event
//! stream as it comes.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use super::default_wait;

/// An answer, read to its end.
#[derive(Clone, Debug)]
pub struct Response {
    /// Status code; 0 when nothing that is HTTP came.
    pub status: u16,
    /// Status line and headers, in lower case.
    pub head: String,
    /// The body, without its framing.
    pub body: String,
}

impl Response {
    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("not JSON ({error}): {self:?}"))
    }

    /// The first header of that name (lower case); values are in lower case as well.
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = head.lines().filter_map(|line| line.split_once(':'));
    fields.find(|(key, _)| *key == name).map(|(_, value)| value.trim())
}

/// A connection to a port of 127.0.0.1 on which no wait is without end.
pub fn connect(port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(default_wait()))?;
    stream.set_write_timeout(Some(default_wait()))?;
    Ok(stream)
}

/// Sends a request with exactly these headers, its length and `Connection: close`, and reads the answer.
pub fn ask(port: u16, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> io::Result<Response> {
    read_response(&mut begin(port, method, path, headers, body)?)
}

/// Sends a request as [`ask`] does, and leaves the answer to whoever reads it, or to nobody.
pub fn begin(port: u16, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> io::Result<TcpStream> {
    let mut stream = connect(port)?;
    let mut request = format!(
        "{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    stream.write_all(format!("{request}\r\n{body}").as_bytes())?;
    Ok(stream)
}

/// Reads an answer until the connection is closed. Cut off in the middle it is an error.
pub fn read_response(stream: &mut TcpStream) -> io::Result<Response> {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Ok(_) => {}
        // It said what it had to say and closed while we were still talking.
        Err(error) if error.kind() == ErrorKind::ConnectionReset && !bytes.is_empty() => {}
        Err(error) => return Err(error),
    }
    let mut reader = BufReader::new(bytes.as_slice());
    let head = read_head(&mut reader)?;
    let mut body = Vec::new();
    if is_chunked(&head) {
        while let Some(chunk) = read_chunk(&mut reader)? {
            body.extend(chunk);
        }
    } else {
        reader.read_to_end(&mut body)?;
        let declared = header(&head, "content-length").and_then(|length| length.parse().ok());
        if declared.is_some_and(|length: usize| body.len() < length) {
            return Err(ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(Response {
        status: status(&head),
        head,
        body: String::from_utf8_lossy(&body).into_owned(),
    })
}

fn status(head: &str) -> u16 {
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    status.unwrap_or(0)
}

fn is_chunked(head: &str) -> bool {
    header(head, "transfer-encoding").is_some_and(|coding| coding.contains("chunked"))
}

/// Status line and headers in lower case, without the empty line; an error when the connection ends before it.
fn read_head(reader: &mut impl BufRead) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if reader.read_until(b'\n', &mut head)? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(String::from_utf8_lossy(&head).trim_end().to_lowercase())
}

/// The next chunk; `None` at the last one, and an error when the connection ends before it.
fn read_chunk(reader: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    let length = usize::from_str_radix(line.trim(), 16).map_err(io::Error::other)?;
    let mut chunk = vec![0; length];
    reader.read_exact(&mut chunk)?;
    reader.read_line(&mut line)?;
    Ok((length > 0).then_some(chunk))
}

/// One event of an event stream.
#[derive(Clone, Debug)]
pub struct Event {
    /// Its id, a number where the server keeps to its ledger.
    pub id: Option<u64>,
    /// Its kind, `message` where none is said.
    pub kind: String,
    /// Its data as JSON.
    pub data: Value,
}

/// An event stream that is read while it comes. Dropping it closes the connection.
pub struct Events {
    reader: BufReader<TcpStream>,
    /// Status line and headers, in lower case.
    pub head: String,
    bytes: Vec<u8>,
}

impl Events {
    /// Sends a request and reads the head of its answer, which must be an event stream.
    pub fn open(port: u16, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Self {
        let stream = begin(port, method, path, headers, body).expect("send a request");
        let mut reader = BufReader::new(stream);
        let head = read_head(&mut reader).expect("the head of an answer");
        let kind = header(&head, "content-type").unwrap_or_default();
        assert!(kind.starts_with("text/event-stream"), "no event stream: {head}");
        Self {
            reader,
            head,
            bytes: Vec::new(),
        }
    }

    /// The next event; `None` when the stream has ended or was cut off.
    pub fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(end) = self.bytes.windows(2).position(|pair| pair == b"\n\n") {
                let block: Vec<u8> = self.bytes.drain(..end + 2).collect();
                if let Some(event) = event(&String::from_utf8_lossy(&block)) {
                    return Some(event);
                }
                continue;
            }
            let piece = if is_chunked(&self.head) {
                read_chunk(&mut self.reader).ok().flatten()?
            } else {
                let piece = self.reader.fill_buf().ok()?.to_vec();
                self.reader.consume(piece.len());
                piece
            };
            if piece.is_empty() {
                return None;
            }
            self.bytes.extend(piece);
        }
    }

    /// Reads on to the first event of that kind and gives it; fails when the stream ends before.
    pub fn until(&mut self, kind: &str) -> Event {
        let mut seen = Vec::new();
        while let Some(event) = self.next() {
            if event.kind == kind {
                return event;
            }
            seen.push(event.kind);
        }
        panic!("the stream ended without {kind}: {seen:?}");
    }

    /// Everything to the end.
    pub fn rest(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.next()).collect()
    }
}

/// A block of lines as an event; `None` for comments, which keep a connection alive.
fn event(block: &str) -> Option<Event> {
    let field = |name: &'static str| {
        let values = block
            .lines()
            .filter_map(move |line| line.strip_prefix(name)?.strip_prefix(':'));
        values.map(|value| value.strip_prefix(' ').unwrap_or(value).to_owned())
    };
    let data: Vec<String> = field("data").collect();
    if data.is_empty() {
        return None;
    }
    let data = data.join("\n");
    let json = serde_json::from_str(&data).unwrap_or_else(|error| panic!("{data:?} is not JSON: {error}"));
    Some(Event {
        id: field("id").next().and_then(|id| id.parse().ok()),
        kind: field("event").next().unwrap_or_else(|| "message".to_owned()),
        data: json,
    })
}
