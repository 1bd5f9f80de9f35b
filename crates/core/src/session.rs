//! A session: its events, and what folding them gives.
//!
//! Everything a front end or a driver wants to know of a session is a view of its events: the open turn, the approvals
//! given for the session, the messages for a model. [`Session::apply`] folds one more event in; [`Session::check`] says
//! whether drafts could follow, without changing anything.

use crate::event::{Body, Draft, Event};
use crate::id::{CallId, SessionId};
use crate::policy::Grant;
use crate::projection::{self, Projection};
use crate::turn::{InvalidEvent, Turn};

/// A session in memory.
#[derive(Clone, Debug)]
pub struct Session {
    id: SessionId,
    events: Vec<Event>,
    turn: Option<Turn>,
    grants: Vec<Grant>,
    newer: bool,
    passed_over: usize,
}

impl Session {
    /// A session without events.
    pub fn new(id: SessionId) -> Self {
        Self {
            id,
            events: Vec::new(),
            turn: None,
            grants: Vec::new(),
            newer: false,
            passed_over: 0,
        }
    }

    /// A session from all its events, in order. Events that may not follow those before them are kept and have no effect.
    pub fn load(id: SessionId, events: Vec<Event>) -> Self {
        let mut session = Self::new(id);
        // Only the last turn can still be open: folding the others would give nothing anybody asks for.
        let last_turn = events
            .iter()
            .rposition(|event| matches!(event.body, Body::TurnStarted(_)))
            .unwrap_or(0);
        session.events = events;
        let events = std::mem::take(&mut session.events);
        for (n, event) in events.iter().enumerate() {
            if n < last_turn {
                session.note_event(event);
            } else if session.fold(event).is_err() {
                session.passed_over += 1;
            }
        }
        session.events = events;
        session
    }

    /// Folds one more event.
    ///
    /// # Errors
    /// It may not follow those before it; the session is as it was.
    pub fn apply(&mut self, event: Event) -> Result<(), InvalidEvent> {
        let last = self.last_seq();
        if event.seq != last + 1 {
            return Err(InvalidEvent::OutOfOrder { got: event.seq, last });
        }
        self.fold(&event)?;
        self.events.push(event);
        Ok(())
    }

    /// Folds an event that is in the ledger already, whether it may follow or not: what is written is written.
    pub fn accept(&mut self, event: Event) {
        if self.fold(&event).is_err() {
            self.passed_over += 1;
        }
        self.events.push(event);
    }

    /// Gives drafts their places after the last event and folds them: what a store does, in memory.
    ///
    /// # Errors
    /// One of them may not follow those before it; the session is as it was.
    pub fn append(&mut self, time: u64, drafts: Vec<Draft>) -> Result<Vec<Event>, InvalidEvent> {
        self.check(&drafts)?;
        let mut placed = Vec::with_capacity(drafts.len());
        for draft in drafts {
            let event = draft.place(&self.id, self.last_seq() + 1, time);
            self.apply(event.clone())?;
            placed.push(event);
        }
        Ok(placed)
    }

    /// Whether these drafts could be appended now.
    ///
    /// # Errors
    /// Why the first that may not follow may not.
    pub fn check(&self, drafts: &[Draft]) -> Result<(), InvalidEvent> {
        // The events are not needed to judge what may follow: only the small state of the turn is copied.
        let mut trial = Self {
            id: self.id.clone(),
            events: Vec::new(),
            turn: self.turn.clone(),
            grants: Vec::new(),
            newer: self.newer,
            passed_over: 0,
        };
        for (seq, draft) in (self.last_seq() + 1..).zip(drafts) {
            trial.fold(&draft.clone().place(&self.id, seq, 0))?;
        }
        Ok(())
    }

    fn fold(&mut self, event: &Event) -> Result<(), InvalidEvent> {
        if event.turn > 0 {
            self.fold_in_turn(event)?;
        }
        self.note_event(event);
        Ok(())
    }

    fn fold_in_turn(&mut self, event: &Event) -> Result<(), InvalidEvent> {
        let current = self.turn.as_ref().map_or(0, Turn::number);
        if matches!(event.body, Body::TurnStarted(_)) && event.turn > current {
            if self.open_turn().is_some() {
                return Err(InvalidEvent::AlreadyStarted);
            }
            let mut turn = Turn::new(event.turn);
            turn.apply(event)?;
            self.turn = Some(turn);
            return Ok(());
        }
        match &mut self.turn {
            Some(turn) if turn.number() == event.turn => turn.apply(event),
            // What a call of an earlier turn came to, told late, is kept and has no effect (SPEC 3.5a).
            Some(_) if event.turn < current && matches!(event.body, Body::ToolResult(_)) => Ok(()),
            Some(_) | None => Err(InvalidEvent::WrongTurn(event.turn)),
        }
    }

    fn note_event(&mut self, event: &Event) {
        if let Body::CallAnswered(answered) = &event.body
            && let Some(grant) = &answered.grant
            && !self.grants.contains(grant)
        {
            self.grants.push(grant.clone());
        }
        self.newer |= matches!(event.body, Body::Unknown { .. }) || event.version > crate::event::EVENT_VERSION;
    }

    /// Its id.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Its events, in order.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// The number of its last event; 0 when it has none.
    pub fn last_seq(&self) -> u64 {
        self.events.last().map_or(0, |event| event.seq)
    }

    /// The last turn, open or not.
    pub fn turn(&self) -> Option<&Turn> {
        self.turn.as_ref()
    }

    /// The last turn while it has not ended.
    pub fn open_turn(&self) -> Option<&Turn> {
        self.turn.as_ref().filter(|turn| turn.ended().is_none())
    }

    /// The number the next turn gets.
    pub fn next_turn(&self) -> u64 {
        self.turn.as_ref().map_or(0, Turn::number) + 1
    }

    /// The approvals given for the rest of the session.
    pub fn grants(&self) -> &[Grant] {
        &self.grants
    }

    /// True when a newer aish wrote some of it: it may be read and not continued (SPEC 2.4).
    pub fn is_read_only(&self) -> bool {
        self.newer
    }

    /// How many events of the last turn had no effect because they may not stand where they stand.
    pub fn passed_over(&self) -> usize {
        self.passed_over
    }

    /// The `tool_call` event of a call: its name and its arguments as received.
    pub fn call_event(&self, id: &CallId) -> Option<&crate::event::ToolCall> {
        self.events
            .iter()
            .rev()
            .filter_map(Event::tool_call)
            .find(|call| call.id == *id)
    }

    /// The result that counts for a call: the first.
    pub fn result_event(&self, id: &CallId) -> Option<&crate::event::ToolResult> {
        let turn = self.turn.as_ref().map_or(0, Turn::number);
        let in_turn = self
            .events
            .iter()
            .rev()
            .take_while(|event| event.turn == turn || event.turn == 0);
        in_turn
            .filter_map(Event::tool_result)
            .filter(|result| result.tool_call_id == *id)
            .last()
    }

    /// What a model is sent: the conversation since it was last cleared.
    pub fn projection(&self) -> Projection {
        projection::project(&self.events)
    }

    /// How many conversation events are in the context (SPEC 2.8).
    pub fn context_len(&self) -> usize {
        projection::context(&self.events)
            .iter()
            .filter(|event| event.body.is_conversation())
            .count()
    }
}
