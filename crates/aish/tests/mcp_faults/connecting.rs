//! Servers that do wrong while they are connected to, all of them at once, beside one that does right.

use crate::check::{CAME_BACK, MEMORY_KIB_MAX, at_the_prompt, model, say, told};
use crate::support::mcp::{McpServer, PROTOCOL, Say, Script, TRANSPORTS, Transport, tool};
use crate::support::poll_until;
use crate::support::processes::peak_memory_kib;
use crate::support::pty::key;
use crate::support::sandbox::Sandbox;
use crate::{ENDLESS, PIECE_BYTES, log_line};
use serde_json::{Value, json};
use std::time::Duration;

/// Pages of a list that are asked for, and things of it that are kept.
const PAGES_MAX: usize = 100;
const ITEMS_MAX: usize = 2_000;

/// How long until each has had its limit, some of them twice, and has been told.
const A_LINE_EACH: Duration = Duration::from_secs(60);

/// What is said of a server that does not say who it is.
const NO_GREETING: &str = "no answer to initialize in time";

/// One way of doing wrong, and words of what is told of it over a pipe and over HTTP.
struct Fault {
    script: Script,
    said: [&'static str; 2],
}

/// A server that answers `initialize` so.
fn greets(said: [&'static str; 2], answer: impl Fn(&Value) -> Vec<Say> + Send + Sync + 'static) -> Fault {
    let script = Script::with_tool("t").on("initialize", move |message| answer(&message["id"]));
    Fault { script, said }
}

/// Every way of doing wrong.
fn faults() -> Vec<Fault> {
    let about = |version: &str| json!({"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}});
    let long = |id: &Value| {
        let before = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":""#);
        vec![Say::Long(before, vec![b'x'; PIECE_BYTES], 100, "\"}}".to_owned())]
    };
    let unlisted = Script::with_tool("t").on("tools/list", |_| vec![Say::Nothing]);
    vec![
        greets([NO_GREETING; 2], |_| vec![Say::Nothing]),
        greets(["its program ended", "the connection ended before an answer"], |_| {
            vec![Say::Death]
        }),
        greets([NO_GREETING, "it is no JSON: no server here"], |_| {
            vec![Say::Garbage(b"no server here\n".to_vec())]
        }),
        greets(["no, never"; 2], |id| vec![Say::error(id, -32_603, "no, never")]),
        greets(
            ["its answer is longer than", "it sent an answer of more than 8 MB"],
            long,
        ),
        greets([NO_GREETING; 2], |_| vec![Say::Many(log_line(), ENDLESS)]),
        greets([NO_GREETING; 2], move |_| {
            vec![Say::result(&json!(4_711), about(PROTOCOL)), Say::Nothing]
        }),
        greets(["it speaks version 1999-01-01"; 2], move |id| {
            vec![Say::result(id, about("1999-01-01"))]
        }),
        Fault {
            script: unlisted,
            said: ["no answer to tools/list within 6 s"; 2],
        },
    ]
}

/// SPEC 6.2, 6.4, 6.6, 12: each is one status line; the prompt and the server that does right answer all the while, memory is bounded and
/// nothing is left running.
#[test]
fn many_bad_servers_and_a_good_one() {
    for (at, transport) in TRANSPORTS.into_iter().enumerate() {
        let faults = faults();
        let said: Vec<&str> = faults.iter().map(|fault| fault.said[at]).collect();
        let servers: Vec<McpServer> = faults
            .into_iter()
            .map(|fault| McpServer::start(transport, fault.script))
            .collect();
        let good = McpServer::start(transport, Script::with_tool("t"));
        let mut config: String = servers
            .iter()
            .enumerate()
            .map(|(number, server)| format!("{}timeout_s = 6\n", server.config(&format!("wrong{number}"))))
            .collect();
        config.push_str(&good.config("good"));
        config.push_str("[mcp.auto_approve]\n\"good.t\" = true");
        let model = model();
        let sandbox = Sandbox::with_model(&model).config(&config);
        let (mut terminal, idle_kib) = at_the_prompt(&sandbox);
        // What happened meanwhile is told before the next prompt.
        let mut question = 0;
        poll_until("a line for each", A_LINE_EACH, || {
            question += 1;
            say(&terminal, &format!("question {question}."));
            let shown = terminal.history_text();
            let is_told = |number: usize| shown.contains(&format!("[aish] mcp: wrong{number}: "));
            (0..servers.len()).all(is_told).then_some(())
        });
        terminal.send_line("call it");
        terminal.wait_for_text(CAME_BACK);
        terminal.wait_for_prompt();
        let grown_kib = peak_memory_kib(terminal.pid()).unwrap().saturating_sub(idle_kib);
        assert!(grown_kib <= MEMORY_KIB_MAX, "{transport:?}: {grown_kib} KiB more");
        terminal.send(key::CTRL_D);
        assert_eq!(terminal.wait_exit().code(), Some(0));
        assert_eq!(told(&model), "fine");
        let shown = terminal.history_text();
        for (number, said) in said.iter().enumerate() {
            let begin = format!("[aish] mcp: wrong{number}: ");
            let lines: Vec<&str> = shown.lines().filter(|line| line.contains(&begin)).collect();
            assert!(
                lines.len() == 1 && lines[0].contains(said),
                "{transport:?} {number}: {shown}"
            );
        }
        sandbox.assert_nothing_runs();
    }
}

/// SPEC 6.4, 12: a list of tools that never ends, on page after page, is read to a bound, and so is one page of very many.
#[test]
fn lists_without_end() {
    let pages = Script::with_tool("t").on("tools/list", |message| {
        let cursor = message["params"]["cursor"].as_str().unwrap_or_default();
        let page =
            json!({"tools": [tool(&format!("t{}", cursor.len()), "one more")], "nextCursor": format!("{cursor}x")});
        vec![Say::result(&message["id"], page)]
    });
    let same = Script::with_tool("t").on("tools/list", |message| {
        let page = json!({"tools": [tool("t", "the same again")], "nextCursor": "again"});
        vec![Say::result(&message["id"], page)]
    });
    let many = (0..5_000)
        .map(|number| tool(&format!("t{number}"), "one of many"))
        .collect();
    for (script, tools_max) in [(pages, PAGES_MAX), (same, 1), (Script::with_tools(many), ITEMS_MAX)] {
        let server = McpServer::start(Transport::Http, script);
        let sandbox = Sandbox::new().config(&server.config("bad"));
        let listed = sandbox.run(&["mcp", "tools"]).success();
        let count = listed.stdout.lines().filter(|line| line.starts_with("bad.t")).count();
        assert!((1..=tools_max).contains(&count), "{count} tools; {}", listed.stderr);
        let asked = server.methods().iter().filter(|method| *method == "tools/list").count();
        assert!(asked <= PAGES_MAX, "{asked} pages");
        sandbox.assert_nothing_runs();
    }
}
