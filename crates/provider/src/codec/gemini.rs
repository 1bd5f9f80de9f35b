//! Google Gemini, `generateContent` of the API `v1beta` (<https://ai.google.dev/api/generate-content>).
//!
//! This file names the format's fixed points. Requests are written by `encode`, the conversation in them by `contents`, in
//! the shapes of `wire`; which generation a model is of, and what follows from that, is in `generation`. Replies are read by
//! `decode`. The stream has no word for its end: a reason to finish ends the reply, and without one it is cut.

use super::{Codec, Decoder, Encoded, KeyHeader};
use crate::profile::ModelProfile;
use crate::{ProviderError, Request};

mod contents;
mod decode;
mod encode;
mod generation;
mod wire;

/// The codec.
#[derive(Clone, Copy, Debug)]
pub struct Gemini;

/// What follows the base URL; then the model and the method.
pub const PATH: &str = "/v1beta/models/";

impl Codec for Gemini {
    fn encode(&self, request: Request<'_>, profile: &ModelProfile) -> Result<Encoded, ProviderError> {
        encode::encode(request, profile)
    }

    fn key_header(&self) -> KeyHeader {
        KeyHeader {
            name: "x-goog-api-key",
            prefix: "",
        }
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(decode::Reader::default())
    }
}
