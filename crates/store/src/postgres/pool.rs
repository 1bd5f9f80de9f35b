//! The connections to the database, and the patience with it.
//!
//! There are at most [`CONNECTIONS_MAX`], made when they are needed. A piece of work gets one for a bounded time. If the
//! connection fails, or the database says that it may go better in a moment (it restarts, or a deadlock was cut), the whole piece
//! is tried again with growing pauses, until [`PATIENCE_MS`] are over: pieces of work are written so that this is harmless.
//! Connections of a ledger that is only looked at are read-only, whatever the work: it is the database that refuses what would
//! write.
//!
//! | wait | limit |
//! |---|---|
//! | for a connection of the pool to be free | [`FREE_WAIT_MS`] |
//! | for one to be made | [`CREATE_MS`] |
//! | for a row that another transaction holds | [`LOCK_WAIT_MS`], by the server |
//! | for a statement | [`STATEMENT_MS`], by the server |
//! | of the server for us, inside a transaction | [`IDLE_IN_TRANSACTION_MS`] |
//! | for a piece of work, whatever it does | [`WORK_MS`] |

use super::address::PostgresUrl;
use super::fail::Failure;
use super::schema::{self, Tables};
use crate::StoreError;
use deadpool_postgres::{Hook, HookError, Manager, ManagerConfig, Object, RecyclingMethod, Runtime};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OnceCell;
use tokio::time::{Instant, sleep, timeout};

/// Connections of one process. PostgreSQL has a hundred for all unless it is told otherwise.
const CONNECTIONS_MAX: usize = 16;
/// See the module's head.
const FREE_WAIT_MS: u64 = 10_000;
/// See the module's head.
const CREATE_MS: u64 = 10_000;
/// See the module's head.
const LOCK_WAIT_MS: u64 = 10_000;
/// See the module's head.
const STATEMENT_MS: u64 = 30_000;
/// A process that was stopped in the middle must not hold a session up for longer; see the module's head.
const IDLE_IN_TRANSACTION_MS: u64 = 10_000;
/// See the module's head.
const WORK_MS: u64 = 45_000;

/// How long a database that was there is waited for.
const PATIENCE_MS: u64 = 20_000;
/// How long one that never was there is: its address may be wrong.
const FIRST_PATIENCE_MS: u64 = 5_000;
/// How long one is for work that may as well be left undone.
const BRIEF_PATIENCE_MS: u64 = 2_000;
/// The first pause between two attempts; each further one is twice as long.
const PAUSE_MS_MIN: u64 = 20;
/// The longest.
const PAUSE_MS_MAX: u64 = 1_000;

/// The connections to one database.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    pub(super) url: PostgresUrl,
    tables: Tables,
    connections: deadpool_postgres::Pool,
    /// Set once the database was found to be a ledger of this version.
    is_prepared: Arc<OnceCell<()>>,
}

/// What a piece of work finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Tables of this version.
    Prepared,
    /// Whatever is there.
    AsFound,
}

impl Pool {
    /// Connects nowhere yet.
    pub(super) fn new(url: PostgresUrl, tables: Tables) -> Result<Self, StoreError> {
        let recycling = ManagerConfig {
            recycling_method: RecyclingMethod::Fast,
        };
        let manager = Manager::from_config(url.config.clone(), url.tls.clone(), recycling);
        let connections = deadpool_postgres::Pool::builder(manager)
            .max_size(CONNECTIONS_MAX)
            .wait_timeout(Some(Duration::from_millis(FREE_WAIT_MS)))
            .create_timeout(Some(Duration::from_millis(CREATE_MS)))
            .recycle_timeout(Some(Duration::from_millis(CREATE_MS)))
            .runtime(Runtime::Tokio1)
            .post_create(Hook::async_fn(move |client, _| {
                Box::pin(async move {
                    let told = client.batch_execute(&settings(tables)).await;
                    told.map_err(HookError::Backend)
                })
            }))
            .build()
            .map_err(|error| StoreError::Io {
                attempt: format!("preparing connections to the ledger {url}"),
                source: Box::new(error),
            })?;
        Ok(Self {
            url,
            tables,
            connections,
            is_prepared: Arc::default(),
        })
    }

    /// Has `work` done with a connection, again and again while it fails for reasons that pass. `attempt` reads like
    /// `appending to`.
    pub(super) async fn run<T>(
        &self,
        attempt: &str,
        work: impl for<'c> Fn(&'c mut Object) -> BoxFuture<'c, Result<T, Failure>> + Send + Sync,
    ) -> Result<T, StoreError> {
        self.patiently(attempt, (Stage::Prepared, PATIENCE_MS), work).await
    }

    /// The same for work that is not worth a wait: what it would mend mends itself, and somebody waits for what comes after it.
    pub(super) async fn run_briefly<T>(
        &self,
        attempt: &str,
        work: impl for<'c> Fn(&'c mut Object) -> BoxFuture<'c, Result<T, Failure>> + Send + Sync,
    ) -> Result<T, StoreError> {
        self.patiently(attempt, (Stage::Prepared, BRIEF_PATIENCE_MS), work)
            .await
    }

    /// The same before anybody has looked at the tables, or made them.
    pub(super) async fn run_as_found<T>(
        &self,
        attempt: &str,
        work: impl for<'c> Fn(&'c mut Object) -> BoxFuture<'c, Result<T, Failure>> + Send + Sync,
    ) -> Result<T, StoreError> {
        self.patiently(attempt, (Stage::AsFound, PATIENCE_MS), work).await
    }

    async fn patiently<T>(
        &self,
        attempt: &str,
        (stage, patience_ms): (Stage, u64),
        work: impl for<'c> Fn(&'c mut Object) -> BoxFuture<'c, Result<T, Failure>> + Send + Sync,
    ) -> Result<T, StoreError> {
        let patience_ms = if self.is_prepared.initialized() {
            patience_ms
        } else {
            patience_ms.min(FIRST_PATIENCE_MS)
        };
        let until = Instant::now() + Duration::from_millis(patience_ms);
        let mut pause_ms = PAUSE_MS_MIN;
        loop {
            let failure = match self.once(stage, &work).await {
                Ok(done) => return Ok(done),
                Err(failure) => failure,
            };
            if self.tables == Tables::LookedAt && failure.is_read_only() {
                return Err(StoreError::Format(format!(
                    "{attempt} the ledger {}: it was opened to look at, and nothing can be written to it",
                    self.url
                )));
            }
            if !failure.is_passing() || Instant::now() >= until {
                return Err(failure.explain(attempt, &self.url));
            }
            sleep(jittered(pause_ms)).await;
            pause_ms = PAUSE_MS_MAX.min(pause_ms * 2);
        }
    }

    async fn once<T>(
        &self,
        stage: Stage,
        work: &(impl for<'c> Fn(&'c mut Object) -> BoxFuture<'c, Result<T, Failure>> + Send + Sync),
    ) -> Result<T, Failure> {
        let mut connection = self.connections.get().await?;
        let all = async {
            match stage {
                Stage::Prepared => {
                    self.is_prepared
                        .get_or_try_init(|| schema::prepare(&mut connection, self.tables, &self.url))
                        .await?;
                }
                Stage::AsFound => {}
            }
            work(&mut connection).await
        };
        let result = timeout(Duration::from_millis(WORK_MS), all)
            .await
            .unwrap_or(Err(Failure::Late("the database")));
        if let Err(failure) = &result
            && !failure.leaves_connection()
        {
            // Nobody else is to have it.
            drop(Object::take(connection));
        }
        result
    }
}

/// What every connection is told once. Where the database is told to answer a commit before it is on the disk, it is not for
/// us: a server that crashes must not take back what was acknowledged while this process lives on. What waits for a replica as
/// well is left to it.
fn settings(tables: Tables) -> String {
    let only_looks = match tables {
        // What the database is told for everybody holds.
        Tables::Made => "",
        Tables::LookedAt => "SET default_transaction_read_only = on;",
    };
    format!(
        "SET statement_timeout = {STATEMENT_MS};
         SET lock_timeout = {LOCK_WAIT_MS};
         SET idle_in_transaction_session_timeout = {IDLE_IN_TRANSACTION_MS};
         SET client_min_messages = error;
         SET default_transaction_isolation = 'read committed';
         {only_looks}
         SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
    )
}

/// Between half of the pause and all of it, so that those who failed together do not come back together.
fn jittered(pause_ms: u64) -> Duration {
    let random = getrandom::u64().unwrap_or_default();
    Duration::from_millis(pause_ms / 2 + random % (pause_ms / 2 + 1))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    /// SPEC 9.5, 10.5: a database that is gone is waited for where something is to be kept, and hardly where a lease is given back:
    /// who is to be told that it is gone has waited already.
    #[tokio::test(start_paused = true)]
    async fn waiting_for_a_database_that_is_gone() {
        let url = PostgresUrl::parse("postgres://ann@%2Fnowhere/aish").unwrap();
        let pool = Pool::new(url, Tables::Made).unwrap();
        pool.is_prepared.set(()).unwrap();
        let begun = Instant::now();
        let failed = pool.run("appending to", |_| async { Ok(()) }.boxed()).await;
        let waited = begun.elapsed();
        assert!(
            failed.is_err() && waited >= Duration::from_millis(PATIENCE_MS),
            "{waited:?}"
        );
        let begun = Instant::now();
        let failed = pool
            .run_briefly("giving back a lease in", |_| async { Ok(()) }.boxed())
            .await;
        let waited = begun.elapsed();
        let (least, pause) = (
            Duration::from_millis(BRIEF_PATIENCE_MS),
            Duration::from_millis(PAUSE_MS_MAX),
        );
        assert!(
            failed.is_err() && (least..=least + pause).contains(&waited),
            "{waited:?}"
        );
    }
}
