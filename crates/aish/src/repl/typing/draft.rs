//! The line that is typed while something runs: text and a cursor, edited by few keys.

use super::keys::Key;
use unicode_width::UnicodeWidthChar as _;

/// Bytes a line may have; more is no line a person typed.
const DRAFT_BYTES_MAX: usize = 1 << 20;

/// A line and where in it the next character goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Draft {
    text: String,
    /// A byte between two characters.
    cursor: usize,
}

impl Draft {
    /// That text, to go on behind it.
    pub fn new(text: String) -> Self {
        let cursor = text.len();
        Self { text, cursor }
    }

    /// What is before the cursor, and what is behind it.
    pub fn parts(&self) -> (&str, &str) {
        self.text.split_at_checked(self.cursor).unwrap_or((&self.text, ""))
    }

    /// All of it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Takes it out.
    pub fn take(&mut self) -> String {
        self.cursor = 0;
        std::mem::take(&mut self.text)
    }

    /// Text comes in at the cursor, as much of it as there is room for; the bytes there is none for.
    fn insert(&mut self, text: &str) -> usize {
        let room = DRAFT_BYTES_MAX.saturating_sub(self.text.len());
        let mut end = text.len().min(room);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let fitting = text.get(..end).unwrap_or_default();
        self.text.insert_str(self.cursor, fitting);
        self.cursor += fitting.len();
        text.len() - fitting.len()
    }

    /// A key that edits; others do nothing. Gives the bytes of it there was no room for.
    pub fn key(&mut self, key: &Key) -> usize {
        match key {
            Key::Text(c) => return self.insert(c.encode_utf8(&mut [0; 4])),
            Key::Pasted(text) => return self.insert(text),
            Key::Backspace => self.remove_back_to(self.before()),
            Key::Delete => drop(self.text.drain(self.cursor..self.behind())),
            Key::DeleteWord => self.remove_back_to(self.word_start()),
            Key::DeleteToStart => self.remove_back_to(0),
            Key::DeleteToEnd => self.text.truncate(self.cursor),
            Key::Left => self.cursor = self.before(),
            Key::Right => self.cursor = self.behind(),
            Key::Home => self.cursor = 0,
            Key::End => self.cursor = self.text.len(),
            Key::Enter | Key::AltEnter | Key::Up | Key::Stop => {}
        }
        0
    }

    fn remove_back_to(&mut self, start: usize) {
        self.text.drain(start..self.cursor);
        self.cursor = start;
    }

    /// Where the character before the cursor begins, with all that is drawn onto it.
    fn before(&self) -> usize {
        let (before, _) = self.parts();
        let base = before.char_indices().rev().find(|(_, c)| !is_mark(*c));
        base.map_or(0, |(at, _)| at)
    }

    /// Where the character behind the cursor ends.
    fn behind(&self) -> usize {
        let (_, behind) = self.parts();
        let next = behind.char_indices().skip(1).find(|(_, c)| !is_mark(*c));
        self.cursor + next.map_or(behind.len(), |(at, _)| at)
    }

    fn word_start(&self) -> usize {
        let (before, _) = self.parts();
        let word = before.trim_end();
        word.rfind(char::is_whitespace).map_or(0, |at| {
            at + word
                .get(at..)
                .and_then(|rest| rest.chars().next())
                .map_or(0, char::len_utf8)
        })
    }
}

/// Drawn onto the character before it; a line end is none.
fn is_mark(c: char) -> bool {
    c.width() == Some(0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(start: &str, keys: &[Key], expect: &str) {
        let mut draft = Draft::new(start.to_owned());
        for key in keys {
            draft.key(key);
        }
        let (before, behind) = draft.parts();
        assert_eq!(format!("{before}|{behind}"), expect, "{start:?} {keys:?}");
    }

    /// SPEC 3.5a: the line that is typed ahead can be corrected.
    #[test]
    fn edits() {
        check("ab", &[Key::Backspace, Key::Text('日')], "a日|");
        check("ae\u{301}", &[Key::Backspace], "a|");
        check("ab", &[Key::Left, Key::Left, Key::Left, Key::Text('x')], "x|ab");
        check("日本", &[Key::Home, Key::Right, Key::Delete, Key::Delete], "日|");
        check("one two  ", &[Key::DeleteWord], "one |");
        check("one\u{3000}two", &[Key::DeleteWord], "one\u{3000}|");
        check("one two", &[Key::Left, Key::DeleteToStart], "|o");
        check("one two", &[Key::Home, Key::Right, Key::DeleteToEnd, Key::End], "o|");
        check(
            "",
            &[Key::Backspace, Key::Delete, Key::DeleteWord, Key::Left, Key::Right],
            "|",
        );
        check(
            "",
            &[Key::Pasted("a\nb".into()), Key::Enter, Key::Up, Key::Stop],
            "a\nb|",
        );
        check("a\nb", &[Key::Left, Key::Backspace], "a|b");
    }

    fn keys() -> impl Strategy<Value = Key> {
        prop_oneof![
            any::<char>().prop_map(Key::Text),
            ".{0,4}".prop_map(Key::Pasted),
            Just(Key::Backspace),
            Just(Key::Delete),
            Just(Key::DeleteWord),
            Just(Key::DeleteToStart),
            Just(Key::DeleteToEnd),
            Just(Key::Left),
            Just(Key::Right),
            Just(Key::Home),
            Just(Key::End),
        ]
    }

    proptest! {
        /// SPEC 8.9: whatever is typed, the cursor stands between two characters.
        #[test]
        fn any_keys(keys in proptest::collection::vec(keys(), 0..40)) {
            let mut draft = Draft::default();
            for key in &keys {
                draft.key(key);
                prop_assert!(draft.text.is_char_boundary(draft.cursor));
            }
        }
    }
}
