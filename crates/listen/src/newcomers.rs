//! Connections that have shown nothing yet: they make room for others.
//!
//! Whoever can reach the port can open connections, and there is room for so many. So one that has not sent a request that was let
//! in is a newcomer: it has a short time to send one, and when there is no room, the oldest newcomer goes for the next. One that
//! asked for what everybody may have ([`Newcomer::stay`]) is no longer timed, but still the first to go.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// The newcomers, by their age: the first is the oldest.
pub(crate) struct Newcomers {
    waiting: Mutex<Waiting>,
    most: usize,
    timeout: Duration,
}

#[derive(Default)]
struct Waiting {
    next: u64,
    all: BTreeMap<u64, Words>,
}

/// What a newcomer may be told. Dropping one without a word lets it stay.
struct Words {
    go: oneshot::Sender<()>,
    hurry: Option<oneshot::Sender<()>>,
}

/// The place of one connection among them; it is given up with this.
pub(crate) struct Newcomer {
    all: Arc<Newcomers>,
    number: u64,
}

impl Newcomers {
    /// Room for `most`, each of which has `timeout` to send a request that is let in.
    pub(crate) fn new(most: usize, timeout: Duration) -> Self {
        Self {
            waiting: Mutex::default(),
            most,
            timeout,
        }
    }

    /// Another one, and what turns ready when it is to go. That is never the case once it was admitted.
    pub(crate) fn arrive(self: &Arc<Self>) -> (Newcomer, impl Future<Output = ()> + Send + use<>) {
        if self.lock().all.len() >= self.most {
            self.make_room();
        }
        let (go, gone) = oneshot::channel();
        let (hurry, hurried) = oneshot::channel();
        let mut waiting = self.lock();
        let number = waiting.next;
        waiting.next += 1;
        let hurry = Some(hurry);
        waiting.all.insert(number, Words { go, hurry });
        let newcomer = Newcomer {
            all: Arc::clone(self),
            number,
        };
        (newcomer, leave(gone, hurried, self.timeout))
    }

    /// Sends the oldest away, if there is one.
    pub(crate) fn make_room(&self) {
        if let Some((_, oldest)) = self.lock().all.pop_first() {
            // It may have gone by itself.
            let _ = oldest.go.send(());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Newcomer {
    /// A request of it was let in: it stays for as long as it likes.
    pub(crate) fn admit(&self) {
        self.all.lock().all.remove(&self.number);
    }

    /// It asked for something that everybody may have: it stays until its place is needed.
    pub(crate) fn stay(&self) {
        if let Some(words) = self.all.lock().all.get_mut(&self.number) {
            words.hurry = None;
        }
    }
}

impl Drop for Newcomer {
    fn drop(&mut self) {
        self.admit();
    }
}

/// Ready when the connection is sent away or its time is over.
async fn leave(mut gone: oneshot::Receiver<()>, mut hurried: oneshot::Receiver<()>, timeout: Duration) {
    let is_late = async {
        let waited = tokio::time::timeout(timeout, &mut hurried).await;
        // A request may have been let in at that very moment.
        if waited.is_ok() || hurried.try_recv() == Err(oneshot::error::TryRecvError::Closed) {
            std::future::pending::<()>().await;
        }
    };
    let is_sent = async {
        if (&mut gone).await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = is_late => {}
        () = is_sent => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    const TIMEOUT: Duration = Duration::from_secs(3);

    /// SPEC 6.10, 9.8: the oldest that was not let in goes first; who was let in stays, also when the time is over.
    #[tokio::test(start_paused = true)]
    async fn the_oldest_goes() {
        let all = Arc::new(Newcomers::new(9, TIMEOUT));
        let (admitted, stays) = all.arrive();
        let (_oldest, goes) = all.arrive();
        let (_youngest, is_late) = all.arrive();
        let (mut stays, mut goes, mut is_late) = (Box::pin(stays), Box::pin(goes), Box::pin(is_late));
        admitted.admit();
        all.make_room();
        assert!(goes.as_mut().now_or_never().is_some());
        assert!(is_late.as_mut().now_or_never().is_none());
        assert!(stays.as_mut().now_or_never().is_none());
        tokio::time::sleep(2 * TIMEOUT).await;
        assert!(is_late.as_mut().now_or_never().is_some());
        assert!(stays.as_mut().now_or_never().is_none());
    }

    /// SPEC 9.8: who asks for what everybody may have is not timed, and goes when its place is needed; more than there is room for
    /// are never there.
    #[tokio::test(start_paused = true)]
    async fn who_asks_for_little() {
        let all = Arc::new(Newcomers::new(2, TIMEOUT));
        let (probing, leaves) = all.arrive();
        let mut leaves = Box::pin(leaves);
        probing.stay();
        tokio::time::sleep(2 * TIMEOUT).await;
        assert!(leaves.as_mut().now_or_never().is_none());
        let (_second, _) = all.arrive();
        assert!(leaves.as_mut().now_or_never().is_none());
        let (_third, _) = all.arrive();
        assert!(leaves.as_mut().now_or_never().is_some());
    }
}
