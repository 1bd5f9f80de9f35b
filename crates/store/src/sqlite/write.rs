//! What changes the ledger: appends and leases, each one transaction that begins by taking the write lock, so that what
//! it checks is still true when it commits.

use super::derived;
use super::fail::Failure;
use super::read::{last_seq, session_number};
use super::schema::Place;
use super::waiting::storable;
use crate::lease::{LeaseRecord, check_current};
use crate::{Lease, Owner, StoreError};
use aish_core::event::{Draft, Event};
use aish_core::id::SessionId;
use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};

/// The arguments of [`crate::Store::append`].
pub(super) struct Append<'a> {
    pub(super) session: &'a SessionId,
    pub(super) expected_seq: u64,
    pub(super) drafts: Vec<Draft>,
    pub(super) time: u64,
    pub(super) lease: Option<&'a Lease>,
}

pub(super) fn append(connection: &mut Connection, append: Append<'_>) -> Result<Vec<Event>, Failure> {
    let transaction = Transaction::new(connection, TransactionBehavior::Immediate)?;
    if let Some(lease) = append.lease {
        check_current(lease_record(&transaction, &lease.session)?.as_ref(), lease)?;
    }
    let known = session_number(&transaction, append.session)?;
    let actual = match known {
        Some(number) => last_seq(&transaction, number)?,
        None => 0,
    };
    if actual != append.expected_seq {
        return Err(Failure::Store(StoreError::Conflict {
            session: append.session.clone(),
            expected: append.expected_seq,
            actual,
        }));
    }
    if append.drafts.is_empty() {
        return Ok(Vec::new());
    }
    let number = match known {
        Some(number) => number,
        None => transaction
            .prepare_cached("INSERT INTO sessions (id) VALUES (?1)")?
            .insert([append.session.as_str()])?,
    };
    let mut placed = Vec::with_capacity(append.drafts.len());
    for (seq, draft) in (actual + 1..).zip(append.drafts) {
        if seq > Place::SEQ_MAX {
            return Err(Failure::Store(StoreError::Format(format!(
                "session {} is full: it has {actual} events. Start a new one",
                append.session
            ))));
        }
        let event = draft.place(append.session, seq, append.time);
        insert(&transaction, number, &event)?;
        placed.push(event);
    }
    derived::follow(&transaction, number, &placed)?;
    transaction.commit()?;
    Ok(placed)
}

fn insert(transaction: &Transaction<'_>, number: i64, event: &Event) -> rusqlite::Result<()> {
    let data = event.body.data_json();
    let mut statement = transaction.prepare_cached(
        "INSERT INTO events (place, turn, time, version, kind, content, data) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    statement.execute(params![
        Place::new(number, event.seq).0,
        event.turn,
        event.time,
        event.version,
        event.body.kind(),
        event.content,
        (data != "null").then_some(data),
    ])?;
    Ok(())
}

pub(super) fn acquire(
    connection: &mut Connection,
    session: &SessionId,
    owner: &Owner,
    now: u64,
    until: u64,
) -> Result<Lease, Failure> {
    let transaction = Transaction::new(connection, TransactionBehavior::Immediate)?;
    let held = lease_record(&transaction, session)?;
    let record = LeaseRecord::acquire(held.as_ref(), session, owner, now, until)?;
    transaction
        .prepare_cached("INSERT OR REPLACE INTO leases (session, owner, fence, until) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![session.as_str(), owner.0, record.fence, storable(record.until)])?;
    transaction.commit()?;
    Ok(record.lease(session, owner))
}

pub(super) fn renew(connection: &mut Connection, lease: &Lease, until: u64) -> Result<(), Failure> {
    let changed = connection
        .prepare_cached("UPDATE leases SET until = ?1 WHERE session = ?2 AND owner = ?3 AND fence = ?4")?
        .execute(params![
            storable(until),
            lease.session.as_str(),
            lease.owner.0,
            lease.fence
        ])?;
    if changed == 0 {
        return Err(Failure::Store(StoreError::LeaseLost(lease.session.clone())));
    }
    Ok(())
}

pub(super) fn release(connection: &mut Connection, lease: &Lease) -> Result<(), Failure> {
    connection
        .prepare_cached("UPDATE leases SET owner = NULL WHERE session = ?1 AND owner = ?2 AND fence = ?3")?
        .execute(params![lease.session.as_str(), lease.owner.0, lease.fence])?;
    Ok(())
}

pub(super) fn lease_record(connection: &Connection, session: &SessionId) -> rusqlite::Result<Option<LeaseRecord>> {
    connection
        .prepare_cached("SELECT owner, fence, until FROM leases WHERE session = ?1")?
        .query_row([session.as_str()], |row| {
            Ok(LeaseRecord {
                owner: row.get::<_, Option<String>>(0)?.map(Owner),
                fence: row.get(1)?,
                until: row.get(2)?,
            })
        })
        .optional()
}
