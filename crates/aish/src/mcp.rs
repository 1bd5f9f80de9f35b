//! MCP servers as this program uses them: connected in the background, their tools offered as they come, their troubles told once.
//!
//! Nothing here waits for a server but [`Mcp::arrived`], for a prompt that is asked once and for commands that list.

use crate::app::App;
use crate::models::Registry;
use crate::paths::Environment;
use aish_engine::{Engine, Supply};
use aish_mcp::connect::{Network, connect_over};
use aish_mcp::memory::Memory;
use aish_mcp::oauth::Keyring;
use aish_mcp::servers::{Connector, Server, Servers, State};
use aish_mcp::{ErrorKind, Host, McpError, Peer, ServerConfig};
use aish_tools::set::ToolSet;
pub use begin::Begin;
use begin::Start;
use clerk::Clerk;
use futures_util::future::BoxFuture;
use host::Front;
use pins::PinFile;
use publish::{Publisher, problem_of};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

pub mod address;
pub mod arguments;
mod begin;
mod browser;
pub mod clerk;
pub mod command;
pub mod desk;
mod evidence;
mod expand;
pub mod form;
mod host;
mod import;
pub mod list;
pub mod log;
pub mod login;
mod patience;
mod pins;
pub mod prompts;
mod publish;
pub mod resources;
pub mod runtime;
mod sampling;
pub mod serve;
mod setup;
mod shelf;
mod troubles;

pub use setup::{credential_variables, secret_variables};

/// How long a prompt that is asked once waits for servers that nobody requires and nothing is remembered of.
const ARRIVE_MS: u64 = 5_000;

/// How long after its start a process that has nothing left to do stays for what is known of servers to be renewed.
const RENEW_MS: u64 = 5_000;
/// How old that may be before anybody stays for it.
const RENEW_AFTER_S: u64 = 10 * 60;

/// Where status lines go.
pub type Say = Arc<dyn Fn(&str) + Send + Sync>;

/// The servers of this process.
pub struct Mcp {
    servers: Arc<Servers>,
    dial: Arc<Dial>,
    host: Arc<Front>,
    /// How the configuration writes them.
    written: list::Written,
    /// Those of the configuration, by alias; nothing for one that could not be set up or is disabled.
    configured: BTreeMap<String, Option<ServerConfig>>,
    /// Those that the configuration switches off, in its order.
    disabled: Vec<String>,
    /// Publishes what they offer.
    publisher: JoinHandle<()>,
    began: tokio::time::Instant,
}

impl Drop for Mcp {
    fn drop(&mut self) {
        self.publisher.abort();
    }
}

/// The connections go through the one client of the process, made when the first server needs it.
struct Dial {
    registry: Arc<Registry>,
    keyring: Keyring,
    start: Start,
}

impl Dial {
    fn network(&self) -> Result<Network, McpError> {
        let client = self.registry.client();
        Ok(Network {
            client: client.map_err(|problem| McpError::new(ErrorKind::Unreachable, problem))?,
            keyring: self.keyring.clone(),
        })
    }
}

impl Connector for Dial {
    fn connect<'a>(
        &'a self,
        config: &'a ServerConfig,
        host: Arc<dyn Host>,
    ) -> BoxFuture<'a, Result<Arc<dyn Peer>, McpError>> {
        Box::pin(async move {
            self.start.come().await;
            connect_over(config, &self.network()?, host).await
        })
    }
}

impl Mcp {
    /// Begins to connect to every configured server, at once or when [`Self::begin`] is called, and offers their tools beside the
    /// built-in ones from now on. Returns at once. Must be called inside a runtime.
    pub fn start(app: &App, engine: &Arc<Engine>, registry: &Arc<Registry>, begin: Begin) -> Self {
        let host = Arc::new(Front::recording(Arc::clone(&engine.asides)));
        let memory = Memory::in_folder(app.paths.cache_dir.join("mcp"));
        let dial = Arc::new(Dial {
            registry: Arc::clone(registry),
            keyring: login::keyring(app),
            start: Start::new(begin),
        });
        let servers = Arc::new(Servers::new(
            Arc::clone(&dial) as Arc<dyn Connector>,
            Arc::clone(&host) as Arc<dyn Host>,
            memory,
        ));
        let setup = setup::Setup::of(app);
        for (alias, problem) in &setup.unusable {
            host.say(&format!("mcp: {alias}: {problem}"));
        }
        for remark in &setup.remarks {
            host.say(remark);
        }
        let aliases = app.config().mcp.servers.iter().map(|server| server.alias.clone());
        let mut configured: BTreeMap<String, Option<ServerConfig>> = aliases.map(|alias| (alias, None)).collect();
        for config in setup.servers {
            configured.insert(config.alias.to_string(), Some(config.clone()));
            if let Err(duplicate) = servers.add(config) {
                host.say(&format!("mcp: {duplicate}"));
            }
        }
        let publisher = Arc::new(Publisher {
            servers: Arc::clone(&servers),
            builtin: ToolSet::clone(&engine.tools.now()),
            engine: Arc::clone(engine),
            host: Arc::clone(&host),
            pins: Arc::new(PinFile::in_folder(&app.paths.data_dir, Arc::clone(&host))),
        });
        publisher.publish();
        // The task holds it for as long as there are servers.
        let supply: Arc<dyn Supply> = Arc::clone(&publisher) as Arc<dyn Supply>;
        engine.tools.supplied_by(Arc::downgrade(&supply));
        let publisher = tokio::spawn(publisher.follow());
        Self {
            servers,
            dial,
            host,
            written: list::Written::of(&app.resolved),
            configured,
            disabled: setup.disabled,
            publisher,
            began: tokio::time::Instant::now(),
        }
    }

    /// The first prompt is there: those that wait for it are connected to. May be called again, and on any thread.
    pub fn begin(&self) {
        self.dial.start.tell();
    }

    /// Whoever answers servers at the terminal of this process, for the front that has it; `say` tells the person one line.
    pub fn clerk(&self, engine: &Arc<Engine>, environment: Environment, say: Say) -> Clerk {
        Clerk::new(Arc::clone(&self.host.desk), Arc::clone(engine), environment, say)
    }

    /// The servers.
    pub fn servers(&self) -> &Arc<Servers> {
        &self.servers
    }

    /// A line for each and how it does, as wide as that, escaped.
    pub fn list(&self, columns: usize) -> String {
        list::servers(&self.servers.list(), &self.disabled, &self.written, columns)
    }

    /// Why there is no server of that alias, where the configuration switches it off: what follows the alias.
    pub fn switched_off(&self, alias: &str) -> Option<&'static str> {
        let is_disabled = self.disabled.iter().any(|disabled| disabled == alias);
        is_disabled.then_some("is switched off in the configuration (enabled = false)")
    }

    /// What they are called, in order.
    pub fn aliases(&self) -> Vec<String> {
        let list = self.servers.list();
        list.iter().map(|server| server.config.alias.to_string()).collect()
    }

    /// Those that are there and offer things of that kind: `prompts`, `resources`.
    pub fn offering(&self, capability: &str) -> Vec<String> {
        let list = self.servers.list().into_iter();
        let offering = list.filter(|server| {
            let peer = server.status.peer.as_ref();
            peer.is_some_and(|peer| peer.about().offers(capability))
        });
        offering.map(|server| server.config.alias.to_string()).collect()
    }

    /// How long a request to a server may take.
    fn patience(&self, alias: &str) -> Duration {
        self.servers
            .get(alias)
            .map(|server| server.config.timeout)
            .unwrap_or_default()
    }

    /// What they wrote.
    pub fn logs(&self) -> &log::Logs {
        &self.host.logs
    }

    /// Who is told of their troubles from now on, and of those up to now.
    pub fn listen(&self, say: Say) {
        self.host.listen(say);
    }

    /// Waits until each server is there, or is known not to come: required ones for as long as they may take, others no longer
    /// than [`ARRIVE_MS`], and those whose tools are remembered not at all.
    ///
    /// # Errors
    /// A required server is not there: one line.
    pub async fn arrived(&self) -> Result<(), String> {
        let mut changes = self.servers.changes();
        let began = tokio::time::Instant::now();
        loop {
            let now = self.servers.list();
            let missing = now
                .iter()
                .filter(|server| server.config.is_required)
                .find_map(problem_of);
            if let Some(problem) = missing {
                return Err(problem);
            }
            let patience = now.iter().filter_map(patience_for).max();
            let Some(patience) = patience else {
                return Ok(());
            };
            let left = patience.saturating_sub(began.elapsed());
            if tokio::time::timeout(left, changes.changed()).await.is_err() {
                let late = now
                    .iter()
                    .find(|server| server.config.is_required && server.status.state == State::Connecting);
                return match late {
                    Some(server) => Err(format!("mcp: {}: it did not answer in time", server.config.alias)),
                    None => Ok(()),
                };
            }
        }
    }

    /// Waits until it is known how each server does that concerns the caller, for as long as that may take.
    pub async fn settled(&self, concerns: impl Fn(&Server) -> bool) {
        let mut changes = self.servers.changes();
        let began = tokio::time::Instant::now();
        loop {
            let now = self.servers.list();
            let connecting = now
                .iter()
                .filter(|server| server.status.state == State::Connecting && concerns(server));
            let Some(patience) = connecting.map(|server| server.config.timeout).max() else {
                return;
            };
            let left = patience.saturating_sub(began.elapsed());
            if tokio::time::timeout(left, changes.changed()).await.is_err() {
                return;
            }
        }
    }

    /// Says which servers are still being connected to, so that a question goes out without their tools; not of those whose tools
    /// are known from before.
    pub fn tell_missing(&self) {
        let list = self.servers.list().into_iter();
        let missing =
            list.filter(|server| server.status.state == State::Connecting && server.status.offer.tools.is_empty());
        let names: Vec<String> = missing.map(|server| server.config.alias.to_string()).collect();
        match names.as_slice() {
            [] => {}
            [name] => self.host.say(&format!(
                "mcp: {name} is still connecting; its tools are not in this question"
            )),
            names => self.host.say(&format!(
                "mcp: {} are still connecting; their tools are not in this question",
                names.join(", ")
            )),
        }
    }

    /// Gives servers that are still being connected to the chance to renew what is known of them, where that has not been done
    /// for [`RENEW_AFTER_S`]: a process that always ends before they are there would offer their old tools for ever. For whoever
    /// has nothing left to do; no longer than [`RENEW_MS`] after the start, and once in that time for a server that does not come.
    pub async fn renewed(&self) {
        let is_due = |server: &Server| {
            let age = self.servers.memory().age(&server.config);
            server.status.state == State::Connecting && age.is_some_and(|age| age.as_secs() >= RENEW_AFTER_S)
        };
        let due: Vec<Server> = self.servers.list().into_iter().filter(is_due).collect();
        if due.is_empty() {
            return;
        }
        let is_among = |server: &Server| due.iter().any(|due| due.config.alias == server.config.alias);
        let left = Duration::from_millis(RENEW_MS).saturating_sub(self.began.elapsed());
        let _ = tokio::time::timeout(left, self.settled(is_among)).await;
        for server in self.servers.list().iter().filter(|server| is_among(server)) {
            if server.status.state != State::Ready {
                self.servers.memory().tried(&server.config);
            }
        }
    }

    /// Ends every connection and every child.
    pub async fn close(&self) {
        self.publisher.abort();
        self.servers.close().await;
    }
}

/// How long this server is waited for; `None` when it is not.
fn patience_for(server: &Server) -> Option<Duration> {
    if server.status.state != State::Connecting {
        return None;
    }
    if server.config.is_required {
        return Some(server.config.timeout);
    }
    let is_remembered = !server.status.offer.tools.is_empty();
    (!is_remembered).then_some(server.config.timeout.min(Duration::from_millis(ARRIVE_MS)))
}
