//! Anthropic Messages, as Anthropic, llama.cpp and several gateways speak it.
//!
//! This file names the format's fixed points. A request is written by `encode` (its messages by `messages`, thinking decided
//! by `thinking`, structures in `wire`), a reply read by `decode` (one block of it by `block`), an error by `failure`. Rules of
//! the API are named where they are kept by the page of its reference they come from (platform.claude.com).

use super::{Codec, Decoder, Encoded, KeyHeader};
use crate::profile::ModelProfile;
use crate::{ProviderError, Request};

mod block;
mod decode;
mod encode;
mod failure;
mod messages;
mod thinking;
mod wire;

/// The codec.
#[derive(Clone, Copy, Debug)]
pub struct Anthropic;

/// What follows the base URL.
pub const PATH: &str = "/v1/messages";

/// The version of the API, which every server of this format knows. The next one (2026-10-21) only takes fields away.
const VERSION: &str = "2023-06-01";

/// The beta in which models that think by budget also think between calls, so that each reply of a turn begins with thinking.
const INTERLEAVED_THINKING: &str = "interleaved-thinking-2025-05-14";

impl Codec for Anthropic {
    fn encode(&self, request: Request<'_>, profile: &ModelProfile) -> Result<Encoded, ProviderError> {
        encode::encode(request, profile)
    }

    fn key_header(&self) -> KeyHeader {
        KeyHeader {
            name: "x-api-key",
            prefix: "",
        }
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::<decode::Reader>::default()
    }

    fn decode_error(&self, status: u16, body: &str) -> ProviderError {
        failure::of_status(status, body)
    }
}
