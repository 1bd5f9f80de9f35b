//! Two processes on one session: one drives, the other watches, answers, steers or cancels; and what is left of a driver that
//! lost its lease (SPEC 2.12, 3.5a, 3.5b).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use aish_core::event::{Body, Draft, ResultEnd};
use aish_core::message::{Message, text_of};
use aish_core::turn::StopReason;
use aish_engine::{Answered, Driver, EngineError, Notice, Notices, now_ms};
use aish_provider::Delta;
use aish_provider::scripted::Act;
use aish_store::sqlite::SqliteStore;
use aish_store::{Durability, Hold, Owner, Store, StoreError};
use aish_tools::Tool;
use futures_util::FutureExt as _;
use std::sync::{Arc, OnceLock};
use support::probe::{Doing, Latch, Probe};
use support::watched::{Fate, Watched};
use support::{World, another_owner, ask, asking, assert_saved, assert_settled, done, drive, finish, kinds, never};
use support::{no, results, told, within, yes};
use tempfile::TempDir;

/// How far ahead of its end a lease is taken over, in milliseconds.
const LATER_MS: u64 = 3_600_000;

/// One ledger file and two processes with a connection each.
struct Two {
    here: World,
    there: World,
    _folder: TempDir,
}

impl Two {
    /// What the model says to each, and the tools of the first.
    fn new(acts_here: Vec<Act>, acts_there: Vec<Act>, tools: Vec<Arc<dyn Tool>>) -> Self {
        Self::watching(|store| store, acts_here, acts_there, tools)
    }

    /// The same with the first one's store interfered with.
    fn watching(
        watch: impl FnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
        acts_here: Vec<Act>,
        acts_there: Vec<Act>,
        tools: Vec<Arc<dyn Tool>>,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let connect = || -> Arc<dyn Store> { Arc::new(SqliteStore::new(folder.path().join("ledger.db"))) };
        let here = World::over(watch(connect()), acts_here, tools).full();
        let there = World::owned(connect(), another_owner(), acts_there, Vec::new()).full();
        Self {
            here,
            there,
            _folder: folder,
        }
    }

    /// The second process opens the first one's session.
    async fn open_there(&self, here: &Driver) -> Driver {
        let id = here.session().id().clone();
        Driver::open(Arc::clone(&self.there.engine), id).await.unwrap()
    }
}

fn probe_call() -> Act {
    Act::calls(&[("probe", r#"{"n":1}"#)])
}

/// SPEC 2.12: while one drives, another may not; when it is done, it may.
#[tokio::test]
async fn one_driver_at_a_time() {
    let latch = Latch::new();
    let probe = Probe::writer("probe", Doing::Wait(latch.clone()));
    let two = Two::new(
        vec![probe_call(), Act::text("done here")],
        vec![Act::text("done there")],
        vec![probe.clone()],
    );
    let mut here = two.here.driver();
    here.start("go", Vec::new()).await.unwrap();
    let mut there = two.open_there(&here).await;
    let meanwhile = async {
        latch.began().await;
        let refused = drive(&mut there).await;
        assert!(
            matches!(refused, Err(EngineError::Store(StoreError::Leased { .. }))),
            "{refused:?}"
        );
        assert!(there.start("me first", Vec::new()).await.is_err());
        latch.open();
    };
    let notices = Notices::new();
    let (outcome, ()) = within(async { tokio::join!(here.drive(&notices, never()), meanwhile) }).await;
    assert_eq!(done(outcome.unwrap()).reply, "done here");
    assert_eq!(probe.runs(), 1);
    assert_eq!(finish(&mut there, "and you?").await.reply, "done there");
    assert_settled(there.session());
    assert_saved(&there).await;
}

/// SPEC 3.5a, 3.5b: cancelled from elsewhere while a tool runs, the driver stops; what the tool came to after all is kept and
/// not sent.
#[tokio::test]
async fn cancelled_from_elsewhere_while_a_tool_runs() {
    let latch = Latch::new();
    let probe = Probe::writer("probe", Doing::Insist(latch.clone()));
    let two = Two::new(vec![probe_call(), Act::text("next")], Vec::new(), vec![probe]);
    let mut here = two.here.driver();
    here.start("go", Vec::new()).await.unwrap();
    let mut there = two.open_there(&here).await;
    let cancelling = async {
        latch.began().await;
        there.cancel("stopped from the other room").await.unwrap()
    };
    let notices = Notices::new();
    let (outcome, finished) = within(async { tokio::join!(here.drive(&notices, never()), cancelling) }).await;
    assert_eq!(done(outcome.unwrap()), finished);
    assert_eq!(finished.reply, "[stopped: stopped from the other room]");
    let cancels = kinds(here.session())
        .into_iter()
        .filter(|kind| *kind == "cancelled")
        .count();
    assert_eq!(cancels, 1);
    latch.open();
    within(here.settle()).await;
    let all = results(here.session());
    assert_eq!(
        (all[0].end, all[1].end, all.len()),
        (ResultEnd::Interrupted, ResultEnd::Completed, 2)
    );
    finish(&mut here, "and now?").await;
    let sent = told(&two.here.model.asked()[1].messages);
    assert!(sent.len() == 1 && sent[0].1.contains("interrupted"), "{sent:?}");
    assert_settled(here.session());
    assert_saved(&here).await;
}

/// SPEC 3.5a, 3.5b: cancelled from elsewhere while the model speaks, the driver stops listening to it.
#[tokio::test]
async fn cancelled_from_elsewhere_while_the_model_speaks() {
    let endless = Act::Hang(vec![Delta::Text("once upon".to_owned())]);
    let two = Two::new(vec![endless], Vec::new(), Vec::new());
    let mut here = two.here.driver();
    here.start("a story", Vec::new()).await.unwrap();
    let mut there = two.open_there(&here).await;
    let notices = Notices::new();
    let cancelling = async {
        while !notices.drain().contains(&Notice::Text("once upon".to_owned())) {
            notices.changed().await;
        }
        there.cancel("enough").await.unwrap();
    };
    let (outcome, ()) = within(async { tokio::join!(here.drive(&notices, never()), cancelling) }).await;
    let finished = done(outcome.unwrap());
    assert_eq!(
        (finished.reason, finished.reply.as_str()),
        (StopReason::Cancelled, "[stopped: enough]")
    );
    assert_settled(here.session());
    assert_saved(&here).await;
}

/// SPEC 2.12: whoever cancels a turn elsewhere and asks the next question there has it answered there: the driver of the
/// cancelled one neither cancels nor drives it.
#[tokio::test]
async fn the_next_question_is_not_ours() {
    // The driver finds out by the end of its tool, or by listening while the tool runs on.
    for tool_ends in [true, false] {
        the_next_question_is_left_alone(tool_ends).await;
    }
}

async fn the_next_question_is_left_alone(tool_ends: bool) {
    let latch = Latch::new();
    let probe = Probe::writer("probe", Doing::Insist(latch.clone()));
    let two = Two::new(
        vec![probe_call(), Act::text("never asked")],
        vec![Act::text("answered there")],
        vec![probe],
    );
    let mut here = two.here.driver();
    here.start("go", Vec::new()).await.unwrap();
    let mut there = two.open_there(&here).await;
    let meanwhile = async {
        latch.began().await;
        there.cancel("enough").await.unwrap();
        there.start("something else", Vec::new()).await.unwrap();
        if tool_ends {
            latch.open();
        }
    };
    let notices = Notices::new();
    let (outcome, ()) = within(async { tokio::join!(here.drive(&notices, never()), meanwhile) }).await;
    assert_eq!(done(outcome.unwrap()).reason, StopReason::Cancelled);
    assert_eq!(two.here.model.remaining(), 1);
    let finished = done(drive(&mut there).await.unwrap());
    assert_eq!(finished.reply, "answered there");
    assert_settled(there.session());
}

/// SPEC 3.3: of two answers the first counts; the same one again has no effect, another one is refused.
#[tokio::test]
async fn answers_race() {
    let two = Two::new(
        vec![probe_call(), Act::text("done")],
        Vec::new(),
        vec![Probe::writer("probe", Doing::Answer("ran".to_owned()))],
    );
    two.here
        .engine
        .update(|settings| settings.mode = aish_core::policy::ApprovalMode::Ask);
    let mut here = two.here.driver();
    let pending = asking(ask(&mut here, "go").await);
    let mut there = two.open_there(&here).await;
    assert_eq!(there.pending(), pending);
    assert_eq!(there.answer(yes(&pending[0])).await.unwrap(), Answered::Recorded);
    assert_eq!(here.answer(yes(&pending[0])).await.unwrap(), Answered::Already);
    let other = here.answer(no(&pending[0], None)).await;
    assert!(matches!(other, Err(EngineError::AnsweredOtherwise(_))), "{other:?}");
    let answers = kinds(here.session())
        .into_iter()
        .filter(|kind| *kind == "call_answered")
        .count();
    assert_eq!(answers, 1);
    assert_eq!(done(drive(&mut here).await.unwrap()).reply, "done");
    assert_settled(here.session());
}

/// Two yeses, or a yes and a no, that are written at the same moment.
#[tokio::test]
async fn answers_race_into_one_append() {
    for other_says_yes in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.db");
        let answered_first: Arc<OnceLock<Arc<tokio::sync::Mutex<Driver>>>> = Arc::default();
        let other = Arc::clone(&answered_first);
        // Just before the answer of this process is written, the other one answers.
        let store = Watched::new(
            Arc::new(SqliteStore::new(&path)),
            Box::new(move |_, drafts| {
                let other = Arc::clone(&other);
                async move {
                    if matches!(drafts[0].body, Body::CallAnswered(_)) {
                        let mut there = other.get().unwrap().lock().await;
                        let pending = there.pending();
                        if let Some(pending) = pending.first() {
                            let request = if other_says_yes {
                                yes(pending)
                            } else {
                                no(pending, None)
                            };
                            there.answer(request).await.unwrap();
                        }
                    }
                    Fate::Write
                }
                .boxed()
            }),
        );
        let probe = Probe::writer("probe", Doing::Answer("ran".to_owned()));
        let here_world = World::over(store, [probe_call(), Act::text("done")], vec![probe.clone()]);
        let there_world = World::owned(
            Arc::new(SqliteStore::new(&path)),
            another_owner(),
            Vec::new(),
            Vec::new(),
        );
        let mut here = here_world.driver();
        let pending = asking(ask(&mut here, "go").await);
        let id = here.session().id().clone();
        let there = Driver::open(Arc::clone(&there_world.engine), id).await.unwrap();
        assert!(answered_first.set(Arc::new(tokio::sync::Mutex::new(there))).is_ok());
        let answered = here.answer(yes(&pending[0])).await;
        if other_says_yes {
            assert!(answered.is_ok(), "{answered:?}");
        } else {
            assert!(
                matches!(answered, Err(EngineError::AnsweredOtherwise(_))),
                "{answered:?}"
            );
        }
        done(drive(&mut here).await.unwrap());
        assert_eq!(probe.runs(), usize::from(other_says_yes));
        assert_settled(here.session());
    }
}

/// A line that somebody runs elsewhere.
fn command() -> Draft {
    Draft::new(0, "ls (exit 0)", Body::Command(aish_core::event::Command::default()))
}

/// What another process writes just before an append of the driver that begins with this kind. Verdicts are written with their reply,
/// unless somebody wrote before that: then somebody does.
fn interfering(
    path: &std::path::Path,
    before: &'static str,
    drafts: impl Fn() -> Vec<Draft> + Send + Sync + 'static,
) -> impl FnOnce(Arc<dyn Store>) -> Arc<dyn Store> {
    let other: Arc<dyn Store> = Arc::new(SqliteStore::new(path));
    let mut still: Vec<&str> = vec![before];
    if before == "call_gated" {
        still.push("assistant");
    }
    let (still, drafts) = (Arc::new(std::sync::Mutex::new(still)), Arc::new(drafts));
    move |inner| {
        Watched::new(
            inner,
            Box::new(move |_, ours| {
                let (other, still, drafts) = (Arc::clone(&other), Arc::clone(&still), Arc::clone(&drafts));
                async move {
                    let kind = ours[0].body.kind();
                    let is_it = still.lock().unwrap().pop_if(|next| *next == kind).is_some();
                    if is_it {
                        let theirs = if kind == before { drafts() } else { vec![command()] };
                        let sessions = other.list(aish_store::SessionFilter::default()).await.unwrap();
                        let (id, events) = (&sessions[0].id, sessions[0].events);
                        let written = other.append(id, events, theirs, now_ms(), Durability::Synced, Hold::Nothing);
                        written.await.unwrap();
                    }
                    Fate::Write
                }
                .boxed()
            }),
        )
    }
}

/// SPEC 3.5b: whatever of the driver's somebody else's event comes before, the driver folds it and goes on.
#[tokio::test]
async fn between_the_drivers_appends() {
    for before in ["assistant", "call_gated", "call_started", "tool_result", "turn_ended"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.db");
        let watch = interfering(&path, before, || vec![command()]);
        let probe = Probe::writer("probe", Doing::Answer("ran".to_owned()));
        let store = watch(Arc::new(SqliteStore::new(&path)));
        let world = World::over(store, [probe_call(), Act::text("done")], vec![probe.clone()]).full();
        let mut driver = world.driver();
        let finished = finish(&mut driver, "go").await;
        assert_eq!((finished.reply.as_str(), probe.runs()), ("done", 1), "{before}");
        let theirs = kinds(driver.session())
            .iter()
            .filter(|kind| **kind == "command")
            .count();
        assert_eq!(theirs, if before == "call_gated" { 2 } else { 1 }, "{before}");
        assert_settled(driver.session());
        assert_saved(&driver).await;
    }
}

/// SPEC 3.5b: a cancel that lands between the driver's appends ends the turn there: nothing is started after it, and what had
/// been started is told.
#[tokio::test]
async fn a_cancel_between_the_drivers_appends() {
    for before in ["assistant", "call_gated", "call_started", "tool_result"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.db");
        let cancelled = || {
            let reason = "from elsewhere".to_owned();
            let data = aish_core::event::Cancelled { reason };
            vec![Draft::new(1, "from elsewhere", Body::Cancelled(data))]
        };
        let watch = interfering(&path, before, cancelled);
        let probe = Probe::writer("probe", Doing::Answer("ran".to_owned()));
        let store = watch(Arc::new(SqliteStore::new(&path)));
        let world = World::over(store, [probe_call(), Act::text("never asked")], vec![probe.clone()]).full();
        let mut driver = world.driver();
        let finished = finish(&mut driver, "go").await;
        assert_eq!(finished.reason, StopReason::Cancelled, "{before}");
        assert_eq!(finished.reply, "[stopped: from elsewhere]", "{before}");
        assert_eq!(
            (probe.runs(), world.model.remaining()),
            (usize::from(before == "tool_result"), 1),
            "{before}"
        );
        assert_settled(driver.session());
        assert_saved(&driver).await;
    }
}

/// SPEC 3.5b: a cancel that closes the whole turn at once lands before what the gate refused is told.
#[tokio::test]
async fn a_whole_cancel_before_a_refusal_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    let store = Arc::new(SqliteStore::new(&path));
    let there_world = World::owned(
        Arc::new(SqliteStore::new(&path)),
        another_owner(),
        Vec::new(),
        Vec::new(),
    );
    let engine = Arc::clone(&there_world.engine);
    let watched = Watched::new(
        store,
        Box::new(move |_, drafts| {
            let engine = Arc::clone(&engine);
            async move {
                if matches!(drafts[0].body, Body::ToolResult(_)) {
                    let sessions = engine.store.list(aish_store::SessionFilter::default()).await.unwrap();
                    let id = sessions[0].id.clone();
                    let mut there = Driver::open(engine, id).await.unwrap();
                    there.cancel("enough").await.unwrap();
                }
                Fate::Write
            }
            .boxed()
        }),
    );
    let world = World::over(watched, [Act::calls(&[("no_such_tool", "{}")])], Vec::new());
    let mut driver = world.driver();
    let finished = finish(&mut driver, "go").await;
    assert_eq!(finished.reason, StopReason::Cancelled);
    assert_settled(driver.session());
}

/// SPEC 3.5a: a message typed elsewhere while calls run is seen by the next reply, after all results of the round; one typed
/// while the last reply is on its way makes the turn go on.
#[tokio::test]
async fn steering_from_elsewhere() {
    for before in ["tool_result", "assistant"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.db");
        let watch = interfering(&path, before, || vec![Draft::user(1, "in French, please")]);
        let store = watch(Arc::new(SqliteStore::new(&path)));
        let probe = Probe::writer("probe", Doing::Answer("ran".to_owned()));
        let acts = if before == "tool_result" {
            vec![probe_call(), Act::text("Voilà.")]
        } else {
            vec![Act::text("There you are."), Act::text("Voilà.")]
        };
        let world = World::over(store, acts, vec![probe]).full();
        let mut driver = world.driver();
        let finished = finish(&mut driver, "go").await;
        assert!(finished.reply.ends_with("Voilà."), "{before}: {}", finished.reply);
        let asked = world.model.asked();
        let Some(Message::User { parts }) = asked[1].messages.last() else {
            panic!("{:?}", asked[1].messages);
        };
        assert_eq!(text_of(parts), "in French, please");
        assert_settled(driver.session());
    }
}

/// SPEC 2.12: a driver that lost its lease stops writing, and what it had started ends with it.
#[tokio::test]
async fn a_lost_lease() {
    let latch = Latch::new();
    let probe = Probe::writer("probe", Doing::Wait(latch.clone()));
    let two = Two::new(
        vec![probe_call(), Act::text("never asked")],
        vec![Act::text("taken over")],
        vec![probe.clone()],
    );
    let mut here = two.here.driver();
    here.start("go", Vec::new()).await.unwrap();
    let id = here.session().id().clone();
    let taking_over = async {
        latch.began().await;
        let now = now_ms() + LATER_MS;
        let store = &two.there.engine.store;
        let owner: Owner = another_owner();
        store.acquire(&id, &owner, now, now + LATER_MS).await.unwrap();
        latch.open();
    };
    let notices = Notices::new();
    let (lost, ()) = within(async { tokio::join!(here.drive(&notices, never()), taking_over) }).await;
    assert!(matches!(lost, Err(EngineError::LeaseLost(_))), "{lost:?}");
    // The new driver finds the call started and without its end: in doubt, and not run again.
    let mut there = two.open_there(&here).await;
    let notices = Notices::new();
    let finished = done(within(there.drive(&notices, never())).await.unwrap());
    assert_eq!(finished.reply, "taken over");
    assert!(support::statuses(&notices)[0].starts_with("in doubt: probe(n=1)"));
    assert_eq!((probe.runs(), two.here.model.remaining()), (1, 1));
    assert_settled(there.session());
    assert_saved(&there).await;
}
