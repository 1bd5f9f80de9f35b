//! What a message leads to: a reply, or a call that waits for the app (SPEC 9.1, 9.2, 9.7).

use super::app::{Served, accepted, keys, message, place, refused, replied, results, route, tool, waits_for};
use crate::support::fake_server::{FakeServer, Received};
use crate::support::ledger::{export, text};
use crate::support::reply::{Framing, Reply};
use crate::support::sandbox::Sandbox;
use serde_json::{Value, json};

/// Names that an app cannot declare: the built-in tools, and what some of them are also called when served.
const TAKEN: [&str; 11] = [
    "glob",
    "file_read",
    "grep",
    "file_write",
    "file_edit",
    "bash",
    "web_get",
    "search_memory",
    "read_file",
    "write_file",
    "run_command",
];

/// Hexadecimal digits of the random bits that end a continuation.
const RANDOM_DIGITS: usize = 16;

/// SPEC 9.1: a reply has exactly these fields; the conversation goes on under its id, with what was said before.
#[test]
fn a_conversation() {
    let model = FakeServer::script([Reply::text("hello"), Reply::text("again")]);
    let sandbox = place(&model);
    let served = Served::start(&sandbox);
    let first = accepted(&served.post("/api/chat", &json!({"message": "hi"})));
    replied(&first, "hello");
    assert_eq!(first["model"], "fake");
    assert_eq!(first["agentic"], true);
    assert_eq!(first["tools_used"], json!([]));
    let id = text(&first["conversation_id"]);
    assert_eq!(id.len(), 36, "{id}");
    assert_eq!(id.as_bytes()[14], b'7', "not a UUIDv7: {id}");
    let second = accepted(&served.post("/api/chat", &json!({"message": "and?", "conversation_id": id})));
    replied(&second, "again");
    assert_eq!(second["conversation_id"], first["conversation_id"]);
    assert_eq!(model.requests()[1].roles(), "system user assistant user");
    model.assert_done();
}

/// SPEC 9.1: the app's own instructions reach the model, and the model is the one it names; one that is not there is refused.
#[test]
fn system_and_model() {
    let model = FakeServer::script([Reply::text("arr")]);
    let url = model.base_url();
    let other = format!("[models.other]\nprovider = \"openai-chat\"\nbase_url = \"{url}\"\nmodel = \"another-one\"\n");
    let sandbox = place(&model).config(&other);
    let served = Served::start(&sandbox);
    let body = json!({"message": "hi", "model": "other", "system": "Talk like a pirate."});
    let envelope = accepted(&served.post("/api/chat", &body));
    assert_eq!(envelope["model"], "other");
    let request = model.only_request();
    assert_eq!(request.json["model"], "another-one");
    assert!(request.messages()[0].to_string().contains("Talk like a pirate."));
    refused(
        &served.post("/api/chat", &json!({"message": "hi", "model": "nobody"})),
        422,
        "unknown_model",
    );
}

/// SPEC 9.1: what is no message is refused by name, and starts nothing.
#[test]
fn bad_messages() {
    let model = FakeServer::script([]);
    let sandbox = place(&model);
    let served = Served::start(&sandbox);
    let check = |body: Value, named: &str| {
        let response = served.post("/api/chat", &body);
        assert_eq!(response.status, 422, "{body}: {response:?}");
        assert!(response.body.contains(named), "{body}: {response:?}");
    };
    check(json!({}), "message");
    check(json!({"message": 7}), "message");
    check(json!({"message": ""}), "message");
    check(json!({"message": "hi", "tolls": []}), "tools");
    check(json!({"message": "hi", "tools": [{"description": "nameless"}]}), "name");
    check(
        json!({"message": "hi", "tools": [{"name": "no spaces", "description": "", "input_schema": {}}]}),
        "no spaces",
    );
    check(
        json!({"message": "hi", "tools": [tool("twice"), tool("twice")]}),
        "twice",
    );
    let unknown = json!({"message": "hi", "conversation_id": "0190a6c0-0000-7000-8000-000000000000"});
    assert_eq!(served.post("/api/chat", &unknown).status, 404);
    assert!(model.requests().is_empty());
    assert_eq!(served.get("/api/sessions").json()["sessions"], json!([]));
}

/// SPEC 9.1: `tools_used` names what ran here and what was bridged, in order.
#[test]
fn tools_used_in_order() {
    let model = FakeServer::script([
        Reply::call("c1", "glob", json!({"pattern": "*"})),
        Reply::call("c2", "pick_colour", json!({})),
        Reply::call("c3", "file_read", json!({"path": "a.txt"})),
        Reply::text("done"),
    ]);
    let sandbox = place(&model).file("a.txt", "hello\n");
    let served = Served::start(&sandbox);
    let pending = served.chat("go", &["pick_colour"]);
    assert_eq!(pending["tools_used"], json!(["glob", "pick_colour"]), "{pending}");
    let last = accepted(&served.answer(&pending, "red"));
    replied(&last, "done");
    assert_eq!(last["tools_used"], json!(["glob", "pick_colour", "file_read"]));
}

/// SPEC 9.2: a call for the app is answered 200 with exactly these fields; its arguments are the object as the model wrote it.
#[test]
fn a_pending_call() {
    let input = json!({"z": [1, {"deep": null}], "a": "é\n\"", "n": 1.5});
    let model = FakeServer::script([
        Reply::call("c1", "pick_colour", input.clone()),
        Reply::text("red it is"),
    ]);
    let sandbox = place(&model);
    let served = Served::start(&sandbox);
    let pending = served.chat("a colour", &["pick_colour"]);
    assert_eq!(
        keys(&pending),
        "agentic call_id conversation_id model session_id tool_input tool_name tool_pending tools_used"
    );
    waits_for(&pending, "pick_colour");
    assert_eq!(pending["tool_input"], input);
    assert_eq!(pending["agentic"], true);
    assert_eq!(pending["model"], "fake");
    let session = text(&pending["session_id"]);
    let (time, seq) = session
        .strip_prefix("br-")
        .and_then(|rest| rest.split_once('-'))
        .unwrap();
    assert!(time.bytes().all(|byte| byte.is_ascii_digit()), "{session}");
    let random = seq.get(seq.len().saturating_sub(RANDOM_DIGITS)..).unwrap();
    assert!(
        random.len() == RANDOM_DIGITS && random.bytes().all(|b| b.is_ascii_hexdigit()),
        "{session}"
    );
    let offered = &model.requests()[0];
    assert!(offered.tool_names().contains(&"pick_colour") && offered.tool_names().contains(&"glob"));
    replied(&accepted(&served.answer(&pending, "red")), "red it is");
    model.assert_done();
}

/// SPEC 9.2: a tool that nobody declared is the app's as well; the model never reads that it is unknown.
#[test]
fn undeclared_tools_suspend() {
    let model = FakeServer::builder()
        .reply(Reply::call("c1", "open_window", json!({"n": 1})))
        .reply(Reply::text("opened"))
        .start();
    let sandbox = place(&model);
    let served = Served::start(&sandbox);
    let pending = served.chat("open", &[]);
    waits_for(&pending, "open_window");
    replied(&accepted(&served.answer(&pending, "it is open")), "opened");
    let requests = model.requests();
    assert_eq!(results(&requests[1]), ["it is open"]);
    assert!(!requests[1].json.to_string().to_lowercase().contains("unknown tool"));
}

/// SPEC 9.2: every route of a session takes the continuation or the conversation.
#[test]
fn either_id() {
    let model = FakeServer::script([
        Reply::call("c1", "pick", json!({})),
        Reply::call("c2", "pick", json!({})),
        Reply::text("done"),
    ]);
    let sandbox = place(&model);
    let served = Served::start(&sandbox);
    let pending = served.chat("go", &["pick"]);
    let by = |id: &Value| accepted(&served.get(&format!("/api/sessions/{}", text(id))));
    let (one, other) = (by(&pending["session_id"]), by(&pending["conversation_id"]));
    assert_eq!(one["session"]["id"], pending["conversation_id"]);
    assert_eq!(one["session"], other["session"]);
    assert_eq!(one["state"], "pending");
    assert_eq!(one["pending"], pending);
    let conversation = format!("/api/sessions/{}/tool_result", text(&pending["conversation_id"]));
    let next = accepted(&served.post(&conversation, &json!({"call_id": pending["call_id"], "content": "1"})));
    waits_for(&next, "pick");
    let last = accepted(&served.answer(&next, "2"));
    replied(&last, "done");
    let idle = by(&last["conversation_id"]);
    assert_eq!((&idle["state"], &idle["pending"]), (&json!("idle"), &Value::Null));
}

/// SPEC 9.2: the name of a built-in tool cannot be declared, so a client's answer can never stand in for one.
#[test]
fn names_that_are_taken() {
    let model = FakeServer::script([]);
    let sandbox = place(&model);
    let served = Served::start(&sandbox);
    for name in TAKEN {
        let response = served.post("/api/chat", &message("hi", &["mine", name]));
        refused(&response, 422, "tool_name_taken");
        assert!(response.body.contains(name), "{response:?}");
    }
    assert!(model.requests().is_empty());
}

/// SPEC 3.8, 9.2: arguments that are not what was declared go back to the model, not to the app.
#[test]
fn arguments_are_checked_first() {
    let model = FakeServer::script([
        Reply::call("c1", "pick", json!({"colour": 7})),
        Reply::call("c2", "pick", json!({"colour": "red"})),
        Reply::text("done"),
    ]);
    let sandbox = place(&model);
    let served = Served::start(&sandbox);
    let schema = json!({"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]});
    let pick = json!({"name": "pick", "description": "Picks.", "input_schema": schema});
    let pending = accepted(&served.post("/api/chat", &json!({"message": "go", "tools": [pick]})));
    assert_eq!(pending["tool_input"], json!({"colour": "red"}));
    assert!(
        results(&model.requests()[1])[0].contains("error"),
        "{:?}",
        results(&model.requests()[1])
    );
    replied(&accepted(&served.answer(&pending, "ok")), "done");
}

/// SPEC 9.2: what is declared holds for the conversation until something else is declared.
#[test]
fn tools_of_a_session() {
    let model = FakeServer::script([Reply::text("1"), Reply::text("2"), Reply::text("3")]);
    let sandbox = place(&model);
    let served = Served::start(&sandbox);
    let first = served.chat("one", &["pick"]);
    let id = &first["conversation_id"];
    accepted(&served.post("/api/chat", &json!({"message": "two", "conversation_id": id})));
    let mut other = message("three", &["choose"]);
    other["conversation_id"] = id.clone();
    accepted(&served.post("/api/chat", &other));
    let offered: Vec<(bool, bool)> = model
        .requests()
        .iter()
        .map(|request| {
            (
                request.tool_names().contains(&"pick"),
                request.tool_names().contains(&"choose"),
            )
        })
        .collect();
    assert_eq!(offered, [(true, false), (true, false), (false, true)]);
}

/// SPEC 4.5, 9.2: `read_file` and the like are built-in tools, run here.
#[test]
fn other_names_of_builtin_tools() {
    let model = FakeServer::builder()
        .reply(Reply::call("c1", "read_file", json!({"path": "a.txt"})))
        .reply(Reply::text("done"))
        .start();
    let sandbox = place(&model).file("a.txt", "from the file\n");
    let served = Served::start(&sandbox);
    replied(&served.chat("read", &[]), "done");
    assert!(results(&model.requests()[1])[0].contains("from the file"));
}

/// A reply of Anthropic's format, from its events.
fn anthropic(events: &[Value]) -> Reply {
    let begin = json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant",
        "model": "claude-sonnet-4-5", "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": {"input_tokens": 10, "output_tokens": 1}}});
    let all = std::iter::once(&begin).chain(events);
    let reply = Reply::json(200, &Value::Null).framed(Framing::Close);
    let mut reply = Reply {
        actions: Vec::new(),
        headers: Vec::new(),
        ..reply
    }
    .header("content-type", "text/event-stream");
    for event in all {
        reply = reply.bytes(format!("event: {}\ndata: {event}\n\n", text(&event["type"])));
    }
    reply
}

/// A block of content, whole.
fn block(index: usize, content: &Value, deltas: &[Value]) -> Vec<Value> {
    let mut events = vec![json!({"type": "content_block_start", "index": index, "content_block": content})];
    let delta = |delta: &Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    events.extend(deltas.iter().map(delta));
    events.push(json!({"type": "content_block_stop", "index": index}));
    events
}

fn end(reason: &str) -> [Value; 2] {
    [
        json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null}, "usage": {"output_tokens": 9}}),
        json!({"type": "message_stop"}),
    ]
}

/// SPEC 9.7: a tool that the provider runs itself is not suspended on; its blocks go back to it as they came.
#[test]
fn provider_side_tools() {
    let call = json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [
        {"type": "web_search_result", "url": "https://docs.example/", "title": "Docs", "encrypted_content": "opaque=="}]});
    let says = json!({"type": "text", "text": ""});
    let query = json!({"type": "input_json_delta", "partial_json": "{\"query\": \"docs\"}"});
    let words = json!({"type": "text_delta", "text": "found it"});
    let searched = [
        block(0, &call, &[query]),
        block(1, &found, &[]),
        block(2, &says, std::slice::from_ref(&words)),
        end("end_turn").to_vec(),
    ];
    let again = [block(0, &says, &[words]), end("end_turn").to_vec()];
    let model = FakeServer::builder()
        .reply(anthropic(&searched.concat()))
        .reply(anthropic(&again.concat()))
        .start();
    let config = format!(
        "default_model = \"fake\"\n[models.fake]\nprovider = \"anthropic\"\nbase_url = \"http://{}\"\n\
         model = \"claude-sonnet-4-5\"\nprovider_tools = [\"web_search\"]\n",
        model.address()
    );
    let sandbox = Sandbox::new()
        .config(&config)
        .env("SERVE_TEST_TOKEN", super::app::TOKEN);
    let served = Served::start(&sandbox);
    let first = served.chat("search", &["pick"]);
    replied(&first, "found it");
    assert_eq!(first["tools_used"], json!([]));
    let body = json!({"message": "again", "conversation_id": first["conversation_id"]});
    replied(&accepted(&served.post("/api/chat", &body)), "found it");
    let sent: Received = model.requests().pop().unwrap();
    let blocks = sent.messages()[1]["content"].clone();
    assert_eq!(blocks[0]["type"], "server_tool_use", "{blocks}");
    assert_eq!(blocks[0]["input"], json!({"query": "docs"}));
    assert_eq!(blocks[1], found);
    let events = export(&sandbox, text(&first["conversation_id"]));
    assert!(!events.iter().any(|event| event["kind"] == "suspended"));
}

/// SPEC 9.2: a waiting call is one that can be looked up from any device, with everything an answer needs.
#[test]
fn waiting_is_visible() {
    let model = FakeServer::script([Reply::call("c1", "pick", json!({}))]);
    let sandbox = place(&model);
    let served = Served::start(&sandbox);
    let pending = served.chat("a colour please", &["pick"]);
    let listed = accepted(&served.get("/api/sessions"));
    let session = &listed["sessions"][0];
    assert_eq!(session["id"], pending["conversation_id"], "{listed}");
    assert_eq!(session["waiting"], true, "{listed}");
    let shown = accepted(&served.get(&format!("/api/sessions/{}", text(&pending["conversation_id"]))));
    assert_eq!(route(&shown["pending"], "tool_result"), route(&pending, "tool_result"));
}
