//! Start-up files: the prompt does not wait for them, the first command does; slow, broken, talkative and mean ones.

use crate::person::Expected::Prints;
use crate::person::{ALL, Desk, Inner, POSIX, play, presses_until};
use crate::support::default_wait;
use crate::support::poll_until;
use crate::support::pty::key;
use crate::support::reply::Reply;

/// SPEC 8.2, 11: the prompt is there while start-up files are still read; the first command waits for their end.
#[test]
fn slow() {
    for inner in ALL {
        let wait = match inner {
            Inner::Bash | Inner::Zsh => "while [ ! -e ~/go ]; do sleep 0.05; done\nexport MARK=read-to-its-end\n",
            Inner::Fish => "while not test -e ~/go; sleep 0.05; end\nset -gx MARK read-to-its-end\n",
        };
        let person = Desk::with(*inner).start_up(wait).sit_down();
        person.enters("sh -c 'echo $MARK'");
        std::fs::write(person.sandbox.user().join("go"), "").unwrap();
        person.wait_for_prompt();
        assert_eq!(person.last("sh -c 'echo $MARK'").output, "read-to-its-end", "{inner:?}");
        person.leaves();
    }
}

/// SPEC 8.7, 12: a start-up file that never ends holds up nobody: Ctrl-C at the first command gives the prompt back, and leaving
/// leaves nothing.
#[test]
fn endless() {
    for inner in ALL {
        let person = Desk::with(*inner).start_up("touch ~/begun\nsleep 1000\n").sit_down();
        let begun = person.sandbox.user().join("begun");
        poll_until("the file to be read", default_wait(), || begun.exists().then_some(()));
        person.leaves();
        let person = Desk::with(*inner).start_up("touch ~/begun\nsleep 1000\n").sit_down();
        let begun = person.sandbox.user().join("begun");
        poll_until("the file to be read", default_wait(), || begun.exists().then_some(()));
        person.enters("echo first");
        person.presses_until_prompt(key::CTRL_C);
        person.leaves();
    }
}

/// SPEC 8.7, 12: one that no Ctrl-C ends is left by a second one, at the next command: a shell without it takes its place, and that
/// is said.
#[test]
fn endless_and_stubborn() {
    for inner in ALL {
        let file = match inner {
            Inner::Bash | Inner::Zsh => "touch ~/begun\nwhile :; do :; done\n",
            // It takes no interrupted file for read.
            Inner::Fish => "touch ~/begun\nsh -c 'trap \"\" INT; exec sleep 1000'\n",
        };
        let person = Desk::with(*inner).start_up(file).sit_down();
        let begun = person.sandbox.user().join("begun");
        poll_until("the file to be read", default_wait(), || begun.exists().then_some(()));
        for line in ["echo first", "echo second"] {
            person.enters(line);
            // It stands in the prompt again.
            person.presses_until(key::CTRL_C, "the line in the next prompt", |screen| {
                let (row, column) = screen.cursor_position();
                let is_back = screen.contents_between(row, 0, row, column).contains(line);
                is_back && screen.contents().matches(line).count() > 1
            });
            person.presses_until_prompt(key::CTRL_C);
        }
        person.sees("the start-up files did not end");
        assert_eq!(person.runs("echo third").output, "third", "{inner:?}");
        person.leaves();
    }
}

/// SPEC 8.2: one that puts another shell in the place of the first (`exec fish` at its end) has that one run the commands.
#[test]
fn hands_over_to_a_shell() {
    for (inner, line) in [
        (Inner::Bash, "exec fish\n"),
        (Inner::Bash, "exec env THROUGH=env zsh -l\n"),
        (Inner::Zsh, "exec fish\n"),
    ] {
        let person = Desk::with(inner)
            .start_up(&format!("export MARK=handed-over\n{line}"))
            .sit_down();
        assert_eq!(person.runs("sh -c 'echo $MARK'").output, "handed-over", "{line}");
        let name = person.runs("sh -c 'cat /proc/$PPID/comm'").output;
        assert!(line.contains(&name) && name != "bash", "{line}: {name}");
        let text = person.terminal.history_text();
        assert!(text.contains("(exec)"), "{text}");
        person.leaves();
    }
}

/// SPEC 8.2: one that is nothing but handing over to itself comes to an end.
#[test]
fn hands_over_for_ever() {
    for inner in [Inner::Bash, Inner::Zsh] {
        let person = Desk::with(inner)
            .start_up(&format!("echo x >> ~/starts\nexec {}\n", inner.name()))
            .sit_down();
        person.sees("without start-up files");
        assert_eq!(person.runs("echo works").output, "works", "{inner:?}");
        person.leaves();
    }
}

/// SPEC 8.2: one that prints is heard, on lines of their own, and spoils nothing.
#[test]
fn talkative() {
    for inner in ALL {
        let person = Desk::with(*inner)
            .start_up("echo welcome-home\nprintf 'no newline'\n")
            .sit_down();
        assert_eq!(person.runs("echo first").output, "first", "{inner:?}");
        let text = person.terminal.history_text();
        assert!(text.contains("welcome-home"), "{inner:?}: {text}");
        person.leaves();
    }
}

/// SPEC 8.2: one that is broken says so, and the rest of it counts.
#[test]
fn broken() {
    for inner in ALL {
        let person = Desk::with(*inner)
            .size(24, 160)
            .start_up("no-such-command-in-start-up\nexport MARK=after\n")
            .sit_down();
        assert_eq!(person.runs("sh -c 'echo $MARK'").output, "after", "{inner:?}");
        let text = person.terminal.history_text();
        assert!(text.contains("no-such-command-in-start-up"), "{inner:?}: {text}");
        person.leaves();
    }
    for inner in ALL {
        let person = Desk::with(*inner).start_up("if then (\n").sit_down();
        assert_eq!(person.runs("echo works").output, "works", "{inner:?}");
        let text = person.terminal.history_text();
        let file = inner.start_up_file().rsplit('/').next().unwrap();
        assert!(text.contains(file), "{inner:?}: {text}");
        person.leaves();
    }
}

/// SPEC 8.2, 12: one that leaves at once: no hang and no endless restarting; the rest of the program still works.
#[test]
fn leaves_at_once() {
    for inner in ALL {
        let person = Desk::with(*inner)
            .start_up("echo x >> ~/starts\nexit 3\n")
            .replies([Reply::text("still an answer")])
            .sit_down();
        person.enters("echo first");
        person.presses_until_prompt(key::CTRL_C);
        // In fish it ends the file only.
        if *inner != Inner::Fish {
            let text = person.terminal.history_text();
            assert!(text.contains("[aish]"), "{inner:?}: {text}");
        }
        let starts = std::fs::read_to_string(person.sandbox.user().join("starts")).unwrap();
        assert!(starts.lines().count() <= 4, "{inner:?}: {starts}");
        person.types("?are you there");
        person.sees("still an answer");
        person.wait_for_prompt();
        person.leaves();
    }
}

/// SPEC 8.2, 10.5: one that asks for a passphrase: what is typed at the prompt meanwhile is sent to nobody, and a command gives it the
/// terminal.
#[test]
fn asks_for_a_secret() {
    for (inner, start_up) in [
        (Inner::Bash, "read -rsp 'Passphrase: ' x; echo \"got ${#x}\"\n"),
        (Inner::Zsh, "read -rs 'x?Passphrase: '; echo \"got ${#x}\"\n"),
    ] {
        let person = Desk::with(inner).start_up(start_up).sit_down();
        person.sees("Passphrase: ");
        person.enters("correct horse battery");
        person.sees("not sent");
        person.wait_for_prompt();
        assert!(person.server.requests().is_empty(), "{inner:?}");
        person.enters("!echo then");
        // Before it reads, an Enter is nobody's.
        presses_until(&person.terminal, key::ENTER, "its answer", |screen| {
            screen.contents().contains("got 0")
        });
        person.wait_for_prompt();
        assert_eq!(person.runs("echo fine").output, "fine", "{inner:?}");
        person.leaves();
    }
}

/// SPEC 8.2, 12: one that makes read-only what our marks hang on: a shell without it takes its place, and that is said.
#[test]
fn read_only_prompts() {
    let all = [
        (Inner::Bash, "readonly PROMPT_COMMAND='history -a'\n"),
        (Inner::Zsh, "typeset -r PS1='mine> '\n"),
    ];
    for (inner, start_up) in all {
        let person = Desk::with(inner).start_up(start_up).sit_down();
        person.sees("read-only");
        person.sees("without start-up files");
        person.wait_for_prompt();
        assert_eq!(person.runs("echo fine").output, "fine", "{inner:?}");
        assert_eq!(person.runs("echo again").output, "again", "{inner:?}");
        person.leaves();
    }
}

/// SPEC 8.2, 8.7, 12: one that hands over to another program, which knows nothing of us: Ctrl-C gives the prompt back, and the rest
/// still works.
#[test]
fn hands_over() {
    let person = Desk::with(Inner::Bash)
        .start_up("exec sh\n")
        .replies([Reply::text("still an answer")])
        .sit_down();
    person.enters("echo first");
    person.presses_until_prompt(key::CTRL_C);
    person.types("?are you there");
    person.sees("still an answer");
    person.leaves();
}

/// SPEC 8.2: a login's environment is the shell's: `SHELL`, `TERM` and those of the caller.
#[test]
fn environment() {
    for inner in ALL {
        let person = Desk::with(*inner)
            .sandbox(|sandbox| sandbox.env("FROM_OUTSIDE", "yes"))
            .sit_down();
        let ran = person.runs("sh -c 'echo $FROM_OUTSIDE $TERM'");
        assert_eq!(ran.output, "yes xterm-256color", "{inner:?}");
        person.leaves();
    }
}

/// SPEC 8.2: the secret that proves the marks is in no program's environment.
#[test]
fn the_secret_of_the_marks() {
    play(
        POSIX,
        "set -a\n",
        &[
            ("wc -l < $__aish_folder/key", Prints("1")),
            ("env | grep -c -F -f $__aish_folder/key; true", Prints("0")),
        ],
    );
}

/// SPEC 7.7, 8.2: a shell that cannot be driven, or none: the nearest that can be is used, or it is said.
#[test]
fn no_such_shell() {
    for shell in ["/bin/sh", "/nowhere/at/all", ""] {
        let person = Desk::with(Inner::Bash)
            .sandbox(move |sandbox| sandbox.env("SHELL", shell))
            .sit_down();
        assert_eq!(person.runs("!echo works").output, "works", "{shell}");
        person.leaves();
    }
}
