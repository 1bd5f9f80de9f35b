//! The file itself: its permissions, its versions, what a foreign or damaged one is told, and the indexes in it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use aish_core::event::{Body, Draft};
use aish_core::id::{CallId, ContinuationId, SessionId};
use aish_store::sqlite::SqliteStore;
use aish_store::{Durability, Hold, PendingState, SessionFilter, Store, StoreError};
use rusqlite::Connection;
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A ledger as the first version wrote it.
const V1: &str = include_str!("ledgers/v1.sql");
/// The same as the second one wrote it.
const V2: &str = include_str!("ledgers/v2.sql");
/// A ledger of clients elsewhere, as the third version wrote it.
const V3: &str = include_str!("ledgers/v3.sql");

fn place() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data/aish/ledger.db");
    (directory, path)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

async fn say(store: &SqliteStore, session: &SessionId, expected_seq: u64, text: &str) {
    let drafts = vec![Draft::user(1, text)];
    store
        .append(session, expected_seq, drafts, 5, Durability::Committed, Hold::Nothing)
        .await
        .unwrap();
}

/// Writes a file by hand and gives its path; its directory is closed to others already.
fn written(directory: &TempDir, sql: &str) -> PathBuf {
    let path = directory.path().join("ledger.db");
    Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    path
}

async fn refusal(path: &Path) -> String {
    let store = SqliteStore::new(path);
    match store.list(SessionFilter::default()).await {
        Err(StoreError::Format(text)) => text,
        other => panic!("not refused: {other:?}"),
    }
}

/// SPEC 2.10: nobody else can read the ledger, its side files or its directory.
#[tokio::test]
async fn the_file_is_private() {
    let (_directory, path) = place();
    let store = SqliteStore::new(&path);
    assert!(!path.exists(), "made before it was needed");
    say(&store, &SessionId::new("s"), 0, "secret").await;
    for suffix in ["", "-wal", "-shm"] {
        let file = PathBuf::from(format!("{}{suffix}", path.display()));
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    assert_eq!(mode(path.parent().unwrap().parent().unwrap()), 0o700);
}

/// SPEC 2.10: a ledger that was left open to others is closed to them.
#[tokio::test]
async fn an_open_file_is_closed_to_others() {
    let (_directory, path) = place();
    say(&SqliteStore::new(&path), &SessionId::new("s"), 0, "a").await;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    say(&SqliteStore::new(&path), &SessionId::new("s"), 1, "b").await;
    assert_eq!(mode(&path), 0o600);
}

/// SPEC 2.4: a file of each earlier version opens, is read, and goes on.
#[tokio::test]
async fn earlier_versions_open() {
    let directory = tempfile::tempdir().unwrap();
    for sql in [V1, V2] {
        let path = written(&directory, sql);
        let store = SqliteStore::new(&path);
        let list = store.list(SessionFilter::default()).await.unwrap();
        assert_eq!(list.len(), 1);
        assert_eq!(
            (list[0].title.as_str(), list[0].events, list[0].waiting),
            ("what is here?", 6, true)
        );
        let session = store.find("6c1d").await.unwrap();
        assert_eq!(store.load(&session, 0).await.unwrap().len(), 6);
        let open = store
            .continuation(&ContinuationId::new("br-1-a"))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(
            (open.call, open.state),
            (Some(CallId::new("call_1_1")), PendingState::Open)
        );
        say(&store, &session, 6, "go on").await;
        let typed = store.typed(10, "nobody").await.unwrap();
        let texts: Vec<&str> = typed.iter().map(|line| line.text.as_str()).collect();
        // By time: what is said here is of 1970.
        assert_eq!(texts, ["what is here?", "go on"]);
        drop(store);
        let version: i64 = Connection::open(&path)
            .unwrap()
            .query_row("PRAGMA user_version", [], |row| row.get(0))
            .unwrap();
        assert_eq!(version, 3);
        fs::remove_file(path).unwrap();
    }
}

/// SPEC 2.4, 9.5: turns of clients elsewhere that an earlier version left are found, and what its indexes say is what its events
/// say.
#[tokio::test]
async fn turns_of_clients_of_earlier_versions() {
    let directory = tempfile::tempdir().unwrap();
    let path = written(&directory, V3);
    let store = SqliteStore::new(&path);
    let list = store.list(SessionFilter::default()).await.unwrap();
    let told: Vec<(&str, u64, bool)> = list
        .iter()
        .map(|summary| (summary.title.as_str(), summary.events, summary.waiting))
        .collect();
    assert_eq!(
        told,
        [
            ("And there?", 10, false),
            ("And in Ulm?", 6, true),
            ("How is it in Jena?", 17, true)
        ]
    );
    let (jena, ulm) = (&list[2].id, &list[1].id);
    let waiting = store.waiting_under(ulm).await.unwrap().unwrap();
    assert_eq!((waiting.seq, waiting.state), (6, PendingState::Open));
    let answered = ContinuationId::new("br-1720374887787-000006fc7bbbae7f09fc89");
    let answered = store.continuation(&answered).await.unwrap().unwrap();
    assert_eq!((&answered.session, answered.state), (jena, PendingState::Answered));
    let asked = store.request("key-2").await.unwrap().unwrap();
    assert_eq!((&asked.session, asked.seq), (jena, 8));
    let expired = store.expired(waiting.expires.unwrap(), 10).await.unwrap();
    assert_eq!(expired.len(), 2);
    let event = store.load(jena, 0).await.unwrap().remove(0);
    let Body::TurnStarted(began) = event.body else {
        panic!("{event:?}")
    };
    let served = began.served.unwrap();
    assert_eq!(
        (served.tools[0].name.as_str(), served.request.unwrap().key.as_str()),
        ("get_weather", "key-1")
    );

    let followed = indexes(&path);
    store.rebuild_indexes().await.unwrap();
    assert_eq!(indexes(&path), followed);
}

/// SPEC 2.4, 10.4: what is not a ledger of ours is refused, unharmed, with the file, the reason and a way out.
#[tokio::test]
async fn foreign_files_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    for (sql, expect) in [
        (
            format!("{V1} PRAGMA user_version = 99;"),
            "newer aish (format 99; this one knows up to 3). Update aish",
        ),
        (
            "CREATE TABLE bookmarks (url TEXT);".to_owned(),
            "another program's database. Move it away",
        ),
    ] {
        let path = written(&directory, &sql);
        let before = fs::read(&path).unwrap();
        let text = refusal(&path).await;
        assert!(
            text.contains(expect) && text.contains(&path.display().to_string()),
            "{text}"
        );
        assert_eq!(fs::read(&path).unwrap(), before);
        fs::remove_file(path).unwrap();
    }
    let path = directory.path().join("ledger.db");
    fs::write(&path, "Dear diary,\n".repeat(200)).unwrap();
    let text = refusal(&path).await;
    assert!(text.contains("no SQLite database. Move it away"), "{text}");
}

/// SPEC 10.4: a damaged ledger is told as such.
#[tokio::test]
async fn a_damaged_file_is_told() {
    let (_directory, path) = place();
    let store = SqliteStore::new(&path);
    let session = SessionId::new("s");
    for seq in 0..20 {
        say(&store, &session, seq, &"words ".repeat(1_000)).await;
    }
    drop(store);
    let mut bytes = fs::read(&path).unwrap();
    let len = bytes.len();
    bytes[4096..len].fill(0x5a);
    fs::write(&path, bytes).unwrap();
    let text = refusal(&path).await;
    assert!(text.contains("is damaged") && text.contains(".recover"), "{text}");
}

/// SPEC 2.5, 10.4: a disk that is not there is an error that says what was tried; once it is back, the same store works.
#[tokio::test]
async fn a_disk_that_comes_back_is_used() {
    let (directory, path) = place();
    fs::write(directory.path().join("data"), "in the way").unwrap();
    let store = SqliteStore::new(&path);
    let session = SessionId::new("s");
    let error = store.load(&session, 0).await.unwrap_err();
    assert!(matches!(error, StoreError::Io { .. }), "{error:?}");
    assert!(
        error
            .to_string()
            .starts_with(&format!("making the ledger {}", path.display())),
        "{error}"
    );
    fs::remove_file(directory.path().join("data")).unwrap();
    say(&store, &session, 0, "back").await;
}

/// Puts an event into the file as another program might.
fn insert_raw(path: &Path, seq: u64, version: u32, kind: &str, data: Option<&str>) {
    let connection = Connection::open(path).unwrap();
    connection
        .execute(
            "INSERT INTO events (place, turn, time, version, kind, content, data)
             SELECT (number << 32) + ?1, 1, 2, ?2, ?3, 'raw', ?4 FROM sessions",
            rusqlite::params![seq, version, kind, data],
        )
        .unwrap();
}

/// SPEC 2.4: what a newer aish wrote is kept to the byte, unknown kinds and unknown fields alike.
#[tokio::test]
async fn newer_events_are_preserved() {
    let (_directory, path) = place();
    let store = SqliteStore::new(&path);
    let session = SessionId::new("s");
    say(&store, &session, 0, "a").await;
    let hologram = r#"{ "depth" : 1.50, "b":2,"a":1 }"#;
    let usage = r#"{"input_tokens":1,"carbon_grams":0.25}"#;
    insert_raw(&path, 2, 9, "hologram", Some(hologram));
    insert_raw(&path, 3, 9, "usage", Some(usage));
    insert_raw(&path, 4, 1, "clear", None);

    let events = store.load(&session, 0).await.unwrap();
    assert!(matches!(&events[1].body, Body::Unknown { kind, .. } if kind == "hologram"));
    assert!(matches!(&events[2].body, Body::Usage(data) if data.input_tokens == 1));
    assert_eq!((events[2].version, &events[3].body), (9, &Body::Clear));
    let raw = store.load_raw(&session, 0, usize::MAX).await.unwrap();
    let data: Vec<&str> = raw.iter().map(|raw| raw.data.as_str()).collect();
    assert_eq!(data, ["null", hologram, usage, "null"]);
    // The index does not know of them, the sequence does.
    say(&store, &session, 4, "b").await;
    assert_eq!(store.list(SessionFilter::default()).await.unwrap()[0].events, 5);
}

/// SPEC 10.4: an event of a known kind that is not of its shape is named.
#[tokio::test]
async fn an_unreadable_event_is_named() {
    let (_directory, path) = place();
    let store = SqliteStore::new(&path);
    let session = SessionId::new("s-1");
    say(&store, &session, 0, "a").await;
    insert_raw(&path, 2, 1, "tool_call", Some(r#"{"id":7}"#));
    let error = store.load(&session, 0).await.unwrap_err();
    assert!(matches!(error, StoreError::Format(_)), "{error:?}");
    assert!(
        error
            .to_string()
            .starts_with("event 2 of session s-1 (kind tool_call) cannot be read: "),
        "{error}"
    );
    assert_eq!(store.load_raw(&session, 0, 9).await.unwrap().len(), 2);
}

/// What the derived tables hold.
fn indexes(path: &Path) -> Vec<String> {
    let connection = Connection::open(path).unwrap();
    let mut rows = Vec::new();
    for table in ["summaries", "waiting_calls", "pending", "requests"] {
        let mut statement = connection
            .prepare(&format!("SELECT * FROM {table} ORDER BY 1, 2"))
            .unwrap();
        let columns = statement.column_count();
        let mut found = statement.query([]).unwrap();
        while let Some(row) = found.next().unwrap() {
            let values: Vec<rusqlite::types::Value> = (0..columns).map(|n| row.get(n).unwrap()).collect();
            rows.push(format!("{table} {values:?}"));
        }
    }
    rows
}

fn draft(turn: u64, kind: &str, data: serde_json::Value) -> Draft {
    Draft::new(turn, kind, Body::decode(kind, &data.to_string()).unwrap())
}

/// What is appended to a session, one append after the other.
fn appends() -> Vec<Vec<Draft>> {
    let gated = |n: usize, verdict: &str, source: &str| {
        draft(
            1,
            "call_gated",
            json!({"call_id": CallId::nth(1, n), "verdict": verdict, "rule": "", "source": source}),
        )
    };
    let answered = json!({"call_id": "call_1_2", "answer": "approve", "digest": "d", "by": "client"});
    let continuation = |kind: &str, id: &str| draft(1, kind, json!({"continuation": id}));
    vec![
        vec![
            draft(1, "turn_started", json!({"directory": "/w"})),
            Draft::user(1, "q"),
        ],
        vec![
            gated(1, "allow", "client"),
            gated(2, "ask", "client"),
            gated(3, "ask", "builtin"),
        ],
        vec![continuation("suspended", "c1")],
        vec![continuation("resumed", "c1"), draft(1, "call_answered", answered)],
        vec![
            continuation("suspended", "c2"),
            continuation("resumed", "c2"),
            continuation("suspended", "c3"),
        ],
        vec![
            draft(1, "turn_ended", json!({"reason": "end"})),
            draft(2, "turn_started", json!(null)),
        ],
        vec![
            gated(4, "allow", "client"),
            continuation("suspended", "c4"),
            continuation("suspended", "c1"),
        ],
    ]
}

/// A turn of a client elsewhere, with keys and an end.
fn served_turn() -> Vec<Draft> {
    let served = json!({"served": {"request": {"key": "k1", "digest": "d1"}}});
    let suspended = json!({"continuation": "s1", "call_id": "call_1_9", "expires": 900});
    let resumed = json!({"continuation": "s1", "request": {"key": "k2", "digest": "d2"}});
    let result = json!({"tool_call_id": "call_1_9", "output": "", "success": true});
    vec![
        draft(1, "turn_started", served),
        draft(1, "suspended", suspended),
        draft(1, "resumed", resumed),
        draft(1, "tool_result", result),
        draft(
            1,
            "suspended",
            json!({"continuation": "s2", "call_id": "call_1_9", "expires": u64::MAX}),
        ),
    ]
}

/// SPEC 9.5 (DESIGN rule 10): the indexes are nothing but what the events say: rebuilt, they are the same.
#[tokio::test]
async fn rebuilt_indexes_equal_the_followed() {
    let (_directory, path) = place();
    let store = SqliteStore::new(&path);
    let appends = appends();
    let sessions = [SessionId::new("one"), SessionId::new("two")];
    let mut last_seq = 0;
    for drafts in appends {
        // The second session stops half-way, so that the two differ.
        for session in sessions.iter().take(if last_seq < 6 { 2 } else { 1 }) {
            // Continuations are unique in a ledger.
            let mut drafts = drafts.clone();
            for draft in &mut drafts {
                if let Body::Suspended(data) = &mut draft.body
                    && session.as_str() == "two"
                {
                    data.continuation = ContinuationId::new(format!("two-{}", data.continuation));
                }
            }
            store
                .append(
                    session,
                    last_seq,
                    drafts,
                    last_seq,
                    Durability::Committed,
                    Hold::Nothing,
                )
                .await
                .unwrap();
        }
        last_seq = store.load(&sessions[0], 0).await.unwrap().len() as u64;
    }
    let third = SessionId::new("three");
    store
        .append(&third, 0, served_turn(), 7, Durability::Committed, Hold::Nothing)
        .await
        .unwrap();

    let followed = indexes(&path);
    assert!(followed.len() > 8, "{followed:#?}");
    assert!(
        followed.iter().filter(|row| row.starts_with("requests")).count() == 2,
        "{followed:#?}"
    );
    let mut states = Vec::new();
    for id in ["c1", "c2", "c3", "c4", "c5"] {
        let found = store.continuation(&ContinuationId::new(id)).await.unwrap();
        states.push(found.map(|pending| (pending.call.unwrap().as_str().to_owned(), pending.state)));
    }
    let expect = |call: &str, state: PendingState| Some((call.to_owned(), state));
    assert_eq!(
        states,
        [
            expect("call_1_2", PendingState::Answered),
            expect("call_1_3", PendingState::Answered),
            expect("call_1_3", PendingState::Closed),
            expect("call_1_4", PendingState::Open),
            None
        ]
    );

    let connection = Connection::open(&path).unwrap();
    connection
        .execute_batch(
            "UPDATE summaries SET title = 'wrong', waiting = 7; DELETE FROM pending; DELETE FROM waiting_calls; DELETE FROM requests;",
        )
        .unwrap();
    assert_ne!(indexes(&path), followed);
    store.rebuild_indexes().await.unwrap();
    assert_eq!(indexes(&path), followed);
}

/// SPEC 10.4: a person who asks how the ledger is learns its format, how much is in it, and whether it is in order.
#[tokio::test]
async fn health() {
    use aish_store::sqlite::Pages;
    let (_directory, path) = place();
    let store = SqliteStore::new(&path);
    for id in ["a", "b"] {
        say(&store, &SessionId::new(id), 0, &"x".repeat(50_000)).await;
    }
    let health = store.health().await.unwrap();
    assert_eq!((health.format, health.sessions, health.pages), (3, 2, Pages::Sound));
    assert!(health.bytes > 100_000, "{}", health.bytes);
    drop(store);

    // A page out of the middle is overwritten, as a failing disk does.
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2 / 4096 * 4096;
    bytes[middle..middle + 4096].fill(0xff);
    fs::write(&path, bytes).unwrap();
    let damaged = SqliteStore::new(&path).health().await;
    let is_told = match &damaged {
        Ok(health) => matches!(health.pages, Pages::Damaged(_)),
        Err(_) => true,
    };
    assert!(is_told, "{damaged:?}");
}
