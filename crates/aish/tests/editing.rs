//! The line editor on a terminal, key by key: history, search, hints, modes, several lines (SPEC 8.9).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(dead_code)]

#[path = "editing/history.rs"]
mod history;
#[path = "editing/lines.rs"]
mod lines;
#[path = "editing/modes.rs"]
mod modes;
#[path = "editing/search.rs"]
mod search;
mod support;

use support::fake_server::FakeServer;
use support::pty::{Terminal, key};
use support::reply::Reply;
use support::sandbox::Sandbox;

const CTRL_E: &str = "\x05";
const CTRL_R: &str = "\x12";
const CTRL_X: &str = "\x18";
const ALT_ENTER: &str = "\x1b\r";
const ALT_F: &str = "\x1bf";

/// A model that answers whatever is asked.
fn server() -> FakeServer {
    FakeServer::script((0..4).map(|_| Reply::text("an answer")))
}

/// The row the cursor is in, without space at its end.
fn row(screen: &vt100::Screen) -> String {
    let (row, _) = screen.cursor_position();
    let (_, columns) = screen.size();
    let text = screen.rows(0, columns.get()).nth(usize::from(row)).unwrap_or_default();
    text.trim_end().to_owned()
}

/// Waits until the cursor is in a row that says so: `$ ls`, whatever is said at its right end.
fn wait_for_row(terminal: &Terminal, begun: &str) -> String {
    let what = format!("a row with {begun:?}");
    terminal.wait_for(&what, |screen| row(screen).contains(&format!(" {begun}")))
}

/// Waits until the line being typed is exactly that, with its indicator.
fn wait_for_line(terminal: &Terminal, line: &str) -> String {
    let what = format!("the line {line:?}");
    terminal.wait_for(&what, |screen| row(screen).ends_with(&format!(" fake {line}")))
}

/// Runs a command and waits for the prompt behind it.
fn run(terminal: &Terminal, command: &str, output: &str) {
    let before = count(&terminal.history_text(), output);
    terminal.send(command);
    wait_for_row(terminal, &format!("$ {command}"));
    terminal.send(key::ENTER);
    terminal.wait_for(output, |screen| {
        row(screen).ends_with('❯') && count(&screen.contents(), output) > before
    });
}

fn count(text: &str, needle: &str) -> usize {
    text.lines().filter(|line| line.trim_end() == needle).count()
}

/// A prompt with a shell that knows what a command is.
fn at_the_prompt(sandbox: &Sandbox) -> Terminal {
    at_the_prompt_of(sandbox, 24, 80)
}

fn at_the_prompt_of(sandbox: &Sandbox, rows: u16, columns: u16) -> Terminal {
    let terminal = sandbox.terminal(&[]).size(rows, columns).start();
    terminal.wait_for_prompt();
    terminal
}

/// Waits until what was typed in other sessions is there, of which that is a part: it is brought behind the prompt.
fn wait_for_history(terminal: &Terminal, line: &str) {
    terminal.send(CTRL_R);
    terminal.wait_for_text(line);
    terminal.send(key::ESCAPE);
    terminal.wait_for("the end of the search", |screen| {
        row(screen).ends_with('❯') && !screen.contents().contains("search ❯")
    });
}
