//! What the ledger keeps of commands that a reply proposed for the person's own shell (SPEC 8.4): how one came to be run, which
//! stands in its `command` event, and why one did not, which is a `note`.

use super::AnsweredBy;
use crate::action::Digest;
use crate::id::ReplyId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What the `about` of a note about a proposal that did not run says.
const ABOUT: &str = "proposal_refused";

/// How a command that a reply proposed came to be run (SPEC 5.4).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Proposed {
    /// The reply.
    pub reply_id: ReplyId,
    /// Who let it run.
    pub allowed: AnsweredBy,
    /// What policy said of it, readable.
    pub rule: String,
    /// The digest of what was judged and shown.
    pub digest: Digest,
    /// The line as the reply had it, where the person changed it first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead_of: Option<String>,
}

/// A command that a reply proposed and that did not run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Refused {
    /// The line as the reply had it; escaped where it held what cannot be shown.
    pub line: String,
    /// The reply.
    pub reply_id: ReplyId,
    /// Why it did not run.
    pub why: Refusal,
    /// The person's reason, or the rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Why a proposed command did not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// The person said no.
    Declined,
    /// A deny rule said no.
    Denied,
    /// It was not put to the person: it cannot be shown as it is, or it was one of too many.
    NotOffered,
}

#[derive(Serialize, Deserialize)]
struct Note {
    about: String,
    #[serde(flatten)]
    refused: Refused,
}

impl Refused {
    /// The data of the note that says so.
    pub fn note(&self) -> Value {
        let note = Note {
            about: ABOUT.to_owned(),
            refused: self.clone(),
        };
        // Plain text under string keys: writing it cannot fail.
        serde_json::to_value(note).unwrap_or_default()
    }

    /// What such a note says; `None` for a note about anything else.
    pub fn of_note(data: &Value) -> Option<Self> {
        let note = Note::deserialize(data).ok()?;
        (note.about == ABOUT).then_some(note.refused)
    }

    /// Why it did not run, in words: `declined by the user: too slow`.
    pub fn words(&self) -> String {
        let why = match self.why {
            Refusal::Declined => "declined by the user",
            Refusal::Denied => "denied by policy",
            Refusal::NotOffered => "not offered to the user",
        };
        match &self.reason {
            Some(reason) => format!("{why}: {reason}"),
            None => why.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// SPEC 8.4: a refusal is told from other notes, and read back as it was written.
    #[test]
    fn notes() {
        let refused = Refused {
            line: "rm x".to_owned(),
            reply_id: ReplyId::nth(1, 2),
            why: Refusal::Declined,
            reason: Some("keep it".to_owned()),
        };
        assert_eq!(Refused::of_note(&refused.note()), Some(refused.clone()));
        assert_eq!(refused.words(), "declined by the user: keep it");
        for other in [Value::Null, json!({"problem": "http_500"}), json!({"about": "weather"})] {
            assert_eq!(Refused::of_note(&other), None);
        }
    }
}
