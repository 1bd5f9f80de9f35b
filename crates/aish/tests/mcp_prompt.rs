//! MCP at the prompt: `:mcp …`, prompts of servers as commands, resources in a question (SPEC 6.4, 6.9).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

#[path = "mcp_prompt/beyond.rs"]
mod beyond;
#[path = "mcp_prompt/commands.rs"]
mod commands;
#[path = "mcp_prompt/hostile.rs"]
mod hostile;
#[path = "mcp_prompt/typed.rs"]
mod typed;

use support::pty::Terminal;
use support::sandbox::Sandbox;

/// That, on one line of its own.
fn says(terminal: &Terminal, line: &str, expect: &str) {
    let text = terminal.said(line);
    assert!(
        text.lines().any(|said| said.trim_end() == expect),
        "{line:?}: {expect:?} is not in\n{text}"
    );
}

/// SPEC 6.4, 8.9: what happens to a server while a line is being typed is told at once, above it, and the line stays.
#[test]
fn told_above_the_line() {
    let sandbox = Sandbox::new();
    let gone = sandbox.path("gone");
    let waits = format!("until [ -e '{}' ]; do sleep 0.05; done; exit 3", gone.display());
    let server = format!("[mcp.servers.slow]\ncommand = [\"sh\", \"-c\", {waits:?}]\n");
    let sandbox = sandbox.config(&server);
    let terminal = sandbox.terminal(&[]).start();
    terminal.wait_for_prompt();
    terminal.send("half a line");
    terminal.wait_for_text("❯ half a line");
    std::fs::write(gone, "").unwrap();
    terminal.wait_for("the status line above", |screen| {
        let text = screen.contents();
        let above = text.rsplit_once("mcp: slow: ");
        above.is_some_and(|(_, behind)| behind.contains("❯ half a line"))
    });
    terminal.send(" and the rest");
    terminal.wait_for_text("❯ half a line and the rest");
}
