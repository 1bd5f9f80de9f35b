//! The engine: drives one turn of one session at a time, and is the same whether a terminal, a pipe or a server is in front.
//!
//! A [`Driver`] holds a session's fold in memory and the lease on it. [`Driver::start`] appends a question, [`Driver::drive`]
//! performs steps until the turn is done *or waits for somebody*, and returns: there is no approver callback. Whoever is in
//! front asks the person, calls [`Driver::answer`], and drives on; if it cannot ask, it just leaves, and another process
//! resumes from the ledger (DESIGN, "the one idea").
//!
//! What happens meanwhile is told through [`Notices`], a queue that never blocks the turn.

use aish_core::Digest;
use aish_core::event::{Served, TurnStarted, Usage};
use aish_core::id::{CallId, SessionId};
use aish_core::limits::Limits;
use aish_core::policy::{ApprovalMode, Policy};
use aish_core::redact::Redactor;
use aish_core::turn::StopReason;
use aish_provider::Provider;
use aish_store::{Owner, Store};
use aish_tools::ToolContext;
use std::sync::{Arc, RwLock};

mod answer;
mod append;
mod asides;
mod asking;
mod choice;
mod client;
mod clock;
mod context;
mod conversations;
mod defer;
mod driver;
mod error;
mod gate;
mod kept;
mod lease;
mod memory_search;
mod model;
mod notice;
mod offered;
mod onward;
mod proposals;
mod questions;
mod run;
mod served;
mod settled;
mod standing;
mod steering;
mod told;
mod view;

pub use answer::{AnswerRequest, Answered};
pub use asides::Asides;
pub use choice::Routing;
pub use clock::{new_session_id, now_ms};
pub use context::SYSTEM_PROMPT;
pub use conversations::{
    ChatRequest, Conversations, ConversationsSettings, Fault, Item, Live, Observer, Problem, Ran, Reader, Ticket,
};
pub use driver::Driver;
pub use error::EngineError;
pub use memory_search::SearchMemory;
pub use notice::{Notice, Notices};
pub use offered::{Offered, Supply};
pub use proposals::{JudgedCommand, LastReply, Proposals};
pub use served::{Claim, Reply, ServeError};
pub use settled::Settled;
pub use standing::{AnswerTo, Envelope, Final, Standing, Waited, Waiting};
pub use steering::{Steered, Steering};
pub use told::{Telling, may_tell, tells};

/// What the ledger holds, for front ends that reach it through the engine.
pub use aish_store::{Hit, RawEvent, SessionFilter, SessionSummary, StoreError, WaitingCount};

/// A model ready to be asked.
#[derive(Clone)]
pub struct Model {
    /// Its name in the configuration.
    pub name: String,
    /// What its provider calls it; `None` where any name will do.
    pub asked_for: Option<String>,
    /// What answers.
    pub provider: Arc<dyn Provider>,
    /// Tokens that fit, request and reply together; `None` when unknown.
    pub context_window: Option<u64>,
    /// Tokens a reply may have; `None` leaves it to the server.
    pub max_output_tokens: Option<u64>,
    /// Whether it takes images; else they are named in words.
    pub images: bool,
    /// The models that stand in for it when it fails, by name, in order (SPEC 7.6).
    pub fallback: Vec<String>,
}

/// Where models come from: the binary's configuration and discovery.
pub trait Models: Send + Sync {
    /// The model of that name, ready to be asked.
    ///
    /// # Errors
    /// What is missing and what to do about it, one line.
    fn model(&self, name: &str) -> Result<Model, String>;
}

/// What holds for the turns to come; a running turn keeps what it began with.
#[derive(Clone)]
pub struct Settings {
    /// The name of the model to ask.
    pub model: String,
    /// When calls are asked about.
    pub mode: ApprovalMode,
    /// The standing rules.
    pub policy: Policy,
    /// The bounds of a turn.
    pub limits: Limits,
    /// Whether read-only calls of one reply run side by side.
    pub parallel: bool,
    /// Whether tools are offered at all.
    pub tools: bool,
    /// Standing instructions of the project (a trusted `AGENTS.md`); empty for none.
    pub instructions: String,
    /// Which model is asked for what; where a person named one, nothing is routed.
    pub routing: Routing,
    /// A JSON Schema that the text of a reply must fit (structured output).
    pub schema: Option<Arc<serde_json::Value>>,
    /// Whether the model is told that it may propose commands for the person's own shell (SPEC 8.4).
    pub proposals: Proposals,
    /// Where tools run.
    pub context: ToolContext,
}

impl Settings {
    /// What a turn begins with that begins now; `served` is what its client declares, where it has one somewhere else.
    pub(crate) fn turn_started(&self, served: Option<Served>) -> TurnStarted {
        TurnStarted {
            limits: self.limits.clone(),
            mode: self.mode,
            model: self.model.clone(),
            directory: Some(self.context.directory.to_string_lossy().into_owned()),
            served,
        }
    }
}

/// Everything a driver needs, shared by all of a process.
pub struct Engine {
    /// The ledger.
    pub store: Arc<dyn Store>,
    /// The models.
    pub models: Arc<dyn Models>,
    /// The tools. Those of all turns of this process, of which a client may add its own.
    pub tools: Arc<Offered>,
    /// What happens beside the calls that run.
    pub asides: Arc<Asides>,
    /// This process.
    pub owner: Owner,
    /// What must not leave.
    pub redactor: Redactor,
    /// What holds for the turns to come.
    pub settings: RwLock<Settings>,
}

impl Engine {
    /// A copy of what holds now.
    pub fn settings(&self) -> Settings {
        // A poisoned lock only means that somebody panicked between two assignments: the values are whole.
        let mut settings = self
            .settings
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .clone();
        settings.policy.directory.clone_from(&settings.context.directory);
        settings
    }

    /// Changes what holds for the turns to come.
    pub fn update(&self, change: impl FnOnce(&mut Settings)) {
        change(&mut self.settings.write().unwrap_or_else(std::sync::PoisonError::into_inner));
    }
}

/// Where driving stopped.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// A person must answer these, then drive on.
    Asking(Vec<Pending>),
    /// These calls ask something of a person: call [`Driver::attend`] where one can be asked, then drive on.
    Questions(Vec<Questioned>),
    /// The remote client must execute these, in order.
    AwaitingClient(Vec<Pending>),
    /// The turn is over.
    Done(Finished),
}

/// A call that waits for somebody.
#[derive(Clone, Debug, PartialEq)]
pub struct Pending {
    /// Which call.
    pub call_id: CallId,
    /// The tool as people see it.
    pub tool: String,
    /// The argument text as the model wrote it.
    pub arguments: String,
    /// `tool(key=value, …)`, unescaped.
    pub readable: String,
    /// What an answer must quote.
    pub digest: Digest,
    /// Why it is asked about.
    pub rule: String,
}

/// A call that stopped in the middle to ask something (SPEC 6.9).
#[derive(Clone, Debug, PartialEq)]
pub struct Questioned {
    /// The call.
    pub call: Pending,
    /// What it asks, a line for each question, escaped.
    pub asks: Vec<String>,
}

/// What a turn came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    /// Why it ended.
    pub reason: StopReason,
    /// The assistant text of its last reply, closing text included.
    pub reply: String,
    /// The same without what closed the turn: only what the model said.
    pub said: String,
    /// Tokens of all its replies.
    pub usage: Usage,
    /// The model that answered last, by its configured name.
    pub model: Option<String>,
    /// Why it ended without a whole answer, if it did: one line for a person.
    pub problem: Option<String>,
}

/// How full a model's context is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextFill {
    /// Tokens of the last request and its reply, as the provider counted them.
    pub used_tokens: u64,
    /// Tokens that fit; `None` when unknown.
    pub window_tokens: Option<u64>,
}

/// Which session to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Open {
    /// A new one.
    New,
    /// This one.
    Existing(SessionId),
}
