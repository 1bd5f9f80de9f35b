//! What holds after a call to a server that does wrong, at a prompt and in a pipe.

use crate::support::fake_server::FakeServer;
use crate::support::mcp::{McpServer, Script, Transport};
use crate::support::processes::peak_memory_kib;
use crate::support::pty::{Terminal, key};
use crate::support::reply::Reply;
use crate::support::sandbox::{Output, Sandbox};
use crate::support::strict::Strictness;
use serde_json::json;
use std::time::Duration;

/// The most memory over idle that a server may cost, in KiB (SPEC 12).
pub const MEMORY_KIB_MAX: u64 = 100 << 10;

/// How long a call may take that reads a flood first.
const SLOW_CALL: Duration = Duration::from_secs(90);

/// What the model says when a call was answered, and when there was none.
pub const CAME_BACK: &str = "it came back";
pub const STILL_HERE: &str = "still here";

/// What is to come of a call.
pub struct Expect<'a> {
    /// This is in what the model is told.
    result: &'a str,
    /// This is in the one status line about the tool; there is none for a result that is no error.
    status: Option<&'a str>,
}

impl<'a> Expect<'a> {
    /// The result, and nothing to tell the person.
    pub fn result(result: &'a str) -> Self {
        Self { result, status: None }
    }

    /// An error for the model with these words, and a status line that has them.
    pub fn error(words: &'a str) -> Self {
        Self {
            result: words,
            status: Some(words),
        }
    }
}

/// A model that calls the first tool of the server `bad`, or of `good`, where the question says so, and else is still there.
pub fn model() -> FakeServer {
    FakeServer::builder()
        .strict(Strictness::Api)
        .otherwise(|request| {
            let last = request.messages().last();
            let tool = request
                .tool_names()
                .into_iter()
                .find(|name| name.starts_with("bad__") || *name == "good__t");
            if last.is_some_and(|message| message["role"] == "tool") {
                Reply::text(CAME_BACK)
            } else if let (Some(tool), true) = (tool, request.last_text().contains("call it")) {
                Reply::call("c1", tool, json!({}))
            } else {
                Reply::text(STILL_HERE)
            }
        })
        .start()
}

/// What the model was told of the last call.
pub fn told(model: &FakeServer) -> String {
    let requests = model.requests();
    let messages = requests.iter().flat_map(|request| request.messages().iter());
    let mut results = messages.filter(|message| message["role"] == "tool");
    let last = results.next_back().expect("a result went to the model");
    last["content"].as_str().expect("a result is text").to_owned()
}

/// A sandbox in which the server's tools may be called. What it offered is remembered, so that the model has it at once.
pub fn sandbox(server: &McpServer, model: &FakeServer, keys: &str) -> Sandbox {
    let approved = "[mcp.auto_approve]\n\"bad.*\" = true";
    let config = format!("{}{keys}\n{approved}", server.config("bad"));
    let sandbox = Sandbox::with_model(model).config(&config);
    let tools = sandbox.run(&["mcp", "tools"]).success();
    assert!(tools.stdout.contains("bad."), "{tools:?}");
    sandbox
}

/// A terminal on which one question was answered, and the memory that took, in KiB.
pub fn at_the_prompt(sandbox: &Sandbox) -> (Terminal, u64) {
    let terminal = sandbox.terminal(&[]).size(40, 160).start();
    terminal.wait_for_prompt();
    terminal.send_line("hello");
    terminal.wait_for_text(STILL_HERE);
    terminal.wait_for_prompt();
    let idle_kib = peak_memory_kib(terminal.pid()).unwrap();
    (terminal, idle_kib)
}

/// Types a line that has not been on the screen before, and waits for the prompt after it.
pub fn say(terminal: &Terminal, line: &str) {
    terminal.send_line(line);
    terminal.wait_for(&format!("the prompt after {line:?}"), |screen| {
        let contents = screen.contents();
        contents.rsplit_once(line).is_some_and(|(_, after)| after.contains('❯'))
    });
}

/// At a prompt: what was expected comes of a call, and then the prompt answers, memory is bounded, and nothing is left running.
pub fn at_a_prompt(transport: Transport, script: Script, keys: &str, expect: &Expect) {
    let server = McpServer::start(transport, script);
    let model = model();
    let sandbox = sandbox(&server, &model, keys);
    let (mut terminal, idle_kib) = at_the_prompt(&sandbox);
    terminal.send_line("call it");
    terminal.wait_for_within(SLOW_CALL, "the call is over", |screen| {
        screen.contents().contains(CAME_BACK)
    });
    terminal.wait_for_prompt();
    terminal.send_line("and now?");
    terminal.wait_for("the prompt still answers", |screen| {
        screen.contents().matches(STILL_HERE).count() == 2
    });
    terminal.wait_for_prompt();
    let grown_kib = peak_memory_kib(terminal.pid()).unwrap().saturating_sub(idle_kib);
    assert!(grown_kib <= MEMORY_KIB_MAX, "{transport:?}: {grown_kib} KiB more");
    terminal.send(key::CTRL_D);
    assert_eq!(terminal.wait_exit().code(), Some(0));
    assert_told(&model, &terminal.history_text(), expect);
    sandbox.assert_nothing_runs();
}

/// In a pipe: the same, and the session goes on.
pub fn in_a_pipe(transport: Transport, script: Script, keys: &str, expect: &Expect) -> Output {
    let server = McpServer::start(transport, script);
    let model = model();
    let sandbox = sandbox(&server, &model, keys);
    let output = sandbox.run(&["-p", "call it"]).success();
    assert_eq!(output.stdout, format!("{CAME_BACK}\n"), "{output:?}");
    assert_told(&model, &output.stderr, expect);
    let next = sandbox.run(&["-p", "and now?", "--continue"]).success();
    assert_eq!(next.stdout, format!("{STILL_HERE}\n"));
    sandbox.assert_nothing_runs();
    output
}

fn assert_told(model: &FakeServer, shown: &str, expect: &Expect) {
    let told = told(model);
    assert!(
        told.contains(expect.result),
        "the model was told {told}, not {:?}",
        expect.result
    );
    let lines: Vec<&str> = shown
        .lines()
        .filter(|line| line.contains("[aish] mcp: bad.t: "))
        .collect();
    let is_right = match expect.status {
        None => lines.is_empty(),
        Some(status) => lines.len() == 1 && lines.iter().all(|line| line.contains(status)),
    };
    assert!(is_right, "{:?} once in {shown}", expect.status);
    if expect.status.is_some() {
        assert!(told.starts_with("{\"error\":"), "an error for the model: {told}");
    }
    assert_eq!(model.problems(), Vec::<String>::new());
}
