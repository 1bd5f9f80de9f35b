//! Why a client is refused.

use crate::EngineError;
use aish_core::id::{CallId, ContinuationId, SessionId};
use aish_store::StoreError;

/// Why a client is refused. What the store or the engine could not do is one of them.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// No such session or continuation.
    #[error("there is no session and no continuation {0}")]
    Unknown(String),
    /// The session waits for nothing.
    #[error("session {0} waits for no answer")]
    NotWaiting(SessionId),
    /// The suspension was answered, and not by this.
    #[error("{0} was answered otherwise already")]
    AnsweredOtherwise(ContinuationId),
    /// The turn ended before an answer came.
    #[error("the turn that waited under {0} has ended")]
    Ended(ContinuationId),
    /// It waited long enough.
    #[error("{0} has expired: nobody answered in time")]
    Expired(ContinuationId),
    /// The call named is not the one that is waited for.
    #[error("the turn waits for call {awaited}, not for {given}")]
    OtherCall {
        /// What was named.
        given: String,
        /// What is waited for.
        awaited: CallId,
    },
    /// The answer names no call, and has to.
    #[error("the answer has to name call {0}")]
    CallUnnamed(CallId),
    /// A result came where a yes or no is waited for, or the other way round.
    #[error("call {call} waits for {awaited}")]
    OtherAnswer {
        /// The call.
        call: CallId,
        /// What it waits for.
        awaited: &'static str,
    },
    /// What is quoted is not what was shown.
    #[error("the digest is not that of call {0} as it was shown")]
    Digest(CallId),
    /// What the call asks is no yes-or-no question.
    #[error("call {0} asks something that a yes does not answer; it can be declined here, or answered at a terminal")]
    Asks(CallId),
    /// The turn was begun at a terminal, and goes on there.
    #[error("the answer is taken; session {0} goes on at the terminal it was begun at, or with `aish resume {0}`")]
    AtTerminal(SessionId),
    /// A message to a conversation that waits.
    #[error("session {0} waits for an answer: give it, or cancel the turn")]
    Waiting(SessionId),
    /// A message to a conversation whose turn runs.
    #[error("a turn of session {0} is running: wait for it, or cancel it")]
    Running(SessionId),
    /// The same key was used for something else.
    #[error("the Idempotency-Key was used for another request")]
    KeyReused,
    /// As many turns run as may.
    #[error("{0} turns are running, as many as may; try again soon")]
    Busy(usize),
    /// This process is about to end.
    #[error("this server is stopping; the turn is in the ledger and goes on once a server runs")]
    Draining,
    /// The turn could not go on: what happened stands in the ledger.
    #[error("the turn could not go on: {0}")]
    Stopped(String),
    /// A declared tool has a name that means another one.
    #[error("tool {name}: {problem}")]
    ToolTaken {
        /// Its name, as declared.
        name: String,
        /// What has that name.
        problem: &'static str,
    },
    /// A declared tool cannot be taken.
    #[error("tool {name}: {problem}")]
    Tool {
        /// Its name, as declared.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// No such model, or it cannot be asked.
    #[error("{0}")]
    Model(String),
    /// The engine could not.
    #[error(transparent)]
    Engine(EngineError),
}

impl ServeError {
    /// Whether the same request, sent twice at once, may be what is in its own way.
    pub(crate) fn may_be_of_a_twin(&self) -> bool {
        matches!(
            self,
            Self::Running(_) | Self::Waiting(_) | Self::Busy(_) | Self::KeyReused
        )
    }
}

impl From<EngineError> for ServeError {
    fn from(error: EngineError) -> Self {
        if let EngineError::Model(problem) = error {
            Self::Model(problem)
        } else {
            Self::Engine(error)
        }
    }
}

impl From<StoreError> for ServeError {
    fn from(error: StoreError) -> Self {
        Self::Engine(EngineError::Store(error))
    }
}
