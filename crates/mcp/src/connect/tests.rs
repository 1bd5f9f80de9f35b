//! Servers that are scripts in this process: how each kind is found out, and what a connection to one does.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use crate::host::{News, Nobody, Question, Reply};
use crate::peer::Progressed;
use crate::wire::{Trouble, raw};
use crate::{Alias, StdioEndpoint};
use futures_util::future::BoxFuture;
use rmcp::model::RequestId;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use serde_json::{Map, Value, json};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::mpsc;

/// Long enough for everything here on a loaded machine.
const AMPLE: Duration = Duration::from_secs(60);

/// What a scripted server holds: messages from the client, and where its own go.
struct Wire {
    heard: mpsc::Receiver<Value>,
    said: mpsc::Sender<Value>,
}

impl Wire {
    async fn hear(&mut self) -> Value {
        self.heard.recv().await.unwrap_or_default()
    }

    /// The next message with that method.
    async fn hear_of(&mut self, method: &str) -> Value {
        loop {
            let message = self.hear().await;
            assert!(!message.is_null(), "the client never sent {method}");
            if message["method"] == method {
                return message;
            }
        }
    }

    async fn say(&self, message: Value) {
        let _ = self.said.send(message).await;
    }

    async fn reply(&self, request: &Value, result: Value) {
        self.say(json!({"jsonrpc": "2.0", "id": request["id"], "result": result}))
            .await;
    }

    async fn refuse(&self, request: &Value, code: i64) {
        let error = json!({"code": code, "message": "no"});
        self.say(json!({"jsonrpc": "2.0", "id": request["id"], "error": error}))
            .await;
    }

    /// Answers `initialize`, whatever came before, and waits until the client has initialized.
    async fn initialize(&mut self) {
        let request = self.hear_of("initialize").await;
        self.reply(&request, initialized()).await;
        self.hear_of("notifications/initialized").await;
    }
}

fn initialized() -> Value {
    json!({
        "protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "odd": 1},
        "serverInfo": {"name": "script", "version": "7"}, "instructions": "be kind",
    })
}

fn discovered() -> Value {
    json!({
        "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
        "ttlMs": 0, "cacheScope": "private",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "script", "version": "8"}},
    })
}

/// The client's end of it.
struct InProcess {
    to_server: mpsc::Sender<Value>,
    from_server: mpsc::Receiver<Value>,
}

impl Transport<RoleClient> for InProcess {
    type Error = McpError;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), McpError>> + Send + 'static {
        let to_server = self.to_server.clone();
        async move {
            let sent = to_server.send(serde_json::to_value(item).unwrap()).await;
            sent.map_err(|_| McpError::new(ErrorKind::Closed, "the script is over"))
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let message = raw::keep(self.from_server.recv().await?);
            if let Ok(message) = serde_json::from_value(message) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), McpError> {
        self.from_server.close();
        Ok(())
    }
}

struct Unknowing;

impl Trouble for Unknowing {
    fn of_request(&self, _id: &RequestId) -> Option<McpError> {
        None
    }

    fn of_connection(&self) -> Option<McpError> {
        None
    }
}

type Script = dyn Fn(usize, Wire) -> BoxFuture<'static, ()> + Send + Sync;

/// Runs the script once for each connection; it is told which one it is.
#[derive(Clone)]
struct Scripted {
    script: Arc<Script>,
    opened: Arc<AtomicUsize>,
}

impl Scripted {
    fn new<F, R>(script: F) -> Self
    where
        F: Fn(usize, Wire) -> R + Send + Sync + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        Self {
            script: Arc::new(move |number, wire| Box::pin(script(number, wire))),
            opened: Arc::default(),
        }
    }
}

impl Open for Scripted {
    type Transport = InProcess;

    const AFTER_SILENCE: AfterSilence = AfterSilence::Ask;

    async fn open(&self) -> Result<(InProcess, Box<dyn Trouble>), McpError> {
        let (to_server, heard) = mpsc::channel(64);
        let (said, from_server) = mpsc::channel(64);
        let number = self.opened.fetch_add(1, Ordering::SeqCst);
        tokio::spawn((self.script)(number, Wire { heard, said }));
        Ok((InProcess { to_server, from_server }, Box::new(Unknowing)))
    }
}

fn config(era: Era, timeout: Duration) -> ServerConfig {
    ServerConfig {
        alias: Alias::parse("script").unwrap(),
        endpoint: Endpoint::Stdio(StdioEndpoint {
            command: vec!["script".to_owned()],
            environment: Vec::new(),
            directory: "/".into(),
        }),
        timeout,
        era,
        enabled_tools: Vec::new(),
        disabled_tools: Vec::new(),
        is_required: false,
        is_trusted: false,
    }
}

async fn connected(era: Era, server: &Scripted, host: Arc<dyn Host>) -> Result<Arc<dyn Peer>, McpError> {
    Attempt::new(&config(era, AMPLE), host, server.clone()).run().await
}

async fn request(peer: &dyn Peer, method: &str) -> Result<Value, McpError> {
    peer.request(method, Map::new(), AMPLE, None).await
}

/// Keeps a connection open until the client ends it.
async fn idle(mut wire: Wire) {
    while !wire.hear().await.is_null() {}
}

/// SPEC 6.2: a server that knows no `server/discover` is asked `initialize` on the same connection.
#[tokio::test]
async fn older_servers() {
    let server = Scripted::new(|_, mut wire| async move {
        let probe = wire.hear_of("server/discover").await;
        assert_eq!(
            probe["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"],
            "2026-07-28"
        );
        wire.refuse(&probe, -32601).await;
        let hello = wire.hear_of("initialize").await;
        let client = json!({"name": "aish", "version": env!("CARGO_PKG_VERSION")});
        assert_eq!(
            (&hello["params"]["protocolVersion"], &hello["params"]["clientInfo"]),
            (&json!("2025-11-25"), &client)
        );
        assert_eq!(
            hello["params"]["capabilities"],
            json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}})
        );
        wire.reply(&hello, initialized()).await;
        let list = wire.hear_of("tools/list").await;
        assert!(
            list["params"]["_meta"]
                .get("io.modelcontextprotocol/protocolVersion")
                .is_none()
        );
        wire.reply(&list, json!({"tools": [], "more": 1})).await;
        idle(wire).await;
    });
    let peer = connected(Era::Unknown, &server, Arc::new(Nobody)).await.unwrap();
    let about = peer.about();
    assert_eq!(
        (about.name.as_str(), about.version.as_str(), about.protocol.as_str()),
        ("script", "7", "2025-11-25")
    );
    assert_eq!(about.instructions.as_deref(), Some("be kind"));
    assert_eq!(about.capabilities["odd"], 1);
    assert_eq!(
        request(&*peer, "tools/list").await.unwrap(),
        json!({"tools": [], "more": 1})
    );
    assert_eq!(server.opened.load(Ordering::SeqCst), 1);
}

/// SPEC 6.2: a server of the newer protocol gets no `initialize`, and everything it needs with each request.
#[tokio::test]
async fn newer_servers() {
    let server = Scripted::new(|_, mut wire| async move {
        let probe = wire.hear().await;
        wire.reply(&probe, discovered()).await;
        let call = wire.hear().await;
        assert_eq!(call["method"], "tools/call");
        let meta = &call["params"]["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
        assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "aish");
        wire.reply(&call, json!({"resultType": "complete", "content": []}))
            .await;
        idle(wire).await;
    });
    let peer = connected(Era::Unknown, &server, Arc::new(Nobody)).await.unwrap();
    assert_eq!(
        (peer.about().name.as_str(), peer.about().protocol.as_str()),
        ("script", "2026-07-28")
    );
    let result = request(&*peer, "tools/call").await.unwrap();
    assert_eq!(result, json!({"resultType": "complete", "content": []}));
}

/// SPEC 6.2: a server that exits, or says something senseless, when it is asked `server/discover` is asked the older way.
#[tokio::test]
async fn servers_that_the_probe_upsets() {
    let exits = Scripted::new(|number, mut wire| async move {
        if number == 0 {
            wire.hear_of("server/discover").await;
            return;
        }
        wire.initialize().await;
        idle(wire).await;
    });
    connected(Era::Unknown, &exits, Arc::new(Nobody)).await.unwrap();
    assert_eq!(exits.opened.load(Ordering::SeqCst), 2);

    for answer in [
        json!({}),
        json!(null),
        json!({"supportedVersions": ["2199-01-01"]}),
        json!([]),
    ] {
        let senseless = Scripted::new(move |_, mut wire| {
            let answer = answer.clone();
            async move {
                let probe = wire.hear_of("server/discover").await;
                wire.reply(&probe, answer).await;
                wire.initialize().await;
                idle(wire).await;
            }
        });
        let peer = connected(Era::Unknown, &senseless, Arc::new(Nobody)).await.unwrap();
        assert_eq!(peer.about().protocol, "2025-11-25");
        assert_eq!(senseless.opened.load(Ordering::SeqCst), 1);
    }
}

/// SPEC 6.2: a server that does not answer `server/discover` is asked the older way on the same connection, and one that is
/// only slow may still answer the newer way.
#[tokio::test]
async fn servers_that_are_silent() {
    let ignores = Scripted::new(|_, mut wire| async move {
        wire.initialize().await;
        idle(wire).await;
    });
    let peer = connected(Era::Unknown, &ignores, Arc::new(Nobody)).await.unwrap();
    assert_eq!(
        (peer.about().protocol.as_str(), ignores.opened.load(Ordering::SeqCst)),
        ("2025-11-25", 1)
    );

    let slow = Scripted::new(|_, mut wire| async move {
        let probe = wire.hear_of("server/discover").await;
        let hello = wire.hear_of("initialize").await;
        wire.reply(&probe, discovered()).await;
        wire.refuse(&hello, -32022).await;
        idle(wire).await;
    });
    let peer = connected(Era::Unknown, &slow, Arc::new(Nobody)).await.unwrap();
    assert_eq!(
        (peer.about().protocol.as_str(), slow.opened.load(Ordering::SeqCst)),
        ("2026-07-28", 1)
    );
}

/// SPEC 6.2: a server that the probe leaves deaf is started anew within the deadline; one that is always deaf ends with it.
#[tokio::test]
async fn servers_that_are_deaf() {
    let once = Scripted::new(|number, mut wire| async move {
        if number > 0 {
            wire.initialize().await;
        }
        idle(wire).await;
    });
    let patient = config(Era::Unknown, Duration::from_secs(4));
    let peer = Attempt::new(&patient, Arc::new(Nobody), once.clone())
        .run()
        .await
        .unwrap();
    assert_eq!(
        (peer.about().protocol.as_str(), once.opened.load(Ordering::SeqCst)),
        ("2025-11-25", 2)
    );

    let always = Scripted::new(|_, wire| idle(wire));
    for era in [Era::Unknown, Era::Stateless, Era::Initialize(None)] {
        let hasty = config(era, Duration::from_millis(300));
        let error = Attempt::new(&hasty, Arc::new(Nobody), always.clone())
            .run()
            .await
            .err()
            .unwrap();
        assert_eq!(error.kind, ErrorKind::Timeout);
    }
}

/// A version that is unknown here is named; one that is configured is offered.
#[tokio::test]
async fn versions() {
    let strange = Scripted::new(|_, mut wire| async move {
        let hello = wire.hear_of("initialize").await;
        assert_eq!(hello["params"]["protocolVersion"], "2025-03-26");
        wire.reply(&hello, json!({"protocolVersion": "2199-01-01", "capabilities": {}}))
            .await;
        idle(wire).await;
    });
    let era = Era::Initialize(Some("2025-03-26".to_owned()));
    let error = connected(era, &strange, Arc::new(Nobody)).await.err().unwrap();
    assert_eq!(error.kind, ErrorKind::Version);
    assert!(error.message.contains("2199-01-01"), "{error}");
    let era = Era::Initialize(Some("2026-07-28".to_owned()));
    assert_eq!(
        connected(era, &strange, Arc::new(Nobody)).await.err().unwrap().kind,
        ErrorKind::Version
    );
}

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
    let watch: crate::peer::Watch = Arc::new(move |step| {
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
