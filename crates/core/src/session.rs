//! A session: its events, and what folding them gives.
//!
//! Everything a front end or a driver wants to know of a session is a view of its events: the open turn, the approvals
//! given for the session, the messages for a model. [`Session::apply`] folds one more event in; [`Session::check`] says
//! whether drafts could follow, without changing anything.

use crate::event::{Answer, Body, Draft, EVENT_VERSION, Event};
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
    ///
    /// Every turn is folded, not only the last: whether an approval for the session counts depends on whether its event
    /// could stand where it stands, and loading must give exactly what living through the events gave.
    pub fn load(id: SessionId, events: Vec<Event>) -> Self {
        let mut session = Self::new(id);
        for event in &events {
            session.take_in(event);
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
        if event.seq != last.saturating_add(1) {
            return Err(InvalidEvent::OutOfOrder { got: event.seq, last });
        }
        self.fold(&event)?;
        self.newer |= is_newer(&event);
        self.events.push(event);
        Ok(())
    }

    /// Folds an event that is in the ledger already, whether it may follow or not: what is written is written.
    pub fn accept(&mut self, event: Event) {
        self.take_in(&event);
        self.events.push(event);
    }

    fn take_in(&mut self, event: &Event) {
        self.newer |= is_newer(event);
        if self.fold(event).is_err() {
            self.passed_over += 1;
        }
    }

    /// Gives drafts their places after the last event and folds them: what a store does, in memory.
    ///
    /// # Errors
    /// One of them may not follow those before it; the session is as it was.
    pub fn append(&mut self, time: u64, drafts: Vec<Draft>) -> Result<Vec<Event>, InvalidEvent> {
        self.check(&drafts)?;
        let mut placed = Vec::with_capacity(drafts.len());
        for draft in drafts {
            let event = draft.place(&self.id, self.last_seq().saturating_add(1), time);
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
        self.turn_after(drafts).map(drop)
    }

    /// The last turn as it would be if these drafts were appended now.
    ///
    /// # Errors
    /// Why the first that may not follow may not.
    pub fn turn_after(&self, drafts: &[Draft]) -> Result<Option<Turn>, InvalidEvent> {
        // The events are not needed to judge what may follow: only the small state of the turn is copied.
        let mut trial = Self {
            id: self.id.clone(),
            events: Vec::new(),
            turn: self.turn.clone(),
            grants: Vec::new(),
            newer: self.newer,
            passed_over: 0,
        };
        let mut seq = self.last_seq();
        for draft in drafts {
            seq = seq.saturating_add(1);
            trial.fold(&draft.clone().place(&self.id, seq, 0))?;
        }
        Ok(trial.turn)
    }

    fn fold(&mut self, event: &Event) -> Result<(), InvalidEvent> {
        if self.open_turn().is_some() && moves_context(event) {
            return Err(InvalidEvent::TurnOpen);
        }
        if event.turn == 0 {
            return Ok(());
        }
        let grant = self.new_grant(event);
        self.fold_in_turn(event)?;
        self.grants.extend(grant);
        Ok(())
    }

    /// The approval for the session that an answer gives: only a first yes gives one, for the same answer again must have
    /// no effect (SPEC 3.3).
    fn new_grant(&self, event: &Event) -> Option<Grant> {
        let Body::CallAnswered(answered) = &event.body else {
            return None;
        };
        let answered_before = self
            .turn
            .as_ref()
            .and_then(|turn| turn.call(&answered.call_id))
            .is_some_and(|call| call.answered.is_some());
        let grant = answered.grant.as_ref()?;
        let gives = answered.answer == Answer::Approve && !answered_before && !self.grants.contains(grant);
        gives.then(|| grant.clone())
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
        self.turn.as_ref().map_or(0, Turn::number).saturating_add(1)
    }

    /// The approvals given for the rest of the session.
    pub fn grants(&self) -> &[Grant] {
        &self.grants
    }

    /// True when a newer aish wrote some of it: it may be read and not continued (SPEC 2.4).
    pub fn is_read_only(&self) -> bool {
        self.newer
    }

    /// How many events had no effect because they may not stand where they stand.
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

    /// The result that counts for a call: the first after it in its turn.
    pub fn result_event(&self, id: &CallId) -> Option<&crate::event::ToolResult> {
        let is_call = |event: &Event| event.tool_call().is_some_and(|call| call.id == *id);
        let at = self.events.iter().rposition(is_call)?;
        let turn = self.events.get(at)?.turn;
        let after = self.events.get(at..)?.iter().filter(|event| event.turn == turn);
        after
            .filter_map(Event::tool_result)
            .find(|result| result.tool_call_id == *id)
    }

    /// What a call asked last, if it stopped in the middle to ask something.
    pub fn suspension(&self, id: &CallId) -> Option<&crate::event::CallSuspended> {
        let mut suspensions = self.events.iter().rev().filter_map(|event| {
            if let Body::CallSuspended(data) = &event.body {
                Some(data)
            } else {
                None
            }
        });
        suspensions.find(|data| data.call_id == *id)
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

fn is_newer(event: &Event) -> bool {
    matches!(event.body, Body::Unknown { .. }) || event.version > EVENT_VERSION
}

/// True for what would pull the conversation from under a running turn: emptying or setting back its context, and
/// messages that belong to no turn.
fn moves_context(event: &Event) -> bool {
    match &event.body {
        Body::Clear | Body::Rewind(_) => true,
        Body::User(_) | Body::Assistant(_) | Body::ToolCall(_) | Body::ToolResult(_) => event.turn == 0,
        Body::System(_)
        | Body::TurnStarted(_)
        | Body::CallGated(_)
        | Body::CallAnswered(_)
        | Body::CallStarted(_)
        | Body::ModelFailed(_)
        | Body::Suspended(_)
        | Body::Resumed(_)
        | Body::Cancelled(_)
        | Body::TurnEnded(_)
        | Body::Command(_)
        | Body::Usage(_)
        | Body::ServerAsked(_)
        | Body::ServerAnswered(_)
        | Body::CallSuspended(_)
        | Body::CallTakenUp(_)
        | Body::Mark(_)
        | Body::Fork(_)
        | Body::Compaction(_)
        | Body::Memory(_)
        | Body::Note(_)
        | Body::Unknown { .. } => false,
    }
}
