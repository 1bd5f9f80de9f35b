//! `aish mcp login`: an account at a server that asks for one.

use crate::app::App;
use crate::failure::Failure;

/// Logs in at that server.
///
/// # Errors
/// There is no such server, or it lets nobody in.
pub async fn run(_app: &App, alias: &str) -> Result<u8, Failure> {
    Err(Failure::failed(format!("{alias}: logging in is not there yet")).hint("auth_env names a variable with a token"))
}
