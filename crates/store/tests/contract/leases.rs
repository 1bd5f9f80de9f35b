//! The right to drive a session (SPEC 2.12). Times are in milliseconds, made up; a store that several machines share goes by a
//! clock of its own, for which only the time between them counts, and really passes.

use super::{LOOK_EVERY, PATIENCE, append, contents, fixtures, says, session};
use aish_store::{Durability, Hold, Owner, Store, StoreError};
use std::time::Instant;

/// An owner that is known to nobody: whether it lives cannot be told, so that its leases have to run out.
fn stranger(name: &str) -> Owner {
    Owner(name.to_owned())
}

/// This process's identity with another start: a process of this boot that is certainly gone.
fn dead() -> Owner {
    let Owner(text) = Owner::this_process();
    let (process, _) = text.rsplit_once('/').unwrap();
    Owner(format!("{process}/0"))
}

/// Acquires what is free at `now`, as soon as it is by the store's own clock.
async fn acquire_free(store: &dyn Store, name: &str, (now, until): (u64, u64)) -> aish_store::Lease {
    let began = Instant::now();
    loop {
        match store.acquire(&session(1), &stranger(name), now, until).await {
            Ok(lease) => return lease,
            Err(StoreError::Leased { .. }) if began.elapsed() < PATIENCE => tokio::time::sleep(LOOK_EVERY).await,
            Err(error) => panic!("{error}"),
        }
    }
}

async fn drive(store: &dyn Store, lease: &aish_store::Lease, seq: u64, text: &str) -> Result<(), StoreError> {
    let drafts = vec![says(text)];
    store
        .append(
            &lease.session,
            seq,
            drafts,
            0,
            Durability::Committed,
            Hold::Keeps(lease.clone()),
        )
        .await
        .map(drop)
}

/// SPEC 2.12: one driver at a time; the second is told who the first is.
#[tokio::test]
async fn a_second_driver_is_refused() {
    for fixture in fixtures() {
        let (store, session) = (fixture.store.as_ref(), session(1));
        let owner = Owner::this_process();
        let lease = store.acquire(&session, &owner, 100, 200_000).await.unwrap();
        let error = store.acquire(&session, &stranger("b"), 199, 300).await.unwrap_err();
        assert!(
            matches!(&error, StoreError::Leased { owner: holder, .. } if *holder == owner.describe()),
            "{}: {error:?}",
            fixture.name
        );
        // Another session is free, and so is this one to its own driver.
        store
            .acquire(&super::session(2), &stranger("b"), 100, 200)
            .await
            .unwrap();
        assert_eq!(store.acquire(&session, &owner, 150, 250_000).await.unwrap(), lease);
        drive(store, &lease, 0, "mine").await.unwrap();
    }
}

/// SPEC 2.12: a lease that ran out is anybody's; whoever had it can write no more.
#[tokio::test]
async fn an_expired_lease_is_taken_over() {
    for fixture in fixtures() {
        let (store, session) = (fixture.store.as_ref(), session(1));
        let first = store.acquire(&session, &stranger("a"), 100, 200).await.unwrap();
        let second = acquire_free(store, "b", (200, 300_000)).await;
        assert!(second.fence > first.fence, "{}", fixture.name);
        let lost = drive(store, &first, 0, "late").await.unwrap_err();
        assert!(matches!(&lost, StoreError::LeaseLost(of) if *of == session), "{lost:?}");
        assert!(matches!(store.renew(&first, 900).await, Err(StoreError::LeaseLost(_))));
        store.release(&first).await.unwrap();
        drive(store, &second, 0, "current").await.unwrap();
        assert_eq!(contents(store, &session).await, ["current"]);
    }
}

/// SPEC 2.12: late is not lost: with nobody in between, the driver goes on.
#[tokio::test]
async fn an_expired_lease_that_nobody_took_still_holds() {
    for fixture in fixtures() {
        let (store, session) = (fixture.store.as_ref(), session(1));
        let lease = store.acquire(&session, &stranger("a"), 100, 200).await.unwrap();
        store.renew(&lease, u64::MAX).await.unwrap();
        store.renew(&lease, 100_000).await.unwrap();
        let error = store
            .acquire(&session, &stranger("b"), 99_999, 200_000)
            .await
            .unwrap_err();
        assert!(
            matches!(error, StoreError::Leased { .. }),
            "{}: {error:?}",
            fixture.name
        );
        drive(store, &lease, 0, "on time").await.unwrap();
    }
}

/// SPEC 2.12: a driver that was killed holds nothing up.
#[tokio::test]
async fn a_dead_driver_is_taken_over_at_once() {
    for fixture in fixtures() {
        let (store, session) = (fixture.store.as_ref(), session(1));
        let killed = store.acquire(&session, &dead(), 100, u64::MAX).await.unwrap();
        let lease = store.acquire(&session, &Owner::this_process(), 101, 200).await.unwrap();
        assert!(lease.fence > killed.fence, "{}", fixture.name);
        assert!(matches!(
            drive(store, &killed, 0, "ghost").await,
            Err(StoreError::LeaseLost(_))
        ));
    }
}

/// SPEC 2.12: a lease given back is free, and its fence is never given again.
#[tokio::test]
async fn a_released_lease_is_free_and_dead() {
    for fixture in fixtures() {
        let (store, session) = (fixture.store.as_ref(), session(1));
        let owner = stranger("a");
        let first = store.acquire(&session, &owner, 100, 200).await.unwrap();
        store.release(&first).await.unwrap();
        assert!(matches!(
            drive(store, &first, 0, "after").await,
            Err(StoreError::LeaseLost(_))
        ));
        let second = store.acquire(&session, &owner, 101, 200).await.unwrap();
        assert!(second.fence > first.fence, "{}", fixture.name);
        store.release(&first).await.unwrap();
        drive(store, &second, 0, "again").await.unwrap();
    }
}

/// SPEC 3.5b: somebody else's event (an answer, a cancel) needs no lease and lands between the driver's.
#[tokio::test]
async fn others_may_append_without_a_lease() {
    for fixture in fixtures() {
        let (store, session) = (fixture.store.as_ref(), session(1));
        let lease = store.acquire(&session, &stranger("a"), 100, 200).await.unwrap();
        drive(store, &lease, 0, "driver").await.unwrap();
        append(store, &session, 1, vec![says("somebody")]).await.unwrap();
        assert!(matches!(
            drive(store, &lease, 1, "driver").await,
            Err(StoreError::Conflict {
                expected: 1,
                actual: 2,
                ..
            })
        ));
        drive(store, &lease, 2, "driver").await.unwrap();
    }
}
