//! What a store keeps beside the events of a session so that it need not fold them to list or find it: its summary,
//! the calls of its last turn that wait for somebody, and its continuations (DESIGN rule 10).
//!
//! [`SessionIndex`] is itself a fold, one event at a time: a store applies it in the transaction of the append, and a
//! rebuild applies it to all events from the first. Both stores share it.
//!
//! **Waiting.** A session waits when its last turn is open and either a call was gated `ask` and has neither an answer
//! nor a result, or a call asked something in the middle and was neither taken up nor declined, or the turn is suspended. A turn
//! of a client elsewhere waits only while it is suspended: until it is, nobody could answer, and somebody has to drive it there.

use crate::{Pending, PendingState, SessionSummary, StoreError};
use aish_core::event::{Answer, Body, CallSource, Event};
use aish_core::id::{CallId, SessionId};
use aish_core::policy::Verdict;

/// Characters of a title; a first question may be a whole piped file.
pub(crate) const TITLE_CHARS_MAX: usize = 200;

/// A call of the open turn that somebody outside this process has to answer or to execute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WaitingCall {
    pub(crate) call: CallId,
    /// A person has yet to say yes or no.
    pub(crate) needs_answer: bool,
    /// The remote client executes it.
    pub(crate) at_client: bool,
}

/// The index of one session, as of its last event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SessionIndex {
    pub(crate) created: u64,
    pub(crate) updated: u64,
    pub(crate) events: u64,
    pub(crate) title: String,
    pub(crate) directory: String,
    /// The number of the last turn while it has not ended.
    pub(crate) open_turn: Option<u64>,
    /// True when the last turn was begun by a client elsewhere.
    pub(crate) served: bool,
    /// In the order they were gated.
    pub(crate) waiting_calls: Vec<WaitingCall>,
    /// In the order they were suspended. A store may leave out those that are settled before it applies an event.
    pub(crate) pending: Vec<Pending>,
}

impl SessionIndex {
    /// Folds the session's next event.
    pub(crate) fn apply(&mut self, event: &Event) {
        if self.events == 0 {
            self.created = event.time;
        }
        self.updated = event.time;
        self.events = event.seq;
        match &event.body {
            Body::User(_) if self.title.is_empty() => {
                self.title = event.content.chars().take(TITLE_CHARS_MAX).collect();
            }
            Body::TurnStarted(data) => {
                // A turn that a crash left open waits no more once the next one began.
                self.close_turn();
                self.open_turn = Some(event.turn);
                self.served = data.served.is_some();
                self.note_directory(data.directory.as_deref().unwrap_or_default());
            }
            Body::Command(data) => self.note_directory(&data.directory),
            Body::CallGated(data) => {
                let needs_answer = data.verdict == Verdict::Ask;
                let at_client =
                    data.source == CallSource::Client && matches!(data.verdict, Verdict::Ask | Verdict::Allow);
                if self.open_turn.is_some() && (needs_answer || at_client) {
                    self.waiting_calls.push(WaitingCall {
                        call: data.call_id.clone(),
                        needs_answer,
                        at_client,
                    });
                }
            }
            Body::CallAnswered(data) => {
                self.answer(&data.call_id, data.answer);
                self.no_longer_waits_for(&data.call_id);
            }
            Body::CallSuspended(data) if self.open_turn.is_some() => {
                self.waiting_calls.retain(|waiting| waiting.call != data.call_id);
                self.waiting_calls.push(WaitingCall {
                    call: data.call_id.clone(),
                    needs_answer: true,
                    at_client: false,
                });
            }
            Body::CallTakenUp(data) => self.waiting_calls.retain(|waiting| waiting.call != data.call_id),
            Body::ToolResult(data) => {
                self.waiting_calls.retain(|waiting| waiting.call != data.tool_call_id);
                self.no_longer_waits_for(&data.tool_call_id);
            }
            Body::Suspended(data) => self.pending.push(Pending {
                continuation: data.continuation.clone(),
                session: event.session.clone(),
                seq: event.seq,
                call: data.call_id.clone().or_else(|| self.awaited_call()),
                expires: data.expires,
                state: PendingState::Open,
            }),
            Body::Resumed(data) => {
                for pending in &mut self.pending {
                    if pending.continuation == data.continuation && pending.state == PendingState::Open {
                        pending.state = PendingState::Answered;
                    }
                }
            }
            Body::Cancelled(_) | Body::TurnEnded(_) => self.close_turn(),
            Body::User(_)
            | Body::System(_)
            | Body::Assistant(_)
            | Body::ToolCall(_)
            | Body::CallStarted(_)
            | Body::CallSuspended(_)
            | Body::ModelFailed(_)
            | Body::Usage(_)
            | Body::ServerAsked(_)
            | Body::ServerAnswered(_)
            | Body::Clear
            | Body::Mark(_)
            | Body::Rewind(_)
            | Body::Fork(_)
            | Body::Compaction(_)
            | Body::Memory(_)
            | Body::Note(_)
            | Body::Unknown { .. } => {}
        }
    }

    /// Whether the session waits; see the module's head.
    pub(crate) fn is_waiting(&self) -> bool {
        let is_suspended = || self.pending.iter().any(Pending::is_open);
        let is_asking = || self.waiting_calls.iter().any(|waiting| waiting.needs_answer);
        self.open_turn.is_some() && (is_suspended() || (!self.served && is_asking()))
    }

    /// The session's line in a list.
    pub(crate) fn summary(&self, id: &SessionId) -> SessionSummary {
        SessionSummary {
            id: id.clone(),
            created: self.created,
            updated: self.updated,
            events: self.events,
            title: self.title.clone(),
            directory: self.directory.clone(),
            waiting: self.is_waiting(),
        }
    }

    /// The first directory that is told is where the session was started.
    fn note_directory(&mut self, directory: &str) {
        if self.directory.is_empty() {
            directory.clone_into(&mut self.directory);
        }
    }

    fn answer(&mut self, call: &CallId, answer: Answer) {
        for waiting in &mut self.waiting_calls {
            if waiting.call == *call {
                waiting.needs_answer = false;
                waiting.at_client &= answer == Answer::Approve;
            }
        }
        self.waiting_calls
            .retain(|waiting| waiting.needs_answer || waiting.at_client);
    }

    /// What a suspension waits for that does not say so: the first call to be answered, else the first that the client executes.
    fn awaited_call(&self) -> Option<CallId> {
        let asked = self.waiting_calls.iter().find(|waiting| waiting.needs_answer);
        asked.or(self.waiting_calls.first()).map(|waiting| waiting.call.clone())
    }

    /// Whether an event may still be appended: what it resumes waits, as far as this session knows of it.
    pub(crate) fn check_claim(&self, event: &Event) -> Result<(), StoreError> {
        let Body::Resumed(data) = &event.body else {
            return Ok(());
        };
        let known = self
            .pending
            .iter()
            .find(|pending| pending.continuation == data.continuation);
        match known.map(|pending| pending.state) {
            Some(PendingState::Answered | PendingState::Closed) => Err(StoreError::Claimed(data.continuation.clone())),
            Some(PendingState::Open) | None => Ok(()),
        }
    }

    /// What a suspension waited for came by another way than its continuation.
    fn no_longer_waits_for(&mut self, call: &CallId) {
        for pending in &mut self.pending {
            if pending.state == PendingState::Open && pending.call.as_ref() == Some(call) {
                pending.state = PendingState::Answered;
            }
        }
    }

    /// True while its last turn is a client's, and somebody has to drive it on.
    pub(crate) fn is_to_be_driven(&self) -> bool {
        self.served && self.open_turn.is_some() && !self.is_waiting()
    }

    fn close_turn(&mut self) {
        self.open_turn = None;
        self.waiting_calls.clear();
        for pending in &mut self.pending {
            if pending.state == PendingState::Open {
                pending.state = PendingState::Closed;
            }
        }
    }
}

impl PendingState {
    /// As a database has it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Answered => "answered",
            Self::Closed => "closed",
        }
    }

    /// As a database had it.
    pub(crate) fn parse(text: &str) -> Self {
        match text {
            "open" => Self::Open,
            "answered" => Self::Answered,
            // Nothing waits for a state of a newer aish.
            _ => Self::Closed,
        }
    }
}

/// Picks the one session that `prefix` stands for (see [`crate::Store::find`]) from those it begins or ends.
pub(crate) fn resolve(prefix: &str, mut candidates: Vec<SessionId>) -> Result<SessionId, crate::StoreError> {
    if let Some(exact) = candidates.iter().find(|id| id.as_str() == prefix) {
        return Ok(exact.clone());
    }
    if prefix.chars().count() < crate::ID_PREFIX_CHARS_MIN {
        return Err(crate::StoreError::NotFound(prefix.to_owned()));
    }
    match (candidates.pop(), candidates.len()) {
        (None, _) => Err(crate::StoreError::NotFound(prefix.to_owned())),
        (Some(only), 0) => Ok(only),
        (Some(_), others) => Err(crate::StoreError::Ambiguous {
            prefix: prefix.to_owned(),
            count: others + 1,
        }),
    }
}
