//! What the file answers about turns that wait, turns that nobody drives, and requests that were made: the derived tables
//! `pending`, `summaries` and `requests`, read.

use super::fail::Failure;
use super::write::lease_record;
use crate::lease::GivenBack;
use crate::{KnownRequest, Pending, PendingState, WaitingCount};
use aish_core::action::Digest;
use aish_core::id::{CallId, ContinuationId, SessionId};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

/// What [`read_pending`] reads.
macro_rules! select_pending {
    ($rest:literal) => {
        concat!(
            "SELECT sessions.id, continuation, seq, call, expires, state FROM pending JOIN sessions USING (number) ",
            $rest
        )
    };
}

fn read_pending(row: &Row<'_>) -> rusqlite::Result<Pending> {
    Ok(Pending {
        session: SessionId::new(row.get::<_, String>(0)?),
        continuation: ContinuationId::new(row.get::<_, String>(1)?),
        seq: row.get(2)?,
        call: row.get::<_, Option<String>>(3)?.map(CallId::new),
        expires: row.get(4)?,
        state: PendingState::parse(row.get_ref(5)?.as_str()?),
    })
}

/// What became of a suspension.
pub(super) fn continuation(connection: &Connection, id: &ContinuationId) -> Result<Option<Pending>, Failure> {
    let found = connection
        .prepare_cached(select_pending!("WHERE continuation = ?1"))?
        .query_row([id.as_str()], read_pending)
        .optional()?;
    Ok(found)
}

/// The suspension that a session waits under.
pub(super) fn waiting_under(connection: &Connection, session: &SessionId) -> Result<Option<Pending>, Failure> {
    let found = connection
        .prepare_cached(select_pending!(
            "WHERE sessions.id = ?1 AND state = 'open' ORDER BY seq DESC LIMIT 1"
        ))?
        .query_row([session.as_str()], read_pending)
        .optional()?;
    Ok(found)
}

/// How many sessions wait.
pub(super) fn waiting_count(connection: &Connection) -> Result<WaitingCount, Failure> {
    let count = connection
        .prepare_cached(
            "SELECT count(*) - coalesce(sum(asks), 0), coalesce(sum(asks), 0)
             FROM (SELECT coalesce(max(needs_answer), 0) AS asks
                   FROM summaries LEFT JOIN waiting_calls USING (number) WHERE waiting GROUP BY number)",
        )?
        .query_row([], |row| {
            Ok(WaitingCount {
                client: row.get(0)?,
                approval: row.get(1)?,
            })
        })?;
    Ok(count)
}

/// Suspensions that wait although their time is over.
pub(super) fn expired(connection: &Connection, now: u64, limit: usize) -> Result<Vec<Pending>, Failure> {
    let found = connection
        .prepare_cached(select_pending!("WHERE state = 'open' AND expires <= ?1 LIMIT ?2"))?
        .query_map(params![storable(now), limit], read_pending)?
        .collect::<Result<_, _>>()?;
    Ok(found)
}

/// Turns of clients that nobody drives, also where the lease could not be given back.
pub(super) fn abandoned(
    connection: &Connection,
    quiet_since: u64,
    now: u64,
    given_back: &GivenBack,
    limit: usize,
) -> Result<Vec<SessionId>, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT sessions.id FROM summaries JOIN sessions USING (number)
         WHERE served AND open_turn IS NOT NULL AND NOT waiting AND updated < ?1",
    )?;
    let mut rows = statement.query([storable(quiet_since)])?;
    let mut abandoned = Vec::new();
    while abandoned.len() < limit
        && let Some(row) = rows.next()?
    {
        let session = SessionId::new(row.get::<_, String>(0)?);
        let lease = lease_record(connection, &session)?;
        if lease.is_none_or(|lease| lease.is_free(now) || given_back.has(&session, &lease)) {
            abandoned.push(session);
        }
    }
    Ok(abandoned)
}

/// What was asked under a key.
pub(super) fn request(connection: &Connection, key: &str) -> Result<Option<KnownRequest>, Failure> {
    let found = connection
        .prepare_cached("SELECT sessions.id, seq, digest FROM requests JOIN sessions USING (number) WHERE key = ?1")?
        .query_row([key], |row| {
            Ok(KnownRequest {
                session: SessionId::new(row.get::<_, String>(0)?),
                seq: row.get(1)?,
                digest: Digest::new(row.get::<_, String>(2)?),
            })
        })
        .optional()?;
    Ok(found)
}

/// A number that is another one once another connection has written to the file; only for as long as this one is open.
pub(super) fn data_version(connection: &Connection) -> Result<u32, Failure> {
    Ok(connection
        .prepare_cached("PRAGMA data_version")?
        .query_row([], |row| row.get(0))?)
}

/// SQLite's integers are signed: whatever is past the last one never comes.
pub(super) fn storable(time: u64) -> i64 {
    i64::try_from(time).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use crate::sqlite::SqliteStore;
    use crate::{Durability, Hold, Owner, Store as _};
    use aish_core::event::{Body, Draft};
    use aish_core::id::SessionId;
    use rusqlite::Connection;

    /// SPEC 2.5, 9.5: a lease that could not be given back, as on a full disk, keeps nobody here from going on with the turn.
    #[tokio::test]
    async fn a_release_that_fails_leaves_nobody_driving() {
        let directory = tempfile::tempdir().unwrap();
        let store = SqliteStore::new(directory.path().join("ledger.db"));
        let (session, us) = (SessionId::new("s"), Owner::this_process());
        let begun = Body::decode("turn_started", r#"{"served": {}}"#).unwrap();
        let drafts = vec![Draft::new(1, "go", begun)];
        store
            .append(&session, 0, drafts, 1, Durability::Committed, Hold::Nothing)
            .await
            .unwrap();
        let lease = store.acquire(&session, &us, 1, u64::MAX).await.unwrap();
        assert_eq!(store.abandoned(2, 2, 9).await.unwrap(), []);

        let file = Connection::open(store.path()).unwrap();
        let refuses = "CREATE TRIGGER refuses BEFORE UPDATE ON leases BEGIN SELECT RAISE(ABORT, 'full'); END";
        file.execute_batch(refuses).unwrap();
        store.release(&lease).await.unwrap_err();
        file.execute_batch("DROP TRIGGER refuses").unwrap();
        assert_eq!(store.abandoned(2, 2, 9).await.unwrap(), std::slice::from_ref(&session));

        // Whoever takes it again drives it.
        let again = store.acquire(&session, &us, 2, u64::MAX).await.unwrap();
        assert_eq!(store.abandoned(2, 2, 9).await.unwrap(), []);
        store.release(&again).await.unwrap();
        assert_eq!(store.abandoned(2, 2, 9).await.unwrap(), [session]);
    }
}
