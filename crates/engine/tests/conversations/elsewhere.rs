//! Any process on the same ledger goes on with a turn: after a restart, after a death, when one is stopped, when a disk fails
//! (SPEC 9.5).

use crate::house::{
    House, Ledger, Steady, asks, assert_replied, dead_owner, ended, for_tool, goes_on, key, result_of, settings,
    steady, until, weather_call,
};
use crate::support::probe::{Doing, Latch, Probe};
use crate::support::watched::{Fate, Watched};
use crate::support::{World, another_owner, assert_settled, results, within};
use aish_core::event::{Body, Draft, ResultEnd, Served, TurnStarted};
use aish_core::id::SessionId;
use aish_core::policy::ApprovalMode;
use aish_core::turn::StopReason;
use aish_engine::{ChatRequest, Claim, Engine, Envelope, Model, Models, ServeError, Waiting};
use aish_provider::scripted::Act;
use aish_store::{Durability, Hold, Owner};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;

/// Waits until the session's turn is over or waits.
async fn settled(house: &House, session: &SessionId) {
    until(async || {
        let told = house.conversations.last_told(session).await.unwrap();
        told.is_some()
    })
    .await;
}

/// SPEC 9.5: what waits is answered in a process that was not there when it began to wait; both are told the same.
#[tokio::test]
async fn answered_in_another_process() {
    for ledger in Ledger::all() {
        let waited = {
            let house = ledger.house([weather_call("Jena")]);
            for_tool(&house.chat(asks("?")).await.unwrap())
        };
        let house = ledger.another_house([Act::text("ok")]);
        let last = house.result(&waited, "rain").await.unwrap();
        assert_replied(&last, "ok");
        assert_eq!(house.given(), ["rain"]);
        let third = ledger.house([]);
        assert_eq!(third.result(&waited, "rain").await.unwrap(), last);
    }
}

/// SPEC 9.5: whoever waits for a turn that runs in another process is told what it comes to.
#[tokio::test]
async fn told_of_a_turn_elsewhere() {
    for ledger in Ledger::all() {
        let latch = Latch::new();
        let probe = Probe::reader("probe", Doing::Wait(latch.clone()));
        let acts = [Act::calls(&[("probe", r#"{"n":1}"#)]), Act::text("ok")];
        let here = House::of(World::over(ledger.connect(), acts, vec![probe]), settings());
        let there = ledger.another_house([]);
        let request = ChatRequest {
            request: key("k", "?"),
            ..asks("?")
        };
        let ticket = here.conversations.chat(request.clone()).await.unwrap();
        within(latch.began()).await;
        let same = there.conversations.chat(request).await.unwrap();
        assert_eq!((&same.session, same.seq), (&ticket.session, ticket.seq));
        let opening = async {
            latch.open();
        };
        let both = async { tokio::join!(here.conversations.told(ticket), there.conversations.told(same), opening) };
        let (here, there, ()) = within(both).await;
        let here = here.unwrap();
        assert_replied(&here, "ok");
        assert_eq!(there.unwrap(), here);
    }
}

/// SPEC 9.5, 2.12, 3.2: a process that died in the middle of a tool is taken over: the tool is not run again, and what the dead one
/// still writes is refused.
#[tokio::test]
async fn a_dead_process_is_taken_over() {
    for ledger in Ledger::all() {
        let latch = Latch::new();
        let probe = Probe::writer("probe", Doing::Insist(latch.clone()));
        let acts = [Act::calls(&[("probe", r#"{"n":1}"#)]), Act::text("of the dead one")];
        let world = World::owned(ledger.connect(), dead_owner(), acts, vec![probe.clone()]).full();
        let dead = House::of(world, settings());
        let ticket = dead.conversations.chat(asks("?")).await.unwrap();
        let session = ticket.session.clone();
        within(latch.began()).await;

        let again = Probe::writer("probe", Doing::Answer("ran again".to_owned()));
        let world = World::over(ledger.connect(), [Act::text("done")], vec![again.clone()]).full();
        let house = House::of(world, settings());
        let keeping = tokio::spawn(house.conversations.clone().keep());
        settled(&house, &session).await;
        let before = house.events(&session).await;
        latch.open();
        let told = within(dead.conversations.told(ticket)).await.unwrap();
        assert_replied(&told, "done");
        assert_eq!((probe.runs(), again.runs()), (1, 0));
        assert_eq!(dead.world.model.remaining(), 1);
        let folded = house.session(&session).await;
        assert_eq!(folded.events(), before);
        assert_settled(&folded);
        let ends: Vec<ResultEnd> = results(&folded).iter().map(|result| result.end).collect();
        assert_eq!(ends, [ResultEnd::Interrupted]);
        house.conversations.drain().await;
        within(keeping).await.unwrap();
    }
}

/// SPEC 9.8: a process that is to stop gives up a request to a model, begins nothing, and leaves the turn to another one.
#[tokio::test]
async fn drained_while_a_model_is_asked() {
    for ledger in Ledger::all() {
        let house = ledger.house([weather_call("Jena"), Act::Hang(Vec::new())]);
        let start = house.chat(asks("?")).await.unwrap();
        let waited = for_tool(&start);
        let ticket = house
            .conversations
            .answer(waited.answer_to.as_str(), result_of(None, "rain"))
            .await
            .unwrap();
        until(async || house.world.model.asked().len() == 2).await;
        within(house.conversations.drain()).await;
        assert!(house.conversations.is_draining());
        assert_eq!(house.conversations.running_count(), 0);
        let told = within(house.conversations.told(ticket)).await;
        assert!(matches!(told, Err(ServeError::Draining)), "{told:?}");
        let refused = house.chat(asks("?")).await;
        assert!(matches!(refused, Err(ServeError::Draining)), "{refused:?}");
        assert_eq!(house.count(&start.session, "cancelled").await, 0);

        let next = ledger.another_house([Act::text("ok")]);
        let keeping = tokio::spawn(next.conversations.clone().keep());
        assert_replied(&next.result(&waited, "rain").await.unwrap(), "ok");
        assert_eq!(next.given(), ["rain"]);
        assert_settled(&next.session(&start.session).await);
        next.conversations.drain().await;
        within(keeping).await.unwrap();
    }
}

/// SPEC 9.8: a tool that runs gets time to end; what it gave is kept, and another process goes on with it.
#[tokio::test]
async fn drained_while_a_tool_runs() {
    for ledger in Ledger::all() {
        let latch = Latch::new();
        let probe = Probe::writer("probe", Doing::Insist(latch.clone()));
        let acts = [Act::calls(&[("probe", r#"{"n":1}"#), ("probe", r#"{"n":2}"#)])];
        let world = World::over(ledger.connect(), acts, vec![probe.clone()]).full();
        let house = House::of(world, settings());
        let ticket = house.conversations.chat(asks("?")).await.unwrap();
        within(latch.began()).await;
        let opening = async {
            until(async || house.conversations.is_draining()).await;
            latch.open();
        };
        within(async { tokio::join!(house.conversations.drain(), opening) }).await;
        assert_eq!(house.conversations.running_count(), 0);
        let runs_here = probe.runs();

        let next = Probe::writer("probe", Doing::Answer("elsewhere".to_owned()));
        let world = World::owned(
            ledger.connect(),
            another_owner(),
            [Act::text("done")],
            vec![next.clone()],
        )
        .full();
        let next_house = House::of(world, settings());
        let keeping = tokio::spawn(next_house.conversations.clone().keep());
        settled(&next_house, &ticket.session).await;
        let session = next_house.session(&ticket.session).await;
        assert_settled(&session);
        assert_eq!(runs_here + next.runs(), 2);
        assert!(
            results(&session)
                .iter()
                .all(|result| result.end == ResultEnd::Completed)
        );
        next_house.conversations.drain().await;
        within(keeping).await.unwrap();
    }
}

/// A disk with a switch.
struct Disk {
    store: Arc<Watched>,
    fails: Arc<AtomicBool>,
}

impl Disk {
    fn new(ledger: &Ledger) -> Self {
        let fails = Arc::new(AtomicBool::new(false));
        let now = Arc::clone(&fails);
        let store = Watched::deciding(ledger.connect(), move |_, _| {
            if now.load(Ordering::SeqCst) {
                Fate::Fail
            } else {
                Fate::Write
            }
        });
        Self { store, fails }
    }

    fn set_fails(&self, fails: bool) {
        self.fails.store(fails, Ordering::SeqCst);
    }
}

/// SPEC 9.5, 2.5: while the disk fails nothing is taken and nothing is said to be; once it is back the same requests are taken.
#[tokio::test]
async fn a_failing_disk() {
    for ledger in Ledger::all() {
        let disk = Disk::new(&ledger);
        let acts = [weather_call("Jena"), Act::text("ok")];
        let house = House::of(World::over(disk.store.clone(), acts, Vec::new()), settings());
        for loads_fail in [false, true] {
            disk.set_fails(true);
            disk.store.set_loads_fail(loads_fail);
            let refused = house.chat(asks("?")).await;
            assert!(matches!(refused, Err(ServeError::Engine(_))), "{refused:?}");
        }
        disk.set_fails(false);
        disk.store.set_loads_fail(false);
        assert_eq!(house.conversations.sessions(Default::default()).await.unwrap(), []);
        let waited = for_tool(&house.chat(asks("?")).await.unwrap());
        for loads_fail in [false, true] {
            disk.set_fails(true);
            disk.store.set_loads_fail(loads_fail);
            let refused = house.result(&waited, "rain").await;
            assert!(matches!(refused, Err(ServeError::Engine(_))), "{refused:?}");
            let refused = house.conversations.cancel(waited.answer_to.as_str()).await;
            assert!(matches!(refused, Err(ServeError::Engine(_))), "{refused:?}");
        }
        disk.set_fails(false);
        disk.store.set_loads_fail(false);
        assert_replied(&house.result(&waited, "rain").await.unwrap(), "ok");
    }
}

/// SPEC 9.5, 2.5: a disk that fails in the middle of a turn stops it; nobody is told of what is not written, and it goes on from
/// what is once somebody takes it up.
#[tokio::test]
async fn a_disk_that_fails_on_the_way() {
    for ledger in Ledger::all() {
        for failing_append in 2..=5 {
            let store = Watched::deciding(ledger.connect(), move |n, _| {
                if n == failing_append { Fate::Fail } else { Fate::Write }
            });
            let model = || Steady::calling(1);
            let house = steady(store.clone(), Owner::this_process(), model(), Vec::new());
            let ticket = house.conversations.chat(asks("?")).await.unwrap();
            let session = ticket.session.clone();
            match within(house.conversations.told(ticket)).await {
                Err(ServeError::Stopped(problem)) => assert!(problem.contains("writing the ledger"), "{problem}"),
                // The append that fails came later.
                told => assert!(store.appends() < failing_append, "{failing_append}: {told:?}"),
            }
            let keeping = tokio::spawn(house.conversations.clone().keep());
            settled(&house, &session).await;
            let told = house.conversations.last_told(&session).await.unwrap();
            for_tool(&told.unwrap().1);
            house.conversations.drain().await;
            within(keeping).await.unwrap();
        }
    }
}

/// What a client sends, under the same key each time: its message, or the last answer it has.
async fn ask(house: &House, request: &ChatRequest, claims: &[(String, Claim)]) -> Envelope {
    let told = match claims.last() {
        None => house.chat(request.clone()).await,
        Some((id, claim)) => house.answer(id, claim.clone()).await,
    };
    told.unwrap()
}

/// A conversation with a process that dies with its `nth` append, and then with another one. Whether one died.
async fn with_a_death(ledger: &Ledger, nth: usize, fate: Fate) -> bool {
    let store = Watched::deciding(ledger.connect(), move |n, _| if n == nth { fate } else { Fate::Write });
    let first = steady(store.clone(), dead_owner(), Steady::calling(2), Vec::new());
    let second = steady(ledger.connect(), Owner::this_process(), Steady::calling(2), Vec::new());
    let mut keeping = None;
    let request = ChatRequest {
        request: key(&format!("{nth} {fate:?}"), "?"),
        ..asks("?")
    };
    let mut claims = Vec::new();
    let last = loop {
        let envelope = if keeping.is_some() {
            ask(&second, &request, &claims).await
        } else {
            tokio::select! {
                biased;
                () = store.died() => {
                    keeping = Some(tokio::spawn(second.conversations.clone().keep()));
                    continue;
                }
                envelope = ask(&first, &request, &claims) => envelope,
            }
        };
        match &envelope.reply {
            Waiting::ForTool(waited) => {
                let said = format!("result {}", claims.len());
                let claim = result_of(Some(waited.call_id.as_str()), &said);
                claims.push((waited.answer_to.to_string(), claim));
            }
            Waiting::ForApproval(_) | Waiting::ForNothing(_) => break envelope,
        }
    };
    assert_replied(&last, "done");
    let session = second.session(&last.session).await;
    assert_settled(&session);
    let outputs: Vec<&str> = results(&session).iter().map(|result| result.output.as_str()).collect();
    assert_eq!(outputs, ["result 0", "result 1"], "{nth} {fate:?}");
    let began = session
        .events()
        .iter()
        .filter(|event| matches!(event.body, Body::TurnStarted(_)));
    assert_eq!(began.count(), 1, "{nth} {fate:?}");
    let Some(keeping) = keeping else { return false };
    second.conversations.drain().await;
    within(keeping).await.unwrap();
    true
}

/// SPEC 9.5, 12: killed before or after any of its appends, a process loses nothing that was acknowledged: its client asks the next
/// one, under the same key, and the conversation comes to the same end, each result applied once.
#[tokio::test]
async fn killed_at_any_append() {
    for ledger in Ledger::all() {
        for fate in [Fate::DieBefore, Fate::DieAfter] {
            let mut nth = 1;
            while with_a_death(&ledger, nth, fate).await {
                nth += 1;
            }
            // A request and an answer each, and what each leads to.
            assert_eq!(nth, 7, "{fate:?}: not the six appends that there are");
        }
    }
}

/// SPEC 2.12, 9.5: a turn that a terminal drives is no turn of a client's: it is not taken over, and not begun over.
#[tokio::test]
async fn a_turn_of_a_terminal_is_left_alone() {
    let ledger = Ledger::file();
    let terminal = World::over(ledger.connect(), [Act::Hang(Vec::new())], Vec::new());
    terminal.engine.update(|settings| settings.mode = ApprovalMode::Full);
    let mut driver = terminal.driver();
    driver.start("at the terminal", Vec::new()).await.unwrap();
    let id = driver.session().id().clone();
    let house = ledger.another_house([Act::text("not mine")]);
    let keeping = tokio::spawn(house.conversations.clone().keep());
    let refused = house.chat(goes_on(&id, "?")).await;
    assert!(matches!(refused, Err(ServeError::Running(_))), "{refused:?}");
    house.conversations.drain().await;
    within(keeping).await.unwrap();
    assert_eq!(house.world.model.remaining(), 1);
    assert_eq!(
        house.world.engine.store.load(&id, 0).await.unwrap().len(),
        driver.session().events().len()
    );
}

/// How long it is watched what is tried again and again.
const WATCHED: Duration = Duration::from_secs(1_200);

/// A client's turn that was left open long ago: quiet by any clock.
async fn left_open(ledger: &Ledger) {
    let stuck = SessionId::from_parts(1, 1);
    let began = TurnStarted {
        served: Some(Served::default()),
        ..TurnStarted::default()
    };
    let drafts = vec![Draft::turn_started(1, began), Draft::user(1, "?")];
    let append = ledger.connect();
    append
        .append(&stuck, 0, drafts, 1, Durability::Committed, Hold::Nothing)
        .await
        .unwrap();
}

/// How often a turn that was left open is tried while each of its appends has that fate.
async fn tries(fate: Fate) -> usize {
    let ledger = Ledger::Memory(Arc::default());
    left_open(&ledger).await;
    let store = Watched::deciding(ledger.connect(), move |_, _| fate);
    let acts = (0..1_000).map(|_| Act::text("never written"));
    let house = House::of(World::over(store, acts, Vec::new()), settings());
    let keeping = tokio::spawn(house.conversations.clone().keep());
    tokio::time::sleep(WATCHED).await;
    let tries = house.world.model.asked().len();
    house.conversations.drain().await;
    within(keeping).await.unwrap();
    tries
}

/// SPEC 9.5: a turn that cannot be gone on with is taken up again, ever more rarely, and keeps nobody from the others.
#[tokio::test(start_paused = true)]
async fn a_turn_that_fails_every_time() {
    // After 10, 20, 40 … seconds; a sweep each five seconds would be 240 of them.
    let tries = tries(Fate::Refuse).await;
    assert!((4..=8).contains(&tries), "{tries}");
}

/// SPEC 9.5: a turn whose ledger takes nothing is taken up at steady intervals, so that it goes on soon after the ledger is back.
#[tokio::test(start_paused = true)]
async fn a_ledger_that_takes_nothing() {
    // Each half minute, and the time to the next sweep.
    let tries = tries(Fate::Fail).await;
    assert!((25..=41).contains(&tries), "{tries}");
}

/// Models by name, of which one may be taken out of the configuration.
struct Configured {
    inner: Arc<dyn Models>,
    gone: AtomicBool,
}

impl Models for Configured {
    fn model(&self, name: &str) -> Result<Model, String> {
        if name == "large" && self.gone.load(Ordering::SeqCst) {
            return Err("there is no model `large`".to_owned());
        }
        self.inner.model(name)
    }
}

/// SPEC 3.5, 3.7, 9.5: a turn whose model is not configured any more is over and says so, also one that was left open: it is not taken
/// up again and again, its calls have their results, and the conversation goes on with another model.
#[tokio::test]
async fn a_model_that_is_gone() {
    for ledger in Ledger::all() {
        let mut house = ledger.house([weather_call("Jena"), Act::text("by another")]);
        let engine = &house.world.engine;
        let models = Arc::new(Configured {
            inner: Arc::clone(&engine.models),
            gone: AtomicBool::new(false),
        });
        house.world.engine = Arc::new(Engine {
            store: Arc::clone(&engine.store),
            models: Arc::clone(&models) as Arc<dyn Models>,
            tools: Arc::clone(&engine.tools),
            owner: engine.owner.clone(),
            asides: Arc::default(),
            redactor: engine.redactor.clone(),
            settings: RwLock::new(engine.settings()),
        });
        let house = House::of(house.world, settings());
        let request = ChatRequest {
            model: Some("large".to_owned()),
            ..asks("?")
        };
        let start = house.chat(request).await.unwrap();
        models.gone.store(true, Ordering::SeqCst);
        let over = house.result(&for_tool(&start), "rain").await.unwrap();
        let last = ended(&over);
        assert_eq!(last.reason, StopReason::ModelFailed);
        assert!(last.reply.contains("not_configured"), "{}", last.reply);
        let session = house.session(&start.session).await;
        assert_settled(&session);
        assert_eq!(results(&session)[0].output, "rain");

        let inherited = house.chat(goes_on(&start.session, "and now?")).await;
        assert!(matches!(&inherited, Err(ServeError::Model(_))), "{inherited:?}");
        let small = ChatRequest {
            model: Some("small".to_owned()),
            ..goes_on(&start.session, "and now?")
        };
        assert_replied(&house.chat(small).await.unwrap(), "by another");
    }
}
