//! The ledger as its user meets it: listed, shown, exported, gone on with, written by a newer aish, damaged (SPEC 2.4, 2.5,
//! 2.8, 2.10).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use aish_core::SessionId;
use aish_core::event::{Body, Draft};
use aish_store::sqlite::SqliteStore;
use aish_store::{Durability, Hold, Store as _};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use support::fake_server::FakeServer;
use support::ledger::{export, kinds, only_export, only_session, session_ids};
use support::reply::Reply;
use support::sandbox::{Output, Sandbox};
use support::strict::Strictness;

/// The fewest characters of an id that name a session.
const PREFIX_CHARS_MIN: usize = 4;

/// A server that answers any question with `answer`.
fn server() -> FakeServer {
    let builder = FakeServer::builder().strict(Strictness::Template);
    builder.otherwise(|_| Reply::text("answer")).start()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Neither a panic nor an escape: a status line that says what and what to do.
fn assert_says(output: &Output, code: i32, what: &str) {
    assert_eq!(output.code, Some(code), "{output:?}");
    assert!(
        output.stderr.starts_with("[aish] ") && output.stderr.contains(what),
        "{what:?} in {output:?}"
    );
    assert!(
        !output.stderr.contains("panicked") && !output.stderr.contains("a fault inside"),
        "{output:?}"
    );
}

/// SPEC 2.10: the list has the latest first, with what was asked and which wait.
#[test]
fn list() {
    let server = server();
    let sandbox = Sandbox::with_model(&server);
    let none = sandbox.run(&["sessions", "list"]).success();
    assert_eq!(
        (none.stdout.as_str(), none.stderr.as_str()),
        ("", "[aish] no sessions yet\n")
    );
    sandbox.run(&["-p", "the first question"]).success();
    let first = only_session(&sandbox);
    sandbox.run(&["-p", "the \u{1b}[31msecond question"]).success();
    let ids = session_ids(&sandbox);
    assert_eq!((ids.len(), &ids[1]), (2, &first));
    let list = sandbox.run(&["sessions", "list"]).success();
    let lines: Vec<&str> = list.stdout.lines().collect();
    assert!(
        lines[0].contains("second question") && !lines[0].contains('\u{1b}'),
        "{list:?}"
    );
    assert!(
        lines[1].contains("the first question") && lines[1].contains(" events"),
        "{list:?}"
    );
    assert!(!list.stdout.contains("[waits]"));
    server.push(Reply::call("c1", "bash", json!({"command": "touch ran"})));
    sandbox.run(&["-p", "the third question"]).exits(3);
    let list = sandbox.run(&["sessions", "list"]).success();
    assert!(list.stdout.lines().next().unwrap().contains("[waits]"), "{list:?}");
    let id = list.stdout.split_whitespace().next().unwrap();
    let show = sandbox.run(&["sessions", "show", id]).success();
    assert!(show.stderr.contains("waits for an answer: "), "{show:?}");
    assert!(show.stderr.contains("(call_1_1, digest "), "{show:?}");
    assert!(show.stderr.contains(&format!("aish resume {id}")), "{show:?}");
}

/// A session with one call in it.
fn with_a_call() -> (FakeServer, Sandbox, String) {
    let server = server();
    server.push(Reply::call("c1", "glob", json!({"pattern": "*.txt"})));
    let sandbox = Sandbox::with_model(&server).file("a.txt", "");
    sandbox.run(&["-p", "what is here?"]).success();
    let id = only_session(&sandbox);
    (server, sandbox, id)
}

/// SPEC 2.1, 2.2, 2.3, 2.4, 2.10: an event a line, with exactly these fields; calls and results in the shapes that are promised.
#[test]
fn export_as_lines() {
    let (_server, sandbox, id) = with_a_call();
    let events = export(&sandbox, &id);
    let fields = ["content", "data", "kind", "seq", "session", "time", "turn", "version"];
    for (n, event) in events.iter().enumerate() {
        let mut names: Vec<&String> = event.as_object().unwrap().keys().collect();
        names.sort();
        assert_eq!(names, fields);
        assert_eq!((&event["seq"], &event["session"]), (&json!(n + 1), &json!(id)));
    }
    let of = |kind: &str| events.iter().find(|event| event["kind"] == kind).unwrap();
    let call = of("tool_call");
    assert_eq!(call["content"], "glob(pattern=\"*.txt\")");
    assert_eq!(call["data"]["type"], "function");
    let function = json!({"name": "glob", "arguments": r#"{"pattern":"*.txt"}"#});
    assert_eq!(call["data"]["function"], function);
    let result = of("tool_result");
    assert_eq!(
        (&result["content"], &result["data"]["success"]),
        (&json!("1 file found"), &json!(true))
    );
    assert_eq!(result["data"]["tool_call_id"], call["data"]["id"]);
    let output: Value = serde_json::from_str(result["data"]["output"].as_str().unwrap()).unwrap();
    assert_eq!(output, json!({"output": "a.txt", "count": 1}));
    assert_eq!(of("user")["content"], "what is here?");
    assert_eq!(of("user")["data"], Value::Null);
}

/// SPEC 2.10: Markdown to read, on standard output or in a file of the user's alone.
#[test]
fn export_as_markdown() {
    let (_server, sandbox, id) = with_a_call();
    let shown = sandbox.run(&["sessions", "show", &id]).success().stdout;
    for part in [
        "what is here?",
        "glob(pattern=\"*.txt\")",
        "a.txt",
        "answer",
        id.as_str(),
    ] {
        assert!(shown.contains(part), "{part:?} in {shown}");
    }
    let file = sandbox.path("out.md");
    let arguments = ["sessions", "export", &id, "--format", "markdown", "--to", "out.md"];
    let output = sandbox.run(&arguments).success();
    assert_eq!(
        (output.stdout.as_str(), fs::read_to_string(&file).unwrap()),
        ("", shown)
    );
    assert_eq!(mode(&file), 0o600);
    let output = sandbox.run(&["sessions", "export", &id, "--to", "no/such/folder/out"]);
    assert_says(&output, 2, "no/such/folder/out");
}

/// SPEC 2.8, 2.10: a session is named by its id or an unambiguous beginning; anything else is 2 and says where to look.
#[test]
fn lookup() {
    let server = server();
    let sandbox = Sandbox::with_model(&server);
    // Ids begin with the time: of three in a row, two begin alike.
    for question in ["one", "two", "three"] {
        sandbox.run(&["-p", question]).success();
    }
    let ids = session_ids(&sandbox);
    for id in &ids {
        let longest = ids
            .iter()
            .filter(|other| *other != id)
            .map(|other| common_chars(id, other))
            .max()
            .unwrap();
        assert_eq!(export(&sandbox, &id[..=longest]), export(&sandbox, id));
        let shared = &id[..longest];
        assert!(longest >= PREFIX_CHARS_MIN, "{ids:?}");
        for arguments in [&["sessions", "show", shared][..], &["-p", "hi", "--resume", shared]] {
            assert_says(&sandbox.run(arguments), 2, shared);
        }
    }
    for unknown in ["ffffffff", "", "x", "../ledger", "%"] {
        for command in ["show", "export"] {
            assert_says(&sandbox.run(&["sessions", command, unknown]), 2, "`aish sessions list`");
        }
    }
}

fn common_chars(one: &str, other: &str) -> usize {
    one.chars().zip(other.chars()).take_while(|(a, b)| a == b).count()
}

/// SPEC 2.10, 10.1: one file in the data directory, all of it private; nothing is put anywhere else.
#[test]
fn the_ledger_is_private() {
    let (_server, sandbox, _) = with_a_call();
    let data = sandbox.home().join("data");
    assert_eq!(mode(&data), 0o700);
    for entry in fs::read_dir(&data).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
    assert!(sandbox.ledger().is_file());
    // One that was copied carelessly is closed again.
    fs::set_permissions(sandbox.ledger(), fs::Permissions::from_mode(0o644)).unwrap();
    sandbox.run(&["sessions", "list"]).success();
    assert_eq!(mode(&sandbox.ledger()), 0o600);
}

/// SPEC 2.7, 2.8: what is restored is said, counted in conversation events, and sent whole: calls and results included.
#[test]
fn goes_on_with_calls() {
    let (server, sandbox, _) = with_a_call();
    let output = sandbox.run(&["-p", "and now?", "--continue"]).success();
    // user, assistant, tool_call, tool_result, assistant
    assert_eq!(output.stderr, "[aish] session restored: 5 messages\n");
    let request = server.requests().pop().unwrap();
    assert_eq!(request.roles(), "system user assistant tool assistant user");
    assert_eq!(
        request.messages()[3]["tool_call_id"],
        request.messages()[2]["tool_calls"][0]["id"]
    );
    assert!(server.problems().is_empty(), "{:?}", server.problems());
}

/// SPEC 2.8, 7.1: another model goes on with the same conversation.
#[test]
fn goes_on_with_another_model() {
    let (first, second) = (server(), server());
    let sandbox = Sandbox::with_model(&first).config(&format!(
        "[models.second]\nprovider = \"openai-chat\"\nbase_url = \"{}\"\nmodel = \"m2\"",
        second.base_url()
    ));
    sandbox.run(&["-p", "one"]).success();
    sandbox.run(&["-p", "two", "--continue", "--model", "second"]).success();
    assert_eq!(second.only_request().roles(), "system user assistant user");
}

/// Appends events to the ledger.
fn append(sandbox: &Sandbox, id: &SessionId, expected: usize, drafts: Vec<Draft>) {
    let store = SqliteStore::new(sandbox.ledger());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let expected = u64::try_from(expected).unwrap();
    let append = store.append(id, expected, drafts, 1, Durability::Synced, Hold::Nothing);
    runtime.block_on(append).unwrap();
}

/// Appends events to the only session the way a newer aish would.
fn written_by_a_newer_aish(sandbox: &Sandbox, kind: &str, data: &str) {
    let id = SessionId::new(only_session(sandbox));
    let draft = Draft::new(0, "something new", Body::decode(kind, data).unwrap());
    append(sandbox, &id, only_export(sandbox).len(), vec![draft]);
}

/// SPEC 9.2, 10.4: a session that waits for a client to run its tool says so: nobody is asked for a yes that nothing waits for.
#[test]
fn a_turn_that_waits_for_its_client() {
    let server = server();
    let sandbox = Sandbox::with_model(&server);
    sandbox.run(&["-p", "one"]).success();
    let id = SessionId::from_parts(1, 1);
    let event =
        |kind: &str, content: &str, data: Value| Draft::new(1, content, Body::decode(kind, &data.to_string()).unwrap());
    let call = json!({"id": "call_1_1", "type": "function", "function": {"name": "take_photo", "arguments": "{}"}, "reply_id": "reply_1_1"});
    let gated = json!({"call_id": "call_1_1", "verdict": "allow", "rule": "the client executes it", "digest": "d".repeat(64), "source": "client"});
    let drafts = vec![
        event("turn_started", "turn 1 started", json!({"served": {}})),
        event("user", "a photo, please", Value::Null),
        event("assistant", "", json!({"reply_id": "reply_1_1", "stop": "tool_calls"})),
        event("tool_call", "take_photo()", call),
        event("call_gated", "call_1_1: allow", gated),
        event(
            "suspended",
            "waits for call_1_1",
            json!({"continuation": "br-1-1", "call_id": "call_1_1"}),
        ),
    ];
    append(&sandbox, &id, 0, drafts);
    let waits = "[aish] waits for its client: take_photo() (call_1_1)";
    let shown = sandbox.run(&["sessions", "show", id.as_str()]);
    let resumed = sandbox.run(&["resume", id.as_str()]).exits(3);
    for told in [shown.stderr, resumed.stderr] {
        assert!(told.contains(waits) && !told.contains("approve"), "{told}");
    }
    let events = export(&sandbox, id.as_str());
    assert_eq!(events.len(), 6, "{events:?}");
}

/// SPEC 2.4: an event of an unknown kind is kept and exported as it is, and its session is not continued.
#[test]
fn unknown_kinds() {
    let (server, sandbox, id) = with_a_call();
    let data = r#"{"b":[1,{"deep":null}],"a":"x"}"#;
    written_by_a_newer_aish(&sandbox, "hologram", data);
    let events = export(&sandbox, &id);
    let last = events.last().unwrap();
    assert_eq!(
        (&last["kind"], &last["content"]),
        (&json!("hologram"), &json!("something new"))
    );
    assert_eq!(last["data"], serde_json::from_str::<Value>(data).unwrap());
    assert!(
        sandbox
            .run(&["sessions", "show", &id])
            .success()
            .stdout
            .contains("hologram")
    );
    let asked = server.requests().len();
    for arguments in [&["-p", "hi", "--continue"][..], &["-p", "hi", "--resume", &id]] {
        let output = sandbox.run(arguments);
        assert!(output.stderr.contains("newer aish"), "{output:?}");
        assert_eq!(output.code, Some(1), "{output:?}");
    }
    assert_eq!((export(&sandbox, &id), server.requests().len()), (events, asked));
    // Only that session: a new one is not affected.
    sandbox.run(&["-p", "hi"]).success();
}

/// SPEC 10.4: a ledger that is none, or not whole, is a clear error with code 1; nothing of it is overwritten.
#[test]
fn damaged_ledgers() {
    let (server, sandbox, _) = with_a_call();
    let whole = fs::read(sandbox.ledger()).unwrap();
    for name in ["ledger.db-wal", "ledger.db-shm"] {
        let _ = fs::remove_file(sandbox.home().join("data").join(name));
    }
    let mut scribbled = whole.clone();
    for byte in scribbled.iter_mut().skip(100) {
        *byte = !*byte;
    }
    let asked = server.requests().len();
    for damaged in [
        b"not a ledger at all, but longer than a header of SQLite is: ".repeat(20),
        scribbled,
    ] {
        fs::write(sandbox.ledger(), &damaged).unwrap();
        for arguments in [&["sessions", "list"][..], &["-p", "hi", "--continue"]] {
            assert_says(&sandbox.run(arguments), 1, "ledger.db");
        }
        assert_eq!(fs::read(sandbox.ledger()).unwrap(), damaged);
    }
    assert_eq!(server.requests().len(), asked);
}

/// SPEC 2.5: a disk that fails is a warning that can be seen, not the end of the session.
#[test]
fn a_disk_that_fails() {
    let server = server();
    let sandbox = Sandbox::with_model(&server);
    // Where the data directory should be, there is a file.
    fs::write(sandbox.home().join("data"), "").unwrap();
    let output = sandbox.run(&["-p", "hi"]).success();
    assert_eq!(output.stdout, "answer\n");
    assert!(
        output.stderr.starts_with("[aish] the ledger cannot be written"),
        "{output:?}"
    );
    assert_says(&sandbox.run(&["sessions", "list"]), 1, "ledger");
}

/// SPEC 2.10: many write to one ledger at once, each its own session, and nothing is lost.
#[test]
fn many_at_once() {
    const MANY: usize = 8;
    let server = server();
    let sandbox = Sandbox::with_model(&server);
    let runs: Vec<_> = (0..MANY)
        .map(|n| sandbox.start(&["-p", &format!("question {n}")]))
        .collect();
    for run in runs {
        assert_eq!(run.finish().success().stderr, "");
    }
    let ids = session_ids(&sandbox);
    assert_eq!(ids.len(), MANY);
    for id in ids {
        assert_eq!(
            kinds(&export(&sandbox, &id)),
            "turn_started user assistant usage turn_ended"
        );
    }
}
