//! Jobs: in the background, stopped, brought back; and Ctrl-C at a command.

use crate::person::{ALL, Desk, Inner, Person};
use crate::support::pty::{Signal, key};
use crate::support::reply::Reply;
use crate::support::{default_wait, poll_until};

/// A program that says when it is there and how often it was told to stop, as a script in the project.
const STUBBORN: &str = "#!/usr/bin/env python3
import os, signal, sys, time
count = 0
def told(*_):
    global count
    count += 1
    os.write(1, f'told {count}\\n'.encode())
    if count == 3:
        sys.exit(5)
signal.signal(signal.SIGINT, told)
os.write(1, b'there\\n')
while True:
    time.sleep(60)
";

/// Sits down where `wait-here` is a command that prints `there` and then waits.
fn sit_down(inner: Inner) -> Person {
    let wait = "echo there; exec sleep 1000\n";
    Desk::with(inner)
        .sandbox(move |sandbox| sandbox.file("wait-here", wait).file("stubborn", STUBBORN))
        .sit_down()
}

/// Types a command and presses a key once it shows that: before it has begun, the key would be no key of its.
fn presses_at(person: &Person, line: &str, shows: &str, key: &str) {
    // The line itself may have it in it.
    person.begins(line);
    let before = person.terminal.history_text().matches(shows).count();
    person.sends();
    poll_until("the command to begin", default_wait(), || {
        let after = person.terminal.history_text().matches(shows).count();
        (after > before).then_some(())
    });
    person.presses_until_prompt(key);
}

/// The same with a command that says it is there.
fn presses_while(person: &Person, line: &str, key: &str) {
    presses_at(person, line, "there", key);
}

/// SPEC 8.2, 8.7: Ctrl-C ends a command and not the shell.
#[test]
fn ctrl_c() {
    for inner in ALL {
        let person = sit_down(*inner);
        person.types("export MARK=kept");
        presses_while(&person, "sh wait-here", key::CTRL_C);
        assert_eq!(person.last("sh wait-here").status, Some(130), "{inner:?}");
        assert_eq!(person.runs("sh -c 'echo $MARK'").output, "kept", "{inner:?}");
        person.leaves();
    }
}

/// SPEC 8.2, 8.7: a program that catches Ctrl-C gets each of them, and goes when it likes.
#[test]
fn ctrl_c_that_is_caught() {
    for inner in ALL {
        let person = sit_down(*inner);
        person.enters("python3 stubborn");
        person.sees_line("there");
        for told in ["told 1", "told 2", "told 3"] {
            person.presses_until(key::CTRL_C, told, |screen| screen.contents().contains(told));
        }
        person.wait_for_prompt();
        let ran = person.last("python3 stubborn");
        assert_eq!(ran.status, Some(5), "{inner:?}: {ran:?}");
        person.leaves();
    }
}

/// SPEC 8.2: Ctrl-\ ends what does not mind Ctrl-C.
#[test]
fn ctrl_backslash() {
    for inner in ALL {
        let person = sit_down(*inner);
        person.types("ulimit -c 0");
        presses_while(&person, "sh wait-here", key::CTRL_BACKSLASH);
        assert_eq!(person.last("sh wait-here").status, Some(131), "{inner:?}");
        person.leaves();
    }
}

/// SPEC 8.2, 8.7: Ctrl-C ends every part of a pipeline, and the rest of a list.
#[test]
fn ctrl_c_in_a_pipeline() {
    for inner in ALL {
        let person = sit_down(*inner);
        presses_while(&person, "sh wait-here | cat; touch went-on", key::CTRL_C);
        person.types("echo back");
        assert_eq!(person.last("echo back").output, "back");
        if *inner != Inner::Zsh {
            assert!(!person.sandbox.path("went-on").exists(), "{inner:?}");
        }
        person.leaves();
    }
}

/// SPEC 8.2: Ctrl-Z makes a command a job, which `jobs` lists, `bg` lets run and `fg` brings back.
#[test]
fn stopped_and_brought_back() {
    for inner in ALL {
        let person = sit_down(*inner);
        presses_while(&person, "sh wait-here", key::CTRL_Z);
        let listed = person.runs("jobs").output.to_lowercase();
        assert!(
            listed.contains("wait-here") && (listed.contains("stopped") || listed.contains("suspended")),
            "{inner:?}: {listed}"
        );
        person.types("bg");
        let listed = person.runs("jobs").output.to_lowercase();
        assert!(listed.contains("running"), "{inner:?}: {listed}");
        presses_at(&person, "fg", "wait-here", key::CTRL_C);
        let listed = person.runs("jobs").output;
        assert!(!listed.contains("wait-here"), "{inner:?}: {listed}");
        person.leaves();
    }
}

/// SPEC 8.2: several stopped jobs, each by its number.
#[test]
fn several_jobs() {
    for inner in [Inner::Bash, Inner::Zsh] {
        let person = sit_down(inner);
        presses_while(&person, "sh wait-here first", key::CTRL_Z);
        presses_while(&person, "sh wait-here second", key::CTRL_Z);
        let listed = person.runs("jobs").output;
        assert!(listed.contains("[1]") && listed.contains("[2]"), "{inner:?}: {listed}");
        person.types("kill %1; wait %1 2>/dev/null; kill -CONT %1 2>/dev/null; echo next");
        presses_at(&person, "fg %2", "wait-here second", key::CTRL_C);
        person.types("echo back");
        assert_eq!(person.last("echo back").output, "back", "{inner:?}");
        person.leaves();
    }
}

/// SPEC 8.2: a job in the background: its output is told between the prompts, its end as well, and `wait` waits for it.
#[test]
fn in_the_background() {
    for inner in ALL {
        let person = sit_down(*inner);
        person.types("sh -c 'while [ ! -e go ]; do sleep 0.05; done; echo from-a-job; echo > done' &");
        let listed = person.runs("jobs").output;
        assert!(listed.contains("from-a-job"), "{inner:?}: {listed}");
        person.types("echo meanwhile");
        std::fs::write(person.sandbox.path("go"), "").unwrap();
        poll_until("the job's end", default_wait(), || {
            person.sandbox.path("done").exists().then_some(())
        });
        // On the screen although nothing was typed: not the line of the command, which has a quote before it.
        poll_until("what the job printed", default_wait(), || {
            let text = person.terminal.history_text();
            text.lines()
                .any(|line| line.contains("from-a-job") && !line.contains("echo from-a-job"))
                .then_some(())
        });
        person.types("echo after");
        assert_eq!(person.last("echo after").output, "after", "{inner:?}");
        person.leaves();
    }
}

/// SPEC 8.2: what a job prints, and that it is done, is the shell's to say: in its own words, and not as if aish said it.
#[test]
fn a_job_speaks_for_itself() {
    for (inner, done) in [(Inner::Bash, "Done"), (Inner::Zsh, "done"), (Inner::Fish, "has ended")] {
        let person = sit_down(inner);
        person.types("sh -c 'while [ ! -e go ]; do sleep 0.05; done; echo from-a-job' &");
        std::fs::write(person.sandbox.path("go"), "").unwrap();
        person.sees_line("from-a-job");
        poll_until("the word that it is done", default_wait(), || {
            person.types("true");
            person.terminal.history_text().contains(done).then_some(())
        });
        let text = person.terminal.history_text();
        let said: Vec<&str> = text.lines().filter(|line| line.starts_with("[aish]")).collect();
        assert_eq!(said, Vec::<&str>::new(), "{inner:?}: {text}");
        person.leaves();
    }
}

/// SPEC 5.6, 8.2: what a job prints while a question is asked waits until it is answered: it neither stands in the row of the
/// question nor moves it.
#[test]
fn a_job_does_not_speak_into_a_question() {
    let call = Reply::call("c1", "bash", serde_json::json!({ "command": "touch made" }));
    let job = "while [ ! -e go ]; do sleep 0.05; done; echo from-a-job; echo > done\n";
    let person = Desk::with(Inner::Bash)
        .replies([call, Reply::text("made it")])
        .sandbox(move |sandbox| sandbox.file("job", job))
        .sit_down();
    person.types("sh job &");
    person.enters("?make it");
    let asked = person.terminal.wait_for("the question", |screen| {
        screen.contents().trim_end().ends_with("[y/N/a/s/?]")
    });
    std::fs::write(person.sandbox.path("go"), "").unwrap();
    poll_until("the job's end", default_wait(), || {
        person.sandbox.path("done").exists().then_some(())
    });
    // The answer goes to a question that stands as it stood.
    person.terminal.send("x");
    let answered = person
        .terminal
        .wait_for("the key", |screen| screen.contents().trim_end().ends_with("x"));
    assert_eq!(answered.trim_end(), format!("{} x", asked.trim_end()));
    person.terminal.send("\x7fy\r");
    person.sees("made it");
    person.sees_line("from-a-job");
    person.leaves();
}

/// SPEC 8.2: a job that prints while a line is being typed does not spoil the line.
#[test]
fn printed_beside_a_line_being_typed() {
    let person = sit_down(Inner::Bash);
    person.types("sh -c 'while [ ! -e go ]; do sleep 0.05; done; echo beside-the-line' &");
    person.begins("echo half a li");
    std::fs::write(person.sandbox.path("go"), "").unwrap();
    person.terminal.wait_for("what the job printed", |screen| {
        let text = screen.contents();
        text.lines().any(|line| line.trim().ends_with("beside-the-line"))
            && text
                .trim_end()
                .lines()
                .last()
                .is_some_and(|line| line.ends_with("echo half a li"))
    });
    person.terminal.send("ne");
    person.sees("echo half a line");
    person.terminal.send(key::ENTER);
    person.wait_for_prompt();
    assert_eq!(person.last("echo half a line").output, "half a line");
    person.leaves();
}

/// SPEC 8.2: `wait` waits for jobs, and Ctrl-C ends the waiting only.
#[test]
fn waiting_for_jobs() {
    for inner in ALL {
        let person = sit_down(*inner);
        person.types("sh -c 'while [ ! -e go ]; do sleep 0.05; done' &");
        // The one of zsh minds no Ctrl-C, in any terminal.
        if *inner != Inner::Zsh {
            presses_at(&person, "echo th'er'e; wait", "there", key::CTRL_C);
            let listed = person.runs("jobs").output.to_lowercase();
            assert!(listed.contains("running"), "{inner:?}: {listed}");
        }
        person.enters("wait");
        std::fs::write(person.sandbox.path("go"), "").unwrap();
        person.wait_for_prompt();
        assert_eq!(person.last("wait").status, Some(0), "{inner:?}");
        person.leaves();
    }
}

/// SPEC 8.2, 12: jobs end with a terminal that goes away.
#[test]
fn jobs_end_with_the_session() {
    for inner in ALL {
        let mut person = sit_down(*inner);
        person.types("sh -c 'echo $$ > pid; exec sleep 1000' &");
        poll_until("the job", default_wait(), || {
            person.sandbox.path("pid").exists().then_some(())
        });
        person.terminal.signal(Signal::HUP);
        assert_eq!(person.is_gone().code(), Some(129), "{inner:?}");
    }
}
