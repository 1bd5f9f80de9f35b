//! What a command prints: on the screen as it is, in the ledger as bounded clean text.

use crate::person::{ALL, Desk, Inner};
use crate::support::processes::peak_memory_kib;
use crate::support::pty::key;

/// Much output, in bytes.
const MUCH_BYTES: u64 = 1 << 20;
/// More output than is ever kept, in bytes.
const FLOOD_BYTES: u64 = 8 << 20;
/// Memory that may be used beyond what an idle session does, in KiB (SPEC 12).
const MEMORY_OVER_IDLE_KIB_MAX: u64 = 100 << 10;
/// Characters of output that may be kept of one command.
const KEPT_MAX: usize = 512 << 10;

/// SPEC 8.3, 12: a megabyte comes through whole; its beginning and its end are kept.
#[test]
fn a_megabyte() {
    for inner in ALL {
        let person = Desk::with(*inner).sit_down();
        let line = "python3 -c \"print('the beginning'); print('middle\\n' * 149796); print('the end')\"";
        let screen = person.types(line);
        assert!(screen.contains("the end"), "{inner:?}: {screen}");
        let ran = person.last(line);
        assert!(ran.output.starts_with("the beginning"), "{inner:?}");
        assert!(ran.output.ends_with("the end"), "{inner:?}");
        assert!(ran.output.len() < KEPT_MAX, "{inner:?}: {}", ran.output.len());
        let shown = person.terminal.transcript().len() as u64;
        assert!(shown > MUCH_BYTES, "{inner:?}: {shown} bytes came through");
        person.leaves();
    }
}

/// SPEC 12: a flood fills no memory, and Ctrl-C ends it.
#[test]
fn a_flood() {
    let person = Desk::with(Inner::Bash).sit_down();
    let idle = peak_memory_kib(person.terminal.pid()).unwrap();
    person.types(&format!("yes 'a line of a flood' | head -c {FLOOD_BYTES}"));
    let after = peak_memory_kib(person.terminal.pid()).unwrap();
    assert!(
        after - idle < MEMORY_OVER_IDLE_KIB_MAX,
        "{idle} KiB idle, {after} KiB after"
    );
    person.enters("!yes");
    person.sees("y\ny\ny\n");
    person.presses_until_prompt(key::CTRL_C);
    assert_eq!(person.last("yes").status, Some(130));
    person.leaves();
}

/// SPEC 12: one line of thirty megabytes.
#[test]
fn an_endless_line() {
    let person = Desk::with(Inner::Bash).sit_down();
    let idle = peak_memory_kib(person.terminal.pid()).unwrap();
    person.types("head -c 30000000 /dev/zero | tr '\\0' x; echo; echo 'the end'");
    let after = peak_memory_kib(person.terminal.pid()).unwrap();
    assert!(
        after - idle < MEMORY_OVER_IDLE_KIB_MAX,
        "{idle} KiB idle, {after} KiB after"
    );
    let kept = person.commands().pop().unwrap().output;
    assert!(kept.ends_with("the end") && kept.len() < KEPT_MAX, "{}", kept.len());
    person.leaves();
}

/// SPEC 8.3, 8.8: bytes that are no text harm nothing: the prompt comes back, what is kept is text without control characters.
#[test]
fn binary() {
    for inner in ALL {
        let noise: Vec<u8> = (0..=u8::MAX).cycle().take(4096).collect();
        let person = Desk::with(*inner)
            .sandbox(move |sandbox| sandbox.file("noise", noise))
            .sit_down();
        person.types("cat noise");
        person.types("echo after the noise");
        assert_eq!(
            person.last("echo after the noise").output,
            "after the noise",
            "{inner:?}"
        );
        let commands = person.commands();
        let kept = &commands[0].output;
        assert!(
            !kept.chars().any(|c| c.is_control() && c != '\n' && c != '\t'),
            "{inner:?}: {kept:?}"
        );
        person.leaves();
    }
}

/// SPEC 8.3: colours, cursor moves and progress bars are resolved in what is kept; the screen has them as they are.
#[test]
fn resolved() {
    for (inner, line, kept) in [
        (Inner::Bash, "printf '\\033[31mred\\033[0m\\n'", "red"),
        (
            Inner::Bash,
            "for n in 10 50 100; do printf '\\r%s%%' $n; sleep 0.02; done; echo",
            "100%",
        ),
        (Inner::Zsh, "printf 'abc\\b\\b_\\n'", "a_c"),
        (Inner::Zsh, "printf 'one\\ntwo\\033[A\\rONE\\n'", "ONE\ntwo"),
        (Inner::Fish, "printf 'wrong\\033[2K\\rright\\n'", "right"),
        (Inner::Fish, "printf 'a\\tb\\n'", "a       b"),
    ] {
        let person = Desk::with(inner).sit_down();
        assert_eq!(person.runs(line).output, kept, "{inner:?}: {line}");
        person.leaves();
    }
}

/// SPEC 8.2: what a command writes in colour is in colour.
#[test]
fn colours_pass() {
    let person = Desk::with(Inner::Bash).sit_down();
    person.types("printf '\\033[31mred-word\\033[0m\\n'");
    let colours: Vec<vt100::Color> = person.terminal.look(|screen| {
        let (rows, columns) = screen.size();
        let cells =
            (0..rows.get()).flat_map(|row| (0..columns.get()).filter_map(move |column| screen.cell(row, column)));
        let coloured = cells.filter(|cell| cell.contents() == "w" && cell.fgcolor() == vt100::Color::Idx(1));
        coloured.map(|cell| cell.fgcolor()).collect()
    });
    assert!(!colours.is_empty(), "{}", person.terminal.screen_text());
    person.leaves();
}

/// SPEC 8.2: output without a newline at its end is not lost behind the prompt.
#[test]
fn no_newline_at_the_end() {
    for inner in ALL {
        let person = Desk::with(*inner).sit_down();
        // It stands in a row of its own, and still does after the next command.
        for line in ["printf 'no-newline'", "true"] {
            let screen = person.types(line);
            let is_there = screen.lines().any(|row| row.starts_with("no-newline"));
            assert!(is_there, "{inner:?} after {line}: {screen}");
        }
        assert_eq!(person.commands()[0].output, "no-newline", "{inner:?}");
        person.leaves();
    }
}

/// SPEC 8.2: the window's size is known within, and follows a change at the prompt and in a command.
#[test]
fn the_windows_size() {
    for inner in ALL {
        let person = Desk::with(*inner).size(24, 90).sit_down();
        assert_eq!(person.runs("stty size").output, "24 90", "{inner:?}");
        person.terminal.resize(30, 70);
        assert_eq!(person.runs("stty size").output, "30 70", "{inner:?}");
        let line = "python3 -c 'import os, time\nwhile os.get_terminal_size().columns == 70: time.sleep(0.01)\nprint(os.get_terminal_size().columns)'";
        person.pastes(line);
        person.terminal.send(key::ENTER);
        // Whether it is there before or after the program looks for the first time is the same.
        person.terminal.resize(20, 100);
        person.sees("\n100\n");
        person.wait_for_prompt();
        person.leaves();
    }
}
