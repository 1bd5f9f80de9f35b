//! The rule of leases, free of any store: who may take the right to drive a session, and with which fence; and what a process
//! remembers of those that it gave back ([`GivenBack`]).

use crate::{Lease, Owner, StoreError};
use aish_core::id::SessionId;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Leases that are remembered as given back.
const GIVEN_BACK_MAX: usize = 10_000;

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

    /// What the record becomes when `owner` takes the session by the way: only if it is nobody's at `now`. `None` if it is somebody's,
    /// also this owner's: whoever of this process drives it is about to give it back.
    pub(crate) fn take(held: Option<&Self>, owner: &Owner, now: u64, until: u64) -> Option<Self> {
        let free = held.is_none_or(|record| record.is_free(now));
        free.then(|| Self {
            owner: Some(owner.clone()),
            fence: held.map_or(0, |record| record.fence).saturating_add(1),
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

/// The leases that this process gave back and has not taken again. A store may hold one for ours all the same: its disk was full, or
/// a database that crashed has forgotten it. No other process takes such a session before the lease runs out, and here somebody has
/// to know that nobody drives it.
#[derive(Debug, Default)]
pub(crate) struct GivenBack(Mutex<HashMap<SessionId, Lease>>);

impl GivenBack {
    /// Notes a lease; to be called before the store is told.
    pub(crate) fn note(&self, lease: &Lease) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= GIVEN_BACK_MAX {
            // A session that is forgotten here has to wait until its lease runs out, if it comes to that at all.
            all.clear();
        }
        all.insert(lease.session.clone(), lease.clone());
    }

    /// Forgets that of a session: it was taken again, or the store has it as given back for good.
    pub(crate) fn forget(&self, session: &SessionId) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.remove(session);
    }

    /// Whether a session's lease, as the store has it, was given back.
    pub(crate) fn has(&self, session: &SessionId, record: &LeaseRecord) -> bool {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(session).is_some_and(|lease| record.is_held_by(lease))
    }
}

/// Refuses a lease that is no longer current.
pub(crate) fn check_current(held: Option<&LeaseRecord>, lease: &Lease) -> Result<(), StoreError> {
    match held {
        Some(record) if record.is_held_by(lease) => Ok(()),
        Some(_) | None => Err(StoreError::LeaseLost(lease.session.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(session: &str) -> Lease {
        Lease {
            session: SessionId::new(session),
            owner: Owner("us".to_owned()),
            fence: 1,
        }
    }

    fn record(owner: &str, fence: u64) -> LeaseRecord {
        LeaseRecord {
            owner: Some(Owner(owner.to_owned())),
            fence,
            until: u64::MAX,
        }
    }

    /// SPEC 2.12: what was given back is nobody's, unless somebody has taken it since, be it with the same fence.
    #[test]
    fn given_back() {
        let (given_back, session) = (GivenBack::default(), SessionId::new("s"));
        assert!(!given_back.has(&session, &record("us", 1)));
        given_back.note(&lease("s"));
        assert!(given_back.has(&session, &record("us", 1)));
        for other in [record("them", 1), record("us", 2)] {
            assert!(!given_back.has(&session, &other), "{other:?}");
        }
        given_back.forget(&session);
        assert!(!given_back.has(&session, &record("us", 1)));
    }

    /// SPEC 12: a process that runs for years remembers no more than it has room for, and the last one always.
    #[test]
    fn what_is_remembered_is_bounded() {
        let given_back = GivenBack::default();
        for n in 0..=GIVEN_BACK_MAX {
            given_back.note(&lease(&n.to_string()));
        }
        let count = given_back.0.lock().map_or(0, |all| all.len());
        assert!((1..=GIVEN_BACK_MAX).contains(&count), "{count}");
        let last = SessionId::new(GIVEN_BACK_MAX.to_string());
        assert!(given_back.has(&last, &record("us", 1)));
    }
}
