//! What can go wrong when a session is driven, told once for every front end.

use aish_core::id::{CallId, SessionId};
use aish_core::turn::InvalidEvent;
use aish_store::StoreError;

/// Why a session could not be driven on. Failures of models and tools are not among them: those are events.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The ledger could not be read or written.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// The session does not allow that now.
    #[error("session {session}: {reason}")]
    Invalid {
        /// Which session.
        session: SessionId,
        /// Why not.
        reason: InvalidEvent,
    },
    /// A newer aish wrote some of it.
    #[error("session {0} was written by a newer aish: it can be shown and exported, not continued")]
    ReadOnly(SessionId),
    /// There is no turn to go on with.
    #[error("session {0} has no open turn")]
    NoOpenTurn(SessionId),
    /// The call does not wait for an answer.
    #[error("call {0} does not wait for an answer")]
    NotPending(CallId),
    /// A yes answers nothing of what the call asks.
    #[error("call {0} asks something that a yes does not answer; it is asked at a terminal")]
    Asks(CallId),
    /// What was quoted is not what was shown.
    #[error("the digest quoted for call {0} is not that of the call as it is recorded; show it again")]
    Digest(CallId),
    /// It was answered otherwise before.
    #[error("call {0} was answered otherwise already")]
    AnsweredOtherwise(CallId),
    /// The model cannot be asked at all.
    #[error("{0}")]
    Model(String),
    /// This process is about to end: the turn stands as it was, for another one to go on with.
    #[error("session {0} is left for another aish to go on with")]
    Paused(SessionId),
    /// Another driver took the session over.
    #[error("session {0} was taken over by another aish; this one stopped writing to it")]
    LeaseLost(SessionId),
}
