//! What a question at the prompt names: files of this machine, then resources of MCP servers.

use super::Repl;
use crate::mentions::{self, Mentioned, Places};
use std::sync::Arc;

impl Repl {
    /// What goes along with a text.
    ///
    /// # Errors
    /// Something of it cannot, or the person would not wait for it: one line.
    pub(super) async fn mentioned(&mut self, text: &str) -> Result<Mentioned, String> {
        let mcp = Arc::clone(&self.options.mcp);
        let servers = mcp.aliases();
        let settings = self.engine.settings();
        let places = Places {
            directory: &settings.context.directory,
            home: self.options.environment.path("HOME"),
            servers: &servers,
        };
        let mut mentioned = mentions::gather(text, places)?;
        if !mentions::references(text, &servers).is_empty() {
            let read = self.unless_cancelled(mcp.read_named(text, &mut mentioned)).await;
            read.unwrap_or_else(|| Err("stopped".to_owned()))?;
        }
        Ok(mentioned)
    }
}
