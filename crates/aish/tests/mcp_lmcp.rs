//! A server as lmcp is one: a POST for each request, a connection for each POST, a bearer token, protocol 2025-03-26 (SPEC 6.2, 6.3,
//! 6.5, 6.6).
//!
//! It closes every connection, says lengths or does not, answers notifications in whichever way, replies on the `data:` lines of an
//! event stream, and to a GET announces its endpoint and closes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use serde_json::{Value, json};
use support::fake_server::FakeServer;
use support::reply::{Framing, Reply};
use support::sandbox::{Output, Sandbox};
use support::strict::Strictness;
use support::wire::Received;

/// The version it speaks, and the only one.
const PROTOCOL: &str = "2025-03-26";
/// A made-up token.
const TOKEN: &str = "token-of-lmcp-0123456789";

/// How a notification is answered.
#[derive(Clone, Copy, Debug)]
enum Noted {
    /// 202 and a length of nothing.
    Accepted,
    /// 202 and the end of the connection.
    AcceptedWithoutLength,
    /// 200 with neither content type nor length.
    Bare,
    /// 200 with `null` for JSON, as frameworks write an answer that is none.
    Null,
}

/// How a reply to a request is written.
#[derive(Clone, Copy, Debug)]
enum Written {
    /// As JSON.
    Json,
    /// As JSON that says nothing of its type.
    Untyped,
    /// On one `data:` line of an event stream that ends with the connection.
    DataLine,
    /// On `data:` lines, one for each line of the JSON.
    DataLines,
}

fn noted(how: Noted) -> Reply {
    let reply = Reply::bare_stream();
    match how {
        Noted::Accepted => closing(reply.without_body(202)).header("content-length", "0"),
        Noted::AcceptedWithoutLength => closing(reply.without_body(202)),
        Noted::Bare => closing(reply.without_body(200)),
        Noted::Null => closing(reply.typed("application/json").bytes("null")),
    }
}

fn written(how: Written, message: &Value) -> Reply {
    let stream = Reply::bare_stream();
    closing(match how {
        Written::Json => stream.typed("application/json").bytes(message.to_string()),
        Written::Untyped => stream.without_body(200).bytes(message.to_string()),
        Written::DataLine => stream.event(message),
        Written::DataLines => {
            let lines = serde_json::to_string_pretty(message).unwrap();
            let lines: String = lines.lines().map(|line| format!("data: {line}\r\n")).collect();
            stream.bytes(format!("{lines}\r\n"))
        }
    })
}

/// Every connection has one request.
fn closing(reply: Reply) -> Reply {
    reply.framed(Framing::Close)
}

/// The server.
fn lmcp(note: Noted, way: Written) -> FakeServer {
    FakeServer::builder()
        .everything(move |request| answer(request, note, way))
        .start()
}

fn answer(request: &Received, note: Noted, way: Written) -> Reply {
    if request.header("authorization") != Some(&format!("Bearer {TOKEN}")) {
        return closing(Reply::json(401, &json!({"error": "unauthorized"})));
    }
    if request.method == "GET" {
        return closing(Reply::bare_stream().bytes("event: endpoint\ndata: /mcp\n\n"));
    }
    if request.method != "POST" {
        return closing(Reply::json(405, &json!({"error": "method not allowed"})));
    }
    let id = &request.json["id"];
    if id.is_null() {
        return noted(note);
    }
    let result = match request.json["method"].as_str().unwrap() {
        "initialize" => json!({"protocolVersion": PROTOCOL, "capabilities": {"tools": {}},
            "serverInfo": {"name": "lmcp", "version": "1.0"}}),
        "ping" => json!({}),
        "tools/list" => json!({"tools": [
            {"name": "read_file", "description": "Reads a file", "inputSchema": {"type": "object",
                "properties": {"path": {"type": "string"}}, "required": ["path"]}},
        ]}),
        "tools/call" => return written(way, &called(id, &request.json["params"])),
        _ => {
            let error = json!({"code": -32601, "message": "Method not found"});
            return written(way, &json!({"jsonrpc": "2.0", "id": id, "error": error}));
        }
    };
    written(way, &json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

/// Its answer to a call, and its two kinds of failure: a result that is an error, and an error.
fn called(id: &Value, params: &Value) -> Value {
    let text = |text: &str, is_error: bool| json!({"content": [{"type": "text", "text": text}], "isError": is_error});
    match (params["name"].as_str().unwrap(), params["arguments"]["path"].as_str()) {
        ("read_file", Some("gone")) => {
            json!({"jsonrpc": "2.0", "id": id, "result": text("no such file: gone", true)})
        }
        ("read_file", Some("broken")) => {
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": "the disk is broken"}})
        }
        ("read_file", Some(path)) => {
            json!({"jsonrpc": "2.0", "id": id, "result": text(&format!("what is in {path}\nand more"), false)})
        }
        (name, _) => {
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": format!("Unknown tool: {name}")}})
        }
    }
}

/// A model that reads three files at once.
fn model() -> FakeServer {
    let read = |path: &str| json!({ "path": path });
    FakeServer::script([
        Reply::calls(&[
            ("c1", "lmcp__read_file", read("notes.txt")),
            ("c2", "lmcp__read_file", read("gone")),
            ("c3", "lmcp__read_file", read("broken")),
        ]),
        Reply::text("all read"),
    ])
}

fn sandbox(server: &FakeServer, model: &FakeServer) -> Sandbox {
    let section = format!(
        "[mcp.servers.lmcp]\nurl = \"http://{}/mcp\"\nauth_env = \"LMCP_TOKEN\"\n[mcp.auto_approve]\n\"lmcp.*\" = true",
        server.address()
    );
    Sandbox::with_model(model).config(&section).env("LMCP_TOKEN", TOKEN)
}

/// What the model was told, in order.
fn results(model: &FakeServer) -> Vec<String> {
    let requests = model.requests();
    let messages = requests.last().unwrap().messages().iter();
    let results = messages.filter(|message| message["role"] == "tool");
    results
        .map(|message| message["content"].as_str().unwrap().to_owned())
        .collect()
}

fn assert_read(model: &FakeServer, output: &Output, what: &str) {
    assert_eq!(output.stdout, "all read\n", "{what}");
    assert_eq!(
        results(model),
        [
            "what is in notes.txt\nand more",
            "no such file: gone",
            r#"{"error":"the disk is broken"}"#
        ],
        "{what}"
    );
    let lines: Vec<&str> = output.stderr.lines().filter(|line| line.contains("mcp: ")).collect();
    assert_eq!(lines, ["[aish] mcp: lmcp.read_file: the disk is broken"], "{what}");
    assert!(!output.stderr.contains(TOKEN), "{what}: {output:?}");
    model.assert_done();
}

/// SPEC 6.2, 6.5, 6.6: its answers to notifications and its ways of writing a reply, each with the others; a result, a result that is
/// an error, and an error.
#[test]
fn every_way_of_answering() {
    for note in [Noted::Accepted, Noted::AcceptedWithoutLength, Noted::Bare, Noted::Null] {
        for way in [Written::Json, Written::Untyped, Written::DataLine, Written::DataLines] {
            let (server, model) = (lmcp(note, way), model());
            let what = format!("{note:?} {way:?}");
            let output = sandbox(&server, &model).run(&["-p", "read them"]).success();
            assert_read(&model, &output, &what);
            let requests = server.requests();
            assert_eq!(server.problems(), Vec::<String>::new(), "{what}");
            assert_eq!(server.connections(), requests.len(), "{what}: a connection each");
            let opened = requests.iter().filter(|request| request.method == "GET").count();
            assert!(
                opened <= 1,
                "{what}: what it closes is not opened again, but {opened} times"
            );
        }
    }
}

/// SPEC 6.3: what each request carries.
#[test]
fn what_it_is_sent() {
    let (server, model) = (lmcp(Noted::Bare, Written::DataLine), model());
    sandbox(&server, &model).run(&["-p", "read them"]).success();
    let bearer = format!("Bearer {TOKEN}");
    let posts = server.requests().into_iter().filter(|request| request.method == "POST");
    let posts: Vec<Received> = posts.collect();
    for post in &posts {
        assert_eq!(post.path, "/mcp");
        assert_eq!(post.header("authorization"), Some(bearer.as_str()));
        assert_eq!(post.header("accept"), Some("application/json, text/event-stream"));
        assert_eq!(post.header("mcp-session-id"), None, "it has no sessions");
        assert_eq!(post.json["jsonrpc"], "2.0");
    }
    let begun = posts
        .iter()
        .position(|post| post.json["method"] == "notifications/initialized");
    for post in &posts[begun.unwrap()..] {
        assert_eq!(post.header("mcp-protocol-version"), Some(PROTOCOL));
    }
    let calls = posts.iter().filter(|post| post.json["method"] == "tools/call");
    let names: Vec<&Value> = calls.map(|post| &post.json["params"]["name"]).collect();
    assert_eq!(
        names,
        ["read_file", "read_file", "read_file"],
        "its own name, without alias or dot"
    );
    // For the model the name has no dot, and there is no field of ours in what it is offered.
    let request = &model.requests()[0];
    assert!(request.tool_names().contains(&"lmcp__read_file"));
    assert!(!request.tool_names().iter().any(|name| name.contains('.')));
}

/// SPEC 6.3, 6.4: a variable that is not set is a status line, and then there is no header; that the server refuses that is another.
#[test]
fn without_a_token() {
    let server = lmcp(Noted::Accepted, Written::Json);
    let model = FakeServer::builder()
        .strict(Strictness::Api)
        .reply(Reply::text("no tools, but here"))
        .start();
    let output = sandbox(&server, &model)
        .env("LMCP_TOKEN", "")
        .run(&["-p", "hello"])
        .success();
    assert_eq!(output.stdout, "no tools, but here\n");
    assert!(
        output.stderr.contains("[aish] mcp: lmcp: $LMCP_TOKEN is not set"),
        "{output:?}"
    );
    assert!(output.stderr.contains("[aish] mcp: lmcp: needs login; "), "{output:?}");
    let headers = server.requests();
    assert!(headers.iter().all(|request| request.header("authorization").is_none()));
}

/// SPEC 6.6: arguments that do not fit are not sent, and a tool it has not is answered by itself.
#[test]
fn a_call_that_does_not_fit() {
    let server = lmcp(Noted::Bare, Written::Json);
    let model = FakeServer::script([
        Reply::calls(&[("c1", "lmcp__read_file", json!({})), ("c2", "lmcp__gone", json!({}))]),
        Reply::text("all read"),
    ]);
    sandbox(&server, &model).run(&["-p", "read them"]).success();
    assert_eq!(
        results(&model),
        [
            r#"{"error":"Missing required parameter: path"}"#,
            r#"{"error":"Unknown tool: lmcp__gone"}"#
        ]
    );
    let asked = server.requests();
    assert!(!asked.iter().any(|request| request.json["method"] == "tools/call"));
    model.assert_done();
}
