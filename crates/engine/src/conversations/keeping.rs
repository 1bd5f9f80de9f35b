//! What goes on beside the requests: ending what has expired, taking up what another process left, telling readers what other
//! processes wrote, and stopping.

use super::Conversations;
use super::live::{Hub, Live};
use super::observed::Fault;
use crate::clock::random;
use crate::{ServeError, now_ms};
use aish_core::id::SessionId;
use aish_core::turn::Turn;
use aish_store::Pending;
use std::sync::Arc;
use std::time::Duration;

/// How often abandoned and expired turns are looked for; half of it more or less, so that many servers do not look at once.
const SWEEP_EVERY_MS: u64 = 5_000;
/// A turn that was written to more recently is about to be driven by whoever wrote.
const QUIET_MS: u64 = 10_000;
/// Turns that are taken up or ended at a time.
const SWEEP_MAX: usize = 64;
/// How long it is waited after a look at the ledger that failed.
const LOOK_AGAIN_MS: u64 = 200;
/// How long turns get to come to a point where they can be left, when the process is to end.
const DRAIN_MS: u64 = 8_000;

impl Conversations {
    /// Runs beside the conversations until they are drained: ends turns that nobody answered in time, and takes up turns that a
    /// process left open.
    pub async fn keep(self: Arc<Self>) {
        let following = Arc::clone(&self);
        let mut pause = self.pause.subscribe();
        tokio::select! {
            _ = pause.wait_for(|pause| *pause) => {}
            () = self.sweep_for_ever() => {}
            () = following.listen_for_ever() => {}
        }
    }

    async fn sweep_for_ever(self: &Arc<Self>) {
        // What another process has left at its end is quiet by definition: the first look is for that.
        let mut quiet_ms = 0;
        loop {
            // A ledger that cannot be read now may be the next time.
            let _ = self.sweep(quiet_ms).await;
            quiet_ms = QUIET_MS;
            let spread = u64::try_from(random() % u128::from(SWEEP_EVERY_MS)).unwrap_or(0);
            tokio::time::sleep(Duration::from_millis(SWEEP_EVERY_MS / 2 + spread)).await;
        }
    }

    async fn sweep(self: &Arc<Self>, quiet_ms: u64) -> Result<(), ServeError> {
        let now = now_ms();
        // What cannot be done to one session keeps nobody from the others.
        let mut failed = Ok(());
        for pending in self.engine.store.expired(now, SWEEP_MAX).await? {
            failed = self.end_expired(&pending).await.and(failed);
        }
        // What was written in this very millisecond is as quiet as what came before it.
        let quiet_since = (now + 1).saturating_sub(quiet_ms);
        // Those that are not due yet must not keep the others out of sight.
        let limit = SWEEP_MAX + self.retries.len();
        let abandoned = self.engine.store.abandoned(quiet_since, now, limit);
        for session in abandoned.await? {
            failed = self.take_up(&session).await.and(failed);
        }
        failed
    }

    async fn end_expired(&self, pending: &Pending) -> Result<(), ServeError> {
        let mut driver = self.open(&pending.session).await?;
        let suspended = driver.session().open_turn().and_then(Turn::suspended).cloned();
        if let Some(suspended) = suspended.filter(|suspended| suspended.continuation == pending.continuation) {
            let before = driver.session().last_seq();
            driver.expire(&suspended).await?;
            self.ran_until(&driver, before);
        }
        Ok(())
    }

    /// Goes on with a turn that nobody drives.
    async fn take_up(self: &Arc<Self>, session: &SessionId) -> Result<(), ServeError> {
        if self.running().contains_key(session) || !self.retries.is_due(session) {
            return Ok(());
        }
        let place = self.place()?;
        let driver = match self.open(session).await {
            Ok(driver) => driver,
            Err(failed) => {
                // A ledger that is away says nothing about the session.
                if !matches!(&failed, ServeError::Engine(error) if Fault::of(error) == Fault::Ledger) {
                    self.retries.tried(session);
                }
                return Err(failed);
            }
        };
        // One that waits and does not say so died in between: its client is still to be told under which id.
        let is_ours = driver
            .session()
            .open_turn()
            .is_some_and(|turn| turn.served().is_some() && turn.suspended().is_none());
        if driver.session().is_read_only() {
            self.retries.tried(session);
        } else if is_ours {
            self.retries.tried(session);
            let seq = driver.session().last_seq();
            self.launch(driver, seq, place).await;
        }
        Ok(())
    }

    /// Tells readers what other processes wrote: a terminal, another server on the same ledger.
    async fn listen_for_ever(&self) {
        let mut version = 0;
        loop {
            if self.hubs.followed().is_empty() {
                // A server that nobody looks at sleeps.
                self.hubs.somebody_came().await;
                continue;
            }
            match self.engine.store.news(version).await {
                Ok(news) => version = news,
                Err(_) => tokio::time::sleep(Duration::from_millis(LOOK_AGAIN_MS)).await,
            }
            for (session, hub) in self.hubs.followed() {
                if self.running().contains_key(&session) {
                    continue;
                }
                self.tell_written(&session, &hub).await;
            }
        }
    }

    async fn tell_written(&self, session: &SessionId, hub: &Hub) {
        let written = self
            .engine
            .store
            .load(session, hub.last_seq())
            .await
            .unwrap_or_default();
        for event in written.into_iter().filter(|event| event.seq > hub.last_seq()) {
            hub.send(Live::Event(Box::new(event)));
        }
    }

    /// Stops: no turn begins any more, those that run are left where another process can go on with them. What a tool is in the
    /// middle of gets some time to end; what then still runs ends with the process, and its effect is in doubt (SPEC 3.2).
    pub async fn drain(&self) {
        let _ = self.pause.send_replace(true);
        let deadline = tokio::time::Instant::now() + Duration::from_millis(DRAIN_MS);
        loop {
            let over = self.running().values().next().map(|running| running.over.clone());
            let Some(mut over) = over else { return };
            let gone = over.wait_for(|over| !matches!(over, super::Over::No));
            if tokio::time::timeout_at(deadline, gone).await.is_err() {
                return;
            }
            tokio::task::yield_now().await;
        }
    }

    /// Ready once this process is about to end.
    pub fn draining(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut pause = self.pause.subscribe();
        async move {
            // It is about to end as well where nobody can say so any more.
            let _ = pause.wait_for(|pause| *pause).await;
        }
    }

    /// Whether this process is about to end.
    pub fn is_draining(&self) -> bool {
        *self.pause.borrow()
    }
}
