//! What a program leaves on the terminal when it is killed, and noise that is shown as text: undone before the next prompt.

use crate::person::{ALL, Desk, Inner, Person};

fn sit_down(inner: Inner) -> Person {
    Desk::with(inner).size(20, 60).sit_down()
}

/// How many lines are printed to see how the screen scrolls: more than it has.
const MANY: &str = "for n in $(seq 1 40); do echo line-$n; done";

/// SPEC 8.7: a part of the screen that scrolls alone scrolls with the rest again: what is printed fills the whole screen.
#[test]
fn a_region_that_scrolls() {
    for left in ["\\033[5;9r", "\\033[5;9r\\033[?6h", "\\033[?1049h\\033[2;3r"] {
        let person = sit_down(Inner::Bash);
        person.types(&format!("printf '{left}'; kill -9 $BASHPID & wait"));
        person.types(MANY);
        let screen = person.terminal.screen_text();
        assert!(
            screen.contains("line-30") && screen.contains("line-40"),
            "after {left}:\n{screen}"
        );
        person.leaves();
    }
}

/// SPEC 8.7: sequences that were begun and never ended swallow nothing of what comes.
#[test]
fn half_a_sequence() {
    for inner in ALL {
        for left in ["\\033[3", "\\033]0;a title", "\\033P+q", "\\033"] {
            let person = sit_down(*inner);
            person.types(&format!("printf '{left}'"));
            let screen = person.types("echo whole");
            assert!(screen.contains("$ echo whole"), "{inner:?} after {left}:\n{screen}");
            person.leaves();
        }
    }
}

/// SPEC 8.7: what is undone is written before the prompt, and only where it is needed.
#[test]
fn what_is_written() {
    for (left, undone) in [
        ("\\033(0lqqk", "\x1b(B"),
        ("\\016lqqk", "\x0f"),
        ("\\033[4h", "\x1b[4l"),
        ("\\033[?5h", "\x1b[?5l"),
        ("\\033[?2004h\\033[?1003h", "\x1b[?1003l\x1b[?2004l"),
        ("\\033[>1u", "\x1b[<1u"),
        ("\\033[>4;2m", "\x1b[>4m"),
        ("\\033[5 q", "\x1b[0 q"),
        ("\\033=", "\x1b>"),
    ] {
        let person = sit_down(Inner::Bash);
        let before = person.terminal.transcript().len();
        person.types("echo nothing is left");
        let quiet = String::from_utf8_lossy(&person.terminal.transcript()[before..]).into_owned();
        let before = person.terminal.transcript().len();
        person.types(&format!("printf '{left}'"));
        let wrote = String::from_utf8_lossy(&person.terminal.transcript()[before..]).into_owned();
        assert!(wrote.contains(undone), "after {left}: {wrote:?}");
        if undone != "\x1b[0 q" {
            assert!(!quiet.contains(undone), "for nothing: {quiet:?}");
        }
        person.leaves();
    }
}

/// SPEC 8.7: noise leaves nothing: the prompt is there, a line is typed and seen, letters are letters.
#[test]
fn noise() {
    for inner in ALL {
        let person = Desk::with(*inner)
            .sandbox(|sandbox| sandbox.file("noise", bytes_of_noise()))
            .sit_down();
        person.types("cat noise");
        let screen = person.types("echo letters");
        assert!(screen.contains("\nletters\n"), "{inner:?}: {screen}");
        assert_eq!(person.last("echo letters").output, "letters", "{inner:?}");
        person.leaves();
    }
}

/// Bytes that have everything in them, sequences too; the same at each run.
fn bytes_of_noise() -> Vec<u8> {
    let mut rng = crate::support::random::Rng(8);
    let all = (0..200_000).map(|_| rng.next().to_le_bytes()[0]);
    // A full reset would undo what was left by itself.
    all.map(|byte| if byte == b'c' { b'h' } else { byte }).collect()
}

/// SPEC 8.2: output whose last line was not ended is told from what follows by a mark, once; a silent command, and one that says
/// nothing but a title, leave no empty line.
#[test]
fn lines_that_are_not_ended() {
    for inner in ALL {
        for (line, below) in [
            ("printf no-end", "no-end⏎"),
            ("printf 'an-end\\n'", "an-end"),
            ("true", "fake"),
            ("printf '\\033]0;a title\\007'", "fake"),
            ("printf '\\033[?25h'", "fake"),
        ] {
            let person = sit_down(*inner);
            let screen = person.types(line);
            let rows: Vec<&str> = screen.lines().map(str::trim_end).collect();
            let typed = rows.iter().position(|row| row.ends_with(&format!("$ {line}")));
            let next = rows[typed.unwrap_or_else(|| panic!("{inner:?}: {line}:\n{screen}")) + 1];
            assert!(next.contains(below), "{inner:?}: {line}: {next:?} in\n{screen}");
            assert_eq!(
                screen.matches('⏎').count(),
                usize::from(below.contains('⏎')),
                "{inner:?}:\n{screen}"
            );
            person.leaves();
        }
    }
}
