//! The right to drive, kept for as long as a drive lasts, and the ear for what others do to the session meanwhile.

use crate::driver::{Driver, Unwritten};
use crate::{EngineError, now_ms};
use aish_core::event::Body;
use aish_store::{Lease, Store, StoreError};
use aish_tools::Cancel;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How long a lease holds without being renewed: a driver that was stopped for longer has lost it.
pub(crate) const LEASE_TTL_MS: u64 = 60_000;
/// How often it is renewed.
const LEASE_RENEW_MS: u64 = 20_000;
/// How often a driver that waits for a model or a tool looks whether somebody else cancelled the turn.
const LISTEN_EVERY_MS: u64 = 500;

/// Runs beside a drive; ends with it.
pub(crate) struct Keeper {
    task: JoinHandle<()>,
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Driver {
    /// Takes the lease, unless the append that this drive goes on from took it; folds what was written before, and starts the keeper.
    pub(crate) async fn take_lease(&mut self, cancel: Cancel) -> Result<(Keeper, Cancel), EngineError> {
        if self.lease.is_none() {
            self.ask_for_lease().await?;
            if let Err(error) = self.see_what_was_written().await {
                self.give_lease_back().await;
                return Err(error);
            }
        }
        self.gives_back.store(false, Ordering::Release);
        let (stop, stopped) = watch::channel(*cancel.borrow());
        let turn = self.session.turn().map_or(0, aish_core::Turn::number);
        let listening = Listening {
            store: Arc::clone(&self.engine.store),
            session: self.session.id().clone(),
            turn,
            seen: Arc::clone(&self.seen),
            lease: self.lease.clone(),
            gives_back: Arc::clone(&self.gives_back),
        };
        let task = tokio::spawn(keep(listening, cancel, stop));
        Ok((Keeper { task }, stopped))
    }

    /// What is to be done next is for the fold to say, and that must hold what others wrote meanwhile.
    async fn see_what_was_written(&mut self) -> Result<(), EngineError> {
        self.save_unsaved().await?;
        self.catch_up().await
    }

    async fn ask_for_lease(&mut self) -> Result<(), EngineError> {
        let id = self.session.id();
        let now = now_ms();
        match self
            .engine
            .store
            .acquire(id, &self.engine.owner, now, now + LEASE_TTL_MS)
            .await
        {
            Ok(lease) => self.lease = Some(lease),
            // The session goes on in memory: there is nobody to share it with on a disk that fails.
            Err(StoreError::Io { .. }) if self.unwritten == Unwritten::Kept => self.lease = None,
            Err(other) => return Err(other.into()),
        }
        Ok(())
    }

    /// Gives the lease back, unless the last append did. What happens to the session from here on is not ours.
    pub(crate) async fn give_lease_back(&mut self) {
        if let Some(lease) = self.lease.take() {
            // Not worth failing a finished turn for: an abandoned lease ends with this process or by time.
            let _ = self.engine.store.release(&lease).await;
        }
    }
}

struct Listening {
    store: Arc<dyn Store>,
    session: aish_core::SessionId,
    turn: u64,
    seen: Arc<AtomicU64>,
    lease: Option<Lease>,
    gives_back: Arc<AtomicBool>,
}

async fn keep(listening: Listening, mut cancel: Cancel, stop: watch::Sender<bool>) {
    let mut renewed = now_ms();
    loop {
        tokio::select! {
            () = asked(&mut cancel) => {
                let _ = stop.send(true);
                return;
            }
            () = tokio::time::sleep(Duration::from_millis(LISTEN_EVERY_MS)) => {}
        }
        if listening.was_cancelled().await {
            let _ = stop.send(true);
            return;
        }
        if let Some(lease) = &listening.lease
            && now_ms().saturating_sub(renewed) >= LEASE_RENEW_MS
        {
            renewed = now_ms();
            if listening.has_lost(lease, renewed + LEASE_TTL_MS).await {
                let _ = stop.send(true);
                return;
            }
        }
    }
}

impl Listening {
    async fn was_cancelled(&self) -> bool {
        let seen = self.seen.load(Ordering::Relaxed);
        let news = self.store.load(&self.session, seen).await.unwrap_or_default();
        news.iter()
            .any(|event| event.turn == self.turn && matches!(event.body, Body::Cancelled(_)))
    }

    /// Extends the lease, unless it is another's by now. One that was given back at the same moment is not lost: the drive has come
    /// to its end, and is not to be stopped as if somebody had cancelled what it wrote.
    async fn has_lost(&self, lease: &Lease, until: u64) -> bool {
        let renewed = self.store.renew(lease, until).await;
        matches!(renewed, Err(StoreError::LeaseLost(_))) && !self.gives_back.load(Ordering::Acquire)
    }
}

/// Waits until somebody asks to stop; for ever when nobody can any more.
pub(crate) async fn asked(cancel: &mut Cancel) {
    if cancel.wait_for(|cancel| *cancel).await.is_err() {
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use aish_core::event::Draft;
    use aish_core::id::SessionId;
    use aish_store::memory::MemoryStore;
    use aish_store::{Durability, Hold, Owner};

    /// When all of it happens, in milliseconds since the Unix epoch.
    const NOW_MS: u64 = 1_000;

    /// SPEC 2.12: a lease that is given back while the keeper renews it is not lost, and one that was taken over is.
    #[tokio::test]
    async fn given_back_is_not_lost() {
        let (store, session) = (Arc::new(MemoryStore::new()), SessionId::new("s"));
        let says = |seq, hold| {
            let drafts = vec![Draft::user(0, "x")];
            store.append(&session, seq, drafts, NOW_MS, Durability::Committed, hold)
        };
        let takes = Hold::Takes {
            owner: Owner("us".to_owned()),
            until: NOW_MS + LEASE_TTL_MS,
        };
        let lease = says(0, takes).await.unwrap().lease.unwrap();
        let listening = Listening {
            store: Arc::clone(&store) as Arc<dyn Store>,
            session: session.clone(),
            turn: 0,
            seen: Arc::default(),
            lease: Some(lease.clone()),
            gives_back: Arc::default(),
        };
        assert!(!listening.has_lost(&lease, NOW_MS + LEASE_TTL_MS).await);
        says(1, Hold::GivesBack(lease.clone())).await.unwrap();
        listening.gives_back.store(true, Ordering::Release);
        assert!(!listening.has_lost(&lease, NOW_MS + LEASE_TTL_MS).await);
        listening.gives_back.store(false, Ordering::Release);
        assert!(listening.has_lost(&lease, NOW_MS + LEASE_TTL_MS).await);
    }
}
