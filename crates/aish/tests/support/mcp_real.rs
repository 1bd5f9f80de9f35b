//! Real MCP servers, from npm and PyPI, pinned by `scripts/mcp-servers`.
//!
//! Where they cannot be installed the tests fail; `AISH_SKIP_MCP_SERVERS=1` says that they are not to run, and they say so.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::json;

/// Set to 1 to leave tests with real servers out.
const SKIP_VARIABLE: &str = "AISH_SKIP_MCP_SERVERS";

/// Where they are.
pub struct RealServers(HashMap<String, String>);

impl RealServers {
    /// Installs them where they are missing; `None` only where skipping was asked for, which is said on stderr.
    pub fn installed() -> Option<Self> {
        if std::env::var(SKIP_VARIABLE).is_ok_and(|value| value == "1") {
            eprintln!("SKIPPED: real MCP servers, because {SKIP_VARIABLE}=1");
            return None;
        }
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let output = Command::new(root.join("scripts/mcp-servers")).output();
        let output = output.expect("run scripts/mcp-servers");
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "scripts/mcp-servers: {words} ({SKIP_VARIABLE}=1 leaves this out)"
        );
        let lines = String::from_utf8(output.stdout).expect("paths are text");
        let pairs = lines.lines().filter_map(|line| line.split_once('='));
        let unquoted = |value: &str| value.replace('\\', "");
        Some(Self(
            pairs.map(|(name, value)| (name.to_owned(), unquoted(value))).collect(),
        ))
    }

    /// The path that the script names `AISH_MCP_<name>`.
    pub fn path(&self, name: &str) -> &str {
        let key = format!("AISH_MCP_{name}");
        self.0.get(&key).unwrap_or_else(|| panic!("no {key}"))
    }

    /// Server-filesystem of npm, over a pipe, for that folder: a section of `config.toml`.
    pub fn filesystem(&self, alias: &str, folder: &Path) -> String {
        let folder = folder.to_str().expect("a path that is text");
        section(alias, &[self.path("NODE"), self.path("FILESYSTEM"), folder])
    }

    /// Server-everything of npm, over a pipe.
    pub fn everything(&self, alias: &str) -> String {
        section(alias, &[self.path("NODE"), self.path("EVERYTHING"), "stdio"])
    }

    /// Mcp-server-git of PyPI, over a pipe.
    pub fn git(&self, alias: &str) -> String {
        section(alias, &[self.path("GIT")])
    }

    /// Mcp-server-time of PyPI, over a pipe.
    pub fn time(&self, alias: &str) -> String {
        section(alias, &[self.path("TIME"), "--local-timezone", "UTC"])
    }

    /// Server-everything of npm over streamable HTTP, which replies in event streams.
    pub fn everything_http(&self) -> Listening {
        let mut command = Command::new(self.path("NODE"));
        command.args([
            "--import",
            self.path("EPHEMERAL"),
            self.path("EVERYTHING"),
            "streamableHttp",
        ]);
        Listening::start(command.env("PORT", "0"))
    }

    /// Fastmcp of PyPI over HTTP, which replies in JSON.
    pub fn fastmcp_json(&self) -> Listening {
        Listening::start(Command::new(self.path("PYTHON")).args([self.path("FASTMCP"), "json"]))
    }

    /// Fastmcp of PyPI over HTTP, which replies in event streams.
    pub fn fastmcp(&self) -> Listening {
        Listening::start(Command::new(self.path("PYTHON")).arg(self.path("FASTMCP")))
    }
}

fn section(alias: &str, command: &[&str]) -> String {
    format!("[mcp.servers.{alias}]\ncommand = {}\n", json!(command))
}

/// A server that listens on a port of 127.0.0.1; it ends when it is dropped.
pub struct Listening {
    child: Child,
    port: u16,
}

impl Listening {
    fn start(command: &mut Command) -> Self {
        let command = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().expect("start the server");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let port = lines.by_ref().find_map(|line| {
            let line = line.expect("the server says where it listens");
            line.strip_prefix("listening on ")?.trim().parse().ok()
        });
        // Read on, or it would wait for a reader one day.
        std::thread::spawn(move || lines.for_each(drop));
        Self {
            child,
            port: port.expect("the server listens before it ends"),
        }
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    /// Its section of `config.toml`.
    pub fn config(&self, alias: &str) -> String {
        format!("[mcp.servers.{alias}]\nurl = \"{}\"\n", self.url())
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        // It has ended already: as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
