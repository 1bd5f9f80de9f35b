//! Logging in at servers that ask for it: `aish mcp login` and `:mcp login`.
//!
//! The login itself is [`aish_mcp::oauth`]'s. Here a person is told where to go, their browser is opened, and the token's place is
//! named ([`tokens`]). Nothing here happens unless the person asked for it.

mod tokens;

use super::browser;
use super::runtime::Connected;
use super::{Begin, Mcp, Say};
use crate::app::App;
use crate::cli::Login as Wanted;
use crate::failure::{DONE, Failure};
use crate::oneshot::eprint_line;
use aish_core::redact::Redactor;
use aish_core::sanitize;
use aish_core::secret::Secret;
use aish_mcp::oauth::{self, Identity, Keyring};
use aish_mcp::servers::{Server, State};
use aish_mcp::{Endpoint, ErrorKind, HttpEndpoint};
use std::sync::Arc;
use std::time::Duration;

/// What a server has beyond its own limit to be known to have missed it.
const GRACE_MS: u64 = 500;

/// The tokens of this user. The redactor of the program learns those that come.
pub(super) fn keyring(app: &App) -> Keyring {
    keyring_for(app, app.redactor())
}

/// Teaches a redactor the tokens that are kept now.
pub fn teach(app: &App, redactor: &Redactor) {
    keyring_for(app, redactor.clone()).look();
}

fn keyring_for(app: &App, redactor: Redactor) -> Keyring {
    Keyring::on(tokens::TokenFile::in_folder(&app.paths.data_dir), redactor)
}

/// `aish mcp login`.
///
/// # Errors
/// There is no such server, it has no login, or nobody logged in.
pub async fn run(app: &App, wanted: &Wanted) -> Result<u8, Failure> {
    let alias = &wanted.alias;
    let redactor = app.redactor();
    if wanted.forget {
        let forgotten = keyring(app).forget(alias).await;
        let had_one = forgotten.map_err(|error| Failure::failed(format!("the token cannot be forgotten: {error}")))?;
        let line = if had_one { "is forgotten" } else { "was not known" };
        eprint_line(&format!("mcp: the login at {} {line}", sanitize::single_line(alias)));
        return Ok(DONE);
    }
    let identity = identity(app, wanted)?;
    let (engine, registry) = app.engine_without_model();
    let mcp = Mcp::start(app, &engine, &registry, Begin::AtOnce);
    let say: Say = Arc::new(move |line| eprint_line(&redactor.redact(line)));
    let environment = engine.settings().context.environment;
    let done = tokio::select! {
        done = mcp.log_in(alias, &identity, &environment, &say) => done,
        _ = tokio::signal::ctrl_c() => Err("stopped".to_owned()),
    };
    let done = match done {
        Ok(()) => Ok(arrived(&mcp, alias).await),
        Err(problem) => Err(problem),
    };
    mcp.close().await;
    let line = done.map_err(|problem| Failure::failed(format!("mcp: {}: {problem}", sanitize::single_line(alias))))?;
    say(&line);
    Ok(DONE)
}

/// As whom the command line wants to be known.
fn identity(app: &App, wanted: &Wanted) -> Result<Identity, Failure> {
    let Some(id) = wanted.client_id.clone() else {
        return Ok(Identity::Unknown);
    };
    let secret = wanted.client_secret_env.as_deref().map(|name| {
        let value = app.environment.text(name);
        value
            .map(Secret::new)
            .ok_or_else(|| Failure::usage(format!("${name} is not set")))
    });
    Ok(Identity::Registered {
        id,
        secret: secret.transpose()?,
    })
}

/// How the server does now that there is a token, in a line.
async fn arrived(mcp: &Mcp, alias: &str) -> String {
    let outcome = match mcp.reconnect(alias) {
        Some(before) => mcp.outcome(alias, before).await,
        None => Connected::Gone,
    };
    match outcome {
        Connected::Ready { tools, .. } => {
            let plural = if tools == 1 { "" } else { "s" };
            format!("mcp: {alias}: logged in, {tools} tool{plural}")
        }
        Connected::Trouble { news, .. } => news.unwrap_or_else(|| format!("mcp: {alias}: logged in")),
        Connected::Silent | Connected::Gone => format!("mcp: {alias}: logged in"),
    }
}

impl Mcp {
    /// Logs in at a server: tells the person where to go, opens their browser with that environment, and waits until it is done.
    /// Whoever stops waiting drops the future. The connection does not know yet: reconnect afterwards.
    ///
    /// # Errors
    /// Why nobody is logged in: one line, safe, without the alias.
    pub async fn log_in(
        &self,
        alias: &str,
        identity: &Identity,
        environment: &[(String, String)],
        say: &Say,
    ) -> Result<(), String> {
        let absent = || {
            let disabled = self.switched_off(alias).map(|why| format!("it {why}"));
            disabled.unwrap_or_else(|| "there is no such server".to_owned())
        };
        let server = self.known(alias).await.ok_or_else(absent)?;
        let endpoint = endpoint_of(&server)?;
        let network = self.dial.network().map_err(|error| line(&error.message))?;
        let login = oauth::Login {
            alias: &server.config.alias,
            endpoint,
            client: &network.client,
            keyring: &network.keyring,
            identity,
            challenge: challenge_of(&server),
        };
        let (tell, told) = tokio::sync::oneshot::channel();
        let show = |address: &reqwest::Url| {
            // Nobody waits any more: then the login is over too.
            let _ = tell.send(address.to_string());
        };
        let guide = async {
            let Ok(address) = told.await else { return };
            say(&format!(
                "mcp: {alias}: log in here, Ctrl-C stops waiting: {}",
                line(&address)
            ));
            if let Err(problem) = browser::open(&address, environment).await {
                say(&format!(
                    "mcp: {alias}: no browser was opened ({}): open it yourself",
                    line(&problem)
                ));
            }
        };
        let (done, ()) = tokio::join!(oauth::login(&login, show), guide);
        done.map_err(|error| line(&error.message))
    }

    /// A server, once it is known how it does, or its limit is over.
    async fn known(&self, alias: &str) -> Option<Server> {
        let mut changes = self.servers.changes();
        let limit = self.patience(alias) + Duration::from_millis(GRACE_MS);
        let settled = async {
            while self.servers.get(alias)?.status.state == State::Connecting {
                changes.changed().await.ok()?;
            }
            Some(())
        };
        // One that hangs may have a login all the same.
        let _ = tokio::time::timeout(limit, settled).await;
        self.servers.get(alias)
    }
}

/// Where a token could go that is not configured otherwise.
fn endpoint_of(server: &Server) -> Result<&HttpEndpoint, String> {
    let Endpoint::Http(endpoint) = &server.config.endpoint else {
        return Err("it is a program of this machine: there is nowhere to log in".to_owned());
    };
    let has_header = endpoint
        .headers
        .iter()
        .any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
    if endpoint.token.is_some() || has_header {
        let problem = "it has a token in the configuration (auth_token, auth_env or headers): remove that to log in";
        return Err(problem.to_owned());
    }
    Ok(endpoint)
}

/// What the server asked for when it refused the connection.
fn challenge_of(server: &Server) -> Option<&str> {
    match &server.status.state {
        State::Failed(problem) | State::Waiting { problem, .. } => {
            if let ErrorKind::Unauthorized { challenge } = &problem.kind {
                challenge.as_deref()
            } else {
                None
            }
        }
        State::Connecting | State::Ready => None,
    }
}

fn line(text: &str) -> String {
    sanitize::single_line(text).into_owned()
}
