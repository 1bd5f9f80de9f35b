//! What a call asks for, and what it is answered: the words and JSON shapes of `bash` (SPEC 4, 4.1, 4.4).

use super::process::{End, Running};
use crate::ToolOutput;
use crate::work::CANCELLED;
use serde::Serialize;
use serde_json::Value;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// What a shell adds to a signal's number to make an exit code of it.
const SIGNAL_EXIT_BASE: i32 = 128;

/// What a call asks for.
pub(super) enum Request<'a> {
    /// Run a command.
    Run {
        command: &'a str,
        timeout_s: Option<u64>,
        mode: Mode,
    },
    /// Do something with a job.
    Job { job: &'a str, action: JobAction },
}

/// Whether the call waits for the command.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Foreground,
    Background,
}

/// What to do with a job.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum JobAction {
    Read,
    Stop,
}

impl<'a> Request<'a> {
    /// Reads the arguments. An empty command or job counts as none: models fill in what they do not need.
    ///
    /// # Errors
    /// `Missing required parameter: command`, or that there is both a command and a job.
    pub(super) fn of(arguments: &'a Value) -> Result<Self, String> {
        let text = |name| {
            let value = arguments.get(name).and_then(Value::as_str);
            value.filter(|text| !text.trim().is_empty())
        };
        match (text("command"), text("job")) {
            (None, None) => Err("Missing required parameter: command".to_owned()),
            (Some(_), Some(_)) => Err("Give either command or job, not both".to_owned()),
            (Some(command), None) if command.contains('\0') => Err("Command contains a NUL character".to_owned()),
            (Some(command), None) => Ok(Self::Run {
                command,
                timeout_s: arguments.get("timeout_s").and_then(Value::as_u64),
                mode: match arguments.get("background").and_then(Value::as_bool) {
                    Some(true) => Mode::Background,
                    Some(false) | None => Mode::Foreground,
                },
            }),
            (None, Some(job)) => Ok(Self::Job {
                job,
                action: match text("action") {
                    Some("stop") => JobAction::Stop,
                    Some(_) | None => JobAction::Read,
                },
            }),
        }
    }
}

/// Which answer is wanted.
#[derive(Clone, Copy)]
pub(super) enum Report<'a> {
    /// A command has ended.
    Command { time_max_s: u64 },
    /// A command was cancelled and may not have ended yet.
    Cancelled,
    /// A job was started and may have ended already.
    JobStarted { job: &'a str },
    /// A job was read or stopped.
    Job { job: &'a str },
}

#[derive(Default, Serialize)]
struct Answer<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    output: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    running: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<String>,
}

/// The answer of a call, with the output that was not given out yet.
pub(super) fn report(running: &Running, report: Report<'_>) -> ToolOutput {
    let end = running.end();
    let mut answer = Answer {
        output: running.take_output(),
        ..Answer::default()
    };
    let state = match &end {
        Some(End::Exited(status) | End::Stopped(Some(status))) => answer.set_status(*status),
        Some(End::Stopped(None)) => "stopped".to_owned(),
        Some(End::TimedOut) => "timed out".to_owned(),
        Some(End::Failed(message)) => {
            answer.error = Some(message.clone());
            message.clone()
        }
        None => "running".to_owned(),
    };
    let summary = match report {
        Report::Command { time_max_s } => {
            if matches!(end, Some(End::TimedOut)) {
                answer.error = Some(format!("Command timed out after {time_max_s} s"));
            }
            answer.error.clone().unwrap_or(state)
        }
        Report::Cancelled => {
            answer = Answer {
                error: Some(CANCELLED.to_owned()),
                output: answer.output,
                ..Answer::default()
            };
            CANCELLED.to_owned()
        }
        Report::JobStarted { job } => {
            answer.job = Some(job);
            format!("job {job} started, {state}")
        }
        Report::Job { job } => {
            answer.running = Some(end.is_none());
            format!("job {job}: {state}")
        }
    };
    if matches!(
        (&end, &report),
        (Some(End::TimedOut), Report::JobStarted { .. } | Report::Job { .. })
    ) {
        answer.error = Some("Command timed out".to_owned());
    }
    ToolOutput {
        success: answer.error.is_none(),
        output: serde_json::to_string(&answer).unwrap_or_default(),
        summary,
        parts: Vec::new(),
    }
}

impl Answer<'_> {
    /// Puts in how the first process ended; returns it in words.
    fn set_status(&mut self, status: ExitStatus) -> String {
        if let Some(code) = status.code() {
            self.exit_code = Some(code);
            return format!("exit {code}");
        }
        let number = status.signal().unwrap_or_default();
        let name = signal_name(number);
        self.exit_code = Some(SIGNAL_EXIT_BASE + number);
        self.signal = Some(name.clone());
        format!("killed by {name}")
    }
}

/// `SIGKILL` for 9; a real-time or unknown signal is `signal 42`.
fn signal_name(number: i32) -> String {
    let names = [
        "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM",
        "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF",
        "WINCH", "IO", "PWR", "SYS",
    ];
    let index = usize::try_from(number - 1).ok();
    match index.and_then(|index| names.get(index)) {
        Some(name) => format!("SIG{name}"),
        None => format!("signal {number}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 4.1: a command killed by a signal reports it, by its name.
    #[test]
    fn signals_have_names() {
        for (number, name) in [
            (1, "SIGHUP"),
            (9, "SIGKILL"),
            (15, "SIGTERM"),
            (31, "SIGSYS"),
            (64, "signal 64"),
        ] {
            assert_eq!(signal_name(number), name);
        }
    }
}
