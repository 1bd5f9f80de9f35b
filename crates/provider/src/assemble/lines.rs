//! Where in a text we are: at the beginning of the reply, of a line, within one, or in a code fence or quotation.
//!
//! What a model writes in tags or tokens is markup only in some of these places; elsewhere it writes about them. A
//! [`Lines`] goes through a text that comes in pieces once and stops where markup may begin.

use memchr::{memchr, memchr3};

/// Where markup may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// Within a line: only tokens that nobody writes in prose.
    Anywhere,
    /// At the beginning of a line.
    Line,
    /// At the beginning of the reply.
    Reply,
}

/// What has been seen of the line under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Line {
    /// White space.
    #[default]
    Blank,
    /// What may become the rail of a fence: the letter, and how often.
    Rail(u8, u8),
    /// Anything else.
    Text,
}

/// How many letters make a rail.
const RAIL_LETTERS: u8 = 3;

/// Follows a text.
#[derive(Debug, Default)]
pub(super) struct Lines {
    line: Line,
    is_in_fence: bool,
    is_quoted: bool,
    has_begun: bool,
}

impl Lines {
    /// Goes on through `text` from that byte to the first place where `opens` says markup may begin, outside fences and
    /// quotations, and stops before it; none when the text is through. Call it with all of the text that was not passed
    /// yet; after a stop, go on with [`Self::pass`].
    pub(super) fn next(&mut self, text: &str, opens: impl Fn(&str, Place) -> bool) -> Option<(usize, Place)> {
        let bytes = text.as_bytes();
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            if self.line == Line::Text {
                let rest = bytes.get(at..).unwrap_or_default();
                let jump = if self.is_in_fence {
                    memchr(b'\n', rest)
                } else {
                    memchr3(b'\n', b'<', b'[', rest)
                };
                at += jump?;
                let is_mark = bytes.get(at).is_some_and(|byte| *byte != b'\n');
                if is_mark && opens(text.get(at..).unwrap_or_default(), Place::Anywhere) {
                    return Some((at, Place::Anywhere));
                }
            } else if self.line == Line::Blank && !byte.is_ascii_whitespace() && !self.is_in_fence && !self.is_quoted {
                let place = if self.has_begun { Place::Line } else { Place::Reply };
                if text.get(at..).is_some_and(|rest| opens(rest, place)) {
                    return Some((at, place));
                }
            }
            self.pass(bytes.get(at).copied().unwrap_or_default());
            at += 1;
        }
        None
    }

    /// Goes on behind a block of text: the next one begins a line.
    pub(super) fn pass_block(&mut self, text: &str) {
        text.bytes().for_each(|byte| self.pass(byte));
        self.pass(b'\n');
    }

    /// Goes on behind a byte.
    pub(super) fn pass(&mut self, byte: u8) {
        self.has_begun |= !byte.is_ascii_whitespace();
        self.line = match (self.line, byte) {
            (_, b'\n') => {
                self.is_quoted = false;
                Line::Blank
            }
            (Line::Blank, b' ' | b'\t' | b'\r') => Line::Blank,
            (Line::Blank, b'>') => {
                self.is_quoted = true;
                Line::Blank
            }
            (Line::Blank, b'`' | b'~') => Line::Rail(byte, 1),
            (Line::Rail(letter, count), _) if letter == byte && count + 1 == RAIL_LETTERS => {
                self.is_in_fence = !self.is_in_fence;
                Line::Text
            }
            (Line::Rail(letter, count), _) if letter == byte => Line::Rail(letter, count + 1),
            (Line::Blank | Line::Rail(..) | Line::Text, _) => Line::Text,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(text: &str) -> Vec<(usize, Place)> {
        let mut lines = Lines::default();
        let mut found = Vec::new();
        let mut from = 0;
        while let Some((at, place)) = lines.next(text.get(from..).unwrap_or_default(), |rest, _| rest.starts_with('<'))
        {
            found.push((from + at, place));
            lines.pass(b'<');
            from += at + 1;
        }
        found
    }

    /// SPEC 7.4: markup is looked for outside fences and quotations only.
    #[test]
    fn places_of_markup() {
        assert_eq!(
            places("\n <a b<\n <c"),
            [(2, Place::Reply), (6, Place::Anywhere), (9, Place::Line)]
        );
        assert_eq!(places("x\n```\n<a\n```\n<b"), [(13, Place::Line)]);
        assert_eq!(places("x\n> <a\n~~~\n<b"), []);
        assert_eq!(places("`<a` <b"), [(5, Place::Anywhere)]);
        assert_eq!(places(""), []);
    }
}
