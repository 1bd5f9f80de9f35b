//! The turns that run in this process: each in a task of its own, which belongs to no connection, and whoever wants to know what
//! it came to.

use super::live::Live;
use super::observed::{Fault, Problem};
use super::terminal::Patience;
use super::{Conversations, Ticket};
use crate::driver::Driver;
use crate::standing::{Envelope, Standing};
use crate::{EngineError, Notices, ServeError};
use aish_core::id::SessionId;
use aish_core::turn::Turn;
use aish_store::StoreError;
use aish_tools::BegunBy;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, watch};

/// What is said of a task that died without a word.
const FAULT: &str = "a fault in aish itself";

/// How a run of a turn in this process ended.
#[derive(Clone, Debug)]
pub(super) enum Over {
    /// It has not.
    No,
    /// It came to this after that event.
    Came(u64, Arc<Standing>),
    /// It could not go on; one line.
    Failed(Failure),
}

/// Why a run could not go on.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    text: String,
    fault: Fault,
}

impl From<Failure> for ServeError {
    fn from(failure: Failure) -> Self {
        Self::Stopped(failure.text)
    }
}

/// A turn that runs here.
pub(super) struct Running {
    cancel: watch::Sender<bool>,
    pub(super) over: watch::Receiver<Over>,
}

impl Running {
    /// Asks it to stop, and gives how it ends.
    pub(super) fn stop(&self) -> watch::Receiver<Over> {
        // Whoever waits for it has gone otherwise.
        let _ = self.cancel.send(true);
        self.over.clone()
    }
}

/// Waits until a run is over, also by its death.
pub(super) async fn gone(mut over: watch::Receiver<Over>) {
    let _ = over.wait_for(|over| !matches!(over, Over::No)).await;
}

/// Waits until a run is over, and gives what it came to, if it goes on from that event and says so.
async fn heard(mut over: watch::Receiver<Over>, seq: u64) -> Result<Option<Envelope>, Failure> {
    let over = over.wait_for(|over| !matches!(over, Over::No)).await;
    match over.as_deref() {
        Ok(Over::Came(from, standing)) if *from == seq => Ok(match standing.as_ref() {
            Standing::Told(envelope) => Some(Envelope::clone(envelope)),
            Standing::Idle | Standing::Running => None,
        }),
        Ok(Over::Failed(failure)) => Err(failure.clone()),
        // A task that died without a word is looked for in the ledger.
        Ok(Over::No | Over::Came(..)) | Err(_) => Ok(None),
    }
}

/// A run in the list of those that there are, for as long as this lives: also when it panics.
struct Listed<'a> {
    conversations: &'a Conversations,
    session: &'a SessionId,
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        self.conversations.running().remove(self.session);
    }
}

/// Does work that must not end half-way because nobody waits for it any more.
pub(super) async fn on_its_own<T: Send + 'static>(
    work: impl Future<Output = Result<T, ServeError>> + Send + 'static,
) -> Result<T, ServeError> {
    let done = tokio::spawn(work).await;
    done.unwrap_or_else(|_| Err(ServeError::Stopped(FAULT.to_owned())))
}

impl Conversations {
    /// What the turn of a ticket came to: waits while it runs, here or elsewhere.
    ///
    /// # Errors
    /// It could not go on, or this process is about to end.
    pub async fn told(&self, mut ticket: Ticket) -> Result<Envelope, ServeError> {
        // Nobody reads it: what is told need not be kept for it.
        drop(ticket.live.take());
        let mut heard_of = Ok(None);
        if let Some(over) = ticket.over.take() {
            heard_of = heard(over, ticket.seq).await;
        }
        match heard_of {
            // As it nearly always is: nothing else is made ready for it.
            Ok(Some(envelope)) => return Ok(envelope),
            // Whoever asks again is told what the ledger has of it: looking there now would only wait as long once more.
            Err(failure) if failure.fault == Fault::Ledger => return Err(failure.into()),
            Ok(None) | Err(_) => {}
        }
        let mut driver = None;
        let mut news = 0;
        let mut pause = self.pause.subscribe();
        let hub = self.hubs.of(&ticket.session);
        let mut stirred = hub.stirring();
        let mut patience = Patience::begin(&ticket);
        loop {
            if let Ok(Some(envelope)) = heard_of {
                return Ok(envelope);
            }
            stirred.mark_unchanged();
            let driver = match &mut driver {
                None => driver.insert(self.open(&ticket.session).await?),
                Some(driver) => {
                    driver.catch_up().await?;
                    driver
                }
            };
            if let Standing::Told(envelope) = driver.standing_from(ticket.turn, ticket.seq) {
                return Ok(*envelope);
            }
            // A run that failed may be a later one: what this one came to would have stood in the ledger.
            heard_of?;
            heard_of = Ok(None);
            let running = self.running().get(&ticket.session).map(|running| running.over.clone());
            if let Some(over) = running {
                heard_of = heard(over, ticket.seq).await;
                continue;
            }
            tokio::select! {
                _ = pause.wait_for(|pause| *pause) => return Err(ServeError::Draining),
                _ = stirred.changed() => {}
                () = patience.over(driver) => return Err(ServeError::AtTerminal(ticket.session)),
                version = self.engine.store.news(news) => news = version?,
            }
        }
    }

    /// Runs a turn in a task of its own, from where its driver stands.
    pub(super) async fn launch(self: &Arc<Self>, driver: Driver, seq: u64, place: OwnedSemaphorePermit) -> Ticket {
        let session = driver.session().id().clone();
        let turn = driver.session().turn().map_or(0, Turn::number);
        let (over, heard) = watch::channel(Over::No);
        let cancel = watch::Sender::new(false);
        let stop = cancel.subscribe();
        loop {
            // What ran before has written that it waits, and may not have gone yet.
            let before = {
                let mut running = self.running();
                match running.get(&session) {
                    Some(before) => before.over.clone(),
                    None => {
                        let over = heard.clone();
                        running.insert(session.clone(), Running { cancel, over });
                        break;
                    }
                }
            };
            gone(before).await;
        }
        self.hubs.stir(&session);
        let ticket = Ticket {
            live: Some(self.follow(&session, seq.saturating_sub(1))),
            session,
            turn,
            seq,
            begun_by: BegunBy::Client,
            over: Some(heard),
        };
        let conversations = Arc::clone(self);
        let run = Ticket {
            live: None,
            ..ticket.clone()
        };
        tokio::spawn(async move {
            conversations.run(driver, &run, (stop, over)).await;
            drop(place);
        });
        ticket
    }

    async fn run(
        &self,
        mut driver: Driver,
        ticket: &Ticket,
        (stop, over): (watch::Receiver<bool>, watch::Sender<Over>),
    ) {
        let listed = Listed {
            conversations: self,
            session: &ticket.session,
        };
        let notices = Notices::with_events();
        let hub = self.hubs.of(&ticket.session);
        hub.tell_until(ticket.seq, driver.session());
        // What was to be said about the answer itself.
        hub.forward(driver.notices.drain());
        let driven = {
            let mut driving = std::pin::pin!(driver.drive_for(&notices, stop));
            loop {
                tokio::select! {
                    driven = &mut driving => break driven,
                    () = notices.changed() => hub.forward(notices.drain()),
                }
            }
        };
        hub.forward(notices.drain());
        let standing = driver.standing_from(ticket.turn, ticket.seq);
        let came = match driven {
            Ok(_)
            | Err(EngineError::LeaseLost(_) | EngineError::Paused(_) | EngineError::Store(StoreError::Leased { .. })) => {
                Over::Came(ticket.seq, Arc::new(standing))
            }
            Err(error) => Over::Failed(Failure {
                text: self.shown(error.to_string()),
                fault: Fault::of(&error),
            }),
        };
        if let Over::Failed(Failure { text, fault }) = &came {
            hub.send(Live::Failed(text.clone()));
            let (text, fault) = (text.as_str(), *fault);
            self.retries.failed(&ticket.session, fault);
            self.observed(&driver, ticket.seq, Some(Problem { text, fault }));
        } else {
            self.retries.went_on(&ticket.session);
            self.observed(&driver, ticket.seq, None);
        }
        drop(listed);
        let _ = over.send(came);
        self.hubs.stir(&ticket.session);
        driver.settle().await;
        // What a cancelled call came to after all.
        hub.forward(notices.drain());
    }
}
