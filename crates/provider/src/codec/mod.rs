//! Wire formats as pure functions: a request of canonical messages to bytes, a provider's payloads to [`Piece`]s.
//!
//! This file owns the [`Codec`] trait and what codecs and the assembler ([`crate::assemble`]) say to each other; each
//! format is one file beside it, and adding a provider is adding one. A codec does no IO, keeps no state between
//! payloads and decides nothing about a reply's end: it only translates. Names of tools are translated by [`names`].

use crate::profile::{Format, ModelProfile};
use crate::{ProviderError, Request, sse};
use aish_core::event::Usage;
use std::borrow::Cow;

pub mod failure;
mod lenient;
pub mod names;
pub mod openai_chat;

use names::WireNames;

/// Characters of a server's own words that are quoted in an error.
pub const QUOTE_CHARS_MAX: usize = 400;

/// A piece of a reply, as a provider's payload carried it, free of its wire format.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece<'a> {
    /// Text of the reply.
    Text(Cow<'a, str>),
    /// Text the model thought.
    Thinking(Cow<'a, str>),
    /// A part of a tool call.
    Call(CallFragment<'a>),
    /// The provider says why the reply ends.
    Finish(Finish),
    /// Tokens; the last one counts.
    Usage(Usage),
    /// The model that answers.
    Model(Cow<'a, str>),
    /// The stream reports a failure.
    Error(ProviderError),
    /// The stream says that nothing comes after this.
    Done,
}

/// A part of a tool call. Every field may be missing: which call it belongs to is the assembler's to find out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallFragment<'a> {
    /// The provider's index of the call, from zero, one or anything.
    pub index: Option<u64>,
    /// The provider's id; never empty.
    pub id: Option<Cow<'a, str>>,
    /// The tool's name on the wire; never empty.
    pub name: Option<Cow<'a, str>>,
    /// The next piece of the argument text.
    pub arguments: Option<Cow<'a, str>>,
}

/// Why a provider says a reply ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// It is complete, with calls or without.
    Stop,
    /// It waits for its calls' results.
    ToolCalls,
    /// The length limit cut it.
    Length,
    /// It was withheld.
    Refused,
    /// The provider gave up in the middle.
    Aborted,
    /// A word we do not know; its calls count only if each of them is whole JSON.
    Other,
}

/// A request as bytes.
#[derive(Clone, Debug)]
pub struct Encoded {
    /// What follows the base URL, e.g. `/chat/completions`.
    pub path: &'static str,
    /// Headers besides the key, names in lower case.
    pub headers: Vec<(&'static str, &'static str)>,
    /// The JSON body.
    pub body: Vec<u8>,
    /// How tools are named in it, to read the reply with.
    pub names: WireNames,
}

/// Where the key goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyHeader {
    /// The header's name.
    pub name: &'static str,
    /// What stands before the key.
    pub prefix: &'static str,
}

/// Where pieces go.
pub type Sink<'s> = dyn FnMut(Piece<'_>) + 's;

/// One wire format.
pub trait Codec: Send + Sync {
    /// The request as bytes.
    ///
    /// # Errors
    /// The request cannot be written in this format.
    fn encode(&self, request: Request<'_>, profile: &ModelProfile) -> Result<Encoded, ProviderError>;

    /// Where the key goes.
    fn key_header(&self) -> KeyHeader;

    /// Reads the payload of one event.
    ///
    /// # Errors
    /// It is not what the format promises.
    fn decode_event(&self, event: &sse::Event<'_>, sink: &mut Sink<'_>) -> Result<(), ProviderError>;

    /// Reads a whole reply that came as one JSON body, because the server does not stream.
    ///
    /// # Errors
    /// It is not what the format promises.
    fn decode_body(&self, body: &str, sink: &mut Sink<'_>) -> Result<(), ProviderError>;

    /// What a refused request means: the kind of failure and the server's words, on one line.
    fn decode_error(&self, status: u16, body: &str) -> ProviderError;
}

/// The codec of a format.
pub fn codec_of(format: Format) -> &'static dyn Codec {
    match format {
        Format::OpenaiChat => &openai_chat::OpenaiChat,
    }
}

/// Text of a peer's as one short line: it is quoted in errors and status lines.
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::new();
    for (count, word) in text.split_whitespace().enumerate() {
        if count > 0 {
            out.push(' ');
        }
        // A single word may be as long as the whole text.
        let visible = word.chars().map(|c| if c.is_control() { '\u{FFFD}' } else { c });
        out.extend(visible.take(QUOTE_CHARS_MAX));
        if out.chars().nth(QUOTE_CHARS_MAX).is_some() {
            out = out.chars().take(QUOTE_CHARS_MAX).collect();
            out.push('…');
            break;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 10.4: a server's words are quoted on one line of bounded length.
    #[test]
    fn quotes_are_short_lines() {
        assert_eq!(quote(" a\n\n b\t"), "a b");
        assert_eq!(quote("\x1b[31m"), "\u{FFFD}[31m");
        assert_eq!(quote(""), "");
        let long = quote(&"word ".repeat(1000));
        assert_eq!(long.chars().count(), QUOTE_CHARS_MAX + 1);
        assert_eq!(quote(&"x".repeat(1 << 20)).len(), QUOTE_CHARS_MAX);
    }
}
