//! Connections that have shown nothing yet: they make room for others.
//!
//! Whoever can reach the port can open connections, and there is room for a few. So one that has not sent a request that was let
//! in is a newcomer: it has a short time to send one, and when there is no room, the oldest newcomer goes for the next.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// How long a connection has until a request of it is let in.
const ADMISSION_TIMEOUT_S: u64 = 3;

/// The newcomers, by their age: the first is the oldest.
#[derive(Default)]
pub(super) struct Newcomers(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    next: u64,
    goers: BTreeMap<u64, oneshot::Sender<()>>,
}

/// The place of one connection among them; it is given up with this.
pub(super) struct Newcomer {
    all: Arc<Newcomers>,
    number: u64,
}

impl Newcomers {
    /// Another one, and what turns ready when it is to go. That is never the case once it was admitted.
    pub(super) fn arrive(self: &Arc<Self>) -> (Newcomer, impl Future<Output = ()> + Send + use<>) {
        let (go, gone) = oneshot::channel();
        let mut waiting = self.lock();
        let number = waiting.next;
        waiting.next += 1;
        waiting.goers.insert(number, go);
        let newcomer = Newcomer {
            all: Arc::clone(self),
            number,
        };
        (newcomer, leave(gone))
    }

    /// Sends the oldest away, if there is one.
    pub(super) fn make_room(&self) {
        if let Some((_, go)) = self.lock().goers.pop_first() {
            // It may have gone by itself.
            let _ = go.send(());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Newcomer {
    /// A request of it was let in: it stays for as long as it likes.
    pub(super) fn admit(&self) {
        self.all.lock().goers.remove(&self.number);
    }
}

impl Drop for Newcomer {
    fn drop(&mut self) {
        self.admit();
    }
}

/// Ready when the connection is sent away or its time is over. A sender that is dropped without a word has admitted it.
async fn leave(mut gone: oneshot::Receiver<()>) {
    let is_admitted = match tokio::time::timeout(Duration::from_secs(ADMISSION_TIMEOUT_S), &mut gone).await {
        Ok(said) => said.is_err(),
        // A request may have been let in at that very moment.
        Err(_) => matches!(gone.try_recv(), Err(oneshot::error::TryRecvError::Closed)),
    };
    if is_admitted {
        std::future::pending().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    /// SPEC 6.10: the oldest that was not let in goes first; who was let in stays, also when the time is over.
    #[tokio::test(start_paused = true)]
    async fn the_oldest_goes() {
        let all = Arc::new(Newcomers::default());
        let (admitted, stays) = all.arrive();
        let (_oldest, goes) = all.arrive();
        let (_youngest, is_late) = all.arrive();
        let (mut stays, mut goes, mut is_late) = (Box::pin(stays), Box::pin(goes), Box::pin(is_late));
        admitted.admit();
        all.make_room();
        assert!(goes.as_mut().now_or_never().is_some());
        assert!(is_late.as_mut().now_or_never().is_none());
        assert!(stays.as_mut().now_or_never().is_none());
        tokio::time::sleep(Duration::from_secs(ADMISSION_TIMEOUT_S + 1)).await;
        assert!(is_late.as_mut().now_or_never().is_some());
        assert!(stays.as_mut().now_or_never().is_none());
    }
}
