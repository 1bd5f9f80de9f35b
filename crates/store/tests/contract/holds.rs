//! Appends that take a lease, or give it back: what a drive begins and ends with.

use super::{append, contents, fixtures, says, session};
use aish_core::event::Draft;
use aish_store::{Appended, Durability, Hold, Lease, Owner, Store, StoreError};

/// Longer than any test, by whichever clock.
const HOUR_MS: u64 = 3_600_000;
/// When all of it happens, by the owners' clocks.
const NOW_MS: u64 = 1_000;

/// An owner of whom nobody knows whether it lives.
fn owner(name: &str) -> Owner {
    Owner(name.to_owned())
}

fn takes(name: &str) -> Hold {
    Hold::Takes {
        owner: owner(name),
        until: NOW_MS + HOUR_MS,
    }
}

async fn append_as(store: &dyn Store, seq: u64, drafts: Vec<Draft>, hold: Hold) -> Result<Appended, StoreError> {
    store
        .append(&session(1), seq, drafts, NOW_MS, Durability::Committed, hold)
        .await
}

/// One event more, which must be taken: the lease in hand after it.
async fn say_as(store: &dyn Store, seq: u64, hold: Hold) -> Option<Lease> {
    let appended = append_as(store, seq, vec![says("x")], hold).await.unwrap();
    assert_eq!(appended.events.len(), 1);
    appended.lease
}

async fn acquire(store: &dyn Store, name: &str) -> Result<Lease, StoreError> {
    store.acquire(&session(1), &owner(name), NOW_MS, NOW_MS + HOUR_MS).await
}

/// SPEC 2.12: a drive takes the lease with its first append and gives it back with its last; nobody else drives in between, and whoever
/// comes after has the next fence.
#[tokio::test]
async fn a_drive_from_its_first_append_to_its_last() {
    for fixture in fixtures() {
        let (store, name) = (fixture.store.as_ref(), fixture.name);
        let lease = say_as(store, 0, takes("a")).await.expect(name);
        assert_eq!(
            (&lease.session, &lease.owner, lease.fence),
            (&session(1), &owner("a"), 1)
        );
        let refused = acquire(store, "b").await;
        assert!(matches!(refused, Err(StoreError::Leased { .. })), "{name}: {refused:?}");
        assert_eq!(say_as(store, 1, Hold::Keeps(lease.clone())).await, Some(lease.clone()));
        store.renew(&lease, NOW_MS + 2 * HOUR_MS).await.unwrap();
        assert_eq!(say_as(store, 2, Hold::GivesBack(lease.clone())).await, None);
        // A session that was there already is taken in the same way.
        let next = say_as(store, 3, takes("b")).await.expect(name);
        assert_eq!((&next.owner, next.fence), (&owner("b"), 2), "{name}");
        let late = append_as(store, 4, vec![says("late")], Hold::Keeps(lease.clone())).await;
        assert!(matches!(late, Err(StoreError::LeaseLost(_))), "{name}: {late:?}");
        // What was given back long ago gives nothing back.
        store.release(&lease).await.unwrap();
        assert_eq!(say_as(store, 4, Hold::GivesBack(next)).await, None);
        assert_eq!(acquire(store, "c").await.unwrap().fence, 3, "{name}");
    }
}

/// SPEC 2.12: whoever has the lease keeps it, also from another drive of the same process; it is no reason not to append.
#[tokio::test]
async fn a_lease_that_somebody_has_is_not_taken() {
    for fixture in fixtures() {
        let (store, name) = (fixture.store.as_ref(), fixture.name);
        let lease = acquire(store, "a").await.unwrap();
        // A session that is made while its lease is somebody's, and one that was there.
        for (seq, by) in [(0, "b"), (1, "b"), (2, "a")] {
            assert_eq!(say_as(store, seq, takes(by)).await, None, "{name}: {by}");
        }
        assert_eq!(
            say_as(store, 3, Hold::Keeps(lease.clone())).await,
            Some(lease),
            "{name}"
        );
        assert_eq!(acquire(store, "a").await.unwrap().fence, 1, "{name}");
    }
}

/// SPEC 2.12: a lease that has run out is anybody's.
#[tokio::test]
async fn a_lease_that_is_over_is_taken() {
    for fixture in fixtures() {
        let (store, name) = (fixture.store.as_ref(), fixture.name);
        say_as(store, 0, Hold::Nothing).await;
        let over = store
            .acquire(&session(1), &owner("a"), NOW_MS - 1, NOW_MS - 1)
            .await
            .unwrap();
        let next = say_as(store, 1, takes("b")).await.expect(name);
        assert_eq!(next.fence, over.fence + 1, "{name}");
        let late = append_as(store, 2, vec![says("late")], Hold::GivesBack(over)).await;
        assert!(matches!(late, Err(StoreError::LeaseLost(_))), "{name}: {late:?}");
        assert_eq!(say_as(store, 2, Hold::Keeps(next.clone())).await, Some(next), "{name}");
    }
}

/// DESIGN rule 9: what is not appended takes no lease and gives none back.
#[tokio::test]
async fn refused_appends_leave_the_lease() {
    for fixture in fixtures() {
        let (store, name) = (fixture.store.as_ref(), fixture.name);
        append(store, &session(1), 0, vec![says("a"), says("b")]).await.unwrap();
        for seq in [0, 1, 3] {
            let refused = append_as(store, seq, vec![says("x")], takes("a")).await;
            assert!(
                matches!(refused, Err(StoreError::Conflict { actual: 2, .. })),
                "{name}: {refused:?}"
            );
        }
        let nothing = append_as(store, 2, Vec::new(), takes("a")).await.unwrap();
        assert_eq!((nothing.events, nothing.lease), (Vec::new(), None), "{name}");

        let lease = acquire(store, "b").await.unwrap();
        assert_eq!(lease.fence, 1, "{name}: somebody has taken it");
        for seq in [0, 1, 3] {
            let refused = append_as(store, seq, vec![says("x")], Hold::GivesBack(lease.clone())).await;
            assert!(
                matches!(refused, Err(StoreError::Conflict { actual: 2, .. })),
                "{name}: {refused:?}"
            );
        }
        let nothing = append_as(store, 2, Vec::new(), Hold::GivesBack(lease.clone()))
            .await
            .unwrap();
        assert_eq!(nothing.lease, Some(lease.clone()), "{name}");
        let refused = acquire(store, "a").await;
        assert!(matches!(refused, Err(StoreError::Leased { .. })), "{name}: {refused:?}");
        assert_eq!(
            say_as(store, 2, Hold::Keeps(lease.clone())).await,
            Some(lease),
            "{name}"
        );
        assert_eq!(contents(store, &session(1)).await, ["a", "b", "x"]);
    }
}
