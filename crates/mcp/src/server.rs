//! How a server is reached, as the configuration or a person at the prompt says it: plain data, everything resolved.

use crate::Alias;
use aish_core::secret::Secret;
use std::path::PathBuf;
use std::time::Duration;

/// One server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerConfig {
    /// What its tools' names begin with.
    pub alias: Alias,
    /// Where it is.
    pub endpoint: Endpoint,
    /// How long one request may take; connecting included.
    pub timeout: Duration,
    /// Which protocol it is spoken to in.
    pub era: Era,
    /// Only these tools, by their bare names; empty means all.
    pub enabled_tools: Vec<String>,
    /// Never these tools.
    pub disabled_tools: Vec<String>,
    /// Whether one-shot use fails when it cannot be reached.
    pub is_required: bool,
    /// Whether its own hints about its tools are believed (SPEC 5.8).
    pub is_trusted: bool,
}

/// Where a server is.
#[derive(Clone, Debug, PartialEq)]
pub enum Endpoint {
    /// Streamable HTTP, or plain POSTs.
    Http(HttpEndpoint),
    /// A child process that speaks on its stdin and stdout.
    Stdio(StdioEndpoint),
}

/// A server reached over HTTP.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpEndpoint {
    /// Its address, `http://` or `https://`. Never given to a shell (SPEC 6.11).
    pub url: String,
    /// The bearer token, if there is one.
    pub token: Option<Secret>,
    /// Further headers, name and value.
    pub headers: Vec<(String, Secret)>,
}

/// A server that is a program of this machine.
#[derive(Clone, Debug, PartialEq)]
pub struct StdioEndpoint {
    /// The program, then its arguments; never empty, and never given to a shell.
    pub command: Vec<String>,
    /// Its environment, whole: nothing else is inherited (SPEC 6.11).
    pub environment: Vec<(String, Secret)>,
    /// Where it starts; absolute.
    pub directory: PathBuf,
}

/// The two ways the protocol begins: with `initialize` (up to 2025-11-25) and without (2026-07-28).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Era {
    /// To be found out: the newer way is tried with a deadline of its own, then the older.
    Unknown,
    /// `initialize`, offering this version; `None` offers the newest that has it.
    Initialize(Option<String>),
    /// `server/discover`, every request complete in itself.
    Stateless,
}
