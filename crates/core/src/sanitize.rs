//! What untrusted text may do to a terminal: nothing (SPEC 8.8).
//!
//! Text from a model, a tool or a server passes here before it is shown. Control characters (escape sequences begin with
//! one), bidirectional overrides and invisible characters come out as visible escapes such as `\x1b` or `\u{202e}`. Works
//! character by character, so text may be cut anywhere between two characters.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Text over several lines: line feeds and tabs pass, `\r\n` becomes a line feed.
pub fn multi_line(text: &str) -> Cow<'_, str> {
    escape(text, |c| c == '\n' || c == '\t')
}

/// Text that must stay on its line: line feeds and tabs are escaped too.
pub fn single_line(text: &str) -> Cow<'_, str> {
    escape(text, |_| false)
}

/// Text for a pipe, where nothing but control characters can do harm: they alone are escaped, line ends stay as they are.
pub fn controls(text: &str) -> Cow<'_, str> {
    let harmless = |c: char, next: Option<char>| match c {
        '\n' | '\t' => true,
        '\r' => next == Some('\n'),
        c => !c.is_control(),
    };
    let following = |at: usize| text.get(at..).and_then(|rest| rest.chars().nth(1));
    if text
        .char_indices()
        .all(|(at, c)| !c.is_control() || harmless(c, following(at)))
    {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for (at, c) in text.char_indices() {
        if harmless(c, following(at)) {
            out.push(c);
        } else {
            push_escaped(&mut out, c);
        }
    }
    Cow::Owned(out)
}

fn escape(text: &str, passes: fn(char) -> bool) -> Cow<'_, str> {
    let harmless = |c: char| passes(c) || !is_hostile(c);
    if text.chars().all(harmless) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        if harmless(c) {
            out.push(c);
        } else if c == '\r' && passes('\n') && characters.peek() == Some(&'\n') {
            // The line feed that follows does all that a terminal needs.
        } else {
            push_escaped(&mut out, c);
        }
    }
    Cow::Owned(out)
}

fn push_escaped(out: &mut String, c: char) {
    // Writing to a string cannot fail.
    let _ = match c {
        '\n' => write!(out, "\\n"),
        '\r' => write!(out, "\\r"),
        '\t' => write!(out, "\\t"),
        c if (c as u32) < 0x80 => write!(out, "\\x{:02x}", c as u32),
        c => write!(out, "\\u{{{:x}}}", c as u32),
    };
}

/// True for characters that act on a terminal, reorder text or cannot be seen.
pub fn is_hostile(c: char) -> bool {
    match c {
        ' '..='~' => false,
        c if c.is_control() => true,
        // Zero-width joiner and variation selectors build emoji and stay; the rest of the invisible ones do not.
        '\u{00ad}' | '\u{034f}' | '\u{061c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}' => true,
        '\u{200b}' | '\u{200c}' | '\u{200e}' | '\u{200f}' => true,
        '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' => true,
        '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}' => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(input: &str, multi: &str, single: &str) {
        assert_eq!(multi_line(input), multi);
        assert_eq!(single_line(input), single);
    }

    /// SPEC 8.8: nothing that acts on a terminal passes.
    #[test]
    fn hostile_text_is_escaped() {
        check("plain ünïcode 👩‍🚀", "plain ünïcode 👩‍🚀", "plain ünïcode 👩‍🚀");
        check("\x1b]0;title\x07", "\\x1b]0;title\\x07", "\\x1b]0;title\\x07");
        check("a\u{9b}31mb", "a\\u{9b}31mb", "a\\u{9b}31mb");
        check("a\r\nb\rc\td", "a\nb\\rc\td", "a\\r\\nb\\rc\\td");
        check("x\u{202e}y\u{200b}z", "x\\u{202e}y\\u{200b}z", "x\\u{202e}y\\u{200b}z");
        check("tag\u{e0041}", "tag\\u{e0041}", "tag\\u{e0041}");
    }

    /// SPEC 8.8: in a pipe text stays what it is, but for what a terminal behind it would act on.
    #[test]
    fn controls_alone() {
        assert_eq!(
            controls("می\u{200c}خواهم\r\n\tx\u{202e}"),
            "می\u{200c}خواهم\r\n\tx\u{202e}"
        );
        assert_eq!(controls("a\x1b[31m\rb\u{9b}\x7f"), "a\\x1b[31m\\rb\\u{9b}\\x7f");
    }

    /// SPEC 8.8: over every character there is, no control character comes out.
    #[test]
    fn every_character() {
        for c in (0..=0x10_ffff).filter_map(char::from_u32) {
            let text = c.to_string();
            assert!(single_line(&text).chars().all(|c| !c.is_control()), "{c:?}");
            assert!(
                multi_line(&text)
                    .chars()
                    .all(|c| c == '\n' || c == '\t' || !c.is_control()),
                "{c:?}"
            );
        }
    }
}
