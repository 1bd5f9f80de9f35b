//! Whether Enter sends a line or goes on with it (SPEC 8.9).
//!
//! A command goes on where its shell would wait for more; a question only behind a backslash. Nobody is trapped in a line that is
//! read wrongly here: Enter in an empty last line sends whatever there is, and the shell says what it lacks.

use crate::repl::route::{SHELL_MARK, is_unfinished};
use crate::repl::router::{Router, Way};
use aish_command::open;
use reedline::{ValidationResult, Validator};

/// Says whether a line is whole.
pub struct Whole {
    /// Where it goes; without a router, its mark says so.
    pub router: Option<Router>,
}

impl Whole {
    /// Whether nothing more of the line is waited for.
    fn is_whole(&self, line: &str) -> bool {
        let last = line.rsplit('\n').next().unwrap_or_default();
        if last.len() < line.len() && last.trim().is_empty() {
            return true;
        }
        let Some(router) = &self.router else {
            return !is_unfinished(line);
        };
        // Enter may come in one piece with the line, which then was not shown yet.
        router.shown(line);
        match router.seen().way {
            Way::Shell => {
                let unmarked = line.trim_start().strip_prefix(SHELL_MARK).unwrap_or(line);
                open(unmarked, router.known().grammar()).is_none()
            }
            Way::Nothing | Way::Meta | Way::Model | Way::Mistyped(_) => !is_unfinished(line),
        }
    }
}

impl Validator for Whole {
    fn validate(&self, line: &str) -> ValidationResult {
        if self.is_whole(line) {
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
        let check = |line: &str, expect: bool| assert_eq!(routed.is_whole(line), expect, "{line:?}");
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
        check("", true);
    }

    /// SPEC 8.9: without a shell to route to, a mark still says what is a command.
    #[test]
    fn without_a_router() {
        let whole = Whole { router: None };
        let check = |line: &str, expect: bool| assert_eq!(whole.is_whole(line), expect, "{line:?}");
        check("!echo 'a", false);
        check("!echo 'a'", true);
        check("ls |", true);
        check("ls \\", false);
    }
}
