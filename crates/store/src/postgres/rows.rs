//! What stands in a column: numbers with a sign, text without NUL, events, and the words of a text with their places.

use super::fail::Failure;
use crate::query::words;
use crate::row;
use crate::waiting::searchable;
use aish_core::event::Event;
use aish_core::id::SessionId;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use tokio_postgres::Row;

/// Stands where a NUL was: PostgreSQL's text has none.
const NUL_SHOWN: &str = "\u{fffd}";

/// Bytes of a text whose words can be searched for: what PostgreSQL keeps of them is bounded, and an append must not fail for it.
const SEARCHED_BYTES_MAX: usize = 256 << 10;
/// Characters of a word by which it is found; PostgreSQL takes no words of 2 KiB.
const WORD_CHARS_MAX: usize = 255;
/// Places of one word; PostgreSQL keeps no more.
const PLACES_MAX: usize = 255;
/// The last place in a text that PostgreSQL tells from the one before.
const PLACE_MAX: usize = 16_383;

/// PostgreSQL's integers are signed: whatever is past the last one never comes.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The same, read back.
pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

/// Text as a column takes it.
pub(super) fn storable(text: &str) -> Cow<'_, str> {
    if text.contains('\0') {
        Cow::Owned(text.replace('\0', NUL_SHOWN))
    } else {
        Cow::Borrowed(text)
    }
}

/// The bytes of a content that a text column cannot hold.
pub(super) fn exact(content: &str) -> Option<Vec<u8>> {
    content.contains('\0').then(|| content.as_bytes().to_vec())
}

/// The columns that [`columns`] reads, of the table `aish.events`.
pub(super) const EVENT_COLUMNS: &str = "seq, turn, time, version, kind, content, data, exact";

/// An event as it stands in a row of [`EVENT_COLUMNS`].
pub(super) fn columns<'r>(row: &'r Row, session: &SessionId) -> Result<row::Columns<'r>, Failure> {
    let seq = unsigned(row.try_get(0)?);
    let content = match row.try_get::<_, Option<&[u8]>>(7)? {
        None => row.try_get(5)?,
        Some(exact) => std::str::from_utf8(exact)
            .map_err(|error| Failure::Store(row::unreadable(session, seq, "no text", &error)))?,
    };
    Ok(row::Columns {
        seq,
        turn: unsigned(row.try_get(1)?),
        time: unsigned(row.try_get(2)?),
        version: u32::try_from(row.try_get::<_, i64>(3)?).unwrap_or(u32::MAX),
        kind: row.try_get(4)?,
        content,
        data: row.try_get::<_, Option<&str>>(6)?.unwrap_or("null"),
    })
}

/// The words of a text and where they stand. What is a word is our own affair, the same in every store.
pub(super) struct Words(BTreeMap<String, Vec<usize>>);

impl Words {
    /// Those of an event; none if nobody said anything in it.
    pub(super) fn of(event: &Event) -> Option<Self> {
        let text = searchable(event)?;
        let text = text
            .get(..text.floor_char_boundary(SEARCHED_BYTES_MAX))
            .unwrap_or_default();
        let mut places: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (n, word) in words(text).into_iter().enumerate() {
            let of_word = places.entry(cut(&word)).or_default();
            if of_word.len() < PLACES_MAX {
                of_word.push(PLACE_MAX.min(n + 1));
            }
        }
        Some(Self(places))
    }

    /// As the text form of a `tsvector`. Words are letters and digits: nothing in them has to be escaped.
    pub(super) fn vector(&self) -> String {
        let mut vector = String::new();
        for (word, places) in &self.0 {
            let places: Vec<String> = places.iter().map(usize::to_string).collect();
            // Writing to a string cannot fail.
            let _ = write!(vector, "'{word}':{} ", places.join(","));
        }
        vector
    }
}

/// A query's terms as the text form of a `tsquery`: all of them, and the words of a phrase one behind the other.
pub(super) fn wanted(terms: &[String]) -> String {
    let phrase = |term: &String| {
        let words: Vec<String> = term.split(' ').map(|word| format!("'{}'", cut(word))).collect();
        format!("({})", words.join(" <-> "))
    };
    terms.iter().map(phrase).collect::<Vec<_>>().join(" & ")
}

fn cut(word: &str) -> String {
    word.chars().take(WORD_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use aish_core::event::Draft;

    /// SPEC 2.10: the words of what was said, each with its places, and a query for them.
    #[test]
    fn words_and_queries() {
        let event = Draft::user(1, "No: it's no 'borrow' of Ä").place(&SessionId::new("s"), 1, 1);
        let vector = Words::of(&event).unwrap().vector();
        assert_eq!(vector, "'borrow':5 'it':2 'no':1,4 'of':6 's':3 'ä':7 ");
        let terms = ["it".to_owned(), "no borrow".to_owned()];
        assert_eq!(wanted(&terms), "('it') & ('no' <-> 'borrow')");
    }

    /// SPEC 2.5: a text of any size has words that PostgreSQL takes.
    #[test]
    fn words_are_bounded() {
        let text = format!("{} {}", "x".repeat(10_000), "a b ".repeat(1_000_000));
        let event = Draft::user(1, text).place(&SessionId::new("s"), 1, 1);
        let Words(words) = Words::of(&event).unwrap();
        let longest = words.keys().map(String::len).max();
        assert_eq!(longest, Some(WORD_CHARS_MAX));
        assert!(words.values().all(|places| places.len() <= PLACES_MAX));
    }

    /// SPEC 2.5: a NUL is kept beside the text, not lost.
    #[test]
    fn nul_is_kept() {
        assert_eq!(storable("a\0b"), "a\u{fffd}b");
        assert_eq!(exact("a\0b").unwrap(), b"a\0b");
        assert_eq!(exact("ab"), None);
    }
}
