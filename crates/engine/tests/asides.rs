//! What happens beside a running call is in its ledger, in its place (SPEC 6.9).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use aish_core::event::{Body, ServerAnswered, ServerAsked, ServerOutcome, ServerWants};
use aish_core::id::CallId;
use aish_engine::{Asides, Notices};
use aish_provider::scripted::Act;
use support::probe::{Doing, Latch, Probe};
use support::{World, drive, kinds, within};
use tokio::sync::watch;

fn answered(call_id: Option<CallId>) -> Body {
    Body::ServerAnswered(ServerAnswered {
        question: 1,
        server: "one".to_owned(),
        call_id,
        outcome: ServerOutcome::Declined,
        sent: serde_json::Value::Null,
        reason: None,
        usage: None,
    })
}

/// Runs one reply with these calls of tools that wait, and records an aside of that server meanwhile; says whether it was
/// recorded, the kinds of events, and the call it was found to belong to.
async fn recorded(tools: &[&str], server: &str) -> (bool, Vec<String>, Option<CallId>) {
    let latch = Latch::new();
    let probes = tools
        .iter()
        .map(|name| Probe::reader(name, Doing::Wait(latch.clone())) as _);
    let calls: Vec<(&str, String)> = tools.iter().map(|name| (*name, r#"{"n":1}"#.to_owned())).collect();
    let calls: Vec<(&str, &str)> = calls.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let world = World::with([Act::text_and_calls("", &calls), Act::text("Done.")], probes.collect()).full();
    let mut driver = world.driver();
    driver.start("go", Vec::new()).await.unwrap();
    let engine = driver.engine().clone();
    let aside = async {
        latch.began().await;
        let recorded = engine.asides.record(server, "asked", answered).await;
        latch.open();
        recorded
    };
    let (driven, recorded) = within(async { tokio::join!(drive(&mut driver), aside) }).await;
    driven.unwrap();
    let call = driver.session().events().iter().find_map(|event| {
        if let Body::ServerAnswered(data) = &event.body {
            data.call_id.clone()
        } else {
            None
        }
    });
    let kinds = kinds(driver.session()).into_iter().map(str::to_owned).collect();
    (recorded, kinds, call)
}

/// SPEC 6.9: it is written while the call runs, before its result, and names the call.
#[tokio::test]
async fn inside_the_call() {
    let (recorded, kinds, call) = recorded(&["one.probe"], "one").await;
    assert!(recorded);
    assert_eq!(call, Some(CallId::nth(1, 1)));
    let at = |kind: &str| kinds.iter().position(|it| it == kind).unwrap();
    assert!(
        at("call_started") < at("server_answered") && at("server_answered") < at("tool_result"),
        "{kinds:?}"
    );
}

/// SPEC 6.9: of two calls of one server, nobody knows which one it asks for.
#[tokio::test]
async fn of_two_calls() {
    let (recorded, kinds, call) = recorded(&["one.a", "one.b"], "one").await;
    assert!(recorded && kinds.contains(&"server_answered".to_owned()), "{kinds:?}");
    assert_eq!(call, None);
}

/// SPEC 6.9: what no running call has to do with is recorded nowhere, and nobody waits for it.
#[tokio::test]
async fn nobody_s() {
    let (recorded, kinds, _) = recorded(&["one.probe"], "two").await;
    assert!(!recorded && !kinds.contains(&"server_answered".to_owned()), "{kinds:?}");
    assert!(!within(Asides::default().record("one", "asked", answered)).await);
}

fn asked(question: u64) -> impl Fn(Option<CallId>) -> Body {
    move |call_id| {
        Body::ServerAsked(ServerAsked {
            question,
            server: "one".to_owned(),
            call_id,
            wants: ServerWants::Form,
            asked: serde_json::json!({ "message": "?" }),
        })
    }
}

/// How a question ends that is open when the call ends or the turn is stopped: the kinds of events, and why it ended.
async fn left_open(is_stopped: bool) -> (Vec<String>, Vec<(u64, Option<String>)>) {
    let latch = Latch::new();
    let probe = Probe::reader("one.probe", Doing::Wait(latch.clone())) as _;
    let calls = [("one.probe", r#"{"n":1}"#)];
    let world = World::with([Act::text_and_calls("", &calls), Act::text("Done.")], vec![probe]).full();
    let mut driver = world.driver();
    driver.start("go", Vec::new()).await.unwrap();
    let engine = driver.engine().clone();
    let (canceller, cancel) = watch::channel(false);
    let asking = async {
        latch.began().await;
        assert!(engine.asides.record("one", "asked", asked(1)).await);
        assert!(engine.asides.record("one", "answered", answered).await);
        assert!(engine.asides.record("one", "asked", asked(2)).await);
        if is_stopped {
            canceller.send_replace(true);
        } else {
            latch.open();
        }
    };
    let notices = Notices::new();
    let (driven, ()) = within(async { tokio::join!(driver.drive(&notices, cancel), asking) }).await;
    driven.unwrap();
    // Nobody writes down what comes later, and whoever was asked hears that.
    assert!(!within(engine.asides.record("one", "answered", answered)).await);
    latch.open();
    let answers = driver.session().events().iter().filter_map(|event| {
        if let Body::ServerAnswered(data) = &event.body {
            assert_eq!(data.call_id, Some(CallId::nth(1, 1)));
            Some((data.question, data.reason.clone()))
        } else {
            None
        }
    });
    let kinds = kinds(driver.session()).into_iter().map(str::to_owned).collect();
    (kinds, answers.collect())
}

/// SPEC 6.9: a question that nobody answered has its end in the ledger before its call has: the call was over, or the turn
/// was stopped.
#[tokio::test]
async fn no_question_stays_open() {
    for (is_stopped, why) in [(false, "its call was over"), (true, "the turn was stopped")] {
        let (kinds, answers) = left_open(is_stopped).await;
        let [(1, None), (2, Some(reason))] = &answers[..] else {
            panic!("{answers:?}");
        };
        assert!(reason.contains(why), "{reason}");
        let result = kinds.iter().position(|kind| kind == "tool_result").unwrap();
        let last = kinds.iter().rposition(|kind| kind == "server_answered").unwrap();
        assert!(last < result, "{kinds:?}");
    }
}
