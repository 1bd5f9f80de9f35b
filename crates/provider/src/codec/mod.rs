//! Wire formats as pure functions: a request of canonical messages to bytes, a provider's payloads to [`Piece`]s.
//!
//! This file owns the [`Codec`] and [`Decoder`] traits and what codecs and the assembler ([`crate::assemble`]) say to each
//! other; each format is one module beside it, and adding a provider is adding one. A codec does no IO and decides nothing
//! about a reply's end: it only translates; what it must remember between two payloads of one reply is in its [`Decoder`].
//! Names of tools are translated by [`names`], schemas by [`schema`], what another model said by [`handover`].

use crate::profile::{Format, ModelProfile};
use crate::{ErrorKind, ProviderError, Request, sse};
use aish_core::event::Usage;
use serde::Serialize;
use std::borrow::Cow;

pub mod anthropic;
pub mod failure;
pub mod gemini;
pub mod handover;
mod host;
mod lenient;
pub mod names;
pub mod openai_chat;
pub mod openai_responses;
mod result;
pub mod schema;
mod structured;
mod template;
mod wire_ids;
mod withheld;
mod words;

use names::WireNames;

/// Characters of a server's own words that are quoted in an error.
pub const QUOTE_CHARS_MAX: usize = 400;

/// Characters of a broken payload that its error quotes.
const EXCERPT_CHARS: usize = 80;

/// A piece of a reply, as a provider's payload carried it, free of its wire format.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece<'a> {
    /// Text of the reply.
    Text(Cow<'a, str>),
    /// Text the model thought.
    Thinking(Cow<'a, str>),
    /// A piece of the signature of the thinking that came last; without any, of a thinking block without text.
    Signature {
        /// The format it belongs to.
        format: Format,
        /// The piece.
        text: Cow<'a, str>,
    },
    /// The text or thinking that follows is a block of its own, though it may be of the kind of the one before it.
    Boundary,
    /// A block only its provider understands, whole.
    Block {
        /// The format it belongs to.
        format: Format,
        /// The block as received.
        block: serde_json::Value,
    },
    /// A part of a tool call.
    Call(CallFragment<'a>),
    /// The provider says why the reply ends.
    Finish(Finish),
    /// Why the reply is withheld or broken off, in the provider's words; the first one counts.
    Reason(Cow<'a, str>),
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
    /// The provider's signature of the call.
    pub signature: Option<Cow<'a, str>>,
}

/// Why a provider says a reply ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// It is complete, with calls or without.
    Stop,
    /// It waits for its calls' results.
    ToolCalls,
    /// The provider paused: it goes on when the reply is sent back.
    Paused,
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
    pub path: Cow<'static, str>,
    /// Headers besides the key, names in lower case.
    pub headers: Vec<(&'static str, Cow<'static, str>)>,
    /// The JSON body.
    pub body: Vec<u8>,
    /// How tools are named in it, to read the reply with.
    pub names: WireNames,
}

impl Encoded {
    /// A request of that JSON body.
    ///
    /// # Errors
    /// The body cannot be written.
    fn json(
        path: impl Into<Cow<'static, str>>,
        body: &impl Serialize,
        names: WireNames,
    ) -> Result<Self, ProviderError> {
        let body = serde_json::to_vec(body).map_err(|error| ProviderError {
            kind: ErrorKind::Protocol,
            message: format!("cannot write the request: {error}"),
            retry_after: None,
        })?;
        let encoded = Self {
            path: path.into(),
            headers: Vec::new(),
            body,
            names,
        };
        Ok(encoded
            .with_header("content-type", "application/json")
            .with_header("accept", "text/event-stream, application/json"))
    }

    fn with_header(mut self, name: &'static str, value: impl Into<Cow<'static, str>>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// Where the key goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyHeader {
    /// The header's name.
    pub name: &'static str,
    /// What stands before the key.
    pub prefix: &'static str,
}

impl KeyHeader {
    /// `Authorization: Bearer …`.
    const BEARER: Self = Self {
        name: "authorization",
        prefix: "Bearer ",
    };
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

    /// A reader for one reply.
    fn decoder(&self) -> Box<dyn Decoder>;

    /// What a refused request means: the kind of failure and the server's words, on one line.
    fn decode_error(&self, status: u16, body: &str) -> ProviderError {
        failure::of_status(status, body)
    }
}

/// Reads one reply. It holds what one payload says of a later one, e.g. which block has which index, within bounds.
pub trait Decoder: Send {
    /// Reads the payload of one event of a stream.
    ///
    /// # Errors
    /// It is not what the format promises.
    fn event(&mut self, event: &sse::Event<'_>, sink: &mut Sink<'_>) -> Result<(), ProviderError>;

    /// Reads a whole reply that came as one JSON body, because the server does not stream.
    ///
    /// # Errors
    /// It is not what the format promises.
    fn body(&mut self, body: &str, sink: &mut Sink<'_>) -> Result<(), ProviderError>;
}

/// The codec of a format.
pub fn codec_of(format: Format) -> &'static dyn Codec {
    match format {
        Format::OpenaiChat => &openai_chat::OpenaiChat,
        Format::OpenaiResponses => &openai_responses::OpenaiResponses,
        Format::Anthropic => &anthropic::Anthropic,
        Format::Gemini => &gemini::Gemini,
    }
}

/// A payload as an error quotes it: its beginning.
pub(crate) fn broken(format: Format, what: &str, text: &str, why: &str) -> ProviderError {
    let excerpt: String = quote(text).chars().take(EXCERPT_CHARS).collect();
    ProviderError {
        kind: ErrorKind::Protocol,
        message: format!("{what} is not what {} promises ({why}): {excerpt}", format.name()),
        retry_after: None,
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
