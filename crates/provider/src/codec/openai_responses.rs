//! OpenAI Responses, as OpenAI, llama.cpp and vLLM speak it.
//!
//! This file names the format's fixed points. Requests are written by `encode`, the conversation in them by `input`; replies
//! are read by `decode` in the shapes of `payload`; `items` finds out what an event is about, and `output` what it says that
//! was not said before. Where servers differ, requests keep to what all of them take, and replies are read whichever of them
//! wrote them: see the recorded exchanges in this crate's tests.

use super::{Codec, Decoder, Encoded, KeyHeader};
use crate::profile::ModelProfile;
use crate::{ProviderError, Request};

mod decode;
mod encode;
mod input;
mod items;
mod output;
mod payload;

/// The codec.
#[derive(Clone, Copy, Debug)]
pub struct OpenaiResponses;

/// What follows the base URL.
pub const PATH: &str = "/responses";

impl Codec for OpenaiResponses {
    fn encode(&self, request: Request<'_>, profile: &ModelProfile) -> Result<Encoded, ProviderError> {
        encode::encode(request, profile)
    }

    fn key_header(&self) -> KeyHeader {
        KeyHeader::BEARER
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(decode::Reader::default())
    }
}
