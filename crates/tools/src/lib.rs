//! The tools that run here.
//!
//! This crate owns the [`Tool`] trait, the set of tools a session offers ([`set`]), and the built-in tools: files
//! ([`files`]), search ([`search`]), commands ([`bash`]) and pages ([`web`]). It says what a call *would* do ([`Tool::inspect`]) and does it
//! ([`Tool::run`]); whether it may is policy's to say, elsewhere.
//!
//! ```
//! use aish_tools::set::ToolSet;
//!
//! let tools = ToolSet::builtin();
//! assert_eq!(tools.validate("file_read", r#"{"path":"x","limit":"10"}"#).unwrap()["limit"], 10);
//! assert_eq!(tools.validate("file_read", "{}").unwrap_err(), "Missing required parameter: path");
//! ```
//!
//! Failures are results, `{"error":"message"}`, and never abort a turn: the model decides what to do about them.

use aish_core::action::{Action, Effect};
use aish_core::event::CallSource;
use aish_core::id::SessionId;
use aish_core::message::{Part, ToolSpec};
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;

mod arguments;
mod asks;
pub mod bash;
pub mod capture;
pub mod files;
pub mod finder;
mod open;
mod path;
pub mod search;
pub mod set;
pub mod web;
mod work;

pub use asks::{Asks, Put, Ran};
pub use web::WebAccess;
pub use work::{CANCELLED, cancelled};

/// Where and within which bounds a call runs.
#[derive(Clone, Debug)]
pub struct ToolContext {
    /// The directory relative paths are taken from; absolute.
    pub directory: PathBuf,
    /// The environment of commands, whole: nothing else is inherited. Secrets of ours are not in it.
    pub environment: Arc<Vec<(String, String)>>,
    /// Bytes of one result that are captured (SPEC 4.3).
    pub output_bytes_max: usize,
    /// What the tools that walk a folder pass over.
    pub hidden: Hidden,
    /// How far a call may reach into the network.
    pub web: WebAccess,
    /// Where in the ledger the call is; `None` where it is in none.
    pub place: Option<Place>,
}

/// A place in the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The session.
    pub session: SessionId,
    /// The first event of the turn.
    pub turn_start: u64,
    /// Who began the turn.
    pub begun_by: BegunBy,
}

/// Who is in front of a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BegunBy {
    /// Somebody at a terminal of this machine.
    #[default]
    Person,
    /// A client somewhere else (SPEC 9).
    Client,
}

/// Files that are not to be found by searching the folder above them, because a rule speaks of them by name.
#[derive(Clone, Default)]
pub struct Hidden(Option<Arc<IsHidden>>);

/// True for a path (absolute, links resolved) that is passed over.
type IsHidden = dyn Fn(&Path) -> bool + Send + Sync;

impl Hidden {
    /// Hides the paths (absolute, links resolved) for which this is true.
    pub fn by(is_hidden: impl Fn(&Path) -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(is_hidden)))
    }

    /// True for a path that is passed over.
    pub fn covers(&self, path: &Path) -> bool {
        self.0.as_ref().is_some_and(|is_hidden| is_hidden(path))
    }
}

impl std::fmt::Debug for Hidden {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() {
            "Hidden(by rule)"
        } else {
            "Hidden(nothing)"
        })
    }
}

/// What a call came to.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolOutput {
    /// The whole captured result: JSON text for built-in tools, plain text for others.
    pub output: String,
    /// One readable line, e.g. `3 files found`.
    pub summary: String,
    /// False for an error.
    pub success: bool,
    /// Images that came with it, in order (SPEC 6.5).
    pub parts: Vec<Part>,
}

impl ToolOutput {
    /// A failure: `{"error":"message"}`.
    pub fn error(message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            output: serde_json::json!({ "error": message }).to_string(),
            summary: message,
            success: false,
            parts: Vec::new(),
        }
    }
}

/// Where a running call reports progress, e.g. the lines a command prints. Never blocks and never fails.
pub trait Progress: Send + Sync {
    /// A piece of output as it appears; raw, not yet safe for a terminal.
    fn output(&self, text: &str);

    /// How far the call has come, one line that is no part of its result; raw, too.
    fn step(&self, line: &str) {
        self.output(&format!("{line}\n"));
    }
}

/// Progress nobody watches.
pub struct NoProgress;

impl Progress for NoProgress {
    fn output(&self, _text: &str) {}
}

/// A call asks to stop: a flag to poll and a future to wait for. Cheap to clone.
pub type Cancel = tokio::sync::watch::Receiver<bool>;

/// Something a model can call.
pub trait Tool: Send + Sync {
    /// Name, description and schema, as offered to a model.
    fn spec(&self) -> &ToolSpec;

    /// The schema calls are checked against, where it asks for less than the one a model is offered.
    fn validation_schema(&self) -> &Value {
        &self.spec().input_schema
    }

    /// Where it runs.
    fn source(&self) -> CallSource {
        CallSource::Builtin
    }

    /// What a call with these arguments would do. The arguments fit the schema. Looks at the file system (links are
    /// resolved) and changes nothing.
    ///
    /// # Errors
    /// The call cannot be run at all; the text is told to the model, e.g. `File not found: x`.
    fn inspect(&self, arguments: &Value, context: &ToolContext) -> Result<Action, String>;

    /// Told that a person or a rule let this call through, before it runs. A tool that is defined by somebody else remembers
    /// what it was then (SPEC 6.8). Returns soon, and never fails: what cannot be remembered is told elsewhere.
    fn approved(&self, _action: &Action) {}

    /// Runs a call that [`Tool::inspect`] made this action of: what was judged is what runs. A tool that touches files touches
    /// those of the action; the arguments are not resolved again, since a link may have been swapped in between, and what
    /// opens as anything but the judged path is refused.
    ///
    /// Returns soon after `cancel` turns true, with everything it started ended; dropping the future ends it too.
    fn run<'a>(
        &'a self,
        action: &'a Action,
        context: &'a ToolContext,
        progress: &'a dyn Progress,
        cancel: Cancel,
    ) -> BoxFuture<'a, ToolOutput>;

    /// Runs a call as [`Tool::run`] does, for a driver that can wait for what it asks (SPEC 6.9). Only a tool whose calls may
    /// stop in the middle has one of its own.
    fn run_or_ask<'a>(
        &'a self,
        action: &'a Action,
        context: &'a ToolContext,
        progress: &'a dyn Progress,
        cancel: Cancel,
    ) -> BoxFuture<'a, Ran> {
        Box::pin(async move { Ran::Output(self.run(action, context, progress, cancel).await) })
    }

    /// Puts what a call asked to the person who is here now; `state` is that of its [`Asks`]. Nobody but the person hears of it:
    /// it may be done again.
    fn put<'a>(&'a self, _action: &'a Action, _state: &'a Value, _cancel: Cancel) -> BoxFuture<'a, Put> {
        Box::pin(std::future::ready(Put::Ended(ToolOutput::error(ASKS_NOTHING))))
    }

    /// Goes on with a call whose questions are answered; `answers` is what [`Tool::put`] gave.
    fn go_on<'a>(
        &'a self,
        _action: &'a Action,
        _context: &'a ToolContext,
        _progress: &'a dyn Progress,
        _cancel: Cancel,
        _answers: &'a Value,
    ) -> BoxFuture<'a, Ran> {
        Box::pin(std::future::ready(Ran::Output(ToolOutput::error(ASKS_NOTHING))))
    }
}

/// Of a call that waits for an answer, where its tool is one by now that asks nothing.
const ASKS_NOTHING: &str = "The tool no longer asks what it asked";

/// The path an action touches: the last one, for one that reads and writes the same.
fn touched_path(action: &Action) -> Result<PathBuf, String> {
    let paths = action.effects.iter().rev().find_map(|effect| match effect {
        Effect::Read { path } | Effect::Write { path } => Some(path.clone()),
        Effect::Execute { .. }
        | Effect::Fetch { .. }
        | Effect::Remote
        | Effect::Delegate { .. }
        | Effect::Recall
        | Effect::Internal => None,
    });
    paths.ok_or_else(|| format!("The action of {} names no path", action.tool))
}
