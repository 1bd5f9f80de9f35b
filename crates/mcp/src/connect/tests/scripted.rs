//! A server that is a script in this process: one task for each connection, which hears and says JSON.

use crate::connect::Attempt;
use crate::connect::open::{AfterSilence, Open};
use crate::wire::{Trouble, raw};
use crate::{Alias, Endpoint, Era, ErrorKind, Host, McpError, Peer, ServerConfig, StdioEndpoint};
use futures_util::future::BoxFuture;
use rmcp::RoleClient;
use rmcp::model::RequestId;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;

/// Long enough for everything here on a loaded machine.
pub(super) const AMPLE: Duration = Duration::from_secs(60);

/// What a scripted server holds: messages from the client, and where its own go.
pub(super) struct Wire {
    heard: mpsc::Receiver<Value>,
    said: mpsc::Sender<Value>,
}

impl Wire {
    pub(super) async fn hear(&mut self) -> Value {
        self.heard.recv().await.unwrap_or_default()
    }

    /// The next message with that method.
    pub(super) async fn hear_of(&mut self, method: &str) -> Value {
        loop {
            let message = self.hear().await;
            assert!(!message.is_null(), "the client never sent {method}");
            if message["method"] == method {
                return message;
            }
        }
    }

    pub(super) async fn say(&self, message: Value) {
        let _ = self.said.send(message).await;
    }

    pub(super) async fn reply(&self, request: &Value, result: Value) {
        self.say(json!({"jsonrpc": "2.0", "id": request["id"], "result": result}))
            .await;
    }

    pub(super) async fn refuse(&self, request: &Value, code: i64) {
        let error = json!({"code": code, "message": "no"});
        self.say(json!({"jsonrpc": "2.0", "id": request["id"], "error": error}))
            .await;
    }

    /// Answers `initialize`, whatever came before, and waits until the client has initialized.
    pub(super) async fn initialize(&mut self) {
        let request = self.hear_of("initialize").await;
        self.reply(&request, initialized()).await;
        self.hear_of("notifications/initialized").await;
    }
}

pub(super) fn initialized() -> Value {
    json!({
        "protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "odd": 1},
        "serverInfo": {"name": "script", "version": "7"}, "instructions": "be kind",
    })
}

pub(super) fn discovered() -> Value {
    json!({
        "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
        "ttlMs": 0, "cacheScope": "private",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "script", "version": "8"}},
    })
}

/// The client's end of it.
pub(super) struct InProcess {
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
pub(super) struct Scripted {
    script: Arc<Script>,
    /// How many connections there were.
    pub(super) opened: Arc<AtomicUsize>,
}

impl Scripted {
    pub(super) fn new<F, R>(script: F) -> Self
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

pub(super) fn config(era: Era, timeout: Duration) -> ServerConfig {
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

pub(super) async fn connected(era: Era, server: &Scripted, host: Arc<dyn Host>) -> Result<Arc<dyn Peer>, McpError> {
    Attempt::new(&config(era, AMPLE), host, server.clone()).run().await
}

pub(super) async fn request(peer: &dyn Peer, method: &str) -> Result<Value, McpError> {
    peer.request(method, Map::new(), AMPLE, None).await
}

/// Keeps a connection open until the client ends it.
pub(super) async fn idle(mut wire: Wire) {
    while !wire.hear().await.is_null() {}
}
