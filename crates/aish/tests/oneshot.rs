//! `aish -p` as a script sees it: what is sent, what comes out on which stream, and the exit code (SPEC 10.2, 10.3).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use rustix::process::Signal;
use serde_json::{Value, json};
use support::fake_server::FakeServer;
use support::ledger::{end_of_last_turn, export, kinds, last_words, of_kind, only_export, only_session, text};
use support::reply::Reply;
use support::sandbox::{Output, Sandbox};
use support::strict::Strictness;

/// The most that our prompt and our tools may add to a request, in bytes (SPEC 11).
const REQUEST_BYTES_MAX: usize = 6 * 1024;

/// A made-up key.
const KEY: &str = "sk-test-example-0123456789abcdefghij";

/// A server that answers one question.
fn says(reply: &str) -> FakeServer {
    FakeServer::script([Reply::text(reply)])
}

/// Every line of standard error is a status line of aish, or goes on with one.
fn assert_status_lines(output: &Output) {
    for line in output.stderr.lines() {
        assert!(line.starts_with("[aish] ") || line.starts_with("       "), "{line:?}");
    }
}

/// SPEC 10.3: plain text out, nothing else on stdout, nothing at all on stderr when nothing happened.
#[test]
fn text_is_the_reply_and_nothing_else() {
    let server = says("hello *there*\nsecond line");
    let output = Sandbox::with_model(&server).run(&["-p", "hi"]).success();
    assert_eq!(output.stdout, "hello *there*\nsecond line\n");
    assert_eq!(output.stderr, "");
    server.assert_done();
}

/// SPEC 10.3: `--output json` is one object with exactly these fields.
#[test]
fn json_is_one_object() {
    let server = FakeServer::script([
        Reply::call("c1", "glob", json!({"pattern": "*.txt"})),
        Reply::text("one file"),
    ]);
    let sandbox = Sandbox::with_model(&server).file("a.txt", "");
    let output = sandbox.run(&["-p", "what is here?", "--output", "json"]).success();
    assert_eq!(output.stdout.lines().count(), 1, "{output:?}");
    let object = output.json();
    let id = only_session(&sandbox);
    let usage = json!({"input_tokens": 20, "output_tokens": 10, "cached_tokens": object["usage"]["cached_tokens"]});
    let expect = json!({"session_id": id, "reply": "one file", "stop_reason": "end", "pending": [], "usage": usage});
    assert_eq!(object, expect);
    assert_status_lines(&output);
    server.assert_done();
}

/// SPEC 10.3: `--output jsonl` is the export, line by line, as it happens.
#[test]
fn jsonl_is_the_export() {
    let server = FakeServer::script([
        Reply::call("c1", "glob", json!({"pattern": "*.txt"})),
        Reply::text("one file"),
    ]);
    let sandbox = Sandbox::with_model(&server).file("a.txt", "");
    let output = sandbox.run(&["-p", "what is here?", "--output", "jsonl"]).success();
    let id = only_session(&sandbox);
    assert_eq!(output.json_lines(), export(&sandbox, &id));
    let expect =
        "turn_started user assistant tool_call usage call_gated call_started tool_result assistant usage turn_ended";
    assert_eq!(kinds(&output.json_lines()), expect);
    for (n, event) in output.json_lines().iter().enumerate() {
        assert_eq!((&event["session"], &event["seq"]), (&json!(id), &json!(n + 1)));
        assert!(event["content"].is_string(), "{event}");
    }
}

/// SPEC 10.3: piped input goes along as context; with `-p -` it is the prompt itself.
#[test]
fn standard_input() {
    let server = FakeServer::script([Reply::text("fine"), Reply::text("fine"), Reply::text("fine")]);
    let sandbox = Sandbox::with_model(&server);
    sandbox.run_with_input(&["-p", "review this"], "+ a line\n").success();
    sandbox.run_with_input(&["-p", "-"], "the whole question\n").success();
    sandbox.run_with_input(&["-p", "nothing piped"], "").success();
    let requests = server.requests();
    let last: Vec<String> = requests.iter().map(support::fake_server::Received::last_text).collect();
    assert!(
        last[0].contains("+ a line") && last[0].contains("review this"),
        "{last:?}"
    );
    assert_eq!(last[1].trim_end(), "the whole question");
    assert_eq!(last[2], "nothing piped");
    assert!(requests.iter().all(|request| request.roles() == "system user"));
}

/// SPEC 10.3: `--model` chooses among the configured; one that is not there is a usage error naming those that are.
#[test]
fn model_is_chosen() {
    let (first, second) = (FakeServer::builder().start(), says("from the second"));
    let sandbox = Sandbox::with_model(&first).config(&format!(
        "[models.second]\nprovider = \"openai-chat\"\nbase_url = \"{}\"\nmodel = \"m2\"",
        second.base_url()
    ));
    let output = sandbox.run(&["-p", "hi", "--model", "second"]).success();
    assert_eq!(output.stdout, "from the second\n");
    assert_eq!(second.only_request().json["model"], "m2");
    let output = sandbox.run(&["-p", "hi", "--model", "third"]).exits(2);
    assert!(
        output.stderr.contains("third") && output.stderr.contains("second"),
        "{output:?}"
    );
    assert_status_lines(&output);
    first.assert_done();
}

/// SPEC 10.3, 6.7: `--no-tools` sends no `tools` field at all.
#[test]
fn no_tools() {
    let server = says("ok");
    Sandbox::with_model(&server).run(&["-p", "hi", "--no-tools"]).success();
    let request = server.only_request();
    assert!(request.json.get("tools").is_none() && request.json.get("tool_choice").is_none());
}

/// SPEC 10.3: `--cd` is where the tools work.
#[test]
fn works_in_another_directory() {
    let server = FakeServer::script([
        Reply::call("c1", "file_read", json!({"path": "note.txt"})),
        Reply::text("ok"),
    ]);
    let sandbox = Sandbox::with_model(&server).file("sub/note.txt", "remember the milk");
    sandbox.run(&["-p", "read it", "--cd", "sub"]).success();
    assert!(server.requests()[1].last_text().contains("remember the milk"));
    let output = sandbox.run(&["-p", "hi", "--cd", "nowhere"]).exits(2);
    assert!(output.stderr.contains("nowhere"), "{output:?}");
}

/// SPEC 5.2, 10.3: `--approval` decides what runs unasked: nothing of this in `ask`, the write in `auto`, all in `full`.
#[test]
fn approval_modes() {
    let write = json!({"path": "made.txt", "content": "x"});
    let command = json!({"command": "touch ran.txt"});
    let table = [
        ("ask", "file_write", &write, 3),
        ("auto", "file_write", &write, 0),
        ("full", "file_write", &write, 0),
        ("ask", "bash", &command, 3),
        ("auto", "bash", &command, 3),
        ("full", "bash", &command, 0),
    ];
    for (mode, tool, arguments, code) in table {
        let server = FakeServer::builder().reply(Reply::call("c1", tool, arguments.clone()));
        let server = server.otherwise(|_| Reply::text("done")).start();
        let sandbox = Sandbox::with_model(&server);
        let output = sandbox.run(&["-p", "do it", "--approval", mode]).exits(code);
        let file = if tool == "bash" { "ran.txt" } else { "made.txt" };
        assert_eq!(sandbox.path(file).exists(), code == 0, "{mode} {tool}: {output:?}");
    }
}

/// SPEC 10.2: a wrong command line is 2, before anything is sent or written.
#[test]
fn wrong_usage() {
    let server = FakeServer::builder().start();
    let sandbox = Sandbox::with_model(&server);
    for arguments in [
        &["-p"][..],
        &["--nonsense"],
        &["-p", "hi", "--output", "xml"],
        &["-p", "hi", "--approval", "yolo"],
        &["-p", "hi", "--continue", "--resume", "x"],
        &["-p", "hi", "--resume", "0198ffff"],
        &["-p", "hi", "--continue"],
        &["-p", "hi", "--config", "not-there.toml"],
    ] {
        let output = sandbox.run(arguments).exits(2);
        assert!(
            !output.stderr.is_empty() && output.stdout.is_empty(),
            "{arguments:?}: {output:?}"
        );
    }
    assert!(server.requests().is_empty());
}

/// SPEC 8.8: an escape byte from the model reaches the terminal as text, in the reply and in the line about a call.
#[test]
fn escape_bytes_are_shown() {
    let server = FakeServer::script([
        Reply::call("c1", "glob", json!({"pattern": "\u{1b}]0;owned\u{7}*.txt"})),
        Reply::text("a\u{1b}[31mred\u{1b}[0m\u{202e}b"),
    ]);
    let output = Sandbox::with_model(&server).run(&["-p", "hi"]).success();
    let control = |c: char| c.is_control() && c != '\n';
    assert!(!output.stdout.contains(control), "{output:?}");
    assert!(!output.stderr.contains(|c| control(c) || c == '\u{202e}'), "{output:?}");
    assert!(output.stdout.contains("\\x1b[31mred"), "{output:?}");
}

/// SPEC 10.4: what a call did is told on stderr, in a status line.
#[test]
fn calls_are_told() {
    let server = FakeServer::script([
        Reply::call("c1", "glob", json!({"pattern": "*.txt"})),
        Reply::text("ok"),
    ]);
    let sandbox = Sandbox::with_model(&server).file("a.txt", "").file("b.txt", "");
    let output = sandbox.run(&["-p", "hi"]).success();
    assert_eq!(output.stdout, "ok\n");
    assert_eq!(output.stderr, "[aish] glob(pattern=\"*.txt\"): 2 files found\n");
}

fn with_key(server: &FakeServer) -> Sandbox {
    Sandbox::with_model(server)
        .config("key_env = \"FAKE_KEY\"")
        .env("FAKE_KEY", KEY)
}

/// SPEC 10.5, 12: the key goes into one header and nowhere else, not even when a tool is asked to print it.
#[test]
fn the_key_goes_to_its_provider_alone() {
    let server = FakeServer::builder()
        .key(KEY)
        .strict(Strictness::Api)
        .reply(Reply::call(
            "c1",
            "bash",
            json!({"command": "env; echo got:$FAKE_KEY:"}),
        ))
        .reply(Reply::call("c2", "bash", json!({"command": format!("true {KEY}")})))
        .reply(Reply::text("done"))
        .start();
    let sandbox = with_key(&server);
    let output = sandbox.run(&["-p", "hi", "--approval", "full"]).success();
    for request in server.requests() {
        assert_eq!(request.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
        let others = request.headers.iter().filter(|(name, _)| name != "authorization");
        assert!(
            others.clone().all(|(_, value)| !value.contains(KEY)),
            "{:?}",
            request.headers
        );
    }
    // The environment of a tool has no key of ours (SPEC 6.11).
    let events = only_export(&sandbox);
    let first = of_kind(&events, "tool_result")[0].to_string();
    assert!(first.contains("got::") && !first.contains(KEY), "{first}");
    assert!(!output.stderr.contains(KEY), "{output:?}");
    server.assert_done();
}

/// SPEC 10.5, 12: a key that got into the conversation leaves in no reply, status or export.
#[test]
fn a_key_in_the_conversation_is_redacted_on_its_way_out() {
    for format in ["text", "json", "jsonl"] {
        let server = FakeServer::script([
            Reply::call("c1", "file_read", json!({"path": "dump.txt"})),
            Reply::stream().says("the key is ").says(KEY).finish("stop").done(),
        ]);
        let sandbox = with_key(&server).file("dump.txt", format!("key={KEY}\n"));
        let output = sandbox.run(&["-p", "hi", "--output", format]).success();
        let id = only_session(&sandbox);
        let export = sandbox.run(&["sessions", "export", &id]).success();
        let markdown = sandbox
            .run(&["sessions", "export", &id, "--format", "markdown"])
            .success();
        for (what, run) in [("the run", output), ("the export", export), ("the Markdown", markdown)] {
            assert!(!run.stdout.contains(KEY), "{format}: stdout of {what}: {}", run.stdout);
            assert!(!run.stderr.contains(KEY), "{format}: stderr of {what}: {}", run.stderr);
        }
    }
}

/// SPEC 11: our system prompt and our tools add little to a request.
#[test]
fn a_request_is_small() {
    let server = says("ok");
    Sandbox::with_model(&server).run(&["-p", "hi"]).success();
    let request = server.only_request();
    assert!(request.tool_names().contains(&"bash"));
    let bytes = request.body.len();
    assert!(bytes <= REQUEST_BYTES_MAX, "{bytes} bytes: {}", request.json);
}

/// SPEC 2.8: `--continue` and `--resume` send the whole conversation.
#[test]
fn goes_on_with_a_session() {
    let server = FakeServer::builder()
        .strict(Strictness::Template)
        .reply(Reply::text("one"))
        .reply(Reply::text("two"))
        .reply(Reply::text("three"))
        .start();
    let sandbox = Sandbox::with_model(&server);
    sandbox.run(&["-p", "first"]).success();
    let id = only_session(&sandbox);
    let output = sandbox.run(&["-p", "second", "--continue"]).success();
    assert_eq!(
        (output.stdout.as_str(), output.stderr.as_str()),
        ("two\n", "[aish] session restored: 2 messages\n")
    );
    sandbox.run(&["--resume", &id, "-p", "third"]).success();
    assert_eq!(
        server.requests()[2].roles(),
        "system user assistant user assistant user"
    );
    assert_eq!(only_session(&sandbox), id);
    server.assert_done();
}

/// A server that takes a second question after whatever came first, if the request is fit for a strict template.
fn then_continues(sandbox: &Sandbox, server: &FakeServer) {
    server.push(Reply::text("going on"));
    let output = sandbox.run(&["-p", "and now?", "--continue"]).success();
    assert_eq!(output.stdout, "going on\n");
    server.assert_done();
}

/// SPEC 3.7, 10.2: an interrupt in the middle of a reply keeps what was shown, closes the turn and exits 130.
#[test]
fn interrupted_while_the_model_speaks() {
    let half = Reply::stream().says("half of it\n").stalls();
    let server = FakeServer::builder().strict(Strictness::Template).reply(half).start();
    let sandbox = Sandbox::with_model(&server);
    let run = sandbox.start(&["-p", "hi"]);
    run.wait_for_stdout("half of it");
    run.signal(Signal::INT);
    let output = run.finish().exits(130);
    assert_eq!(output.stdout, "half of it\n");
    assert_status_lines(&output);
    let events = only_export(&sandbox);
    assert_eq!(end_of_last_turn(&events), "cancelled");
    assert!(text(&of_kind(&events, "assistant")[0]["content"]).contains("half of it"));
    assert_eq!(last_words(&events), "[stopped: interrupted by the user]");
    then_continues(&sandbox, &server);
}

/// SPEC 3.7, 10.2, 12: a signal that ends the program ends its command too, with all its children, and closes the turn.
#[test]
fn told_to_end_while_a_command_runs() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let command = json!({"command": "echo run >> started; sleep 600 & sleep 600"});
        let server = FakeServer::builder()
            .strict(Strictness::Template)
            .reply(Reply::call("c1", "bash", command))
            .start();
        let sandbox = Sandbox::with_model(&server);
        let run = sandbox.start(&["-p", "hi", "--approval", "full"]);
        let started = sandbox.path("started");
        support::poll_until("the command", support::default_wait(), || {
            started.exists().then_some(())
        });
        run.signal(signal);
        run.finish().exits(130);
        sandbox.assert_nothing_runs();
        let events = only_export(&sandbox);
        assert_eq!(of_kind(&events, "turn_ended")[0]["data"]["reason"], "cancelled");
        let result = of_kind(&events, "tool_result")[0];
        let expect = (&json!(false), &json!("interrupted"));
        assert_eq!((&result["data"]["success"], &result["data"]["end"]), expect);
        then_continues(&sandbox, &server);
        assert_eq!(std::fs::read_to_string(started).unwrap(), "run\n", "{signal:?}");
    }
}

/// SPEC 2.12: a session that is being driven elsewhere is not driven here too; who has it is said.
#[test]
fn one_driver_at_a_time() {
    let server = FakeServer::builder()
        .strict(Strictness::Template)
        .reply(Reply::stream().says("slow\n").stalls());
    let server = server.start();
    let sandbox = Sandbox::with_model(&server);
    let run = sandbox.start(&["-p", "hi"]);
    run.wait_for_stdout("slow");
    let id = only_session(&sandbox);
    for arguments in [&["-p", "me too", "--continue"][..], &["resume", &id]] {
        let output = sandbox.run(arguments).exits(1);
        let who = format!("process {}", run.pid().as_raw_nonzero());
        assert!(output.stderr.contains(&who), "{who} in {output:?}");
    }
    run.signal(Signal::INT);
    run.finish().exits(130);
    assert_eq!(server.requests().len(), 1);
    then_continues(&sandbox, &server);
}

/// SPEC 2.5: a reader of the output that goes away does not end the turn.
#[test]
fn nobody_reads_the_output() {
    let server = says("a long answer\n");
    let sandbox = Sandbox::with_model(&server);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = sandbox.command(&["-p", "hi"]);
    command.stdin(std::process::Stdio::null()).stdout(writer);
    assert!(command.status().unwrap().success());
    assert_eq!(end_of_last_turn(&only_export(&sandbox)), "end");
}

/// SPEC 3.8: arguments that are no JSON are answered, not run; the request that follows carries a repaired form.
#[test]
fn broken_arguments_are_answered() {
    let broken = Reply::stream()
        .call_begins(0, "c1", "bash")
        .call_arguments(0, r#"{"command": "touch ran"#)
        .finish("tool_calls")
        .done();
    let server = FakeServer::script([broken, Reply::text("sorry")]);
    let sandbox = Sandbox::with_model(&server);
    let output = sandbox.run(&["-p", "hi", "--approval", "full"]).success();
    assert!(output.stderr.contains("Invalid JSON arguments"), "{output:?}");
    assert!(!sandbox.path("ran").exists());
    assert!(server.requests()[1].last_text().contains("Invalid JSON arguments"));
    server.assert_done();
}

/// SPEC 3.9: a tool nobody has is an error for the model, and the loop goes on.
#[test]
fn unknown_tools_are_answered() {
    let server = FakeServer::script([Reply::call("c1", "teleport", json!({})), Reply::text("then not")]);
    let output = Sandbox::with_model(&server).run(&["-p", "hi"]).success();
    assert_eq!(output.stdout, "then not\n");
    let answer: Value = serde_json::from_str(&server.requests()[1].last_text()).unwrap();
    assert_eq!(answer, json!({"error": "Unknown tool: teleport"}));
}
