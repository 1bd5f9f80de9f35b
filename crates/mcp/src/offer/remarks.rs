//! Remarks: what was left out of something a server said, in few and harmless lines.

use aish_core::sanitize;

/// Lines of one list; what more there was is counted.
const REMARKS_MAX: usize = 20;
/// Characters of a server's text that are shown in a remark.
const SHOWN_CHARS_MAX: usize = 60;

/// A bounded list of lines.
#[derive(Debug, Default)]
pub(crate) struct Remarks {
    lines: Vec<String>,
    left_out: usize,
}

impl Remarks {
    /// Adds a line that is safe to show.
    pub(crate) fn push(&mut self, line: String) {
        if self.lines.len() < REMARKS_MAX {
            self.lines.push(line);
        } else {
            self.left_out += 1;
        }
    }

    /// The lines, with a last one that counts the others.
    pub(crate) fn finish(mut self) -> Vec<String> {
        if self.left_out > 0 {
            self.lines.push(format!("… and {} more", self.left_out));
        }
        self.lines
    }
}

/// A server's text as it may stand in a line: its beginning, escaped.
pub(crate) fn shown(text: &str) -> String {
    shortened(text, SHOWN_CHARS_MAX)
}

/// The beginning of a text, escaped, and an ellipsis where there was more.
pub(crate) fn shortened(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((at, _)) => format!("{}…", sanitize::single_line(text.get(..at).unwrap_or_default())),
        None => sanitize::single_line(text).into_owned(),
    }
}
