//! SPEC 6.9: `aish mcp import`: servers out of the files of other clients.

use super::{config, support};
use support::mcp_real::RealServers;
use support::sandbox::Sandbox;

const CLAUDE: &str = r#"{"mcpServers": {"Time Zone": {"command": "@TIME@", "args": ["--local-timezone", "${ZONE:-UTC}"]},
    "old": {"type": "sse", "url": "https://old.example/sse"}}}"#;
const VS_CODE: &str = r#"{ // comments are allowed
    "inputs": [{"type": "promptString", "id": "zone"}],
    "servers": {"time-zone": {"type": "stdio", "command": "@TIME@", "args": ["--local-timezone", "${input:zone}"]},},
}"#;
const CODEX: &str = "[mcp_servers.time]\ncommand = \"@TIME@\"\nargs = [\"--local-timezone\", \"UTC\"]\n\
                     tool_timeout_sec = 12.5\ncwd = \"/\"\n";

/// SPEC 6.9: servers of three other clients are taken over, and work; what is not taken over is said, and a name that is taken
/// gets a number.
#[test]
fn files_of_other_clients() {
    let Some(real) = RealServers::installed() else { return };
    let with = |text: &str| text.replace("@TIME@", real.path("TIME"));
    let sandbox = Sandbox::new()
        .file(".mcp.json", with(CLAUDE))
        .file(".vscode/mcp.json", with(VS_CODE))
        .file("codex.toml", with(CODEX))
        .env("ZONE", "UTC");
    let import = |file: &str| sandbox.run(&["mcp", "import", file, "--yes"]).success().stderr;
    let claude = import(".mcp.json");
    assert!(claude.contains("Time Zone becomes time-zone\n"), "{claude}");
    assert!(
        claude.contains("old is left out: its transport is the old one"),
        "{claude}"
    );
    let vs_code = import(".vscode/mcp.json");
    assert!(
        vs_code.contains("time-zone becomes time-zone-2, since that name is taken"),
        "{vs_code}"
    );
    assert!(
        vs_code.contains("export ZONE: the other client asks for \"zone\" itself"),
        "{vs_code}"
    );
    let codex = import("codex.toml");
    assert!(codex.contains("written into "), "{codex}");
    assert!(config(&sandbox).contains("cwd = \"/\""), "{}", config(&sandbox));
    assert!(config(&sandbox).contains("\"${ZONE:-UTC}\""), "{}", config(&sandbox));
    let list = sandbox
        .run(&["mcp", "list", "--output", "jsonl"])
        .success()
        .json_lines();
    let states: Vec<(&str, &str)> = list
        .iter()
        .map(|server| (server["alias"].as_str().unwrap(), server["state"].as_str().unwrap()))
        .collect();
    assert_eq!(
        states,
        [
            ("time-zone", "connected"),
            ("time-zone-2", "connected"),
            ("time", "connected")
        ]
    );
}

/// SPEC 6.9: nothing is written without a yes: not by `--dry-run`, not where nobody is, not after a no.
#[test]
fn asked_before_it_is_written() {
    let literal = r#"{"mcpServers": {"a": {"url": "http://h.example/mcp", "headers": {"X-Key": "hunter2hunter2"}}}}"#;
    let sandbox = Sandbox::new().config("# mine").file("mcp.json", literal);
    let before = config(&sandbox);
    let shown = sandbox.run(&["mcp", "import", "mcp.json", "--dry-run"]).success();
    assert!(
        shown
            .stdout
            .contains("[mcp.servers.a]\nurl = \"http://h.example/mcp\"\n"),
        "{shown:?}"
    );
    assert!(!shown.stdout.contains("hunter2"), "{shown:?}");
    let nobody = sandbox.run(&["mcp", "import", "mcp.json"]).exits(2);
    assert!(nobody.stderr.contains("--yes writes without asking"), "{nobody:?}");
    for (answer, is_written) in [("n", false), ("", false), ("y", true)] {
        assert_eq!(config(&sandbox), before);
        let mut terminal = sandbox.terminal(&["mcp", "import", "mcp.json"]).start();
        terminal.wait_for_text("[y/N]");
        terminal.send(&format!("{answer}\r"));
        assert!(terminal.wait_exit().success());
        terminal.assert_never_wrote(b"hunter2");
        assert_eq!(config(&sandbox) != before, is_written, "{answer}");
    }
    assert!(
        config(&sandbox).contains("X-Key = \"hunter2hunter2\""),
        "{}",
        config(&sandbox)
    );
}

/// SPEC 10.4: a file that is none of the known ones says which are.
#[test]
fn other_files() {
    let sandbox = Sandbox::new()
        .file("package.json", "{\"name\": \"x\"}")
        .file("broken.json", "{\"mcpServers\": ");
    for file in ["package.json", "broken.json", "not-there.json", "."] {
        let output = sandbox.run(&["mcp", "import", file]).exits(2);
        assert!(output.stderr.contains(&format!("cannot import {file}: ")), "{output:?}");
        assert!(output.stderr.contains("known: .mcp.json, "), "{output:?}");
    }
}
