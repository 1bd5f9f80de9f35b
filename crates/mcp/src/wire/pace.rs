//! How fast a server is listened to: one that sends without end takes its turn like everybody else.
//!
//! What is not taken stays in the pipe or the socket, so that whoever floods us waits.

use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Messages that are heard in a row.
const MESSAGES_IN_A_ROW_MAX: u32 = 128;
/// How long everybody else then has their turn.
const PAUSE_MS: u64 = 2;

/// The pace of one connection.
#[derive(Debug, Default)]
pub(super) struct Pace {
    heard: u32,
    resumes: Option<Instant>,
}

impl Pace {
    /// Waits until it is the server's turn. May be dropped at any moment and called again.
    pub(super) async fn turn(&mut self) {
        if let Some(resumes) = self.resumes {
            sleep_until(resumes).await;
            self.resumes = None;
        }
    }

    /// Counts a message.
    pub(super) fn heard(&mut self) {
        self.heard += 1;
        if self.heard >= MESSAGES_IN_A_ROW_MAX {
            self.heard = 0;
            self.resumes = Some(Instant::now() + Duration::from_millis(PAUSE_MS));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    /// SPEC 6.6: a few messages wait for nothing; of a flood so many are heard in a time, also by a listener that is interrupted
    /// again and again.
    #[tokio::test(start_paused = true)]
    async fn a_flood_takes_turns() {
        let mut pace = Pace::default();
        for _ in 1..MESSAGES_IN_A_ROW_MAX {
            assert!(pace.turn().now_or_never().is_some(), "a few messages wait for nothing");
            pace.heard();
        }
        pace.heard();
        let began = Instant::now();
        for _ in 0..PAUSE_MS {
            assert!(pace.turn().now_or_never().is_none(), "it is not the server's turn");
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        pace.turn().await;
        // The clock of timers counts whole milliseconds, so the turn may come up to one late; an interruption that began the
        // pause anew would have doubled it.
        let (pause, waited) = (Duration::from_millis(PAUSE_MS), began.elapsed());
        assert!(waited >= pause && waited < 2 * pause, "{waited:?}");
        assert!(pace.turn().now_or_never().is_some(), "a pause is made once");
    }
}
