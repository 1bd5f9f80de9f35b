//! MCP servers as this program uses them: connected in the background, their tools offered as they come, their troubles told once.
//!
//! Nothing here waits for a server but [`Mcp::arrived`], for a prompt that is asked once and for commands that list.

use crate::app::App;
use crate::models::Registry;
use aish_engine::Engine;
use aish_mcp::memory::Memory;
use aish_mcp::servers::{Connector, Server, Servers, State};
use aish_mcp::{ErrorKind, Host, McpError, Peer, ServerConfig};
use aish_tools::set::ToolSet;
use futures_util::future::BoxFuture;
use host::Front;
use publish::{keep_published, problem_of, publish};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

pub mod command;
mod expand;
mod host;
pub mod list;
pub mod log;
pub mod login;
mod publish;
pub mod serve;
mod setup;
pub mod shelf;

/// How long a prompt that is asked once waits for servers that nobody requires and nothing is remembered of.
const ARRIVE_MS: u64 = 5_000;

/// Where status lines go.
pub type Say = Arc<dyn Fn(&str) + Send + Sync>;

/// The servers of this process.
pub struct Mcp {
    servers: Arc<Servers>,
    host: Arc<Front>,
    /// Publishes what they offer.
    publisher: JoinHandle<()>,
}

impl Drop for Mcp {
    fn drop(&mut self) {
        self.publisher.abort();
    }
}

/// The connections go through the one client of the process, made when the first server needs it.
struct Dial(Arc<Registry>);

impl Connector for Dial {
    fn connect<'a>(
        &'a self,
        config: &'a ServerConfig,
        host: Arc<dyn Host>,
    ) -> BoxFuture<'a, Result<Arc<dyn Peer>, McpError>> {
        Box::pin(async move {
            let client = self
                .0
                .client()
                .map_err(|problem| McpError::new(ErrorKind::Unreachable, problem))?;
            aish_mcp::connect::connect(config, &client, host).await
        })
    }
}

impl Mcp {
    /// Begins to connect to every configured server, and offers their tools beside the built-in ones from now on. Returns at
    /// once. Must be called inside a runtime.
    pub fn start(app: &App, engine: &Arc<Engine>, registry: &Arc<Registry>) -> Self {
        let host = Arc::new(Front::default());
        let memory = Memory::in_folder(app.paths.cache_dir.join("mcp"));
        let servers = Arc::new(Servers::new(
            Arc::new(Dial(Arc::clone(registry))),
            Arc::clone(&host) as Arc<dyn Host>,
            memory,
        ));
        let setup = setup::Setup::of(app.config(), &app.environment, &app.cwd);
        for remark in &setup.remarks {
            host.say(remark);
        }
        for config in setup.servers {
            if let Err(duplicate) = servers.add(config) {
                host.say(&format!("mcp: {duplicate}"));
            }
        }
        let builtin = ToolSet::clone(&engine.tools.now());
        publish(&servers, &builtin, engine);
        let publisher = tokio::spawn(keep_published(
            Arc::clone(&servers),
            builtin,
            Arc::clone(engine),
            Arc::clone(&host),
        ));
        Self {
            servers,
            host,
            publisher,
        }
    }

    /// The servers.
    pub fn servers(&self) -> &Arc<Servers> {
        &self.servers
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

    /// Waits until it is known of each server how it does, for as long as it may take.
    pub async fn settled(&self) {
        let mut changes = self.servers.changes();
        let began = tokio::time::Instant::now();
        loop {
            let now = self.servers.list();
            let connecting = now.iter().filter(|server| server.status.state == State::Connecting);
            let Some(patience) = connecting.map(|server| server.config.timeout).max() else {
                return;
            };
            let left = patience.saturating_sub(began.elapsed());
            if tokio::time::timeout(left, changes.changed()).await.is_err() {
                return;
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
