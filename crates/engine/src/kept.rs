//! What happened in the person's own shell since their last question, as context of the next one (SPEC 8.3).
//!
//! It is put together once, when the question is asked, and is part of that message from then on: requests stay stable. The
//! newest commands win, long output keeps its head and its tail, and known secrets are taken out before anything is cut, so that
//! no half of one is left.

use crate::driver::Driver;
use aish_core::event::{Body, Command, Event, Refused};
use aish_core::message::Part;
use aish_core::projection::cut_result;

/// Commands that go along; of those before them only the number does.
const KEPT_COMMANDS_MAX: usize = 20;
/// Characters of one command's output.
const KEPT_OUTPUT_CHARS_MAX: usize = 6_000;
/// Characters of one command's line.
const KEPT_LINE_CHARS_MAX: usize = 2_000;
/// Bytes of all of them together. The newest goes along whatever its size: it has bounds of its own.
const KEPT_BYTES_MAX: usize = 16_000;

/// One of them, as the model reads it.
struct Kept {
    label: String,
    text: String,
}

impl Driver {
    /// What was run since the last question, and what was proposed and not run, to go along with the next one.
    pub(crate) fn kept_commands(&self) -> Vec<Part> {
        let since_question = |event: &&Event| !matches!(event.body, Body::User(_) | Body::Clear);
        let events = self.session.events().iter().rev().take_while(since_question);
        let all: Vec<Kept> = events.filter_map(|event| self.kept(event)).collect();
        let mut bytes: usize = 0;
        let fits = |(n, kept): &(usize, &Kept)| {
            bytes = bytes.saturating_add(kept.label.len() + kept.text.len());
            *n == 0 || (*n < KEPT_COMMANDS_MAX && bytes <= KEPT_BYTES_MAX)
        };
        let count = all.iter().enumerate().take_while(fits).count();
        let earlier = all.len() - count;
        let earlier = (earlier > 0).then(|| Kept {
            label: "earlier commands".to_owned(),
            text: format!("({earlier} commands before these are left out)"),
        });
        let newest = all.into_iter().take(count).collect::<Vec<_>>();
        let in_order = earlier.into_iter().chain(newest.into_iter().rev());
        in_order
            .map(|Kept { label, text }| Part::Context { label, text })
            .collect()
    }

    fn kept(&self, event: &Event) -> Option<Kept> {
        if let Body::Command(command) = &event.body {
            Some(self.kept_command(command))
        } else if let Body::Note(data) = &event.body {
            Refused::of_note(data).map(|refused| self.kept_refusal(&refused))
        } else {
            None
        }
    }

    /// The line stands in the text: a label has no room for what a shell's line may hold.
    fn kept_command(&self, command: &Command) -> Kept {
        let status = ended(command);
        let redactor = &self.engine.redactor;
        let line = cut_result(&redactor.redact(&command.line), KEPT_LINE_CHARS_MAX);
        let output = cut_result(&redactor.redact(&command.output), KEPT_OUTPUT_CHARS_MAX);
        let label = match command.directory.as_str() {
            "" => format!("command, {status}"),
            directory => format!("command, {status}, in {}", redactor.redact(directory)),
        };
        Kept {
            label,
            text: format!("$ {line}\n{output}"),
        }
    }

    fn kept_refusal(&self, refused: &Refused) -> Kept {
        let redactor = &self.engine.redactor;
        Kept {
            label: "proposed command, not run".to_owned(),
            text: format!(
                "$ {}\n({})",
                cut_result(&redactor.redact(&refused.line), KEPT_LINE_CHARS_MAX),
                redactor.redact(&refused.words())
            ),
        }
    }
}

/// How a command ended, in words: `exit 2`.
pub(crate) fn ended(command: &Command) -> String {
    match command.status {
        Some(status) => format!("exit {status}"),
        None => "ended by a signal".to_owned(),
    }
}
