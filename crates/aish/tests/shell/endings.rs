//! How it ends: `exit`, Ctrl-D, `exec`, a shell that somebody kills.

use crate::person::{ALL, Desk, Inner, Person, children_of};
use crate::support::pty::{Signal, key};
use crate::support::{default_wait, poll_until};
use rustix::process::{Pid, kill_process};
use std::time::Duration;

fn kill(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

/// Types a line after which the program is to be gone, with that status.
fn is_left_by(mut person: Person, line: &str, status: i32) {
    let inner = person.inner;
    person.enters(line);
    assert_eq!(person.is_gone().code(), Some(status), "{inner:?}: {line}");
}

/// SPEC 8.2: `exit` leaves, with its status.
#[test]
fn exit() {
    for inner in ALL {
        is_left_by(Desk::with(*inner).sit_down(), "exit", 0);
        is_left_by(Desk::with(*inner).sit_down(), "exit 7", 7);
    }
}

/// SPEC 8.2: `exit` without a number has the status of the last command.
#[test]
fn exit_after_a_failure() {
    for inner in [Inner::Bash, Inner::Zsh] {
        let person = Desk::with(inner).sit_down();
        person.types("false");
        is_left_by(person, "exit", 1);
    }
}

/// SPEC 8.2: with stopped jobs the first `exit` says so and stays, the second leaves, and the jobs with it.
#[test]
fn exit_with_jobs() {
    for inner in ALL {
        let person = Desk::with(*inner)
            .sandbox(|sandbox| sandbox.file("wait-here", "echo there-it-is; exec sleep 1000\n"))
            .sit_down();
        person.enters("sh wait-here");
        person.sees("there-it-is");
        person.presses_until_prompt(key::CTRL_Z);
        person.types("exit");
        person.sees(" jobs");
        let mut person = person;
        person.enters("exit");
        person.is_gone();
    }
}

/// SPEC 8.2, 12: a shell that is left ends its jobs in the background. bash does not, anywhere.
#[test]
fn jobs_when_left() {
    for inner in [Inner::Zsh, Inner::Fish] {
        let person = Desk::with(inner).sit_down();
        person.types("sleep 1000 &");
        person.types("sleep 1001 &");
        // A shell may say first that there are jobs.
        let mut person = person;
        poll_until("the end", default_wait(), || {
            person.terminal.send(key::CTRL_D);
            std::thread::sleep(Duration::from_millis(100));
            person.terminal.is_closed().then_some(())
        });
        person.is_gone();
    }
}

/// SPEC 8.2: a shell that is replaced by another program ends when that does.
#[test]
fn exec() {
    for inner in ALL {
        is_left_by(Desk::with(*inner).sit_down(), "exec sh -c 'exit 9'", 9);
    }
}

/// SPEC 8.2: a shell killed while nothing runs is begun again where it was, and that is said.
#[test]
fn killed_at_the_prompt() {
    for inner in ALL {
        let person = Desk::with(*inner)
            .start_up("echo > ~/started\n")
            .sandbox(|sandbox| sandbox.file("below/marker", "x"))
            .sit_down();
        person.types("cd below");
        let before = person.inner_process();
        kill(before, Signal::KILL);
        poll_until("the dead one to be gone", default_wait(), || {
            (!children_of(person.terminal.pid()).contains(&before)).then_some(())
        });
        person.types_to_the_next("pwd");
        let ran = person.last("pwd");
        assert!(ran.output.ends_with("/below"), "{inner:?}: {ran:?}");
        let text = person.terminal.history_text();
        assert!(
            text.contains("[aish] the shell ended (killed by signal 9"),
            "{inner:?}: {text}"
        );
        assert_ne!(person.inner_process(), before);
        person.leaves();
    }
}

/// SPEC 8.2: a shell killed under a command: the command's end is told, the next one runs in a new shell in the same directory.
#[test]
fn killed_in_a_command() {
    for inner in ALL {
        let person = Desk::with(*inner)
            .sandbox(|sandbox| {
                sandbox
                    .file("below/marker", "x")
                    .file("wait-here", "echo there-it-is; exec sleep 1000\n")
            })
            .sit_down();
        person.types("cd below");
        person.enters("sh ../wait-here");
        person.sees("there-it-is");
        kill(person.inner_process(), Signal::KILL);
        let screen = person.wait_for_prompt();
        assert!(
            screen.contains("the shell ended (killed by signal 9"),
            "{inner:?}: {screen}"
        );
        let ran = person.runs("pwd");
        assert!(ran.output.ends_with("/below"), "{inner:?}: {ran:?}");
        person.leaves();
    }
}

/// SPEC 8.2: killed again and again.
#[test]
fn killed_many_times() {
    let person = Desk::with(Inner::Bash).sit_down();
    for _ in 0..5 {
        person.types_to_the_next("true");
        let shell = person.inner_process();
        kill(shell, Signal::KILL);
        poll_until("the dead one to be gone", default_wait(), || {
            (!children_of(person.terminal.pid()).contains(&shell)).then_some(())
        });
    }
    person.types_to_the_next("echo alive");
    assert_eq!(person.last("echo alive").output, "alive");
    person.leaves();
}

/// SPEC 8.2: a command that kills its own shell.
#[test]
fn suicide() {
    for inner in [Inner::Bash, Inner::Zsh] {
        let person = Desk::with(inner).sit_down();
        person.types("kill -9 $$");
        assert_eq!(person.runs("echo alive").output, "alive", "{inner:?}");
        person.leaves();
    }
}

/// SPEC 8.2: a shell that is told to end at a failure (`set -e`) does not take the prompt with it: nobody has left it. That is said,
/// and the next one is where it was.
#[test]
fn strict_shells_that_end() {
    for inner in [Inner::Bash, Inner::Zsh] {
        let person = Desk::with(inner)
            .sandbox(|sandbox| sandbox.file("below/marker", "x"))
            .sit_down();
        person.types("cd below");
        person.types("set -e");
        assert_eq!(person.runs("false").status, Some(1), "{inner:?}");
        person.sees("the shell ended (exit 1");
        assert!(person.runs("pwd").output.ends_with("/below"), "{inner:?}");
        assert_eq!(person.runs("false").status, Some(1), "{inner:?}");
        assert_eq!(person.runs("echo alive").output, "alive", "{inner:?}");
        person.types("set -e");
        is_left_by(person, "exit 3", 3);
    }
}

/// SPEC 8.2, 12: a shell that is stopped has nobody above it who could have it go on: it goes on, and that is said.
#[test]
fn stopped() {
    for inner in ALL {
        let line = match inner {
            Inner::Bash => "suspend",
            // The one of zsh does nothing to the leader of a session.
            Inner::Zsh => "kill -STOP $$",
            Inner::Fish => "kill -STOP $fish_pid",
        };
        let person = Desk::with(*inner).sit_down();
        person.types(line);
        person.sees("was stopped");
        assert_eq!(person.runs("echo alive").output, "alive", "{inner:?}");
        kill(person.inner_process(), Signal::STOP);
        assert_eq!(person.runs("echo again").output, "again", "{inner:?}");
        person.leaves();
    }
}

/// SPEC 8.2: a shell that becomes another one (`exec zsh`) is begun anew as that one, where it was and with what it had exported.
#[test]
fn exec_of_a_shell() {
    for (inner, next, version) in [
        (Inner::Bash, "zsh", "echo v$ZSH_VERSION"),
        (Inner::Zsh, "fish", "echo v$version"),
        (Inner::Fish, "bash", "echo v$BASH_VERSION"),
        (Inner::Bash, "bash", "echo v$BASH_VERSION"),
        (Inner::Zsh, "zsh -l", "echo v$ZSH_VERSION"),
    ] {
        let person = Desk::with(inner)
            .sandbox(|sandbox| sandbox.file("below/marker", "x"))
            .sit_down();
        person.types("cd below");
        person.types(if inner == Inner::Fish {
            "set -gx COLOUR blue"
        } else {
            "export COLOUR=blue"
        });
        person.types(&format!("exec {next}"));
        person.sees("(exec)");
        assert_eq!(person.runs("sh -c 'echo $COLOUR'").output, "blue", "{inner:?} {next}");
        assert!(person.runs("pwd").output.ends_with("/below"), "{inner:?} {next}");
        assert_ne!(person.runs(version).output, "v", "{inner:?} {next}");
        assert_eq!(person.runs("sh -c 'exit 4'").status, Some(4), "{inner:?} {next}");
        person.leaves();
    }
}

/// SPEC 8.2: a shell that becomes one that knows nothing of us, by the person's wish, is theirs until they leave it.
#[test]
fn exec_of_a_bare_shell() {
    let person = Desk::with(Inner::Zsh).sit_down();
    person.enters("exec bash --norc --noprofile");
    person.sees("bash-");
    person.terminal.send("echo within-$((1+1))\r");
    person.sees("within-2");
    person.terminal.send("exit 5\r");
    let mut person = person;
    assert_eq!(person.is_gone().code(), Some(5));
    let text = person.terminal.history_text();
    assert!(text.contains("the shell had become bash"), "{text}");
    assert!(
        !text.contains("993~"),
        "keys of ours in a shell that is none of ours: {text}"
    );
}

/// SPEC 8.2: a shell within the shell, left by its own `exit`.
#[test]
fn a_shell_within() {
    for inner in ALL {
        let person = Desk::with(*inner).sit_down();
        person.enters("sh");
        person.terminal.wait_for("the shell within", |screen| {
            let text = screen.contents();
            let last = text.trim_end();
            last.ends_with('$') || last.ends_with('#')
        });
        person.terminal.send("echo within-$((1+1))\r");
        person.sees("within-2");
        person.terminal.send("exit 4\r");
        person.wait_for_prompt();
        assert_eq!(person.last("sh").status, Some(4), "{inner:?}");
        person.leaves();
    }
}
