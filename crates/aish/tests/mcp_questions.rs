//! What servers ask while a call of theirs runs: forms, pages and models, at a terminal and where nobody is (SPEC 6.9).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use support::fake_server::FakeServer;
use support::ledger::{kinds, of_kind, only_export, text};
use support::mcp::{McpServer, Say, Script, Transport};
use support::mcp_real::RealServers;
use support::pty::{Terminal, key};
use support::reply::Reply;
use support::sandbox::Sandbox;

/// A model that calls this tool, then says that it is done.
fn calls(tool: &str, arguments: Value) -> FakeServer {
    FakeServer::script([Reply::call("c1", tool, arguments), Reply::text("all done")])
}

/// A sandbox with that server, whose calls need no approval.
fn sandbox(model: &FakeServer, server: &str) -> Sandbox {
    Sandbox::with_model(model)
        .config(server)
        .config("[mcp.auto_approve]\n\"s.*\" = true\n")
}

/// The prompt, with the tools of the server there, after a line that makes the model call one.
fn asked(sandbox: &Sandbox, tool: &str) -> Terminal {
    let terminal = sandbox.terminal(&[]).size(50, 100).start();
    terminal.wait_for_prompt();
    wait_for_tool(&terminal, tool);
    terminal.send_line("do it");
    terminal
}

/// Waits until the server offers it: a call of a tool that is not there yet would be refused, and server-everything has its
/// asking tools only when it knows what the client can do.
fn wait_for_tool(terminal: &Terminal, tool: &str) {
    let mut refusals = 0;
    loop {
        terminal.send_line(&format!(":mcp tool {tool}"));
        let is_there = support::poll_until("an answer of :mcp tool", support::default_wait(), || {
            let history = terminal.history_text();
            let refused = history.matches("there is no tool").count();
            if history.contains("\"type\"") {
                Some(true)
            } else {
                (refused > refusals).then_some(false)
            }
        });
        if is_there {
            return;
        }
        refusals += 1;
        terminal.wait_for_prompt();
    }
}

/// What the model was given as the result of the call.
fn result(model: &FakeServer) -> String {
    let requests = model.wait_for_requests(2);
    let messages = requests[1].messages().to_vec();
    let tool = messages.iter().find(|message| message["role"] == "tool").unwrap();
    text(&tool["content"]).to_owned()
}

/// The one answered question of the session: what was asked, and how it was answered.
fn question(sandbox: &Sandbox) -> (Value, Value) {
    let events = only_export(sandbox);
    let asked = of_kind(&events, "server_asked");
    let answered = of_kind(&events, "server_answered");
    assert_eq!((asked.len(), answered.len()), (1, 1), "{}", kinds(&events));
    let (asked, answered) = (asked[0]["data"].clone(), answered[0]["data"].clone());
    assert_eq!(asked["call_id"], "call_1_1");
    assert_eq!(
        (&answered["call_id"], &answered["question"]),
        (&asked["call_id"], &asked["question"])
    );
    (asked, answered)
}

/// SPEC 6.9, 2.4: a form of a real server, with every kind of field, is filled in at the prompt; what was asked and sent is in the
/// ledger, inside the call.
#[test]
fn a_form_of_server_everything() {
    let Some(servers) = RealServers::installed() else {
        return;
    };
    let model = calls("s__trigger-elicitation-request", json!({}));
    let sandbox = sandbox(&model, &servers.everything("s"));
    let terminal = asked(&sandbox, "s.trigger-elicitation-request");
    terminal.wait_for_text("mcp: s asks:");
    terminal.wait_for_text("answer it? [y/N]");
    terminal.send_line("y");
    let mut fields = 0;
    loop {
        let screen = terminal.wait_for("a field or the end", |screen| {
            let text = screen.contents();
            text.trim_end().ends_with(':') || text.contains("send it? [Y/n]")
        });
        if screen.contains("send it? [Y/n]") {
            break;
        }
        fields += 1;
        let of = format!("{fields} of ");
        let at = screen.rfind(&of).unwrap_or_else(|| panic!("field {fields}: {screen}"));
        let about = &screen[at..];
        let typed = match about {
            _ if about.contains("required") && about.contains("text") => "Ada",
            _ if about.contains("email") => "ada@example.com",
            _ => "",
        };
        terminal.send_line(typed);
        terminal.wait_for("the next field", |screen| {
            let text = screen.contents();
            text.contains(&format!("\n{} of ", fields + 1)) || text.contains("send it? [Y/n]")
        });
    }
    assert!(fields > 8, "{fields}");
    terminal.send_line("");
    terminal.wait_for_text("all done");
    let result = result(&model);
    assert!(result.contains("Ada"), "{result}");
    let (asked, answered) = question(&sandbox);
    assert_eq!(
        (text(&asked["wants"]), text(&answered["outcome"])),
        ("form", "accepted")
    );
    assert!(answered["sent"].to_string().contains("Ada"), "{answered}");
    model.assert_done();
}

/// SPEC 6.9: where nobody is, a question of the older protocols is declined at once, and a line says who asked what.
#[test]
fn nobody_is_there() {
    let Some(servers) = RealServers::installed() else {
        return;
    };
    let fastmcp = servers.fastmcp();
    let model = calls("s__ask_user", json!({ "question": "Which colour?" }));
    let config = format!("{}protocol = \"2025-11-25\"\nrequired = true\n", fastmcp.config("s"));
    let sandbox = sandbox(&model, &config);
    let output = sandbox.run(&["-p", "do it"]).success();
    assert!(output.stdout.contains("all done"), "{output:?}");
    let line = "nobody is here to answer, declined";
    assert!(
        output.stderr.contains("[aish] mcp: s asks: Which colour?; ") && output.stderr.contains(line),
        "{output:?}"
    );
    let (_, answered) = question(&sandbox);
    assert_eq!(
        (text(&answered["outcome"]), text(&answered["reason"])),
        ("declined", line)
    );
}

/// SPEC 6.9: a page is opened in the person's browser, and only after a yes; the server hears of it.
#[test]
fn a_page_of_server_everything() {
    let Some(servers) = RealServers::installed() else {
        return;
    };
    let model = calls(
        "s__trigger-url-elicitation",
        json!({ "url": "https://example.com/log in?a=$(b)" }),
    );
    let sandbox =
        sandbox(&model, &servers.everything("s")).file("browser", "#!/bin/sh\nprintf '%s\\n' \"$@\" > opened\n");
    let browser = sandbox.path("browser");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&browser, mode).unwrap();
    let sandbox = sandbox.env("BROWSER", browser.to_str().unwrap());
    let terminal = asked(&sandbox, "s.trigger-url-elicitation");
    terminal.wait_for_text("open it? [y/N]");
    let screen = terminal.screen_text();
    assert!(
        screen.contains("mcp: s asks to open a page:") && screen.contains("host: example.com"),
        "{screen}"
    );
    assert!(!sandbox.path("opened").exists());
    terminal.send_line("y");
    terminal.wait_for_text("all done");
    let opened = std::fs::read_to_string(sandbox.path("opened")).unwrap();
    assert_eq!(opened, "https://example.com/log%20in?a=$(b)\n");
    assert!(result(&model).contains("accept"), "{}", result(&model));
    let (asked, answered) = question(&sandbox);
    assert_eq!((text(&asked["wants"]), text(&answered["outcome"])), ("url", "accepted"));
}

/// SPEC 6.9: a server that refuses a call until a page was opened (-32042) is answered the same way; the call is not made again
/// by itself.
#[test]
fn a_page_before_the_call() {
    let Some(servers) = RealServers::installed() else {
        return;
    };
    let arguments = json!({ "url": "https://example.com/", "errorPath": true });
    let model = calls("s__trigger-url-elicitation", arguments);
    let sandbox = sandbox(&model, &servers.everything("s"));
    let terminal = asked(&sandbox, "s.trigger-url-elicitation");
    terminal.wait_for_text("open it? [y/N]");
    terminal.send_line("n");
    terminal.wait_for_text("all done");
    let result = result(&model);
    assert!(result.contains("the user declined"), "{result}");
}

/// SPEC 6.9: a server's question to a model is seen and allowed by the person, and so is the answer; tokens are counted.
#[test]
fn sampling_of_server_everything() {
    let Some(servers) = RealServers::installed() else {
        return;
    };
    let model = FakeServer::script([
        Reply::call(
            "c1",
            "s__trigger-sampling-request",
            json!({ "prompt": "6 times 7?", "maxTokens": 50 }),
        ),
        Reply::stream().says("It is 42.").finish("stop").usage(11, 5).done(),
        Reply::text("all done"),
    ]);
    let sandbox = sandbox(&model, &servers.everything("s"));
    let terminal = asked(&sandbox, "s.trigger-sampling-request");
    let screen = terminal.wait_for_text("let it ask fake? [y/N/?]");
    assert!(
        screen.contains("mcp: s asks a model:") && screen.contains("6 times 7?"),
        "{screen}"
    );
    terminal.send_line("y");
    let screen = terminal.wait_for_text("send it to s? [Y/n/?]");
    assert!(
        screen.contains("fake answers:") && screen.contains("It is 42."),
        "{screen}"
    );
    terminal.send_line("");
    terminal.wait_for_text("all done");
    let requests = model.wait_for_requests(3);
    let sampled = requests[1].json.clone();
    assert!(
        sampled.get("tools").is_none() && sampled.to_string().contains("6 times 7?"),
        "{sampled}"
    );
    assert!(
        !sampled.to_string().contains("do it"),
        "nothing of the conversation goes along: {sampled}"
    );
    assert!(requests[2].json.to_string().contains("It is 42."));
    let (asked, answered) = question(&sandbox);
    assert_eq!(
        (text(&asked["wants"]), text(&answered["outcome"])),
        ("sampling", "accepted")
    );
    assert_eq!(answered["usage"]["output_tokens"], 5);
    model.assert_done();
}

/// SPEC 6.9, 6.2: a question of the stateless protocol (2026-07-28, `input_required`) is answered in the same way.
#[test]
fn a_question_in_a_result() {
    let Some(servers) = RealServers::installed() else {
        return;
    };
    let fastmcp = servers.fastmcp();
    for (protocol, line) in [("2026-07-28", "blue"), ("2025-11-25", "red")] {
        let model = calls("s__ask_user", json!({ "question": "Which colour?" }));
        let config = format!("{}protocol = \"{protocol}\"\n", fastmcp.config("s"));
        let sandbox = sandbox(&model, &config);
        let terminal = asked(&sandbox, "s.ask_user");
        terminal.wait_for_text("Which colour?");
        terminal.wait_for_text("answer it? [y/N]");
        terminal.send_line("y");
        terminal.wait_for_text("'word':");
        terminal.send_line("");
        terminal.wait_for_text("a value is needed");
        terminal.send_line(line);
        terminal.wait_for_text("send it? [Y/n]");
        terminal.send_line("y");
        terminal.wait_for_text("all done");
        assert_eq!(result(&model), format!("accept: {line}"), "{protocol}");
        question(&sandbox);
    }
}

/// SPEC 6.9, 8.7: Ctrl-C at a question stops the turn, tells the server, and gives the prompt back.
#[test]
fn ctrl_c_at_a_question() {
    let script = Script::with_tool("ask").on_call(|_id| vec![form(77, "Well?")]);
    let server = McpServer::start(Transport::Stdio, script);
    let model = FakeServer::script([Reply::call("c1", "s__ask", json!({})), Reply::text("still here")]);
    let sandbox = sandbox(&model, &server.config("s"));
    let terminal = asked(&sandbox, "s.ask");
    terminal.wait_for_text("answer it? [y/N]");
    terminal.send(key::CTRL_C);
    terminal.wait_for_text("stopped");
    terminal.wait_for_prompt();
    support::poll_until("the server hears of it", support::default_wait(), || {
        let heard = server.heard();
        let cancelled = heard
            .iter()
            .any(|message| message["method"] == "notifications/cancelled");
        let dismissed = heard
            .iter()
            .any(|message| message["id"] == 77 && message["result"]["action"] == "cancel");
        (cancelled && dismissed).then_some(())
    });
    terminal.send_line("and now?");
    terminal.wait_for_text("still here");
}

/// A form without fields, as a request of that id.
fn form(id: u64, message: &str) -> Say {
    let params = json!({ "message": message, "requestedSchema": { "type": "object", "properties": {} } });
    Say::Message(json!({ "jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params }))
}

/// What the server was answered to its question of that id.
fn action(server: &McpServer, id: u64) -> String {
    support::poll_until("an answer to the server", support::default_wait(), || {
        let heard = server.heard();
        let answer = heard
            .iter()
            .find(|message| message["id"] == id && message.get("result").is_some());
        answer.map(|answer| text(&answer["result"]["action"]).to_owned())
    })
}

/// SPEC 6.9: of questions that come at once each has its turn, and its own answer; nothing in them acts on the terminal (8.8).
#[test]
fn two_questions_at_once() {
    const EVIL: &str = "\u{1b}]0;evil\u{7}first\r";
    let call: Arc<Mutex<Value>> = Arc::default();
    let asked_in = Arc::clone(&call);
    let script = Script::with_tool("ask")
        .on_call(move |id| {
            *asked_in.lock().unwrap() = id.clone();
            vec![form(77, EVIL), form(78, "second")]
        })
        .on_message(move |message| {
            let is_last = message["id"] == 78 && message.get("result").is_some();
            is_last.then(|| vec![Say::text(&call.lock().unwrap(), "thank you")])
        });
    let server = McpServer::start(Transport::Stdio, script);
    let model = calls("s__ask", json!({}));
    let sandbox = sandbox(&model, &server.config("s"));
    let terminal = asked(&sandbox, "s.ask");
    let screen = terminal.wait_for_text("answer it? [y/N]");
    let (one, other) = if screen.contains("evil") { (77, 78) } else { (78, 77) };
    assert!(screen.contains("first") != screen.contains("second"), "{screen}");
    terminal.send_line("n");
    assert_eq!(action(&server, one), "decline");
    terminal.wait_for("the other question", |screen| {
        screen.contents().matches("answer it? [y/N]").count() == 2
    });
    terminal.send_line("y");
    terminal.wait_for_text("send it? [Y/n]");
    terminal.send_line("y");
    assert_eq!(action(&server, other), "accept");
    terminal.wait_for_text("all done");
    terminal.assert_never_wrote(b"\x1b]0;evil");
    assert_eq!(of_kind(&only_export(&sandbox), "server_answered").len(), 2);
}

/// SPEC 6.9, 5.3: a word that was begun when a server asks is typed to its end where it was begun, and answers nothing.
#[test]
fn half_a_word_is_no_answer() {
    let call: Arc<Mutex<Value>> = Arc::default();
    let asked_in = Arc::clone(&call);
    let script = Script::with_tool("ask")
        .on_call(move |id| {
            *asked_in.lock().unwrap() = id.clone();
            vec![form(77, "Well?")]
        })
        .on_message(move |message| {
            let is_answer = message["id"] == 77 && message.get("result").is_some();
            is_answer.then(|| vec![Say::text(&call.lock().unwrap(), "told")])
        });
    let server = McpServer::start(Transport::Stdio, script);
    let reply = Reply::stream().says("First ").stalls().says("second");
    let reply = reply.call_begins(0, "c1", "s__ask").call_arguments(0, "{}");
    let model = FakeServer::script([reply.finish("tool_calls").done(), Reply::text("all done")]);
    let sandbox = sandbox(&model, &server.config("s"));
    let terminal = asked(&sandbox, "s.ask");
    terminal.wait_for_text("First");
    terminal.send("thank ");
    terminal.wait_for_text("thank ▏");
    model.release();
    terminal.wait_for_text("First second");
    // The question comes in between, and waits for the last of them.
    terminal.types_below("thank ", "you for all");
    terminal.wait_for("the question", |screen| {
        screen.contents().trim_end().ends_with("answer it? [y/N]")
    });
    terminal.send_line("");
    terminal.wait_for_text("all done");
    assert_eq!(action(&server, 77), "decline");
    terminal.wait_for("the line that was begun", |screen| {
        screen.contents().trim_end().ends_with("thank you for all")
    });
}

/// SPEC 6.9: at the prompt nobody is interrupted in what they type: a question that belongs to no call is declined, and a line says
/// so.
#[test]
fn a_question_out_of_the_blue() {
    let script = Script::with_tool("ask").on("notifications/initialized", |_| vec![form(77, "Well?")]);
    let server = McpServer::start(Transport::Stdio, script);
    let model = FakeServer::script([]);
    let sandbox = sandbox(&model, &server.config("s"));
    let terminal = sandbox.terminal(&[]).size(30, 100).start();
    assert_eq!(action(&server, 77), "decline");
    terminal.wait_for_prompt();
    terminal.send_line("!echo still here");
    let screen = terminal.wait_for_text("[aish] mcp: s asks: Well?; it came while nothing was asked of it, declined");
    assert!(!screen.contains("answer it?"), "{screen}");
}

/// SPEC 6.9: how far a call has come shows, at the prompt beside its result and in a pipe as a line.
#[test]
fn progress() {
    let Some(servers) = RealServers::installed() else {
        return;
    };
    let fastmcp = servers.fastmcp();
    let config = format!("{}required = true\n", fastmcp.config("s"));
    let model = calls("s__count", json!({ "steps": 30 }));
    let in_a_pipe = sandbox(&model, &config);
    let output = in_a_pipe.run(&["-p", "count"]).success();
    assert!(
        output.stderr.contains("[aish] s.count: step 30 (30/30)\n"),
        "{output:?}"
    );
    assert_eq!(output.stdout, "all done\n");
    let model = calls("s__count", json!({ "steps": 30 }));
    let at_the_prompt = sandbox(&model, &config);
    let terminal = asked(&at_the_prompt, "s.count");
    terminal.wait_for_text("all done");
    let screen = terminal.screen_text();
    let (step, result) = (screen.find("step 30 (30/30)"), screen.find("─ counted to 30"));
    assert!(step.is_some() && step < result, "{screen}");
}
