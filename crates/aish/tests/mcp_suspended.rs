//! What a server asks in the middle of a call where nobody is: the call waits in the ledger, and goes on where somebody is, in
//! another process, from the very same point (SPEC 6.9, multi-round-trip requests of 2026-07-28).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use rustix::process::Signal;
use serde_json::{Value, json};
use support::fake_server::FakeServer;
use support::ledger::{kinds, of_kind, only_export, only_session, text};
use support::mcp::{McpServer, Say, Script, Transport, tool};
use support::mcp_real::RealServers;
use support::pty::Terminal;
use support::reply::Reply;
use support::sandbox::Sandbox;

/// Bytes of a state that is more than is kept.
const LARGE_STATE_BYTES: usize = 70_000;

/// A model that calls this tool, then says that it is done.
fn calls(tool: &str, arguments: Value) -> FakeServer {
    FakeServer::script([Reply::call("c1", tool, arguments), Reply::text("all done")])
}

/// A sandbox with that server, whose calls need no approval.
fn sandbox(model: &FakeServer, server: &str) -> Sandbox {
    Sandbox::with_model(model)
        .config(&format!("{server}required = true\n"))
        .config("[mcp.auto_approve]\n\"s.*\" = true\n")
}

/// A stateless server whose tool `ask` asks for a word and leaves this state; what it does with the answer is the test's.
fn stateless(state: Value, answered: impl Fn(&Value) -> Vec<Say> + Send + Sync + 'static) -> McpServer {
    let form = json!({
        "mode": "form",
        "message": "Which \u{1b}[2Jcolour?",
        "requestedSchema": { "type": "object", "properties": { "word": { "type": "string" } }, "required": ["word"] },
    });
    let asks = json!({
        "resultType": "input_required",
        "inputRequests": { "colour": { "method": "elicitation/create", "params": form } },
        "requestState": state,
    });
    let about = json!({
        "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} },
        "serverInfo": { "name": "scripted", "version": "1" }, "ttlMs": 0, "cacheScope": "private",
    });
    let script = Script::with_tools(vec![tool("ask", "asks for a word")])
        .on("server/discover", move |message| {
            vec![Say::result(&message["id"], about.clone())]
        })
        .on("tools/call", move |message| {
            if message["params"].get("inputResponses").is_some() {
                answered(message)
            } else {
                vec![Say::result(&message["id"], asks.clone())]
            }
        });
    McpServer::start(Transport::Http, script)
}

fn thanks(message: &Value) -> Vec<Say> {
    vec![Say::text(&message["id"], "thank you")]
}

/// The parameters of every call that was heard, without `_meta`.
fn heard_calls(server: &McpServer) -> Vec<Value> {
    let heard = server.heard();
    let calls = heard.iter().filter(|message| message["method"] == "tools/call");
    let params = calls.map(|message| {
        let mut params = message["params"].clone();
        params.as_object_mut().unwrap().remove("_meta");
        params
    });
    params.collect()
}

/// What the model was given as the result of the call.
fn result(model: &FakeServer) -> String {
    let requests = model.wait_for_requests(2);
    let messages = requests[1].messages().to_vec();
    let tool = messages.iter().find(|message| message["role"] == "tool").unwrap();
    text(&tool["content"]).to_owned()
}

/// `aish resume ID` at a terminal.
fn resumed(sandbox: &Sandbox) -> Terminal {
    let id = only_session(sandbox);
    sandbox.terminal(&["resume", &id]).size(40, 100).start()
}

/// Fills in the one field, and sends it.
fn answer(terminal: &Terminal, word: &str) {
    terminal.wait_for_text("answer it? [y/N]");
    terminal.send_line("y");
    terminal.wait_for_text("'word':");
    terminal.send_line(word);
    terminal.wait_for_text("send it? [Y/n]");
    terminal.send_line("y");
}

/// SPEC 6.9, 5.6, 10.3: with a real server: nobody is there, so the turn waits and says what is asked, by whom, and how to
/// answer; at a terminal it is answered, and the call goes on.
#[test]
fn a_real_server_waits_for_its_answer() {
    let Some(servers) = RealServers::installed() else {
        return;
    };
    let fastmcp = servers.fastmcp();
    let model = calls("s__ask_user", json!({ "question": "Which colour?" }));
    let config = format!("{}protocol = \"2026-07-28\"\n", fastmcp.config("s"));
    let sandbox = sandbox(&model, &config);
    let output = sandbox.run(&["-p", "do it", "--output", "json"]).exits(3);
    let object = output.json();
    let pending = &object["pending"][0];
    assert_eq!(object["stop_reason"], "pending");
    assert_eq!(
        (&pending["kind"], &pending["tool"]),
        (&json!("question"), &json!("s.ask_user"))
    );
    assert_eq!(pending["asks"], json!(["Which colour?"]));
    let id = only_session(&sandbox);
    for line in [
        "[aish] s.ask_user asks: Which colour? (call_1_1)\n".to_owned(),
        format!("[aish] answer at a terminal: aish resume {id}\n"),
        format!("[aish] or decline it from a script: aish resume {id} --deny call_1_1\n"),
    ] {
        assert!(output.stderr.contains(&line), "{line} in {output:?}");
    }
    // Nobody is there a second time either.
    sandbox.run(&["resume", &id]).exits(3);
    let shown = sandbox.run(&["sessions", "show", &id]).success();
    assert!(
        shown.stderr.contains("s.ask_user asks: Which colour? (call_1_1)"),
        "{shown:?}"
    );

    let terminal = resumed(&sandbox);
    answer(&terminal, "blue");
    terminal.wait_for_text("all done");
    assert_eq!(result(&model), "accept: blue");
    let events = only_export(&sandbox);
    for kind in [
        "call_suspended",
        "server_asked",
        "server_answered",
        "call_taken_up",
        "tool_result",
    ] {
        assert_eq!(of_kind(&events, kind).len(), 1, "{kind} in {}", kinds(&events));
    }
    model.assert_done();
}

/// SPEC 6.9, 3.2: killed while the person is asked, it waits on; the server is sent the same arguments, its own state unchanged
/// and the answer, once. Nothing it says acts on a terminal (8.8).
#[test]
fn killed_while_it_is_asked() {
    let state = json!({ "sealed": "äöü \" \\ 1", "n": [1, 2.5, null] });
    let server = stateless(state.clone(), thanks);
    let model = calls("s__ask", json!({}));
    let sandbox = sandbox(&model, &server.config("s"));
    let output = sandbox.run(&["-p", "do it"]).exits(3);
    assert!(!output.stderr.contains('\u{1b}'), "{output:?}");
    let mut dying = resumed(&sandbox);
    dying.wait_for_text("answer it? [y/N]");
    dying.signal(Signal::KILL);
    dying.wait_exit();
    let terminal = resumed(&sandbox);
    answer(&terminal, "red");
    terminal.wait_for_text("all done");
    assert_eq!(result(&model), "thank you");
    let answered = json!({ "colour": { "action": "accept", "content": { "word": "red" } } });
    let expect = [
        json!({ "name": "ask", "arguments": {} }),
        json!({ "name": "ask", "arguments": {}, "inputResponses": answered, "requestState": state }),
    ];
    assert_eq!(heard_calls(&server), expect);
    terminal.assert_never_wrote(b"\x1b[2Jcolour");
}

/// SPEC 6.9, 5.5: a script declines it; the server hears nothing more of it.
#[test]
fn declined_from_a_script() {
    let server = stateless(json!("s"), thanks);
    let model = calls("s__ask", json!({}));
    let sandbox = sandbox(&model, &server.config("s"));
    sandbox.run(&["-p", "do it"]).exits(3);
    let id = only_session(&sandbox);
    let refused = sandbox.run(&["resume", &id, "--approve", "call_1_1"]).exits(2);
    assert!(
        refused.stderr.contains("asks something that a yes does not answer"),
        "{refused:?}"
    );
    let output = sandbox.run(&["resume", &id, "--deny", "call_1_1"]).success();
    assert_eq!(output.stdout, "all done\n");
    assert_eq!(result(&model), r#"{"error":"declined by the user"}"#);
    assert_eq!(heard_calls(&server).len(), 1);
}

/// SPEC 6.9, 6.6: a server that does not know its state any more: the model is told.
#[test]
fn a_state_that_is_not_valid_any_more() {
    let expired = |message: &Value| vec![Say::error(&message["id"], -32602, "the state has expired")];
    let server = stateless(json!("s"), expired);
    let model = calls("s__ask", json!({}));
    let sandbox = sandbox(&model, &server.config("s"));
    sandbox.run(&["-p", "do it"]).exits(3);
    let terminal = resumed(&sandbox);
    answer(&terminal, "red");
    terminal.wait_for_text("all done");
    assert_eq!(result(&model), r#"{"error":"the state has expired"}"#);
    assert_eq!(heard_calls(&server).len(), 2);
}

/// SPEC 6.9, 12: a state that is too large to keep does not wait: the question is declined at once.
#[test]
fn a_state_that_is_too_large() {
    let server = stateless(json!("x".repeat(LARGE_STATE_BYTES)), thanks);
    let model = calls("s__ask", json!({}));
    let sandbox = sandbox(&model, &server.config("s"));
    let output = sandbox.run(&["-p", "do it"]).success();
    assert!(
        output.stderr.contains("nobody is here to answer, declined"),
        "{output:?}"
    );
    assert_eq!(
        heard_calls(&server)[1]["inputResponses"]["colour"],
        json!({ "action": "decline" })
    );
}
