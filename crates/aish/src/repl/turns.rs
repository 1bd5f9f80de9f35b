//! Turns at the prompt: drive, ask where a person must say yes, drive on (SPEC 3, 5).

use super::{Repl, ReplError};
use crate::term::Look;
use crate::term::approval::{self, Decision, Question};
use crate::term::tty::{Line, Person as _, Tty};
use aish_core::event::{Answer, AnswerScope, AnsweredBy};
use aish_core::policy::Rule;
use aish_core::turn::StopReason;
use aish_engine::{AnswerRequest, EngineError, Finished, Outcome, Pending};

/// What a turn that was stopped says of itself.
const INTERRUPTED: &str = "interrupted by the user";
/// What goes on after a limit (SPEC 3.6), as a message of the person's.
const GO_ON: &str = "Go on.";

/// How driving a turn came to an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnEnd {
    /// The turn is over.
    Over(StopReason),
    /// It waits in the ledger for somebody else.
    Waiting,
    /// It could not be driven; the person was told.
    Failed,
}

/// What asking came to.
enum Asked {
    Answered,
    Cancelled(Finished),
    Nobody,
    /// The program has to leave: the question stays in the ledger for whoever comes next.
    Leaving,
}

impl Repl {
    /// A message of the person's, through to its end.
    pub(super) async fn say_to_model(&mut self, text: &str) -> Result<TurnEnd, ReplError> {
        match self.driver.start(text, Vec::new()).await {
            Ok(()) => self.drive_on().await,
            Err(error) => self.failed(&error).await,
        }
    }

    /// The open turn, through to its end.
    pub(super) async fn drive_on(&mut self) -> Result<TurnEnd, ReplError> {
        let mut finished = loop {
            let driver = &mut self.driver;
            let outcome = self
                .front
                .watch(|notices, cancel| async move { driver.drive(&notices, cancel).await })
                .await;
            let pending = match outcome {
                Err(error) => return self.failed(&error).await,
                Ok(Outcome::Done(finished)) => break finished,
                Ok(Outcome::AwaitingClient(pending)) => return self.waits_for_client(&pending).await,
                Ok(Outcome::Asking(pending)) => pending,
            };
            if self.front.leave_status().is_some() {
                return Ok(TurnEnd::Waiting);
            }
            match self.ask_all(&pending).await {
                Ok(Asked::Answered) => {}
                Ok(Asked::Cancelled(finished)) => break finished,
                Ok(Asked::Leaving) => return Ok(TurnEnd::Waiting),
                Ok(Asked::Nobody) => return self.waits_for_person(&pending).await,
                Err(error) => return self.failed(&error).await,
            }
        };
        self.front.draw(|renderer, out| renderer.turn_over(out)).await;
        let reason = finished.reason;
        self.report(&mut finished).await;
        if reason == StopReason::Limit && self.wants_to_go_on().await {
            return Box::pin(self.say_to_model(GO_ON)).await;
        }
        Ok(TurnEnd::Over(reason))
    }

    /// Asks about each call in order; the answers are in the ledger one by one (SPEC 3.4).
    async fn ask_all(&mut self, pending: &[Pending]) -> Result<Asked, EngineError> {
        let Some(tty) = Tty::open() else {
            return Ok(Asked::Nobody);
        };
        for (n, call) in pending.iter().enumerate() {
            // An answer for the session may have covered this one, and another process may have answered it.
            if !self.driver.pending().iter().any(|open| open.call_id == call.call_id) {
                continue;
            }
            let place = (n + 1, pending.len());
            match self.ask_one(&tty, call, place).await? {
                Asked::Answered => {}
                other @ (Asked::Cancelled(_) | Asked::Nobody | Asked::Leaving) => return Ok(other),
            }
        }
        Ok(Asked::Answered)
    }

    /// Asks about one call, until there is an answer in the ledger or the turn was cancelled instead.
    async fn ask_one(&mut self, tty: &Tty, call: &Pending, place: (usize, usize)) -> Result<Asked, EngineError> {
        let action = self.driver.action(&call.call_id);
        let question = Question {
            pending: call,
            action: action.as_ref(),
            place,
        };
        loop {
            let look = Look::detect(&self.options.environment, tty.file());
            self.front.draw(|renderer, out| renderer.finish(out)).await;
            let decided = self
                .front
                .watch(|_, cancel| {
                    let question = &question;
                    async move { approval::decide(tty, question, look, &cancel).await }
                })
                .await;
            let (answer, scope, reason) = match decided {
                Ok(Decision::Once) => (Answer::Approve, AnswerScope::Once, None),
                Ok(Decision::Session) => (Answer::Approve, AnswerScope::Session, None),
                Ok(Decision::Save { rule }) => {
                    if !self.save(&rule).await {
                        continue;
                    }
                    (Answer::Approve, AnswerScope::Saved, None)
                }
                Ok(Decision::No { reason }) => (Answer::Deny, AnswerScope::Once, reason),
                Ok(Decision::Cancelled) if self.front.leave_status().is_some() => return Ok(Asked::Leaving),
                Ok(Decision::Cancelled) => return self.driver.cancel(INTERRUPTED).await.map(Asked::Cancelled),
                // A terminal that fails in the middle of a question has not said yes.
                Err(error) => {
                    self.front
                        .say(&format!("the terminal could not be asked: {error}"))
                        .await;
                    return self.driver.cancel(INTERRUPTED).await.map(Asked::Cancelled);
                }
            };
            let request = AnswerRequest {
                call_id: call.call_id.clone(),
                digest: Some(call.digest.as_str().to_owned()),
                answer,
                scope,
                by: AnsweredBy::Terminal,
                reason,
            };
            self.driver.answer(request).await?;
            return Ok(Asked::Answered);
        }
    }

    /// Saves a rule, in the file and for this process. False when it could not be saved: the person was told.
    async fn save(&mut self, rule: &str) -> bool {
        match (self.options.save_rule)(rule) {
            Ok(path) => {
                if let Ok(parsed) = Rule::parse(rule) {
                    self.engine.update(|settings| settings.policy.allow.push(parsed));
                }
                self.front
                    .say(&format!("saved in {}: allow {rule}", path.display()))
                    .await;
                true
            }
            Err(problem) => {
                self.front.say(&format!("the rule was not saved: {problem}")).await;
                false
            }
        }
    }

    /// A line from the person at the terminal, for a question of ours; `None` where there is nobody, or no answer.
    pub(super) async fn ask_line(&mut self, question: &str) -> Option<String> {
        let tty = Tty::open()?;
        let question = question.to_owned();
        self.front.draw(|renderer, out| renderer.finish(out)).await;
        let line = self
            .front
            .watch(|_, cancel| async move { tty.ask_line(question, cancel).await })
            .await;
        match line {
            Ok(Line::Said(line)) => Some(line),
            Ok(Line::End | Line::Cancelled) | Err(_) => None,
        }
    }

    async fn wants_to_go_on(&mut self) -> bool {
        let rounds = self.engine.settings().limits.max_tool_turns;
        let question = format!("go on, for up to {rounds} more rounds of calls? [y/N] ");
        let answer = self.ask_line(&question).await;
        answer.is_some_and(|line| line.starts_with(['y', 'Y']))
    }

    async fn report(&mut self, finished: &mut Finished) {
        match finished.reason {
            StopReason::End | StopReason::Declined | StopReason::Limit => {}
            StopReason::Cancelled => self.front.say("stopped").await,
            StopReason::Truncated => self.front.say("the reply was cut off; ask it to go on").await,
            StopReason::ModelFailed => {
                let problem = finished
                    .problem
                    .take()
                    .unwrap_or_else(|| "the model gave no answer".to_owned());
                self.front.say(&format!("no reply: {problem}")).await;
            }
        }
    }

    async fn waits_for_client(&mut self, pending: &[Pending]) -> Result<TurnEnd, ReplError> {
        for call in pending {
            self.front
                .say(&format!("waits for its client: {}", call.readable))
                .await;
        }
        self.front
            .say(&format!(
                "session {} goes on when the client answers",
                self.driver.session().id()
            ))
            .await;
        Ok(TurnEnd::Waiting)
    }

    async fn waits_for_person(&mut self, pending: &[Pending]) -> Result<TurnEnd, ReplError> {
        for call in pending {
            self.front
                .say(&format!("approval needed: {} ({})", call.readable, call.call_id))
                .await;
        }
        let id = self.driver.session().id().clone();
        self.front
            .say(&format!("nobody can be asked here; at a terminal: aish resume {id}"))
            .await;
        Ok(TurnEnd::Waiting)
    }

    async fn failed(&mut self, error: &EngineError) -> Result<TurnEnd, ReplError> {
        self.front.draw(|renderer, out| renderer.turn_over(out)).await;
        self.front.say(&error.to_string()).await;
        Ok(TurnEnd::Failed)
    }
}
