//! One client over standard streams: tools, calls, progress, cancelling, ends, and rudeness.

use crate::client::Client;
use crate::support::fake_server::FakeServer;
use crate::support::ledger::{export, kinds, of_kind, only_export, only_session, session_ids};
use crate::support::reply::Reply;
use crate::support::sandbox::Sandbox;
use crate::support::{default_wait, poll_until, processes};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// Waits until a command of this sandbox runs that has this in its command line.
fn wait_for_command(sandbox: &Sandbox, part: &str) {
    poll_until(part, default_wait(), || {
        let all = processes::belonging_to(&sandbox.project());
        all.into_iter().find(|process| process.command.starts_with(part))
    });
}

/// SPEC 6.10: the built-in tools are offered under their names, with schemas and honest hints; what the rules allow runs at once,
/// and every step of it is in the ledger.
#[test]
fn tools_and_a_call() {
    let sandbox = Sandbox::new().file("a.txt", "hello\n");
    let mut client = Client::start(&sandbox, &[], &json!({}));
    client.request(json!(1), "tools/list", &json!({}));
    let reply = client.reply_to(&json!(1));
    let tools = reply["result"]["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "glob",
            "file_read",
            "grep",
            "file_write",
            "file_edit",
            "bash",
            "web_get"
        ]
    );
    for tool in tools {
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
        let is_reading = ["glob", "file_read", "grep", "web_get"].contains(&tool["name"].as_str().unwrap());
        assert_eq!(tool["annotations"]["readOnlyHint"], is_reading, "{tool}");
        assert_eq!(tool["annotations"]["destructiveHint"], !is_reading, "{tool}");
    }
    let result = client.call(2, "file_read", &json!({"path": "a.txt"}));
    assert_eq!(result, (r#"{"output":"hello\n"}"#.to_owned(), false));
    assert!(client.hang_up().success());
    let events = only_export(&sandbox);
    assert_eq!(
        kinds(&events),
        "turn_started user assistant tool_call call_gated call_started tool_result assistant turn_ended"
    );
    assert_eq!(events[1]["content"], "(MCP client tester 1)");
    assert_eq!(
        of_kind(&events, "tool_result")[0]["data"]["output"],
        r#"{"output":"hello\n"}"#
    );
}

/// SPEC 6.10, 3.8, 3.9: what cannot be run is answered with a result that says why; the next call is none the worse.
#[test]
fn calls_that_cannot_be_run() {
    let sandbox = Sandbox::new().file("a.txt", "hello\n");
    let mut client = Client::start(&sandbox, &[], &json!({}));
    let check = |client: &mut Client, tool: &str, arguments: Value, expect: &str| {
        let (text, is_error) = client.call(7, tool, &arguments);
        assert!(is_error && text.contains(expect), "{tool} {arguments}: {text}");
    };
    check(&mut client, "nope", json!({}), "Unknown tool: nope");
    // What the person said is not for other programs.
    let query = json!({"query": "x"});
    check(&mut client, "search_memory", query, "Unknown tool: search_memory");
    check(&mut client, "file_read", json!({}), "Missing required parameter: path");
    check(
        &mut client,
        "file_read",
        json!({"path": "a.txt", "x": 1}),
        "Unknown parameter: x",
    );
    check(
        &mut client,
        "file_read",
        json!({"path": "b.txt"}),
        "File not found: b.txt",
    );
    assert!(!client.call(8, "file_read", &json!({"path": "a.txt"})).1);
    assert!(client.hang_up().success());
}

/// SPEC 6.10, 12: nonsense is answered, within bounds, and ends nothing.
#[test]
fn rude_clients() {
    let sandbox = Sandbox::new().file("a.txt", "hello\n");
    let mut client = Client::silent(&sandbox, &[]);
    // Before anything was begun.
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 9}}));
    client.send(&json!({"jsonrpc": "2.0", "id": 5, "result": {}}));
    for nonsense in ["", "nonsense", "{", "[]", "17", "{\"jsonrpc\":\"2.0\",\"id\":3}"] {
        client.write(nonsense.as_bytes());
    }
    client.write(&[0xff, 0xfe, b'{']);
    client.write(&[b'['; 100_000]);
    client.write(&b"x".repeat(40 << 20));
    client.write(format!("[{}1]", "1,".repeat(1_000_000)).as_bytes());
    let too_long = client.next(|message| {
        message["error"]["message"]
            .as_str()
            .is_some_and(|it| it.contains("longer"))
    });
    assert_eq!(too_long["error"]["code"], -32600);
    client.request(
        json!("init"),
        "initialize",
        &json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "\u{1b}[2J", "version": ""}}),
    );
    assert_eq!(
        client.reply_to(&json!("init"))["result"]["protocolVersion"],
        "2025-06-18"
    );
    client.write(b"nonsense");
    assert_eq!(
        client.next(|message| message.get("error").is_some())["error"]["code"],
        -32700
    );
    assert!(!client.call(1, "file_read", &json!({"path": "a.txt"})).1);
    let peak_kib = processes::peak_memory_kib(client.child.id()).unwrap();
    assert!(peak_kib < 150 * 1024, "{peak_kib} KiB");
    assert!(client.hang_up().success());
    assert_eq!(only_export(&sandbox)[1]["content"], "(MCP client \\x1b[2J )");
}

/// SPEC 6.10: calls of one client run side by side: the first waits for what the second does.
#[test]
fn two_calls_at_once() {
    let sandbox = Sandbox::new();
    let mut client = Client::start(&sandbox, &["--approval", "full"], &json!({}));
    client.begin(
        1,
        "bash",
        &json!({"command": "until [ -e go ]; do sleep 0.02; done; echo gone"}),
    );
    wait_for_command(&sandbox, "bash -c until");
    assert!(!client.call(2, "file_write", &json!({"path": "go", "content": ""})).1);
    let first = client.reply_to(&json!(1));
    assert!(first.to_string().contains("gone"), "{first}");
    assert!(client.hang_up().success());
    assert_eq!(
        session_ids(&sandbox).len(),
        2,
        "a session for each that runs beside another"
    );
}

/// SPEC 6.9, 6.10: what a command prints is progress for a client that asked for it, before the result.
#[test]
fn progress() {
    let sandbox = Sandbox::new();
    let mut client = Client::start(&sandbox, &["--approval", "full"], &json!({}));
    let command = "echo one step; until [ -e go ]; do sleep 0.02; done";
    let params = json!({"name": "bash", "arguments": {"command": command}, "_meta": {"progressToken": "t1"}});
    client.request(json!(1), "tools/call", &params);
    let told = client.next(|message| message["method"] == "notifications/progress");
    assert_eq!(told["params"]["progressToken"], "t1");
    assert_eq!(told["params"]["message"], "one step");
    std::fs::write(sandbox.path("go"), "").unwrap();
    assert_eq!(client.reply_to(&json!(1))["result"]["isError"], false);
    assert!(client.hang_up().success());
}

/// SPEC 6.10: a call that the client takes back ends with all that it started, and the next one runs.
#[test]
fn cancelled() {
    let sandbox = Sandbox::new();
    let mut client = Client::start(&sandbox, &["--approval", "full"], &json!({}));
    client.begin(1, "bash", &json!({"command": "sleep 4711 & sleep 4712"}));
    wait_for_command(&sandbox, "sleep 4712");
    let params = json!({"requestId": 1, "reason": "changed my mind"});
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
    poll_until("the end of both", default_wait(), || {
        let left = processes::belonging_to(&sandbox.project());
        left.iter()
            .all(|process| !process.command.starts_with("sleep"))
            .then_some(())
    });
    assert!(!client.call(2, "bash", &json!({"command": "true"})).1);
    assert!(client.hang_up().success());
    let all: Vec<Value> = session_ids(&sandbox)
        .iter()
        .flat_map(|id| export(&sandbox, id))
        .collect();
    let ends: Vec<&Value> = of_kind(&all, "turn_ended")
        .iter()
        .map(|end| &end["data"]["reason"])
        .collect();
    assert!(ends.contains(&&json!("cancelled")), "{ends:?}");
    sandbox.assert_nothing_runs();
}

/// SPEC 6.10, 12: the end of the input, and a signal, end the server and what it runs, and close the turn.
#[test]
fn ends() {
    for is_signal in [false, true] {
        let sandbox = Sandbox::new();
        let mut client = Client::start(&sandbox, &["--approval", "full"], &json!({}));
        let job = json!({"command": "sleep 4715", "background": true});
        assert!(!client.call(1, "bash", &job).1);
        client.begin(2, "bash", &json!({"command": "sleep 4713"}));
        wait_for_command(&sandbox, "sleep 4713");
        if is_signal {
            kill_process(Pid::from_child(&client.child), Signal::TERM).unwrap();
            assert!(client.ended().success());
        } else {
            assert!(client.hang_up().success());
        }
        sandbox.assert_nothing_runs();
        let events = only_export(&sandbox);
        let ends = of_kind(&events, "turn_ended");
        assert_eq!(ends[1]["data"]["reason"], "cancelled", "{}", kinds(&events));
        // What became of the call in the end is kept, behind what answered it.
        assert_eq!(of_kind(&events, "tool_result").len(), 3, "{}", kinds(&events));
    }
}

/// SPEC 3.2, 6.10: a call is in the ledger before it runs; after `kill -9` it is known to have been started.
#[test]
fn killed() {
    let sandbox = Sandbox::new();
    let mut client = Client::start(&sandbox, &["--approval", "full"], &json!({}));
    client.begin(1, "bash", &json!({"command": "sleep 4714"}));
    wait_for_command(&sandbox, "sleep 4714");
    kill_process(Pid::from_child(&client.child), Signal::KILL).unwrap();
    assert!(!client.ended().success());
    sandbox.assert_nothing_runs();
    assert!(kinds(&only_export(&sandbox)).ends_with("call_gated call_started"));
}

/// SPEC 4.3, 6.10: a client is told no more than a model; the ledger has it all.
#[test]
fn long_results() {
    let long = "0123456789\n".repeat(10_000);
    let sandbox = Sandbox::new()
        .config("[tools]\nmax_result_chars = 6000")
        .file("long.txt", &long);
    let mut client = Client::start(&sandbox, &[], &json!({}));
    let (text, is_error) = client.call(1, "file_read", &json!({"path": "long.txt"}));
    assert!(
        !is_error && text.chars().count() <= 6_000 && text.contains("left out"),
        "{text}"
    );
    assert!(client.hang_up().success());
    let events = only_export(&sandbox);
    let output = of_kind(&events, "tool_result")[0]["data"]["output"].as_str().unwrap();
    assert!(output.len() > long.len());
}

/// SPEC 2.8, 6.10: the calls of programs are in the list of sessions, but a person who goes on with the last session means one of
/// their own.
#[test]
fn going_on_passes_over_it() {
    let model = FakeServer::script([Reply::text("one"), Reply::text("two")]);
    let sandbox = Sandbox::with_model(&model).file("a.c", "");
    sandbox.run(&["-p", "the first question"]).success();
    let own = only_session(&sandbox);
    let mut client = Client::start(&sandbox, &[], &json!({}));
    client.call(1, "glob", &json!({"pattern": "*.c"}));
    client.hang_up();
    let ids = session_ids(&sandbox);
    assert!(ids.len() == 2 && ids[0] != own, "{ids:?}");

    sandbox.run(&["-p", "the second", "--continue"]).success();
    let asked = model.requests()[1].json.to_string();
    assert!(asked.contains("the first question"), "{asked}");
    let mut client = Client::start(&sandbox, &[], &json!({}));
    client.call(1, "glob", &json!({"pattern": "*.c"}));
    client.hang_up();
    let terminal = sandbox.terminal(&[]).start();
    terminal.wait_for_prompt();
    terminal.send_line(":resume");
    terminal.wait_for_text("session restored");
    terminal.wait_for_text("the first question");
}
