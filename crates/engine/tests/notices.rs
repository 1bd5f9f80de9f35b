//! What a front end is told while a turn runs, and in which order.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use aish_core::event::{Event, ResultEnd};
use aish_engine::{Notice, Notices};
use aish_provider::scripted::Act;
use std::collections::VecDeque;
use support::probe::{Doing, Probe};
use support::{World, asking, never, within, yes};

fn recorded(notices: &VecDeque<Notice>) -> Vec<&Event> {
    fn event(notice: &Notice) -> Option<&Event> {
        if let Notice::Recorded(event) = notice {
            Some(event)
        } else {
            None
        }
    }
    notices.iter().filter_map(event).collect()
}

/// What is told comes in the order it happens: asked, said, called, run, printed, ended, asked again.
#[tokio::test]
async fn in_order() {
    let pieces = ["one\n", "two\n"].map(str::to_owned).to_vec();
    let probe = Probe::reader("probe", Doing::Print(pieces));
    let acts = [
        Act::text_and_calls("Looking.", &[("probe", r#"{"n":1}"#)]),
        Act::text("Seen."),
    ];
    let world = World::with(acts, vec![probe]);
    let notices = Notices::new();
    let mut driver = world.driver();
    driver.start("look", Vec::new()).await.unwrap();
    within(driver.drive(&notices, never())).await.unwrap();
    let call = aish_core::CallId::nth(1, 1);
    let readable = "probe(n=1)".to_owned();
    let asking = || Notice::Asking {
        model: "scripted".to_owned(),
    };
    assert_eq!(
        Vec::from(notices.drain()),
        [
            asking(),
            Notice::Text("Looking.".to_owned()),
            Notice::CallBegun {
                name: "probe".to_owned()
            },
            Notice::ReplyEnded,
            Notice::CallStarted {
                call: call.clone(),
                readable: readable.clone(),
            },
            Notice::ToolOutput {
                call: call.clone(),
                text: "one\ntwo\n".to_owned(),
            },
            Notice::CallEnded {
                call,
                readable,
                output: r#"{"output":"printed 1"}"#.to_owned(),
                summary: "printed 1".to_owned(),
                success: true,
                end: ResultEnd::Completed,
            },
            asking(),
            Notice::Text("Seen.".to_owned()),
            Notice::ReplyEnded,
        ]
    );
}

/// SPEC 2.5: who asks for the events is told each one once, in order, and only when it is in the ledger; a call is told as
/// ended after its result is.
#[tokio::test]
async fn every_event_once() {
    let probe = Probe::writer("probe", Doing::Answer("ran".to_owned()));
    let acts = [Act::calls(&[("probe", r#"{"n":1}"#)]), Act::text("done")];
    let world = World::with(acts, vec![probe]);
    let notices = Notices::with_events();
    let mut driver = world.driver();
    driver.watch(&notices);
    driver.start("go", Vec::new()).await.unwrap();
    let pending = asking(within(driver.drive(&notices, never())).await.unwrap());
    driver.answer(yes(&pending[0])).await.unwrap();
    within(driver.drive(&notices, never())).await.unwrap();
    let told = notices.drain();
    let events: Vec<Event> = recorded(&told).into_iter().cloned().collect();
    assert_eq!(events, driver.session().events());
    let at = |wanted: &dyn Fn(&Notice) -> bool| told.iter().position(wanted).unwrap();
    let of_kind = |notice: &Notice, kind| matches!(notice, Notice::Recorded(event) if event.body.kind() == kind);
    let started = at(&|notice| of_kind(notice, "call_started"));
    let begun = at(&|notice| matches!(notice, Notice::CallStarted { .. }));
    let result = at(&|notice| of_kind(notice, "tool_result"));
    let ended = at(&|notice| matches!(notice, Notice::CallEnded { .. }));
    assert!(started < begun && begun < result && result < ended, "{told:?}");
}

/// What others wrote to the session is told as well, once.
#[tokio::test]
async fn events_of_others() {
    let world = World::new([Act::text("first"), Act::text("second")]);
    let notices = Notices::with_events();
    let mut here = world.driver();
    here.watch(&notices);
    support::finish(&mut here, "one").await;
    // Driving with other notices is told there, not here.
    assert_eq!(recorded(&notices.drain()).len(), 2);
    let mut there = world.reopened(&here).await;
    support::finish(&mut there, "two").await;
    here.watch(&notices);
    here.start("three", Vec::new()).await.unwrap();
    let told = notices.drain();
    let seqs: Vec<u64> = recorded(&told).iter().map(|event| event.seq).collect();
    assert_eq!(seqs, [5, 6, 7, 8, 9, 10]);
}
