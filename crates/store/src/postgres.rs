//! The ledger in a PostgreSQL database, for several servers that share their sessions (SPEC 9.5).
//!
//! [`PostgresStore`] keeps the contract of [`Store`] with every replica as one more process: of two appends one wins, a lease
//! has one holder, and a continuation is claimed once, whichever of them asks. It connects with the first command; the tables
//! are made or brought to this version then, unless the store is [only to look](PostgresStore::only_looking). A database that
//! restarts, or a connection that breaks, is waited for, for a bounded time; what was being appended then is found out, not
//! guessed.
//!
//! What is where: `address` where it is, `password` what lets us in, `tls` its encryption, `pool` connections and patience, `schema` the tables, `write`
//! appends, `placing` their one statement, `derived` the indexes, `rebuild` them again, `lease` leases, `read` loading and listing, `waiting` what is asked about turns that wait and
//! words that were said, `news` word of others' appends, `rows` what stands in a column, `fail` what a failure means.

mod address;
mod derived;
mod fail;
mod lease;
mod news;
mod password;
mod placing;
mod pool;
mod read;
mod rebuild;
mod rows;
mod schema;
mod tls;
mod waiting;
mod write;

pub use address::PostgresUrl;

use crate::lease::GivenBack;
use crate::query::Query;
use crate::{
    Appended, Durability, Hit, Hold, KnownRequest, Lease, Owner, Pending, RawEvent, SessionFilter, SessionSummary,
    Store, StoreError, TypedLine, WaitingCount,
};
use aish_core::event::{Draft, Event};
use aish_core::id::{ContinuationId, SessionId};
use futures_util::future::{BoxFuture, FutureExt as _};
use lease::{Claim, ClockOffset};
use news::News;
use pool::Pool;
use schema::Tables;
use std::sync::Arc;
use write::{Append, Known};

/// A ledger in a database.
///
/// It belongs to the runtime that first awaits one of its methods: its connections are tasks there.
#[derive(Debug)]
pub struct PostgresStore {
    pool: Pool,
    offset: Arc<ClockOffset>,
    news: Arc<News>,
    known: Arc<Known>,
    given_back: Arc<GivenBack>,
}

impl PostgresStore {
    /// The ledger at `url`. Nothing is connected to until the first command.
    ///
    /// # Errors
    /// [`StoreError::Io`] if connections cannot be prepared.
    pub fn new(url: PostgresUrl) -> Result<Self, StoreError> {
        Ok(Self::over(Pool::new(url, Tables::Made)?))
    }

    /// The ledger at `url` for those who only look at it, which may be everybody's: no table is made or changed and no
    /// event written. Commands fail with [`StoreError::Format`] where the tables are not of this version, and so does
    /// whatever would write. Nothing is connected to until the first command.
    ///
    /// # Errors
    /// [`StoreError::Io`] if connections cannot be prepared.
    pub fn only_looking(url: PostgresUrl) -> Result<Self, StoreError> {
        Ok(Self::over(Pool::new(url, Tables::LookedAt)?))
    }

    fn over(pool: Pool) -> Self {
        Self {
            pool,
            offset: Arc::default(),
            news: Arc::new(News::new()),
            known: Arc::default(),
            given_back: Arc::default(),
        }
    }

    /// Where the database is, without its password.
    pub fn url(&self) -> &PostgresUrl {
        &self.pool.url
    }

    /// Whether the database has tables yet, which then are of this version. None are made.
    ///
    /// # Errors
    /// It does not answer, is too old, or its tables are of another version.
    pub async fn has_tables(&self) -> Result<bool, StoreError> {
        self.pool
            .run_as_found("looking at", |client| {
                let url = self.pool.url.clone();
                async move { schema::are_there(client, &url).await }.boxed()
            })
            .await
    }

    /// Whether the database answers and its tables are of this version.
    ///
    /// # Errors
    /// It does not, or they cannot be.
    pub async fn check(&self) -> Result<(), StoreError> {
        self.pool
            .run("reaching", |client| {
                async move {
                    client.simple_query("SELECT 1 FROM aish.format").await?;
                    Ok(())
                }
                .boxed()
            })
            .await
    }

    /// Derives the summaries, the continuations and the keys again, from the events alone.
    ///
    /// # Errors
    /// The database failed; the sessions that were not reached are as before.
    pub async fn rebuild_indexes(&self) -> Result<(), StoreError> {
        let attempt = "rebuilding the indexes of";
        let sessions = self
            .pool
            .run(attempt, |client| async move { rebuild::sessions(client).await }.boxed())
            .await?;
        for session in sessions {
            self.pool
                .run(attempt, |client| {
                    let session = session.clone();
                    async move { rebuild::session(client, &session).await }.boxed()
                })
                .await?;
        }
        Ok(())
    }

    async fn append_all(&self, append: Append) -> Result<Appended, StoreError> {
        let append = Arc::new(append);
        let appended = self
            .pool
            .run("appending to", |client| {
                let (append, known, offset) = (Arc::clone(&append), Arc::clone(&self.known), Arc::clone(&self.offset));
                async move { write::append(client, &append, &known, &offset).await }.boxed()
            })
            .await;
        match appended {
            Ok(lease) => {
                if !append.is_empty() {
                    self.news.announce(&self.pool);
                }
                let events = Arc::try_unwrap(append).map(|append| append.events);
                let events = events.unwrap_or_else(|shared| shared.events.clone());
                Ok(Appended { events, lease })
            }
            Err(StoreError::Io { source, .. }) if append.may_be_kept() => {
                Err(fail::not_known(&self.pool.url, &*source))
            }
            Err(error) => Err(error),
        }
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.news.stop();
    }
}

impl Store for PostgresStore {
    /// Both durabilities are on the database's disk before it returns: see [`Durability`], and this module's `write`. When the
    /// database was lost at the commit and did not come back in time, the error says that nobody knows.
    fn append<'a>(
        &'a self,
        session: &'a SessionId,
        expected_seq: u64,
        drafts: Vec<Draft>,
        time: u64,
        _durability: Durability,
        hold: Hold,
    ) -> BoxFuture<'a, Result<Appended, StoreError>> {
        async move {
            let takes = matches!(hold, Hold::Takes { .. });
            let append = Append::new(session, expected_seq, drafts, time, hold)?;
            let appended = self.append_all(append).await?;
            if takes && appended.lease.is_some() {
                self.given_back.forget(session);
            }
            Ok(appended)
        }
        .boxed()
    }

    fn load<'a>(&'a self, session: &'a SessionId, after_seq: u64) -> BoxFuture<'a, Result<Vec<Event>, StoreError>> {
        self.pool
            .run("reading", move |client| {
                let session = session.clone();
                async move { read::load(client, &session, after_seq).await }.boxed()
            })
            .boxed()
    }

    fn load_raw<'a>(
        &'a self,
        session: &'a SessionId,
        after_seq: u64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<RawEvent>, StoreError>> {
        self.pool
            .run("reading", move |client| {
                let session = session.clone();
                async move { read::load_raw(client, &session, after_seq, limit).await }.boxed()
            })
            .boxed()
    }

    fn list<'a>(&'a self, filter: SessionFilter) -> BoxFuture<'a, Result<Vec<SessionSummary>, StoreError>> {
        self.pool
            .run("listing the sessions of", move |client| {
                let filter = filter.clone();
                async move { read::list(client, &filter).await }.boxed()
            })
            .boxed()
    }

    fn find<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<SessionId, StoreError>> {
        self.pool
            .run("searching", move |client| {
                let prefix = prefix.to_owned();
                async move { read::find(client, &prefix).await }.boxed()
            })
            .boxed()
    }

    fn typed<'a>(&'a self, lines_max: usize, not_by: &'a str) -> BoxFuture<'a, Result<Vec<TypedLine>, StoreError>> {
        self.pool
            .run("looking back in", move |client| {
                let not_by = not_by.to_owned();
                async move { read::typed(client, lines_max, &not_by).await }.boxed()
            })
            .boxed()
    }

    fn continuation<'a>(&'a self, id: &'a ContinuationId) -> BoxFuture<'a, Result<Option<Pending>, StoreError>> {
        self.pool
            .run("searching", move |client| {
                let id = id.clone();
                async move { waiting::continuation(client, &id).await }.boxed()
            })
            .boxed()
    }

    fn waiting_under<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<Option<Pending>, StoreError>> {
        self.pool
            .run("searching", move |client| {
                let session = session.clone();
                async move { waiting::waiting_under(client, &session).await }.boxed()
            })
            .boxed()
    }

    fn waiting_count(&self) -> BoxFuture<'_, Result<WaitingCount, StoreError>> {
        self.pool
            .run("counting", |client| {
                async move { waiting::waiting_count(client).await }.boxed()
            })
            .boxed()
    }

    fn expired<'a>(&'a self, now: u64, limit: usize) -> BoxFuture<'a, Result<Vec<Pending>, StoreError>> {
        self.pool
            .run("searching", move |client| {
                async move { waiting::expired(client, now, limit).await }.boxed()
            })
            .boxed()
    }

    /// Leases run out by the database's clock: `now` is not looked at.
    fn abandoned<'a>(
        &'a self,
        quiet_since: u64,
        _now: u64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<SessionId>, StoreError>> {
        self.pool
            .run("searching", move |client| {
                let given_back = Arc::clone(&self.given_back);
                async move { lease::abandoned(client, quiet_since, &given_back, limit).await }.boxed()
            })
            .boxed()
    }

    fn request<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<KnownRequest>, StoreError>> {
        self.pool
            .run("searching", move |client| {
                let key = key.to_owned();
                async move { waiting::request(client, &key).await }.boxed()
            })
            .boxed()
    }

    fn search<'a>(&'a self, query: &'a str, limit: usize) -> BoxFuture<'a, Result<Vec<Hit>, StoreError>> {
        let query = Arc::new(Query::parse(query));
        self.pool
            .run("searching", move |client| {
                let query = Arc::clone(&query);
                async move { waiting::search(client, &query, limit).await }.boxed()
            })
            .boxed()
    }

    fn news(&self, since: u64) -> BoxFuture<'_, Result<u64, StoreError>> {
        self.news.since(since, &self.pool.url).boxed()
    }

    /// By the database's clock, for as long as is between `now` and `until`.
    fn acquire<'a>(
        &'a self,
        session: &'a SessionId,
        owner: &'a Owner,
        now: u64,
        until: u64,
    ) -> BoxFuture<'a, Result<Lease, StoreError>> {
        let claim = Arc::new(Claim {
            session: session.clone(),
            owner: owner.clone(),
            now,
            until,
        });
        async move {
            let taken = self.pool.run("taking a lease in", |client| {
                let (claim, offset) = (Arc::clone(&claim), Arc::clone(&self.offset));
                async move { lease::acquire(client, &claim, &offset).await }.boxed()
            });
            let lease = taken.await?;
            self.given_back.forget(session);
            Ok(lease)
        }
        .boxed()
    }

    fn renew<'a>(&'a self, lease: &'a Lease, until: u64) -> BoxFuture<'a, Result<(), StoreError>> {
        self.pool
            .run("renewing a lease in", move |client| {
                let (lease, until) = (lease.clone(), self.offset.by_database(until));
                async move { lease::renew(client, &lease, until).await }.boxed()
            })
            .boxed()
    }

    fn release<'a>(&'a self, lease: &'a Lease) -> BoxFuture<'a, Result<(), StoreError>> {
        self.given_back.note(lease);
        // What is not given back is over in a minute; a client may wait for what comes after this.
        self.pool
            .run_briefly("giving back a lease in", move |client| {
                let lease = lease.clone();
                async move { lease::release(client, &lease).await }.boxed()
            })
            .boxed()
    }
}
