//! The words of a question that begin with `@`: finding them, and writing a path as one.
//!
//! A path is written plain, in double quotes, or as at a shell, with a backslash before what would end or change it. What is
//! written here for a path is found again as that path.

use aish_core::sanitize::is_hostile;
use std::path::Path;

/// What may stand before a mention, besides white space.
const OPENING: [char; 6] = ['(', '[', '{', '"', '\'', '`'];
/// What may stand behind one without being part of it.
pub(super) const CLOSING: [char; 12] = [',', '.', ';', ':', '!', '?', ')', ']', '}', '"', '\'', '`'];

/// How the path of a mention is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Up to the next white space that no backslash stands before.
    Plain,
    /// Between double quotes.
    Quoted,
    /// Behind a double quote that nothing closes on its line: still being typed, or no mention.
    Open,
}

/// A word behind an `@`.
#[derive(Debug)]
pub(super) struct Word<'a> {
    /// Where its `@` stands, in bytes.
    pub(super) at: usize,
    /// Where the text goes on, in bytes.
    pub(super) end: usize,
    /// As it was written, without `@` and quotes.
    pub(super) written: &'a str,
    /// The path that was meant, perhaps with punctuation behind it.
    pub(super) path: String,
    /// How it is written.
    pub(super) form: Form,
}

impl<'a> Word<'a> {
    fn found(text: &'a str, at: usize) -> Option<Self> {
        let behind = at + 1;
        let rest = text.get(behind..)?;
        let Some(quoted) = rest.strip_prefix('"') else {
            let (length, path) = plain(rest);
            return Some(Self {
                at,
                end: behind + length,
                written: rest.get(..length)?,
                path,
                form: Form::Plain,
            });
        };
        let length = quoted.find(['"', '\n']).unwrap_or(quoted.len());
        let written = quoted.get(..length)?;
        let is_closed = quoted.get(length..).is_some_and(|rest| rest.starts_with('"'));
        let (form, closing_bytes) = if is_closed { (Form::Quoted, 1) } else { (Form::Open, 0) };
        Some(Self {
            at,
            end: behind + 1 + length + closing_bytes,
            written,
            path: written.to_owned(),
            form,
        })
    }

    /// Whether it can name anything.
    pub(super) fn is_whole(&self) -> bool {
        self.form != Form::Open && !self.path.is_empty()
    }

    /// Whether somebody who wrote this probably meant a file. `@someone` does not, nor does `@server:uri`.
    pub(super) fn looks_like_path(&self) -> bool {
        let path = self.path.trim_end_matches(CLOSING);
        let has_extension = Path::new(path).extension().is_some();
        self.form == Form::Quoted || ((path.contains('/') || has_extension) && !path.contains(':'))
    }
}

/// Words that begin with an `@` of their own, in order; one inside a word is an address, or something else.
pub(super) fn words(text: &str) -> impl Iterator<Item = Word<'_>> {
    let mut from = 0;
    std::iter::from_fn(move || {
        loop {
            let at = from + text.get(from..)?.find('@')?;
            from = at + 1;
            let before = text.get(..at)?.chars().next_back();
            if before.is_some_and(|c| !c.is_whitespace() && !OPENING.contains(&c)) {
                continue;
            }
            let word = Word::found(text, at)?;
            // Behind a quote that nothing closes, there may be mentions still.
            if word.form != Form::Open {
                from = word.end;
            }
            return Some(word);
        }
    })
}

/// The bytes a plain path takes up, and the path without the backslashes that only protect what follows them.
fn plain(rest: &str) -> (usize, String) {
    let mut path = String::new();
    let mut chars = rest.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if c.is_whitespace() {
            return (at, path);
        }
        let protected = chars.next_if(|(_, next)| c == '\\' && is_protected_by_backslash(*next));
        path.push(protected.map_or(c, |(_, next)| next));
    }
    (rest.len(), path)
}

/// A backslash before a letter is one (`\n` in a question about code), and so is one at the end of a line.
fn is_protected_by_backslash(c: char) -> bool {
    c.is_ascii_punctuation() || (c.is_whitespace() && !c.is_control())
}

/// A file's path, or a resource's `alias:uri`, as a mention; nothing for one that cannot be typed.
pub fn mention_of_file(path: &str) -> Option<String> {
    Some(match form_for(path)? {
        Writing::Plain => format!("@{path}"),
        Writing::Quoted => format!("@\"{path}\""),
        Writing::Backslashes => format!("@{}", with_backslashes(path)),
    })
}

/// A directory's path (without a slash at its end) as the beginning of a mention: quotes stay open, since it goes on.
pub(super) fn mention_of_directory(path: &str) -> Option<String> {
    Some(match form_for(path)? {
        Writing::Plain => format!("@{path}/"),
        Writing::Quoted => format!("@\"{path}/"),
        Writing::Backslashes => format!("@{}/", with_backslashes(path)),
    })
}

/// How a path is best written.
enum Writing {
    Plain,
    Quoted,
    /// Between quotes there can be no quote.
    Backslashes,
}

fn form_for(path: &str) -> Option<Writing> {
    if path.chars().any(is_hostile) {
        None
    } else if path.contains('"') {
        Some(Writing::Backslashes)
    } else if path.contains(ends_or_changes_a_path) {
        Some(Writing::Quoted)
    } else {
        Some(Writing::Plain)
    }
}

fn ends_or_changes_a_path(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\\' | '"')
}

fn with_backslashes(path: &str) -> String {
    let mut out = String::new();
    for c in path.chars() {
        if ends_or_changes_a_path(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, expect: &[(&str, Form)]) {
        let found: Vec<(String, Form)> = words(text).map(|word| (word.path, word.form)).collect();
        let expect: Vec<(String, Form)> = expect.iter().map(|(path, form)| ((*path).to_owned(), *form)).collect();
        assert_eq!(found, expect, "{text:?}");
    }

    /// SPEC 8.9: a path is understood plain, in quotes, and as a shell's own completion writes it.
    #[test]
    fn forms() {
        use Form::{Open, Plain, Quoted};
        check("see @a.md, (@b)", &[("a.md,", Plain), ("b)", Plain)]);
        check("@\"a b.md\", @c", &[("a b.md", Quoted), ("c", Plain)]);
        check(r"@a\ b.txt @c", &[("a b.txt", Plain), ("c", Plain)]);
        check(r"@it\'s\ \(1\).md", &[("it's (1).md", Plain)]);
        check(r"@a\\b @dir\name", &[(r"a\b", Plain), (r"dir\name", Plain)]);
        check("@a\\\n@b\\", &[("a\\", Plain), ("b\\", Plain)]);
        check("me@a, x@b", &[]);
        check("@\"open @a\n@b", &[("open @a", Open), ("a", Plain), ("b", Plain)]);
        // What is quoted is one path, and no other mention begins in it.
        check("@\"x @b.md\"", &[("x @b.md", Quoted)]);
    }

    /// Nothing is offered that could not be typed.
    #[test]
    fn names_that_cannot_be_written() {
        assert_eq!(mention_of_file("a\u{1b}b"), None);
        assert_eq!(mention_of_directory("a\nb"), None);
    }

    proptest! {
        /// SPEC 8.9: what is written for a path is understood as that path, in the middle of a question too.
        #[test]
        fn what_is_written_is_understood(path in "[a-c \\\\\"'@.,()\u{a0}/é]{1,12}") {
            let file = mention_of_file(&path).unwrap();
            let text = format!("see {file} and");
            prop_assert_eq!(&words(&text).next().unwrap().path, &path);
            let directory = mention_of_directory(&path).unwrap();
            prop_assert_eq!(&words(&directory).next().unwrap().path, &format!("{path}/"));
        }

        /// Any text has mentions within it, one behind the other.
        #[test]
        fn any_text(text in "[@\"\\\\ \na-bé.(]{0,40}") {
            let mut from = 0;
            for word in words(&text) {
                prop_assert!(from <= word.at && word.at < word.end && word.end <= text.len());
                from = if word.form == Form::Open { word.at + 1 } else { word.end };
            }
        }
    }
}
