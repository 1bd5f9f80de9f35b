//! A connected server: the SDK's running service as a [`Peer`].

use super::listener::{Listener, MayAsk};
use super::session::{Session, Tap};
use super::{call, rounds};
use crate::host::News;
use crate::peer::{About, Peer, Watch, cannot_go_on};
use crate::{ErrorKind, InputRequired, McpError};
use futures_util::future::BoxFuture;
use rmcp::RoleClient;
use rmcp::model::{ClientConfig, ServerPeerInfo};
use rmcp::service::{RunningServiceCancellationToken, serve_directly};
use rmcp::transport::Transport;
use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// How long closing may take: the SDK drains for 2 s, then the half of the connection ends what is its own.
const CLOSE_TIMEOUT_MS: u64 = 8_000;
/// How often the stream of list changes is opened again after it was lost.
const LISTEN_AGAIN_MAX: u32 = 5;
/// The first pause before it is; it doubles each time.
const LISTEN_AGAIN_START_MS: u64 = 1_000;
/// The capabilities whose lists can change, and what a subscription to that is called.
const LISTS: [(&str, &str, News); 3] = [
    ("tools", "toolsListChanged", News::ToolsChanged),
    ("prompts", "promptsListChanged", News::PromptsChanged),
    ("resources", "resourcesListChanged", News::ResourcesChanged),
];

/// A connected server.
pub(crate) struct WirePeer {
    about: About,
    rounds: Rounds,
    session: Arc<Session>,
    peer: rmcp::Peer<RoleClient>,
    stop: Mutex<Option<RunningServiceCancellationToken>>,
    is_gone: watch::Receiver<bool>,
    listening: Option<AbortHandle>,
}

/// Whether a result may ask for another round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rounds {
    One,
    Several,
}

impl WirePeer {
    /// Serves a connection whose handshake is done.
    pub(crate) fn serve<T: Transport<RoleClient> + 'static>(
        tap: Tap<T>,
        about: About,
        info: ServerPeerInfo,
        config: ClientConfig,
    ) -> Self {
        let is_stateless = !info.protocol_version.has_initialize();
        let session = Arc::clone(&tap.session);
        let listener = Listener {
            session: Arc::clone(&session),
            config,
            may_ask: if is_stateless { MayAsk::No } else { MayAsk::Yes },
        };
        let running = serve_directly(listener, tap, Some(info));
        let peer = running.peer().clone();
        let stop = running.cancellation_token();
        let (gone, is_gone) = watch::channel(false);
        let ending = Arc::clone(&session);
        tokio::spawn(async move {
            // Whether the service ended or its task failed, the connection is gone.
            let _ = running.waiting().await;
            ending.end_by_peer();
            gone.send_replace(true);
        });
        let listening = is_stateless.then(|| listen(&about, &session, &peer)).flatten();
        Self {
            about,
            rounds: if is_stateless { Rounds::Several } else { Rounds::One },
            session,
            peer,
            stop: Mutex::new(Some(stop)),
            is_gone,
            listening,
        }
    }

    fn stop(&self) {
        self.session.end(McpError::new(ErrorKind::Cancelled, "disconnected"));
        if let Some(listening) = &self.listening {
            listening.abort();
        }
        let stop = self.stop.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(stop) = stop {
            stop.cancel();
        }
    }
}

impl Drop for WirePeer {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Peer for WirePeer {
    fn about(&self) -> &About {
        &self.about
    }

    fn request<'a>(
        &'a self,
        method: &'a str,
        params: Map<String, Value>,
        patience: Duration,
        watch: Option<Watch>,
    ) -> BoxFuture<'a, Result<Value, McpError>> {
        match self.rounds {
            Rounds::One => Box::pin(call::once(&self.session, &self.peer, (method, params), patience, watch)),
            Rounds::Several => Box::pin(rounds::complete(
                &self.session,
                &self.peer,
                (method, params),
                patience,
                watch,
            )),
        }
    }

    fn answers<'a>(&'a self, required: &'a InputRequired) -> BoxFuture<'a, Result<Map<String, Value>, McpError>> {
        Box::pin(async move {
            match self.rounds {
                Rounds::One => Err(cannot_go_on()),
                Rounds::Several if !self.session.host.is_attended() => Err(required.clone().unanswered()),
                Rounds::Several => rounds::answered(&self.session, required.clone()).await,
            }
        })
    }

    fn ended(&self) -> BoxFuture<'_, McpError> {
        Box::pin(self.session.ended())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.stop();
            let mut is_gone = self.is_gone.clone();
            // Past the limit the halves end what is left when they are dropped.
            let _ = tokio::time::timeout(Duration::from_millis(CLOSE_TIMEOUT_MS), is_gone.wait_for(|gone| *gone)).await;
        })
    }
}

/// Subscribes to the changes of the lists that can change (2026-07-28, `subscriptions/listen`).
fn listen(about: &About, session: &Arc<Session>, peer: &rmcp::Peer<RoleClient>) -> Option<AbortHandle> {
    let changing = |name: &str| about.capabilities.get(name).and_then(|it| it.get("listChanged")) == Some(&json!(true));
    let lists: Vec<_> = LISTS.into_iter().filter(|(name, _, _)| changing(name)).collect();
    if lists.is_empty() {
        return None;
    }
    let (session, peer) = (Arc::clone(session), peer.clone());
    let task = tokio::spawn(async move {
        let wanted: Map<String, Value> = lists
            .iter()
            .map(|(_, key, _)| ((*key).to_owned(), json!(true)))
            .collect();
        let mut pause = Duration::from_millis(LISTEN_AGAIN_START_MS);
        for _ in 0..=LISTEN_AGAIN_MAX {
            let params = Map::from_iter([("notifications".to_owned(), Value::Object(wanted.clone()))]);
            let patience = Duration::from_secs(call::REQUEST_TOTAL_MAX_S);
            match call::once(&session, &peer, ("subscriptions/listen", params), patience, None).await {
                Err(error) if matches!(error.kind, ErrorKind::Rpc { .. } | ErrorKind::Cancelled) => return,
                Ok(_) | Err(_) => {}
            }
            tokio::select! {
                _ = session.ended() => return,
                () = tokio::time::sleep(pause) => pause *= 2,
            }
            // Nobody heard what changed meanwhile.
            lists.iter().for_each(|(_, _, news)| session.news(news.clone()));
        }
    });
    Some(task.abort_handle())
}
