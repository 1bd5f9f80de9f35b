//! What a connection does once it is there: requests and their ends, questions of the server, news.

use super::scripted::{AMPLE, Scripted, connected, discovered, idle, request};
use crate::host::{News, Nobody, Question, Reply};
use crate::peer::{Progressed, Watch};
use crate::{Alias, Era, ErrorKind, Host, McpError};
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// SPEC 6.9: progress is told and renews patience; a request that nobody waits for any more is taken back.
#[tokio::test]
async fn progress_and_cancellation() {
    let server = Scripted::new(|_, mut wire| async move {
        wire.initialize().await;
        let call = wire.hear_of("tools/call").await;
        let token = call["params"]["_meta"]["progressToken"].clone();
        for step in [1.0, 2.0] {
            let params = json!({"progressToken": token, "progress": step, "total": 2, "message": "working"});
            wire.say(json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}))
                .await;
        }
        // Taking one request back and sending the next may overtake each other.
        let mut both = [wire.hear().await, wire.hear().await];
        both.sort_by_key(|message| message["method"].to_string());
        let [cancelled, next] = both;
        assert_eq!(
            (&cancelled["method"], &next["method"]),
            (&json!("notifications/cancelled"), &json!("tools/list"))
        );
        assert_eq!(cancelled["params"]["requestId"], call["id"]);
        wire.reply(&next, json!({"tools": []})).await;
        idle(wire).await;
    });
    let peer = connected(Era::Initialize(None), &server, Arc::new(Nobody))
        .await
        .unwrap();
    let (told, mut steps) = mpsc::unbounded_channel::<Progressed>();
    let watch: Watch = Arc::new(move |step| {
        let _ = told.send(step);
    });
    {
        let mut call = peer.request("tools/call", Map::new(), AMPLE, Some(watch));
        let step = tokio::select! {
            _ = &mut call => panic!("it was not answered"),
            step = steps.recv() => step.unwrap(),
        };
        assert_eq!((step.total, step.message.as_deref()), (Some(2.0), Some("working")));
    }
    assert_eq!(request(&*peer, "tools/list").await.unwrap(), json!({"tools": []}));
    let impatient = peer
        .request("tools/call", Map::new(), Duration::from_millis(50), None)
        .await;
    assert_eq!(impatient.unwrap_err().kind, ErrorKind::Timeout);
}

/// SPEC 6.6: an error of a server is its own; a server that dies fails what waits for it, and says so.
#[tokio::test]
async fn errors_and_ends() {
    let server = Scripted::new(|_, mut wire| async move {
        wire.initialize().await;
        let call = wire.hear_of("tools/call").await;
        wire.say(json!({"jsonrpc": "2.0", "id": 4711, "result": {"wrong": "id"}}))
            .await;
        wire.refuse(&call, -32602).await;
        wire.hear_of("tools/list").await;
    });
    let peer = connected(Era::Initialize(None), &server, Arc::new(Nobody))
        .await
        .unwrap();
    let error = request(&*peer, "tools/call").await.unwrap_err();
    assert_eq!(error, McpError::new(ErrorKind::Rpc { code: -32602 }, "no"));
    assert_eq!(request(&*peer, "tools/list").await.unwrap_err().kind, ErrorKind::Closed);
    assert_eq!(peer.ended().await.kind, ErrorKind::Closed);
    assert_eq!(request(&*peer, "tools/list").await.unwrap_err().kind, ErrorKind::Closed);
}

/// Closing returns, and what is asked afterwards fails at once.
#[tokio::test]
async fn closing() {
    let server = Scripted::new(|_, mut wire| async move {
        wire.initialize().await;
        idle(wire).await;
    });
    let peer = connected(Era::Initialize(None), &server, Arc::new(Nobody))
        .await
        .unwrap();
    let (waiting, ()) = tokio::join!(request(&*peer, "tools/call"), peer.close());
    assert_eq!(waiting.unwrap_err().kind, ErrorKind::Cancelled);
    assert_eq!(
        request(&*peer, "tools/list").await.unwrap_err().kind,
        ErrorKind::Cancelled
    );
}

/// A host that says yes, and remembers what it heard.
#[derive(Default)]
struct Agreeable {
    asked: Mutex<Vec<Question>>,
    news: Mutex<Vec<News>>,
}

impl Host for Agreeable {
    fn ask<'a>(&'a self, server: &'a Alias, question: Question) -> BoxFuture<'a, Reply> {
        assert_eq!(server.as_str(), "script");
        self.asked.lock().unwrap().push(question.clone());
        let values = match question {
            Question::Form { .. } => Map::from_iter([("colour".to_owned(), json!("blue"))]),
            Question::Url { .. } => Map::new(),
        };
        Box::pin(std::future::ready(Reply::Accepted(values)))
    }

    fn sample<'a>(&'a self, _server: &'a Alias, params: Value) -> BoxFuture<'a, Result<Value, String>> {
        Box::pin(std::future::ready(match params["maxTokens"].as_u64() {
            Some(_) => Ok(json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "42"}})),
            None => Err("no".to_owned()),
        }))
    }

    fn news(&self, _server: &Alias, news: News) {
        self.news.lock().unwrap().push(news);
    }
}

fn form() -> Value {
    json!({"message": "which?", "requestedSchema": {"type": "object", "properties": {"colour": {"type": "hue"}}}})
}

/// SPEC 6.9: in the older protocols a server asks with requests of its own, under ids of its own.
#[tokio::test]
async fn questions_inside_a_call() {
    let server = Scripted::new(|_, mut wire| async move {
        wire.initialize().await;
        let call = wire.hear_of("tools/call").await;
        let url = json!({"mode": "url", "message": "go", "url": "https://a.example/", "elicitationId": "e"});
        let answers = [
            (
                "elicitation/create",
                form(),
                json!({"action": "accept", "content": {"colour": "blue"}}),
            ),
            ("elicitation/create", url, json!({"action": "accept"})),
            (
                "sampling/createMessage",
                json!({"maxTokens": 9}),
                json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "42"}}),
            ),
        ];
        for (method, params, expected) in answers {
            wire.say(json!({"jsonrpc": "2.0", "id": call["id"], "method": method, "params": params}))
                .await;
            let answer = wire.hear().await;
            assert_eq!((&answer["id"], &answer["result"]), (&call["id"], &expected));
        }
        for (method, code) in [
            ("sampling/createMessage", -1),
            ("roots/list", -32601),
            ("new/thing", -32601),
            ("elicitation/create", -32602),
        ] {
            wire.say(json!({"jsonrpc": "2.0", "id": "x", "method": method, "params": {}}))
                .await;
            assert_eq!(wire.hear().await["error"]["code"], code, "{method}");
        }
        wire.say(json!({"jsonrpc": "2.0", "id": 0, "method": "ping"})).await;
        assert_eq!(wire.hear().await["result"], json!({}));
        wire.reply(&call, json!({"content": [], "asked": true})).await;
        idle(wire).await;
    });
    let host = Arc::new(Agreeable::default());
    let peer = connected(Era::Initialize(None), &server, host.clone()).await.unwrap();
    assert_eq!(request(&*peer, "tools/call").await.unwrap()["asked"], true);
    let asked = host.asked.lock().unwrap();
    let schema = form()["requestedSchema"].clone();
    assert_eq!(
        asked[0],
        Question::Form {
            message: "which?".to_owned(),
            schema
        }
    );
    assert!(matches!(&asked[1], Question::Url { url, id, .. } if url == "https://a.example/" && id == "e"));
}

/// SPEC 6.9: in the newer protocol a result asks, and the request is sent again with the answers and the unchanged state.
#[tokio::test]
async fn questions_in_a_result() {
    let server = Scripted::new(|_, mut wire| async move {
        let probe = wire.hear_of("server/discover").await;
        wire.reply(&probe, discovered()).await;
        let call = wire.hear_of("tools/call").await;
        let asked = json!({"q": {"method": "elicitation/create", "params": form()}});
        let round = json!({"resultType": "input_required", "inputRequests": asked, "requestState": "sealed"});
        wire.reply(&call, round).await;
        let again = wire.hear_of("tools/call").await;
        assert_ne!(again["id"], call["id"]);
        let answer = json!({"q": {"action": "accept", "content": {"colour": "blue"}}});
        assert_eq!(
            (&again["params"]["inputResponses"], &again["params"]["requestState"]),
            (&answer, &json!("sealed"))
        );
        wire.reply(&again, json!({"resultType": "complete", "content": [], "done": 1}))
            .await;
        let endless = json!({"resultType": "input_required", "requestState": "again"});
        loop {
            let call = wire.hear().await;
            if call.is_null() {
                return;
            }
            wire.reply(&call, endless.clone()).await;
        }
    });
    let peer = connected(Era::Stateless, &server, Arc::new(Agreeable::default()))
        .await
        .unwrap();
    assert_eq!(request(&*peer, "tools/call").await.unwrap()["done"], 1);
    assert_eq!(
        request(&*peer, "tools/call").await.unwrap_err().kind,
        ErrorKind::Protocol
    );
}

/// SPEC 6.4: list changes and the log are heard; in the newer protocol the former are subscribed to.
#[tokio::test]
async fn news() {
    let server = Scripted::new(|_, mut wire| async move {
        let probe = wire.hear_of("server/discover").await;
        let mut hello = discovered();
        hello["capabilities"] = json!({"tools": {"listChanged": true}, "prompts": {"listChanged": false}});
        wire.reply(&probe, hello).await;
        let listen = wire.hear_of("subscriptions/listen").await;
        assert_eq!(listen["params"]["notifications"], json!({"toolsListChanged": true}));
        let meta = json!({"io.modelcontextprotocol/subscriptionId": listen["id"]});
        for (method, params) in [
            (
                "subscriptions/acknowledged",
                json!({"_meta": meta, "notifications": {"toolsListChanged": true}}),
            ),
            ("tools/list_changed", json!({"_meta": meta})),
            ("resources/updated", json!({"uri": "a:b"})),
            ("message", json!({"level": "shrill", "data": {"a": 1}})),
        ] {
            wire.say(json!({"jsonrpc": "2.0", "method": format!("notifications/{method}"), "params": params}))
                .await;
        }
        idle(wire).await;
    });
    let host = Arc::new(Agreeable::default());
    let _peer = connected(Era::Stateless, &server, host.clone()).await.unwrap();
    let expected = [
        News::ToolsChanged,
        News::ResourceUpdated { uri: "a:b".to_owned() },
        News::Log {
            level: "shrill".to_owned(),
            text: "{\"a\":1}".to_owned(),
        },
    ];
    let deadline = Instant::now() + AMPLE;
    loop {
        // The SDK hands notifications to tasks, which may overtake each other.
        let heard = host.news.lock().unwrap().clone();
        if expected.iter().all(|news| heard.contains(news)) {
            break;
        }
        assert!(Instant::now() < deadline, "{heard:?}");
        tokio::task::yield_now().await;
    }
}
