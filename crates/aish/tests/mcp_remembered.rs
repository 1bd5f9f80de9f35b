//! What a server offered last time stands in for it while it is being connected to, and no longer (SPEC 6.4, 6.8): one-shot runs
//! are often over before a server is there.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use support::fake_server::FakeServer;
use support::mcp::{McpServer, Say, Script, Transport, tool};
use support::pty::key;
use support::reply::Reply;
use support::sandbox::Sandbox;

/// Lets all tools of the server run.
const AUTO_APPROVE: &str = "[mcp.auto_approve]\n\"mail.*\" = true\n";
/// What is said of a server that is not there yet.
const WITHOUT: &str = "mcp: mail is still connecting; its tools are not in this question";

/// Tools that a test can change.
type Tools = Arc<Mutex<Vec<Value>>>;

/// A server that takes its time to start, and offers these tools as they are when it is asked.
fn slow(tools: &Tools) -> McpServer {
    let tools = Arc::clone(tools);
    let script = Script::with_tools(Vec::new())
        .beginning("sleep 1;")
        .on("tools/list", move |message| {
            vec![Say::result(&message["id"], json!({"tools": *tools.lock().unwrap()}))]
        });
    McpServer::start(Transport::Stdio, script)
}

/// A model that calls that tool when it is asked something, again where it is told to, and then says that it did.
fn calling(tool: &'static str) -> FakeServer {
    FakeServer::builder()
        .otherwise(move |request| {
            let last = request.json["messages"].as_array().unwrap().last().unwrap().clone();
            if last["role"] == "tool" && !last["content"].to_string().contains("call it again") {
                Reply::text(last["content"].as_str().unwrap_or_default())
            } else {
                Reply::call("c", tool, json!({}))
            }
        })
        .start()
}

fn calls_heard(server: &McpServer) -> usize {
    server.methods().iter().filter(|method| *method == "tools/call").count()
}

fn set(tools: &Tools, all: &[(&str, &str)]) {
    *tools.lock().unwrap() = all.iter().map(|(name, description)| tool(name, description)).collect();
}

/// Where it is kept what the server offered.
fn memory(sandbox: &Sandbox) -> PathBuf {
    sandbox.home().join("cache/mcp/mail.json")
}

/// SPEC 6.8, 5.6: a change that is none any more is not asked about, however often a run ends before its server is there; and a
/// yes to a tool that is another by now is no yes to what was remembered of it.
#[test]
fn a_change_that_was_taken_back() {
    let tools = Tools::default();
    let server = slow(&tools);
    let model = calling("mail__send");
    let sandbox = Sandbox::with_model(&model)
        .config(&server.config("mail"))
        .config(AUTO_APPROVE);
    set(&tools, &[("send", "Sends a mail")]);
    sandbox.run(&["-p", "send it"]).success();
    set(&tools, &[("send", "Sends all mail")]);
    let waiting = sandbox.run(&["-p", "send it", "--output", "json"]).exits(3);
    assert_eq!(calls_heard(&server), 1);

    set(&tools, &[("send", "Sends a mail")]);
    let call = waiting.json()["pending"][0]["call_id"].as_str().unwrap().to_owned();
    let session = waiting.json()["session_id"].as_str().unwrap().to_owned();
    let remembered = std::fs::read(memory(&sandbox)).unwrap();
    sandbox.run(&["resume", &session, "--approve", &call]).success();
    std::fs::write(memory(&sandbox), remembered).unwrap();
    let output = sandbox.run(&["-p", "send it"]).success();
    assert!(!output.stderr.contains("definition changed"), "{}", output.stderr);
    let pins = std::fs::read_to_string(sandbox.home().join("data/mcp-pins.json")).unwrap();
    assert!(!pins.contains("Sends all mail"), "{pins}");
}

/// SPEC 6.4: a tool that came since is found when it is called, before anybody says that there is none.
#[test]
fn a_tool_that_came_since() {
    let tools = Tools::default();
    let server = slow(&tools);
    let model = calling("mail__list");
    let sandbox = Sandbox::with_model(&model)
        .config(&server.config("mail"))
        .config(AUTO_APPROVE);
    set(&tools, &[("send", "Sends a mail")]);
    let output = sandbox.run(&["-p", "list"]).success();
    assert!(output.stdout.contains("Unknown tool"), "{}", output.stdout);
    set(&tools, &[("send", "Sends a mail"), ("list", "Lists mail")]);
    let output = sandbox.run(&["-p", "list"]).success();
    assert!(output.stdout.contains("fine"), "{}", output.stdout);
    assert_eq!(calls_heard(&server), 1);
}

/// SPEC 6.4: what is remembered does not grow old because every run is short: now and then one stays until the server is there.
#[test]
fn renewed_after_the_answer() {
    let tools = Tools::default();
    let server = slow(&tools);
    let model = FakeServer::builder().otherwise(|_| Reply::text("hello")).start();
    let sandbox = Sandbox::with_model(&model).config(&server.config("mail"));
    set(&tools, &[("send", "Sends a mail")]);
    sandbox.run(&["-p", "hello"]).success();
    set(&tools, &[("send", "Sends a mail"), ("list", "Lists mail")]);
    let file = std::fs::File::options().append(true).open(memory(&sandbox)).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(3_600))
        .unwrap();
    sandbox.run(&["-p", "hello"]).success();
    let remembered = std::fs::read_to_string(memory(&sandbox)).unwrap();
    assert!(remembered.contains("Lists mail"), "{remembered}");
}

/// SPEC 6.4: a question that goes out without the tools of a server says so, in a script and at the prompt; one whose tools are
/// known from before has them.
#[test]
fn a_question_without_the_tools() {
    let script = Script::with_tool("send").on("initialize", |_| vec![Say::Nothing]);
    let server = McpServer::start(Transport::Stdio, script);
    let model = FakeServer::builder().otherwise(|_| Reply::text("hello")).start();
    let sandbox = Sandbox::with_model(&model).config(&server.config("mail"));
    let output = sandbox.run(&["-p", "hello"]).success();
    assert_eq!(output.stderr.matches(WITHOUT).count(), 1, "{}", output.stderr);

    let mut terminal = sandbox.terminal(&[]).start();
    terminal.wait_for_prompt();
    terminal.send_line("how are you");
    terminal.wait_for_text(WITHOUT);
    terminal.wait_for_text("hello");
    terminal.wait_for_prompt();
    terminal.send(key::CTRL_D);
    assert_eq!(terminal.wait_exit().code(), Some(0));

    let tools = Tools::default();
    let server = slow(&tools);
    let sandbox = Sandbox::with_model(&model).config(&server.config("mail"));
    set(&tools, &[("send", "Sends a mail")]);
    for _ in 0..2 {
        let output = sandbox.run(&["-p", "hello"]).success();
        assert!(!output.stderr.contains("still connecting"), "{}", output.stderr);
    }
}

/// SPEC 6.4, 6.1: what aish leaves out of what a server offers, and names in its settings that no tool has, are said wherever servers
/// are listed.
#[test]
fn what_is_left_out() {
    let script = Script::with_tools(vec![json!({"description": "no name"}), tool("send", "Sends a mail")]);
    let server = McpServer::start(Transport::Http, script);
    let model = FakeServer::builder().otherwise(|_| Reply::text("hello")).start();
    let config = format!(
        "{}\nenabled_tools = [\"send\", \"nope\"]\n",
        server.config("mail").trim_end()
    );
    let sandbox = Sandbox::with_model(&model).config(&config);
    let (unnamed, missing) = (
        "a tool without a name is left out",
        "enabled_tools names nope, which is not offered",
    );
    let list = sandbox.run(&["mcp", "list"]).success().stdout;
    assert!(list.contains(unnamed) && list.contains(missing), "{list}");
    let rows: Value = sandbox.run(&["mcp", "list", "--output", "json"]).success().json();
    assert_eq!(rows[0]["remarks"], json!([unnamed, missing]));
    let found = sandbox.run(&["doctor"]).stdout;
    assert!(found.contains(&format!("mail: {unnamed} (and 1 more)")), "{found}");
}
