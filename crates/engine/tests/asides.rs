//! What happens beside a running call is in its ledger, in its place (SPEC 6.9).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use aish_core::event::{Body, ServerAnswered, ServerOutcome};
use aish_core::id::CallId;
use aish_engine::Asides;
use aish_provider::scripted::Act;
use support::probe::{Doing, Latch, Probe};
use support::{World, drive, kinds, within};

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
