//! Where a line typed at the prompt goes: to the shell, to the model, or back to the user because its command is mistyped.
//!
//! [`guess`] decides from the line and what the shell knows ([`Known`]), without IO and in microseconds, so that the route can
//! be shown while the line is typed. A question that is run as a command is the worse mistake of the two, so in doubt a line is
//! a question, and says so ([`Sure::No`]). What the user corrected before is in [`Corrections`].
//!
//! How it decides: the line is cut as a shell would (`lex`); its first word says what is run, if anything (`start`); what that
//! takes (`expects`) and what follows (`judge`) are weighed, signs of a sentence against signs of a command (`weigh`); a word
//! that is nearly a command is mistyped (`mistyped`); a word of the grammar wants its grammar (`keyword`). Several lines are a
//! command if each of them is one (`several`).
//!
//! ```
//! use aish_shell::Dialect;
//! use aish_shell::route::{Kind, Known, Route, guess};
//!
//! struct Two;
//! impl Known for Two {
//!     fn kind(&self, word: &str) -> Option<Kind> {
//!         ["git", "find"].contains(&word).then_some(Kind::Program)
//!     }
//!     fn is_path(&self, _word: &str) -> bool {
//!         false
//!     }
//!     fn dialect(&self) -> Option<Dialect> {
//!         Some(Dialect::Bash)
//!     }
//!     fn near(&self, word: &str) -> Option<String> {
//!         (word == "gti").then(|| "git".to_owned())
//!     }
//! }
//! assert_eq!(guess("find . -size +1G", &Two).route, Route::Command);
//! assert_eq!(guess("find the biggest file here", &Two).route, Route::Question);
//! assert_eq!(guess("gti status", &Two).route, Route::Mistyped { instead: "git status".to_owned() });
//! ```

mod corrections;
mod expects;
mod judge;
mod keyword;
mod lex;
mod line;
mod mistyped;
mod near;
mod several;
mod start;
mod weigh;
mod words;

pub use corrections::{CORRECTED_LINE_BYTES_MAX, CORRECTIONS_MAX, Corrections, Sent};
pub use near::Names;

use crate::Dialect;

/// How much of a line is looked at, in bytes: a paste of any length costs no more than this.
pub const LOOKED_AT_BYTES_MAX: usize = 2_048;

/// What a word is to the shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A command of the shell itself, as `cd`.
    Builtin,
    /// A word of its grammar, as `for`.
    Keyword,
    /// A function of the user.
    Function,
    /// An alias of the user.
    Alias,
    /// A program in `PATH`.
    Program,
}

/// What the shell knows, asked while a line is typed: answers must come from memory.
pub trait Known {
    /// What `word` is as the first of a command; `None` if it is nothing.
    fn kind(&self, word: &str) -> Option<Kind>;

    /// Whether there is something of that name, relative to the shell's directory or absolute.
    fn is_path(&self, word: &str) -> bool;

    /// Which language it reads; `None` where that is not known, which is read as bash.
    fn dialect(&self) -> Option<Dialect>;

    /// The known command nearest to `word`, if one is near enough to have been meant ([`Names`] finds it).
    fn near(&self, word: &str) -> Option<String>;
}

/// Where a line goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// To the shell.
    Command,
    /// To the model.
    Question,
    /// To nobody yet: its command is mistyped.
    Mistyped {
        /// The whole line as it was meant, probably.
        instead: String,
    },
    /// The line is empty.
    Nothing,
}

/// Whether a guess is sure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sure {
    /// It is.
    Yes,
    /// It may well be wrong: for the front end to show.
    No,
}

/// A route and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guess {
    /// Where the line goes.
    pub route: Route,
    /// Whether that is sure.
    pub sure: Sure,
    /// Why, in a few words for the user.
    pub why: &'static str,
}

impl Guess {
    fn command(sure: Sure, why: &'static str) -> Self {
        Self {
            route: Route::Command,
            sure,
            why,
        }
    }

    fn question(sure: Sure, why: &'static str) -> Self {
        Self {
            route: Route::Question,
            sure,
            why,
        }
    }

    fn mistyped(instead: String, why: &'static str) -> Self {
        Self {
            route: Route::Mistyped { instead },
            sure: Sure::No,
            why,
        }
    }
}

/// Where `line` goes, by what the shell knows. `line` is what was typed or pasted, without a `:`, `!` or `?` that decides
/// alone; it may be several lines and of any length.
pub fn guess(line: &str, known: &impl Known) -> Guess {
    let seen = looked_at(line);
    let guess = decide(seen.trim(), known);
    match guess.route {
        // It would be the beginning of the line only.
        Route::Mistyped { .. } if seen.len() < line.len() => {
            Guess::command(Sure::No, "a long line that begins with a mistake")
        }
        Route::Mistyped { .. } | Route::Command | Route::Question | Route::Nothing => guess,
    }
}

fn decide(text: &str, known: &impl Known) -> Guess {
    if text.is_empty() {
        return Guess {
            route: Route::Nothing,
            sure: Sure::Yes,
            why: "nothing typed",
        };
    }
    if let Some(typed) = text.strip_prefix("$ ") {
        return copied(text, typed, known);
    }
    let pieces = lex::pieces(text);
    if text.starts_with('#') && !text.starts_with("#!") {
        return commented(text, &pieces, known);
    }
    let lines = pieces
        .iter()
        .filter(|piece| piece.between == lex::Between::Newline && !piece.words.is_empty())
        .count();
    if lines > 0 {
        several::guess(text, &pieces, known)
    } else {
        line::guess(text, &pieces, known)
    }
}

/// A command copied with the prompt before it, or a session with its output.
fn copied(text: &str, typed: &str, known: &impl Known) -> Guess {
    match guess(typed, known).route {
        Route::Command if !text.contains('\n') => Guess::mistyped(typed.to_owned(), "copied with its prompt"),
        Route::Command | Route::Question | Route::Mistyped { .. } | Route::Nothing => {
            Guess::question(Sure::No, "copied from a terminal")
        }
    }
}

/// A text that begins with `#`: a remark before commands, or a heading, or a question.
fn commented(text: &str, pieces: &[lex::Piece<'_>], known: &impl Known) -> Guess {
    let remark = text.lines().next().unwrap_or_default().trim_start_matches(['#', ' ']);
    if weigh::asks(remark) || pieces.iter().all(|piece| piece.words.is_empty()) {
        return Guess::question(Sure::No, "a remark");
    }
    several::guess(text, pieces, known)
}

/// As much of `line` as is looked at, whole lines if it is more.
fn looked_at(line: &str) -> &str {
    if line.len() <= LOOKED_AT_BYTES_MAX {
        return line;
    }
    let end = (0..=LOOKED_AT_BYTES_MAX)
        .rev()
        .find(|at| line.is_char_boundary(*at))
        .unwrap_or_default();
    let cut = line.get(..end).unwrap_or_default();
    cut.rsplit_once('\n').map_or(cut, |(lines, _)| lines)
}
