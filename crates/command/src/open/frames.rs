//! What can be open in a line, and which words open and close it.

use super::{Opened, Place, Scan};

/// Something that is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// `"…"`.
    Double,
    /// `${…}`.
    Parameter,
    /// `(…)` that holds words: an array, a pattern, what a substitution of fish runs.
    List,
    /// `((…))` and `$((…))`, and how many parentheses are open in it.
    Arithmetic {
        /// How many.
        depth: usize,
    },
    /// `(…)` that holds commands.
    Parens,
    /// A substitution in backticks.
    Backtick,
    /// `{ …; }`.
    Brace,
    /// `[[ … ]]`.
    Test,
    /// `if … fi`.
    If {
        /// Its `then` was there.
        then: bool,
    },
    /// `for`, `select`, `while`, `until`.
    Loop(Loop),
    /// `case … esac`.
    Case(Case),
    /// Any block of fish.
    End,
}

/// How far a loop is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loop {
    /// Before its `do`.
    Head,
    /// Behind it.
    Body,
}

/// How far a `case` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Case {
    /// Before its `in`.
    Subject,
    /// Where a pattern stands.
    Pattern,
    /// Where commands stand.
    Body,
}

impl Frame {
    /// What is lacking while it is open.
    pub(super) fn opened(&self) -> Opened {
        match self {
            Self::Double => Opened::Quote,
            Self::Parameter | Self::List | Self::Arithmetic { .. } | Self::Parens | Self::Backtick => {
                Opened::Substitution
            }
            Self::Brace | Self::Test | Self::If { .. } | Self::Loop(_) | Self::Case(_) | Self::End => Opened::Block,
        }
    }

    /// Whether what stands first in it is a command.
    pub(super) fn holds_commands(&self) -> bool {
        match self {
            Self::Parens | Self::Backtick | Self::Brace | Self::If { .. } | Self::End => true,
            Self::Loop(_)
            | Self::Case(_)
            | Self::Test
            | Self::Double
            | Self::Parameter
            | Self::List
            | Self::Arithmetic { .. } => false,
        }
    }
}

impl Scan<'_> {
    /// A word of bash's grammar and of zsh's, where a command stands.
    pub(super) fn keyword(&mut self, word: &[u8]) {
        match word {
            b"if" => self.push(Frame::If { then: false }, 0),
            b"while" | b"until" => {
                self.push(Frame::Loop(Loop::Head), 0);
                self.place = Place::Command;
            }
            b"for" | b"select" => self.push(Frame::Loop(Loop::Head), 0),
            b"case" => self.push(Frame::Case(Case::Subject), 0),
            b"[[" => self.push(Frame::Test, 0),
            b"{" => self.push(Frame::Brace, 0),
            b"then" => {
                if let Some(Frame::If { then }) = self.frames.last_mut() {
                    *then = true;
                }
                self.place = Place::Command;
            }
            b"do" => {
                if let Some(Frame::Loop(part)) = self.frames.last_mut() {
                    *part = Loop::Body;
                }
                self.place = Place::Command;
            }
            b"else" | b"elif" | b"!" | b"time" | b"coproc" => self.place = Place::Command,
            b"function" => self.place = Place::Name,
            b"fi" => self.end(|frame| matches!(frame, Frame::If { .. })),
            b"done" => self.end(|frame| matches!(frame, Frame::Loop(_))),
            b"esac" => self.end(|frame| matches!(frame, Frame::Case(_))),
            b"}" => {
                self.end(|frame| *frame == Frame::Brace);
                // Of zsh: braces in place of `do … done` and `then … fi`.
                self.end(|frame| matches!(frame, Frame::Loop(Loop::Head) | Frame::If { then: false }));
            }
            _ => self.assignment(word),
        }
    }

    /// A word of fish's grammar, where a command stands.
    pub(super) fn fish_keyword(&mut self, word: &[u8], place: Place) {
        match word {
            b"if" if place == Place::Else => self.place = Place::Command,
            b"if" | b"while" | b"begin" => self.push(Frame::End, 0),
            b"for" | b"function" | b"switch" => {
                self.push(Frame::End, 0);
                self.place = Place::Argument;
            }
            b"{" => self.push(Frame::Brace, 0),
            b"}" => self.end(|frame| *frame == Frame::Brace),
            b"else" => self.place = Place::Else,
            b"and" | b"or" | b"not" | b"!" | b"time" | b"command" | b"builtin" => self.place = Place::Command,
            b"end" => self.end(|frame| *frame == Frame::End),
            _ => {}
        }
    }

    /// Behind `a=b` a command may follow still.
    fn assignment(&mut self, word: &[u8]) {
        let name = word.split(|b| *b == b'=').next().unwrap_or_default();
        if name.len() < word.len() && name.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_') {
            self.place = Place::Command;
        }
    }

    /// The innermost frame ends if it is of that kind; a word that ends nothing is the shell's to refuse.
    fn end(&mut self, is_meant: impl Fn(&Frame) -> bool) {
        if self.frames.last().is_some_and(is_meant) {
            self.frames.pop();
        }
    }
}
