//! The rest of the line, dimmed, as it was typed before (SPEC 8.9).
//!
//! Nothing is hinted where styles are not written: it could not be told from what was typed.

use super::recall::Recall;
use anstyle::{Effects, Style};
use reedline::{Hinter, History};

/// How a hint looks.
const STYLE: Style = Style::new().effects(Effects::DIMMED);

/// Hints from the history.
pub struct Hints {
    recall: Recall,
    /// The rest of the line that was last looked at; empty if there is none.
    rest: String,
}

impl Hints {
    /// From that history.
    pub fn new(recall: Recall) -> Self {
        Self {
            recall,
            rest: String::new(),
        }
    }
}

impl Hinter for Hints {
    fn handle(&mut self, line: &str, cursor: usize, _history: &dyn History, styled: bool, _cwd: &str) -> String {
        let is_wanted = styled && cursor == line.len();
        self.rest = is_wanted.then(|| self.recall.rest(line)).flatten().unwrap_or_default();
        if self.rest.is_empty() {
            return String::new();
        }
        format!("{STYLE}{}{STYLE:#}", self.rest)
    }

    fn complete_hint(&self) -> String {
        self.rest.clone()
    }

    fn next_hint_token(&self) -> String {
        first_word(&self.rest).to_owned()
    }
}

/// The first word with the space before it; a path is taken folder by folder.
fn first_word(rest: &str) -> &str {
    let word = rest.trim_start();
    let ends = |c: char| c.is_whitespace() || c == '/';
    let within = word.find(ends).map_or(word.len(), |at| {
        let is_slash = word.get(at..).is_some_and(|rest| rest.starts_with('/'));
        if is_slash { at + 1 } else { at }
    });
    rest.get(..rest.len() - word.len() + within).unwrap_or(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 8.9: a hint is taken whole or word by word.
    #[test]
    fn words() {
        let check = |rest: &str, expect: &str| assert_eq!(first_word(rest), expect, "{rest:?}");
        check(" commit -m x", " commit");
        check("mit -m", "mit");
        check("/usr/bin", "/");
        check("usr/bin x", "usr/");
        check("bin", "bin");
        check("  ", "  ");
        check("", "");
    }
}
