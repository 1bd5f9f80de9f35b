//! What changes the ledger: appends and leases, each a piece of [`Work`] for a transaction that it may share with others.

use super::derived;
use super::fail::Failure;
use super::group::Work;
use super::read::{last_seq, session_number};
use super::schema::Place;
use super::waiting::storable;
use crate::lease::{LeaseRecord, check_current};
use crate::{Appended, Durability, Hold, Lease, Owner, StoreError};
use aish_core::event::{Draft, Event};
use aish_core::id::SessionId;
use rusqlite::{Connection, OptionalExtension as _, params};

/// [`crate::Store::append`].
pub(super) struct Append {
    session: SessionId,
    expected_seq: u64,
    /// In the places that they have if nobody else was faster.
    events: Vec<Event>,
    /// Milliseconds since the Unix epoch: when a lease that is taken with it begins.
    time: u64,
    durability: Durability,
    hold: Hold,
    /// The lease that is taken with it, once it is.
    taken: Option<Lease>,
}

impl Append {
    pub(super) fn new(
        session: &SessionId,
        expected_seq: u64,
        drafts: Vec<Draft>,
        time: u64,
        durability: Durability,
        hold: Hold,
    ) -> Self {
        let seqs = (1..).map(|n: u64| expected_seq.saturating_add(n));
        let placed = seqs.zip(drafts).map(|(seq, draft)| draft.place(session, seq, time));
        Self {
            session: session.clone(),
            expected_seq,
            events: placed.collect(),
            time,
            durability,
            hold,
            taken: None,
        }
    }

    /// Takes the lease, or gives it back, as the append was asked to.
    fn hand_over(&mut self, connection: &Connection) -> Result<(), Failure> {
        match &self.hold {
            Hold::Nothing | Hold::Keeps(_) => {}
            Hold::GivesBack(lease) => release(connection, lease)?,
            Hold::Takes { owner, until } => {
                // It may be made again after it was undone.
                self.taken = None;
                let held = lease_record(connection, &self.session)?;
                if let Some(record) = LeaseRecord::take(held.as_ref(), owner, self.time, *until) {
                    keep(connection, &self.session, &record)?;
                    self.taken = Some(record.lease(&self.session, owner));
                }
            }
        }
        Ok(())
    }
}

impl Work for Append {
    type Made = Appended;

    const ATTEMPT: &'static str = "appending to";

    fn durability(&self) -> Durability {
        self.durability
    }

    fn make(&mut self, connection: &Connection) -> Result<(), Failure> {
        if let Some(lease) = self.hold.lease() {
            check_current(lease_record(connection, &lease.session)?.as_ref(), lease)?;
        }
        let known = session_number(connection, &self.session)?;
        let actual = match known {
            Some(number) => last_seq(connection, number)?,
            None => 0,
        };
        if actual != self.expected_seq {
            return Err(Failure::Store(StoreError::Conflict {
                session: self.session.clone(),
                expected: self.expected_seq,
                actual,
            }));
        }
        let Some(last) = self.events.last() else {
            return Ok(());
        };
        if last.seq > Place::SEQ_MAX {
            return Err(Failure::Store(StoreError::Format(format!(
                "session {} is full: it has {actual} events. Start a new one",
                self.session
            ))));
        }
        let number = match known {
            Some(number) => number,
            None => connection
                .prepare_cached("INSERT INTO sessions (id) VALUES (?1)")?
                .insert([self.session.as_str()])?,
        };
        insert(connection, number, &self.events)?;
        derived::follow(connection, number, &self.events)?;
        self.hand_over(connection)
    }

    fn made(self) -> Appended {
        Appended {
            lease: self.taken.or(self.hold.left(self.events.len())),
            events: self.events,
        }
    }
}

fn insert(connection: &Connection, number: i64, events: &[Event]) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO events (place, turn, time, version, kind, content, data) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    for event in events {
        let data = event.body.data_json();
        statement.execute(params![
            Place::new(number, event.seq).0,
            event.turn,
            event.time,
            event.version,
            event.body.kind(),
            event.content,
            (data != "null").then_some(data),
        ])?;
    }
    Ok(())
}

/// [`crate::Store::acquire`]. A lease need not outlive a power cut: its owner does not either.
pub(super) struct Acquire {
    session: SessionId,
    owner: Owner,
    now: u64,
    until: u64,
    /// Known once it is taken.
    fence: u64,
}

impl Acquire {
    pub(super) fn new(session: &SessionId, owner: &Owner, now: u64, until: u64) -> Self {
        Self {
            session: session.clone(),
            owner: owner.clone(),
            now,
            until,
            fence: 0,
        }
    }
}

impl Work for Acquire {
    type Made = Lease;

    const ATTEMPT: &'static str = "taking a lease in";

    fn durability(&self) -> Durability {
        Durability::Committed
    }

    fn make(&mut self, connection: &Connection) -> Result<(), Failure> {
        let held = lease_record(connection, &self.session)?;
        let record = LeaseRecord::acquire(held.as_ref(), &self.session, &self.owner, self.now, self.until)?;
        keep(connection, &self.session, &record)?;
        self.fence = record.fence;
        Ok(())
    }

    fn made(self) -> Lease {
        Lease {
            session: self.session,
            owner: self.owner,
            fence: self.fence,
        }
    }
}

/// [`crate::Store::renew`].
pub(super) struct Renew {
    pub(super) lease: Lease,
    pub(super) until: u64,
}

impl Work for Renew {
    type Made = ();

    const ATTEMPT: &'static str = "renewing a lease in";

    fn durability(&self) -> Durability {
        Durability::Committed
    }

    fn make(&mut self, connection: &Connection) -> Result<(), Failure> {
        let lease = &self.lease;
        let changed = connection
            .prepare_cached("UPDATE leases SET until = ?1 WHERE session = ?2 AND owner = ?3 AND fence = ?4")?
            .execute(params![
                storable(self.until),
                lease.session.as_str(),
                lease.owner.0,
                lease.fence
            ])?;
        if changed == 0 {
            return Err(Failure::Store(StoreError::LeaseLost(lease.session.clone())));
        }
        Ok(())
    }

    fn made(self) {}
}

/// [`crate::Store::release`].
pub(super) struct Release(pub(super) Lease);

impl Work for Release {
    type Made = ();

    const ATTEMPT: &'static str = "giving back a lease in";

    fn durability(&self) -> Durability {
        Durability::Committed
    }

    fn make(&mut self, connection: &Connection) -> Result<(), Failure> {
        let Self(lease) = self;
        Ok(release(connection, lease)?)
    }

    fn made(self) {}
}

fn keep(connection: &Connection, session: &SessionId, record: &LeaseRecord) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT OR REPLACE INTO leases (session, owner, fence, until) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![
            session.as_str(),
            record.owner.as_ref().map(|owner| &owner.0),
            record.fence,
            storable(record.until)
        ])?;
    Ok(())
}

/// Without effect if the lease is another's by now.
fn release(connection: &Connection, lease: &Lease) -> rusqlite::Result<()> {
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
