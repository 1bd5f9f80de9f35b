//! Payloads that differ from the one before in nothing but their text.
//!
//! Nearly all of a stream is such payloads: the same fields in the same order, and the next word. What stands around the
//! word was read once; after that only the word is. It is exact, no guess: within a JSON string nothing but its end changes
//! what the bytes around it mean, so a payload with the same bytes around another whole string says the same of all else.

use super::Piece;
use super::lenient::Str;

/// Bytes of a payload that is remembered: one that carries more than a word seldom has another like it behind it.
const PAYLOAD_BYTES_MAX: usize = 4 << 10;

/// What a payload's text is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Voice {
    /// [`Piece::Text`].
    Text,
    /// [`Piece::Thinking`].
    Thinking,
}

/// The payload that was read last, with a gap for its text; or nothing, where it said anything else.
///
/// Call [`Self::fill`] with each payload; read it where that gives nothing, and then call [`Self::keep`], or [`Self::forget`]
/// where there was more in it than text.
#[derive(Debug, Default)]
pub(super) struct Template {
    voice: Option<Voice>,
    before: String,
    after: String,
}

impl Template {
    /// The text of a payload that is the last one but for its text. Gives nothing for an empty text, which some formats
    /// take for none.
    pub(super) fn fill<'a>(&self, payload: &'a str) -> Option<Piece<'a>> {
        let voice = self.voice?;
        let rest = payload.strip_prefix(self.before.as_str())?;
        let string = rest.strip_suffix(self.after.as_str())?;
        let text = serde_json::from_str::<Str<'_>>(string).ok()?.non_empty()?;
        Some(match voice {
            Voice::Text => Piece::Text(text),
            Voice::Thinking => Piece::Thinking(text),
        })
    }

    /// Remembers a payload that said nothing but this, which must be borrowed from it.
    pub(super) fn keep<'a>(&mut self, payload: &'a str, voice: Voice, text: &'a str) {
        self.voice = None;
        let around = || {
            let begin = text.as_ptr().addr().checked_sub(payload.as_ptr().addr())?;
            let before = payload.get(..begin.checked_sub(1)?)?;
            let after = payload.get(begin + text.len() + 1..)?;
            (payload.len() <= PAYLOAD_BYTES_MAX && !text.is_empty()).then_some((before, after))
        };
        if let Some((before, after)) = around() {
            before.clone_into(&mut self.before);
            after.clone_into(&mut self.after);
            self.voice = Some(voice);
        }
    }

    /// Nothing is remembered any more.
    pub(super) fn forget(&mut self) {
        self.voice = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text that this payload has, read by a template of `{"a":1,"t":"x","b":null}`.
    fn filled(payload: &str) -> Option<Piece<'_>> {
        let first = r#"{"a":1,"t":"x","b":null}"#;
        let mut template = Template::default();
        template.keep(first, Voice::Text, first.get(12..13)?);
        template.fill(payload)
    }

    /// SPEC 7.2: only another whole string in the same place is read so.
    #[test]
    fn only_the_text_differs() {
        let text = |text: &'static str| Some(Piece::Text(text.into()));
        let around = |string: &str| format!(r#"{{"a":1,"t":{string},"b":null}}"#);
        assert_eq!(filled(&around(r#""word""#)), text("word"));
        assert_eq!(filled(&around(r#""a \"b\" \u00e9\n""#)), text("a \"b\" é\n"));
        assert_eq!(filled(&around(r#""ž◁""#)), text("ž◁"));
        for other in [
            r#""""#,
            "null",
            "7",
            r#""x","t":"y""#,
            r#""x"}"#,
            r#""cut"#,
            r#"cut""#,
            r#""\""#,
            r#""\q""#,
            "\"line\nbreak\"",
            r#"["x"]"#,
            "",
            "\"",
        ] {
            assert_eq!(filled(&around(other)), None, "{other}");
        }
        assert_eq!(filled(r#"{"a":2,"t":"x","b":null}"#), None);
        assert_eq!(filled(r#"{"a":1,"t":"x","b":true}"#), None);
        assert_eq!(filled(r#"{"a":1,"t":"#), None);
        assert_eq!(filled(""), None);
    }

    /// What is not there as it is said, or is too large, is no template; nor is one that was forgotten.
    #[test]
    fn what_is_kept() {
        let payload = r#"{"t":"x"}"#;
        let text_of = |payload: &str| payload.get(6..7).unwrap_or_default().to_owned();
        let mut template = Template::default();
        assert_eq!(template.fill(payload), None);
        template.keep(payload, Voice::Thinking, payload.get(6..7).unwrap_or_default());
        assert_eq!(template.fill(payload), Some(Piece::Thinking("x".into())));
        template.forget();
        assert_eq!(template.fill(payload), None);
        template.keep(payload, Voice::Text, payload.get(6..7).unwrap_or_default());
        template.keep(payload, Voice::Text, &text_of(payload));
        assert_eq!(template.fill(payload), None);
        let long = format!(r#"{{"t":"x","b":"{}"}}"#, "y".repeat(PAYLOAD_BYTES_MAX));
        template.keep(&long, Voice::Text, long.get(6..7).unwrap_or_default());
        assert_eq!(template.fill(&long), None);
    }
}
