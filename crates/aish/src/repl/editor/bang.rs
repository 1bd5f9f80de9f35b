//! `!!` and `!$`: the last command, and its last word, in a command (SPEC 8.9).
//!
//! The editor puts them in when Enter is pressed, and waits for another Enter. It would do more than that: whatever follows an
//! exclamation mark it takes for the beginning of an old line. Here a mark sends a line to the shell, so only these two are let
//! through, and only where they are words of a command; people end sentences with them.

use super::recall::Recall;
use crate::repl::router::{Router, Way};
use reedline::{AbbrExpandContext, Highlighter, StyledText};

/// What is put in.
const BANGS: [&str; 2] = ["!!", "!$"];

/// A highlighter that says what is put in.
pub struct Bangs<H> {
    highlighter: H,
    router: Option<Router>,
    recall: Recall,
}

impl<H> Bangs<H> {
    /// Around `highlighter`.
    pub fn new(highlighter: H, router: Option<Router>, recall: Recall) -> Self {
        Self {
            highlighter,
            router,
            recall,
        }
    }

    fn is_command(&self, line: &str) -> bool {
        let Some(router) = &self.router else {
            return false;
        };
        router.shown(line);
        matches!(router.seen().way, Way::Shell | Way::Mistyped(_))
    }
}

impl<H: Highlighter> Highlighter for Bangs<H> {
    fn highlight(&self, line: &str, cursor: usize) -> StyledText {
        self.highlighter.highlight(line, cursor)
    }

    fn should_expand_abbr(&self, line: &str, at: usize, context: AbbrExpandContext) -> bool {
        let is_one = context == AbbrExpandContext::BangExpansion && is_bang(line, at) && self.is_command(line);
        if is_one {
            // The question that was asked about a command in between is not what is meant.
            self.recall.expect_command();
        }
        is_one
    }
}

/// Whether one of them stands there, as a word or the beginning of one that goes on: `!$/src`.
fn is_bang(line: &str, at: usize) -> bool {
    let Some((before, rest)) = line.split_at_checked(at) else {
        return false;
    };
    let begins_word = before.chars().next_back().is_none_or(char::is_whitespace);
    begins_word && BANGS.iter().any(|bang| rest.starts_with(bang))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 8.1, 8.9: `!` sends a line to the shell; only `!!` and `!$` stand for what was typed before.
    #[test]
    fn bangs() {
        let check = |line: &str, at: usize, expect: bool| assert_eq!(is_bang(line, at), expect, "{line:?}");
        check("!!", 0, true);
        check("sudo !!", 5, true);
        check("ls !$/src", 3, true);
        check("!ls", 0, false);
        check("!1", 0, false);
        check("wow!!", 3, false);
        check("é!!", 1, false);
        check("", 7, false);
    }
}
