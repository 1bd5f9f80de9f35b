//! What was typed before a question was there, or half of it: it is no answer.

use super::person::{Desk, Inner};
use super::support::pty::key;
use super::support::reply::Reply;
use super::{answers, asks, ran, waits_for_question};

/// SPEC 5.3, 8.4: a word that was begun when the question came is typed to its end where it was begun, and answers nothing: here
/// the rest of it would be a yes.
#[test]
fn half_a_word_is_no_answer() {
    let person = Desk::with(Inner::Bash)
        .replies([Reply::halting("Do:\n", "CMD: touch raced\n")])
        .sit_down();
    asks(&person);
    person.sees("Do:");
    person.terminal.send("thank ");
    person.sees("thank ▏");
    person.server.release();
    person.sees("CMD: touch raced");
    person.terminal.send("you");
    person.sees("thank you▏");
    waits_for_question(&person, "touch raced");
    answers(&person, "");
    person.terminal.wait_for("the line that was begun", |screen| {
        screen.contents().trim_end().ends_with("thank you")
    });
    assert!(!person.sandbox.path("raced").exists());
    person.gives_up();
    person.leaves();
}

/// SPEC 5.6, 3.5a: what was typed while the model answered is no answer to a question that was not there; it waits for its turn.
#[test]
fn a_yes_in_advance() {
    let reply = Reply::stream()
        .says("CMD: touch a\n")
        .stalls()
        .says("so")
        .finish("stop")
        .done();
    let person = Desk::with(Inner::Bash)
        .replies([reply, Reply::text("what?")])
        .sit_down();
    asks(&person);
    person.sees("CMD: touch a");
    person.terminal.send("y");
    person.terminal.send(key::ENTER);
    person.terminal.send("!echo typed ahead\r");
    person.sees("2 queued");
    person.server.release();
    waits_for_question(&person, "touch a");
    assert!(!person.sandbox.path("a").exists());
    answers(&person, "n");
    person.sees("typed ahead\n");
    person.wait_for_prompt();
    assert!(!person.sandbox.path("a").exists());
    assert_eq!(ran(&person), ["echo typed ahead"]);
    person.leaves();
}
