//! What one model said, put to another.
//!
//! Thinking and a provider's own blocks are understood, and their signatures accepted, by the model that made them only. One
//! pass over the conversation before a codec writes it decides for each block whether it goes back as it was or as text, so
//! that a codec only ever meets blocks of its own format and model:
//!
//! | block | said by the model that is asked | said by another |
//! |---|---|---|
//! | thinking, provider's blocks | as it was | as text |

use crate::profile::Format;
use aish_core::message::Message;
use std::borrow::Cow;

/// The conversation as the model `asked` (its configured name) of that format may be sent it; borrowed where nothing changes.
pub fn for_model<'m>(messages: &'m [Message], _asked: &str, _format: Format) -> Cow<'m, [Message]> {
    Cow::Borrowed(messages)
}
