//! Answers and requests that race, and who may take over: what is left of [`crate::waits`] once several do it at once.

use super::{Fixture, LOOK_EVERY, PATIENCE, append, contents, fixtures, says, session};
use aish_core::event::{Body, Draft};
use aish_core::id::ContinuationId;
use aish_store::{Owner, PendingState, StoreError};
use futures_util::future::join_all;
use serde_json::{Value, json};

/// Appends that race.
const RACERS: usize = 16;

fn draft(kind: &str, data: &Value) -> Draft {
    Draft::new(1, kind, Body::decode(kind, &data.to_string()).unwrap())
}

fn served(key: Option<&str>) -> Draft {
    let request = key.map(|key| json!({"key": key, "digest": "d"}));
    draft("turn_started", &json!({"served": {"request": request}}))
}

fn suspended(id: &str) -> Draft {
    draft("suspended", &json!({"continuation": id, "call_id": "call_1_1"}))
}

fn resumed(id: &str) -> Draft {
    draft("resumed", &json!({"continuation": id}))
}

fn result(output: &str) -> Draft {
    draft(
        "tool_result",
        &json!({"tool_call_id": "call_1_1", "output": output, "success": true}),
    )
}

/// SPEC 9.4: of answers that race exactly one is appended, whatever the others were told to be wrong about.
#[tokio::test]
async fn one_of_racing_answers() {
    for Fixture { name, store, .. } in &fixtures() {
        let (store, session) = (store.as_ref(), session(1));
        append(store, &session, 0, vec![served(None), suspended("c1")])
            .await
            .unwrap();
        let racing = (0..RACERS).map(|n| {
            let session = session.clone();
            async move { append(store, &session, 2, vec![resumed("c1"), result(&n.to_string())]).await }
        });
        let told = join_all(racing).await;
        let won: Vec<usize> = (0..RACERS).filter(|n| told[*n].is_ok()).collect();
        assert_eq!(won.len(), 1, "{name}: {told:?}");
        for refused in told.iter().filter_map(|told| told.as_ref().err()) {
            assert!(
                matches!(refused, StoreError::Conflict { actual: 4, .. } | StoreError::Claimed(_)),
                "{name}: {refused:?}"
            );
        }
        let events = store.load(&session, 0).await.unwrap();
        assert_eq!(events.len(), 4, "{name}");
        assert_eq!(events[3].tool_result().unwrap().output, won[0].to_string());
    }
}

/// SPEC 9.4: of requests under one key that race, each for a session of its own, exactly one is appended.
#[tokio::test]
async fn one_of_racing_keys() {
    for Fixture { name, store, .. } in &fixtures() {
        let store = store.as_ref();
        let racing = (1..=RACERS as u64).map(|n| async move {
            let drafts = vec![served(Some("k")), says("x")];
            append(store, &session(n), 0, drafts).await
        });
        let told = join_all(racing).await;
        assert_eq!(told.iter().filter(|told| told.is_ok()).count(), 1, "{name}: {told:?}");
        for refused in told.iter().filter_map(|told| told.as_ref().err()) {
            assert!(
                matches!(refused, StoreError::KeyUsed(key) if key == "k"),
                "{name}: {refused:?}"
            );
        }
        let known = store.request("k").await.unwrap().unwrap();
        assert_eq!(contents(store, &known.session).await.len(), 2);
        assert_eq!(store.list(Default::default()).await.unwrap().len(), 1, "{name}");
    }
}

/// SPEC 9.4: one append cannot take a key twice, nor end a suspension twice; and what another session waits under is not its to end.
#[tokio::test]
async fn twice_in_one_append() {
    for Fixture { name, store, .. } in &fixtures() {
        let store = store.as_ref();
        let twice = append(store, &session(1), 0, vec![served(Some("k")), served(Some("k"))]).await;
        assert!(matches!(&twice, Err(StoreError::KeyUsed(_))), "{name}: {twice:?}");
        let begun = vec![served(None), suspended("c1")];
        append(store, &session(2), 0, begun).await.unwrap();
        let twice = append(store, &session(2), 2, vec![resumed("c1"), resumed("c1")]).await;
        assert!(matches!(&twice, Err(StoreError::Claimed(_))), "{name}: {twice:?}");
        append(store, &session(3), 0, vec![served(None), resumed("c1")])
            .await
            .unwrap();
        let pending = store.continuation(&ContinuationId::new("c1")).await.unwrap().unwrap();
        assert_eq!(
            (pending.session, pending.state),
            (session(2), PendingState::Open),
            "{name}"
        );
        assert_eq!(contents(store, &session(2)).await.len(), 2);
    }
}

/// SPEC 9.5, 2.12: a client's turn is to be taken over once its driver is dead or its lease is past; one that waits for a call of
/// its client, and does not say so yet, too.
#[tokio::test]
async fn whose_driver_is_gone() {
    for Fixture { name, store, .. } in &fixtures() {
        let store = store.as_ref();
        let gated = |verdict: &str| {
            let data = json!({"call_id": "call_1_1", "verdict": verdict, "rule": "r", "source": "client"});
            draft("call_gated", &data)
        };
        append(store, &session(1), 0, vec![served(None)]).await.unwrap();
        append(store, &session(2), 0, vec![served(None)]).await.unwrap();
        append(store, &session(3), 0, vec![served(None), gated("ask")])
            .await
            .unwrap();
        append(store, &session(4), 0, vec![served(None), gated("allow")])
            .await
            .unwrap();
        append(store, &session(5), 0, vec![served(None), suspended("c")])
            .await
            .unwrap();
        let Owner(text) = Owner::this_process();
        let (process, _) = text.rsplit_once('/').unwrap();
        let dead = Owner(format!("{process}/0"));
        store.acquire(&session(1), &dead, 0, 1_000_000_000).await.unwrap();
        store
            .acquire(&session(2), &Owner("far away".to_owned()), 0, 1)
            .await
            .unwrap();
        let began = std::time::Instant::now();
        let mut found = Vec::new();
        while found.len() < 4 && began.elapsed() < PATIENCE {
            found = store.abandoned(9, 100, 10).await.unwrap();
            tokio::time::sleep(LOOK_EVERY).await;
        }
        found.sort();
        assert_eq!(found, [1, 2, 3, 4].map(session), "{name}");
        assert_eq!(store.abandoned(9, 100, 0).await.unwrap(), [], "{name}");
        assert_eq!(store.expired(u64::MAX, 0).await.unwrap(), [], "{name}");
    }
}

/// SPEC 2.10: what is said after a search is found by the next one; any text is a query; nothing is more than was asked for.
#[tokio::test]
async fn searches_go_on() {
    for Fixture { name, store, .. } in &fixtures() {
        let store = store.as_ref();
        append(store, &session(1), 0, vec![says("the first needle")])
            .await
            .unwrap();
        assert_eq!(store.search("needle", 10).await.unwrap().len(), 1, "{name}");
        append(store, &session(1), 1, vec![says("a second needle"), says("hay")])
            .await
            .unwrap();
        append(store, &session(2), 0, vec![says("a needle elsewhere")])
            .await
            .unwrap();
        let found = store.search("needle", 10).await.unwrap();
        assert_eq!(found.len(), 3, "{name}");
        assert!(found.iter().all(|hit| hit.kind == "user"));
        assert_eq!(store.search("needle", 2).await.unwrap().len(), 2, "{name}");
        assert_eq!(store.search("needle", 0).await.unwrap(), [], "{name}");
        for hostile in [
            "\"",
            "\"\"\"",
            "needle\"",
            "AND",
            "needle OR",
            "NEAR(needle",
            "needle*",
            "-needle",
            "text:needle",
            "^needle",
            "{a}:",
            "needle AND NOT hay",
            "'; DROP TABLE events; --",
            "\u{0}",
            "\u{301}",
            "ह\u{93f}",
            "%",
            "_",
            "\\",
            &"needle ".repeat(10_000),
        ] {
            let found = store.search(hostile, 10).await;
            assert!(found.is_ok(), "{name}: {hostile:?}: {found:?}");
        }
        assert_eq!(contents(store, &session(1)).await.len(), 3);
    }
}
