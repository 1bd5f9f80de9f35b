//! What one model said, put to another.
//!
//! Thinking and a provider's own blocks are understood, and their signatures accepted, by the model that made them only. One
//! pass over the conversation before a codec writes it decides for each block whether it goes back as it was or as text, so
//! that a codec only ever meets blocks of its own format and model. A reply is of the model that is asked when it bears that
//! model's configured name; behind one name there may be another format than before, which is why blocks are asked for theirs:
//!
//! | block | of the model that is asked, in this format | in another format | said by another model |
//! |---|---|---|---|
//! | text, context, image | as it was | as it was | as it was |
//! | thinking | as it was; unsigned thinking has no format and counts as this one | as text | as text |
//! | provider's block | as it was | as text | as text |
//! | place of a call | as it was | as it was | without its signature |
//! | cut call | as it was: codecs never send it | as it was | as it was |
//!
//! As text, thinking stands between `<thinking>` tags where it stood; of a provider's block only what `readable` finds is
//! left, so that encrypted reasoning goes. Text made here joins the text beside it, because some formats take only one.
//!
//! A conversation that ends with a reply asks for its continuation, which templates take for an answer begun by us and some
//! APIs refuse. [`GO_ON`] is put behind it, except where the provider paused and wants just that (Anthropic's `pause_turn`).

use crate::profile::Format;
use aish_core::message::{Message, Part};
use std::borrow::Cow;

mod readable;

#[cfg(test)]
mod tests;

use readable::{head, is_thinking, readable};

/// What the user says to a model whose conversation ends with a reply.
pub const GO_ON: &str = "(go on)";

/// Bytes of one block that is put as text.
pub const BLOCK_TEXT_BYTES_MAX: usize = 8 << 10;

/// The conversation as the model `asked` (its configured name) of that format may be sent it; borrowed where nothing changes.
pub fn for_model<'m>(messages: &'m [Message], asked: &str, format: Format) -> Cow<'m, [Message]> {
    let asked = Asked { name: asked, format };
    let must_go_on = asked.must_go_on(messages);
    if !must_go_on && !messages.iter().any(|message| asked.changes(message)) {
        return Cow::Borrowed(messages);
    }
    let mut out: Vec<Message> = messages.iter().map(|message| asked.message(message)).collect();
    if must_go_on {
        out.push(Message::User {
            parts: vec![Part::text(GO_ON)],
        });
    }
    Cow::Owned(out)
}

/// Whose reply it is that a block stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speaker {
    /// The model that is asked.
    Same,
    /// Another one, or nobody known.
    Other,
}

/// The model the conversation is for.
#[derive(Clone, Copy, Debug)]
struct Asked<'a> {
    name: &'a str,
    format: Format,
}

impl Asked<'_> {
    fn speaker(self, model: Option<&str>) -> Speaker {
        if model == Some(self.name) {
            Speaker::Same
        } else {
            Speaker::Other
        }
    }

    fn must_go_on(self, messages: &[Message]) -> bool {
        match messages.last() {
            Some(Message::Assistant { model, .. }) => {
                self.format != Format::Anthropic || self.speaker(model.as_deref()) == Speaker::Other
            }
            Some(Message::User { .. } | Message::Tool { .. }) | None => false,
        }
    }

    fn changes(self, message: &Message) -> bool {
        match message {
            Message::Assistant { parts, model, .. } => {
                let speaker = self.speaker(model.as_deref());
                parts.iter().any(|part| self.put(part, speaker) != Put::AsItWas)
            }
            Message::User { .. } | Message::Tool { .. } => false,
        }
    }

    fn message(self, message: &Message) -> Message {
        match message {
            Message::Assistant { parts, calls, model } => {
                let speaker = self.speaker(model.as_deref());
                let mut joiner = Joiner::default();
                let mut before = None;
                for part in parts {
                    if !repeats(part, before) || self.put(part, speaker) == Put::AsItWas {
                        joiner.add(part, self.put(part, speaker));
                    }
                    before = Some(part);
                }
                Message::Assistant {
                    parts: joiner.parts,
                    calls: calls.clone(),
                    model: model.clone(),
                }
            }
            Message::User { .. } | Message::Tool { .. } => message.clone(),
        }
    }

    /// The table in this module's documentation.
    fn put(self, part: &Part, speaker: Speaker) -> Put {
        let is_own = |format: &str| speaker == Speaker::Same && format == self.format.name();
        match part {
            Part::Thinking { format: Some(of), .. } if is_own(of) => Put::AsItWas,
            Part::Thinking { format: None, .. } if speaker == Speaker::Same => Put::AsItWas,
            Part::Thinking { text, .. } => Put::Text(thinking(text)),
            Part::Provider { format: of, .. } if is_own(of) => Put::AsItWas,
            Part::Provider { block, .. } => Put::Text(readable(block).unwrap_or_default()),
            Part::Call {
                index,
                signature: Some(_),
            } if speaker == Speaker::Other => Put::Unsigned(*index),
            Part::Call { .. }
            | Part::Text { .. }
            | Part::Context { .. }
            | Part::Image { .. }
            | Part::PartialCall { .. } => Put::AsItWas,
        }
    }
}

/// Whether a block says in its provider's form what the thinking before it said: Responses' reasoning comes as both.
fn repeats(part: &Part, before: Option<&Part>) -> bool {
    let (Part::Provider { block, .. }, Some(Part::Thinking { text, .. })) = (part, before) else {
        return false;
    };
    is_thinking(block) && !text.is_empty()
}

/// How a block is put to the model that is asked.
#[derive(Debug, PartialEq, Eq)]
enum Put {
    AsItWas,
    /// As this text; empty for not at all.
    Text(String),
    /// As the place of that call alone.
    Unsigned(usize),
}

/// The blocks of a reply, with text made here joined to the text beside it.
#[derive(Debug, Default)]
struct Joiner {
    parts: Vec<Part>,
    /// The last block is text made here, or was joined to it.
    is_open: bool,
}

impl Joiner {
    fn add(&mut self, part: &Part, put: Put) {
        match put {
            Put::Text(text) if text.is_empty() => {}
            Put::Text(text) => {
                self.text(text);
                self.is_open = true;
            }
            Put::Unsigned(index) => self.push(Part::Call { index, signature: None }),
            Put::AsItWas => match part {
                Part::Text { text } if self.is_open => self.text(text.clone()),
                Part::Text { .. }
                | Part::Thinking { .. }
                | Part::Context { .. }
                | Part::Image { .. }
                | Part::Provider { .. }
                | Part::Call { .. }
                | Part::PartialCall { .. } => self.push(part.clone()),
            },
        }
    }

    fn push(&mut self, part: Part) {
        self.parts.push(part);
        self.is_open = false;
    }

    fn text(&mut self, text: String) {
        if let Some(Part::Text { text: last }) = self.parts.last_mut() {
            if !last.is_empty() && !text.is_empty() {
                last.push_str("\n\n");
            }
            last.push_str(&text);
        } else {
            self.parts.push(Part::Text { text });
        }
    }
}

/// Thinking as text; empty where there is none to read.
fn thinking(text: &str) -> String {
    match text.trim() {
        "" => String::new(),
        text => format!("<thinking>\n{}\n</thinking>", head(text)),
    }
}
