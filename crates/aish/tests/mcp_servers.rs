//! Real MCP servers in a conversation: calls of several at once, over every transport and in both eras (SPEC 6.1, 6.2, 5.6).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use serde_json::{Value, json};
use std::process::Command;
use support::fake_server::FakeServer;
use support::ledger::{of_kind, only_export, text};
use support::mcp_real::RealServers;
use support::pty::key;
use support::reply::Reply;
use support::sandbox::Sandbox;

/// What each of five servers is asked in one reply, and what is in its answer. `{project}` is the folder of the project.
const CALLS: [(&str, &str, &str); 5] = [
    (
        "fs__read_text_file",
        r#"{"path": "{project}/notes.txt"}"#,
        "from the file",
    ),
    ("every__get-sum", r#"{"a": 2, "b": 3}"#, "The sum of 2 and 3 is 5."),
    ("fast__add", r#"{"a": 20, "b": 22}"#, "42"),
    (
        "git__git_log",
        r#"{"repo_path": "{project}", "max_count": 1}"#,
        "the first commit",
    ),
    (
        "time__get_current_time",
        r#"{"timezone": "UTC"}"#,
        r#""timezone": "UTC""#,
    ),
];

fn calls(sandbox: &Sandbox) -> Reply {
    let project = sandbox.project();
    let project = project.to_str().unwrap();
    let arguments = CALLS
        .map(|(_, arguments, _)| -> Value { serde_json::from_str(&arguments.replace("{project}", project)).unwrap() });
    let ids = ["c1", "c2", "c3", "c4", "c5"];
    let named = CALLS.iter().zip(arguments);
    let calls: Vec<_> = ids
        .into_iter()
        .zip(named)
        .map(|(id, ((name, _, _), arguments))| (id, *name, arguments))
        .collect();
    Reply::calls(&calls)
}

/// A project with a file and a commit.
fn with_commit(sandbox: Sandbox) -> Sandbox {
    let sandbox = sandbox.file("notes.txt", "from the file");
    let script = "git init -q && git add . && \
                  git -c user.name=A -c user.email=a@example.com commit -q -m 'the first commit'";
    let made = Command::new("sh")
        .args(["-c", script])
        .current_dir(sandbox.project())
        .status();
    assert!(made.unwrap().success());
    sandbox
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

fn assert_answered(model: &FakeServer) {
    let results = results(model);
    assert_eq!(results.len(), CALLS.len(), "{results:?}");
    for ((name, _, expect), result) in CALLS.iter().zip(&results) {
        assert!(result.contains(expect), "{name}: {result}");
    }
    model.assert_done();
}

/// SPEC 6.1, 6.2: one reply calls tools of five servers: child processes of npm (older protocol) and of PyPI (2026-07-28), HTTP with
/// event streams and HTTP with JSON. All results come to the model, in order, and nothing is left running.
#[test]
fn five_servers_at_once() {
    let Some(real) = RealServers::installed() else { return };
    let (every, fast) = (real.everything_http(), real.fastmcp_json());
    let model = FakeServer::script([]);
    let sandbox = with_commit(Sandbox::with_model(&model));
    let sections = [
        real.filesystem("fs", &sandbox.project()),
        every.config("every"),
        fast.config("fast"),
        real.git("git"),
        real.time("time"),
    ];
    let approved = CALLS.map(|(name, _, _)| format!("\"{}\" = true\n", name.replace("__", ".")));
    let sandbox = sandbox.config(&format!(
        "{}\n[mcp.auto_approve]\n{}",
        required(&sections),
        approved.concat()
    ));
    model.push(calls(&sandbox));
    model.push(Reply::text("five answers"));
    let output = sandbox.run(&["-p", "ask all five"]).success();
    assert_eq!(output.stdout, "five answers\n", "{output:?}");
    assert_answered(&model);
    sandbox.assert_nothing_runs();
    let list = sandbox.run(&["mcp", "list"]).success().stdout;
    for alias in ["fs", "every", "fast", "git", "time"] {
        assert!(list.lines().any(|line| line.starts_with(alias)), "{list}");
    }
    sandbox.assert_nothing_runs();
}

/// Waits for slow machines as long as it takes: a prompt that is asked once does not wait long for servers it does not need.
fn required(sections: &[String]) -> String {
    sections
        .iter()
        .map(|section| format!("{section}required = true\n"))
        .collect()
}

/// SPEC 5.2, 6.4: at the prompt each of several calls is asked about, and one that was approved before is not.
#[test]
fn at_the_prompt() {
    let Some(real) = RealServers::installed() else { return };
    let fast = real.fastmcp();
    let model = FakeServer::script([]);
    let sandbox = Sandbox::with_model(&model).file("notes.txt", "from the file");
    let sections = format!(
        "{}{}{}[mcp.auto_approve]\n\"fast.add\" = true",
        real.filesystem("fs", &sandbox.project()),
        real.everything("every"),
        fast.config("fast"),
    );
    let sandbox = sandbox.config(&sections);
    // What was offered once is offered from the start the next time.
    sandbox.run(&["mcp", "tools"]).success();
    let path = sandbox.path("notes.txt");
    model.push(Reply::calls(&[
        ("c1", "fs__read_text_file", json!({ "path": path })),
        ("c2", "fast__add", json!({"a": 1, "b": 2})),
        ("c3", "every__echo", json!({"message": "hello"})),
    ]));
    model.push(Reply::text("three answers"));
    let mut terminal = sandbox.terminal(&[]).size(40, 160).start();
    terminal.wait_for_prompt();
    terminal.send_line("ask them");
    terminal.wait_for_text("call 'fs.read_text_file(");
    terminal.send_line("y");
    terminal.wait_for_text("call 'every.echo(message=\"hello\")'?");
    terminal.send_line("n");
    terminal.wait_for_text("three answers");
    terminal.wait_for_prompt();
    terminal.send(key::CTRL_D);
    assert_eq!(terminal.wait_exit().code(), Some(0));
    let shown = terminal.history_text();
    assert!(!shown.contains("call 'fast.add("), "{shown}");
    let told = results(&model);
    assert!(told[0].contains("from the file"), "{told:?}");
    assert!(told[1].contains('3'), "{told:?}");
    assert!(told[2].contains("declined by the user"), "{told:?}");
    model.assert_done();
    sandbox.assert_nothing_runs();
}

/// SPEC 5.6, 3.3: without a terminal the calls wait in the ledger, exit code 3; a script approves one and denies one, and they run in
/// another process, with servers of its own.
#[test]
fn approved_from_a_script() {
    let Some(real) = RealServers::installed() else { return };
    let fast = real.fastmcp_json();
    let model = FakeServer::script([]);
    let sandbox = Sandbox::with_model(&model).file("notes.txt", "from the file");
    let sections = [real.filesystem("fs", &sandbox.project()), fast.config("fast")];
    let sandbox = sandbox.config(&required(&sections));
    let path = sandbox.path("notes.txt");
    model.push(Reply::calls(&[
        ("c1", "fs__read_text_file", json!({ "path": path })),
        ("c2", "fast__add", json!({"a": 1, "b": 2})),
    ]));
    let waiting = sandbox.run(&["-p", "ask them", "--output", "json"]).exits(3).json();
    assert_eq!(waiting["stop_reason"], "pending");
    let pending = waiting["pending"].as_array().unwrap();
    let tools: Vec<&Value> = pending.iter().map(|call| &call["tool"]).collect();
    assert_eq!(tools, ["fs.read_text_file", "fast.add"]);
    sandbox.assert_nothing_runs();
    assert_eq!(of_kind(&only_export(&sandbox), "call_started").len(), 0);

    let id = text(&waiting["session_id"]);
    let approve = format!("{}:{}", text(&pending[0]["call_id"]), text(&pending[0]["digest"]));
    // One answer of two: nothing runs yet.
    let still = sandbox.run(&["resume", id, "--approve", &approve]).exits(3);
    assert!(still.stderr.contains("fast.add"), "{still:?}");
    assert_eq!(of_kind(&only_export(&sandbox), "call_started").len(), 0);

    model.push(Reply::text("one of two"));
    let output = sandbox
        .run(&["resume", id, "--deny", text(&pending[1]["call_id"])])
        .success();
    assert!(output.stdout.contains("one of two"), "{output:?}");
    let told = results(&model);
    assert!(told[0].contains("from the file"), "{told:?}");
    assert!(told[1].contains("declined by the user"), "{told:?}");
    model.assert_done();
    sandbox.assert_nothing_runs();
}
