//! Messages and what they lead to (SPEC 9.1, 9.2).

use crate::bench::{Bench, keys, message, route, text, usual};
use crate::support::World;
use aish_engine::ConversationsSettings;
use aish_provider::scripted::Act;
use futures_util::FutureExt as _;
use serde_json::json;

/// SPEC 9.1: a reply has exactly these fields, and the conversation goes on under its id.
#[tokio::test]
async fn a_conversation() {
    let bench = Bench::new([Act::text("hello"), Act::text("again")]);
    let first = bench.post("/api/chat", &json!({"message": "hi"})).await.accepted();
    assert_eq!(keys(&first), "agentic conversation_id model reply tools_used");
    assert_eq!((&first["reply"], &first["agentic"]), (&json!("hello"), &json!(true)));
    assert_eq!(
        (&first["model"], &first["tools_used"]),
        (&json!("scripted"), &json!([]))
    );
    let body = json!({"message": "and?", "conversation_id": first["conversation_id"]});
    let second = bench.post("/api/chat", &body).await.accepted();
    assert_eq!(second["conversation_id"], first["conversation_id"]);
    assert_eq!(bench.world.model.asked()[1].messages.len(), 3);
}

/// SPEC 9.2: a call for the client has exactly these fields, its arguments as the model wrote them; 9.3: its result goes on.
#[tokio::test]
async fn a_call_of_the_client() {
    let arguments = "{\"z\": 1.50, \"a\": [\"é\"], \"z2\": 12345678901234567890123}";
    let bench = Bench::new([
        Act::calls(&[("pick", arguments)]),
        Act::calls(&[("pick", "")]),
        Act::text("red it is"),
    ]);
    let answer = bench.post("/api/chat", &message("a colour", &["pick"])).await;
    let pending = answer.accepted();
    assert_eq!(
        keys(&pending),
        "agentic call_id conversation_id model session_id tool_input tool_name tool_pending tools_used"
    );
    assert_eq!(
        (&pending["tool_pending"], &pending["tool_name"]),
        (&json!(true), &json!("pick"))
    );
    assert_eq!(pending["tools_used"], json!(["pick"]));
    assert!(text(&pending["session_id"]).starts_with("br-"), "{pending}");
    assert!(answer.body.contains(arguments), "{}", answer.body);
    let next = bench.answer(&pending, "red").await.accepted();
    assert_eq!((&next["tool_pending"], &next["tool_input"]), (&json!(true), &json!({})));
    assert_ne!(next["session_id"], pending["session_id"]);
    let last = bench.answer(&next, "a bright one").await.accepted();
    assert_eq!(
        (&last["reply"], &last["tools_used"]),
        (&json!("red it is"), &json!(["pick", "pick"]))
    );
}

/// SPEC 9.2: every route of a session takes the continuation or the conversation.
#[tokio::test]
async fn either_id() {
    let bench = Bench::new([Act::calls(&[("pick", "{}")]), Act::text("done")]);
    let pending = bench.chat("go", &["pick"]).await;
    let show = async |id: &str| bench.get(&format!("/api/sessions/{id}")).await.accepted();
    let shown = show(text(&pending["session_id"])).await;
    assert_eq!(shown, show(text(&pending["conversation_id"])).await);
    assert_eq!((&shown["state"], &shown["pending"]), (&json!("pending"), &pending));
    let by_conversation = format!("/api/sessions/{}/tool_result", text(&pending["conversation_id"]));
    // The conversation does not say which call is meant.
    let unnamed = bench.post(&by_conversation, &json!({"content": "1"})).await;
    unnamed.refused(422, "call_id_required", "call");
    let named = json!({"call_id": pending["call_id"], "content": "1"});
    let last = bench.post(&by_conversation, &named).await.accepted();
    assert_eq!(last["reply"], "done");
    let shown = show(text(&pending["session_id"])).await;
    assert_eq!((&shown["state"], &shown["pending"]), (&json!("idle"), &json!(null)));
}

/// SPEC 9.2: names that are taken, and tools that are none.
#[tokio::test]
async fn declarations() {
    let bench = Bench::new([]);
    for name in ["bash", "glob", "read_file", "run_command"] {
        let refused = bench.post("/api/chat", &message("hi", &["mine", name])).await;
        refused.refused(422, "tool_name_taken", name);
    }
    let twice = bench.post("/api/chat", &message("hi", &["twice", "twice"])).await;
    twice.refused(422, "tool_name_taken", "twice");
    let long = "x".repeat(2_000_000);
    for name in ["no spaces", "", "é", "a.b", &long] {
        let refused = bench.post("/api/chat", &message("hi", &[name])).await;
        refused.refused(422, "invalid_request", "");
        assert!(refused.body.len() < 1_000);
    }
    for schema in [json!({"type": 7}), json!([]), json!("object")] {
        let tools = json!([{"name": "mine", "input_schema": schema}]);
        let refused = bench.post("/api/chat", &json!({"message": "hi", "tools": tools})).await;
        refused.refused(422, "invalid_request", "mine");
    }
    assert!(bench.world.model.asked().is_empty());
    assert_eq!(bench.get("/api/sessions").await.accepted(), json!({"sessions": []}));
}

/// SPEC 9.4: a conversation that waits or runs takes no message, and can be cancelled; its turn is closed with text.
#[tokio::test]
async fn meanwhile() {
    let bench = Bench::new([
        Act::calls(&[("pick", "{}")]),
        Act::Hang(Vec::new()),
        Act::text("here again"),
    ]);
    let pending = bench.chat("go", &["pick"]).await;
    let say = json!({"message": "hello?", "conversation_id": pending["conversation_id"]});
    let refused = bench.post("/api/chat", &say).await;
    refused.refused(409, "conversation_waits", text(&pending["conversation_id"]));
    let cancelled = bench.post(&route(&pending, "cancel"), &json!({})).await.accepted();
    assert!(text(&cancelled["reply"]).starts_with("[stopped:"), "{cancelled}");
    bench
        .answer(&pending, "late")
        .await
        .refused(409, "not_waiting", "has ended");
    let cancel = format!("/api/sessions/{}/cancel", text(&pending["conversation_id"]));
    let running = bench.post("/api/chat", &say);
    let cancelling = async {
        while bench.world.model.asked().len() < 2 {
            tokio::task::yield_now().await;
        }
        bench
            .post("/api/chat", &say)
            .await
            .refused(409, "conversation_busy", "is running");
        // Without a body, too: there is nothing to say.
        bench.ask(("POST", &cancel), &[], "").await.accepted()
    };
    let (told, cancelled) = tokio::join!(running, cancelling);
    assert_eq!(told.accepted()["reply"], cancelled["reply"]);
    assert_eq!(bench.post("/api/chat", &say).await.accepted()["reply"], "here again");
}

/// SPEC 9.4: a cancel names the turn that waited: sent again, with a key or without, it is told the same and leaves a later turn alone.
#[tokio::test]
async fn a_cancel_again() {
    let calls = (0..2).map(|_| Act::calls(&[("pick", "{}")]));
    let bench = Bench::new(calls.chain([Act::text("done")]));
    let first = bench.chat("go", &["pick"]).await;
    let cancel = async |key: &str| {
        let headers = [("idempotency-key", key)];
        let answer = bench.post_with(&route(&first, "cancel"), &headers, &json!({})).await;
        answer.accepted()
    };
    let told = cancel("k-1").await;
    let say = json!({"message": "again", "conversation_id": first["conversation_id"]});
    let second = bench.post("/api/chat", &say).await.accepted();
    assert_eq!(second["tool_pending"], true);
    for key in ["k-1", "k-2"] {
        assert_eq!(cancel(key).await, told);
    }
    assert_eq!(bench.answer(&second, "x").await.accepted()["reply"], "done");
}

/// SPEC 9.5: a turn belongs to no connection: what was begun is gone on with when its client hangs up, at whatever moment.
#[tokio::test]
async fn a_client_that_hangs_up() {
    let bench = Bench::new([Act::calls(&[("pick", "{}")]), Act::text("done")]);
    let key = [("idempotency-key", "k1")];
    let chat = message("go", &["pick"]);
    for patience in 0..50 {
        let mut asking = std::pin::pin!(bench.post_with("/api/chat", &key, &chat));
        for _ in 0..patience {
            if asking.as_mut().now_or_never().is_some() {
                break;
            }
            tokio::task::yield_now().await;
        }
    }
    let pending = bench.post_with("/api/chat", &key, &chat).await.accepted();
    assert_eq!(pending["tool_name"], "pick");
    assert_eq!(bench.world.model.asked().len(), 1);
}

/// SPEC 9.8: no more turns at once than may run.
#[tokio::test]
async fn as_many_as_may() {
    let settings = ConversationsSettings {
        turns_max: 1,
        ..usual()
    };
    let bench = Bench::with(World::new([Act::Hang(Vec::new())]), settings);
    let body = json!({"message": "hi"});
    let first = bench.post("/api/chat", &body);
    let second = async {
        while bench.world.model.asked().is_empty() {
            tokio::task::yield_now().await;
        }
        let refused = bench.post("/api/chat", &body).await;
        refused.refused(429, "too_many_requests", "try again");
        assert!(refused.headers.contains_key("retry-after"));
        bench.conversations.drain().await;
        bench
            .post("/api/chat", &body)
            .await
            .refused(503, "unavailable", "stopping");
        let ready = bench.get("/readyz").await;
        ready.refused(503, "unavailable", "stopping");
        assert!(ready.headers.contains_key("retry-after"));
        assert_eq!(bench.get("/healthz").await.status, 200);
    };
    let (first, ()) = tokio::join!(first, second);
    first.refused(503, "unavailable", "goes on");
}
