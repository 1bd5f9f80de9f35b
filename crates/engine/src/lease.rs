//! The right to drive, kept for as long as a drive lasts, and the ear for what others do to the session meanwhile.

use crate::driver::{Driver, Unwritten};
use crate::{EngineError, now_ms};
use aish_core::event::Body;
use aish_store::{Lease, Store, StoreError};
use aish_tools::Cancel;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
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
            // What is to be done next is for the fold to say, and that must hold what others wrote meanwhile.
            self.save_unsaved().await?;
            self.catch_up().await?;
        }
        let (stop, stopped) = watch::channel(*cancel.borrow());
        let turn = self.session.turn().map_or(0, aish_core::Turn::number);
        let listening = Listening {
            store: Arc::clone(&self.engine.store),
            session: self.session.id().clone(),
            turn,
            seen: Arc::clone(&self.seen),
            lease: self.lease.clone(),
        };
        let task = tokio::spawn(keep(listening, cancel, stop));
        Ok((Keeper { task }, stopped))
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
            if let Err(StoreError::LeaseLost(_)) = listening.store.renew(lease, renewed + LEASE_TTL_MS).await {
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
}

/// Waits until somebody asks to stop; for ever when nobody can any more.
pub(crate) async fn asked(cancel: &mut Cancel) {
    if cancel.wait_for(|cancel| *cancel).await.is_err() {
        std::future::pending::<()>().await;
    }
}
