//! Word of what another replica appends.

use super::server::PostgresServer;
use super::{LOOK_EVERY, PATIENCE, append, says, session, store};
use aish_store::Store as _;
use futures_util::future::join_all;
use std::time::Instant;
use tokio::time::timeout;

/// SPEC 9.8: those who follow a session hear of what another replica appends, over one connection however many they are.
#[tokio::test]
async fn others_are_heard() {
    let mut server = PostgresServer::start();
    let url = server.database();
    let (reader, writer) = (store(&url), store(&url));
    let mut seen = timeout(PATIENCE, reader.news(0)).await.unwrap().unwrap();
    for n in 0..3 {
        append(&writer, &session(1), n, vec![says("x")]).await.unwrap();
        let asked = join_all((0..100).map(|_| reader.news(seen)));
        let heard = timeout(PATIENCE, asked).await.unwrap();
        assert!(heard.iter().all(|heard| *heard.as_ref().unwrap() != seen));
        seen = heard.into_iter().map(Result::unwrap).max().unwrap();
    }
    let listening = "SELECT count(*) FROM pg_stat_activity WHERE query = 'LISTEN aish_news'";
    assert_eq!(server.psql("test_1", listening), "1");
    drop(reader);
    let since = Instant::now();
    while server.psql("test_1", listening) != "0" {
        assert!(since.elapsed() < PATIENCE, "nobody is left, and somebody listens");
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// SPEC 9.8: without a database nobody hears anything, and everybody looks; once it is back they hear again.
#[tokio::test]
async fn without_a_server_they_look() {
    let mut server = PostgresServer::start();
    let url = server.database();
    let (reader, writer) = (store(&url), store(&url));
    append(&writer, &session(1), 0, vec![says("x")]).await.unwrap();
    let mut seen = timeout(PATIENCE, reader.news(0)).await.unwrap().unwrap();
    server.stop();
    for _ in 0..3 {
        seen = timeout(PATIENCE, reader.news(seen)).await.unwrap().unwrap();
    }
    server.spawn();
    append(&writer, &session(1), 1, vec![says("y")]).await.unwrap();
    timeout(PATIENCE, reader.news(seen)).await.unwrap().unwrap();
}
