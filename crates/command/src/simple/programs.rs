//! Programs that run what they are told in a way of their own: `find`, `git`, `awk`, and builtins of the shell.

use super::words::{plain, unknown};
use super::wrappers::Wrapped;
use aish_core::parts::Word;

/// Options of `find` behind which a command stands.
const FIND_RUNS: [&str; 4] = ["-exec", "-execdir", "-ok", "-okdir"];
/// Options of `find` that write a file.
const FIND_WRITES: [&str; 4] = ["-fprint", "-fprint0", "-fprintf", "-fls"];

pub(super) fn find(arguments: &[Word]) -> Wrapped {
    // What an argument becomes may be one of those that run something.
    if arguments.iter().any(|word| word.value.is_none()) {
        return Wrapped::Hidden;
    }
    let is_one_of = |word: &Word, options: &[&str]| word.value.as_deref().is_some_and(|value| options.contains(&value));
    if arguments.iter().any(|word| is_one_of(word, &FIND_WRITES)) {
        return Wrapped::Hidden;
    }
    let mut commands = arguments
        .iter()
        .enumerate()
        .filter(|(_, word)| is_one_of(word, &FIND_RUNS));
    let deletes = arguments.iter().any(|word| is_one_of(word, &["-delete"]));
    match (commands.next(), commands.next(), deletes) {
        (None, _, false) => Wrapped::Nothing,
        (None, _, true) => Wrapped::Words(vec![plain("rm"), unknown("{}")]),
        (Some((at, _)), None, false) => {
            let inner = arguments.get(at + 1..).unwrap_or_default();
            let is_end = |word: &&Word| !matches!(word.value.as_deref(), Some(";" | "+"));
            let inner = inner.iter().take_while(is_end);
            // A name of a file stands there for what is found.
            let inner: Vec<Word> = inner
                .map(|word| {
                    let is_name = word.value.as_deref().is_some_and(|value| value.contains("{}"));
                    if is_name { unknown(&word.text) } else { word.clone() }
                })
                .collect();
            if inner.is_empty() {
                Wrapped::Nothing
            } else {
                Wrapped::Words(inner)
            }
        }
        // One is enough for what people write; more of them are for a person to read.
        (Some(_), Some(_), _) | (Some(_), None, true) => Wrapped::Hidden,
    }
}

/// Settings of git that name no program, by how they begin.
const GIT_SETTINGS_PLAIN: [&str; 9] = [
    "color.",
    "user.",
    "advice.",
    "log.",
    "commit.gpgsign=",
    "core.quotepath=",
    "core.abbrev=",
    "init.defaultbranch=",
    "pull.rebase=",
];
/// Commands of git that run what they, or the repository, are told to.
const GIT_RUNNERS: [&str; 4] = ["filter-branch", "difftool", "mergetool", "instaweb"];
/// Options of git's commands that name a program, by how they begin.
const GIT_PROGRAMS: [&str; 7] = [
    "-x",
    "-O",
    "--exec",
    "--upload-pack",
    "--receive-pack",
    "--open-files-in-pager",
    "--ext-diff",
];

pub(super) fn git(arguments: &[Word]) -> Wrapped {
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        let Some(value) = word.certain() else {
            return Wrapped::Hidden;
        };
        match value {
            "-c" => {
                let Some(setting) = rest.next().and_then(Word::certain) else {
                    return Wrapped::Hidden;
                };
                let alias = setting.strip_prefix("alias.").and_then(|alias| alias.split_once("=!"));
                if let Some((_, code)) = alias {
                    return Wrapped::Code(code.to_owned());
                }
                let setting = setting.to_lowercase();
                if !GIT_SETTINGS_PLAIN.iter().any(|plain| setting.starts_with(plain)) {
                    return Wrapped::Hidden;
                }
            }
            "-C" | "--git-dir" | "--work-tree" | "--namespace" => {
                rest.next();
            }
            _ if value.starts_with("--exec-path") || value.starts_with("--config-env") => return Wrapped::Hidden,
            _ if value.starts_with('-') => {}
            _ => return git_command(value, rest.as_slice()),
        }
    }
    Wrapped::Nothing
}

fn git_command(name: &str, arguments: &[Word]) -> Wrapped {
    let values: Vec<Option<&str>> = arguments.iter().map(|word| word.value.as_deref()).collect();
    let first = values.first().copied().flatten();
    let names_program = |value: &&str| {
        GIT_PROGRAMS.iter().any(|option| value.starts_with(option))
            || value.starts_with("ext::")
            || value.starts_with('!')
    };
    match (name, first) {
        ("bisect", Some("run")) => Wrapped::Words(arguments.get(1..).unwrap_or_default().to_vec()),
        ("submodule", _) if values.contains(&Some("foreach")) => Wrapped::Hidden,
        _ if GIT_RUNNERS.contains(&name) => Wrapped::Hidden,
        // `-x` and `-O` mean nothing of the kind to most commands; to be asked once more harms nobody.
        _ if values.iter().flatten().any(names_program) && name != "clean" => Wrapped::Hidden,
        _ => Wrapped::Nothing,
    }
}

/// What makes a program of awk's run another, or write a file.
const AWK_REACHES: [&str; 6] = ["system", "getline", "|", ">>", "> \"", ">\""];

pub(super) fn awk(arguments: &[Word]) -> Wrapped {
    let reaches = |value: &str| AWK_REACHES.iter().any(|mark| value.contains(mark));
    let is_hidden = arguments.iter().any(|word| word.value.as_deref().is_none_or(reaches));
    if is_hidden { Wrapped::Hidden } else { Wrapped::Nothing }
}

/// A builtin that takes names of variables: a subscript in one is evaluated, with what is substituted in it, quotes or not.
pub(super) fn with_names(arguments: &[Word]) -> Wrapped {
    let is_evaluated = |value: &str| value.contains('[') && (value.contains("$(") || value.contains('`'));
    let is_hidden = arguments
        .iter()
        .any(|word| word.value.as_deref().is_some_and(is_evaluated));
    if is_hidden { Wrapped::Hidden } else { Wrapped::Nothing }
}
