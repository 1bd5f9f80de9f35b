//! Turns that could not be gone on with here (a ledger that refuses, a session that cannot be read): they are taken up again after a
//! pause that doubles, so that what fails every time costs little, and what fails for a while is not forgotten.
//!
//! A ledger that is away fails all of them, and is nothing against any: then the pause does not double, and is over for all as soon
//! as one goes on.

use super::observed::Fault;
use aish_core::id::SessionId;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The pause after a first try, in milliseconds.
const PAUSE_START_MS: u64 = 10_000;
/// The longest one.
const PAUSE_MAX_MS: u64 = 600_000;
/// The pause after a failure of the ledger. A disk may be too full for a reply and take the lease all the same: then each try is paid
/// for, as the model is asked.
const LEDGER_PAUSE_MS: u64 = 30_000;
/// Sessions that are remembered; of more, the one that is due first is forgotten, and tried sooner than it should be.
const REMEMBERED_MAX: usize = 1_024;

/// When sessions may be taken up again.
#[derive(Default)]
pub(super) struct Retries(Mutex<HashMap<SessionId, Retry>>);

struct Retry {
    pause_ms: u64,
    due: Instant,
    /// What the last try failed with, as far as that is known.
    fault: Fault,
}

impl Retry {
    fn after(pause_ms: u64, fault: Fault) -> Self {
        Self {
            pause_ms,
            due: Instant::now() + Duration::from_millis(pause_ms),
            fault,
        }
    }
}

impl Retries {
    /// Whether a session may be taken up now.
    pub(super) fn is_due(&self, session: &SessionId) -> bool {
        let now = Instant::now();
        self.all().get(session).is_none_or(|retry| retry.due <= now)
    }

    /// It is taken up; unless it goes on, not again before its pause is over.
    pub(super) fn tried(&self, session: &SessionId) {
        let mut all = self.all();
        let before = all.remove(session);
        let pause_ms = before.map_or(PAUSE_START_MS, |retry| (retry.pause_ms * 2).min(PAUSE_MAX_MS));
        if all.len() >= REMEMBERED_MAX {
            let first = all.iter().min_by_key(|(_, retry)| retry.due).map(|(id, _)| id.clone());
            first.and_then(|first| all.remove(&first));
        }
        // A try that says nothing at all died of something of its own.
        all.insert(session.clone(), Retry::after(pause_ms, Fault::Other));
    }

    /// What was taken up could not go on.
    pub(super) fn failed(&self, session: &SessionId, fault: Fault) {
        match (fault, self.all().get_mut(session)) {
            (Fault::Ledger, Some(retry)) => {
                *retry = Retry {
                    // What is tried next is as good as a first try.
                    pause_ms: PAUSE_START_MS / 2,
                    ..Retry::after(LEDGER_PAUSE_MS, fault)
                };
            }
            (Fault::Ledger, None) | (Fault::Other, _) => {}
        }
    }

    /// It went on: a later try is a first one, and so is that of all that the ledger failed.
    pub(super) fn went_on(&self, session: &SessionId) {
        self.all()
            .retain(|other, retry| other != session && retry.fault != Fault::Ledger);
    }

    /// How many sessions are remembered.
    pub(super) fn len(&self) -> usize {
        self.all().len()
    }

    fn all(&self) -> std::sync::MutexGuard<'_, HashMap<SessionId, Retry>> {
        // A poisoned lock only means that somebody panicked: each entry is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pause doubles up to its longest, each session has its own, and going on ends it.
    #[tokio::test(start_paused = true)]
    async fn pauses() {
        let retries = Retries::default();
        let (one, other) = (SessionId::new("one"), SessionId::new("other"));
        let mut pause_ms = PAUSE_START_MS;
        for _ in 0..10 {
            retries.tried(&one);
            tokio::time::advance(Duration::from_millis(pause_ms - 1)).await;
            assert!(!retries.is_due(&one) && retries.is_due(&other));
            tokio::time::advance(Duration::from_millis(1)).await;
            assert!(retries.is_due(&one));
            pause_ms = (pause_ms * 2).min(PAUSE_MAX_MS);
        }
        retries.went_on(&one);
        retries.tried(&one);
        tokio::time::advance(Duration::from_millis(PAUSE_START_MS)).await;
        assert!(retries.is_due(&one));
        for n in 0..2 * REMEMBERED_MAX {
            retries.tried(&SessionId::new(n.to_string()));
        }
        assert_eq!(retries.len(), REMEMBERED_MAX);
    }

    /// While the ledger is away no pause doubles; once one turn goes on, all that it failed are due, and no others.
    #[tokio::test(start_paused = true)]
    async fn a_ledger_that_was_away() {
        let retries = Retries::default();
        let [one, other, broken] = ["one", "other", "broken"].map(SessionId::new);
        for _ in 0..10 {
            for session in [&one, &other] {
                retries.tried(session);
                retries.failed(session, Fault::Ledger);
                assert!(!retries.is_due(session));
            }
            tokio::time::advance(Duration::from_millis(LEDGER_PAUSE_MS)).await;
            assert!(retries.is_due(&one) && retries.is_due(&other));
        }
        retries.tried(&other);
        retries.failed(&other, Fault::Ledger);
        retries.tried(&broken);
        retries.failed(&broken, Fault::Other);
        retries.went_on(&one);
        assert!(retries.is_due(&other) && !retries.is_due(&broken));
        // A turn that nobody had to take up is no matter of this list.
        retries.failed(&one, Fault::Ledger);
        assert!(retries.is_due(&one));
    }
}
