//! The task of one server: it connects, fetches what is offered, waits until the connection ends, and begins again.

use super::{Connector, State, Status};
use crate::error::Lasts;
use crate::host::{News, Question, Reply};
use crate::memory::{Memory, Remembered};
use crate::offer::Offer;
use crate::{Alias, Era, ErrorKind, Host, McpError, Peer, ServerConfig};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// The first pause before a server is tried again; it doubles each time it does not come.
const AGAIN_START_MS: u64 = 1_000;
/// The longest pause.
const AGAIN_MAX_MS: u64 = 60_000;
/// A connection that held this long was a good one: the pauses begin from the start.
const HELD_MS: u64 = 30_000;

pub(super) struct Keeper {
    pub(super) config: Arc<ServerConfig>,
    pub(super) connector: Arc<dyn Connector>,
    pub(super) host: Arc<dyn Host>,
    pub(super) memory: Arc<Memory>,
    pub(super) status: watch::Sender<Status>,
    pub(super) wake: Arc<Notify>,
    pub(super) changed: watch::Sender<u64>,
}

impl Keeper {
    /// Runs until it is aborted. `era` is what the server spoke last time.
    pub(super) async fn run(self, mut era: Option<Era>) {
        let mut pause_ms = AGAIN_START_MS;
        loop {
            self.set(State::Connecting, None);
            let began = tokio::time::Instant::now();
            let problem = match self.connect(&mut era).await {
                Ok(peer) => match self.stay(&peer).await {
                    Some(problem) => problem,
                    None => continue,
                },
                Err(problem) => problem,
            };
            if began.elapsed() >= Duration::from_millis(HELD_MS) {
                pause_ms = AGAIN_START_MS;
            }
            if problem.kind.lasts() == Lasts::UntilChanged {
                self.set(State::Failed(problem), None);
                self.wake.notified().await;
                continue;
            }
            let again_in_ms = pause_ms;
            self.set(State::Waiting { problem, again_in_ms }, None);
            pause_ms = (pause_ms * 2).min(AGAIN_MAX_MS);
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(again_in_ms)) => {}
                () = self.wake.notified() => pause_ms = AGAIN_START_MS,
            }
        }
    }

    /// Connects as the server was spoken to last time; where that fails, it is found out anew.
    async fn connect(&self, era: &mut Option<Era>) -> Result<Arc<dyn Peer>, McpError> {
        if let Some(known) = era.take().filter(|_| self.config.era == Era::Unknown) {
            let config = ServerConfig {
                era: known.clone(),
                ..ServerConfig::clone(&self.config)
            };
            match self.connector.connect(&config, Arc::clone(&self.host)).await {
                Ok(peer) => {
                    *era = Some(known);
                    return Ok(peer);
                }
                // Another way of asking would fail alike.
                Err(problem) if matches!(problem.kind, ErrorKind::Unreachable | ErrorKind::Unusable) => {
                    return Err(problem);
                }
                Err(_) => {}
            }
        }
        let peer = self.connector.connect(&self.config, Arc::clone(&self.host)).await?;
        *era = Some(Remembered::era_of(peer.about()));
        Ok(peer)
    }

    /// Offers what the server has until the connection ends; gives why it did. `None` when it was let go of on this side, because
    /// it was of no use any more: that is nobody's trouble, and another is opened at once.
    async fn stay(&self, peer: &Arc<dyn Peer>) -> Option<McpError> {
        loop {
            match Offer::fetch(peer.as_ref(), self.config.timeout).await {
                Ok(mut offer) => {
                    offer.narrow(&self.config);
                    self.memory.keep(&self.config, peer.about(), &offer);
                    let state = State::Ready;
                    let peer = Some(Arc::clone(peer));
                    self.status.send_replace(Status {
                        state,
                        offer: Arc::new(offer),
                        peer,
                    });
                    self.changed.send_modify(|count| *count += 1);
                }
                Err(problem) => {
                    let ended = peer.ended().now_or_never();
                    peer.close().await;
                    return (!ended.as_ref().is_some_and(was_let_go)).then_some(problem);
                }
            }
            tokio::select! {
                problem = peer.ended() => {
                    peer.close().await;
                    return (!was_let_go(&problem)).then_some(problem);
                }
                () = self.wake.notified() => {}
            }
        }
    }

    fn set(&self, state: State, peer: Option<Arc<dyn Peer>>) {
        self.status.send_modify(|status| {
            status.state = state;
            status.peer = peer;
        });
        self.changed.send_modify(|count| *count += 1);
    }
}

/// A server's host that also hears when its lists have to be fetched anew (SPEC 6.4).
pub(super) struct Listening {
    pub(super) host: Arc<dyn Host>,
    pub(super) wake: Arc<Notify>,
}

impl Host for Listening {
    fn ask<'a>(&'a self, server: &'a Alias, question: Question) -> BoxFuture<'a, Reply> {
        self.host.ask(server, question)
    }

    fn sample<'a>(&'a self, server: &'a Alias, params: Value) -> BoxFuture<'a, Result<Value, String>> {
        self.host.sample(server, params)
    }

    fn news(&self, server: &Alias, news: News) {
        match &news {
            // However many come at once, the lists are fetched once or twice.
            News::ToolsChanged => self.wake.notify_one(),
            News::PromptsChanged
            | News::ResourcesChanged
            | News::ResourceUpdated { .. }
            | News::Log { .. }
            | News::Stderr { .. } => {}
        }
        self.host.news(server, news);
    }

    fn is_attended(&self) -> bool {
        self.host.is_attended()
    }

    fn say(&self, line: &str) {
        self.host.say(line);
    }
}

/// Whether a connection ended because this side closed it.
fn was_let_go(end: &McpError) -> bool {
    end.kind == ErrorKind::Cancelled
}
