//! The rule of leases, free of any store: who may take the right to drive a session, and with which fence.

use crate::{Lease, Owner, StoreError};
use aish_core::id::SessionId;

/// The lease of one session as a store keeps it. It is never removed, so that its fence only grows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LeaseRecord {
    /// Who holds it; none once it was given back.
    pub(crate) owner: Option<Owner>,
    /// How often it changed hands.
    pub(crate) fence: u64,
    /// When it runs out, in milliseconds since the Unix epoch.
    pub(crate) until: u64,
}

impl LeaseRecord {
    /// What the record becomes when `owner` asks for the session at `now`.
    ///
    /// | held by | result |
    /// |---|---|
    /// | nobody yet | fence 1 |
    /// | this owner | the same fence, a later end |
    /// | nobody any more, a dead process, or past its end | the next fence |
    /// | somebody else | refused |
    pub(crate) fn acquire(
        held: Option<&Self>,
        session: &SessionId,
        owner: &Owner,
        now: u64,
        until: u64,
    ) -> Result<Self, StoreError> {
        let fence = match held {
            None => 1,
            Some(record) => match &record.owner {
                None => record.fence.saturating_add(1),
                Some(holder) if holder == owner => record.fence,
                Some(_) if record.is_free(now) => record.fence.saturating_add(1),
                Some(holder) => {
                    return Err(StoreError::Leased {
                        session: session.clone(),
                        owner: holder.describe(),
                    });
                }
            },
        };
        Ok(Self {
            owner: Some(owner.clone()),
            fence,
            until,
        })
    }

    /// True when anybody may take the session at `now`.
    pub(crate) fn is_free(&self, now: u64) -> bool {
        let owner = self.owner.as_ref();
        owner.is_none_or(|owner| self.until <= now || owner.is_known_dead())
    }

    /// The lease that `owner` holds by this record.
    pub(crate) fn lease(&self, session: &SessionId, owner: &Owner) -> Lease {
        Lease {
            session: session.clone(),
            owner: owner.clone(),
            fence: self.fence,
        }
    }

    /// Whether `lease` still is this record's. A lease past its end that nobody took over still is: only a take-over
    /// can make two drivers of one session.
    pub(crate) fn is_held_by(&self, lease: &Lease) -> bool {
        self.fence == lease.fence && self.owner.as_ref() == Some(&lease.owner)
    }
}

/// Refuses a lease that is no longer current.
pub(crate) fn check_current(held: Option<&LeaseRecord>, lease: &Lease) -> Result<(), StoreError> {
    match held {
        Some(record) if record.is_held_by(lease) => Ok(()),
        Some(_) | None => Err(StoreError::LeaseLost(lease.session.clone())),
    }
}
