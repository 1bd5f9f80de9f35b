//! Random conversations with strict servers: nothing that happens in a session draws a refusal (SPEC 3.7, 7.2, 7.5).
//!
//! The real engine drives turns over a ledger in memory. Its models are in this process: each request is written by the real
//! codec of a random model, looked at by the rules of a real API or template ([`aish_provider::strict`]), and answered at
//! random with a body that the real decoder and assembler read. Meanwhile people decline and interrupt, steer and switch
//! models, clear the context and switch tools off; limits are reached, replies are cut, tools fail, and the process dies.
//! Each request is also written for other models, as if the person had switched just then; and at the end for all of them.
//!
//! A failure names its seed: `STRICT_SEED=n` runs that conversation alone.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

#[path = "strict/models.rs"]
mod models;
#[path = "strict/replies.rs"]
mod replies;
#[path = "../../core/tests/support/rng.rs"]
mod rng;
mod support;
#[path = "strict/tools.rs"]
mod tools;
#[path = "strict/world.rs"]
mod world;

use aish_core::event::Draft;
use aish_core::message::{Message, Part, ToolChoice};
use aish_core::session::Session;
use aish_engine::{Driver, Engine, Notices, Outcome, Pending, now_ms};
use aish_provider::Request;
use aish_provider::scripted::Scripted;
use aish_store::memory::MemoryStore;
use aish_store::{Durability, Hold, Owner, SessionFilter, Store};
use futures_util::future::{BoxFuture, FutureExt as _};
use rng::SeedOnPanic;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use support::watched::{Fate, Watched};
use support::{assert_settled, no, within, yes};
use world::{Shared, Shelf};

/// Conversations of one test; there are as many tests as [`SHARDS`].
const CONVERSATIONS: u64 = 280;

/// Tests that the conversations are spread over, so that they run side by side.
const SHARDS: u64 = 8;

/// Set to a seed to run that conversation alone.
const SEED_VARIABLE: &str = "STRICT_SEED";

/// Requests that one conversation must have made at least on average, or the test has lost its bite.
const REQUESTS_MEAN_MIN: usize = 50;

/// What a person types.
const QUESTIONS: [&str; 5] = ["which files are here?", "", " \n", "go on", "añ ✓ <think>"];

/// One conversation, across the processes that drive it.
struct Conversation {
    shared: Arc<Shared>,
    ledger: Arc<dyn Store>,
    /// Turns that are still to be begun.
    turns: usize,
}

impl Conversation {
    fn new(seed: u64) -> Self {
        let shared = Shared::new(seed, models::all());
        Self {
            turns: 2 + shared.below(4),
            shared,
            ledger: Arc::new(MemoryStore::new()),
        }
    }

    /// A process over that view of the ledger.
    fn process(&self, store: Arc<dyn Store>, folder: &Path) -> Arc<Engine> {
        let tools = tools::all(&self.shared);
        let unasked = Arc::new(Scripted::default());
        let engine = support::engine(store, Owner::this_process(), unasked, tools, folder);
        let mut engine = Arc::into_inner(engine).unwrap();
        engine.models = Arc::new(Shelf(Arc::clone(&self.shared)));
        let engine = Arc::new(engine);
        self.shared.drives(&engine);
        // A process begins with what is configured then.
        self.shared.change_settings(&engine);
        engine
    }

    async fn driver(&self, engine: Arc<Engine>) -> Driver {
        match session_in(&*self.ledger).await {
            Some(id) => Driver::open(engine, id).await.unwrap(),
            None => Driver::create(engine),
        }
    }

    /// Talks until all turns are over; the process may die on the way.
    async fn talk(&mut self, engine: Arc<Engine>) {
        let mut driver = self.driver(Arc::clone(&engine)).await;
        loop {
            if driver.session().open_turn().is_some() {
                self.finish(&mut driver).await;
            } else if self.turns == 0 {
                return;
            } else {
                self.turns -= 1;
                self.shared.change_settings(&engine);
                if self.shared.percent(10) {
                    driver.clear().await.unwrap();
                }
                let question = QUESTIONS[self.shared.below(QUESTIONS.len())];
                driver.start(question, along(&self.shared)).await.unwrap();
            }
        }
    }

    /// Drives the open turn to its end.
    async fn finish(&self, driver: &mut Driver) {
        while driver.session().open_turn().is_some() {
            let interrupt = self.shared.fresh_interrupt();
            match driver.drive(&Notices::new(), interrupt).await.unwrap() {
                Outcome::Asking(pending) => self.answer(driver, &pending).await,
                Outcome::Questions(questions) => panic!("nothing here asks: {questions:?}"),
                Outcome::AwaitingClient(pending) => panic!("nothing is the client's: {pending:?}"),
                Outcome::Done(_) => return,
            }
        }
    }

    async fn answer(&self, driver: &mut Driver, pending: &[Pending]) {
        for call in pending {
            let answer = match self.shared.below(10) {
                0 => {
                    driver.cancel("changed my mind").await.unwrap();
                    return;
                }
                1 => no(call, None),
                2 => no(call, Some("not now")),
                _ => yes(call),
            };
            driver.answer(answer).await.unwrap();
        }
    }

    /// Whatever happened, the session is whole, and every model takes the next question.
    fn settled(&self, session: &Session, engine: &Engine) {
        if session.context_len() > 0 {
            assert_settled(session);
        }
        let mut messages = session.projection().messages;
        messages.push(Message::User {
            parts: vec![Part::text("and now?")],
        });
        let tools = engine.tools.now().specs();
        for desk in &self.shared.desks {
            // Half of them in each conversation, some without tools: all of them in a few.
            if self.shared.percent(50) {
                continue;
            }
            let offered = if self.shared.percent(70) { tools.as_slice() } else { &[] };
            let request = Request {
                model: &desk.name,
                system: "be brief",
                messages: &messages,
                tools: offered,
                tool_choice: ToolChoice::Auto,
                max_output_tokens: None,
                schema: None,
            };
            // Refusals are collected.
            let _ = self.shared.look(desk, request);
        }
    }
}

/// What comes along with a question.
fn along(shared: &Shared) -> Vec<Part> {
    let image = |media_type: &str| Part::Image {
        media_type: media_type.to_owned(),
        data: "iVBORw0KGgo=".to_owned(),
    };
    let context = |text: &str| Part::Context {
        label: "stdin".to_owned(),
        text: text.to_owned(),
    };
    match shared.below(10) {
        0 => vec![image("image/png")],
        1 => vec![context("a\nb\n"), image("image/webp")],
        2 => vec![context("")],
        3 => vec![context("some output")],
        4 => vec![image("image/tiff")],
        _ => Vec::new(),
    }
}

/// The one session of a ledger.
async fn session_in(ledger: &dyn Store) -> Option<aish_core::SessionId> {
    let sessions = ledger.list(SessionFilter::default()).await.unwrap();
    sessions.first().map(|session| session.id.clone())
}

/// The ledger as a process sees it that dies now and then, and into which others write.
fn view(conversation: &Conversation) -> Arc<Watched> {
    let shared = Arc::clone(&conversation.shared);
    let ledger = Arc::clone(&conversation.ledger);
    let hook = move |_, drafts: Vec<Draft>| -> BoxFuture<'static, Fate> {
        let (shared, ledger) = (Arc::clone(&shared), Arc::clone(&ledger));
        async move {
            let turn = drafts.first().map_or(0, |draft| draft.turn);
            let kind = drafts.first().map_or("", |draft| draft.body.kind());
            match shared.below(100) {
                0 => return Fate::DieBefore,
                1 => return Fate::DieAfter,
                2..8 if matches!(kind, "assistant" | "tool_result") => {
                    say(&*ledger, Draft::user(turn, "in French, please")).await;
                }
                _ => {}
            }
            Fate::Write
        }
        .boxed()
    };
    Watched::new(Arc::clone(&conversation.ledger), Box::new(hook))
}

/// Somebody else writes into the session, if that is legal now.
async fn say(ledger: &dyn Store, draft: Draft) {
    let Some(id) = session_in(ledger).await else { return };
    let session = Session::load(id.clone(), ledger.load(&id, 0).await.unwrap());
    let drafts = vec![draft];
    if session.check(&drafts).is_ok() {
        let durability = Durability::Committed;
        let appended = ledger.append(&id, session.last_seq(), drafts, now_ms(), durability, Hold::Nothing);
        appended.await.unwrap();
    }
}

/// What conversations came to: how many requests were looked at, and which hazards left a trace in them.
#[derive(Default)]
struct Totals {
    looked_at: usize,
    traces: BTreeSet<&'static str>,
}

/// One conversation.
async fn converse(seed: u64, folder: &Path, totals: &mut Totals) {
    let named = SeedOnPanic(seed);
    let mut conversation = Conversation::new(seed);
    let shared = Arc::clone(&conversation.shared);
    loop {
        let view = view(&conversation);
        let engine = conversation.process(view.clone(), folder);
        let is_over = within(async {
            tokio::select! {
                biased;
                () = view.died() => false,
                () = conversation.talk(engine) => true,
            }
        })
        .await;
        if is_over {
            break;
        }
    }
    let engine = conversation.process(Arc::clone(&conversation.ledger), folder);
    let driver = conversation.driver(Arc::clone(&engine)).await;
    conversation.settled(driver.session(), &engine);
    let refusals = shared.refusals();
    assert!(
        refusals.is_empty(),
        "{} refusals, the first: {}",
        refusals.len(),
        refusals[0]
    );
    drop(named);
    totals.looked_at += shared.looked_at();
    totals.traces.extend(shared.traces());
}

fn run(seeds: impl Iterator<Item = u64>) -> Totals {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        // Pauses before another attempt take no time.
        .start_paused(true)
        .build()
        .unwrap();
    let mut totals = Totals::default();
    for seed in seeds {
        runtime.block_on(converse(seed, &path, &mut totals));
    }
    totals
}

/// One part of the random conversations.
fn shard(number: u64) {
    if let Ok(seed) = std::env::var(SEED_VARIABLE) {
        run(std::iter::once(seed.parse().unwrap()));
        return;
    }
    let totals = run((0..CONVERSATIONS).map(|n| n * SHARDS + number));
    let conversations = usize::try_from(CONVERSATIONS).unwrap();
    let looked_at = totals.looked_at;
    assert!(
        looked_at >= conversations * REQUESTS_MEAN_MIN,
        "only {looked_at} requests"
    );
    let missing: Vec<&&str> = world::TRACES
        .iter()
        .filter(|trace| !totals.traces.contains(**trace))
        .collect();
    assert!(missing.is_empty(), "never met: {missing:?}");
}

/// SPEC 2.7, 3.7, 7.2, 7.4, 7.5, 7.6: nothing that happens in a conversation draws a refusal.
#[test]
fn random_conversations_0() {
    shard(0);
}

/// The same, with other seeds.
#[test]
fn random_conversations_1() {
    shard(1);
}

/// The same, with other seeds.
#[test]
fn random_conversations_2() {
    shard(2);
}

/// The same, with other seeds.
#[test]
fn random_conversations_3() {
    shard(3);
}

/// The same, with other seeds.
#[test]
fn random_conversations_4() {
    shard(4);
}

/// The same, with other seeds.
#[test]
fn random_conversations_5() {
    shard(5);
}

/// The same, with other seeds.
#[test]
fn random_conversations_6() {
    shard(6);
}

/// The same, with other seeds.
#[test]
fn random_conversations_7() {
    shard(7);
}
