//! Text in rows: broken at a width, behind a prefix, piece by piece as it comes.
//!
//! Takes text that is safe already ([`super::clean`] makes it so). Breaking depends on the characters alone, never on where the
//! pieces were cut, so a stream looks the same however it arrived.

use unicode_width::UnicodeWidthChar;

/// Columns from one tab stop to the next.
const TAB_COLUMNS: usize = 8;
/// Makes an emoji of the character before it (variation selector 16).
const EMOJI_STYLE: char = '\u{fe0f}';

/// Where a stream of text stands in its rows.
#[derive(Debug)]
pub(super) struct Rows {
    /// Before the first row of a line of the text.
    line_prefix: &'static str,
    /// Before a row that goes on with a line.
    wrap_prefix: &'static str,
    /// Columns a row may have, its prefix included.
    width: usize,
    /// Rows that are shown; what comes after is counted.
    rows_max: usize,
    /// Columns taken in the current row, its prefix included.
    column: usize,
    /// True between rows: nothing of the next one is written.
    between: bool,
    /// The last character is narrow, unless it is made an emoji.
    may_widen: bool,
    rows: usize,
    hidden_breaks: usize,
    hidden_open: bool,
}

impl Rows {
    pub(super) fn new(line_prefix: &'static str, wrap_prefix: &'static str, width: usize) -> Self {
        Self {
            line_prefix,
            wrap_prefix,
            width,
            rows_max: usize::MAX,
            column: 0,
            between: true,
            may_widen: false,
            rows: 0,
            hidden_breaks: 0,
            hidden_open: false,
        }
    }

    /// Only so many rows are shown.
    pub(super) fn at_most(self, rows_max: usize) -> Self {
        Self { rows_max, ..self }
    }

    /// Adds safe text.
    pub(super) fn push(&mut self, text: &str, out: &mut String) {
        for c in text.chars() {
            if self.rows >= self.rows_max {
                self.hide(c);
            } else if c == '\n' {
                self.end_row(out);
            } else if c == '\t' {
                let stop = TAB_COLUMNS - (self.column.saturating_sub(width_of(self.line_prefix))) % TAB_COLUMNS;
                for _ in 0..stop {
                    self.put(' ', out);
                }
            } else {
                self.put(c, out);
            }
        }
    }

    /// Ends the row that was begun, if one was, so that something else can be written on a line of its own.
    pub(super) fn break_row(&mut self, out: &mut String) {
        if !self.between {
            self.end_row(out);
        }
    }

    /// Lines that were not shown.
    pub(super) fn hidden(&self) -> usize {
        self.hidden_breaks + usize::from(self.hidden_open)
    }

    /// Rows that begin from now on have this width.
    pub(super) fn resize(&mut self, width: usize) {
        self.width = width;
    }

    /// Columns taken in the current row, its prefix included; 0 between rows.
    pub(super) fn column(&self) -> usize {
        self.column
    }

    fn put(&mut self, c: char, out: &mut String) {
        let columns = match c {
            // Many terminals show the character before it as wide then; counted so, no row is too long anywhere.
            EMOJI_STYLE => usize::from(self.may_widen),
            c => c.width().unwrap_or(0),
        };
        self.may_widen = columns == 1 && c != EMOJI_STYLE;
        if self.between {
            self.begin_row(self.line_prefix, out);
        } else if self.column + columns > self.width && c != EMOJI_STYLE {
            self.end_row(out);
            if self.rows >= self.rows_max {
                return self.hide(c);
            }
            self.begin_row(self.wrap_prefix, out);
        }
        out.push(c);
        self.column += columns;
    }

    fn begin_row(&mut self, prefix: &str, out: &mut String) {
        out.push_str(prefix);
        self.column = width_of(prefix);
        self.between = false;
    }

    fn end_row(&mut self, out: &mut String) {
        out.push('\n');
        self.rows += 1;
        self.column = 0;
        self.between = true;
    }

    fn hide(&mut self, c: char) {
        if c == '\n' {
            self.hidden_breaks += 1;
            self.hidden_open = false;
        } else {
            self.hidden_open = true;
        }
    }
}

/// Columns a text takes; the text is one line.
pub(super) fn width_of(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(width: usize, pieces: &[&str], expect: &str) {
        let mut rows = Rows::new("  ", ". ", width);
        let mut out = String::new();
        for piece in pieces {
            rows.push(piece, &mut out);
        }
        rows.break_row(&mut out);
        assert_eq!(out, expect);
    }

    /// SPEC 8.9: rows fit the width, wide characters counted as two columns.
    #[test]
    fn rows_fit() {
        check(6, &["abcdef\ng"], "  abcd\n. ef\n  g\n");
        check(6, &["ab", "cd", "\n"], "  abcd\n");
        check(6, &["日本語"], "  日本\n. 語\n");
        check(
            6,
            &["☀\u{fe0f}☀", "\u{fe0f}☀\u{fe0f}"],
            "  ☀\u{fe0f}☀\u{fe0f}\n. ☀\u{fe0f}\n",
        );
        check(usize::MAX, &["a\n\nb\n"], "  a\n\n  b\n");
        check(12, &["a\tb"], "  a       b\n");
    }

    /// SPEC 8.5: what is not shown is counted in lines.
    #[test]
    fn hidden_lines_are_counted() {
        let mut rows = Rows::new("", "", 4).at_most(2);
        let mut out = String::new();
        rows.push("aaaaaaaaaa\nb\nc", &mut out);
        assert_eq!(out, "aaaa\naaaa\n");
        assert_eq!(rows.hidden(), 3);
    }
}
