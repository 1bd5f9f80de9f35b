//! Who counts, writes down and traces what turns come to: told once a run of a turn is over, with the events of all of it.

use super::Conversations;
use crate::EngineError;
use crate::driver::Driver;
use aish_core::event::Event;
use aish_core::id::SessionId;
use aish_store::{RawEvent, StoreError, export::jsonl_line};
use std::borrow::Cow;
use std::sync::Arc;

/// What this process did with a turn: until it waited, was over, or could not go on here.
#[derive(Clone, Copy, Debug)]
pub struct Ran<'a> {
    /// The session.
    pub session: &'a SessionId,
    /// The turn.
    pub turn: u64,
    /// All events of the session, those of other turns included.
    pub events: &'a [Event],
    /// The first event that was written meanwhile.
    pub from: u64,
    /// Why it could not go on.
    pub problem: Option<Problem<'a>>,
}

/// Why a run of a turn could not go on.
#[derive(Clone, Copy, Debug)]
pub struct Problem<'a> {
    /// One line, without the secrets that this process knows.
    pub text: &'a str,
    /// Whose fault it is.
    pub fault: Fault,
}

/// Whose fault a failure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The ledger's: its disk or database failed.
    Ledger,
    /// Something else's.
    Other,
}

impl Fault {
    /// Whose fault this error is.
    pub fn of(error: &EngineError) -> Self {
        match error {
            EngineError::Store(StoreError::Io { .. }) => Self::Ledger,
            EngineError::Store(_)
            | EngineError::Invalid { .. }
            | EngineError::ReadOnly(_)
            | EngineError::NoOpenTurn(_)
            | EngineError::NotPending(_)
            | EngineError::Asks(_)
            | EngineError::Digest(_)
            | EngineError::AnsweredOtherwise(_)
            | EngineError::Model(_)
            | EngineError::Paused(_)
            | EngineError::LeaseLost(_) => Self::Other,
        }
    }
}

impl<'a> Ran<'a> {
    /// The events of the turn, those that were there before included.
    pub fn of_turn(&self) -> impl Iterator<Item = &'a Event> + use<'a> {
        let turn = self.turn;
        self.events.iter().filter(move |event| event.turn == turn)
    }

    /// Those that were written meanwhile.
    pub fn written(&self) -> impl Iterator<Item = &'a Event> + use<'a> {
        let from = self.from;
        self.of_turn().filter(move |event| event.seq >= from)
    }
}

/// Whoever is told. It must not wait for anything: turns wait for it.
pub trait Observer: Send + Sync {
    /// A run of a turn is over.
    fn ran(&self, ran: &Ran<'_>);
}

impl Conversations {
    /// Has somebody told of every run of a turn here: the first who asks, and nobody else.
    pub fn observe(&self, observer: Arc<dyn Observer>) {
        let _ = self.observer.set(observer);
    }

    /// An event as an export has it, one line of JSON without its newline.
    pub fn exported(&self, session: &SessionId, event: &RawEvent) -> String {
        self.shown(jsonl_line(session, event))
    }

    /// Text without the secrets that this process knows (SPEC 10.5).
    pub fn shown(&self, text: String) -> String {
        match self.engine.redactor.redact(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(redacted) => redacted,
        }
    }

    /// Tells of a run of a turn that was over with the last event there is.
    pub(super) fn observed(&self, driver: &Driver, from: u64, problem: Option<Problem<'_>>) {
        let session = driver.session();
        if let (Some(observer), Some(turn)) = (self.observer.get(), session.turn()) {
            observer.ran(&Ran {
                session: session.id(),
                turn: turn.number(),
                events: session.events(),
                from,
                problem,
            });
        }
    }

    /// A turn got events after that one without being run: whoever waits for it, follows it or counts is told.
    pub(super) fn ran_until(&self, driver: &Driver, before: u64) {
        self.hubs.stir(driver.session().id());
        if driver.session().last_seq() > before {
            self.hubs.tell(driver);
            self.observed(driver, before + 1, None);
        }
    }
}
