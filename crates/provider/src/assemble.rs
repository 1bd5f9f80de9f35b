//! A reply, put together from the pieces a codec reads.
//!
//! This file owns the [`Assembler`]: pieces go in, [`Delta`]s to show come out, and at the end one [`Reply`]. It
//! absorbs what servers do differently (SPEC 7.4), is pure, and decides the one thing that matters most: whether the
//! reply's calls are whole (SPEC 7.3). Fragments of calls are put together in `calls`, thinking is taken out of the text by
//! `think`, calls that a model wrote as text are found by `text_calls`, both with `lines` to tell markup from talk of it.
//!
//! When a reply is whole:
//!
//! | the stream said | text only | with calls |
//! |---|---|---|
//! | `stop`, `tool_calls` | [`ReplyStop::End`] | [`ReplyStop::ToolCalls`], the calls count |
//! | `length` | [`ReplyStop::Length`] | the same, the calls are partial |
//! | withheld | [`ReplyStop::Refused`] | the same, the calls are partial |
//! | a reason we do not know | `End` | `ToolCalls` if each one is whole JSON, else `Truncated` |
//! | no reason, but `[DONE]` | `End` | `Truncated`: some proxies write `[DONE]` when their server fails |
//! | no reason, no `[DONE]` | `Truncated` | `Truncated`: the connection was cut |
//! | an error, or the reader stopped | `Truncated` | `Truncated` |
//!
//! A reply may be held to a number of calls ([`Assembler::with_calls_max`]): once so many are whole and another begins, the
//! reply counts as if it had said `tool_calls` there, and nothing that follows is looked at.
//!
//! Partial calls become [`Part::PartialCall`] blocks: shown, kept, never run.
//!
//! A call's place among the blocks is kept as a [`Part::Call`] where it says something: formats that sign their thinking
//! want it back in the order it came.

use crate::codec::names::WireNames;
use crate::codec::{CallFragment, Finish, Piece, quote};
use crate::profile::Format;
use crate::{Delta, ErrorKind, ProviderError, Reply, ReplyCall};
use aish_core::event::{ReplyStop, Usage};
use aish_core::message::Part;

mod calls;
mod lines;
mod text_calls;
mod think;

use calls::Calls;
pub use calls::{ARGUMENT_BYTES_MAX, CALLS_MAX};
pub use text_calls::Callable;
use text_calls::Tools;
use text_calls::hold::Hold;
use think::{Heard, ThinkSplitter, Voice};

/// Bytes of all text, thinking and calls of one reply together.
pub const REPLY_BYTES_MAX: usize = 16 << 20;

/// Blocks of one reply. A model that changes between thinking and text more often gets its later text joined to the
/// last block of the same kind.
pub const PARTS_MAX: usize = 1024;

/// Whether the stream was read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It was: what it said of its end holds.
    Read,
    /// The reader stopped, or the connection broke: the reply is cut short whatever it said.
    Cut,
}

/// A reply under way.
#[derive(Debug, Default)]
pub struct Assembler {
    names: WireNames,
    callable: Vec<Callable>,
    parts: Vec<Part>,
    think: ThinkSplitter,
    hold: Hold,
    /// The calls that were written as text, once the reply is at its end.
    written: Vec<ReplyCall>,
    calls: Calls,
    bytes: usize,
    finish: Option<Finish>,
    /// A piece of a call came after the reason to finish: only `[DONE]` or another reason can prove it whole.
    is_finish_stale: bool,
    is_done: bool,
    calls_max: Option<usize>,
    has_enough: bool,
    /// The next text or thinking is a block of its own.
    is_boundary: bool,
    reason: Option<String>,
    usage: Option<Usage>,
    model: Option<String>,
    error: Option<ProviderError>,
}

impl Assembler {
    /// An empty reply. `names` are those of the request it answers, `callable` the tools (as people name them) that a
    /// call written as text may name; with none, text stays text.
    pub fn new(names: WireNames, callable: Vec<String>) -> Self {
        let callable = callable.into_iter().map(|name| Callable {
            name,
            texts: Vec::new(),
        });
        Self::with_callable(names, callable.collect())
    }

    /// The same, for tools of which more is known than their name.
    pub fn with_callable(names: WireNames, callable: Vec<Callable>) -> Self {
        Self {
            names,
            callable,
            ..Self::default()
        }
    }

    /// The same, held to so many calls.
    pub fn with_calls_max(self, calls_max: usize) -> Self {
        Self {
            calls_max: Some(calls_max),
            ..self
        }
    }

    /// Takes the next piece and adds what there is to show to `out`. After a failure pieces are ignored.
    pub fn push(&mut self, piece: Piece<'_>, out: &mut Vec<Delta>) {
        if self.error.is_some() || self.has_enough {
            return;
        }
        match piece {
            Piece::Call(fragment) if self.is_enough_before(&fragment) => {
                self.has_enough = true;
                self.finish = Some(Finish::ToolCalls);
                self.is_finish_stale = false;
            }
            Piece::Text(text) => self.text(&text, out),
            Piece::Thinking(text) => {
                self.think.is_told();
                self.say(Voice::Thinking, &text, out);
            }
            Piece::Signature { format, text } => self.sign(format, &text),
            Piece::Boundary => self.is_boundary = true,
            Piece::Block { format, block } => self.block(format, block),
            Piece::Call(fragment) => {
                self.is_finish_stale = self.finish.is_some();
                let before = self.calls.len();
                let (calls, names) = (&mut self.calls, &self.names);
                match calls.add(&fragment, names) {
                    Ok(added) => {
                        self.bytes += added.bytes;
                        if let Some(name) = added.begun {
                            out.push(Delta::CallBegun { name });
                        }
                    }
                    Err(error) => self.fail(too_large(&error.to_string())),
                }
                self.place_call(before, fragment.signature.as_deref());
            }
            Piece::Finish(finish) => {
                self.finish = Some(finish);
                self.is_finish_stale = false;
            }
            Piece::Reason(reason) => {
                self.reason.get_or_insert_with(|| quote(&reason));
            }
            Piece::Usage(usage) => self.usage = Some(usage),
            Piece::Model(model) => {
                if self.model.as_deref() != Some(&*model) {
                    self.model = Some(model.into_owned());
                }
            }
            Piece::Error(error) => self.fail(error),
            Piece::Done => self.is_done = true,
        }
        if self.bytes > REPLY_BYTES_MAX {
            self.fail(too_large(&format!("the reply is longer than {REPLY_BYTES_MAX} bytes")));
        }
    }

    fn is_enough_before(&self, fragment: &CallFragment<'_>) -> bool {
        self.calls_max.is_some_and(|max| self.calls.len() >= max)
            && self.calls.are_whole_json()
            && self.calls.begins_another(fragment, &self.names)
    }

    /// Notes a failure; the first one stays. What came before it is kept.
    pub fn fail(&mut self, error: ProviderError) {
        self.error.get_or_insert(error);
    }

    /// True after a failure: nothing that follows can change the reply.
    pub fn has_failed(&self) -> bool {
        self.error.is_some()
    }

    /// True once anything of the reply itself has come.
    pub fn has_begun(&self) -> bool {
        self.bytes > 0 || !self.calls.is_empty() || !self.parts.is_empty()
    }

    /// True once the reply has all the calls it may have: nothing that follows is looked at.
    pub fn has_enough(&self) -> bool {
        self.has_enough
    }

    /// True once the stream said why it ends: what may follow is only a count of tokens.
    pub fn has_finished(&self) -> bool {
        self.finish.is_some() && !self.is_finish_stale
    }

    /// True once the stream said that nothing follows.
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// Adds what was held back to `out`, because it might have been the beginning of a tag or a call. To be called at the
    /// end of a stream that was read.
    pub fn flush(&mut self, out: &mut Vec<Delta>) {
        self.settle(Ending::Read, out);
    }

    /// Says what was held back, but for the calls that a model wrote as text: they become calls, and their text goes out of
    /// the reply, because in the next request they would otherwise stand there twice. What was shown stays shown.
    fn settle(&mut self, ending: Ending, out: &mut Vec<Delta>) {
        for heard in self.think.end() {
            self.hear(heard, out);
        }
        let held = self.hold.end();
        let is_end = self.stop(ending) == ReplyStop::End;
        if !is_end || self.callable.is_empty() || !self.written.is_empty() {
            return self.say(Voice::Text, &held, out);
        }
        let said = match self.parts.last_mut() {
            Some(Part::Text { text }) => std::mem::take(text),
            Some(
                Part::Thinking { .. }
                | Part::Context { .. }
                | Part::Image { .. }
                | Part::Provider { .. }
                | Part::Call { .. }
                | Part::PartialCall { .. },
            )
            | None => String::new(),
        };
        let mut all = format!("{said}{held}");
        let tools = Tools {
            names: &self.names,
            callable: &self.callable,
        };
        if let Some(found) = text_calls::find(&all, tools) {
            self.written = found.calls;
            self.written.truncate(self.calls_max.unwrap_or(CALLS_MAX));
            all.truncate(found.text_bytes);
        }
        // What was said stays as it was; of what was held, the part before the calls is shown now.
        let shown_bytes = said.len().min(all.len());
        let rest = all.split_off(shown_bytes);
        if let Some(Part::Text { text }) = self.parts.last_mut() {
            *text = all;
            if text.is_empty() && rest.is_empty() {
                self.parts.pop();
            }
        }
        self.say(Voice::Text, &rest, out);
    }

    /// The reply as far as it came.
    pub fn finish(mut self, ending: Ending) -> Reply {
        self.settle(ending, &mut Vec::new());
        let stop = self.stop(ending);
        let mut calls = Vec::new();
        match stop {
            ReplyStop::ToolCalls => {
                calls = std::mem::take(&mut self.calls).into_calls(&self.names);
                // Without anything behind it, a place says nothing.
                while let Some(Part::Call { signature: None, .. }) = self.parts.last() {
                    self.parts.pop();
                }
            }
            ReplyStop::End => calls = std::mem::take(&mut self.written),
            ReplyStop::Paused
            | ReplyStop::Length
            | ReplyStop::Truncated
            | ReplyStop::Refused
            | ReplyStop::Interrupted
            | ReplyStop::Closing => {
                self.parts.retain(|part| !matches!(part, Part::Call { .. }));
                let cut = std::mem::take(&mut self.calls).into_calls(&self.names);
                let cut = cut.into_iter().chain(std::mem::take(&mut self.written));
                self.parts.extend(cut.map(|call| Part::PartialCall {
                    name: call.name,
                    arguments: call.arguments,
                }));
            }
        }
        let stop = if calls.is_empty() { stop } else { ReplyStop::ToolCalls };
        let mut usage = self.usage;
        if let Some(usage) = &mut usage {
            usage.model = usage.model.take().or_else(|| self.model.clone());
        }
        Reply {
            parts: self.parts,
            calls,
            stop,
            usage,
            model: self.model,
            error: self.error,
            reason: self.reason.filter(|_| is_cut(stop)),
            remarks: Vec::new(),
        }
    }

    /// The table in this module's documentation.
    fn stop(&self, ending: Ending) -> ReplyStop {
        if ending == Ending::Cut || self.error.is_some() {
            return ReplyStop::Truncated;
        }
        let whole = if self.calls.is_empty() {
            ReplyStop::End
        } else {
            ReplyStop::ToolCalls
        };
        match self.finish {
            Some(Finish::Stop | Finish::ToolCalls) if self.is_finish_stale && !self.is_done => ReplyStop::Truncated,
            Some(Finish::Stop | Finish::ToolCalls) => whole,
            Some(Finish::Paused) if self.calls.is_empty() => ReplyStop::Paused,
            Some(Finish::Paused) => whole,
            Some(Finish::Length) => ReplyStop::Length,
            Some(Finish::Refused) => ReplyStop::Refused,
            Some(Finish::Aborted) => ReplyStop::Truncated,
            Some(Finish::Other) if self.calls.are_whole_json() => whole,
            Some(Finish::Other) => ReplyStop::Truncated,
            None if self.is_done && self.calls.is_empty() => ReplyStop::End,
            None => ReplyStop::Truncated,
        }
    }

    fn text(&mut self, text: &str, out: &mut Vec<Delta>) {
        let sure = self.think.take(text);
        self.speak(sure, out);
        for heard in self.think.heard() {
            self.hear(heard, out);
        }
    }

    fn hear(&mut self, heard: Heard, out: &mut Vec<Delta>) {
        match heard {
            Heard::Said(Voice::Text, text) => self.speak(&text, out),
            Heard::Said(Voice::Thinking, text) => self.say(Voice::Thinking, &text, out),
            Heard::WasThinking => {
                let held = self.hold.end();
                self.say(Voice::Text, &held, out);
                if let [Part::Text { text }] = self.parts.as_mut_slice() {
                    self.parts = vec![Part::thinking(std::mem::take(text))];
                }
            }
        }
    }

    /// Says text that may hold calls.
    fn speak(&mut self, text: &str, out: &mut Vec<Delta>) {
        if self.callable.is_empty() {
            return self.say(Voice::Text, text, out);
        }
        let tools = Tools {
            names: &self.names,
            callable: &self.callable,
        };
        let text = self.hold.take(text, tools);
        self.say(Voice::Text, &text, out);
    }

    /// Adds text to the reply and to what is shown.
    fn say(&mut self, voice: Voice, text: &str, out: &mut Vec<Delta>) {
        if text.is_empty() {
            return;
        }
        self.bytes += text.len();
        if self.bytes > REPLY_BYTES_MAX {
            return;
        }
        show(voice, text, out);
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
    fn sign(&mut self, format: Format, text: &str) {
        self.bytes += text.len();
        if text.is_empty() || self.bytes > REPLY_BYTES_MAX {
            return;
        }
        let is_new = std::mem::take(&mut self.is_boundary);
        if let Some(Part::Thinking {
            signature, format: of, ..
        }) = self.parts.last_mut().filter(|_| !is_new)
        {
            signature.get_or_insert_default().push_str(text);
            *of = Some(format.name().to_owned());
        } else {
            self.add(Part::Thinking {
                text: String::new(),
                signature: Some(text.to_owned()),
                format: Some(format.name().to_owned()),
            });
        }
    }

    fn block(&mut self, format: Format, block: serde_json::Value) {
        self.is_boundary = false;
        // As long as it will be in the ledger, which is what the bound is for.
        self.bytes += block.to_string().len();
        self.add(Part::Provider {
            format: format.name().to_owned(),
            block,
        });
    }

    /// Keeps where a call stands, if the last fragment began one, and its signature.
    fn place_call(&mut self, calls_before: usize, signature: Option<&str>) {
        let signature = signature.filter(|signature| !signature.is_empty()).map(str::to_owned);
        self.bytes += signature.as_ref().map_or(0, String::len);
        if self.calls.len() > calls_before {
            self.add(Part::Call {
                index: calls_before,
                signature,
            });
        } else if let (Some(signature), Some(Part::Call { signature: last, .. })) = (signature, self.parts.last_mut()) {
            *last = Some(signature);
        }
    }

    /// Adds a block that no other can be joined to.
    fn add(&mut self, part: Part) {
        if self.parts.len() < PARTS_MAX + CALLS_MAX {
            self.parts.push(part);
        } else {
            self.fail(too_large(&format!("the reply has more than {PARTS_MAX} blocks")));
        }
    }
}

/// True where a reply did not come to its own end.
fn is_cut(stop: ReplyStop) -> bool {
    match stop {
        ReplyStop::Length | ReplyStop::Truncated | ReplyStop::Refused | ReplyStop::Interrupted => true,
        ReplyStop::End | ReplyStop::ToolCalls | ReplyStop::Paused | ReplyStop::Closing => false,
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

/// Adds to the last delta where it is of the same kind: many small chunks that came together are one thing to show.
fn show(voice: Voice, text: &str, out: &mut Vec<Delta>) {
    match (voice, out.last_mut()) {
        (Voice::Text, Some(Delta::Text(last))) | (Voice::Thinking, Some(Delta::Thinking(last))) => last.push_str(text),
        (Voice::Text, _) => out.push(Delta::Text(text.to_owned())),
        (Voice::Thinking, _) => out.push(Delta::Thinking(text.to_owned())),
    }
}

/// One of our own bounds was passed.
pub(crate) fn too_large(what: &str) -> ProviderError {
    ProviderError {
        kind: ErrorKind::TooLarge,
        message: what.to_owned(),
        retry_after: None,
    }
}

#[cfg(test)]
mod tests;
