//! Ten servers at start, one of which hangs and one of which is slow: the prompt waits for none of them (SPEC 6.4, 11).
//!
//! How long things take is measured by `bench/run`; here it is what happens in which order, however slow the machine is.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use serde_json::json;
use support::fake_server::FakeServer;
use support::mcp::{McpServer, PROTOCOL, Script, Transport};
use support::pty::{Terminal, key};
use support::reply::Reply;
use support::sandbox::Sandbox;
use support::strict::Strictness;

/// Servers that answer at once.
const QUICK: usize = 8;

/// A server whose answer to `initialize` waits until the test releases it.
fn slow() -> McpServer {
    let script = Script::with_tool("t").on_http(|request| {
        let about = json!({"name": "slow", "version": "1"});
        let result = json!({"protocolVersion": PROTOCOL, "capabilities": {"tools": {}}, "serverInfo": about});
        let answer = json!({"jsonrpc": "2.0", "id": request.json["id"], "result": result});
        let reply = Reply::bare_stream().sends_head().stalls().event(&answer);
        (request.json["method"] == "initialize").then_some(reply)
    });
    McpServer::start(Transport::Http, script)
}

/// A server that answers nothing.
fn hanging() -> McpServer {
    let script = Script::with_tool("t").on_http(|_| Some(Reply::hangs()));
    McpServer::start(Transport::Http, script)
}

/// A model that says how many tools of servers it was offered, after the last word of the question; it calls `slow.t` where it is asked to.
fn model() -> FakeServer {
    FakeServer::builder()
        .strict(Strictness::Api)
        .otherwise(|request| {
            let names = request.tool_names();
            let question = request.last_text();
            if request.roles().ends_with("tool") {
                return Reply::text("it came back");
            }
            if question.contains("call it") {
                return Reply::call("c1", "slow__t", json!({}));
            }
            let count = names.iter().filter(|name| name.ends_with("__t")).count();
            let word = question.split_whitespace().last().unwrap_or_default();
            Reply::text(&format!("{word}: {count} tools."))
        })
        .start()
}

/// Asks again and again until the model is offered so many tools of servers.
fn wait_for_tools(terminal: &Terminal, wanted: usize) {
    for round in 0.. {
        assert!(round < 1_000, "{wanted} tools in vain");
        terminal.send_line(&format!("how many at question{wanted}x{round}"));
        let answer = format!("question{wanted}x{round}: ");
        terminal.wait_for_text(&answer);
        terminal.wait_for_prompt();
        if terminal.screen_text().contains(&format!("{answer}{wanted} tools.")) {
            return;
        }
    }
}

fn leave(mut terminal: Terminal) -> String {
    terminal.send(key::CTRL_D);
    assert_eq!(terminal.wait_exit().code(), Some(0));
    terminal.history_text()
}

/// SPEC 6.4, 11: the prompt is there and answers while a server hangs and one is slow; the tools of each server are offered as it
/// comes; leaving waits for none of them, and leaves none behind.
#[test]
fn ten_servers_of_which_one_hangs_and_one_is_slow() {
    let transports = [Transport::Stdio, Transport::Http].into_iter().cycle().take(QUICK);
    let quick: Vec<McpServer> = transports
        .map(|transport| McpServer::start(transport, Script::with_tool("t")))
        .collect();
    let (slow, hanging) = (slow(), hanging());
    let model = model();
    let mut config: String = quick
        .iter()
        .enumerate()
        .map(|(number, server)| server.config(&format!("quick{number}")))
        .collect();
    config.push_str(&slow.config("slow"));
    config.push_str(&hanging.config("hanging"));
    let sandbox = Sandbox::with_model(&model).config(&config);

    let terminal = sandbox.terminal(&[]).size(40, 120).start();
    terminal.wait_for_prompt();
    wait_for_tools(&terminal, QUICK);
    // The slow one is asked `server/discover`, then `initialize`; then it is let go.
    slow.http().release();
    wait_for_tools(&terminal, QUICK + 1);
    let shown = leave(terminal);
    // Troubles have a colon behind the name; that it still connects is said of a server whose tools a question goes without.
    let is_trouble = |number: usize| shown.contains(&format!("mcp: quick{number}:"));
    assert!(!(0..QUICK).any(is_trouble), "{shown}");
    sandbox.assert_nothing_runs();

    // The next time what they offered is there at once, whether they are or not.
    let terminal = sandbox.terminal(&[]).size(40, 120).start();
    terminal.wait_for_prompt();
    terminal.send_line("how many at first");
    terminal.wait_for_text(&format!("first: {} tools.", QUICK + 1));
    terminal.wait_for_prompt();
    leave(terminal);
    sandbox.assert_nothing_runs();
    assert_eq!(model.problems(), Vec::<String>::new());
}

/// SPEC 6.4: a tool that is remembered can be called while its server is still being connected to: the call waits for it.
#[test]
fn called_while_it_is_being_connected_to() {
    let slow = slow();
    let model = model();
    let approved = "[mcp.auto_approve]\n\"slow.t\" = true";
    let sandbox = Sandbox::with_model(&model).config(&format!("{}{approved}", slow.config("slow")));
    slow.http().release();
    sandbox.run(&["mcp", "tools"]).success();
    let asked = slow.methods().len();

    let terminal = sandbox.terminal(&[]).start();
    terminal.wait_for_prompt();
    terminal.send_line("call it");
    // The model has called; the server has not yet said who it is, and was not called.
    model.wait_for_requests(1);
    assert!(!slow.methods()[asked..].contains(&"tools/call".to_owned()));
    slow.http().release();
    terminal.wait_for_text("it came back");
    terminal.wait_for_prompt();
    leave(terminal);
    let last = model.requests().pop().unwrap();
    assert_eq!(last.last_text(), "fine");
    sandbox.assert_nothing_runs();
}

/// SPEC 6.4, 10.2: a prompt that is asked once does not go on without a server that it requires, and says which.
#[test]
fn a_required_server_that_hangs() {
    let hanging = hanging();
    let model = FakeServer::script([]);
    let config = format!("{}required = true\ntimeout_s = 2\n", hanging.config("hanging"));
    let sandbox = Sandbox::with_model(&model).config(&config);
    let output = sandbox.run(&["-p", "hello"]).exits(1);
    assert!(output.stderr.contains("mcp: hanging: "), "{output:?}");
    assert_eq!(output.stdout, "");
    assert!(model.requests().is_empty(), "nobody is asked");
    sandbox.assert_nothing_runs();
}
