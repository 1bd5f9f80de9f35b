//! The API as a client sees it: requests to the routes in this process, a scripted model behind them, and the listener at a
//! real socket.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "api/answers.rs"]
mod answers;
#[path = "api/bench.rs"]
mod bench;
#[path = "api/conversations.rs"]
mod conversations;
#[path = "api/cuts.rs"]
mod cuts;
#[path = "api/exposition.rs"]
mod exposition;
#[path = "api/frames.rs"]
mod frames;
#[path = "api/ledger.rs"]
mod ledger;
#[path = "api/listener.rs"]
mod listener;
#[path = "api/refusals.rs"]
mod refusals;
#[path = "api/sessions.rs"]
mod sessions;
#[path = "api/streams.rs"]
mod streams;
#[path = "../../engine/tests/support/mod.rs"]
mod support;
#[path = "api/watched.rs"]
mod watched;
