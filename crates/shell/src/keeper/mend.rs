//! A prompt that comes without its marks: a line has put our hooks away (`unset PROMPT_COMMAND`, `precmd_functions=()`), or the
//! user's own hooks have put another prompt in the place of ours.
//!
//! Whatever becomes of hooks, the line editor of the shell says that it is there, in that it asks the terminal to tell it of
//! pastes. Where nothing is marked then, a key of ours has the shell mark its prompt and hook itself up again.

use super::Keeper;
use crate::modes::told::{Reader, Told};
use crate::phase::Phase;
use std::time::{Duration, Instant};

/// The mode in which a terminal tells of pastes.
const PASTES: &[u8] = b"?2004";
/// How long the mark of a prompt may come behind its line editor.
const MARK_MAX_MS: u64 = 100;

/// Follows what is written to the shell's terminal.
#[derive(Debug, Default)]
pub struct LineEditor {
    reader: Reader,
    /// Since when one is there that has not been asked about.
    since: Option<Instant>,
}

impl LineEditor {
    /// The one that was there has its line, and says so sooner or later.
    pub fn forget(&mut self) {
        self.since = None;
    }

    /// Takes the next bytes that are written.
    pub fn read(&mut self, bytes: &[u8]) {
        let Self { reader, since } = self;
        reader.read(bytes, |told| match told {
            Told::Control(PASTES, b'h') => *since = Some(Instant::now()),
            Told::Control(PASTES, b'l') => *since = None,
            Told::Text(_) | Told::Escape(..) | Told::Control(..) => {}
        });
    }
}

impl Keeper {
    /// When the mark of a prompt is late; `None` where there is none to come.
    pub(super) fn mark_due(&self) -> Option<Instant> {
        let is_to_come = match self.phase {
            Phase::Accepted(_) | Phase::Running | Phase::Over(_) | Phase::Ahead => true,
            Phase::Starting
            | Phase::Idle
            | Phase::Typed(_)
            | Phase::Questioned
            | Phase::Taking(..)
            | Phase::Withdrawn(_)
            | Phase::Asked => false,
        };
        let since = self.line_editor.since.filter(|_| is_to_come)?;
        Some(since + Duration::from_millis(MARK_MAX_MS))
    }

    /// Asks for the marks, once for each line editor; one of another program's is none of ours, nor is that of a shell which this one
    /// has become.
    pub(super) fn ask_for_marks(&mut self) {
        self.line_editor.since = None;
        if self.is_in_front() && self.is_ours() {
            self.pending.extend(self.dialect.mend());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 12: a line editor is there from its beginning to its end, however what is written is cut, and until its line is accepted.
    #[test]
    fn line_editors() {
        for (written, is_there) in [
            ("", false),
            ("text \x1b[?2004h", true),
            ("\x1b[?2004h> a\r\n\x1b[?2004l\r", false),
            ("\x1b[?2004l\r\x1b[?2004h> ", true),
            ("\x1b[?2004x\x1b[?200", false),
        ] {
            let mut whole = LineEditor::default();
            whole.read(written.as_bytes());
            let mut cut = LineEditor::default();
            written.bytes().for_each(|byte| cut.read(&[byte]));
            assert_eq!(
                (whole.since.is_some(), cut.since.is_some()),
                (is_there, is_there),
                "{written:?}"
            );
            whole.forget();
            assert_eq!(whole.since, None);
        }
    }
}
