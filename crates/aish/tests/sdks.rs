//! What is sent, in the eyes of the official SDKs: their own request types take each request, and refuse a broken one.
//!
//! A family of rich conversations is written by the four codecs, with each switch of the profile that changes a request's
//! shape, and handed to `scripts/sdk_check.py`, which parses them with the types of the Python packages of OpenAI, Anthropic
//! and Google. Each request is also broken in many places, one at a time, so that types that take anything would be noticed.
//!
//! `scripts/python-sdks` installs the packages. Where that cannot be, the test fails; `AISH_SKIP_SDKS=1` says that it is not to
//! run, and the run says so.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr
)]

#[path = "sdks/requests.rs"]
mod requests;

use aish_provider::profile::Format;
use requests::Case;
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Requests and broken requests that there are at least, or the test has lost its bite.
const REQUESTS_MIN: usize = 80;
const BROKEN_MIN: usize = 150;

/// Set to 1 to leave these tests out.
const SKIP_VARIABLE: &str = "AISH_SKIP_SDKS";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// The interpreter that has the SDKs; none when the tests are to be left out.
fn interpreter() -> Option<String> {
    if std::env::var(SKIP_VARIABLE).is_ok_and(|value| value == "1") {
        eprintln!("SKIPPED: {SKIP_VARIABLE}=1");
        return None;
    }
    let install = Command::new(root().join("scripts/python-sdks")).output().unwrap();
    let words = String::from_utf8_lossy(&install.stderr);
    assert!(
        install.status.success(),
        "scripts/python-sdks: {words} ({SKIP_VARIABLE}=1 leaves this out)"
    );
    Some(String::from_utf8(install.stdout).unwrap().trim().to_owned())
}

/// What the SDK of that format says to each of these bodies, in order: `ok` or `refused: …`.
fn verdicts(interpreter: &str, requests: &[(Format, Value)]) -> Vec<String> {
    let mut lines = String::new();
    for (format, body) in requests {
        lines.push_str(&json!({"format": format.name(), "body": body}).to_string());
        lines.push('\n');
    }
    let mut check = Command::new(interpreter)
        .arg(root().join("scripts/sdk_check.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = check.stdin.take().unwrap();
    // From a thread of its own, or both sides could wait for the other to read.
    let writer = std::thread::spawn(move || stdin.write_all(lines.as_bytes()));
    let output = check.wait_with_output().unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaints}");
    writer.join().unwrap().unwrap();
    let said: Vec<String> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    assert_eq!(said.len(), requests.len(), "{complaints}");
    said
}

/// SPEC 7.2: the official SDKs' own types take every request that the codecs write.
#[test]
fn sdks_take_what_we_send() {
    let Some(interpreter) = interpreter() else { return };
    let cases = requests::all();
    let bodies: Vec<(Format, Value)> = cases.iter().map(|case| (case.format, case.body.clone())).collect();
    let said = verdicts(&interpreter, &bodies);
    let refused: Vec<String> = cases
        .iter()
        .zip(&said)
        .filter(|(_, said)| *said != "ok")
        .map(|(Case { name, body, .. }, said)| format!("{name}: {said}\n{body:#}"))
        .collect();
    assert!(
        refused.is_empty(),
        "{} of {} refused:\n{}",
        refused.len(),
        cases.len(),
        refused.join("\n\n")
    );
    assert!(cases.len() >= REQUESTS_MIN, "only {} requests", cases.len());
}

/// SPEC 7.2: the same types refuse a request with a field too many, or of an unknown type, in each object of it that is the
/// format's own.
#[test]
fn sdks_refuse_what_is_broken() {
    let Some(interpreter) = interpreter() else { return };
    let mut broken = Vec::new();
    let mut places = Vec::new();
    for case in requests::all().iter().filter(|case| case.is_rich) {
        for place in requests::own_objects(case) {
            for key in ["surely_unknown", "type"] {
                let mut body = case.body.clone();
                let fields = body.pointer_mut(&place).and_then(Value::as_object_mut).unwrap();
                if key == "type" && !fields.contains_key(key) {
                    continue;
                }
                fields.insert(key.to_owned(), json!("surely_unknown"));
                broken.push((case.format, body));
                places.push(format!("{}{place}/{key}", case.name));
            }
        }
    }
    let said = verdicts(&interpreter, &broken);
    let said = places.iter().zip(&said);
    let taken: Vec<&String> = said.filter(|(_, said)| *said == "ok").map(|(place, _)| place).collect();
    assert!(taken.is_empty(), "broken in these places and taken: {taken:?}");
    assert!(broken.len() >= BROKEN_MIN, "only {} places", broken.len());
}
