//! Completion, colours and lines that go on, on a terminal, with each of the shells beneath (SPEC 8.9).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]
#![allow(dead_code)]

#[path = "shell/person.rs"]
mod person;
mod support;

use person::{ALL, Desk, Inner, POSIX, Person};
use support::pty::key;

const TAB: &str = "\t";

/// What makes a shell complete the arguments of `wc`.
fn start_up(inner: Inner) -> &'static str {
    match inner {
        Inner::Bash => "complete -W 'beginning ending' wc",
        Inner::Zsh => {
            "autoload -Uz compinit; compinit -D -u; zstyle ':completion:*' verbose yes\n\
             _wc() { _arguments '1:part:((beginning\\:\"the first part\" ending\\:\"the last one\"))' }; compdef _wc wc"
        }
        Inner::Fish => {
            "complete -c wc -f -a beginning -d 'the first part'; complete -c wc -f -a ending -d 'the last one'"
        }
    }
}

/// Somebody whose shell has read its start-up files.
fn person(inner: Inner) -> Person {
    let person = Desk::with(inner)
        .start_up(start_up(inner))
        .sandbox(|sandbox| {
            sandbox
                .file("some file.txt", "what is in it\n")
                .file("below/marker", "x")
        })
        .sit_down();
    person.types("true");
    person
}

/// Waits until the line being typed is that one.
fn has_line(person: &Person, line: &str) {
    let wanted = format!("$ {line}");
    person.terminal.wait_for(&format!("the line {line:?}"), |screen| {
        let (row, column) = screen.cursor_position();
        screen
            .contents_between(row, 0, row, column)
            .trim_end()
            .ends_with(&wanted)
    });
}

/// SPEC 8.9: the arguments of a command complete as the user's own shell completes them, with its descriptions.
#[test]
fn arguments_complete_as_in_the_shell() {
    for inner in ALL {
        let person = person(*inner);
        person.begins("wc beg");
        person.terminal.send(TAB);
        has_line(&person, "wc beginning");
        person.gives_up();
        person.begins("wc ");
        person.terminal.send(TAB);
        person.sees("ending");
        match inner {
            Inner::Bash => {}
            Inner::Zsh | Inner::Fish => drop(person.sees("the last one")),
        }
        person.gives_up();
        person.leaves();
    }
}

/// SPEC 8.9: names of commands and paths complete, escaped as the shell wants it, and what came of it runs.
#[test]
fn names_and_paths_complete() {
    for inner in ALL {
        let person = person(*inner);
        person.begins("cat som");
        person.terminal.send(TAB);
        has_line(&person, "cat some\\ file.txt");
        person.terminal.send(key::ENTER);
        person.sees_line("what is in it");
        person.wait_for_prompt();
        person.begins("cd bel");
        person.terminal.send(TAB);
        has_line(&person, "cd below/");
        person.gives_up();
        person.leaves();
    }
}

/// SPEC 8.9: Enter goes on with a command its shell would wait for, and sends it when it is whole.
#[test]
fn unfinished_commands_go_on() {
    for inner in POSIX {
        let person = person(*inner);
        person.enters("for i in 1 2; do");
        person.begins("echo \"n$i");
        person.terminal.send(key::ENTER);
        person.begins("it's\"");
        person.terminal.send(key::ENTER);
        person.begins("done");
        person.terminal.send(key::ENTER);
        person.sees_line("n2");
        person.wait_for_prompt();
        person.leaves();
    }
}

/// SPEC 8.1, 8.9: the first line of a block is a command already, and goes on.
#[test]
fn blocks_that_begin() {
    for inner in ALL {
        let person = person(*inner);
        let (rows, ended) = match inner {
            Inner::Bash | Inner::Zsh => (["for n in 1 2", "do", "echo \"at $n\""], "done"),
            Inner::Fish => (["for n in 1 2", "if true", "echo \"at $n\"; end"], "end"),
        };
        for row in rows {
            person.begins(row);
            person.terminal.send(key::ENTER);
        }
        person.begins(ended);
        person.terminal.send(key::ENTER);
        person.sees_line("at 2");
        person.wait_for_prompt();
        person.leaves();
    }
}

/// SPEC 8.9: nobody is trapped in a line: Enter in an empty last line sends it, and the shell says what it lacks.
#[test]
fn an_empty_last_line_sends() {
    let person = person(Inner::Bash);
    person.begins("echo 'a");
    person.terminal.send(key::ENTER);
    person
        .terminal
        .wait_for("the next line", |screen| screen.contents().contains("· "));
    person.terminal.send(key::ENTER);
    person.sees("[aish] not run");
    // It is there again, to be made whole.
    has_line(&person, "echo 'a");
    person.gives_up();
    person.leaves();
}

/// The colour and the line of the first character of `text` at the cursor's row.
fn look_of(person: &Person, text: &str) -> (vt100::Color, bool) {
    person.terminal.look(|screen| {
        let (row, column) = screen.cursor_position();
        let line = screen.contents_between(row, 0, row, column);
        let at = line.rfind(text).map(|at| line[..at].chars().count()).unwrap();
        let cell = screen.cell(row, u16::try_from(at).unwrap()).unwrap();
        (cell.fgcolor(), cell.underline())
    })
}

/// SPEC 8.9: a command is coloured while it is typed, and one that is not known is seen; `NO_COLOR` is respected.
#[test]
fn commands_have_colours() {
    let (green, red) = (vt100::Color::Idx(2), vt100::Color::Idx(1));
    let colourful = person(Inner::Bash);
    colourful.begins("!ls -l && nosuchthing");
    assert_eq!(look_of(&colourful, "ls"), (green, false));
    assert_eq!(look_of(&colourful, "nosuchthing"), (red, true));
    colourful.gives_up();
    colourful.leaves();

    let plain = Desk::with(Inner::Bash)
        .sandbox(|sandbox| sandbox.env("NO_COLOR", "1"))
        .sit_down();
    plain.begins("!ls -l && nosuchthing");
    for word in ["ls", "nosuchthing"] {
        assert_eq!(look_of(&plain, word), (vt100::Color::Default, false), "{word}");
    }
    plain.gives_up();
    plain.leaves();
}

/// SPEC 8.9: a completion of the user's that hangs holds nobody up, what it was asked with is not seen, and the shell goes on.
#[test]
fn a_completion_that_hangs() {
    let person = Desk::with(Inner::Bash)
        .start_up("_hangs() { sleep 60; COMPREPLY=(never); }; complete -F _hangs hangs; hangs() { echo \"hung $1\"; }")
        .sit_down();
    person.types("true");
    for round in ["one", "two", "three"] {
        person.begins("hangs ");
        person.terminal.send(TAB);
        person.begins(round);
        person.sees("nothing completes this");
        person.terminal.send(key::ENTER);
        person.sees_line(&format!("hung {round}"));
        person.wait_for_prompt();
        // One that is left at once.
        person.begins("hangs it");
        person.terminal.send(TAB);
        person.terminal.send(key::CTRL_C);
        person.wait_for_prompt();
        person.types("true");
    }
    let text = person.terminal.history_text();
    assert!(!text.contains("^[") && !text.contains("never"), "{text}");
    person.leaves();
}
