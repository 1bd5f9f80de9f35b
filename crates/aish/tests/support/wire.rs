//! Just enough HTTP/1.1 for the fake server: reading a request whole, framing a body.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::Value;

/// The longest request body that is read, in bytes.
const BODY_BYTES_MAX: usize = 64 << 20;
/// The most header lines that are read.
const HEADER_LINES_MAX: usize = 200;

/// A request as it came in.
#[derive(Clone, Debug)]
pub struct Received {
    /// `GET`, `POST`, …
    pub method: String,
    /// Path with query, e.g. `/v1/chat/completions`.
    pub path: String,
    /// Names in lower case, in order.
    pub headers: Vec<(String, String)>,
    /// The body as JSON; null when it is empty or is none.
    pub json: Value,
    /// The body byte for byte.
    pub body: Vec<u8>,
    /// Which connection carried it, counted from 0.
    pub connection: usize,
}

impl Received {
    /// The first header of that name (lower case).
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    /// The `messages` array; empty when there is none.
    pub fn messages(&self) -> &[Value] {
        self.json["messages"].as_array().map_or(&[], Vec::as_slice)
    }

    /// Roles of the messages in order, joined by a space: what most assertions about a projection need.
    pub fn roles(&self) -> String {
        let roles: Vec<&str> = self
            .messages()
            .iter()
            .map(|m| m["role"].as_str().unwrap_or("?"))
            .collect();
        roles.join(" ")
    }

    /// Names of the tools offered, in order.
    pub fn tool_names(&self) -> Vec<&str> {
        let tools = self.json["tools"].as_array().map_or(&[][..], Vec::as_slice);
        tools
            .iter()
            .filter_map(|tool| tool["function"]["name"].as_str())
            .collect()
    }

    /// The text of the last message, whatever its role; parts are joined.
    pub fn last_text(&self) -> String {
        self.messages()
            .last()
            .map_or_else(String::new, |message| content_text(&message["content"]))
    }
}

/// The text of a `content` that is a string or an array of parts.
pub fn content_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

/// Reads the next request of a connection; `None` when the peer has closed it.
pub fn read_request(stream: &mut BufReader<TcpStream>, connection: usize) -> io::Result<Option<Received>> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let (Some(method), Some(path)) = (words.next(), words.next()) else {
        return Err(io::Error::other(format!("not a request line: {line:?}")));
    };
    let (method, path) = (method.to_owned(), path.to_owned());
    let headers = read_headers(stream)?;
    let find = |name: &str| {
        headers
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    };
    if find("expect").is_some() {
        stream.get_mut().write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    let body = if find("transfer-encoding").is_some_and(|coding| coding.contains("chunked")) {
        read_chunked(stream)?
    } else {
        let length = find("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
        read_exactly(stream, length)?
    };
    let json = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Ok(Some(Received {
        method,
        path,
        headers,
        json,
        body,
        connection,
    }))
}

fn read_headers(stream: &mut BufReader<TcpStream>) -> io::Result<Vec<(String, String)>> {
    let mut headers = Vec::new();
    for _ in 0..HEADER_LINES_MAX {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        let line = line.trim_end();
        if line.is_empty() {
            return Ok(headers);
        }
        let (name, value) = line
            .split_once(':')
            .ok_or_else(|| io::Error::other(format!("not a header: {line:?}")))?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    Err(io::Error::other("too many header lines"))
}

fn read_exactly(stream: &mut BufReader<TcpStream>, length: usize) -> io::Result<Vec<u8>> {
    if length > BODY_BYTES_MAX {
        return Err(io::Error::other(format!("a body of {length} bytes")));
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok(body)
}

fn read_chunked(stream: &mut BufReader<TcpStream>) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        let length = usize::from_str_radix(line.trim(), 16).map_err(io::Error::other)?;
        body.extend(read_exactly(stream, length)?);
        stream.read_line(&mut String::new())?;
        if length == 0 {
            return Ok(body);
        }
    }
}

/// The words after a status code; clients ignore them, people reading a transcript do not.
pub fn reason_phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        404 => "Not Found",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Status",
    }
}
