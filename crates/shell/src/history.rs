//! History expansion: the parts of a line that bash and zsh replace by something typed before (`!!`, `!rm`, `^a^b`).
//!
//! What a person types themselves may well say so. A line that somebody else proposes must not: what would run is not what was
//! shown, and whoever judged it has judged another line.

use crate::Dialect;

/// Whether an interactive shell might replace a part of the line before it runs it. Errs on that side: the shell may have been
/// told not to.
pub fn recalls_history(dialect: Dialect, line: &str) -> bool {
    match dialect {
        Dialect::Fish => false,
        Dialect::Bash | Dialect::Zsh => line.trim_start().starts_with('^') || has_event(dialect, line),
    }
}

/// What the text around a character is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quotes {
    None,
    Single,
    Double,
}

fn has_event(dialect: Dialect, line: &str) -> bool {
    let mut quotes = Quotes::None;
    let mut characters = line.chars().peekable();
    while let Some(c) = characters.next() {
        match (quotes, c) {
            (Quotes::None | Quotes::Double, '\\') => {
                characters.next();
            }
            (Quotes::None | Quotes::Double, '!') if is_event(dialect, quotes, characters.peek().copied()) => {
                return true;
            }
            (Quotes::None, '\'') => quotes = Quotes::Single,
            (Quotes::None, '"') => quotes = Quotes::Double,
            (Quotes::Single, '\'') | (Quotes::Double, '"') => quotes = Quotes::None,
            (Quotes::None | Quotes::Single | Quotes::Double, _) => {}
        }
    }
    // An apostrophe in a comment, say: what it seemed to quote may not be quoted.
    quotes == Quotes::Single && line.contains('!')
}

/// Whether a `!` begins an event, by what follows it.
fn is_event(dialect: Dialect, quotes: Quotes, next: Option<char>) -> bool {
    match next {
        None | Some('=') => false,
        // bash leaves a pattern alone only where it was told that there are such patterns.
        Some('(') => dialect == Dialect::Bash,
        // bash leaves the end of a quotation alone, zsh does not.
        Some('"') => !(dialect == Dialect::Bash && quotes == Quotes::Double),
        Some(c) => !c.is_whitespace(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 8.4: what would be replaced by the history is known.
    #[test]
    fn what_is_replaced() {
        let check = |line: &str, bash: bool, zsh: bool| {
            assert_eq!(recalls_history(Dialect::Bash, line), bash, "bash: {line}");
            assert_eq!(recalls_history(Dialect::Zsh, line), zsh, "zsh: {line}");
            assert!(!recalls_history(Dialect::Fish, line), "fish: {line}");
        };
        for line in [
            "!!",
            "sudo !!",
            "echo !$",
            "!rm",
            "!-2",
            "!?x",
            "!{rm}",
            "echo a!b",
            "echo \"it's !x\"",
            "^ls^rm",
            " ^a^b",
            "ls # don't !x",
            "echo \\\\!x",
            "echo 'a'!x",
            "! !x",
        ] {
            check(line, true, true);
        }
        for line in [
            "ls",
            "! grep x y",
            "[ ! -f x ] && echo no",
            "test a != b",
            "echo 'wow!x' \\!x",
            "find . ! -name '*.o'",
            "echo hi!",
            "grep '^x' y",
            "git show HEAD^",
        ] {
            check(line, false, false);
        }
        check("ls !(a)", true, false);
        check("git commit -m \"Fix it!\"", false, true);
    }
}
