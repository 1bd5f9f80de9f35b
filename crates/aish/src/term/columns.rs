//! Lines of lists in the columns there are.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Stands for what was cut.
const ELLIPSIS: &str = "…";
/// What stands between the parts of a line.
const GAP: &str = "  ";

/// A line in at most so many columns; what is cut ends in an ellipsis.
pub fn cut(line: &str, columns: usize) -> String {
    if line.width() <= columns {
        return line.to_owned();
    }
    let mut taken = ELLIPSIS.width();
    let kept = line.chars().take_while(|letter| {
        taken += letter.width().unwrap_or(0);
        taken <= columns
    });
    format!("{}{ELLIPSIS}", kept.collect::<String>())
}

/// What something is called, whole, and behind it as much of what it is as fits.
pub fn named(name: &str, what: &str, columns: usize) -> String {
    let room = columns.saturating_sub(name.width() + GAP.len());
    match cut(what, room).as_str() {
        "" | ELLIPSIS => name.to_owned(),
        shown => format!("{name}{GAP}{shown}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 8.9: narrow and wide terminals.
    #[test]
    fn lines_fit() {
        assert_eq!(cut("日本語", 6), "日本語");
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("abc", 2), "a…");
        assert_eq!(named("git.log", "shows commits", usize::MAX), "git.log  shows commits");
        assert_eq!(named("git.log", "shows commits", 15), "git.log  shows…");
        assert_eq!(named("git.log", "shows commits", 10), "git.log");
        assert_eq!(named("git.log", "", 80), "git.log");
    }
}
