//! Asking a person about the calls of a reply (SPEC 3.4, 5.3): the one way through it, for every front that has a terminal.
//!
//! Each answer is in the ledger before the next question is shown. An answer that reaches beyond its call is held against the
//! calls still open at once: what it covers is answered by the rule it made, not by the person a second time. A question that is
//! answered from somewhere else meanwhile is taken back, and what is typed for a moment after that is thrown away: it was typed for
//! that question, and must neither answer the next one nor be said to the model.

use crate::term::approval::{Decision, Question};
use crate::term::tty::{Passed, Tty};
use aish_core::event::{Answer, AnswerScope, AnsweredBy};
use aish_core::id::CallId;
use aish_core::policy::{Rule, Verdict};
use aish_engine::{AnswerRequest, Answered, Driver, EngineError, Pending, Questioned, Settled};
use aish_tools::{Cancel, cancelled};
use std::io;
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;
use tokio::sync::watch;

#[cfg(test)]
#[path = "asking_tests.rs"]
mod tests;

/// How long keys answer nothing after a question was taken back: nobody sees that and stops a finger faster.
const AFTER_TAKE_BACK: Duration = Duration::from_secs(1);

/// What a front does for the asking.
pub trait Asker {
    /// Puts one question to the person, until `taken_back` turns true.
    ///
    /// # Errors
    /// The terminal failed.
    async fn decide(&mut self, tty: &Tty, question: &Question<'_>, taken_back: Cancel) -> io::Result<Decision>;
    /// Throws away what is typed for that long.
    ///
    /// # Errors
    /// The terminal failed.
    async fn pass_over(&mut self, tty: &Tty, time: Duration) -> io::Result<Passed>;
    /// Tells the person one line.
    async fn say(&mut self, text: &str);
    /// Saves an allow rule; says in which file, or why not.
    ///
    /// # Errors
    /// One line.
    fn save(&mut self, rule: &str) -> Result<PathBuf, String>;
}

/// What asking came to.
#[derive(Debug)]
pub enum Asked {
    /// Every call has its answer.
    Answered,
    /// The person stopped the turn instead.
    Cancelled,
    /// The terminal failed in the middle of it: nobody has said yes.
    Unreachable(io::Error),
}

/// Says that somebody is here for what these calls ask in the middle; false where nobody is, or where the same calls were tried
/// last already: what keeps them waiting then is not the person's to change.
pub fn attend(driver: &mut Driver, questions: &[Questioned], tried: &mut Vec<CallId>) -> bool {
    let calls: Vec<CallId> = questions.iter().map(|question| question.call.call_id.clone()).collect();
    if calls == *tried || Tty::open().is_none() {
        return false;
    }
    *tried = calls;
    driver.attend();
    true
}

/// What a call that waits for an answer asks, a line for each question.
pub fn asked_lines(question: &Questioned) -> impl Iterator<Item = String> {
    let who = &question.call;
    question
        .asks
        .iter()
        .map(move |line| format!("{} asks: {line} ({})", who.tool, who.call_id))
}

/// Asks about each of these calls in order.
///
/// # Errors
/// An answer could not be recorded.
pub async fn ask_all(
    asker: &mut impl Asker,
    driver: &mut Driver,
    tty: &Tty,
    pending: &[Pending],
) -> Result<Asked, EngineError> {
    for (n, call) in pending.iter().enumerate() {
        // An answer to an earlier one may have covered it, and another process may have answered it.
        if !is_open(driver, &call.call_id) {
            continue;
        }
        let action = driver.action(&call.call_id);
        let question = Question {
            pending: call,
            action: action.as_ref(),
            place: (n + 1, pending.len()),
        };
        let request = match ask_one(asker, driver, tty, &question).await {
            One::Answer(request) => request,
            One::Elsewhere => continue,
            One::End(asked) => return Ok(asked),
        };
        let scope = request.scope;
        match driver.answer(request).await {
            Ok(Answered::Recorded) => {}
            Ok(Answered::Already) => say_what_is_lost(asker, call, scope).await,
            // Somebody else was faster, and what they said stands: driving on goes on from there.
            Err(EngineError::AnsweredOtherwise(_) | EngineError::NotPending(_)) => {
                asker
                    .say(&format!("{}: answered from somewhere else first", call.readable))
                    .await;
                continue;
            }
            Err(other) => return Err(other),
        }
        if scope != AnswerScope::Once {
            let rest = pending.get(n + 1..).unwrap_or_default();
            answer_covered(asker, driver, rest).await?;
        }
    }
    Ok(Asked::Answered)
}

/// What came of one question.
enum One {
    /// This is to be recorded.
    Answer(AnswerRequest),
    /// It is settled already.
    Elsewhere,
    /// No more is asked.
    End(Asked),
}

/// Asks about one call, again where what was said yes to cannot be done.
async fn ask_one(asker: &mut impl Asker, driver: &Driver, tty: &Tty, question: &Question<'_>) -> One {
    let call = question.pending;
    loop {
        let decided = match decided_here(asker, driver, tty, question).await {
            Ok(decided) => decided,
            Err(settled) => return taken_back(asker, tty, call, settled).await,
        };
        match decided {
            Ok(Decision::Once) => return One::Answer(approval(call, AnswerScope::Once)),
            Ok(Decision::Session) => return One::Answer(approval(call, AnswerScope::Session)),
            Ok(Decision::Save { rule }) => {
                if save(asker, driver, &rule).await {
                    return One::Answer(approval(call, AnswerScope::Saved));
                }
            }
            Ok(Decision::No { reason }) => {
                return One::Answer(AnswerRequest {
                    answer: Answer::Deny,
                    reason,
                    ..approval(call, AnswerScope::Once)
                });
            }
            Ok(Decision::Cancelled) => return One::End(Asked::Cancelled),
            Err(error) => return One::End(Asked::Unreachable(error)),
        }
    }
}

/// Tells that a question was taken back. What was read is what is answered (SPEC 3.3): the keys that were meant for it are let by
/// before anything else is shown that could take them.
async fn taken_back(asker: &mut impl Asker, tty: &Tty, call: &Pending, settled: Settled) -> One {
    asker.say(&format!("{}: {}", call.readable, settled.line())).await;
    match (asker.pass_over(tty, AFTER_TAKE_BACK).await, settled) {
        (Ok(Passed::Over), Settled::Approved | Settled::Declined) => One::Elsewhere,
        // Driving on ends it.
        (Ok(Passed::Over), Settled::Over) => One::End(Asked::Answered),
        (Ok(Passed::Cancelled), _) => One::End(Asked::Cancelled),
        (Err(error), _) => One::End(Asked::Unreachable(error)),
    }
}

/// Says what is not recorded of an answer that somebody else gave first: that holds with the reach that they gave it.
async fn say_what_is_lost(asker: &mut impl Asker, call: &Pending, scope: AnswerScope) {
    match scope {
        // A rule that was saved holds, whoever said yes to this call.
        AnswerScope::Once | AnswerScope::Saved => {}
        AnswerScope::Session => {
            let line = "approved from somewhere else first; nothing is allowed for the session";
            asker.say(&format!("{}: {line}", call.readable)).await;
        }
    }
}

/// What the person decides; or how somebody else settled it before they did.
async fn decided_here(
    asker: &mut impl Asker,
    driver: &Driver,
    tty: &Tty,
    question: &Question<'_>,
) -> Result<io::Result<Decision>, Settled> {
    let (take_back, taken_back) = watch::channel(false);
    let mut elsewhere = pin!(driver.settled_elsewhere(&question.pending.call_id));
    let mut deciding = pin!(asker.decide(tty, question, taken_back));
    tokio::select! {
        decided = &mut deciding => Ok(decided),
        settled = &mut elsewhere => {
            let _ = take_back.send(true);
            // It is waited for, so that the terminal is back in its mode.
            let _ = deciding.await;
            Err(settled)
        }
    }
}

/// Turns true once either does.
pub fn either(mut one: Cancel, mut other: Cancel) -> Cancel {
    let (sender, receiver) = watch::channel(*one.borrow() || *other.borrow());
    tokio::spawn(async move {
        tokio::select! {
            () = cancelled(&mut one) => {}
            () = cancelled(&mut other) => {}
            () = sender.closed() => return,
        }
        let _ = sender.send(true);
    });
    receiver
}

/// Why no rule is saved for a tool of a server that a project brings: it would hold for any project's server of that name.
const NO_RULE_FOR_GUESTS: &str =
    "the rule was not saved: rules speak of your own servers, and this one is the project's";

/// Saves a rule, in the file and for this process. False when it could not be saved: then the person is asked again, since
/// what they said yes to is not what would happen.
async fn save(asker: &mut impl Asker, driver: &Driver, rule: &str) -> bool {
    if driver.engine().settings().policy.is_of_guest(rule) {
        asker.say(NO_RULE_FOR_GUESTS).await;
        return false;
    }
    match asker.save(rule) {
        Ok(path) => {
            if let Ok(parsed) = Rule::parse(rule) {
                driver.engine().update(|settings| settings.policy.allow.push(parsed));
            }
            asker.say(&format!("saved in {}: allow {rule}", path.display())).await;
            true
        }
        Err(problem) => {
            asker.say(&format!("the rule was not saved: {problem}")).await;
            false
        }
    }
}

/// Judges calls anew, with what was granted meanwhile, and answers those that would no longer be asked about.
async fn answer_covered(asker: &mut impl Asker, driver: &mut Driver, rest: &[Pending]) -> Result<(), EngineError> {
    for call in rest
        .iter()
        .filter(|call| is_open(driver, &call.call_id))
        .cloned()
        .collect::<Vec<_>>()
    {
        let Some(rule) = covering_rule(driver, &call) else {
            continue;
        };
        asker.say(&format!("{}: {rule}", call.readable)).await;
        let request = AnswerRequest {
            by: AnsweredBy::Rule,
            reason: Some(rule),
            ..approval(&call, AnswerScope::Once)
        };
        driver.answer(request).await?;
    }
    Ok(())
}

/// The rule that allows this call now; `None` while it still has to be asked about, or would do something else than it did.
fn covering_rule(driver: &Driver, call: &Pending) -> Option<String> {
    let action = driver
        .action(&call.call_id)
        .filter(|action| action.digest() == call.digest)?;
    let turn = driver.session().turn()?;
    let source = turn.call(&call.call_id)?.source();
    let policy = driver.engine().settings().policy;
    let judged = policy.judge(&action, source, turn.settings().mode, driver.so_far());
    (judged.verdict == Verdict::Allow).then_some(judged.rule)
}

fn is_open(driver: &Driver, call: &CallId) -> bool {
    driver.pending().iter().any(|open| open.call_id == *call)
}

/// A yes to what was shown.
fn approval(call: &Pending, scope: AnswerScope) -> AnswerRequest {
    AnswerRequest {
        call_id: call.call_id.clone(),
        digest: Some(call.digest.as_str().to_owned()),
        answer: Answer::Approve,
        scope,
        by: AnsweredBy::Terminal,
        reason: None,
    }
}
