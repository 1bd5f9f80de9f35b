//! The gate and the person behind it: what cannot run, what may not, what is asked about, and that what was shown is what
//! runs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use aish_core::event::{AnswerScope, Body, CallSource, Event, ResultEnd};
use aish_core::message::Message;
use aish_core::policy::{Policy, Rule};
use aish_core::turn::StopReason;
use aish_engine::{AnswerRequest, Answered, EngineError, Notices, Outcome};
use aish_provider::scripted::Act;
use aish_tools::Tool;
use aish_tools::set::ToolSet;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use support::probe::{Doing, Probe};
use support::{World, ask, asking, assert_saved, assert_settled, done, drive, finish, kinds, never, no, results, told};
use support::{within, yes};

fn write_call(path: &str) -> (&'static str, String) {
    ("file_write", format!(r#"{{"path":"{path}","content":"new"}}"#))
}

fn calls(calls: &[(&'static str, String)]) -> Act {
    let calls: Vec<(&str, &str)> = calls
        .iter()
        .map(|(name, arguments)| (*name, arguments.as_str()))
        .collect();
    Act::calls(&calls)
}

/// SPEC 3.8, 3.9: what cannot be run is answered and not run; the raw text stays in the ledger, and a later request carries
/// a form that any server can parse.
#[tokio::test]
async fn calls_that_cannot_be_run() {
    let check = async |name: &str, arguments: &str, error: &str| {
        let world = World::new([Act::calls(&[(name, arguments)]), Act::text("I see")]);
        let mut driver = world.driver();
        let notices = Notices::new();
        driver.start("go", Vec::new()).await.unwrap();
        let finished = done(within(driver.drive(&notices, never())).await.unwrap());
        assert_eq!(finished.reason, StopReason::End);
        let results = results(driver.session());
        assert_eq!((results[0].end, results[0].success), (ResultEnd::Invalid, false));
        assert!(
            results[0].output.starts_with(&format!(r#"{{"error":"{error}"#)),
            "{}",
            results[0].output
        );
        assert!(!kinds(driver.session()).contains(&"call_started"));
        let call = driver.session().call_event(&results[0].tool_call_id).unwrap();
        assert_eq!(call.function.arguments, arguments);
        let asked = world.model.asked();
        let Message::Assistant { calls, .. } = &asked[1].messages[1] else {
            panic!("{:?}", asked[1].messages);
        };
        let sent: serde_json::Value = serde_json::from_str(&calls[0].arguments).unwrap();
        assert!(sent.is_object());
        let lines = support::statuses(&notices);
        let is_malformed = error.starts_with("Invalid JSON");
        assert_eq!(
            lines.iter().any(|line| line.contains("not run")),
            is_malformed,
            "{lines:?}"
        );
        assert_settled(driver.session());
    };
    check("file_read", r#"{"path": "#, "Invalid JSON arguments: ").await;
    check("file_read", "[1]", "Invalid JSON arguments: ").await;
    check("no_such_tool", "{}", "Unknown tool: no_such_tool").await;
    check("file_read", "", "Missing required parameter: path").await;
    check("file_read", r#"{"path":"a","limit":"many"}"#, "Parameter limit must be").await;
}

/// SPEC 5.1: a deny rule refuses, says which, and the rest of the reply runs all the same; where nothing but refusals came
/// of the last round, the turn says so.
#[tokio::test]
async fn denied_by_a_rule() {
    let both = [write_call("secret.txt"), write_call("plain.txt")];
    let world = World::new([calls(&both), calls(&both[..1]), Act::text("as you wish")]).full();
    let rule = Rule::parse("file_write(*secret*)").unwrap();
    world.engine.update(|settings| settings.policy.deny.push(rule));
    let mut driver = world.driver();
    let finished = finish(&mut driver, "write them").await;
    assert_eq!(finished.reason, StopReason::Declined);
    let results = results(driver.session());
    assert_eq!(
        results[0].output,
        r#"{"error":"denied by policy: deny rule file_write(*secret*)"}"#
    );
    assert_eq!(
        (results[0].end, results[1].end),
        (ResultEnd::Denied, ResultEnd::Completed)
    );
    assert!(world.folder.join("plain.txt").exists() && !world.folder.join("secret.txt").exists());
    assert_settled(driver.session());
}

/// SPEC 3.4, 5.5: the whole reply is asked about before any of it runs; a no is told to the model with its reason, and what
/// was approved runs.
#[tokio::test]
async fn asked_about() {
    let both = [write_call("a.txt"), write_call("b.txt")];
    let world = World::new([calls(&both), Act::text("one of two")]);
    let mut driver = world.driver();
    let pending = asking(ask(&mut driver, "write them").await);
    assert_eq!(pending.len(), 2);
    assert_eq!(pending[0].readable, r#"file_write(path="a.txt", content="new")"#);
    driver.answer(yes(&pending[0])).await.unwrap();
    // Driving on with an answer missing asks for that one and runs nothing.
    let open = asking(drive(&mut driver).await.unwrap());
    assert_eq!(open, pending[1..]);
    assert!(!world.folder.join("a.txt").exists());
    driver.answer(no(&pending[1], Some("not that one"))).await.unwrap();
    let finished = done(drive(&mut driver).await.unwrap());
    assert_eq!(finished.reason, StopReason::End);
    assert!(world.folder.join("a.txt").exists() && !world.folder.join("b.txt").exists());
    let sent = told(&world.model.asked()[1].messages);
    assert_eq!(sent[1].1, r#"{"error":"declined by the user: not that one"}"#);
    assert_settled(driver.session());
    assert_saved(&driver).await;
}

/// SPEC 3.3: the same answer again changes nothing, another one is refused, and so is one that quotes what was not shown.
#[tokio::test]
async fn answers_count_once() {
    let world = World::new([calls(&[write_call("a.txt")]), Act::text("done")]);
    let mut driver = world.driver();
    let pending = asking(ask(&mut driver, "write it").await);
    let quoting = |digest: &str| AnswerRequest {
        digest: Some(digest.to_owned()),
        ..yes(&pending[0])
    };
    for wrong in ["", "0123456789abcdef", &pending[0].digest.as_str()[..8]] {
        let answered = driver.answer(quoting(wrong)).await;
        assert!(matches!(answered, Err(EngineError::Digest(_))), "{wrong}: {answered:?}");
    }
    let unknown = AnswerRequest {
        call_id: aish_core::CallId::nth(7, 7),
        ..yes(&pending[0])
    };
    assert!(matches!(driver.answer(unknown).await, Err(EngineError::NotPending(_))));
    let short = pending[0].digest.short().to_owned();
    assert_eq!(driver.answer(quoting(&short)).await.unwrap(), Answered::Recorded);
    let events = driver.session().last_seq();
    assert_eq!(driver.answer(yes(&pending[0])).await.unwrap(), Answered::Already);
    let other = driver.answer(no(&pending[0], None)).await;
    assert!(matches!(other, Err(EngineError::AnsweredOtherwise(_))), "{other:?}");
    assert_eq!(driver.session().last_seq(), events);
    done(drive(&mut driver).await.unwrap());
    // And after the turn.
    assert_eq!(driver.answer(yes(&pending[0])).await.unwrap(), Answered::Already);
    assert_settled(driver.session());
}

/// SPEC 5.3: approved for the session, a tool is not asked about again; a command only as exactly that command; and it
/// survives a restart.
#[tokio::test]
async fn approved_for_the_session() {
    let bash = |command: &str| ("bash", format!(r#"{{"command":"{command}"}}"#));
    let world = World::new([
        calls(&[write_call("a.txt"), bash("touch b.txt")]),
        Act::text("done"),
        calls(&[write_call("c.txt"), bash("touch b.txt")]),
        Act::text("done again"),
        calls(&[bash("touch d.txt")]),
    ]);
    let mut driver = world.driver();
    for pending in asking(ask(&mut driver, "first").await) {
        let request = AnswerRequest {
            scope: AnswerScope::Session,
            ..yes(&pending)
        };
        driver.answer(request).await.unwrap();
    }
    done(drive(&mut driver).await.unwrap());
    let mut driver = world.reopened(&driver).await;
    finish(&mut driver, "second").await;
    assert!(world.folder.join("c.txt").exists());
    let pending = asking(ask(&mut driver, "third").await);
    assert_eq!(pending[0].readable, r#"bash(command="touch d.txt")"#);
    driver.cancel("enough").await.unwrap();
    assert_settled(driver.session());
}

/// SPEC 3.3: what was shown is what runs: a file that became a link between the question and the run is not written through.
#[tokio::test]
async fn changed_after_it_was_approved() {
    let world = World::new([calls(&[write_call("a.txt")]), Act::text("hm")]);
    let target = world.write("target.txt", "old");
    let mut driver = world.driver();
    let pending = asking(ask(&mut driver, "write it").await);
    driver.answer(yes(&pending[0])).await.unwrap();
    symlink(&target, world.folder.join("a.txt")).unwrap();
    let finished = done(drive(&mut driver).await.unwrap());
    assert_eq!(finished.reason, StopReason::Declined);
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "old");
    let results = results(driver.session());
    assert_eq!(results[0].end, ResultEnd::Denied);
    assert!(results[0].output.contains("would no longer do what was approved"));
    assert!(!kinds(driver.session()).contains(&"call_started"));
    assert_settled(driver.session());
}

/// SPEC 3.4: a deny rule that was added after the approval holds; for a later call of the same reply, also one that was
/// added while an earlier one ran.
#[tokio::test]
async fn denied_meanwhile() {
    let world = World::new([calls(&[write_call("a.txt")]), Act::text("hm")]);
    let deny = |rule: &str| {
        let rule = Rule::parse(rule).unwrap();
        world.engine.update(|settings| settings.policy.deny.push(rule));
    };
    let mut driver = world.driver();
    let pending = asking(ask(&mut driver, "write it").await);
    driver.answer(yes(&pending[0])).await.unwrap();
    deny("file_write");
    done(drive(&mut driver).await.unwrap());
    assert!(!world.folder.join("a.txt").exists());
    assert_eq!(
        results(driver.session())[0].output,
        r#"{"error":"denied by policy: deny rule file_write"}"#
    );
    assert_settled(driver.session());

    let latch = support::probe::Latch::new();
    let slow = Probe::writer("slow", Doing::Wait(latch.clone()));
    let both = [("slow", r#"{"n":1}"#.to_owned()), write_call("b.txt")];
    let world = World::with([calls(&both), Act::text("hm")], vec![slow]).full();
    let mut driver = world.driver();
    driver.start("go", Vec::new()).await.unwrap();
    let meanwhile = async {
        latch.began().await;
        let rule = Rule::parse("file_write").unwrap();
        world.engine.update(|settings| settings.policy.deny.push(rule));
        latch.open();
    };
    let notices = Notices::new();
    let (outcome, ()) = within(async { tokio::join!(driver.drive(&notices, never()), meanwhile) }).await;
    done(outcome.unwrap());
    assert!(!world.folder.join("b.txt").exists());
    assert_eq!(results(driver.session())[1].end, ResultEnd::Denied);
    assert_settled(driver.session());
}

/// SPEC 3.5a: a turn that waits costs nothing and can be cancelled; what was asked about is answered.
#[tokio::test]
async fn cancelled_while_it_waits() {
    let world = World::new([calls(&[write_call("a.txt")]), Act::text("next")]);
    let mut driver = world.driver();
    let pending = asking(ask(&mut driver, "write it").await);
    assert!(driver.start("another question", Vec::new()).await.is_err());
    assert_eq!(driver.pending(), pending);
    let finished = driver.cancel("changed my mind").await.unwrap();
    assert_eq!(finished.reply, "[stopped: changed my mind]");
    let late = driver.answer(yes(&pending[0])).await;
    assert!(matches!(late, Err(EngineError::NotPending(_))), "{late:?}");
    assert_eq!(results(driver.session())[0].end, ResultEnd::NotRun);
    assert_settled(driver.session());
    finish(&mut driver, "another question").await;
    assert_settled(driver.session());
}

/// SPEC 3.1, 9.2: a call the remote client executes is gated like any other, and then the turn waits for it.
#[tokio::test]
async fn calls_of_the_client() {
    let phone = Probe::client("phone");
    let world = World::with([Act::calls(&[("phone", r#"{"n":1}"#)])], vec![phone.clone()]).full();
    let mut driver = world.driver();
    let outcome = ask(&mut driver, "ring").await;
    let Outcome::AwaitingClient(pending) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!((pending[0].tool.as_str(), phone.runs()), ("phone", 0));
    let is_clients =
        |event: &Event| matches!(&event.body, Body::CallGated(gated) if gated.source == CallSource::Client);
    assert!(driver.session().events().iter().any(is_clients));
    driver.cancel("nobody there").await.unwrap();
    assert_settled(driver.session());
}

/// SPEC 5.2: outside the working tree even reading asks.
#[tokio::test]
async fn outside_the_tree() {
    let world = World::new([Act::calls(&[("glob", r#"{"pattern":"*"}"#)])]);
    world.engine.update(|settings| {
        let elsewhere = settings.context.directory.join("elsewhere");
        settings.policy = Policy::new(elsewhere);
    });
    let mut driver = world.driver();
    let pending = asking(ask(&mut driver, "list").await);
    assert_eq!(pending[0].rule, "mode ask: outside the working tree");
}

/// SPEC 6.8, 3.3: between the question and the answer another definition took the tool's place: neither of them runs, for once, for
/// the session, or by a rule that would allow it.
#[tokio::test]
async fn a_tool_replaced_before_it_ran() {
    for scope in [AnswerScope::Once, AnswerScope::Session] {
        let old = Probe::defined("mail.send", "Sends", Doing::Answer("sent".into()));
        let new = Probe::defined("mail.send", "Sends all", Doing::Answer("sent".into()));
        let acts = [Act::calls(&[("mail.send", r#"{"n":1}"#)]), Act::text("as you wish")];
        let world = World::with(acts, vec![Arc::clone(&old) as Arc<dyn Tool>]);
        let mut driver = world.driver();
        let pending = asking(ask(&mut driver, "go").await);
        let mut tools = ToolSet::new();
        tools.append(Arc::clone(&new) as Arc<dyn Tool>).unwrap();
        world.engine.tools.replace(tools);
        let answer = AnswerRequest {
            scope,
            ..yes(&pending[0])
        };
        driver.answer(answer).await.unwrap();
        assert!(driver.session().grants().is_empty(), "nobody saw what it would be for");
        done(drive(&mut driver).await.unwrap());
        assert_eq!((old.runs(), new.runs()), (0, 0));
        let results = results(driver.session());
        assert_eq!(results[0].end, ResultEnd::Denied);
        assert!(results[0].output.contains("call it again"), "{}", results[0].output);
        assert_settled(driver.session());
    }
}
