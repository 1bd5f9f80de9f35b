//! Servers as the configuration writes them, and where it does.

use crate::config::Resolved;
use crate::config::resolved::McpTransport;
use crate::mcp::arguments;
use aish_mcp::{Endpoint, ServerConfig};
use std::collections::BTreeMap;

/// Where a server is, fit to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// An address, without user, password, query and fragment.
    Url(String),
    /// A program and its arguments.
    Command(Vec<String>),
}

/// Who configures a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum By {
    /// The user's own file, at `FILE:LINE:COLUMN`.
    User(String),
    /// A trusted project's.
    Project(String),
    /// Nobody: it was connected to at the prompt.
    Session,
}

/// What the configuration says of its servers.
#[derive(Clone, Debug, Default)]
pub struct Written(BTreeMap<String, (Place, By)>);

impl Written {
    /// Reads it.
    pub fn of(resolved: &Resolved) -> Self {
        let servers = resolved.config.mcp.servers.iter().map(|server| {
            let place = match &server.transport {
                McpTransport::Http { url } => Place::Url(bare(url)),
                McpTransport::Stdio { command, .. } => Place::Command(arguments::shown(command)),
            };
            let path = ["mcp", "servers", server.alias.as_str()];
            let origin = resolved.layers.named.iter().find(|named| named.path == path);
            let by = match origin.map(|named| &named.origin) {
                Some(origin) if origin.is_project() => By::Project(origin.to_string()),
                Some(origin) => By::User(origin.to_string()),
                None => By::Session,
            };
            (server.alias.clone(), (place, by))
        });
        Self(servers.collect())
    }

    /// Where a server is and who says so.
    pub(super) fn find(&self, config: &ServerConfig) -> (Place, By) {
        let as_written = self.0.get(config.alias.as_str()).cloned();
        as_written.unwrap_or_else(|| {
            let place = match &config.endpoint {
                Endpoint::Http(http) => Place::Url(aish_provider::http::without_credentials(&http.url)),
                Endpoint::Stdio(stdio) => Place::Command(arguments::shown(&stdio.command)),
            };
            (place, By::Session)
        })
    }

    /// Where a server is configured, `FILE:LINE:COLUMN`; `None` where it is not.
    pub fn place_of(&self, alias: &str) -> Option<&str> {
        match self.0.get(alias)? {
            (_, By::User(at) | By::Project(at)) => Some(at),
            (_, By::Session) => None,
        }
    }

    /// The same of a configured server that could not even be set up.
    pub(super) fn named(&self, alias: &str) -> Option<(Place, By)> {
        self.0.get(alias).cloned()
    }
}

/// An address as it is written, without query and fragment; the configuration takes none with a user in it.
fn bare(url: &str) -> String {
    if !url.contains("${") {
        return aish_provider::http::without_credentials(url);
    }
    // What stands in for a variable that is not set may have any character in it.
    let mut depth = 0_usize;
    let kept = url.chars().take_while(|letter| {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            '?' | '#' if depth == 0 => return false,
            _ => {}
        }
        true
    });
    kept.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 10.5: an address is shown without what may be secret in it, and with its variables as they are written.
    #[test]
    fn addresses() {
        for (url, shown) in [
            ("https://h.example/mcp?key=hunter2#x", "https://h.example/mcp"),
            ("https://${HOST}/mcp?key=hunter2", "https://${HOST}/mcp"),
            ("https://${HOST:-a?b}/mcp/${TOKEN}", "https://${HOST:-a?b}/mcp/${TOKEN}"),
            ("https://${HOST}#hunter2", "https://${HOST}"),
        ] {
            assert_eq!(bare(url), shown);
        }
    }
}
