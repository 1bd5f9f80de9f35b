//! The text of a paragraph as it comes: words, emphasis, code, links.
//!
//! Text is held only while something is open in it ([`crate::scan`]), and not for long; what is complete is read by
//! [`crate::spans`] and written as words.

use crate::look::Look;
use crate::rows::{Ink, Rows};
use crate::scan::{Cut, Scanner};
use crate::spans::{self, Break, Place};
use anstyle::Style;

/// Emphasis that is not closed after so much text is text.
const EMPHASIS_HELD_BYTES_MAX: usize = 256;
/// The same for code, links and tags.
const HELD_BYTES_MAX: usize = 1024;

/// Text of one block.
#[derive(Debug)]
pub(crate) struct Inline {
    look: Look,
    base: Style,
    held: String,
    scanner: Scanner,
    /// The character before what is held.
    previous: char,
    white: White,
    /// Characters of the current line of the source.
    line_characters: usize,
    /// How many of them were there when holding began.
    held_characters: usize,
}

/// White space that was read and not written.
#[derive(Clone, Copy, Debug, PartialEq)]
enum White {
    None,
    /// At the beginning of the text or of a line.
    LineStart,
    Spaces(usize),
    /// A line's end.
    Break(Break),
}

impl Inline {
    /// Text in that style.
    pub(crate) fn new(look: Look, base: Style) -> Self {
        Self {
            look,
            base,
            held: String::new(),
            scanner: Scanner::after(' '),
            previous: ' ',
            white: White::LineStart,
            line_characters: 0,
            held_characters: 0,
        }
    }

    /// More of it, within a line.
    pub(crate) fn push(&mut self, text: &str, rows: &mut Rows) {
        for c in text.chars() {
            self.character(c, rows);
        }
    }

    /// The line is over, the text may go on.
    pub(crate) fn end_line(&mut self, rows: &mut Rows) {
        self.character('\n', rows);
        rows.end_word();
    }

    /// The text is over: whatever is open is text.
    pub(crate) fn finish(&mut self, rows: &mut Rows) {
        let held = std::mem::take(&mut self.held);
        self.write(held.trim_end_matches([' ', '\t', '\n']), rows);
        rows.end_row();
    }

    /// Whether a comment is open: what comes may belong to it. One that stays open for too long is text.
    pub(crate) fn in_comment(&self) -> bool {
        let behind = self.held.rsplit_once("<!--").map(|(_, behind)| behind);
        behind.is_some_and(|behind| !behind.contains("-->"))
    }

    fn character(&mut self, c: char, rows: &mut Rows) {
        if c == '\n' {
            self.scan(c, rows);
            self.line_characters = 0;
            return;
        }
        if self.held.is_empty() && (c == ' ' || c == '\t') {
            self.line_characters += 1;
            self.space();
            return;
        }
        if self.held.ends_with('\n') && (c == ' ' || c == '\t') {
            return;
        }
        self.scan(c, rows);
        self.line_characters += 1;
    }

    fn scan(&mut self, c: char, rows: &mut Rows) {
        if self.held.is_empty() {
            if c == '\n' {
                return self.line_break(self.line_characters);
            }
            self.begin(rows);
        }
        self.held.push(c);
        while let Some(cut) = self.scanner.next_cut(&self.held) {
            let at = match cut {
                Cut::White(at) | Cut::Letters(at) => at,
            };
            self.release(at, rows);
        }
        let held_max = if self.scanner.only_emphasis() {
            EMPHASIS_HELD_BYTES_MAX
        } else {
            HELD_BYTES_MAX
        };
        if self.held.len() >= held_max {
            self.give_up(rows);
        }
    }

    /// What is open stays so for too long: the first half of it is text, up to what was opened later, or else to a space.
    fn give_up(&mut self, rows: &mut Rows) {
        let half = self.held.floor_char_boundary(self.held.len() / 2).max(1);
        let space = || self.held.get(half..)?.rfind([' ', '\n']).map(|at| half + at);
        let at = self.scanner.first_open_from(half).or_else(space);
        self.release(at.unwrap_or(self.held.len()), rows);
    }

    /// Writes what is held up to there and goes on with the rest.
    fn release(&mut self, at: usize, rows: &mut Rows) {
        let rest = self.held.split_off(at);
        let done = std::mem::replace(&mut self.held, rest);
        self.write(&done, rows);
        self.previous = done.chars().next_back().unwrap_or(self.previous);
        self.held_characters = spans::line_characters(&done, self.held_characters);
        // White space is not held: what it is depends on what follows.
        let white = self.held.len() - self.held.trim_start_matches([' ', '\t', '\n']).len();
        let rest = self.held.split_off(white);
        let white = std::mem::replace(&mut self.held, rest);
        for c in white.chars() {
            if c == '\n' {
                self.line_break(self.held_characters);
                self.held_characters = 0;
            } else {
                self.space();
                self.held_characters += 1;
            }
        }
        if !white.is_empty() {
            rows.end_word();
            self.previous = ' ';
        }
        if !self.held.is_empty() {
            self.leave_white(rows);
        }
        self.scanner = Scanner::after(self.previous);
    }

    /// The first character after white space.
    fn begin(&mut self, rows: &mut Rows) {
        self.held_characters = self.line_characters;
        if self.white != White::None {
            self.previous = ' ';
        }
        self.leave_white(rows);
        self.scanner = Scanner::after(self.previous);
    }

    fn leave_white(&mut self, rows: &mut Rows) {
        let base = Ink::styled(self.base);
        match self.white {
            White::None | White::LineStart => {}
            White::Spaces(_) | White::Break(Break::Soft) => rows.space(&base),
            White::Break(Break::Row) => rows.end_row(),
        }
        self.white = White::None;
    }

    fn space(&mut self) {
        self.white = match self.white {
            White::None => White::Spaces(1),
            White::Spaces(spaces) => White::Spaces(spaces + 1),
            white @ (White::LineStart | White::Break(_)) => white,
        };
    }

    fn line_break(&mut self, line_characters: usize) {
        let hard = matches!(self.white, White::Spaces(2..));
        self.white = match self.white {
            White::LineStart => White::LineStart,
            White::Break(_) => self.white,
            White::None | White::Spaces(_) if hard => White::Break(Break::Row),
            White::None | White::Spaces(_) => White::Break(spans::soft_break(line_characters)),
        };
    }

    fn write(&mut self, text: &str, rows: &mut Rows) {
        let place = Place {
            previous: self.previous,
            line_characters: self.held_characters,
        };
        spans::write(text, place, self.look, self.base, rows);
    }
}
