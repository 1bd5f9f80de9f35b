//! What a database may be like that is to hold a ledger, and what is said of one that cannot.

use super::server::{PASSWORD_ENCODED, PostgresServer, USER};
use super::{append, contents, draft, resumed, says, session, store, suspended};
use aish_core::id::ContinuationId;
use aish_store::postgres::{PostgresStore, PostgresUrl};
use aish_store::{Owner, SessionFilter, Store as _, StoreError};
use futures_util::future::join_all;
use serde_json::json;
use std::net::TcpListener;

async fn refusal(url: &str) -> String {
    let store: PostgresStore = store(url);
    let told = store.list(SessionFilter::default()).await.unwrap_err().to_string();
    for shown in [&told, &format!("{store:?}")] {
        assert!(
            !shown.contains("pass@word") && !shown.contains(PASSWORD_ENCODED),
            "{shown}"
        );
    }
    told
}

/// SPEC 9.5: replicas that start at once on an empty database make its tables once, and all of them go on.
#[tokio::test]
async fn many_start_at_once() {
    let mut server = PostgresServer::start();
    let url = server.database();
    let replicas: Vec<PostgresStore> = (0..8).map(|_| store(&url)).collect();
    let sessions: Vec<_> = (0..8).map(session).collect();
    let writes = replicas.iter().zip(&sessions);
    let written = join_all(writes.map(|(replica, session)| append(replica, session, 0, vec![says("hello")]))).await;
    assert!(written.into_iter().all(|result| result.unwrap() == 1));
    let list = replicas[0].list(SessionFilter::default()).await.unwrap();
    assert_eq!(list.len(), 8);
    assert_eq!(server.psql("test_1", "SELECT version FROM aish.format"), "1");
    replicas[0].check().await.unwrap();
}

/// SPEC 10.4, 10.5: a database that cannot be used is told with what to do about it, and without the password.
#[tokio::test]
async fn what_cannot_be_used_is_told() {
    let mut server = PostgresServer::start();
    let by_port = server.database_by_port();
    let port = server.port();

    let told = refusal(&by_port.replace(PASSWORD_ENCODED, "wrong")).await;
    assert!(
        told.contains("Check user and password") && told.contains("127.0.0.1"),
        "{told}"
    );
    let told = refusal(&format!(
        "postgres://{USER}:{PASSWORD_ENCODED}@127.0.0.1:{port}/nowhere"
    ))
    .await;
    assert!(told.contains("Make it with `createdb`"), "{told}");

    server.psql(
        "postgres",
        "CREATE DATABASE old ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0",
    );
    let told = refusal(&by_port.replace("test_1", "old")).await;
    assert!(told.contains("encoding is LATIN1, and a ledger needs UTF8"), "{told}");

    server.psql("postgres", "CREATE ROLE guest LOGIN");
    let guest = server.database().replace(&format!("{USER}@"), "guest@");
    let told = refusal(&guest).await;
    assert!(told.contains("GRANT CREATE ON DATABASE"), "{told}");

    append(&store(&by_port), &session(1), 0, vec![says("x")]).await.unwrap();
    server.psql("test_1", "UPDATE aish.format SET version = 99");
    let told = refusal(&by_port).await;
    assert!(
        told.contains("newer aish (format 99; this one knows up to 1). Update aish"),
        "{told}"
    );

    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let told = refusal(&format!("postgres://{USER}:{PASSWORD_ENCODED}@127.0.0.1:{nobody}/x")).await;
    assert!(
        told.contains("listing the sessions of the ledger postgres://aish@127.0.0.1"),
        "{told}"
    );
}

/// What is derived of all sessions, as text.
fn derived(server: &PostgresServer) -> Vec<String> {
    let tables = [
        "sessions ORDER BY id",
        "waiting_calls ORDER BY session, position",
        "pending ORDER BY seq",
        "requests",
    ];
    tables
        .map(|table| server.psql("test_1", &format!("SELECT * FROM aish.{table}")))
        .into()
}

/// SPEC 9.5, 12: what is derived of the events can be made again from them alone.
#[tokio::test]
async fn indexes_can_be_rebuilt() {
    let mut server = PostgresServer::start();
    let replica = store(&server.database());
    let served = json!({"model": "desk", "directory": "/w", "served": {"request": {"key": "k", "digest": "d"}}});
    let asked = json!({"call_id": "call_1_1", "verdict": "ask", "rule": "default", "source": "builtin"});
    let continuations = ["c1", "c2"].map(ContinuationId::new);
    let drafts = vec![
        draft("turn_started", &served),
        says("what is this?"),
        draft("call_gated", &asked),
        suspended(&continuations[0]),
        resumed(&continuations[0]),
        suspended(&continuations[1]),
    ];
    append(&replica, &session(1), 0, drafts).await.unwrap();
    // More than is read at once.
    append(&replica, &session(2), 0, vec![says("x"); 2_500]).await.unwrap();
    let before = derived(&server);
    assert!(before.iter().all(|rows| !rows.is_empty()), "{before:?}");
    server.psql("test_1", "TRUNCATE aish.sessions, aish.waiting_calls, aish.requests");
    server.psql("test_1", "UPDATE aish.pending SET state = 'closed', call = NULL");
    replica.rebuild_indexes().await.unwrap();
    assert_eq!(derived(&server), before);
    append(&replica, &session(2), 2_500, vec![says("on")]).await.unwrap();
}

/// SPEC 2.5: where a database answers before its disk has what it was told, it does not for us.
#[tokio::test]
async fn commits_wait_for_the_disk() {
    let mut server = PostgresServer::start();
    let url = server.database();
    server.psql("test_1", "ALTER DATABASE test_1 SET synchronous_commit = off");
    server.psql(
        "test_1",
        "ALTER DATABASE test_1 SET default_transaction_isolation = 'serializable'",
    );
    let replica = store(&url);
    // Nothing but a crash tells whether it waited.
    for n in 0..5 {
        append(&replica, &session(1), n, vec![says("kept")]).await.unwrap();
        server.restart_immediately();
        assert_eq!(contents(&replica, &session(1)).await.len() as u64, n + 1);
    }
}

/// SPEC 9.5: of several servers that an address names, the ledger is in the one that can be written to.
#[tokio::test]
async fn of_several_the_one_that_writes() {
    let (mut follows, mut leads) = (PostgresServer::start(), PostgresServer::start());
    follows.database();
    leads.database();
    follows.psql("postgres", "ALTER SYSTEM SET default_transaction_read_only = on");
    follows.restart_immediately();
    let hosts = [follows.port(), leads.port()].map(|port| format!("127.0.0.1:{port}"));
    let hosts = hosts.join(",");
    let replica = store(&format!("postgres://{USER}:{PASSWORD_ENCODED}@{hosts}/test_1"));
    append(&replica, &session(1), 0, vec![says("x")]).await.unwrap();
    follows.stop();
    append(&replica, &session(1), 1, vec![says("y")]).await.unwrap();
    assert_eq!(leads.psql("test_1", "SELECT count(*) FROM aish.events"), "2");
}

/// A store that only looks.
fn looking(url: &str) -> PostgresStore {
    PostgresStore::only_looking(PostgresUrl::parse(url).unwrap()).unwrap()
}

/// What a database says that is looked at and has no tables of this version.
async fn refusal_to_look(url: &str) -> String {
    let StoreError::Format(told) = looking(url).list(SessionFilter::default()).await.unwrap_err() else {
        panic!("another error");
    };
    told
}

/// SPEC 9.5, 10.4: whoever only looks at a database finds a ledger of this version in it, or is told what is there and what to do;
/// nothing is made, and nothing is brought to this version.
#[tokio::test]
async fn looking_changes_nothing() {
    let mut server = PostgresServer::start();
    let url = server.database();
    let schemas = "SELECT count(*) FROM pg_namespace WHERE nspname = 'aish'";
    let replica = looking(&url);
    assert!(!replica.has_tables().await.unwrap());
    let told = refusal_to_look(&url).await;
    assert!(
        told.contains("there is no ledger in postgres://aish@") && told.contains("`aish serve` makes its tables"),
        "{told}"
    );
    replica.check().await.unwrap_err();
    replica.rebuild_indexes().await.unwrap_err();
    append(&replica, &session(1), 0, vec![says("x")]).await.unwrap_err();
    assert_eq!(server.psql("test_1", schemas), "0");

    // The same one sees a ledger once a server has made it.
    append(&store(&url), &session(1), 0, vec![says("hello")]).await.unwrap();
    assert!(replica.has_tables().await.unwrap());
    assert_eq!(contents(&replica, &session(1)).await, ["hello"]);
    replica.check().await.unwrap();

    let told_of = [
        (
            "0",
            "of an earlier aish (format 0; this one reads 1), and looking changes nothing. Start `aish serve`",
        ),
        ("99", "newer aish (format 99; this one knows up to 1). Update aish"),
    ];
    for (version, expected) in told_of {
        server.psql("test_1", &format!("UPDATE aish.format SET version = {version}"));
        let told = refusal_to_look(&url).await;
        assert!(told.contains(expected), "{told}");
        let told = looking(&url).has_tables().await.unwrap_err().to_string();
        assert!(told.contains(expected), "{told}");
        assert_eq!(server.psql("test_1", "SELECT version FROM aish.format"), version);
    }
}

/// SPEC 9.5, 10.4: the database itself lets nothing be written by those who only look, and they are told why, not made to wait.
#[tokio::test]
async fn looking_writes_nothing() {
    let mut server = PostgresServer::start();
    let url = server.database();
    append(&store(&url), &session(1), 0, vec![says("hello")]).await.unwrap();
    let replica = looking(&url);
    let owner = Owner("somebody".to_owned());
    let refusals = [
        // A new session, and one whose place is known.
        append(&replica, &session(2), 0, vec![says("x")]).await.map(drop),
        append(&replica, &session(1), 1, vec![says("x")]).await.map(drop),
        replica.acquire(&session(1), &owner, 1, 2).await.map(drop),
        replica.rebuild_indexes().await,
    ];
    for refusal in refusals {
        let Err(StoreError::Format(told)) = refusal else {
            panic!("{refusal:?}");
        };
        assert!(
            told.contains("it was opened to look at, and nothing can be written to it"),
            "{told}"
        );
    }
    assert_eq!(contents(&replica, &session(1)).await, ["hello"]);
    assert_eq!(server.psql("test_1", "SELECT count(*) FROM aish.events"), "1");
    assert_eq!(server.psql("test_1", "SELECT count(*) FROM aish.leases"), "0");
}

/// SPEC 9.5, 10.5: a user of the database who may read and no more is enough to look, and is told what is missing for that.
#[tokio::test]
async fn looking_needs_no_more_than_reading() {
    let mut server = PostgresServer::start();
    let url = server.database();
    append(&store(&url), &session(1), 0, vec![says("hello")]).await.unwrap();
    server.psql("postgres", "CREATE ROLE guest LOGIN");
    let guest = url.replace(&format!("{USER}@"), "guest@");
    let told = looking(&guest).list(SessionFilter::default()).await.unwrap_err();
    assert!(told.to_string().contains("GRANT USAGE ON SCHEMA aish"), "{told}");
    server.psql(
        "test_1",
        "GRANT USAGE ON SCHEMA aish TO guest; GRANT SELECT ON ALL TABLES IN SCHEMA aish TO guest",
    );
    let replica = looking(&guest);
    assert_eq!(replica.list(SessionFilter::default()).await.unwrap().len(), 1);
    assert_eq!(contents(&replica, &session(1)).await, ["hello"]);
}

/// SPEC 10.4: a PostgreSQL that gets no repairs any more is refused, by its name. This one only says that it is so old.
#[tokio::test]
async fn too_old_a_server() {
    let mut server = PostgresServer::start();
    let url = server.database();
    server.psql(
        "test_1",
        "CREATE SCHEMA old; CREATE FUNCTION old.current_setting(text) RETURNS text LANGUAGE sql AS $$
             SELECT CASE $1 WHEN 'server_version_num' THEN '120022' WHEN 'server_version' THEN '12.22'
                 ELSE pg_catalog.current_setting($1) END $$;
         ALTER DATABASE test_1 SET search_path = old, pg_catalog",
    );
    let told = refusal(&url).await;
    assert!(
        told.contains("PostgreSQL 12.22 is too old to keep a ledger: 13 or later is needed"),
        "{told}"
    );
}
