//! JSON on its way out of the program. JSON escapes what is below a space and nothing else; here every character that acts on a
//! terminal, reorders text or cannot be seen is written as an escape, e.g. `\u202e`, so that neither a terminal nor a person who looks at the
//! lines is deceived (SPEC 8.8). To a parser the document is the same.

use aish_core::sanitize::is_hostile;
use std::borrow::Cow;
use std::fmt::Write as _;

/// A JSON text, or lines of them, fit to be printed.
pub fn printable(json: &str) -> Cow<'_, str> {
    // Below a space a valid document has white space between its tokens, and nothing inside a string.
    let escapes = |c: char| c > ' ' && is_hostile(c);
    if !json.chars().any(escapes) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if escapes(c) {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// SPEC 8.8: over every character there is, none that is hostile comes out, and a parser reads what was meant.
    #[test]
    fn every_character() {
        for c in (0..=0x10_ffff).filter_map(char::from_u32) {
            let value = Value::from(format!("a{c}b"));
            let printed = printable(&value.to_string()).into_owned();
            assert!(!printed.chars().any(is_hostile), "{c:?}");
            assert_eq!(serde_json::from_str::<Value>(&printed).unwrap(), value, "{c:?}");
        }
    }

    /// White space between tokens stays what it is; ordinary text of any script too; above the BMP there are two halves.
    #[test]
    fn what_stays() {
        let check = |input: &str, expect: &str| assert_eq!(printable(input), expect);
        check(
            "{\"a\":\t\"né 👩\u{200d}🚀\"}\n{}\r\n",
            "{\"a\":\t\"né 👩\u{200d}🚀\"}\n{}\r\n",
        );
        check(
            "\"\u{9b}\u{7f}\u{202e}\u{e0041}\"",
            r#""\u009b\u007f\u202e\udb40\udc41""#,
        );
    }
}
