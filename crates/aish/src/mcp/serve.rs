//! `aish mcp serve`: aish's own tools for other MCP clients.

use crate::app::App;
use crate::failure::Failure;
use std::net::SocketAddr;

/// Serves on standard input and output, or over HTTP at that address. Standard output carries the protocol and nothing else.
///
/// # Errors
/// It cannot serve there.
pub async fn run(_app: &App, _http: Option<SocketAddr>) -> Result<u8, Failure> {
    Err(Failure::failed("serving is not there yet"))
}
