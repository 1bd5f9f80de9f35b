//! Keys that a session says itself: in what was typed and printed, where a name is a key's (SPEC 10.5).
//!
//! | said as | by |
//! |---|---|
//! | `NAME=value` | shells, and what lists variables |
//! | `set -gx NAME value` | fish |
//! | `NAME: value`, `"NAME":"value"` | files of settings, and what prints them |
//!
//! The ledger holds raw text. Whoever exports it has another environment than the shell in which the session ran: a key that only that
//! shell's start-up files export is known there, and not here. Where it was set, or its variables were listed, the session says it.

use crate::shell::variables::Withheld;
use aish_core::redact::{PLACEHOLDER_START, Redactor};

/// What may stand around a value: quotes, as text and as text in JSON.
const QUOTES: [char; 3] = ['"', '\'', '\\'];
/// What ends one without quotes, beside blanks and quotes.
const ENDS: [char; 6] = [';', '&', '|', '<', '>', ')'];
/// What may follow one in a list of settings.
const BEHIND_SETTING: [char; 2] = [',', '}'];
/// Between the words of a line.
const BLANKS: [char; 2] = [' ', '\t'];
/// What begins text that stands for a value and is none.
const STANDS_FOR: [char; 2] = ['$', '('];

/// How a value is said.
enum Said<'a> {
    /// For a shell.
    Set(&'a str),
    /// Among settings, where it may as well be a sentence.
    Told(&'a str),
}

/// Teaches the keys that a text says.
pub fn learn(text: &str, withheld: &Withheld, redactor: &Redactor) {
    let mut at = 0;
    for piece in text.split_inclusive(|c| !is_of_name(c)) {
        let name = piece.trim_end_matches(|c| !is_of_name(c));
        if withheld.is_key(name) {
            let before = text.get(..at).unwrap_or_default();
            let behind = text.get(at + name.len()..).unwrap_or_default();
            if let Some(said) = said(before, behind) {
                learn_value(name, &said, redactor);
            }
        }
        at += piece.len();
    }
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// What is said of the name between these.
fn said<'a>(before: &str, behind: &'a str) -> Option<Said<'a>> {
    if let Some(value) = behind.strip_prefix('=') {
        return Some(Said::Set(value));
    }
    let apart = behind.trim_start_matches(QUOTES).trim_start_matches(BLANKS);
    if let Some(value) = apart.strip_prefix(':') {
        let is_value = value.starts_with(BLANKS) || value.starts_with(QUOTES);
        return is_value.then(|| Said::Told(value.trim_start_matches(BLANKS)));
    }
    (behind.starts_with(BLANKS) && sets(before)).then(|| Said::Set(behind.trim_start_matches(BLANKS)))
}

/// Whether that ends in fish's `set`, perhaps with options.
fn sets(before: &str) -> bool {
    let mut words = before.rsplit(BLANKS).filter(|word| !word.is_empty());
    let command = words.find(|word| !word.starts_with('-')).unwrap_or_default();
    // Within JSON a line's end is a letter.
    let command = command.rsplit_once("\\n").map_or(command, |(_, command)| command);
    command.rsplit(|c| !is_of_name(c)).next() == Some("set")
}

fn learn_value(name: &str, said: &Said<'_>, redactor: &Redactor) {
    let (Said::Set(text) | Said::Told(text)) = said;
    let quoted = quoted(text);
    let value = match (quoted, said) {
        (Some(value), _) => value,
        (None, Said::Set(_)) => bare(text),
        (None, Said::Told(_)) => {
            let value = bare(text).trim_end_matches(BEHIND_SETTING);
            // A word of a sentence: it would be taken out of the whole session.
            if value.bytes().all(|byte| byte.is_ascii_lowercase()) {
                return;
            }
            value
        }
    };
    if value.starts_with(STANDS_FOR) || value.starts_with(PLACEHOLDER_START) {
        return;
    }
    redactor.learn(name, value);
    if value.contains('\\') {
        // As it is printed.
        redactor.learn(name, &value.replace('\\', ""));
    }
}

/// All that is in the quotes that open there, if they close in that line.
fn quoted(text: &str) -> Option<&str> {
    let mark_len = text.find(|c| c != '\\')? + 1;
    let (mark, inner) = text.split_at_checked(mark_len)?;
    let is_double = mark.ends_with('"');
    if !is_double && !mark.ends_with('\'') {
        return None;
    }
    let line = inner.lines().next()?;
    let mut ends = line.match_indices(mark).filter_map(|(end, _)| line.get(..end));
    ends.find(|value| !is_double || !value.ends_with('\\'))
}

/// A value without quotes, or with one that does not close.
fn bare(text: &str) -> &str {
    let value = text.trim_start_matches(QUOTES);
    let end = value.find(|c: char| c.is_whitespace() || QUOTES.contains(&c) || ENDS.contains(&c));
    value.get(..end.unwrap_or(value.len())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 10.5: what a session says of keys is known from then on.
    #[test]
    fn what_is_said() {
        let withheld = Withheld::new(["MY_TOKEN"]);
        let redacted = |text: &str| {
            let redactor = Redactor::new([]);
            learn(text, &withheld, &redactor);
            redactor.redact("it is s3cret-value-1.").into_owned()
        };
        for said in [
            "export X_API_KEY=s3cret-value-1",
            "PATH=/bin\nX_API_KEY=s3cret-value-1\nHOME=/",
            "X_API_KEY='s3cret-value-1'; ls",
            r#"{"line":"X_API_KEY=\"s3cret-value-1\" cmd\n"}"#,
            r#"{"output":"X_API_KEY=s3cret-value-1\nA=b"}"#,
        ] {
            assert_eq!(redacted(said), "it is [redacted:X_API_KEY].", "{said}");
        }
        for said in [
            "set -gx X_API_KEY s3cret-value-1",
            "set X_API_KEY 's3cret-value-1'; ls",
            "true; set --global  -x X_API_KEY \"s3cret-value-1\"",
            r#"{"line":"cd\nset -gx X_API_KEY s3cret-value-1\n"}"#,
            "X_API_KEY: s3cret-value-1",
            "{X_API_KEY: s3cret-value-1, A: b}",
            r#"{"X_API_KEY":"s3cret-value-1"}"#,
            r#"{"output":"{\"X_API_KEY\": \"s3cret-value-1\"}"}"#,
            "X_API_KEY='s3cret-value-1",
        ] {
            assert_eq!(redacted(said), "it is [redacted:X_API_KEY].", "{said}");
        }
        assert_eq!(redacted("MY_TOKEN=s3cret-value-1"), "it is [redacted:MY_TOKEN].");
        for plain in [
            "PLAIN=s3cret-value-1",
            "X_API_KEY=$s3cret-value-1",
            "X_API_KEY=",
            "=",
            "X_API_KEY s3cret-value-1",
            "reset X_API_KEY s3cret-value-1",
            "set PLAIN s3cret-value-1",
            "PLAIN: s3cret-value-1",
            "${X_API_KEY:-s3cret-value-1}",
            "set X_API_KEY (s3cret-value-1)",
        ] {
            assert_eq!(redacted(plain), "it is s3cret-value-1.", "{plain}");
        }
    }

    /// SPEC 10.5: a value in quotes is known to its end, whatever is in it; a word of a sentence is no value.
    #[test]
    fn quotes_and_sentences() {
        let redacted = |said: &str, text: &str| {
            let redactor = Redactor::new([]);
            learn(said, &Withheld::new([]), &redactor);
            redactor.redact(text).into_owned()
        };
        let value = "one two) three; four";
        for said in [
            format!("export X_API_KEY='{value}'"),
            format!("X_API_KEY=\"{value}\" cmd \"more\""),
            format!("set -gx X_API_KEY '{value}'"),
            format!("X_API_KEY: \"{value}\""),
            format!(r#"{{"line":"X_API_KEY=\"{value}\" cmd \"more\""}}"#),
        ] {
            assert_eq!(
                redacted(&said, &format!("<{value}>")),
                "<[redacted:X_API_KEY]>",
                "{said}"
            );
        }
        let escaped = r#"X_API_KEY="one \"two\" three""#;
        assert_eq!(redacted(escaped, "one \"two\" three"), "[redacted:X_API_KEY]");
        assert_eq!(redacted(escaped, escaped), "X_API_KEY=\"[redacted:X_API_KEY]\"");
        assert_eq!(redacted("X_API_KEY: undefined", "it is undefined"), "it is undefined");
    }
}
