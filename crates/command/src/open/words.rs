//! One word of a line, read to its end.

use super::frames::Frame;
use super::{Escapes, Grammar, Opened, Scan};

/// A word as it was read.
#[derive(Default)]
pub(super) struct Word {
    /// What it says, its quotes taken off; substitutions are left out.
    pub(super) value: Vec<u8>,
    /// Nothing in it was quoted, escaped or substituted.
    pub(super) is_plain: bool,
}

impl Scan<'_> {
    /// Reads a word from here; it ends early where a substitution or a double quote begins, which have frames of their own.
    ///
    /// # Errors
    /// The text ends within it.
    pub(super) fn word(&mut self) -> Result<Word, Opened> {
        let begin = self.at;
        let mut word = Word {
            is_plain: true,
            ..Word::default()
        };
        while let Some(byte) = self.peek(0) {
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' | b';' | b'|' | b'&' | b'<' | b'>' | b')' => break,
                b'(' => {
                    self.inner_parenthesis(begin, &mut word);
                    break;
                }
                b'\\' => {
                    word.is_plain = false;
                    let Some(next) = self.peek(1) else {
                        return Err(Opened::Backslash);
                    };
                    word.value.push(next);
                    self.at += 2;
                }
                b'\'' => {
                    word.is_plain = false;
                    let from = self.at + 1;
                    let escapes = if self.grammar == Grammar::Fish || self.follows_dollar(begin) {
                        Escapes::Known
                    } else {
                        Escapes::Not
                    };
                    if let Some(opened) = self.quoted(escapes) {
                        return Err(opened);
                    }
                    let inner = self.bytes.get(from..self.at.saturating_sub(1));
                    word.value.extend(inner.unwrap_or_default());
                }
                b'"' => {
                    word.is_plain = false;
                    self.double(&mut word);
                    break;
                }
                b'$' | b'`' if self.begins_substitution() => {
                    word.is_plain = false;
                    break;
                }
                _ => {
                    word.value.push(byte);
                    self.at += 1;
                }
            }
        }
        Ok(word)
    }

    /// A double quote: stepped over at once where nothing but text is in it, so that a word may go on behind it.
    fn double(&mut self, word: &mut Word) {
        let rest = self.bytes.get(self.at + 1..).unwrap_or_default();
        let end = rest.iter().position(|b| matches!(b, b'"' | b'\\' | b'$' | b'`'));
        match end.and_then(|end| Some((end, rest.get(end)?))) {
            Some((end, b'"')) => {
                word.value.extend(rest.get(..end).unwrap_or_default());
                self.at += end + 2;
                // The word may go on; what follows is a word of its own, which is no matter here.
            }
            _ => self.push(Frame::Double, 1),
        }
    }

    /// A parenthesis within a word: an array, a pattern, or a function's.
    fn inner_parenthesis(&mut self, begin: usize, word: &mut Word) {
        if self.at == begin || self.sees("()") {
            return;
        }
        word.is_plain = false;
        self.push(Frame::List, 1);
    }

    /// `$'…'`.
    fn follows_dollar(&self, begin: usize) -> bool {
        self.at > begin && self.at.checked_sub(1).and_then(|at| self.bytes.get(at)) == Some(&b'$')
    }
}
