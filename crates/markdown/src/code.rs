//! Blocks of code: a faint head with the language, the lines as they are, a faint foot.
//!
//! Lines are not indented and not wrapped, so that what is copied from the terminal is the code.

use crate::highlight::{Highlighter, Syntaxes};
use crate::look::{Colour, Look};
use crate::rows::{Ink, Rows};
use aish_core::sanitize;
use anstyle::Style;

/// A line is held to be coloured as a whole; one that is longer is written in pieces.
const LINE_BYTES_MAX: usize = 16 * 1024;
/// Longer lines are not coloured: a pattern may take long for them.
const COLOURED_LINE_BYTES_MAX: usize = 1024;
/// Nor is what comes after so much of a block.
const COLOURED_BYTES_MAX: usize = 256 * 1024;
/// Empty lines that may turn out to stand behind the code.
const BLANK_LINES_MAX: usize = 1000;
/// Longer names of languages are cut.
const LABEL_CHARACTERS_MAX: usize = 30;
/// Before the name of the language.
const HEAD: &str = "┌─";
/// Under the code.
const FOOT: &str = "└─";

/// A block of code that is being read.
#[derive(Debug)]
pub(crate) struct Code {
    look: Look,
    colours: Colours,
    line: String,
    ending: Ending,
    /// Empty lines that are written when a line follows.
    blank_lines: usize,
    coloured_bytes: usize,
}

/// What the next line end ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ending {
    /// A line of code.
    Line,
    /// The line of the fence, or one whose pieces were written before it was whole.
    Nothing,
}

#[derive(Debug)]
enum Colours {
    None,
    Difference,
    Syntax(Box<Highlighter>),
}

impl Code {
    /// Fenced code of the language its info string names; the end of the fence's line follows.
    pub(crate) fn fenced(info: &str, look: Look, syntaxes: &Syntaxes, rows: &mut Rows) -> Self {
        let name = info.split([' ', ',', '{', '\t']).next().unwrap_or_default();
        let colours = match (look.colour, name.to_lowercase().as_str()) {
            (Colour::None, _) | (Colour::Basic | Colour::Rich, "") => Colours::None,
            (Colour::Basic | Colour::Rich, "diff" | "patch" | "udiff") => Colours::Difference,
            (Colour::Basic | Colour::Rich, language) => {
                Colours::Syntax(Box::new(Highlighter::new(language, look.palette(), syntaxes)))
            }
        };
        let label: String = name.chars().take(LABEL_CHARACTERS_MAX).collect();
        Self {
            colours,
            ending: Ending::Nothing,
            ..Self::begin(&label, look, rows)
        }
    }

    /// Code without fences; its first line follows.
    pub(crate) fn indented(look: Look, rows: &mut Rows) -> Self {
        Self::begin("", look, rows)
    }

    fn begin(label: &str, look: Look, rows: &mut Rows) -> Self {
        let space = if label.is_empty() { "" } else { " " };
        let head = format!("{HEAD}{space}{}", sanitize::single_line(label));
        rows.verbatim(&[(Ink::styled(look.palette().faint), &head)]);
        Self {
            look,
            colours: Colours::None,
            line: String::new(),
            ending: Ending::Line,
            blank_lines: 0,
            coloured_bytes: 0,
        }
    }

    /// More of the current line.
    pub(crate) fn push(&mut self, mut text: &str, rows: &mut Rows) {
        while self.line.len() + text.len() > LINE_BYTES_MAX {
            let room = text.floor_char_boundary(LINE_BYTES_MAX.saturating_sub(self.line.len()));
            let (piece, rest) = text.split_at(room);
            self.line.push_str(piece);
            text = rest;
            self.write_line(rows);
            self.ending = Ending::Nothing;
        }
        self.line.push_str(text);
    }

    /// The line is over.
    pub(crate) fn end_line(&mut self, rows: &mut Rows) {
        let ending = std::mem::replace(&mut self.ending, Ending::Line);
        if self.line.is_empty() && ending == Ending::Nothing {
            return;
        }
        if self.line.trim().is_empty() {
            self.line.clear();
            self.blank_line();
            return;
        }
        self.write_line(rows);
    }

    /// An empty line, if code follows.
    pub(crate) fn blank_line(&mut self) {
        self.blank_lines = (self.blank_lines + 1).min(BLANK_LINES_MAX);
    }

    /// The block is over.
    pub(crate) fn finish(&mut self, end: BlankLines, rows: &mut Rows) {
        if !self.line.is_empty() {
            self.end_line(rows);
        }
        match end {
            BlankLines::Kept => self.write_blank_lines(rows),
            BlankLines::Dropped => {}
        }
        rows.verbatim(&[(Ink::styled(self.look.palette().faint), FOOT)]);
    }

    fn write_blank_lines(&mut self, rows: &mut Rows) {
        for _ in 0..std::mem::take(&mut self.blank_lines) {
            rows.blank_row();
            if let Colours::Syntax(highlighter) = &mut self.colours {
                highlighter.line("");
            }
        }
    }

    fn write_line(&mut self, rows: &mut Rows) {
        self.write_blank_lines(rows);
        let line = std::mem::take(&mut self.line);
        self.coloured_bytes += line.len();
        if line.len() > COLOURED_LINE_BYTES_MAX || self.coloured_bytes > COLOURED_BYTES_MAX {
            self.colours = Colours::None;
        }
        match &mut self.colours {
            Colours::None => rows.verbatim(&[(Ink::default(), &line)]),
            Colours::Difference => rows.verbatim(&[(Ink::styled(difference(&line, self.look)), &line)]),
            Colours::Syntax(highlighter) => {
                let pieces = highlighter.line(&line);
                let inked: Vec<(Ink, &str)> = pieces
                    .into_iter()
                    .map(|(style, text)| (Ink::styled(style), text))
                    .collect();
                rows.verbatim(&inked);
            }
        }
    }
}

/// What becomes of empty lines at the end of code.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BlankLines {
    /// They stand between the fences.
    Kept,
    /// They stand behind it.
    Dropped,
}

fn difference(line: &str, look: Look) -> Style {
    let palette = look.palette();
    if line.starts_with("+++") || line.starts_with("---") {
        palette.strong
    } else if line.starts_with('+') {
        palette.inserted
    } else if line.starts_with('-') {
        palette.deleted
    } else if line.starts_with("@@") {
        palette.place
    } else {
        Style::new()
    }
}
