//! What everything of one connection shares: who is asked, who watches which request, and why it ended.

use super::pace::Pace;
use crate::host::News;
use crate::peer::Watch;
use crate::{Alias, ErrorKind, Host, McpError};
use rmcp::RoleClient;
use rmcp::model::{ProgressNotificationParam, ProgressToken, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, RwLock, RwLockReadGuard, watch};

/// Questions that one server may have open at a time.
const QUESTIONS_MAX: usize = 4;

/// Bytes of what a server calls a page; one that is called by more is not heard of again.
const PAGE_ID_BYTES_MAX: usize = 1_000;
/// Opened pages of one server that are remembered.
const PAGES_MAX: usize = 16;

/// Where a half of a connection tells what the SDK's errors cannot carry: statuses, exits, the last words of a child.
pub(crate) trait Trouble: Send + Sync {
    /// Why that request failed.
    fn of_request(&self, id: &RequestId) -> Option<McpError>;

    /// Why the connection ended, or never began.
    fn of_connection(&self) -> Option<McpError>;
}

/// One connection.
pub(crate) struct Session {
    pub(super) alias: Alias,
    pub(super) host: Arc<dyn Host>,
    trouble: Box<dyn Trouble>,
    watches: Mutex<HashMap<ProgressToken, Watching>>,
    /// Held for reading while a request is sent and its token not yet known here, for writing by progress that comes in.
    registering: RwLock<()>,
    /// How many questions of the server are open.
    questions: watch::Sender<usize>,
    /// The pages that the person opened for it and that are not done with.
    pages: Mutex<Vec<String>>,
    ended: watch::Sender<Option<McpError>>,
}

struct Watching {
    watch: Option<Watch>,
    renewed: Arc<Notify>,
    furthest: f64,
}

impl Session {
    pub(crate) fn new(alias: Alias, host: Arc<dyn Host>, trouble: Box<dyn Trouble>) -> Arc<Self> {
        Arc::new(Self {
            alias,
            host,
            trouble,
            watches: Mutex::default(),
            registering: RwLock::default(),
            questions: watch::Sender::new(0),
            pages: Mutex::default(),
            ended: watch::Sender::new(None),
        })
    }

    pub(crate) fn news(&self, news: News) {
        self.host.news(&self.alias, news);
    }

    /// Records the end; the first reason stays.
    pub(crate) fn end(&self, reason: McpError) {
        self.ended.send_if_modified(|ended| {
            let is_first = ended.is_none();
            ended.get_or_insert(reason);
            is_first
        });
    }

    /// Why that request failed, where the connection's half knows.
    pub(crate) fn trouble_of(&self, id: &RequestId) -> Option<McpError> {
        self.trouble.of_request(id)
    }

    /// Why there is no connection, where its half knows.
    pub(crate) fn trouble_of_connection(&self) -> Option<McpError> {
        self.trouble.of_connection()
    }

    /// Whether the connection has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.borrow().is_some()
    }

    /// Records that the other side is gone, with what its half of the connection knows of it.
    pub(crate) fn end_by_peer(&self) {
        let reason = self.trouble.of_connection();
        self.end(reason.unwrap_or_else(|| McpError::new(ErrorKind::Closed, "the connection ended")));
    }

    /// Completes with the reason when the connection has ended.
    pub(crate) async fn ended(&self) -> McpError {
        let mut ended = self.ended.subscribe();
        let reason = ended
            .wait_for(Option::is_some)
            .await
            .ok()
            .and_then(|reason| reason.clone());
        reason.unwrap_or_else(|| McpError::new(ErrorKind::Closed, "the connection ended"))
    }

    /// Hold this from before a request is sent until [`Session::watch`] knows its token.
    pub(super) async fn registering(&self) -> RwLockReadGuard<'_, ()> {
        self.registering.read().await
    }

    /// Tells of the progress of a request until the guard is dropped.
    pub(super) fn watch(self: &Arc<Self>, token: ProgressToken, watch: Option<Watch>) -> WatchGuard {
        let renewed = Arc::new(Notify::new());
        let watching = Watching {
            watch,
            renewed: Arc::clone(&renewed),
            furthest: f64::NEG_INFINITY,
        };
        self.watches().insert(token.clone(), watching);
        WatchGuard {
            session: Arc::clone(self),
            token,
            renewed,
        }
    }

    /// Hears of progress. What does not go forward was overtaken, or is no progress: it renews no patience.
    pub(super) async fn progressed(&self, param: ProgressNotificationParam) {
        drop(self.registering.write().await);
        let mut watches = self.watches();
        let Some(watching) = watches.get_mut(&param.progress_token) else {
            return;
        };
        if param.progress <= watching.furthest {
            return;
        }
        watching.furthest = param.progress;
        watching.renewed.notify_one();
        let watch = watching.watch.clone();
        drop(watches);
        if let Some(watch) = watch {
            watch(crate::peer::Progressed {
                progress: param.progress,
                total: param.total,
                message: param.message,
            });
        }
    }

    /// A place for one more question; `None` when too many are open.
    pub(super) fn open_question(&self) -> Option<QuestionGuard<'_>> {
        let is_opened = self.questions.send_if_modified(|open| {
            let is_free = *open < QUESTIONS_MAX;
            *open += usize::from(is_free);
            is_free
        });
        is_opened.then(|| QuestionGuard(self))
    }

    /// How many questions the server waits for, so that it cannot be hurried; turns with each that opens or closes.
    pub(super) fn questions(&self) -> watch::Receiver<usize> {
        self.questions.subscribe()
    }

    /// Remembers that the person opened a page; of very many, the newest.
    pub(super) fn page_opened(&self, id: &str) {
        if id.len() > PAGE_ID_BYTES_MAX {
            return;
        }
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        if pages.len() == PAGES_MAX {
            pages.remove(0);
        }
        pages.push(id.to_owned());
    }

    /// Hears that a page is done with. Nothing is said of pages that were never opened.
    pub(super) fn page_done(&self, id: &str) {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(at) = pages.iter().position(|page| page == id) else {
            return;
        };
        pages.remove(at);
        drop(pages);
        self.host.say(&format!(
            "mcp: {}: the page it asked you to open is done with",
            self.alias
        ));
    }

    /// A lock that a panic poisoned still guards a whole map.
    fn watches(&self) -> MutexGuard<'_, HashMap<ProgressToken, Watching>> {
        self.watches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Watches a request for progress.
pub(super) struct WatchGuard {
    session: Arc<Session>,
    token: ProgressToken,
    /// Notified of each step.
    pub(super) renewed: Arc<Notify>,
}

impl Drop for WatchGuard {
    fn drop(&mut self) {
        self.session.watches().remove(&self.token);
    }
}

/// One open question.
pub(super) struct QuestionGuard<'a>(&'a Session);

impl Drop for QuestionGuard<'_> {
    fn drop(&mut self) {
        self.0.questions.send_modify(|open| *open = open.saturating_sub(1));
    }
}

/// A transport whose end is known to the session at once: the SDK first lets its handlers finish, which may be waiting for
/// a person.
pub(crate) struct Tap<T> {
    pub(crate) inner: T,
    pub(crate) session: Arc<Session>,
    pace: Pace,
}

impl<T> Tap<T> {
    pub(crate) fn new(inner: T, session: Arc<Session>) -> Self {
        let pace = Pace::default();
        Self { inner, session, pace }
    }
}

impl<T: Transport<RoleClient> + 'static> Transport<RoleClient> for Tap<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        self.pace.turn().await;
        let message = self.inner.receive().await;
        self.pace.heard();
        if message.is_none() {
            self.session.end_by_peer();
        }
        message
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}
