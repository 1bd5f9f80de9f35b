//! Clients that people use: the Python SDK's, over both transports, and aish itself.

use crate::http::Served;
use crate::support::fake_server::FakeServer;
use crate::support::ledger::{export, kinds, only_session, session_ids};
use crate::support::mcp_real::RealServers;
use crate::support::reply::Reply;
use crate::support::sandbox::{Sandbox, run_bounded};
use serde_json::json;
use std::process::Command;

/// Connects with fastmcp's client, says yes to what is asked, and prints what came of it. Arguments: `stdio PROGRAM…` or
/// `http URL TOKEN`.
const PYTHON_CLIENT: &str = r#"
import asyncio, sys
from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

async def answer(message, response_type, params, context):
    print("asked:", message.splitlines()[0])
    return {"approve": True}

async def main():
    kind, rest = sys.argv[1], sys.argv[2:]
    if kind == "stdio":
        import os
        transport = StdioTransport(command=rest[0], args=rest[1:], env=dict(os.environ))
    else:
        transport = StreamableHttpTransport(rest[0], headers={"Authorization": "Bearer " + rest[1]})
    async with Client(transport, elicitation_handler=answer) as client:
        print("tools:", " ".join(tool.name for tool in await client.list_tools()))
        print("read:", (await client.call_tool("file_read", {"path": "a.txt"})).content[0].text)
        print("ran:", (await client.call_tool("bash", {"command": "echo x >> made"})).content[0].text)

asyncio.run(main())
"#;

fn assert_content(said: &str) {
    assert!(
        said.contains("tools: glob file_read grep file_write file_edit bash web_get"),
        "{said}"
    );
    assert!(said.contains(r#"read: {"output":"hello\n"}"#), "{said}");
    assert!(
        said.contains(r#"asked: call 'bash(command="echo x >> made")'?"#),
        "{said}"
    );
    assert!(said.contains(r#""exit_code":0"#), "{said}");
}

/// SPEC 6.10: the Python client over standard streams, asked and answering.
#[test]
fn python_over_stdio() {
    let Some(real) = RealServers::installed() else { return };
    let sandbox = Sandbox::new().file("a.txt", "hello\n");
    let mut command = Command::new(real.path("PYTHON"));
    let own = sandbox.command(&[]);
    let aish = own.get_args().next().unwrap();
    command
        .args(["-c", PYTHON_CLIENT, "stdio"])
        .arg(aish)
        .args(["mcp", "serve"]);
    command.current_dir(sandbox.project()).env_clear();
    command.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = run_bounded(command, None).success();
    assert_content(&output.stdout);
    assert_eq!(std::fs::read_to_string(sandbox.path("made")).unwrap(), "x\n");
    sandbox.assert_nothing_runs();
}

/// SPEC 6.10: the Python client over HTTP.
#[test]
fn python_over_http() {
    let Some(real) = RealServers::installed() else { return };
    let (served, sandbox) = Served::start(Sandbox::new().file("a.txt", "hello\n"), &[]);
    let url = format!("http://127.0.0.1:{}/mcp", served.port);
    let mut command = Command::new(real.path("PYTHON"));
    command.args(["-c", PYTHON_CLIENT, "http", &url, crate::http::TOKEN]);
    let output = run_bounded(command, None).success();
    assert_content(&output.stdout);
    assert_eq!(std::fs::read_to_string(sandbox.path("made")).unwrap(), "x\n");
}

/// A model's side, whose configuration has the other one's tools; with these further lines.
fn outer(model: &FakeServer, inner: &Sandbox, further: &str) -> Sandbox {
    let command = json!([env!("CARGO_BIN_EXE_aish"), "mcp", "serve", "--cd", inner.project()]);
    Sandbox::with_model(model).config(&format!(
        "[mcp.servers.inner]\ncommand = {command}\nenv = {{ AISH_HOME = {} }}\nrequired = true\n{further}",
        json!(inner.home()),
    ))
}

/// SPEC 6.9, 6.10: aish in front of aish at a terminal: the person is asked by the outer gate, then by the inner one through it.
#[test]
fn aish_asks_for_aish() {
    let model = FakeServer::script([
        Reply::calls(&[("c1", "inner__bash", json!({"command": "touch made"}))]),
        Reply::text("made it"),
    ]);
    let inner = Sandbox::new();
    let outer = outer(&model, &inner, "");
    // What a server offered last is on offer while it is being connected to.
    assert!(outer.run(&["mcp", "tools"]).success().stdout.contains("inner.bash"));
    let mut terminal = outer.terminal(&[]).start();
    terminal.wait_for_prompt();
    terminal.send_line("make it");
    terminal.wait_for_text("call 'inner.bash(command=\"touch made\")'?");
    terminal.send_line("y");
    terminal.wait_for_text("call 'bash(command=\"touch made\")'?");
    assert!(!inner.path("made").exists());
    terminal.wait_for_text("answer it?");
    terminal.send_line("y");
    terminal.wait_for_text("y or n, required");
    terminal.send_line("y");
    terminal.wait_for_text("send it?");
    terminal.send_line("y");
    terminal.wait_for_text("made it");
    assert!(inner.path("made").exists());
    terminal.wait_for_prompt();
    terminal.send("\u{4}");
    assert!(terminal.wait_exit().success());
    inner.assert_nothing_runs();
}

/// SPEC 6.10: aish is a client of aish: a model's call goes through both gates, and both ledgers have it. Where nobody is
/// there to be asked, what the inner gate asks waits in the outer ledger, and runs nothing when it is declined.
#[test]
fn aish_serves_aish() {
    let model = FakeServer::script([
        Reply::calls(&[
            ("c1", "inner__file_read", json!({"path": "a.txt"})),
            ("c2", "inner__bash", json!({"command": "touch made"})),
        ]),
        Reply::text("both answered"),
    ]);
    let inner = Sandbox::new().file("a.txt", "from within\n");
    let outer = outer(&model, &inner, "\n[mcp.auto_approve]\n\"inner.*\" = true");
    let waits = outer.run(&["-p", "ask within"]).exits(3);
    assert!(waits.stderr.contains("inner.bash asks: call 'bash("), "{waits:?}");
    let output = outer.run(&["resume", &only_session(&outer), "--deny", "call_1_2"]);
    assert!(output.stdout.contains("both answered\n"), "{output:?}");
    let told = model.requests().last().unwrap().messages().to_vec();
    let results: Vec<&str> = told
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| message["content"].as_str().unwrap())
        .collect();
    assert!(results[0].contains("from within"), "{results:?}");
    assert!(
        results[1].contains("declined") || results[1].contains("not run"),
        "{results:?}"
    );
    assert!(!inner.path("made").exists());
    outer.assert_nothing_runs();
    inner.assert_nothing_runs();
    let within: Vec<String> = session_ids(&inner)
        .iter()
        .map(|id| kinds(&export(&inner, id)))
        .collect();
    assert!(
        within.iter().any(|kinds| kinds.contains("call_started tool_result")),
        "{within:?}"
    );
}
