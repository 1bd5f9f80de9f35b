//! Markdown for a terminal, as it streams: what is written is never taken back (SPEC 8.6).
//!
//! [`Markdown`] takes the text of a reply in pieces of any size and appends what can be shown of it to a string: words of a
//! paragraph as soon as they are complete, a line of code when the line is, a table when it has ended. It moves no cursor and
//! clears nothing, so the terminal's own scrollback is the record, and the same text gives the same bytes however it was cut.
//! Whatever is open for too long (a `**` without its partner, a table without end) is shown as it is: memory is bounded.
//!
//! The text is not believed (SPEC 8.8): nothing in it acts on the terminal, and a link does not hide where it leads.
//!
//! ```
//! use aish_markdown::{Background, Colour, Links, Look, Markdown};
//!
//! let look = Look { columns: 40, colour: Colour::None, links: Links::Plain, background: Background::Dark };
//! let mut markdown = Markdown::new(look);
//! let mut screen = String::new();
//! for piece in ["- one\n- tw", "o `and` more"] {
//!     markdown.push(piece, &mut screen);
//! }
//! markdown.finish(&mut screen);
//! assert_eq!(screen, "• one\n• two `and` more\n");
//! ```
//!
//! Blocks follow CommonMark 0.31 with GitHub's tables, task lists and strikethrough. Three things differ because text that was
//! shown stays: definitions of links and footnotes are shown where they stand, and so are references to them; a line break of
//! the source is kept where its line is too short or too long to have been broken to fit a page; a table's head begins with a `|`.
//!
//! The rooms: `start` says what a line is, `blocks` does it, `scan` says how much of a paragraph can be shown, `spans`
//! reads that, `rows` wraps and writes.

mod blocks;
mod body;
mod code;
mod command;
mod cursor;
mod highlight;
mod html;
mod inline;
mod link;
mod look;
mod rows;
mod scan;
mod spans;
mod start;
mod table;
mod written;

pub use command::{Command, Extent};
pub use highlight::Syntaxes;
pub use look::{Background, Colour, Links, Look};
pub use written::code_blocks;

use aish_core::sanitize;
use blocks::Blocks;

/// A reply that is being shown.
#[derive(Debug)]
pub struct Markdown {
    blocks: Blocks,
    /// A carriage return came last: whether it is part of a line's end is not known yet.
    returned: bool,
}

impl Markdown {
    /// The beginning of a reply, for that look.
    pub fn new(look: Look) -> Self {
        Self::with_syntaxes(look, &Syntaxes::new())
    }

    /// The same with syntaxes that were read already, or will have been.
    pub fn with_syntaxes(look: Look, syntaxes: &Syntaxes) -> Self {
        Self {
            blocks: Blocks::new(look, syntaxes.clone()),
            returned: false,
        }
    }

    /// More text. What can be shown of it is appended to `out`, which ends in the terminal's plain style but maybe within a row.
    pub fn push(&mut self, text: &str, out: &mut String) {
        let mut rest = text;
        if self.returned && !rest.is_empty() {
            self.returned = false;
            if !rest.starts_with('\n') {
                self.clean("\r");
            }
        }
        if let Some(before) = rest.strip_suffix('\r') {
            self.returned = true;
            rest = before;
        }
        self.clean(rest);
        out.push_str(&self.blocks.take());
    }

    /// The text is over: everything that was held is shown, and the row ended.
    pub fn finish(&mut self, out: &mut String) {
        if std::mem::take(&mut self.returned) {
            self.clean("\r");
        }
        self.blocks.finish();
        out.push_str(&self.blocks.take());
    }

    /// The terminal's width changed: rows that begin from now on fit it.
    pub fn resize(&mut self, columns: usize) {
        self.blocks.resize(columns);
    }

    /// Ends the row that is open, so that something else can be written; the text goes on in a row of its own, with the whole of
    /// the word that was begun.
    pub fn break_row(&mut self, out: &mut String) {
        self.blocks.rows().break_row();
        out.push_str(&self.blocks.take());
    }

    /// Columns written in the row that is open; 0 where the next text begins one.
    pub fn column(&mut self) -> usize {
        self.blocks.rows().column()
    }

    /// The commands that were proposed so far (SPEC 8.4): lines that begin with `CMD:` in text that is no code, no HTML, in no table
    /// and not quoted, in order; a limited number of them.
    pub fn commands(&self) -> &[Command] {
        self.blocks.commands()
    }

    fn clean(&mut self, text: &str) {
        self.blocks.push(&sanitize::multi_line(text));
    }
}
