//! Event streams: bytes in chunks of any size go in, whole events come out.
//!
//! This file owns the line and field rules of the WHATWG event-stream format and nothing else: what the data of an
//! event means is a codec's business. Lines end in LF, CR or CRLF, also when the two bytes of a CRLF come in different
//! chunks. A byte-order mark is skipped, comments and unknown fields are ignored, several `data` lines are joined by LF.
//! Bytes that are no UTF-8 become U+FFFD; a character cut in two by a chunk is not lost, because text is only decoded
//! once its line is whole.
//!
//! The parser works on bytes and hands out borrowed text. An event that lies whole in one chunk is never copied; what
//! does not is copied once. Each byte is looked at once, so that a hostile peer cannot make the work quadratic, and
//! [`LINE_BYTES_MAX`] and [`EVENT_BYTES_MAX`] bound the memory.
//!
//! ```
//! let mut parser = aish_provider::sse::Parser::new();
//! let mut seen = Vec::new();
//! for chunk in [&b"data: hel"[..], b"lo\r", b"\n\r\n"] {
//!     parser.feed(chunk, |event| seen.push(event.data.into_owned())).unwrap();
//! }
//! assert_eq!(seen, ["hello"]);
//! ```

use std::borrow::Cow;

/// Bytes of one line, its end not counted. A line is one JSON payload in practice; the largest that real servers send
/// are whole tool calls.
pub const LINE_BYTES_MAX: usize = 4 << 20;

/// Bytes of the data of one event.
pub const EVENT_BYTES_MAX: usize = 8 << 20;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// One event, borrowed from the chunk or from the parser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// The event's name; empty where the stream gave none (the format then says `message`).
    pub name: Cow<'a, str>,
    /// The data lines, joined by LF.
    pub data: Cow<'a, str>,
    /// The last id the stream gave, possibly with an earlier event; empty for none.
    pub id: Cow<'a, str>,
}

/// A bound was passed. The stream cannot be read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    /// A line is longer than [`LINE_BYTES_MAX`].
    #[error("a line of the event stream is longer than {LINE_BYTES_MAX} bytes")]
    LineTooLong,
    /// The data lines of an event are longer than [`EVENT_BYTES_MAX`] together.
    #[error("an event of the stream is longer than {EVENT_BYTES_MAX} bytes")]
    EventTooLong,
}

/// The state between two chunks.
#[derive(Debug, Default)]
pub struct Parser {
    /// The part of a line that came without its end.
    line: Vec<u8>,
    /// The name of the event under way.
    name: Vec<u8>,
    /// Its data, as far as it could not stay in a chunk.
    data: Vec<u8>,
    /// True once it has a data line, be it an empty one.
    has_data: bool,
    /// The last id.
    id: Vec<u8>,
    /// True when the last byte was a CR: an LF that follows belongs to it.
    after_cr: bool,
    /// True once the first line was seen, which alone may carry a byte-order mark.
    begun: bool,
    /// The bound that was passed.
    failed: Option<SseError>,
}

impl Parser {
    /// A parser at the beginning of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next chunk and calls `sink` for each event it completes, in order.
    ///
    /// # Errors
    /// A bound was passed; every later call fails with the same error.
    pub fn feed(&mut self, chunk: &[u8], mut sink: impl FnMut(Event<'_>)) -> Result<(), SseError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let outcome = self.feed_lines(chunk, &mut sink);
        if let Err(error) = outcome {
            // What was kept is of no more use, and a failed stream may be held for a while.
            *self = Self {
                failed: Some(error),
                ..Self::default()
            };
        }
        outcome
    }

    /// Ends the stream: some servers leave out the last empty line, or even the last line end. What is left is taken
    /// as an event; whether its data is whole is for the reader to find out.
    ///
    /// # Errors
    /// A bound was passed, now or before.
    pub fn finish(&mut self, sink: impl FnMut(Event<'_>)) -> Result<(), SseError> {
        let end: &[u8] = if self.line.is_empty() { b"\n" } else { b"\n\n" };
        // After a CR the first LF would be swallowed as the second half of a CRLF.
        self.after_cr = false;
        self.feed(end, sink)
    }

    fn feed_lines<'c>(&mut self, chunk: &'c [u8], sink: &mut impl FnMut(Event<'_>)) -> Result<(), SseError> {
        let mut rest = chunk;
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        // The one data line of the event under way, as long as it can stay where it is.
        let mut whole: Option<&'c [u8]> = None;
        while let Some(at) = memchr::memchr2(b'\n', b'\r', rest) {
            let (line, tail) = rest.split_at(at);
            let is_cr = tail.first() == Some(&b'\r');
            rest = tail.get(1..).unwrap_or_default();
            if is_cr {
                self.after_cr = rest.is_empty();
                rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            }
            if self.line.is_empty() {
                self.take_line(line, &mut whole, sink)?;
            } else {
                self.keep_line(line)?;
                let line = std::mem::take(&mut self.line);
                // This line's bytes are the parser's own and go away with it, so its data is copied at once.
                let mut owned = None;
                self.take_line(&line, &mut owned, sink)?;
                if let Some(data) = owned {
                    self.keep_data(data)?;
                }
                self.line = line;
                self.line.clear();
            }
        }
        if let Some(data) = whole {
            self.keep_data(data)?;
        }
        self.keep_line(rest)
    }

    /// Takes one whole line. `whole` holds the event's only data line so far, if it needs no copy.
    fn take_line<'l>(
        &mut self,
        line: &'l [u8],
        whole: &mut Option<&'l [u8]>,
        sink: &mut impl FnMut(Event<'_>),
    ) -> Result<(), SseError> {
        if line.len() > LINE_BYTES_MAX {
            return Err(SseError::LineTooLong);
        }
        let line = if std::mem::replace(&mut self.begun, true) {
            line
        } else {
            line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line)
        };
        if line.is_empty() {
            self.emit(whole.take(), sink);
            return Ok(());
        }
        let (field, value) = match memchr::memchr(b':', line) {
            Some(at) => (
                line.get(..at).unwrap_or_default(),
                line.get(at + 1..).unwrap_or_default(),
            ),
            None => (line, &b""[..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" if !self.has_data && whole.is_none() => *whole = Some(value),
            b"data" => {
                if let Some(first) = whole.take() {
                    self.keep_data(first)?;
                }
                self.keep_data(value)?;
            }
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(value);
            }
            // An id with a NUL is to be ignored, says the format.
            b"id" if !value.contains(&0) => {
                self.id.clear();
                self.id.extend_from_slice(value);
            }
            // Comments (an empty field name), `retry` and whatever else there may be.
            _ => {}
        }
        Ok(())
    }

    fn emit(&mut self, whole: Option<&[u8]>, sink: &mut impl FnMut(Event<'_>)) {
        let data = match whole {
            Some(data) => Some(data),
            None if self.has_data => Some(self.data.as_slice()),
            None => None,
        };
        if let Some(data) = data {
            sink(Event {
                name: text(&self.name),
                data: text(data),
                id: text(&self.id),
            });
        }
        self.name.clear();
        self.data.clear();
        self.has_data = false;
    }

    fn keep_data(&mut self, value: &[u8]) -> Result<(), SseError> {
        if self.data.len() + value.len() >= EVENT_BYTES_MAX {
            return Err(SseError::EventTooLong);
        }
        if self.has_data {
            self.data.push(b'\n');
        }
        self.data.extend_from_slice(value);
        self.has_data = true;
        Ok(())
    }

    fn keep_line(&mut self, part: &[u8]) -> Result<(), SseError> {
        if self.line.len() + part.len() > LINE_BYTES_MAX {
            return Err(SseError::LineTooLong);
        }
        self.line.extend_from_slice(part);
        Ok(())
    }
}

/// Bytes as text. What is UTF-8 already, and nearly all is, takes the fast way.
fn text(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}

#[cfg(test)]
#[path = "sse_tests.rs"]
mod tests;
