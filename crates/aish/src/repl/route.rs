//! Where a line goes (SPEC 8.1): a meta command, the local shell, or the model. Its first character may say so; where it says
//! nothing, [`super::router`] guesses.

use super::meta::{self, Meta, Mistake};
use aish_command::{Grammar, open};
use std::path::{Path, PathBuf};

/// The first character that sends a line to the shell.
pub const SHELL_MARK: char = '!';
/// The first character that sends a line to the model, whatever else it looks like.
const MODEL_MARK: char = '?';
/// The first character of a meta command.
const META_MARK: char = ':';

/// Where a line goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// Nowhere: there is nothing in it.
    Nothing,
    /// To a meta command, if it is one.
    Meta(Result<Meta, Mistake>),
    /// To the shell.
    Shell(String),
    /// To the model.
    Model(String),
    /// To the model, which is asked why the last command failed.
    Why,
    /// It has no mark.
    Open(String),
}

/// What a line begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// `:`
    Meta,
    /// `!`
    Shell,
    /// `?`
    Model,
}

impl Mark {
    /// How it is typed.
    pub fn character(self) -> char {
        match self {
            Self::Meta => META_MARK,
            Self::Shell => SHELL_MARK,
            Self::Model => MODEL_MARK,
        }
    }
}

/// The mark of a line, and what follows it without the space around; `None` if it has none.
pub fn mark(line: &str) -> Option<(Mark, &str)> {
    let line = line.trim();
    let mut characters = line.chars();
    let mark = match characters.next()? {
        META_MARK => Mark::Meta,
        SHELL_MARK => Mark::Shell,
        MODEL_MARK => Mark::Model,
        _ => return None,
    };
    Some((mark, characters.as_str().trim()))
}

/// Says where a line goes.
pub fn route(line: &str) -> Route {
    match mark(line) {
        Some((Mark::Meta, rest)) => Route::Meta(meta::parse(rest)),
        Some((Mark::Shell, "")) => Route::Nothing,
        Some((Mark::Shell, rest)) => Route::Shell(rest.to_owned()),
        Some((Mark::Model, "")) => Route::Why,
        Some((Mark::Model, rest)) => Route::Model(rest.to_owned()),
        None if line.trim().is_empty() => Route::Nothing,
        None => Route::Open(line.trim().to_owned()),
    }
}

/// True when a line is not whole yet: a backslash ends it, or a shell would wait for more of what its mark sends there.
/// Apostrophes of ordinary sentences are no quotes.
pub fn is_unfinished(text: &str) -> bool {
    let backslashes = text.chars().rev().take_while(|c| *c == '\\').count();
    if backslashes % 2 == 1 {
        return true;
    }
    match text.trim_start().strip_prefix(SHELL_MARK) {
        Some(command) => open(command, Grammar::Bash).is_some(),
        None => false,
    }
}

/// Where a bare `cd` would go, or `None` if the line is anything more than that. `home` is where `cd` alone goes,
/// `previous` where `cd -` does.
pub fn cd_target(command: &str, from: &Path, home: Option<&Path>, previous: Option<&Path>) -> Option<PathBuf> {
    let rest = command.trim().strip_prefix("cd")?;
    if !rest.is_empty() && !rest.starts_with(char::is_whitespace) {
        return None;
    }
    let word = rest.trim();
    let word = unquoted(word)?;
    match word {
        "" | "~" => home.map(Path::to_path_buf),
        "-" => previous.map(Path::to_path_buf),
        _ => match (word.strip_prefix("~/"), home) {
            (Some(below), Some(home)) => Some(home.join(below)),
            (Some(_), None) => None,
            (None, _) => Some(from.join(word)),
        },
    }
}

/// One plain word, its quotes taken off; `None` for what only a shell understands.
fn unquoted(word: &str) -> Option<&str> {
    const SHELL_ONLY: &[char] = &[
        '$', '`', '\\', '\'', '"', ';', '&', '|', '<', '>', '(', ')', '*', '?', '[', '{', '\n',
    ];
    for quote in ['\'', '"'] {
        if let Some(inner) = word.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)) {
            let literal = !inner.is_empty() && !inner.contains(['$', '`', '\\', '\'', '"', '\n']);
            return literal.then_some(inner);
        }
    }
    let plain = !word.contains(SHELL_ONLY) && !word.contains(char::is_whitespace);
    plain.then_some(word)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// SPEC 8.1: `:` is a meta command, `!` forces the shell, `?` the model.
    #[test]
    fn routes() {
        let check = |line: &str, expect: Route| assert_eq!(route(line), expect, "{line:?}");
        check("", Route::Nothing);
        check("  \n", Route::Nothing);
        check("!", Route::Nothing);
        check("?  ", Route::Why);
        check("!ls -l", Route::Shell("ls -l".into()));
        check(" ! ls", Route::Shell("ls".into()));
        check("?!what", Route::Model("!what".into()));
        check("?:help", Route::Model(":help".into()));
        check("what is\nthis?", Route::Open("what is\nthis?".into()));
        check(" ls ", Route::Open("ls".into()));
        check(":quit", Route::Meta(Ok(Meta::Quit)));
        assert!(matches!(route(":quti"), Route::Meta(Err(_))));
    }

    /// SPEC 8.9: multi-line editing: what is not whole goes on.
    #[test]
    fn unfinished_lines() {
        let check = |text: &str, expect: bool| assert_eq!(is_unfinished(text), expect, "{text:?}");
        check("don't stop", false);
        check("one \\", true);
        check("one \\\\", false);
        check("!echo 'a", true);
        check("!echo 'a\nb'", false);
        check("!echo \"it's", true);
        check("!echo \"it's\"", false);
        check("!echo \\'", false);
        check("!echo '\\'", false);
    }

    /// A bare `cd` is told from everything else that begins with it.
    #[test]
    fn changing_directories() {
        let check = |command: &str, expect: Option<&str>| {
            let target = cd_target(
                command,
                Path::new("/w"),
                Some(Path::new("/home/u")),
                Some(Path::new("/before")),
            );
            assert_eq!(target, expect.map(PathBuf::from), "{command:?}");
        };
        check("cd", Some("/home/u"));
        check("cd ~", Some("/home/u"));
        check("cd ~/x", Some("/home/u/x"));
        check("cd src", Some("/w/src"));
        check("cd  /etc ", Some("/etc"));
        check("cd -", Some("/before"));
        check("cd 'a b'", Some("/w/a b"));
        check("cd \"$HOME\"", None);
        check("cd a b", None);
        check("cd x && make", None);
        check("cd x; make", None);
        check("cdrecord", None);
        check("ls", None);
        assert_eq!(cd_target("cd -", Path::new("/w"), None, None), None);
    }
}
