//! Programs that take the terminal over: full-screen ones, prompts for passwords, and those that leave it in a mess.

use crate::person::{ALL, Desk, Inner, Person, children_of, name_of};
use crate::support::processes::is_asleep;
use crate::support::pty::key;
use crate::support::reply::Reply;
use crate::support::{default_wait, poll_until};

/// Asks for a password as programs do: on the terminal itself, without echo.
const ASK: &str = "import getpass
word = getpass.getpass('word: ')
print('letters:', len(word))
";

/// What is pressed there; nobody may see it anywhere.
const SECRET: &str = "hunter2-hunter2";

fn sit_down(inner: Inner) -> Person {
    let lines: String = (1..=200).map(|n| format!("row number {n}\n")).collect();
    Desk::with(inner)
        .replies([Reply::text("noted")])
        .sandbox(move |sandbox| sandbox.file("rows", lines).file("ask.py", ASK))
        .sit_down()
}

fn in_alternate_screen(screen: &vt100::Screen) -> bool {
    screen.alternate_screen()
}

/// SPEC 8.2: an editor takes the screen over, gets its keys, and gives the screen back as it was.
#[test]
fn vim() {
    for inner in ALL {
        let person = sit_down(*inner);
        person.types("echo before the editor");
        person.enters("vim -u NONE -i NONE note.txt");
        person.terminal.wait_for("the editor", in_alternate_screen);
        person.sees("note.txt");
        person.terminal.send("ihello from vim");
        person.sees("hello from vim");
        person.terminal.send(key::ESCAPE);
        person.terminal.send(":wq\r");
        let screen = person.wait_for_prompt();
        assert!(screen.contains("before the editor"), "{inner:?}: {screen}");
        assert!(!screen.contains("hello from vim"), "{inner:?}: {screen}");
        let note = std::fs::read_to_string(person.sandbox.path("note.txt")).unwrap();
        assert_eq!(note, "hello from vim\n", "{inner:?}");
        let ran = person.last("vim -u NONE -i NONE note.txt");
        assert_eq!(ran.status, Some(0), "{inner:?}");
        assert!(
            !ran.output.contains("hello from vim"),
            "{inner:?}: a full screen is no output: {ran:?}"
        );
        person.leaves();
    }
}

/// SPEC 8.2: an editor that is stopped is brought back with what was in it.
#[test]
fn vim_stopped() {
    for inner in ALL {
        let person = sit_down(*inner);
        person.enters("vim -u NONE -i NONE note.txt");
        person.terminal.wait_for("the editor", in_alternate_screen);
        person.sees("note.txt");
        person.terminal.send("ione line");
        person.sees("one line");
        person.terminal.send(key::ESCAPE);
        person.terminal.send(key::CTRL_Z);
        let screen = person.wait_for_prompt();
        assert!(!screen.contains("one line"), "{inner:?}: {screen}");
        assert_eq!(person.runs("echo meanwhile").output, "meanwhile", "{inner:?}");
        person.enters("fg");
        person.terminal.wait_for("the editor again", |screen| {
            screen.alternate_screen() && screen.contents().contains("one line")
        });
        person.terminal.send(":wq\r");
        person.wait_for_prompt();
        let note = std::fs::read_to_string(person.sandbox.path("note.txt")).unwrap();
        assert_eq!(note, "one line\n", "{inner:?}");
        person.leaves();
    }
}

/// Waits until a program that has drawn its screen waits for a key. The pager heeds no signal that comes in the moment between.
fn waits_for_keys(person: &Person, name: &str) {
    poll_until("the program to wait for a key", default_wait(), || {
        let mut programs = children_of(person.inner_process()).into_iter();
        programs.any(|pid| name_of(pid) == name && is_asleep(pid)).then_some(())
    });
}

/// SPEC 8.2: a pager: forward, search, away; and Ctrl-Z in it.
#[test]
fn less() {
    for inner in ALL {
        let person = sit_down(*inner);
        person.enters("less rows");
        person.sees("row number 1\n");
        person.terminal.send(" ");
        person.sees("row number 40");
        person.terminal.send("/number 150\r");
        person.sees("row number 150");
        waits_for_keys(&person, "less");
        person.terminal.send(key::CTRL_Z);
        person.wait_for_prompt();
        person.enters("fg");
        person.sees("row number 150");
        person.terminal.send("q");
        person.wait_for_prompt();
        let ran = person.commands();
        let less = ran.iter().find(|ran| ran.line == "less rows").unwrap();
        assert!(!less.output.contains("row number"), "{inner:?}: {less:?}");
        person.leaves();
    }
}

/// SPEC 8.2: a pager at the end of a pipeline reads keys from the terminal itself.
#[test]
fn less_behind_a_pipe() {
    for inner in ALL {
        let person = sit_down(*inner);
        person.enters("cat rows | less");
        person.sees("row number 1\n");
        person.terminal.send("G");
        person.sees("row number 200");
        person.terminal.send("q");
        person.wait_for_prompt();
        person.leaves();
    }
}

/// SPEC 8.2: a program that draws itself again and again.
#[test]
fn top() {
    for inner in ALL {
        let person = sit_down(*inner);
        person.enters("top -d 0.2");
        person.sees("PID");
        person.presses_until_prompt("q");
        // Keys that came too late for it are the prompt's.
        person.terminal.send(key::CTRL_U);
        person.types("echo back");
        assert_eq!(person.last("echo back").output, "back", "{inner:?}");
        person.leaves();
    }
}

/// SPEC 8.2: one that draws in colours, with keys of its own, and the mouse.
#[test]
fn htop() {
    for inner in ALL {
        let person = sit_down(*inner);
        person.enters("htop");
        person.terminal.wait_for("its screen", in_alternate_screen);
        person.sees("F10Quit");
        person.presses_until_prompt("q");
        person.terminal.send(key::CTRL_U);
        person.types("echo back");
        assert_eq!(person.last("echo back").output, "back", "{inner:?}");
        person.terminal.look(|screen| {
            let mouse = screen.mouse_protocol_mode();
            assert_eq!(mouse, vt100::MouseProtocolMode::None, "{inner:?}");
        });
        person.leaves();
    }
}

/// SPEC 8.2, 10.5, 12: a password reaches the program, and is nowhere else: not on the screen, in the ledger, in a history, in a
/// request.
#[test]
fn a_password() {
    for inner in ALL {
        let person = sit_down(*inner);
        person.enters("python3 ask.py");
        person.sees("word:");
        person.terminal.send(SECRET);
        person.terminal.send(key::ENTER);
        person.sees("letters: 15");
        person.wait_for_prompt();
        let ran = person.last("python3 ask.py");
        assert_eq!(ran.output, "word:\nletters: 15", "{inner:?}");
        person.types("?what was that");
        person.sees("noted");
        person.wait_for_prompt();
        person.terminal.assert_never_wrote(SECRET.as_bytes());
        let request = serde_json::to_string(person.server.only_request().messages()).unwrap();
        assert!(request.contains("letters: 15"), "{inner:?}: {request}");
        assert!(!request.contains(SECRET), "{inner:?}: {request}");
        let sandbox = &person.sandbox;
        let kept = std::process::Command::new("grep")
            .args(["-rl", SECRET])
            .args([sandbox.home(), sandbox.user(), sandbox.project()])
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&kept.stdout), "", "{inner:?}: kept in a file");
        person.leaves();
    }
}

/// SPEC 8.2: a shell builtin that reads a line gets it, with echo.
#[test]
fn reading_a_line() {
    for (inner, line) in [
        (Inner::Bash, "printf 'name: '; read name; echo \"hello $name\""),
        (Inner::Zsh, "printf 'name: '; read name; echo \"hello $name\""),
        (Inner::Fish, "read -P 'name: ' name; echo \"hello $name\""),
    ] {
        let person = sit_down(inner);
        person.enters(line);
        person
            .terminal
            .wait_for("the question", |screen| screen.contents().trim_end().ends_with("name:"));
        person.terminal.send("Ada");
        person.terminal.send(key::ENTER);
        person.sees("hello Ada");
        person.wait_for_prompt();
        person.leaves();
    }
}

/// SPEC 8.2: Ctrl-D is the end of a program's input, and not of ours.
#[test]
fn end_of_input() {
    for inner in ALL {
        let person = sit_down(*inner);
        person.enters("!sh -c 'echo there; cat > typed.txt'");
        person.sees_line("there");
        person.terminal.send("one line\r");
        person.sees_line("one line");
        let typed = person.sandbox.path("typed.txt");
        poll_until("the line in the file", default_wait(), || {
            let text = std::fs::read_to_string(&typed).unwrap_or_default();
            (text == "one line\n").then_some(())
        });
        person.terminal.send(key::CTRL_D);
        person.wait_for_prompt();
        assert_eq!(person.runs("cat typed.txt").output, "one line", "{inner:?}");
        person.leaves();
    }
}

/// SPEC 8.2, 8.7: what a program leaves the terminal in does not last: no echo, raw, the alternate screen, no cursor, colours.
#[test]
fn what_programs_leave() {
    for inner in ALL {
        let person = sit_down(*inner);
        for line in [
            "stty -echo",
            "sh -c 'stty raw; kill -9 $$'",
            "sh -c 'stty -icrnl -opost intr ^A; kill -9 $$'",
            "printf '\\033[?1049h'",
            "printf '\\033[?25l'",
            "printf '\\033[31;1m'",
            "printf '\\033[?1000h\\033[?1h'",
            "printf 'no newline at the end'",
        ] {
            person.types(line);
            let screen = person.types("echo still; echo here");
            assert!(screen.contains("still\n"), "{inner:?} after {line}: {screen}");
            let last = person.last("echo still; echo here");
            // What a program that was killed left of the inner terminal is the shell's to mend: zsh does not.
            let words: Vec<&str> = last.output.split_whitespace().collect();
            assert_eq!(words, ["still", "here"], "{inner:?} after {line}");
        }
        person.terminal.look(|screen| {
            assert!(!screen.hide_cursor(), "{inner:?}: no cursor");
            assert_eq!(
                screen.mouse_protocol_mode(),
                vt100::MouseProtocolMode::None,
                "{inner:?}"
            );
            assert!(!screen.application_cursor(), "{inner:?}");
        });
        person.leaves();
    }
}

/// SPEC 8.2: a chooser that reads keys from the terminal and gives its choice to a command substitution.
#[test]
fn a_chooser() {
    for inner in ALL {
        let person = sit_down(*inner);
        person.enters("echo chosen: $(cat rows | fzf --height=10)");
        person.sees("200/200");
        person.terminal.send("number 117");
        person.sees("1/200");
        person.terminal.send(key::ENTER);
        person.sees("chosen: row number 117");
        person.wait_for_prompt();
        person.leaves();
    }
}
