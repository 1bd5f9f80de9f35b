//! Replies that are none, that break off, and requests that fail: what is asked again and what ends the turn.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use aish_core::event::{Body, ReplyStop};
use aish_core::message::Part;
use aish_core::turn::StopReason;
use aish_engine::{Notice, Notices};
use aish_provider::scripted::Act;
use aish_provider::{Delta, ErrorKind, ProviderError, Reply};
use std::time::Duration;
use support::probe::{Doing, Probe};
use support::{World, assert_saved, assert_settled, brief_failure, finish, never, within};

/// A reply with this end and nothing that could be called.
fn reply_ending(text: &str, stop: ReplyStop, error: Option<ProviderError>) -> Act {
    let shown = (!text.is_empty()).then(|| text.to_owned());
    Act::Reply {
        deltas: shown.iter().cloned().map(Delta::Text).collect(),
        reply: Reply {
            parts: shown.into_iter().map(Part::text).collect(),
            calls: Vec::new(),
            stop,
            usage: None,
            model: None,
            error,
            reason: None,
            remarks: Vec::new(),
        },
    }
}

fn stream_error() -> ProviderError {
    ProviderError {
        kind: ErrorKind::Stream,
        message: "the stream says it failed".to_owned(),
        retry_after: Some(Duration::from_millis(1)),
    }
}

/// SPEC 3.5: a reply of nothing, or one cut before it showed anything, is asked for again within limits; one that was cut
/// after text was shown is kept, and the turn ends and says so.
#[tokio::test]
async fn replies_that_are_none() {
    let empty = || reply_ending("", ReplyStop::End, None);
    let blank = || reply_ending(" \n", ReplyStop::End, None);
    let check = async |acts: Vec<Act>, asked: usize, reason: StopReason, reply: &str| {
        let world = World::new(acts);
        let mut driver = world.driver();
        let finished = finish(&mut driver, "hm?").await;
        assert_eq!((finished.reason, finished.reply.as_str()), (reason, reply));
        assert_eq!(world.model.asked().len(), asked);
        assert_settled(driver.session());
    };
    check(vec![empty(), Act::text("yes")], 2, StopReason::End, "yes").await;
    check(vec![blank(), Act::text("yes")], 2, StopReason::End, "yes").await;
    let cut = || reply_ending("", ReplyStop::Truncated, None);
    check(vec![cut(), cut(), Act::text("yes")], 3, StopReason::End, "yes").await;
    check(
        vec![empty(), empty(), empty(), empty()],
        4,
        StopReason::ModelFailed,
        "[stopped: the model gave no answer]",
    )
    .await;
    for (stop, how) in [
        (ReplyStop::Length, "reached its length limit"),
        (ReplyStop::Truncated, "was cut off"),
    ] {
        check(
            vec![reply_ending("half of it", stop, None)],
            1,
            StopReason::Truncated,
            &format!("half of it\n[stopped: the reply {how}]"),
        )
        .await;
    }
    // The same request would reach the same limit again.
    check(
        vec![reply_ending("", ReplyStop::Length, None)],
        1,
        StopReason::Truncated,
        "[stopped: the reply reached its length limit]",
    )
    .await;
}

/// SPEC 7.3: calls of a reply that was cut are never run, whatever a provider makes of them.
#[tokio::test]
async fn calls_of_a_reply_that_was_cut() {
    let probe = Probe::reader("probe", Doing::Answer("ran".to_owned()));
    for stop in [ReplyStop::Length, ReplyStop::Truncated, ReplyStop::Refused] {
        let Act::Reply { deltas, mut reply } = Act::text_and_calls("so", &[("probe", r#"{"n":1}"#)]) else {
            panic!("a reply");
        };
        reply.stop = stop;
        let world = World::with([Act::Reply { deltas, reply }], vec![probe.clone()]);
        let mut driver = world.driver();
        finish(&mut driver, "go").await;
        assert_eq!(probe.runs(), 0);
        let kept = driver.session().events().iter().any(
            |event| matches!(&event.body, Body::Assistant(data) if data.parts.iter().any(|part| matches!(part, Part::PartialCall { .. }))),
        );
        assert!(kept, "evidence of the call is kept");
        assert_settled(driver.session());
    }
}

/// SPEC 3.5, 7.6: a request that failed is made again where that may help, not otherwise, and not without end.
#[tokio::test]
async fn requests_that_fail() {
    let check = async |acts: Vec<Act>, asked: usize, reason: StopReason| {
        let world = World::new(acts);
        let mut driver = world.driver();
        let finished = finish(&mut driver, "hm?").await;
        assert_eq!((finished.reason, world.model.asked().len()), (reason, asked));
        assert_eq!(finished.problem.is_some(), reason == StopReason::ModelFailed);
        assert_settled(driver.session());
    };
    let busy = || brief_failure(ErrorKind::Status(429));
    let lost = || brief_failure(ErrorKind::Connect);
    check(vec![busy(), lost(), Act::text("yes")], 3, StopReason::End).await;
    check(vec![busy(), lost(), busy(), lost()], 4, StopReason::ModelFailed).await;
    check(vec![Act::fail(ErrorKind::Auth)], 1, StopReason::ModelFailed).await;
    check(vec![Act::fail(ErrorKind::Status(400))], 1, StopReason::ModelFailed).await;
    let in_an_hour = ProviderError {
        retry_after: Some(Duration::from_secs(3600)),
        ..stream_error()
    };
    check(vec![Act::Fail(in_an_hour)], 1, StopReason::ModelFailed).await;
    // An error inside a stream that had shown nothing is a request that failed.
    let silent = reply_ending("", ReplyStop::Truncated, Some(stream_error()));
    check(vec![silent, Act::text("yes")], 2, StopReason::End).await;
}

/// SPEC 7.6: the pause before another attempt can be seen.
#[tokio::test]
async fn retrying_is_told() {
    let world = World::new([brief_failure(ErrorKind::Status(503)), Act::text("yes")]);
    let notices = Notices::new();
    let mut driver = world.driver();
    driver.start("hm?", Vec::new()).await.unwrap();
    within(driver.drive(&notices, never())).await.unwrap();
    let told = notices.drain();
    let retrying = Notice::Retrying {
        attempt: 2,
        wait_ms: 1,
        problem: "scripted failure".to_owned(),
    };
    assert!(told.contains(&retrying), "{told:?}");
}

/// SPEC 3.5: where text was shown nothing is asked again silently: the text is kept and the turn ends.
#[tokio::test]
async fn text_and_then_an_error() {
    for stop in [ReplyStop::Truncated, ReplyStop::End] {
        let broken = reply_ending("The answer is", stop, Some(stream_error()));
        let world = World::new([broken, Act::text("never asked")]);
        let mut driver = world.driver();
        let finished = finish(&mut driver, "hm?").await;
        assert_eq!((finished.reason, world.model.remaining()), (StopReason::ModelFailed, 1));
        assert_eq!(finished.reply, "The answer is\n[stopped: the reply broke off: stream]");
        assert_eq!(finished.problem.as_deref(), Some("the stream says it failed"));
        assert_settled(driver.session());
        assert_saved(&driver).await;
    }
}

/// SPEC 7.3: a peer that goes away in the middle of a text cut the reply: the turn ends truncated and says why.
#[tokio::test]
async fn peer_that_goes_away() {
    for kind in [ErrorKind::Broken, ErrorKind::Timeout] {
        let error = ProviderError {
            kind,
            message: "the connection broke".to_owned(),
            retry_after: None,
        };
        let world = World::new([reply_ending("half", ReplyStop::Truncated, Some(error))]);
        let mut driver = world.driver();
        let notices = Notices::new();
        driver.start("hm?", Vec::new()).await.unwrap();
        let outcome = driver.drive(&notices, never()).await.unwrap();
        let aish_engine::Outcome::Done(finished) = outcome else {
            panic!("{outcome:?}")
        };
        assert_eq!(finished.reason, StopReason::Truncated);
        assert!(finished.reply.starts_with("half"), "{}", finished.reply);
        assert_eq!(world.model.asked().len(), 1);
        let said = Notice::Status("the connection broke".to_owned());
        assert!(notices.drain().contains(&said));
        assert_settled(driver.session());
    }
}

/// SPEC 7.4: a reply that names another model than was asked for is told of in one line, once.
#[tokio::test]
async fn another_model_answers() {
    let reply = |model: &str| Act::Reply {
        deltas: Vec::new(),
        reply: Reply {
            parts: vec![Part::text("x")],
            calls: Vec::new(),
            stop: ReplyStop::End,
            usage: None,
            model: Some(model.to_owned()),
            error: None,
            reason: None,
            remarks: Vec::new(),
        },
    };
    let world = World::new([reply("vendor/fake-2026-11-21"), reply("other"), reply("third")]);
    let mut driver = world.driver();
    let mut said = Vec::new();
    for _ in 0..3 {
        let notices = Notices::new();
        driver.start("hm?", Vec::new()).await.unwrap();
        driver.drive(&notices, never()).await.unwrap();
        said.extend(
            notices
                .drain()
                .into_iter()
                .filter(|notice| matches!(notice, Notice::Status(_))),
        );
    }
    assert_eq!(said, [Notice::Status("fake was asked, other answered".to_owned())]);
}
