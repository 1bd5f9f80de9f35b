//! A client of ours stands where a model would: its call is the reply.
//!
//! So a client's call is a turn like any other: judged, asked about, started and ended in the ledger by the one driver there is,
//! and no tool runs by another way.

use aish_core::event::ReplyStop;
use aish_core::message::Part;
use aish_engine::{Model, Models};
use aish_provider::{Delta, Provider, ProviderError, Reply, ReplyCall, ReplyStream, Request};
use futures_util::future::{BoxFuture, ready};
use std::sync::{Arc, Mutex, PoisonError};

/// What the ledger calls whoever makes the calls.
pub const CALLER: &str = "mcp-client";
/// What closes each turn.
const DONE: &str = "[the client has the result]";

/// The client, as far as a driver sees one.
#[derive(Default)]
pub(super) struct Caller(Mutex<Option<ReplyCall>>);

impl Caller {
    /// What the next reply is.
    pub(super) fn will_call(&self, name: String, arguments: String) {
        let call = ReplyCall {
            provider_id: None,
            name,
            arguments,
        };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(call);
    }

    fn reply(&self) -> Reply {
        let call = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (parts, stop) = match &call {
            Some(_) => (Vec::new(), ReplyStop::ToolCalls),
            None => (vec![Part::text(DONE)], ReplyStop::End),
        };
        Reply {
            parts,
            calls: call.into_iter().collect(),
            stop,
            usage: None,
            model: None,
            error: None,
            reason: None,
            remarks: Vec::new(),
        }
    }
}

impl Provider for Caller {
    fn send<'a>(&'a self, _request: Request<'a>) -> BoxFuture<'a, Result<Box<dyn ReplyStream>, ProviderError>> {
        let reply: Box<dyn ReplyStream> = Box::new(Whole(self.reply()));
        Box::pin(ready(Ok(reply)))
    }
}

/// A reply that is there at once.
struct Whole(Reply);

impl ReplyStream for Whole {
    fn next<'a>(&'a mut self, _out: &'a mut Vec<Delta>) -> BoxFuture<'a, bool> {
        Box::pin(ready(false))
    }

    fn finish(self: Box<Self>) -> Reply {
        self.0
    }
}

/// The only model there is for a client's turns.
pub(super) struct OnlyCaller(pub(super) Arc<Caller>);

impl Models for OnlyCaller {
    fn model(&self, _name: &str) -> Result<Model, String> {
        Ok(Model {
            name: CALLER.to_owned(),
            asked_for: None,
            provider: Arc::clone(&self.0) as Arc<dyn Provider>,
            context_window: None,
            max_output_tokens: None,
            images: false,
            fallback: Vec::new(),
        })
    }
}
