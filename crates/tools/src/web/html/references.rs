//! Character references: `&amp;`, `&#233;`, `&eacute;`.

use encoding_rs::WINDOWS_1252;
use pulldown_cmark::{Event, Parser};
use std::borrow::Cow;

/// Bytes of the longest name there is, and then some.
const NAME_BYTES_MAX: usize = 40;
/// Names that old pages write without a semicolon.
const UNFINISHED: [(&str, &str); 7] = [
    ("amp", "&"),
    ("lt", "<"),
    ("gt", ">"),
    ("quot", "\""),
    ("nbsp", "\u{A0}"),
    ("copy", "©"),
    ("reg", "®"),
];

/// Text with its references read; one that is none stays as it is written.
pub(super) fn decoded(text: &str) -> Cow<'_, str> {
    let Some(first) = text.find('&') else {
        return Cow::Borrowed(text);
    };
    let (before, mut rest) = text.split_at(first);
    let mut out = before.to_owned();
    while let Some(after) = rest.strip_prefix('&') {
        let (meant, len) = reference(after).unwrap_or((Cow::Borrowed("&"), 0));
        out.push_str(&meant);
        let after = after.get(len..).unwrap_or_default();
        let next = after.find('&').unwrap_or(after.len());
        let (plain, following) = after.split_at(next);
        out.push_str(plain);
        rest = following;
    }
    Cow::Owned(out)
}

/// What the reference after an `&` means, and how many bytes of it there are.
fn reference(after: &str) -> Option<(Cow<'static, str>, usize)> {
    if let Some(number) = after.strip_prefix('#') {
        return numeric(number).map(|(c, len)| (Cow::Owned(c.to_string()), 1 + len));
    }
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric();
    let len = after.bytes().take(NAME_BYTES_MAX).take_while(is_part).count();
    let name = after.get(..len)?;
    let known = UNFINISHED.into_iter().find(|(known, _)| *known == name);
    if after.as_bytes().get(len) == Some(&b';') {
        let meant = known.map_or_else(|| named(name), |(_, meant)| Some(Cow::Borrowed(meant)));
        return meant.map(|meant| (meant, len + 1));
    }
    // `?a=1&copy=2` is an address.
    let is_parameter = after.as_bytes().get(len) == Some(&b'=');
    known
        .filter(|_| !is_parameter)
        .map(|(_, meant)| (Cow::Borrowed(meant), len))
}

/// The character of a number, decimal or after an `x`, and how many bytes of it there are.
fn numeric(text: &str) -> Option<(char, usize)> {
    let (digits, radix, prefix) = match text.strip_prefix(['x', 'X']) {
        Some(hex) => (hex, 16, 1),
        None => (text, 10, 0),
    };
    let len = digits
        .bytes()
        .take_while(|byte| char::from(*byte).is_digit(radix))
        .count();
    let number = digits.get(..len).filter(|digits| !digits.is_empty())?;
    let code = u32::from_str_radix(number, radix).unwrap_or(u32::MAX);
    // These numbers are written where Windows-1252 is meant (WHATWG HTML, section 13.2.5.80).
    let c = match u8::try_from(code) {
        Ok(byte) if (0x80..0xA0).contains(&byte) => {
            let bytes = [byte];
            let (text, _) = WINDOWS_1252.decode_without_bom_handling(&bytes);
            text.chars().next()
        }
        Ok(0) => None,
        Ok(_) | Err(_) => char::from_u32(code),
    };
    let end = prefix + len + usize::from(digits.as_bytes().get(len) == Some(&b';'));
    Some((c.unwrap_or(char::REPLACEMENT_CHARACTER), end))
}

/// What a name means. Markdown has the same names, and its reader, which the program has anyway, their table.
fn named(name: &str) -> Option<Cow<'static, str>> {
    let written = format!("&{name};");
    let mut meant = String::new();
    for event in Parser::new(&written) {
        if let Event::Text(text) = event {
            meant.push_str(&text);
        }
    }
    (!meant.is_empty() && meant != written).then_some(Cow::Owned(meant))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 4 (`web_get`): references mean what they mean in a browser.
    #[test]
    fn references() {
        for (written, meant) in [
            ("a", "a"),
            ("a &amp; b", "a & b"),
            ("&lt;p&gt;&#39;&#x27;&quot;", "<p>''\""),
            ("caf&eacute; &mdash; &hearts;", "café — ♥"),
            ("&copy 2026 &nbsp", "© 2026 \u{A0}"),
            ("&#147;x&#148; &#8212", "“x” —"),
            (
                "&; & &&amp;& &nosuch; &#; &#x; &#xg;",
                "&; & &&& &nosuch; &#; &#x; &#xg;",
            ),
            ("&#0;&#xD800;&#99999999999;", "\u{FFFD}\u{FFFD}\u{FFFD}"),
            ("?a=1&b=2&copy=3&copyx=4", "?a=1&b=2&copy=3&copyx=4"),
        ] {
            assert_eq!(decoded(written), meant, "{written}");
        }
    }
}
