//! Servers of the configuration, ready to be connected to: variables put in, tokens looked up, a minimal environment.

use super::expand::{expand, names};
use crate::config::Config;
use crate::config::resolved::{McpServer, McpTransport};
use crate::paths::Environment;
use aish_core::secret::Secret;
use aish_mcp::{Alias, Endpoint, Era, HttpEndpoint, ServerConfig, StdioEndpoint};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// The version that has no `initialize`.
const STATELESS: &str = "2026-07-28";
/// What a child needs to find itself and its files, and nothing that is a secret (SPEC 6.11).
const INHERITED: [&str; 14] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TERM",
    "TMPDIR",
    "TZ",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
];

/// What the configuration says of servers, each either ready or with what is wrong with it, one line.
pub struct Setup {
    /// Servers to connect to.
    pub servers: Vec<ServerConfig>,
    /// Servers that cannot be connected to as they are configured: alias, and what is wrong, one line.
    pub unusable: Vec<(String, String)>,
    /// What a person should know, one line each.
    pub remarks: Vec<String>,
}

impl Setup {
    /// Reads them all. A server that cannot be set up is remarked on and left out: the others still work.
    pub fn of(config: &Config, environment: &Environment, directory: &Path) -> Self {
        let mut setup = Self {
            servers: Vec::new(),
            unusable: Vec::new(),
            remarks: Vec::new(),
        };
        for server in &config.mcp.servers {
            match setup.server(server, environment, directory) {
                Ok(ready) => setup.servers.push(ready),
                Err(problem) => setup.unusable.push((server.alias.clone(), problem)),
            }
        }
        setup
    }

    fn server(
        &mut self,
        server: &McpServer,
        environment: &Environment,
        directory: &Path,
    ) -> Result<ServerConfig, String> {
        let put_in = |text: &str| expand(text, |name| environment.text(name)).map_err(|error| error.to_string());
        let secrets = |map: &BTreeMap<String, Secret>| {
            let pairs = map.iter();
            let pairs = pairs.map(|(name, value)| Ok((name.clone(), Secret::new(put_in(value.expose())?))));
            pairs.collect::<Result<Vec<_>, String>>()
        };
        let endpoint = match &server.transport {
            McpTransport::Http { url } => Endpoint::Http(HttpEndpoint {
                url: put_in(url)?,
                token: self.token(server, environment)?,
                headers: secrets(&server.headers)?,
            }),
            McpTransport::Stdio { command } => Endpoint::Stdio(StdioEndpoint {
                command: command.iter().map(|word| put_in(word)).collect::<Result<_, _>>()?,
                environment: child_environment(environment, secrets(&server.env)?),
                directory: directory.to_owned(),
            }),
        };
        Ok(ServerConfig {
            alias: Alias::parse(&server.alias).map_err(|error| error.to_string())?,
            endpoint,
            timeout: Duration::from_secs(server.timeout_s),
            era: match server.protocol.as_deref() {
                None => Era::Unknown,
                Some(STATELESS) => Era::Stateless,
                Some(version) => Era::Initialize(Some(version.to_owned())),
            },
            enabled_tools: server.enabled_tools.clone(),
            disabled_tools: server.disabled_tools.clone(),
            is_required: server.required,
            is_trusted: server.trusted,
        })
    }

    /// The bearer token: the literal one, else the variable's, else none (SPEC 6.3).
    fn token(&mut self, server: &McpServer, environment: &Environment) -> Result<Option<Secret>, String> {
        if let Some(token) = &server.auth_token {
            let token = expand(token.expose(), |name| environment.text(name)).map_err(|error| error.to_string())?;
            return Ok(Some(Secret::new(token)));
        }
        let Some(name) = &server.auth_env else {
            return Ok(None);
        };
        let token = environment.text(name).map(str::trim).filter(|token| !token.is_empty());
        if token.is_none() {
            let line = format!("mcp: {}: ${name} is not set; connecting without a token", server.alias);
            self.remarks.push(line);
        }
        Ok(token.map(Secret::new))
    }
}

/// The variables whose values are secrets once they are put in: those in tokens, headers and a child's variables, and those
/// elsewhere whose name says so. What every program gets anyway is none.
pub fn secret_variables(servers: &[McpServer]) -> impl Iterator<Item = &str> {
    servers.iter().flat_map(variables_of).filter(|name| !is_inherited(name))
}

fn variables_of(server: &McpServer) -> Vec<&str> {
    let pairs = server.headers.values().chain(server.env.values());
    let secrets = server.auth_token.iter().chain(pairs).map(Secret::expose);
    let open: Vec<&str> = match &server.transport {
        McpTransport::Http { url } => vec![url],
        McpTransport::Stdio { command } => command.iter().map(String::as_str).collect(),
    };
    let in_open = open.into_iter().flat_map(names);
    let in_open = in_open.filter(|name| aish_provider::http::is_secret_name(name));
    secrets.flat_map(names).chain(in_open).collect()
}

/// Whether every child gets this variable.
pub(super) fn is_inherited(name: &str) -> bool {
    INHERITED.contains(&name) || name.starts_with("LC_")
}

/// The few variables every program needs, and those that were set for this one, which win.
fn child_environment(environment: &Environment, set: Vec<(String, Secret)>) -> Vec<(String, Secret)> {
    let inherited = environment
        .names()
        .filter(|name| is_inherited(name))
        .filter(|name| !set.iter().any(|(own, _)| own == name))
        .filter_map(|name| Some((name.to_owned(), Secret::new(environment.text(name)?))));
    let mut all: Vec<_> = inherited.collect();
    all.extend(set);
    all
}
