//! The test bench for the whole program: what integration tests share, used with `mod support;`.
//!
//! - [`fake_server`]: a scripted OpenAI-compatible server on raw sockets, with [`reply`] for what it answers and
//!   [`strict`] for what it refuses. It shares no type with the codecs, so that a mistake of theirs cannot hide here.
//! - [`pty`]: the program (or any other) on a pseudo-terminal, asserted by screen and by transcript.
//! - [`sandbox`]: a home and a project of their own in a temporary folder, and runs of the program bounded in time.
//! - [`http`]: an HTTP client on raw sockets; [`door`]: who is let in by a server.
//! - [`ledger`]: what a run left in the ledger.
//! - [`mcp`]: a scripted MCP server, over HTTP or as a child process; [`mcp_real`]: real ones.
//! - [`processes`]: what a run left behind and what memory it took.
//! - [`random`]: random draws that can be had again.
//! - [`real_model`]: a real small model behind a real server.
//!
//! Every wait has a deadline and fails with what was seen. Nothing here sleeps to let something "have happened".
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr
)]

mod answer;
pub mod door;
pub mod fake_server;
pub mod http;
pub mod ledger;
pub mod mcp;
pub mod mcp_real;
pub mod processes;
pub mod pty;
pub mod random;
pub mod real_model;
pub mod reply;
pub mod sandbox;
pub mod strict;
pub mod wire;

use std::time::{Duration, Instant};

/// How long a test waits for something that should happen soon, in seconds. Generous: a busy machine is no failure, and a test
/// that passes never waits for it.
pub const WAIT_S: u64 = 60;

/// Pause between two looks at something that cannot wake its waiter, in milliseconds.
const POLL_PAUSE_MS: u64 = 5;

/// [`WAIT_S`] as a duration.
pub fn default_wait() -> Duration {
    Duration::from_secs(WAIT_S)
}

/// The pause between two looks.
fn poll_pause() -> Duration {
    Duration::from_millis(POLL_PAUSE_MS)
}

/// Looks at `probe` until it gives something; fails naming `what` when the deadline passes.
pub fn poll_until<T>(what: &str, within: Duration, mut probe: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + within;
    loop {
        if let Some(found) = probe() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited {within:?} in vain for: {what}");
        std::thread::sleep(poll_pause());
    }
}
