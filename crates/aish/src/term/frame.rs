//! Frames: what sets a call or a command off from the conversation (SPEC 8.5).
//!
//! A frame is a head (a rule with what runs, in full), rows of what it prints, and a foot (a rule with what came of it).
//! Parts of it are written as they become known, so a frame may be interrupted and taken up again. Where nothing is laid out, words
//! stand for the rules: a screen reader says them.

use super::look::{DIM, Form, Look, RED};
use super::rows::{Rows, width_of};
use aish_core::event::ResultEnd;
use aish_core::sanitize;
use serde_json::Value;
use std::time::Duration;

/// Before the rows of a frame.
pub(super) const INDENT: &str = "    ";
/// The beginning of a rule.
const RULE_START: &str = "─── ";
/// What fills a rule up to the width.
const RULE_FILL: &str = "─";
/// A call shorter than this took no time a person cares about.
const DURATION_SHOWN_MS_MIN: u128 = 1_000;

/// What came of a call.
pub(super) struct Foot<'a> {
    /// One readable line.
    pub summary: &'a str,
    /// False paints it red.
    pub success: bool,
    /// What kind of end.
    pub end: ResultEnd,
    /// How long it took, where known.
    pub took: Option<Duration>,
}

/// Whose frame it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// A call of the model's.
    Call,
    /// A command of the user's own.
    Command,
}

/// The head of a frame, whole rows.
pub(super) fn head(look: Look, owner: Owner, readable: &str) -> String {
    let text = match (look.form, owner) {
        (Form::Framed, Owner::Call) => readable.to_owned(),
        (Form::Framed, Owner::Command) => format!("! {readable}"),
        (Form::Plain, Owner::Call) => format!("call: {readable}"),
        (Form::Plain, Owner::Command) => format!("command: {readable}"),
    };
    look.paint(DIM, &rule(look, &text)) + "\n"
}

/// The foot of a frame, whole rows.
pub(super) fn foot(look: Look, foot: &Foot<'_>) -> String {
    let done = match look.form {
        Form::Framed => None,
        Form::Plain => Some("done"),
    };
    let mut text = match label(foot.success, foot.end).or(done) {
        Some(label) if !foot.summary.starts_with(label) => format!("{label}: {}", foot.summary),
        Some(_) | None => foot.summary.to_owned(),
    };
    if let Some(took) = foot.took.filter(|took| took.as_millis() >= DURATION_SHOWN_MS_MIN) {
        text.push_str(gap(look));
        text.push_str(&duration(took));
    }
    look.paint(if foot.success { DIM } else { RED }, &rule(look, &text)) + "\n"
}

/// What stands between two things said of an end.
pub(super) fn gap(look: Look) -> &'static str {
    match look.form {
        Form::Framed => " · ",
        Form::Plain => ", ",
    }
}

/// How many lines are not shown, and what shows them.
pub(super) fn hidden(look: Look, lines: usize, command: &str) -> String {
    let start = match look.form {
        Form::Framed => "… ",
        Form::Plain => "",
    };
    let lines = match lines {
        1 => "1 more line".to_owned(),
        n => format!("{n} more lines"),
    };
    remark(look, &format!("{start}{lines} ({command})"))
}

/// A line in the frame's own words, e.g. how much is not shown.
fn remark(look: Look, text: &str) -> String {
    look.paint(DIM, &format!("{INDENT}{text}")) + "\n"
}

/// The part of a result a person reads: `output` of the built-in tools' JSON, or the text as it is. What only repeats
/// the summary is left out.
pub fn body_of(output: &str, summary: &str) -> String {
    let text = match serde_json::from_str(output) {
        Ok(Value::Object(fields)) => match (fields.get("output"), fields.get("error")) {
            (Some(Value::String(text)), _) | (None, Some(Value::String(text))) => text.clone(),
            (None | Some(_), _) => output.to_owned(),
        },
        Ok(_) | Err(_) => output.to_owned(),
    };
    if text.trim().eq_ignore_ascii_case(summary.trim()) {
        String::new()
    } else {
        text
    }
}

/// `1.5 s`, `2 min 5 s`.
pub(super) fn duration(took: Duration) -> String {
    let seconds = took.as_secs();
    if seconds < 60 {
        format!("{}.{} s", seconds, took.subsec_millis() / 100)
    } else {
        format!("{} min {} s", seconds / 60, seconds % 60)
    }
}

fn label(success: bool, end: ResultEnd) -> Option<&'static str> {
    match end {
        ResultEnd::Completed => (!success).then_some("failed"),
        ResultEnd::Declined => Some("declined"),
        ResultEnd::Denied => Some("denied"),
        ResultEnd::Invalid | ResultEnd::NotRun => Some("not run"),
        ResultEnd::Interrupted => Some("in doubt"),
        ResultEnd::Limit => Some("limit reached"),
        ResultEnd::Duplicate => Some("same call as before"),
    }
}

/// A rule with a text in it. What does not fit goes on over further rows: nothing of a call is ever left out.
pub(super) fn rule(look: Look, text: &str) -> String {
    let text = sanitize::single_line(text);
    if look.form == Form::Plain {
        return text.into_owned();
    }
    let mut out = String::new();
    let mut rows = Rows::new("", INDENT, look.width());
    rows.push(RULE_START, &mut out);
    rows.push(&text, &mut out);
    let left = look.width().saturating_sub(rows.column() + width_of(" "));
    if left > 0 {
        out.push(' ');
        out.push_str(&RULE_FILL.repeat(left));
    }
    out
}
