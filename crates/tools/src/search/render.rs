//! Matching lines as text: `file:line: match`, and `file-line- text` for the lines around it.

use super::hits::FileHits;
use crate::capture::Capture;
use crate::work::Stop;
use bstr::ByteSlice;
use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkFinish, SinkMatch};
use std::io;

/// Bytes of one line that are shown; the place of the match is always among them.
pub(super) const LINE_BYTES_MAX: usize = 500;
/// Bytes shown before a match that is far into a long line.
const LINE_LEAD_BYTES: usize = 100;
/// Stands for what was cut from a line.
const CUT_MARK: &str = "…";
/// Stands between groups of lines that are not next to each other.
pub(super) const GROUP_BREAK: &str = "--";

/// Collects the lines of one file.
pub(super) struct LineSink<'a> {
    shown: &'a str,
    matcher: &'a RegexMatcher,
    stop: &'a Stop,
    text: Capture,
    bytes_total: u64,
    matches: u64,
    is_binary: bool,
}

impl<'a> LineSink<'a> {
    /// Lines are headed by `shown`; at most `bytes_max` bytes are kept.
    pub(super) fn new(shown: &'a str, matcher: &'a RegexMatcher, stop: &'a Stop, bytes_max: usize) -> Self {
        Self {
            shown,
            matcher,
            stop,
            text: Capture::new(bytes_max),
            bytes_total: 0,
            matches: 0,
            is_binary: false,
        }
    }

    /// True when the file turned out to hold binary data.
    pub(super) fn is_binary(&self) -> bool {
        self.is_binary
    }

    /// The lines, unless there are none or the file is binary.
    pub(super) fn into_hits(self) -> Option<FileHits> {
        if self.matches == 0 || self.is_binary {
            return None;
        }
        Some(FileHits {
            text: self.text.text().to_owned(),
            bytes_total: self.bytes_total,
            matches: self.matches,
        })
    }

    fn push_line(&mut self, line: &str) {
        if self.bytes_total > 0 {
            self.text.push("\n");
            self.bytes_total += 1;
        }
        self.text.push(line);
        self.bytes_total += line.len() as u64;
    }
}

impl Sink for LineSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, _searcher: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        let line = without_line_end(found.bytes());
        let start = match line.len() > LINE_BYTES_MAX {
            true => self.matcher.find(line).ok().flatten().map_or(0, |found| found.start()),
            false => 0,
        };
        let number = found.line_number().unwrap_or_default();
        self.push_line(&format!("{}:{number}: {}", self.shown, window(line, start)));
        self.matches += 1;
        Ok(!self.stop.is_set())
    }

    fn context(&mut self, _searcher: &Searcher, context: &SinkContext<'_>) -> Result<bool, io::Error> {
        let number = context.line_number().unwrap_or_default();
        let text = window(without_line_end(context.bytes()), 0);
        self.push_line(&format!("{}-{number}- {text}", self.shown));
        Ok(true)
    }

    fn context_break(&mut self, _searcher: &Searcher) -> Result<bool, io::Error> {
        self.push_line(GROUP_BREAK);
        Ok(true)
    }

    fn finish(&mut self, _searcher: &Searcher, finish: &SinkFinish) -> Result<(), io::Error> {
        self.is_binary = finish.binary_byte_offset().is_some();
        Ok(())
    }
}

fn without_line_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// The part of a line that is shown: all of it, or the part around `start`.
fn window(line: &[u8], start: usize) -> String {
    if line.len() <= LINE_BYTES_MAX {
        return line.to_str_lossy().into_owned();
    }
    let from = match start + LINE_LEAD_BYTES > LINE_BYTES_MAX {
        true => start - LINE_LEAD_BYTES,
        false => 0,
    };
    let from = boundary(line, from);
    let to = boundary(line, from + LINE_BYTES_MAX);
    let shown = line.get(from..to).unwrap_or_default().to_str_lossy();
    let lead = if from > 0 { CUT_MARK } else { "" };
    let tail = if to < line.len() { CUT_MARK } else { "" };
    format!("{lead}{shown}{tail}")
}

/// The start of the character that `index` is in.
fn boundary(line: &[u8], index: usize) -> usize {
    let index = index.min(line.len());
    let is_start = |index: &usize| line.get(*index).is_none_or(|byte| byte & 0xC0 != 0x80);
    // A character has at most four bytes; what goes on longer is not UTF-8 and can be cut anywhere.
    (index.saturating_sub(3)..=index).rev().find(is_start).unwrap_or(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 4: long lines are cut on a character boundary, with the match in sight.
    #[test]
    fn long_lines_are_cut_around_the_match() {
        assert_eq!(window(b"short", 0), "short");
        let line = "ä".repeat(1000);
        let head = window(line.as_bytes(), 0);
        assert_eq!(head, format!("{}…", "ä".repeat(LINE_BYTES_MAX / 2)));
        let far = format!("{line}needle{line}");
        let shown = window(far.as_bytes(), line.len());
        assert!(
            shown.contains("needle") && shown.starts_with('…') && shown.ends_with('…'),
            "{shown}"
        );
        assert!(!shown.contains('\u{FFFD}'));
    }
}
