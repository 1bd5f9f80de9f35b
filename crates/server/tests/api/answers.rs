//! Answers to calls that wait: results and approvals, once each (SPEC 9.3, 9.4, 9.6).

use crate::bench::{Bench, message, route, text, usual};
use crate::support::probe::{Doing, Probe};
use crate::support::{World, ask, drive, told};
use aish_engine::ConversationsSettings;
use aish_provider::scripted::Act;
use serde_json::{Value, json};

fn chain(calls: usize) -> Bench {
    let calls = (0..calls).map(|_| Act::calls(&[("pick", "{}")]));
    Bench::new(calls.chain([Act::text("done")]))
}

/// SPEC 9.4: the same answer again is told the same, also late; another one is refused; what never was is unknown.
#[tokio::test]
async fn once() {
    let bench = chain(2);
    let first = bench.chat("go", &["pick"]).await;
    let second = bench.answer(&first, "one").await.accepted();
    let last = bench.answer(&second, "two").await.accepted();
    assert_eq!(last["reply"], "done");
    assert_eq!(bench.answer(&first, "one").await.accepted(), second);
    assert_eq!(bench.answer(&second, "two").await.accepted(), last);
    bench.answer(&first, "two").await.refused(409, "already_answered", "");
    for id in [
        "br-1-1",
        "nonsense",
        "..",
        "%2e%2e",
        "%00",
        "%ff",
        "0190a6c0-0000-7000-8000-000000000000",
    ] {
        let refused = bench
            .post(&format!("/api/sessions/{id}/tool_result"), &json!({"content": "x"}))
            .await;
        refused.refused(404, "not_found", "");
    }
}

/// SPEC 9.3: a missing or unknown call id means the one that waits, unless it has to be named; another call's is refused.
#[tokio::test]
async fn call_ids() {
    let answer = |id: Option<&Value>| match id {
        Some(id) => json!({"call_id": id, "content": "x"}),
        None => json!({"content": "x"}),
    };
    let bench = chain(3);
    let first = bench.chat("go", &["pick"]).await;
    let second = bench
        .post(&route(&first, "tool_result"), &answer(None))
        .await
        .accepted();
    let early = bench
        .post(&route(&second, "tool_result"), &answer(Some(&first["call_id"])))
        .await;
    early.refused(409, "other_call", text(&first["call_id"]));
    let third = bench
        .post(&route(&second, "tool_result"), &answer(Some(&json!("unheard of"))))
        .await;
    assert_eq!(third.accepted()["tool_pending"], true);

    let strict = ConversationsSettings {
        strict_call_id: true,
        ..usual()
    };
    let bench = Bench::with(World::new([Act::calls(&[("pick", "{}")]), Act::text("done")]), strict);
    let first = bench.chat("go", &["pick"]).await;
    let unnamed = bench.post(&route(&first, "tool_result"), &answer(None)).await;
    unnamed.refused(422, "call_id_required", text(&first["call_id"]));
    let unknown = bench
        .post(&route(&first, "tool_result"), &answer(Some(&json!("unheard of"))))
        .await;
    unknown.refused(409, "other_call", "unheard of");
    assert_eq!(bench.answer(&first, "x").await.accepted()["reply"], "done");
}

/// SPEC 9.4: what nobody answered in time is gone, and the conversation goes on.
#[tokio::test]
async fn expired() {
    let settings = ConversationsSettings {
        pending_ttl_ms: Some(0),
        ..usual()
    };
    let bench = Bench::with(
        World::new([Act::calls(&[("pick", "{}")]), Act::text("hello again")]),
        settings,
    );
    let pending = bench.chat("go", &["pick"]).await;
    bench
        .answer(&pending, "late")
        .await
        .refused(410, "expired", text(&pending["session_id"]));
    bench.answer(&pending, "late").await.refused(410, "expired", "");
    let body = json!({"message": "still there?", "conversation_id": pending["conversation_id"]});
    assert_eq!(bench.post("/api/chat", &body).await.accepted()["reply"], "hello again");
}

/// SPEC 9.4: a key stands for one request, whatever its route; what is no key is refused.
#[tokio::test]
async fn keys() {
    let bench = Bench::new([Act::calls(&[("pick", "{}")]), Act::text("done"), Act::text("another")]);
    let (one, two) = ([("idempotency-key", "k1")], [("idempotency-key", "k2")]);
    let chat = message("go", &["pick"]);
    let pending = bench.post_with("/api/chat", &one, &chat).await.accepted();
    assert_eq!(bench.post_with("/api/chat", &one, &chat).await.accepted(), pending);
    let other = bench.post_with("/api/chat", &one, &json!({"message": "else"})).await;
    other.refused(422, "idempotency_key_reused", "new key");
    let answer = json!({"call_id": pending["call_id"], "content": "1"});
    let path = route(&pending, "tool_result");
    bench
        .post_with(&path, &one, &answer)
        .await
        .refused(422, "idempotency_key_reused", "");
    let last = bench.post_with(&path, &two, &answer).await.accepted();
    assert_eq!(bench.post_with(&path, &two, &answer).await.accepted(), last);
    assert_eq!(bench.post_with("/api/chat", &one, &chat).await.accepted(), pending);
    for bad in ["", &"x".repeat(256)] {
        let refused = bench.post_with("/api/chat", &[("idempotency-key", bad)], &chat).await;
        refused.refused(422, "invalid_request", "Idempotency-Key");
    }
    assert_eq!(bench.world.model.asked().len(), 2);
}

/// SPEC 9.6: what the policy asks about waits for an approval that quotes its digest, has exactly these fields, and runs then.
#[tokio::test]
async fn approvals() {
    let write = "{\"path\": \"a.txt\", \"content\": \"hi\"}";
    let bench = Bench::new([Act::calls(&[("file_write", write)]), Act::text("written")]);
    let pending = bench.chat("go", &[]).await;
    assert_eq!(
        crate::bench::keys(&pending),
        "agentic approval_pending call_id conversation_id digest model reason session_id tool_input tool_name tools_used"
    );
    assert_eq!(pending["tool_input"], json!({"path": "a.txt", "content": "hi"}));
    let path = route(&pending, "approval");
    let approve = |digest: &Value| json!({"call_id": pending["call_id"], "digest": digest, "answer": "approve"});
    for digest in [json!(""), json!("0".repeat(64))] {
        bench
            .post(&path, &approve(&digest))
            .await
            .refused(409, "wrong_digest", "quote its digest");
    }
    bench
        .answer(&pending, "it went well")
        .await
        .refused(409, "wrong_sort", "approval");
    assert!(!bench.world.folder.join("a.txt").exists());
    let last = bench.post(&path, &approve(&pending["digest"])).await.accepted();
    assert_eq!(
        (&last["reply"], &last["tools_used"]),
        (&json!("written"), &json!(["file_write"]))
    );
    assert!(bench.world.folder.join("a.txt").exists());
    assert_eq!(bench.post(&path, &approve(&pending["digest"])).await.accepted(), last);
}

/// SPEC 5.5, 9.6: a no reaches the model with its reason; a decision that is none is refused.
#[tokio::test]
async fn denials() {
    let bench = Bench::new([
        Act::calls(&[("bash", "{\"command\": \"make it so\"}")]),
        Act::text("I will not"),
    ]);
    let pending = bench.chat("go", &[]).await;
    let path = route(&pending, "approval");
    let decide = |answer: &str| json!({"call_id": pending["call_id"], "digest": pending["digest"], "answer": answer, "reason": "too bold"});
    bench
        .post(&path, &decide("perhaps"))
        .await
        .refused(422, "invalid_request", "perhaps");
    assert_eq!(
        bench.post(&path, &decide("deny")).await.accepted()["reply"],
        "I will not"
    );
    bench
        .post(&path, &decide("approve"))
        .await
        .refused(409, "already_answered", "");
    let asked = bench.world.model.asked();
    let (_, output) = told(&asked[1].messages).pop().unwrap();
    assert!(
        output.contains("declined by the user") && output.contains("too bold"),
        "{output}"
    );
}

/// SPEC 9.9: a call that a terminal asks about is shown as pending, and answered under the conversation's id; where nobody is there to go
/// on, the answer is kept and the request told so, with a stream as well.
#[tokio::test(start_paused = true)]
async fn of_a_terminal() {
    let probe = Probe::writer("probe", Doing::Answer("ran".to_owned()));
    let acts = [Act::calls(&[("probe", r#"{"n":1}"#)]), Act::text("done")];
    let bench = Bench::with(World::with(acts, vec![probe]), usual());
    let mut driver = bench.world.driver();
    ask(&mut driver, "go").await;
    let id = driver.session().id().to_string();
    let page = bench.get(&format!("/api/sessions/{id}")).await.accepted();
    let pending = &page["pending"];
    assert_eq!(
        (&page["state"], &pending["approval_pending"]),
        (&json!("pending"), &json!(true))
    );
    assert_eq!(
        (&pending["session_id"], &pending["conversation_id"]),
        (&json!(id), &json!(id))
    );
    let busy = bench
        .post("/api/chat", &json!({"message": "?", "conversation_id": id}))
        .await;
    busy.refused(409, "conversation_waits", "");

    let yes = json!({"call_id": pending["call_id"], "digest": pending["digest"], "answer": "approve"});
    let left = bench.post(&route(pending, "approval"), &yes).await;
    left.refused(409, "conversation_busy", "aish resume");
    let streaming = [("Accept", "text/event-stream")];
    let left = bench.post_with(&route(pending, "approval"), &streaming, &yes).await;
    let told = left.body;
    assert!(
        told.contains("event: error") && told.contains("conversation_busy"),
        "{told}"
    );
    drive(&mut driver).await.unwrap();
    let last = bench.post(&route(pending, "approval"), &yes).await.accepted();
    assert_eq!(last["reply"], "done");
}
