//! A session as text: JSON Lines for programs (SPEC 2.10), Markdown for people. Pure functions over [`RawEvent`]s, so that
//! an export needs no more than a page of events at a time and never changes what it does not understand.

use crate::RawEvent;
use aish_core::event::{Body, Refused};
use aish_core::id::SessionId;
use aish_core::message::Part;
use serde_json::Value;
use std::fmt::Write as _;

/// Fences of Markdown code are at least this long.
const FENCE_CHARS_MIN: usize = 3;

/// One event as one line, without its newline:
/// `{"session","seq","turn","time","version","kind","content","data"}`. The data is the text of the ledger, unchanged;
/// data that is no JSON (a damaged ledger) becomes a JSON string of itself, so that every line can be read.
pub fn jsonl_line(session: &SessionId, event: &RawEvent) -> String {
    let data = one_line_json(&event.data);
    format!(
        r#"{{"session":{},"seq":{},"turn":{},"time":{},"version":{},"kind":{},"content":{},"data":{data}}}"#,
        json_text(session.as_str()),
        event.seq,
        event.turn,
        event.time,
        event.version,
        json_text(&event.kind),
        json_text(&event.content),
    )
}

fn json_text(text: &str) -> String {
    Value::from(text).to_string()
}

fn one_line_json(data: &str) -> String {
    if serde_json::from_str::<&serde_json::value::RawValue>(data).is_err() {
        return json_text(data);
    }
    // Inside a JSON string a line break is always escaped: one outside is white space.
    data.trim().replace(['\n', '\r'], " ")
}

/// The head of a Markdown export.
pub fn markdown_head(session: &SessionId, title: &str) -> String {
    let title = if title.trim().is_empty() {
        "Session"
    } else {
        title.trim()
    };
    let first_line = title.lines().next().unwrap_or_default();
    format!("# {}\n\nSession `{session}`\n", escape_inline(first_line))
}

/// Events as Markdown, one section each; see [`markdown_head`] for what goes before the first.
pub fn markdown(events: &[RawEvent]) -> String {
    events.iter().map(markdown_section).collect()
}

/// One event as a section of Markdown, with an empty line before it; empty for an event that is no part of the
/// conversation and no command. What the user and the model said is Markdown already and stays as it is, but for its
/// headings, which move below ours; all other text is fenced so that nothing in it can end its fence.
fn markdown_section(event: &RawEvent) -> String {
    let Ok(body) = Body::decode(&event.kind, &event.data) else {
        return section("Unreadable event", &fenced(&event.data, "json"));
    };
    match body {
        Body::System(data) => section("System", &with_parts(said(&event.content), &data.parts)),
        Body::User(data) => section("User", &with_parts(said(&event.content), &data.parts)),
        Body::Assistant(data) => {
            let who = data.model.map_or_else(
                || "aish".to_owned(),
                |model| format!("Assistant ({})", escape_inline(&model)),
            );
            if event.content.trim().is_empty() {
                String::new()
            } else {
                section(&who, &said(&event.content))
            }
        }
        Body::ToolCall(data) => {
            let heading = format!("Call {}", code_span(&data.function.name));
            section(&heading, &fenced(&event.content, ""))
        }
        Body::ToolResult(data) => {
            let outcome = if data.success { "Result" } else { "Failed" };
            let heading = format!("{outcome} of {}", code_span(&data.name));
            let summary = escape_inline(event.content.lines().next().unwrap_or_default());
            let text = format!("{summary}\n\n{}\n", fenced(&data.output, ""));
            section(&heading, &with_parts(text, &data.parts))
        }
        Body::Command(data) => {
            let status = data
                .status
                .map_or_else(|| "no status".to_owned(), |status| format!("status {status}"));
            let text = format!("$ {}\n{}", data.line, data.output);
            let whose = if data.proposed.is_some() {
                "Proposed command"
            } else {
                "Command"
            };
            section(&format!("{whose} ({status})"), &fenced(&text, "console"))
        }
        Body::Note(data) => match Refused::of_note(&data) {
            Some(refused) => {
                let text = fenced(&format!("$ {}", refused.line), "console");
                let why = escape_inline(&refused.words());
                section("Proposed command, not run", &format!("{why}\n\n{text}"))
            }
            None => String::new(),
        },
        Body::Unknown { kind, .. } => section(
            &format!("Unknown event {}", code_span(&kind)),
            &fenced(&event.data, "json"),
        ),
        Body::TurnStarted(_)
        | Body::CallGated(_)
        | Body::CallAnswered(_)
        | Body::CallStarted(_)
        | Body::ModelFailed(_)
        | Body::Suspended(_)
        | Body::Resumed(_)
        | Body::Cancelled(_)
        | Body::TurnEnded(_)
        | Body::Usage(_)
        | Body::ServerAsked(_)
        | Body::ServerAnswered(_)
        | Body::CallSuspended(_)
        | Body::CallTakenUp(_)
        | Body::Clear
        | Body::Mark(_)
        | Body::Rewind(_)
        | Body::Fork(_)
        | Body::Compaction(_)
        | Body::Memory(_) => String::new(),
    }
}

fn section(heading: &str, text: &str) -> String {
    format!("\n## {heading}\n\n{}\n", text.trim_end())
}

/// What came along with a text: what can be read, and the name of what cannot.
fn with_parts(mut text: String, parts: &[Part]) -> String {
    for part in parts {
        match part {
            Part::Context { label, text: context } => {
                let _ = write!(text, "\n{}:\n\n{}\n", code_span(label), fenced(context, ""));
            }
            Part::Image { media_type, .. } => {
                let _ = write!(text, "\n(an image, {})\n", code_span(media_type));
            }
            Part::Text { text: more } => {
                let _ = write!(text, "\n{}", said(more));
            }
            Part::Thinking { .. } | Part::Provider { .. } | Part::Call { .. } | Part::PartialCall { .. } => {}
        }
    }
    text
}

/// Text in a fence longer than any run of backticks in it.
fn fenced(text: &str, language: &str) -> String {
    let fence = "`".repeat(FENCE_CHARS_MIN.max(longest_run(text, '`') + 1));
    let line_end = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    format!("{fence}{language}\n{text}{line_end}{fence}")
}

/// Text in a code span longer than any run of backticks in it, on one line.
fn code_span(text: &str) -> String {
    let ticks = "`".repeat(longest_run(text, '`') + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{ticks}{pad}{}{pad}{ticks}", text.replace(['\n', '\r'], " "))
}

fn longest_run(text: &str, of: char) -> usize {
    text.split(|c| c != of)
        .map(|run| run.chars().count())
        .max()
        .unwrap_or_default()
}

/// What somebody said: a heading of theirs must not read like one of ours, and a fence they left open is closed.
fn said(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut open_fence: Option<&str> = None;
    for line in text.lines() {
        let start = line.trim_start();
        let fence = fence_of(start);
        match (open_fence, fence) {
            (None, Some(_)) => open_fence = fence,
            (Some(open), Some(close)) if close.starts_with(open) && start.trim_end() == close => open_fence = None,
            (None, None) if start.starts_with('#') => out.push_str("##"),
            // Underlined by equals signs or dashes, the line above would be a heading.
            (None, None) if is_underline(start) => out.push('\\'),
            (None | Some(_), _) => {}
        }
        let _ = writeln!(
            out,
            "{}",
            if open_fence.is_none() && start.starts_with('#') {
                start
            } else {
                line
            }
        );
    }
    if let Some(open) = open_fence {
        out.push_str(open);
    }
    out
}

/// The run of backticks or tildes that opens or closes a fenced block, if the line begins with one.
fn fence_of(line: &str) -> Option<&str> {
    let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let length = line.chars().take_while(|c| *c == mark).count();
    line.get(..length).filter(|_| length >= FENCE_CHARS_MIN)
}

fn is_underline(line: &str) -> bool {
    let line = line.trim_end();
    !line.is_empty() && (line.chars().all(|c| c == '=') || line.chars().all(|c| c == '-'))
}

/// One line of plain text, with what Markdown or HTML would take for its own escaped.
fn escape_inline(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '|' | '&') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}
