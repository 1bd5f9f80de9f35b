//! Word of what another replica appends.

use super::server::PostgresServer;
use super::{LOOK_EVERY, PATIENCE, append, says, session, store};
use aish_store::Store;
use aish_store::postgres::PostgresStore;
use futures_util::future::join_all;
use tokio::time::{sleep, timeout};

/// As often as they would look by themselves, so many appends are seen in more than [`PATIENCE`] altogether: every 5 seconds while
/// they listen.
const ROUNDS: u64 = 20;
const READERS: u64 = 100;

/// Waits until so many connections listen.
async fn listening(server: &PostgresServer, count: &str) {
    let listening = "SELECT count(*) FROM pg_stat_activity WHERE query = 'LISTEN aish_news'";
    let is_so = async {
        while server.psql("test_1", listening) != count {
            sleep(LOOK_EVERY).await;
        }
    };
    let what = format!("there are never {count} who listen");
    timeout(PATIENCE, is_so).await.expect(&what);
}

/// Each of some appends by another replica is heard of by all who ask, in less time than they would need to look.
async fn are_heard(reader: &PostgresStore, writer: &PostgresStore, first_seq: u64) {
    let rounds = async {
        let mut seen = reader.news(0).await.unwrap();
        for n in 0..ROUNDS {
            append(writer, &session(1), first_seq + n, vec![says("x")])
                .await
                .unwrap();
            let asked = join_all((0..READERS).map(|_| reader.news(seen))).await;
            let heard: Vec<u64> = asked.into_iter().map(Result::unwrap).collect();
            assert!(heard.iter().all(|heard| *heard != seen));
            seen = heard.into_iter().max().unwrap();
        }
    };
    timeout(PATIENCE, rounds).await.expect("they look, and do not hear");
}

/// SPEC 9.8: those who follow a session hear of what another replica appends, over one connection however many they are.
#[tokio::test]
async fn others_are_heard() {
    let mut server = PostgresServer::start();
    let url = server.database();
    let (reader, writer) = (store(&url), store(&url));
    timeout(PATIENCE, reader.news(0)).await.unwrap().unwrap();
    append(&writer, &session(2), 0, vec![says("the tables are made")])
        .await
        .unwrap();
    listening(&server, "1").await;
    are_heard(&reader, &writer, 0).await;
    listening(&server, "1").await;
    drop(reader);
    listening(&server, "0").await;
}

/// SPEC 9.8: without a database nobody hears anything, and everybody looks; once it is back they hear again.
#[tokio::test]
async fn without_a_server_they_look() {
    let mut server = PostgresServer::start();
    let url = server.database();
    let (reader, writer) = (store(&url), store(&url));
    append(&writer, &session(1), 0, vec![says("x")]).await.unwrap();
    let mut seen = timeout(PATIENCE, reader.news(0)).await.unwrap().unwrap();
    listening(&server, "1").await;
    server.stop();
    for _ in 0..3 {
        seen = timeout(PATIENCE, reader.news(seen)).await.unwrap().unwrap();
    }
    server.spawn();
    listening(&server, "1").await;
    are_heard(&reader, &writer, 1).await;
}
