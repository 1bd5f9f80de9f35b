//! `aish serve` in the hands of an app that runs its own tools: SPEC 9, rule by rule, on the real program.
//!
//! [`app`] is the fake app. [`chat`] is what a message leads to, [`results`] what answers lead to, [`once`] that an answer counts
//! once, [`races`] that it does so among many, [`restarts`] and [`kills`] that nothing of this is lost, [`replicas`] that servers
//! share it, [`batches`] several calls at once and approvals, [`doors`] who is let in, [`streams`] what can be watched, [`watched`]
//! what whoever runs it sees, [`terminal`] what a person at a terminal has of it, and [`examples`] the clients that are published.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr
)]

mod support;

#[path = "serve/app.rs"]
mod app;
#[path = "serve/batches.rs"]
mod batches;
#[path = "serve/chat.rs"]
mod chat;
#[path = "serve/doors.rs"]
mod doors;
#[path = "serve/examples.rs"]
mod examples;
#[path = "serve/kills.rs"]
mod kills;
#[path = "serve/once.rs"]
mod once;
#[path = "../../store/tests/support/postgres.rs"]
#[allow(dead_code, reason = "not everything a database can do is asked of it here")]
mod postgres;
#[path = "serve/races.rs"]
mod races;
#[path = "serve/replicas.rs"]
mod replicas;
#[path = "serve/restarts.rs"]
mod restarts;
#[path = "serve/results.rs"]
mod results;
#[path = "serve/streams.rs"]
mod streams;
#[path = "serve/terminal.rs"]
mod terminal;
#[path = "serve/watched.rs"]
mod watched;
