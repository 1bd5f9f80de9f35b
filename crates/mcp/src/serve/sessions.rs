//! Sessions of the older protocols over HTTP: how many there may be, whose calls go on, and whose end.
//!
//! The SDK keeps the sessions; here is who uses them. A session is in use while a request of it is answered or a stream of it is
//! open. When another is begun and there is no room, the one that was used longest ago goes: its client begins anew, as the
//! protocol has it for a session that is gone (404; MCP, transports, session management).
//!
//! That a stream broke takes no call back (MCP, transports, resumability): the client may take the stream up again, or say what
//! it wants. One that does neither for a while is gone, and its calls are to end.

use aish_tools::Cancel;
use rmcp::transport::streamable_http_server::SessionManager as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// Sessions at once. Many clients go without ending theirs, so there is room for those.
const SESSIONS_MAX: usize = 256;
/// A session nobody has used for as long is forgotten. A command may be silent for an hour.
const SESSION_IDLE_S: u64 = 65 * 60;
/// How long a client whose calls run may be away. Clients take a broken stream up again after a few seconds.
const AWAY_S: u64 = 10;

/// The sessions there are.
pub(super) struct Sessions {
    /// The SDK's side of them.
    pub(super) manager: Arc<LocalSessionManager>,
    uses: Mutex<HashMap<String, Use>>,
    /// Something is used no more.
    left: Notify,
}

struct Use {
    /// Requests that are being answered, and streams.
    open: usize,
    last: Instant,
    /// Turns true when its calls are to end; each of them holds a receiver.
    end: watch::Sender<bool>,
}

impl Use {
    /// When the calls of this session end unless somebody uses it again; `None` while somebody does, or no call runs.
    fn end_at(&self) -> Option<Instant> {
        (self.open == 0 && self.end.receiver_count() > 0).then(|| self.last + Duration::from_secs(AWAY_S))
    }
}

/// Turns true when a call is to end because its session has; rides on the request.
#[derive(Clone)]
pub(super) struct SessionEnd(pub(super) Cancel);

/// A session is in use for as long as this is there.
pub(super) struct InUse {
    all: Arc<Sessions>,
    id: String,
}

impl Drop for InUse {
    fn drop(&mut self) {
        if let Some(session) = self.all.lock().get_mut(&self.id) {
            session.open = session.open.saturating_sub(1);
            session.last = Instant::now();
        }
        self.all.left.notify_one();
    }
}

impl Sessions {
    pub(super) fn new() -> Self {
        let mut manager = LocalSessionManager::default();
        manager.session_config.keep_alive = Some(Duration::from_secs(SESSION_IDLE_S));
        Self {
            manager: Arc::new(manager),
            uses: Mutex::default(),
            left: Notify::new(),
        }
    }

    /// A session was begun.
    pub(super) fn begun(&self, id: &str) {
        let begun = Use {
            open: 0,
            last: Instant::now(),
            end: watch::Sender::new(false),
        };
        self.lock().insert(id.to_owned(), begun);
    }

    /// Uses a session; `None` when it is not there.
    pub(super) fn enter(self: &Arc<Self>, id: &str) -> Option<(InUse, SessionEnd)> {
        let mut uses = self.lock();
        let session = uses.get_mut(id)?;
        session.open += 1;
        let in_use = InUse {
            all: Arc::clone(self),
            id: id.to_owned(),
        };
        Some((in_use, SessionEnd(session.end.subscribe())))
    }

    /// Ends the calls of a session that its client ends. The SDK only waits for them.
    pub(super) fn end(&self, id: &str) {
        if let Some(session) = self.lock().remove(id) {
            session.end.send_replace(true);
        }
    }

    /// Makes room for one more; false when every session is in use.
    pub(super) async fn make_room(&self) -> bool {
        loop {
            let oldest = {
                let there = self.manager.sessions.read().await;
                let mut uses = self.lock();
                uses.retain(|id, _| there.contains_key(id.as_str()));
                if there.len() < SESSIONS_MAX {
                    return true;
                }
                let unused = uses.iter().filter(|(_, session)| session.open == 0);
                unused.min_by_key(|(_, session)| session.last).map(|(id, _)| id.clone())
            };
            let Some(oldest) = oldest else {
                return false;
            };
            self.end(&oldest);
            // One that is gone by now is as good.
            let _ = self.manager.close_session(&oldest.into()).await;
        }
    }

    /// Ends the calls of clients that have gone, for as long as this is polled; never returns.
    pub(super) async fn end_calls_of_the_gone(&self) {
        loop {
            let next = self.lock().values().filter_map(Use::end_at).min();
            match next {
                Some(at) => tokio::select! {
                    () = tokio::time::sleep_until(at) => self.end_overdue(),
                    () = self.left.notified() => {}
                },
                None => self.left.notified().await,
            }
        }
    }

    /// The session itself stays: its client may come back.
    fn end_overdue(&self) {
        let now = Instant::now();
        for session in self.lock().values_mut() {
            if session.end_at().is_some_and(|at| at <= now) {
                session.end.send_replace(true);
                session.end = watch::Sender::new(false);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Use>> {
        self.uses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    /// SPEC 6.10: the calls of a client end when it has been away for a while, and not while it is there or comes back.
    #[tokio::test(start_paused = true)]
    async fn who_is_gone() {
        let sessions = Arc::new(Sessions::new());
        sessions.begun("one");
        let mut watching = Box::pin(sessions.end_calls_of_the_gone());
        let nearly = Duration::from_secs(AWAY_S - 1);
        let (stream, SessionEnd(call)) = sessions.enter("one").unwrap();
        tokio::select! {
            () = &mut watching => {}
            () = tokio::time::sleep(nearly * 3) => {}
        }
        assert!(!*call.borrow(), "the stream was open");
        drop(stream);
        tokio::select! {
            () = &mut watching => {}
            () = tokio::time::sleep(nearly) => {}
        }
        let (stream, _) = sessions.enter("one").unwrap();
        tokio::select! {
            () = &mut watching => {}
            () = tokio::time::sleep(nearly) => {}
        }
        assert!(!*call.borrow(), "the client came back");
        drop(stream);
        tokio::select! {
            () = &mut watching => {}
            () = tokio::time::sleep(nearly * 2) => {}
        }
        assert!(*call.borrow());
        // What it begins later is another matter.
        let (_stream, SessionEnd(later)) = sessions.enter("one").unwrap();
        assert!(watching.as_mut().now_or_never().is_none());
        assert!(!*later.borrow());
        // It ends them all itself.
        sessions.end("one");
        assert!(*later.borrow());
        assert!(sessions.enter("one").is_none());
    }
}
