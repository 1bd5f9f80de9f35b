//! What is in front of the engine in a one-shot run: two streams, and perhaps a terminal to ask at.

use super::eprint_line;
use super::written::{Page, Written};
use crate::app::App;
use crate::asking::{Asked, Asker, ask_all, asked_lines, attend, either};
use crate::cli::Output;
use crate::failure::{APPROVAL_NEEDED, DONE, FAILED, Failure, INTERRUPTED, broken_turn, model_advice};
use crate::mcp::clerk::{Busy, Clerk, answered, give_back, next_question};
use crate::models::Registry;
use crate::prices::Prices;
use crate::schema::Schema;
use crate::term::Look;
use crate::term::approval::{self, Decision, Question};
use crate::term::countdown::retry_text;
use crate::term::tty::{Passed, Tty};
use crate::usage::Tally;
use aish_core::Action;
use aish_core::event::ModelFailed;
use aish_core::redact::Redactor;
use aish_core::turn::{StopReason, Turn};
use aish_engine::{Answered, Driver, Finished, Notice, Notices, Outcome, Pending, Questioned};
use aish_markdown::Syntaxes;
use aish_tools::{Cancel, cancelled};
use serde_json::{Value, json};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// The least time between two writes of a reply: a fast stream is written in batches, and no eye sees the difference.
const WRITE_PAUSE_MS: u64 = 4;

/// What to do about a reply that was cut.
const GO_ON: &str = "`aish --continue -p 'go on'` asks it to go on";

/// Tells what happens, and asks where it can.
pub(super) struct Front<'a> {
    app: &'a App,
    registry: Arc<Registry>,
    pub(super) output: Output,
    pub(super) redactor: Redactor,
    pub(super) notices: Notices,
    cancel: Cancel,
    pub(super) page: Page,
    /// Answers servers that ask while the turn runs.
    clerk: Option<Clerk>,
    prices: Prices,
    /// What the reply must fit, if anything.
    schema: Option<Schema>,
    /// The first turn of this run, whose usage is told with that of all that follow; `None`: only the last one's.
    first_turn: Option<u64>,
}

/// How far a turn came.
pub(super) enum Ended {
    /// To its end.
    Done(Finished),
    /// It waits for an answer, and the person was told; the exit code.
    Waiting(u8),
}

impl<'a> Front<'a> {
    /// For this output; `cancel` turning true ends the turn.
    pub(super) fn new(app: &'a App, registry: Arc<Registry>, output: Output, cancel: Cancel) -> Self {
        let notices = if output == Output::Jsonl {
            Notices::with_events()
        } else {
            Notices::new()
        };
        Self {
            app,
            prices: app.prices(Arc::clone(&registry)),
            registry,
            output,
            redactor: app.redactor(),
            notices,
            cancel,
            page: Page {
                look: Look::detect(&app.environment, io::stdout()).wished(app.config().ui.wishes()),
                syntaxes: Syntaxes::new(),
            },
            clerk: None,
            schema: None,
            first_turn: None,
        }
    }

    /// The same, for a reply that must fit.
    pub(super) fn with_schema(self, schema: Option<Schema>) -> Self {
        Self { schema, ..self }
    }

    /// The same, with somebody who answers servers.
    pub(super) fn attending(self, clerk: Clerk) -> Self {
        let clerk = Some(clerk);
        Self { clerk, ..self }
    }

    /// The same, for a run that begins with the turn to come.
    pub(super) fn counting_from_next_turn(self, driver: &Driver) -> Self {
        let first_turn = Some(driver.session().next_turn());
        Self { first_turn, ..self }
    }

    /// Tells the person one line.
    pub(super) fn say(&self, text: &str) {
        eprint_line(&self.redactor.redact(text));
    }

    /// Tells what an answer of the command line did, if it was nothing.
    pub(super) fn answered(&self, answered: Answered, call: &str) {
        if answered == Answered::Already {
            self.say(&format!("{call} was answered so before"));
        }
    }

    /// Drives to the end, asking where it can; tells how it ended, and with which exit code.
    pub(super) async fn finish(&self, driver: &mut Driver) -> Result<u8, Failure> {
        if let Some(schema) = &self.schema {
            return self.finish_structured(driver, schema).await;
        }
        match self.turn(driver).await? {
            Ended::Done(finished) => {
                self.print_finished(driver, &finished, None);
                let code = self.tell_end(driver, &finished);
                driver.settle().await;
                Ok(code)
            }
            Ended::Waiting(code) => Ok(code),
        }
    }

    /// Drives one turn to its end, asking where it can.
    pub(super) async fn turn(&self, driver: &mut Driver) -> Result<Ended, Failure> {
        // A question that comes while the person is asked about a call waits for the next stretch of the turn.
        let _questions = self.clerk.as_ref().map(Clerk::open);
        let mut tried = Vec::new();
        loop {
            let pending = match self.drive(driver).await? {
                Outcome::Done(finished) => return Ok(Ended::Done(finished)),
                Outcome::Asking(pending) => pending,
                Outcome::Questions(questions) => {
                    if attend(driver, &questions, &mut tried) {
                        continue;
                    }
                    return Ok(Ended::Waiting(self.leave_asking(driver, &questions)));
                }
                Outcome::AwaitingClient(pending) => return Ok(Ended::Waiting(self.leave_to_client(driver, &pending))),
            };
            let Some(tty) = Tty::open() else {
                return Ok(Ended::Waiting(self.leave_waiting(driver, &pending)));
            };
            let mut asker = AtTerminal {
                front: self,
                look: Look::detect(&self.app.environment, tty.file()),
            };
            match ask_all(&mut asker, driver, &tty, &pending).await? {
                // Driving on ends a turn that was cancelled.
                Asked::Answered | Asked::Cancelled => {}
                Asked::Unreachable(error) => {
                    return Err(Failure::failed(format!("cannot ask at the terminal: {error}")));
                }
            }
        }
    }

    /// Drives until the turn is over or waits, writing what comes as it comes.
    pub(super) async fn drive(&self, driver: &mut Driver) -> Result<Outcome, Failure> {
        let mut written = Written::new(&self.redactor).on(&self.page);
        let driven = {
            let drive = driver.drive(&self.notices, self.cancel.clone());
            tokio::pin!(drive);
            let mut next_write = Instant::now();
            let mut cancel = self.cancel.clone();
            let _questions = self.clerk.as_ref().map(Clerk::open);
            let mut busy: Option<Busy> = None;
            loop {
                let due = async {
                    self.notices.changed().await;
                    sleep_until(next_write).await;
                };
                tokio::select! {
                    biased;
                    driven = &mut drive => {
                        give_back(busy).await;
                        break driven;
                    }
                    () = cancelled(&mut cancel), if busy.as_ref().is_some_and(Busy::is_open) => {
                        busy.iter().for_each(Busy::take_back);
                    }
                    () = answered(&mut busy) => { busy = None; }
                    ticket = next_question(self.clerk.as_ref()), if busy.is_none() => {
                        self.write(&mut written);
                        written.end_line();
                        busy = self.clerk.as_ref().map(|clerk| clerk.begin(ticket));
                    }
                    () = due, if busy.is_none() => {
                        self.write(&mut written);
                        next_write = Instant::now() + Duration::from_millis(WRITE_PAUSE_MS);
                    }
                }
            }
        };
        self.write(&mut written);
        written.end_line();
        Ok(driven?)
    }

    fn write(&self, written: &mut Written) {
        // What must fit a schema is held against it before anybody sees it.
        let streams = self.output == Output::Text && self.schema.is_none();
        for notice in self.notices.drain() {
            match notice {
                Notice::Text(text) if streams => written.text(&text),
                Notice::ReplyEnded if streams => written.end_line(),
                Notice::Recorded(event) if self.output == Output::Jsonl => {
                    written.json(&event.to_json().to_string());
                }
                Notice::Status(text) => self.say(&text),
                Notice::Retrying {
                    attempt,
                    wait_ms,
                    problem,
                } => {
                    self.say(&retry_text(&problem, attempt, Duration::from_millis(wait_ms)));
                }
                Notice::CallStep { tool, line, .. } => self.say(&format!("{tool}: {line}")),
                Notice::CallEnded { readable, summary, .. } => self.say(&format!("{readable}: {summary}")),
                Notice::Text(_)
                | Notice::ReplyEnded
                | Notice::Recorded(_)
                | Notice::Asking { .. }
                | Notice::Thinking(_)
                | Notice::CallBegun { .. }
                | Notice::CallStarted { .. }
                | Notice::ToolOutput { .. }
                | Notice::CommandOutput(_)
                | Notice::Beside(_)
                | Notice::Usage(_) => {}
            }
        }
        written.flush();
    }

    /// Tells the person how a turn ended, unless it ended well; the exit code.
    pub(super) fn tell_end(&self, driver: &Driver, finished: &Finished) -> u8 {
        match finished.reason {
            StopReason::End | StopReason::Limit | StopReason::Declined => DONE,
            StopReason::Truncated | StopReason::ModelFailed => {
                let advice = |failed: &ModelFailed| {
                    let advice = self.registry.advice(failed);
                    Some(advice.unwrap_or_else(|| model_advice(&failed.error).to_owned()))
                };
                self.say(&broken_turn(driver.session().turn(), finished, advice, GO_ON));
                FAILED
            }
            StopReason::Cancelled => {
                self.say("interrupted");
                INTERRUPTED
            }
        }
    }

    /// The one object of `--output json`; nothing for other outputs. `structured` is what a reply that must fit a schema says,
    /// null if it does not fit.
    pub(super) fn print_finished(&self, driver: &Driver, finished: &Finished, structured: Option<&Value>) {
        if self.output == Output::Json {
            let mut object = object(
                driver,
                &finished.reply,
                finished.reason.word(),
                &[],
                &self.usage(driver),
            );
            if let (Some(fields), Some(structured)) = (object.as_object_mut(), structured) {
                fields.insert("structured".to_owned(), structured.clone());
            }
            self.print_json(&object);
        }
    }

    /// What this run used; with what it cost only where all of it has a known price.
    fn usage(&self, driver: &Driver) -> Value {
        let session = driver.session();
        let last_turn = session.turn().map_or(0, Turn::number);
        let first_turn = self.first_turn.unwrap_or(last_turn);
        let events = session.events().iter().filter(|event| event.turn >= first_turn);
        let total = Tally::of(events, &self.prices).total();
        let mut usage = json!({
            "input_tokens": total.usage.input_tokens,
            "output_tokens": total.usage.output_tokens,
            "cached_tokens": total.usage.cached_tokens,
        });
        if let (Some(fields), Some(usd)) = (usage.as_object_mut(), total.cost.exact_usd()) {
            fields.insert("cost_usd".to_owned(), json!(usd));
        }
        usage
    }

    /// The turn stays in the ledger; whoever comes next answers and drives on.
    fn leave_waiting(&self, driver: &Driver, pending: &[Pending]) -> u8 {
        if self.output == Output::Json {
            self.print_json(&object(driver, "", "pending", pending, &Value::Null));
        }
        let id = driver.session().id();
        for call in pending {
            self.say(&format!(
                "approval needed: {} ({}, digest {})",
                call.readable,
                call.call_id,
                call.digest.short()
            ));
            // What changed is escaped already, and each line of it is one of ours (SPEC 6.8).
            if let Some(change) = driver.action(&call.call_id).as_ref().and_then(Action::changed) {
                self.say(&format!("{}: its definition changed since it was approved:", call.tool));
                change.lines().for_each(|line| self.say(&format!("  {line}")));
            }
        }
        self.say(&format!("answer at a terminal: aish resume {id}"));
        if let Some(call) = pending.first() {
            let (call_id, digest) = (&call.call_id, call.digest.short());
            self.say(&format!(
                "or from a script: aish resume {id} --approve {call_id}:{digest}, or --deny {call_id}"
            ));
        }
        APPROVAL_NEEDED
    }

    /// The same, where calls are the client's to execute: nobody here can answer for it (SPEC 9.2).
    fn leave_to_client(&self, driver: &Driver, pending: &[Pending]) -> u8 {
        if self.output == Output::Json {
            self.print_json(&object(driver, "", "pending", pending, &Value::Null));
        }
        for call in pending {
            self.say(&format!("waits for its client: {} ({})", call.readable, call.call_id));
        }
        let id = driver.session().id();
        self.say(&format!("session {id} goes on when the client answers (`aish serve`)"));
        APPROVAL_NEEDED
    }

    /// The same, where calls wait for somebody to answer what they ask (SPEC 6.9).
    fn leave_asking(&self, driver: &Driver, questions: &[Questioned]) -> u8 {
        if self.output == Output::Json {
            let calls: Vec<Pending> = questions.iter().map(|question| question.call.clone()).collect();
            let mut object = object(driver, "", "pending", &calls, &Value::Null);
            let pending = object.get_mut("pending").and_then(Value::as_array_mut);
            for (entry, question) in pending.into_iter().flatten().zip(questions) {
                if let Some(entry) = entry.as_object_mut() {
                    entry.insert("kind".to_owned(), json!("question"));
                    entry.insert("asks".to_owned(), json!(question.asks));
                }
            }
            self.print_json(&object);
        }
        questions.iter().flat_map(asked_lines).for_each(|line| self.say(&line));
        let id = driver.session().id();
        self.say(&format!("answer at a terminal: aish resume {id}"));
        if let Some(first) = questions.first() {
            let call_id = &first.call.call_id;
            self.say(&format!(
                "or decline it from a script: aish resume {id} --deny {call_id}"
            ));
        }
        APPROVAL_NEEDED
    }

    fn print_json(&self, object: &Value) {
        let mut written = Written::new(&self.redactor);
        written.json(&object.to_string());
        written.flush();
    }
}

/// The object of `--output json` (SPEC 10.3).
fn object(driver: &Driver, reply: &str, stop_reason: &str, pending: &[Pending], usage: &Value) -> Value {
    let pending: Vec<Value> = pending
        .iter()
        .map(|call| {
            let arguments = serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!(call.arguments));
            let mut entry = json!({
                "call_id": call.call_id.as_str(),
                "tool": call.tool,
                "arguments": arguments,
                "digest": call.digest.as_str(),
            });
            let action = driver.action(&call.call_id);
            // Only where that is why it is asked about: whoever answers from a script sees no other difference (SPEC 6.8).
            if let (Some(fields), Some(change)) = (entry.as_object_mut(), action.as_ref().and_then(Action::changed)) {
                fields.insert("difference".to_owned(), json!(change));
            }
            entry
        })
        .collect();
    json!({
        "session_id": driver.session().id().as_str(),
        "reply": reply,
        "stop_reason": stop_reason,
        "pending": pending,
        "usage": usage,
    })
}

/// The controlling terminal, to ask at.
struct AtTerminal<'a> {
    front: &'a Front<'a>,
    look: Look,
}

impl Asker for AtTerminal<'_> {
    async fn decide(&mut self, tty: &Tty, question: &Question<'_>, taken_back: Cancel) -> io::Result<Decision> {
        let stop = either(self.front.cancel.clone(), taken_back);
        approval::decide(tty, question, self.look, &stop).await
    }

    async fn pass_over(&mut self, tty: &Tty, time: Duration) -> io::Result<Passed> {
        tty.pass_over(time, self.front.cancel.clone()).await
    }

    async fn say(&mut self, text: &str) {
        self.front.say(text);
    }

    fn save(&mut self, rule: &str) -> Result<PathBuf, String> {
        self.front.app.save_rule(rule)
    }
}
