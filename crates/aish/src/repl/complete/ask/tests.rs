//! Real shells are asked.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::super::command::local;
use super::super::path::From;
use super::*;
use crate::shell::known::Knowledge;
use std::path::Path;
use std::process::Command;

/// What a shell that read `begin` offers for the end of `line`.
fn asked(shell: &str, grammar: Grammar, begin: &str, line: &str) -> Vec<Offer> {
    let from = From {
        directory: Path::new("/nonexistent"),
        home: None,
    };
    let (_, asking) = local(line, from, &Knowledge::default());
    let question = question(&asking.unwrap(), grammar);
    assert!(!question.contains('\n'), "{question}");
    let output = Command::new(shell)
        .args(["-c", &format!("{begin}\n{question}")])
        .output()
        .unwrap_or_else(|error| panic!("{shell}: {error}"));
    offers(&output.stdout)
}

fn check(shell: &str, grammar: Grammar, begin: &str, line: &str, expect: &[&str]) {
    let offers = asked(shell, grammar, begin, line);
    let values: Vec<&str> = offers.iter().map(|offer| offer.value.as_str()).collect();
    assert_eq!(values, expect, "{shell} {line:?}");
}

/// SPEC 8.9: what bash has registered for a command completes it: lists, actions and functions.
#[test]
fn bash_completes() {
    let bash = |begin: &str, line: &str, expect: &[&str]| check("bash", Grammar::Bash, begin, line, expect);
    bash("complete -W 'start stop' svc", "svc st", &["start", "stop"]);
    bash("complete -W 'start stop' svc", "svc sta", &["start"]);
    bash("complete -W 'start stop' svc", "/usr/bin/svc sta", &["start"]);
    bash("complete -A signal svc", "svc SIGK", &["SIGKILL"]);
    bash("", "svc ", &[]);
    let function =
        "f() { COMPREPLY=(\"$2-$3\" \"${#COMP_WORDS[@]}\" \"${COMP_WORDS[COMP_CWORD]}\" \"$COMP_LINE\"); echo noise; }
complete -F f svc";
    bash(function, "svc a 'b c' d", &["d-b c", "4", "d", "svc a 'b c' d"]);
    bash(
        function,
        "x; FOO=1 svc it\\'s",
        &["it's-svc", "2", "it's", r"svc it\'s"],
    );
    bash(function, "svc --color=au", &["au-=", "4", "au", "svc --color=au"]);
    bash(function, "svc --color=", &["---color", "3", "=", "svc --color="]);
    let options = "f() { compopt -o nospace; COMPREPLY=(one two); }; complete -o filenames -F f svc";
    let offers = asked("bash", Grammar::Bash, options, "svc ");
    assert!(
        offers
            .iter()
            .all(|offer| offer.spelling == Spelling::Name && offer.end == End::Open)
    );
    assert_eq!(offers.len(), 2);
}

/// SPEC 8.9: a completion that is loaded when it is first needed is loaded, and leaves nothing behind.
#[test]
fn bash_loads_completions() {
    let begin = "load() { complete -W 'late later' \"$1\"; return 124; }; complete -D -F load";
    check("bash", Grammar::Bash, begin, "svc la", &["late", "later"]);
    let from = From {
        directory: Path::new("/"),
        home: None,
    };
    let (_, asking) = local("svc la", from, &Knowledge::default());
    let line = question(&asking.unwrap(), Grammar::Bash);
    let after = format!(
        "{begin}\nbefore=$(set | grep -v '^_=\\|^BASH_\\|^PIPESTATUS'); {line} >/dev/null; after=$(set | grep -v '^_=\\|^BASH_\\|^PIPESTATUS\\|^before='); [ \"$before\" = \"$after\" ] && complete -p svc || echo same"
    );
    let output = Command::new("bash").args(["-c", &after]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "same\n");
}

/// SPEC 8.9: fish completes, and says what things are.
#[test]
fn fish_completes() {
    let begin = "complete -c svc -f -a start -d 'Start it'; complete -c svc -f -a 'stop'";
    let offers = asked("fish", Grammar::Fish, begin, "svc sta");
    assert_eq!(offers.len(), 1, "{offers:?}");
    assert_eq!(
        (offers[0].value.as_str(), offers[0].help.as_str()),
        ("start", "Start it")
    );
    check("fish", Grammar::Fish, begin, "echo 'a'; svc st", &["start", "stop"]);
}

/// SPEC 8.9: zsh completes, and says what things are.
#[test]
fn zsh_completes() {
    let begin = "autoload -Uz compinit; compinit -D -u; zstyle ':completion:*' verbose yes; svc() { :; }
_svc() { _arguments '--color=[when]:when:(always never)' '1:cmd:((start\\:\"Start it\" stop\\:\"Stop it\"))' }; compdef _svc svc";
    let offers = asked("zsh", Grammar::Zsh, begin, "svc sta");
    assert_eq!(offers.len(), 1, "{offers:?}");
    assert_eq!(
        (offers[0].value.as_str(), offers[0].help.as_str()),
        ("start", "Start it")
    );
    check("zsh", Grammar::Zsh, begin, "svc st", &["start", "stop"]);
    check("zsh", Grammar::Zsh, begin, "svc --color=a", &["--color=always"]);
    check("zsh", Grammar::Zsh, "", "svc st", &[]);
}

/// SPEC 8.9: variables complete in each shell.
#[test]
fn variables() {
    check(
        "bash",
        Grammar::Bash,
        "AISHX_A=1 AISHX_B=2",
        "echo $AISHX_",
        &["AISHX_A", "AISHX_B"],
    );
    check("bash", Grammar::Bash, "AISHX_A=1", "echo \"${AISHX", &["AISHX_A"]);
    check(
        "zsh",
        Grammar::Zsh,
        "zmodload zsh/parameter; AISHX_A=1",
        "echo $AISHX",
        &["AISHX_A"],
    );
    check(
        "fish",
        Grammar::Fish,
        "set AISHX_A 1; set OTHER 2",
        "echo $AISHX",
        &["AISHX_A"],
    );
}

/// Whatever is printed, what is before a heading is no answer; all of an answer is taken, and nothing of one that was cut.
#[test]
fn answers() {
    assert_eq!(offers(b"noise\n\xff\n"), []);
    let values = |output: &[u8]| -> Vec<(String, End)> {
        let offers = offers(output).into_iter();
        offers.map(|offer| (offer.value, offer.end)).collect()
    };
    assert_eq!(
        values(b"x\r\n#t-\r\ncheckout \r\n--format=\r\nsrc/\r\n\xff\r\nb\tis b\r\nb\r\n"),
        [
            ("checkout".to_owned(), End::Space),
            ("--format=".to_owned(), End::Open),
            ("src/".to_owned(), End::Open),
            ("b".to_owned(), End::Open),
        ]
    );
    let flood: String = (0..100_000).map(|n| format!("{n}\n")).collect();
    assert_eq!(offers(format!("#t\n{flood}").as_bytes()).len(), 100_000);
    let answer_bytes_max = usize::try_from(ANSWER_BYTES_MAX).unwrap();
    let mut cut = format!("#t\n{}", "one\ntwo\n".repeat(answer_bytes_max / 8)).into_bytes();
    cut.truncate(answer_bytes_max);
    assert_eq!(offers(&cut), []);
}
