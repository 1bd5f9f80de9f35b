//! What a server writes to its standard error: told line by line, the last of it kept for the message that says why it ended.

use std::collections::VecDeque;

/// Bytes that are kept of it.
pub const STDERR_BYTES_MAX: usize = 64 * 1024;
/// Bytes of one line; what is longer is told in pieces.
const STDERR_LINE_BYTES_MAX: usize = 4 * 1024;
/// Lines that the message of an ended server quotes.
const QUOTED_LINES_MAX: usize = 4;
/// Characters that it quotes.
const QUOTED_CHARS_MAX: usize = 600;

/// The last lines, not escaped.
#[derive(Debug, Default)]
pub(super) struct Tail {
    kept: VecDeque<String>,
    kept_bytes: usize,
    begun: Vec<u8>,
}

impl Tail {
    /// Takes what was written; returns the lines that are complete with it.
    pub(super) fn push(&mut self, mut bytes: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        while !bytes.is_empty() {
            // There always is room: a line that has none left is ended below.
            let room = STDERR_LINE_BYTES_MAX.saturating_sub(self.begun.len());
            let end = bytes.iter().take(room).position(|byte| *byte == b'\n');
            let (piece, rest) = bytes.split_at(end.unwrap_or(room).min(bytes.len()));
            self.begun.extend_from_slice(piece);
            bytes = rest.get(usize::from(end.is_some())..).unwrap_or_default();
            if end.is_some() || self.begun.len() >= STDERR_LINE_BYTES_MAX {
                lines.extend(self.end_line());
            }
        }
        lines
    }

    /// The line that was begun when nothing more comes.
    pub(super) fn end_line(&mut self) -> Option<String> {
        let bytes = std::mem::take(&mut self.begun);
        let line = String::from_utf8_lossy(&bytes).trim_end().to_owned();
        if line.is_empty() {
            return None;
        }
        self.kept_bytes += line.len();
        self.kept.push_back(line.clone());
        while self.kept_bytes > STDERR_BYTES_MAX {
            self.kept_bytes -= self.kept.pop_front().map_or(self.kept_bytes, |line| line.len());
        }
        Some(line)
    }

    /// The last lines as one, for a message; empty when there are none.
    pub(super) fn quote(&self) -> String {
        let skipped = self.kept.len().saturating_sub(QUOTED_LINES_MAX);
        let lines: Vec<&str> = self.kept.iter().skip(skipped).map(|line| line.trim()).collect();
        let quote = lines.join(" | ");
        let surplus = quote.chars().count().saturating_sub(QUOTED_CHARS_MAX);
        match surplus {
            0 => quote,
            _ => format!("…{}", quote.chars().skip(surplus).collect::<String>()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 6.6: lines are whole however they come, and the last are quoted.
    #[test]
    fn lines_and_quote() {
        let text = b"one\ntwo\r\n\nthree\nfour\nfive\nlast";
        for piece_bytes in 1..8 {
            let mut tail = Tail::default();
            let mut lines: Vec<String> = text.chunks(piece_bytes).flat_map(|piece| tail.push(piece)).collect();
            lines.extend(tail.end_line());
            assert_eq!(lines, ["one", "two", "three", "four", "five", "last"]);
            assert_eq!(tail.quote(), "three | four | five | last");
        }
    }

    /// SPEC 12: neither one endless line nor many fill the memory.
    #[test]
    fn floods() {
        let mut tail = Tail::default();
        let mut told = 0;
        for _ in 0..100 {
            told += tail.push(&[b'x'; 10_000]).iter().map(String::len).sum::<usize>();
        }
        told += tail.end_line().map_or(0, |line| line.len());
        assert_eq!(told, 1_000_000);
        assert!(tail.kept_bytes <= STDERR_BYTES_MAX && tail.begun.is_empty());
        assert_eq!(tail.kept_bytes, tail.kept.iter().map(String::len).sum::<usize>());
        assert!(tail.quote().chars().count() <= QUOTED_CHARS_MAX + 1);
    }
}
