//! Untrusted text on its way out of the program: without secrets (SPEC 10.5), and without what acts on a terminal (SPEC 8.8).
//!
//! Text comes in pieces, cut anywhere. A [`Clean`] holds back what the next piece may change: the end of it that may
//! become a key, and a carriage return, which may begin a line break. Everything that streams passes one of these, whichever
//! front shows it.

use aish_core::redact::Redactor;
use aish_core::sanitize;
use std::borrow::Cow;

/// The longest word that is held back until it is whole, in bytes, where no secret is known that is longer.
const HELD_BYTES_MAX: usize = 1_024;

/// Makes a stream of pieces fit to be seen.
pub struct Clean {
    redactor: Redactor,
    escape: fn(&str) -> Cow<'_, str>,
    held: String,
}

impl Clean {
    /// For the screen: nothing acts on it, reorders it or hides in it.
    pub fn for_terminal(redactor: Redactor) -> Self {
        Self {
            redactor,
            escape: sanitize::multi_line,
            held: String::new(),
        }
    }

    /// For a file or a program: the text is what was said, in any script, but for control characters.
    pub fn for_pipe(redactor: Redactor) -> Self {
        Self {
            escape: sanitize::controls,
            ..Self::for_terminal(redactor)
        }
    }

    /// The next piece: what is certain by now.
    pub fn push(&mut self, piece: &str) -> String {
        self.held.push_str(piece);
        let certain = self.redactor.settled_len(&self.held);
        let settled = if self.held.len() - certain > HELD_BYTES_MAX.max(self.redactor.longest_len()) {
            self.held.len()
        } else {
            certain.min(self.held.strip_suffix('\r').map_or(certain, str::len))
        };
        let rest = self.held.split_off(settled);
        let settled = std::mem::replace(&mut self.held, rest);
        self.whole(&settled)
    }

    /// What was held back: the stream is over.
    pub fn finish(&mut self) -> String {
        let held = std::mem::take(&mut self.held);
        self.whole(&held)
    }

    /// A text that is all there.
    pub fn whole(&self, text: &str) -> String {
        (self.escape)(&self.redactor.redact(text)).into_owned()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn redactor() -> Redactor {
        Redactor::new([("DESK_KEY".to_owned(), "hunter2hunter2".to_owned())])
    }

    fn streamed(mut clean: Clean, pieces: &[&str]) -> String {
        let mut out: String = pieces.iter().map(|piece| clean.push(piece)).collect();
        out += &clean.finish();
        out
    }

    /// SPEC 8.8: a line break cut in two is a line break, a lone carriage return is shown.
    #[test]
    fn cut_line_breaks() {
        let pieces = ["a\r", "\nb\r", "c\r"];
        assert_eq!(streamed(Clean::for_terminal(redactor()), &pieces), "a\nb\\rc\\r");
        assert_eq!(streamed(Clean::for_pipe(redactor()), &pieces), "a\r\nb\\rc\\r");
    }

    /// SPEC 8.8, 10.3: what only looks odd on a screen reaches a program unchanged; what acts on a terminal behind it does not.
    #[test]
    fn a_pipe_gets_the_text() {
        let text = ["می\u{200c}خواهم \u{202e}", "x\u{1b}[2J\u{9b}\u{7f} "];
        assert_eq!(
            streamed(Clean::for_pipe(redactor()), &text),
            "می\u{200c}خواهم \u{202e}x\\x1b[2J\\u{9b}\\x7f "
        );
        let shown = streamed(Clean::for_terminal(redactor()), &text);
        assert!(shown.contains("\\u{200c}") && shown.contains("\\u{202e}"), "{shown}");
    }

    /// SPEC 12: a word without end is not held for ever.
    #[test]
    fn a_long_word_goes_on() {
        let mut clean = Clean::for_terminal(redactor());
        let out: String = (0..100).map(|_| clean.push(&"x".repeat(100))).collect();
        assert!(out.len() >= 100 * 100 - HELD_BYTES_MAX, "{}", out.len());
    }

    /// SPEC 10.5: a token longer than any word is caught as well, and one that came while the text did.
    #[test]
    fn long_tokens() {
        let (redactor, token) = (redactor(), "t0k.".repeat(HELD_BYTES_MAX));
        let mut clean = Clean::for_terminal(redactor.clone());
        let mut out = clean.push("it is ");
        redactor.learn("token", &token);
        for piece in token.as_bytes().chunks(100) {
            out += &clean.push(std::str::from_utf8(piece).unwrap());
        }
        out += &clean.finish();
        assert_eq!(out, "it is [redacted:token]");
    }

    proptest! {
        /// SPEC 10.5: wherever a key is cut, no part of it comes out; nor does the cut change anything else.
        #[test]
        fn keys_are_caught_wherever_they_are_cut(cuts in proptest::collection::vec(0_usize..40, 0..6)) {
            let text = "the key is hunter2hunter2, not é\r\n";
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| text.floor_char_boundary(cut)).collect();
            cuts.sort_unstable();
            cuts.push(text.len());
            let mut from = 0;
            let pieces: Vec<&str> = cuts
                .iter()
                .filter_map(|cut| {
                    let piece = text.get(from..*cut);
                    from = *cut;
                    piece
                })
                .collect();
            let expect = "the key is [redacted:DESK_KEY], not é\n";
            prop_assert_eq!(streamed(Clean::for_terminal(redactor()), &pieces), expect);
        }
    }
}
