//! A turn driven to its end: rounds of calls, their order, limits, replies that are no replies, and what the model is sent.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use aish_core::event::{Body, ResultEnd};
use aish_core::message::{Message, ToolChoice, text_of};
use aish_core::turn::StopReason;
use aish_engine::{Notice, Notices, SYSTEM_PROMPT};
use aish_provider::Delta;
use aish_provider::scripted::Act;
use aish_store::memory::MemoryStore;
use std::sync::Arc;
use support::probe::{Doing, Latch, Probe};
use support::watched::{Fate, Watched};
use support::{World, assert_saved, assert_settled, finish, kinds, never, results, told, within};
use tokio::sync::watch;

#[tokio::test]
async fn a_question_and_its_answer() {
    let world = World::new([Act::text("Paris.")]);
    let mut driver = world.driver();
    let finished = finish(&mut driver, "capital of France?").await;
    assert_eq!(
        (finished.reason, finished.reply.as_str(), finished.problem),
        (StopReason::End, "Paris.", None)
    );
    assert_eq!(
        kinds(driver.session()),
        ["turn_started", "user", "assistant", "turn_ended"]
    );
    assert_settled(driver.session());
    assert_saved(&driver).await;
}

/// SPEC 3.5: after the results the model is asked again with the conversation so far, until a reply has no calls.
#[tokio::test]
async fn a_round_of_calls() {
    let world = World::new([
        Act::text_and_calls("Let me look.", &[("file_read", r#"{"path":"a.txt"}"#)]),
        Act::text("It says hello."),
    ]);
    world.write("a.txt", "hello\n");
    let mut driver = world.driver();
    let finished = finish(&mut driver, "what is in a.txt?").await;
    assert_eq!(finished.reply, "It says hello.");
    assert_eq!(
        kinds(driver.session()),
        [
            "turn_started",
            "user",
            "assistant",
            "tool_call",
            "call_gated",
            "call_started",
            "tool_result",
            "assistant",
            "turn_ended"
        ]
    );
    let asked = world.model.asked();
    assert_eq!(asked.len(), 2);
    let [
        Message::User { .. },
        Message::Assistant { parts, calls, .. },
        Message::Tool { output, success, .. },
    ] = asked[1].messages.as_slice()
    else {
        panic!("{:?}", asked[1].messages);
    };
    assert_eq!((text_of(parts).as_str(), calls.len()), ("Let me look.", 1));
    assert!(*success && output.contains("hello"), "{output}");
    assert_settled(driver.session());
    assert_saved(&driver).await;
}

/// SPEC 3.4: calls that only read run side by side; their results are recorded as they come and sent in call order.
#[tokio::test]
async fn readers_side_by_side() {
    let counted = watch::channel(0).0;
    let count = counted.clone();
    // Each call waits until the one behind it is being recorded: one after another, they would wait for ever.
    let store = Watched::deciding(Arc::new(MemoryStore::new()), move |_, drafts| {
        if drafts.iter().any(|draft| matches!(draft.body, Body::ToolResult(_))) {
            count.send_modify(|count| *count += 1);
        }
        Fate::Write
    });
    let probe = Probe::reader("probe", Doing::After(counted));
    let calls = [r#"{"n":2}"#, r#"{"n":1}"#, r#"{"n":0}"#].map(|arguments| ("probe", arguments));
    let world = World::over(store, [Act::calls(&calls), Act::text("done")], vec![probe.clone()]);
    let mut driver = world.driver();
    finish(&mut driver, "go").await;
    let recorded: Vec<&str> = results(driver.session())
        .iter()
        .map(|result| result.tool_call_id.as_str())
        .collect();
    assert_eq!(recorded, ["call_1_3", "call_1_2", "call_1_1"]);
    let sent = told(&world.model.asked()[1].messages);
    let sent: Vec<&str> = sent.iter().map(|(call, _)| call.as_str()).collect();
    assert_eq!(sent, ["call_1_1", "call_1_2", "call_1_3"]);
    assert_eq!(probe.runs(), 3);
    assert_settled(driver.session());
}

/// SPEC 3.4: calls that may change something run one after another, and so do readers where that is configured.
#[tokio::test]
async fn one_after_another() {
    for reads in [false, true] {
        let answer = || Doing::Answer("ran".to_owned());
        let probe = if reads {
            Probe::reader("probe", answer())
        } else {
            Probe::writer("probe", answer())
        };
        let calls = [r#"{"n":1}"#, r#"{"n":2}"#].map(|arguments| ("probe", arguments));
        let world = World::with([Act::calls(&calls), Act::text("done")], vec![probe]).full();
        world.engine.update(|settings| settings.parallel = false);
        let mut driver = world.driver();
        finish(&mut driver, "go").await;
        let all = kinds(driver.session());
        let runs: Vec<&str> = all
            .into_iter()
            .filter(|kind| ["call_started", "tool_result"].contains(kind))
            .collect();
        assert_eq!(runs, ["call_started", "tool_result", "call_started", "tool_result"]);
        assert_settled(driver.session());
    }
}

/// SPEC 7.4: the same call twice in one reply runs once and is answered twice.
#[tokio::test]
async fn duplicates_run_once() {
    let probe = Probe::writer("probe", Doing::Answer("ran".to_owned()));
    let calls = [
        ("probe", r#"{"n":1}"#),
        ("probe", r#"{ "n": 1 }"#),
        ("probe", r#"{"n":2}"#),
    ];
    let world = World::with([Act::calls(&calls), Act::text("done")], vec![probe.clone()]).full();
    let mut driver = world.driver();
    finish(&mut driver, "go").await;
    assert_eq!(probe.runs(), 2);
    let sent = told(&world.model.asked()[1].messages);
    assert_eq!(sent[0].1, sent[1].1);
    assert_ne!(sent[0].1, sent[2].1);
    let ends: Vec<ResultEnd> = results(driver.session()).iter().map(|result| result.end).collect();
    assert_eq!(ends, [ResultEnd::Completed, ResultEnd::Duplicate, ResultEnd::Completed]);
}

/// SPEC 3.6: at the limit the last result says so, the model sums up without tools, and what it calls all the same is
/// answered and not run.
#[tokio::test]
async fn the_limit_of_rounds() {
    let round = |n| Act::calls(&[("probe", format!(r#"{{"n":{n}}}"#).as_str())]);
    let limit_fields = |output: &str| {
        output.contains(r#""limit_reached":true"#)
            && output.contains(r#""limit_message":"Tool call limit reached (2). Stopping tool loop.""#)
    };
    for sums_up in [true, false] {
        let probe = Probe::reader("probe", Doing::Answer("ran".to_owned()));
        let last = if sums_up { Act::text("that is all") } else { round(3) };
        let world = World::with([round(1), round(2), last], vec![probe.clone()]);
        world.engine.update(|settings| settings.limits.max_tool_turns = 2);
        let notices = Notices::new();
        let mut driver = world.driver();
        driver.start("go on and on", Vec::new()).await.unwrap();
        let finished = support::done(within(driver.drive(&notices, never())).await.unwrap());
        assert_eq!((finished.reason, probe.runs()), (StopReason::Limit, 2));
        let choices: Vec<ToolChoice> = world.model.asked().iter().map(|asked| asked.tool_choice).collect();
        assert_eq!(choices, [ToolChoice::Auto, ToolChoice::Auto, ToolChoice::None]);
        let outputs: Vec<&str> = results(driver.session())
            .iter()
            .map(|result| result.output.as_str())
            .collect();
        assert!(!limit_fields(outputs[0]) && limit_fields(outputs[1]), "{outputs:?}");
        let lines = support::statuses(&notices);
        assert!(
            lines.iter().any(|line| line == "tool-call depth limit reached"),
            "{lines:?}"
        );
        if sums_up {
            assert_eq!((outputs.len(), finished.reply.as_str()), (2, "that is all"));
        } else {
            assert_eq!(results(driver.session())[2].end, ResultEnd::Limit);
            assert_eq!(
                outputs[2],
                r#"{"error":"Tool call limit reached (2). Stopping tool loop."}"#
            );
        }
        assert_settled(driver.session());
    }
}

/// SPEC 3.6: rounds with calls of MCP tools have a limit of their own, which others do not use up.
#[tokio::test]
async fn the_limit_of_remote_rounds() {
    let mcp = Probe::mcp("desk.probe", Doing::Answer("ran".to_owned()));
    let reader = Probe::reader("reader", Doing::Answer("read".to_owned()));
    let round = |tool| Act::calls(&[(tool, r#"{"n":1}"#)]);
    let acts = [
        round("reader"),
        round("reader"),
        round("desk.probe"),
        Act::text("that is all"),
    ];
    let world = World::with(acts, vec![mcp.clone(), reader.clone()]).full();
    world.engine.update(|settings| settings.limits.max_tool_depth = 1);
    let mut driver = world.driver();
    let finished = finish(&mut driver, "go").await;
    assert_eq!((finished.reason, mcp.runs(), reader.runs()), (StopReason::Limit, 1, 2));
    assert_eq!(world.model.asked()[3].tool_choice, ToolChoice::None);
    assert_settled(driver.session());
}

/// A tool that panics fails its call, not the session.
#[tokio::test]
async fn a_tool_that_panics() {
    let probe = Probe::reader("probe", Doing::Panic);
    let world = World::with(
        [Act::calls(&[("probe", r#"{"n":1}"#)]), Act::text("a pity")],
        vec![probe],
    );
    let mut driver = world.driver();
    let finished = finish(&mut driver, "go").await;
    assert_eq!(finished.reply, "a pity");
    let results = results(driver.session());
    assert!(!results[0].success && results[0].output.contains("the tool failed inside aish itself"));
    assert_settled(driver.session());
}

/// SPEC 3.5a, 3.7: cancelling closes the turn at once, though the tool has not ended; what it comes to later is kept in the
/// ledger and not sent.
#[tokio::test]
async fn cancelled_while_a_tool_runs() {
    let latch = Latch::new();
    let probe = Probe::writer("probe", Doing::Insist(latch.clone()));
    let acts = [Act::calls(&[("probe", r#"{"n":1}"#)]), Act::text("next answer")];
    let world = World::with(acts, vec![probe]).full();
    let (stop, cancel) = watch::channel(false);
    let mut driver = world.driver();
    driver.start("go", Vec::new()).await.unwrap();
    let stopping = async {
        latch.began().await;
        stop.send_replace(true);
    };
    let notices = Notices::new();
    let (outcome, ()) = within(async { tokio::join!(driver.drive(&notices, cancel), stopping) }).await;
    let finished = support::done(outcome.unwrap());
    assert_eq!(finished.reason, StopReason::Cancelled);
    assert_eq!(finished.reply, "[stopped: interrupted by the user]");
    assert_eq!(results(driver.session())[0].end, ResultEnd::Interrupted);
    assert_settled(driver.session());

    latch.open();
    within(driver.settle()).await;
    let all = results(driver.session());
    assert_eq!((all.len(), all[1].success), (2, true));
    finish(&mut driver, "and now?").await;
    let sent = told(&world.model.asked()[1].messages);
    assert!(sent.len() == 1 && sent[0].1.contains("interrupted"), "{sent:?}");
    assert_settled(driver.session());
    assert_saved(&driver).await;
}

/// SPEC 3.7: interrupted while it was saying something, a reply is kept as far as it came.
#[tokio::test]
async fn cancelled_while_the_model_speaks() {
    let said = Act::Hang(vec![Delta::Text("once upon".to_owned())]);
    let world = World::new([said]);
    let (stop, cancel) = watch::channel(false);
    let mut driver = world.driver();
    driver.start("a story", Vec::new()).await.unwrap();
    let notices = Notices::new();
    let stopping = async {
        loop {
            notices.changed().await;
            if notices.drain().contains(&Notice::Text("once upon".to_owned())) {
                stop.send_replace(true);
                return;
            }
        }
    };
    let (outcome, ()) = within(async { tokio::join!(driver.drive(&notices, cancel), stopping) }).await;
    let finished = support::done(outcome.unwrap());
    assert_eq!(finished.reason, StopReason::Cancelled);
    assert_eq!(finished.reply, "once upon\n[stopped: interrupted by the user]");
    assert_settled(driver.session());
    assert_saved(&driver).await;
}

/// SPEC 7.8: the static text first, then where the session began and the project's instructions; no tool is named in it, and
/// it does not change from round to round.
#[tokio::test]
async fn the_system_prompt() {
    let world = World::new([Act::calls(&[("glob", r#"{"pattern":"*"}"#)]), Act::text("yes")]);
    world
        .engine
        .update(|settings| settings.instructions = "Use tabs.".to_owned());
    let mut driver = world.driver();
    finish(&mut driver, "hm?").await;
    let asked = world.model.asked();
    let folder = world.folder.to_string_lossy();
    assert_eq!(
        asked[0].system,
        format!("{SYSTEM_PROMPT}\nWorking directory at the start: {folder}\n\nUse tabs.")
    );
    assert_eq!(asked[0].system, asked[1].system);
    assert_eq!(asked[0].tools, asked[1].tools);
    for tool in &asked[0].tools {
        assert!(!SYSTEM_PROMPT.contains(tool.name.as_str()), "{}", tool.name);
    }
    for needed in ["tools field", "next message"] {
        assert!(SYSTEM_PROMPT.contains(needed), "{needed}");
    }
}

/// SPEC 6.7: without tools the request has none, and a model that calls one all the same has it not run.
#[tokio::test]
async fn no_tools() {
    let probe = Probe::reader("probe", Doing::Answer("ran".to_owned()));
    let acts = [Act::calls(&[("probe", r#"{"n":1}"#)]), Act::text("I see")];
    let world = World::with(acts, vec![probe.clone()]).full();
    world.engine.update(|settings| settings.tools = false);
    let mut driver = world.driver();
    finish(&mut driver, "hm?").await;
    let asked = world.model.asked();
    assert!(asked.iter().all(|asked| asked.tools.is_empty()));
    assert_eq!(told(&asked[1].messages)[0].1, r#"{"error":"Unknown tool: probe"}"#);
    assert_eq!(probe.runs(), 0);
}

/// SPEC 3.2: what a call is doing ends with the driver: a drive that is given up leaves nothing running behind it.
#[tokio::test]
async fn a_drive_that_is_given_up() {
    let latch = Latch::new();
    let probe = Probe::writer("probe", Doing::Insist(latch.clone()));
    let world = World::with(
        [Act::calls(&[("probe", r#"{"n":1}"#)]), Act::text("so")],
        vec![probe.clone()],
    )
    .full();
    let held = Arc::strong_count(&probe);
    let mut driver = world.driver();
    driver.start("go", Vec::new()).await.unwrap();
    let notices = Notices::new();
    within(async {
        tokio::select! {
            () = latch.began() => {}
            _ = driver.drive(&notices, never()) => panic!("the tool was never let go"),
        }
        // The task holds the tool for as long as it runs.
        while Arc::strong_count(&probe) > held {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let finished = support::done(support::drive(&mut driver).await.unwrap());
    assert_eq!((finished.reply.as_str(), probe.runs()), ("so", 1));
    assert_eq!(results(driver.session())[0].end, ResultEnd::Interrupted);
    assert_settled(driver.session());
}

/// More calls than run side by side at once: each runs once, and the results are sent in call order.
#[tokio::test]
async fn many_readers() {
    const CALLS: usize = 30;
    let probe = Probe::reader("probe", Doing::Answer("read".to_owned()));
    let arguments: Vec<String> = (0..CALLS).map(|n| format!(r#"{{"n":{n}}}"#)).collect();
    let calls: Vec<(&str, &str)> = arguments.iter().map(|text| ("probe", text.as_str())).collect();
    let world = World::with([Act::calls(&calls), Act::text("done")], vec![probe.clone()]);
    let mut driver = world.driver();
    finish(&mut driver, "go").await;
    let sent: Vec<String> = told(&world.model.asked()[1].messages)
        .into_iter()
        .map(|(_, text)| text)
        .collect();
    let expected: Vec<String> = (0..CALLS).map(|n| format!(r#"{{"output":"read {n}"}}"#)).collect();
    assert_eq!((sent, probe.runs()), (expected, CALLS));
    assert_settled(driver.session());
}
