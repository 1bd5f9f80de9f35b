//! A server that crashes while replicas append.

use super::server::PostgresServer;
use super::{PATIENCE, append, contents, draft, says, session, store};
use aish_core::id::SessionId;
use aish_store::StoreError;
use futures_util::future::join_all;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// How often the server crashes; another number by this variable.
const CRASHES: usize = 5;
const CRASHES_VARIABLE: &str = "AISH_CRASHES";

/// Appends that must be acknowledged between two crashes.
const APPENDS_BETWEEN: usize = 20;
/// They share the sessions; the last one has its session to itself.
const WRITERS: usize = 5;
const SESSIONS: usize = 3;
/// From here on a turn runs in them: whoever appends twice in a row to such a session does it without looking first.
const FIRST_DRIVEN: usize = 1;

/// What the replicas and the test tell each other.
#[derive(Default)]
struct Signals {
    ends: AtomicBool,
    acknowledged: AtomicUsize,
}

/// A replica: appends to a session that another one uses as well, and gives what was acknowledged, by its place.
async fn write(url: &str, session: &SessionId, name: usize, signals: &Signals) -> BTreeMap<u64, String> {
    let replica = store(url);
    let mut seen = 0;
    let mut written = BTreeMap::new();
    let mut n = 0;
    while !signals.ends.load(Ordering::Relaxed) {
        let texts = [format!("{name}#{n}a"), format!("{name}#{n}b")];
        let drafts = texts.iter().map(|text| says(text)).collect();
        match append(&replica, session, seen, drafts).await {
            Ok(last) => {
                written.extend([last - 1, last].into_iter().zip(texts));
                (seen, n) = (last, n + 1);
                signals.acknowledged.fetch_add(1, Ordering::Relaxed);
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

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(work)
}

/// SPEC 2.5, 9.5, 12: the server crashes again and again while replicas append: what was acknowledged is there, once and in its
/// place, and nothing is there that was not acknowledged.
#[test]
fn a_crashing_server_loses_and_doubles_nothing() {
    let crashes = std::env::var(CRASHES_VARIABLE).map_or(CRASHES, |count| count.parse().unwrap());
    let mut server = PostgresServer::start();
    let url = server.database_by_port();
    let signals = Signals::default();
    let mut expect: [BTreeMap<u64, String>; SESSIONS] = Default::default();
    for (n, expect) in expect.iter_mut().enumerate().skip(FIRST_DRIVEN) {
        let begun = vec![draft("turn_started", &json!({}))];
        block_on(append(&store(&url), &session(n as u64), 0, begun)).unwrap();
        expect.insert(1, "turn_started".to_owned());
    }
    thread::scope(|scope| {
        let replica = |n: usize| {
            let (url, signals) = (&url, &signals);
            scope.spawn(move || block_on(write(url, &session((n % SESSIONS) as u64), n, signals)))
        };
        let replicas: Vec<_> = (0..WRITERS).map(replica).collect();
        for _ in 0..crashes {
            let enough = signals.acknowledged.load(Ordering::Relaxed) + APPENDS_BETWEEN;
            let since = Instant::now();
            while signals.acknowledged.load(Ordering::Relaxed) < enough && since.elapsed() < PATIENCE {
                thread::sleep(super::LOOK_EVERY);
            }
            server.restart_immediately();
        }
        signals.ends.store(true, Ordering::Relaxed);
        for (n, replica) in replicas.into_iter().enumerate() {
            for (seq, text) in replica.join().unwrap() {
                assert_eq!(
                    expect[n % SESSIONS].insert(seq, text),
                    None,
                    "event {seq} was given twice"
                );
            }
        }
    });
    let acknowledged = signals.acknowledged.load(Ordering::Relaxed);
    assert!(
        acknowledged >= crashes * APPENDS_BETWEEN,
        "{acknowledged} appends: the replicas do not go on"
    );
    let reader = store(&url);
    for (n, expect) in expect.into_iter().enumerate() {
        let found = block_on(contents(&reader, &session(n as u64)));
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
    let begun = vec![draft("turn_started", &json!({})), says("b")];
    append(&replica, &watched, 0, begun).await.unwrap();
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
