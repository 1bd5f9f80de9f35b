//! What the engine's tests share: an engine over any store and any model in a folder of its own, tools to watch
//! ([`probe`]), a store to interfere with ([`watched`]), and views of what happened.
//!
//! Every wait has a deadline that only bounds a hang; nothing here sleeps to let something "have happened".
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod probe;
pub mod watched;

use aish_core::event::{Answer, AnswerScope, AnsweredBy, Body, Event, ToolResult};
use aish_core::limits::Limits;
use aish_core::message::{Message, text_of};
use aish_core::policy::{ApprovalMode, Policy};
use aish_core::redact::Redactor;
use aish_core::session::Session;
use aish_engine::{
    AnswerRequest, Driver, Engine, EngineError, Finished, Model, Models, Notice, Notices, Outcome, Pending, Questioned,
    Settings,
};
use aish_provider::scripted::{Act, Scripted};
use aish_provider::{ErrorKind, Provider, ProviderError};
use aish_store::memory::MemoryStore;
use aish_store::{Owner, Store};
use aish_tools::set::ToolSet;
use aish_tools::{Cancel, Tool, ToolContext};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::watch;

/// No test takes this long: whoever does hangs.
const HANG_S: u64 = 90;
/// Bytes of one result that are captured.
const OUTPUT_BYTES_MAX: usize = 1024 * 1024;

/// One engine, its scripted model and its folder.
pub struct World {
    pub engine: Arc<Engine>,
    pub model: Arc<Scripted>,
    pub folder: PathBuf,
    _keeps_folder: TempDir,
}

impl World {
    /// The built-in tools and a model that does these acts, over a ledger in memory.
    pub fn new(acts: impl IntoIterator<Item = Act>) -> Self {
        Self::with(acts, Vec::new())
    }

    /// The same with more tools.
    pub fn with(acts: impl IntoIterator<Item = Act>, tools: Vec<Arc<dyn Tool>>) -> Self {
        Self::over(Arc::new(MemoryStore::new()), acts, tools)
    }

    /// The same over this ledger.
    pub fn over(store: Arc<dyn Store>, acts: impl IntoIterator<Item = Act>, tools: Vec<Arc<dyn Tool>>) -> Self {
        Self::owned(store, Owner::this_process(), acts, tools)
    }

    /// The same as if this process were `owner`.
    pub fn owned(
        store: Arc<dyn Store>,
        owner: Owner,
        acts: impl IntoIterator<Item = Act>,
        tools: Vec<Arc<dyn Tool>>,
    ) -> Self {
        let keeps_folder = tempfile::tempdir().unwrap();
        let folder = keeps_folder.path().canonicalize().unwrap();
        let model = Arc::new(Scripted::new(acts));
        let engine = engine(store, owner, model.clone(), tools, &folder);
        Self {
            engine,
            model,
            folder,
            _keeps_folder: keeps_folder,
        }
    }

    /// Nothing asks.
    pub fn full(self) -> Self {
        self.engine.update(|settings| settings.mode = ApprovalMode::Full);
        self
    }

    /// A new session.
    pub fn driver(&self) -> Driver {
        Driver::create(Arc::clone(&self.engine))
    }

    /// The same session as another driver of this process sees it.
    pub async fn reopened(&self, driver: &Driver) -> Driver {
        let id = driver.session().id().clone();
        Driver::open(Arc::clone(&self.engine), id).await.unwrap()
    }

    /// Writes a file into the folder.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

/// An engine of the built-in tools and these.
pub fn engine(
    store: Arc<dyn Store>,
    owner: Owner,
    provider: Arc<dyn Provider>,
    more_tools: Vec<Arc<dyn Tool>>,
    folder: &Path,
) -> Arc<Engine> {
    let mut tools = ToolSet::builtin();
    for tool in more_tools {
        tools.append(tool).unwrap();
    }
    let environment = vec![("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())];
    let settings = Settings {
        model: "scripted".to_owned(),
        mode: ApprovalMode::Ask,
        policy: Policy::new(folder),
        limits: Limits::default(),
        parallel: true,
        tools: true,
        instructions: String::new(),
        routing: aish_engine::Routing::default(),
        schema: None,
        proposals: aish_engine::Proposals::default(),
        context: ToolContext {
            directory: folder.to_owned(),
            environment: Arc::new(environment),
            output_bytes_max: OUTPUT_BYTES_MAX,
            hidden: aish_tools::Hidden::default(),
            web: aish_tools::WebAccess::default(),
            place: None,
        },
    };
    Arc::new(Engine {
        store,
        models: Arc::new(OneModel(provider)),
        tools: Arc::new(aish_engine::Offered::new(tools)),
        owner,
        asides: Arc::default(),
        redactor: Redactor::default(),
        settings: RwLock::new(settings),
    })
}

struct OneModel(Arc<dyn Provider>);

impl Models for OneModel {
    fn model(&self, name: &str) -> Result<Model, String> {
        Ok(Model {
            name: name.to_owned(),
            asked_for: Some("fake".to_owned()),
            provider: Arc::clone(&self.0),
            context_window: None,
            max_output_tokens: None,
            images: true,
            fallback: Vec::new(),
        })
    }
}

/// A process that is not this one and of which nobody here can know whether it lives.
pub fn another_owner() -> Owner {
    Owner("another-boot/another-namespace/4242/1".to_owned())
}

/// Nobody ever cancels.
pub fn never() -> Cancel {
    watch::channel(false).1
}

/// Bounds a hang.
pub async fn within<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(HANG_S), what)
        .await
        .expect("this hangs")
}

/// Drives without an audience.
pub async fn drive(driver: &mut Driver) -> Result<Outcome, EngineError> {
    within(driver.drive(&Notices::new(), never())).await
}

/// Asks and drives until the turn is over or waits.
pub async fn ask(driver: &mut Driver, text: &str) -> Outcome {
    driver.start(text, Vec::new()).await.unwrap();
    drive(driver).await.unwrap()
}

/// Asks a question whose turn must not wait for anybody.
pub async fn finish(driver: &mut Driver, text: &str) -> Finished {
    done(ask(driver, text).await)
}

/// What a turn that is over came to.
pub fn done(outcome: Outcome) -> Finished {
    match outcome {
        Outcome::Done(finished) => finished,
        other @ (Outcome::Asking(_) | Outcome::Questions(_) | Outcome::AwaitingClient(_)) => {
            panic!("not done: {other:?}")
        }
    }
}

/// The calls that wait for a person.
pub fn asking(outcome: Outcome) -> Vec<Pending> {
    match outcome {
        Outcome::Asking(pending) => pending,
        other @ (Outcome::Done(_) | Outcome::Questions(_) | Outcome::AwaitingClient(_)) => {
            panic!("does not ask: {other:?}")
        }
    }
}

/// What calls ask in the middle.
pub fn questions(outcome: Outcome) -> Vec<Questioned> {
    match outcome {
        Outcome::Questions(questions) => questions,
        other @ (Outcome::Done(_) | Outcome::Asking(_) | Outcome::AwaitingClient(_)) => {
            panic!("asks nothing: {other:?}")
        }
    }
}

/// A person's yes to what was shown.
pub fn yes(pending: &Pending) -> AnswerRequest {
    AnswerRequest {
        call_id: pending.call_id.clone(),
        digest: Some(pending.digest.as_str().to_owned()),
        answer: Answer::Approve,
        scope: AnswerScope::Once,
        by: AnsweredBy::Terminal,
        reason: None,
    }
}

/// A person's no.
pub fn no(pending: &Pending, reason: Option<&str>) -> AnswerRequest {
    AnswerRequest {
        answer: Answer::Deny,
        reason: reason.map(str::to_owned),
        ..yes(pending)
    }
}

/// A failure that is made again at once.
pub fn brief_failure(kind: ErrorKind) -> Act {
    Act::Fail(ProviderError {
        kind,
        message: "scripted failure".to_owned(),
        retry_after: Some(Duration::from_millis(1)),
    })
}

/// The kinds of a session's events, in order.
pub fn kinds(session: &Session) -> Vec<&str> {
    session.events().iter().map(|event| event.body.kind()).collect()
}

/// Every result in the ledger, in the order they were recorded.
pub fn results(session: &Session) -> Vec<&ToolResult> {
    session.events().iter().filter_map(Event::tool_result).collect()
}

/// What the model is given of each call of a request, in order: the call's id and the output.
pub fn told(messages: &[Message]) -> Vec<(String, String)> {
    let result = |message: &Message| match message {
        Message::Tool { call_id, output, .. } => Some((call_id.to_string(), output.clone())),
        Message::User { .. } | Message::Assistant { .. } => None,
    };
    messages.iter().filter_map(result).collect()
}

/// Fails unless the session can go on with the strictest of templates: no turn is open, each call has exactly one result in
/// call order right after the reply that made it, the conversation ends in text, and nothing in the ledger was illegal.
pub fn assert_settled(session: &Session) {
    assert!(session.open_turn().is_none(), "{:?}", kinds(session));
    assert_eq!(session.passed_over(), 0, "{:?}", kinds(session));
    let messages = session.projection().messages;
    let mut expected = Vec::new();
    for message in &messages {
        match message {
            Message::Assistant { calls, .. } => {
                assert!(expected.is_empty(), "calls without results: {expected:?}");
                expected = calls.iter().map(|call| call.id.clone()).rev().collect();
            }
            Message::Tool { call_id, .. } => assert_eq!(expected.pop().as_ref(), Some(call_id)),
            Message::User { .. } => assert!(expected.is_empty(), "calls without results: {expected:?}"),
        }
    }
    match messages.last() {
        Some(Message::Assistant { parts, calls, .. }) => {
            assert!(calls.is_empty() && !text_of(parts).trim().is_empty(), "{messages:?}");
        }
        other => panic!("the conversation ends in {other:?}"),
    }
}

/// Fails unless the ledger holds exactly what the driver has folded.
pub async fn assert_saved(driver: &Driver) {
    assert!(!driver.is_unsaved());
    let ledger = driver.engine().store.load(driver.session().id(), 0).await.unwrap();
    let bodies = |events: &[Event]| -> Vec<(u64, Body)> {
        let place = |event: &Event| (event.seq, event.body.clone());
        events.iter().map(place).collect()
    };
    assert_eq!(bodies(&ledger), bodies(driver.session().events()));
}

/// The lines a person was told.
pub fn statuses(notices: &Notices) -> Vec<String> {
    let line = |notice| {
        if let Notice::Status(line) = notice {
            Some(line)
        } else {
            None
        }
    };
    notices.drain().into_iter().filter_map(line).collect()
}
