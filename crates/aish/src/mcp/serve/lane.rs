//! A lane: a session of the ledger in which the calls of clients happen, one after the other.

use super::caller::{CALLER, Caller, OnlyCaller};
use crate::tools::for_other_programs;
use aish_core::event::ToolResult;
use aish_core::limits::Limits;
use aish_engine::{Driver, Engine, EngineError, Notice, Notices, Outcome, Routing};
use aish_mcp::serve::Call;
use aish_tools::Cancel;
use std::sync::{Arc, RwLock};
use tokio::sync::watch;

/// Calls of one session; then another begins, so that none grows without end.
const CALLS_MAX: usize = 200;
/// Bytes of arguments and results of one session, likewise. A session is in memory for as long as calls may follow in it, and
/// holds each argument several times over.
const CONTENT_BYTES_MAX: usize = 1024 * 1024;

/// One session, and who calls in it.
pub(super) struct Lane {
    pub(super) driver: Driver,
    caller: Arc<Caller>,
    calls: usize,
    content_bytes: usize,
}

impl Lane {
    /// A session of its own, with the rules, tools and bounds of this engine, and nobody but clients to call.
    pub(super) fn new(engine: &Engine) -> Self {
        let caller = Arc::new(Caller::default());
        let mut settings = engine.settings();
        settings.routing = Routing::default();
        // Who begins the turns: a person who goes on with the last session does not mean this one.
        CALLER.clone_into(&mut settings.model);
        settings.instructions = String::new();
        // A turn is one call: the bounds of longer ones must not end it.
        settings.limits = Limits {
            max_result_chars: settings.limits.max_result_chars,
            ..Limits::default()
        };
        let own = Engine {
            store: Arc::clone(&engine.store),
            models: Arc::new(OnlyCaller(Arc::clone(&caller))),
            tools: Arc::new(aish_engine::Offered::new(for_other_programs(&engine.tools.now()))),
            asides: Arc::default(),
            owner: engine.owner.clone(),
            redactor: engine.redactor.clone(),
            settings: RwLock::new(settings),
        };
        Self {
            driver: Driver::create(Arc::new(own)),
            caller,
            calls: 0,
            content_bytes: 0,
        }
    }

    /// Begins the turn of a call.
    ///
    /// # Errors
    /// The ledger refuses.
    pub(super) async fn begin(&mut self, call: &Call) -> Result<(), EngineError> {
        self.calls += 1;
        self.content_bytes += call.arguments.len();
        self.caller.will_call(call.tool.clone(), call.arguments.clone());
        self.driver
            .start(&format!("(MCP client {})", call.client), Vec::new())
            .await
    }

    /// Drives until the turn is over or waits for somebody. It is cancelled when the client does not want it any more, or
    /// `stop` turns true.
    ///
    /// # Errors
    /// The session cannot be written.
    pub(super) async fn drive(&mut self, call: &Call, stop: &Cancel) -> Result<Outcome, EngineError> {
        let redactor = self.driver.engine().redactor.clone();
        let (end, cancel) = watch::channel(false);
        let notices = Notices::new();
        let (mut unwanted, mut stopped) = (call.cancel.clone(), stop.clone());
        let mut ending = std::pin::pin!(async {
            tokio::select! {
                () = aish_tools::cancelled(&mut unwanted) => {}
                () = aish_tools::cancelled(&mut stopped) => {}
            }
            end.send_replace(true);
            std::future::pending::<()>().await;
        });
        let outcome = {
            let mut driving = std::pin::pin!(self.driver.drive(&notices, cancel));
            loop {
                tokio::select! {
                    biased;
                    outcome = &mut driving => break outcome,
                    () = &mut ending => {}
                    () = notices.changed() => {}
                }
                for notice in notices.drain() {
                    tell(notice, call, &redactor);
                }
            }
        };
        for notice in notices.drain() {
            tell(notice, call, &redactor);
        }
        outcome
    }

    /// What the call of the last turn came to.
    pub(super) fn result(&mut self) -> Option<ToolResult> {
        let session = self.driver.session();
        let id = session.turn()?.calls().last()?.id.clone();
        let result = session.result_event(&id)?.clone();
        self.content_bytes += result.output.len();
        Some(result)
    }

    /// Whether another call may happen in it.
    pub(super) fn has_room(&self) -> bool {
        self.calls < CALLS_MAX && self.content_bytes < CONTENT_BYTES_MAX
    }

    /// Bytes of all arguments and results in it.
    pub(super) fn content_bytes(&self) -> usize {
        self.content_bytes
    }
}

/// What a tool prints is progress for the client; what a person should know of the ledger is for whoever started the server.
fn tell(notice: Notice, call: &Call, redactor: &aish_core::redact::Redactor) {
    match notice {
        Notice::ToolOutput { text, .. } => call.progress.output(&redactor.redact(&text)),
        Notice::CallStep { line, .. } => call.progress.step(&redactor.redact(&line)),
        Notice::Status(line) => crate::oneshot::eprint_line(&line),
        Notice::Asking { .. }
        | Notice::Text(_)
        | Notice::Thinking(_)
        | Notice::CallBegun { .. }
        | Notice::ReplyEnded
        | Notice::CallStarted { .. }
        | Notice::CommandOutput(_)
        | Notice::Beside(_)
        | Notice::CallEnded { .. }
        | Notice::Retrying { .. }
        | Notice::Usage(_)
        | Notice::Recorded(_) => {}
    }
}
