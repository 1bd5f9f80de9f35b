//! What the user said about lines before: they flipped the route of one, or of several that begin alike.

use std::collections::VecDeque;

use super::{Guess, Known, Route, Sure, guess};

/// How many corrections are kept; the oldest go first.
pub const CORRECTIONS_MAX: usize = 500;

/// Longer lines are not remembered: they do not come again. In bytes.
pub const CORRECTED_LINE_BYTES_MAX: usize = 500;

/// How many different lines that begin with one word must have been sent the same way before others follow.
const FIRST_WORD_LINES_MIN: usize = 2;

/// Where the user sent a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// To the shell.
    Shell,
    /// To the model.
    Model,
}

impl Sent {
    fn route(self) -> Route {
        match self {
            Self::Shell => Route::Command,
            Self::Model => Route::Question,
        }
    }
}

/// Lines whose route the user changed, with where they went instead; at most [`CORRECTIONS_MAX`].
///
/// It does no IO: [`Corrections::iter`] gives what to store, and collecting that gives it back.
#[derive(Clone, Debug, Default)]
pub struct Corrections {
    lines: VecDeque<(Box<str>, Sent)>,
}

impl Corrections {
    /// Remembers that `line` was sent there against the guess. What was said last of a line holds.
    pub fn learn(&mut self, line: &str, sent: Sent) {
        let line = normal(line);
        if line.is_empty() || line.len() > CORRECTED_LINE_BYTES_MAX {
            return;
        }
        self.lines.retain(|(known, _)| **known != *line);
        if self.lines.len() == CORRECTIONS_MAX {
            self.lines.pop_front();
        }
        self.lines.push_back((line.into(), sent));
    }

    /// What is remembered, oldest first, spaces made single.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Sent)> {
        self.lines.iter().map(|(line, sent)| (&**line, *sent))
    }

    /// [`guess`], corrected: a line that was corrected goes where it went then; one that is unsure goes where all the corrected
    /// lines that begin with its first word went, if there are several. A sure guess about a new line stands.
    pub fn guess(&self, line: &str, known: &impl Known) -> Guess {
        let guessed = guess(line, known);
        if self.lines.is_empty() || line.len() > CORRECTED_LINE_BYTES_MAX {
            return guessed;
        }
        let line = normal(line);
        if let Some((_, sent)) = self.lines.iter().find(|(known, _)| **known == *line) {
            return Guess {
                route: sent.route(),
                sure: Sure::Yes,
                why: "you sent this line there before",
            };
        }
        if guessed.sure == Sure::Yes {
            return guessed;
        }
        match self.of_first_word(&line) {
            Some(sent) => Guess {
                route: sent.route(),
                sure: Sure::No,
                why: "you sent lines that begin so there before",
            },
            None => guessed,
        }
    }

    fn of_first_word(&self, line: &str) -> Option<Sent> {
        let first = line.split(' ').next()?;
        let mut alike = self
            .lines
            .iter()
            .filter(|(known, _)| known.split(' ').next() == Some(first))
            .map(|(_, sent)| *sent);
        let sent = alike.next()?;
        let mut count = 1;
        for other in alike {
            if other != sent {
                return None;
            }
            count += 1;
        }
        (count >= FIRST_WORD_LINES_MIN).then_some(sent)
    }
}

impl<'a> FromIterator<(&'a str, Sent)> for Corrections {
    fn from_iter<I: IntoIterator<Item = (&'a str, Sent)>>(lines: I) -> Self {
        let mut corrections = Self::default();
        for (line, sent) in lines {
            corrections.learn(line, sent);
        }
        corrections
    }
}

/// `line` with each run of spaces made one.
fn normal(line: &str) -> String {
    let mut normal = String::with_capacity(line.len().min(CORRECTED_LINE_BYTES_MAX));
    for word in line.split_whitespace() {
        if normal.len() > CORRECTED_LINE_BYTES_MAX {
            break;
        }
        if !normal.is_empty() {
            normal.push(' ');
        }
        normal.push_str(word);
    }
    normal
}
