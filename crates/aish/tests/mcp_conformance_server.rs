//! The official conformance suite examines `aish mcp serve --http`: every scenario for servers, in every version it has.
//!
//! The suite is the client; it can show no token, so it is let in without one, as any program of this machine would be. What
//! does not apply is in `scripts/mcp/conformance-exceptions`, each with its reason; an exception that passes is a mistake too.
//! `scripts/mcp-servers` installs the suite; `AISH_SKIP_MCP_SERVERS=1` leaves this out, and the run says so.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr
)]

#[path = "../../mcp/tests/conformance/exceptions.rs"]
mod exceptions;
mod support;

use exceptions::Exception;
use rustix::process::Signal;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use support::mcp_real::RealServers;
use support::sandbox::{Sandbox, run_bounded};

/// Scenarios that there are at least, versions counted, or the test has lost its bite.
const RUNS_MIN: usize = 90;
/// What the suite calls scenarios that belong to no version.
const EXTENSION: &str = "extension";

/// A scenario in one version, and the checks of it that failed or warned.
type Found = BTreeMap<(String, String), BTreeSet<String>>;

/// SPEC 6.2, 6.10: every scenario for servers passes in each version, except those that are listed with a reason.
#[test]
fn the_suite_is_content() {
    let Some(real) = RealServers::installed() else { return };
    let suite = |arguments: &[&str]| {
        let mut command = Command::new(real.path("NODE"));
        command
            .arg(real.path("CONFORMANCE"))
            .args(arguments)
            .stdin(Stdio::null());
        run_bounded(command, None)
    };
    let runs = runs(&suite(&["list", "--server"]).stdout);
    assert!(runs.len() >= RUNS_MIN, "only {} scenarios", runs.len());
    let sandbox = Sandbox::new();
    let server = sandbox.start(&["mcp", "serve", "--http", "127.0.0.1:0", "--no-token"]);
    server.wait_for_stderr("NO TOKEN");
    let said = server.stderr_so_far();
    let url = said
        .lines()
        .find_map(|line| line.strip_prefix("[aish] serving MCP at "))
        .unwrap();
    let results = tempfile::tempdir().unwrap();
    let versions: BTreeSet<&str> = runs.iter().map(|(_, version)| version.as_str()).collect();
    let mut found = Found::new();
    for version in versions.into_iter().filter(|version| *version != EXTENSION) {
        let to = results.path().join(version);
        let to_text = to.to_str().unwrap();
        suite(&[
            "server",
            "--url",
            url,
            "--suite",
            "all",
            "--spec-version",
            version,
            "-o",
            to_text,
        ]);
        found.extend(read(&to, version));
    }
    let listed =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/mcp/conformance-exceptions"));
    let exceptions = exceptions::of_side(&listed.unwrap(), "server");
    let complaints = judge(&runs, &found, &exceptions);
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    server.signal(Signal::TERM);
    server.finish().success();
    sandbox.assert_nothing_runs();
}

/// Every scenario in each of its versions: `  - name [version,…]`.
fn runs(listed: &str) -> Vec<(String, String)> {
    let lines = listed.lines().filter_map(|line| line.trim().strip_prefix("- "));
    let scenarios = lines.filter_map(|line| line.strip_suffix(']')?.split_once(" ["));
    scenarios
        .flat_map(|(scenario, versions)| {
            versions
                .split(',')
                .map(|version| (scenario.to_owned(), version.to_owned()))
        })
        .collect()
}

/// What the suite wrote of each scenario, below a folder: `server-NAME-TIME/checks.json`. One in which nothing succeeded has
/// failed as a whole.
fn read(folder: &Path, version: &str) -> Found {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            // The time is `YYYY-MM-DDT…`: what stands before it, and the hyphen between them.
            let time = name.rfind('T').unwrap() - "YYYY-MM-DD".len() - 1;
            let scenario = name[..time].strip_prefix("server-").unwrap().to_owned();
            let text = fs::read_to_string(entry.path().join("checks.json")).unwrap();
            let checks: Vec<Value> = serde_json::from_str(&text).unwrap();
            let with = |wanted: &[&str]| -> BTreeSet<String> {
                let checks = checks
                    .iter()
                    .filter(|check| wanted.iter().any(|it| check["status"] == *it));
                checks.map(|check| check["id"].as_str().unwrap().to_owned()).collect()
            };
            let mut against = with(&["FAILURE", "WARNING"]);
            if with(&["SUCCESS"]).is_empty() {
                against.insert("nothing-succeeded".to_owned());
            }
            ((scenario, version.to_owned()), against)
        })
        .collect()
}

/// What is wrong, a line each: checks that failed and are not excepted, exceptions that nothing needs, scenarios that did not
/// run.
fn judge(runs: &[(String, String)], found: &Found, exceptions: &[Exception]) -> Vec<String> {
    let mut complaints = Vec::new();
    let covers = |exception: &Exception, (scenario, version): &(String, String), check: &str| {
        let (of, only) = exception
            .scenario
            .split_once(':')
            .unwrap_or((&exception.scenario, check));
        of == scenario && only == check && (exception.version == "*" || exception.version == *version)
    };
    for run in runs {
        let is_covered = |check: &str| exceptions.iter().any(|exception| covers(exception, run, check));
        match found.get(run) {
            Some(against) => complaints.extend(
                against
                    .iter()
                    .filter(|check| !is_covered(check))
                    .map(|check| format!("{run:?}: {check}")),
            ),
            // Those are listed, and not run.
            None if run.1 == EXTENSION && is_covered("") => {}
            None => complaints.push(format!("{run:?} did not run")),
        }
    }
    for exception in exceptions.iter().filter(|exception| exception.version != EXTENSION) {
        let is_needed = found
            .iter()
            .any(|(run, against)| against.iter().any(|check| covers(exception, run, check)));
        if !is_needed {
            complaints.push(format!(
                "{} {}: nothing needs this exception",
                exception.scenario, exception.version
            ));
        }
    }
    complaints
}
