//! The ledger in one SQLite file, shared by many processes (SPEC 2.10).
//!
//! [`SqliteStore`] owns a thread that has the file open, and a second one that reads while the first has work. A command travels to one
//! of them and its result comes back. A thread starts, and the file is opened, with the first command: a program that needs no ledger
//! pays nothing. Appends and leases that come at the same moment are written together, with one wait for the disk.
//!
//! What is where: `keeper` the threads and what is asked of them, `group` changes that are written together, `ledger` the file as a
//! thread holds it, `open` its permissions and format, `schema` its tables, `write` appends and leases, `read` loading and listing,
//! `waiting` what waits, `search` words, `health` a look at the whole, `batch` rows on their way, `derived` the indexes, `fail` what a
//! failure means.

mod batch;
mod derived;
mod fail;
mod group;
mod health;
mod keeper;
mod ledger;
mod open;
mod read;
mod schema;
mod search;
mod waiting;
mod write;

use crate::lease::GivenBack;
use crate::query::Query;
use crate::{
    Appended, Durability, Hit, Hold, KnownRequest, Lease, NEWS_EVERY_MS, Owner, Pending, RawEvent, SessionFilter,
    SessionSummary, Store, StoreError, TypedLine, WaitingCount,
};
use aish_core::event::{Draft, Event};
use aish_core::id::{ContinuationId, SessionId};
use batch::Batch;
use futures_util::future::{BoxFuture, FutureExt as _};
use group::{Asked, Work};
pub use health::{Health, Pages};
use keeper::{Job, Keeper};
use ledger::Ledger;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::unbounded_channel;
use tokio::sync::oneshot;
use write::{Acquire, Append, Release, Renew};

/// Sessions that are taken into the index of words before others have their turn.
const INDEXED_AT_ONCE: usize = 16;

/// A ledger in one file.
///
/// Dropping it waits for what was asked of it and closes the file.
#[derive(Debug)]
pub struct SqliteStore {
    path: PathBuf,
    writer: Keeper,
    reader: Keeper,
    given_back: Arc<GivenBack>,
}

impl SqliteStore {
    /// The ledger at `path`. Nothing is touched until the first command, which makes the file (mode 0600) and its
    /// directory (0700) if they are not there.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            writer: Keeper::new("ledger"),
            reader: Keeper::new("ledger-reads"),
            given_back: Arc::default(),
        }
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Derives the summaries and the continuations again, from the events alone.
    ///
    /// # Errors
    /// The disk failed, and the old ones stand.
    pub async fn rebuild_indexes(&self) -> Result<(), StoreError> {
        self.ask(&self.writer, Ledger::rebuild_indexes).await
    }

    /// How the file is. One that is not there is made, as by every command.
    ///
    /// # Errors
    /// It cannot be opened or read.
    pub async fn health(&self) -> Result<Health, StoreError> {
        self.read(Ledger::health).await
    }

    /// Has a thread do `work`. Once this future was polled the work is done, also if the future is dropped.
    async fn ask<T: Send + 'static>(
        &self,
        keeper: &Keeper,
        work: impl FnOnce(&mut Ledger) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let replied = self.start(keeper, work)?;
        replied.await.unwrap_or_else(|closed| Err(self.thread_failed(closed)))
    }

    /// Has a thread begin with it, and gives where its outcome will be told.
    fn start<T: Send + 'static>(
        &self,
        keeper: &Keeper,
        work: impl FnOnce(&mut Ledger) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<oneshot::Receiver<Result<T, StoreError>>, StoreError> {
        let (reply, replied) = oneshot::channel();
        let unfinished = keeper.begin();
        let job = Job::Alone(Box::new(move |ledger| {
            let result = work(ledger);
            drop(unfinished);
            // Nobody may be waiting any more; the work was still to be done.
            let _ = reply.send(result);
        }));
        self.send(keeper, job)?;
        Ok(replied)
    }

    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Ledger) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.ask(self.for_reading(), work).await
    }

    /// The thread that reads at once.
    fn for_reading(&self) -> &Keeper {
        if self.writer.is_idle() {
            &self.writer
        } else {
            &self.reader
        }
    }

    /// As [`SqliteStore::ask`], for what may be written together with others.
    async fn change<W: Work>(&self, work: W) -> Result<W::Made, StoreError> {
        let (reply, replied) = oneshot::channel();
        let unfinished = self.writer.begin();
        let asked = Asked {
            work,
            reply,
            unfinished,
        };
        self.send(&self.writer, Job::Change(Box::new(asked)))?;
        replied.await.unwrap_or_else(|closed| Err(self.thread_failed(closed)))
    }

    /// Takes what was said since the last search into the index, a little at a time: appends come in between.
    async fn index_words(&self) -> Result<(), StoreError> {
        let behind = self.ask(&self.writer, Ledger::unindexed).await?;
        for sessions in behind.chunks(INDEXED_AT_ONCE) {
            let sessions = sessions.to_vec();
            self.ask(&self.writer, move |ledger| ledger.index(&sessions)).await?;
        }
        Ok(())
    }

    /// Decodes the batches that the thread reads, while it reads on.
    async fn load_decoded(&self, session: &SessionId, after_seq: u64) -> Result<Vec<Event>, StoreError> {
        // Unbounded: all of it is asked for, and a slow reader must not hold up the thread.
        let (hand_on, mut batches) = unbounded_channel::<Batch>();
        let wanted = session.clone();
        let replied = self.start(self.for_reading(), move |ledger| {
            ledger.load(&wanted, after_seq, &mut |batch| match hand_on.send(batch) {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            })
        })?;
        let mut events = Vec::new();
        while let Some(batch) = batches.recv().await {
            batch.decode_into(session, &mut events)?;
        }
        replied.await.unwrap_or_else(|closed| Err(self.thread_failed(closed)))?;
        Ok(events)
    }

    fn send(&self, keeper: &Keeper, job: Job) -> Result<(), StoreError> {
        keeper.send(&self.path, job).map_err(|error| self.thread_failed(error))
    }

    fn thread_failed(&self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> StoreError {
        StoreError::Io {
            attempt: format!("reaching the ledger {}", self.path.display()),
            source: source.into(),
        }
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.writer.end();
        self.reader.end();
    }
}

impl Store for SqliteStore {
    fn append<'a>(
        &'a self,
        session: &'a SessionId,
        expected_seq: u64,
        drafts: Vec<Draft>,
        time: u64,
        durability: Durability,
        hold: Hold,
    ) -> BoxFuture<'a, Result<Appended, StoreError>> {
        let takes = matches!(hold, Hold::Takes { .. });
        let append = Append::new(session, expected_seq, drafts, time, durability, hold);
        async move {
            let appended = self.change(append).await?;
            if takes && appended.lease.is_some() {
                self.given_back.forget(session);
            }
            Ok(appended)
        }
        .boxed()
    }

    fn load<'a>(&'a self, session: &'a SessionId, after_seq: u64) -> BoxFuture<'a, Result<Vec<Event>, StoreError>> {
        self.load_decoded(session, after_seq).boxed()
    }

    fn load_raw<'a>(
        &'a self,
        session: &'a SessionId,
        after_seq: u64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<RawEvent>, StoreError>> {
        let session = session.clone();
        self.read(move |ledger| ledger.load_raw(&session, after_seq, limit))
            .boxed()
    }

    fn list<'a>(&'a self, filter: SessionFilter) -> BoxFuture<'a, Result<Vec<SessionSummary>, StoreError>> {
        self.read(move |ledger| ledger.list(&filter)).boxed()
    }

    fn find<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<SessionId, StoreError>> {
        let prefix = prefix.to_owned();
        self.read(move |ledger| ledger.find(&prefix)).boxed()
    }

    fn typed<'a>(&'a self, lines_max: usize, not_by: &'a str) -> BoxFuture<'a, Result<Vec<TypedLine>, StoreError>> {
        let not_by = not_by.to_owned();
        self.read(move |ledger| ledger.typed(lines_max, &not_by)).boxed()
    }

    fn continuation<'a>(&'a self, id: &'a ContinuationId) -> BoxFuture<'a, Result<Option<Pending>, StoreError>> {
        let id = id.clone();
        self.read(move |ledger| ledger.continuation(&id)).boxed()
    }

    fn waiting_under<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<Option<Pending>, StoreError>> {
        let session = session.clone();
        self.read(move |ledger| ledger.waiting_under(&session)).boxed()
    }

    fn waiting_count(&self) -> BoxFuture<'_, Result<WaitingCount, StoreError>> {
        self.read(Ledger::waiting_count).boxed()
    }

    fn expired<'a>(&'a self, now: u64, limit: usize) -> BoxFuture<'a, Result<Vec<Pending>, StoreError>> {
        self.read(move |ledger| ledger.expired(now, limit)).boxed()
    }

    fn abandoned<'a>(
        &'a self,
        quiet_since: u64,
        now: u64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<SessionId>, StoreError>> {
        let given_back = Arc::clone(&self.given_back);
        self.read(move |ledger| ledger.abandoned(quiet_since, now, &given_back, limit))
            .boxed()
    }

    fn request<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<KnownRequest>, StoreError>> {
        let key = key.to_owned();
        self.read(move |ledger| ledger.request(&key)).boxed()
    }

    fn search<'a>(&'a self, query: &'a str, limit: usize) -> BoxFuture<'a, Result<Vec<Hit>, StoreError>> {
        let query = Query::parse(query);
        async move {
            if query.terms.is_empty() {
                return Ok(Vec::new());
            }
            self.index_words().await?;
            self.read(move |ledger| ledger.search(&query, limit)).await
        }
        .boxed()
    }

    /// What this connection writes itself does not count.
    fn news(&self, since: u64) -> BoxFuture<'_, Result<u64, StoreError>> {
        async move {
            loop {
                // A version is never 0: whoever asks for the first time learns it at once.
                let version = self.ask(&self.writer, Ledger::data_version).await?;
                if version != since {
                    return Ok(version);
                }
                tokio::time::sleep(Duration::from_millis(NEWS_EVERY_MS)).await;
            }
        }
        .boxed()
    }

    fn acquire<'a>(
        &'a self,
        session: &'a SessionId,
        owner: &'a Owner,
        now: u64,
        until: u64,
    ) -> BoxFuture<'a, Result<Lease, StoreError>> {
        async move {
            let lease = self.change(Acquire::new(session, owner, now, until)).await?;
            self.given_back.forget(session);
            Ok(lease)
        }
        .boxed()
    }

    fn renew<'a>(&'a self, lease: &'a Lease, until: u64) -> BoxFuture<'a, Result<(), StoreError>> {
        let lease = lease.clone();
        self.change(Renew { lease, until }).boxed()
    }

    fn release<'a>(&'a self, lease: &'a Lease) -> BoxFuture<'a, Result<(), StoreError>> {
        async move {
            // The disk may be full just now, or another process hold the file for too long.
            self.given_back.note(lease);
            self.change(Release(lease.clone())).await?;
            self.given_back.forget(&lease.session);
            Ok(())
        }
        .boxed()
    }
}
