//! Google Gemini, `generateContent`.
//!
//! This file names the format's fixed points; `encode` writes requests, `decode` reads payloads.

use super::{Codec, Decoder, Encoded, KeyHeader, Sink, failure};
use crate::profile::{Format, ModelProfile};
use crate::{ErrorKind, ProviderError, Request, sse};

/// The codec.
#[derive(Clone, Copy, Debug)]
pub struct Gemini;

/// What follows the base URL.
pub const PATH: &str = "/v1beta/models/";

impl Codec for Gemini {
    fn encode(&self, _request: Request<'_>, _profile: &ModelProfile) -> Result<Encoded, ProviderError> {
        Err(ProviderError {
            kind: ErrorKind::Protocol,
            message: format!("{} is not written yet", Format::Gemini.name()),
            retry_after: None,
        })
    }

    fn key_header(&self) -> KeyHeader {
        KeyHeader {
            name: "x-goog-api-key",
            prefix: "",
        }
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(Reader)
    }

    fn decode_error(&self, status: u16, body: &str) -> ProviderError {
        failure::of_status(status, body)
    }
}

/// What is remembered between the payloads of one reply.
struct Reader;

impl Decoder for Reader {
    fn event(&mut self, _event: &sse::Event<'_>, _sink: &mut Sink<'_>) -> Result<(), ProviderError> {
        Ok(())
    }

    fn body(&mut self, _body: &str, _sink: &mut Sink<'_>) -> Result<(), ProviderError> {
        Ok(())
    }
}
