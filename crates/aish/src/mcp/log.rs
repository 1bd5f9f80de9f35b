//! What servers wrote: the last lines of the log and the standard error of each, for whoever wants to know why something went
//! wrong. Lines are kept as they came and made harmless where they are shown; those of a server that is gone stay.

use crate::term::clean::Clean;
use aish_core::redact::Redactor;
use aish_mcp::Alias;
use aish_mcp::host::News;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Lines that are kept of one server.
const LINES_MAX: usize = 1_000;
/// Bytes that are kept of one server.
const SERVER_BYTES_MAX: usize = 256 << 10;
/// Bytes that are kept of one line.
const LINE_BYTES_MAX: usize = 4 << 10;

/// The last lines of every server.
#[derive(Default)]
pub struct Logs(Mutex<BTreeMap<Alias, Ring>>);

/// The last lines of one server, within limits.
#[derive(Default)]
struct Ring {
    lines: VecDeque<String>,
    bytes: usize,
    /// Lines that had to go.
    dropped: u64,
}

impl Logs {
    /// Keeps what is a line of a log or of standard error.
    pub fn hear(&self, server: &Alias, news: &News) {
        let line = match news {
            News::Log { level, text } => format!("[{level}] {text}"),
            News::Stderr { text } => text.clone(),
            News::ToolsChanged | News::PromptsChanged | News::ResourcesChanged | News::ResourceUpdated { .. } => return,
        };
        self.lock().entry(server.clone()).or_default().push(line);
    }

    /// What is kept of that server, safe for a terminal and without secrets; `None` where it never wrote anything.
    pub fn text(&self, alias: &str, redactor: &Redactor) -> Option<String> {
        let kept = self.lock();
        let raw = kept.iter().find(|(server, _)| server.as_str() == alias)?.1.text();
        drop(kept);
        Some(Clean::for_terminal(redactor.clone()).whole(&raw))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Alias, Ring>> {
        // Rings change by whole lines: a poisoned lock holds whole ones.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ring {
    fn push(&mut self, mut line: String) {
        line.truncate(line.floor_char_boundary(LINE_BYTES_MAX));
        self.bytes += line.len();
        self.lines.push_back(line);
        while self.lines.len() > LINES_MAX || self.bytes > SERVER_BYTES_MAX {
            self.bytes -= self.lines.pop_front().map_or(self.bytes, |line| line.len());
            self.dropped += 1;
        }
    }

    fn text(&self) -> String {
        let mut text = match self.dropped {
            0 => String::new(),
            dropped => format!("… {dropped} earlier lines are gone\n"),
        };
        for line in &self.lines {
            text.push_str(line);
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn stderr(text: impl Into<String>) -> News {
        News::Stderr { text: text.into() }
    }

    /// SPEC 6.2: what a server writes is kept, and shown without what acts on a terminal (SPEC 8.8) and without keys (SPEC 10.5).
    #[test]
    fn lines_are_kept() {
        let logs = Logs::default();
        let (git, time) = (Alias::parse("git").unwrap(), Alias::parse("time").unwrap());
        let redactor = Redactor::new([("DESK_KEY".to_owned(), "hunter2hunter2".to_owned())]);
        logs.hear(&git, &stderr("\x1b[2Jstarting"));
        let level = "warning".to_owned();
        let text = "the key is hunter2hunter2".to_owned();
        logs.hear(&git, &News::Log { level, text });
        logs.hear(&time, &News::ToolsChanged);
        assert_eq!(
            logs.text("git", &redactor).unwrap(),
            "\\x1b[2Jstarting\n[warning] the key is [redacted:DESK_KEY]\n"
        );
        assert_eq!(logs.text("time", &redactor), None);
    }

    /// SPEC 12: neither many lines nor long ones fill the memory; the last are kept.
    #[test]
    fn floods() {
        let logs = Logs::default();
        let git = Alias::parse("git").unwrap();
        for number in 0..3_000 {
            logs.hear(&git, &stderr(format!("line {number}")));
        }
        let text = logs.text("git", &Redactor::default()).unwrap();
        assert!(text.starts_with("… 2000 earlier lines are gone\nline 2000\n"));
        assert!(text.ends_with("line 2999\n"));
        for _ in 0..1_000 {
            logs.hear(&git, &stderr("é".repeat(LINE_BYTES_MAX)));
        }
        let kept = logs.lock();
        let ring = kept.get(&git).unwrap();
        assert!(ring.bytes <= SERVER_BYTES_MAX);
        assert_eq!(ring.bytes, ring.lines.iter().map(String::len).sum::<usize>());
    }
}
