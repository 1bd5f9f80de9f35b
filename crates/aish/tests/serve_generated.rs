//! `aish serve` in the hands of programs that mean it no good: requests generated from its own description by schemathesis, and
//! clients that are slow on purpose, by slowhttptest (SPEC 9.8, 12).
//!
//! `scripts/schemathesis` installs the first, the package `slowhttptest` has the second. Where that cannot be, the tests fail;
//! `AISH_SKIP_API_TOOLS=1` says that they are not to run, and the run says so. `AISH_API_CASES` sets how many requests are generated
//! for each operation and phase.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr
)]

mod support;

#[path = "serve/app.rs"]
#[allow(dead_code)]
mod app;

use app::{Served, TOKEN, TOKEN_VARIABLE, place};
use serde_json::json;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use support::fake_server::FakeServer;
use support::reply::Reply;

/// Set to 1 to leave these tests out.
const SKIP_VARIABLE: &str = "AISH_SKIP_API_TOOLS";
/// Sets [`CASES_USUAL`] otherwise.
const CASES_VARIABLE: &str = "AISH_API_CASES";
/// Requests that are generated for each operation and phase, at most; some have few that differ.
const CASES_USUAL: usize = 150;
/// Requests that there are at least, or the test has lost its bite.
const REQUESTS_MIN: usize = 2_000;
/// What is not generated: a stream that goes on for ever has no answer to look at.
const ENDLESS: &str = "/api/sessions/{id}/events";
/// Slow connections of each sort, and for how long, in seconds.
const SLOW_CONNECTIONS: &str = "1000";
const SLOW_S: &str = "8";

fn is_left_out() -> bool {
    let left_out = std::env::var(SKIP_VARIABLE).is_ok_and(|value| value == "1");
    if left_out {
        eprintln!("SKIPPED: {SKIP_VARIABLE}=1");
    }
    left_out
}

/// A model that answers, calls a tool of the client's or one that is asked about, by turns.
fn model() -> FakeServer {
    let asked = AtomicUsize::new(0);
    let reply = move |request: &support::fake_server::Received| {
        let is_told = request.messages().last().is_some_and(|last| last["role"] == "tool");
        match asked.fetch_add(1, Ordering::Relaxed) % 3 {
            0 if !is_told => Reply::call("c1", "pick", json!({"colour": "red"})),
            1 if !is_told => Reply::call("c1", "bash", json!({"command": "touch made"})),
            _ => Reply::text("done"),
        }
    };
    FakeServer::builder().otherwise(reply).start()
}

/// SPEC 12: generated requests, in sequences as well, lead to no 5xx, and every answer is one that the description tells of.
#[test]
fn generated_requests() {
    if is_left_out() {
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/schemathesis");
    let install = Command::new(script).output().unwrap();
    let said = String::from_utf8_lossy(&install.stderr);
    assert!(
        install.status.success(),
        "scripts/schemathesis: {said} ({SKIP_VARIABLE}=1 leaves this out)"
    );
    let python = String::from_utf8(install.stdout).unwrap();

    let (model, folder) = (model(), tempfile::tempdir().unwrap());
    let sandbox = place(&model);
    let served = Served::start_with(&sandbox, &["--token-env", TOKEN_VARIABLE, "--log", "text"]);
    // A key that was used, or a model that is not there, is refused with 422, and no schema can say so.
    let accepted = r#"["2xx", "401", "403", "404", "409", "410", "422", "429"]"#;
    let config = format!("[checks.positive_data_acceptance]\nexpected-statuses = {accepted}\n");
    std::fs::write(folder.path().join("schemathesis.toml"), config).unwrap();
    let cases = std::env::var(CASES_VARIABLE).unwrap_or_else(|_| CASES_USUAL.to_string());
    let ran = Command::new(python.trim())
        .args([
            "-m",
            "schemathesis.cli",
            "run",
            "--no-color",
            "--workers",
            "2",
            "--continue-on-failure",
        ])
        .args(["--max-examples", &cases, "--exclude-path", ENDLESS])
        .args(["--header", &format!("Authorization: Bearer {TOKEN}")])
        .arg(format!("http://127.0.0.1:{}/openapi.json", served.port))
        .current_dir(&folder)
        .output()
        .unwrap();
    let report = String::from_utf8_lossy(&ran.stdout);
    let said = served.said();
    let faults: Vec<&str> = said
        .lines()
        .filter(|line| line.contains(" 50") || line.contains("error"))
        .collect();
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{report}{errors}{}", faults.join("\n"));
    let count = report
        .split(" generated, ")
        .next()
        .and_then(|before| before.rsplit(' ').next());
    let count: usize = count
        .and_then(|count| count.parse().ok())
        .unwrap_or_else(|| panic!("{report}"));
    assert!(count >= REQUESTS_MIN, "{count} requests\n{report}");
    assert!(!said.contains("panicked"), "{}", faults.join("\n"));
    eprintln!("{count} requests");
}

/// SPEC 9.8, 12: a thousand connections that send heads or bodies byte by byte, ask for overlapping ranges or read answers byte by
/// byte: everybody else is answered meanwhile.
#[test]
fn slow_clients() {
    if is_left_out() {
        return;
    }
    let model = model();
    let sandbox = place(&model);
    let served = Served::start(&sandbox);
    let url = format!("http://127.0.0.1:{}/api/chat", served.port);
    for slowly in ["-H", "-B", "-R", "-X"] {
        let slow = Command::new("slowhttptest")
            .args([
                slowly,
                "-c",
                SLOW_CONNECTIONS,
                "-r",
                "500",
                "-i",
                "1",
                "-l",
                SLOW_S,
                "-t",
                "POST",
                "-u",
                &url,
            ])
            .stdout(std::process::Stdio::null())
            .spawn();
        let mut slow = slow.unwrap_or_else(|error| panic!("slowhttptest: {error} ({SKIP_VARIABLE}=1 leaves this out)"));
        let mut answered = 0;
        while slow.try_wait().unwrap().is_none() {
            assert_eq!(served.get("/api/sessions?limit=1").status, 200, "{slowly}");
            answered += 1;
        }
        assert!(answered > 0, "{slowly}");
    }
    let pid = served.running().pid().as_raw_nonzero().get().unsigned_abs();
    let peak_kib = support::processes::peak_memory_kib(pid).unwrap();
    assert!(peak_kib < 150 * 1024, "{peak_kib} KiB");
}
