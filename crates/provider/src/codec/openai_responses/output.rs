//! What a reply says, out of the many ways in which it is said.
//!
//! The API announces an item, streams it, and then says all of it again: at the end of each part, at its own end, and once more
//! with the whole response. Servers leave out any of these, so each is looked at, and what was said before is not said again.
//! Which item is meant is found out by [`Items`].

use super::items::{ITEMS_MAX, Items, Kind, Marks};
use super::payload::{Item, Part, read};
use crate::ProviderError;
use crate::assemble::ARGUMENT_BYTES_MAX;
use crate::codec::{CallFragment, Finish, Piece, Sink, lenient};
use crate::profile::Format;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::HashSet;

/// Characters of the id under which readable reasoning is sent back; the API takes no longer one.
const ID_CHARS_MAX: usize = 64;

/// The two kinds of text that reasoning is readable as. Where both come, the first is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Voice {
    /// What the model thought, which open models show.
    Raw,
    /// What another model made of it.
    Summary,
}

/// What was said of an item.
#[derive(Debug, Default)]
struct Said {
    /// Of a message or reasoning: the part of it that came last.
    part: Option<u64>,
    /// Of reasoning: as what.
    voice: Option<Voice>,
    call: Called,
}

/// What was said of a call.
#[derive(Debug, Default)]
struct Called {
    /// Which call of the reply, from 0; none before anything was said of it.
    number: Option<u64>,
    is_named: bool,
    /// Its arguments so far, to find out what is missing at their end.
    arguments: String,
    /// They became too long to be kept.
    is_lost: bool,
    /// All of them were said; what comes of them later repeats them.
    is_whole: bool,
}

/// A reply under way.
#[derive(Debug, Default)]
pub(super) struct Output {
    items: Items<Said>,
    calls: Calls,
    /// Whose text came last.
    speaking: Option<usize>,
    /// The arguments of a call end in the middle, by the provider's own account.
    is_cut: bool,
}

/// What the calls of a reply share.
#[derive(Debug, Default)]
struct Calls {
    begun: u64,
    /// Bytes of arguments that are kept for all of them.
    kept_bytes: usize,
}

impl Output {
    /// An item begins.
    pub(super) fn begin(
        &mut self,
        raw: &RawValue,
        index: Option<u64>,
        sink: &mut Sink<'_>,
    ) -> Result<(), ProviderError> {
        let item: Item<'_> = read(Some(raw));
        let Some(kind) = Kind::of(&item) else {
            return Ok(());
        };
        let marks = Marks::of(&item, index);
        let at = self.items.of_begin(kind, marks)?;
        let Some(known) = self.items.get_mut(at) else {
            return Ok(());
        };
        known.is_announced = true;
        known.learn(marks);
        if kind == Kind::Call {
            let call = &mut known.said.call;
            self.calls.name(call, marks, item.name.0.as_deref(), sink);
            // What stands here is usually a placeholder that fragments follow; only an object with something in it is not.
            let arguments = item.arguments.and_then(lenient::arguments);
            if let Some(text) = arguments.filter(|text| is_filled_object(text)) {
                self.calls.add(call, &text, sink);
                call.is_whole = true;
            }
        }
        Ok(())
    }

    /// An item is whole.
    pub(super) fn end(&mut self, raw: &RawValue, index: Option<u64>, sink: &mut Sink<'_>) -> Result<(), ProviderError> {
        let item: Item<'_> = read(Some(raw));
        let Some(kind) = Kind::of(&item) else {
            return Ok(());
        };
        let marks = Marks::of(&item, index);
        let at = self.items.of_end(kind, marks)?;
        self.settle(at, &item, marks, raw, sink);
        Ok(())
    }

    /// The response is whole: says what of its output was not said yet.
    pub(super) fn whole(&mut self, output: &[&RawValue], sink: &mut Sink<'_>) -> Result<(), ProviderError> {
        // More items than there may be are refused by then.
        let items = output
            .iter()
            .take(ITEMS_MAX + 1)
            .map(|raw| (*raw, read::<Item<'_>>(Some(raw))));
        let items: Vec<(&RawValue, Item<'_>)> = items.collect();
        let known = items.iter().map(|(_, item)| {
            let kind = Kind::of(item)?;
            self.items.by_ids(kind, Marks::of(item, None))
        });
        let known: Vec<Option<usize>> = known.collect();
        let mut taken: HashSet<usize> = known.iter().flatten().copied().collect();
        for ((raw, item), known) in items.iter().zip(known) {
            let Some(kind) = Kind::of(item) else {
                continue;
            };
            let marks = Marks::of(item, None);
            let at = match known {
                Some(at) => at,
                // It bears other marks than the stream gave it, or the stream did not have it.
                None => self.items.of_rest(kind, marks, &taken)?,
            };
            taken.insert(at);
            self.settle(at, item, marks, raw, sink);
        }
        Ok(())
    }

    /// A piece of a message's text.
    pub(super) fn text(
        &mut self,
        marks: Marks<'_>,
        part: u64,
        text: &str,
        sink: &mut Sink<'_>,
    ) -> Result<(), ProviderError> {
        let at = self.items.of_fragment(Kind::Message, marks)?;
        self.say(at, part, text, sink);
        Ok(())
    }

    /// The whole text of a message's part.
    pub(super) fn text_end(
        &mut self,
        marks: Marks<'_>,
        part: u64,
        text: &str,
        sink: &mut Sink<'_>,
    ) -> Result<(), ProviderError> {
        // vLLM calls parts of reasoning `output_text` too: https://github.com/vllm-project/vllm/pull/24788
        let is_reasoning = self.items.marked(Kind::Reasoning, marks).is_some();
        if is_reasoning && self.items.marked(Kind::Message, marks).is_none() {
            return Ok(());
        }
        let at = self.items.of_fragment(Kind::Message, marks)?;
        if self.is_unsaid(at, part) {
            self.say(at, part, text, sink);
        }
        Ok(())
    }

    /// A piece of what the model thought.
    pub(super) fn thinking(
        &mut self,
        marks: Marks<'_>,
        voice: Voice,
        part: u64,
        text: &str,
        sink: &mut Sink<'_>,
    ) -> Result<(), ProviderError> {
        let at = self.items.of_fragment(Kind::Reasoning, marks)?;
        self.think(at, voice, part, text, marks.id, sink);
        Ok(())
    }

    /// The whole text of a part of what the model thought.
    pub(super) fn thinking_end(
        &mut self,
        marks: Marks<'_>,
        voice: Voice,
        part: u64,
        text: &str,
        sink: &mut Sink<'_>,
    ) -> Result<(), ProviderError> {
        let at = self.items.of_fragment(Kind::Reasoning, marks)?;
        if self.is_unsaid(at, part) {
            self.think(at, voice, part, text, marks.id, sink);
        }
        Ok(())
    }

    /// A piece of a call's arguments.
    pub(super) fn arguments(&mut self, marks: Marks<'_>, text: &str, sink: &mut Sink<'_>) -> Result<(), ProviderError> {
        let at = self.items.of_fragment(Kind::Call, marks)?;
        if let Some(known) = self.items.get_mut(at)
            && !known.said.call.is_whole
            && !known.is_over
        {
            self.calls.add(&mut known.said.call, text, sink);
        }
        Ok(())
    }

    /// All of a call's arguments.
    pub(super) fn arguments_end(
        &mut self,
        marks: Marks<'_>,
        name: Option<&str>,
        raw: Option<&RawValue>,
        sink: &mut Sink<'_>,
    ) -> Result<(), ProviderError> {
        let at = self.items.of_fragment(Kind::Call, marks)?;
        self.end_call(at, marks, name, raw, sink);
        Ok(())
    }

    /// Why a reply ends that the provider calls complete.
    pub(super) fn finish(&self) -> Finish {
        let mut calls = self.items.of_kind(Kind::Call).peekable();
        if calls.peek().is_none() {
            return Finish::Stop;
        }
        match calls.all(|(_, known)| known.said.call.is_whole) {
            // llama.cpp calls a reply complete that its limit cut in the middle of a call.
            _ if self.is_cut => Finish::Length,
            true => Finish::ToolCalls,
            // Nobody said that they are whole: they must look it.
            false => Finish::Other,
        }
    }

    /// Says what an item's end, or the whole response, says that was not said before.
    fn settle(&mut self, at: usize, item: &Item<'_>, marks: Marks<'_>, raw: &RawValue, sink: &mut Sink<'_>) {
        let Some(known) = self.items.get_mut(at) else {
            return;
        };
        let was_over = std::mem::replace(&mut known.is_over, true);
        known.learn(marks);
        match known.kind {
            Kind::Message => self.settle_message(at, item, sink),
            Kind::Reasoning => {
                self.settle_reasoning(at, item, marks, sink);
                let is_encrypted = item.encrypted_content.0.as_deref().is_some_and(|text| !text.is_empty());
                if is_encrypted && !was_over {
                    keep(raw, sink);
                }
            }
            Kind::Call => self.end_call(at, marks, item.name.0.as_deref(), item.arguments, sink),
            Kind::Own if !was_over => keep(raw, sink),
            Kind::Own => {}
        }
    }

    fn settle_message(&mut self, at: usize, item: &Item<'_>, sink: &mut Sink<'_>) {
        let is_said = self.items.get(at).is_some_and(|known| known.said.part.is_some());
        for (place, raw) in (0u64..).zip(&item.content.0) {
            let part: Part<'_> = read(Some(raw));
            let text = part.text.non_empty().or(part.refusal.non_empty());
            if let Some(text) = text.filter(|_| !is_said) {
                self.say(at, place, &text, sink);
            }
        }
    }

    fn settle_reasoning(&mut self, at: usize, item: &Item<'_>, marks: Marks<'_>, sink: &mut Sink<'_>) {
        if self.items.get(at).is_some_and(|known| known.said.part.is_some()) {
            return;
        }
        for (voice, parts) in [(Voice::Raw, &item.content.0), (Voice::Summary, &item.summary.0)] {
            for (place, raw) in (0u64..).zip(parts) {
                let part: Part<'_> = read(Some(raw));
                let text = part.text.0.unwrap_or_default();
                self.think(at, voice, place, &text, marks.id, sink);
            }
        }
    }

    fn end_call(
        &mut self,
        at: usize,
        marks: Marks<'_>,
        name: Option<&str>,
        raw: Option<&RawValue>,
        sink: &mut Sink<'_>,
    ) {
        let Some(known) = self.items.get_mut(at) else {
            return;
        };
        let call = &mut known.said.call;
        self.calls.name(call, marks, name, sink);
        let Some(text) = raw.and_then(lenient::arguments).filter(|_| !call.is_whole) else {
            return;
        };
        self.is_cut |= is_cut(&text);
        // The end may have been lost on the way. What is no end of it is another spelling of the same.
        let rest = text.strip_prefix(call.arguments.as_str()).filter(|_| !call.is_lost);
        if let Some(rest) = rest {
            self.calls.add(call, rest, sink);
            call.is_whole = true;
            self.calls.forget(call);
        }
    }

    fn say(&mut self, at: usize, part: u64, text: &str, sink: &mut Sink<'_>) {
        if text.is_empty() {
            return;
        }
        self.turn_to(at, sink);
        if let Some(known) = self.items.get_mut(at) {
            known.said.part = Some(part);
        }
        sink(Piece::Text(text.into()));
    }

    fn think(&mut self, at: usize, voice: Voice, part: u64, text: &str, id: Option<&str>, sink: &mut Sink<'_>) {
        let Some(known) = self.items.get(at) else {
            return;
        };
        let is_other_voice = known.said.voice.is_some_and(|first| first != voice);
        if text.is_empty() || is_other_voice {
            return;
        }
        let is_next_part = known.said.part.is_some_and(|last| last != part);
        let is_first = known.said.voice.is_none();
        self.turn_to(at, sink);
        if let Some(known) = self.items.get_mut(at) {
            known.said.part = Some(part);
            known.said.voice = Some(voice);
        }
        if is_next_part {
            sink(Piece::Thinking("\n\n".into()));
        }
        sink(Piece::Thinking(text.into()));
        if is_first && voice == Voice::Raw {
            // Signed with the id it is sent back under.
            let id = id.filter(|id| (1..=ID_CHARS_MAX).contains(&id.len()));
            sink(Piece::Signature {
                format: Format::OpenaiResponses,
                text: id.map_or_else(|| format!("rs_{at}").into(), Into::into),
            });
        }
    }

    /// What follows is that item's.
    fn turn_to(&mut self, at: usize, sink: &mut Sink<'_>) {
        if self.speaking.replace(at).is_some_and(|before| before != at) {
            sink(Piece::Boundary);
        }
    }

    /// Whether that part, of which all is known now, was not said in pieces.
    fn is_unsaid(&self, at: usize, part: u64) -> bool {
        let said = self.items.get(at).and_then(|known| known.said.part);
        said.is_none_or(|last| last < part) && !self.items.get(at).is_some_and(|known| known.is_over)
    }
}

impl Calls {
    /// Says a call's name, once, and with it the id that its result must quote.
    fn name(&mut self, call: &mut Called, marks: Marks<'_>, name: Option<&str>, sink: &mut Sink<'_>) {
        let Some(name) = name.filter(|name| !name.is_empty() && !call.is_named) else {
            return;
        };
        call.is_named = true;
        let id = [marks.call_id, marks.id]
            .into_iter()
            .flatten()
            .find(|id| !id.is_empty());
        sink(Piece::Call(CallFragment {
            index: Some(self.number(call)),
            id: id.map(Into::into),
            name: Some(name.into()),
            ..CallFragment::default()
        }));
    }

    /// Says the next piece of a call's arguments.
    fn add(&mut self, call: &mut Called, text: &str, sink: &mut Sink<'_>) {
        if text.is_empty() {
            return;
        }
        if self.kept_bytes + text.len() <= ARGUMENT_BYTES_MAX {
            call.arguments.push_str(text);
            self.kept_bytes += text.len();
        } else {
            call.is_lost = true;
        }
        sink(Piece::Call(CallFragment {
            index: Some(self.number(call)),
            arguments: Some(text.into()),
            ..CallFragment::default()
        }));
    }

    fn forget(&mut self, call: &mut Called) {
        self.kept_bytes = self.kept_bytes.saturating_sub(call.arguments.len());
        call.arguments = String::new();
    }

    /// Calls are numbered as they are first heard of.
    fn number(&mut self, call: &mut Called) -> u64 {
        *call.number.get_or_insert_with(|| {
            self.begun += 1;
            self.begun - 1
        })
    }
}

/// Keeps an item as it came.
fn keep(raw: &RawValue, sink: &mut Sink<'_>) {
    if let Ok(block) = serde_json::from_str::<Value>(raw.get()) {
        sink(Piece::Block {
            format: Format::OpenaiResponses,
            block,
        });
    }
}

fn is_filled_object(text: &str) -> bool {
    serde_json::from_str::<serde_json::Map<String, Value>>(text).is_ok_and(|fields| !fields.is_empty())
}

/// Whether arguments that should be whole end in the middle, as against being wrong.
fn is_cut(text: &str) -> bool {
    let read = serde_json::from_str::<serde::de::IgnoredAny>(text);
    !text.trim().is_empty() && read.is_err_and(|error| error.is_eof())
}
