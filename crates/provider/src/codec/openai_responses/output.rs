//! The items of a reply under way: which of them an event is about, and what of each was said already.
//!
//! The API announces an item, streams it, and then says all of it again: at its end, and once more with the whole response.
//! Servers leave out any of these, so each is looked at, and what was said before is not said again. Which item is meant is
//! told by up to three marks, of which servers get every one wrong somewhere:
//!
//! | mark | wrong where |
//! |---|---|
//! | the item's id | GitHub Copilot has another in each event; LiteLLM in each delta of reasoning |
//! | its place in the output | llama.cpp leaves it out; LiteLLM gives several items the same |
//! | the call's id | only some events have it; vLLM has another in the whole response |
//!
//! <https://github.com/BerriAI/litellm/issues/30071>, <https://github.com/BerriAI/litellm/pull/36375>,
//! <https://github.com/vllm-project/vllm/pull/47916>. So an item is looked for by id, by call, by place, and what fits none
//! goes to the last one of its kind that is still open.

use super::payload::{Item, Part, argument_text, read};
use crate::ProviderError;
use crate::assemble::too_large;
use crate::codec::names::fnv1a;
use crate::codec::{CallFragment, Finish, Piece, Sink};
use crate::profile::Format;
use serde_json::Value;
use serde_json::value::RawValue;

/// Items of one reply.
const ITEMS_MAX: usize = 1024;

/// Characters of the id under which readable reasoning is sent back; the API takes no longer one.
const ID_CHARS_MAX: usize = 64;

/// What kind of item it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Message,
    Reasoning,
    Call,
    /// A provider's own, e.g. a search.
    Own,
}

impl Kind {
    /// By its type; none where there is no type.
    fn of(name: &str) -> Option<Self> {
        match name {
            "" => None,
            "message" => Some(Self::Message),
            "reasoning" => Some(Self::Reasoning),
            "function_call" => Some(Self::Call),
            _ => Some(Self::Own),
        }
    }
}

/// What an event says of the item it is about.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Marks<'e> {
    pub(super) id: Option<&'e str>,
    pub(super) call_id: Option<&'e str>,
    /// Its place in the output.
    pub(super) index: Option<u64>,
}

/// The two kinds of text that reasoning is readable as. Where both come, the first is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Voice {
    /// What the model thought, which open models show.
    Raw,
    /// What another model made of it.
    Summary,
}

/// An item of the reply. Ids are kept as hashes: some servers put kilobytes into them.
#[derive(Debug)]
struct Known {
    kind: Kind,
    id: Option<u64>,
    call_id: Option<u64>,
    index: Option<u64>,
    /// An event said that it begins.
    is_announced: bool,
    /// An event said all of it.
    is_over: bool,
    /// Of a message or reasoning: the part of it that was said last.
    part: Option<u64>,
    /// Of reasoning: as what it is said.
    voice: Option<Voice>,
    /// Of a call.
    call: Called,
}

/// What was said of a call.
#[derive(Debug, Default)]
struct Called {
    /// Which call of the reply, from 0.
    number: u64,
    is_named: bool,
    /// Bytes of its arguments.
    bytes: usize,
    /// All of its arguments came at once; what comes of them later repeats them.
    is_whole: bool,
}

/// The items of a reply.
#[derive(Debug, Default)]
pub(super) struct Output {
    items: Vec<Known>,
    calls: u64,
    /// Whose text came last.
    speaking: Option<usize>,
    is_refused: bool,
    /// The arguments of a call end in the middle, by the provider's own account.
    is_cut: bool,
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
        let Some(kind) = kind_of(&item) else {
            return Ok(());
        };
        let marks = marks_of(&item, index);
        let known = self.by_ids(kind, marks);
        let at = match known.or_else(|| self.rfind(|known| known.kind == kind && known.is_only_at(index))) {
            Some(at) => at,
            None => self.add(kind, marks)?,
        };
        let Some(known) = self.items.get_mut(at) else {
            return Ok(());
        };
        known.is_announced = true;
        known.learn(marks);
        if kind == Kind::Call {
            name_call(&mut known.call, marks, item.name.0.as_deref(), sink);
            // What stands here is usually a placeholder that fragments follow; only an object with something in it is not.
            let arguments = item.arguments.and_then(argument_text);
            if let Some(text) = arguments.filter(|text| is_filled_object(text)) {
                known.call.is_whole = true;
                add_arguments(&mut known.call, &text, sink);
            }
        }
        Ok(())
    }

    /// An item is whole.
    pub(super) fn end(&mut self, raw: &RawValue, index: Option<u64>, sink: &mut Sink<'_>) -> Result<(), ProviderError> {
        let item: Item<'_> = read(Some(raw));
        let Some(kind) = kind_of(&item) else {
            return Ok(());
        };
        let marks = marks_of(&item, index);
        let open = |known: &Known| known.kind == kind && !known.is_over;
        let at = self
            .by_ids(kind, marks)
            .or_else(|| index.and_then(|_| self.rfind(|known| open(known) && known.index == index)))
            // Without a place, items end in the order they began.
            .or_else(|| {
                self.items
                    .iter()
                    .position(|known| open(known) && (index.is_none() || known.index.is_none()))
            });
        let at = match at {
            Some(at) => at,
            None => self.add(kind, marks)?,
        };
        self.settle(at, &item, marks, raw, sink);
        Ok(())
    }

    /// The response is whole: says what of its output was not said yet.
    pub(super) fn whole(&mut self, output: &[&RawValue], sink: &mut Sink<'_>) -> Result<(), ProviderError> {
        let mut seen: Vec<Kind> = Vec::new();
        // More items than there may be are refused by then.
        for raw in output.iter().take(ITEMS_MAX + 1) {
            let item: Item<'_> = read(Some(raw));
            let Some(kind) = kind_of(&item) else {
                continue;
            };
            let marks = marks_of(&item, None);
            let of_kind = self.items.iter().enumerate().filter(|(_, known)| known.kind == kind);
            let nth = seen.iter().filter(|before| **before == kind).count();
            let same_place = of_kind.map(|(at, _)| at).nth(nth);
            seen.push(kind);
            let at = match self.by_ids(kind, marks).or(same_place) {
                Some(at) => at,
                None => self.add(kind, marks)?,
            };
            self.settle(at, &item, marks, raw, sink);
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
        let at = self.of_delta(Kind::Message, marks)?;
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
        let at = self.of_delta(Kind::Message, marks)?;
        if self.is_unsaid(at, part) {
            self.say(at, part, text, sink);
        }
        Ok(())
    }

    /// The reply is, or has, a refusal.
    pub(super) fn refuse(&mut self) {
        self.is_refused = true;
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
        let at = self.of_delta(Kind::Reasoning, marks)?;
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
        let at = self.of_delta(Kind::Reasoning, marks)?;
        if self.is_unsaid(at, part) {
            self.think(at, voice, part, text, marks.id, sink);
        }
        Ok(())
    }

    /// A piece of a call's arguments.
    pub(super) fn arguments(&mut self, marks: Marks<'_>, text: &str, sink: &mut Sink<'_>) -> Result<(), ProviderError> {
        let at = self.of_delta(Kind::Call, marks)?;
        if let Some(known) = self.items.get_mut(at)
            && !known.call.is_whole
            && !known.is_over
        {
            add_arguments(&mut known.call, text, sink);
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
        let at = self.of_delta(Kind::Call, marks)?;
        self.end_call(at, marks, name, raw, sink);
        Ok(())
    }

    /// Why a reply ends that the provider calls complete.
    pub(super) fn finish(&self) -> Finish {
        let mut calls = self.items.iter().filter(|known| known.kind == Kind::Call).peekable();
        if self.is_refused {
            return Finish::Refused;
        }
        if calls.peek().is_none() {
            return Finish::Stop;
        }
        match calls.all(|known| known.call.is_whole) {
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
        let is_said = self.items.get(at).is_some_and(|known| known.part.is_some());
        for (place, raw) in (0u64..).zip(&item.content.0) {
            let part: Part<'_> = read(Some(raw));
            let refusal = part.refusal.non_empty();
            self.is_refused |= refusal.is_some();
            let text = part.text.non_empty().or(refusal);
            if let Some(text) = text.filter(|_| !is_said) {
                self.say(at, place, &text, sink);
            }
        }
    }

    fn settle_reasoning(&mut self, at: usize, item: &Item<'_>, marks: Marks<'_>, sink: &mut Sink<'_>) {
        if self.items.get(at).is_some_and(|known| known.part.is_some()) {
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
        let call = &mut known.call;
        name_call(call, marks, name, sink);
        let Some(text) = raw.and_then(argument_text) else {
            return;
        };
        if call.bytes == 0 {
            add_arguments(call, &text, sink);
        }
        // Fragments of another length are another spelling of the same, or some of them are missing.
        call.is_whole |= call.bytes == text.len();
        self.is_cut |= is_cut(&text);
    }

    fn say(&mut self, at: usize, part: u64, text: &str, sink: &mut Sink<'_>) {
        if text.is_empty() {
            return;
        }
        self.turn_to(at, sink);
        if let Some(known) = self.items.get_mut(at) {
            known.part = Some(part);
        }
        sink(Piece::Text(text.into()));
    }

    fn think(&mut self, at: usize, voice: Voice, part: u64, text: &str, id: Option<&str>, sink: &mut Sink<'_>) {
        let Some(known) = self.items.get(at) else {
            return;
        };
        let is_other_voice = known.voice.is_some_and(|first| first != voice);
        if text.is_empty() || is_other_voice {
            return;
        }
        let is_next_part = known.part.is_some_and(|last| last != part);
        let is_first = known.voice.is_none();
        self.turn_to(at, sink);
        if let Some(known) = self.items.get_mut(at) {
            known.part = Some(part);
            known.voice = Some(voice);
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
        let said = self.items.get(at).and_then(|known| known.part);
        said.is_none_or(|last| last < part) && !self.items.get(at).is_some_and(|known| known.is_over)
    }

    /// The item a fragment belongs to.
    fn of_delta(&mut self, kind: Kind, marks: Marks<'_>) -> Result<usize, ProviderError> {
        let is_named = marks.id.is_some() || marks.call_id.is_some();
        let at = self
            .by_ids(kind, marks)
            .or_else(|| {
                let index = marks.index?;
                self.rfind(|known| known.kind == kind && known.index == Some(index))
            })
            .or_else(|| {
                self.rfind(|known| {
                    let may_be = marks.index.is_none() || known.index.is_none();
                    // Calls that nobody announced have nothing but their ids to tell them apart.
                    let is_another = kind == Kind::Call && is_named && !known.is_announced && known.id.is_some();
                    known.kind == kind && !known.is_over && may_be && !is_another
                })
            });
        match at {
            Some(at) => Ok(at),
            None => self.add(kind, marks),
        }
    }

    fn by_ids(&self, kind: Kind, marks: Marks<'_>) -> Option<usize> {
        let (id, call_id) = (hash(marks.id), hash(marks.call_id));
        // Some servers give all items one id; the call's id is what its result must quote, and tells them apart.
        let is_other_call = |known: &Known| known.call_id.is_some() && call_id.is_some() && known.call_id != call_id;
        let same = |mark: Option<u64>, own: Option<u64>| mark.is_some() && mark == own;
        self.rfind(|known| known.kind == kind && same(id, known.id) && !is_other_call(known))
            .or_else(|| self.rfind(|known| known.kind == kind && same(call_id, known.call_id)))
    }

    fn rfind(&self, is_it: impl Fn(&Known) -> bool) -> Option<usize> {
        self.items.iter().rposition(is_it)
    }

    fn add(&mut self, kind: Kind, marks: Marks<'_>) -> Result<usize, ProviderError> {
        if self.items.len() == ITEMS_MAX {
            return Err(too_large(&format!("the reply has more than {ITEMS_MAX} items")));
        }
        let mut known = Known {
            kind,
            id: None,
            call_id: None,
            index: None,
            is_announced: false,
            is_over: false,
            part: None,
            voice: None,
            call: Called::default(),
        };
        known.learn(marks);
        if kind == Kind::Call {
            known.call.number = self.calls;
            self.calls += 1;
        }
        self.items.push(known);
        Ok(self.items.len() - 1)
    }
}

impl Known {
    fn learn(&mut self, marks: Marks<'_>) {
        self.id = self.id.or(hash(marks.id));
        self.call_id = self.call_id.or(hash(marks.call_id));
        self.index = self.index.or(marks.index);
    }

    /// Whether it is known by its place alone, because a fragment of it came before its announcement.
    fn is_only_at(&self, index: Option<u64>) -> bool {
        !self.is_announced && !self.is_over && index.is_some() && self.index == index
    }
}

fn kind_of(item: &Item<'_>) -> Option<Kind> {
    Kind::of(item.r#type.0.as_deref().unwrap_or_default())
}

fn marks_of<'e>(item: &'e Item<'_>, index: Option<u64>) -> Marks<'e> {
    Marks {
        id: item.id.0.as_deref(),
        call_id: item.call_id.0.as_deref(),
        index,
    }
}

/// A mark as it is kept. An empty one says nothing.
fn hash(mark: Option<&str>) -> Option<u64> {
    mark.filter(|mark| !mark.is_empty()).map(|mark| fnv1a(mark, 0))
}

/// Says a call's name, once, and with it the id that its result must quote.
fn name_call(call: &mut Called, marks: Marks<'_>, name: Option<&str>, sink: &mut Sink<'_>) {
    let Some(name) = name.filter(|name| !name.is_empty() && !call.is_named) else {
        return;
    };
    call.is_named = true;
    let id = [marks.call_id, marks.id]
        .into_iter()
        .flatten()
        .find(|id| !id.is_empty());
    sink(Piece::Call(CallFragment {
        index: Some(call.number),
        id: id.map(Into::into),
        name: Some(name.into()),
        ..CallFragment::default()
    }));
}

fn add_arguments(call: &mut Called, text: &str, sink: &mut Sink<'_>) {
    if text.is_empty() {
        return;
    }
    call.bytes += text.len();
    sink(Piece::Call(CallFragment {
        index: Some(call.number),
        arguments: Some(text.into()),
        ..CallFragment::default()
    }));
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
