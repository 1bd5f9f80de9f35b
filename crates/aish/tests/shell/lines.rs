//! Lines of more than one line, and lines that are not whole: heredocs, loops, quotes, pastes.

use crate::person::{ALL, Desk, FISH, Inner, POSIX};
use crate::support::pty::key;

/// What makes a new line within one that is being typed.
const ALT_ENTER: &str = "\x1b\r";

/// Types lines with Alt-Enter between them.
fn typed_over_lines(shells: &[Inner], lines: &[&str], prints: &str) {
    for inner in shells {
        let person = Desk::with(*inner).sit_down();
        let (first, rest) = lines.split_first().unwrap();
        person.begins(first);
        for line in rest {
            person.terminal.send(ALT_ENTER);
            person.terminal.send(line);
        }
        person.terminal.send(key::ENTER);
        person.wait_for_prompt();
        let ran = person.last(&lines.join("\n"));
        assert_eq!((ran.status, ran.output.as_str()), (Some(0), prints), "{inner:?}");
        person.leaves();
    }
}

/// SPEC 8.2, 8.9: a loop over several lines runs as one command.
#[test]
fn loops() {
    typed_over_lines(POSIX, &["!for n in 1 2; do", "  echo n=$n", "done"], "n=1\nn=2");
    typed_over_lines(FISH, &["!for n in 1 2", "  echo n=$n", "end"], "n=1\nn=2");
}

/// SPEC 8.2, 8.9: a condition over several lines.
#[test]
fn conditions() {
    typed_over_lines(
        POSIX,
        &["!if true; then", "  echo yes", "else", "  echo no", "fi"],
        "yes",
    );
    typed_over_lines(FISH, &["!if true", "  echo yes", "else", "  echo no", "end"], "yes");
}

/// SPEC 8.2, 8.9: a here-document.
#[test]
fn heredocs() {
    typed_over_lines(
        POSIX,
        &["!cat <<EOF", "first $((1+1))", "'second'", "EOF"],
        "first 2\n'second'",
    );
}

/// SPEC 8.2: two lines are two commands of one entry; both run, the last one's status counts.
#[test]
fn two_commands() {
    typed_over_lines(ALL, &["!echo one", "echo two"], "one\ntwo");
}

/// SPEC 8.9: an open quote or a backslash at the end asks for more.
#[test]
fn unfinished() {
    for inner in ALL {
        let person = Desk::with(*inner).sit_down();
        person.enters("!echo 'one");
        person.terminal.send("two'");
        person.terminal.send(key::ENTER);
        person.wait_for_prompt();
        assert_eq!(person.last("echo 'one\ntwo'").output, "one\ntwo", "{inner:?}");
        person.enters("!echo three \\");
        person.terminal.send("four");
        person.terminal.send(key::ENTER);
        person.wait_for_prompt();
        assert_eq!(person.commands().last().unwrap().output, "three four", "{inner:?}");
        person.leaves();
    }
}

/// SPEC 8.2: what is no whole command or none at all says so; the shell goes on.
#[test]
fn wrong() {
    for inner in ALL {
        let person = Desk::with(*inner).sit_down();
        person.enters("!echo )");
        person.terminal.wait_for("what is wrong", |screen| {
            let text = screen.contents();
            ["syntax error", "parse error", "not run"]
                .iter()
                .any(|said| text.contains(said))
        });
        // It may have been handed back.
        person.presses_until_prompt(key::CTRL_C);
        person.enters("!ls |");
        person.presses_until_prompt(key::CTRL_C);
        person.types("!echo back");
        assert_eq!(person.last("echo back").output, "back", "{inner:?}");
        person.leaves();
    }
}

/// SPEC 8.9: pasting several lines runs none of them; Enter runs all.
#[test]
fn pastes() {
    for inner in ALL {
        let person = Desk::with(*inner).sit_down();
        person.pastes("touch pasted-one\ntouch pasted-two\n");
        person.sees("pasted-two");
        // Whatever was pasted has had time to run: the next key is dealt with after it.
        person.terminal.send("# end");
        person.sees("# end");
        assert!(!person.sandbox.path("pasted-one").exists(), "{inner:?}");
        person.gives_up();
        assert!(!person.sandbox.path("pasted-one").exists(), "{inner:?}");
        person.pastes("touch pasted-three\ntouch pasted-four\n");
        person.sees("pasted-four");
        person.terminal.send(key::ENTER);
        person.wait_for_prompt();
        assert!(person.sandbox.path("pasted-three").exists(), "{inner:?}");
        assert!(person.sandbox.path("pasted-four").exists(), "{inner:?}");
        assert!(!person.sandbox.path("pasted-one").exists(), "{inner:?}");
        person.leaves();
    }
}

/// SPEC 8.8, 8.9: a paste that pretends to end, and goes on with a line and Enter, runs nothing.
#[test]
fn pastes_that_break_out() {
    let person = Desk::with(Inner::Bash).sit_down();
    person.pastes("echo harmless \x1b[200~\rtouch broke-out\r");
    person.terminal.send("tail");
    person.sees("tail");
    assert!(!person.sandbox.path("broke-out").exists());
    person.gives_up();
    assert!(!person.sandbox.path("broke-out").exists());
    person.leaves();
}

/// SPEC 8.7: Ctrl-C while a line is typed throws it away, in one line and in several.
#[test]
fn given_up() {
    let person = Desk::with(Inner::Bash).sit_down();
    person.begins("touch given-up");
    person.gives_up();
    person.enters("!echo 'open");
    person.begins("touch given-up");
    person.gives_up();
    person.types("echo after");
    assert_eq!(person.last("echo after").output, "after");
    assert!(!person.sandbox.path("given-up").exists());
    person.leaves();
}

/// SPEC 8.2: a line of many kilobytes.
#[test]
fn long_lines() {
    for inner in ALL {
        let person = Desk::with(*inner).sit_down();
        let long = "x".repeat(6_000);
        person.pastes(&format!("echo {long} | wc -c | tr -d ' '"));
        person.terminal.send(key::ENTER);
        person.wait_for_prompt();
        assert_eq!(person.commands().last().unwrap().output, "6001", "{inner:?}");
        person.leaves();
    }
}

/// SPEC 8.2: what the shell puts back to be looked at (`histverify`) stands in the next prompt, and runs when it is sent again.
#[test]
fn looked_at_first() {
    for (inner, start_up) in [
        (Inner::Bash, "shopt -s histverify\n"),
        (Inner::Zsh, "setopt hist_verify\n"),
    ] {
        let person = Desk::with(inner).start_up(start_up).sit_down();
        person.types("!echo once");
        person.enters("!echo and !e");
        person.terminal.wait_for("the line in the prompt", |screen| {
            let (row, column) = screen.cursor_position();
            screen
                .contents_between(row, 0, row, column)
                .contains("echo and echo once")
        });
        person.terminal.send(key::ENTER);
        person.sees_line("and echo once");
        person.wait_for_prompt();
        assert_eq!(person.last("echo and echo once").output, "and echo once", "{inner:?}");
        person.types("!echo next");
        assert_eq!(person.last("echo next").output, "next", "{inner:?}");
        person.leaves();
    }
}

/// SPEC 8.2: an event that the history does not have is said at once, and the next line runs.
#[test]
fn no_such_event() {
    for inner in POSIX {
        let person = Desk::with(*inner).sit_down();
        person.enters("!echo !nosuchevent");
        person.sees("event not found");
        person.presses_until_prompt(key::CTRL_C);
        person.types("!echo next");
        assert_eq!(person.last("echo next").output, "next", "{inner:?}");
        person.leaves();
    }
}

/// SPEC 8.2: zsh asks whether a command is meant so: the person sees it, and answers.
#[test]
fn corrections() {
    let person = Desk::with(Inner::Zsh).start_up("setopt correct\n").sit_down();
    person.enters("!ehco mended");
    person.sees("[nyae]");
    person.terminal.send("y");
    person.wait_for_prompt();
    let text = person.terminal.history_text();
    assert!(text.lines().any(|line| line.trim() == "mended"), "{text}");
    person.leaves();
}
