//! A store to interfere with: before each append a test may look, let somebody else write first, fail the append, or end
//! the world.

use aish_core::event::{Draft, Event};
use aish_core::id::{ContinuationId, SessionId};
use aish_store::{
    Appended, Durability, Hit, Hold, KnownRequest, Lease, Owner, Pending, RawEvent, SessionFilter, SessionSummary,
    Store, StoreError, TypedLine, WaitingCount,
};
use futures_util::future::{BoxFuture, FutureExt as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::sync::Semaphore;

/// What becomes of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is written.
    Write,
    /// The disk fails.
    Fail,
    /// It is refused for what it is.
    Refuse,
    /// The process dies before it is written.
    DieBefore,
    /// The process dies when it is written and nobody knows yet.
    DieAfter,
}

/// Says what becomes of the `n`th append (from 1) of these drafts.
pub type Hook = Box<dyn Fn(usize, Vec<Draft>) -> BoxFuture<'static, Fate> + Send + Sync>;

/// The store.
pub struct Watched {
    inner: Arc<dyn Store>,
    hook: Hook,
    appends: AtomicUsize,
    loads_fail: AtomicBool,
    writes_fail: AtomicBool,
    leases_hang: AtomicBool,
    died: Semaphore,
}

impl Watched {
    pub fn new(inner: Arc<dyn Store>, hook: Hook) -> Arc<Self> {
        Arc::new(Self {
            inner,
            hook,
            appends: AtomicUsize::new(0),
            loads_fail: AtomicBool::new(false),
            writes_fail: AtomicBool::new(false),
            leases_hang: AtomicBool::new(false),
            died: Semaphore::new(0),
        })
    }

    /// A store whose appends share one fate, decided without awaiting.
    pub fn deciding(
        inner: Arc<dyn Store>,
        decide: impl Fn(usize, &[Draft]) -> Fate + Send + Sync + 'static,
    ) -> Arc<Self> {
        let hook: Hook = Box::new(move |n, drafts| std::future::ready(decide(n, &drafts)).boxed());
        Self::new(inner, hook)
    }

    /// Waits until the process is to be dead.
    pub async fn died(&self) {
        self.died.acquire().await.unwrap().forget();
    }

    /// Whoever waits for the death from now on learns of it, too.
    pub fn stay_dead(&self) {
        self.died.add_permits(1);
    }

    /// How many appends there were.
    pub fn appends(&self) -> usize {
        self.appends.load(Ordering::SeqCst)
    }

    /// Whether reading fails.
    pub fn set_loads_fail(&self, fail: bool) {
        self.loads_fail.store(fail, Ordering::SeqCst);
    }

    /// Whether writing fails: events, and leases.
    pub fn set_writes_fail(&self, fail: bool) {
        self.writes_fail.store(fail, Ordering::SeqCst);
    }

    /// From now on, whoever takes a lease is answered never.
    pub fn let_leases_hang(&self) {
        self.leases_hang.store(true, Ordering::SeqCst);
    }

    fn expect_writable(&self, attempt: &str) -> Result<(), StoreError> {
        if self.writes_fail.load(Ordering::SeqCst) {
            return Err(io_error(attempt));
        }
        Ok(())
    }

    async fn die<T>(&self) -> T {
        self.died.add_permits(1);
        std::future::pending().await
    }
}

fn io_error(attempt: &str) -> StoreError {
    StoreError::Io {
        attempt: attempt.to_owned(),
        source: Box::new(std::io::Error::other("scripted disk failure")),
    }
}

impl Store for Watched {
    fn append<'a>(
        &'a self,
        session: &'a SessionId,
        expected_seq: u64,
        drafts: Vec<Draft>,
        time: u64,
        durability: Durability,
        hold: Hold,
    ) -> BoxFuture<'a, Result<Appended, StoreError>> {
        async move {
            self.expect_writable("writing the ledger")?;
            let n = self.appends.fetch_add(1, Ordering::SeqCst) + 1;
            let fate = (self.hook)(n, drafts.clone()).await;
            let written = || self.inner.append(session, expected_seq, drafts, time, durability, hold);
            match fate {
                Fate::Write => written().await,
                Fate::Fail => Err(io_error("writing the ledger")),
                Fate::Refuse => Err(StoreError::Format("refused in a test".to_owned())),
                Fate::DieBefore => self.die().await,
                Fate::DieAfter => {
                    // A death after an append that was refused is a death all the same.
                    let _ = written().await;
                    self.die().await
                }
            }
        }
        .boxed()
    }

    fn load<'a>(&'a self, session: &'a SessionId, after_seq: u64) -> BoxFuture<'a, Result<Vec<Event>, StoreError>> {
        if self.loads_fail.load(Ordering::SeqCst) {
            return std::future::ready(Err(io_error("reading the ledger"))).boxed();
        }
        self.inner.load(session, after_seq)
    }

    fn load_raw<'a>(
        &'a self,
        session: &'a SessionId,
        after_seq: u64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<RawEvent>, StoreError>> {
        self.inner.load_raw(session, after_seq, limit)
    }

    fn list<'a>(&'a self, filter: SessionFilter) -> BoxFuture<'a, Result<Vec<SessionSummary>, StoreError>> {
        self.inner.list(filter)
    }

    fn find<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<SessionId, StoreError>> {
        self.inner.find(prefix)
    }

    fn typed<'a>(&'a self, lines_max: usize, not_by: &'a str) -> BoxFuture<'a, Result<Vec<TypedLine>, StoreError>> {
        self.inner.typed(lines_max, not_by)
    }

    fn continuation<'a>(&'a self, id: &'a ContinuationId) -> BoxFuture<'a, Result<Option<Pending>, StoreError>> {
        self.inner.continuation(id)
    }

    fn waiting_under<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<Option<Pending>, StoreError>> {
        self.inner.waiting_under(session)
    }

    fn waiting_count(&self) -> BoxFuture<'_, Result<WaitingCount, StoreError>> {
        self.inner.waiting_count()
    }

    fn expired<'a>(&'a self, now: u64, limit: usize) -> BoxFuture<'a, Result<Vec<Pending>, StoreError>> {
        self.inner.expired(now, limit)
    }

    fn abandoned<'a>(
        &'a self,
        quiet_since: u64,
        now: u64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<SessionId>, StoreError>> {
        self.inner.abandoned(quiet_since, now, limit)
    }

    fn request<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<KnownRequest>, StoreError>> {
        self.inner.request(key)
    }

    fn search<'a>(&'a self, query: &'a str, limit: usize) -> BoxFuture<'a, Result<Vec<Hit>, StoreError>> {
        self.inner.search(query, limit)
    }

    fn news(&self, since: u64) -> BoxFuture<'_, Result<u64, StoreError>> {
        self.inner.news(since)
    }

    fn acquire<'a>(
        &'a self,
        session: &'a SessionId,
        owner: &'a Owner,
        now: u64,
        until: u64,
    ) -> BoxFuture<'a, Result<Lease, StoreError>> {
        async move {
            self.expect_writable("taking a lease")?;
            if self.leases_hang.load(Ordering::SeqCst) {
                std::future::pending::<()>().await;
            }
            self.inner.acquire(session, owner, now, until).await
        }
        .boxed()
    }

    fn renew<'a>(&'a self, lease: &'a Lease, until: u64) -> BoxFuture<'a, Result<(), StoreError>> {
        self.inner.renew(lease, until)
    }

    fn release<'a>(&'a self, lease: &'a Lease) -> BoxFuture<'a, Result<(), StoreError>> {
        self.inner.release(lease)
    }
}
