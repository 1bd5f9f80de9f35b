//! What is typed before anybody reads it: while a command runs, and in one burst at the prompt (SPEC 8.2, 8.9).

use crate::person::{ALL, Desk, Inner, POSIX, Person, Ran, is_at_prompt};
use crate::support::pty::key;
use crate::support::{default_wait, poll_until};
use std::time::Instant;

/// Runs until the file `go` is there, reads nothing, and shows that it has begun.
const BUSY: &str = "echo be''gun; while [ ! -e go ]; do sleep 0.02; done";
const BUSY_FISH: &str = "echo be''gun; while not test -e go; sleep 0.02; end";

/// Somebody whose command runs and reads nothing.
fn busy(inner: Inner) -> Person {
    let person = Desk::with(inner).sit_down();
    person.enters(match inner {
        Inner::Bash | Inner::Zsh => BUSY,
        Inner::Fish => BUSY_FISH,
    });
    person.sees_line("begun");
    person
}

/// Types meanwhile, and waits until the terminal has shown the end of it: then the shell's terminal has it all.
fn types_ahead(person: &Person, text: &str, end: &str) {
    person.terminal.send(text);
    person.sees(end);
}

fn lets_go(person: &Person) {
    std::fs::write(person.sandbox.path("go"), "").unwrap();
}

/// The commands behind the busy one, once there are so many and the prompt is there.
fn commands_behind(person: &Person, count: usize) -> Vec<Ran> {
    let until = Instant::now() + default_wait();
    loop {
        let commands = person.commands();
        if commands.len() > count && person.terminal.look(is_at_prompt) {
            return commands[1..].to_vec();
        }
        let screen = person.terminal.screen_text();
        assert!(Instant::now() < until, "{:?} behind which:\n{screen}", lines(&commands));
        std::thread::yield_now();
    }
}

fn lines(commands: &[Ran]) -> Vec<&str> {
    commands.iter().map(|ran| ran.line.as_str()).collect()
}

/// SPEC 8.2, 8.9: a here-document, a loop, a condition and an open quote that are typed while a command runs are one line each,
/// as they would have been at the prompt; an empty row within is a part of it.
#[test]
fn lines_of_several_rows() {
    for inner in POSIX {
        let person = busy(*inner);
        let typed = [
            "cat <<END\nto be\n\nor not\nEND",
            "for i in 1 2\ndo echo n$i\ndone",
            "if true\nthen echo yes\nfi",
            "echo 'one\ntwo'",
        ];
        types_ahead(
            &person,
            &format!("{}\recho the-last\r", typed.join("\n").replace('\n', "\r")),
            "the-last",
        );
        lets_go(&person);
        let ran = commands_behind(&person, 5);
        assert_eq!(lines(&ran), [&typed[..], &["echo the-last"]].concat());
        let output: Vec<&str> = ran.iter().map(|ran| ran.output.as_str()).collect();
        assert_eq!(output, ["to be\n\nor not", "n1\nn2", "yes", "one\ntwo", "the-last"]);
        person.leaves();
    }
}

/// SPEC 8.9: what is not whole, or was not sent, is at the prompt, with all its rows, to be gone on with.
#[test]
fn what_is_not_whole_can_be_gone_on_with() {
    let person = busy(Inner::Bash);
    types_ahead(&person, "for i in 1 2\rdo\recho n$i; do", "n$i; do");
    lets_go(&person);
    person.terminal.wait_for("the rows", |screen| {
        let text = screen.contents();
        let rows: Vec<&str> = text.trim_end().lines().map(str::trim_end).collect();
        rows.ends_with(&["· do", "· echo n$i; do"]) && rows.iter().any(|row| row.ends_with("$ for i in 1 2"))
    });
    person.terminal.send("ne\r");
    let ran = commands_behind(&person, 1);
    assert_eq!(lines(&ran), ["for i in 1 2\ndo\necho n$i; done"]);
    assert_eq!(ran[0].output, "n1\nn2");
    person.leaves();
}

/// SPEC 8.2: what a program reads is its own, and the lines behind it come back, in all shells.
#[test]
fn a_program_that_reads_has_its_lines() {
    for inner in ALL {
        let person = Desk::with(*inner).sit_down();
        person.enters("sh -c 'echo be\"\"gun; read a; echo \"<$a>\"; while [ ! -e go ]; do sleep 0.02; done'");
        person.sees_line("begun");
        person.terminal.send("for the program\r");
        person.sees("<for the program>");
        types_ahead(&person, "echo for-the-shell", "for-the-shell");
        lets_go(&person);
        person.terminal.wait_for("what was typed", |screen| {
            screen.contents().trim_end().ends_with("$ echo for-the-shell")
        });
        person.terminal.send(key::ENTER);
        assert_eq!(lines(&commands_behind(&person, 1)), ["echo for-the-shell"]);
        person.leaves();
    }
}

/// SPEC 8.2, 12: what is pressed while a command has the terminal raw, and that it does not read, holds up no prompt and comes back.
#[test]
fn keys_in_a_raw_terminal() {
    for inner in POSIX {
        let person = Desk::with(*inner).sit_down();
        person.enters(&format!("stty raw; {BUSY}"));
        person.sees("begun");
        types_ahead(&person, "echo sent\recho unsent", "unsent");
        lets_go(&person);
        person.terminal.wait_for("what was not sent", |screen| {
            screen.contents().trim_end().ends_with("$ echo unsent")
        });
        person.terminal.send(key::ENTER);
        assert_eq!(
            lines(&commands_behind(&person, 2)),
            ["echo sent", "echo unsent"],
            "{}",
            inner.name()
        );
        person.leaves();
    }
}

/// SPEC 8.2: a line that needs what the one before has defined runs as well; what is no command is the person's to send.
#[test]
fn lines_that_build_on_one_another() {
    let person = busy(Inner::Bash);
    let typed = "greet1() { echo hi $1; }\rgreet1 --all\rwhat is this?\recho behind\r";
    types_ahead(&person, typed, "behind");
    lets_go(&person);
    person.terminal.wait_for("what is no command", |screen| {
        screen.contents().trim_end().ends_with("what is this?\n· echo behind")
    });
    person.terminal.send(key::CTRL_C);
    let ran = commands_behind(&person, 2);
    assert_eq!(lines(&ran), ["greet1() { echo hi $1; }", "greet1 --all"]);
    assert_eq!(ran[1].output, "hi --all");
    person.leaves();
}

/// SPEC 12: many lines are kept in their order, each a line of its own.
#[test]
fn many_lines() {
    let person = busy(Inner::Bash);
    let typed: Vec<String> = (0..100).map(|n| format!("echo $(({n} + 1000))")).collect();
    types_ahead(&person, &format!("{}\r", typed.join("\r")), "echo $((99 + 1000))");
    lets_go(&person);
    let ran = commands_behind(&person, typed.len());
    assert_eq!(lines(&ran), typed);
    assert_eq!(ran[99].output, "1099");
    person.leaves();
}

/// SPEC 8.2: what the terminal answers to a program that is not there any more is no text of the next line.
#[test]
fn answers_that_nobody_reads() {
    let person = busy(Inner::Bash);
    let answers = "\x1b[?62;22c\x1b[12;34R\x1b]11;rgb:1e1e/1e1e/1e1e\x1b\\\x1b]10;rgb:ffff/ffff/ffff\x07\x1bP1+r544e\x1b\\\x1b[?2026;2$y";
    types_ahead(
        &person,
        &format!("{answers}echo one{answers}\r{answers}echo two\r"),
        "echo two",
    );
    lets_go(&person);
    assert_eq!(lines(&commands_behind(&person, 2)), ["echo one", "echo two"]);
    person.leaves();
}

/// SPEC 8.2: what is typed in one go at the prompt goes to whoever reads it: the next line to the prompt, keys to a program that
/// takes the screen, lines to one that reads lines, and what it leaves to the prompt again.
#[test]
fn one_burst_for_several_readers() {
    let person = Desk::with(Inner::Bash).sit_down();
    person.terminal.send("echo a\recho b\rvim -u NONE x\rihello\r");
    person.terminal.wait_for("the text in vim", |screen| {
        screen.alternate_screen() && screen.contents().starts_with("hello\n")
    });
    person.terminal.send("\x1b:wq\r");
    assert_eq!(lines(&commands_behind(&person, 2)), ["echo b", "vim -u NONE x"]);
    assert_eq!(std::fs::read_to_string(person.sandbox.path("x")).unwrap(), "hello\n\n");
    person.leaves();
}

/// SPEC 8.2: the same for what reads lines: a program, until it has the end of its input, and the shell itself.
#[test]
fn one_burst_for_readers_of_lines() {
    for inner in POSIX {
        let person = Desk::with(*inner).sit_down();
        person
            .terminal
            .send("cat > kept\rone\rtwo\r\x04IFS= read -r x\rhello there\recho got $x\r");
        let ran = commands_behind(&person, 2);
        assert_eq!(lines(&ran), ["IFS= read -r x", "echo got $x"], "{}", inner.name());
        assert_eq!(ran[1].output, "got hello there", "{}", inner.name());
        let kept = std::fs::read_to_string(person.sandbox.path("kept")).unwrap();
        assert_eq!(kept, "one\ntwo\n", "{}", inner.name());
        person.leaves();
    }
}

/// SPEC 5.6: what was typed before a password was asked for is none.
#[test]
fn a_password_is_not_what_was_typed_before() {
    let person = Desk::with(Inner::Bash)
        .sandbox(|sandbox| sandbox.file("ask", "stty -echo\necho who\nread word\nstty echo\necho \"<$word>\"\n"))
        .sit_down();
    person.terminal.send("sh ask\recho behind\r");
    person.sees_line("who");
    person.terminal.send("mellon\r");
    person.sees("<mellon>");
    person.sees("$ echo behind");
    let ran = commands_behind(&person, 1);
    assert_eq!(lines(&ran), ["echo behind"]);
    assert!(person.commands()[0].output.contains("<mellon>"));
    person.leaves();
}

/// SPEC 8.7: whoever stops a command is not overrun by what was to come after it.
#[test]
fn stopping_holds_back() {
    let person = Desk::with(Inner::Bash).sit_down();
    person.terminal.send("echo be''gun; sleep 1000\rtouch ma''de\r");
    person.sees_line("begun");
    // Once: the next one would give up the line that is held back.
    person.terminal.send(key::CTRL_C);
    person.terminal.wait_for("the line that was to come", |screen| {
        screen.contents().trim_end().ends_with("$ touch ma''de")
    });
    assert!(!person.sandbox.path("made").exists());
    person.terminal.send(key::ENTER);
    assert_eq!(lines(&commands_behind(&person, 1)), ["touch ma''de"]);
    person.leaves();
}

/// SPEC 8.9: a script that is pasted without brackets runs line by line as in any shell, a loop of it as one.
#[test]
fn a_script_without_brackets() {
    const LINES: usize = 150;
    let person = Desk::with(Inner::Bash).sit_down();
    let script: Vec<String> = (0..LINES)
        .map(|n| format!("echo line $(({n} + 1000)) >> told"))
        .collect();
    let block = "for i in 1 2; do\r\recho $i\rdone >> told\r";
    person.terminal.send(&format!("{block}{}\r{block}", script.join("\r")));
    let ran = commands_behind(&person, LINES + 1);
    assert_eq!(ran.len(), LINES + 1);
    let told = std::fs::read_to_string(person.sandbox.path("told")).unwrap();
    let counted: String = (0..LINES).map(|n| format!("line {}\n", n + 1000)).collect();
    assert_eq!(told, format!("1\n2\n{counted}1\n2\n"));
    person.leaves();
}

/// SPEC 8.9: a script of 500 lines that is pasted runs nothing until Enter, can be edited, and runs as one.
#[test]
fn a_long_script_in_brackets() {
    let person = Desk::with(Inner::Bash).sit_down();
    let script: Vec<String> = (0..500).map(|n| format!("echo line {n} >> told")).collect();
    person.pastes(&script.join("\n"));
    person.sees("echo line 499 >> told");
    person.terminal.send("2");
    person.sees("echo line 499 >> told2");
    assert_eq!(person.commands(), []);
    person.terminal.send(key::ENTER);
    poll_until("the end of the script", default_wait(), || {
        person.sandbox.path("told2").exists().then_some(())
    });
    person.wait_for_prompt();
    let told = std::fs::read_to_string(person.sandbox.path("told")).unwrap();
    assert_eq!(told.lines().count(), 499);
    assert_eq!(person.commands().len(), 1);
    person.leaves();
}
