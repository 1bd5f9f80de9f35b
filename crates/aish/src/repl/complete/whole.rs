//! Whether Enter sends a line or goes on with it (SPEC 8.9).
//!
//! A command goes on where its shell would wait for more; a question only behind a backslash. Nobody is trapped in a line that is
//! read wrongly here: Enter in an empty last line sends whatever there is, and the shell says what it lacks. In the middle of what
//! came in one piece an empty line is a part of it.

use crate::repl::route::{SHELL_MARK, is_unfinished};
use crate::repl::router::{Router, Way};
use aish_command::open;
use crossterm::event;
use reedline::{ValidationResult, Validator};
use std::time::Duration;

/// What came in one piece with Enter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behind {
    /// Nothing: whoever pressed it may wait for what comes of it.
    Nothing,
    /// Other keys.
    More,
}

impl Behind {
    /// Whether the editor's terminal has more keys.
    fn seen() -> Self {
        match event::poll(Duration::ZERO) {
            Ok(true) => Self::More,
            Ok(false) | Err(_) => Self::Nothing,
        }
    }
}

/// Says whether a line is whole.
#[derive(Default)]
pub struct Whole {
    /// Where it goes; without a router, its mark says so.
    pub router: Option<Router>,
}

impl Whole {
    /// Whether nothing more of the line is waited for.
    pub fn is_whole(&self, line: &str, behind: Behind) -> bool {
        let last = line.rsplit('\n').next().unwrap_or_default();
        let is_left = last.len() < line.len() && last.trim().is_empty() && behind == Behind::Nothing;
        is_left || !self.is_open(line)
    }

    fn is_open(&self, line: &str) -> bool {
        let Some(router) = &self.router else {
            return is_unfinished(line);
        };
        // Enter may come in one piece with the line, which then was not shown yet.
        router.shown(line);
        match router.seen().way {
            Way::Shell => {
                let unmarked = line.trim_start().strip_prefix(SHELL_MARK).unwrap_or(line);
                open(unmarked, router.known().grammar()).is_some()
            }
            Way::Nothing | Way::Meta | Way::Model | Way::Mistyped(_) => is_unfinished(line),
        }
    }
}

impl Validator for Whole {
    fn validate(&self, line: &str) -> ValidationResult {
        if self.is_whole(line, Behind::seen()) {
            ValidationResult::Complete
        } else {
            ValidationResult::Incomplete
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::known::Knowledge;
    use aish_shell::route::Corrections;

    /// SPEC 8.9: a command that is not whole goes on, a question does not; an empty last line sends either.
    #[test]
    fn lines() {
        let known = Knowledge::of_bash(["cat", "ls", "git", "wc", "grep", "awk"]);
        let routed = Whole {
            router: Some(Router::new(known, Corrections::default())),
        };
        let check = |line: &str, expect: bool| assert_eq!(routed.is_whole(line, Behind::Nothing), expect, "{line:?}");
        // What is half typed is a command already, whatever words are in it.
        for line in [
            "git commit -m 'some words",
            "awk '{\nprint $1",
            "for i in 1 2; do",
            "for i in 1 2\ndo\necho $i",
            "if true; then\necho the end",
            "while true; do",
            "f() {",
            "cat <<EOF\nhello there\nyou",
            "cat > x <<'E'\nthis is a text",
        ] {
            check(line, false);
        }
        check("ls -l", true);
        check("ls -l |", false);
        check("echo 'a", false);
        check("!echo 'a", false);
        check("! echo \"it's\"", true);
        check("cat <<EOF", false);
        check("cat <<EOF\n", true);
        check("echo 'a\n  ", true);
        check("don't stop", true);
        check("what does 'ls | do?", true);
        check("?ls |", true);
        check(":model 'a", true);
        check("one \\", false);
        check("one \\\\", true);
        check("what is this? \\\n", true);
        assert!(!routed.is_whole("cat <<EOF\n", Behind::More));
        check("", true);
    }

    /// SPEC 8.9: without a shell to route to, a mark still says what is a command.
    #[test]
    fn without_a_router() {
        let whole = Whole { router: None };
        let check = |line: &str, expect: bool| assert_eq!(whole.is_whole(line, Behind::Nothing), expect, "{line:?}");
        check("!echo 'a", false);
        check("!echo 'a'", true);
        check("ls |", true);
        check("ls \\", false);
    }
}
