//! Turns whose client is somewhere else: what is claimed, until when it waits, and who has to drive them on. Times are in
//! milliseconds, made up.

use super::{Fixture, append, contents, fixtures, says, session};
use aish_core::event::{Body, Draft};
use aish_core::id::{CallId, ContinuationId, SessionId};
use aish_store::{Owner, PendingState, Store, StoreError};
use serde_json::{Value, json};

fn draft(kind: &str, data: &Value) -> Draft {
    Draft::new(1, kind, Body::decode(kind, &data.to_string()).unwrap())
}

/// A turn that a client began; with a key, if the request may be sent again.
fn served(key: Option<&str>) -> Draft {
    let request = key.map(|key| json!({"key": key, "digest": format!("digest of {key}")}));
    draft("turn_started", &json!({"served": {"request": request}}))
}

fn suspended(id: &str, expires: Option<u64>) -> Draft {
    draft(
        "suspended",
        &json!({"continuation": id, "call_id": "call_1_1", "expires": expires}),
    )
}

fn resumed(id: &str) -> Draft {
    draft("resumed", &json!({"continuation": id}))
}

fn result() -> Draft {
    draft(
        "tool_result",
        &json!({"tool_call_id": "call_1_1", "output": "", "success": true}),
    )
}

fn ended() -> Draft {
    draft("turn_ended", &json!({"reason": "end"}))
}

async fn state(store: &dyn Store, id: &str) -> Option<PendingState> {
    let found = store.continuation(&ContinuationId::new(id)).await.unwrap();
    found.map(|pending| pending.state)
}

async fn waits_under(store: &dyn Store, n: u64) -> Option<String> {
    let found = store.waiting_under(&session(n)).await.unwrap();
    found.map(|pending| pending.continuation.as_str().to_owned())
}

/// SPEC 9.3, 9.4: what is resumed must wait: one answer is appended, any other changes nothing.
#[tokio::test]
async fn a_continuation_is_claimed_once() {
    for Fixture { name, store, .. } in &fixtures() {
        let (store, session) = (store.as_ref(), session(1));
        assert_eq!(state(store, "c1").await, None);
        append(store, &session, 0, vec![served(None), suspended("c1", Some(900))])
            .await
            .unwrap();
        let pending = store.continuation(&ContinuationId::new("c1")).await.unwrap().unwrap();
        assert_eq!(
            (
                pending.session,
                pending.seq,
                pending.call,
                pending.expires,
                pending.state
            ),
            (
                session.clone(),
                2,
                Some(CallId::new("call_1_1")),
                Some(900),
                PendingState::Open
            ),
            "{name}"
        );
        assert_eq!(waits_under(store, 1).await.as_deref(), Some("c1"));

        append(store, &session, 2, vec![resumed("c1"), result(), suspended("c2", None)])
            .await
            .unwrap();
        assert_eq!(state(store, "c1").await, Some(PendingState::Answered), "{name}");
        assert_eq!(waits_under(store, 1).await.as_deref(), Some("c2"));
        let late = append(store, &session, 5, vec![resumed("c1"), says("late")])
            .await
            .unwrap_err();
        assert!(
            matches!(&late, StoreError::Claimed(id) if id.as_str() == "c1"),
            "{name}: {late:?}"
        );
        // Nothing of what was refused is left, and nothing was closed by it.
        assert_eq!(contents(store, &session).await.len(), 5);
        assert_eq!(waits_under(store, 1).await.as_deref(), Some("c2"), "{name}");

        append(store, &session, 5, vec![ended()]).await.unwrap();
        assert_eq!(state(store, "c2").await, Some(PendingState::Closed));
        assert_eq!(waits_under(store, 1).await, None);
        let closed = append(store, &session, 6, vec![resumed("c2")]).await.unwrap_err();
        assert!(matches!(closed, StoreError::Claimed(_)), "{name}: {closed:?}");
        // One that was never suspended under may stand in a log that is read in.
        append(store, &session, 6, vec![resumed("c9")]).await.unwrap();
    }
}

/// SPEC 9.4: what is awaited ends the wait, whichever way it came.
#[tokio::test]
async fn an_answer_by_another_way() {
    for Fixture { name, store, .. } in &fixtures() {
        let store = store.as_ref();
        append(store, &session(1), 0, vec![served(None), suspended("c1", None)])
            .await
            .unwrap();
        let both = append(store, &session(1), 2, vec![result(), resumed("c1")])
            .await
            .unwrap_err();
        assert!(matches!(both, StoreError::Claimed(_)), "{name}: {both:?}");
        append(store, &session(1), 2, vec![result()]).await.unwrap();
        assert_eq!(state(store, "c1").await, Some(PendingState::Answered), "{name}");
        let late = append(store, &session(1), 3, vec![resumed("c1")]).await.unwrap_err();
        assert!(matches!(late, StoreError::Claimed(_)), "{name}: {late:?}");
    }
}

/// SPEC 9.4: a key is one request's, in whichever session, and is found with what it said.
#[tokio::test]
async fn a_key_is_taken_once() {
    for Fixture { name, store, .. } in &fixtures() {
        let store = store.as_ref();
        assert_eq!(store.request("k").await.unwrap(), None);
        append(store, &session(1), 0, vec![served(Some("k")), says("x")])
            .await
            .unwrap();
        let known = store.request("k").await.unwrap().unwrap();
        assert_eq!(
            (known.session, known.seq, known.digest.as_str()),
            (session(1), 1, "digest of k"),
            "{name}"
        );
        let again = append(store, &session(2), 0, vec![says("y"), served(Some("k"))])
            .await
            .unwrap_err();
        assert!(
            matches!(&again, StoreError::KeyUsed(key) if key == "k"),
            "{name}: {again:?}"
        );
        assert_eq!(contents(store, &session(2)).await.len(), 0);
        let answer = json!({"continuation": "c", "request": {"key": "l", "digest": "d"}});
        append(store, &session(2), 0, vec![draft("resumed", &answer)])
            .await
            .unwrap();
        assert_eq!(store.request("l").await.unwrap().unwrap().session, session(2));
    }
}

async fn expired(store: &dyn Store, now: u64, limit: usize) -> Vec<String> {
    let found = store.expired(now, limit).await.unwrap();
    let mut ids: Vec<String> = found
        .iter()
        .map(|pending| pending.continuation.as_str().to_owned())
        .collect();
    ids.sort();
    ids
}

/// SPEC 9.4: what waits past its time is found; what was answered, or waits for ever, is not.
#[tokio::test]
async fn what_is_over_is_found() {
    for Fixture { name, store, .. } in &fixtures() {
        let store = store.as_ref();
        let ends = [Some(100), Some(200), Some(200), None, Some(u64::MAX)];
        for (n, expires) in (1..).zip(ends) {
            let begun = vec![served(None), suspended(&format!("c{n}"), expires)];
            append(store, &session(n), 0, begun).await.unwrap();
        }
        append(store, &session(3), 2, vec![resumed("c3"), result()])
            .await
            .unwrap();
        assert_eq!(expired(store, 99, 10).await, [""; 0], "{name}");
        assert_eq!(expired(store, 100, 10).await, ["c1"]);
        assert_eq!(expired(store, 10_000, 10).await, ["c1", "c2"]);
        assert_eq!(expired(store, 10_000, 1).await.len(), 1);
    }
}

async fn abandoned(store: &dyn Store, quiet_since: u64) -> Vec<SessionId> {
    let mut found = store.abandoned(quiet_since, 100, 10).await.unwrap();
    found.sort();
    found
}

/// SPEC 9.5: a client's turn that nobody drives and that waits for nobody is found, so that somebody takes it over.
#[tokio::test]
async fn what_nobody_drives_is_found() {
    for Fixture { name, store, .. } in &fixtures() {
        let store = store.as_ref();
        let at_a_terminal = draft("turn_started", &json!({}));
        for (n, drafts) in [
            (1, vec![served(None), says("x")]),
            (2, vec![at_a_terminal, says("x")]),
            (3, vec![served(None), suspended("c3", None)]),
            (4, vec![served(None), ended()]),
            (5, vec![served(None), says("driven")]),
            (6, vec![served(None), says("given back")]),
        ] {
            append(store, &session(n), 0, drafts).await.unwrap();
        }
        let driver = Owner("another replica".to_owned());
        store.acquire(&session(5), &driver, 0, 1_000_000).await.unwrap();
        let lease = store.acquire(&session(6), &driver, 0, 1_000_000).await.unwrap();
        store.release(&lease).await.unwrap();
        assert_eq!(abandoned(store, 2).await, [1, 6].map(session), "{name}");
        // They were written to at 1.
        assert_eq!(abandoned(store, 1).await, []);
        assert_eq!(store.abandoned(2, 100, 1).await.unwrap().len(), 1);
        append(store, &session(3), 2, vec![resumed("c3"), result()])
            .await
            .unwrap();
        assert_eq!(abandoned(store, 9).await, [1, 3, 6].map(session), "{name}");
    }
}

/// SPEC 9.8: how many sessions wait is counted by what for; one that runs or is over is none of them.
#[tokio::test]
async fn those_that_wait_are_counted() {
    let call = |verdict: &str, source: &str| {
        let name = json!({"name": "t", "arguments": "{}"});
        let gated = json!({"call_id": "call_1_1", "verdict": verdict, "rule": "", "digest": "d", "source": source});
        vec![
            served(None),
            draft(
                "tool_call",
                &json!({"id": "call_1_1", "type": "function", "function": name}),
            ),
            draft("call_gated", &gated),
        ]
    };
    for Fixture { name, store, .. } in &fixtures() {
        let count = async || {
            let count = store.waiting_count().await.unwrap();
            (count.client, count.approval)
        };
        assert_eq!(count().await, (0, 0), "{name}");
        for (n, drafts) in [
            (1, call("allow", "client")),
            (2, call("allow", "client")),
            (3, call("ask", "builtin")),
            (4, call("ask", "builtin")),
        ] {
            append(store.as_ref(), &session(n), 0, drafts).await.unwrap();
        }
        assert_eq!(count().await, (0, 0), "{name}: nothing is suspended yet");
        for n in 1..=3 {
            let id = format!("c{n}");
            append(store.as_ref(), &session(n), 3, vec![suspended(&id, None)])
                .await
                .unwrap();
        }
        assert_eq!(count().await, (2, 1), "{name}");
        append(store.as_ref(), &session(1), 4, vec![resumed("c1"), result(), ended()])
            .await
            .unwrap();
        assert_eq!(count().await, (1, 1), "{name}");
    }
}
