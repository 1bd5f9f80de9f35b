//! How things look at the prompt: Markdown, plain words, the clipboard, the pager, and what a newcomer reads.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(dead_code)]

mod support;

use serde_json::json;
use support::fake_server::FakeServer;
use support::pty::{Terminal, key};
use support::reply::Reply;
use support::sandbox::Sandbox;

const REPLY: &str = "# Title\n\nSome **bold** words, and `code`.\n\n```sh\nls -l # all\n```\n";

fn leave(mut terminal: Terminal) {
    terminal.send(key::CTRL_D);
    assert_eq!(terminal.wait_exit().code(), Some(0));
    assert_eq!(terminal.settings(), *terminal.settings_at_start());
}

/// SPEC 8.6: a reply is laid out while it streams; `:copy` puts its code on the terminal's clipboard (OSC 52).
#[test]
fn markdown_and_clipboard() {
    let server = FakeServer::script([Reply::text(REPLY).in_pieces(7)]);
    let sandbox = Sandbox::with_model(&server);
    let terminal = sandbox.terminal(&[]).start();
    terminal.wait_for_prompt();
    terminal.said("what is in this folder, please?");
    let screen = terminal.wait_for_text("└─");
    assert!(screen.contains("Some bold words, and code."), "{screen}");
    assert!(screen.contains("┌─ sh\nls -l # all\n└─"), "{screen}");
    terminal.send_line(":copy");
    terminal.wait_for_text("copied 1 line (if the terminal allows it)");
    terminal.wait_for_bytes(b"\x1b]52;c;bHMgLWwgIyBhbGwK\x07", 1);
    terminal.send_line(":copy 2");
    terminal.wait_for_text("there is one block of code in the last reply");
    leave(terminal);
}

/// SPEC 8.9: with `--plain` nothing is laid out: replies as they were written, words instead of rules, no styles in between.
#[test]
fn plain_words() {
    let read = json!({ "path": "notes.txt" });
    let server = FakeServer::script([Reply::call("c1", "file_read", read), Reply::text(REPLY)]);
    let sandbox = Sandbox::with_model(&server).file("notes.txt", "one\n");
    let terminal = sandbox.terminal(&["--plain"]).start();
    terminal.wait_for_prompt();
    terminal.said("what is in the notes, please?");
    let screen = terminal.wait_for_text("ls -l # all");
    assert!(
        screen.contains("call: file_read(path=\"notes.txt\")\n    one\ndone: "),
        "{screen}"
    );
    assert!(screen.contains("Some **bold** words, and `code`."), "{screen}");
    terminal.assert_never_wrote("───".as_bytes());
    leave(terminal);
}

/// SPEC 8.5: what was cut of a result is paged by the program the person pages with.
#[test]
fn the_rest_of_a_result() {
    let text: String = (1..=60).map(|n| format!("line {n}\n")).collect();
    let read = json!({ "path": "notes.txt" });
    let server = FakeServer::script([Reply::call("c1", "file_read", read), Reply::text("That is all.")]);
    let sandbox = Sandbox::with_model(&server).file("notes.txt", text);
    // A pager of one's own: it says so, and shows what it was given.
    let sandbox = sandbox.env("PAGER", "sed s/^/paged-/");
    let terminal = sandbox.terminal(&[]).start();
    terminal.wait_for_prompt();
    terminal.send_line("what is in the notes, please?");
    terminal.wait_for_text("That is all.");
    let screen = terminal.wait_for_prompt();
    assert!(screen.contains("more lines (:show call_1_1)"), "{screen}");
    terminal.send_line(":show");
    terminal.wait_for_text("paged-line 60");
    terminal.wait_for_prompt();
    leave(terminal);
}

/// A newcomer reads five lines, and one the next time.
#[test]
fn welcomes() {
    let server = FakeServer::script([Reply::text("hello")]);
    let sandbox = Sandbox::with_model(&server);
    let terminal = sandbox.terminal(&[]).start();
    terminal.wait_for_prompt();
    let screen = terminal.screen_text();
    assert!(
        screen.contains("aish: your shell, and a model at one prompt. fake is listening.\n"),
        "{screen}"
    );
    assert!(screen.contains(":help is one screen; Ctrl-D leaves.\n"), "{screen}");
    terminal.said("why is the sky blue?");
    terminal.wait_for_text("hello");
    leave(terminal);
    let terminal = sandbox.terminal(&[]).start();
    terminal.wait_for_prompt();
    let screen = terminal.screen_text();
    assert!(
        screen.starts_with("fake is listening. :help shows what can be typed.\n"),
        "{screen}"
    );
    leave(terminal);
}

/// SPEC 8.6, 10.3: one question asked at a terminal is answered as at the prompt; anything else gets the text itself.
#[test]
fn one_question() {
    let server = FakeServer::script([Reply::text(REPLY), Reply::text(REPLY), Reply::text(REPLY)]);
    let sandbox = Sandbox::with_model(&server);
    let screen = |arguments: &[&str]| {
        let mut terminal = sandbox.terminal(arguments).start();
        assert_eq!(terminal.wait_exit().code(), Some(0));
        terminal.screen_text()
    };
    let laid_out = screen(&["-p", "hi"]);
    assert!(
        laid_out.contains("Some bold words, and code.") && laid_out.contains("┌─ sh"),
        "{laid_out}"
    );
    let plain = screen(&["-p", "hi", "--plain"]);
    assert!(plain.contains("Some **bold** words, and `code`."), "{plain}");
    assert_eq!(sandbox.run(&["-p", "hi"]).success().stdout, REPLY);
}
