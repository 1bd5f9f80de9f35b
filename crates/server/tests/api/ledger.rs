//! A ledger that fails: what clients, balancers and the log are told (SPEC 9.8, 10.5).

use crate::bench::{Bench, usual};
use crate::exposition;
use crate::listener::{Served, head};
use crate::support::World;
use crate::support::watched::{Fate, Watched};
use crate::watched::{Kept, until};
use aish_provider::scripted::Act;
use aish_server::{Log, LogForm, Settings};
use aish_store::memory::MemoryStore;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// What the failing store says.
const DISK: &str = "scripted disk failure";
/// Longer than a failure is remembered.
const LATER: Duration = Duration::from_secs(60);

fn watched() -> Arc<Watched> {
    Watched::deciding(Arc::new(MemoryStore::new()), |_, _| Fate::Write)
}

/// SPEC 9.8: a server whose ledger takes nothing is not ready, though it can be read, and is again when it does; it does not write
/// for each who asks.
#[tokio::test(start_paused = true)]
async fn ready_or_not() {
    let store = watched();
    let bench = Bench::with(World::over(store.clone(), [Act::text("one")], Vec::new()), usual());
    let ready = async || bench.get("/readyz").await;
    assert_eq!(ready().await.status, 200);
    store.set_writes_fail(true);
    // What was found a moment ago still counts.
    assert_eq!(ready().await.status, 200);
    tokio::time::advance(LATER).await;
    let refused = ready().await;
    refused.refused(503, "unavailable", "the ledger");
    assert!(
        refused.headers.contains_key("retry-after") && !refused.body.contains(DISK),
        "{refused:?}"
    );
    assert_eq!(bench.get("/healthz").await.status, 200);
    assert_eq!(bench.get("/api/sessions").await.status, 200);
    store.set_writes_fail(false);
    tokio::time::advance(LATER).await;
    assert_eq!(ready().await.status, 200);
}

/// SPEC 9.8: a probe that fails is a failure of the ledger, also where it does not answer at all; it is counted once, however often what
/// it found is told.
#[tokio::test(start_paused = true)]
async fn a_failed_probe_counts_once() {
    let store = watched();
    let bench = Bench::with(World::over(store.clone(), [], Vec::new()), usual());
    let count = async || exposition::read(&bench.get("/metrics").await.body)["aish_store_errors_total"];
    let ask_often = async |says: &str| {
        for _ in 0..5 {
            bench.get("/readyz").await.refused(503, "unavailable", says);
        }
    };
    store.set_writes_fail(true);
    ask_often("cannot be read or written").await;
    assert_eq!(count().await, 1.0);
    store.set_writes_fail(false);
    store.let_leases_hang();
    tokio::time::advance(LATER).await;
    ask_often("does not answer").await;
    assert_eq!(count().await, 2.0);
}

/// SPEC 9.8: small writes may fit where an event does not: a server that failed a request is not ready for a while.
#[tokio::test]
async fn not_ready_after_a_failure() {
    let store = Watched::deciding(Arc::new(MemoryStore::new()), |n, _| match n {
        1 => Fate::Fail,
        _ => Fate::Write,
    });
    let served = Served::over(World::over(store, [Act::text("one")], Vec::new()), Settings::default()).await;
    let ask = async || served.say(&head("POST /api/chat"), "{\"message\":\"hi\"}").await.0;
    let ready = async || served.say("GET /readyz HTTP/1.1\r\nHost: localhost", "").await;
    assert_eq!(ask().await, 503);
    let (status, _, said) = ready().await;
    assert!(status == 503 && said.contains("a moment ago"), "{said}");
    tokio::time::pause();
    tokio::time::advance(LATER).await;
    tokio::time::resume();
    assert_eq!(ready().await.0, 200);
    assert_eq!(ask().await, 200);
}

/// SPEC 9.8: a session that is read page by page is folded once, and again when it has gone on.
#[tokio::test]
async fn folded_once() {
    let store = watched();
    let acts = [Act::calls(&[("pick", "{}")]), Act::text("done")];
    let bench = Bench::with(World::over(store.clone(), acts, Vec::new()), usual());
    let waits = bench.chat("go", &["pick"]).await;
    let session = waits["conversation_id"].as_str().unwrap();
    let page = async |after: u64| {
        bench
            .get(&format!("/api/sessions/{session}?after={after}&limit=1"))
            .await
    };
    assert_eq!(page(0).await.accepted()["pending"], waits);
    store.set_loads_fail(true);
    for after in 1..4 {
        let page = page(after).await.accepted();
        assert_eq!((&page["state"], &page["pending"]), (&json!("pending"), &waits));
    }
    store.set_loads_fail(false);
    bench.answer(&waits, "x").await.accepted();
    store.set_loads_fail(true);
    page(0).await.refused(503, "unavailable", "the ledger");
    store.set_loads_fail(false);
    let page = page(0).await.accepted();
    assert_eq!((&page["state"], &page["pending"]), (&json!("idle"), &Value::Null));
}

/// SPEC 9.8, 10.5: why the ledger failed is in the log with the request and the session, and nowhere else; what is no fault of the
/// ledger's is not counted as one.
#[tokio::test]
async fn in_the_log() {
    let kept = Kept::default();
    let settings = Settings {
        log: Some(Log::new(LogForm::Json, kept.clone()).unwrap()),
        ..Settings::default()
    };
    let store = watched();
    let world = World::over(store.clone(), [Act::text("one")], Vec::new());
    let served = Served::over(world, settings).await;
    let (_, _, told) = served.say(&head("POST /api/chat"), "{\"message\":\"hi\"}").await;
    let told: Value = serde_json::from_str(&told).unwrap();
    let session = told["conversation_id"].as_str().unwrap();
    let count = async || {
        let (_, _, text) = served.say(&head("GET /metrics"), "").await;
        exposition::read(&text)["aish_store_errors_total"]
    };
    let (status, _, _) = served.say(&head("GET /api/sessions/nobody"), "").await;
    assert_eq!((status, count().await), (404, 0.0));
    store.set_writes_fail(true);
    store.set_loads_fail(true);
    let more = json!({"message": "on", "conversation_id": session}).to_string();
    let requests = [
        ("POST /api/chat".to_owned(), more.as_str()),
        (format!("POST /api/sessions/{session}/cancel"), "{}"),
        (format!("GET /api/sessions/{session}"), ""),
    ];
    for (n, (line, body)) in requests.iter().enumerate() {
        let request = format!("{}\r\nX-Request-Id: r-{n}", head(line));
        let (status, head, said) = served.say(&request, body).await;
        assert_eq!(status, 503, "{line}: {said}");
        assert!(head.contains("retry-after: ") && !said.contains(DISK), "{line}: {said}");
        let id = format!("r-{n}");
        let is_it = |line: &Value| line["request_id"] == id.as_str();
        until(|| kept.lines().iter().any(is_it)).await;
        let line = kept.lines().into_iter().find(is_it).unwrap();
        assert_eq!(
            (&line["level"], &line["session"]),
            (&json!("error"), &json!(session)),
            "{line}"
        );
        assert!(line["problem"].as_str().unwrap().contains(DISK), "{line}");
    }
    assert_eq!(count().await, 3.0);
}
