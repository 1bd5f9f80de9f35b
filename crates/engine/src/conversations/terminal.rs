//! Turns that a person began at a terminal: a call of theirs that waits for a yes may be answered from another device (SPEC 9.9).
//!
//! Such a turn is never driven here: it began in a directory and an environment of its own, perhaps on another machine, and what
//! was approved was approved there. An answer is written to the ledger; whoever sits at the terminal finds it there, and the turn
//! goes on where it was begun, or with `aish resume`.

use super::{Conversations, Ticket};
use crate::driver::Driver;
use crate::served::turn_of_client;
use crate::{AnswerRequest, Claim, Reply, ServeError};
use aish_core::event::{AnswerScope, AnsweredBy, Body};
use aish_core::id::{CallId, SessionId};
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
        let asked = driver.session().turn().filter(|turn| turn.call(&call).is_some());
        let Some(turn) = asked.filter(|turn| turn.served().is_none()).map(|turn| turn.number()) else {
            return Ok(None);
        };
        let before = driver.session().last_seq();
        let request = AnswerRequest {
            call_id: call.clone(),
            digest: Some(digest.clone()),
            answer: *answer,
            scope: AnswerScope::Once,
            by: AnsweredBy::Client,
            reason: reason.clone(),
        };
        driver.answer(request).await?;
        self.ran_until(&driver, before);
        let events = driver.session().events().iter();
        let said = events.rev().find(|event| {
            let Body::CallAnswered(data) = &event.body else {
                return false;
            };
            data.call_id == call
        });
        Ok(said.map(|event| Ticket::of(session, turn, event.seq)))
    }
}

/// Waits with somebody for a turn that may be at a terminal.
pub(super) struct Patience {
    /// The last event that was seen, and until when the next one is waited for.
    seen: u64,
    until: Instant,
}

impl Patience {
    pub(super) fn begin() -> Self {
        Self {
            seen: 0,
            until: Instant::now(),
        }
    }

    /// Something may have happened: resolves when nothing more is waited for. For a client's turn that is never: somebody drives it.
    pub(super) fn over(&mut self, driver: &Driver, turn: u64) -> impl Future<Output = ()> + Send + use<> {
        let session = driver.session();
        if session.last_seq() > self.seen {
            self.seen = session.last_seq();
            self.until = Instant::now() + Duration::from_millis(PATIENCE_MS);
        }
        let until = turn_of_client(session, turn).is_none().then_some(self.until);
        async move {
            match until {
                Some(until) => tokio::time::sleep_until(until).await,
                None => std::future::pending().await,
            }
        }
    }
}
