//! Which item of a reply an event is about.
//!
//! That is told by up to three marks, of which servers get every one wrong somewhere:
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

use super::payload;
use crate::ProviderError;
use crate::assemble::too_large;
use crate::codec::names::fnv1a;
use std::collections::HashSet;

/// Items of one reply.
pub(super) const ITEMS_MAX: usize = 1024;

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
    /// By an item's type; none where there is no type.
    pub(super) fn of(item: &payload::Item<'_>) -> Option<Self> {
        match item.r#type.0.as_deref().unwrap_or_default() {
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

impl<'e> Marks<'e> {
    /// Those of an item that is told whole, at this place.
    pub(super) fn of(item: &'e payload::Item<'_>, index: Option<u64>) -> Self {
        Self {
            id: item.id.0.as_deref(),
            call_id: item.call_id.0.as_deref(),
            index,
        }
    }
}

/// An item of the reply, with what was said of it.
#[derive(Debug)]
pub(super) struct Known<S> {
    pub(super) kind: Kind,
    /// Ids are kept as hashes: some servers put kilobytes into them.
    id: Option<u64>,
    call_id: Option<u64>,
    index: Option<u64>,
    /// An event said that it begins.
    pub(super) is_announced: bool,
    /// An event said all of it.
    pub(super) is_over: bool,
    pub(super) said: S,
}

impl<S> Known<S> {
    /// Takes marks it did not have yet.
    pub(super) fn learn(&mut self, marks: Marks<'_>) {
        self.id = self.id.or(hash(marks.id));
        self.call_id = self.call_id.or(hash(marks.call_id));
        self.index = self.index.or(marks.index);
    }

    /// Whether it is known by its place alone, because a fragment of it came before its announcement.
    fn is_only_at(&self, index: Option<u64>) -> bool {
        !self.is_announced && !self.is_over && index.is_some() && self.index == index
    }
}

/// The items of a reply, in the order they became known. Each search gives the place in that order.
#[derive(Debug)]
pub(super) struct Items<S>(Vec<Known<S>>);

impl<S> Default for Items<S> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<S: Default> Items<S> {
    pub(super) fn get(&self, at: usize) -> Option<&Known<S>> {
        self.0.get(at)
    }

    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut Known<S>> {
        self.0.get_mut(at)
    }

    pub(super) fn of_kind(&self, kind: Kind) -> impl Iterator<Item = (usize, &Known<S>)> {
        self.0.iter().enumerate().filter(move |(_, known)| known.kind == kind)
    }

    /// The item that an event announces.
    pub(super) fn of_begin(&mut self, kind: Kind, marks: Marks<'_>) -> Result<usize, ProviderError> {
        let at = self.by_ids(kind, marks);
        let at = at.or_else(|| self.rfind(|known| known.kind == kind && known.is_only_at(marks.index)));
        at.map_or_else(|| self.add(kind, marks), Ok)
    }

    /// The item that an event tells whole.
    pub(super) fn of_end(&mut self, kind: Kind, marks: Marks<'_>) -> Result<usize, ProviderError> {
        let open = |known: &Known<S>| known.kind == kind && !known.is_over;
        let by_place = || {
            let index = marks.index?;
            self.rfind(|known| open(known) && known.index == Some(index))
        };
        // Without a place, items end in the order they began.
        let first = || {
            let may_be = |known: &Known<S>| marks.index.is_none() || known.index.is_none();
            self.0.iter().position(|known| open(known) && may_be(known))
        };
        let at = self.by_ids(kind, marks).or_else(by_place).or_else(first);
        at.map_or_else(|| self.add(kind, marks), Ok)
    }

    /// The item that the whole response tells under marks nobody has: the first of its kind that is not `taken`.
    pub(super) fn of_rest(
        &mut self,
        kind: Kind,
        marks: Marks<'_>,
        taken: &HashSet<usize>,
    ) -> Result<usize, ProviderError> {
        let at = self.of_kind(kind).map(|(at, _)| at).find(|at| !taken.contains(at));
        at.map_or_else(|| self.add(kind, marks), Ok)
    }

    /// The item a fragment belongs to.
    pub(super) fn of_fragment(&mut self, kind: Kind, marks: Marks<'_>) -> Result<usize, ProviderError> {
        let is_named = marks.id.is_some() || marks.call_id.is_some();
        let last = || {
            self.rfind(|known| {
                let may_be = marks.index.is_none() || known.index.is_none();
                // Calls that nobody announced have nothing but their ids to tell them apart.
                let is_another = kind == Kind::Call && is_named && !known.is_announced && known.id.is_some();
                known.kind == kind && !known.is_over && may_be && !is_another
            })
        };
        let at = self.marked(kind, marks).or_else(last);
        at.map_or_else(|| self.add(kind, marks), Ok)
    }

    /// The item of this kind that has one of these marks.
    pub(super) fn marked(&self, kind: Kind, marks: Marks<'_>) -> Option<usize> {
        self.by_ids(kind, marks).or_else(|| {
            let index = marks.index?;
            self.rfind(|known| known.kind == kind && known.index == Some(index))
        })
    }

    /// The item of this kind that has one of these ids.
    pub(super) fn by_ids(&self, kind: Kind, marks: Marks<'_>) -> Option<usize> {
        let (id, call_id) = (hash(marks.id), hash(marks.call_id));
        // Some servers give all items one id; the call's id is what its result must quote, and tells them apart.
        let is_other_call = |known: &Known<S>| known.call_id.is_some() && call_id.is_some() && known.call_id != call_id;
        let same = |mark: Option<u64>, own: Option<u64>| mark.is_some() && mark == own;
        self.rfind(|known| known.kind == kind && same(id, known.id) && !is_other_call(known))
            .or_else(|| self.rfind(|known| known.kind == kind && same(call_id, known.call_id)))
    }

    fn rfind(&self, is_it: impl Fn(&Known<S>) -> bool) -> Option<usize> {
        self.0.iter().rposition(is_it)
    }

    fn add(&mut self, kind: Kind, marks: Marks<'_>) -> Result<usize, ProviderError> {
        if self.0.len() == ITEMS_MAX {
            return Err(too_large(&format!("the reply has more than {ITEMS_MAX} items")));
        }
        let mut known = Known {
            kind,
            id: None,
            call_id: None,
            index: None,
            is_announced: false,
            is_over: false,
            said: S::default(),
        };
        known.learn(marks);
        self.0.push(known);
        Ok(self.0.len() - 1)
    }
}

/// A mark as it is kept. An empty one says nothing.
fn hash(mark: Option<&str>) -> Option<u64> {
    mark.filter(|mark| !mark.is_empty()).map(|mark| fnv1a(mark, 0))
}
