//! The words of a question that begin with `@`: finding them, and writing a path as one.
//!
//! A path is written plain, in double quotes, or as at a shell, with a backslash before what would end or change it; the address
//! of a resource may also have its quotes behind `alias:`. What is written here for a path is found again as that path.

use aish_core::sanitize::is_hostile;
use aish_mcp::Alias;
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
    /// An alias and a colon, and what is behind them between double quotes.
    QuotedAddress,
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
    /// Bytes of that which are certainly no punctuation behind it: what quotes and backslashes protect.
    protected: usize,
    /// How it is written.
    pub(super) form: Form,
}

impl<'a> Word<'a> {
    fn found(text: &'a str, at: usize) -> Option<Self> {
        let behind = at + 1;
        let rest = text.get(behind..)?;
        let Some((before, quoted)) = quoted_part(rest) else {
            let Plain {
                length,
                path,
                protected,
            } = plain(rest);
            return Some(Self {
                at,
                end: behind + length,
                written: rest.get(..length)?,
                path,
                protected,
                form: Form::Plain,
            });
        };
        let length = quoted.find(['"', '\n']).unwrap_or(quoted.len());
        let is_closed = quoted.get(length..).is_some_and(|rest| rest.starts_with('"'));
        let (form, closing_bytes) = match (is_closed, before) {
            (true, "") => (Form::Quoted, 1),
            (true, _) => (Form::QuotedAddress, 1),
            (false, _) => (Form::Open, 0),
        };
        let path = format!("{before}{}", quoted.get(..length)?);
        Some(Self {
            at,
            end: behind + before.len() + 1 + length + closing_bytes,
            written: quoted.get(..length)?,
            protected: path.len(),
            path,
            form,
        })
    }

    /// The path without the punctuation that may follow a word.
    pub(super) fn without_closing(&self) -> &str {
        let length = self.path.trim_end_matches(CLOSING).len();
        self.path.get(..length.max(self.protected)).unwrap_or_default()
    }

    /// Whether quotes say where it ends.
    pub(super) fn is_quoted(&self) -> bool {
        match self.form {
            Form::Quoted | Form::QuotedAddress => true,
            Form::Plain | Form::Open => false,
        }
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

/// What stands before a double quote that begins a path, nothing or `alias:`, and what stands behind it.
fn quoted_part(rest: &str) -> Option<(&str, &str)> {
    let (before, quoted) = rest.split_once('"')?;
    let is_address = || {
        before
            .strip_suffix(':')
            .is_some_and(|alias| Alias::parse(alias).is_ok())
    };
    (before.is_empty() || is_address()).then_some((before, quoted))
}

/// A path that is written without quotes.
struct Plain {
    /// Bytes it takes up.
    length: usize,
    /// It, without the backslashes that only protect what follows them.
    path: String,
    /// Bytes of it up to the last that was protected.
    protected: usize,
}

fn plain(rest: &str) -> Plain {
    let (mut path, mut protected) = (String::new(), 0);
    let mut chars = rest.char_indices().peekable();
    let mut length = rest.len();
    while let Some((at, c)) = chars.next() {
        if c.is_whitespace() {
            length = at;
            break;
        }
        match chars.next_if(|(_, next)| c == '\\' && is_protected_by_backslash(*next)) {
            Some((_, next)) => {
                path.push(next);
                protected = path.len();
            }
            None => path.push(c),
        }
    }
    Plain {
        length,
        path,
        protected,
    }
}

/// A backslash before a letter is one (`\n` in a question about code), and so is one at the end of a line.
fn is_protected_by_backslash(c: char) -> bool {
    c.is_ascii_punctuation() || (c.is_whitespace() && !c.is_control())
}

/// A file's path, or a resource's `alias:uri`, as a mention; nothing for one that cannot be typed.
pub fn mention_of_file(path: &str) -> Option<String> {
    Some(match form_for(path)? {
        // Of punctuation at its end nobody could tell whether it belongs to it. A brace never ends an address (RFC 3986, 2), only
        // a template of some.
        Writing::Plain if path.ends_with('}') || !path.ends_with(CLOSING) => format!("@{path}"),
        Writing::Plain | Writing::Quoted => format!("@\"{path}\""),
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
    let before_last = path.trim_end_matches(CLOSING).len();
    for (at, c) in path.char_indices() {
        if ends_or_changes_a_path(c) || at >= before_last {
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
        check("@s:\"b c\", @d", &[("s:b c", Form::QuotedAddress), ("d", Plain)]);
        check("@s:\"b c", &[("s:b c", Open)]);
        check("@S:\"b c\"", &[("S:\"b", Plain)]);
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
            let word = words(&text).next().unwrap();
            prop_assert_eq!(&word.path, &path);
            prop_assert_eq!(word.without_closing(), &path);
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
