//! Turns that could not be gone on with here (a ledger that refuses, a session that cannot be read): they are taken up again after a
//! pause that doubles, so that what fails every time costs little, and what fails for a while is not forgotten.

use aish_core::id::SessionId;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The pause after a first try, in milliseconds.
const PAUSE_START_MS: u64 = 10_000;
/// The longest one.
const PAUSE_MAX_MS: u64 = 600_000;
/// Sessions that are remembered; of more, the one that is due first is forgotten, and tried sooner than it should be.
const REMEMBERED_MAX: usize = 1_024;

/// When sessions may be taken up again.
#[derive(Default)]
pub(super) struct Retries(Mutex<HashMap<SessionId, Retry>>);

struct Retry {
    pause_ms: u64,
    due: Instant,
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
        let due = Instant::now() + Duration::from_millis(pause_ms);
        all.insert(session.clone(), Retry { pause_ms, due });
    }

    /// It went on: a later try is a first one.
    pub(super) fn went_on(&self, session: &SessionId) {
        self.all().remove(session);
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
}
