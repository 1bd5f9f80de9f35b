//! What questions of a server do to the request they come in: its patience, its failure, what is heard afterwards (SPEC 6.9).

use super::scripted::{AMPLE, Scripted, connected, idle, request};
use crate::host::{News, Question, Reply};
use crate::{Alias, Era, ErrorKind, Host};
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

/// How long a request is waited for here.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the person thinks: almost twice as long.
const THINKING: Duration = Duration::from_millis(19_500);
/// How long the server takes once it has its answer.
const WORKING: Duration = Duration::from_secs(9);

/// Somebody who thinks, then says yes to everything but what has `no` in it.
#[derive(Default)]
struct Thoughtful(Mutex<Vec<String>>);

impl Host for Thoughtful {
    fn ask<'a>(&'a self, _server: &'a Alias, question: Question) -> BoxFuture<'a, Reply> {
        Box::pin(async move {
            tokio::time::sleep(THINKING).await;
            match question {
                Question::Url { url, .. } if url.contains("no") => Reply::Declined,
                Question::Url { url, .. } if url.starts_with("file:") => {
                    Reply::Unanswered("such pages are not opened".to_owned())
                }
                Question::Form { .. } | Question::Url { .. } => Reply::Accepted(Map::new()),
            }
        })
    }

    fn sample<'a>(&'a self, _server: &'a Alias, _params: Value) -> BoxFuture<'a, Result<Value, String>> {
        Box::pin(std::future::ready(Err("no model here".to_owned())))
    }

    fn news(&self, _server: &Alias, _news: News) {}

    fn say(&self, line: &str) {
        self.0.lock().unwrap().push(line.to_owned());
    }
}

fn page(url: &str) -> Value {
    json!({"mode": "url", "message": "go", "url": url, "elicitationId": url})
}

/// SPEC 6.9, 6.6: a call's time stands still while a person thinks, and begins anew with the answer; an accepted form without
/// values is an empty one.
#[tokio::test(start_paused = true)]
async fn thinking_costs_no_patience() {
    let server = Scripted::new(|_, mut wire| async move {
        wire.initialize().await;
        let call = wire.hear_of("tools/call").await;
        let form = json!({"message": "?", "requestedSchema": {"type": "object", "properties": {}}});
        wire.say(json!({"jsonrpc": "2.0", "id": 5, "method": "elicitation/create", "params": form}))
            .await;
        assert_eq!(wire.hear().await["result"], json!({"action": "accept", "content": {}}));
        tokio::time::sleep(WORKING).await;
        wire.reply(&call, json!({"content": [], "done": 1})).await;
        wire.hear_of("tools/call").await;
        idle(wire).await;
    });
    let peer = connected(Era::Initialize(None), &server, Arc::new(Thoughtful::default()))
        .await
        .unwrap();
    let call = peer.request("tools/call", Map::new(), PATIENCE, None).await;
    assert_eq!(call.unwrap()["done"], 1);
    // Without a question the patience is what it was.
    let began = Instant::now();
    let call = peer.request("tools/call", Map::new(), PATIENCE, None).await;
    assert_eq!(call.unwrap_err().kind, ErrorKind::Timeout);
    assert!(began.elapsed() < PATIENCE + WORKING);
}

/// SPEC 6.9: a request that is refused until a page was opened (-32042) puts the page before the person and is not made again; that
/// the page is done with is told once, and only of pages that were opened.
#[tokio::test(start_paused = true)]
async fn a_page_is_required() {
    let server = Scripted::new(|_, mut wire| async move {
        wire.initialize().await;
        for pages in [
            json!([page("https://a.example/")]),
            json!([page("https://a.example/no")]),
            json!([page("file:/x")]),
            json!([page("https://b.example/"), page("file:/x")]),
            json!([{"mode": "form"}]),
            json!(null),
        ] {
            let call = wire.hear_of("tools/call").await;
            let error = json!({"code": -32042, "message": "log in", "data": {"elicitations": pages}});
            wire.say(json!({"jsonrpc": "2.0", "id": call["id"], "error": error}))
                .await;
        }
        let list = wire.hear().await;
        assert_eq!(list["method"], "tools/list", "nothing was asked again by itself");
        for id in ["https://a.example/", "https://a.example/", "https://a.example/no"] {
            let params = json!({"elicitationId": id});
            wire.say(json!({"jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": params}))
                .await;
        }
        wire.reply(&list, json!({"tools": []})).await;
        idle(wire).await;
    });
    let host = Arc::new(Thoughtful::default());
    let peer = connected(Era::Initialize(None), &server, host.clone()).await.unwrap();
    for expect in [
        "was opened; call again",
        "user declined",
        "not the user who declined: such pages are not opened",
        "A page was opened, another one that it named was not (such pages are not opened)",
        "does not say which: log in",
        "does not say which",
    ] {
        let error = request(&*peer, "tools/call").await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Rpc { code: -32042 });
        assert!(error.message.contains(expect), "{error}");
    }
    request(&*peer, "tools/list").await.unwrap();
    let deadline = Instant::now() + AMPLE;
    while host.0.lock().unwrap().is_empty() {
        assert!(Instant::now() < deadline, "nothing was told");
        // The SDK hands notifications to tasks.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let said = host.0.lock().unwrap().clone();
    assert_eq!(said, ["mcp: script: the page it asked you to open is done with"]);
}
