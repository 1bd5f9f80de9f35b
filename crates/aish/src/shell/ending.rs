//! The end of a shell: whether the person meant it, what takes its place, and what they are told.

use aish_core::sanitize;
use aish_shell::{Became, End, Ending, Stage, StartUp};
use std::path::{Path, PathBuf};

/// Words by which a line may leave its shell on purpose: those that do, and those that run what nobody has read here.
const LEAVING: [&str; 9] = ["exit", "logout", "bye", "exec", "return", "source", ".", "eval", "kill"];
/// So many shells in a row may become another one while they read their start-up files. The next reads none.
const HANDOVERS_MAX: u32 = 3;

/// Whether the line may have left its shell on purpose; `is_own` says of a word whether it is a command that only this user has. A
/// shell that ends by any other line was told to end at a failure (`set -e`).
pub fn may_leave(line: &str, is_own: impl Fn(&str) -> bool) -> bool {
    let is_of_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '/' | '+' | ':');
    let mut words = line.split(|c| !is_of_word(c)).filter(|word| !word.is_empty());
    words.any(|word| LEAVING.contains(&word) || is_own(word))
}

/// Whether the next shell reads the user's start-up files, when so many in a row have handed over to it.
pub fn files(ending: Ending, became: Option<&Became>, handovers: u32) -> StartUp {
    match (ending.stage, ending.how, became) {
        (Stage::Started, _, _) => StartUp::Own,
        (Stage::Starting, End::Became, Some(Became::Shell(_))) if handovers < HANDOVERS_MAX => StartUp::Own,
        (Stage::Starting, _, _) => StartUp::None,
    }
}

/// What a person is told of a shell that is no more, and of the one in its place.
pub fn told(ending: Ending, became: Option<&Became>, files: StartUp, directory: &Path) -> String {
    let place = sanitize::single_line(&directory.display().to_string()).into_owned();
    let without = match files {
        StartUp::Own => "",
        StartUp::None => " without start-up files",
    };
    match (ending.how, ending.stage, became) {
        (End::Became, _, Some(Became::Shell(next))) => {
            let name = name_of(&next.program);
            format!(
                "the shell became {name} (exec): it was begun anew in {place}{without}, so that its prompt is this one"
            )
        }
        (End::Became, _, Some(Became::Program(name))) => {
            let name = sanitize::single_line(name);
            format!(
                "the start-up files put {name} in the shell's place (exec); a new one was started in {place}{without}"
            )
        }
        (End::GivenUp, ..) => {
            format!("the start-up files did not end; a new shell was started in {place}{without}")
        }
        (how, Stage::Starting, _) => format!(
            "the shell ended while it read its start-up files ({}); a new one was started in {place}{without}",
            how_said(how)
        ),
        (how, Stage::Started, _) => format!(
            "the shell ended ({}{}); a new one was started in {place}; its variables and jobs are gone",
            how_said(how),
            why_said(how)
        ),
    }
}

/// What a person is told of a shell that had become another program, which they have left.
pub fn left(became: Option<&Became>) -> Option<String> {
    match became {
        Some(Became::Program(name)) => Some(format!(
            "the shell had become {} (exec), and ended with it",
            sanitize::single_line(name)
        )),
        Some(Became::Shell(_)) | None => None,
    }
}

fn how_said(how: End) -> String {
    match how {
        End::Exited(status) => format!("exit {status}"),
        End::Killed(signal) => format!("killed by signal {signal}"),
        End::Became | End::GivenUp | End::Unknown => "nobody knows how".to_owned(),
    }
}

/// No line that leaves has ended it: those are not told.
fn why_said(how: End) -> &'static str {
    match how {
        End::Exited(1..) => "; `set -e` has it end at a failure",
        End::Exited(_) | End::Killed(_) | End::Became | End::GivenUp | End::Unknown => "",
    }
}

fn name_of(program: &Path) -> String {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    sanitize::single_line(&name).into_owned()
}

/// The directory, or the nearest above it that is still there.
pub fn nearest(directory: &Path) -> PathBuf {
    let there = directory.ancestors().find(|directory| directory.is_dir());
    there.unwrap_or(Path::new("/")).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use aish_shell::Successor;

    /// SPEC 8.2: who leaves on purpose leaves; a shell that ends by itself is not left.
    #[test]
    fn meant_or_not() {
        let check = |line: &str, expect: bool| {
            assert_eq!(may_leave(line, |word| word == "q"), expect, "{line}");
        };
        for line in [
            "exit",
            "exit 7",
            "cd /; exit",
            "q",
            "(q)",
            "true && logout",
            "exec vim",
            ". ./x",
            "eval \"$x\"",
        ] {
            check(line, true);
        }
        for line in ["false", "ls /nowhere", "make", "grep -q x exit.txt", "", "cd /no-exit"] {
            check(line, false);
        }
    }

    /// SPEC 8.2: each end is told in words of its own, and what is started next is no endless chain.
    #[test]
    fn what_is_told() {
        let shell = Became::Shell(Successor {
            program: "/usr/bin/zsh".into(),
            directory: "/".into(),
            environment: Vec::new(),
        });
        let program = Became::Program("tmux".to_owned());
        let check = |how, stage, became: Option<&Became>, handovers, expect: &str| {
            let ending = Ending { how, stage };
            let files = files(ending, became, handovers);
            assert_eq!(told(ending, became, files, Path::new("/tmp/\x1bx")), expect);
        };
        check(
            End::Exited(1),
            Stage::Started,
            None,
            0,
            "the shell ended (exit 1; `set -e` has it end at a failure); a new one was started in /tmp/\\x1bx; its variables and \
             jobs are gone",
        );
        check(
            End::Killed(9),
            Stage::Starting,
            None,
            0,
            "the shell ended while it read its start-up files (killed by signal 9); a new one was started in /tmp/\\x1bx without \
             start-up files",
        );
        let anew = "the shell became zsh (exec): it was begun anew in /tmp/\\x1bx, so that its prompt is this one";
        check(End::Became, Stage::Started, Some(&shell), 9, anew);
        check(End::Became, Stage::Starting, Some(&shell), 1, anew);
        check(
            End::Became,
            Stage::Starting,
            Some(&shell),
            HANDOVERS_MAX,
            "the shell became zsh (exec): it was begun anew in /tmp/\\x1bx without start-up files, so that its prompt is this one",
        );
        check(
            End::Became,
            Stage::Starting,
            Some(&program),
            0,
            "the start-up files put tmux in the shell's place (exec); a new one was started in /tmp/\\x1bx without start-up files",
        );
        check(
            End::GivenUp,
            Stage::Starting,
            None,
            0,
            "the start-up files did not end; a new shell was started in /tmp/\\x1bx without start-up files",
        );
        assert_eq!(left(Some(&shell)), None);
        assert!(left(Some(&program)).is_some_and(|said| said.contains("tmux")));
    }
}
