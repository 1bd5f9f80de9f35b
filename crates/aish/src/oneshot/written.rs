//! Standard output of a one-shot run: the reply, or JSON, and nothing else (SPEC 10.3).

use crate::json;
use crate::term::clean::Clean;
use crate::term::{Form, Look, Prose};
use aish_core::redact::Redactor;
use aish_markdown::Syntaxes;
use std::io::{IsTerminal as _, Write as _};

/// What a reply is laid out for.
#[derive(Clone, Debug)]
pub(super) struct Page {
    /// Framed where standard output is a terminal that takes it; everything else gets the text itself.
    pub look: Look,
    /// Of its code.
    pub syntaxes: Syntaxes,
}

/// Standard output, written in batches, without secrets. A reader that has gone away is not an error: the turn goes on into
/// the ledger.
pub(super) struct Written {
    redactor: Redactor,
    clean: Clean,
    page: Page,
    /// The reply that is being laid out.
    prose: Option<Prose>,
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
            page: Page {
                look: Look::PLAIN,
                syntaxes: Syntaxes::new(),
            },
            prose: None,
            batch: String::new(),
            in_line: false,
        }
    }

    /// The same, with replies laid out.
    pub(super) fn on(self, page: &Page) -> Self {
        let page = page.clone();
        Self { page, ..self }
    }

    /// A piece of the reply.
    pub(super) fn text(&mut self, text: &str) {
        let text = self.clean.push(text);
        self.show(&text);
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
        self.show(&held);
        if let Some(mut prose) = self.prose.take() {
            prose.finish(&mut self.batch);
        }
        if self.in_line {
            self.batch.push('\n');
            self.in_line = false;
        }
        self.flush();
    }

    fn show(&mut self, text: &str) {
        match self.page.look.form {
            Form::Framed => {
                let page = &self.page;
                let prose = self.prose.get_or_insert_with(|| Prose::new(page.look, &page.syntaxes));
                prose.push(text, &mut self.batch);
            }
            Form::Plain => self.add(text),
        }
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
