//! The approval prompt (SPEC 5.3): what is shown, what an answer means, and the small talk around it.
//!
//! *All* of a call is shown: escaped, never hidden, never cut. Values of several lines are shown as lines, each behind a
//! mark of ours, so that no value can draw a prompt of its own. Of a tool whose definition changed since it was approved, the
//! difference is shown first (SPEC 6.8), behind such marks too.
//!
//! | answer | meaning |
//! |---|---|
//! | begins with `y` or `Y` | this call, once |
//! | exactly `a` | this tool (a command: exactly this one) for the rest of the session |
//! | exactly `s` | as `a`, and a rule that is shown first is saved |
//! | exactly `?` | explains and asks again |
//! | `n REASON`, `no REASON` | no, and the model is told why |
//! | anything else, or the end of input | no |

use super::look::{BOLD, DIM, Look};
use super::rows::{Rows, width_of};
use super::tty::{Line, Person};
use aish_core::Action;
use aish_core::policy::Rule;
use aish_core::sanitize;
use aish_engine::Pending;
use aish_tools::Cancel;
use serde::Deserialize;
use serde_json::Value;
use std::io;

/// Before every line of a value that has several.
const VALUE_LINE_START: &str = "    │ ";
/// Before a row that goes on with such a line.
const VALUE_WRAP_START: &str = "    ╎ ";
/// Before a row that goes on with the call.
const CALL_WRAP_START: &str = "    ";
/// What may be answered.
const CHOICES: &str = "[y/N/a/s/?] ";
/// Blanks in a row that are shown as they are.
const BLANKS_MAX: usize = 40;

/// What an answer means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// This call, once.
    Once,
    /// Its like, for the rest of the session.
    Session,
    /// Its like, from now on.
    Save,
    /// What do these letters mean?
    Explain,
    /// No, perhaps with a reason for the model.
    No {
        /// Why not.
        reason: Option<String>,
    },
}

/// What the person decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It may run, this once.
    Once,
    /// It and its like may run for the rest of the session.
    Session,
    /// It and its like may run from now on: this rule is to be saved first.
    Save {
        /// The rule, as it was shown.
        rule: String,
    },
    /// It may not run.
    No {
        /// Why not, for the model.
        reason: Option<String>,
    },
    /// The turn was cancelled instead.
    Cancelled,
}

/// One call to ask about.
pub struct Question<'a> {
    /// The call.
    pub pending: &'a Pending,
    /// What it would do now; no rule is offered without it, or if that is not what was judged.
    pub action: Option<&'a Action>,
    /// Which of how many questions in a row this is, from 1.
    pub place: (usize, usize),
}

/// Reads an answer; `None` is the end of input.
pub fn parse(line: Option<&str>) -> Reply {
    let Some(line) = line else {
        return Reply::No { reason: None };
    };
    match line {
        "a" => Reply::Session,
        "s" => Reply::Save,
        "?" => Reply::Explain,
        _ if line.starts_with(['y', 'Y']) => Reply::Once,
        _ => Reply::No {
            reason: reason_of(line),
        },
    }
}

/// The reason in `n REASON`, `no, REASON`.
pub(super) fn reason_of(line: &str) -> Option<String> {
    let (word, reason) = line.split_once([' ', ',', ':'])?;
    let is_no = word.eq_ignore_ascii_case("n") || word.eq_ignore_ascii_case("no");
    let reason = reason.trim();
    (is_no && !reason.is_empty()).then(|| reason.to_owned())
}

/// Asks until there is a decision.
///
/// # Errors
/// The terminal failed.
pub async fn decide(
    person: &impl Person,
    question: &Question<'_>,
    look: Look,
    cancel: &Cancel,
) -> io::Result<Decision> {
    // A rule for something else than what is shown must never be offered (SPEC 3.3).
    let action = question
        .action
        .filter(|action| action.digest() == question.pending.digest);
    let question = &Question { action, ..*question };
    let mut prompt = prompt(question, look);
    loop {
        let line = match person.ask_line(prompt, cancel.clone()).await? {
            Line::Cancelled => return Ok(Decision::Cancelled),
            Line::End => None,
            Line::Said(line) => Some(line),
        };
        prompt = match (parse(line.as_deref()), question.action.and_then(Rule::allowing)) {
            (Reply::Once, _) => return Ok(Decision::Once),
            (Reply::Session, _) => return Ok(Decision::Session),
            (Reply::No { reason }, _) => return Ok(Decision::No { reason }),
            (Reply::Explain, _) => explanation(question, look) + &call(question.pending, look),
            (Reply::Save, None) => {
                let line = "  No rule can be made for this call: what it would do has changed since it was judged.\n";
                look.paint(DIM, line) + &call(question.pending, look)
            }
            (Reply::Save, Some(rule)) => {
                let rule = rule.to_string();
                let ask = format!("  allow from now on: {}\n", sanitize::single_line(&rule));
                let ask = look.paint(DIM, &ask) + "  save this rule? [y/N] ";
                match person.ask_line(ask, cancel.clone()).await? {
                    Line::Cancelled => return Ok(Decision::Cancelled),
                    Line::Said(line) if line.starts_with(['y', 'Y']) => return Ok(Decision::Save { rule }),
                    Line::Said(_) | Line::End => call(question.pending, look),
                }
            }
        };
    }
}

/// The whole question: why it is asked, then the call.
pub fn prompt(question: &Question<'_>, look: Look) -> String {
    let (n, of) = question.place;
    let pending = question.pending;
    let place = if of > 1 {
        format!("{n} of {of}, ")
    } else {
        String::new()
    };
    let why = format!(
        "{place}asked because: {} · {} · {}",
        sanitize::single_line(&pending.rule),
        pending.call_id,
        pending.digest.short()
    );
    let mut rows = Rows::new("", "  ", look.width());
    let mut out = String::new();
    rows.push(&why, &mut out);
    rows.break_row(&mut out);
    let change = question
        .action
        .and_then(Action::changed)
        .map(|lines| change(lines, look));
    look.paint(DIM, &out) + &change.unwrap_or_default() + &call(pending, look)
}

/// How the tool's definition differs from the one that was approved.
fn change(lines: &str, look: Look) -> String {
    let mut out = String::new();
    for line in lines.lines() {
        let mut rows = Rows::new(VALUE_LINE_START, VALUE_WRAP_START, look.width());
        rows.push(&sanitize::single_line(line), &mut out);
        rows.break_row(&mut out);
    }
    format!(
        "  {}\n{out}",
        look.paint(BOLD, "this tool is not the one that was approved:")
    )
}

/// The text with its long gaps told instead of shown: blanks would push what stands before them off the screen.
pub(super) fn in_sight(text: &str) -> String {
    let mut out = String::new();
    let mut blanks = 0;
    let end = |blanks: usize, out: &mut String| {
        if blanks > BLANKS_MAX {
            out.push_str(&format!(" ⟨{blanks} blanks⟩ "));
        } else {
            out.push_str(&" ".repeat(blanks));
        }
    };
    for c in text.chars() {
        if c == ' ' {
            blanks += 1;
            continue;
        }
        end(std::mem::take(&mut blanks), &mut out);
        out.push(c);
    }
    end(blanks, &mut out);
    out
}

/// `call 'tool(key="value")'? [y/N/a/s/?] `, all of it.
fn call(pending: &Pending, look: Look) -> String {
    let mut out = String::new();
    let mut rows = Rows::new("", CALL_WRAP_START, look.width());
    let name = sanitize::single_line(&pending.tool).into_owned();
    rows.push(&format!("call '{name}("), &mut out);
    match serde_json::from_str::<Entries>(&pending.arguments) {
        Ok(Entries(entries)) => {
            for (n, (key, value)) in entries.iter().enumerate() {
                let comma = if n > 0 { ", " } else { "" };
                rows.push(&format!("{comma}{}=", sanitize::single_line(key)), &mut out);
                match value {
                    Value::String(text) if text.contains('\n') => lines_of(text, look, &mut rows, &mut out),
                    Value::Null
                    | Value::Bool(_)
                    | Value::Number(_)
                    | Value::String(_)
                    | Value::Array(_)
                    | Value::Object(_) => rows.push(&in_sight(&sanitize::single_line(&value.to_string())), &mut out),
                }
            }
        }
        Err(_) => rows.push(&in_sight(&sanitize::single_line(&pending.arguments)), &mut out),
    }
    rows.push(")'?", &mut out);
    // The choices stay together: a person looks for them, and so do scripts.
    let fits = rows.column() + width_of(" ") + width_of(CHOICES) <= look.width();
    out.push_str(if fits { " " } else { "\n" });
    look.paint(BOLD, &out) + CHOICES
}

/// A value of several lines, as lines.
fn lines_of(text: &str, look: Look, around: &mut Rows, out: &mut String) {
    around.break_row(out);
    let mut rows = Rows::new(VALUE_LINE_START, VALUE_WRAP_START, look.width());
    let whole = text.strip_suffix('\n');
    for line in whole.unwrap_or(text).split('\n') {
        if line.is_empty() {
            // An empty line gets its mark as well.
            out.push_str(VALUE_LINE_START.trim_end());
            out.push('\n');
        } else {
            rows.push(&sanitize::multi_line(line), out);
            rows.break_row(out);
        }
    }
    if whole.is_none() {
        around.push("    (no line break at the end)", out);
        around.break_row(out);
    }
}

fn explanation(question: &Question<'_>, look: Look) -> String {
    let name = sanitize::single_line(&question.pending.tool).into_owned();
    let like = match question.action.and_then(Action::command) {
        Some(_) => "exactly this command".to_owned(),
        None => format!("every call of {name}"),
    };
    let rule = match question.action.and_then(Rule::allowing) {
        Some(rule) => format!(
            "saves a rule for it, after showing it: {}",
            sanitize::single_line(&rule.to_string())
        ),
        None => "saves a rule (not possible for this call)".to_owned(),
    };
    let text = format!(
        "  y         run this call, once\n  n REASON  refuse, and tell the model why; any other answer refuses as well\n  \
         a         allow {like} until this session is over\n  s         {rule}\n  Ctrl-C    stop the whole turn\n"
    );
    look.paint(DIM, &text)
}

/// A JSON object's entries in the order they were written: the person reads what the model wrote, not a sorted copy.
struct Entries(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Entries;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a JSON object")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}
