//! OpenAI chat completions, as llama.cpp, Ollama, vLLM, LM Studio, OpenRouter and many others speak it.
//!
//! This file names the format's fixed points; `encode` writes requests, their messages by `messages` in the shapes of
//! `wire`; `decode` reads payloads; `own` keeps what a provider wants back. All follow what servers do rather than what the
//! reference says: see the recorded exchanges in this crate's tests.

use super::template::Template;
use super::{Codec, Decoder, Encoded, KeyHeader, Sink};
use crate::profile::ModelProfile;
use crate::{ProviderError, Request, sse};

mod decode;
mod encode;
mod messages;
mod own;
mod wire;

/// The codec.
#[derive(Clone, Copy, Debug)]
pub struct OpenaiChat;

/// What follows the base URL.
pub const PATH: &str = "/chat/completions";

impl Codec for OpenaiChat {
    fn encode(&self, request: Request<'_>, profile: &ModelProfile) -> Result<Encoded, ProviderError> {
        encode::encode(request, profile)
    }

    fn key_header(&self) -> KeyHeader {
        KeyHeader::BEARER
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(Reader::default())
    }
}

/// Reads one reply.
#[derive(Default)]
struct Reader {
    /// What the provider wants back and sends in pieces.
    details: own::Details,
    /// The payload before this one, which most are like.
    template: Template,
}

impl Decoder for Reader {
    fn event(&mut self, event: &sse::Event<'_>, sink: &mut Sink<'_>) -> Result<(), ProviderError> {
        decode::event(event, &mut self.details, &mut self.template, sink)
    }

    fn body(&mut self, body: &str, sink: &mut Sink<'_>) -> Result<(), ProviderError> {
        decode::body(body, &mut self.details, sink)
    }
}
