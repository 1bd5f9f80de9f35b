//! Programs that run what they are told, and where in their arguments that stands.
//!
//! | program | what it runs |
//! |---|---|
//! | `sh`, `bash`, `dash` | the word behind `-c`, as code; a file, a script or standard input is hidden, and other shells are |
//! | `eval` | its words together, as code |
//! | `env`, `sudo`, `doas` | what follows its options and the variables it sets |
//! | `nohup`, `setsid`, `nice`, `timeout`, `time`, `stdbuf`, `exec`, `command`, `builtin`, `busybox`, … | what follows its options |
//! | `xargs` | likewise, with more words behind it |
//! | `!`, `if`, `do` and other words of the grammar | what follows them |
//! | `find`, `git`, `awk`, and builtins that take names of variables | see [`programs`](super::programs) |
//! | `source`, `trap`, `alias`, `watch`, `ssh` and the like | hidden, if they are given anything; an alias is seen where it is used |
//!
//! An option that is not in the table hides what is run: which word it takes with it nobody knows.

use super::programs;
use super::words::unknown;
use aish_core::parts::{Inner, SimpleCommand, Word};

/// What a command runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wrapped {
    /// Nothing that is known of.
    Nothing,
    /// Something that cannot be told.
    Hidden,
    /// This code.
    Code(String),
    /// A command of these words.
    Words(Vec<Word>),
}

/// A program that runs what follows its options.
struct Wrapper {
    name: &'static str,
    /// Options that stand alone.
    alone: &'static [&'static str],
    /// Options that take the next word, or the rest of theirs.
    with_word: &'static [&'static str],
    /// Words between the options and the command.
    words: usize,
    /// `NAME=value` may stand before the command.
    sets_variables: bool,
}

const WRAPPERS: [Wrapper; 18] = [
    plain("coproc", &[], &[]),
    plain("nohup", &[], &[]),
    plain("setsid", &["-c", "-f", "-w", "--ctty", "--fork", "--wait"], &[]),
    plain("nice", &[], &["-n", "--adjustment"]),
    plain("ionice", &["-t"], &["-c", "-n", "--class", "--classdata"]),
    plain("stdbuf", &[], &["-i", "-o", "-e", "--input", "--output", "--error"]),
    plain("time", &["-p", "-v"], &["-f"]),
    plain("command", &["-p"], &[]),
    plain("builtin", &[], &[]),
    plain("exec", &["-c", "-l"], &["-a"]),
    plain("busybox", &[], &[]),
    plain("unbuffer", &["-p"], &[]),
    plain("chroot", &[], &[]).behind(1),
    plain(
        "timeout",
        &["--foreground", "--preserve-status", "-v", "--verbose"],
        &["-s", "-k", "--signal", "--kill-after"],
    )
    .behind(1),
    plain(
        "env",
        &["-i", "-0", "--ignore-environment", "-"],
        &["-u", "-C", "--unset", "--chdir"],
    )
    .setting(),
    plain(
        "sudo",
        &[
            "-A",
            "-b",
            "-E",
            "-H",
            "-n",
            "-P",
            "-S",
            "-k",
            "--preserve-env",
            "--non-interactive",
            "--stdin",
        ],
        &[
            "-u", "-g", "-h", "-p", "-C", "-T", "-D", "-R", "-r", "-t", "--user", "--group", "--chdir",
        ],
    )
    .setting(),
    plain("doas", &["-n"], &["-u", "-C"]).setting(),
    plain(
        "xargs",
        &["-0", "-r", "-t", "-p", "-x", "--null", "--no-run-if-empty", "--verbose"],
        &[
            "-I",
            "-n",
            "-P",
            "-L",
            "-d",
            "-E",
            "-s",
            "-a",
            "--max-args",
            "--max-procs",
            "--delimiter",
        ],
    ),
];

const fn plain(name: &'static str, alone: &'static [&'static str], with_word: &'static [&'static str]) -> Wrapper {
    Wrapper {
        name,
        alone,
        with_word,
        words: 0,
        sets_variables: false,
    }
}

impl Wrapper {
    const fn behind(mut self, words: usize) -> Self {
        self.words = words;
        self
    }

    const fn setting(mut self) -> Self {
        self.sets_variables = true;
        self
    }

    /// The command among its arguments.
    fn command(&self, arguments: &[Word]) -> Wrapped {
        let mut rest = arguments;
        let mut words_left = self.words;
        while let Some((word, behind)) = rest.split_first() {
            let Some(value) = word.certain() else {
                return Wrapped::Hidden;
            };
            rest = if value == "--" || self.alone.contains(&value) {
                behind
            } else if self.with_word.contains(&value) {
                behind.get(1..).unwrap_or_default()
            } else if self.holds_word(value) {
                behind
            } else if value.starts_with('-') {
                return Wrapped::Hidden;
            } else if self.sets_variables && value.contains('=') {
                behind
            } else if words_left > 0 {
                words_left -= 1;
                behind
            } else {
                return Wrapped::Words(rest.to_vec());
            };
        }
        // Alone they run nothing, or a shell.
        if self.name == "sudo" || self.name == "chroot" {
            Wrapped::Hidden
        } else {
            Wrapped::Nothing
        }
    }

    /// `-n5`, `--adjustment=5`.
    fn holds_word(&self, value: &str) -> bool {
        self.with_word.iter().any(|option| match value.strip_prefix(option) {
            Some(rest) if option.starts_with("--") => rest.starts_with('='),
            Some(rest) => !rest.is_empty(),
            None => false,
        })
    }
}

/// What that command runs.
pub(super) fn wrapped(command: &SimpleCommand) -> Wrapped {
    let arguments = command.words.get(1..).unwrap_or_default();
    // What is run is not known, and so what it runs.
    let Some(name) = command.name() else {
        return Wrapped::Hidden;
    };
    let name = name.rsplit('/').next().unwrap_or(name);
    match name {
        "sh" | "bash" | "dash" | "ash" | "rbash" => shell(arguments),
        "zsh" | "ksh" | "fish" | "csh" | "tcsh" | "pwsh" => Wrapped::Hidden,
        "eval" => match joined(arguments) {
            Some(code) => Wrapped::Code(code),
            None => Wrapped::Hidden,
        },
        // `command -v` looks a name up.
        "command"
            if arguments
                .first()
                .is_some_and(|word| matches!(word.certain(), Some("-v" | "-V"))) =>
        {
            Wrapped::Nothing
        }
        "source" | "." | "trap" | "alias" | "enable" | "hash" | "bind" | "complete" | "mapfile" | "readarray"
        | "watch" | "parallel" | "ssh" | "su" | "script" => {
            if arguments.is_empty() {
                Wrapped::Nothing
            } else {
                Wrapped::Hidden
            }
        }
        "find" => programs::find(arguments),
        "git" => programs::git(arguments),
        "awk" | "gawk" | "mawk" | "nawk" => programs::awk(arguments),
        "let" | "test" | "[" | "printf" | "read" | "unset" | "declare" | "typeset" | "local" | "export"
        | "readonly" => programs::with_names(arguments),
        "xargs" => with_input(arguments),
        // Words of a shell's grammar, which the tree's may take for names: of `! ! x` and `! if x` the second.
        "!" | "{" | "if" | "then" | "elif" | "else" | "while" | "until" | "do" if !arguments.is_empty() => {
            Wrapped::Words(arguments.to_vec())
        }
        _ => wrapper(name, arguments).unwrap_or(Wrapped::Nothing),
    }
}

fn wrapper(name: &str, arguments: &[Word]) -> Option<Wrapped> {
    let wrapper = WRAPPERS.iter().find(|wrapper| wrapper.name == name)?;
    Some(wrapper.command(arguments))
}

/// `xargs`: what it reads becomes words behind the command, or stands for a mark in it.
fn with_input(arguments: &[Word]) -> Wrapped {
    let mut behind_option = arguments
        .iter()
        .skip_while(|word| word.value.as_deref() != Some("-I"))
        .skip(1);
    let mark = behind_option.next().and_then(Word::certain);
    let joined_mark = arguments
        .iter()
        .find_map(|word| word.certain()?.strip_prefix("-I").filter(|mark| !mark.is_empty()));
    let wrapped = wrapper("xargs", arguments).unwrap_or(Wrapped::Hidden);
    let Wrapped::Words(mut words) = wrapped else {
        return wrapped;
    };
    match mark.or(joined_mark) {
        None => words.push(unknown("…")),
        Some(mark) => {
            let is_marked = |word: &Word| word.value.as_deref().is_none_or(|value| value.contains(mark));
            for word in words.iter_mut().filter(|word| is_marked(word)) {
                *word = unknown(&word.text);
            }
        }
    }
    Wrapped::Words(words)
}

/// Programs that do nothing but run another, if they are the ones of that name in `PATH`.
const RUN_ALONE: [&str; 12] = [
    "time", "nice", "ionice", "nohup", "timeout", "stdbuf", "command", "builtin", "eval", "sh", "bash", "dash",
];

/// What is said of a command that runs that. With variables set for it, or as a program at a certain path, it may be another.
pub(super) fn inner(command: &SimpleCommand, wrapped: &Wrapped) -> Inner {
    let is_alone = command.sets.is_empty() && command.name().is_some_and(|name| RUN_ALONE.contains(&name));
    match wrapped {
        Wrapped::Nothing => Inner::None,
        Wrapped::Hidden => Inner::Hidden,
        Wrapped::Code(_) | Wrapped::Words(_) if is_alone => Inner::Alone,
        Wrapped::Code(_) | Wrapped::Words(_) => Inner::Seen,
    }
}

fn shell(arguments: &[Word]) -> Wrapped {
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        let Some(value) = word.certain() else {
            return Wrapped::Hidden;
        };
        if matches!(value, "-o" | "-O" | "+o" | "+O") {
            rest.next();
        } else if value.starts_with('-') && !value.starts_with("--") && value.contains('c') {
            let code = rest.next().and_then(|code| code.value.clone());
            return code.map_or(Wrapped::Hidden, Wrapped::Code);
        } else if value == "--version" || value == "--help" {
            return Wrapped::Nothing;
        } else if !value.starts_with(['-', '+']) {
            return Wrapped::Hidden;
        }
    }
    // It reads what comes on its standard input.
    Wrapped::Hidden
}

fn joined(words: &[Word]) -> Option<String> {
    let values: Option<Vec<&str>> = words.iter().map(Word::certain).collect();
    values.map(|values| values.join(" "))
}
