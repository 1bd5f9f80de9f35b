//! Turns that a person began at a terminal: a call of theirs that waits for a yes may be answered from another device (SPEC 9.9).
//!
//! Such a turn is never driven here: it began in a directory and an environment of its own, perhaps on another machine, and what
//! was approved was approved there. An answer is written to the ledger; whoever sits at the terminal finds it there, and the turn
//! goes on where it was begun, or with `aish resume`.

use super::{Conversations, Ticket};
use crate::driver::Driver;
use crate::{AnswerRequest, Claim, EngineError, Reply, ServeError};
use aish_core::event::{Answer, AnswerScope, AnsweredBy, Body, CallAnswered, Event};
use aish_core::id::{CallId, SessionId};
use aish_core::session::Session;
use aish_core::turn::Turn;
use aish_store::StoreError;
use aish_tools::BegunBy;
use std::time::Duration;
use tokio::time::Instant;

/// How long a request waits for a turn at a terminal without anything happening in it: nobody may be there, and then it would wait
/// for ever.
const PATIENCE_MS: u64 = 10_000;

impl Conversations {
    /// Takes a yes or no to a call of a terminal's turn; `None` where the answer is not for one.
    pub(super) async fn answer_at_terminal(
        &self,
        session: &SessionId,
        claim: &Claim,
    ) -> Result<Option<Ticket>, ServeError> {
        let Reply::Verdict { digest, answer, reason } = &claim.reply else {
            return Ok(None);
        };
        let Some(call) = claim.call_id.as_deref().map(CallId::new) else {
            return Ok(None);
        };
        let mut driver = self.open_existing(session).await?;
        let is_now = driver.session().turn().is_some_and(|turn| turn.call(&call).is_some());
        if !is_now {
            return same_as_before(driver.session(), &call, &claim.reply);
        }
        if driver.session().turn().and_then(Turn::served).is_some() {
            return Ok(None);
        }
        let before = driver.session().last_seq();
        let request = AnswerRequest {
            call_id: call.clone(),
            digest: Some(digest.clone()),
            answer: *answer,
            scope: AnswerScope::Once,
            by: AnsweredBy::Client,
            reason: reason.clone(),
        };
        match driver.answer_under(request, claim.request.clone()).await {
            Err(EngineError::Store(StoreError::KeyUsed(_))) => {
                let known = self.known(claim.request.as_ref()).await?;
                return known.map(Some).ok_or(ServeError::KeyReused);
            }
            answered => answered?,
        };
        self.ran_until(&driver, before);
        same_as_before(driver.session(), &call, &claim.reply)
    }
}

/// What the answer to a terminal's call came to, in whatever turn that was; `None` where there is none, or the turn is a client's.
fn same_as_before(session: &Session, call: &CallId, reply: &Reply) -> Result<Option<Ticket>, ServeError> {
    let Some((event, said)) = answer_to(session, call) else {
        return Ok(None);
    };
    let mut of_turn = session.events().iter().filter(|other| other.turn == event.turn);
    let is_of_client = of_turn.any(|other| matches!(&other.body, Body::TurnStarted(began) if began.served.is_some()));
    let Reply::Verdict { digest, answer, reason } = reply else {
        return Ok(None);
    };
    if is_of_client {
        return Ok(None);
    }
    if !said.digest.matches(digest) {
        return Err(EngineError::Digest(call.clone()).into());
    }
    // The model reads the reason of a no: with another one it is another answer.
    if said.answer != *answer || (*answer == Answer::Deny && said.reason != *reason) {
        return Err(EngineError::AnsweredOtherwise(call.clone()).into());
    }
    Ok(Some(Ticket {
        begun_by: BegunBy::Person,
        ..Ticket::of(session.id(), event.turn, event.seq)
    }))
}

/// The last answer to a call.
fn answer_to<'s>(session: &'s Session, call: &CallId) -> Option<(&'s Event, &'s CallAnswered)> {
    session.events().iter().rev().find_map(|event| {
        let Body::CallAnswered(data) = &event.body else {
            return None;
        };
        (data.call_id == *call).then_some((event, data))
    })
}

/// How long somebody still waits for a turn: as long as something happens in it. For a client's turn for ever, as somebody drives it.
pub(super) struct Patience {
    /// The last event that was seen, and until when the next one is waited for; nothing for a client's turn.
    ends: Option<(u64, Instant)>,
}

impl Patience {
    /// For what this request waits for.
    pub(super) fn begin(ticket: &Ticket) -> Self {
        Self {
            ends: ticket.is_at_terminal().then(|| (0, Instant::now())),
        }
    }

    /// Resolves when nothing more is waited for; to be asked anew whenever something may have happened.
    pub(super) fn over(&mut self, driver: &Driver) -> impl Future<Output = ()> + Send + use<> {
        let last = driver.session().last_seq();
        if let Some((seen, until)) = self.ends.as_mut().filter(|(seen, _)| *seen < last) {
            *seen = last;
            *until = Instant::now() + Duration::from_millis(PATIENCE_MS);
        }
        let until = self.ends.map(|(_, until)| until);
        async move {
            match until {
                Some(until) => tokio::time::sleep_until(until).await,
                None => std::future::pending().await,
            }
        }
    }
}
