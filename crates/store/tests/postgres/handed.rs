//! Leases that are taken and given back with appends, while others renew, take or wait for the same rows.

use super::server::PostgresServer;
use super::{LOOK_EVERY, PATIENCE, contents, says, session, store};
use aish_store::postgres::PostgresStore;
use aish_store::{Appended, Durability, Hold, Lease, Owner, Store as _, StoreError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::{Client, NoTls};

/// Longer than any test, in milliseconds.
const HOUR_MS: u64 = 3_600_000;
const REPLICAS: usize = 4;
/// How often each of them takes the lease, if it can.
const ROUNDS: usize = 40;

fn owner(n: usize) -> Owner {
    Owner(format!("replica {n}"))
}

fn takes(n: usize) -> Hold {
    Hold::Takes {
        owner: owner(n),
        until: HOUR_MS,
    }
}

async fn say(store: &PostgresStore, seq: u64, hold: Hold) -> Result<Appended, StoreError> {
    store
        .append(&session(1), seq, vec![says("x")], 0, Durability::Committed, hold)
        .await
}

/// The same beside what else happens.
fn saying(store: &Arc<PostgresStore>, seq: u64, hold: Hold) -> JoinHandle<Option<Lease>> {
    let store = Arc::clone(store);
    tokio::spawn(async move { say(&store, seq, hold).await.unwrap().lease })
}

/// A connection that can hold rows for as long as a test likes.
async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// How many wait for rows.
async fn waiting(client: &Client) -> i64 {
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    client.query_one(waits, &[]).await.unwrap().get(0)
}

async fn until(is_so: impl AsyncFn() -> bool) {
    let look = async {
        while !is_so().await {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    timeout(PATIENCE, look).await.unwrap();
}

/// SPEC 2.12: a lease is given back as well where its keeper has just renewed it: what the append found was the row before that.
#[tokio::test]
async fn given_back_while_it_is_renewed() {
    let mut server = PostgresServer::start();
    let url = server.database();
    let (ours, theirs) = (Arc::new(store(&url)), store(&url));
    let lease = say(&ours, 0, takes(1)).await.unwrap().lease.unwrap();
    let (keeper, looker) = (connect(&url).await, connect(&url).await);
    keeper
        .batch_execute("BEGIN; UPDATE aish.leases SET until = until + 1")
        .await
        .unwrap();
    let given_back = saying(&ours, 1, Hold::GivesBack(lease.clone()));
    until(async || waiting(&looker).await == 1).await;
    keeper.batch_execute("COMMIT").await.unwrap();
    assert_eq!(given_back.await.unwrap(), None);
    let late = ours.renew(&lease, 2 * HOUR_MS).await;
    assert!(matches!(late, Err(StoreError::LeaseLost(_))), "{late:?}");
    assert_eq!(say(&theirs, 2, takes(2)).await.unwrap().lease.unwrap().fence, 2);
}

/// SPEC 2.12: an append that waits for the session's row takes the lease as it stands when it gets it, if at all: it never has one
/// that another took meanwhile, nor leaves one behind that it does not tell of.
#[tokio::test]
async fn the_lease_changes_while_the_session_is_waited_for() {
    let mut server = PostgresServer::start();
    let url = server.database();
    let (ours, theirs) = (Arc::new(store(&url)), Arc::new(store(&url)));
    let (holder, looker) = (connect(&url).await, connect(&url).await);
    let mut lease = say(&ours, 0, takes(1)).await.unwrap().lease;
    let mut seq = 1;
    for is_held in [true, false, true, false] {
        // Held at first and given back while the append waits, or the other way round.
        if !is_held {
            theirs.release(lease.as_ref().unwrap()).await.unwrap();
        }
        holder
            .batch_execute("BEGIN; SELECT FROM aish.sessions FOR UPDATE")
            .await
            .unwrap();
        let appending = saying(&ours, seq, takes(2));
        until(async || waiting(&looker).await == 1).await;
        let changing = tokio::spawn({
            let (theirs, lease) = (Arc::clone(&theirs), lease.clone().unwrap());
            async move {
                if is_held {
                    theirs.release(&lease).await.unwrap();
                    return None;
                }
                theirs.acquire(&session(1), &owner(3), 0, HOUR_MS).await.ok()
            }
        });
        // An append that has looked at the lease already keeps others from it until it is done.
        until(async || changing.is_finished() || waiting(&looker).await == 2).await;
        holder.batch_execute("ROLLBACK").await.unwrap();
        let (taken, acquired) = (appending.await.unwrap(), changing.await.unwrap());
        seq += 1;
        assert!(taken.is_none() || acquired.is_none(), "{taken:?} {acquired:?}");
        let held = taken.or(acquired);
        let other = theirs.acquire(&session(1), &owner(4), 0, HOUR_MS).await;
        assert_eq!(other.is_err(), held.is_some(), "{other:?} {held:?}");
        lease = held.or(other.ok());
        // It is what its owner may append under.
        lease = say(&ours, seq, Hold::Keeps(lease.unwrap())).await.unwrap().lease;
        seq += 1;
    }
}

/// SPEC 2.12, 9.5: of replicas that take and give back one lease with their appends, one drives at a time, and each next one has a
/// later fence; keepers that renew meanwhile are in nobody's way.
#[tokio::test]
async fn one_drives_at_a_time() {
    let mut server = PostgresServer::start();
    let url = server.database();
    let first = store(&url);
    let begun = say(&first, 0, takes(9)).await.unwrap().lease.unwrap();
    first.release(&begun).await.unwrap();
    let (is_driven, last_fence) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let tasks = (0..REPLICAS).map(|n| {
        let replica = Arc::new(store(&url));
        let (is_driven, last_fence) = (Arc::clone(&is_driven), Arc::clone(&last_fence));
        tokio::spawn(async move {
            let (mut seen, mut drives) = (1, 0);
            let mut hold = takes(n);
            for _ in 0..ROUNDS {
                let is_last = matches!(hold, Hold::GivesBack(_));
                if is_last {
                    assert!(is_driven.swap(false, Ordering::SeqCst));
                }
                let keeper = hold.lease().cloned().map(|lease| {
                    let replica = Arc::clone(&replica);
                    tokio::spawn(async move { replica.renew(&lease, HOUR_MS).await })
                });
                match say(&replica, seen, hold.clone()).await {
                    Err(StoreError::Conflict { actual, .. }) => {
                        seen = actual;
                        if is_last {
                            assert!(!is_driven.swap(true, Ordering::SeqCst));
                        }
                    }
                    Err(error) => panic!("{error}"),
                    Ok(appended) => {
                        seen += 1;
                        let began = matches!(hold, Hold::Takes { .. });
                        hold = match appended.lease {
                            Some(lease) if began => {
                                assert!(!is_driven.swap(true, Ordering::SeqCst), "{lease:?}");
                                assert!(last_fence.swap(lease.fence, Ordering::SeqCst) < lease.fence);
                                drives += 1;
                                Hold::Keeps(lease)
                            }
                            Some(lease) => Hold::GivesBack(lease),
                            None => takes(n),
                        };
                    }
                }
                if let Some(keeper) = keeper {
                    match keeper.await.unwrap() {
                        Ok(()) => {}
                        Err(error) => assert!(is_last && matches!(error, StoreError::LeaseLost(_)), "{error}"),
                    }
                }
            }
            // Nobody else is to wait for what is left of it.
            while let Some(lease) = hold.lease().cloned() {
                is_driven.store(false, Ordering::SeqCst);
                match say(&replica, seen, Hold::GivesBack(lease)).await {
                    Err(StoreError::Conflict { actual, .. }) => seen = actual,
                    gone => {
                        gone.unwrap();
                        hold = Hold::Nothing;
                    }
                }
            }
            drives
        })
    });
    let mut drives = 0;
    for task in tasks.collect::<Vec<_>>() {
        drives += task.await.unwrap();
    }
    assert!(drives > 1, "{drives}");
    assert!(first.acquire(&session(1), &owner(9), 0, HOUR_MS).await.is_ok());
    assert!(contents(&first, &session(1)).await.len() > drives);
}
