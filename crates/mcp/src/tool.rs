//! Tools of servers as tools of a session: `alias.tool`, run by whoever keeps the connections.
//!
//! What a call does is for the server to know ([`Effect::Delegate`]): what it says of that counts where it is trusted (SPEC 5.8).
//! An action names the tool's whole definition, and a tool that is no longer what was approved says so (SPEC 6.8). A result is
//! plain text for a model (SPEC 6.5); what went wrong on the way is an error result and one status line (SPEC 6.6).

use crate::offer::checkable;
use crate::offer::remarks::shortened;
use crate::peer::{Progressed, Watch, cannot_go_on};
use crate::pin::{Pinned, Pins};
use crate::{Alias, Definition, ErrorKind, Hints, InputRequired, McpError, Outcome, ServerConfig};
use aish_core::action::{Action, Digest, Effect, Hint};
use aish_core::event::CallSource;
use aish_core::message::ToolSpec;
use aish_tools::{Asks, CANCELLED, Cancel, Progress, Put, Ran, Tool, ToolContext, ToolOutput, cancelled};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use std::sync::{Arc, OnceLock};
use steps::Steps;

/// Characters of an error or a progress message that are passed on.
const MESSAGE_CHARS_MAX: usize = 2_000;
/// Characters of a result's one line.
const SUMMARY_CHARS_MAX: usize = 80;
/// Numbers of a size that are written without an exponent.
const PLAIN_NUMBER_MAX: f64 = 1e15;

/// One call, on its way to a server.
pub struct Call<'a> {
    /// Which server.
    pub alias: &'a Alias,
    /// The bare name of the tool.
    pub tool: &'a str,
    /// What it was when the call was let through: where it is something else by now, it is not called (SPEC 6.8). `None` where
    /// nobody let it through but who calls.
    pub pinned: Option<&'a Pinned>,
    /// Its arguments, checked.
    pub arguments: &'a Map<String, Value>,
    /// Where the call asked something before: the further parameters with which it goes on, as [`Caller::answers`] gave them.
    pub answers: Option<&'a Map<String, Value>>,
    /// Bytes of text that are kept of the result.
    pub bytes_max: usize,
    /// Who is told how far it has come.
    pub watch: Watch,
}

impl<'a> Call<'a> {
    /// Whose it is.
    pub(crate) fn told(&self) -> Told<'a> {
        Told {
            alias: self.alias,
            tool: self.tool,
            pinned: self.pinned,
        }
    }
}

/// Which tool of which server, as it was let through.
#[derive(Clone, Copy)]
pub struct Told<'a> {
    /// Which server.
    pub alias: &'a Alias,
    /// The bare name of the tool.
    pub tool: &'a str,
    /// As [`Call::pinned`].
    pub pinned: Option<&'a Pinned>,
}

/// Whoever keeps the connections.
pub trait Caller: Send + Sync {
    /// Calls a tool. Dropping the future tells the server that nobody waits any more. Has a deadline of its own.
    ///
    /// # Errors
    /// There is no result.
    fn call<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Outcome, McpError>>;

    /// Waits for the server, and holds a tool that was let through against what it offers now (SPEC 6.8). Has a deadline of its
    /// own.
    ///
    /// # Errors
    /// The server is not there, or the tool is another by now.
    fn verify<'a>(&'a self, _call: Told<'a>) -> BoxFuture<'a, Result<(), McpError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Puts what a call asked to the person who is here; gives the parameters with which it goes on. Has a deadline of its own.
    ///
    /// # Errors
    /// There are no answers.
    fn answers<'a>(
        &'a self,
        _call: Told<'a>,
        _required: &'a InputRequired,
    ) -> BoxFuture<'a, Result<Map<String, Value>, McpError>> {
        Box::pin(std::future::ready(Err(cannot_go_on())))
    }

    /// Shows one status line, already escaped, without `[aish] ` in front. Never blocks.
    fn status(&self, line: &str);
}

/// A tool of a server.
pub struct McpTool {
    alias: Alias,
    bare_name: String,
    spec: ToolSpec,
    validation_schema: Value,
    hint: Hint,
    pinned: Pinned,
    /// The digest of `pinned`, once somebody wanted it.
    digest: OnceLock<Digest>,
    caller: Arc<dyn Caller>,
    pins: Arc<dyn Pins>,
}

impl McpTool {
    /// The tool of that server and definition, called through `caller` and held against what `pins` remember of it.
    pub fn new(server: &ServerConfig, definition: &Definition, caller: Arc<dyn Caller>, pins: Arc<dyn Pins>) -> Self {
        let alias = server.alias.clone();
        let pinned = Pinned::of(definition, &server.endpoint);
        let hint = if server.is_trusted {
            hint_of(definition.hints)
        } else {
            Hint::Unknown
        };
        Self {
            spec: ToolSpec {
                name: format!("{alias}.{}", definition.name),
                description: definition.description.clone(),
                input_schema: definition.input_schema.clone(),
            },
            validation_schema: checkable(&definition.input_schema),
            bare_name: definition.name.clone(),
            alias,
            hint,
            digest: OnceLock::new(),
            pinned,
            caller,
            pins,
        }
    }

    /// Which one it is, as it was let through.
    fn told(&self) -> Told<'_> {
        Told {
            alias: &self.alias,
            tool: &self.bare_name,
            pinned: Some(&self.pinned),
        }
    }

    fn digest(&self) -> &Digest {
        self.digest.get_or_init(|| self.pinned.digest())
    }

    async fn call(
        &self,
        arguments: &Map<String, Value>,
        answers: Option<&Map<String, Value>>,
        bytes_max: usize,
        progress: &dyn Progress,
    ) -> Ran {
        let steps = Steps::new();
        let call = self.caller.call(Call {
            alias: &self.alias,
            tool: &self.bare_name,
            pinned: Some(&self.pinned),
            arguments,
            answers,
            bytes_max,
            watch: steps.watch(),
        });
        let verified = async {
            self.caller.verify(self.told()).await?;
            self.pins.pin(&self.spec.name, &self.pinned);
            call.await
        };
        let result = steps.shown_while(verified, progress).await;
        match result {
            Ok(outcome) => Ran::Output(self.output_of(outcome)),
            Err(McpError {
                kind: ErrorKind::InputRequired(required),
                ..
            }) => Ran::Asks(Asks {
                lines: required.lines(),
                state: required.kept(),
            }),
            Err(error) => Ran::Output(self.failure(&error)),
        }
    }

    /// Runs a call, or the rest of one, until it is over, asks something or is cancelled.
    async fn until_cancelled(
        &self,
        action: &Action,
        answers: Option<&Map<String, Value>>,
        (bytes_max, progress): (usize, &dyn Progress),
        mut cancel: Cancel,
    ) -> Ran {
        let Value::Object(arguments) = &action.arguments else {
            return Ran::Output(ToolOutput::error("The arguments are no object"));
        };
        tokio::select! {
            biased;
            () = cancelled(&mut cancel) => Ran::Output(ToolOutput::error(CANCELLED)),
            ran = self.call(arguments, answers, bytes_max, progress) => ran,
        }
    }

    /// What there is to be known of a call that could not be asked about now.
    fn unanswered(&self, error: &McpError) -> Put {
        let may_come_back = match error.kind {
            ErrorKind::InputRequired(_)
            | ErrorKind::Timeout
            | ErrorKind::Unreachable
            | ErrorKind::SessionLost
            | ErrorKind::Closed
            | ErrorKind::Unusable
            | ErrorKind::Unauthorized { .. }
            | ErrorKind::Forbidden
            | ErrorKind::Status(_) => true,
            ErrorKind::Protocol
            | ErrorKind::TooLarge
            | ErrorKind::Rpc { .. }
            | ErrorKind::Version
            | ErrorKind::Cancelled => false,
        };
        if may_come_back {
            Put::Waits(self.line(&shortened(&error.message, MESSAGE_CHARS_MAX)))
        } else {
            Put::Ended(self.failure(error))
        }
    }

    /// The outcome as a result. Models that are told nothing at all would take a sound for a tool that did nothing; images go
    /// along, and whoever sends them says so where they do not.
    fn output_of(&self, outcome: Outcome) -> ToolOutput {
        for remark in &outcome.remarks {
            self.status(remark);
        }
        let output = if outcome.text.is_empty() && outcome.images.is_empty() {
            let remarks: Vec<String> = outcome.remarks.iter().map(|remark| format!("[{remark}]")).collect();
            remarks.join("\n")
        } else {
            outcome.text
        };
        ToolOutput {
            summary: summary_of(&output, outcome.images.len()),
            output,
            success: !outcome.is_error,
            parts: outcome.images,
        }
    }

    fn failure(&self, error: &McpError) -> ToolOutput {
        let message = shortened(&error.message, MESSAGE_CHARS_MAX);
        if error.kind != ErrorKind::Cancelled {
            self.status(&message);
        }
        ToolOutput::error(message)
    }

    /// `mcp: alias.tool: line`.
    fn line(&self, line: &str) -> String {
        format!("mcp: {}: {line}", shortened(&self.spec.name, SUMMARY_CHARS_MAX))
    }

    fn status(&self, line: &str) {
        self.caller.status(&self.line(line));
    }
}

impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn validation_schema(&self) -> &Value {
        &self.validation_schema
    }

    fn source(&self) -> CallSource {
        CallSource::Mcp
    }

    fn inspect(&self, arguments: &Value, _context: &ToolContext) -> Result<Action, String> {
        Ok(Action {
            tool: self.spec.name.clone(),
            arguments: arguments.clone(),
            effects: vec![Effect::Delegate {
                definition: self.digest().clone(),
                hint: self.hint,
                changed: self.pins.changed(&self.spec.name, &self.pinned),
            }],
        })
    }

    fn approved(&self, action: &Action) {
        // What was let through may have been another definition than this one, a moment ago.
        let is_this =
            |effect: &Effect| matches!(effect, Effect::Delegate { definition, .. } if definition == self.digest());
        // What is known from before only is pinned when the call finds it there: one that is refused changes no pin.
        let is_offered = || {
            self.caller
                .verify(self.told())
                .now_or_never()
                .is_some_and(|it| it.is_ok())
        };
        if action.effects.iter().any(is_this) && is_offered() {
            self.pins.pin(&self.spec.name, &self.pinned);
        }
    }

    fn run<'a>(
        &'a self,
        action: &'a Action,
        context: &'a ToolContext,
        progress: &'a dyn Progress,
        cancel: Cancel,
    ) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            match self.run_or_ask(action, context, progress, cancel).await {
                Ran::Output(output) => output,
                Ran::Asks(_) => ToolOutput::error("it asks something of the user, and nobody is here to answer"),
            }
        })
    }

    fn run_or_ask<'a>(
        &'a self,
        action: &'a Action,
        context: &'a ToolContext,
        progress: &'a dyn Progress,
        cancel: Cancel,
    ) -> BoxFuture<'a, Ran> {
        let bounds = (context.output_bytes_max, progress);
        Box::pin(self.until_cancelled(action, None, bounds, cancel))
    }

    fn put<'a>(&'a self, _action: &'a Action, state: &'a Value, mut cancel: Cancel) -> BoxFuture<'a, Put> {
        Box::pin(async move {
            let Some(required) = InputRequired::read(state) else {
                return Put::Ended(ToolOutput::error("What the call asked was not kept"));
            };
            tokio::select! {
                biased;
                () = cancelled(&mut cancel) => Put::Waits(self.line(CANCELLED)),
                answers = self.caller.answers(self.told(), &required) => match answers {
                    Ok(answers) => Put::Answered(Value::Object(answers)),
                    Err(error) => self.unanswered(&error),
                },
            }
        })
    }

    fn go_on<'a>(
        &'a self,
        action: &'a Action,
        context: &'a ToolContext,
        progress: &'a dyn Progress,
        cancel: Cancel,
        answers: &'a Value,
    ) -> BoxFuture<'a, Ran> {
        let bounds = (context.output_bytes_max, progress);
        Box::pin(self.until_cancelled(action, answers.as_object(), bounds, cancel))
    }
}

/// What a trusted server says of a tool. Without `destructiveHint` a tool may destroy, as the protocol has it; one that is said
/// to read only and to destroy is not understood.
fn hint_of(hints: Hints) -> Hint {
    match (hints.read_only, hints.destructive) {
        (Some(true), None | Some(false)) => Hint::ReadOnly,
        (None | Some(false), Some(false)) => Hint::Additive,
        (Some(true), Some(true)) | (None | Some(false), None | Some(true)) => Hint::Unknown,
    }
}

/// `reading (3/10)`, as a line; raw, as all progress is.
fn progress_line(step: &Progressed) -> String {
    let mut numbers = number(step.progress);
    if let Some(total) = step.total {
        numbers = format!("{numbers}/{}", number(total));
    }
    match step
        .message
        .as_deref()
        .map(str::trim)
        .filter(|message| !message.is_empty())
    {
        Some(message) => format!("{} ({numbers})", shortened(message, MESSAGE_CHARS_MAX)),
        None => numbers,
    }
}

/// A number of any size in a few digits.
fn number(value: f64) -> String {
    if value.abs() < PLAIN_NUMBER_MAX {
        let rounded = (value * 100.0).round() / 100.0;
        rounded.to_string()
    } else {
        format!("{value:e}")
    }
}

/// The line, where there is one; else how many there are. And how many images.
fn summary_of(output: &str, images: usize) -> String {
    let text = output.trim();
    let said = match text.lines().count() {
        0 if images > 0 => String::new(),
        0 => "no output".to_owned(),
        1 => shortened(text, SUMMARY_CHARS_MAX),
        lines => format!("{lines} lines"),
    };
    let pictures = match images {
        0 => return said,
        1 => "1 image".to_owned(),
        many => format!("{many} images"),
    };
    if said.is_empty() {
        pictures
    } else {
        format!("{said}, {pictures}")
    }
}

mod steps;

#[cfg(test)]
mod tests;
