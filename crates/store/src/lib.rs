//! Where the ledger is kept.
//!
//! This crate owns the [`Store`] trait and its implementations: [`sqlite`] (one file, many processes) and [`memory`]
//! (tests, and a session whose disk failed). It knows events and nothing of what they are about: no providers, no tools.
//!
//! The contract every implementation is tested against: [`Store::append`] is a compare-and-set on the session's last
//! sequence number, atomic, and durable as asked before it returns; events are never changed or removed.

use aish_core::event::{Draft, Event};
use aish_core::id::{ContinuationId, SessionId};
use futures_util::future::BoxFuture;

pub mod export;
mod index;
mod lease;
mod liveness;
pub mod memory;
#[cfg(feature = "postgres")]
pub mod postgres;
mod query;
mod row;
pub mod sqlite;
mod typed;
mod waiting;

pub use waiting::{Hit, KnownRequest, Pending, PendingState, WaitingCount};

/// How often a store looks whether others have written, while somebody asks, in milliseconds.
pub const NEWS_EVERY_MS: u64 = 200;

/// The shortest beginning or end of a session's id that [`Store::find`] looks for.
pub const ID_PREFIX_CHARS_MIN: usize = 4;

/// How sure an append must be before it returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Survives the machine losing power: tool start, approval, suspend, turn end.
    Synced,
    /// Survives the death of this process: everything between.
    Committed,
}

/// Why the store could not do it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Somebody else appended first: load what is new, fold it, and try again if it still makes sense.
    #[error("session {session} is at event {actual}, not {expected}")]
    Conflict {
        /// Which session.
        session: SessionId,
        /// What the caller had seen.
        expected: u64,
        /// What is there.
        actual: u64,
    },
    /// No such session.
    #[error("no session {0}")]
    NotFound(String),
    /// More than one session begins with what was given.
    #[error("{prefix} begins the ids of {count} sessions; give more of it")]
    Ambiguous {
        /// What was given.
        prefix: String,
        /// How many it fits.
        count: usize,
    },
    /// What a draft resumes does not wait any more: somebody else was faster, or the turn is over.
    #[error("nothing waits under {0} any more")]
    Claimed(ContinuationId),
    /// A request of that key was made before.
    #[error("a request with the key {0} was made before")]
    KeyUsed(String),
    /// The lease is somebody else's.
    #[error("session {session} is being driven by {owner}")]
    Leased {
        /// Which session.
        session: SessionId,
        /// Whose it is.
        owner: String,
    },
    /// The lease was taken over: this driver must stop writing.
    #[error("the lease on session {0} was lost")]
    LeaseLost(SessionId),
    /// The ledger was written by a newer aish or is damaged.
    #[error("{0}")]
    Format(String),
    /// The database or the disk failed.
    #[error("{attempt}: {source}")]
    Io {
        /// What was attempted.
        attempt: String,
        /// What went wrong.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl StoreError {
    /// The same error, for one more of those whom it concerns.
    pub(crate) fn again(&self) -> Self {
        match self {
            Self::Conflict {
                session,
                expected,
                actual,
            } => Self::Conflict {
                session: session.clone(),
                expected: *expected,
                actual: *actual,
            },
            Self::NotFound(id) => Self::NotFound(id.clone()),
            Self::Ambiguous { prefix, count } => Self::Ambiguous {
                prefix: prefix.clone(),
                count: *count,
            },
            Self::Claimed(id) => Self::Claimed(id.clone()),
            Self::KeyUsed(key) => Self::KeyUsed(key.clone()),
            Self::Leased { session, owner } => Self::Leased {
                session: session.clone(),
                owner: owner.clone(),
            },
            Self::LeaseLost(session) => Self::LeaseLost(session.clone()),
            Self::Format(text) => Self::Format(text.clone()),
            Self::Io { attempt, source } => Self::Io {
                attempt: attempt.clone(),
                source: source.to_string().into(),
            },
        }
    }
}

/// The right to drive one session (SPEC 2.12).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Which session.
    pub session: SessionId,
    /// Who holds it; see [`Owner`].
    pub owner: Owner,
    /// Grows with every take-over: an append under an older number is refused.
    pub fence: u64,
}

/// What an append has to do with the right to drive its session: a drive begins and ends with an append, so that taking the lease and
/// giving it back cost nothing of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Nothing: anybody may append what needs no lease.
    Nothing,
    /// Appends only while this lease is current.
    Keeps(Lease),
    /// The same, and gives the lease back: what follows is somebody else's.
    GivesBack(Lease),
    /// Takes the lease, if nobody has it; whoever has it, be it this very owner, is no reason not to append. A store that cannot tell
    /// at once whether somebody has it may leave it: [`Store::acquire`] finds out.
    Takes {
        /// For whom.
        owner: Owner,
        /// Until when, in milliseconds since the Unix epoch; it begins with the append.
        until: u64,
    },
}

impl Hold {
    /// The lease without which nothing is appended.
    pub fn lease(&self) -> Option<&Lease> {
        match self {
            Self::Keeps(lease) | Self::GivesBack(lease) => Some(lease),
            Self::Nothing | Self::Takes { .. } => None,
        }
    }

    /// The lease in hand after an append of so many events, where it took none.
    pub(crate) fn left(&self, events: usize) -> Option<Lease> {
        match self {
            Self::Keeps(lease) => Some(lease.clone()),
            // An append of nothing changes nothing.
            Self::GivesBack(lease) => (events == 0).then(|| lease.clone()),
            Self::Nothing | Self::Takes { .. } => None,
        }
    }
}

/// What an append came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Appended {
    /// The events in their places.
    pub events: Vec<Event>,
    /// The lease that its [`Hold`] leaves in hand.
    pub lease: Option<Lease>,
}

/// A process that can be told from every other, also after it died and its number was given to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner(pub String);

/// A line of the list of sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionSummary {
    /// Its id.
    pub id: SessionId,
    /// Milliseconds since the Unix epoch of its first event.
    pub created: u64,
    /// Of its last event.
    pub updated: u64,
    /// How many events it has.
    pub events: u64,
    /// The first thing the user said in it; empty if nothing yet.
    pub title: String,
    /// The directory it was started in; empty if unknown.
    pub directory: String,
    /// True when its last turn waits for an answer.
    pub waiting: bool,
}

/// Which sessions to list.
#[derive(Clone, Debug, Default)]
pub struct SessionFilter {
    /// Only those started in this directory.
    pub directory: Option<String>,
    /// At most this many, the most recently used first.
    pub limit: Option<usize>,
    /// Not those whose last turn was begun for this model; those without any turn stay.
    pub not_by: Option<String>,
    /// Only these.
    pub only: Option<Vec<SessionId>>,
    /// Only those that come after this one in the list; none if it is not there.
    pub before: Option<SessionId>,
}

/// The longest line that [`Store::typed`] gives, in characters: more was pasted or piped, not typed.
pub const TYPED_CHARS_MAX: usize = 16_384;
/// The most bytes of text that [`Store::typed`] gives in all.
pub const TYPED_BYTES_MAX: usize = 4 << 20;

/// A line that somebody typed, in whichever session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypedLine {
    /// As it was sent: without the marks that say where it goes.
    pub text: String,
    /// Where it went.
    pub kind: TypedKind,
    /// Milliseconds since the Unix epoch, of the last time.
    pub time: u64,
    /// Where it was typed that time; empty if unknown.
    pub directory: String,
}

/// Where a line went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypedKind {
    /// To the shell.
    Command,
    /// To a model.
    Message,
}

/// An event as it is stored, for exports: its data is the text as written, whatever version wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawEvent {
    /// Its place.
    pub seq: u64,
    /// Its turn.
    pub turn: u64,
    /// Milliseconds since the Unix epoch.
    pub time: u64,
    /// The format version that wrote it.
    pub version: u32,
    /// Its kind.
    pub kind: String,
    /// Its readable text.
    pub content: String,
    /// Its data as JSON text; `null` where there is none.
    pub data: String,
}

impl From<&Event> for RawEvent {
    fn from(event: &Event) -> Self {
        Self {
            seq: event.seq,
            turn: event.turn,
            time: event.time,
            version: event.version,
            kind: event.body.kind().to_owned(),
            content: event.content.clone(),
            data: event.body.data_json(),
        }
    }
}

/// A ledger.
///
/// ```
/// use aish_core::event::Draft;
/// use aish_core::id::SessionId;
/// use aish_store::memory::MemoryStore;
/// use aish_store::{Durability, Hold, Store, StoreError};
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # runtime.block_on(async {
/// let store = MemoryStore::new();
/// let session = SessionId::from_parts(0, 7);
/// let hello = vec![Draft::user(0, "hello")];
/// let appended = store.append(&session, 0, hello.clone(), 0, Durability::Synced, Hold::Nothing).await?;
/// assert_eq!(appended.events[0].seq, 1);
/// // Whoever has not seen event 1 is told so.
/// let late = store.append(&session, 0, hello, 0, Durability::Synced, Hold::Nothing).await;
/// assert!(matches!(late, Err(StoreError::Conflict { actual: 1, .. })));
/// # Ok::<(), StoreError>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Derived indexes (pending continuations, leases, titles) are written in the transaction of the append and can be
/// rebuilt from the events: an index, not a second truth (DESIGN rule 10).
pub trait Store: Send + Sync {
    /// Appends events to a session (which begins to exist with its first), if its last sequence number is still
    /// `expected_seq` (0 for a new one). All or nothing, the lease that `hold` takes or gives back included; an append of nothing
    /// changes nothing. `time` is milliseconds since the Unix epoch.
    ///
    /// A `resumed` among them claims its continuation, and a request's key is taken, in the same transaction (SPEC 9.4).
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if somebody appended first; [`StoreError::Claimed`] if what is resumed does not wait;
    /// [`StoreError::KeyUsed`]; [`StoreError::LeaseLost`]; or the disk failed, and nothing was appended.
    fn append<'a>(
        &'a self,
        session: &'a SessionId,
        expected_seq: u64,
        drafts: Vec<Draft>,
        time: u64,
        durability: Durability,
        hold: Hold,
    ) -> BoxFuture<'a, Result<Appended, StoreError>>;

    /// The events of a session after `after_seq` (0 for all), in order. Empty for an unknown session.
    ///
    /// # Errors
    /// The disk failed, or an event does not have its kind's shape.
    fn load<'a>(&'a self, session: &'a SessionId, after_seq: u64) -> BoxFuture<'a, Result<Vec<Event>, StoreError>>;

    /// As [`Store::load`], undecoded, at most `limit` of them: for exports, whatever version wrote them.
    ///
    /// # Errors
    /// The disk failed.
    fn load_raw<'a>(
        &'a self,
        session: &'a SessionId,
        after_seq: u64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<RawEvent>, StoreError>>;

    /// The sessions, the most recently used first.
    ///
    /// # Errors
    /// The disk failed.
    fn list<'a>(&'a self, filter: SessionFilter) -> BoxFuture<'a, Result<Vec<SessionSummary>, StoreError>>;

    /// The session whose id is, or uniquely begins with, `prefix` (at least 4 characters); ends with it, too: the tail of a
    /// UUIDv7 is what tells sessions of one moment apart.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::Ambiguous`], or the disk failed.
    fn find<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<SessionId, StoreError>>;

    /// The last `lines_max` lines that people typed, in all sessions, the newest first and each text once. Lines that begin
    /// with a space or are longer than [`TYPED_CHARS_MAX`] are left out, and it ends where the rest would make it more than [`TYPED_BYTES_MAX`]. What was said
    /// in turns begun for the model `not_by` was said by a program.
    ///
    /// # Errors
    /// The disk failed.
    fn typed<'a>(&'a self, lines_max: usize, not_by: &'a str) -> BoxFuture<'a, Result<Vec<TypedLine>, StoreError>>;

    /// What became of a suspension; `None` if there never was such a one.
    ///
    /// # Errors
    /// The disk failed.
    fn continuation<'a>(&'a self, id: &'a ContinuationId) -> BoxFuture<'a, Result<Option<Pending>, StoreError>>;

    /// The suspension that a session waits under, if it does.
    ///
    /// # Errors
    /// The disk failed.
    fn waiting_under<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<Option<Pending>, StoreError>>;

    /// How many sessions wait, by what for.
    ///
    /// # Errors
    /// The disk failed.
    fn waiting_count(&self) -> BoxFuture<'_, Result<WaitingCount, StoreError>>;

    /// Suspensions that wait and had to be over by `now`, at most `limit`, in any order.
    ///
    /// # Errors
    /// The disk failed.
    fn expired<'a>(&'a self, now: u64, limit: usize) -> BoxFuture<'a, Result<Vec<Pending>, StoreError>>;

    /// Sessions whose last turn was begun by a client elsewhere (`served`), has not ended, waits for nobody, was last written
    /// to before `quiet_since` and is driven by nobody: no lease, or one that is past `now`, of a dead owner, or given back by this very store. At most `limit`,
    /// in any order.
    ///
    /// # Errors
    /// The disk failed.
    fn abandoned<'a>(
        &'a self,
        quiet_since: u64,
        now: u64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<SessionId>, StoreError>>;

    /// What was asked under a key, if anything was.
    ///
    /// # Errors
    /// The disk failed.
    fn request<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<KnownRequest>, StoreError>>;

    /// What was said in any session (messages, replies, command lines) and holds every word of `query`, words in double quotes
    /// as a phrase; the best matches first, at most `limit`. Any text is a query; one without words finds nothing.
    ///
    /// # Errors
    /// The disk failed.
    fn search<'a>(&'a self, query: &'a str, limit: usize) -> BoxFuture<'a, Result<Vec<Hit>, StoreError>>;

    /// Resolves once other processes may have appended something since `since`, with the number to ask with the next time; 0
    /// resolves at once. Costs nothing while nobody asks. Where a store cannot tell, it resolves every [`NEWS_EVERY_MS`].
    ///
    /// # Errors
    /// The disk failed.
    fn news(&self, since: u64) -> BoxFuture<'_, Result<u64, StoreError>>;

    /// Takes the right to drive a session: if it is free, past `now`, already this owner's, or its owner is known to be dead.
    /// `now` and `until` are milliseconds since the Unix epoch. The session need not exist yet.
    ///
    /// # Errors
    /// [`StoreError::Leased`] while it is somebody else's.
    fn acquire<'a>(
        &'a self,
        session: &'a SessionId,
        owner: &'a Owner,
        now: u64,
        until: u64,
    ) -> BoxFuture<'a, Result<Lease, StoreError>>;

    /// Extends a lease.
    ///
    /// # Errors
    /// [`StoreError::LeaseLost`] if it was taken over.
    fn renew<'a>(&'a self, lease: &'a Lease, until: u64) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Gives a lease back; without effect if it was taken over. If it fails, [`Store::abandoned`] of this very store knows all the
    /// same.
    ///
    /// # Errors
    /// The disk failed.
    fn release<'a>(&'a self, lease: &'a Lease) -> BoxFuture<'a, Result<(), StoreError>>;
}
