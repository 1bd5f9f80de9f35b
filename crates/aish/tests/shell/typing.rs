//! At the prompt itself: history, typing ahead, interrupting, a window that changes its size.

use crate::person::{Desk, Inner, Person, is_at_prompt, place};
use crate::support::pty::key;
use crate::support::reply::Reply;

/// Searches the history.
const CTRL_R: &str = "\x12";

fn sit_down(replies: impl IntoIterator<Item = Reply>) -> Person {
    Desk::with(Inner::Bash).replies(replies).sit_down()
}

/// SPEC 8.9: the arrow brings back lines of both kinds, last one first.
#[test]
fn back_in_history() {
    let person = sit_down([Reply::text("an answer")]);
    person.types("echo older");
    person.types("?what is newer");
    person.terminal.send(key::UP);
    person.sees("❯ ?what is newer");
    person.terminal.send(key::UP);
    person.terminal.wait_for("the older line", |screen| {
        screen.contents().trim_end().ends_with("echo older")
    });
    person.terminal.send(key::ENTER);
    person.wait_for_prompt();
    assert_eq!(person.commands().len(), 2);
    person.leaves();
}

/// SPEC 8.9: Ctrl-R searches lines of this and of earlier sessions.
#[test]
fn searched_history() {
    let person = sit_down([]);
    person.types("echo needle-in-the-hay");
    for n in 0..5 {
        person.types(&format!("echo hay {n}"));
    }
    person.terminal.send(CTRL_R);
    person.sees("search");
    person.terminal.send("needle");
    person.sees("echo needle-in-the-hay");
    person.terminal.send(key::ENTER);
    // Whether Enter takes the line or runs it at once is the editor's to say; a second one on an empty line does nothing.
    person.presses_until(key::ENTER, "the line to run", |screen| {
        screen
            .contents()
            .lines()
            .filter(|line| line.trim() == "needle-in-the-hay")
            .count()
            >= 2
    });
    person.wait_for_prompt();
    let again = person.sandbox.terminal(&[]).start();
    again.wait_for_prompt();
    again.send(CTRL_R);
    again.wait_for_text("search");
    again.send("needle");
    again.wait_for_text("echo needle-in-the-hay");
    drop(again);
    person.leaves();
}

/// SPEC 8.2, 8.7: what is typed while a command runs that reads nothing is neither lost nor run twice.
#[test]
fn typed_while_a_command_runs() {
    let person = sit_down([]);
    person.enters("echo there-it-is; while [ ! -e go ]; do sleep 0.05; done");
    person.terminal.wait_for("the command to begin", |screen| {
        screen.contents().lines().any(|line| line.trim() == "there-it-is")
    });
    person.terminal.send("echo ahead >> ahead\r");
    std::fs::write(person.sandbox.path("go"), "").unwrap();
    crate::support::poll_until("what was typed ahead", crate::support::default_wait(), || {
        person.sandbox.path("ahead").exists().then_some(())
    });
    person.wait_for_prompt();
    person.types("true");
    let text = std::fs::read_to_string(person.sandbox.path("ahead")).unwrap();
    assert_eq!(text, "ahead\n");
    person.leaves();
}

/// SPEC 3.5a, 8.7: what is typed while a reply streams is the next line, and Enter alone approves nothing.
#[test]
fn typed_while_a_reply_streams() {
    let person = sit_down([
        Reply::halting("begun-to-stream ", "two"),
        Reply::text("the second answer"),
    ]);
    person.enters("?count");
    person.sees("begun-to-stream");
    person.terminal.send("?and then");
    person.sees("?and then");
    person.terminal.send(key::ENTER);
    person.server.release();
    person.sees("the second answer");
    person.wait_for_prompt();
    person.server.assert_done();
    person.leaves();
}

/// SPEC 8.7: Ctrl-C in a stream, and in a tool, gives the prompt back; the shell beneath is as it was.
#[test]
fn interrupted_turns() {
    let person = sit_down([
        Reply::halting("begun-to-stream ", "two"),
        Reply::call(
            "c1",
            "bash",
            serde_json::json!({ "command": "echo tool-there; sleep 1000" }),
        ),
    ]);
    person.types("export MARK=kept");
    person.enters("?count");
    person.sees("begun-to-stream");
    person.terminal.send(key::CTRL_C);
    person.wait_for_prompt();
    person.enters("?run it");
    person.sees("[y/N/a/s/?]");
    person.terminal.send("y\r");
    person.terminal.wait_for("the tool's output", |screen| {
        screen.contents().lines().any(|line| line.trim() == "tool-there")
    });
    person.terminal.send(key::CTRL_C);
    person.wait_for_prompt();
    assert_eq!(person.runs("echo $MARK").output, "kept");
    person.leaves();
}

/// SPEC 8.9: a window that changes while a line is typed, while a reply streams and while a command runs.
#[test]
fn resized() {
    let person = sit_down([Reply::halting("half-way ", "there-it-ends")]);
    person.begins("echo half");
    person.terminal.resize(30, 60);
    person.terminal.send(" whole");
    person.sees("echo half whole");
    person.terminal.send(key::ENTER);
    person.wait_for_prompt();
    assert_eq!(person.last("echo half whole").output, "half whole");
    person.enters("?count");
    person.sees("half-way");
    person.terminal.resize(20, 100);
    person.server.release();
    person.sees("there-it-ends");
    person.wait_for_prompt();
    assert_eq!(person.runs("stty size").output, "20 100");
    person.leaves();
}

/// SPEC 8.7: Ctrl-C at an empty prompt, again and again, leaves nothing and nobody.
#[test]
fn ctrl_c_at_the_prompt() {
    let person = sit_down([]);
    person.types("export MARK=kept");
    for _ in 0..5 {
        let before = person.terminal.look(place);
        person.terminal.send(key::CTRL_C);
        person.terminal.wait_for("the next prompt", |screen| {
            is_at_prompt(screen) && place(screen) > before
        });
    }
    person.types("echo $MARK");
    assert_eq!(person.last("echo $MARK").output, "kept");
    person.leaves();
}

/// SPEC 8.2: Ctrl-L clears the screen and keeps the line.
#[test]
fn cleared() {
    let person = sit_down([]);
    person.types("echo something old");
    person.begins("echo ki");
    person.terminal.send(key::CTRL_L);
    person.terminal.wait_for("the line alone", |screen| {
        let text = screen.contents();
        !text.contains("something old") && text.contains("echo ki")
    });
    person.terminal.send("pt\r");
    person.wait_for_prompt();
    assert_eq!(person.last("echo kipt").output, "kipt");
    person.leaves();
}
