//! Calling tools through the connections, and the one case in which a call is made twice.

use super::{Server, Servers};
use crate::outcome::Outcome;
use crate::peer::Peer;
use crate::tool::{Call, Caller, Told};
use crate::{ErrorKind, InputRequired, McpError};
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use std::sync::Arc;

impl Caller for Servers {
    fn call<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Outcome, McpError>> {
        Box::pin(async move {
            let alias = call.alias.as_str();
            let peer = self.peer(alias).await?;
            self.check_definition(&call.told())?;
            match self.ask(&peer, &call).await {
                Err(lost) if lost.is_connection() => {
                    self.reconnect(alias, &peer, &lost).await;
                    // A call that may have run is not made again, unless running twice is known to do no harm (SPEC 6.6).
                    if !self.get(alias).is_some_and(|server| may_repeat(&server, call.tool)) {
                        return Err(lost);
                    }
                    let peer = self.peer_but(alias, Some(&peer)).await?;
                    self.check_definition(&call.told())?;
                    self.ask(&peer, &call).await
                }
                Err(refused) if matches!(refused.kind, ErrorKind::Unauthorized { .. }) => {
                    // Who asks is known no more: what is said of the server is to be that it wants a login.
                    self.reconnect(alias, &peer, &refused).await;
                    Err(refused)
                }
                other => other,
            }
        })
    }

    fn verify<'a>(&'a self, call: Told<'a>) -> BoxFuture<'a, Result<(), McpError>> {
        Box::pin(async move {
            self.peer(call.alias.as_str()).await?;
            self.check_definition(&call)
        })
    }

    fn answers<'a>(
        &'a self,
        call: Told<'a>,
        required: &'a InputRequired,
    ) -> BoxFuture<'a, Result<Map<String, Value>, McpError>> {
        Box::pin(async move {
            let peer = self.peer(call.alias.as_str()).await?;
            self.check_definition(&call)?;
            peer.answers(required).await
        })
    }

    fn status(&self, line: &str) {
        self.host.say(line);
    }
}

impl Servers {
    /// A call that waited for its server may find another tool of that name there than the one that was let through (SPEC 6.8).
    fn check_definition(&self, call: &Told<'_>) -> Result<(), McpError> {
        let Some(pinned) = call.pinned else {
            return Ok(());
        };
        let server = self.get(call.alias.as_str());
        let offer = server.map(|server| server.status.offer).unwrap_or_default();
        match offer.tools.iter().find(|definition| definition.name == call.tool) {
            Some(definition) if pinned.is_of(definition) => Ok(()),
            Some(_) => Err(McpError::new(
                ErrorKind::Protocol,
                "not called: its definition is no longer the one that was approved; call it again",
            )),
            None => Err(McpError::new(
                ErrorKind::Protocol,
                "not called: the server no longer offers it",
            )),
        }
    }

    async fn ask(&self, peer: &Arc<dyn Peer>, call: &Call<'_>) -> Result<Outcome, McpError> {
        let Some(timeout) = self.get(call.alias.as_str()).map(|server| server.config.timeout) else {
            return Err(McpError::new(ErrorKind::Closed, "it was disconnected"));
        };
        let mut params = Map::from_iter([
            ("name".to_owned(), Value::from(call.tool)),
            ("arguments".to_owned(), Value::Object(call.arguments.clone())),
        ]);
        params.extend(call.answers.cloned().unwrap_or_default());
        let watch = Arc::clone(&call.watch);
        let result = peer.request("tools/call", params, timeout, Some(watch)).await?;
        Ok(Outcome::read(call.alias, &result, call.bytes_max))
    }

    /// Lets go of a connection that is of no use any more, so that another is opened now.
    async fn reconnect(&self, alias: &str, peer: &Arc<dyn Peer>, lost: &McpError) {
        if matches!(lost.kind, ErrorKind::SessionLost | ErrorKind::Unauthorized { .. }) {
            // The connection itself is whole: it has to be told.
            peer.close().await;
        }
        self.refresh(alias);
    }
}

/// Whether a tool says that it only reads or may be repeated, and its server is believed.
fn may_repeat(server: &Server, tool: &str) -> bool {
    let definition = server
        .status
        .offer
        .tools
        .iter()
        .find(|definition| definition.name == tool);
    server.config.is_trusted
        && definition.is_some_and(|definition| {
            definition.hints.read_only == Some(true) || definition.hints.idempotent == Some(true)
        })
}
