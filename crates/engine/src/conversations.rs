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
use crate::served::{CANCELLED_BY_CLIENT, CONTINUATION, Opening, is_overtaken, last_of_client};
use crate::standing::{Envelope, Standing};
use crate::told::Telling;
use crate::{Claim, Engine, EngineError, Proposals, ServeError, Settings, now_ms};
use aish_core::event::{RequestKey, TurnStarted};
use aish_core::id::{ContinuationId, SessionId};
use aish_core::message::ToolSpec;
use aish_core::session::Session;
use aish_core::turn::Turn;
use aish_store::{Hit, KnownRequest, RawEvent, SessionFilter, SessionSummary, StoreError, WaitingCount};
use aish_tools::BegunBy;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

mod answering;
mod declared;
mod keeping;
mod live;
mod observed;
mod retries;
mod running;
mod terminal;

use live::Hubs;
pub use live::{Item, Live, Reader};
pub use observed::{Fault, Observer, Problem, Ran};
use retries::Retries;
use running::{Over, Running, gone, on_its_own};

/// Characters of one result that a model is shown in a served turn, whatever is configured for the terminal (SPEC 4.3, 9.3).
const RESULT_CHARS_MAX: usize = 6_000;

/// A name that no session has: whose lease is taken to see whether the ledger can be written.
const NO_SESSION: &str = "no-session";

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
    /// Who began the turn.
    begun_by: BegunBy,
    /// Told once the turn no longer runs here.
    over: Option<watch::Receiver<Over>>,
    /// What is told of the turn from its beginning on, where it was begun by this.
    live: Option<Reader>,
}

impl Ticket {
    /// For what a client's turn came to after an event, wherever it runs.
    fn of(session: &SessionId, turn: u64, seq: u64) -> Self {
        Self {
            session: session.clone(),
            turn,
            seq,
            begun_by: BegunBy::Client,
            over: None,
            live: None,
        }
    }

    /// Whether the turn goes on at a terminal, which may be left: then nothing but [`Conversations::told`] bounds the wait for it.
    pub fn is_at_terminal(&self) -> bool {
        self.begun_by == BegunBy::Person
    }

    /// What is told of the turn, from its beginning on where this request began it; what came before is in the ledger.
    pub fn take_live(&mut self) -> Option<Reader> {
        self.live.take()
    }
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
    /// Turns that could not be gone on with here.
    retries: Retries,
    observer: OnceLock<Arc<dyn Observer>>,
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
            retries: Retries::default(),
            observer: OnceLock::new(),
            settings,
        })
    }

    /// Begins a turn.
    ///
    /// # Errors
    /// The conversation waits or runs, is unknown, or the request cannot be taken.
    pub async fn chat(self: &Arc<Self>, request: ChatRequest) -> Result<Ticket, ServeError> {
        if let Some(tools) = &request.tools {
            declared::check(tools, &self.engine.tools)?;
        }
        let key = request.request.clone();
        if let Some(ticket) = self.known(key.as_ref()).await? {
            return Ok(ticket);
        }
        // On a task of its own: whoever asked may go away at any moment, and what was begun is still to be driven.
        match on_its_own(Arc::clone(self).begin(request)).await {
            Err(refused) if refused.may_be_of_a_twin() => self.known(key.as_ref()).await?.ok_or(refused),
            begun => begun,
        }
    }

    async fn begin(self: Arc<Self>, request: ChatRequest) -> Result<Ticket, ServeError> {
        let place = self.place()?;
        let mut driver = match &request.conversation {
            Some(id) => self.open_existing(id).await?,
            None => self.served(Driver::create(self.engine.for_client(client_settings))),
        };
        self.expect_idle(&mut driver).await?;
        let before = || last_of_client(driver.session()).map(|began| began.model.clone());
        if let Some(model) = request.model.or_else(before) {
            driver.engine().update(|settings| settings.model = model);
        }
        let opening = Opening {
            text: request.message,
            system: request.system,
            tools: request.tools,
            request: request.request,
        };
        let seq = driver.session().last_seq() + 1;
        match driver.start_for(opening).await {
            Ok(()) => Ok(self.launch(driver, seq, place).await),
            Err(EngineError::Store(StoreError::KeyUsed(_))) => Err(ServeError::KeyReused),
            Err(error) if is_overtaken(&error) => Err(ServeError::Running(driver.session().id().clone())),
            Err(error) => Err(error.into()),
        }
    }

    /// Answers what a session waits for; `id` is the session's or the continuation's.
    ///
    /// # Errors
    /// It is not what is waited for, somebody else answered otherwise, or the wait is over.
    pub async fn answer(self: &Arc<Self>, id: &str, claim: Claim) -> Result<Ticket, ServeError> {
        let (conversations, id) = (Arc::clone(self), id.to_owned());
        on_its_own(async move { conversations.take(&id, claim).await }).await
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

    /// What the client of a session was told last and the place of the event that said it, if it still stands.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub async fn last_told(&self, session: &SessionId) -> Result<Option<(u64, Envelope)>, ServeError> {
        Ok(self.open(session).await?.last_told())
    }

    /// The turn of an event of a session, up to that event: for whoever has not seen it from its beginning.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub async fn telling_at(&self, session: &SessionId, seq: u64) -> Result<Telling, ServeError> {
        Ok(self.open(session).await?.telling_at(seq))
    }

    /// Writes something to the ledger that is of no session, to see whether it takes it.
    ///
    /// # Errors
    /// It does not.
    pub async fn try_ledger(&self) -> Result<(), ServeError> {
        let (session, now) = (SessionId::new(NO_SESSION), now_ms());
        // It is past as soon as it is there: nobody waits for it, and whoever comes next writes again.
        match self.engine.store.acquire(&session, &self.engine.owner, now, now).await {
            Ok(_) | Err(StoreError::Leased { .. }) => Ok(()),
            Err(failed) => Err(failed.into()),
        }
    }

    /// How many sessions of the ledger wait.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub async fn waiting_count(&self) -> Result<WaitingCount, ServeError> {
        Ok(self.engine.store.waiting_count().await?)
    }

    /// Cancels the turn that is open, and tells how it ended; without one, how the last one ended. The id of a continuation means
    /// the turn that was suspended under it, and no later one.
    ///
    /// # Errors
    /// There is no such session, or nothing was asked in it yet.
    pub async fn cancel(self: &Arc<Self>, id: &str) -> Result<Envelope, ServeError> {
        let (conversations, id) = (Arc::clone(self), id.to_owned());
        // A client that goes away in the middle must not leave a turn that is told to stop and not ended.
        on_its_own(async move { conversations.end(&id).await }).await
    }

    /// Ends the turn that is meant by an id of a client's.
    async fn end(&self, id: &str) -> Result<Envelope, ServeError> {
        let session = self.session_of(id).await?;
        let mut driver = self.open_existing(&session).await?;
        let open = driver.session().turn().map_or(0, Turn::number);
        let meant = self.turn_of(id).await?.unwrap_or(open);
        let running = self
            .running()
            .get(&session)
            .filter(|_| meant == open)
            .map(Running::stop);
        if let Some(over) = running {
            gone(over).await;
        }
        let before = driver.session().last_seq();
        driver.cancel_turn(meant, CANCELLED_BY_CLIENT).await?;
        self.ran_until(&driver, before);
        driver.envelope_of(meant).ok_or(ServeError::NotWaiting(session))
    }

    /// The turn that was suspended under a continuation; `None` for the id of a session.
    async fn turn_of(&self, id: &str) -> Result<Option<u64>, ServeError> {
        if !id.starts_with(CONTINUATION) {
            return Ok(None);
        }
        let Some(pending) = self.engine.store.continuation(&ContinuationId::new(id)).await? else {
            return Ok(None);
        };
        let before = pending.seq.saturating_sub(1);
        let suspended = self.engine.store.load_raw(&pending.session, before, 1).await?.pop();
        Ok(suspended.map(|event| event.turn))
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
        let turn = event.as_ref().map_or(0, |event| event.turn);
        // Only an answer to a terminal's call has its key itself.
        let is_at_terminal = event.is_some_and(|event| event.kind == "call_answered");
        Ok(Ticket {
            begun_by: if is_at_terminal {
                BegunBy::Person
            } else {
                BegunBy::Client
            },
            ..Ticket::of(&known.session, turn, known.seq)
        })
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
        Ok(self.served(Driver::of(engine, session)))
    }

    /// Nothing is said by this driver that is not written, and it stops where this process is about to.
    fn served(&self, mut driver: Driver) -> Driver {
        driver.serve(self.pause.subscribe(), self.settings.pending_ttl_ms);
        driver
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
            Some(suspended) if suspended.is_over(now_ms()) => {
                let before = driver.session().last_seq();
                driver.expire(&suspended).await?;
                self.ran_until(driver, before);
                Ok(())
            }
            Some(_) => Err(ServeError::Waiting(id)),
            None if turn.is_waiting() => Err(ServeError::Waiting(id)),
            None => Err(ServeError::Running(id)),
        }
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
