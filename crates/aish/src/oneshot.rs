//! One prompt and out: `aish -p`, and `aish resume` from a script (SPEC 10.3, 5.6).
//!
//! The reply goes to standard output and nothing else does; what happens around it is `[aish]` lines on standard error. When
//! a call must be approved, the controlling terminal is asked if there is one, even with piped input; if not, the turn is
//! left waiting in the ledger and the exit code is 3.

use crate::app::App;
use crate::cli::{Output, Resume, Start};
use crate::failure::{APPROVAL_NEEDED, DONE, FAILED, Failure, INTERRUPTED, model_advice};
use crate::models::NO_MODEL;
use crate::signals::asked_to_end;
use crate::term::Look;
use crate::term::approval::{self, Decision, Question};
use crate::term::tty::Tty;
use aish_core::event::{Answer, AnswerScope, AnsweredBy, Body};
use aish_core::message::Part;
use aish_core::redact::Redactor;
use aish_core::sanitize;
use aish_core::turn::StopReason;
use aish_engine::{AnswerRequest, Answered, Driver, Engine, Finished, Notice, Notices, Outcome, Pending};
use aish_store::SessionFilter;
use serde_json::{Value, json};
use std::io::{IsTerminal as _, Read as _, Write as _};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// Bytes of standard input that go along as context; more would fit no model.
const STDIN_BYTES_MAX: u64 = 4 << 20;
/// The longest word of a reply that is held back until it is whole, in bytes: a key is shorter.
const HELD_BYTES_MAX: usize = 1_024;
/// The least time between two writes of a reply: a fast stream is written in batches, and no eye sees the difference.
const WRITE_PAUSE_MS: u64 = 4;

/// `aish -p`.
///
/// # Errors
/// The prompt could not be put to a model at all.
pub async fn prompt(app: &App, text: &str, start: &Start, output: Output) -> Result<u8, Failure> {
    let (text, parts) = read_question(text)?;
    if text.trim().is_empty() && parts.is_empty() {
        return Err(Failure::usage("there is nothing to ask: the prompt is empty"));
    }
    let (engine, _registry) = app.engine().await?;
    if engine.settings().model.is_empty() {
        let failure = Failure::usage("there is no model to ask: none is configured and none was found");
        return Err(NO_MODEL.iter().fold(failure, |failure, line| failure.hint(*line)));
    }
    let mut driver = open(&engine, start).await?;
    let front = Front::new(app, output);
    driver.watch(&front.notices);
    if driver.session().open_turn().is_some() && driver.pending().is_empty() {
        front.say("the last turn was cut off; finishing it first");
        front.drive(&mut driver).await?;
    }
    driver.start(&text, parts).await?;
    front.finish(&mut driver).await
}

/// `aish resume ID` with answers, or where there is no terminal to open the shell on.
///
/// # Errors
/// An answer does not fit, or the turn could not be driven.
pub async fn resume(app: &App, resume: &Resume) -> Result<u8, Failure> {
    let (engine, _registry) = app.engine().await?;
    let id = engine.store.find(&resume.id).await?;
    let mut driver = Driver::open(Arc::clone(&engine), id).await?;
    let front = Front::new(app, Output::Text);
    driver.watch(&front.notices);
    for yes in &resume.approve {
        let request = answer(&yes.call, yes.digest.clone(), Answer::Approve, AnswerScope::Once, None);
        front.answered(driver.answer(request).await?, yes.call.as_str());
    }
    for no in &resume.deny {
        let request = answer(&no.call, None, Answer::Deny, AnswerScope::Once, no.reason.clone());
        front.answered(driver.answer(request).await?, no.call.as_str());
    }
    if driver.session().open_turn().is_none() {
        if !(resume.approve.is_empty() && resume.deny.is_empty()) {
            // Said again what was said before: accepted, without effect (SPEC 3.3).
            return Ok(DONE);
        }
        return Err(
            Failure::usage(format!("session {} waits for nothing", driver.session().id())).hint(format!(
                "say something in it: aish --resume {} -p '…'",
                driver.session().id()
            )),
        );
    }
    front.finish(&mut driver).await
}

/// The session a prompt goes to.
///
/// # Errors
/// There is no such session.
pub async fn open(engine: &Arc<Engine>, start: &Start) -> Result<Driver, Failure> {
    let id = match start {
        Start::New => return Ok(Driver::create(Arc::clone(engine))),
        Start::Session(id) => engine.store.find(id).await?,
        // Without a terminal to choose at, the last one is what `--resume` without an id can mean.
        Start::Last | Start::Choose => {
            let filter = SessionFilter {
                directory: None,
                limit: Some(1),
            };
            let last = engine.store.list(filter).await?.into_iter().next();
            last.ok_or_else(|| Failure::usage("there is no session to go on with"))?
                .id
        }
    };
    let driver = Driver::open(Arc::clone(engine), id).await?;
    eprint_line(&format!(
        "session restored: {} messages",
        driver.session().context_len()
    ));
    Ok(driver)
}

/// An answer from this terminal or a script on its user's behalf.
pub fn answer(
    call: &aish_core::CallId,
    digest: Option<String>,
    answer: Answer,
    scope: AnswerScope,
    reason: Option<String>,
) -> AnswerRequest {
    AnswerRequest {
        call_id: call.clone(),
        digest,
        answer,
        scope,
        by: AnsweredBy::Terminal,
        reason,
    }
}

/// The prompt and what standard input adds to it. A prompt of `-` is standard input.
fn read_question(text: &str) -> Result<(String, Vec<Part>), Failure> {
    if std::io::stdin().is_terminal() {
        return if text == "-" {
            Err(Failure::usage(
                "-p - reads the prompt from standard input, which is a terminal",
            ))
        } else {
            Ok((text.to_owned(), Vec::new()))
        };
    }
    let mut bytes = Vec::new();
    std::io::stdin()
        .lock()
        .take(STDIN_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::usage(format!("cannot read standard input: {error}")))?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > STDIN_BYTES_MAX {
        eprint_line(&format!("standard input is cut after {STDIN_BYTES_MAX} bytes"));
        bytes.truncate(usize::try_from(STDIN_BYTES_MAX).unwrap_or(usize::MAX));
    }
    let input = String::from_utf8_lossy(&bytes).into_owned();
    if text == "-" {
        return Ok((input, Vec::new()));
    }
    let parts = if input.trim().is_empty() {
        Vec::new()
    } else {
        vec![Part::Context {
            label: "standard input".to_owned(),
            text: input,
        }]
    };
    Ok((text.to_owned(), parts))
}

/// A line for the person.
pub fn eprint_line(text: &str) {
    // A closed standard error is nobody's problem but its reader's.
    // One write: lines of several processes do not mix, and nothing is written in pieces.
    let line = format!("[aish] {}\n", sanitize::single_line(text));
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// What is in front of the engine here: two streams, and perhaps a terminal to ask at.
struct Front<'a> {
    app: &'a App,
    output: Output,
    redactor: Redactor,
    notices: Notices,
    cancel: watch::Receiver<bool>,
}

impl<'a> Front<'a> {
    fn new(app: &'a App, output: Output) -> Self {
        let (interrupt, cancel) = watch::channel(false);
        tokio::spawn(async move {
            asked_to_end().await;
            let _ = interrupt.send(true);
            // The channel stays open: one that is closed looks like nobody who could cancel.
            std::future::pending::<()>().await;
        });
        let notices = if output == Output::Jsonl {
            Notices::with_events()
        } else {
            Notices::new()
        };
        Self {
            app,
            output,
            redactor: app.redactor(),
            notices,
            cancel,
        }
    }

    fn say(&self, text: &str) {
        eprint_line(&self.redactor.redact(text));
    }

    fn answered(&self, answered: Answered, call: &str) {
        if answered == Answered::Already {
            self.say(&format!("{call} was answered so before"));
        }
    }

    /// Drives to the end, asking where it can.
    async fn finish(&self, driver: &mut Driver) -> Result<u8, Failure> {
        loop {
            let pending = match self.drive(driver).await? {
                Outcome::Done(finished) => {
                    let code = self.report(driver, &finished);
                    driver.settle().await;
                    return Ok(code);
                }
                Outcome::Asking(pending) => pending,
                Outcome::AwaitingClient(pending) => return Ok(self.leave_waiting(driver, &pending)),
            };
            let Some(tty) = Tty::open() else {
                return Ok(self.leave_waiting(driver, &pending));
            };
            self.ask(driver, &tty, &pending).await?;
        }
    }

    async fn ask(&self, driver: &mut Driver, tty: &Tty, pending: &[Pending]) -> Result<(), Failure> {
        let look = Look::detect(&self.app.environment, tty.file());
        for (n, call) in pending.iter().enumerate() {
            let action = driver.action(&call.call_id);
            let question = Question {
                pending: call,
                action: action.as_ref(),
                place: (n + 1, pending.len()),
            };
            let decision = approval::decide(tty, &question, look, &self.cancel)
                .await
                .map_err(|error| Failure::failed(format!("cannot ask at the terminal: {error}")))?;
            let digest = Some(call.digest.as_str().to_owned());
            let request = match decision {
                Decision::Cancelled => return Ok(()),
                Decision::Once => answer(&call.call_id, digest, Answer::Approve, AnswerScope::Once, None),
                Decision::Session => answer(&call.call_id, digest, Answer::Approve, AnswerScope::Session, None),
                Decision::Save { rule } => {
                    let scope = match self.app.save_rule(&rule) {
                        Ok(path) => {
                            self.say(&format!("saved in {}", path.display()));
                            AnswerScope::Saved
                        }
                        Err(error) => {
                            self.say(&format!("the rule was not saved: {error}"));
                            AnswerScope::Session
                        }
                    };
                    answer(&call.call_id, digest, Answer::Approve, scope, None)
                }
                Decision::No { reason } => answer(&call.call_id, digest, Answer::Deny, AnswerScope::Once, reason),
            };
            driver.answer(request).await?;
        }
        Ok(())
    }

    /// Drives until the turn is over or waits, writing what comes as it comes.
    async fn drive(&self, driver: &mut Driver) -> Result<Outcome, Failure> {
        let mut written = Written::new(&self.redactor);
        let driven = {
            let drive = driver.drive(&self.notices, self.cancel.clone());
            tokio::pin!(drive);
            let mut next_write = Instant::now();
            loop {
                let due = async {
                    self.notices.changed().await;
                    sleep_until(next_write).await;
                };
                tokio::select! {
                    biased;
                    driven = &mut drive => break driven,
                    () = due => {
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

    fn write(&self, written: &mut Written<'_>) {
        for notice in self.notices.drain() {
            match notice {
                Notice::Text(text) if self.output == Output::Text => written.text(&text),
                Notice::ReplyEnded if self.output == Output::Text => written.end_line(),
                Notice::Recorded(event) if self.output == Output::Jsonl => {
                    written.line(&event.to_json().to_string());
                }
                Notice::Status(text) => self.say(&text),
                Notice::Retrying {
                    attempt,
                    wait_ms,
                    problem,
                } => {
                    let seconds = wait_ms.div_ceil(1000);
                    self.say(&format!("{problem}; asking again in {seconds} s (attempt {attempt})"));
                }
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
                | Notice::Usage(_) => {}
            }
        }
        written.flush();
    }

    fn report(&self, driver: &Driver, finished: &Finished) -> u8 {
        if self.output == Output::Json {
            let usage = json!({
                "input_tokens": finished.usage.input_tokens,
                "output_tokens": finished.usage.output_tokens,
                "cached_tokens": finished.usage.cached_tokens,
            });
            self.print_json(driver, &finished.reply, finished.reason.word(), &[], &usage);
        }
        match finished.reason {
            StopReason::End | StopReason::Limit | StopReason::Declined => DONE,
            StopReason::Truncated => {
                self.say("the reply was cut off");
                FAILED
            }
            StopReason::ModelFailed => {
                let problem = finished.problem.as_deref().unwrap_or("the model gave no answer");
                self.say(&format!("no reply: {problem}; {}", model_advice(last_failure(driver))));
                FAILED
            }
            StopReason::Cancelled => {
                self.say("interrupted");
                INTERRUPTED
            }
        }
    }

    /// The turn stays in the ledger; whoever comes next answers and drives on.
    fn leave_waiting(&self, driver: &Driver, pending: &[Pending]) -> u8 {
        if self.output == Output::Json {
            self.print_json(driver, "", "pending", pending, &Value::Null);
        }
        let id = driver.session().id();
        for call in pending {
            self.say(&format!(
                "approval needed: {} ({}, digest {})",
                call.readable,
                call.call_id,
                call.digest.short()
            ));
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

    fn print_json(&self, driver: &Driver, reply: &str, stop_reason: &str, pending: &[Pending], usage: &Value) {
        let pending: Vec<Value> = pending
            .iter()
            .map(|call| {
                let arguments = serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!(call.arguments));
                json!({
                    "call_id": call.call_id.as_str(),
                    "tool": call.tool,
                    "arguments": arguments,
                    "digest": call.digest.as_str(),
                })
            })
            .collect();
        let object = json!({
            "session_id": driver.session().id().as_str(),
            "reply": reply,
            "stop_reason": stop_reason,
            "pending": pending,
            "usage": usage,
        });
        let mut written = Written::new(&self.redactor);
        written.line(&object.to_string());
        written.flush();
    }
}

/// The word that the last failure of the model has in the ledger.
fn last_failure(driver: &Driver) -> &str {
    let mut failures = driver.session().events().iter().rev().filter_map(|event| {
        if let Body::ModelFailed(failed) = &event.body {
            Some(failed.error.as_str())
        } else {
            None
        }
    });
    failures.next().unwrap_or_default()
}

/// Standard output, written in batches, without secrets. A reader that has gone away is not an error: the turn goes on into
/// the ledger.
struct Written<'a> {
    redactor: &'a Redactor,
    batch: String,
    /// The word at the end of a reply so far: the next piece may make it a key.
    held: String,
    in_line: bool,
}

impl<'a> Written<'a> {
    fn new(redactor: &'a Redactor) -> Self {
        Self {
            redactor,
            batch: String::new(),
            held: String::new(),
            in_line: false,
        }
    }

    fn text(&mut self, text: &str) {
        self.held.push_str(text);
        let word = self.held.trim_end_matches(|c: char| c.is_ascii_graphic()).len();
        let end = if self.held.len() - word > HELD_BYTES_MAX {
            self.held.len()
        } else {
            word
        };
        let rest = self.held.split_off(end);
        self.release();
        self.held = rest;
    }

    /// Writes what is held.
    fn release(&mut self) {
        if !self.held.is_empty() {
            self.batch
                .push_str(&sanitize::multi_line(&self.redactor.redact(&self.held)));
            self.in_line = !self.held.ends_with('\n');
            self.held.clear();
        }
    }

    fn line(&mut self, line: &str) {
        self.batch.push_str(&self.redactor.redact(line));
        self.batch.push('\n');
        self.in_line = false;
    }

    fn end_line(&mut self) {
        self.release();
        if self.in_line {
            self.batch.push('\n');
            self.in_line = false;
        }
        self.flush();
    }

    fn flush(&mut self) {
        if !self.batch.is_empty() {
            let mut stdout = std::io::stdout().lock();
            let _ = stdout.write_all(self.batch.as_bytes()).and_then(|()| stdout.flush());
            self.batch.clear();
        }
    }
}
