//! A reply, put together from the pieces a codec reads.
//!
//! This file owns the [`Assembler`]: pieces go in, [`Delta`]s to show come out, and at the end one [`Reply`]. It
//! absorbs what servers do differently (SPEC 7.4), is pure, and decides the one thing that matters most: whether the
//! reply's calls are whole (SPEC 7.3). Blocks are put together in `blocks`, calls in `calls`, thinking is taken out of the text by
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
use crate::{Delta, ErrorKind, ProviderError, Reply, ReplyCall};
use aish_core::event::{ReplyStop, Usage};
use aish_core::message::Part;

mod blocks;
mod calls;
mod lines;
mod text_calls;
mod think;

use blocks::Blocks;
use calls::Calls;
pub use calls::{ARGUMENT_BYTES_MAX, CALLS_MAX};
use lines::Lines;
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
    blocks: Blocks,
    think: ThinkSplitter,
    hold: Hold,
    /// The calls that were written as text, once the reply is at its end.
    written: Vec<ReplyCall>,
    calls: Calls,
    finish: Option<Finish>,
    /// A piece of a call came after the reason to finish: only `[DONE]` or another reason can prove it whole.
    is_finish_stale: bool,
    is_done: bool,
    calls_max: Option<usize>,
    has_enough: bool,
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
            Piece::Signature { format, text } => {
                let signed = self.blocks.sign(format, &text);
                self.note(signed);
            }
            Piece::Boundary => {
                self.release(out);
                self.blocks.is_boundary = true;
            }
            Piece::Block { format, block } => {
                self.release(out);
                let added = self.blocks.provider(format, block);
                self.note(added);
            }
            Piece::Call(fragment) => {
                self.release(out);
                self.call(&fragment, out);
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
        if self.blocks.are_too_large() {
            self.fail(too_large(&format!("the reply is longer than {REPLY_BYTES_MAX} bytes")));
        }
    }

    fn call(&mut self, fragment: &CallFragment<'_>, out: &mut Vec<Delta>) {
        self.is_finish_stale = self.finish.is_some();
        let before = self.calls.len();
        match self.calls.add(fragment, &self.names) {
            Ok(added) => {
                self.blocks.bytes += added.bytes;
                if let Some(name) = added.begun {
                    out.push(Delta::CallBegun { name });
                }
            }
            Err(error) => self.fail(too_large(&error.to_string())),
        }
        let signature = fragment.signature.as_deref();
        if self.calls.len() > before {
            let placed = self.blocks.place_call(before, signature);
            self.note(placed);
        } else {
            self.blocks.sign_call(signature);
        }
    }

    /// Says what was held back before something else than text begins: what comes later stands behind that.
    fn release(&mut self, out: &mut Vec<Delta>) {
        for heard in self.think.release() {
            self.hear(heard, out);
        }
        let held = self.hold.release();
        self.say(Voice::Text, &held, out);
    }

    fn is_enough_before(&self, fragment: &CallFragment<'_>) -> bool {
        self.calls_max.is_some_and(|max| self.calls.len() >= max)
            && self.calls.are_whole_json()
            && self.calls.begins_another(fragment, &self.names)
    }

    fn note(&mut self, done: Result<(), ProviderError>) {
        if let Err(error) = done {
            self.fail(error);
        }
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
        self.blocks.bytes > 0 || !self.calls.is_empty() || !self.blocks.parts.is_empty()
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
        let at = self.blocks.last_text(&held);
        let said = at.map(|at| self.blocks.take_text(at)).unwrap_or_default();
        let mut lines = Lines::default();
        let before = self.blocks.parts.get(..at.unwrap_or(self.blocks.parts.len()));
        for part in before.unwrap_or_default() {
            if let Part::Text { text } = part {
                lines.pass_block(text);
            }
        }
        let mut all = format!("{said}{held}");
        let tools = Tools {
            names: &self.names,
            callable: &self.callable,
        };
        if let Some(found) = text_calls::find(&all, lines, tools) {
            self.written = found.calls;
            self.written.truncate(self.calls_max.unwrap_or(CALLS_MAX));
            all.truncate(found.text_bytes);
        }
        // What was said stays as it was; of what was held, the part before the calls is shown now.
        let shown_bytes = said.len().min(all.len());
        let rest = all.split_off(shown_bytes);
        if let Some(at) = at {
            self.blocks.put_text(at, all);
        }
        self.say(Voice::Text, &rest, out);
    }

    /// The reply as far as it came.
    pub fn finish(mut self, ending: Ending) -> Reply {
        self.settle(ending, &mut Vec::new());
        let stop = self.stop(ending);
        let mut parts = std::mem::take(&mut self.blocks.parts);
        let mut calls = Vec::new();
        match stop {
            ReplyStop::ToolCalls => {
                calls = std::mem::take(&mut self.calls).into_calls(&self.names);
                // Without anything behind it, a place says nothing.
                while let Some(Part::Call { signature: None, .. }) = parts.last() {
                    parts.pop();
                }
            }
            ReplyStop::End => calls = std::mem::take(&mut self.written),
            ReplyStop::Paused
            | ReplyStop::Length
            | ReplyStop::Truncated
            | ReplyStop::Refused
            | ReplyStop::Interrupted
            | ReplyStop::Closing => {
                parts.retain(|part| !matches!(part, Part::Call { .. }));
                let cut = std::mem::take(&mut self.calls).into_calls(&self.names);
                let cut = cut.into_iter().chain(std::mem::take(&mut self.written));
                parts.extend(cut.map(|call| Part::PartialCall {
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
            parts,
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
                self.blocks.was_thinking();
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
        self.blocks.say(voice, text);
        if !self.blocks.are_too_large() {
            show(voice, text, out);
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
