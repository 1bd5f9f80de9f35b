//! What somebody looks for: words and phrases, whatever else is in the text they typed.

use crate::Hit;
use aish_core::event::Event;

/// The most words and phrases of one query that count.
const TERMS_MAX: usize = 16;

/// Words and phrases, all of which must be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Query {
    /// In lower case; a phrase is words with single blanks between them.
    pub(crate) terms: Vec<String>,
}

impl Query {
    /// Reads what was typed: words, and phrases in double quotes. What is no letter and no digit separates words.
    pub(crate) fn parse(text: &str) -> Self {
        let mut terms = Vec::new();
        for (n, piece) in text.split('"').enumerate() {
            let words = words(piece);
            // Every second piece stands between quotes.
            if n % 2 == 1 {
                terms.push(words.join(" "));
            } else {
                terms.extend(words);
            }
        }
        terms.retain(|term| !term.is_empty());
        terms.truncate(TERMS_MAX);
        Self { terms }
    }

    /// The word that a hit is shown around: the first; none if nothing is looked for.
    pub(crate) fn first_word(&self) -> Option<&str> {
        self.terms.first().and_then(|term| term.split(' ').next())
    }

    /// The event, if its text holds everything.
    pub(crate) fn hit(&self, event: &Event, text: &str) -> Option<Hit> {
        let said = format!(" {} ", words(text).join(" "));
        let holds = |term: &String| said.contains(&format!(" {term} "));
        if self.terms.is_empty() || !self.terms.iter().all(holds) {
            return None;
        }
        Some(Hit {
            session: event.session.clone(),
            seq: event.seq,
            time: event.time,
            kind: event.body.kind().to_owned(),
            snippet: snippet(text, self.first_word().unwrap_or_default()),
        })
    }
}

/// The words of a text, in lower case, in their order.
pub(crate) fn words(text: &str) -> Vec<String> {
    text.split(|char: char| !char.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

/// A piece of the text around the first place where `word` stands, on one line.
pub(crate) fn snippet(text: &str, word: &str) -> String {
    let chars: Vec<char> = text
        .chars()
        .map(|char| if char.is_whitespace() { ' ' } else { char })
        .collect();
    let lower: Vec<char> = chars
        .iter()
        .map(|char| char.to_lowercase().next().unwrap_or(*char))
        .collect();
    let sought: Vec<char> = word.chars().collect();
    let at = if sought.is_empty() {
        0
    } else {
        lower
            .windows(sought.len())
            .position(|window| window == sought)
            .unwrap_or(0)
    };
    // Two ellipses at most stand around it.
    let room = Hit::SNIPPET_CHARS_MAX - 2;
    let from = at.saturating_sub(room / 4).min(chars.len().saturating_sub(room));
    let to = (from + room).min(chars.len());
    let piece: String = chars.get(from..to).unwrap_or_default().iter().collect();
    let before = if from > 0 { "…" } else { "" };
    let after = if to < chars.len() { "…" } else { "" };
    format!("{before}{}{after}", piece.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 2.10: any text is a query, and none of it is syntax.
    #[test]
    fn queries() {
        let check = |text: &str, expect: &[&str]| assert_eq!(Query::parse(text).terms, expect, "{text}");
        check("Cargo  build", &["cargo", "build"]);
        check("why \"Cannot borrow\" x*", &["why", "cannot borrow", "x"]);
        check("NEAR(a b, 3) -c \"", &["near", "a", "b", "3", "c"]);
        check("\"\" ^ *", &[]);
    }

    /// SPEC 4.2: a snippet is short and holds the word.
    #[test]
    fn snippets() {
        let text = format!("{} needle {}", "ä".repeat(1_000), "b ".repeat(1_000));
        let piece = snippet(&text, "needle");
        assert!(
            piece.contains("needle") && piece.chars().count() <= Hit::SNIPPET_CHARS_MAX,
            "{piece}"
        );
        assert_eq!(snippet("short\nlines", "none"), "short lines");
    }
}
