//! When servers begin to be connected to: at once, or behind the first prompt.
//!
//! Ten servers are ten connections, and programs to start that take the processors for a while: a prompt that is being drawn
//! beside them is late, and nobody can ask anything before it is there (SPEC 11: ready within 30 ms, servers or not).

use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// How long servers wait for a prompt. Where none is drawn (a line came before it, a question is asked first) this is all they lose.
const PROMPT_WAIT_MS: u64 = 30;

/// What servers wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// Nothing: somebody waits for them.
    AtOnce,
    /// The first prompt.
    BehindPrompt,
}

/// What connections wait for before they are made.
pub struct Start {
    told: watch::Sender<bool>,
    /// They are made then, whatever was told.
    latest: Instant,
}

impl Start {
    /// From now on.
    pub fn new(begin: Begin) -> Self {
        let (is_told, wait_ms) = match begin {
            Begin::AtOnce => (true, 0),
            Begin::BehindPrompt => (false, PROMPT_WAIT_MS),
        };
        Self {
            told: watch::Sender::new(is_told),
            latest: Instant::now() + Duration::from_millis(wait_ms),
        }
    }

    /// Nothing has to be waited for any more. Costs next to nothing when it is told again, and may be called on any thread.
    pub fn tell(&self) {
        self.told.send_if_modified(|is_told| !std::mem::replace(is_told, true));
    }

    /// Resolves once that is so.
    pub async fn come(&self) {
        let mut told = self.told.subscribe();
        // The sender lives as long as this does.
        let _ = tokio::time::timeout_at(self.latest, told.wait_for(|is_told| *is_told)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    /// SPEC 11: servers are not connected to before the prompt is drawn, and a prompt that does not come holds none up.
    #[tokio::test(start_paused = true)]
    async fn behind_the_prompt() {
        assert!(Start::new(Begin::AtOnce).come().now_or_never().is_some());

        let start = Start::new(Begin::BehindPrompt);
        let waiting = [start.come(), start.come()];
        let [mut first, second] = waiting.map(Box::pin);
        assert!(first.as_mut().now_or_never().is_none());
        start.tell();
        assert!(first.now_or_never().is_some());
        assert!(second.now_or_never().is_some());

        let began = Instant::now();
        Start::new(Begin::BehindPrompt).come().await;
        assert_eq!(began.elapsed(), Duration::from_millis(PROMPT_WAIT_MS));
    }
}
