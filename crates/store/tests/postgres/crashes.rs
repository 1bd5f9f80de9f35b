//! A server that crashes while replicas append.

use super::server::PostgresServer;
use super::{PATIENCE, append, contents, says, session, store};
use aish_core::id::SessionId;
use aish_store::StoreError;
use aish_store::postgres::PostgresStore;
use futures_util::future::join_all;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// How often the server crashes; another number by this variable.
const CRASHES: usize = 5;
const CRASHES_VARIABLE: &str = "AISH_TEST_POSTGRES_CRASHES";

/// Appends that must be acknowledged between two crashes.
const APPENDS_BETWEEN: usize = 20;
const WRITERS: usize = 4;

/// Appends to a session that another writer uses as well, and gives what was acknowledged, by its place.
async fn write(
    store: Arc<PostgresStore>,
    session: SessionId,
    name: usize,
    (ends, acknowledged): (Arc<AtomicBool>, Arc<AtomicUsize>),
) -> BTreeMap<u64, String> {
    let mut seen = 0;
    let mut written = BTreeMap::new();
    let mut n = 0;
    while !ends.load(Ordering::Relaxed) {
        let texts = [format!("{name}#{n}a"), format!("{name}#{n}b")];
        match append(
            store.as_ref(),
            &session,
            seen,
            texts.iter().map(|text| says(text)).collect(),
        )
        .await
        {
            Ok(last) => {
                written.extend([last - 1, last].into_iter().zip(texts));
                (seen, n) = (last, n + 1);
                acknowledged.fetch_add(1, Ordering::Relaxed);
            }
            Err(StoreError::Conflict { expected, actual, .. }) => {
                assert!(
                    actual > expected,
                    "what was acknowledged is gone: at {actual}, not {expected}"
                );
                seen = actual;
            }
            Err(error) => panic!("{error}"),
        }
    }
    written
}

/// SPEC 2.5, 9.5, 12: the server crashes again and again while replicas append: what was acknowledged is there, once and in its
/// place, and nothing is there that was not acknowledged.
#[tokio::test]
async fn a_crashing_server_loses_and_doubles_nothing() {
    let crashes = std::env::var(CRASHES_VARIABLE).map_or(CRASHES, |count| count.parse().unwrap());
    let mut server = PostgresServer::start();
    let url = server.database_by_port();
    let (ends, acknowledged) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    // A replica each, two to a session.
    let writers: Vec<_> = (0..WRITERS)
        .map(|n| {
            let signals = (Arc::clone(&ends), Arc::clone(&acknowledged));
            tokio::spawn(write(Arc::new(store(&url)), session(n as u64 % 2), n, signals))
        })
        .collect();
    for _ in 0..crashes {
        let enough = acknowledged.load(Ordering::Relaxed) + APPENDS_BETWEEN;
        let since = Instant::now();
        while acknowledged.load(Ordering::Relaxed) < enough {
            assert!(since.elapsed() < PATIENCE, "the replicas do not go on");
            assert!(writers.iter().all(|writer| !writer.is_finished()), "a replica failed");
            tokio::time::sleep(super::LOOK_EVERY).await;
        }
        server = tokio::task::spawn_blocking(move || {
            server.restart_immediately();
            server
        })
        .await
        .unwrap();
    }
    ends.store(true, Ordering::Relaxed);
    let mut expect: [BTreeMap<u64, String>; 2] = Default::default();
    for (n, writer) in writers.into_iter().enumerate() {
        for (seq, text) in writer.await.unwrap() {
            assert_eq!(expect[n % 2].insert(seq, text), None, "event {seq} was given twice");
        }
    }
    let reader = store(&url);
    for (n, expect) in expect.into_iter().enumerate() {
        let found = contents(&reader, &session(n as u64)).await;
        assert!(
            found.into_iter().eq(expect.into_values()),
            "session {n} is not what was acknowledged"
        );
    }
}

/// How many appends are dropped on their way.
const DROPPED: u32 = 300;

/// SPEC 9.5, 12: an append that nobody waits for any more, wherever it was, is kept whole or not at all, and leaves no transaction
/// open.
#[tokio::test]
async fn dropped_appends_leave_nothing_open() {
    let mut server = PostgresServer::start();
    let (replica, watched) = (store(&server.database()), session(1));
    append(&replica, &watched, 0, vec![says("a"), says("b")]).await.unwrap();
    for n in 0..DROPPED {
        let seen = contents(&replica, &watched).await.len() as u64;
        assert_eq!(seen % 2, 0, "half an append is kept");
        // Anywhere between nothing sent and all done.
        let patience = Duration::from_micros(u64::from(n) * 7);
        let dropped = append(&replica, &watched, seen, vec![says("a"), says("b")]);
        let _ = timeout(patience, dropped).await;
    }
    let sessions: Vec<SessionId> = (2..40).map(session).collect();
    let appended = join_all(
        sessions
            .iter()
            .map(|session| append(&replica, session, 0, vec![says("x")])),
    )
    .await;
    assert!(appended.into_iter().all(|result| result.unwrap() == 1));
    let open = "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'";
    assert_eq!(server.psql("test_1", open), "0");
}
