//! A trip with MCP as a person takes it (SPEC 6.1, 6.4, 6.7): one server of the configuration, one connected to at the prompt,
//! tools that are asked about and one that is not, and nothing left behind.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use serde_json::json;
use support::fake_server::FakeServer;
use support::mcp_real::RealServers;
use support::pty::key;
use support::reply::Reply;
use support::sandbox::Sandbox;

/// SPEC 6.4, 6.1, 5.3: configured and connected at run time; listed, asked about, run, answered; auto-approved without a
/// question while another still asks; gone when it is disconnected, and nothing runs when the prompt is left.
#[test]
fn the_trip() {
    let Some(real) = RealServers::installed() else { return };
    let listening = real.fastmcp();
    let model = FakeServer::script([
        Reply::call("c1", "mcp__add", json!({"a": 2, "b": 3})),
        Reply::text("five it is"),
        Reply::calls(&[
            ("c2", "fs__list_allowed_directories", json!({})),
            ("c3", "mcp__weather", json!({"city": "Oslo"})),
        ]),
        Reply::text("a fine day"),
        Reply::text("no more sums"),
    ]);
    let sandbox = Sandbox::with_model(&model);
    let sandbox = sandbox
        .config(&real.filesystem("fs", &std::env::temp_dir()))
        .config("[mcp.auto_approve]\n\"fs.list_allowed_directories\" = true\n");
    let mut terminal = sandbox.terminal(&[]).size(60, 100).start();
    terminal.wait_for_prompt();

    let text = terminal.said(&format!(":mcp connect {}", listening.url()));
    assert!(text.contains("[aish] mcp: mcp: 8 tools"), "{text}");
    // The other one was connected to behind the prompt.
    terminal.said(":mcp reconnect fs");
    let text = terminal.said(":mcp list");
    assert!(
        text.contains("fs ") && text.contains("14 tools") && text.contains(&listening.url()),
        "{text}"
    );
    let text = terminal.said(":mcp tools mcp");
    assert!(text.contains("mcp.add: Add two numbers."), "{text}");
    let text = terminal.said(":mcp tool mcp.add");
    assert!(text.contains("\"a\"") && text.contains("\"integer\""), "{text}");

    terminal.send_line("what is 2 + 3?");
    let screen = terminal.wait_for_text("[y/N/a/s/?]");
    assert!(screen.contains("mcp.add(a=2, b=3)"), "{screen}");
    terminal.send_line("y");
    terminal.wait_for_text("five it is");
    terminal.wait_for_prompt();
    assert_eq!(model.requests()[1].last_text(), "5");

    terminal.send_line("where may I look, and how is Oslo?");
    let screen = terminal.wait_for("the second question", |screen| {
        screen.contents().matches("[y/N/a/s/?]").count() == 2
    });
    assert!(screen.contains("mcp.weather(city=\"Oslo\")"), "{screen}");
    assert!(!screen.contains("call 'fs."), "{screen}");
    terminal.send_line("y");
    terminal.wait_for_text("a fine day");
    terminal.wait_for_prompt();
    let results = serde_json::to_string(model.requests()[3].messages()).unwrap();
    assert!(
        results.contains("Allowed directories") && results.contains("21.5"),
        "{results}"
    );

    let text = terminal.said(":mcp disconnect mcp");
    assert!(text.contains("[aish] mcp: mcp is disconnected"), "{text}");
    terminal.said("one more sum?");
    let offered = model.requests()[4].json["tools"].to_string();
    assert!(
        offered.contains("fs__read_file") && !offered.contains("mcp__add"),
        "{offered}"
    );

    terminal.send(key::CTRL_D);
    assert_eq!(terminal.wait_exit().code(), Some(0));
    model.assert_done();
    sandbox.assert_nothing_runs();
}
