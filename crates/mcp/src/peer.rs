//! A connected server, as the rest of this crate sees it: requests go out as a method with parameters, raw JSON comes back.

use crate::{ErrorKind, InputRequired, McpError};
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;

/// What a server said of itself when it was connected to. All text is the server's own: hostile until escaped.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct About {
    /// What it calls itself.
    pub name: String,
    /// Which version of itself it is.
    pub version: String,
    /// The version of the protocol that is spoken, e.g. `2025-11-25`.
    pub protocol: String,
    /// What it tells a model about itself.
    pub instructions: Option<String>,
    /// What it can do: the `capabilities` object.
    pub capabilities: Map<String, Value>,
}

impl About {
    /// True when it offers things of that kind: `tools`, `prompts`, `resources`, `completions`, `logging`.
    pub fn offers(&self, capability: &str) -> bool {
        self.capabilities.get(capability).is_some_and(Value::is_object)
    }
}

/// How far a request has come, as the server says. The message is hostile until escaped.
#[derive(Clone, Debug, PartialEq)]
pub struct Progressed {
    /// So much is done.
    pub progress: f64,
    /// Of so much, if it is known.
    pub total: Option<f64>,
    /// What is being done.
    pub message: Option<String>,
}

/// Who is told how far a request has come. Never blocks.
pub type Watch = Arc<dyn Fn(Progressed) + Send + Sync>;

/// A connected server. Dropping the future of a request tells the server that nobody waits for it any more.
pub trait Peer: Send + Sync {
    /// What it said of itself.
    fn about(&self) -> &About;

    /// Asks, and waits no longer than `patience` since the request or the last progress.
    ///
    /// The reply is the `result` of the JSON-RPC response. Parameters have no `_meta`: the peer adds what the era asks for.
    ///
    /// # Errors
    /// Every way in which there is no result; see [`crate::ErrorKind`].
    fn request<'a>(
        &'a self,
        method: &'a str,
        params: Map<String, Value>,
        patience: Duration,
        watch: Option<Watch>,
    ) -> BoxFuture<'a, Result<Value, McpError>>;

    /// Puts what a request asked to the person who is here: the further parameters with which the same request goes on. The
    /// server hears nothing of it.
    ///
    /// # Errors
    /// Nobody is here, or this is no connection over which it could go on.
    fn answers<'a>(&'a self, _required: &'a InputRequired) -> BoxFuture<'a, Result<Map<String, Value>, McpError>> {
        Box::pin(std::future::ready(Err(cannot_go_on())))
    }

    /// Completes when the connection has ended, with why.
    fn ended(&self) -> BoxFuture<'_, McpError>;

    /// Ends the connection, and the whole process tree of a child. Returns when nothing is left of it; [`Peer::ended`] completes.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// Of a request that asked something, at a server that speaks a protocol by now in which no request asks.
pub(crate) fn cannot_go_on() -> McpError {
    McpError::new(
        ErrorKind::Protocol,
        "it no longer speaks the protocol in which it asked: the call cannot go on",
    )
}
