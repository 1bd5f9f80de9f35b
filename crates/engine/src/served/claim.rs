//! What a client answers, and how it becomes part of the ledger: the end of the waiting and the answer itself in one append.

use super::{OVERTAKEN_MAX, ServeError};
use crate::append::{Drive, Unseen};
use crate::driver::Driver;
use crate::run::with_limit;
use crate::{EngineError, now_ms};
use aish_core::Digest;
use aish_core::event::{
    Answer, AnswerScope, AnsweredBy, Body, CallAnswered, CallSource, Draft, RequestKey, ResultEnd, Resumed, Suspended,
    ToolResult,
};
use aish_core::id::{CallId, ContinuationId};
use aish_core::session::Session;
use aish_core::turn::{Call, Turn};
use aish_store::{Durability, StoreError};
use aish_tools::capture::Capture;

/// What a turn that nobody answered in time says of itself.
const EXPIRED: &str = "nobody answered in time";
/// Characters of a call's id that nobody knows, as the ledger quotes it.
const NAMED_CHARS_MAX: usize = 80;

/// An answer to a suspension.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The call that it answers, as the client names it.
    pub call_id: Option<String>,
    /// What it answers.
    pub reply: Reply,
    /// The key under which it may be sent again.
    pub request: Option<RequestKey>,
}

/// What a client answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// What its tool gave.
    Result(String),
    /// Whether a call may run.
    Verdict {
        /// Of what was shown, whole or its first 12 digits at least.
        digest: String,
        /// Yes or no.
        answer: Answer,
        /// The reason for a no, told to the model.
        reason: Option<String>,
    },
}

impl Claim {
    /// Whether the answer may be meant for that call, by how it names it.
    ///
    /// # Errors
    /// It names another one, or none where it has to.
    pub(crate) fn named(&self, session: &Session, awaited: &CallId, names: CallNames) -> Result<Named, ServeError> {
        match (self.call_id.as_deref(), names) {
            (None, CallNames::Strict) => Err(ServeError::CallUnnamed(awaited.clone())),
            (None, CallNames::Lenient) => Ok(Named::Rightly),
            (Some(given), _) if given == awaited.as_str() => Ok(Named::Rightly),
            (Some(given), CallNames::Lenient) if session.call_event(&CallId::new(given)).is_none() => {
                Ok(Named::Unknown)
            }
            (Some(given), CallNames::Lenient | CallNames::Strict) => Err(ServeError::OtherCall {
                given: given.to_owned(),
                awaited: awaited.clone(),
            }),
        }
    }

    /// What two answers to the same call have to share to be the same one.
    pub(crate) fn digest(&self) -> Digest {
        Digest::of(&match &self.reply {
            Reply::Result(content) => format!("result\n{content}"),
            Reply::Verdict { answer, reason, .. } => {
                format!("{answer:?}\n{}", reason.as_deref().unwrap_or_default())
            }
        })
    }
}

/// How an answer that may be meant for a call names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// By its id, or not at all.
    Rightly,
    /// By an id that no call of the session has.
    Unknown,
}

/// What becomes of the id of a call that no call of the session has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallNames {
    /// It is taken for the one that is waited for: some clients make up ids of their own (SPEC 9.3).
    Lenient,
    /// It is refused.
    Strict,
}

impl Driver {
    /// Takes an answer: it ends the suspension and is the call's, in one append. Needs no lease, as any process may take one, and
    /// takes it if nobody has it: this process goes on with the turn. The session may be as it was a moment ago: whoever wrote since
    /// makes the append fail.
    ///
    /// # Errors
    /// It is not the answer that is waited for, or somebody else was faster: then [`ServeError::AnsweredOtherwise`], and what
    /// was answered is for the caller to compare.
    pub(crate) async fn claim(
        &mut self,
        id: &ContinuationId,
        claim: &Claim,
        names: CallNames,
    ) -> Result<(), ServeError> {
        let Some((turn, suspended)) = self
            .session
            .open_turn()
            .and_then(|turn| Some((turn, turn.suspended()?.clone())))
            .filter(|(_, suspended)| suspended.continuation == *id)
        else {
            return Err(ServeError::AnsweredOtherwise(id.clone()));
        };
        if suspended.is_over(now_ms()) {
            self.expire(&suspended).await?;
            return Err(ServeError::Expired(id.clone()));
        }
        let number = turn.number();
        let awaited = self.awaited(turn, &suspended, claim, names)?;
        let told = told_of(claim, &awaited.id);
        let resumed = Resumed {
            continuation: id.clone(),
            answer: Some(claim.digest()),
            request: claim.request.clone(),
        };
        let answer = match &claim.reply {
            Reply::Result(content) => self.result_of(turn, awaited, content)?,
            Reply::Verdict { digest, answer, reason } => {
                verdict_of(awaited, (digest, *answer, reason.as_ref()), number)?
            }
        };
        let drafts = vec![Draft::new(number, told, Body::Resumed(resumed)), answer];
        match self.append_as(Drive::Begins, drafts, Durability::Synced).await {
            Ok(()) => Ok(()),
            Err(EngineError::Invalid { .. } | EngineError::Store(StoreError::Claimed(_))) => {
                Err(ServeError::AnsweredOtherwise(id.clone()))
            }
            Err(other) => Err(other.into()),
        }
    }

    /// The call that the suspension waits for, if the answer may be meant for it.
    fn awaited<'t>(
        &self,
        turn: &'t Turn,
        suspended: &Suspended,
        claim: &Claim,
        names: CallNames,
    ) -> Result<&'t Call, ServeError> {
        let not_waiting = || ServeError::NotWaiting(self.session.id().clone());
        let awaited = suspended
            .call_id
            .as_ref()
            .and_then(|id| turn.call(id))
            .ok_or_else(not_waiting)?;
        match claim.named(&self.session, &awaited.id, names)? {
            Named::Rightly => {}
            Named::Unknown => self.say(format!("a result came for an unknown call; taken for {}", awaited.id)),
        }
        Ok(awaited)
    }

    /// The result of a call that the client executed.
    fn result_of(&self, turn: &Turn, call: &Call, content: &str) -> Result<Draft, ServeError> {
        if call.source() != CallSource::Client || call.awaits_answer() || call.awaits_person() {
            return Err(ServeError::OtherAnswer {
                call: call.id.clone(),
                awaited: "a yes or a no (POST …/approval)",
            });
        }
        let mut capture = Capture::new(self.engine.settings().context.output_bytes_max);
        capture.push(content);
        let text = capture.finish();
        let summary = format!("{} characters from the client", content.chars().count());
        let data = ToolResult {
            tool_call_id: call.id.clone(),
            name: call.name.clone(),
            output: match turn.limit_note(&call.id) {
                Some(limit) => with_limit(&text, limit),
                None => text,
            },
            success: true,
            parts: Vec::new(),
            end: ResultEnd::Completed,
        };
        Ok(Draft::tool_result(turn.number(), summary, data))
    }

    /// Ends a turn that waited for long enough.
    pub(crate) async fn expire(&mut self, suspended: &Suspended) -> Result<(), EngineError> {
        for _ in 0..OVERTAKEN_MAX {
            let open = self.session.open_turn();
            let Some(turn) = open.filter(|turn| turn.suspended() == Some(suspended)) else {
                return Ok(());
            };
            let drafts = turn.cancelling(EXPIRED);
            // An answer that came in between counts: it was accepted.
            match self
                .append_if_nothing_new(Drive::GoesOn, &drafts, Durability::Synced)
                .await?
            {
                Unseen::Nothing => return Ok(()),
                Unseen::News => {}
            }
        }
        // Whoever looks for what has expired the next time ends it.
        Ok(())
    }
}

/// The yes or no to a call.
fn verdict_of(
    call: &Call,
    (digest, answer, reason): (&str, Answer, Option<&String>),
    turn: u64,
) -> Result<Draft, ServeError> {
    let asks = call.awaits_person();
    if !call.awaits_answer() && !asks {
        return Err(ServeError::OtherAnswer {
            call: call.id.clone(),
            awaited: "the result of its tool (POST …/tool_result)",
        });
    }
    let shown = call.gated.as_ref().and_then(|gated| gated.digest.clone());
    let Some(shown) = shown.filter(|shown| shown.matches(digest)) else {
        return Err(ServeError::Digest(call.id.clone()));
    };
    if asks && answer == Answer::Approve {
        return Err(ServeError::Asks(call.id.clone()));
    }
    let word = match answer {
        Answer::Approve => "approved",
        Answer::Deny => "declined",
    };
    let data = CallAnswered {
        call_id: call.id.clone(),
        answer,
        digest: shown,
        by: AnsweredBy::Client,
        scope: AnswerScope::Once,
        grant: None,
        reason: reason.cloned(),
        // It is in the `resumed` that comes with it.
        request: None,
    };
    Ok(Draft::new(
        turn,
        format!("{} {word}", call.id),
        Body::CallAnswered(data),
    ))
}

/// What the ledger says of an answer: also how it named its call, where that is not its name (SPEC 9.3).
fn told_of(claim: &Claim, awaited: &CallId) -> String {
    match claim.call_id.as_deref() {
        Some(named) if named == awaited.as_str() => "answered".to_owned(),
        Some(named) => {
            let named: String = named.chars().take(NAMED_CHARS_MAX).collect();
            format!("answered for the unknown call {named:?}; taken for {awaited}")
        }
        None => format!("answered without a call_id; taken for {awaited}"),
    }
}
