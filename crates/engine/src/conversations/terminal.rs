//! Turns that a person began at a terminal: a call of theirs that waits for a yes may be answered from another device (SPEC 9.9).
//!
//! Such a turn is never driven here: it began in a directory and an environment of its own, perhaps on another machine, and what
//! was approved was approved there. An answer is written to the ledger; whoever sits at the terminal finds it there, and the turn
//! goes on where it was begun, or with `aish resume`.

use super::{Conversations, Ticket};
use crate::driver::Driver;
use crate::{AnswerRequest, Claim, Reply, ServeError};
use aish_core::event::{AnswerScope, AnsweredBy, Body};
use aish_core::id::{CallId, SessionId};
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
        Ok(said.map(|event| Ticket {
            begun_by: BegunBy::Person,
            ..Ticket::of(session, turn, event.seq)
        }))
    }
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
