//! What a person is told when something cannot be done: what was tried and what went wrong, then what to do (SPEC 10.4). The
//! exit code comes from the same place (SPEC 10.2).

use aish_core::event::ModelFailed;
use aish_core::sanitize;
use aish_core::turn::{StopReason, Turn};
use aish_engine::{EngineError, Finished};
use aish_store::StoreError;
use serde_json::{Value, json};

/// Done.
pub const DONE: u8 = 0;
/// The turn failed.
pub const FAILED: u8 = 1;
/// Wrong usage or configuration.
pub const USAGE: u8 = 2;
/// An approval is needed.
pub const APPROVAL_NEEDED: u8 = 3;
/// Interrupted.
pub const INTERRUPTED: u8 = 130;

/// Why the program ends without having done what it was asked.
#[derive(Debug)]
pub struct Failure {
    /// What was tried and what went wrong.
    message: String,
    /// What to do about it, a line each.
    hints: Vec<String>,
    /// The exit code.
    code: u8,
}

impl Failure {
    /// The turn, or what else was asked for, failed.
    pub fn failed(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hints: Vec::new(),
            code: FAILED,
        }
    }

    /// The command line or the configuration is wrong.
    pub fn usage(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hints: Vec::new(),
            code: USAGE,
        }
    }

    /// A signal asked to end.
    pub fn interrupted() -> Self {
        Self {
            message: "interrupted".to_owned(),
            hints: Vec::new(),
            code: INTERRUPTED,
        }
    }

    /// Adds a line that says what to do.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// What went wrong, without what to do.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What to do about it.
    pub fn hints(&self) -> &[String] {
        &self.hints
    }

    /// The exit code.
    pub fn code(&self) -> u8 {
        self.code
    }

    /// As the one object of `--output json` (SPEC 10.3), for a failure before there was a turn.
    pub fn json(&self) -> Value {
        let stop_reason = if self.code == INTERRUPTED { "cancelled" } else { "error" };
        json!({
            "session_id": null,
            "reply": "",
            "stop_reason": stop_reason,
            "pending": [],
            "usage": null,
            "error": self.message,
        })
    }

    /// What goes to standard error: lines that begin with `[aish]`.
    pub fn lines(&self) -> String {
        let mut out = String::new();
        for (n, line) in self
            .message
            .lines()
            .chain(self.hints.iter().map(String::as_str))
            .enumerate()
        {
            out.push_str(if n == 0 { "[aish] " } else { "       " });
            out.push_str(&sanitize::single_line(line));
            out.push('\n');
        }
        out
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        let message = error.to_string();
        match error {
            EngineError::Store(error) => error.into(),
            EngineError::Model(_) => Self::usage(message),
            EngineError::NotPending(_) | EngineError::Asks(_) | EngineError::Digest(_) => {
                Self::usage(message).hint("`aish resume ID` says what waits")
            }
            EngineError::AnsweredOtherwise(_) | EngineError::NoOpenTurn(_) => Self::usage(message),
            EngineError::Invalid { session, .. } => {
                Self::usage(message).hint(format!("finish it first: aish resume {session}"))
            }
            EngineError::ReadOnly(_) | EngineError::LeaseLost(_) | EngineError::Paused(_) => Self::failed(message),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let message = error.to_string();
        match error {
            StoreError::NotFound(_) | StoreError::Ambiguous { .. } => {
                Self::usage(message).hint("`aish sessions list` lists them")
            }
            StoreError::Leased { .. } => Self::failed(message).hint("wait until it is done there, or end that process"),
            StoreError::Io { .. } => Self::failed(message).hint(
                "check that the folder of the ledger can be written to and has room, or set AISH_HOME to another folder",
            ),
            StoreError::Conflict { .. }
            | StoreError::Claimed(_)
            | StoreError::KeyUsed(_)
            | StoreError::LeaseLost(_)
            | StoreError::Format(_) => Self::failed(message),
        }
    }
}

/// What a person is told of a turn that came to no whole answer. `advice` says what to do about a request that failed, `go_on`
/// how a reply that was cut is gone on with.
pub fn broken_turn(
    turn: Option<&Turn>,
    finished: &Finished,
    advice: impl FnOnce(&ModelFailed) -> Option<String>,
    go_on: &str,
) -> String {
    let problem = finished.problem.as_deref().unwrap_or_default();
    match turn.and_then(Turn::last_failure) {
        Some(failed) if failed.text_shown => format!("the reply broke off: {problem}; {go_on}"),
        Some(failed) => match advice(failed) {
            Some(advice) => format!("no reply: {problem}; {advice}"),
            None => format!("no reply: {problem}"),
        },
        None if finished.reason == StopReason::Truncated => format!("{problem}; {go_on}"),
        None => problem.to_owned(),
    }
}

/// What to do when a model gave no answer and its setup is not to blame, by the word that the ledger has for why.
pub fn model_advice(error: &str) -> &'static str {
    match error {
        "context_overflow" => "begin a new session, or use a model with a larger context",
        _ => "the question is kept: `aish --continue -p 'once more'` asks again",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 10.4: of a ledger that cannot be opened, it is said what to do.
    #[test]
    fn a_ledger_out_of_reach() {
        let error = StoreError::Io {
            attempt: "open the ledger".to_owned(),
            source: std::io::Error::from(std::io::ErrorKind::PermissionDenied).into(),
        };
        let failure = Failure::from(error);
        assert!(
            failure.lines().contains("set AISH_HOME to another folder"),
            "{failure:?}"
        );
        assert_eq!(failure.code(), 1);
    }

    /// SPEC 10.4: what went wrong, what to do; and no escape byte, wherever the text came from.
    #[test]
    fn lines() {
        let failure = Failure::usage("no model\x1b[31m")
            .hint("start one")
            .hint("or set a key");
        assert_eq!(
            failure.lines(),
            "[aish] no model\\x1b[31m\n       start one\n       or set a key\n"
        );
        assert_eq!(failure.code(), 2);
    }
}
