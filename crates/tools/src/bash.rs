//! `bash`: one command line, or a background job that an earlier one started.
//!
//! A command runs as `bash -c` with the directory and environment it is given, no terminal and no input; both its
//! outputs come back in the order they were written. Whatever it started ends with it (`tree`, `process`), except that
//! `background` lets it run on as a job (`jobs`) until it ends, is stopped, or the session does. Should this process be
//! killed, a `watcher` ends what runs. `tree`, `watcher` and `sleep` are open to whoever else starts programs.

mod jobs;
mod process;
pub mod sleep;
mod status;
pub mod tree;
pub mod watcher;

use crate::work::{CANCELLED, cancelled};
use crate::{Cancel, Progress, Tool, ToolContext, ToolOutput};
use aish_core::action::{Action, Effect};
use aish_core::message::ToolSpec;
use futures_util::future::BoxFuture;
use jobs::{JOBS_RUNNING_MAX, Jobs};
use process::{Running, Spawn, Urgency};
use serde_json::{Value, json};
use status::{Report, Request, report};
use std::sync::Arc;
use std::time::Duration;
use watcher::Watcher;

/// How long a command may run when the call does not say.
const TIMEOUT_DEFAULT_S: u64 = 120;
/// The longest time a call may ask for.
const TIMEOUT_MAX_S: u64 = 3600;
/// How long a background command is watched before the call answers, so that one that fails at once says so.
const JOB_START_WAIT_MS: u64 = 200;
/// How long a cancelled command may take to end before the call answers without it; it is ended all the same.
const CANCEL_WAIT_MS: u64 = 60;

/// Runs commands.
pub struct BashTool {
    spec: ToolSpec,
    validation_schema: Value,
    jobs: Jobs,
    watcher: Arc<Watcher>,
}

impl BashTool {
    /// The tool, with no jobs.
    pub fn new() -> Self {
        let schema = json!({
            "type": "object",
            "properties": {
                "command": {"type": "string", "description": "Command line"},
                "timeout_s": {
                    "type": "integer", "minimum": 1, "maximum": TIMEOUT_MAX_S,
                    "description": "Seconds until it is ended, default 120",
                },
                "background": {"type": "boolean", "description": "Do not wait for it; gives a job such as j1"},
                "job": {"type": "string", "description": "Instead of a command: a job to read or stop"},
                "action": {"type": "string", "enum": ["read", "stop"], "description": "With job only"},
            },
            "required": ["command"],
            "additionalProperties": false,
        });
        // Models do best when told that a command is required; a call about a job is accepted without one.
        let mut validation_schema = schema.clone();
        if let Some(map) = validation_schema.as_object_mut() {
            map.remove("required");
        }
        Self {
            spec: ToolSpec {
                name: "bash".into(),
                description:
                    "Run a command with bash and get its output and exit code. No input, no terminal; cd does not \
                              last. For servers and other long runs set background."
                        .into(),
                input_schema: schema,
            },
            validation_schema,
            jobs: Jobs::default(),
            watcher: Arc::default(),
        }
    }

    /// Runs a command to its end, to its time limit, or until cancelled.
    async fn run_command(&self, spawn: Spawn, progress: &dyn Progress, mut cancel: Cancel) -> ToolOutput {
        let time_max_s = spawn.time_max.unwrap_or_default().as_secs();
        let (running, mut pieces) = match Running::start(spawn) {
            Ok(started) => started,
            Err(error) => return ToolOutput::error(format!("Cannot start bash: {error}")),
        };
        self.jobs.watch(&running);
        let guard = StopOnDrop(Some(Arc::clone(&running)));
        loop {
            tokio::select! {
                biased;
                () = cancelled(&mut cancel) => {
                    running.stop(Urgency::Ask);
                    let _ = tokio::time::timeout(Duration::from_millis(CANCEL_WAIT_MS), running.ended()).await;
                    return report(&running, Report::Cancelled);
                }
                piece = pieces.recv() => match piece {
                    Some(piece) => progress.output(&piece),
                    None => break,
                },
            }
        }
        drop(guard);
        report(&running, Report::Command { time_max_s })
    }

    /// Starts a command in the background and answers with its job.
    async fn start_job(&self, spawn: Spawn, cancel: Cancel) -> ToolOutput {
        if self.jobs.is_full() {
            return ToolOutput::error(format!("Too many jobs ({JOBS_RUNNING_MAX}): stop one first"));
        }
        let (running, _) = match Running::start(spawn) {
            Ok(started) => started,
            Err(error) => return ToolOutput::error(format!("Cannot start bash: {error}")),
        };
        self.jobs.watch(&running);
        let guard = StopOnDrop(Some(Arc::clone(&running)));
        let mut cancel = cancel;
        tokio::select! {
            biased;
            () = cancelled(&mut cancel) => return report(&running, Report::Cancelled),
            _ = tokio::time::timeout(Duration::from_millis(JOB_START_WAIT_MS), running.ended()) => {}
        }
        guard.disarm();
        let job = self.jobs.add(Arc::clone(&running));
        report(&running, Report::JobStarted { job: &job })
    }

    async fn read_or_stop(&self, job: &str, action: status::JobAction, mut cancel: Cancel) -> ToolOutput {
        let running = match self.jobs.get(job) {
            Ok(running) => running,
            Err(message) => return ToolOutput::error(message),
        };
        if action == status::JobAction::Stop {
            running.stop(Urgency::Ask);
            tokio::select! {
                biased;
                () = running.ended() => {}
                // It is being ended whether or not anybody waits.
                () = cancelled(&mut cancel) => {}
            }
        }
        report(&running, Report::Job { job })
    }
}

impl Default for BashTool {
    fn default() -> Self {
        Self::new()
    }
}

impl Tool for BashTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn validation_schema(&self) -> &Value {
        &self.validation_schema
    }

    fn inspect(&self, arguments: &Value, context: &ToolContext) -> Result<Action, String> {
        let effect = match Request::of(arguments)? {
            Request::Run { command, .. } => Effect::Execute {
                command: command.to_owned(),
                directory: context.directory.clone(),
                parts: aish_command::simple_commands(command),
            },
            Request::Job { job, .. } => {
                self.jobs.get(job)?;
                Effect::Internal
            }
        };
        Ok(Action {
            tool: self.spec.name.clone(),
            arguments: arguments.clone(),
            effects: vec![effect],
        })
    }

    fn run<'a>(
        &'a self,
        action: &'a Action,
        context: &'a ToolContext,
        progress: &'a dyn Progress,
        cancel: Cancel,
    ) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let request = match Request::of(&action.arguments) {
                Ok(request) => request,
                Err(message) => return ToolOutput::error(message),
            };
            if *cancel.borrow() {
                return ToolOutput::error(CANCELLED);
            }
            let spawn = |command: &str, time_max| Spawn {
                command: command.to_owned(),
                directory: context.directory.clone(),
                environment: Arc::clone(&context.environment),
                output_bytes_max: context.output_bytes_max,
                time_max,
                watcher: Arc::clone(&self.watcher),
            };
            match request {
                Request::Run {
                    command,
                    timeout_s,
                    mode: status::Mode::Foreground,
                } => {
                    let time_max = Duration::from_secs(timeout_s.unwrap_or(TIMEOUT_DEFAULT_S));
                    self.run_command(spawn(command, Some(time_max)), progress, cancel).await
                }
                Request::Run {
                    command,
                    timeout_s,
                    mode: status::Mode::Background,
                } => {
                    self.start_job(spawn(command, timeout_s.map(Duration::from_secs)), cancel)
                        .await
                }
                Request::Job { job, action } => self.read_or_stop(job, action, cancel).await,
            }
        })
    }
}

/// Ends a command when the future that waits for it is dropped.
struct StopOnDrop(Option<Arc<Running>>);

impl StopOnDrop {
    /// Lets the command run on.
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        if let Some(running) = self.0.take().filter(|running| running.end().is_none()) {
            running.stop(Urgency::Ask);
        }
    }
}
