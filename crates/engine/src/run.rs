//! Running calls: started is in the ledger before anything happens, and every call comes to one result.

use crate::asides::{Aside, is_of};
use crate::driver::Driver;
use crate::lease::asked;
use crate::questions::{EndedBy, OpenQuestions};
use crate::{EngineError, Notice, Notices, Settings};
use aish_core::event::{Body, CallStarted, Draft, ResultEnd, ToolResult, readable_call};
use aish_core::id::CallId;
use aish_core::image::with_image_names;
use aish_core::turn::{How, Job, Turn};
use aish_core::{Action, Digest};
use aish_store::Durability;
use aish_tools::web::Ahead;
use aish_tools::{Cancel, Hidden, Place, Progress, Put, Ran, Tool, ToolContext, ToolOutput, WebAccess};
use futures_util::stream::{FuturesUnordered, StreamExt};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tokio::task::JoinHandle;

/// Calls of one reply that run side by side.
const PARALLEL_MAX: usize = 8;

/// A call that runs on a task of its own, so that a cancelled turn need not wait for it.
pub(crate) struct Running {
    pub(crate) call: CallId,
    pub(crate) turn: u64,
    pub(crate) name: String,
    pub(crate) limit: Option<u32>,
    pub(crate) task: Task,
}

/// A task that ends with whoever waits for it: nothing of ours runs on behind a driver that is gone.
pub(crate) struct Task(JoinHandle<Came>);

/// What the task of a call came to.
pub(crate) enum Came {
    /// Running it, or the rest of it.
    Ran(Ran),
    /// Putting what it asked to the person.
    Put(Put),
}

/// Which part of a call a task performs.
pub(crate) enum Portion {
    /// All of it, from the start.
    Whole,
    /// What it asked, put to the person; the state it left.
    Question(Value),
    /// The rest of it, with these answers.
    Rest(Value),
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A call about to start.
pub(crate) struct Ready {
    job: Job,
    pub(crate) digest: Digest,
    portion: Portion,
    name: String,
    readable: String,
    tool: Arc<dyn Tool>,
    action: Action,
    ahead: Ahead,
    place: Place,
}

/// What calls that run are waited for with.
enum Event {
    /// A task is over.
    Over(usize, Result<Came, tokio::task::JoinError>),
    /// Something happened beside them.
    Aside(Aside),
    /// Somebody asked to stop.
    Stop,
}

/// How a call ended, before it is written down.
pub(crate) struct Ending {
    call: CallId,
    name: String,
    output: ToolOutput,
    end: ResultEnd,
    limit: Option<u32>,
}

impl Driver {
    /// Brings these calls to their ends, in order; read-only ones side by side. Returns early when asked to stop.
    pub(crate) async fn run_jobs(
        &mut self,
        jobs: Vec<Job>,
        notices: &Notices,
        stop: &Cancel,
    ) -> Result<(), EngineError> {
        let read_only = |job: &Job| matches!(job.how, How::Run { read_only: true, .. });
        if self.engine.settings().parallel && jobs.len() > 1 && jobs.iter().all(read_only) {
            for batch in jobs.chunks(PARALLEL_MAX) {
                self.run_side_by_side(batch, notices, stop).await?;
                if *stop.borrow() || self.session.turn().is_some_and(Turn::is_waiting) {
                    return Ok(());
                }
            }
            return Ok(());
        }
        for job in jobs {
            self.run_side_by_side(std::slice::from_ref(&job), notices, stop).await?;
            // A call that asks something keeps those after it waiting, too.
            if *stop.borrow() || self.session.turn().is_some_and(Turn::is_waiting) {
                return Ok(());
            }
        }
        Ok(())
    }

    async fn run_side_by_side(&mut self, jobs: &[Job], notices: &Notices, stop: &Cancel) -> Result<(), EngineError> {
        // Read anew for each: a rule that was added while earlier calls ran holds for the later ones.
        let settings = self.engine.settings();
        let mut ready = Vec::with_capacity(jobs.len());
        for job in jobs {
            match self.prepare(job, Portion::Whole, &settings) {
                Ok(call) => ready.push(call),
                Err(ending) => self.record(*ending, notices).await?,
            }
        }
        if ready.is_empty() {
            return Ok(());
        }
        let turn = self.session.turn().map_or(0, aish_core::Turn::number);
        let started = ready.iter().map(|call| {
            let data = CallStarted {
                call_id: call.job.call.clone(),
                digest: call.digest.clone(),
            };
            Draft::new(turn, format!("{} started", call.job.call), Body::CallStarted(data))
        });
        self.append(started.collect(), Durability::Synced).await?;
        let mut running: Vec<Running> = ready
            .into_iter()
            .map(|call| launch(call, turn, &settings, notices, stop))
            .collect();
        self.collect(&mut running, notices, stop).await
    }

    /// Records results as they come. On a stop, what still runs is left to [`Driver::settle`].
    pub(crate) async fn collect(
        &mut self,
        running: &mut Vec<Running>,
        notices: &Notices,
        stop: &Cancel,
    ) -> Result<(), EngineError> {
        let mut asides = self.engine.asides.listen();
        let mut questions = OpenQuestions::default();
        while !running.is_empty() {
            let mut stop = stop.clone();
            let event = {
                let mut waiting: FuturesUnordered<_> = running
                    .iter_mut()
                    .enumerate()
                    .map(|(n, call)| async move { (n, (&mut call.task.0).await) })
                    .collect();
                tokio::select! {
                    biased;
                    // First: an answer is in the ledger before what it led to.
                    Some(aside) = asides.recv() => Event::Aside(aside),
                    first = waiting.next() => first.map_or(Event::Stop, |(n, came)| Event::Over(n, came)),
                    () = asked(&mut stop) => Event::Stop,
                }
            };
            let (n, came) = match event {
                Event::Over(n, came) => (n, came),
                Event::Aside(aside) => {
                    self.record_aside(aside, running, &mut questions).await?;
                    continue;
                }
                Event::Stop => {
                    self.end_questions(questions.end(EndedBy::Stop, |_| true)).await?;
                    self.leftover.append(running);
                    return Ok(());
                }
            };
            // What was told before its end is written before its result.
            while let Ok(aside) = asides.try_recv() {
                self.record_aside(aside, running, &mut questions).await?;
            }
            let call = running.swap_remove(n);
            let is_left = |server: &str| !running.iter().any(|call| is_of(&call.name, server));
            // A call that was told to stop may be over before anybody looks at why.
            let by = if *stop.borrow() { EndedBy::Stop } else { EndedBy::Call };
            self.end_questions(questions.end(by, is_left)).await?;
            let came = came.unwrap_or_else(|error| {
                let failed = format!("the tool failed inside aish itself: {error}");
                Came::Ran(Ran::Output(ToolOutput::error(failed)))
            });
            match came {
                Came::Ran(Ran::Output(output)) | Came::Put(Put::Ended(output)) => {
                    self.record(call.ended(output), notices).await?;
                }
                Came::Ran(Ran::Asks(asks)) => self.suspend(&call, asks).await?,
                // Why it waits on is no news to whoever stopped the turn.
                Came::Put(Put::Waits(_)) if *stop.borrow() => {}
                Came::Put(Put::Waits(why)) => notices.status(why),
                Came::Put(Put::Answered(answers)) => {
                    running.extend(self.take_up(&call.call, answers, notices, &stop).await?);
                }
            }
        }
        Ok(())
    }

    /// Records what happened beside these calls, if it is about one of them.
    async fn record_aside(
        &mut self,
        aside: Aside,
        running: &[Running],
        questions: &mut OpenQuestions,
    ) -> Result<(), EngineError> {
        let mut theirs = running.iter().filter(|call| is_of(&call.name, &aside.server));
        let Some(first) = theirs.next() else {
            return Ok(());
        };
        // Of several calls of one server, nobody knows which one it asks for.
        let call = theirs.next().is_none().then(|| first.call.clone());
        let (turn, body) = (first.turn, (aside.body)(call));
        let draft = Draft::new(turn, aside.content.clone(), body.clone());
        match self.append(vec![draft], Durability::Committed).await {
            // Somebody ended the turn meanwhile: it has no place there any more.
            Err(EngineError::Invalid { .. }) => Ok(()),
            Ok(()) => {
                questions.written(turn, &body);
                aside.written();
                Ok(())
            }
            Err(other) => Err(other),
        }
    }

    /// Writes down that questions ended without an answer.
    async fn end_questions(&mut self, ended: Vec<Draft>) -> Result<(), EngineError> {
        if ended.is_empty() {
            return Ok(());
        }
        match self.append(ended, Durability::Committed).await {
            // As for what happens beside a call: a turn that somebody ended has no place for it.
            Ok(()) | Err(EngineError::Invalid { .. }) => Ok(()),
            Err(other) => Err(other),
        }
    }

    /// What a job needs to start, or how it ends without starting.
    pub(crate) fn prepare(&self, job: &Job, portion: Portion, settings: &Settings) -> Result<Ready, Box<Ending>> {
        let call = self.session.call_event(&job.call);
        let name = call.map(|call| call.function.name.clone()).unwrap_or_default();
        let ending = |output: ToolOutput, end| {
            Box::new(Ending {
                call: job.call.clone(),
                name: name.clone(),
                output,
                end,
                limit: job.limit,
            })
        };
        let digest = match &job.how {
            How::Answer { output, summary, end } => {
                let output = ToolOutput {
                    output: output.clone(),
                    summary: summary.clone(),
                    success: false,
                    parts: Vec::new(),
                };
                return Err(ending(output, *end));
            }
            How::SameAs(other) => {
                let same = self.session.result_event(other);
                let output = ToolOutput {
                    output: same.map(|result| result.output.clone()).unwrap_or_default(),
                    summary: format!("same as {other}"),
                    success: same.is_some_and(|result| result.success),
                    parts: Vec::new(),
                };
                return Err(ending(output, ResultEnd::Duplicate));
            }
            How::Run { digest, .. } => digest.clone(),
        };
        let arguments = call.map(|call| call.function.arguments.as_str()).unwrap_or_default();
        let denied = |message: String, end| ending(ToolOutput::error(message), end);
        // Between the question and now, links may have moved and rules may have been added.
        let inspected = self
            .inspect(&name, arguments, settings)
            .map_err(|error| denied(error, ResultEnd::Invalid))?;
        if inspected.action.digest() != digest {
            return Err(denied(changed(&inspected.action), ResultEnd::Denied));
        }
        if let Some(denial) = settings.policy.denial(&inspected.action) {
            return Err(denied(format!("denied by policy: {}", denial.rule), ResultEnd::Denied));
        }
        inspected.tool.approved(&inspected.action);
        Ok(Ready {
            job: job.clone(),
            digest,
            portion,
            readable: readable_call(&name, arguments),
            name: name.clone(),
            ahead: self.ahead(&inspected, settings),
            place: self.place(),
            tool: inspected.tool,
            action: inspected.action,
        })
    }

    pub(crate) async fn record(&mut self, ending: Ending, notices: &Notices) -> Result<(), EngineError> {
        let turn = self.session.turn().map_or(0, aish_core::Turn::number);
        let arguments = self
            .session
            .call_event(&ending.call)
            .map(|call| call.function.arguments.clone());
        if ending.limit.is_some() {
            notices.status("tool-call depth limit reached");
        }
        // First written, then told: nothing is shown as done that a crash could take back (SPEC 2.5).
        self.append(vec![ending.draft(turn)], Durability::Committed).await?;
        notices.push(Notice::CallEnded {
            call: ending.call.clone(),
            readable: readable_call(&ending.name, arguments.as_deref().unwrap_or_default()),
            output: with_image_names(&ending.output.output, &ending.output.parts),
            summary: ending.output.summary,
            success: ending.output.success,
            end: ending.end,
        });
        Ok(())
    }

    /// Waits, for no longer than `patience`, for calls that a cancelled turn left behind, and keeps what they came to.
    pub(crate) async fn settle_leftover(&mut self, patience: std::time::Duration) {
        let deadline = tokio::time::Instant::now() + patience;
        for mut call in std::mem::take(&mut self.leftover) {
            let Ok(output) = tokio::time::timeout_at(deadline, &mut call.task.0).await else {
                continue;
            };
            let Ok(Came::Ran(Ran::Output(output))) = output else {
                continue;
            };
            let turn = call.turn;
            let draft = call.ended(output).draft(turn);
            // The turn is closed and answered: this is evidence only, and losing it to a failing disk changes nothing.
            let _ = self.append(vec![draft], Durability::Committed).await;
        }
    }
}

fn changed(action: &Action) -> String {
    format!(
        "not run: {} would no longer do what was approved (a file, a link or the tool itself changed); call it again",
        action.tool
    )
}

/// Performs a portion of a call on a task of its own.
pub(crate) fn launch(call: Ready, turn: u64, settings: &Settings, notices: &Notices, stop: &Cancel) -> Running {
    if !matches!(call.portion, Portion::Question(_)) {
        notices.push(Notice::CallStarted {
            call: call.job.call.clone(),
            readable: call.readable,
        });
    }
    let progress = Forward {
        call: call.job.call.clone(),
        tool: call.name.clone(),
        notices: notices.clone(),
    };
    let (policy, name) = (settings.policy.clone(), call.name.clone());
    let hidden = Hidden::by(move |path| policy.hides(&name, path));
    let web = WebAccess {
        ahead: call.ahead,
        reach: settings.context.web.reach,
    };
    let context = ToolContext {
        hidden,
        web,
        place: Some(call.place),
        ..settings.context.clone()
    };
    let (tool, action, stop) = (call.tool, call.action, stop.clone());
    let task = Task(tokio::spawn(async move {
        match call.portion {
            Portion::Whole => Came::Ran(tool.run_or_ask(&action, &context, &progress, stop).await),
            Portion::Question(state) => Came::Put(tool.put(&action, &state, stop).await),
            Portion::Rest(answers) => Came::Ran(tool.go_on(&action, &context, &progress, stop, &answers).await),
        }
    }));
    Running {
        call: call.job.call,
        turn,
        name: call.name,
        limit: call.job.limit,
        task,
    }
}

impl Running {
    fn ended(self, output: ToolOutput) -> Ending {
        Ending {
            call: self.call,
            name: self.name,
            output,
            end: ResultEnd::Completed,
            limit: self.limit,
        }
    }
}

impl Ending {
    fn draft(&self, turn: u64) -> Draft {
        let output = match self.limit {
            Some(limit) => with_limit(&self.output.output, limit),
            None => self.output.output.clone(),
        };
        let data = ToolResult {
            tool_call_id: self.call.clone(),
            name: self.name.clone(),
            output,
            success: self.output.success,
            end: self.end,
            parts: self.output.parts.clone(),
        };
        Draft::tool_result(turn, self.output.summary.clone(), data)
    }
}

/// A result that tells the model of the turn's limit (SPEC 3.6): JSON objects gain fields, other text is wrapped.
pub(crate) fn with_limit(output: &str, limit: u32) -> String {
    let mut object = match serde_json::from_str::<Map<String, Value>>(output) {
        Ok(object) => object,
        Err(_) => Map::from_iter([("output".to_owned(), json!(output))]),
    };
    object.insert("limit_reached".to_owned(), json!(true));
    object.insert(
        "limit_message".to_owned(),
        json!(format!("Tool call limit reached ({limit}). Stopping tool loop.")),
    );
    Value::Object(object).to_string()
}

/// Progress of a call, told as notices.
struct Forward {
    call: CallId,
    tool: String,
    notices: Notices,
}

impl Progress for Forward {
    fn output(&self, text: &str) {
        self.notices.push(Notice::ToolOutput {
            call: self.call.clone(),
            text: text.to_owned(),
        });
    }

    fn step(&self, line: &str) {
        self.notices.push(Notice::CallStep {
            call: self.call.clone(),
            tool: self.tool.clone(),
            line: line.to_owned(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 3.6: the last result mentions the limit, whatever its form.
    #[test]
    fn limit_fields() {
        let check = |input: &str, expect: &str| assert_eq!(with_limit(input, 8), expect);
        let tail = r#""limit_message":"Tool call limit reached (8). Stopping tool loop.","limit_reached":true"#;
        check(
            r#"{"count":0,"output":""}"#,
            &format!(r#"{{"count":0,{tail},"output":""}}"#),
        );
        check("plain", &format!(r#"{{{tail},"output":"plain"}}"#));
    }
}
