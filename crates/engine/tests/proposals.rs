//! The person's own shell as the model hears of it: what was run there since the last question (SPEC 8.3), and what a reply may
//! propose for it (SPEC 8.4).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use aish_core::event::{AnsweredBy, Body, Command, Proposed, Refusal, Refused, ReplyStop};
use aish_core::id::ReplyId;
use aish_core::message::{Message, Part};
use aish_core::policy::{ApprovalMode, Rule, Verdict};
use aish_core::redact::Redactor;
use aish_engine::{Driver, Model, Models, Proposals};
use aish_provider::scripted::Act;
use aish_provider::{Delta, Reply};
use std::sync::Arc;
use support::{World, assert_saved, finish};

fn command(line: &str, status: i32, output: &str) -> Command {
    Command {
        line: line.to_owned(),
        status: Some(status),
        output: output.to_owned(),
        ..Command::default()
    }
}

async fn ran(driver: &mut Driver, line: &str, status: i32, output: &str) {
    driver.record_command(&command(line, status, output)).await.unwrap();
}

/// What went along with the last question, as `label: text`.
fn context(messages: &[Message]) -> Vec<String> {
    let Some(Message::User { parts }) = messages
        .iter()
        .rev()
        .find(|message| matches!(message, Message::User { .. }))
    else {
        return Vec::new();
    };
    let context = parts.iter().filter_map(|part| match part {
        Part::Context { label, text } => Some(format!("{label}: {text}")),
        Part::Text { .. }
        | Part::Thinking { .. }
        | Part::Image { .. }
        | Part::Provider { .. }
        | Part::Call { .. }
        | Part::PartialCall { .. } => None,
    });
    context.collect()
}

fn world(replies: usize) -> World {
    World::new((0..replies).map(|n| Act::text(&format!("answer {n}"))))
}

/// A reply that reached its length limit in the middle.
fn cut_reply(text: &str) -> Act {
    Act::Reply {
        deltas: vec![Delta::Text(text.to_owned())],
        reply: Reply {
            parts: vec![Part::text(text)],
            calls: Vec::new(),
            stop: ReplyStop::Length,
            usage: None,
            model: None,
            error: None,
            reason: None,
            remarks: Vec::new(),
        },
    }
}

/// SPEC 8.3: commands go along with the next question, in order, with status and output, as a part of that message; and only
/// with that one. Later requests begin as this one did.
#[tokio::test]
async fn commands_go_along_once() {
    let world = world(2);
    let mut driver = world.driver();
    ran(&mut driver, "make \"a\" > log", 2, "no rule\n").await;
    let elsewhere = Command {
        status: None,
        directory: "/srv/app".to_owned(),
        ..command("sleep 9", 0, "")
    };
    driver.record_command(&elsewhere).await.unwrap();
    finish(&mut driver, "why?").await;
    finish(&mut driver, "and now?").await;
    let asked = world.model.asked();
    assert_eq!(
        context(&asked[0].messages),
        [
            "command, exit 2: $ make \"a\" > log\nno rule\n",
            "command, ended by a signal, in /srv/app: $ sleep 9\n"
        ]
    );
    assert_eq!(context(&asked[1].messages), Vec::<String>::new());
    assert_eq!(asked[1].messages[..asked[0].messages.len()], asked[0].messages);
    assert_saved(&driver).await;
}

/// SPEC 8.3: what goes along is bounded: the newest commands win, those before are counted, and a huge output keeps its head and
/// its tail.
#[tokio::test]
async fn what_goes_along_is_bounded() {
    let world = world(2);
    let mut driver = world.driver();
    for n in 0..50 {
        ran(&mut driver, &format!("echo {n}"), 0, "x").await;
    }
    finish(&mut driver, "so?").await;
    let huge = format!("HEAD{}TAIL", "x".repeat(1_000_000));
    for line in ["one", "two", "three", "four"] {
        ran(&mut driver, line, 0, &huge).await;
    }
    finish(&mut driver, "and?").await;
    let asked = world.model.asked();
    let many = context(&asked[0].messages);
    assert_eq!(many.len(), 21);
    assert_eq!(many[0], "earlier commands: (30 more before these)");
    assert_eq!(many[20], "command, exit 0: $ echo 49\nx");
    let few = context(&asked[1].messages);
    assert_eq!(few[0], "earlier commands: (2 more before these)");
    assert!(
        few[2].contains("$ four\nHEAD") && few[2].ends_with("TAIL"),
        "{}",
        few[2]
    );
    let bytes: usize = few.iter().map(String::len).sum();
    assert!(bytes < 17_000, "{bytes}");
}

/// SPEC 8.3: a model with little room is told less, and has room left for its answer.
#[tokio::test]
async fn little_room() {
    let mut world = world(1);
    let engine = Arc::get_mut(&mut world.engine).unwrap();
    engine.models = Arc::new(Small(Arc::clone(&engine.models)));
    let mut driver = world.driver();
    for line in ["one", "two"] {
        ran(&mut driver, line, 0, &"x".repeat(50_000)).await;
    }
    finish(&mut driver, "so?").await;
    let told = context(&world.model.asked()[0].messages);
    assert_eq!(told[0], "earlier commands: (1 more before these)");
    assert!(told[1].contains("$ two") && told[1].len() < 2_000, "{}", told[1].len());
}

/// The models there are, with 2,048 tokens each.
struct Small(Arc<dyn Models>);

impl Models for Small {
    fn model(&self, name: &str) -> Result<Model, String> {
        let model = self.0.model(name)?;
        Ok(Model {
            context_window: Some(2_048),
            ..model
        })
    }
}

/// SPEC 10.5: a key in a command's line, its directory or its output does not go along, wherever the output is cut.
#[tokio::test]
async fn no_secret_goes_along() {
    const KEY: &str = "hunter2hunter2hunter2";
    let mut world = world(1);
    let engine = Arc::get_mut(&mut world.engine).unwrap();
    engine.redactor = Redactor::new([("KEY".to_owned(), KEY.to_owned())]);
    let mut driver = world.driver();
    let output = KEY.repeat(2_000);
    ran(&mut driver, &format!("export KEY={KEY}"), 0, &output).await;
    let told = Command {
        directory: format!("/{KEY}"),
        ..command("pwd", 0, "")
    };
    driver.record_command(&told).await.unwrap();
    finish(&mut driver, "so?").await;
    let sent = format!("{:?}", world.model.asked()[0].messages);
    assert!(!sent.contains("hunter2"), "{sent}");
}

/// SPEC 8.4: the model is told of proposals only where they are offered, after what every request begins with.
#[tokio::test]
async fn proposals_are_told_of_where_they_are_offered() {
    let world = world(2);
    let mut driver = world.driver();
    finish(&mut driver, "hm?").await;
    world.engine.update(|settings| settings.proposals = Proposals::Offered);
    finish(&mut driver, "and now?").await;
    let asked = world.model.asked();
    assert!(!asked[0].system.contains("CMD:"), "{}", asked[0].system);
    assert!(asked[1].system.contains("CMD: "), "{}", asked[1].system);
    assert!(asked[1].system.starts_with(aish_engine::SYSTEM_PROMPT));
    assert_eq!(asked[0].tools, asked[1].tools);
}

/// SPEC 8.4: only the last reply of a turn that went well proposes anything, and only with what the model said itself.
#[tokio::test]
async fn the_last_reply() {
    let glob = ("glob", r#"{"pattern":"CMD: x"}"#);
    let world = World::new([
        Act::calls(&[glob]),
        Act::text("CMD: ls"),
        cut_reply("CMD: rm -rf /tmp/x"),
    ]);
    let mut driver = world.driver();
    assert_eq!(driver.last_reply(), None);
    finish(&mut driver, "go").await;
    let last = driver.last_reply().unwrap();
    assert_eq!((last.reply_id.as_str(), last.text.as_str()), ("reply_1_2", "CMD: ls"));
    finish(&mut driver, "go on").await;
    assert_eq!(driver.last_reply(), None, "it was cut");
}

/// SPEC 5.1, 5.2, 8.4: a proposed command is judged as the same command of the tool is: one digest, the same rules and modes.
#[tokio::test]
async fn proposed_commands_are_judged_as_calls_are() {
    let world = world(0);
    let driver = world.driver();
    let check = |line: &str, mode: ApprovalMode, verdict: Verdict, rule: &str| {
        world.engine.update(|settings| settings.mode = mode);
        let judged = driver.judge_command(line, None).unwrap().judgement;
        assert_eq!((judged.verdict, judged.rule.as_str()), (verdict, rule), "{line}");
    };
    world.engine.update(|settings| {
        settings.policy.deny = vec![Rule::parse("bash(rm *)").unwrap()];
        settings.policy.allow = vec![Rule::parse("bash(make test)").unwrap()];
    });
    check("ls", ApprovalMode::Ask, Verdict::Ask, "mode ask");
    check(
        "make test",
        ApprovalMode::Ask,
        Verdict::Allow,
        "allow rule bash(make test)",
    );
    check("rm x", ApprovalMode::Full, Verdict::Deny, "deny rule bash(rm *)");
    check("true; rm x", ApprovalMode::Full, Verdict::Deny, "deny rule bash(rm *)");
    check("ls", ApprovalMode::Full, Verdict::Allow, "mode full");
    assert!(driver.judge_command(" ", None).is_err());
    // SPEC 5.7: what the person's shell may read otherwise is allowed as a whole only.
    world.engine.update(|settings| {
        settings.mode = ApprovalMode::Ask;
        settings.policy.deny.clear();
        settings.policy.allow = vec![Rule::parse("bash(make *)").unwrap(), Rule::parse("bash(make)").unwrap()];
    });
    let judge = |line, doubt| driver.judge_command(line, doubt).unwrap().judgement.verdict;
    assert_eq!(judge("make test", None), Verdict::Allow);
    assert_eq!(judge("make test", Some("make is an alias")), Verdict::Ask);
    assert_eq!(judge("make", Some("make is an alias")), Verdict::Allow);

    let call = World::new([Act::calls(&[("bash", r#"{"command":"ls"}"#)])]);
    let mut asked = call.driver();
    let pending = support::asking(support::ask(&mut asked, "go").await);
    assert_eq!(
        asked.judge_command("ls", None).unwrap().action.digest(),
        pending[0].digest
    );
}

/// SPEC 5.5, 8.4: the ledger says how a proposed command came to be run, and the model hears of those that did not.
#[tokio::test]
async fn what_became_of_proposals() {
    let world = world(1);
    let mut driver = world.driver();
    let reply_id = ReplyId::nth(1, 1);
    let digest = driver.judge_command("ls", None).unwrap().action.digest();
    let proposed = Proposed {
        reply_id: reply_id.clone(),
        allowed: AnsweredBy::Terminal,
        rule: "mode ask".to_owned(),
        digest,
        instead_of: None,
    };
    let command = Command {
        proposed: Some(proposed),
        ..command("ls", 0, "a\n")
    };
    driver.record_command(&command).await.unwrap();
    let refused = Refused {
        line: "rm a".to_owned(),
        reply_id,
        why: Refusal::Declined,
        reason: Some("I need it".to_owned()),
    };
    driver.record_refused(&refused).await.unwrap();
    finish(&mut driver, "so?").await;
    assert_eq!(
        context(&world.model.asked()[0].messages),
        [
            "proposed command, exit 0: $ ls\na\n",
            "proposed command, not run: $ rm a\n(declined by the user: I need it)"
        ]
    );
    let reopened = world.reopened(&driver).await;
    let kept = reopened.session().events().iter();
    assert!(
        kept.map(|event| &event.body)
            .any(|body| *body == Body::Command(command.clone()))
    );
    assert_saved(&driver).await;
}
