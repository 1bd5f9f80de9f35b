//! Where a turn stands, as a client somewhere else is told: a reply, or what it waits for (SPEC 9.1, 9.2, 9.6).
//!
//! A view of the events alone, and of a moment in them: an answer that is sent again gets what it got the first time, whatever
//! has happened since (SPEC 9.4).

use crate::EngineError;
use crate::driver::Driver;
use crate::told::{Telling, is_told};
use aish_core::Digest;
use aish_core::event::{Body, Event, Suspended, readable_call};
use aish_core::id::{CallId, ContinuationId, SessionId};
use aish_core::turn::{Step, StopReason, Turn};

/// Where a turn stands.
#[derive(Clone, Debug, PartialEq)]
pub enum Standing {
    /// Nothing was asked yet, or the last turn is over and its reply was given: nobody does anything.
    Idle,
    /// It is being driven, or is about to be.
    Running,
    /// It waits, or is over: there is something to tell.
    Told(Box<Envelope>),
}

/// What a client is told.
#[derive(Clone, Debug, PartialEq)]
pub struct Envelope {
    /// The session.
    pub session: SessionId,
    /// The turn.
    pub turn: u64,
    /// The model that answered last, by its configured name.
    pub model: String,
    /// The tools that ran or were handed to the client so far in this turn, in order; one that was called twice is there twice.
    pub tools_used: Vec<String>,
    /// What it waits for, or how it ended.
    pub reply: Waiting,
}

/// What a turn waits for, or that it waits for nothing any more.
#[derive(Clone, Debug, PartialEq)]
pub enum Waiting {
    /// The client executes this call (SPEC 9.2).
    ForTool(Waited),
    /// Somebody has to say yes or no to this call (SPEC 9.6).
    ForApproval(Waited),
    /// Nothing: the turn is over.
    ForNothing(Final),
}

/// A call that is waited for.
#[derive(Clone, Debug, PartialEq)]
pub struct Waited {
    /// The one-shot id of the suspension.
    pub continuation: ContinuationId,
    /// Which call.
    pub call_id: CallId,
    /// The tool, as the model called it.
    pub tool: String,
    /// The arguments: the text of a JSON object.
    pub input: String,
    /// What an answer quotes.
    pub digest: Option<Digest>,
    /// Why it is asked about, for a person.
    pub reason: String,
    /// When it no longer waits, in milliseconds since the Unix epoch.
    pub expires: Option<u64>,
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Final {
    /// The text of its last reply, closing text included.
    pub reply: String,
    /// Why it ended.
    pub reason: StopReason,
}

impl Driver {
    /// What the turn came to after that event (0: whatever it came to first), as its client is told.
    pub fn standing_after(&self, turn: u64, seq: u64) -> Standing {
        let session = &self.session;
        let mut after = session
            .events()
            .iter()
            .filter(|event| event.turn == turn && event.seq > seq);
        match after.find(|event| is_told(event)) {
            Some(event) => Standing::Told(Box::new(self.envelope(turn, event))),
            None => Standing::Running,
        }
    }

    /// How a turn ended, if there was one of that number and it has.
    pub fn envelope_of(&self, turn: u64) -> Option<Envelope> {
        let mut events = self.session.events().iter().rev();
        let ended = events.find(|event| event.turn == turn && matches!(event.body, Body::TurnEnded(_)))?;
        Some(self.envelope(turn, ended))
    }

    /// What an event told the client, if it told anything.
    pub(crate) fn told_at(&self, seq: u64) -> Option<Envelope> {
        let mut events = self.session.events().iter().rev();
        let told = events.find(|event| event.seq == seq).filter(|event| is_told(event))?;
        Some(self.envelope(told.turn, told))
    }

    /// What its client was told last, and the event that said it: unless the turn has gone on since, or nothing was asked yet.
    pub fn last_told(&self) -> Option<(u64, Envelope)> {
        let turn = self.session.turn()?;
        if turn.ended().is_none() && turn.suspended().is_none() {
            return None;
        }
        let mut events = self.session.events().iter().rev();
        let told = events.find(|event| event.turn == turn.number() && is_told(event))?;
        Some((told.seq, self.envelope(turn.number(), told)))
    }

    /// Where the session stands now.
    pub fn standing(&self) -> Standing {
        let Some(turn) = self.session.turn() else {
            return Standing::Idle;
        };
        if turn.ended().is_some() {
            return Standing::Idle;
        }
        let Some(suspended) = turn.suspended() else {
            return Standing::Running;
        };
        let is_it = |event: &&Event| matches!(&event.body, Body::Suspended(data) if data == suspended);
        match self.session.events().iter().rev().find(is_it) {
            Some(event) => Standing::Told(Box::new(self.envelope(turn.number(), event))),
            None => Standing::Running,
        }
    }

    fn envelope(&self, turn: u64, at: &Event) -> Envelope {
        let mut telling = Telling::default();
        let events = self.session.events().iter();
        for event in events.filter(|event| event.turn == turn && event.seq <= at.seq) {
            telling.take(event);
        }
        telling.envelope(at)
    }

    /// The suspension of what the open turn waits for now, to be recorded; `None` where it waits for nobody.
    pub(crate) fn suspension_now(&self, continuation: ContinuationId, expires: Option<u64>) -> Option<Suspended> {
        let call_id = match self.session.open_turn().map(Turn::next)? {
            Step::AskApproval(calls) | Step::AwaitClient(calls) => calls.into_iter().next(),
            Step::AwaitPerson(jobs) => jobs.into_iter().next().map(|job| job.call),
            Step::CallModel { .. } | Step::Gate(_) | Step::RunTools(_) | Step::Done(_) => return None,
        };
        Some(Suspended {
            continuation,
            call_id,
            expires,
        })
    }

    /// Loads what others wrote, for a view of it.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub async fn refresh(&mut self) -> Result<(), EngineError> {
        self.catch_up().await
    }
}

impl Waited {
    /// The call as a person reads it, `tool(key=value, …)`, unescaped.
    pub fn readable(&self) -> String {
        readable_call(&self.tool, &self.input)
    }
}
