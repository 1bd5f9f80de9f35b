//! The servers of a process, over scripted connections: nobody waits for one, and each comes back.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use aish_core::secret::Secret;
use aish_mcp::host::Nobody;
use aish_mcp::memory::Memory;
use aish_mcp::peer::Watch;
use aish_mcp::servers::{Connector, Servers, State};
use aish_mcp::tool::{Call, Caller};
use aish_mcp::{About, Alias, Endpoint, Era, ErrorKind, Host, McpError, Peer, Pinned, ServerConfig, StdioEndpoint};
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;

/// A connection that answers every list with one tool, until it is cut.
struct Scripted {
    about: About,
    tool: String,
    cut: watch::Receiver<bool>,
    closed: Arc<watch::Sender<usize>>,
}

impl Peer for Scripted {
    fn about(&self) -> &About {
        &self.about
    }

    fn request<'a>(
        &'a self,
        _method: &'a str,
        _params: Map<String, Value>,
        _patience: Duration,
        _watch: Option<Watch>,
    ) -> BoxFuture<'a, Result<Value, McpError>> {
        let result = json!({"tools": [{"name": self.tool, "inputSchema": {"type": "object"}}]});
        Box::pin(std::future::ready(Ok(result)))
    }

    fn ended(&self) -> BoxFuture<'_, McpError> {
        let mut cut = self.cut.clone();
        Box::pin(async move {
            let _ = cut.wait_for(|cut| *cut).await;
            McpError::new(ErrorKind::Closed, "cut")
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.closed.send_modify(|count| *count += 1);
        Box::pin(std::future::ready(()))
    }
}

/// What connecting comes to, one after another; then it hangs.
enum Act {
    Comes(&'static str),
    Fails(ErrorKind),
    Hangs,
}

struct Script {
    acts: Mutex<VecDeque<Act>>,
    eras: Mutex<Vec<Era>>,
    cut: watch::Sender<bool>,
    closed: Arc<watch::Sender<usize>>,
    host: Mutex<Option<Arc<dyn Host>>>,
}

impl Script {
    fn new(acts: impl IntoIterator<Item = Act>) -> Arc<Self> {
        Arc::new(Self {
            acts: Mutex::new(acts.into_iter().collect()),
            eras: Mutex::default(),
            cut: watch::Sender::new(false),
            closed: Arc::new(watch::Sender::new(0)),
            host: Mutex::default(),
        })
    }
}

impl Connector for Script {
    fn connect<'a>(
        &'a self,
        config: &'a ServerConfig,
        host: Arc<dyn Host>,
    ) -> BoxFuture<'a, Result<Arc<dyn Peer>, McpError>> {
        *self.host.lock().unwrap() = Some(host);
        self.eras.lock().unwrap().push(config.era.clone());
        let act = self.acts.lock().unwrap().pop_front().unwrap_or(Act::Hangs);
        Box::pin(async move {
            match act {
                Act::Comes(tool) => {
                    self.cut.send_replace(false);
                    Ok(Arc::new(Scripted {
                        about: About {
                            protocol: "2025-11-25".into(),
                            capabilities: Map::from_iter([("tools".to_owned(), json!({}))]),
                            ..About::default()
                        },
                        tool: tool.to_owned(),
                        cut: self.cut.subscribe(),
                        closed: Arc::clone(&self.closed),
                    }) as Arc<dyn Peer>)
                }
                Act::Fails(kind) => Err(McpError::new(kind, "scripted")),
                Act::Hangs => std::future::pending().await,
            }
        })
    }
}

fn config(alias: &str) -> ServerConfig {
    ServerConfig {
        alias: Alias::parse(alias).unwrap(),
        endpoint: Endpoint::Stdio(StdioEndpoint {
            command: vec![alias.to_owned()],
            environment: vec![("KEY".into(), Secret::new("seeded-secret"))],
            directory: "/".into(),
        }),
        timeout: Duration::from_secs(5),
        era: Era::Unknown,
        enabled_tools: Vec::new(),
        disabled_tools: Vec::new(),
        is_required: false,
        is_trusted: false,
    }
}

fn servers(script: &Arc<Script>, memory: Memory) -> Servers {
    Servers::new(Arc::clone(script) as Arc<dyn Connector>, Arc::new(Nobody), memory)
}

/// Waits until the server does as is said.
async fn until(servers: &Servers, alias: &str, is: impl Fn(&State) -> bool) {
    let mut changes = servers.changes();
    let waited = async {
        while !servers.get(alias).is_some_and(|server| is(&server.status.state)) {
            changes.changed().await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_secs(3_600), waited)
        .await
        .expect("the state never came");
}

fn tools(servers: &Servers, alias: &str) -> Vec<String> {
    let server = servers.get(alias).unwrap();
    server.status.offer.tools.iter().map(|tool| tool.name.clone()).collect()
}

/// SPEC 6.4: adding a server waits for nothing; one that hangs keeps no other back.
#[tokio::test(start_paused = true)]
async fn a_hanging_server_keeps_nobody() {
    let hanging = Script::new([]);
    let all = servers(&hanging, Memory::none());
    all.add(config("slow")).unwrap();
    assert_eq!(all.get("slow").unwrap().status.state, State::Connecting);
    assert!(all.add(config("slow")).is_err(), "an alias is taken once");
    let refused = all.peer("slow").await.err().unwrap();
    assert_eq!(refused.kind, ErrorKind::Timeout);
    assert!(all.remove("slow").await);
    assert!(!all.remove("slow").await);
}

/// SPEC 6.2, 6.4: a server that dies is started again after a pause, and its lists are fetched anew.
#[tokio::test(start_paused = true)]
async fn a_lost_server_comes_back() {
    let script = Script::new([Act::Comes("one"), Act::Fails(ErrorKind::Unreachable), Act::Comes("two")]);
    let all = servers(&script, Memory::none());
    all.add(config("a")).unwrap();
    until(&all, "a", |state| *state == State::Ready).await;
    assert_eq!(tools(&all, "a"), ["one"]);
    script.cut.send_replace(true);
    until(&all, "a", |state| matches!(state, State::Waiting { .. })).await;
    assert_eq!(tools(&all, "a"), ["one"], "what it offered is still known");
    until(&all, "a", |state| *state == State::Ready).await;
    assert_eq!(tools(&all, "a"), ["two"]);
    // The era that was found out is not searched for again.
    assert_eq!(script.eras.lock().unwrap()[1], Era::Initialize(None));
    all.close().await;
    assert_eq!(
        *script.closed.borrow(),
        2,
        "the lost connection and the last one were both closed"
    );
}

/// SPEC 6.3: who is refused, or can be sent nothing, is not tried again and again; a person says when.
#[tokio::test(start_paused = true)]
async fn a_refusal_is_final_until_somebody_says() {
    for refusal in [ErrorKind::Forbidden, ErrorKind::Unusable] {
        let script = Script::new([Act::Fails(refusal), Act::Comes("one")]);
        let all = servers(&script, Memory::none());
        all.add(config("a")).unwrap();
        until(&all, "a", |state| matches!(state, State::Failed(_))).await;
        assert_eq!(script.eras.lock().unwrap().len(), 1);
        all.refresh("a");
        until(&all, "a", |state| *state == State::Ready).await;
    }
}

/// SPEC 6.4: what a server offered last time is there at once, while it is being connected to; another command is another server.
#[tokio::test(start_paused = true)]
async fn what_was_offered_is_remembered() {
    let folder = tempfile::tempdir().unwrap();
    let memory = || Memory::in_folder(folder.path().join("mcp"));
    let first = Script::new([Act::Comes("one")]);
    let before = servers(&first, memory());
    before.add(config("a")).unwrap();
    until(&before, "a", |state| *state == State::Ready).await;
    before.close().await;

    let hanging = Script::new([]);
    let after = servers(&hanging, memory());
    after.add(config("a")).unwrap();
    assert_eq!(tools(&after, "a"), ["one"]);
    let kept = std::fs::read_to_string(folder.path().join("mcp/a.json")).unwrap();
    assert!(!kept.contains("seeded-secret"), "{kept}");

    let other = ServerConfig {
        endpoint: Endpoint::Stdio(StdioEndpoint {
            command: vec!["other".into()],
            environment: Vec::new(),
            directory: "/".into(),
        }),
        ..config("a")
    };
    let changed = servers(&hanging, memory());
    changed.add(other).unwrap();
    assert!(tools(&changed, "a").is_empty());
}

/// SPEC 6.8: a call that was let through as another tool than the server has by now is not made, and says so.
#[tokio::test]
async fn a_tool_that_is_another_by_now() {
    let script = Script::new([Act::Comes("send")]);
    let servers = servers(&script, Memory::none());
    servers.add(config("mail")).unwrap();
    until(&servers, "mail", |state| *state == State::Ready).await;
    let server = servers.get("mail").unwrap();
    let definition = server.status.offer.tools.first().unwrap();
    let now = Pinned::of(definition, &server.config.endpoint);
    let before = Pinned {
        description: "something else".to_owned(),
        ..now.clone()
    };
    for (tool, pinned, expect) in [
        ("send", &now, None),
        ("send", &before, Some("no longer the one that was approved")),
        ("gone", &now, Some("no longer offers it")),
    ] {
        let call = Call {
            alias: &server.config.alias,
            tool,
            pinned: Some(pinned),
            arguments: &Map::new(),
            answers: None,
            bytes_max: 1_000,
            watch: Arc::new(|_| {}),
        };
        let result = servers.call(call).await;
        match (result, expect) {
            (Ok(_), None) => {}
            (Err(error), Some(expect)) => assert!(error.message.contains(expect), "{error}"),
            (other, _) => panic!("{tool}: {other:?}"),
        }
    }
}
