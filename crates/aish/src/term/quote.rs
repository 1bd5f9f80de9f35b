//! Words that are not ours, where ours stand too: behind a mark at the beginning of every row, so that no server can write a line
//! that looks like one of aish's.

use super::rows::Rows;
use aish_core::sanitize;

/// Before every line of such a text.
pub(super) const LINE_START: &str = "  │ ";
/// Before a row that goes on with such a line.
pub(super) const WRAP_START: &str = "  ╎ ";
/// Before a row that goes on with a line of ours.
const OWN_WRAP_START: &str = "    ";

/// The text escaped, each of its lines behind the mark, in rows of so many columns; ends with a line feed. Nothing for no text.
pub fn quoted(text: &str, columns: usize) -> String {
    let mut out = String::new();
    for line in sanitize::multi_line(text).lines() {
        if line.is_empty() {
            out.push_str(LINE_START.trim_end());
            out.push('\n');
        } else {
            push(line, Rows::new(LINE_START, WRAP_START, columns), &mut out);
        }
    }
    out
}

/// A line of ours that holds their words, escaped already: what is wider than the columns goes on indented. Ends with a line feed.
pub fn indented(line: &str, columns: usize) -> String {
    let mut out = String::new();
    push(line, Rows::new("", OWN_WRAP_START, columns), &mut out);
    out
}

fn push(line: &str, mut rows: Rows, out: &mut String) {
    rows.push(line, out);
    rows.break_row(out);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 8.8: no line of theirs begins where ours do, however it is cut or wrapped.
    #[test]
    fn theirs_are_marked() {
        assert_eq!(
            quoted("a\n\n[aish] b\r\n\x1b", 80),
            "  │ a\n  │\n  │ [aish] b\n  │ \\x1b\n"
        );
        assert_eq!(quoted("ab   [aish] c", 9), "  │ ab   \n  ╎ [aish\n  ╎ ] c\n");
        assert_eq!(quoted("", 80), "");
        assert_eq!(indented("s.ab [aish] c", 9), "s.ab [ais\n    h] c\n");
        assert_eq!(indented("s.ab", usize::MAX), "s.ab\n");
    }
}
