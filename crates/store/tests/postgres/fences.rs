//! A driver that was stopped past its lease, and comes back. It is this test binary, run again with [`URL_VARIABLE`] set.

use super::server::PostgresServer;
use super::{LOOK_EVERY, PATIENCE, append, contents, draft, says, session, store};
use aish_store::{Durability, Hold, Lease, Owner, Store, StoreError};
use serde_json::json;
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Where the stopped driver finds the ledger; its presence makes a test run it.
const URL_VARIABLE: &str = "AISH_TEST_DRIVER_URL";
/// How long its lease is, in milliseconds.
const LEASE_MS: u64 = 300;
const ROUNDS: u64 = 5;
/// Longer than any test.
const HOUR_MS: u64 = 3_600_000;

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64
}

async fn drive(store: &dyn Store, lease: &Lease, seq: u64, text: &str) -> Result<u64, StoreError> {
    let appended = store
        .append(
            &lease.session,
            seq,
            vec![says(text)],
            now(),
            Durability::Synced,
            Hold::Keeps(lease.clone()),
        )
        .await?;
    Ok(appended.events[0].seq)
}

/// Not a test of its own: what the other one runs as a process. It takes the lease and appends until it is told that it has lost
/// it, then says so.
#[tokio::test]
async fn driver_process() {
    let Ok(url) = std::env::var(URL_VARIABLE) else {
        return;
    };
    let store = store(&url);
    let owner = Owner::this_process();
    let lease = store
        .acquire(&session(1), &owner, now(), now() + LEASE_MS)
        .await
        .unwrap();
    let mut seen = store.load(&session(1), 0).await.unwrap().len() as u64;
    loop {
        let mut out = std::io::stdout().lock();
        match drive(&store, &lease, seen, &format!("fence {}", lease.fence)).await {
            Ok(seq) => {
                seen = seq;
                writeln!(out, "\nappended {seq}").unwrap();
            }
            Err(StoreError::LeaseLost(_)) => {
                writeln!(out, "\nlost").unwrap();
                return;
            }
            Err(error) => panic!("{error}"),
        }
        out.flush().unwrap();
        store.renew(&lease, now() + LEASE_MS).await.ok();
    }
}

struct Driver {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Driver {
    fn start(url: &str) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["fences::driver_process", "--exact", "--nocapture"])
            .env(URL_VARIABLE, url)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, lines }
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args([name, &self.process.id().to_string()])
            .status();
        assert!(sent.unwrap().success());
    }

    /// Reads on until it says this.
    fn wait_for(&mut self, word: &str) {
        let found = self
            .lines
            .by_ref()
            .map(Result::unwrap)
            .any(|line| line.starts_with(word));
        assert!(found, "the driver never said {word}");
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// SPEC 2.12, 9.5: a driver that was stopped past its lease is taken over, and writes nothing any more when it comes back.
#[tokio::test]
async fn a_stopped_driver_is_fenced() {
    let mut server = PostgresServer::start();
    let url = server.database();
    let ours = store(&url);
    // Whether it lives cannot be told: it is on another machine.
    let owner = Owner("another replica".to_owned());
    // While a turn runs, its driver appends without looking first.
    append(&ours, &session(1), 0, vec![draft("turn_started", &json!({}))])
        .await
        .unwrap();
    for _ in 0..ROUNDS {
        let mut driver = Driver::start(&url);
        driver.wait_for("appended");
        driver.signal("-STOP");
        let since = Instant::now();
        let lease = loop {
            match ours.acquire(&session(1), &owner, now(), now() + 60_000).await {
                Ok(lease) => break lease,
                Err(StoreError::Leased { .. }) => {
                    assert!(since.elapsed() < PATIENCE, "its lease does not run out");
                    tokio::time::sleep(LOOK_EVERY).await;
                }
                Err(error) => panic!("{error}"),
            }
        };
        let before = contents(&ours, &session(1)).await;
        let seen = before.len() as u64;
        drive(&ours, &lease, seen, "taken over").await.unwrap();
        driver.signal("-CONT");
        driver.wait_for("lost");
        assert!(driver.process.wait().unwrap().success());
        let after = contents(&ours, &session(1)).await;
        assert_eq!(after[..before.len()], before);
        assert_eq!(after[before.len()..], ["taken over"]);
        // Somebody else's event needs no lease.
        append(&ours, &session(1), seen + 1, vec![says("an answer")])
            .await
            .unwrap();
        ours.release(&lease).await.unwrap();
    }
}

/// SPEC 9.5: a lease that was given back just before the database crashed may be there again: whoever gave it back finds the session as
/// one that nobody drives, and takes it at once; nobody else does.
#[tokio::test]
async fn given_back_before_a_crash() {
    let mut server = PostgresServer::start();
    let url = server.database();
    let (ours, theirs) = (store(&url), store(&url));
    let (us, them) = (Owner("us".to_owned()), Owner("them".to_owned()));
    let begun = vec![draft("turn_started", &json!({"served": {}})), says("go")];
    append(&ours, &session(1), 0, begun).await.unwrap();
    let lease = ours.acquire(&session(1), &us, now(), now() + HOUR_MS).await.unwrap();
    ours.release(&lease).await.unwrap();
    let name = url.rsplit('/').next().unwrap();
    server.psql(name, "UPDATE aish.leases SET owner = 'us'");
    assert_eq!(theirs.abandoned(now(), now(), 10).await.unwrap(), []);
    assert_eq!(ours.abandoned(now(), now(), 10).await.unwrap(), [session(1)]);
    let refused = theirs.acquire(&session(1), &them, now(), now() + HOUR_MS).await;
    assert!(matches!(refused, Err(StoreError::Leased { .. })), "{refused:?}");
    let again = ours.acquire(&session(1), &us, now(), now() + HOUR_MS).await.unwrap();
    drive(&ours, &again, 2, "here again").await.unwrap();
    // Taken again, it is not listed any more.
    assert_eq!(ours.abandoned(now() + HOUR_MS, now(), 10).await.unwrap(), []);
    // Somebody else may have taken it before the crash, and that be forgotten but for the fence.
    ours.release(&again).await.unwrap();
    server.psql(name, "UPDATE aish.leases SET owner = 'them'");
    assert_eq!(ours.abandoned(now() + HOUR_MS, now(), 10).await.unwrap(), []);
}
