//! Event streams: bytes in chunks of any size go in, whole events come out, bounded.
//!
//! The line and field rules are those of the WHATWG event-stream format: lines end in LF, CR or CRLF, also when the two bytes
//! of a CRLF come in different chunks; a byte-order mark and comments are skipped; `data` lines are joined by LF. Bytes that are
//! no UTF-8 become U+FFFD, once their line is whole. Unlike the SDK's own parser it survives such bytes, and it hands out ids and
//! delays without data, which the protocol uses to let a client come back later.

use sse_stream::Sse;
use std::collections::VecDeque;

/// Bytes of one event: its data so far and the line under way.
pub(super) const EVENT_BYTES_MAX: usize = 8 << 20;
/// Bytes of an event's id, which goes back in a header. A longer one is ignored.
const ID_BYTES_MAX: usize = 1 << 10;
/// The delay that a server may ask for before its stream is opened again: no busy loop, and nothing that overflows a clock.
const RETRY_MS_MIN: u64 = 100;
const RETRY_MS_MAX: u64 = 60 * 60 * 1000;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// An event is longer than [`EVENT_BYTES_MAX`]: the stream cannot be read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EventTooLong;

/// The state between two chunks.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// The part of a line that came without its end.
    line: Vec<u8>,
    /// The data of the event under way, with a line feed after each line.
    data: Vec<u8>,
    /// What else the event under way has.
    event: Sse,
    /// True when the last byte was a CR: an LF that follows belongs to it.
    after_cr: bool,
    /// True once the first line was seen, which alone may carry a byte-order mark.
    begun: bool,
}

impl Events {
    /// Takes the next chunk and appends the events that it completes.
    ///
    /// # Errors
    /// An event is too long.
    pub(super) fn feed(&mut self, chunk: &[u8], events: &mut VecDeque<Sse>) -> Result<(), EventTooLong> {
        let mut rest = chunk;
        loop {
            if self.after_cr && !rest.is_empty() {
                self.after_cr = false;
                rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            }
            let Some(at) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                return self.keep(rest);
            };
            let (line, tail) = rest.split_at(at);
            self.keep(line)?;
            self.after_cr = tail.first() == Some(&b'\r');
            rest = tail.get(1..).unwrap_or_default();
            let mut line = std::mem::take(&mut self.line);
            self.take_line(&line, events);
            line.clear();
            self.line = line;
        }
    }

    /// Ends the stream: some servers leave out the last empty line, or even the last line's end. What is left counts.
    pub(super) fn finish(&mut self, events: &mut VecDeque<Sse>) {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.take_line(&line, events);
        }
        self.dispatch(events);
    }

    fn keep(&mut self, part: &[u8]) -> Result<(), EventTooLong> {
        if self.data.len() + self.line.len() + part.len() > EVENT_BYTES_MAX {
            *self = Self::default();
            return Err(EventTooLong);
        }
        self.line.extend_from_slice(part);
        Ok(())
    }

    fn take_line(&mut self, line: &[u8], events: &mut VecDeque<Sse>) {
        let line = if std::mem::replace(&mut self.begun, true) {
            line
        } else {
            line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line)
        };
        if line.is_empty() {
            self.dispatch(events);
            return;
        }
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            Some(at) => (
                line.get(..at).unwrap_or_default(),
                line.get(at + 1..).unwrap_or_default(),
            ),
            None => (line, &b""[..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        let text = || String::from_utf8_lossy(value).into_owned();
        match field {
            b"data" => {
                self.data.extend_from_slice(value);
                self.data.push(b'\n');
            }
            b"event" => self.event.event = Some(text()),
            // An id with a NUL is to be ignored, says the format.
            b"id" if value.len() <= ID_BYTES_MAX && !value.contains(&0) => self.event.id = Some(text()),
            b"retry" => {
                let delay: Option<u64> = text().parse().ok();
                self.event.retry = delay
                    .map(|ms| ms.clamp(RETRY_MS_MIN, RETRY_MS_MAX))
                    .or(self.event.retry);
            }
            // Comments (an empty field name) and whatever else there may be.
            _ => {}
        }
    }

    fn dispatch(&mut self, events: &mut VecDeque<Sse>) {
        let mut event = std::mem::take(&mut self.event);
        if let Some((_, data)) = self.data.split_last() {
            event.data = Some(String::from_utf8_lossy(data).into_owned());
        }
        self.data.clear();
        if event.data.is_some() || event.id.is_some() || event.retry.is_some() {
            events.push_back(event);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(chunks: &[&[u8]]) -> Vec<Sse> {
        let mut events = Events::default();
        let mut seen = VecDeque::new();
        for chunk in chunks {
            events.feed(chunk, &mut seen).unwrap();
        }
        events.finish(&mut seen);
        seen.into()
    }

    /// SPEC 6.2: a stream means the same however it is cut into pieces.
    #[test]
    fn cut_anywhere() {
        let stream =
            "\u{feff}: hi\r\nid: 7\r\nretry: 500\rdata: ä\ndata:b\n\nevent: message\r\ndata: c\r\n\r\nid: 8\n\ndata: d"
                .as_bytes();
        let whole = read(&[stream]);
        let data: Vec<_> = whole.iter().map(|event| event.data.as_deref()).collect();
        assert_eq!(data, [Some("ä\nb"), Some("c"), None, Some("d")]);
        assert_eq!(
            whole.first().map(|event| (event.id.as_deref(), event.retry)),
            Some((Some("7"), Some(500)))
        );
        for at in 0..=stream.len() {
            let (left, right) = stream.split_at(at);
            assert_eq!(read(&[left, right]), whole, "cut at {at}");
        }
        let bytes: Vec<_> = stream.chunks(1).collect();
        assert_eq!(read(&bytes), whole);
    }

    /// SPEC 12: bytes that are no text do not end a stream.
    #[test]
    fn broken_text() {
        let events = read(&[b"data: a\xff\xc3\n\ndata: b\n\n"]);
        let data: Vec<_> = events.iter().map(|event| event.data.as_deref()).collect();
        assert_eq!(data, [Some("a\u{fffd}\u{fffd}"), Some("b")]);
    }

    /// SPEC 12: neither a line without an end nor an event without an end fills the memory.
    #[test]
    fn endless() {
        for piece in [vec![b'x'; 1 << 16], b"data: more\n".repeat(1 << 12)] {
            let mut events = Events::default();
            let mut seen = VecDeque::new();
            let mut fed = 0;
            while events.feed(&piece, &mut seen).is_ok() {
                fed += piece.len();
                // Of each such line less than a half is data.
                assert!(fed <= 3 * EVENT_BYTES_MAX && seen.is_empty());
            }
            assert_eq!(events.line.capacity() + events.data.capacity(), 0);
        }
    }

    /// SPEC 12: a server neither makes us spin nor sends back an id of any size.
    #[test]
    fn delays_and_ids_are_bounded() {
        let long = format!(
            "id: {}\nretry: 0\n\nretry: 99999999999999\n\nretry: x\n\n",
            "i".repeat(ID_BYTES_MAX + 1)
        );
        let events = read(&[long.as_bytes()]);
        let seen: Vec<_> = events.iter().map(|event| (event.id.clone(), event.retry)).collect();
        assert_eq!(seen, [(None, Some(RETRY_MS_MIN)), (None, Some(RETRY_MS_MAX))]);
    }

    proptest! {
        /// SPEC 12: any bytes read the same however they come, as no more than was sent.
        #[test]
        fn any_bytes(
            pieces in prop::collection::vec(
                prop_oneof![
                    Just(b"data: ".to_vec()),
                    Just(b"\n".to_vec()),
                    Just(b"\r".to_vec()),
                    Just(b"id: 7\nretry: 5\n".to_vec()),
                    Just(BYTE_ORDER_MARK.to_vec()),
                    prop::collection::vec(any::<u8>(), 0..20),
                ],
                0..40,
            ),
            chunk_bytes in 1usize..9,
        ) {
            let stream = pieces.concat();
            let whole = read(&[stream.as_slice()]);
            let chunks: Vec<_> = stream.chunks(chunk_bytes).collect();
            prop_assert_eq!(&read(&chunks), &whole);
            let data: usize = whole.iter().filter_map(|event| event.data.as_ref()).map(String::len).sum();
            // A byte that is no text becomes three.
            prop_assert!(data <= 3 * stream.len());
            prop_assert!(whole.iter().all(|event| event.id.as_ref().is_none_or(|id| id.len() <= ID_BYTES_MAX)));
        }
    }
}
