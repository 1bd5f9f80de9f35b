//! Servers of the configuration, ready to be connected to: variables put in, tokens looked up, a minimal environment.

use super::expand::{expand, names};
use crate::app::App;
use crate::config::resolved::{Cwd, CwdBase, McpServer, McpTransport};
use crate::paths::Environment;
use crate::trust::project_dir;
use aish_core::secret::Secret;
use aish_mcp::{Alias, Endpoint, Era, HttpEndpoint, ServerConfig, StdioEndpoint};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
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
    /// Servers that are not to be connected to. Nothing of theirs is looked at.
    pub disabled: Vec<String>,
    /// What a person should know, one line each.
    pub remarks: Vec<String>,
}

impl Setup {
    /// Reads them all. A server that cannot be set up is remarked on and left out: the others still work.
    pub fn of(app: &App) -> Self {
        let mut setup = Self {
            servers: Vec::new(),
            unusable: Vec::new(),
            disabled: Vec::new(),
            remarks: Vec::new(),
        };
        let surroundings = Surroundings::of(app);
        for server in &app.config().mcp.servers {
            if !server.enabled {
                setup.disabled.push(server.alias.clone());
                continue;
            }
            match setup.server(server, &surroundings) {
                Ok(ready) => setup.servers.push(ready),
                Err(problem) => setup.unusable.push((server.alias.clone(), problem)),
            }
        }
        setup
    }

    fn server(&mut self, server: &McpServer, surroundings: &Surroundings<'_>) -> Result<ServerConfig, String> {
        let environment = surroundings.environment;
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
            McpTransport::Stdio { command, cwd } => Endpoint::Stdio(StdioEndpoint {
                command: command.iter().map(|word| put_in(word)).collect::<Result<_, _>>()?,
                environment: child_environment(environment, secrets(&server.env)?),
                directory: match cwd {
                    Some(cwd) => surroundings.directory(cwd)?,
                    None => surroundings.working.to_owned(),
                },
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

/// What the configuration speaks of without saying it.
struct Surroundings<'a> {
    environment: &'a Environment,
    /// Where aish works.
    working: &'a Path,
    /// The directory of the user's file.
    configuration: PathBuf,
    project: Option<PathBuf>,
}

impl<'a> Surroundings<'a> {
    fn of(app: &'a App) -> Self {
        let configuration = app.paths.config_file.parent().unwrap_or(&app.cwd);
        Self {
            environment: &app.environment,
            working: &app.cwd,
            configuration: app.cwd.join(configuration),
            project: project_dir(&app.cwd, app.environment.path("HOME")),
        }
    }

    /// The directory that was meant; whether it is there is found out when the server is started.
    fn directory(&self, cwd: &Cwd) -> Result<PathBuf, String> {
        let path = expand(&cwd.path, |name| self.environment.text(name)).map_err(|error| error.to_string())?;
        if path.is_empty() {
            return Err("nothing is left of its `cwd` when the variables are put in".to_owned());
        }
        if let Some(below) = path
            .strip_prefix('~')
            .filter(|rest| rest.is_empty() || rest.starts_with('/'))
        {
            let home = self.environment.path("HOME").filter(|home| home.is_absolute());
            let home = home.ok_or("its `cwd` begins with ~, and HOME is not set")?;
            return Ok(home.join(below.trim_start_matches('/')));
        }
        let base = match cwd.base {
            CwdBase::Configuration => self.configuration.as_path(),
            // A project's file is only read where there is a project.
            CwdBase::Project => self.project.as_deref().unwrap_or(self.working),
        };
        Ok(base.join(path))
    }
}

/// The variables whose values are secrets once they are put in: those in tokens, headers and a child's variables, and those
/// elsewhere whose name says so. What every program gets anyway is none.
pub fn secret_variables(servers: &[McpServer]) -> impl Iterator<Item = &str> {
    servers.iter().flat_map(variables_of).filter(|name| !is_inherited(name))
}

/// The variables that are put into tokens and headers alone: no program of the user's has a use for them there.
pub fn credential_variables(servers: &[McpServer]) -> impl Iterator<Item = &str> {
    let credentials = servers
        .iter()
        .flat_map(|server| server.auth_token.iter().chain(server.headers.values()));
    let named = credentials.map(Secret::expose).flat_map(names);
    named.filter(|name| !is_inherited(name))
}

fn variables_of(server: &McpServer) -> Vec<&str> {
    let pairs = server.headers.values().chain(server.env.values());
    let secrets = server.auth_token.iter().chain(pairs).map(Secret::expose);
    let open: Vec<&str> = match &server.transport {
        McpTransport::Http { url } => vec![url],
        McpTransport::Stdio { command, cwd } => {
            let words = command.iter().map(String::as_str);
            words.chain(cwd.iter().map(|cwd| cwd.path.as_str())).collect()
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 6.9, 10.4: a directory is absolute, the user's, or seen from the file that names it; what cannot be one is said.
    #[test]
    fn directories() {
        let environment = Environment::from_pairs([("HOME", "/home/u"), ("SUB", "s/t")]);
        let homeless = Environment::from_pairs([("SUB", "s/t")]);
        let directory = |path: &str, base, environment: &Environment| {
            let surroundings = Surroundings {
                environment,
                working: Path::new("/work"),
                configuration: "/config".into(),
                project: Some("/project".into()),
            };
            let path = path.to_owned();
            let found = surroundings.directory(&Cwd { path, base });
            found.map(|directory| directory.display().to_string())
        };
        for (path, expect) in [
            ("/srv/${SUB}", "/srv/s/t"),
            ("~", "/home/u/"),
            ("~/notes", "/home/u/notes"),
            ("~notes", "/config/~notes"),
            ("a", "/config/a"),
            ("${SUB}", "/config/s/t"),
            ("${NONE:-/opt}", "/opt"),
        ] {
            let found = directory(path, CwdBase::Configuration, &environment);
            assert_eq!(found.as_deref(), Ok(expect), "{path}");
        }
        let found = directory("a", CwdBase::Project, &environment);
        assert_eq!(found.as_deref(), Ok("/project/a"));
        for (path, environment, why) in [
            ("${NONE}", &environment, "${NONE} is not set"),
            ("${NONE:-}", &environment, "nothing is left of its `cwd`"),
            ("~/x", &homeless, "HOME is not set"),
        ] {
            let problem = directory(path, CwdBase::Configuration, environment);
            assert!(
                problem.as_ref().is_err_and(|problem| problem.contains(why)),
                "{problem:?}"
            );
        }
    }
}
