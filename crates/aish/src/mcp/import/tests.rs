//! Files of other clients, in the shapes their documentation shows.

#![allow(clippy::unwrap_used, clippy::panic)]

use super::*;
use crate::config::edit::Place;

/// What a file comes to: each server as it would be written, and each remark.
fn said(text: &str) -> String {
    let Imported { servers, remarks } = read(text, |alias| alias == "taken").unwrap_or_else(|error| panic!("{error}"));
    for server in &servers {
        assert_eq!(server.problem(), None);
    }
    let servers = servers.iter().map(|server| format!("{}\n", server.shown()));
    let remarks = remarks.iter().map(|remark| format!("# {remark}\n"));
    servers.chain(remarks).collect()
}

/// SPEC 6.9: `.mcp.json`, as Claude Code writes it; variables stay variables.
#[test]
fn claude_code() {
    insta::assert_snapshot!(said(
        r#"{
        "mcpServers": {
            "db": {"type": "stdio", "command": "npx", "args": ["-y", "db-server", "--dsn", "${DB_DSN:-postgres://h/x}"],
                   "env": {"CACHE_DIR": "/tmp", "RETRIES": 3, "ON": true}},
            "api": {"type": "http", "url": "${API_BASE:-https://api.example.com}/mcp",
                    "headers": {"Authorization": "Bearer ${API_KEY}", "X-Literal": "hunter2hunter2"}},
            "old": {"type": "sse", "url": "https://old.example.com/sse"},
            "taken": {"command": "a"}
        }
    }"#
    ), @r#"
    [mcp.servers.api]
    url = "${API_BASE:-https://api.example.com}/mcp"
    headers = { Authorization = "Bearer ${API_KEY}", X-Literal = "[redacted]" }

    [mcp.servers.db]
    command = ["npx", "-y", "db-server", "--dsn", "${DB_DSN:-postgres://h/x}"]
    env = { CACHE_DIR = "[redacted]", ON = "[redacted]", RETRIES = "[redacted]" }

    [mcp.servers.taken-2]
    command = ["a"]

    # old is left out: its transport is the old one with an event stream (sse)
    # taken becomes taken-2, since that name is taken
    "#);
}

/// SPEC 6.9: `claude_desktop_config.json`, Cursor, Windsurf, Cline and Gemini CLI, with what is their own.
#[test]
fn mcp_servers_of_others() {
    insta::assert_snapshot!(said(
        r#"{
        "globalShortcut": "Ctrl+Space",
        "mcpServers": {
            "My Server": {"command": "/opt/x", "cwd": "/srv", "envFile": ".env", "disabled": false},
            "my-server": {"serverUrl": "https://w.example.com/mcp", "headers": {"Authorization": "Bearer ${env:W_TOKEN}"}},
            "gemini": {"httpUrl": "http://127.0.0.1:3000/mcp", "timeout": 30000, "trust": true,
                       "includeTools": ["a"], "excludeTools": ["b"]},
            "cline": {"command": "node", "args": ["x.js"], "alwaysAllow": ["y"], "timeout": 60, "disabled": true},
            "copilot": {"type": "local", "command": "c", "tools": ["*"]},
            "copilot-some": {"type": "local", "command": "c", "tools": ["one"], "cwd": "./sub"}
        }
    }"#
    ), @r#"
    [mcp.servers.my-server]
    command = ["/opt/x"]
    cwd = "/srv"

    [mcp.servers.cline]
    command = ["node", "x.js"]
    enabled = false

    [mcp.servers.copilot]
    command = ["c"]

    [mcp.servers.copilot-some]
    command = ["c"]
    enabled_tools = ["one"]

    [mcp.servers.gemini]
    url = "http://127.0.0.1:3000/mcp"
    enabled_tools = ["a"]
    disabled_tools = ["b"]

    [mcp.servers.my-server-2]
    url = "https://w.example.com/mcp"
    headers = { Authorization = "Bearer ${W_TOKEN}" }

    # My Server becomes my-server
    # my-server: not taken over: envFile (write its variables into env, or export them)
    # cline: not taken over: alwaysAllow (aish asks itself; [mcp.auto_approve] allows)
    # cline: not taken over: timeout (clients differ in its unit; timeout_s counts seconds)
    # copilot-some: not taken over: cwd (write the whole path)
    # gemini: not taken over: trust (aish asks itself; [mcp.auto_approve] allows)
    # gemini: not taken over: timeout (clients differ in its unit; timeout_s counts seconds)
    # my-server becomes my-server-2, since that name is taken
    "#);
}

/// SPEC 6.9: VS Code's `mcp.json`: comments, `servers`, and values that it asks a person for.
#[test]
fn vs_code() {
    insta::assert_snapshot!(said(
        r#"// of the workspace
    {
        "inputs": [{"type": "promptString", "id": "github-token", "description": "token", "password": true}],
        "servers": {
            /* over HTTP */
            "github": {"type": "http", "url": "https://h.example.com/mcp/",
                       "headers": {"Authorization": "Bearer ${input:github-token}"},},
            "files": {"type": "stdio", "command": "${userHome}/bin/files", "args": ["${workspaceFolder}/docs"],
                      "cwd": "${workspaceFolder}", "envFile": "${workspaceFolder}/.env", "dev": {"watch": "src/**"}},
            "odd": {"type": "stdio", "command": "${command:pick}"},
            "socket": {"type": "http", "url": "unix:///tmp/server.sock"},
        },
    }"#
    ), @r#"
    [mcp.servers.files]
    command = ["${HOME}/bin/files", "./docs"]

    [mcp.servers.github]
    url = "https://h.example.com/mcp/"
    headers = { Authorization = "Bearer ${GITHUB_TOKEN}" }

    # files: not taken over: envFile (write its variables into env, or export them)
    # files: not taken over: dev
    # files: the workspace is the directory aish is started in
    # github: export GITHUB_TOKEN: the other client asks for "github-token" itself
    # odd is left out: aish has no "${command:pick}"
    # socket is left out: mcp.servers.socket.url: expected an http or https address without a user or password in it, found something else; e.g. url = "http://boltzmann.example:8080/mcp"
    "#);
}

/// SPEC 6.9: Codex's `config.toml`.
#[test]
fn codex() {
    insta::assert_snapshot!(said(
        r#"
model = "gpt-5"

[mcp_servers.context7]
command = "npx"
args = ["-y", "@upstash/context7-mcp"]
env_vars = ["LOCAL_TOKEN"]
cwd = "/srv"
startup_timeout_sec = 20
tool_timeout_sec = 45.5

[mcp_servers.context7.env]
MY_ENV_VAR = "${NOT_ONE}"

[mcp_servers.figma]
url = "https://mcp.figma.example/mcp"
bearer_token_env_var = "FIGMA_OAUTH_TOKEN"
http_headers = { "X-Figma-Region" = "us-east-1" }
env_http_headers = { "X-Key" = "FIGMA_KEY" }
enabled_tools = ["open", "screenshot"]
disabled_tools = ["screenshot"]
required = true
default_tools_approval_mode = "approve"

[mcp_servers.off]
url = "https://off.example/mcp"
enabled = false

[mcp_servers.wrong]
url = "https://bob:hunter2@h.example/mcp"
"#
    ), @r#"
    [mcp.servers.context7]
    command = ["npx", "-y", "@upstash/context7-mcp"]
    env = { MY_ENV_VAR = "${NOT_ONE}", LOCAL_TOKEN = "${LOCAL_TOKEN:-}" }
    cwd = "/srv"
    timeout_s = 46

    [mcp.servers.figma]
    url = "https://mcp.figma.example/mcp"
    auth_env = "FIGMA_OAUTH_TOKEN"
    headers = { X-Figma-Region = "[redacted]", X-Key = "${FIGMA_KEY}" }
    enabled_tools = ["open", "screenshot"]
    disabled_tools = ["screenshot"]
    required = true

    [mcp.servers.off]
    url = "https://off.example/mcp"
    enabled = false

    # context7: its limits for the start and for calls become one, the longer
    # context7: it has ${…} in it, which aish takes for a variable
    # figma: not taken over: default_tools_approval_mode (aish asks itself; [mcp.auto_approve] allows)
    # wrong is left out: mcp.servers.wrong.url: expected an http or https address without a user or password in it, found something else; e.g. url = "http://boltzmann.example:8080/mcp"
    "#);
}

/// SPEC 10.4: what is no such file is told so, and which are.
#[test]
fn other_files() {
    let error = |text: &str| read(text, |_| false).unwrap_err().to_string();
    for text in [
        "{}",
        "[package]\nname = \"x\"",
        "",
        "{\"mcpServers\": []}",
        "mcp_servers = 3",
        "{\"servers\": null}",
    ] {
        assert!(
            error(text).contains("no MCP servers that aish knows"),
            "{text}: {}",
            error(text)
        );
    }
    assert!(error("{\"mcpServers\": {").starts_with("it is not JSON: "));
    assert!(error("hello").starts_with("it is not TOML: "));
    let deep = "{\"mcpServers\":".to_owned() + &"[".repeat(100_000);
    assert!(error(&deep).starts_with("it is not JSON: "));
    let many: String = (0..=SERVERS_MAX)
        .map(|n| format!("[mcp_servers.s{n}]\ncommand = 'x'\n"))
        .collect();
    assert_eq!(error(&many), "it has 201 servers; at most 200 are taken over");
}

/// SPEC 12: nothing a file says acts on the terminal, is repeated without end, or makes a panic.
#[test]
fn hostile_files() {
    let long = "x".repeat(10_000);
    let text = serde_json::json!({"mcpServers": {
        "\u{1b}]0;owned\u{7}": {"command": "a\u{202e}b", "\u{1b}[31m": 1, (long.clone()): 2},
        (long.clone()): {"command": ["a"], "args": "b", "env": [1], "url": 7},
        "n": null, "t": "text", "l": [1],
        "v": {"command": format!("${{{long}\u{1b}")},
        "w": {"type": format!("\u{1b}{long}"), "command": "x"},
        "nul": {"command": "a\u{0}b"},
        "empty": {"command": "", "args": ["x"]},
        "both": {"command": "a", "url": "http://h/"},
        "misplaced": {"url": "http://h/", "env": {"A": "b"}},
    }});
    let Imported { servers, remarks } = read(&text.to_string(), |_| false).unwrap();
    let aliases: Vec<&str> = servers.iter().map(|server| server.alias.as_str()).collect();
    assert_eq!(aliases, ["mcp-0-owned", "misplaced", "nul"]);
    for remark in &remarks {
        assert!(!remark.contains(aish_core::sanitize::is_hostile), "{remark:?}");
        assert!(remark.chars().count() < 400, "{remark}");
    }
    for server in &servers {
        assert!(
            !server
                .shown()
                .replace('\n', "")
                .contains(aish_core::sanitize::is_hostile),
            "{:?}",
            server.shown()
        );
    }
    assert_eq!(servers[1].place, Place::Url("http://h/".to_owned()));
}
