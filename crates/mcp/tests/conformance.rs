//! The official conformance suite examines the connections: every scenario for clients, in every version it has.
//!
//! The suite is a program of its own that starts a client for each scenario; the client is this very test binary, told by its
//! environment to play it ([`client`]). What does not apply is in `scripts/mcp/conformance-exceptions`, each with its reason; an
//! exception that passes is a mistake too. `scripts/mcp-servers` installs the suite; `AISH_SKIP_MCP_SERVERS=1` leaves this out,
//! and the run says so.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    clippy::wildcard_enum_match_arm
)]

#[path = "conformance/client.rs"]
mod client;
#[path = "conformance/exceptions.rs"]
mod exceptions;

use exceptions::Exception;
use serde_json::Value;
use std::collections::{HashMap, VecDeque};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;

/// Scenarios at a time: each starts a server and a client.
const AT_ONCE: usize = 3;
/// Scenarios that there are at least, versions counted, or the test has lost its bite.
const RUNS_MIN: usize = 60;
/// Where the client finds its server's address.
const URL_VARIABLE: &str = "AISH_CONFORMANCE_URL";
/// What the suite calls scenarios that belong to no version.
const EXTENSION: &str = "extension";

/// Not a test: the client of one scenario, when the suite starts this binary.
#[test]
fn plays_the_client() {
    let Ok(url) = std::env::var(URL_VARIABLE) else {
        return;
    };
    let scenario = std::env::var("MCP_CONFORMANCE_SCENARIO").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let done = runtime.block_on(client::run(url, &scenario));
    done.unwrap();
}

/// SPEC 6.2: every scenario for clients passes, in each version of the protocol, except those that are listed with a reason.
#[test]
fn the_suite_is_content() {
    let Some(suite) = Suite::installed() else {
        return;
    };
    let runs = suite.runs();
    assert!(runs.len() >= RUNS_MIN, "only {} scenarios", runs.len());
    let listed = fs::read_to_string(root().join("scripts/mcp/conformance-exceptions")).unwrap();
    let exceptions = exceptions::of_side(&listed, "client");
    for exception in &exceptions {
        let is_known = runs.iter().any(|run| run.is(exception));
        assert!(
            is_known,
            "there is no scenario {} {}",
            exception.scenario, exception.version
        );
    }
    let queue = Mutex::new(VecDeque::from(runs));
    let complaints = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let Some(run) = queue.lock().unwrap().pop_front() else {
                        return;
                    };
                    let is_excepted = exceptions.iter().any(|exception| run.is(exception));
                    let complaint = match (suite.examine(&run), is_excepted) {
                        (Ok(()), true) => "passes: it is an exception no more".to_owned(),
                        (Err(why), false) => why,
                        (Ok(()), false) | (Err(_), true) => continue,
                    };
                    let line = format!("{} {}: {complaint}", run.scenario, run.version);
                    complaints.lock().unwrap().push(line);
                }
            });
        }
    });
    let complaints = complaints.into_inner().unwrap();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// One scenario in one version.
struct Run {
    scenario: String,
    version: String,
}

impl Run {
    fn is(&self, exception: &Exception) -> bool {
        self.scenario == exception.scenario && (exception.version == "*" || self.version == exception.version)
    }
}

/// The suite, ready to be run.
struct Suite {
    node: String,
    script: String,
    /// Holds the client's script and what the suite writes.
    directory: tempfile::TempDir,
}

impl Suite {
    /// Where it is; none when it is to be left out.
    fn installed() -> Option<Self> {
        if std::env::var("AISH_SKIP_MCP_SERVERS").is_ok_and(|value| value == "1") {
            eprintln!("SKIPPED: AISH_SKIP_MCP_SERVERS=1");
            return None;
        }
        let install = Command::new(root().join("scripts/mcp-servers")).output().unwrap();
        assert!(
            install.status.success(),
            "scripts/mcp-servers: {} (AISH_SKIP_MCP_SERVERS=1 leaves this out)",
            String::from_utf8_lossy(&install.stderr)
        );
        let places = String::from_utf8(install.stdout).unwrap();
        let places: HashMap<&str, &str> = places.lines().filter_map(|line| line.split_once('=')).collect();
        let directory = tempfile::tempdir().unwrap();
        // The suite splits the client's command at blanks: a script of one word has room for the rest.
        let this = std::env::current_exe().unwrap();
        let client = directory.path().join("client");
        let exec = format!(
            "#!/bin/sh\n{URL_VARIABLE}=\"$1\" exec '{}' --exact plays_the_client --nocapture\n",
            this.display()
        );
        fs::write(&client, exec).unwrap();
        fs::set_permissions(&client, fs::Permissions::from_mode(0o700)).unwrap();
        Some(Self {
            node: places["AISH_MCP_NODE"].to_owned(),
            script: places["AISH_MCP_CONFORMANCE"].to_owned(),
            directory,
        })
    }

    fn command(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(&self.node);
        command.arg(&self.script).args(arguments).stdin(Stdio::null());
        // A runner's own settings would make the client list its tests instead.
        command.env_remove("NEXTEST").output().unwrap()
    }

    /// Every scenario for clients that the suite has, in each of its versions: `  - name [version,…]`.
    fn runs(&self) -> Vec<Run> {
        let listed = String::from_utf8(self.command(&["list", "--client"]).stdout).unwrap();
        let lines = listed.lines().filter_map(|line| line.trim().strip_prefix("- "));
        let scenarios = lines.filter_map(|line| line.strip_suffix(']')?.split_once(" ["));
        let runs = scenarios.flat_map(|(scenario, versions)| {
            versions.split(',').map(|version| Run {
                scenario: scenario.to_owned(),
                version: version.to_owned(),
            })
        });
        runs.collect()
    }

    /// Runs one scenario; says what the suite has against the client. That it says nothing is not enough: some scenarios pass
    /// with a client that does nothing, so a check must have succeeded.
    fn examine(&self, run: &Run) -> Result<(), String> {
        let results = self.directory.path().join(&run.version).join(&run.scenario);
        let client = self.directory.path().join("client");
        let (client, to) = (client.to_str().unwrap(), results.to_str().unwrap());
        let mut arguments = vec!["client", "--command", client, "--scenario", &run.scenario, "-o", to];
        if run.version != EXTENSION {
            arguments.extend(["--spec-version", run.version.as_str()]);
        }
        let output = self.command(&arguments);
        let checks = found(&results, "checks.json");
        let checks: Vec<Value> = checks.map_or_else(Vec::new, |text| serde_json::from_str(&text).unwrap());
        let with = |wanted: &'static str| checks.iter().filter(move |check| check["status"] == wanted);
        let against: Vec<String> = with("FAILURE")
            .chain(with("WARNING"))
            .map(|check| format!("{} {} {}", check["id"], check["errorMessage"], check["details"]))
            .collect();
        let has_passed = output.status.success() && against.is_empty() && with("SUCCESS").next().is_some();
        if has_passed {
            return Ok(());
        }
        let said = found(&results, "stderr.txt").unwrap_or_default();
        Err(format!("{}\n{said}", against.join("\n")))
    }
}

/// The text of the first file of that name below a directory.
fn found(directory: &Path, name: &str) -> Option<String> {
    let entries = fs::read_dir(directory).ok()?.filter_map(Result::ok);
    for path in entries.map(|entry| entry.path()) {
        if path.is_dir() {
            if let Some(text) = found(&path, name) {
                return Some(text);
            }
        } else if path.ends_with(name) {
            return fs::read_to_string(path).ok();
        }
    }
    None
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}
