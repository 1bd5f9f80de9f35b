//! Servers whose tools have names that no wire takes (SPEC 6.1), and more tools than a request can hold (SPEC 6.9).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use serde_json::{Value, json};
use std::collections::BTreeSet;
use support::fake_server::{FakeServer, Received};
use support::ledger::{of_kind, only_export, text};
use support::mcp::{McpServer, Script, Transport, tool};
use support::reply::Reply;
use support::sandbox::Sandbox;

/// Characters of a name that every provider takes.
const WIRE_NAME_CHARS_MAX: usize = 64;
/// Tools of the server that has too many.
const MANY: usize = 200;
/// The built-in tools; those of servers follow.
const BUILTIN: usize = 8;
/// Bytes of a request that has none of its schemas: instructions, built-in tools and the search.
const REQUEST_BYTES_MAX: usize = 12_000;

fn offered(request: &Received) -> Vec<String> {
    let tools = request.json["tools"].as_array().unwrap();
    tools
        .iter()
        .map(|tool| text(&tool["function"]["name"]).to_owned())
        .collect()
}

fn called(server: &McpServer) -> Vec<String> {
    let heard = server.heard();
    let calls = heard.iter().filter(|message| message["method"] == "tools/call");
    calls.map(|call| text(&call["params"]["name"]).to_owned()).collect()
}

fn is_answered(request: &Received) -> bool {
    request.json["messages"].as_array().unwrap().last().unwrap()["role"] == "tool"
}

/// Names that clash on the wire, are too long for it, have letters that it has not, or are a built-in tool's.
fn odd_names() -> Vec<String> {
    vec![
        "b.c".to_owned(),
        "b__c".to_owned(),
        "b c".to_owned(),
        "b/c".to_owned(),
        "größe \u{202e}\u{1b}[2J".to_owned(),
        "bash".to_owned(),
        "search_tools".to_owned(),
        "x".repeat(300),
        format!("{}y", "x".repeat(299)),
        "-".to_owned(),
        "\"quoted\"".to_owned(),
    ]
}

/// SPEC 6.1: each name has one of its own on the wire, at most 64 harmless characters, and is mapped back exactly: the server hears
/// its own names again, and the ledger has `alias.tool`.
#[test]
fn odd_names_come_back() {
    for naming in ["underscore", "dot"] {
        let tools = odd_names().iter().map(|name| tool(name, "is odd")).collect();
        let server = McpServer::start(Transport::Http, Script::with_tools(tools));
        let model = FakeServer::builder()
            .otherwise(|request| {
                if is_answered(request) {
                    return Reply::text("all called");
                }
                let names = offered(request);
                let ids: Vec<String> = (0..names.len()).map(|n| format!("c{n}")).collect();
                let calls = ids.iter().zip(&names).skip(BUILTIN);
                let calls: Vec<(&str, &str, Value)> = calls
                    .map(|(id, name)| (id.as_str(), name.as_str(), json!({})))
                    .collect();
                Reply::calls(&calls)
            })
            .start();
        let sandbox = Sandbox::with_model(&model)
            .config(&format!("wire_names = \"{naming}\""))
            .config(&server.config("a"));
        sandbox.run(&["-p", "call all of them", "--approval", "full"]).success();
        assert_eq!(called(&server), odd_names(), "{naming}");

        let names = offered(&model.requests()[0]);
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{names:?}");
        let is_wire = |letter: char| {
            letter.is_ascii_alphanumeric() || "_-".contains(letter) || (letter == '.' && naming == "dot")
        };
        for name in &names {
            assert!(name.len() <= WIRE_NAME_CHARS_MAX && name.chars().all(is_wire), "{name}");
        }
        let second = model.requests().last().unwrap().json["messages"].to_string();
        assert!(!second.contains("Unknown tool"), "{second}");
        let events = only_export(&sandbox);
        let calls = of_kind(&events, "tool_call");
        let in_ledger: Vec<&str> = calls
            .iter()
            .map(|event| text(&event["data"]["function"]["name"]))
            .collect();
        let expect: Vec<String> = odd_names().iter().map(|name| format!("a.{name}")).collect();
        assert_eq!(in_ledger, expect, "{naming}");
    }
}

/// Some 200 KB of schemas.
fn many_tools() -> Vec<Value> {
    (0..MANY)
        .map(|n| {
            let what = if n == 137 {
                "Renames a folder of the archive"
            } else {
                "Does something else"
            };
            json!({
                "name": format!("tool_{n}"),
                "description": what,
                "inputSchema": {
                    "type": "object",
                    "properties": {"path": {"type": "string", "description": "x".repeat(1_000)}},
                    "required": ["path"],
                },
            })
        })
        .collect()
}

/// SPEC 6.9: a request stays small however much servers offer; what a search finds can be called, in later turns too.
#[test]
fn more_than_a_request_holds() {
    let server = McpServer::start(Transport::Http, Script::with_tools(many_tools()));
    let model = FakeServer::script([
        Reply::call("c1", "search_tools", json!({"query": "rename a folder"})),
        Reply::call("c2", "desk__tool_137", json!({"path": "old"})),
        Reply::text("renamed"),
        Reply::text("still there"),
    ]);
    let sandbox = Sandbox::with_model(&model)
        .config(&server.config("desk"))
        .config("[mcp.auto_approve]\n\"desk.*\" = true\n");
    sandbox.run(&["-p", "rename old"]).success();
    sandbox.run(&["--continue", "-p", "and now?"]).success();
    assert_eq!(called(&server), ["tool_137"]);

    let requests = model.requests();
    let (first, second) = (&requests[0].json["tools"], &requests[1].json["tools"]);
    assert_eq!(offered(&requests[0])[BUILTIN..], ["search_tools"]);
    let said = text(&first[BUILTIN]["function"]["description"]);
    assert!(
        said.contains("200 further tools") && said.contains("desk (200)"),
        "{said}"
    );
    assert!(requests[0].json.to_string().len() < REQUEST_BYTES_MAX);

    let found = second.as_array().unwrap();
    assert_eq!(
        found[..=BUILTIN],
        first.as_array().unwrap()[..],
        "a request begins like the one before it"
    );
    assert_eq!(found[BUILTIN + 1]["function"]["name"], "desk__tool_137");
    assert!(found[BUILTIN + 1].to_string().contains("required"), "with its schema");
    for later in &requests[2..] {
        assert_eq!(later.json["tools"], *second);
    }
    let asked = requests[1].json["messages"].to_string();
    assert!(asked.contains("Renames a folder of the archive"), "{asked}");
    model.assert_done();
}

/// SPEC 6.9, 5.2: a tool that was not searched for can be called by its name; it is checked and asked about like any other.
#[test]
fn called_without_a_search() {
    let server = McpServer::start(Transport::Http, Script::with_tools(many_tools()));
    let model = FakeServer::script([
        Reply::call("c1", "desk__tool_7", json!({})),
        Reply::call("c2", "desk__tool_7", json!({"path": "x"})),
        Reply::text("done"),
    ]);
    let sandbox = Sandbox::with_model(&model).config(&server.config("desk"));
    let waiting = sandbox.run(&["-p", "do it", "--output", "json"]).exits(3).json();
    assert_eq!(waiting["pending"][0]["tool"], "desk.tool_7");
    assert!(called(&server).is_empty());
    let second = model.requests()[1].json.clone();
    assert!(
        second["messages"]
            .to_string()
            .contains("Missing required parameter: path")
    );
    let names = offered(&model.requests()[1]);
    assert_eq!(
        names[BUILTIN..],
        ["search_tools", "desk__tool_7"],
        "what was called is offered"
    );
    let call = text(&waiting["pending"][0]["call_id"]);
    sandbox
        .run(&["resume", text(&waiting["session_id"]), "--approve", call])
        .success();
    assert_eq!(called(&server), ["tool_7"]);
    model.assert_done();
}

/// SPEC 6.9: with room for all of them, nothing is left out; `--no-tools` leaves out the search as well.
#[test]
fn where_there_is_room() {
    let server = McpServer::start(Transport::Http, Script::with_tools(many_tools()));
    let model = FakeServer::script([Reply::text("hello"), Reply::text("hello")]);
    let sandbox = Sandbox::with_model(&model)
        .config("context_window = 1000000")
        .config(&server.config("desk"));
    sandbox.run(&["-p", "hello"]).success();
    sandbox.run(&["-p", "hello", "--no-tools"]).success();
    let requests = model.requests();
    let names = offered(&requests[0]);
    assert_eq!(names.len(), BUILTIN + MANY);
    assert!(!names.contains(&"search_tools".to_owned()));
    assert!(requests[1].json.get("tools").is_none());
}
