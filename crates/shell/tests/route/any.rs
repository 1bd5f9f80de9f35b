//! Any line at all: it is guessed without panic, the same every time, and what it is mended to is a line that runs.

use aish_shell::route::{Guess, Known, LOOKED_AT_BYTES_MAX, Route, guess};
use proptest::prelude::*;

use crate::machine::Machine;

/// Characters and pieces that a shell, a sentence or a terminal gives a meaning.
const PIECES: &[&str] = &[
    "ls", "git", "gti", "find", "the", "why", "-x", "--long", "|", "||", "&&", ";", "&", ">", "<", "<<", "<<<",
    "<<EOF", "EOF", "(", ")", "((", "))", "{", "}", "[", "]", "[[", "]]", "'", "\"", "`", "$", "$(", "${", "\\", "#",
    "!", "?", "^", "%", "~", "*", "=", "a=", "for", "in", "do", "done", "if", "sudo", "time", " ", "  ", "\n", "\t",
    "\r", "é", "文", "👍", "\u{0}", "\u{1b}", "\u{202e}", ".", "..", "/", ":", ",", "'s", "1", "don't",
];

/// The machine is made once for all cases of a test.
fn check(machine: &Machine, line: &str) -> Guess {
    let first = guess(line, machine);
    assert_eq!(guess(line, machine), first, "{line:?}");
    if let Route::Mistyped { instead } = &first.route {
        assert_ne!(instead, line.trim(), "mended to itself");
        assert!(instead.len() <= line.len() + 100);
    }
    first
}

/// SPEC 8.1: pieces of shell and of sentences in any order.
#[test]
fn pieces_in_any_order() {
    let machine = Machine::new();
    let lines = prop::collection::vec((prop::sample::select(PIECES), any::<bool>()), 0..30);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 500,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let outcome = runner.run(&lines, |pieces| {
        let line: String = pieces
            .iter()
            .flat_map(|(piece, space)| [*piece, if *space { " " } else { "" }])
            .collect();
        check(&machine, &line);
        Ok(())
    });
    assert!(outcome.is_ok(), "{outcome:?}");
}

/// SPEC 8.1: any characters.
#[test]
fn any_characters() {
    let machine = Machine::new();
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 500,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let outcome = runner.run(&any::<String>(), |line| {
        check(&machine, &line);
        Ok(())
    });
    assert!(outcome.is_ok(), "{outcome:?}");
}

/// SPEC 8.1: of a long paste a bounded part is looked at, wherever that ends.
#[test]
fn long_pastes() {
    let machine = Machine::new();
    for piece in [
        "ls -la | grep foo\n",
        "why does this fail? ",
        "é",
        "文 ",
        "((((",
        "\"",
        "'",
        "`",
        "$(",
        "\\",
        "<<EOF ",
        "a=1 ",
        "sudo ",
        "gti ",
    ] {
        for shift in 0..4 {
            let line = format!("{}{}", "x".repeat(shift), piece.repeat(1_000_000 / piece.len()));
            let seen = check(&machine, &line);
            assert!(!matches!(seen.route, Route::Mistyped { .. }), "{piece:?}");
        }
    }
    let script = "ls -la\n".repeat(LOOKED_AT_BYTES_MAX);
    assert_eq!(guess(&script, &machine).route, Route::Command);
    assert!(machine.near(&"x".repeat(100_000)).is_none());
}

/// How much stack a guess may take, in bytes: the line editor's thread has 2 MB.
const STACK_BYTES_MAX: usize = 1024 * 1024;

/// SPEC 8.1: words of the grammar within one another, as deep as a line can have them.
#[test]
fn keywords_within_keywords() {
    let guesses = || {
        let machine = Machine::new();
        for piece in [
            "if ",
            "! ",
            "{ ",
            "while ! ",
            "if { ",
            "time if ",
            "for x in ",
            "function ",
            "if ! { [[ ",
            "( if ",
        ] {
            check(&machine, &piece.repeat(1_000));
            check(&machine, &piece.repeat(20));
        }
    };
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES_MAX).spawn(guesses);
    assert!(thread.expect("a thread").join().is_ok());
}
