//! The page that `aish serve` has at `/` (SPEC 9.9), in a real browser: the real program, a scripted model, and Chromium, which
//! does what a person would.
//!
//! What is done there is written in `page/*.mjs`, a group of cases each; [`model`] is what the model answers to the messages that they
//! send. `scripts/page-browser` installs what drives the browser. Where that cannot be, the tests fail; `AISH_SKIP_PAGE=1` says that they
//! are not to run, and the run says so.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr
)]

mod support;

#[allow(dead_code, reason = "what an app does is done by the page here")]
#[path = "serve/app.rs"]
mod app;
#[path = "page/model.rs"]
mod model;

use app::{Served, TOKEN, place};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use support::fake_server::FakeServer;

/// Set to 1 to leave these tests out.
const SKIP_VARIABLE: &str = "AISH_SKIP_PAGE";
/// How long one group may take, its browser's start included; it is killed and fails after that.
const GROUP_S_MAX: &str = "220";
/// Bytes of one picture in the documents.
const PICTURE_BYTES_MAX: u64 = 150 * 1024;
/// What is shown in `docs/pictures`.
const PICTURES: [&str; 4] = [
    "serve-approval.png",
    "serve-dark.png",
    "serve-phone.png",
    "serve-phone-list.png",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// What `scripts/page-browser` says: variables and their values. None when the tests are to be left out.
fn browser() -> Option<Vec<(String, String)>> {
    if std::env::var(SKIP_VARIABLE).is_ok_and(|value| value == "1") {
        eprintln!("SKIPPED: {SKIP_VARIABLE}=1");
        return None;
    }
    let install = Command::new(root().join("scripts/page-browser")).output().unwrap();
    let words = String::from_utf8_lossy(&install.stderr);
    assert!(
        install.status.success(),
        "scripts/page-browser: {words} ({SKIP_VARIABLE}=1 leaves this out)"
    );
    let said = String::from_utf8(install.stdout).unwrap();
    let pairs = said.lines().filter_map(|line| line.split_once('='));
    Some(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

/// Runs a group against a server and a model of its own; gives the names of its cases. Further variables are for the group alone.
fn group(script: &str, further: &[(&str, &str)]) -> Vec<String> {
    let Some(browser) = browser() else {
        return Vec::new();
    };
    let model = model::start();
    let sandbox = place(&model).file("hostile.txt", model::HOSTILE_FILE);
    let served = Served::start(&sandbox);
    let node = browser.iter().find(|(name, _)| name == "AISH_PAGE_NODE");
    let mut running = Command::new("timeout")
        .args(["--kill-after=5", GROUP_S_MAX, &node.expect("where node is").1])
        .arg(root().join("crates/aish/tests/page").join(script))
        .envs(browser.iter().cloned())
        .env("AISH_PAGE_URL", format!("http://127.0.0.1:{}", served.port))
        .env("AISH_PAGE_TOKEN", TOKEN)
        .envs(further.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let said = follow(BufReader::new(running.stdout.take().unwrap()), &model);
    let status = running.wait().unwrap();
    let failed: Vec<&String> = said.iter().filter(|line| !line.starts_with("ok ")).collect();
    assert!(
        status.success() && failed.is_empty(),
        "{script}: {status}: {failed:#?}\nof {said:#?}\nthe server: {}",
        served.said()
    );
    assert!(!said.is_empty(), "{script} has no case");
    said.iter()
        .map(|line| line.trim_start_matches("ok ").to_owned())
        .collect()
}

/// The lines that a group prints, until its end; the model is let go on when it asks for that.
fn follow(lines: impl BufRead, model: &FakeServer) -> Vec<String> {
    let mut said = Vec::new();
    for line in lines.lines() {
        match line.unwrap().as_str() {
            "release" => model.release(),
            line => said.push(line.to_owned()),
        }
    }
    said
}

/// SPEC 9.9: the parts of the page that are functions from text to data, in the browser that runs them: streams, arguments, Markdown,
/// the conversation as a fold over the ledger's events.
#[test]
fn its_modules() {
    group("modules.mjs", &[]);
}

/// SPEC 9.8, 9.9: whoever has the token is let in, finds the sessions and follows a turn live, from any device, also when the connection
/// breaks.
#[test]
fn following() {
    group("following.mjs", &[]);
}

/// SPEC 9.6, 9.9: what waits is shown whole and answered: approved, denied, given a result, or cancelled.
#[test]
fn answering() {
    group("answering.mjs", &[]);
}

/// SPEC 9.9, 12: text of models and tools is shown and does nothing else.
#[test]
fn hostile_text() {
    group("hostile.mjs", &[]);
}

/// SPEC 9.9: a phone's width, a keyboard alone and a screen reader are enough, and so is a long session.
#[test]
fn within_reach() {
    group("reach.mjs", &[]);
}

/// The pictures in the documents are there and small; `UPDATE_DOCS=1` takes them anew.
#[test]
fn pictures() {
    let folder = root().join("docs/pictures");
    if std::env::var("UPDATE_DOCS").is_ok_and(|value| value == "1") {
        group("pictures.mjs", &[("AISH_PAGE_PICTURES", folder.to_str().unwrap())]);
    }
    for name in PICTURES {
        let bytes = fs::metadata(folder.join(name))
            .unwrap_or_else(|error| panic!("{name}: {error}"))
            .len();
        assert!((1..=PICTURE_BYTES_MAX).contains(&bytes), "{name} has {bytes} bytes");
    }
}
