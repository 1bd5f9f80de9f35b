//! What happened in the person's own shell since their last question, as context of the next one (SPEC 8.3).
//!
//! It is put together once, when the question is asked, and is part of that message from then on: requests stay stable. The
//! newest commands win, long output keeps its head and its tail, and known secrets are taken out before anything is cut, so that
//! no half of one is left.

use crate::Model;
use crate::context::CHARS_PER_TOKEN;
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
/// The part of a model's context that they may take.
const CONTEXT_PARTS: usize = 4;
/// Bytes they always may.
const KEPT_BYTES_MIN: usize = 1_000;

/// One of them, as the model reads it.
struct Kept {
    label: String,
    text: String,
}

impl Driver {
    /// What was run since the last question, and what was proposed and not run, to go along with the next one to that model.
    pub(crate) fn kept_commands(&self, model: &Model) -> Vec<Part> {
        let bytes_max = bytes_max(model);
        let since_question = |event: &&Event| !matches!(event.body, Body::User(_) | Body::Clear);
        let events = self.session.events().iter().rev().take_while(since_question);
        let all: Vec<Kept> = events.filter_map(|event| self.kept(event, bytes_max)).collect();
        let mut bytes: usize = 0;
        let fits = |(n, kept): &(usize, &Kept)| {
            bytes = bytes.saturating_add(kept.label.len() + kept.text.len());
            *n == 0 || (*n < KEPT_COMMANDS_MAX && bytes <= bytes_max)
        };
        let count = all.iter().enumerate().take_while(fits).count();
        let earlier = all.len() - count;
        let earlier = (earlier > 0).then(|| Kept {
            label: "earlier commands".to_owned(),
            text: format!("({earlier} more before these)"),
        });
        let newest = all.into_iter().take(count).collect::<Vec<_>>();
        let in_order = earlier.into_iter().chain(newest.into_iter().rev());
        in_order
            .map(|Kept { label, text }| Part::Context { label, text })
            .collect()
    }

    fn kept(&self, event: &Event, bytes_max: usize) -> Option<Kept> {
        if let Body::Command(command) = &event.body {
            Some(self.kept_command(command, bytes_max.min(KEPT_OUTPUT_CHARS_MAX)))
        } else if let Body::Note(data) = &event.body {
            Refused::of_note(data).map(|refused| self.kept_refusal(&refused))
        } else {
            None
        }
    }

    /// The line stands in the text: a label has no room for what a shell's line may hold.
    fn kept_command(&self, command: &Command, output_chars_max: usize) -> Kept {
        let status = ended(command);
        let redactor = &self.engine.redactor;
        let line = cut_result(&redactor.redact(&command.line), KEPT_LINE_CHARS_MAX);
        let output = cut_result(&redactor.redact(&command.output), output_chars_max);
        let whose = match &command.proposed {
            None => "command",
            Some(proposed) if proposed.instead_of.is_none() => "proposed command",
            Some(_) => "proposed command, changed by the user",
        };
        let label = match command.directory.as_str() {
            "" => format!("{whose}, {status}"),
            directory => format!("{whose}, {status}, in {}", redactor.redact(directory)),
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

/// A small context must have room for more than what was run.
fn bytes_max(model: &Model) -> usize {
    let window = model.context_window.and_then(|tokens| usize::try_from(tokens).ok());
    let share = window.map(|tokens| tokens.saturating_mul(CHARS_PER_TOKEN) / CONTEXT_PARTS);
    share.unwrap_or(KEPT_BYTES_MAX).clamp(KEPT_BYTES_MIN, KEPT_BYTES_MAX)
}

/// How a command ended, in words: `exit 2`.
pub(crate) fn ended(command: &Command) -> String {
    match command.status {
        Some(status) => format!("exit {status}"),
        None => "ended by a signal".to_owned(),
    }
}
