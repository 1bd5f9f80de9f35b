//! Turns at the prompt: drive, ask where a person must say yes, drive on (SPEC 3, 5).

use super::front::Front;
use super::{Kind, Repl, ReplError, SaveRule, Wait};
use crate::asking::{self, Asker};
use crate::directory::{self, Gone};
use crate::failure::broken_turn;
use crate::paths::Environment;
use crate::term::Look;
use crate::term::approval::{self, Decision, Question};
use crate::term::tty::{Line, Passed, Person as _, Tty};
use crate::usage::{self, Tally};
use aish_core::message::Part;
use aish_core::turn::{Step, StopReason, Turn};
use aish_engine::{EngineError, Finished, Outcome, Pending, Proposals, Questioned};
use aish_tools::Cancel;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

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
    /// A line the person typed for the model: the files it names go along.
    pub(super) async fn ask_model(&mut self, text: &str) -> Result<TurnEnd, ReplError> {
        match self.mentioned(text).await {
            Ok(mentioned) => {
                for remark in &mentioned.remarks {
                    self.front.say(remark).await;
                }
                self.say_to_model(text, mentioned.parts).await
            }
            Err(problem) => {
                self.front.say(&format!("not asked: {problem}")).await;
                Ok(TurnEnd::Failed)
            }
        }
    }

    /// A message, through to its end.
    pub(super) async fn say_to_model(&mut self, text: &str, parts: Vec<Part>) -> Result<TurnEnd, ReplError> {
        match self.wait_for_model().await {
            Wait::Over => {}
            Wait::Cancelled => return Ok(TurnEnd::Over(StopReason::Cancelled)),
        }
        if let Err(error) = self.driver.catch_up().await {
            return self.failed(&error).await;
        }
        if let Some(turn) = self.turn_of_an_app() {
            self.front.say("the conversation waits for its client").await;
            match self.end_for_app(turn).await? {
                TurnEnd::Over(_) => {}
                end @ (TurnEnd::Waiting | TurnEnd::Failed) => return Ok(end),
            }
        }
        match self.driver.start(text, parts).await {
            Ok(()) => {
                self.options.mcp.tell_missing();
                self.drive_on().await
            }
            Err(error) => self.failed(&error).await,
        }
    }

    /// The open turn, through to its end, in the directory it began in.
    pub(super) async fn drive_on(&mut self) -> Result<TurnEnd, ReplError> {
        match self.wait_for_model().await {
            Wait::Over => {}
            Wait::Cancelled => return Ok(TurnEnd::Waiting),
        }
        self.lend_environment().await;
        let elsewhere = match directory::enter(&self.engine, self.driver.session()) {
            Ok(elsewhere) => elsewhere,
            Err(gone) => return self.directory_gone(&gone).await,
        };
        if let Some(elsewhere) = &elsewhere {
            self.front.say(&elsewhere.line()).await;
        }
        // A shell can be lost; what cannot be run is not asked for.
        let proposals = match self.shell {
            Some(_) => Proposals::Offered,
            None => Proposals::NotOffered,
        };
        self.engine.update(|settings| settings.proposals = proposals);
        self.front.lead(self.driver.steering());
        let end = self.drive_to_end().await;
        self.front.lead(None);
        if let Some(elsewhere) = elsewhere {
            elsewhere.leave(&self.engine);
        }
        let end = end?;
        if end == TurnEnd::Over(StopReason::Limit) && self.wants_to_go_on().await {
            return Box::pin(self.say_to_model(GO_ON, Vec::new())).await;
        }
        if let TurnEnd::Over(_) = end {
            self.offer_proposals().await?;
        }
        Ok(end)
    }

    /// Nothing can be said in a session whose turn is open: one that cannot go on must at least be ended.
    async fn directory_gone(&mut self, gone: &Gone) -> Result<TurnEnd, ReplError> {
        self.front.say(&gone.to_string()).await;
        if self.wants_to_end().await {
            return self.end_turn().await;
        }
        Ok(TurnEnd::Waiting)
    }

    /// The open turn, if only an app can go on with it, which may be gone for good.
    fn turn_of_an_app(&self) -> Option<u64> {
        let turn = self.driver.session().open_turn()?;
        matches!(turn.next(), Step::AwaitClient(_)).then(|| turn.number())
    }

    /// Ends that turn of an app if the person wants that and the app has not come back while they were asked: what goes on is
    /// not what they were asked about.
    async fn end_for_app(&mut self, turn: u64) -> Result<TurnEnd, ReplError> {
        if !self.wants_to_end().await {
            return Ok(TurnEnd::Waiting);
        }
        if let Err(error) = self.driver.catch_up().await {
            return self.failed(&error).await;
        }
        if self.turn_of_an_app() == Some(turn) {
            return self.end_turn().await;
        }
        self.front
            .say("not ended: its client has answered meanwhile, and the conversation has gone on")
            .await;
        Ok(TurnEnd::Waiting)
    }

    /// No where nobody can be asked.
    async fn wants_to_end(&mut self) -> bool {
        let answer = self.ask_line("end the turn instead? [y/N] ").await;
        answer.is_some_and(|line| line.starts_with(['y', 'Y']))
    }

    async fn end_turn(&mut self) -> Result<TurnEnd, ReplError> {
        match self.driver.cancel(INTERRUPTED).await {
            Ok(finished) => Ok(TurnEnd::Over(finished.reason)),
            Err(error) => self.failed(&error).await,
        }
    }

    async fn drive_to_end(&mut self) -> Result<TurnEnd, ReplError> {
        // A question that comes while the person is asked about a call waits for the next stretch of the turn.
        let _questions = self.front.keep_questions();
        let mut tried = Vec::new();
        let finished = loop {
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
                Ok(Outcome::Questions(questions)) => {
                    if self.front.leave_status().is_none() && asking::attend(&mut self.driver, &questions, &mut tried) {
                        continue;
                    }
                    return self.waits_for_answers(&questions).await;
                }
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
        self.report(&finished).await;
        self.show_usage().await;
        Ok(TurnEnd::Over(finished.reason))
    }

    /// One line on what the turn used, for a person who watches.
    async fn show_usage(&mut self) {
        match self.kind {
            Kind::Piped => {}
            Kind::Edited | Kind::Dumb => {
                if let Some(line) = self.last_turn().line(self.driver.context_fill()) {
                    self.front.say(&line).await;
                }
            }
        }
    }

    /// What `:usage` shows.
    pub(super) fn usage_report(&self) -> String {
        let session = Tally::of(self.driver.session().events(), &self.options.prices);
        usage::report(&self.last_turn(), &session, self.driver.context_fill())
    }

    fn last_turn(&self) -> Tally {
        let session = self.driver.session();
        let turn = session.turn().map_or(0, Turn::number);
        Tally::of_turn(session.events(), turn, &self.options.prices)
    }

    /// Asks about each call, until all have their answers or the turn was cancelled instead.
    async fn ask_all(&mut self, pending: &[Pending]) -> Result<Asked, EngineError> {
        let Some(tty) = Tty::open() else {
            return Ok(Asked::Nobody);
        };
        let mut asker = AtPrompt {
            front: &mut self.front,
            environment: &self.options.environment,
            save_rule: &mut self.options.save_rule,
        };
        match asking::ask_all(&mut asker, &mut self.driver, &tty, pending).await? {
            asking::Asked::Answered => return Ok(Asked::Answered),
            asking::Asked::Cancelled if self.front.leave_status().is_some() => return Ok(Asked::Leaving),
            asking::Asked::Cancelled => {}
            asking::Asked::Unreachable(error) => {
                self.front
                    .say(&format!("the terminal could not be asked: {error}"))
                    .await;
            }
        }
        self.driver.cancel(INTERRUPTED).await.map(Asked::Cancelled)
    }

    /// A line from the person at the terminal, for a question of ours; `None` where there is nobody, or no answer.
    pub(super) async fn ask_line(&mut self, question: &str) -> Option<String> {
        let tty = Tty::open()?;
        let question = question.to_owned();
        self.front.draw(|renderer, out| renderer.finish(out)).await;
        let line = self
            .front
            .watch_asking(|_, cancel| async move { tty.ask_line(question, cancel).await })
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

    async fn report(&mut self, finished: &Finished) {
        match finished.reason {
            StopReason::End | StopReason::Declined | StopReason::Limit => {}
            StopReason::Cancelled => self.front.say("stopped").await,
            StopReason::Truncated | StopReason::ModelFailed => {
                let turn = self.driver.session().turn();
                let line = broken_turn(turn, finished, &self.options.advice, "ask it to go on");
                self.front.say(&line).await;
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

    async fn waits_for_answers(&mut self, questions: &[Questioned]) -> Result<TurnEnd, ReplError> {
        for line in questions.iter().flat_map(asking::asked_lines) {
            self.front.say(&line).await;
        }
        let id = self.driver.session().id().clone();
        self.front
            .say(&format!(
                "the turn waits for an answer; at a terminal: aish resume {id}"
            ))
            .await;
        Ok(TurnEnd::Waiting)
    }

    async fn failed(&mut self, error: &EngineError) -> Result<TurnEnd, ReplError> {
        self.front.draw(|renderer, out| renderer.turn_over(out)).await;
        self.front.say(&error.to_string()).await;
        Ok(TurnEnd::Failed)
    }
}

/// The prompt's terminal, to ask at; Ctrl-C reaches the turn meanwhile.
struct AtPrompt<'a> {
    front: &'a mut Front,
    environment: &'a Environment,
    save_rule: &'a mut SaveRule,
}

impl Asker for AtPrompt<'_> {
    async fn decide(&mut self, tty: &Tty, question: &Question<'_>, taken_back: Cancel) -> io::Result<Decision> {
        let look = Look::detect(self.environment, tty.file());
        self.front.draw(|renderer, out| renderer.finish(out)).await;
        self.front
            .watch_asking(|_, cancel| async move {
                let stop = asking::either(cancel, taken_back);
                approval::decide(tty, question, look, &stop).await
            })
            .await
    }

    async fn pass_over(&mut self, tty: &Tty, time: Duration) -> io::Result<Passed> {
        // What is typed now was begun for the question that is gone: it is no line to type on.
        self.front.watch_alone(|_, cancel| tty.pass_over(time, cancel)).await
    }

    async fn say(&mut self, text: &str) {
        self.front.say(text).await;
    }

    fn save(&mut self, rule: &str) -> Result<PathBuf, String> {
        (self.save_rule)(rule)
    }
}
