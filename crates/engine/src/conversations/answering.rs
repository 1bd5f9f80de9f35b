//! Answers of clients: which suspension one is meant for, and what becomes of one that comes late, again, or after another
//! (SPEC 9.3, 9.4).

use super::{CONTINUATION, Conversations, Ticket};
use crate::served::CallNames;
use crate::{Claim, EngineError, Reply, ServeError, now_ms};
use aish_core::Digest;
use aish_core::event::{Body, Event};
use aish_core::id::{CallId, ContinuationId, SessionId};
use aish_core::session::Session;
use aish_store::{Pending, PendingState, StoreError};
use std::sync::Arc;

impl Conversations {
    /// Takes an answer, and drives the turn on from it.
    pub(super) async fn take(self: Arc<Self>, id: &str, claim: Claim) -> Result<Ticket, ServeError> {
        if let Some(ticket) = self.known(claim.request.as_ref()).await? {
            return Ok(ticket);
        }
        if !id.starts_with(CONTINUATION)
            && let Some(ticket) = self.answer_at_terminal(&SessionId::new(id), &claim).await?
        {
            return Ok(ticket);
        }
        let pending = self.pending(id, &claim).await?;
        match pending.state {
            PendingState::Open => {}
            PendingState::Answered => return self.answered_before(&pending, &claim).await,
            PendingState::Closed => return Err(self.closed(&pending).await?),
        }
        let place = self.place()?;
        let mut driver = self.open_existing(&pending.session).await?;
        let before = driver.session().last_seq();
        let names = if id.starts_with(CONTINUATION) {
            self.names(&claim)
        } else {
            CallNames::Strict
        };
        match driver.claim(&pending.continuation, &claim, names).await {
            Ok(()) => {}
            Err(ServeError::Engine(EngineError::Store(StoreError::KeyUsed(_)))) => {
                let known = self.known(claim.request.as_ref()).await?;
                return known.ok_or(ServeError::KeyReused);
            }
            Err(ServeError::AnsweredOtherwise(_)) => return self.answered_before(&pending, &claim).await,
            Err(other) => {
                // It may have found that the wait is over, and ended it.
                self.ran_until(&driver, before);
                return Err(other);
            }
        }
        let seq = resumed(driver.session(), &pending.continuation).map_or(pending.seq, |(event, _)| event.seq);
        Ok(self.launch(driver, seq, place).await)
    }

    /// What becomes of a call that is not named, or by a name nobody knows, where the suspension says which one is meant. The id of a
    /// session does not: sent again, the same request would go to the call that waits by then. A yes is for the call that was shown,
    /// whatever else has its digest.
    fn names(&self, claim: &Claim) -> CallNames {
        match &claim.reply {
            Reply::Result(_) if !self.settings.strict_call_id => CallNames::Lenient,
            Reply::Result(_) | Reply::Verdict { .. } => CallNames::Strict,
        }
    }

    /// The suspension that an answer is meant for.
    async fn pending(&self, id: &str, claim: &Claim) -> Result<Pending, ServeError> {
        if id.starts_with(CONTINUATION) {
            let pending = self.engine.store.continuation(&ContinuationId::new(id)).await?;
            return pending.ok_or_else(|| ServeError::Unknown(id.to_owned()));
        }
        let session = self.session_of(id).await?;
        let waiting = self.engine.store.waiting_under(&session).await?;
        let names_another = |pending: &Pending| {
            let given = claim.call_id.as_deref();
            given.is_some_and(|given| pending.call.as_ref().map(CallId::as_str) != Some(given))
        };
        if let Some(pending) = waiting.as_ref().filter(|pending| !names_another(pending)) {
            return Ok(pending.clone());
        }
        // The same answer again, to a session that has gone on.
        let driver = self.open_existing(&session).await?;
        if let Some(before) = last_resumed(driver.session(), claim)
            && let Some(pending) = self.engine.store.continuation(&before).await?
        {
            return Ok(pending);
        }
        if let Some(waiting) = waiting {
            return Ok(waiting);
        }
        // Nobody waits any more: the client may be told that it came too late.
        if let Some(before) = last_suspended(driver.session(), claim)
            && let Some(pending) = self.engine.store.continuation(&before).await?
            && pending.state == PendingState::Closed
            && expired(driver.session(), &pending)
        {
            return Ok(pending);
        }
        Err(ServeError::NotWaiting(session))
    }

    /// The answer that was given first is the one that counts: the same one again is told the same.
    async fn answered_before(&self, pending: &Pending, claim: &Claim) -> Result<Ticket, ServeError> {
        let driver = self.open_existing(&pending.session).await?;
        let session = driver.session();
        let counted = if let Some((event, answer)) = resumed(session, &pending.continuation) {
            Some((event, answer == Some(&claim.digest())))
        } else {
            answered_beside(session, pending).map(|event| (event, is_same(event, claim)))
        };
        match counted {
            Some((event, true)) => {
                self.expect_same_call(session, pending, claim)?;
                Ok(Ticket::of(&pending.session, event.turn, event.seq))
            }
            Some((_, false)) => Err(ServeError::AnsweredOtherwise(pending.continuation.clone())),
            None => Err(over(session, pending)),
        }
    }

    /// The same words are the same answer only where they are meant for the same call, and for what was shown of it.
    fn expect_same_call(&self, session: &Session, pending: &Pending, claim: &Claim) -> Result<(), ServeError> {
        let Some(awaited) = &pending.call else {
            return Ok(());
        };
        claim.named(session, awaited, self.names(claim))?;
        match &claim.reply {
            Reply::Result(_) => Ok(()),
            Reply::Verdict { digest, .. } if shown(session, awaited).is_some_and(|shown| shown.matches(digest)) => {
                Ok(())
            }
            Reply::Verdict { .. } => Err(ServeError::Digest(awaited.clone())),
        }
    }

    /// Why a suspension that nobody answered is over.
    async fn closed(&self, pending: &Pending) -> Result<ServeError, ServeError> {
        let driver = self.open_existing(&pending.session).await?;
        Ok(over(driver.session(), pending))
    }
}

fn over(session: &Session, pending: &Pending) -> ServeError {
    if expired(session, pending) {
        return ServeError::Expired(pending.continuation.clone());
    }
    ServeError::Ended(pending.continuation.clone())
}

/// Whether a suspension that nobody answered was over because of its time, and not because somebody ended its turn before.
fn expired(session: &Session, pending: &Pending) -> bool {
    let mut later = session.events().iter().filter(|event| event.seq > pending.seq);
    let ended = later.find(|event| matches!(event.body, Body::Cancelled(_) | Body::TurnEnded(_)));
    pending.is_over(ended.map_or_else(now_ms, |event| event.time))
}

/// The digest of a call as it was shown to whoever was asked about it.
fn shown<'s>(session: &'s Session, call: &CallId) -> Option<&'s Digest> {
    session.events().iter().rev().find_map(|event| {
        let Body::CallGated(data) = &event.body else {
            return None;
        };
        data.digest.as_ref().filter(|_| data.call_id == *call)
    })
}

/// Where a suspension was answered, and by what.
fn resumed<'s>(session: &'s Session, id: &ContinuationId) -> Option<(&'s Event, Option<&'s Digest>)> {
    session.events().iter().rev().find_map(|event| {
        let Body::Resumed(data) = &event.body else { return None };
        (data.continuation == *id).then_some((event, data.answer.as_ref()))
    })
}

/// The last suspension that was over with this answer; of the call that it names, if it names one.
fn last_resumed(session: &Session, claim: &Claim) -> Option<ContinuationId> {
    let answer = claim.digest();
    session.events().iter().rev().find_map(|event| {
        let Body::Resumed(data) = &event.body else { return None };
        let id = &data.continuation;
        let is_meant = |given: &str| suspended_on(session, id).is_some_and(|call| call.as_str() == given);
        let fits = data.answer.as_ref() == Some(&answer) && claim.call_id.as_deref().is_none_or(is_meant);
        fits.then(|| id.clone())
    })
}

/// The suspension that an answer came too late for, if it did: that of the call it names, or else of the last turn.
fn last_suspended(session: &Session, claim: &Claim) -> Option<ContinuationId> {
    let last_turn = session.turn()?.number();
    session.events().iter().rev().find_map(|event| {
        let Body::Suspended(data) = &event.body else {
            return None;
        };
        let is_meant = match claim.call_id.as_deref() {
            Some(given) => data.call_id.as_ref().map(CallId::as_str) == Some(given),
            None => event.turn == last_turn,
        };
        is_meant.then(|| data.continuation.clone())
    })
}

/// The call that a suspension waited for.
fn suspended_on<'s>(session: &'s Session, id: &ContinuationId) -> Option<&'s CallId> {
    session.events().iter().find_map(|event| {
        let Body::Suspended(data) = &event.body else {
            return None;
        };
        data.call_id.as_ref().filter(|_| data.continuation == *id)
    })
}

/// The answer that ended a suspension without naming it: from a terminal, say.
fn answered_beside<'s>(session: &'s Session, pending: &Pending) -> Option<&'s Event> {
    let awaited = pending.call.as_ref()?;
    let mut later = session.events().iter().filter(|event| event.seq > pending.seq);
    later.find(|event| {
        if let Body::CallAnswered(data) = &event.body {
            data.call_id == *awaited
        } else {
            event
                .tool_result()
                .is_some_and(|result| result.tool_call_id == *awaited)
        }
    })
}

/// Whether an answer that was given beside says what this one says.
fn is_same(event: &Event, claim: &Claim) -> bool {
    let (Body::CallAnswered(data), Reply::Verdict { answer, reason, .. }) = (&event.body, &claim.reply) else {
        return false;
    };
    data.answer == *answer && data.reason == *reason
}
