//! Where a turn stands, as a client somewhere else is told: a reply, or what it waits for (SPEC 9.1, 9.2, 9.6).
//!
//! A view of the events alone, and of a moment in them: an answer that is sent again gets what it got the first time, whatever
//! has happened since (SPEC 9.4).
//!
//! A turn that a person began at a terminal is told of as well: its calls may be answered from any device (SPEC 9.9). It is not
//! suspended, as somebody sits in front of it, or comes back to it with `aish resume`; so it waits with the verdict that asks.

use crate::driver::Driver;
use crate::told::Telling;
use aish_core::Digest;
use aish_core::event::{Body, Event, readable_call};
use aish_core::id::{CallId, ContinuationId, SessionId};
use aish_core::turn::StopReason;
use std::fmt;

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
    /// Where the answer goes.
    pub answer_to: AnswerTo,
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

/// What an answer is sent to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerTo {
    /// The one-shot id of a suspension.
    Continuation(ContinuationId),
    /// The session, for a call of a turn that a terminal drives: that has no suspension, and what a yes is for is said by the call's
    /// id and digest.
    Session(SessionId),
}

impl AnswerTo {
    /// As it stands in a path.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Continuation(id) => id.as_str(),
            Self::Session(id) => id.as_str(),
        }
    }
}

impl fmt::Display for AnswerTo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
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
    /// What the turn came to from that event on (0: whatever it came to first), as its client is told.
    pub(crate) fn standing_from(&self, turn: u64, seq: u64) -> Standing {
        let mut telling = Telling::default();
        let mut events = self.session.events().iter().filter(|event| event.turn == turn);
        let told = events.find_map(|event| {
            telling.take(event);
            if event.seq >= seq { telling.at(event) } else { None }
        });
        told.map_or(Standing::Running, |envelope| Standing::Told(Box::new(envelope)))
    }

    /// How a turn ended, if there was one of that number and it has.
    pub(crate) fn envelope_of(&self, turn: u64) -> Option<Envelope> {
        let mut events = self.session.events().iter().rev();
        let ended = events.find(|event| event.turn == turn && matches!(event.body, Body::TurnEnded(_)))?;
        Some(self.telling(ended).envelope(ended))
    }

    /// What was told of a turn up to that event; nothing where there is none.
    pub(crate) fn telling_at(&self, seq: u64) -> Telling {
        let mut events = self.session.events().iter().rev();
        let event = events.find(|event| event.seq == seq);
        event.map_or_else(Telling::default, |event| self.telling(event))
    }

    /// What its client was told last, and the event that said it: unless the turn has gone on since, or nothing was asked yet.
    pub(crate) fn last_told(&self) -> Option<(u64, Envelope)> {
        let turn = self.session.turn()?;
        // A client's turn that waits is suspended: until it says so, somebody is about to.
        let is_asking = turn.is_waiting() && turn.served().is_none();
        if turn.ended().is_none() && turn.suspended().is_none() && !is_asking {
            return None;
        }
        let mut telling = Telling::default();
        let events = self.session.events().iter();
        let told = events.filter(|event| event.turn == turn.number()).filter_map(|event| {
            telling.take(event);
            Some((event.seq, telling.at(event)?))
        });
        told.last()
    }

    /// Where the session stands now.
    pub(crate) fn standing(&self) -> Standing {
        if self.session.open_turn().is_none() {
            return Standing::Idle;
        }
        let told = self.last_told();
        told.map_or(Standing::Running, |(_, envelope)| Standing::Told(Box::new(envelope)))
    }

    /// What is told of a turn up to one of its events.
    fn telling(&self, at: &Event) -> Telling {
        let mut telling = Telling::default();
        let events = self.session.events().iter();
        for event in events.filter(|event| event.turn == at.turn && event.seq <= at.seq) {
            telling.take(event);
        }
        telling
    }
}

impl Waited {
    /// The call as a person reads it, `tool(key=value, …)`, unescaped.
    pub fn readable(&self) -> String {
        readable_call(&self.tool, &self.input)
    }
}
