//! Programs that run what they are told, and where in their arguments that stands.
//!
//! | program | what it runs |
//! |---|---|
//! | `sh`, `bash`, `zsh`, `dash`, `ksh` | the word behind `-c`, as code; a file, a script or standard input is hidden |
//! | `eval` | its words together, as code |
//! | `env`, `sudo`, `doas` | what follows its options and the variables it sets |
//! | `nohup`, `setsid`, `nice`, `timeout`, `time`, `stdbuf`, `exec`, `command`, `builtin`, `busybox`, … | what follows its options |
//! | `xargs` | likewise, with more words behind it |
//! | `find` | what follows `-exec`, `-execdir`, `-ok`, `-okdir` |
//!
//! An option that is not in the table hides what is run: which word it takes with it nobody knows.

use super::{SimpleCommand, Word};

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
    plain("time", &["-p", "-v"], &["-f", "-o"]),
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
            "--replace",
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
            let Some(value) = word.value.as_deref().filter(|_| !word.expands) else {
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
        "sh" | "bash" | "zsh" | "dash" | "ksh" | "ash" | "rbash" => shell(arguments),
        "eval" => match joined(arguments) {
            Some(code) => Wrapped::Code(code),
            None => Wrapped::Hidden,
        },
        "source" | "." | "fish" | "trap" | "watch" | "parallel" | "ssh" | "su" | "script" => {
            if arguments.is_empty() {
                Wrapped::Nothing
            } else {
                Wrapped::Hidden
            }
        }
        "find" => find(arguments),
        _ => match WRAPPERS.iter().find(|wrapper| wrapper.name == name) {
            Some(wrapper) => wrapper.command(arguments),
            None => Wrapped::Nothing,
        },
    }
}

fn shell(arguments: &[Word]) -> Wrapped {
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        let Some(value) = word.value.as_deref().filter(|_| !word.expands) else {
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
    let values: Option<Vec<&str>> = words
        .iter()
        .map(|word| word.value.as_deref().filter(|_| !word.expands))
        .collect();
    values.map(|values| values.join(" "))
}

fn find(arguments: &[Word]) -> Wrapped {
    let values: Vec<Option<&str>> = arguments.iter().map(|word| word.value.as_deref()).collect();
    let is_exec = |value: &Option<&str>| matches!(value, Some("-exec" | "-execdir" | "-ok" | "-okdir"));
    let mut commands = values.iter().enumerate().filter(|(_, value)| is_exec(value));
    match (commands.next(), commands.next()) {
        (Some((at, _)), None) => {
            let inner = arguments.get(at + 1..).unwrap_or_default();
            let is_end = |word: &&Word| !matches!(word.value.as_deref(), Some(";" | "+"));
            let inner: Vec<Word> = inner.iter().take_while(is_end).cloned().collect();
            if inner.is_empty() {
                Wrapped::Nothing
            } else {
                Wrapped::Words(inner)
            }
        }
        // A table of one is enough for what people write; more of them are for a person to read.
        (Some(_), Some(_)) => Wrapped::Hidden,
        // What an argument becomes may be one.
        (None, _) if values.contains(&None) => Wrapped::Hidden,
        (None, _) => Wrapped::Nothing,
    }
}
