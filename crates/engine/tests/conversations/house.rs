//! A server without its HTTP: conversations over a ledger that another one can be opened on, and what a client sends and is told.

use crate::support::probe::Probe;
use crate::support::{World, another_owner, within};
use aish_core::Digest;
use aish_core::event::{Answer, Body, Event, RequestKey};
use aish_core::id::SessionId;
use aish_core::message::{Message, ToolSpec};
use aish_core::redact::Redactor;
use aish_core::session::Session;
use aish_core::turn::StopReason;
use aish_engine::{
    ChatRequest, Claim, Conversations, ConversationsSettings, Engine, Envelope, Final, Model, Models, Reply,
    ServeError, Waited, Waiting,
};
use aish_provider::scripted::{Act, Scripted};
use aish_provider::{Provider, ProviderError, ReplyStream, Request};
use aish_store::memory::MemoryStore;
use aish_store::sqlite::SqliteStore;
use aish_store::{Owner, Store};
use aish_tools::Tool;
use futures_util::future::BoxFuture;
use serde_json::json;
use std::sync::{Arc, RwLock};
use std::time::Duration;
use tempfile::TempDir;

/// How often a test looks whether what it waits for is so.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A ledger that several processes can be connected to.
pub enum Ledger {
    File(TempDir),
    Memory(Arc<MemoryStore>),
}

impl Ledger {
    /// One of each.
    pub fn all() -> [Self; 2] {
        [Self::Memory(Arc::default()), Self::file()]
    }

    pub fn file() -> Self {
        Self::File(tempfile::tempdir().unwrap())
    }

    /// A connection of a process of its own.
    pub fn connect(&self) -> Arc<dyn Store> {
        match self {
            Self::File(folder) => Arc::new(SqliteStore::new(folder.path().join("ledger.db"))),
            Self::Memory(store) => Arc::clone(store) as Arc<dyn Store>,
        }
    }

    /// A process over it.
    pub fn house(&self, acts: impl IntoIterator<Item = Act>) -> House {
        House::of(World::over(self.connect(), acts, Vec::new()), settings())
    }

    /// Another process over it: nobody here can know whether it lives.
    pub fn another_house(&self, acts: impl IntoIterator<Item = Act>) -> House {
        House::of(
            World::owned(self.connect(), another_owner(), acts, Vec::new()),
            settings(),
        )
    }
}

pub fn settings() -> ConversationsSettings {
    ConversationsSettings {
        pending_ttl_ms: Some(3_600_000),
        strict_call_id: false,
        turns_max: 64,
    }
}

/// A process that serves clients.
pub struct House {
    pub world: World,
    pub conversations: Arc<Conversations>,
}

impl House {
    pub fn of(world: World, settings: ConversationsSettings) -> Self {
        let conversations = Conversations::new(Arc::clone(&world.engine), settings);
        Self { world, conversations }
    }

    /// Over a ledger in memory that nobody else sees, with these tools.
    pub fn with(acts: impl IntoIterator<Item = Act>, tools: Vec<Arc<Probe>>) -> Self {
        let tools = tools.into_iter().map(|tool| tool as Arc<dyn Tool>).collect();
        Self::of(World::with(acts, tools), settings())
    }

    /// A process with these settings.
    pub fn set(ledger: &Ledger, settings: ConversationsSettings, acts: impl IntoIterator<Item = Act>) -> Self {
        Self::of(World::over(ledger.connect(), acts, Vec::new()), settings)
    }

    /// Sends a message and waits for what it comes to.
    pub async fn chat(&self, request: ChatRequest) -> Result<Envelope, ServeError> {
        within(async {
            let ticket = self.conversations.chat(request).await?;
            self.conversations.told(ticket).await
        })
        .await
    }

    /// Answers and waits for what it comes to.
    pub async fn answer(&self, id: &str, claim: Claim) -> Result<Envelope, ServeError> {
        within(async {
            let ticket = self.conversations.answer(id, claim).await?;
            self.conversations.told(ticket).await
        })
        .await
    }

    /// Gives the result of a call that a client executed.
    pub async fn result(&self, waited: &Waited, content: &str) -> Result<Envelope, ServeError> {
        let claim = result_of(Some(waited.call_id.as_str()), content);
        self.answer(waited.answer_to.as_str(), claim).await
    }

    /// Says yes or no to a call that was asked about.
    pub async fn verdict(&self, waited: &Waited, answer: Answer) -> Result<Envelope, ServeError> {
        self.answer(waited.answer_to.as_str(), verdict_on(waited, answer, None))
            .await
    }

    /// The session as it is in the ledger.
    pub async fn session(&self, id: &SessionId) -> Session {
        Session::load(id.clone(), self.events(id).await)
    }

    pub async fn events(&self, id: &SessionId) -> Vec<Event> {
        self.world.engine.store.load(id, 0).await.unwrap()
    }

    /// How many events of this kind the session has.
    pub async fn count(&self, id: &SessionId, kind: &str) -> usize {
        let events = self.events(id).await;
        events.iter().filter(|event| event.body.kind() == kind).count()
    }

    /// The outputs of the tools that the model was given with its last request, in order.
    pub fn given(&self) -> Vec<String> {
        let asked = self.world.model.asked();
        let told = crate::support::told(&asked.last().unwrap().messages);
        told.into_iter().map(|(_, output)| output).collect()
    }
}

/// Waits until it is so.
pub async fn until(is_so: impl AsyncFn() -> bool) {
    within(async {
        while !is_so().await {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    })
    .await;
}

/// A first message, with a tool of the client's.
pub fn asks(message: &str) -> ChatRequest {
    ChatRequest {
        message: message.to_owned(),
        tools: Some(vec![weather()]),
        ..ChatRequest::default()
    }
}

/// A message that goes on with a conversation.
pub fn goes_on(session: &SessionId, message: &str) -> ChatRequest {
    ChatRequest {
        message: message.to_owned(),
        conversation: Some(session.clone()),
        ..ChatRequest::default()
    }
}

/// A tool that a client executes.
pub fn weather() -> ToolSpec {
    ToolSpec {
        name: "get_weather".to_owned(),
        description: "The weather of a city.".to_owned(),
        input_schema: json!({
            "type": "object",
            "properties": { "city": { "type": "string" } },
            "required": ["city"],
        }),
    }
}

/// The model calls it.
pub fn weather_call(city: &str) -> Act {
    Act::calls(&[("get_weather", &json!({ "city": city }).to_string())])
}

pub fn result_of(call_id: Option<&str>, content: &str) -> Claim {
    Claim {
        call_id: call_id.map(str::to_owned),
        reply: Reply::Result(content.to_owned()),
        request: None,
    }
}

pub fn verdict_on(waited: &Waited, answer: Answer, reason: Option<&str>) -> Claim {
    Claim {
        call_id: Some(waited.call_id.to_string()),
        reply: Reply::Verdict {
            digest: waited.digest.as_ref().unwrap().as_str().to_owned(),
            answer,
            reason: reason.map(str::to_owned),
        },
        request: None,
    }
}

/// A key, and what the request under it says.
pub fn key(key: &str, body: &str) -> Option<RequestKey> {
    Some(RequestKey {
        key: key.to_owned(),
        digest: Digest::of(body),
    })
}

/// The call that the client has to execute.
pub fn for_tool(envelope: &Envelope) -> Waited {
    match &envelope.reply {
        Waiting::ForTool(waited) => waited.clone(),
        other @ (Waiting::ForApproval(_) | Waiting::ForNothing(_)) => panic!("no call of a client: {other:?}"),
    }
}

/// The call that somebody has to say yes or no to.
pub fn for_approval(envelope: &Envelope) -> Waited {
    match &envelope.reply {
        Waiting::ForApproval(waited) => waited.clone(),
        other @ (Waiting::ForTool(_) | Waiting::ForNothing(_)) => panic!("nothing to approve: {other:?}"),
    }
}

/// How the turn ended.
pub fn ended(envelope: &Envelope) -> Final {
    match &envelope.reply {
        Waiting::ForNothing(last) => last.clone(),
        other @ (Waiting::ForTool(_) | Waiting::ForApproval(_)) => panic!("not over: {other:?}"),
    }
}

/// Fails unless the turn ended with this reply.
pub fn assert_replied(envelope: &Envelope, reply: &str) {
    let last = ended(envelope);
    assert_eq!((last.reply.as_str(), last.reason), (reply, StopReason::End));
}

/// The suspensions of a session, in order.
pub fn suspensions(events: &[Event]) -> Vec<String> {
    let id = |event: &Event| {
        let Body::Suspended(data) = &event.body else {
            return None;
        };
        Some(data.continuation.to_string())
    };
    events.iter().filter_map(id).collect()
}

/// A model that says the same to the same conversation: what it says depends on how many replies it has given there, so that it
/// can be asked by any process, and again.
pub struct Steady(pub Box<dyn Fn(usize) -> Act + Send + Sync>);

impl Steady {
    /// It calls the client's tool that many times, and then says `done`.
    pub fn calling(times: usize) -> Self {
        Self(Box::new(move |given| {
            if given < times {
                weather_call(&format!("city {given}"))
            } else {
                Act::text("done")
            }
        }))
    }
}

impl Provider for Steady {
    fn send<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Box<dyn ReplyStream>, ProviderError>> {
        let is_reply = |message: &&Message| matches!(message, Message::Assistant { .. });
        let act = (self.0)(request.messages.iter().filter(is_reply).count());
        Box::pin(async move { Scripted::new([act]).send(request).await })
    }
}

struct Only(Arc<Steady>);

impl Models for Only {
    fn model(&self, name: &str) -> Result<Model, String> {
        Ok(Model {
            name: name.to_owned(),
            asked_for: None,
            provider: Arc::clone(&self.0) as Arc<dyn Provider>,
            context_window: None,
            max_output_tokens: None,
            images: false,
            fallback: Vec::new(),
        })
    }
}

/// A process with such a model.
pub fn steady(store: Arc<dyn Store>, owner: Owner, model: Steady, tools: Vec<Arc<dyn Tool>>) -> House {
    let mut world = World::owned(store, owner, [], tools);
    world.engine = Arc::new(Engine {
        store: Arc::clone(&world.engine.store),
        models: Arc::new(Only(Arc::new(model))),
        tools: Arc::clone(&world.engine.tools),
        owner: world.engine.owner.clone(),
        asides: Arc::default(),
        redactor: Redactor::default(),
        settings: RwLock::new(world.engine.settings()),
    });
    House::of(world, settings())
}

/// This process's identity with another start: a process of this boot that is certainly gone.
pub fn dead_owner() -> Owner {
    let Owner(text) = Owner::this_process();
    let (process, _) = text.rsplit_once('/').unwrap();
    Owner(format!("{process}/0"))
}
