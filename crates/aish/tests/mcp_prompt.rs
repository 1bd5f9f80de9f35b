//! MCP at the prompt: `:mcp …`, prompts of servers as commands, resources in a question (SPEC 6.4, 6.9).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

#[path = "mcp_prompt/beyond.rs"]
mod beyond;
#[path = "mcp_prompt/commands.rs"]
mod commands;
#[path = "mcp_prompt/hostile.rs"]
mod hostile;

use support::pty::Terminal;

/// Types a line, waits for the prompt behind what comes of it, and gives what came.
fn said(terminal: &Terminal, line: &str) -> String {
    let typed = format!("❯ {}\n", line.trim_end());
    let before = terminal.screen_text().matches(&typed).count();
    terminal.send_line(line);
    let behind = |text: &str| {
        let is_there = text.matches(&typed).count() > before;
        let behind = text.rsplit_once(&typed).map(|(_, behind)| behind.to_owned());
        behind.filter(|behind| is_there && behind.trim_end().ends_with('❯'))
    };
    let what = format!("the prompt after {line}");
    let screen = terminal.wait_for(&what, |screen| behind(&screen.contents()).is_some());
    behind(&screen).unwrap_or_default()
}

/// That, on one line of its own.
fn says(terminal: &Terminal, line: &str, expect: &str) {
    let text = said(terminal, line);
    assert!(
        text.lines().any(|said| said.trim_end() == expect),
        "{line:?}: {expect:?} is not in\n{text}"
    );
}
