//! Connections that break when the server was told to commit. Between the store and the server stands a [`Proxy`] that reads what
//! the store sends.

use super::server::{PASSWORD_ENCODED, PostgresServer, USER};
use super::{PATIENCE, append, contents, draft, says, session, store};
use aish_core::event::Draft;
use aish_store::postgres::PostgresStore;
use aish_store::{Durability, Hold, Owner, Store as _, StoreError};
use serde_json::json;
use std::cell::Cell;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// The message that ends a transaction: a simple query.
const COMMIT: &[u8] = b"Q\0\0\0\x0bCOMMIT\0";
/// The message that undoes one says this.
const ROLLBACK: &str = "ROLLBACK";
/// The message that begins one says this.
const BEGIN: &str = "START TRANSACTION";
/// The message that ends a statement, which outside of a transaction is one of its own.
const SYNC: &[u8] = b"S\0\0\0\x04";
/// What is appended by such a statement here: others only read.
const AT_ONE_GO: &str = "written at one go";
/// An error of the database that does not even say which.
const UNREADABLE: &[u8] = b"E\0\0\0\x05\0";

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
    /// As [`Cut::Late`], but the server gets it only when the test says so.
    Overdue,
    /// The server gets it, the store an answer that nobody can read.
    Garbled,
    /// As [`Cut::Answer`], and nobody is let in any more.
    ForGood,
    /// Nothing breaks: the server gets it when the test says so.
    Held,
}

/// What was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The COMMIT of a transaction.
    Commit,
    /// A statement that is one of its own.
    AtOneGo,
}

/// What the test and the connections tell each other.
#[derive(Default)]
struct Cuts {
    next: Mutex<Option<Cut>>,
    last: Mutex<Option<Kind>>,
    /// Lets the one go on that is held.
    release: Notify,
    garbles: AtomicBool,
}

impl Cuts {
    /// A cut that is for good stays.
    fn take(&self, kind: Kind) -> Option<Cut> {
        let mut next = self.next.lock().unwrap();
        let cut = if *next == Some(Cut::ForGood) {
            *next
        } else {
            next.take()
        };
        if cut.is_some() {
            *self.last.lock().unwrap() = Some(kind);
        }
        cut
    }
}

/// Lets connections through until it is told to cut one.
struct Proxy {
    port: u16,
    cuts: Arc<Cuts>,
}

impl Proxy {
    async fn before(server: &PostgresServer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (port, server_port) = (listener.local_addr().unwrap().port(), server.port());
        let made = Arc::new(Cuts::default());
        let cuts = Arc::clone(&made);
        tokio::spawn(async move {
            while let Ok((store, _)) = listener.accept().await {
                if *cuts.next.lock().unwrap() == Some(Cut::ForGood) {
                    continue;
                }
                // A server that is not there is met by the store as a broken connection.
                let Ok(server) = TcpStream::connect(("127.0.0.1", server_port)).await else {
                    continue;
                };
                let (from_store, to_store) = store.into_split();
                let (from_server, to_server) = server.into_split();
                let answers = tokio::spawn(pass(from_server, to_store, Arc::clone(&cuts)));
                let cuts = Arc::clone(&cuts);
                tokio::spawn(async move {
                    let _ = watch(from_store, to_server, &cuts, || answers.abort()).await;
                    answers.abort();
                });
            }
        });
        Self { port, cuts: made }
    }

    /// A store that reaches the database by it.
    fn store(&self, database: &str) -> PostgresStore {
        store(&format!(
            "postgres://{USER}:{PASSWORD_ENCODED}@127.0.0.1:{}/{database}",
            self.port
        ))
    }

    fn cut_next(&self, cut: Cut) {
        *self.cuts.last.lock().unwrap() = None;
        *self.cuts.next.lock().unwrap() = Some(cut);
    }

    /// What was cut since; none if nothing was yet.
    fn cut(&self) -> Option<Kind> {
        *self.cuts.last.lock().unwrap()
    }
}

/// Passes on what the server answers, until it is garbled.
async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, cuts: Arc<Cuts>) -> io::Result<()> {
    let mut bytes = vec![0; 1 << 16];
    loop {
        let count = from.read(&mut bytes).await?;
        if count == 0 {
            return Ok(());
        }
        if cuts.garbles.swap(false, Ordering::Relaxed) {
            return to.write_all(UNREADABLE).await;
        }
        to.write_all(&bytes[..count]).await?;
    }
}

/// Passes on what the store sends, until it is time to cut.
async fn watch(
    mut from_store: OwnedReadHalf,
    mut to_server: OwnedWriteHalf,
    cuts: &Cuts,
    silence: impl Fn(),
) -> io::Result<()> {
    let mut bytes = vec![0; 1 << 16];
    let mut is_in_transaction = false;
    loop {
        let count = from_store.read(&mut bytes).await?;
        let sent = &bytes[..count];
        if count == 0 {
            return Ok(());
        }
        let ends = sent.ends_with(COMMIT);
        let (begun, undone) = (last(sent, BEGIN), last(sent, ROLLBACK));
        if begun.is_some() || undone.is_some() || ends {
            is_in_transaction = begun > undone && !ends;
        }
        let cut = if ends {
            cuts.take(Kind::Commit)
        } else if !is_in_transaction && sent.ends_with(SYNC) && last(sent, AT_ONE_GO).is_some() {
            cuts.take(Kind::AtOneGo)
        } else {
            None
        };
        match cut {
            None => to_server.write_all(sent).await?,
            Some(Cut::Held) => {
                cuts.release.notified().await;
                to_server.write_all(sent).await?;
            }
            Some(Cut::Garbled) => {
                cuts.garbles.store(true, Ordering::Relaxed);
                to_server.write_all(sent).await?;
            }
            Some(Cut::Before) => return Ok(()),
            Some(Cut::Answer | Cut::ForGood) => {
                silence();
                to_server.write_all(sent).await?;
                return Ok(());
            }
            Some(cut @ (Cut::Late | Cut::Overdue)) => {
                silence();
                drop(from_store);
                if cut == Cut::Late {
                    tokio::time::sleep(LATE).await;
                } else {
                    cuts.release.notified().await;
                }
                to_server.write_all(sent).await?;
                // Closed only once the server has ended the transaction: it may answer in peace.
                tokio::time::sleep(LATE).await;
                return Ok(());
            }
        }
    }
}

/// Where a text stands last: several messages may come at once.
fn last(sent: &[u8], text: &str) -> Option<usize> {
    sent.windows(text.len()).rposition(|window| window == text.as_bytes())
}

fn turn_started() -> Draft {
    draft("turn_started", &json!({}))
}

/// What takes a key, which is of no session: its append is a transaction of several statements.
fn keyed(key: &str) -> Draft {
    draft(
        "turn_started",
        &json!({"served": {"request": {"key": key, "digest": "digest"}}}),
    )
}

/// SPEC 2.5, 9.5: wherever the connection breaks at a COMMIT, an append says what really happened, and happens once.
#[tokio::test]
async fn a_lost_commit_is_found_out() {
    let mut server = PostgresServer::start();
    let proxy = Proxy::before(&server).await;
    let direct = store(&server.database_by_port());
    let through = proxy.store("test_1");
    // The tables are made, and connections.
    append(&through, &session(0), 0, vec![]).await.unwrap();
    let mut n = 0;
    for cut in [Cut::Answer, Cut::Before, Cut::Late, Cut::Garbled] {
        n += 2;
        let (quiet, driven) = (session(n), session(n + 1));
        // While a turn runs, its driver's appends are one statement each.
        append(&through, &driven, 0, vec![turn_started()]).await.unwrap();
        // A new session's is as well, and that to one of which nothing is known; one that takes a key is a transaction.
        for (session, expected, drafts, kind) in [
            (&quiet, 0, [says("a"), says(AT_ONE_GO)], Kind::AtOneGo),
            (&quiet, 2, [keyed(&format!("of {cut:?}")), says("d")], Kind::Commit),
            (&driven, 1, [says("b"), says(AT_ONE_GO)], Kind::AtOneGo),
            (&quiet, 4, [says("e"), says(AT_ONE_GO)], Kind::AtOneGo),
        ] {
            proxy.cut_next(cut);
            let drafts = drafts.into();
            let last = append(&through, session, expected, drafts).await.unwrap();
            assert_eq!(proxy.cut(), Some(kind), "{cut:?}");
            assert_eq!(last, expected + 2, "{cut:?}");
        }
        append(&through, &driven, 3, vec![says("d")]).await.unwrap();
        append(&through, &quiet, 6, vec![says("f")]).await.unwrap();
        assert_eq!(
            contents(&direct, &quiet).await,
            ["a", AT_ONE_GO, "turn_started", "d", "e", AT_ONE_GO, "f"],
            "{cut:?}"
        );
        assert_eq!(contents(&direct, &driven).await[1..], ["b", AT_ONE_GO, "d"], "{cut:?}");
    }
}

/// SPEC 2.5: a statement that was lost on its way may be kept later, whatever becomes of the attempt that follows it: nobody is told
/// that it failed.
#[tokio::test]
async fn what_is_on_its_way_has_not_failed() {
    let mut server = PostgresServer::start();
    let proxy = Proxy::before(&server).await;
    let (direct, through) = (store(&server.database_by_port()), proxy.store("test_1"));
    append(&through, &session(1), 0, vec![turn_started()]).await.unwrap();
    // The connection knows its statement from now on.
    append(&through, &session(1), 1, vec![says("a")]).await.unwrap();
    let refuses = "ALTER TABLE aish.events ADD CONSTRAINT refuses CHECK (false) NOT VALID";
    server.psql("test_1", refuses);
    proxy.cut_next(Cut::Overdue);
    let error = append(&through, &session(1), 2, vec![says(AT_ONE_GO)])
        .await
        .unwrap_err();
    assert_eq!(proxy.cut(), Some(Kind::AtOneGo));
    let told = error.to_string();
    assert!(told.contains("whether the events are kept is not known"), "{told}");
    server.psql("test_1", "ALTER TABLE aish.events DROP CONSTRAINT refuses");
    proxy.cuts.release.notify_one();
    let arrived = async {
        while contents(&direct, &session(1))
            .await
            .last()
            .is_none_or(|last| last != AT_ONE_GO)
        {
            tokio::time::sleep(super::LOOK_EVERY).await;
        }
    };
    tokio::time::timeout(PATIENCE, arrived).await.unwrap();
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
    let error = tokio::time::timeout(PATIENCE, append(&through, &session(1), 1, vec![keyed("k")]))
        .await
        .unwrap()
        .unwrap_err();
    assert!(matches!(error, StoreError::Io { .. }), "{error:?}");
    let told = error.to_string();
    assert!(told.contains("whether the events are kept is not known"), "{told}");
    assert!(!told.contains("pass"), "{told}");
    assert_eq!(contents(&direct, &session(1)).await, ["a", "turn_started"]);
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
    let drafts = vec![keyed("on its way")];
    let on_its_way = theirs.append(&watched, 1, drafts, 1, Durability::Synced, Hold::Keeps(lease.clone()));
    let is_taken = Cell::new(false);
    let is_held = async || {
        while proxy.cut().is_none() {
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
        proxy.cuts.release.notify_one();
    };
    let (appended, (taken, seen), ()) = tokio::join!(on_its_way, take_over, release);
    appended.unwrap();
    assert!(taken.fence > lease.fence);
    assert_eq!(
        seen,
        ["a", "turn_started"],
        "taken over, and then written to by the one before"
    );
}
