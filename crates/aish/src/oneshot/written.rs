//! Standard output of a one-shot run: the reply, or JSON, and nothing else (SPEC 10.3).

use crate::json;
use crate::term::clean::Clean;
use aish_core::redact::Redactor;
use std::io::{IsTerminal as _, Write as _};

/// Standard output, written in batches, without secrets. A reader that has gone away is not an error: the turn goes on into
/// the ledger.
pub(super) struct Written {
    redactor: Redactor,
    clean: Clean,
    batch: String,
    in_line: bool,
}

impl Written {
    /// For standard output as it is: a terminal, or something that wants the text itself.
    pub(super) fn new(redactor: &Redactor) -> Self {
        let clean = if std::io::stdout().is_terminal() {
            Clean::for_terminal(redactor.clone())
        } else {
            Clean::for_pipe(redactor.clone())
        };
        Self {
            redactor: redactor.clone(),
            clean,
            batch: String::new(),
            in_line: false,
        }
    }

    /// A piece of the reply.
    pub(super) fn text(&mut self, text: &str) {
        let text = self.clean.push(text);
        self.add(&text);
    }

    /// One JSON document, on a line of its own.
    pub(super) fn json(&mut self, text: &str) {
        self.batch.push_str(&json::printable(&self.redactor.redact(text)));
        self.batch.push('\n');
        self.in_line = false;
    }

    /// The reply is over.
    pub(super) fn end_line(&mut self) {
        let held = self.clean.finish();
        self.add(&held);
        if self.in_line {
            self.batch.push('\n');
            self.in_line = false;
        }
        self.flush();
    }

    fn add(&mut self, text: &str) {
        if !text.is_empty() {
            self.batch.push_str(text);
            self.in_line = !text.ends_with('\n');
        }
    }

    /// Writes the batch.
    pub(super) fn flush(&mut self) {
        if !self.batch.is_empty() {
            let mut stdout = std::io::stdout().lock();
            let _ = stdout.write_all(self.batch.as_bytes()).and_then(|()| stdout.flush());
            self.batch.clear();
        }
    }
}
