//! How many values a JSON text has, before any of them is built: the same bound for whatever a peer sends, over either transport.

/// Values in one message. A value of one byte becomes dozens in memory, so bytes alone bound nothing; a long list of tools has
/// some ten thousand.
pub(crate) const VALUES_MAX: usize = 200_000;

/// An upper bound of the values in JSON text, found without building any: each follows a comma or a colon, or opens something.
pub(crate) fn count_values(text: &[u8]) -> usize {
    let (mut count, mut is_text, mut is_escaped) = (1, false, false);
    for byte in text {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            b',' | b':' | b'[' | b'{' if !is_text => count += 1,
            _ => {}
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 12: never fewer than there are, and none for what stands in text.
    #[test]
    fn counted() {
        for (text, at_least, at_most) in [
            ("7", 1, 1),
            (r#"{"a":1,"b":[2,3]}"#, 5, 9),
            (r#""a,[{:\",,,""#, 1, 1),
            ("[[[[", 4, 5),
            ("", 0, 1),
        ] {
            let count = count_values(text.as_bytes());
            assert!((at_least..=at_most).contains(&count), "{text}: {count}");
        }
    }
}
