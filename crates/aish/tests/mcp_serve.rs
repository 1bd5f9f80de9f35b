//! `aish mcp serve`: the built-in tools for other MCP clients, behind the gate and in the ledger (SPEC 6.10).
//!
//! [`client`] is a client of our own that can also be rude; [`stdio`], [`gate`] and [`http`] are what it finds, [`bounds`]
//! where it is stopped; [`others`] are clients that people use.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr
)]

mod support;

#[path = "mcp_serve/bounds.rs"]
mod bounds;
#[path = "mcp_serve/client.rs"]
mod client;
#[path = "mcp_serve/gate.rs"]
mod gate;
#[path = "mcp_serve/http.rs"]
mod http;
#[path = "mcp_serve/others.rs"]
mod others;
#[path = "mcp_serve/stdio.rs"]
mod stdio;
