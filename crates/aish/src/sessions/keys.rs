//! Keys that a session says itself: `NAME=value` in what was typed and printed, where such a name is a key's (SPEC 10.5).
//!
//! The ledger holds raw text. Whoever exports it has another environment than the shell in which the session ran: a key that only that
//! shell's start-up files export is known there, and not here. Where it was set, or its variables were listed, the session says it.

use crate::shell::variables::Withheld;
use aish_core::redact::{PLACEHOLDER_START, Redactor};

/// What may stand around a value: quotes, as text and as text in JSON.
const QUOTES: [char; 3] = ['"', '\'', '\\'];
/// What ends one, beside blanks and quotes.
const ENDS: [char; 6] = [';', '&', '|', '<', '>', ')'];

/// Teaches the keys that a text says.
pub fn learn(text: &str, withheld: &Withheld, redactor: &Redactor) {
    for (at, _) in text.match_indices('=') {
        let (before, behind) = (
            text.get(..at).unwrap_or_default(),
            text.get(at + 1..).unwrap_or_default(),
        );
        let name_len = before
            .bytes()
            .rev()
            .take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
            .count();
        let name = before.get(at - name_len..).unwrap_or_default();
        if !withheld.is_key(name) {
            continue;
        }
        let value = behind.trim_start_matches(QUOTES);
        let end = value.find(|c: char| c.is_whitespace() || QUOTES.contains(&c) || ENDS.contains(&c));
        let value = value.get(..end.unwrap_or(value.len())).unwrap_or_default();
        // What stands for a value is none.
        if !value.starts_with('$') && !value.starts_with(PLACEHOLDER_START) {
            redactor.learn(name, value);
        }
    }
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
        assert_eq!(redacted("MY_TOKEN=s3cret-value-1"), "it is [redacted:MY_TOKEN].");
        for plain in [
            "PLAIN=s3cret-value-1",
            "X_API_KEY=$s3cret-value-1",
            "X_API_KEY=",
            "=",
            "X_API_KEY s3cret-value-1",
        ] {
            assert_eq!(redacted(plain), "it is s3cret-value-1.", "{plain}");
        }
    }
}
