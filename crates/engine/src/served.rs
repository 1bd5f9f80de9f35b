//! A turn whose client is somewhere else (SPEC 9): begun for it, left waiting for it, and gone on with when it answers.
//!
//! The answer and the end of the waiting are one append: of racing answers, on one server or several, exactly one is written,
//! and what the others are told is read from the ledger.

use crate::append::Drive;
use crate::clock::random;
use crate::driver::{Driver, Unwritten};
use crate::lease::Keeper;
use crate::model::Ask;
use crate::{Engine, EngineError, Notices, Outcome, Settings, now_ms};
use aish_core::event::{Body, Draft, Event, ModelFailed, Parts, RequestKey, Served, Suspended, TurnStarted};
use aish_core::id::ContinuationId;
use aish_core::message::ToolSpec;
use aish_core::session::Session;
use aish_core::turn::{InvalidEvent, Step, Turn};
use aish_store::{Durability, StoreError};
use aish_tools::Cancel;
use std::sync::{Arc, RwLock};
use std::time::Duration;

mod claim;
mod error;

pub(crate) use claim::CallNames;
pub use claim::{Claim, Reply};
pub use error::ServeError;

/// What a turn says of itself that its client cancelled.
pub(crate) const CANCELLED_BY_CLIENT: &str = "cancelled by the client";

/// The kind of failure of a model that there is no configuration for any more.
const NOT_CONFIGURED: &str = "not_configured";

/// What the id of a continuation begins with.
pub(crate) const CONTINUATION: &str = "br-";

/// How often a turn gives way to others that begin and end before it.
const OVERTAKEN_MAX: usize = 16;

/// How long a turn waits for whoever holds the session: they have written what it goes on from, and are about to give it back. One
/// who keeps it drives this turn.
const LEASE_PATIENCE_MS: u64 = 5_000;
/// How often it is looked meanwhile.
const LEASE_LOOK_EVERY_MS: u64 = 20;

/// What a client begins a turn with.
#[derive(Clone, Debug, Default)]
pub(crate) struct Opening {
    pub(crate) text: String,
    /// Its instructions, where it gives any: they take the place of those it gave before.
    pub(crate) system: Option<String>,
    /// Its tools; `None` for those of the turn before.
    pub(crate) tools: Option<Vec<ToolSpec>>,
    pub(crate) request: Option<RequestKey>,
}

impl Engine {
    /// This engine for one turn of a client's: what the turn began with holds, whatever is configured by now, and it shares the
    /// ledger, the models and the tools.
    pub(crate) fn for_client(&self, change: impl FnOnce(&mut Settings)) -> Arc<Self> {
        let mut settings = self.settings();
        change(&mut settings);
        Arc::new(Self {
            store: Arc::clone(&self.store),
            models: Arc::clone(&self.models),
            tools: Arc::clone(&self.tools),
            // What servers tell beside their calls is told to a person, and nobody is here.
            asides: Arc::default(),
            owner: self.owner.clone(),
            redactor: self.redactor.clone(),
            settings: RwLock::new(settings),
        })
    }
}

impl Driver {
    /// From here on nothing is said that is not written, and `pause` turning true leaves the turn to others.
    /// What its client is asked for waits for `pending_ttl_ms`.
    pub(crate) fn serve(&mut self, pause: Cancel, pending_ttl_ms: Option<u64>) {
        self.unwritten = Unwritten::Refused;
        self.stopped_as = CANCELLED_BY_CLIENT;
        self.pause = Some(pause);
        self.pending_ttl_ms = pending_ttl_ms;
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.pause.as_ref().is_some_and(|pause| *pause.borrow())
    }

    /// As a request to a model takes long and leaves nothing behind, it is given up for whoever goes on.
    pub(crate) async fn call_model_until_paused(
        &mut self,
        ask: &Ask,
        notices: &Notices,
        stop: &Cancel,
    ) -> Result<(), EngineError> {
        let Some(mut pause) = self.pause.clone() else {
            return self.call_model(ask, notices, stop).await;
        };
        tokio::select! {
            biased;
            () = aish_tools::cancelled(&mut pause) => Ok(()),
            asked = self.call_model(ask, notices, stop) => asked,
        }
    }

    /// Begins a turn for a client, in a session as it was a moment ago: an append finds out whether it still is.
    pub(crate) async fn start_for(&mut self, opening: Opening) -> Result<(), EngineError> {
        for _ in 1..OVERTAKEN_MAX {
            match self.start_next_for(opening.clone()).await {
                // Another turn began and ended meanwhile: this one comes after it.
                Err(EngineError::Invalid { .. }) if self.session.open_turn().is_none() => self.catch_up().await?,
                other => return other,
            }
        }
        self.start_next_for(opening).await
    }

    async fn start_next_for(&mut self, opening: Opening) -> Result<(), EngineError> {
        let settings = self.engine.settings();
        self.engine.models.model(&settings.model).map_err(EngineError::Model)?;
        let number = self.session.next_turn();
        let before = last_of_client(&self.session);
        let inherited = || before.and_then(|began| began.served.clone()).unwrap_or_default().tools;
        let data = settings.turn_started(Some(Served {
            tools: opening.tools.unwrap_or_else(inherited),
            request: opening.request,
        }));
        let mut drafts = vec![Draft::turn_started(number, data), Draft::user(number, opening.text)];
        if let Some(system) = instructions_to_tell(self.session.events(), opening.system) {
            drafts.push(Draft::new(number, system, Body::System(Parts::default())));
        }
        // A power cut may take it: nobody has been told anything yet, and the client asks again.
        self.append_as(Drive::Begins, drafts, Durability::Committed).await
    }

    /// Drives until the turn is over, or waits and says so in the ledger.
    pub(crate) async fn drive_for(&mut self, notices: &Notices, cancel: Cancel) -> Result<Outcome, EngineError> {
        self.watch(notices);
        let number = self.session.turn().map(Turn::number);
        let (_keeper, stop) = self.take_lease_soon(cancel).await?;
        let driven = loop {
            if self.session.turn().map(Turn::number) != number {
                // Another turn began meanwhile, with a model and limits of its own: that one is not this drive's.
                break Ok(Outcome::Done(self.finished_turn(number.unwrap_or_default())));
            }
            let outcome = self.drive_on(notices, stop.clone()).await;
            match outcome {
                Ok(Outcome::Asking(_) | Outcome::Questions(_) | Outcome::AwaitingClient(_)) => {
                    match self.leave_waiting().await {
                        Ok(Left::Waiting) => break outcome,
                        Ok(Left::Answered) => {}
                        Err(error) => break Err(error),
                    }
                }
                Err(EngineError::Model(why)) => {
                    if let Err(error) = self.give_model_up(&why).await {
                        break Err(error);
                    }
                }
                Ok(Outcome::Done(_)) | Err(_) => break outcome,
            }
        };
        self.give_lease_back().await;
        driven
    }

    /// The model of the turn cannot be asked any more, as it is not configured now: nobody is here who could choose another, and a
    /// turn that is left open would be taken up again and again (SPEC 3.7). Its client may name another one in its next message.
    async fn give_model_up(&mut self, why: &str) -> Result<(), EngineError> {
        let Some(turn) = self.session.open_turn() else {
            return Ok(());
        };
        let data = ModelFailed {
            error: NOT_CONFIGURED.to_owned(),
            attempt: 1,
            model: Some(
                turn.handed_to()
                    .last()
                    .cloned()
                    .unwrap_or_else(|| turn.settings().model),
            ),
            ..ModelFailed::default()
        };
        let why = self.engine.redactor.redact(why).into_owned();
        let draft = Draft::new(turn.number(), why, Body::ModelFailed(data));
        match self.append(vec![draft], Durability::Committed).await {
            // Somebody cancelled it meanwhile: the drive sees to that.
            Err(EngineError::Invalid { .. }) => Ok(()),
            other => other,
        }
    }

    /// Takes the lease; from somebody who has just come to the end of what was before, as soon as it is given back.
    async fn take_lease_soon(&mut self, cancel: Cancel) -> Result<(Keeper, Cancel), EngineError> {
        let deadline = tokio::time::Instant::now() + Duration::from_millis(LEASE_PATIENCE_MS);
        loop {
            match self.take_lease(cancel.clone()).await {
                Err(EngineError::Store(StoreError::Leased { .. }))
                    if tokio::time::Instant::now() < deadline && !*cancel.borrow() && !self.is_paused() =>
                {
                    tokio::time::sleep(Duration::from_millis(LEASE_LOOK_EVERY_MS)).await;
                }
                taken => return taken,
            }
        }
    }

    /// The suspension of a turn, with what it waits for as it stands after that event; `None` where it waits for nobody.
    pub(crate) fn suspension(&self, turn: &Turn, seq: u64) -> Option<Draft> {
        let call_id = match turn.next() {
            Step::AskApproval(calls) | Step::AwaitClient(calls) => calls.into_iter().next(),
            Step::AwaitPerson(jobs) => jobs.into_iter().next().map(|job| job.call),
            Step::CallModel { .. } | Step::Gate(_) | Step::RunTools(_) | Step::Done(_) => return None,
        };
        let content = match &call_id {
            Some(call) => format!("waits for {call}"),
            None => "waits".to_owned(),
        };
        let now = now_ms();
        let suspended = Suspended {
            continuation: continuation_id(now, seq),
            call_id,
            expires: self.pending_ttl_ms.map(|ttl_ms| now.saturating_add(ttl_ms)),
        };
        Some(Draft::new(turn.number(), content, Body::Suspended(suspended)))
    }

    /// Writes down that the turn waits, unless that is written already.
    async fn leave_waiting(&mut self) -> Result<Left, EngineError> {
        let mut overtaken = 0;
        loop {
            let Some(turn) = self.session.open_turn().filter(|turn| turn.suspended().is_none()) else {
                return Ok(Left::Waiting);
            };
            let Some(draft) = self.suspension(turn, self.session.last_seq()) else {
                return Ok(Left::Answered);
            };
            match self.append_as(Drive::Ends, vec![draft], Durability::Synced).await {
                Ok(()) => return Ok(Left::Waiting),
                // Somebody answered or cancelled meanwhile, or wrote down first that it waits.
                Err(EngineError::Invalid { .. }) if overtaken < OVERTAKEN_MAX => overtaken += 1,
                Err(other) => return Err(other),
            }
        }
    }
}

/// What the last turn began with that a client began; a person at a terminal may have said something since.
pub(crate) fn last_of_client(session: &Session) -> Option<&TurnStarted> {
    session.events().iter().rev().find_map(|event| {
        let Body::TurnStarted(data) = &event.body else {
            return None;
        };
        data.served.is_some().then_some(data)
    })
}

/// The instructions that have to be said for the next turn: those that are given, or were before, unless the model is sent them
/// already. What stands before a clearing no model is sent any more.
fn instructions_to_tell(events: &[Event], given: Option<String>) -> Option<String> {
    let is_said = |event: &&Event| matches!(event.body, Body::System(_));
    let newest_first = || events.iter().rev();
    let sent = newest_first()
        .take_while(|event| !matches!(event.body, Body::Clear))
        .find(is_said);
    let wanted = given.or_else(|| newest_first().find(is_said).map(|event| event.content.clone()))?;
    (sent.map(|event| event.content.as_str()) != Some(wanted.as_str())).then_some(wanted)
}

/// How a drive that came to a wait goes on.
enum Left {
    /// It is in the ledger that the turn waits.
    Waiting,
    /// The answer came before that: drive on.
    Answered,
}

/// `br-<time>-<seq>`: the milliseconds, and the event it follows with 64 random bits behind it (SPEC 9.2).
fn continuation_id(now: u64, seq: u64) -> ContinuationId {
    ContinuationId::new(format!("{CONTINUATION}{now}-{seq:06}{:016x}", random() >> 64))
}

/// True for what an append could not do because somebody else was there before.
pub(crate) fn is_overtaken(error: &EngineError) -> bool {
    matches!(
        error,
        EngineError::Invalid {
            reason: InvalidEvent::AlreadyStarted | InvalidEvent::TurnOpen,
            ..
        }
    )
}
