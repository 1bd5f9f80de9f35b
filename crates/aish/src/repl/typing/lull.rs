//! When a question may be asked of somebody who types: once no key comes any more (SPEC 5.3).
//!
//! Who is in the middle of a word when a question takes the terminal would answer it with the rest of the word. [`Presses`] knows
//! when keys came, a [`Lull`] is over when none has come for a while.

use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

/// A key that came so long ago is one of a line that is being typed.
const RECENT_MS: u64 = 1_000;
/// Who presses no key for so long does not type.
const LULL_MS: u64 = 500;

/// When keys came.
#[derive(Default)]
pub struct Presses {
    last: watch::Sender<Option<Instant>>,
}

impl Presses {
    /// A key comes.
    pub fn heard(&self) {
        self.last.send_replace(Some(Instant::now()));
    }

    /// Whether the last one came a moment ago.
    pub fn are_recent(&self) -> bool {
        let last = *self.last.borrow();
        last.is_some_and(|last| last.elapsed() < Duration::from_millis(RECENT_MS))
    }

    /// A lull that begins now.
    pub fn lull(&self) -> Lull {
        Lull {
            keys: self.last.subscribe(),
            end: next_end(),
        }
    }
}

/// A time without keys, which each key begins anew.
pub struct Lull {
    keys: watch::Receiver<Option<Instant>>,
    end: Instant,
}

impl Lull {
    /// Completes when it is over. Nothing is lost when that is dropped.
    pub async fn over(&mut self) {
        while let Ok(Ok(())) = timeout_at(self.end, self.keys.changed()).await {
            self.end = next_end();
        }
    }
}

fn next_end() -> Instant {
    Instant::now() + Duration::from_millis(LULL_MS)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    /// SPEC 5.3: a question waits until no key has come for a while, however long somebody types.
    #[tokio::test(start_paused = true)]
    async fn each_key_begins_it_anew() {
        let presses = Presses::default();
        assert!(!presses.are_recent());
        let mut lull = presses.lull();
        for _ in 0..10 {
            tokio::time::advance(Duration::from_millis(LULL_MS - 1)).await;
            presses.heard();
            assert!(presses.are_recent());
            assert_eq!(lull.over().now_or_never(), None);
        }
        let last = Instant::now();
        lull.over().await;
        assert!(last.elapsed() >= Duration::from_millis(LULL_MS));
        tokio::time::advance(Duration::from_millis(RECENT_MS)).await;
        assert!(!presses.are_recent());
    }
}
