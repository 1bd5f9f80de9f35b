//! A command of the person's own, after it ran in their shell: its line stands at the prompt and its output below it as it came,
//! so all that is left to say is how it ended, where that is out of the ordinary.

use super::frame::{duration, gap, rule};
use super::look::{DIM, Form, Look, RED};
use aish_core::event::Command;
use std::time::Duration;

/// A command that took as long as this is said to have taken so long.
const TOOK_LONG_MS: u64 = 2_000;
/// Statuses of a command that was stopped, and is a job now: 128 and the number of `STOP`, `TSTP`, `TTIN` or `TTOU`. The shell
/// has said so.
const STOPPED: std::ops::RangeInclusive<i32> = 147..=150;

/// Stands behind output whose last line was not ended.
const UNENDED: &str = "⏎";

/// What ends the line that a command left unended, and says that it did not end it: what follows is not its output.
pub fn line_end(look: Look) -> String {
    match look.form {
        Form::Framed => look.paint(DIM, UNENDED) + "\n",
        Form::Plain => "\n".to_owned(),
    }
}

/// True for the status of a command that was stopped: it has not failed, it has not ended.
pub fn was_stopped(status: Option<i32>) -> bool {
    status.is_some_and(|status| STOPPED.contains(&status))
}

/// What is said below its output: a row, or nothing.
pub fn foot(look: Look, command: &Command) -> Option<String> {
    let status = command.status.unwrap_or_default();
    let has_failed = status != 0 && !was_stopped(command.status);
    let took = Some(command.duration_ms).filter(|took| *took >= TOOK_LONG_MS);
    let took = took.map(|took| duration(Duration::from_millis(took)));
    let text = match (has_failed, took) {
        (false, None) => return None,
        (false, Some(took)) => took,
        (true, None) => format!("exit {status}"),
        (true, Some(took)) => format!("exit {status}{}{took}", gap(look)),
    };
    let text = match (look.form, has_failed) {
        (Form::Framed, _) => text,
        // Below output that goes on for screens, nothing else says what it is that failed.
        (Form::Plain, true) => format!("command failed: {text}"),
        (Form::Plain, false) => format!("command done: {text}"),
    };
    let style = if has_failed { RED } else { DIM };
    Some(look.paint(style, &rule(look, &text)) + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 8.5: a failed command says so; a short one that went well says nothing.
    #[test]
    fn feet() {
        let check = |status: Option<i32>, duration_ms: u64, expect: Option<&str>| {
            let command = Command {
                status,
                duration_ms,
                ..Command::default()
            };
            let expect = expect.map(|text| format!("command {text}\n"));
            assert_eq!(foot(Look::PLAIN, &command), expect, "{status:?} {duration_ms}");
        };
        check(Some(0), 10, None);
        check(None, 10, None);
        check(Some(0), 3_200, Some("done: 3.2 s"));
        check(Some(1), 10, Some("failed: exit 1"));
        check(Some(130), 65_000, Some("failed: exit 130, 1 min 5 s"));
        check(Some(148), 10, None);
    }
}
