//! Messages on their way into the turn that runs, one after the other.

use aish_engine::{EngineError, Steered, Steering};
use futures_util::future::BoxFuture;
use std::collections::VecDeque;
use std::time::Duration;

/// How long a message that is being written is waited for once the turn is over.
const SETTLE_MS: u64 = 2_000;

/// What became of a message.
#[derive(Debug, PartialEq, Eq)]
pub enum Sent {
    /// It is in the turn.
    Taken(String),
    /// It came too late for it.
    Late(String),
    /// It could not be written; one line.
    Failed(String, String),
}

/// A message that is being written, its hand given back with what came of it.
type Writing = BoxFuture<'static, (Steering, Result<Steered, EngineError>)>;

/// The way into a turn.
#[derive(Default)]
pub struct Steer {
    /// Free to write; `None` while it does, and where no turn runs.
    hand: Option<Steering>,
    writing: Option<(String, Writing)>,
    waiting: VecDeque<String>,
}

impl Steer {
    /// A turn begins, or it ends with `None`.
    pub fn lead(&mut self, hand: Option<Steering>) {
        self.hand = hand;
    }

    /// A message for the turn.
    ///
    /// # Errors
    /// None runs: the message is given back.
    pub fn push(&mut self, line: String) -> Result<(), String> {
        if self.writing.is_some() {
            self.waiting.push_back(line);
            return Ok(());
        }
        let Some(mut hand) = self.hand.take() else {
            return Err(line);
        };
        let text = line.clone();
        let writing = async move {
            let steered = hand.steer(&text).await;
            (hand, steered)
        };
        self.writing = Some((line, Box::pin(writing)));
        Ok(())
    }

    /// What becomes of the message that is being written; never anything while none is. Nothing is lost when it is dropped.
    pub async fn sent(&mut self) -> Sent {
        let Some((_, writing)) = &mut self.writing else {
            return std::future::pending().await;
        };
        let (hand, steered) = writing.await;
        self.hand = Some(hand);
        let line = self.writing.take().map(|(line, _)| line).unwrap_or_default();
        if let Some(next) = self.waiting.pop_front() {
            // The hand is free again, so it is taken.
            let _ = self.push(next);
        }
        match steered {
            Ok(Steered::Taken) => Sent::Taken(line),
            Ok(Steered::Late) => Sent::Late(line),
            Err(error) => Sent::Failed(line, error.to_string()),
        }
    }

    /// The end of what is being written, which is not waited for for ever.
    pub async fn settle(&mut self) -> Option<Sent> {
        self.writing.as_ref()?;
        tokio::time::timeout(Duration::from_millis(SETTLE_MS), self.sent())
            .await
            .ok()
    }

    /// Takes the messages that nobody writes yet.
    pub fn rest(&mut self) -> Vec<String> {
        self.waiting.drain(..).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// SPEC 3.5a: where no turn runs that it could go into, a message is given back, to wait.
    #[tokio::test]
    async fn without_a_turn() {
        let mut steer = Steer::default();
        assert_eq!(steer.push("x".into()), Err("x".into()));
        assert_eq!((steer.settle().await, steer.rest()), (None, Vec::new()));
    }
}
