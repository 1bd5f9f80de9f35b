//! What a shell is asked about itself, how its answer is read, and what it has until then.
//!
//! The answer is a name in each line, below headings: `#b` builtins, `#k` words of the grammar, `#f` functions, `#a` aliases, `#p`
//! its `PATH`.

use aish_shell::Dialect;
use aish_shell::route::Kind;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

/// Names that are taken from an answer.
const NAMES_MAX: usize = 10_000;
/// The longest name, in bytes.
const NAME_BYTES_MAX: usize = 64;

const BUILTINS: &[u8] = b"#b";
const KEYWORDS: &[u8] = b"#k";
const FUNCTIONS: &[u8] = b"#f";
const ALIASES: &[u8] = b"#a";
const PATH: &[u8] = b"#p";

/// What a shell said.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its commands and the user's.
    pub own: HashMap<Box<str>, Kind>,
    /// Where it looks for programs.
    pub path: OsString,
}

/// The line it is asked with. Nothing in it may be an alias or a function of the user.
pub fn question(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Bash => {
            r##"\builtin printf '#b\n'; \builtin compgen -b; \builtin printf '#k\n'; \builtin compgen -k; \builtin printf '#f\n'; \builtin compgen -A function; \builtin printf '#a\n'; \builtin compgen -a; \builtin printf '#p\n%s\n' "$PATH""##
        }
        // Builtins behind the words of the grammar: `export` is both, and a command like any other.
        Dialect::Zsh => {
            r##"\builtin print -rl -- '#k' ${reswords} '#b' ${(k)builtins} '#f' ${(k)functions} '#a' ${(k)aliases} '#p' "$PATH""##
        }
        Dialect::Fish => {
            r"builtin printf '%s\n' '#b' (builtin --names) '#f' (functions --names) '#a' (abbr --list) '#p' (string join : $PATH)"
        }
    }
}

/// Reads what it printed; `None` for what is no whole answer.
pub fn read(dialect: Dialect, output: &[u8]) -> Option<Answer> {
    let mut own = HashMap::new();
    let mut path = None;
    let mut heading: Option<&[u8]> = None;
    for line in output.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if [BUILTINS, KEYWORDS, FUNCTIONS, ALIASES, PATH].contains(&line) {
            heading = Some(line);
            continue;
        }
        let kind = match heading {
            Some(PATH) => {
                path.get_or_insert_with(|| OsStr::from_bytes(line).to_owned());
                continue;
            }
            Some(BUILTINS) => Kind::Builtin,
            Some(KEYWORDS) => Kind::Keyword,
            Some(FUNCTIONS) => Kind::Function,
            Some(ALIASES) => Kind::Alias,
            Some(_) | None => continue,
        };
        if let Some(name) = std::str::from_utf8(line).ok().filter(|name| is_typed(name))
            && own.len() < NAMES_MAX
        {
            // What comes later hides what came before, as in a shell.
            own.insert(Box::from(name), kind);
        }
    }
    // fish has no list of these, and calls them builtins.
    let grammar = keywords(dialect).split_whitespace();
    own.extend(
        grammar
            .filter(|_| dialect == Dialect::Fish)
            .map(|word| (Box::from(word), Kind::Keyword)),
    );
    path.map(|path| Answer { own, path })
}

/// Whether a person types it: what begins with `_` are the innards of completions, by the hundred.
fn is_typed(name: &str) -> bool {
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && !name.starts_with('_') && !name.contains(char::is_whitespace)
}

/// What every shell of that language has.
pub fn usual(dialect: Dialect) -> HashMap<Box<str>, Kind> {
    let words = |words: &'static str, kind| words.split_whitespace().map(move |word| (Box::from(word), kind));
    words(builtins(dialect), Kind::Builtin)
        .chain(words(keywords(dialect), Kind::Keyword))
        .collect()
}

fn builtins(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Bash => {
            ". : [ alias bg bind break builtin caller cd command compgen complete compopt continue declare dirs disown echo enable \
             eval exec exit export false fc fg getopts hash help history jobs kill let local logout mapfile popd printf pushd pwd \
             read readarray readonly return set shift shopt source suspend test times trap true type typeset ulimit umask unalias \
             unset wait"
        }
        Dialect::Zsh => {
            ". : [ alias autoload bg bindkey break builtin bye cd chdir command compadd continue declare dirs disable disown echo \
             emulate enable eval exec exit export false fc fg float functions getln getopts hash history integer jobs kill let limit \
             local log logout noglob popd print printf pushd pushln pwd r read readonly rehash return sched set setopt shift source \
             suspend test times trap true ttyctl type typeset ulimit umask unalias unfunction unhash unlimit unset unsetopt vared \
             wait whence where which zcompile zformat zle zmodload zparseopts zstyle"
        }
        Dialect::Fish => {
            ". : [ _ abbr argparse bg bind block break breakpoint builtin cd command commandline complete contains continue count \
             disown echo emit eval exec exit false fg fish_config functions help history jobs math path printf pwd random read \
             realpath return set set_color source status string test time true type ulimit wait alias dirh dirs export fish_add_path \
             funced funcsave la ll ls nextd open popd prevd pushd suspend trap umask vared"
        }
    }
}

fn keywords(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Bash => {
            "! [[ case coproc do done elif else esac fi for function if in select then time until while { }"
        }
        Dialect::Zsh => {
            "! [[ case coproc do done elif else end esac fi for foreach function if nocorrect repeat select then time until while { }"
        }
        Dialect::Fish => "and begin case else end for function if not or switch while",
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;
    use std::process::Command;

    /// SPEC 8.1: what real shells say of themselves, with an alias and a function of the user's, one of which hides a builtin.
    #[test]
    fn real_shells() {
        let check = |dialect: Dialect, begin: &str| {
            let line = format!("{begin}\n{}", question(dialect));
            let output = Command::new(dialect.name())
                .args(["-c", &line])
                .env("PATH", std::env::var_os("PATH").unwrap())
                .output()
                .unwrap_or_else(|error| panic!("{}: {error}", dialect.name()));
            let answer = read(dialect, &output.stdout).unwrap_or_else(|| panic!("{dialect:?}: {output:?}"));
            let kind = |name: &str| answer.own.get(name).copied();
            assert_eq!(kind("mine"), Some(Kind::Function), "{dialect:?}");
            assert_eq!(kind("source"), Some(Kind::Builtin), "{dialect:?}");
            assert_eq!(kind("while"), Some(Kind::Keyword), "{dialect:?}");
            assert!(kind("_hidden").is_none());
            assert!(answer.path.to_str().unwrap().contains("/bin"), "{dialect:?}");
            kind("short")
        };
        let posix = "alias short=ls; mine() { :; }; _hidden() { :; }; printf() { :; }";
        assert_eq!(check(Dialect::Bash, posix), Some(Kind::Alias));
        assert_eq!(check(Dialect::Zsh, posix), Some(Kind::Alias));
        let fish = "alias short ls; function mine; end; function _hidden; end";
        assert_eq!(check(Dialect::Fish, fish), Some(Kind::Function));
    }

    /// What was cut off, or is something else, is no answer; names of any kind are none that are typed.
    #[test]
    fn odd_answers() {
        let read = |output: &[u8]| read(Dialect::Bash, output);
        assert_eq!(read(b""), None);
        assert_eq!(read(b"#b\ncd\n"), None);
        let answer = read(b"noise\n#f\n\xff\na b\n\n_x\nok\n#a\nok\n#p\n/bin\n/sbin\n").unwrap();
        assert_eq!(answer.own, HashMap::from([(Box::from("ok"), Kind::Alias)]));
        assert_eq!(answer.path, "/bin");
    }
}
