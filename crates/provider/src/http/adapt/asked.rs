//! What a refusal can be about.

use super::super::way::{Learned, Mark, SentImage, Way, own_replies_of};
use crate::Request;
use crate::profile::ModelProfile;
use aish_core::message::{Message, ToolChoice};

/// A smaller number in a refusal of an image is no size in bytes.
const IMAGE_BYTES_MIN: usize = 1024;

/// What is in a request, as far as a refusal can be about it.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each says whether something is there")]
pub(in crate::http) struct Asked {
    pub(super) has_system: bool,
    pub(super) has_tools: bool,
    pub(super) has_calls: bool,
    /// A message of the user's comes right after a result.
    pub(super) has_steering: bool,
    pub(super) has_schema: bool,
    pub(super) has_max_tokens: bool,
    pub(super) is_choice_none: bool,
    /// Tokens of the reply, where the request itself says how many.
    pub(super) output_tokens: Option<u64>,
    pub(super) images: Vec<SentImage>,
    /// Replies that only the model asked can read.
    pub(super) own_replies: Vec<Mark>,
}

impl Asked {
    pub(in crate::http) fn of(request: Request<'_>, profile: &ModelProfile, learned: &Learned) -> Self {
        let has_call = |message: &Message| match message {
            Message::Assistant { calls, .. } => !calls.is_empty(),
            Message::Tool { .. } => true,
            Message::User { .. } => false,
        };
        Self {
            has_system: !request.system.is_empty(),
            has_tools: !request.tools.is_empty(),
            has_calls: request.messages.iter().any(has_call),
            has_steering: has_steering(request.messages),
            has_schema: request.schema.is_some(),
            has_max_tokens: profile.output_tokens(request.max_output_tokens).is_some(),
            is_choice_none: request.tool_choice == ToolChoice::None,
            output_tokens: request.max_output_tokens,
            images: learned.images_of(request),
            own_replies: own_replies_of(request),
        }
    }

    /// The images of the request.
    pub(in crate::http) fn images(&self) -> &[SentImage] {
        &self.images
    }

    /// Which images a refusal is about: those whose size it names, and larger ones; else those that the server has not taken
    /// before; else all that are still sent.
    pub(super) fn images_meant(&self, way: &Way, words: &str) -> Vec<Mark> {
        let sent: Vec<&SentImage> = self
            .images
            .iter()
            .filter(|image| !way.refused_images.contains(&image.mark))
            .collect();
        let sizes = sizes_in(words);
        let is_size = |bytes: usize| sizes.contains(&bytes);
        let is_named = |image: &SentImage| is_size(image.data_bytes) || image.file_bytes().iter().copied().any(is_size);
        let least = sent
            .iter()
            .filter(|image| is_named(image))
            .map(|image| image.data_bytes)
            .min();
        let is_meant = |image: &SentImage| match least {
            Some(least) => image.data_bytes >= least,
            None => !image.was_taken,
        };
        let marks = |is_meant: &dyn Fn(&SentImage) -> bool| -> Vec<Mark> {
            sent.iter()
                .filter(|image| is_meant(image))
                .map(|image| image.mark)
                .collect()
        };
        let meant = marks(&is_meant);
        if meant.is_empty() { marks(&|_| true) } else { meant }
    }
}

/// A message of the user's right after a result; images of results become one in some formats.
fn has_steering(messages: &[Message]) -> bool {
    let is_steered = |pair: &[Message]| matches!(pair, [Message::Tool { .. }, Message::User { .. }]);
    let has_images = |message: &Message| matches!(message, Message::Tool { parts, .. } if !parts.is_empty());
    messages.windows(2).any(is_steered) || messages.iter().any(has_images)
}

/// Numbers that may be the size of an image, in bytes.
fn sizes_in(words: &str) -> Vec<usize> {
    let numbers = words.split(|c: char| !c.is_ascii_digit());
    let sizes = numbers.filter_map(|number| number.parse().ok());
    sizes.filter(|bytes| *bytes >= IMAGE_BYTES_MIN).collect()
}
