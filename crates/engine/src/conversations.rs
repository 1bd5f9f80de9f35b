//! Conversations with clients somewhere else (SPEC 9): any number at once, each turn in a task of its own.
//!
//! A turn belongs to no connection: a client that goes away loses nothing, and asks again. A turn that waits is in the ledger and
//! nowhere else (SPEC 9.5): no task, no memory. Whichever process is asked takes it up from there.
//!
//! [`Conversations::chat`] and [`Conversations::answer`] give a [`Ticket`]; [`Conversations::told`] waits for what the turn came
//! to, which is read from the ledger wherever the turn ran. [`Conversations::keep`] runs beside them: it ends what has expired
//! and takes up what another process left.

use crate::choice::Routing;
use crate::driver::Driver;
use crate::served::{CallNames, Opening, is_overtaken};
use crate::standing::{Envelope, Standing};
use crate::{Claim, Engine, EngineError, Notices, Proposals, ServeError, Settings, now_ms};
use aish_core::Digest;
use aish_core::event::{Body, RequestKey, TurnStarted};
use aish_core::id::{ContinuationId, SessionId};
use aish_core::message::ToolSpec;
use aish_core::session::Session;
use aish_core::turn::Turn;
use aish_store::{Hit, KnownRequest, Pending, PendingState, RawEvent, SessionFilter, SessionSummary, StoreError};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

mod declared;
mod keeping;
mod live;

use live::Hubs;
pub use live::{Item, Live, Reader};

/// Characters of one result that a model is shown in a served turn (SPEC 9.3).
const RESULT_CHARS_MAX: usize = 6_000;
/// What the id of a continuation begins with.
const CONTINUATION: &str = "br-";
/// What a turn says of itself that its client cancelled.
const CANCELLED: &str = "cancelled by the client";

/// What holds for all conversations.
#[derive(Clone, Debug)]
pub struct ConversationsSettings {
    /// How long a turn waits before it is over, in milliseconds; `None` for ever.
    pub pending_ttl_ms: Option<u64>,
    /// Whether a result must name the call it is of (SPEC 9.3).
    pub strict_call_id: bool,
    /// Turns that run at once. Those that wait do not count.
    pub turns_max: usize,
}

/// A message from a client.
#[derive(Clone, Debug, Default)]
pub struct ChatRequest {
    /// What it says.
    pub message: String,
    /// The session it goes on with; a new one where there is none.
    pub conversation: Option<SessionId>,
    /// The model to ask, by its configured name; that of the turn before, or the default.
    pub model: Option<String>,
    /// Instructions of the client's own; those it gave before where there are none.
    pub system: Option<String>,
    /// The tools it executes; those it declared before where there are none.
    pub tools: Option<Vec<ToolSpec>>,
    /// The key under which it may be sent again.
    pub request: Option<RequestKey>,
}

/// What a request is told about: what its turn comes to after one event.
#[derive(Clone, Debug)]
pub struct Ticket {
    /// The session.
    pub session: SessionId,
    /// The turn.
    pub turn: u64,
    /// The event that the request became.
    pub seq: u64,
    /// Told once the turn no longer runs here.
    over: Option<watch::Receiver<Over>>,
}

/// How a run of a turn in this process ended.
#[derive(Clone, Debug)]
enum Over {
    /// It has not.
    No,
    /// It came to this after that event.
    Came(u64, Arc<Standing>),
    /// It could not go on; one line.
    Failed(String),
}

/// A turn that runs here.
struct Running {
    cancel: watch::Sender<bool>,
    over: watch::Receiver<Over>,
}

/// All conversations of this process.
pub struct Conversations {
    engine: Arc<Engine>,
    settings: ConversationsSettings,
    running: Mutex<HashMap<SessionId, Running>>,
    turns: Arc<Semaphore>,
    /// True once this process is about to end.
    pause: watch::Sender<bool>,
    hubs: Hubs,
}

impl Conversations {
    /// None yet. They share the engine's ledger, models, tools and rules.
    pub fn new(engine: Arc<Engine>, settings: ConversationsSettings) -> Arc<Self> {
        Arc::new(Self {
            engine,
            running: Mutex::default(),
            turns: Arc::new(Semaphore::new(settings.turns_max)),
            pause: watch::Sender::new(false),
            hubs: Hubs::default(),
            settings,
        })
    }

    /// Begins a turn.
    ///
    /// # Errors
    /// The conversation waits or runs, is unknown, or the request cannot be taken.
    pub async fn chat(self: &Arc<Self>, request: ChatRequest) -> Result<Ticket, ServeError> {
        if let Some(tools) = &request.tools {
            declared::check(tools, &self.engine.tools.now())?;
        }
        if let Some(ticket) = self.known(request.request.as_ref()).await? {
            return Ok(ticket);
        }
        let place = self.place()?;
        let mut driver = match &request.conversation {
            Some(id) => self.open_existing(id).await?,
            None => Driver::create(self.engine.for_client(client_settings)),
        };
        self.expect_idle(&mut driver).await?;
        let model = request.model.clone().or_else(|| last_model(driver.session()));
        if let Some(model) = model {
            driver.engine().update(|settings| settings.model = model);
        }
        let opening = Opening {
            text: request.message,
            system: request.system,
            tools: request.tools,
            request: request.request.clone(),
        };
        driver.serve(self.pause.subscribe());
        let seq = driver.session().last_seq() + 1;
        match driver.start_for(opening).await {
            Ok(()) => {}
            Err(EngineError::Store(StoreError::KeyUsed(_))) => {
                let known = self.known(request.request.as_ref()).await?;
                return known.ok_or(ServeError::KeyReused);
            }
            Err(error) if is_overtaken(&error) => return Err(ServeError::Running(driver.session().id().clone())),
            Err(error) => return Err(error.into()),
        }
        Ok(self.launch(driver, seq, place).await)
    }

    /// Answers what a session waits for; `id` is the session's or the continuation's.
    ///
    /// # Errors
    /// It is not what is waited for, somebody else answered otherwise, or the wait is over.
    pub async fn answer(self: &Arc<Self>, id: &str, claim: Claim) -> Result<Ticket, ServeError> {
        if let Some(ticket) = self.known(claim.request.as_ref()).await? {
            return Ok(ticket);
        }
        let pending = self.pending(id, &claim).await?;
        match pending.state {
            PendingState::Open => {}
            PendingState::Answered => return self.answered_before(&pending, &claim).await,
            PendingState::Closed => return Err(self.closed(&pending).await),
        }
        let place = self.place()?;
        let mut driver = self.open_existing(&pending.session).await?;
        driver.serve(self.pause.subscribe());
        let names = if self.settings.strict_call_id {
            CallNames::Strict
        } else {
            CallNames::Lenient
        };
        match driver.claim(&pending.continuation, &claim, names).await {
            Ok(()) => {}
            Err(ServeError::Engine(EngineError::Store(StoreError::KeyUsed(_)))) => {
                let known = self.known(claim.request.as_ref()).await?;
                return known.ok_or(ServeError::KeyReused);
            }
            Err(ServeError::AnsweredOtherwise(_)) => return self.answered_before(&pending, &claim).await,
            Err(other) => return Err(other),
        }
        let seq = resumed(driver.session(), &pending.continuation).map_or(pending.seq, |(seq, _)| seq);
        Ok(self.launch(driver, seq, place).await)
    }

    /// What the turn of a ticket came to: waits while it runs, here or elsewhere.
    ///
    /// # Errors
    /// It could not go on, or this process is about to end.
    pub async fn told(&self, mut ticket: Ticket) -> Result<Envelope, ServeError> {
        if let Some(over) = &mut ticket.over {
            // A task that died without a word is looked for in the ledger.
            let over = over.wait_for(|over| !matches!(over, Over::No)).await;
            match over.as_deref() {
                Ok(Over::Came(seq, standing)) if *seq == ticket.seq => {
                    if let Standing::Told(envelope) = standing.as_ref() {
                        return Ok(Envelope::clone(envelope));
                    }
                }
                Ok(Over::Failed(problem)) => return Err(ServeError::Stopped(problem.clone())),
                Ok(Over::No | Over::Came(..)) | Err(_) => {}
            }
        }
        let mut driver = self.open(&ticket.session).await?;
        let mut news = 0;
        let mut pause = self.pause.subscribe();
        loop {
            driver.refresh().await?;
            if let Standing::Told(envelope) = driver.standing_after(ticket.turn, ticket.seq) {
                return Ok(*envelope);
            }
            tokio::select! {
                _ = pause.wait_for(|pause| *pause) => return Err(ServeError::Draining),
                version = self.engine.store.news(news) => news = version?,
            }
        }
    }

    /// Where a session stands now, with the session it is; `id` is the session's or a continuation's.
    ///
    /// # Errors
    /// There is none such.
    pub async fn standing(&self, id: &str) -> Result<(SessionId, Standing), ServeError> {
        let session = self.session_of(id).await?;
        let driver = self.open_existing(&session).await?;
        Ok((session, driver.standing()))
    }

    /// Cancels the turn that is open, and tells how it ended; without one, how the last one ended.
    ///
    /// # Errors
    /// There is no such session, or nothing was asked in it yet.
    pub async fn cancel(&self, id: &str) -> Result<Envelope, ServeError> {
        let session = self.session_of(id).await?;
        let over = {
            let running = self.running();
            running.get(&session).map(|running| {
                // Whoever waits for it has gone otherwise.
                let _ = running.cancel.send(true);
                running.over.clone()
            })
        };
        if let Some(mut over) = over {
            let _ = over.wait_for(|over| !matches!(over, Over::No)).await;
        }
        let mut driver = self.open_existing(&session).await?;
        driver.serve(self.pause.subscribe());
        driver.cancel(CANCELLED).await?;
        self.hubs.tell(&session, driver.session());
        driver.last_envelope().ok_or(ServeError::NotWaiting(session))
    }

    /// The sessions, the most recently used first.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub async fn sessions(&self, filter: SessionFilter) -> Result<Vec<SessionSummary>, ServeError> {
        Ok(self.engine.store.list(filter).await?)
    }

    /// Events that hold what is looked for, the best first.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub async fn search(&self, query: &str, limit: usize) -> Result<Vec<Hit>, ServeError> {
        Ok(self.engine.store.search(query, limit).await?)
    }

    /// The events of a session after one of them, as they are in the ledger, at most `limit`.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub async fn events(&self, session: &SessionId, after: u64, limit: usize) -> Result<Vec<RawEvent>, ServeError> {
        Ok(self.engine.store.load_raw(session, after, limit).await?)
    }

    /// The session that an id means: its own, or that of a continuation.
    ///
    /// # Errors
    /// There is none such.
    pub async fn session_of(&self, id: &str) -> Result<SessionId, ServeError> {
        let unknown = || ServeError::Unknown(id.to_owned());
        if id.starts_with(CONTINUATION) {
            let pending = self.engine.store.continuation(&ContinuationId::new(id)).await?;
            return pending.map(|pending| pending.session).ok_or_else(unknown);
        }
        let session = SessionId::new(id);
        let first = self.engine.store.load_raw(&session, 0, 1).await?;
        if first.is_empty() { Err(unknown()) } else { Ok(session) }
    }

    /// Follows a session as it goes on.
    pub fn follow(&self, session: &SessionId, after: u64) -> Reader {
        self.hubs.follow(session, after)
    }

    /// How many turns run here.
    pub fn running_count(&self) -> usize {
        self.running().len()
    }

    /// A running turn more, if there is room for one.
    fn place(&self) -> Result<OwnedSemaphorePermit, ServeError> {
        if *self.pause.borrow() {
            return Err(ServeError::Draining);
        }
        let place = Arc::clone(&self.turns).try_acquire_owned();
        place.map_err(|_| ServeError::Busy(self.settings.turns_max))
    }

    fn running(&self) -> std::sync::MutexGuard<'_, HashMap<SessionId, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a request under a key became, if there was one.
    async fn known(&self, request: Option<&RequestKey>) -> Result<Option<Ticket>, ServeError> {
        let Some(request) = request else {
            return Ok(None);
        };
        match self.engine.store.request(&request.key).await? {
            None => Ok(None),
            Some(known) if known.digest != request.digest => Err(ServeError::KeyReused),
            Some(known) => Ok(Some(self.ticket_of(&known).await?)),
        }
    }

    async fn ticket_of(&self, known: &KnownRequest) -> Result<Ticket, ServeError> {
        let before = known.seq.saturating_sub(1);
        let event = self.engine.store.load_raw(&known.session, before, 1).await?.pop();
        Ok(self.ticket(&known.session, event.map_or(0, |event| event.turn), known.seq))
    }

    fn ticket(&self, session: &SessionId, turn: u64, seq: u64) -> Ticket {
        let over = self.running().get(session).map(|running| running.over.clone());
        Ticket {
            session: session.clone(),
            turn,
            seq,
            over,
        }
    }

    /// A session, with what its open turn began with in force.
    async fn open(&self, id: &SessionId) -> Result<Driver, ServeError> {
        let events = self.engine.store.load(id, 0).await.map_err(EngineError::Store)?;
        let session = Session::load(id.clone(), events);
        let began = session.open_turn().map(Turn::settings);
        let engine = self.engine.for_client(|settings| {
            client_settings(settings);
            if let Some(began) = began {
                begun_with(settings, began);
            }
        });
        Ok(Driver::of(engine, session))
    }

    async fn open_existing(&self, id: &SessionId) -> Result<Driver, ServeError> {
        let driver = self.open(id).await?;
        if driver.session().last_seq() == 0 {
            return Err(ServeError::Unknown(id.to_string()));
        }
        if driver.session().is_read_only() {
            return Err(EngineError::ReadOnly(id.clone()).into());
        }
        Ok(driver)
    }

    /// A message may be said: no turn runs, and none waits, unless for longer than it should.
    async fn expect_idle(&self, driver: &mut Driver) -> Result<(), ServeError> {
        let id = driver.session().id().clone();
        let Some(turn) = driver.session().open_turn() else {
            return Ok(());
        };
        match turn.suspended().cloned() {
            Some(suspended) if suspended.expires.is_some_and(|expires| expires <= now_ms()) => {
                Ok(driver.expire(&suspended).await?)
            }
            Some(_) => Err(ServeError::Waiting(id)),
            None if turn.is_waiting() => Err(ServeError::Waiting(id)),
            None => Err(ServeError::Running(id)),
        }
    }

    /// The suspension that an answer is meant for.
    async fn pending(&self, id: &str, claim: &Claim) -> Result<Pending, ServeError> {
        if id.starts_with(CONTINUATION) {
            let pending = self.engine.store.continuation(&ContinuationId::new(id)).await?;
            return pending.ok_or_else(|| ServeError::Unknown(id.to_owned()));
        }
        let session = self.session_of(id).await?;
        if let Some(pending) = self.engine.store.waiting_under(&session).await? {
            return Ok(pending);
        }
        // The same answer again, to a session that has gone on.
        let driver = self.open_existing(&session).await?;
        let before = last_resumed(driver.session(), &claim.digest());
        let pending = match before {
            Some(continuation) => self.engine.store.continuation(&continuation).await?,
            None => None,
        };
        pending.ok_or(ServeError::NotWaiting(session))
    }

    /// The answer that was given first is the one that counts: the same one again is told the same.
    async fn answered_before(&self, pending: &Pending, claim: &Claim) -> Result<Ticket, ServeError> {
        let driver = self.open_existing(&pending.session).await?;
        match resumed(driver.session(), &pending.continuation) {
            Some((seq, answer)) if answer.as_ref() == Some(&claim.digest()) => {
                let turn = driver.session().events().iter().find(|event| event.seq == seq);
                Ok(self.ticket(&pending.session, turn.map_or(0, |event| event.turn), seq))
            }
            Some(_) => Err(ServeError::AnsweredOtherwise(pending.continuation.clone())),
            None if driver.session().turn().and_then(Turn::continuation) == Some(&pending.continuation) => {
                // It waits after all: the ledger was read before somebody else's append was there.
                Err(ServeError::AnsweredOtherwise(pending.continuation.clone()))
            }
            None => Err(self.closed(pending).await),
        }
    }

    async fn closed(&self, pending: &Pending) -> ServeError {
        if pending.expires.is_some_and(|expires| expires <= now_ms()) {
            return ServeError::Expired(pending.continuation.clone());
        }
        ServeError::Ended(pending.continuation.clone())
    }

    /// Runs a turn in a task of its own, from where its driver stands.
    async fn launch(self: &Arc<Self>, driver: Driver, seq: u64, place: OwnedSemaphorePermit) -> Ticket {
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
            let mut before = before;
            let _ = before.wait_for(|over| !matches!(over, Over::No)).await;
            tokio::task::yield_now().await;
        }
        let ticket = Ticket {
            session,
            turn,
            seq,
            over: Some(heard),
        };
        let conversations = Arc::clone(self);
        let run = ticket.clone();
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
        let notices = Notices::with_events();
        let hub = self.hubs.of(&ticket.session);
        hub.tell_until(ticket.seq, driver.session());
        let driven = {
            let mut driving = std::pin::pin!(driver.drive_for(&notices, stop, self.settings.pending_ttl_ms));
            loop {
                tokio::select! {
                    driven = &mut driving => break driven,
                    () = notices.changed() => hub.forward(notices.drain()),
                }
            }
        };
        hub.forward(notices.drain());
        let standing = driver.standing_after(ticket.turn, ticket.seq);
        if let Standing::Told(envelope) = &standing {
            hub.send(Live::Told(Envelope::clone(envelope)));
        }
        let came = match driven {
            Ok(_)
            | Err(EngineError::LeaseLost(_) | EngineError::Paused(_) | EngineError::Store(StoreError::Leased { .. })) => {
                Over::Came(ticket.seq, Arc::new(standing))
            }
            Err(error) => Over::Failed(self.engine.redactor.redact(&error.to_string()).into_owned()),
        };
        if let Over::Failed(problem) = &came {
            hub.send(Live::Failed(problem.clone()));
        }
        self.running().remove(&ticket.session);
        let _ = over.send(came);
        driver.settle().await;
    }
}

/// What holds for every turn of a client: nothing is proposed for a shell that is not there, and nobody is asked who is not there.
fn client_settings(settings: &mut Settings) {
    settings.proposals = Proposals::NotOffered;
    settings.routing = Routing::default();
    settings.schema = None;
    settings.limits.max_result_chars = RESULT_CHARS_MAX;
}

/// What the turn began with holds until it ends, whichever process goes on with it (DESIGN rule 8).
fn begun_with(settings: &mut Settings, began: TurnStarted) {
    settings.model = began.model;
    settings.mode = began.mode;
    settings.limits = began.limits;
}

/// The model of the last turn that a client began.
fn last_model(session: &Session) -> Option<String> {
    let turn = session.turn()?;
    turn.served()?;
    Some(turn.settings().model)
}

/// Where a suspension was answered, and by what.
fn resumed(session: &Session, id: &ContinuationId) -> Option<(u64, Option<Digest>)> {
    session.events().iter().rev().find_map(|event| {
        let Body::Resumed(data) = &event.body else { return None };
        (data.continuation == *id).then(|| (event.seq, data.answer.clone()))
    })
}

/// The last suspension that was over with this answer.
fn last_resumed(session: &Session, answer: &Digest) -> Option<ContinuationId> {
    session.events().iter().rev().find_map(|event| {
        let Body::Resumed(data) = &event.body else { return None };
        (data.answer.as_ref() == Some(answer)).then(|| data.continuation.clone())
    })
}
