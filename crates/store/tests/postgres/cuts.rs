//! Connections that break when the server was told to commit. Between the store and the server stands a [`Proxy`] that reads what
//! the store sends.

use super::server::{PASSWORD_ENCODED, PostgresServer, USER};
use super::{PATIENCE, append, contents, says, session, store};
use aish_store::postgres::PostgresStore;
use aish_store::{Durability, Owner, Store as _, StoreError};
use std::cell::Cell;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// The message that ends a transaction: a simple query.
const COMMIT: &[u8] = b"Q\0\0\0\x0bCOMMIT\0";
/// The message that ends a statement that is a transaction of its own, if it says something that only [`AT_ONE_GO`] says.
const SYNC: &[u8] = b"S\0\0\0\x04";
/// What is appended by such a statement here.
const AT_ONE_GO: &str = "written at one go";

/// Longer than any pause between two attempts of the store.
const LATE: Duration = Duration::from_millis(1_500);

/// What happens to the next COMMIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    /// The server gets it, the store no answer.
    Answer,
    /// Nobody gets anything.
    Before,
    /// The store sees the connection break, and the server gets it only after that.
    Late,
    /// As [`Cut::Answer`], and nobody is let in any more.
    ForGood,
    /// Nothing breaks: the server gets it when the test says so.
    Held,
}

/// Lets connections through until it is told to cut one.
struct Proxy {
    port: u16,
    next: Arc<Mutex<Option<Cut>>>,
    /// Lets the one go on that is held.
    release: Arc<Notify>,
}

impl Proxy {
    async fn before(server: &PostgresServer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (port, server_port) = (listener.local_addr().unwrap().port(), server.port());
        let next = Arc::new(Mutex::new(None));
        let (cuts, release) = (Arc::clone(&next), Arc::new(Notify::new()));
        let released = Arc::clone(&release);
        tokio::spawn(async move {
            while let Ok((store, _)) = listener.accept().await {
                if *cuts.lock().unwrap() == Some(Cut::ForGood) {
                    continue;
                }
                // A server that is not there is met by the store as a broken connection.
                let Ok(server) = TcpStream::connect(("127.0.0.1", server_port)).await else {
                    continue;
                };
                let (from_store, to_store) = store.into_split();
                let (from_server, to_server) = server.into_split();
                let answers = tokio::spawn(pass(from_server, to_store));
                let (cuts, released) = (Arc::clone(&cuts), Arc::clone(&released));
                tokio::spawn(async move {
                    let _ = watch(from_store, to_server, (&cuts, &released), || answers.abort()).await;
                    answers.abort();
                });
            }
        });
        Self { port, next, release }
    }

    /// A store that reaches the database by it.
    fn store(&self, database: &str) -> PostgresStore {
        store(&format!(
            "postgres://{USER}:{PASSWORD_ENCODED}@127.0.0.1:{}/{database}",
            self.port
        ))
    }

    fn cut_next(&self, cut: Cut) {
        *self.next.lock().unwrap() = Some(cut);
    }

    fn has_cut(&self) -> bool {
        self.next.lock().unwrap().is_none()
    }
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
    let _ = tokio::io::copy(&mut from, &mut to).await;
}

/// Passes on what the store sends, until it is time to cut.
async fn watch(
    mut from_store: OwnedReadHalf,
    mut to_server: OwnedWriteHalf,
    (cuts, released): (&Mutex<Option<Cut>>, &Notify),
    silence: impl Fn(),
) -> io::Result<()> {
    let mut bytes = vec![0; 1 << 16];
    loop {
        let count = from_store.read(&mut bytes).await?;
        let sent = &bytes[..count];
        if count == 0 {
            return Ok(());
        }
        let cut = if commits(sent) { take(cuts) } else { None };
        match cut {
            None => to_server.write_all(sent).await?,
            Some(Cut::Held) => {
                released.notified().await;
                to_server.write_all(sent).await?;
            }
            Some(Cut::Before) => return Ok(()),
            Some(Cut::Answer | Cut::ForGood) => {
                silence();
                to_server.write_all(sent).await?;
                return Ok(());
            }
            Some(Cut::Late) => {
                silence();
                drop(from_store);
                tokio::time::sleep(LATE).await;
                to_server.write_all(sent).await?;
                // Closed only once the server has ended the transaction: it may answer in peace.
                tokio::time::sleep(LATE).await;
                return Ok(());
            }
        }
    }
}

/// Whether the server commits once it has that.
fn commits(sent: &[u8]) -> bool {
    let says = |text: &str| sent.windows(text.len()).any(|window| window == text.as_bytes());
    sent.ends_with(COMMIT) || sent.ends_with(SYNC) && says(AT_ONE_GO)
}

/// A cut that is for good stays.
fn take(cuts: &Mutex<Option<Cut>>) -> Option<Cut> {
    let mut next = cuts.lock().unwrap();
    match *next {
        Some(Cut::ForGood) => Some(Cut::ForGood),
        Some(_) | None => next.take(),
    }
}

/// SPEC 2.5, 9.5: wherever the connection breaks at a COMMIT, an append says what really happened, and happens once.
#[tokio::test]
async fn a_lost_commit_is_found_out() {
    let mut server = PostgresServer::start();
    let proxy = Proxy::before(&server).await;
    let direct = store(&server.database_by_port());
    let through = proxy.store("test_1");
    let mut n = 0;
    for cut in [Cut::Answer, Cut::Before, Cut::Late] {
        n += 1;
        let session = session(n);
        // The tables are made, and connections.
        append(&through, &super::session(0), 0, vec![]).await.unwrap();
        // A new session's is a statement by itself; that to one of which nothing is known is a transaction.
        for (expected, texts) in [(0, ["a", AT_ONE_GO]), (2, ["c", "d"])] {
            proxy.cut_next(cut);
            let drafts = texts.map(says).into();
            let last = append(&through, &session, expected, drafts).await.unwrap();
            assert!(proxy.has_cut(), "{cut:?}: nothing was cut");
            assert_eq!(last, expected + 2, "{cut:?}");
        }
        assert_eq!(contents(&direct, &session).await, ["a", AT_ONE_GO, "c", "d"], "{cut:?}");
        append(&through, &session, 4, vec![says("e")]).await.unwrap();
    }
}

/// SPEC 2.5: while nobody can know whether an append is kept, that is what it says, and not that it failed.
#[tokio::test]
async fn what_cannot_be_known_is_not_claimed() {
    let mut server = PostgresServer::start();
    let proxy = Proxy::before(&server).await;
    let direct = store(&server.database_by_port());
    let through = proxy.store("test_1");
    append(&through, &session(1), 0, vec![says("a")]).await.unwrap();
    proxy.cut_next(Cut::ForGood);
    let error = tokio::time::timeout(PATIENCE, append(&through, &session(1), 1, vec![says("b")]))
        .await
        .unwrap()
        .unwrap_err();
    assert!(matches!(error, StoreError::Io { .. }), "{error:?}");
    let told = error.to_string();
    assert!(told.contains("whether the events are kept is not known"), "{told}");
    assert!(!told.contains("pass"), "{told}");
    assert_eq!(contents(&direct, &session(1)).await, ["a", "b"]);
}

/// SPEC 2.12: a take-over comes wholly before or wholly after an append: one whose COMMIT is on its way is waited for, and seen.
#[tokio::test]
async fn a_take_over_waits_for_what_is_on_its_way() {
    let mut server = PostgresServer::start();
    let proxy = Proxy::before(&server).await;
    let (ours, theirs) = (store(&server.database()), proxy.store("test_1"));
    let watched = session(1);
    append(&ours, &watched, 0, vec![says("a")]).await.unwrap();
    // A lease that has run out as soon as it is there.
    let (driver, other) = (Owner("a driver".to_owned()), Owner("another".to_owned()));
    let lease = theirs.acquire(&watched, &driver, 100, 100).await.unwrap();

    proxy.cut_next(Cut::Held);
    let drafts = vec![says("on its way")];
    let on_its_way = theirs.append(&watched, 1, drafts, 1, Durability::Synced, Some(&lease));
    let is_taken = Cell::new(false);
    let is_held = async || {
        while !proxy.has_cut() {
            tokio::time::sleep(super::LOOK_EVERY).await;
        }
    };
    let take_over = async {
        is_held().await;
        let taken = ours.acquire(&watched, &other, 100, 60_000).await.unwrap();
        is_taken.set(true);
        (taken, contents(&ours, &watched).await)
    };
    let release = async {
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
        is_held().await;
        while server.psql("test_1", waiting) == "0" && !is_taken.get() {
            tokio::time::sleep(super::LOOK_EVERY).await;
        }
        proxy.release.notify_one();
    };
    let (appended, (taken, seen), ()) = tokio::join!(on_its_way, take_over, release);
    appended.unwrap();
    assert!(taken.fence > lease.fence);
    assert_eq!(
        seen,
        ["a", "on its way"],
        "taken over, and then written to by the one before"
    );
}
