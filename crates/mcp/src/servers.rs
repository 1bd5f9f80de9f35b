//! The servers of a process: each has a task of its own that connects, stays connected and comes back (SPEC 6.4).
//!
//! Nobody waits for a server but whoever calls one of its tools. What a server offered last time is offered at once, while it is
//! still being connected to; a call of such a tool waits for the connection, no longer than the server's own limit.

use crate::memory::{Memory, Remembered};
use crate::offer::Offer;
use crate::{Alias, ErrorKind, Host, McpError, Peer, ServerConfig};
use futures_util::future::BoxFuture;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use tokio::task::JoinHandle;

mod call;
mod keep;

/// Opens a connection. The program's own is [`crate::connect::connect`] over its HTTP client.
pub trait Connector: Send + Sync {
    /// Connects, within the server's limit. What the server asks and tells goes to that host.
    ///
    /// # Errors
    /// Every way in which there is no connection.
    fn connect<'a>(
        &'a self,
        config: &'a ServerConfig,
        host: Arc<dyn Host>,
    ) -> BoxFuture<'a, Result<Arc<dyn Peer>, McpError>>;
}

/// How a server is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It is being connected to.
    Connecting,
    /// It answers.
    Ready,
    /// It was lost or did not come; it is tried again.
    Waiting {
        /// What went wrong.
        problem: McpError,
        /// After this long, in milliseconds.
        again_in_ms: u64,
    },
    /// It is not tried again until somebody says so: what went wrong does not go away by itself.
    Failed(McpError),
}

/// What is known of a server now.
#[derive(Clone)]
pub struct Status {
    /// How it is doing.
    pub state: State,
    /// What it offers, or offered when it was last there.
    pub offer: Arc<Offer>,
    /// The connection, while there is one.
    pub peer: Option<Arc<dyn Peer>>,
}

/// A server in a list.
#[derive(Clone)]
pub struct Server {
    /// How it is reached.
    pub config: Arc<ServerConfig>,
    /// How it is doing.
    pub status: Status,
}

/// Every server of a process. Dropping it drops the connections; [`Servers::close`] ends them properly.
pub struct Servers {
    connector: Arc<dyn Connector>,
    host: Arc<dyn Host>,
    memory: Arc<Memory>,
    entries: Mutex<Vec<Entry>>,
    /// Counts changes of what is offered.
    changed: watch::Sender<u64>,
}

struct Entry {
    config: Arc<ServerConfig>,
    status: watch::Sender<Status>,
    /// Tells its task to fetch the lists anew, or to connect at once.
    wake: Arc<tokio::sync::Notify>,
    task: JoinHandle<()>,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A server of that alias is there already.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a server named {0} is there already")]
pub struct DuplicateServer(pub Alias);

impl Servers {
    /// No servers yet. What they offer is remembered in that memory.
    pub fn new(connector: Arc<dyn Connector>, host: Arc<dyn Host>, memory: Memory) -> Self {
        Self {
            connector,
            host,
            memory: Arc::new(memory),
            entries: Mutex::default(),
            changed: watch::Sender::new(0),
        }
    }

    /// Begins to connect to a server, and returns at once. Must be called inside a runtime.
    ///
    /// # Errors
    /// Its alias is taken.
    pub fn add(&self, config: ServerConfig) -> Result<(), DuplicateServer> {
        let mut entries = self.entries();
        if entries.iter().any(|entry| entry.config.alias == config.alias) {
            return Err(DuplicateServer(config.alias));
        }
        let config = Arc::new(config);
        let remembered = self.memory.recall(&config);
        let era = remembered.as_ref().map(Remembered::era);
        let mut offer = remembered.map(|it| it.offer).unwrap_or_default();
        // Which tools are enabled may have been configured otherwise then.
        offer.narrow(&config);
        offer.remarks.clear();
        let offer = Arc::new(offer);
        let status = watch::Sender::new(Status {
            state: State::Connecting,
            offer,
            peer: None,
        });
        let wake = Arc::new(tokio::sync::Notify::new());
        let keeper = keep::Keeper {
            config: Arc::clone(&config),
            connector: Arc::clone(&self.connector),
            host: Arc::new(keep::Listening {
                host: Arc::clone(&self.host),
                wake: Arc::clone(&wake),
            }),
            memory: Arc::clone(&self.memory),
            status: status.clone(),
            wake: Arc::clone(&wake),
            changed: self.changed.clone(),
        };
        entries.push(Entry {
            config,
            status,
            wake,
            task: tokio::spawn(keeper.run(era)),
        });
        drop(entries);
        self.changed.send_modify(|count| *count += 1);
        Ok(())
    }

    /// Ends the connection to a server and forgets it; false when there is none of that alias.
    pub async fn remove(&self, alias: &str) -> bool {
        let entry = {
            let mut entries = self.entries();
            let at = entries.iter().position(|entry| entry.config.alias.as_str() == alias);
            at.map(|at| entries.remove(at))
        };
        let Some(entry) = entry else { return false };
        end(entry).await;
        self.changed.send_modify(|count| *count += 1);
        true
    }

    /// Every server, in the order they were added.
    pub fn list(&self) -> Vec<Server> {
        let entries = self.entries();
        entries
            .iter()
            .map(|entry| Server {
                config: Arc::clone(&entry.config),
                status: entry.status.borrow().clone(),
            })
            .collect()
    }

    /// The server of that alias.
    pub fn get(&self, alias: &str) -> Option<Server> {
        self.list()
            .into_iter()
            .find(|server| server.config.alias.as_str() == alias)
    }

    /// What is known of servers from before.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Who is asked and told on behalf of servers.
    pub fn host(&self) -> &Arc<dyn Host> {
        &self.host
    }

    /// Fetches what a server offers anew, or connects to it now if it is not connected.
    pub fn refresh(&self, alias: &str) {
        if let Some(entry) = self.entries().iter().find(|entry| entry.config.alias.as_str() == alias) {
            entry.wake.notify_one();
        }
    }

    /// Turns whenever what is offered, or how a server is doing, has changed.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// The connection to a server, waited for no longer than its own limit.
    ///
    /// # Errors
    /// There is no such server, or it cannot be reached.
    pub async fn peer(&self, alias: &str) -> Result<Arc<dyn Peer>, McpError> {
        self.peer_but(alias, None).await
    }

    /// The same, but not this one, which was lost: then the next attempt to connect is waited for too.
    async fn peer_but(&self, alias: &str, lost: Option<&Arc<dyn Peer>>) -> Result<Arc<dyn Peer>, McpError> {
        let found = {
            let entries = self.entries();
            let entry = entries.iter().find(|entry| entry.config.alias.as_str() == alias);
            entry.map(|entry| (entry.status.subscribe(), entry.config.timeout))
        };
        let Some((mut status, timeout)) = found else {
            return Err(McpError::new(ErrorKind::Unreachable, "no such server is connected"));
        };
        let arrived = async {
            loop {
                {
                    let now = status.borrow_and_update();
                    match (&now.state, &now.peer) {
                        (State::Ready, Some(peer)) if lost.is_none_or(|lost| !Arc::ptr_eq(lost, peer)) => {
                            return Ok(Arc::clone(peer));
                        }
                        (State::Failed(problem), _) => return Err(problem.clone()),
                        (State::Waiting { problem, .. }, _) if lost.is_none() => return Err(problem.clone()),
                        (State::Connecting | State::Ready | State::Waiting { .. }, _) => {}
                    }
                }
                if status.changed().await.is_err() {
                    return Err(McpError::new(ErrorKind::Closed, "it was disconnected"));
                }
            }
        };
        tokio::time::timeout(timeout, arrived).await.unwrap_or_else(|_| {
            let message = format!("not connected after {} s", timeout.as_secs());
            Err(McpError::new(ErrorKind::Timeout, message))
        })
    }

    /// Ends every connection, side by side.
    pub async fn close(&self) {
        let entries = std::mem::take(&mut *self.entries());
        futures_util::future::join_all(entries.into_iter().map(end)).await;
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        // A list is changed by whole entries: a poisoned lock holds a whole one.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn end(entry: Entry) {
    entry.task.abort();
    let peer = entry.status.borrow().peer.clone();
    if let Some(peer) = peer {
        peer.close().await;
    }
}
