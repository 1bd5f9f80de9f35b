//! Bounded text: what every tool collects its output in, those of other crates too (SPEC 4.3).
//!
//! A [`Capture`] keeps the first bytes of a text up to a limit, counts the rest without keeping it, and says so at the
//! end. Memory is bounded by the limit whatever is pushed.

/// What a NUL becomes: consumers of JSON (C strings, databases) choke on it.
const NUL_SHOWN: &str = "\u{FFFD}";

/// The first part of a text, and how long the whole of it was.
#[derive(Debug)]
pub struct Capture {
    text: String,
    bytes_total: u64,
    bytes_max: usize,
    is_cut: bool,
}

impl Capture {
    /// Keeps at most `bytes_max` bytes.
    pub fn new(bytes_max: usize) -> Self {
        Self {
            text: String::new(),
            bytes_total: 0,
            bytes_max,
            is_cut: false,
        }
    }

    /// A whole text at once.
    #[cfg(test)]
    pub(crate) fn of(text: &str, bytes_max: usize) -> Self {
        let mut capture = Self::new(bytes_max);
        capture.push(text);
        capture
    }

    /// Adds text and returns the part of it that was kept.
    pub fn push(&mut self, text: &str) -> &str {
        if text.contains('\0') {
            return self.push_clean(&text.replace('\0', NUL_SHOWN));
        }
        self.push_clean(text)
    }

    fn push_clean(&mut self, text: &str) -> &str {
        let from = self.text.len();
        self.bytes_total += text.len() as u64;
        if !self.is_cut {
            let kept = text.floor_char_boundary(self.bytes_max.saturating_sub(from));
            self.is_cut = kept < text.len();
            self.text.push_str(text.get(..kept).unwrap_or_default());
        }
        self.text.get(from..).unwrap_or_default()
    }

    /// Counts bytes that are known to follow and were not looked at.
    pub fn skip(&mut self, bytes: u64) {
        self.bytes_total += bytes;
        self.is_cut |= bytes > 0;
    }

    /// True when whatever comes next is only counted.
    pub fn is_full(&self) -> bool {
        self.is_cut || self.text.len() >= self.bytes_max
    }

    /// True when something was left out.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// What was kept so far.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What was kept, with a last line that says what was not.
    pub fn finish(self) -> String {
        let mut text = self.text;
        if self.is_cut {
            let shown = text.len();
            if shown > 0 && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&format!(
                "[Output truncated: showing first {shown} of {} bytes]",
                self.bytes_total
            ));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, bytes_max: usize, expect: &str) {
        assert_eq!(Capture::of(text, bytes_max).finish(), expect);
    }

    /// SPEC 4.3: exactly at the limit is unchanged, one more is cut, and the cut is stated.
    #[test]
    fn cut_is_stated() {
        check("", 0, "");
        check("abcd", 4, "abcd");
        check("abcde", 4, "abcd\n[Output truncated: showing first 4 of 5 bytes]");
        check("abc\nde", 4, "abc\n[Output truncated: showing first 4 of 6 bytes]");
        check("a", 0, "[Output truncated: showing first 0 of 1 bytes]");
    }

    /// SPEC 4.3: a cut never splits a character.
    #[test]
    fn cut_is_on_a_character_boundary() {
        check("aé", 2, "a\n[Output truncated: showing first 1 of 3 bytes]");
        check("日本", 5, "日\n[Output truncated: showing first 3 of 6 bytes]");
    }

    /// SPEC 4.3: nothing is kept after a gap, even if it would fit.
    #[test]
    fn nothing_follows_a_gap() {
        let mut capture = Capture::new(4);
        assert_eq!(capture.push("abc"), "abc");
        assert_eq!(capture.push("é"), "");
        assert_eq!(capture.push("x"), "");
        assert_eq!(capture.finish(), "abc\n[Output truncated: showing first 3 of 6 bytes]");
    }

    /// SPEC 4.4: binary output is safe.
    #[test]
    fn nul_is_replaced() {
        check("a\0b", 10, "a\u{FFFD}b");
    }
}
