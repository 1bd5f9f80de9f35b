//! A question that is put to a person here, and that somebody somewhere else may settle meanwhile: from another device, or by a
//! script (SPEC 3.5b, 9.9). The ledger knows it first; whoever asks here looks there while the person thinks.

use crate::driver::Driver;
use aish_core::event::{Answer, Body, Event};
use aish_core::id::CallId;
use std::sync::Arc;
use std::time::Duration;

/// How often it is looked, in milliseconds.
const LOOK_EVERY_MS: u64 = 500;

/// How a question was settled that nobody here answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// Somebody said yes.
    Approved,
    /// Somebody said no.
    Declined,
    /// The turn is over.
    Over,
}

impl Settled {
    /// What the person who was asked is told, one line.
    pub fn line(self) -> &'static str {
        match self {
            Self::Approved => "approved from somewhere else meanwhile",
            Self::Declined => "declined from somewhere else meanwhile",
            Self::Over => "the turn was stopped from somewhere else meanwhile",
        }
    }

    /// What an event says of a call that is asked about in that turn.
    fn by(event: &Event, call: &CallId, turn: u64) -> Option<Self> {
        if event.turn != turn {
            return None;
        }
        if let Body::CallAnswered(data) = &event.body {
            return (data.call_id == *call).then_some(match data.answer {
                Answer::Approve => Self::Approved,
                Answer::Deny => Self::Declined,
            });
        }
        matches!(event.body, Body::Cancelled(_) | Body::TurnEnded(_)).then_some(Self::Over)
    }
}

impl Driver {
    /// Waits until somebody else settles what a call of this turn is asked about; for ever where nobody does. What was written is
    /// folded when this driver next appends or drives.
    pub fn settled_elsewhere(&self, call: &CallId) -> impl Future<Output = Settled> + Send + use<> {
        let store = Arc::clone(&self.engine.store);
        let (session, seen) = (self.session.id().clone(), self.session.last_seq());
        let turn = self.session.turn().map_or(0, aish_core::Turn::number);
        let call = call.clone();
        async move {
            loop {
                // A ledger that cannot be read now may be the next time.
                let news = store.load(&session, seen).await.unwrap_or_default();
                if let Some(settled) = news.iter().find_map(|event| Settled::by(event, &call, turn)) {
                    return settled;
                }
                tokio::time::sleep(Duration::from_millis(LOOK_EVERY_MS)).await;
            }
        }
    }
}
