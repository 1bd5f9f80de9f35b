//! `:mcp …` against real servers.

use crate::says;
use crate::support::fake_server::FakeServer;
use crate::support::mcp::{McpServer, Say, Script, Transport};
use crate::support::mcp_real::RealServers;
use crate::support::pty::key;
use crate::support::reply::Reply;
use crate::support::sandbox::Sandbox;

/// SPEC 6.4: servers come and go at run time; the alias is the address's or the person's; what is wrong is one line.
#[test]
fn connecting_and_disconnecting() {
    let Some(real) = RealServers::installed() else { return };
    let (events, json) = (real.fastmcp(), real.fastmcp_json());
    let sandbox = Sandbox::new();
    let mut terminal = sandbox.terminal(&[]).size(60, 120).start();
    terminal.wait_for_prompt();
    says(
        &terminal,
        ":mcp list",
        "no MCP server; `:mcp connect URL` connects to one, `aish mcp add` keeps one",
    );
    let (first, second) = (events.url(), json.url());
    says(&terminal, &format!(":mcp connect {first}"), "[aish] mcp: mcp: 8 tools");
    says(
        &terminal,
        &format!(":mcp connect {second}"),
        "[aish] mcp: mcp-2: 8 tools",
    );
    says(
        &terminal,
        &format!(":mcp connect {second} desk"),
        "[aish] mcp: desk: 8 tools",
    );
    says(
        &terminal,
        &format!(":mcp connect {second} desk"),
        "[aish] a server named desk is there already",
    );
    says(
        &terminal,
        &format!(":mcp connect {second} Desk"),
        "[aish] an alias begins with a small letter; then small letters, digits, _ and - follow, 40 at most",
    );
    says(
        &terminal,
        ":mcp connect localhost:8080/mcp",
        "[aish] an address begins with http:// or https://, e.g. http://127.0.0.1:8080/mcp",
    );
    says(
        &terminal,
        ":mcp connect",
        "[aish] :mcp connect URL [ALIAS] is how it is written",
    );
    let text = terminal.said(":mcp list");
    for alias in ["mcp ", "mcp-2 ", "desk "] {
        assert!(text.lines().any(|line| line.trim_start().starts_with(alias)), "{text}");
    }
    assert!(
        text.contains("8 tools") && text.contains("connected 2026-07-28"),
        "{text}"
    );
    says(&terminal, ":mcp reconnect mcp-2", "[aish] mcp: mcp-2: 8 tools");
    says(&terminal, ":mcp disconnect mcp-2", "[aish] mcp: mcp-2 is disconnected");
    for line in [
        ":mcp disconnect mcp-2",
        ":mcp reconnect mcp-2",
        ":mcp tools mcp-2",
        ":mcp log mcp-2",
    ] {
        says(
            &terminal,
            line,
            "[aish] there is no MCP server mcp-2; :mcp list says which there are",
        );
    }
    let text = terminal.said(":mcp list");
    assert!(!text.contains("mcp-2") && text.contains("desk"), "{text}");
    terminal.send(key::CTRL_D);
    assert_eq!(terminal.wait_exit().code(), Some(0));
    sandbox.assert_nothing_runs();
}

/// SPEC 6.4: the tools of a server that is a child process, one in full; unknown names are one line.
#[test]
fn tools() {
    let Some(real) = RealServers::installed() else { return };
    let sandbox = Sandbox::new()
        .config(&real.time("time"))
        .config(&real.everything("every"));
    let mut terminal = sandbox.terminal(&[]).size(100, 120).start();
    terminal.wait_for_prompt();
    says(&terminal, ":mcp reconnect time", "[aish] mcp: time: 2 tools");
    terminal.said(":mcp reconnect every");
    let text = terminal.said(":mcp tools");
    assert!(
        text.contains("time.get_current_time: ") && text.contains("\nevery.echo: "),
        "{text}"
    );
    let text = terminal.said(":mcp tools time");
    assert!(
        text.contains("time.convert_time: ") && !text.contains("every."),
        "{text}"
    );
    let text = terminal.said(":mcp tool time.convert_time");
    assert!(
        text.contains("source_timezone") && text.contains("\"required\""),
        "{text}"
    );
    says(&terminal, ":mcp disconnect time", "[aish] mcp: time is disconnected");
    says(
        &terminal,
        ":mcp connect http://127.0.0.1:9/mcp time",
        "[aish] time is the configuration's: :mcp reconnect time connects to it",
    );
    says(&terminal, ":mcp reconnect time", "[aish] mcp: time: 2 tools");
    for name in ["time.nothing", "nobody.echo", "nonsense"] {
        let expect = format!("[aish] there is no tool {name}; :mcp tools lists them");
        says(&terminal, &format!(":mcp tool {name}"), &expect);
    }
    terminal.send(key::CTRL_D);
    assert_eq!(terminal.wait_exit().code(), Some(0));
    sandbox.assert_nothing_runs();
}

/// SPEC 6.4, 6.6: a server that cannot be reached is one line, stays, and is forgotten when the person says so; SPEC 6.3: a
/// password in its address is never shown.
#[test]
fn nobody_there() {
    let sandbox = Sandbox::new();
    let mut terminal = sandbox.terminal(&[]).size(40, 120).start();
    terminal.wait_for_prompt();
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let text = terminal.said(&format!(
        ":mcp connect http://me:hunter2hunter2@127.0.0.1:{port}/mcp?key=hunter3hunter3 gone"
    ));
    assert_eq!(text.matches("[aish] mcp: gone: ").count(), 1, "{text}");
    assert!(
        text.contains("[aish] mcp: gone is tried again by itself; :mcp disconnect gone forgets it"),
        "{text}"
    );
    let text = text + &terminal.said(":mcp list");
    assert!(text.contains(&format!("http://127.0.0.1:{port}/mcp")), "{text}");
    assert!(!text.contains("hunter"), "{text}");
    says(&terminal, ":mcp disconnect gone", "[aish] mcp: gone is disconnected");
    terminal.send(key::CTRL_D);
    assert_eq!(terminal.wait_exit().code(), Some(0));
}

/// SPEC 8.7, 12: Ctrl-C gives the prompt back while a server does not answer; the server stays.
#[test]
fn ctrl_c_while_connecting() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let sandbox = Sandbox::new();
    let mut terminal = sandbox.terminal(&[]).size(40, 120).start();
    terminal.wait_for_prompt();
    terminal.send_line(&format!(
        ":mcp connect http://{}/mcp slow",
        silent.local_addr().unwrap()
    ));
    // It has been asked.
    let connection = silent.accept().unwrap();
    terminal.send(key::CTRL_C);
    terminal.wait_for_text("[aish] mcp: slow is still being connected to; :mcp list says how it does");
    terminal.wait_for_prompt();
    let text = terminal.said(":mcp list");
    assert!(text.contains("slow") && text.contains("still connecting"), "{text}");
    terminal.send(key::CTRL_D);
    assert_eq!(terminal.wait_exit().code(), Some(0));
    drop(connection);
}

/// SPEC 6.2, 6.6: what a server wrote is there when it has died, without what acts on the terminal.
#[test]
fn logs() {
    let script = Script::with_tool("t").on("notifications/initialized", |_| {
        let line = serde_json::json!({"level": "warning", "data": "the disk is\nnearly full"});
        vec![Say::notification("notifications/message", line)]
    });
    let server = McpServer::start(Transport::Stdio, script);
    let dies = r"printf 'starting \033]0;owned\007\nno such database\n' >&2; exit 7";
    let command = serde_json::json!(["bash", "-c", dies]);
    let sandbox = Sandbox::new()
        .config(&server.config("chatty"))
        .config(&format!("[mcp.servers.dead]\ncommand = {command}"));
    let mut terminal = sandbox.terminal(&[]).size(40, 120).start();
    terminal.wait_for_prompt();
    terminal.said(":mcp reconnect dead");
    let text = terminal.said(":mcp log dead");
    for line in ["starting \\x1b]0;owned\\x07", "no such database"] {
        assert!(
            text.lines().any(|said| said.trim_end() == line),
            "{line:?} is not in\n{text}"
        );
    }
    terminal.said(":mcp reconnect chatty");
    let text = terminal.said(":mcp log chatty");
    assert!(text.contains("[warning] the disk is nearly full"), "{text}");
    terminal.assert_never_wrote(b"\x1b]0;owned");
    terminal.send(key::CTRL_D);
    assert_eq!(terminal.wait_exit().code(), Some(0));
}

/// SPEC 8.9: commands, aliases, tools, prompts and resources complete.
#[test]
fn completion() {
    let Some(real) = RealServers::installed() else { return };
    let sandbox = Sandbox::new().config(&real.everything("every"));
    let mut terminal = sandbox.terminal(&[]).size(40, 120).start();
    terminal.wait_for_prompt();
    terminal.said(":mcp reconnect every");
    for (typed, expect) in [
        (":mcp disc", ":mcp disconnect "),
        (":mcp log ev", ":mcp log every "),
        (":mcp tool every.ec", ":mcp tool every.echo "),
        (":eve", ":every."),
        (":every.simple", ":every.simple-prompt "),
        (":every.args-prompt ci", ":every.args-prompt city="),
        ("see @eve", "see @every:"),
        (
            "see @every:demo://resource/static/document/feat",
            "see @every:demo://resource/static/document/features.md ",
        ),
    ] {
        terminal.send(typed);
        terminal.send(key::TAB);
        terminal.wait_for(expect, |screen| {
            screen.contents().contains(&format!(" {}", expect.trim_end()))
        });
        terminal.send(key::CTRL_U);
        terminal.wait_for_prompt();
    }
    terminal.send(key::CTRL_D);
    assert_eq!(terminal.wait_exit().code(), Some(0));
}

/// SPEC 8.1, 8.9: the same without a terminal, for a script of lines.
#[test]
fn piped() {
    let Some(real) = RealServers::installed() else { return };
    let listening = real.fastmcp_json();
    let model = FakeServer::script([Reply::text("fine")]);
    let sandbox = Sandbox::with_model(&model);
    let lines = format!(
        ":mcp connect {} desk\n:mcp list\n:desk.review\n:desk.review 'x = 1'\n:mcp disconnect desk\n",
        listening.url()
    );
    let output = sandbox.run_with_input(&[], lines).success();
    assert!(output.stderr.contains("[aish] mcp: desk: 8 tools"), "{output:?}");
    assert!(output.stdout.contains("8 tools"), "{output:?}");
    let missing = "[aish] not asked: code is missing; :desk.review code is how it is written";
    assert!(output.stderr.contains(missing), "{output:?}");
    assert_eq!(model.only_request().last_text(), "Please review this code:\nx = 1");
    assert!(model.only_request().tool_names().contains(&"desk__add"));
}
