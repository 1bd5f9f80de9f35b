//! Calls that stop in the middle to ask something: left waiting where nobody is, gone on with where somebody is (SPEC 6.9).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use aish_core::event::{Body, CallSuspended, ResultEnd};
use aish_core::policy::Rule;
use aish_core::turn::StopReason;
use aish_engine::{Answered, Driver, EngineError, Notices, Outcome, Questioned};
use aish_provider::scripted::Act;
use aish_store::Store;
use aish_store::memory::MemoryStore;
use serde_json::json;
use std::sync::Arc;
use support::probe::{Doing, Latch, Probe};
use support::{World, ask, assert_settled, done, drive, kinds, never, no, questions, results, within, yes};

/// One reply with calls of these tools, then text.
fn acts(tools: &[&str]) -> [Act; 2] {
    let calls: Vec<(&str, &str)> = tools.iter().map(|name| (*name, r#"{"n":1}"#)).collect();
    [Act::calls(&calls), Act::text("Done.")]
}

/// A world whose model calls this one tool that asks, and the turn that waits there.
async fn waiting(probe: &Arc<Probe>) -> (World, Driver, Questioned) {
    let world = World::with(acts(&["s.ask"]), vec![probe.clone()]).full();
    let mut driver = world.driver();
    let question = questions(ask(&mut driver, "go").await).remove(0);
    (world, driver, question)
}

/// Drives where somebody is.
async fn attend(driver: &mut Driver) -> Outcome {
    driver.attend();
    drive(driver).await.unwrap()
}

/// SPEC 6.9: with nobody there the call waits in the ledger with what it asked; another process goes on with it from there, with
/// the same arguments and what it had left, and the results beside it are kept.
#[tokio::test]
async fn waits_and_goes_on() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let asker = Probe::mcp("s.ask", Doing::Ask(None));
    let tools: Vec<Arc<Probe>> = vec![
        Probe::writer("before", Doing::Answer("was".to_owned())),
        asker.clone(),
        Probe::writer("after", Doing::Answer("is".to_owned())),
    ];
    let offered = || tools.iter().map(|tool| tool.clone() as _).collect();
    let world = World::over(store.clone(), acts(&["before", "s.ask", "after"]), offered()).full();
    let mut driver = world.driver();
    let asked = questions(ask(&mut driver, "go").await);
    assert_eq!((asked.len(), asked[0].call.tool.as_str()), (1, "s.ask"));
    assert_eq!(asked[0].asks, ["Which one?"]);
    // Nobody came: it waits on, and nothing runs.
    assert_eq!(questions(drive(&mut driver).await.unwrap()), asked);
    assert!(driver.start("another question", Vec::new()).await.is_err());
    let runs: Vec<usize> = tools.iter().map(|tool| tool.runs()).collect();
    assert_eq!(runs, [1, 1, 0]);
    assert_eq!(asker.went_on(), Vec::<serde_json::Value>::new());

    let later = World::over(store, [Act::text("Done.")], offered()).full();
    let mut driver = later.reopened(&driver).await;
    assert_eq!(done(attend(&mut driver).await).reply, "Done.");
    assert_eq!(
        asker.went_on(),
        [json!({ "state": { "of": { "n": 1 } }, "answer": "blue" })]
    );
    let runs: Vec<usize> = tools.iter().map(|tool| tool.runs()).collect();
    assert_eq!(runs, [1, 1, 1]);
    let outputs: Vec<&str> = results(driver.session())
        .iter()
        .map(|result| result.output.as_str())
        .collect();
    assert_eq!(
        outputs,
        [
            r#"{"output":"was 1"}"#,
            r#"{"output":"answered 1"}"#,
            r#"{"output":"is 1"}"#
        ]
    );
    assert_settled(driver.session());
    let kinds = kinds(driver.session());
    let at = |kind: &str| kinds.iter().position(|it| *it == kind).unwrap();
    assert!(at("call_suspended") < at("call_taken_up"), "{kinds:?}");
}

/// SPEC 6.9, 5.5: a no from a script ends it as declined, with the reason; said again it changes nothing, and a yes answers nothing.
#[tokio::test]
async fn declined() {
    let asker = Probe::mcp("s.ask", Doing::Ask(None));
    let (_world, mut driver, question) = waiting(&asker).await;
    let approved = driver.answer(yes(&question.call)).await;
    assert!(matches!(approved, Err(EngineError::Asks(_))), "{approved:?}");
    let refusal = no(&question.call, Some("not now"));
    assert_eq!(driver.answer(refusal.clone()).await.unwrap(), Answered::Recorded);
    assert_eq!(driver.answer(refusal).await.unwrap(), Answered::Already);
    let late = driver.answer(yes(&question.call)).await;
    assert!(matches!(late, Err(EngineError::AnsweredOtherwise(_))), "{late:?}");
    assert_eq!(done(attend(&mut driver).await).reason, StopReason::Declined);
    let result = results(driver.session())[0];
    assert_eq!(result.output, r#"{"error":"declined by the user: not now"}"#);
    assert_eq!((result.end, asker.went_on().len()), (ResultEnd::Declined, 0));
    assert_settled(driver.session());
}

/// SPEC 3.4, 6.9: the rules of now hold before it goes on: those before the question is put, and those made meanwhile.
#[tokio::test]
async fn denied_meanwhile() {
    let latch = Latch::new();
    let asker = Probe::mcp("s.ask", Doing::Ask(Some(latch.clone())));
    let deny = |world: &World| {
        let rule = Rule::parse("s.ask").unwrap();
        world.engine.update(|settings| settings.policy.deny.push(rule));
    };
    let (world, mut driver, _) = waiting(&asker).await;
    deny(&world);
    done(attend(&mut driver).await);
    assert_eq!(results(driver.session())[0].end, ResultEnd::Denied);

    let (world, mut driver, _) = waiting(&asker).await;
    driver.attend();
    let meanwhile = async {
        latch.began().await;
        deny(&world);
        latch.open();
    };
    let (outcome, ()) = within(async { tokio::join!(drive(&mut driver), meanwhile) }).await;
    done(outcome.unwrap());
    assert_eq!(results(driver.session())[0].end, ResultEnd::Denied);
    assert!(asker.went_on().is_empty());
    assert_settled(driver.session());
}

/// SPEC 6.8, 6.9: a tool that is another by now does not go on.
#[tokio::test]
async fn another_tool_by_then() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let before = Probe::defined("s.ask", "asks", Doing::Ask(None));
    let world = World::over(store.clone(), acts(&["s.ask"]), vec![before]).full();
    let mut driver = world.driver();
    questions(ask(&mut driver, "go").await);
    let now = Probe::defined("s.ask", "sends", Doing::Ask(None));
    let later = World::over(store, [Act::text("Done.")], vec![now.clone()]).full();
    let mut driver = later.reopened(&driver).await;
    done(attend(&mut driver).await);
    let result = results(driver.session())[0];
    assert!(
        result.output.contains("would no longer do what was approved"),
        "{}",
        result.output
    );
    assert!(now.went_on().is_empty());
    assert_settled(driver.session());
}

/// SPEC 3.5b, 6.9: while one person thinks, another declines: what was declined does not go on.
#[tokio::test]
async fn declined_while_it_is_asked() {
    let latch = Latch::new();
    let asker = Probe::mcp("s.ask", Doing::Ask(Some(latch.clone())));
    let (world, mut driver, question) = waiting(&asker).await;
    let mut other = world.reopened(&driver).await;
    driver.attend();
    let meanwhile = async {
        latch.began().await;
        other.answer(no(&question.call, None)).await.unwrap();
        latch.open();
    };
    let (outcome, ()) = within(async { tokio::join!(drive(&mut driver), meanwhile) }).await;
    assert_eq!(done(outcome.unwrap()).reason, StopReason::Declined);
    assert!(asker.went_on().is_empty());
    assert_settled(driver.session());
}

/// SPEC 6.9, 3.7: Ctrl-C while it is asked stops the turn, and nothing is told to whoever asked.
#[tokio::test]
async fn stopped_while_it_is_asked() {
    let latch = Latch::new();
    let asker = Probe::mcp("s.ask", Doing::Ask(Some(latch.clone())));
    let (_world, mut driver, _) = waiting(&asker).await;
    driver.attend();
    let (stop, cancel) = tokio::sync::watch::channel(false);
    let meanwhile = async {
        latch.began().await;
        stop.send_replace(true);
    };
    let notices = Notices::new();
    let (outcome, ()) = within(async { tokio::join!(driver.drive(&notices, cancel), meanwhile) }).await;
    assert_eq!(done(outcome.unwrap()).reason, StopReason::Cancelled);
    latch.open();
    driver.settle().await;
    assert!(asker.went_on().is_empty());
    assert_eq!(results(driver.session())[0].end, ResultEnd::Interrupted);
    assert_settled(driver.session());
}

/// SPEC 2.12, 6.9: of two that go on with it, one does.
#[tokio::test]
async fn two_at_once() {
    let latch = Latch::new();
    let asker = Probe::mcp("s.ask", Doing::Ask(Some(latch.clone())));
    let (world, mut first, _) = waiting(&asker).await;
    let mut second = world.reopened(&first).await;
    first.attend();
    second.attend();
    latch.open();
    let notices = (Notices::new(), Notices::new());
    let both = async { tokio::join!(first.drive(&notices.0, never()), second.drive(&notices.1, never())) };
    let _either_may_lose = within(both).await;
    assert_eq!(asker.went_on().len(), 1);
    let mut last = world.reopened(&first).await;
    if last.session().open_turn().is_some() {
        drive(&mut last).await.unwrap();
    }
    assert_settled(last.session());
}

/// SPEC 2.4: what was asked is in the ledger as it came.
#[tokio::test]
async fn in_the_ledger() {
    let asker = Probe::mcp("s.ask", Doing::Ask(None));
    let (_world, driver, question) = waiting(&asker).await;
    let event = driver.session().events().last().unwrap();
    assert_eq!(event.content, "s.ask asks: Which one?");
    let Body::CallSuspended(data) = &event.body else {
        panic!("{event:?}");
    };
    let expect = CallSuspended {
        call_id: question.call.call_id,
        asks: vec!["Which one?".to_owned()],
        state: json!({ "of": { "n": 1 } }),
    };
    assert_eq!(*data, expect);
}
