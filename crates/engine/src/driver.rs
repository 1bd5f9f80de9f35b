//! The driver: one session, its lease, and the loop that performs steps.

use crate::{Engine, EngineError, Finished, Notices, Outcome, Pending};
use aish_core::event::{Answer, AnswerScope, AnsweredBy, Command};
use aish_core::id::{CallId, SessionId};
use aish_core::message::Part;
use aish_core::session::Session;
use aish_tools::Cancel;
use std::sync::Arc;

/// An answer to a call that was asked about.
#[derive(Clone, Debug)]
pub struct AnswerRequest {
    /// Which call.
    pub call_id: CallId,
    /// The digest of what was shown, whole or at least its first 12 digits; `None` takes the recorded one (a script that
    /// names a call only).
    pub digest: Option<String>,
    /// Yes or no.
    pub answer: Answer,
    /// How far a yes reaches.
    pub scope: AnswerScope,
    /// Who said it.
    pub by: AnsweredBy,
    /// The reason for a no.
    pub reason: Option<String>,
}

/// What an answer did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answered {
    /// It counts.
    Recorded,
    /// The same answer was there before; nothing changed (SPEC 3.3).
    Already,
}

/// One session being driven.
pub struct Driver {
    pub(crate) engine: Arc<Engine>,
    pub(crate) session: Session,
}

impl Driver {
    /// A new session. Nothing is written until something is said in it.
    pub fn create(engine: Arc<Engine>) -> Self { todo!() }
    /// An existing session, folded from the ledger.
    ///
    /// # Errors
    /// It cannot be read.
    pub async fn open(engine: Arc<Engine>, id: SessionId) -> Result<Self, EngineError> { todo!() }
    /// Its fold.
    pub fn session(&self) -> &Session { &self.session }
    /// The engine.
    pub fn engine(&self) -> &Arc<Engine> { &self.engine }
    /// True while events could not be written and are kept in memory (SPEC 2.5).
    pub fn is_unsaved(&self) -> bool { todo!() }
    /// The calls that wait for a person; empty when none do.
    pub fn pending(&self) -> Vec<Pending> { todo!() }
    /// Begins a turn: appends `turn_started` and the user's message.
    ///
    /// # Errors
    /// The last turn is open: answer, drive or cancel it first.
    pub async fn start(&mut self, text: &str, parts: Vec<Part>) -> Result<(), EngineError> { todo!() }
    /// Performs steps until the turn is over or waits for somebody. `cancel` turning true cancels the turn.
    ///
    /// # Errors
    /// The session is driven by somebody else, or cannot be written at all.
    pub async fn drive(&mut self, notices: &Notices, cancel: Cancel) -> Result<Outcome, EngineError> { todo!() }
    /// Records an answer. Needs no lease: any process may answer.
    ///
    /// # Errors
    /// The call does not wait, the digest differs, or it was answered otherwise.
    pub async fn answer(&mut self, request: AnswerRequest) -> Result<Answered, EngineError> { todo!() }
    /// Cancels the open turn: every open call is answered and the turn closed, at once.
    ///
    /// # Errors
    /// The ledger refuses.
    pub async fn cancel(&mut self, reason: &str) -> Result<Finished, EngineError> { todo!() }
    /// Empties the context, not the ledger.
    ///
    /// # Errors
    /// A turn is open, or the ledger refuses.
    pub async fn clear(&mut self) -> Result<(), EngineError> { todo!() }
    /// Runs a command line of the user's own (no gate: the person typed it) through the `bash` tool's executor and records
    /// it as a `command` event; its output is kept for the next question (SPEC 8.3).
    ///
    /// # Errors
    /// The ledger refuses.
    pub async fn run_command(&mut self, line: &str, notices: &Notices, cancel: Cancel) -> Result<Command, EngineError> { todo!() }
    /// Waits (bounded) for what cancelled calls left behind and records it. To be called before the process ends.
    pub async fn settle(&mut self) { todo!() }
}
