//! Calls that a person ends, and ends of the program itself: what the server hears, and that nothing of it is left.

use crate::check::{CAME_BACK, STILL_HERE, at_the_prompt, model, sandbox, told};
use crate::support::mcp::{McpServer, Say, Script, TRANSPORTS, Transport};
use crate::support::pty::{Signal, key};
use crate::support::sandbox::Sandbox;
use crate::support::{default_wait, poll_until};
use serde_json::Value;

/// SPEC 12, 6.9: Ctrl-C ends a call that is not answered: the server is told which one, the prompt is back, and the next call of
/// the same server is answered.
#[test]
fn ctrl_c_during_a_call() {
    for transport in TRANSPORTS {
        let is_first = std::sync::atomic::AtomicBool::new(true);
        let script = Script::with_tool("t").on_call(move |id| {
            if is_first.swap(false, std::sync::atomic::Ordering::SeqCst) {
                vec![Say::Nothing]
            } else {
                vec![Say::text(id, "the second time")]
            }
        });
        let server = McpServer::start(transport, script);
        let model = model();
        let sandbox = sandbox(&server, &model, "");
        let (mut terminal, _) = at_the_prompt(&sandbox);
        terminal.send_line("call it");
        let call = wait_for(&server, "tools/call");
        terminal.send(key::CTRL_C);
        terminal.wait_for_prompt();
        let cancelled = wait_for(&server, "notifications/cancelled");
        assert_eq!(cancelled["params"]["requestId"], call["id"], "{transport:?}");
        terminal.send_line("call it again");
        terminal.wait_for_text(CAME_BACK);
        terminal.wait_for_prompt();
        assert_eq!(told(&model), "the second time");
        terminal.send(key::CTRL_D);
        assert_eq!(terminal.wait_exit().code(), Some(0));
        sandbox.assert_nothing_runs();
        assert_eq!(model.problems(), Vec::<String>::new());
    }
}

/// The first message of that method, when it has been heard.
fn wait_for(server: &McpServer, method: &str) -> Value {
    poll_until(method, default_wait(), || {
        server.heard().into_iter().find(|message| message["method"] == method)
    })
}

/// SPEC 12, 6.2: however the program ends, a server that ignores signals ends with it, and what it started in other sessions too.
#[test]
fn no_end_of_the_program_leaves_a_server() {
    let stubborn = "trap '' TERM HUP INT; \
                    (setsid sh -c 'trap \"\" TERM HUP INT; while :; do sleep 1; done' &); \
                    setsid sleep 300 &";
    for signal in [Signal::TERM, Signal::HUP, Signal::KILL] {
        let server = McpServer::start(Transport::Stdio, Script::with_tool("t").beginning(stubborn));
        let model = model();
        let sandbox = sandbox(&server, &model, "");
        sandbox.assert_nothing_runs();
        let (mut terminal, _) = at_the_prompt(&sandbox);
        terminal.send_line("call it");
        terminal.wait_for_text(CAME_BACK);
        terminal.wait_for_prompt();
        terminal.signal(signal);
        terminal.wait_exit();
        sandbox.assert_nothing_runs();
    }
}

/// SPEC 6.6, 12: a server that floods from its beginning keeps neither the prompt nor another call of its own waiting.
#[test]
fn a_flood_from_the_beginning() {
    for transport in TRANSPORTS {
        let script = Script::with_tool("t").on("notifications/initialized", |_| {
            vec![Say::Many(crate::log_line(), crate::ENDLESS)]
        });
        let server = McpServer::start(transport, script);
        let model = model();
        let sandbox = Sandbox::with_model(&model).config(&server.config("bad"));
        let (mut terminal, _) = at_the_prompt(&sandbox);
        wait_for(&server, "notifications/initialized");
        terminal.send_line("still?");
        terminal.wait_for("an answer", |screen| screen.contents().matches(STILL_HERE).count() == 2);
        terminal.wait_for_prompt();
        terminal.send(key::CTRL_D);
        assert_eq!(terminal.wait_exit().code(), Some(0));
        sandbox.assert_nothing_runs();
    }
}

/// SPEC 2.6, 3.2: a call during which the program was killed is in doubt: the model is told so, and it is not made again.
#[test]
fn killed_during_a_call() {
    for transport in TRANSPORTS {
        let server = McpServer::start(transport, Script::with_tool("t").on_call(|_| vec![Say::Nothing]));
        let model = model();
        let sandbox = sandbox(&server, &model, "");
        let (mut terminal, _) = at_the_prompt(&sandbox);
        terminal.send_line("call it");
        wait_for(&server, "tools/call");
        terminal.signal(Signal::KILL);
        terminal.wait_exit();
        sandbox.assert_nothing_runs();
        let next = sandbox.run(&["-p", "and now?", "--continue"]).success();
        assert!(next.stdout.ends_with(&format!("{STILL_HERE}\n")), "{next:?}");
        assert!(told(&model).contains("interrupted"), "{}", told(&model));
        let calls = server.methods().iter().filter(|method| *method == "tools/call").count();
        assert_eq!(calls, 1, "{transport:?}");
        assert_eq!(model.problems(), Vec::<String>::new());
    }
}

/// SPEC 5.6, 6.6: a call that was approved when its server had gone is answered with an error, whether what the server offered is
/// remembered or not, and the turn goes on.
#[test]
fn approved_when_the_server_has_gone() {
    for is_remembered in [true, false] {
        let server = McpServer::start(Transport::Http, Script::with_tool("t"));
        let model = model();
        let sandbox = Sandbox::with_model(&model).config(&server.config("bad"));
        let waiting = sandbox.run(&["-p", "call it", "--output", "json"]).exits(3).json();
        drop(server);
        if !is_remembered {
            std::fs::remove_dir_all(sandbox.home().join("cache/mcp")).unwrap();
        }
        let (id, call) = (&waiting["session_id"], &waiting["pending"][0]["call_id"]);
        let output = sandbox.run(&["resume", id.as_str().unwrap(), "--approve", call.as_str().unwrap()]);
        assert!(output.stdout.contains(CAME_BACK), "{is_remembered}: {output:?}");
        assert!(told(&model).starts_with("{\"error\":"), "{}", told(&model));
        assert!(output.stderr.contains("[aish] mcp: bad"), "{output:?}");
        assert_eq!(model.problems(), Vec::<String>::new());
        sandbox.assert_nothing_runs();
    }
}
