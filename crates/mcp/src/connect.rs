//! Connecting: which era a server speaks, within a deadline, and a [`crate::Peer`] to it.

use crate::{Host, McpError, Peer, ServerConfig};
use std::sync::Arc;

/// Connects.
///
/// # Errors
/// Every way in which there is no connection.
pub async fn connect(
    config: &ServerConfig,
    client: &reqwest::Client,
    host: Arc<dyn Host>,
) -> Result<Arc<dyn Peer>, McpError> {
    let _ = (config, client, host);
    Err(McpError::new(crate::ErrorKind::Unreachable, "not reached"))
}
