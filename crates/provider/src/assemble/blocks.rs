//! The blocks of a reply under way: what is text or thinking joins the block before it where that is of its kind, unless a
//! boundary lies between them; what is signed, a provider's own, or the place of a call stands for itself.

use super::think::Voice;
use super::{CALLS_MAX, PARTS_MAX, REPLY_BYTES_MAX, too_large};
use crate::ProviderError;
use crate::profile::Format;
use aish_core::message::Part;

/// The blocks so far.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    pub(super) parts: Vec<Part>,
    /// Bytes of all of the reply, its calls among them.
    pub(super) bytes: usize,
    /// The next text or thinking is a block of its own.
    pub(super) is_boundary: bool,
}

impl Blocks {
    /// True once more came than a reply may have.
    pub(super) fn are_too_large(&self) -> bool {
        self.bytes > REPLY_BYTES_MAX
    }

    /// Adds text or thinking. What is beyond the bounds is left out, see [`Self::are_too_large`].
    pub(super) fn say(&mut self, voice: Voice, text: &str) {
        self.bytes += text.len();
        if self.are_too_large() {
            return;
        }
        let is_new = std::mem::take(&mut self.is_boundary);
        let same = match self.parts.len() {
            0..PARTS_MAX if is_new => None,
            0..PARTS_MAX => self.parts.last_mut().and_then(|part| text_in(voice, part)),
            _ => self.parts.iter_mut().rev().find_map(|part| text_in(voice, part)),
        };
        match (same, voice) {
            (Some(same), _) => same.push_str(text),
            (None, Voice::Text) => self.parts.push(Part::text(text)),
            (None, Voice::Thinking) => self.parts.push(Part::thinking(text)),
        }
    }

    /// Adds to the signature of the thinking that came last.
    ///
    /// # Errors
    /// There are too many blocks.
    pub(super) fn sign(&mut self, format: Format, text: &str) -> Result<(), ProviderError> {
        self.bytes += text.len();
        if text.is_empty() || self.are_too_large() {
            return Ok(());
        }
        let is_new = std::mem::take(&mut self.is_boundary);
        if let Some(Part::Thinking {
            signature, format: of, ..
        }) = self.parts.last_mut().filter(|_| !is_new)
        {
            signature.get_or_insert_default().push_str(text);
            *of = Some(format.name().to_owned());
            return Ok(());
        }
        self.add(Part::Thinking {
            text: String::new(),
            signature: Some(text.to_owned()),
            format: Some(format.name().to_owned()),
        })
    }

    /// Adds a block of the provider's own.
    ///
    /// # Errors
    /// There are too many blocks.
    pub(super) fn provider(&mut self, format: Format, block: serde_json::Value) -> Result<(), ProviderError> {
        self.is_boundary = false;
        // As long as it will be in the ledger, which is what the bound is for.
        self.bytes += block.to_string().len();
        self.add(Part::Provider {
            format: format.name().to_owned(),
            block,
        })
    }

    /// Keeps where a call stands that just began, and its signature.
    ///
    /// # Errors
    /// There are too many blocks.
    pub(super) fn place_call(&mut self, index: usize, signature: Option<&str>) -> Result<(), ProviderError> {
        let signature = self.signature(signature);
        self.add(Part::Call { index, signature })
    }

    /// Keeps the signature of the call that stands last.
    pub(super) fn sign_call(&mut self, signature: Option<&str>) {
        let signature = self.signature(signature);
        if let (Some(signature), Some(Part::Call { signature: last, .. })) = (signature, self.parts.last_mut()) {
            *last = Some(signature);
        }
    }

    fn signature(&mut self, signature: Option<&str>) -> Option<String> {
        let signature = signature.filter(|signature| !signature.is_empty());
        self.bytes += signature.map_or(0, str::len);
        signature.map(str::to_owned)
    }

    /// Adds a block that no other can be joined to.
    fn add(&mut self, part: Part) -> Result<(), ProviderError> {
        if self.parts.len() < PARTS_MAX + CALLS_MAX {
            self.parts.push(part);
            return Ok(());
        }
        Err(too_large(&format!("the reply has more than {PARTS_MAX} blocks")))
    }

    /// Makes all that was said thinking, if nothing else is there.
    pub(super) fn was_thinking(&mut self) {
        if let [Part::Text { text }] = self.parts.as_mut_slice() {
            self.parts = vec![Part::thinking(std::mem::take(text))];
        }
    }

    /// Where the text stands that the reply ends with: `held`, which is not said yet, goes on with it, or nothing is held and
    /// only blocks without text are behind it.
    pub(super) fn last_text(&self, held: &str) -> Option<usize> {
        let at = match held {
            "" => self.parts.iter().rposition(|part| !is_silent(part)),
            _ if self.is_boundary => None,
            _ => self.parts.len().checked_sub(1),
        };
        at.filter(|at| matches!(self.parts.get(*at), Some(Part::Text { .. })))
    }

    /// Takes the text out of that block; [`Self::put_text`] puts it back.
    pub(super) fn take_text(&mut self, at: usize) -> String {
        let text = self.parts.get_mut(at).and_then(|part| text_in(Voice::Text, part));
        text.map(std::mem::take).unwrap_or_default()
    }

    /// Puts text into that block again; without any, the block goes.
    pub(super) fn put_text(&mut self, at: usize, text: String) {
        match self.parts.get_mut(at).and_then(|part| text_in(Voice::Text, part)) {
            Some(_) if text.is_empty() => drop(self.parts.remove(at)),
            Some(place) => *place = text,
            None => {}
        }
    }
}

/// True for blocks in which nothing is said: a provider's own, signatures without thinking.
fn is_silent(part: &Part) -> bool {
    match part {
        Part::Provider { .. } => true,
        Part::Thinking { text, .. } => text.is_empty(),
        Part::Text { .. }
        | Part::Context { .. }
        | Part::Image { .. }
        | Part::Call { .. }
        | Part::PartialCall { .. } => false,
    }
}

/// The text of a block of this kind.
fn text_in(voice: Voice, part: &mut Part) -> Option<&mut String> {
    match (voice, part) {
        (Voice::Text, Part::Text { text }) | (Voice::Thinking, Part::Thinking { text, .. }) => Some(text),
        (
            Voice::Text | Voice::Thinking,
            Part::Text { .. }
            | Part::Thinking { .. }
            | Part::Context { .. }
            | Part::Image { .. }
            | Part::Provider { .. }
            | Part::Call { .. }
            | Part::PartialCall { .. },
        ) => None,
    }
}
