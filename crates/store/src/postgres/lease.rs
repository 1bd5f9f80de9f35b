//! Leases, by the clock of the database.
//!
//! Replicas' clocks differ, and a lease that one of them calls over may be another's that is in the middle of something. So
//! only the *length* of a lease is taken from its owner (`until - now`), and begins, is extended and runs out as the database's
//! clock says. A renewal tells no `now`: how far the owner's clock is off was seen when it took the lease.

use super::fail::Failure;
use super::rows::{signed, storable, unsigned};
use crate::lease::{GivenBack, LeaseRecord};
use crate::{Lease, Owner, StoreError};
use aish_core::id::SessionId;
use deadpool_postgres::{GenericClient, Object, Transaction};
use std::sync::atomic::{AtomicI64, Ordering};
use tokio_postgres::Row;

/// Milliseconds since the Unix epoch, by the database.
pub(super) const DATABASE_NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// The end of a lease that does not end, and its length.
const UNENDING: i64 = i64::MAX;

/// When a lease ends by the database's clock, from a parameter: see [`lasts_ms`].
pub(super) fn ends(parameter: &str) -> String {
    format!("CASE WHEN {parameter} = {UNENDING} THEN {UNENDING} ELSE {DATABASE_NOW} + {parameter} END")
}

/// How long a lease lasts, by its owner's clock.
pub(super) fn lasts_ms(now: u64, until: u64) -> i64 {
    match until {
        u64::MAX => UNENDING,
        until => signed(until.saturating_sub(now)),
    }
}

/// Has a statement's commit not wait for the disk. A lease need not outlive the database: whoever lost one by its crash is refused by
/// the next append, since that looks for owner and fence, and an append that is on the disk has the lease before it there as well.
const IN_NO_HURRY: &str = "set_config('synchronous_commit', 'off', true) = 'off'";

/// Turns that are looked at for one that nobody drives: more than all replicas can drive at once.
const LOOKED_AT_MAX: usize = 10_000;

/// By how many milliseconds the database's clock is ahead of ours, as last seen.
#[derive(Debug, Default)]
pub(super) struct ClockOffset(AtomicI64);

impl ClockOffset {
    /// To be told each time a lease is taken.
    pub(super) fn note(&self, database_now: u64, our_now: u64) {
        let ahead = signed(database_now).saturating_sub(signed(our_now));
        self.0.store(ahead, Ordering::Relaxed);
    }

    /// Our moment by the database's clock. The end of time is the same for all.
    pub(super) fn by_database(&self, moment: u64) -> i64 {
        match i64::try_from(moment) {
            Ok(moment) if moment < i64::MAX => moment.saturating_add(self.0.load(Ordering::Relaxed)),
            Ok(_) | Err(_) => i64::MAX,
        }
    }
}

/// What an owner asks for.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    pub(super) session: SessionId,
    pub(super) owner: Owner,
    /// By the owner's clock.
    pub(super) now: u64,
    /// Likewise.
    pub(super) until: u64,
}

/// A row of `owner, fence, until`.
fn record(row: &Row) -> Result<LeaseRecord, Failure> {
    Ok(LeaseRecord {
        owner: row.try_get::<_, Option<String>>(0)?.map(Owner),
        fence: unsigned(row.try_get(1)?),
        until: unsigned(row.try_get(2)?),
    })
}

/// The lease as it stands, and will until the transaction ends: a take-over has to wait.
pub(super) async fn locked(
    transaction: &Transaction<'_>,
    session: &SessionId,
    lock: &'static str,
) -> Result<Option<LeaseRecord>, Failure> {
    let select = transaction
        .prepare_cached(&format!(
            "SELECT owner, fence, until FROM aish.leases WHERE session = $1 {lock}"
        ))
        .await?;
    let row = transaction.query_opt(&select, &[&storable(session.as_str())]).await?;
    row.as_ref().map(record).transpose()
}

/// Takes a lease.
pub(super) async fn acquire(client: &mut Object, claim: &Claim, offset: &ClockOffset) -> Result<Lease, Failure> {
    match take(client, claim, offset).await? {
        Some(lease) => Ok(lease),
        None => ask_for(client, claim, offset).await,
    }
}

/// A lease that is to be had as the database sees it (the rule is that of [`LeaseRecord::acquire`]), by one statement. What it cannot
/// see is whether the owner of another one is dead.
async fn take(client: &Object, claim: &Claim, offset: &ClockOffset) -> Result<Option<Lease>, Failure> {
    let ends = ends("$3::bigint");
    let statement = client
        .prepare_cached(&format!(
            "INSERT INTO aish.leases AS held (session, owner, fence, until)
             SELECT $1, $2, 1, {ends} WHERE {IN_NO_HURRY}
             ON CONFLICT (session) DO UPDATE SET owner = excluded.owner, until = {ends},
                 fence = held.fence + CASE WHEN held.owner = excluded.owner THEN 0 ELSE 1 END
             WHERE held.owner IS NULL OR held.owner = excluded.owner OR held.until <= {DATABASE_NOW}
             RETURNING fence, {DATABASE_NOW}"
        ))
        .await?;
    let lasts_ms = lasts_ms(claim.now, claim.until);
    let (session, owner) = (storable(claim.session.as_str()), storable(&claim.owner.0));
    let Some(row) = client.query_opt(&statement, &[&session, &owner, &lasts_ms]).await? else {
        return Ok(None);
    };
    offset.note(unsigned(row.try_get(1)?), claim.now);
    Ok(Some(Lease {
        session: claim.session.clone(),
        owner: claim.owner.clone(),
        fence: unsigned(row.try_get(0)?),
    }))
}

/// Takes the lease of an owner who is dead, as only this machine can tell.
async fn ask_for(client: &mut Object, claim: &Claim, offset: &ClockOffset) -> Result<Lease, Failure> {
    let transaction = GenericClient::transaction(client).await?;
    let session = storable(claim.session.as_str());
    let select = transaction
        .prepare_cached("SELECT owner, fence, until FROM aish.leases WHERE session = $1 FOR UPDATE")
        .await?;
    // A lease was in the way, and none is ever removed.
    let Some(row) = transaction.query_opt(&select, &[&session]).await? else {
        return Err(Failure::Raced);
    };
    // Asked once the row is ours: waiting for it takes time as well.
    let clock = transaction.prepare_cached(&format!("SELECT {DATABASE_NOW}")).await?;
    let now = unsigned(transaction.query_one(&clock, &[]).await?.try_get(0)?);
    offset.note(now, claim.now);
    let until = match claim.until {
        u64::MAX => u64::MAX,
        until => now.saturating_add(until.saturating_sub(claim.now)),
    };
    let record = LeaseRecord::acquire(Some(&record(&row)?), &claim.session, &claim.owner, now, until)?;
    let update = transaction
        .prepare_cached("UPDATE aish.leases SET owner = $2, fence = $3, until = $4 WHERE session = $1")
        .await?;
    transaction
        .execute(
            &update,
            &[
                &session,
                &storable(&claim.owner.0),
                &signed(record.fence),
                &signed(record.until),
            ],
        )
        .await?;
    // If the answer to this is lost, asking again finds the lease its owner's already.
    transaction.commit().await?;
    Ok(record.lease(&claim.session, &claim.owner))
}

/// Extends a lease to a moment by the database's clock.
pub(super) async fn renew(client: &Object, lease: &Lease, until: i64) -> Result<(), Failure> {
    let update = client
        .prepare_cached("UPDATE aish.leases SET until = $4 WHERE session = $1 AND owner = $2 AND fence = $3")
        .await?;
    let (session, owner) = (storable(lease.session.as_str()), storable(&lease.owner.0));
    let renewed = client
        .execute(&update, &[&session, &owner, &signed(lease.fence), &until])
        .await?;
    if renewed == 0 {
        return Err(Failure::Store(StoreError::LeaseLost(lease.session.clone())));
    }
    Ok(())
}

/// Gives a lease back, if it still is this one. As nobody waits for the disk here, a database that crashes may hold it for its owner
/// again: see [`GivenBack`].
pub(super) async fn release(client: &Object, lease: &Lease) -> Result<(), Failure> {
    let update = client
        .prepare_cached(&format!(
            "UPDATE aish.leases SET owner = NULL WHERE session = $1 AND owner = $2 AND fence = $3 AND {IN_NO_HURRY}"
        ))
        .await?;
    let (session, owner) = (storable(lease.session.as_str()), storable(&lease.owner.0));
    client
        .execute(&update, &[&session, &owner, &signed(lease.fence)])
        .await?;
    Ok(())
}

/// Sessions that were quiet since a moment, whose turn a client began and nobody drives: no lease, or one that is over by the
/// database's clock, of a dead owner, or given back by this process.
pub(super) async fn abandoned(
    client: &Object,
    quiet_since: u64,
    given_back: &GivenBack,
    limit: usize,
) -> Result<Vec<SessionId>, Failure> {
    let select = client
        .prepare_cached(&format!(
            "SELECT owner, coalesce(fence, 0), coalesce(until, 0), id, {DATABASE_NOW}
             FROM aish.sessions LEFT JOIN aish.leases ON leases.session = sessions.id
             WHERE to_drive AND updated < $1 ORDER BY updated LIMIT {LOOKED_AT_MAX}"
        ))
        .await?;
    let rows = client.query(&select, &[&signed(quiet_since)]).await?;
    let mut abandoned = Vec::new();
    for row in &rows {
        if abandoned.len() >= limit {
            break;
        }
        let (record, session) = (record(row)?, SessionId::new(row.try_get::<_, String>(3)?));
        if record.is_free(unsigned(row.try_get(4)?)) || given_back.has(&session, &record) {
            abandoned.push(session);
        }
    }
    Ok(abandoned)
}
