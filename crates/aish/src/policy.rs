//! `aish policy`: what the rules in force make of a command line, without running anything (SPEC 5.7).
//!
//! A command is judged as a call of `bash` is: the same tool takes it apart, the same policy judges it, in the configured mode and
//! without the approvals of any session. A table of expectations ([`test()`]) is one on each line: `allow`, `ask` or `deny`, blanks,
//! and the command up to the end of the line; `#` begins a comment.

use crate::app::App;
use crate::cli;
use crate::failure::{DONE, FAILED, Failure};
use crate::json::printable;
use crate::sessions::print;
use aish_core::parts::{Inner, Parts, SimpleCommand};
use aish_core::policy::Verdict;
use aish_core::sanitize::single_line;
use aish_engine::JudgedCommand;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// The longest table that is read, in bytes.
const TABLE_BYTES_MAX: u64 = 1 << 20;

/// Runs one of the commands.
///
/// # Errors
/// The command, or the table, cannot be judged or printed.
pub fn run(app: &App, what: &cli::Policy) -> Result<u8, Failure> {
    let (engine, _) = app.engine_without_model();
    let judge = |line: &str| engine.judge_command(line, None, &[]);
    match what {
        cli::Policy::Explain { json, command } => {
            let judged = judge(command).map_err(Failure::usage)?;
            let text = if *json {
                format!("{}\n", printable(&as_json(command, &judged).to_string()))
            } else {
                explained(&judged)
            };
            print(&text)
        }
        cli::Policy::Test { file } => test(file, judge),
    }
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Allow => "allow",
        Verdict::Ask => "ask",
        Verdict::Deny => "deny",
        Verdict::Invalid => "invalid",
    }
}

/// For people: the verdict and the rule, then the parts, one a line.
fn explained(judged: &JudgedCommand) -> String {
    let mut lines = vec![format!("{}: {}", word(judged.judgement.verdict), judged.judgement.rule)];
    if let Some(parts) = judged.action.parts() {
        lines.extend(parts.commands.iter().map(explained_command));
        let redirects = parts.redirects.iter();
        lines.extend(redirects.map(|redirect| format!("  {} {}", redirect.operator, redirect.target.text)));
        let assignments = parts.assignments.iter();
        lines.extend(assignments.map(|assignment| format!("  sets {}", assignment.name)));
        lines.extend(parts.doubt.iter().map(|doubt| format!("  in doubt: {doubt}")));
    }
    let mut text = String::new();
    for line in lines {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", single_line(&line));
    }
    text
}

fn explained_command(command: &SimpleCommand) -> String {
    let mut line = format!("  {}", told(command));
    if !command.by.is_empty() {
        line.push_str(&format!("  (run by {})", command.by.join(", ")));
    }
    line.push_str(match command.inner {
        Inner::Hidden => "  (runs what cannot be told)",
        Inner::Alone => "  (does nothing but run another)",
        Inner::None | Inner::Seen => "",
    });
    line
}

/// A command with its quotes taken off, as far as that can be told.
fn told(command: &SimpleCommand) -> String {
    let words = command
        .all_words()
        .map(|word| word.value.as_ref().unwrap_or(&word.text).as_str());
    words.collect::<Vec<_>>().join(" ")
}

fn as_json(line: &str, judged: &JudgedCommand) -> Value {
    let none = Parts::default();
    let parts = judged.action.parts().unwrap_or(&none);
    let commands = parts.commands.iter().map(|command| {
        let words = command.words.iter().map(|word| match &word.value {
            Some(value) => json!({ "value": value, "expands": word.expands }),
            None => json!({ "text": word.text }),
        });
        json!({
            "command": told(command),
            "words": words.collect::<Vec<_>>(),
            "by": command.by,
            "inner": match command.inner {
                Inner::None => "none",
                Inner::Seen => "seen",
                Inner::Alone => "alone",
                Inner::Hidden => "hidden",
            },
        })
    });
    let redirects = parts.redirects.iter();
    let redirects = redirects.map(|redirect| json!({ "operator": redirect.operator, "target": redirect.target.text }));
    let sets: Vec<&str> = parts
        .assignments
        .iter()
        .map(|assignment| assignment.name.as_str())
        .collect();
    json!({
        "command": line,
        "verdict": word(judged.judgement.verdict),
        "rule": judged.judgement.rule,
        "parts": commands.collect::<Vec<_>>(),
        "redirects": redirects.collect::<Vec<_>>(),
        "sets": sets,
        "doubt": parts.doubt,
    })
}

/// Runs a table of expectations and says which do not hold.
fn test(file: &Path, judge: impl Fn(&str) -> Result<JudgedCommand, String>) -> Result<u8, Failure> {
    let table = read(file)?;
    let name = single_line(&file.display().to_string()).into_owned();
    let (mut held, mut report) = (0, String::new());
    for (n, line) in table.lines().enumerate() {
        let at = format!("{name}:{}", n + 1);
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (expected, command) = line.split_once([' ', '\t']).unwrap_or((line, ""));
        let expected = [Verdict::Allow, Verdict::Ask, Verdict::Deny]
            .into_iter()
            .find(|verdict| word(*verdict) == expected)
            .ok_or_else(|| wrong(&at, "a line begins with allow, ask or deny"))?;
        let judged = judge(command.trim()).map_err(|problem| wrong(&at, &problem))?;
        if judged.judgement.verdict == expected {
            held += 1;
            continue;
        }
        let (got, rule) = (
            word(judged.judgement.verdict),
            single_line(&judged.judgement.rule).into_owned(),
        );
        let command = single_line(command.trim());
        // Writing to a string cannot fail.
        let _ = writeln!(
            report,
            "{at}: expected {}, got {got} ({rule}): {command}",
            word(expected)
        );
    }
    let failed = report.lines().count();
    let _ = match failed {
        0 => writeln!(report, "{held} expectations hold"),
        _ => writeln!(report, "{failed} of {} expectations do not hold", failed + held),
    };
    print(&report)?;
    Ok(if failed == 0 { DONE } else { FAILED })
}

fn read(file: &Path) -> Result<String, Failure> {
    let cannot = |why: String| Failure::usage(format!("cannot read {}: {why}", file.display()));
    let mut table = String::new();
    // The size of a device or a pipe says nothing of what comes out of it.
    let read = File::open(file).and_then(|file| file.take(TABLE_BYTES_MAX + 1).read_to_string(&mut table));
    read.map_err(|error| cannot(error.to_string()))?;
    if u64::try_from(table.len()).unwrap_or(u64::MAX) > TABLE_BYTES_MAX {
        return Err(cannot(format!("it is longer than {TABLE_BYTES_MAX} bytes")));
    }
    Ok(table)
}

fn wrong(at: &str, problem: &str) -> Failure {
    Failure::usage(format!("{at}: {problem}")).hint("e.g. deny  rm -rf /")
}
