//! Connecting: which era a server speaks, within a deadline, and a [`crate::Peer`] to it.
//!
//! A server whose era is unknown is asked `server/discover`, with a deadline of its own; where that brings nothing it is
//! asked `initialize`, on the same connection where the transport still carries one, else on a fresh one. What it answered
//! to is in [`crate::About::protocol`]; whoever remembers it saves the question.

mod greet;
mod open;

use crate::oauth::Keyring;
use crate::wire::{Session, Tap, WirePeer, client_config};
use crate::{Endpoint, Era, ErrorKind, Host, McpError, Peer, ServerConfig};
use greet::{Asked, Greeting};
use open::{AfterSilence, Open, OverHttp, OverStdio};
use rmcp::RoleClient;
use rmcp::model::ProtocolVersion;
use rmcp::transport::Transport;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long `server/discover` may go unanswered, where it is not known that the server has it.
const DISCOVER_TIMEOUT_MS: u64 = 1_500;
/// How long the end of a connection that came to nothing may take.
const DISCARD_TIMEOUT_MS: u64 = 5_000;

/// How HTTP servers are reached, and with which tokens.
#[derive(Clone)]
pub struct Network {
    /// Carries the requests. It must follow no redirect to another origin: credentials would go there.
    pub client: reqwest::Client,
    /// What was allowed to whom; goes along where the configuration has no token.
    pub keyring: Keyring,
}

/// Connects, without any token but the configured one.
///
/// # Errors
/// Every way in which there is no connection.
pub async fn connect(
    config: &ServerConfig,
    client: &reqwest::Client,
    host: Arc<dyn Host>,
) -> Result<Arc<dyn Peer>, McpError> {
    let network = Network {
        client: client.clone(),
        keyring: Keyring::in_memory(),
    };
    connect_over(config, &network, host).await
}

/// Connects.
///
/// # Errors
/// Every way in which there is no connection. A server that wants a login fails at once, with
/// [`ErrorKind::Unauthorized`]: nobody is asked here.
pub async fn connect_over(
    config: &ServerConfig,
    network: &Network,
    host: Arc<dyn Host>,
) -> Result<Arc<dyn Peer>, McpError> {
    match &config.endpoint {
        Endpoint::Http(endpoint) => {
            let opener = OverHttp {
                alias: &config.alias,
                endpoint,
                client: &network.client,
                keyring: &network.keyring,
            };
            Attempt::new(config, host, opener).run().await
        }
        Endpoint::Stdio(endpoint) => {
            let opener = OverStdio {
                alias: &config.alias,
                endpoint,
                host: Arc::clone(&host),
            };
            Attempt::new(config, host, opener).run().await
        }
    }
}

/// One server, being connected to.
struct Attempt<'a, O> {
    config: &'a ServerConfig,
    host: Arc<dyn Host>,
    opener: O,
    deadline: Instant,
}

impl<'a, O: Open> Attempt<'a, O> {
    fn new(config: &'a ServerConfig, host: Arc<dyn Host>, opener: O) -> Self {
        let deadline = Instant::now() + config.timeout;
        Self {
            config,
            host,
            opener,
            deadline,
        }
    }

    async fn run(&self) -> Result<Arc<dyn Peer>, McpError> {
        match &self.config.era {
            Era::Unknown => self.find_out().await,
            Era::Stateless => {
                let mut tap = self.open().await?;
                let greeting = discover(&mut tap, self.deadline).await;
                finish(tap, greeting)
            }
            Era::Initialize(version) => self.initialize(offered(version.as_deref())?).await,
        }
    }

    async fn find_out(&self) -> Result<Arc<dyn Peer>, McpError> {
        let mut tap = self.open().await?;
        let limit = Duration::from_millis(DISCOVER_TIMEOUT_MS).min(self.config.timeout / 2);
        let mut greeting = discover(&mut tap, Instant::now() + limit).await;
        let may_ask = O::AFTER_SILENCE == AfterSilence::Ask && !tap.session.has_ended();
        if greeting.is_err() && may_ask {
            // Half of what is left: a server that `server/discover` has put out of order is started anew with the rest.
            let now = Instant::now();
            let until = now + self.deadline.saturating_duration_since(now) / 2;
            greeting = initialize(&mut tap, ProtocolVersion::LATEST_WITH_INITIALIZE, until).await;
        }
        match finish(tap, greeting) {
            Err(error) if !is_final(&error) => self.initialize(ProtocolVersion::LATEST_WITH_INITIALIZE).await,
            outcome => outcome,
        }
    }

    async fn initialize(&self, version: ProtocolVersion) -> Result<Arc<dyn Peer>, McpError> {
        let mut tap = self.open().await?;
        let greeting = initialize(&mut tap, version, self.deadline).await;
        finish(tap, greeting)
    }

    async fn open(&self) -> Result<Tap<O::Transport>, McpError> {
        let opened = tokio::time::timeout_at(self.deadline, self.opener.open()).await;
        let late = || McpError::new(ErrorKind::Timeout, "it did not start in time");
        let (inner, trouble) = opened.unwrap_or_else(|_| Err(late()))?;
        let session = Session::new(self.config.alias.clone(), Arc::clone(&self.host), trouble);
        Ok(Tap::new(inner, session))
    }
}

async fn discover<T: Transport<RoleClient> + 'static>(tap: &mut Tap<T>, until: Instant) -> Result<Greeting, McpError> {
    greet::ask(tap, Asked::Discover, ProtocolVersion::V_2026_07_28, until).await
}

async fn initialize<T: Transport<RoleClient> + 'static>(
    tap: &mut Tap<T>,
    version: ProtocolVersion,
    until: Instant,
) -> Result<Greeting, McpError> {
    greet::ask(tap, Asked::Initialize, version, until).await
}

/// Serves the connection, or ends it in the background.
fn finish<T: Transport<RoleClient> + 'static>(
    mut tap: Tap<T>,
    greeting: Result<Greeting, McpError>,
) -> Result<Arc<dyn Peer>, McpError> {
    match greeting {
        Ok(Greeting { about, info }) => {
            let config = client_config(info.protocol_version.clone());
            Ok(Arc::new(WirePeer::serve(tap, about, info, config)))
        }
        Err(error) => {
            tokio::spawn(async move {
                // What is not closed in time ends when it is dropped.
                let _ = tokio::time::timeout(Duration::from_millis(DISCARD_TIMEOUT_MS), tap.close()).await;
            });
            Err(error)
        }
    }
}

/// Whether the older protocol would find the same: nobody is there or can be asked at all, or wants to know first who asks.
fn is_final(error: &McpError) -> bool {
    matches!(
        error.kind,
        ErrorKind::Unreachable | ErrorKind::Unusable | ErrorKind::Unauthorized { .. }
    )
}

/// The version that `initialize` offers.
fn offered(version: Option<&str>) -> Result<ProtocolVersion, McpError> {
    let Some(version) = version else {
        return Ok(ProtocolVersion::LATEST_WITH_INITIALIZE);
    };
    let known = ProtocolVersion::KNOWN_VERSIONS
        .iter()
        .filter(|known| known.has_initialize());
    known
        .into_iter()
        .find(|known| known.as_str() == version)
        .cloned()
        .ok_or_else(|| {
            let message = format!("protocol {version:?} is none that begins with initialize");
            McpError::new(ErrorKind::Version, message)
        })
}

#[cfg(test)]
mod tests;
