//! The HTTP half of a connection against a server that follows a script.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm
)]

#[path = "http/answers.rs"]
mod answers;
#[path = "http/bounds.rs"]
mod bounds;
#[path = "http/refusals.rs"]
mod refusals;
#[path = "http/server.rs"]
mod server;
