//! Lines of lists in the columns there are.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Stands for what was cut.
const ELLIPSIS: &str = "…";
/// What stands between the parts of a line.
const GAP: &str = "  ";
/// Before each line of a list.
const INDENT: &str = "  ";
/// Before what stands below a line of a list.
const BELOW_INDENT: &str = "      ";
/// Fewer columns than these are too few to read in.
const BESIDE_COLUMNS_MIN: usize = 30;

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

/// The lines in rows of so many columns, broken between words; each row begins as far in as its line does. A word that is wider is
/// left to the terminal. Ends with a line feed.
pub fn wrapped(text: &str, columns: usize) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let mut column = 0;
        for word in line.split(' ').filter(|word| !word.is_empty()) {
            if column > 0 && column + 1 + word.width() > columns {
                out.push('\n');
                column = 0;
            }
            let gap = if column == 0 { indent } else { 1 };
            out.push_str(&" ".repeat(gap));
            out.push_str(word);
            column += gap + word.width();
        }
        out.push('\n');
    }
    out
}

/// What can be written, and beside it what it does, a line each. What does not fit goes on below: under its own beginning, or under
/// the left side where little room is left beside it. Ends with a line feed.
pub fn beside(lines: &[(String, &str)], columns: usize) -> String {
    let left_columns = lines.iter().map(|(left, _)| left.width()).max().unwrap_or(0);
    let indent = INDENT.width() + left_columns + GAP.len();
    let is_beside = columns >= indent + BESIDE_COLUMNS_MIN;
    let mut out = String::new();
    for (left, right) in lines {
        let indent = if is_beside { indent } else { BELOW_INDENT.len() };
        let right = wrapped(right, columns.saturating_sub(indent));
        let between = if is_beside {
            " ".repeat(left_columns - left.width() + GAP.len())
        } else {
            format!("\n{BELOW_INDENT}")
        };
        let right = right.trim_end().replace('\n', &format!("\n{}", " ".repeat(indent)));
        out.push_str(&format!("{INDENT}{left}{between}{right}\n"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 8.9: sentences of our own are never broken within a word.
    #[test]
    fn words_stay_whole() {
        assert_eq!(wrapped("ab cd ef\n\n  gh ij", 5), "ab cd\nef\n\n  gh\n  ij\n");
        assert_eq!(wrapped("日本 abcdefgh x", 5), "日本\nabcdefgh\nx\n");
        assert_eq!(wrapped("a b", usize::MAX), "a b\n");
        assert_eq!(wrapped("", 5), "");
    }

    /// SPEC 8.9: a list goes on in its own column, and below where that is narrow.
    #[test]
    fn lists_are_laid_out() {
        let lines = [
            (":a".to_owned(), "one two three four five six seven"),
            (":bcd".to_owned(), "x"),
        ];
        let one = "  :a    one two three four five six seven\n  :bcd  x\n";
        assert_eq!(beside(&lines, usize::MAX), one);
        let two = "  :a    one two three four five six\n        seven\n  :bcd  x\n";
        assert_eq!(beside(&lines, 38), two);
        let below = "  :a\n      one two three four five\n      six seven\n  :bcd\n      x\n";
        assert_eq!(beside(&lines, 30), below);
        assert_eq!(beside(&[], 0), "");
    }

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
