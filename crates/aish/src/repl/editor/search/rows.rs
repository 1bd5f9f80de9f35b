//! A row of the search: where a line went, as much of it as fits with what it was found by, and how long ago it was typed.

use crate::repl::commands::ago;
use crate::repl::editor::face;
use crate::repl::editor::rank::Query;
use crate::repl::editor::recall::Found;
use crate::repl::route::Mark;
use crate::term::columns::cut;
use aish_core::sanitize;
use anstyle::{AnsiColor, Effects, Style};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Before the chosen line, and before the others.
const CHOSEN: &str = "› ";
const OTHER: &str = "  ";
/// Stands for the end of a row within a line.
const ROW_END: char = '⏎';
/// Stands for what was left out before.
const ELLIPSIS: &str = "…";
/// Between a line and how long ago it was typed.
const GAP: &str = "  ";
/// Columns of a line that are worth showing how long ago it was typed beside.
const LINE_COLUMNS_MIN: usize = 20;
/// One part in so many of the columns is before what a line was found by.
const BEFORE_SHARE: usize = 3;

const DIM: Style = Style::new().effects(Effects::DIMMED);
const FOUND_BY: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Yellow)));
const CHOSEN_LINE: Style = Style::new().effects(Effects::BOLD);

/// Whether a row is the one that Enter takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// It is.
    Chosen,
    /// It is another.
    Other,
}

/// How rows look.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Columns of the terminal.
    pub columns: usize,
    /// Whether styles are written.
    pub styled: bool,
    /// Milliseconds since the Unix epoch.
    pub now: u64,
}

/// A line that was found.
pub struct Row<'a> {
    found: &'a Found,
    /// Its characters as they are shown, and whether it was found by them.
    letters: Vec<(char, bool)>,
}

impl<'a> Row<'a> {
    /// With what `query` found it by.
    pub fn new(found: &'a Found, query: &str) -> Self {
        let (_, query) = super::super::recall::split(query);
        let hits = Query::new(query).hits(&found.text);
        let shown = found.text.chars().map(|c| match c {
            '\n' => ROW_END,
            '\t' => ' ',
            // Nothing that acts on a terminal is in the history; if it were, it would not get out here.
            c if sanitize::is_hostile(c) => char::REPLACEMENT_CHARACTER,
            c => c,
        });
        let letters = shown.enumerate().map(|(at, c)| (c, hits.binary_search(&at).is_ok()));
        Self {
            letters: letters.collect(),
            found,
        }
    }

    /// As a row of the terminal, which it does not fill: a full one would begin another.
    pub fn drawn(&self, choice: Choice, look: Look) -> String {
        let mark = match choice {
            Choice::Chosen => CHOSEN,
            Choice::Other => OTHER,
        };
        let kind = match self.found.goes {
            Mark::Shell => face::SHELL_INDICATOR,
            Mark::Model => crate::repl::prompt::INDICATOR,
            // Its colon is part of it.
            Mark::Meta => OTHER,
        };
        let room = look.columns.saturating_sub(mark.width() + kind.width() + 1);
        let age = match self.found.time {
            0 => String::new(),
            time => ago(look.now.saturating_sub(time)),
        };
        let age_columns = GAP.len() + age.width();
        let has_age = !age.is_empty() && room >= LINE_COLUMNS_MIN + age_columns;
        let text_columns = if has_age { room - age_columns } else { room };
        let (text, columns) = self.text(text_columns, choice, look);
        let mut row = format!("{}{}{text}", painted(mark, CHOSEN_LINE, look), painted(kind, DIM, look));
        if has_age {
            let fill = " ".repeat(text_columns.saturating_sub(columns));
            row.push_str(&format!("{fill}{GAP}{}", painted(&age, DIM, look)));
        }
        row
    }

    /// The line in at most so many columns, and how many it takes. What was found is in sight.
    fn text(&self, columns: usize, choice: Choice, look: Look) -> (String, usize) {
        let width = |(c, _): &(char, bool)| c.width().unwrap_or(0);
        let first_hit = self.letters.iter().position(|(_, hit)| *hit).unwrap_or(0);
        let before: usize = self.letters.iter().take(first_hit + 1).map(width).sum();
        let mut letters = self.letters.as_slice();
        let mut text = String::new();
        let mut taken = 0;
        if before > columns {
            let from = first_hit.saturating_sub(columns / BEFORE_SHARE);
            letters = letters.get(from..).unwrap_or_default();
            text.push_str(ELLIPSIS);
            taken = ELLIPSIS.width();
        }
        let all: usize = letters.iter().map(width).sum();
        let is_cut = taken + all > columns;
        let room = if is_cut {
            columns.saturating_sub(ELLIPSIS.width())
        } else {
            columns
        };
        let base = match choice {
            Choice::Chosen => CHOSEN_LINE,
            Choice::Other => Style::new(),
        };
        for letter @ (c, is_hit) in letters {
            if taken + width(letter) > room {
                break;
            }
            taken += width(letter);
            let style = if *is_hit {
                FOUND_BY.effects(base.get_effects())
            } else {
                base
            };
            text.push_str(&painted(c.encode_utf8(&mut [0; 4]), style, look));
        }
        if is_cut {
            text.push_str(ELLIPSIS);
            taken += ELLIPSIS.width();
        }
        (text, taken)
    }
}

/// A line below the rows.
pub fn dimmed(text: &str, look: Look) -> String {
    painted(&cut(text, look.columns.saturating_sub(1)), DIM, look)
}

fn painted(text: &str, style: Style, look: Look) -> String {
    if look.styled && style != Style::new() {
        format!("{style}{text}{style:#}")
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOK: Look = Look {
        columns: 40,
        styled: false,
        now: 7_200_000,
    };

    fn found(text: &str, goes: Mark) -> Found {
        Found {
            number: 1,
            text: text.to_owned(),
            goes,
            time: 60_000,
        }
    }

    fn drawn(text: &str, goes: Mark, query: &str, columns: usize) -> String {
        Row::new(&found(text, goes), query).drawn(Choice::Other, Look { columns, ..LOOK })
    }

    /// SPEC 8.9: a row says where the line went and how long ago, in the columns there are.
    #[test]
    fn rows_fit() {
        assert_eq!(
            drawn("make test", Mark::Shell, "", 40),
            "  $ make test                       1 h"
        );
        assert_eq!(drawn("why?", Mark::Model, "", 30), "  ❯ why?                  1 h");
        assert_eq!(drawn(":models", Mark::Meta, "", 20), "    :models");
        assert_eq!(drawn("0123456789abcdefghij", Mark::Shell, "", 16), "  $ 0123456789…");
        assert_eq!(drawn("0123456789abcdefghij", Mark::Shell, "ghi", 16), "  $ …defghij");
        for columns in 0..80 {
            let row = drawn("日本語 a line of two\nrows and some more", Mark::Shell, "more", columns);
            assert!(row.width() < columns.max(7), "{columns}: {row}");
        }
    }

    /// SPEC 8.8: a line that acts on a terminal does not when it is found.
    #[test]
    fn hostile_lines_are_harmless() {
        let row = drawn("a\x1b[2J\u{202e}b\nc", Mark::Model, "b", 60);
        assert!(row.starts_with("  ❯ a\u{fffd}[2J\u{fffd}b⏎c"), "{row:?}");
    }

    /// What a line was found by is seen.
    #[test]
    fn hits_are_painted() {
        let found = found("git commit", Mark::Shell);
        let look = Look { styled: true, ..LOOK };
        let row = Row::new(&found, "!mit").drawn(Choice::Other, look);
        assert!(
            row.contains("\x1b[33mm\x1b[0m\x1b[33mi\x1b[0m\x1b[33mt\x1b[0m"),
            "{row:?}"
        );
    }
}
