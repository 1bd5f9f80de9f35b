//! Steering: a message that goes into the turn that runs (SPEC 3.5a), written beside the driver.
//!
//! A [`Steering`] is a second hand on the ledger of one turn, and needs neither the driver nor its lease: what it appends the
//! driver folds at its next append (SPEC 3.5b). Whether a message may still be said in the turn is for the fold to say, and what
//! may not is for another turn.

use crate::driver::Driver;
use crate::{Engine, EngineError, now_ms};
use aish_core::event::Draft;
use aish_core::id::SessionId;
use aish_core::session::Session;
use aish_core::turn::Turn;
use aish_store::{Durability, Hold, StoreError};
use std::sync::Arc;

/// How often a message gives way to the driver's own events before it is put off.
const CONFLICTS_MAX: usize = 100;

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steered {
    /// It is in the ledger: the next reply of the turn sees it.
    Taken,
    /// No reply of the turn would see it: the turn is over, or waits for an answer. It is to be said in another.
    Late,
}

/// Says something in one turn, while it runs.
pub struct Steering {
    engine: Arc<Engine>,
    session: SessionId,
    turn: u64,
    /// Folded once something is said; brought up to date with each message.
    fold: Option<Session>,
}

impl Driver {
    /// For the open turn; `None` where there is none.
    pub fn steering(&self) -> Option<Steering> {
        Some(Steering {
            engine: Arc::clone(&self.engine),
            session: self.session.id().clone(),
            turn: self.session.open_turn()?.number(),
            fold: None,
        })
    }
}

impl Steering {
    /// Says it in the turn: one `user` event, committed when this returns.
    ///
    /// # Errors
    /// The ledger cannot be read or written: then nothing was said.
    pub async fn steer(&mut self, text: &str) -> Result<Steered, EngineError> {
        let store = Arc::clone(&self.engine.store);
        for _ in 0..CONFLICTS_MAX {
            let fold = self.folded().await?;
            let drafts = vec![Draft::user(self.turn, text)];
            if fold.is_read_only() || !is_open(&fold, self.turn) || fold.check(&drafts).is_err() {
                self.fold = Some(fold);
                return Ok(Steered::Late);
            }
            let seq = fold.last_seq();
            self.fold = Some(fold);
            let appended = store
                .append(
                    &self.session,
                    seq,
                    drafts,
                    now_ms(),
                    Durability::Committed,
                    Hold::Nothing,
                )
                .await;
            match appended {
                Ok(appended) => {
                    appended.events.into_iter().for_each(|event| self.accept(event));
                    return Ok(Steered::Taken);
                }
                Err(StoreError::Conflict { .. }) => {}
                Err(other) => return Err(other.into()),
            }
        }
        Ok(Steered::Late)
    }

    /// The session as it is in the ledger now.
    async fn folded(&mut self) -> Result<Session, EngineError> {
        let Some(mut fold) = self.fold.take() else {
            let events = self.engine.store.load(&self.session, 0).await?;
            return Ok(Session::load(self.session.clone(), events));
        };
        let news = self.engine.store.load(&self.session, fold.last_seq()).await?;
        news.into_iter().for_each(|event| fold.accept(event));
        Ok(fold)
    }

    fn accept(&mut self, event: aish_core::Event) {
        if let Some(fold) = &mut self.fold {
            fold.accept(event);
        }
    }
}

fn is_open(session: &Session, turn: u64) -> bool {
    session.open_turn().map(Turn::number) == Some(turn)
}
