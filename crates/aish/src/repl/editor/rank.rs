//! How well a line of the history fits what was typed to find it.
//!
//! A query is a few words; a line fits when it has each of them, in any order: as they stand, or at least their letters one after
//! the other. Few and coarse points, so that of lines that fit alike the newest wins; nobody wonders why an old line comes first.
//! A word with a capital letter minds the case.

use std::ops::Range;

/// Characters of a line that are looked at.
const LOOKED_AT_CHARS: usize = 1_024;
/// Occurrences of a word that are looked at, for one at the beginning of a word.
const OCCURRENCES_MAX: usize = 8;

/// Of a word that the line begins with.
const AT_LINE_START: u32 = 8;
/// Of a word that begins a word of the line.
const AT_WORD_START: u32 = 6;
/// Of a word that stands somewhere in the line.
const WITHIN: u32 = 4;
/// Of letters that stand close together.
const CLOSE: u32 = 2;
/// Of letters that are there.
const SCATTERED: u32 = 1;
/// Letters stand close together in so many times the room they need.
const CLOSE_TIMES: usize = 2;

/// A text as a search that ignores case looks at it: character for character.
pub fn fold(text: &str) -> String {
    let folded = text.chars().map(|c| c.to_lowercase().next().unwrap_or(c));
    folded.take(LOOKED_AT_CHARS).collect()
}

/// What was typed to find a line.
pub struct Query {
    words: Vec<Word>,
}

struct Word {
    text: String,
    case: Case,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    Minded,
    Ignored,
}

impl Query {
    /// The words of it.
    pub fn new(query: &str) -> Self {
        let word = |text: &str| Word {
            text: text.to_owned(),
            case: if text.chars().any(char::is_uppercase) {
                Case::Minded
            } else {
                Case::Ignored
            },
        };
        Self {
            words: query.split_whitespace().map(word).collect(),
        }
    }

    /// How well a line fits; `None` if it does not. `folded` is the line after [`fold`].
    pub fn points(&self, line: &str, folded: &str) -> Option<u32> {
        self.words.iter().map(|word| word.points(word.side(line, folded))).sum()
    }

    /// The characters of a line that it fits by; in order, none twice.
    pub fn hits(&self, line: &str) -> Vec<usize> {
        let folded = fold(line);
        let mut hits: Vec<usize> = self
            .words
            .iter()
            .flat_map(|word| word.hits(word.side(line, &folded)))
            .collect();
        hits.sort_unstable();
        hits.dedup();
        hits
    }
}

impl Word {
    fn side<'a>(&self, line: &'a str, folded: &'a str) -> &'a str {
        match self.case {
            Case::Minded => line,
            Case::Ignored => folded,
        }
    }

    fn points(&self, line: &str) -> Option<u32> {
        if let Some(best) = self.best_place(line) {
            return Some(best.1);
        }
        let span = span(line, &self.text)?;
        let room = line.get(span).unwrap_or_default().chars().count();
        let is_close = room <= self.text.chars().count() * CLOSE_TIMES;
        Some(if is_close { CLOSE } else { SCATTERED })
    }

    /// Where the word stands as it is, best, and what that is worth.
    fn best_place(&self, line: &str) -> Option<(usize, u32)> {
        let places = line.match_indices(&self.text).take(OCCURRENCES_MAX).map(|(at, _)| {
            let before = line.get(..at).and_then(|before| before.chars().next_back());
            let worth = match before {
                None => AT_LINE_START,
                Some(before) if before.is_alphanumeric() => WITHIN,
                Some(_) => AT_WORD_START,
            };
            (at, worth)
        });
        places.reduce(|best, next| if next.1 > best.1 { next } else { best })
    }

    fn hits(&self, line: &str) -> Vec<usize> {
        let position = |at: usize| line.get(..at).unwrap_or_default().chars().count();
        if let Some((at, _)) = self.best_place(line) {
            let first = position(at);
            return (first..first + self.text.chars().count()).collect();
        }
        let Some(span) = span(line, &self.text) else {
            return Vec::new();
        };
        let mut wanted = self.text.chars().peekable();
        let first = position(span.start);
        let within = line.get(span).unwrap_or_default().chars().enumerate();
        within
            .filter(|(_, c)| wanted.next_if_eq(c).is_some())
            .map(|(at, _)| first + at)
            .collect()
    }
}

/// The bytes of a line among which all letters of a word stand, in order: the first such place, as short as its end allows.
fn span(line: &str, word: &str) -> Option<Range<usize>> {
    let mut letters = line.char_indices();
    let mut end = 0;
    for wanted in word.chars() {
        let (at, c) = letters.find(|(_, c)| *c == wanted)?;
        end = at + c.len_utf8();
    }
    let mut backwards = line.get(..end)?.char_indices().rev();
    let mut start = end;
    for wanted in word.chars().rev() {
        start = backwards.find(|(_, c)| *c == wanted)?.0;
    }
    Some(start..end)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn points(query: &str, line: &str) -> Option<u32> {
        Query::new(query).points(line, &fold(line))
    }

    /// SPEC 8.9: a search finds a line by its words in any order, or by their letters; a capital letter minds the case.
    #[test]
    fn what_fits() {
        let check = |query: &str, line: &str, expect: Option<u32>| {
            assert_eq!(points(query, line), expect, "{query:?} in {line:?}");
        };
        check("", "anything", Some(0));
        check("git", "git commit", Some(AT_LINE_START));
        check("comm", "git commit", Some(AT_WORD_START));
        check("ommit", "git commit", Some(WITHIN));
        check("commit git", "git commit", Some(AT_WORD_START + AT_LINE_START));
        check("gcm", "git commit", Some(SCATTERED));
        check("cmt", "git commit", Some(CLOSE));
        check("GIT", "git commit", None);
        check("README", "cat README.md", Some(AT_WORD_START));
        check("readme", "cat README.md", Some(AT_WORD_START));
        check("gtt", "git commit", Some(SCATTERED));
        check("timmoc", "git commit", None);
        check("ÄRGER", "ärger", None);
        check("ärger", "Ärger", Some(AT_LINE_START));
        check("日本", "echo 日本語", Some(AT_WORD_START));
    }

    /// What is shown as found is what was found.
    #[test]
    fn hits_are_the_letters() {
        let check = |query: &str, line: &str, expect: &str| {
            let letters: Vec<char> = line.chars().collect();
            let hits: String = Query::new(query).hits(line).iter().map(|at| letters[*at]).collect();
            assert_eq!(hits, expect, "{query:?} in {line:?}");
        };
        check("comm", "git commit", "comm");
        check("ct", "git commit", "ct");
        check("é", "café É", "É");
        check("it git", "git", "git");
        check("x", "git", "");
    }

    proptest::proptest! {
        /// No query and no line makes it fail; what fits has hits within the line.
        #[test]
        fn any_query(query in "\\PC{0,12}", line in "\\PC{0,40}") {
            let hits = Query::new(&query).hits(&line);
            proptest::prop_assert!(hits.iter().all(|at| *at < line.chars().count()));
            if points(&query, &line).is_some() && !query.trim().is_empty() {
                proptest::prop_assert!(!hits.is_empty());
            }
        }
    }
}
