//! A message typed while a turn runs, said in it by another hand than the driver's (SPEC 3.5a, 3.5b).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use aish_core::message::{Message, text_of};
use aish_core::turn::StopReason;
use aish_engine::{Notices, Steered};
use aish_provider::scripted::Act;
use aish_store::sqlite::SqliteStore;
use std::sync::Arc;
use support::probe::{Doing, Latch, Probe};
use support::{World, ask, asking, assert_saved, assert_settled, done, finish, never, within};

fn probe_call() -> Act {
    Act::calls(&[("probe", r#"{"n":1}"#)])
}

fn last_said(messages: &[Message]) -> String {
    match messages.last() {
        Some(Message::User { parts }) => text_of(parts),
        other => panic!("{other:?}"),
    }
}

/// SPEC 3.5a: what is said while a tool runs is projected after all results of the round, however many times something is said.
#[tokio::test]
async fn while_a_tool_runs() {
    let folder = tempfile::tempdir().unwrap();
    let latch = Latch::new();
    let probe = Probe::writer("probe", Doing::Wait(latch.clone()));
    let store = Arc::new(SqliteStore::new(folder.path().join("ledger.db")));
    let world = World::over(store, [probe_call(), Act::text("Voilà.")], vec![probe.clone()]).full();
    let mut driver = world.driver();
    driver.start("go", Vec::new()).await.unwrap();
    let mut steering = driver.steering().unwrap();
    let notices = Notices::new();
    let typing = async {
        latch.began().await;
        assert_eq!(steering.steer("in French").await.unwrap(), Steered::Taken);
        assert_eq!(steering.steer("please").await.unwrap(), Steered::Taken);
        latch.open();
    };
    let (outcome, ()) = within(async { tokio::join!(driver.drive(&notices, never()), typing) }).await;
    assert_eq!(done(outcome.unwrap()).reply, "Voilà.");
    let asked = world.model.asked();
    let tail: Vec<&Message> = asked[1].messages.iter().rev().take(3).collect();
    assert!(matches!(tail[2], Message::Tool { .. }), "{tail:?}");
    assert!(matches!(tail[1], Message::User { .. }), "{tail:?}");
    assert_eq!(last_said(&asked[1].messages), "please");
    assert_eq!(steering.steer("too late").await.unwrap(), Steered::Late);
    assert_settled(driver.session());
    assert_saved(&driver).await;
}

/// SPEC 3.5a: what is said in a turn that is over, or that another has followed, is for another turn: nothing is written.
#[tokio::test]
async fn after_the_turn() {
    let world = World::new([Act::text("one"), Act::text("two")]);
    let mut driver = world.driver();
    driver.start("go", Vec::new()).await.unwrap();
    let mut steering = driver.steering().unwrap();
    let finished = done(within(driver.drive(&Notices::new(), never())).await.unwrap());
    assert_eq!((finished.reason, finished.reply.as_str()), (StopReason::End, "one"));
    let seq = driver.session().last_seq();
    assert_eq!(steering.steer("and?").await.unwrap(), Steered::Late);
    assert!(driver.steering().is_none());
    finish(&mut driver, "again").await;
    assert_eq!(steering.steer("and?").await.unwrap(), Steered::Late);
    let said = driver.session().events().iter().filter(|event| event.seq > seq);
    assert!(said.into_iter().all(|event| event.content != "and?"));
    assert_settled(driver.session());
}

/// SPEC 3.5a: a turn that waits for an answer takes no message.
#[tokio::test]
async fn while_it_waits_for_an_answer() {
    let probe = Probe::writer("probe", Doing::Answer("ran".to_owned()));
    let world = World::with([probe_call()], vec![probe]);
    let mut driver = world.driver();
    asking(ask(&mut driver, "go").await);
    let mut steering = driver.steering().unwrap();
    let seq = driver.session().last_seq();
    assert_eq!(steering.steer("rather not").await.unwrap(), Steered::Late);
    driver.cancel("enough").await.unwrap();
    assert!(driver.session().last_seq() > seq);
    assert!(
        driver
            .session()
            .events()
            .iter()
            .all(|event| event.content != "rather not")
    );
    assert_settled(driver.session());
}
