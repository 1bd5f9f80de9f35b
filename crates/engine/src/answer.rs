//! Answers to calls that wait for a person: recorded by any process, held against what was shown.

use crate::EngineError;
use crate::append::{CONFLICTS_MAX, Drive, Unseen};
use crate::driver::Driver;
use crate::gate::Inspected;
use aish_core::action::Action;
use aish_core::event::{Answer, AnswerScope, AnsweredBy, Body, CallAnswered, Draft, RequestKey};
use aish_core::id::CallId;
use aish_core::policy::Grant;
use aish_core::turn::{Asking, InvalidEvent, Turn};
use aish_store::Durability;

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

impl Driver {
    /// Records an answer. Needs no lease: any process may answer.
    ///
    /// # Errors
    /// The call does not wait, the digest differs, or it was answered otherwise.
    pub async fn answer(&mut self, request: AnswerRequest) -> Result<Answered, EngineError> {
        self.answer_under(request, None).await
    }

    /// The same under a key, which is taken with it.
    pub(crate) async fn answer_under(
        &mut self,
        request: AnswerRequest,
        key: Option<RequestKey>,
    ) -> Result<Answered, EngineError> {
        self.catch_up().await?;
        for _ in 0..CONFLICTS_MAX {
            self.save_unsaved().await?;
            let Some((data, approved)) = self.answer_to_record(&request)? else {
                return Ok(Answered::Already);
            };
            let data = CallAnswered {
                request: key.clone(),
                ..data
            };
            // Of two who say the same at once, the later one is to find what the other said.
            match self.record_answer(data, approved).await? {
                Unseen::Nothing => return Ok(Answered::Recorded),
                Unseen::News => {}
            }
        }
        Err(self.gave_way_for_too_long())
    }

    /// What an answer says in the ledger, and the call that it lets through; `None` where the same one is there.
    fn answer_to_record(
        &self,
        request: &AnswerRequest,
    ) -> Result<Option<(CallAnswered, Option<Inspected>)>, EngineError> {
        let id = request.call_id.clone();
        let Some(call) = self.session.turn().and_then(|turn| turn.call(&id)) else {
            return Err(EngineError::NotPending(id));
        };
        let Some(digest) = call.gated.as_ref().and_then(|gated| gated.digest.clone()) else {
            return Err(EngineError::NotPending(id));
        };
        if request.digest.as_deref().is_some_and(|quoted| !digest.matches(quoted)) {
            return Err(EngineError::Digest(id));
        }
        let declines = call.awaits_person() && request.answer == Answer::Deny;
        let earlier = match &call.asking {
            Asking::Refused(refusal) => Some(refusal),
            Asking::Waits if declines => None,
            Asking::Waits if call.answered.is_none() => return Err(EngineError::Asks(id)),
            Asking::Nothing | Asking::Waits => call.answered.as_ref(),
        };
        if let Some(earlier) = earlier {
            return if earlier.answer == request.answer {
                Ok(None)
            } else {
                Err(EngineError::AnsweredOtherwise(id))
            };
        }
        if !(declines || call.awaits_answer()) || self.session.open_turn().is_none_or(Turn::is_closed) {
            return Err(EngineError::NotPending(id));
        }
        let approved = match request.answer {
            Answer::Approve => self.inspect_call(&id).filter(|call| call.action.digest() == digest),
            Answer::Deny => None,
        };
        let grant = match request.scope {
            AnswerScope::Session | AnswerScope::Saved => approved.as_ref().map(|call| Grant::of(&call.action)),
            AnswerScope::Once => None,
        };
        let data = CallAnswered {
            call_id: id,
            answer: request.answer,
            digest,
            by: request.by,
            scope: request.scope,
            grant,
            reason: request.reason.clone(),
            request: None,
        };
        Ok(Some((data, approved)))
    }

    /// Appends the answer unless somebody wrote meanwhile, and tells the tool that was let through.
    async fn record_answer(&mut self, data: CallAnswered, approved: Option<Inspected>) -> Result<Unseen, EngineError> {
        let turn = self.session.turn().map_or(0, Turn::number);
        let id = data.call_id.clone();
        let word = match data.answer {
            Answer::Approve => "approved",
            Answer::Deny => "declined",
        };
        let draft = Draft::new(turn, format!("{id} {word}"), Body::CallAnswered(data));
        match self
            .append_if_nothing_new(Drive::GoesOn, &[draft], Durability::Synced)
            .await
        {
            Ok(Unseen::Nothing) => {
                if let Some(call) = approved {
                    call.tool.approved(&call.action);
                }
                Ok(Unseen::Nothing)
            }
            Ok(Unseen::News) => Ok(Unseen::News),
            Err(EngineError::Invalid {
                reason: InvalidEvent::AnsweredOtherwise(id),
                ..
            }) => Err(EngineError::AnsweredOtherwise(id)),
            Err(EngineError::Invalid {
                reason: InvalidEvent::TurnClosed,
                ..
            }) => Err(EngineError::NotPending(id)),
            Err(other) => Err(other),
        }
    }

    /// What a call would do, as it stands now; `None` when it cannot be looked at any more. Whether that is still what was
    /// judged is for the digest to say.
    pub fn action(&self, id: &CallId) -> Option<Action> {
        self.inspect_call(id).map(|inspected| inspected.action)
    }

    fn inspect_call(&self, id: &CallId) -> Option<Inspected> {
        let call = self.session.call_event(id)?;
        let settings = self.engine.settings();
        self.inspect(&call.function.name, &call.function.arguments, &settings)
            .ok()
    }
}
