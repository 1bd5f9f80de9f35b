//! Payloads of Anthropic Messages to pieces: an event of a stream, or a whole reply.
//!
//! A stream names each block by an index: it starts, grows by deltas, stops. The [`Reader`] remembers which index is what, by
//! a number of its own, because servers use indices twice, leave them out, or start all blocks before they stop any
//! (llama.cpp). What text and thinking say goes on at once; a call's whole `input` and blocks of the provider's own wait for
//! their end, see `block`. A payload is parsed straight into borrowed fields.

use super::block::{Block, Said, Voice, object};
use super::failure;
use crate::assemble::too_large;
use crate::codec::lenient::{self, Count, List, Str};
use crate::codec::{Decoder, Finish, Piece, Sink, withheld};
use crate::profile::Format;
use crate::{ProviderError, sse};
use aish_core::event::Usage;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// Blocks of one reply that are open at once.
const OPEN_BLOCKS_MAX: usize = 1_024;

/// Bytes of one reply that are held back until their block stops, weighed as `block` says.
const HELD_BYTES_MAX: usize = 8 << 20;

#[derive(Deserialize, Default)]
#[serde(default)]
struct Payload<'a> {
    #[serde(borrow)]
    r#type: Str<'a>,
    index: Count,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    #[serde(borrow)]
    content_block: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// A reply: whole in a body, as far as it is known in `message_start`.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Reply<'a> {
    #[serde(borrow)]
    model: Str<'a>,
    #[serde(borrow)]
    content: Option<List<&'a RawValue>>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

/// Why a reply ends: in `message_delta`, or in a whole reply.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Stop<'a> {
    #[serde(borrow)]
    stop_reason: Str<'a>,
    #[serde(borrow)]
    stop_details: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct StopDetails<'a> {
    /// What policy it is about.
    #[serde(borrow)]
    category: Str<'a>,
    #[serde(borrow)]
    explanation: Str<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Tokens<'a> {
    input_tokens: Count,
    output_tokens: Count,
    cache_read_input_tokens: Count,
    cache_creation_input_tokens: Count,
    #[serde(borrow)]
    output_tokens_details: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct TokenDetails {
    thinking_tokens: Count,
}

/// Tokens so far. Each count of a stream is of the whole reply, so that a later one replaces an earlier one; but not every
/// payload has every count, and some servers write zeros where they do not know.
#[derive(Debug, Default)]
struct Counts {
    fresh: u64,
    cached: u64,
    cache_write: u64,
    output: u64,
    reasoning: u64,
}

/// One of the counts, and what a payload tells of it.
type Told = (fn(&mut Counts) -> &mut u64, Count);

impl Counts {
    /// Takes counts that belong together, unless all of them are zero: some servers count cached tokens as fresh ones first and
    /// tell them apart later.
    fn take<const N: usize>(&mut self, told: [Told; N]) {
        if told.iter().any(|(_, count)| count.0.unwrap_or(0) > 0) {
            for (field, count) in told {
                let field = field(self);
                *field = count.0.unwrap_or(*field);
            }
        }
    }
}

/// Reads one reply.
#[derive(Debug, Default)]
pub(super) struct Reader {
    open: Vec<Open>,
    /// Blocks started so far; the number of the last one.
    started: u64,
    /// The block that spoke last, if it was text or thinking.
    last: Option<u64>,
    /// Bytes that blocks held back so far.
    held_bytes: usize,
    counts: Counts,
}

/// A block that was started and not stopped.
#[derive(Debug)]
struct Open {
    index: Option<u64>,
    number: u64,
    block: Block,
}

impl Decoder for Reader {
    fn event(&mut self, event: &sse::Event<'_>, sink: &mut Sink<'_>) -> Result<(), ProviderError> {
        let data = event.data.trim();
        if data.is_empty() || event.name == "ping" {
            return Ok(());
        }
        if data == "[DONE]" {
            // Not of this format, but some gateways end every stream so.
            sink(Piece::Done);
            return Ok(());
        }
        let payload: Payload<'_> = match lenient::payload(data) {
            Ok(payload) => payload,
            Err(_) if event.name == "error" => {
                sink(Piece::Error(failure::of_stream(&Value::String(data.to_owned()))));
                return Ok(());
            }
            Err(why) => return Err(broken("an event of the stream", data, &why)),
        };
        let kind = payload.r#type.non_empty().unwrap_or_else(|| event.name.clone());
        match &*kind {
            "message_start" => self.reply(&object(payload.message), sink),
            "content_block_start" => self.start(payload.index.0, payload.content_block, sink),
            "content_block_delta" => self.delta(payload.index.0, payload.delta, sink),
            "content_block_stop" => self.stop(payload.index.0, sink),
            "message_delta" => {
                self.usage(payload.usage, sink);
                self.end(object(payload.delta), sink);
            }
            "message_stop" => {
                self.stop_if(|_| true, sink);
                sink(Piece::Done);
            }
            // A whole reply as one event: a gateway that does not stream and pretends to.
            "message" => return self.body(data, sink),
            kind if kind == "error" || payload.error.is_some() => failed(data, payload.error, sink),
            // Kinds of events may be added at any time (the API's reference, "Versions").
            _ => {}
        }
        Ok(())
    }

    /// It ends the stream, but without a reason to finish it is still no whole reply.
    fn body(&mut self, body: &str, sink: &mut Sink<'_>) -> Result<(), ProviderError> {
        let payload: Payload<'_> = lenient::payload(body).map_err(|why| broken("the reply", body, &why))?;
        let reply: Reply<'_> = lenient::payload(body).map_err(|why| broken("the reply", body, &why))?;
        if payload.error.is_some() || reply.content.is_none() {
            failed(body, payload.error, sink);
            return Ok(());
        }
        self.reply(&reply, sink);
        self.end(lenient::payload(body).unwrap_or_default(), sink);
        sink(Piece::Done);
        Ok(())
    }
}

impl Reader {
    fn reply(&mut self, reply: &Reply<'_>, sink: &mut Sink<'_>) {
        if let Some(model) = reply.model.0.as_deref().filter(|model| !model.is_empty()) {
            sink(Piece::Model(model.into()));
        }
        self.usage(reply.usage, sink);
        for block in reply.content.iter().flat_map(|content| &content.0) {
            self.start(None, Some(block), sink);
            self.stop(None, sink);
        }
    }

    fn start(&mut self, index: Option<u64>, raw: Option<&RawValue>, sink: &mut Sink<'_>) {
        // An index that comes again is another block.
        self.stop_if(|open| index.is_some() && open.index == index, sink);
        let Some(raw) = raw else {
            return;
        };
        self.started += 1;
        let number = self.started;
        let last = &mut self.last;
        let (block, bytes) = Block::start(raw, &mut Voice { number, last, sink });
        self.open(Open { index, number, block }, sink);
        self.hold(bytes, sink);
    }

    fn delta(&mut self, index: Option<u64>, raw: Option<&RawValue>, sink: &mut Sink<'_>) {
        let (Some(raw), delta): (_, Said<'_>) = (raw, object(raw)) else {
            return;
        };
        let Some(at) = self.open_at(index, &delta) else {
            // Its start was left out or lost.
            if delta.is_prose() {
                self.started += 1;
                let (number, block) = (self.started, Block::prose());
                self.open(Open { index, number, block }, sink);
                self.grow(self.open.len(), raw, delta, sink);
            }
            return;
        };
        self.grow(at + 1, raw, delta, sink);
    }

    /// Where the open block is that a delta is of.
    fn open_at(&self, index: Option<u64>, delta: &Said<'_>) -> Option<usize> {
        let by_index = self
            .open
            .iter()
            .rposition(|open| index.is_some() && open.index == index);
        let last = self.open.len().checked_sub(1);
        by_index.or_else(|| {
            // Without an index, or with one that nothing was started with, arguments are the last call's.
            let is_call =
                |at: &usize| matches!(self.open.get(*at), Some(open) if matches!(open.block, Block::Call { .. }));
            last.filter(|at| index.is_none() || (delta.is_input() && is_call(at)))
        })
    }

    /// Gives a delta to the `nth` open block, counted from 1.
    fn grow(&mut self, nth: usize, raw: &RawValue, delta: Said<'_>, sink: &mut Sink<'_>) {
        let Some(open) = nth.checked_sub(1).and_then(|at| self.open.get_mut(at)) else {
            return;
        };
        let (number, last) = (open.number, &mut self.last);
        let bytes = open.block.grow(raw, delta, &mut Voice { number, last, sink });
        self.hold(bytes, sink);
    }

    fn open(&mut self, open: Open, sink: &mut Sink<'_>) {
        if self.open.len() == OPEN_BLOCKS_MAX {
            let why = format!("the reply has more than {OPEN_BLOCKS_MAX} blocks open");
            sink(Piece::Error(too_large(&why)));
        } else {
            self.open.push(open);
        }
    }

    /// Counts what is held back.
    fn hold(&mut self, bytes: usize, sink: &mut Sink<'_>) {
        self.held_bytes += bytes;
        if self.held_bytes > HELD_BYTES_MAX {
            self.open.clear();
            let why = format!("blocks of the reply are longer than {HELD_BYTES_MAX} bytes");
            sink(Piece::Error(too_large(&why)));
        }
    }

    fn stop(&mut self, index: Option<u64>, sink: &mut Sink<'_>) {
        let last = self.open.last().map(|open| open.number);
        self.stop_if(
            |open| match index {
                Some(_) => open.index == index,
                None => Some(open.number) == last,
            },
            sink,
        );
    }

    fn stop_if(&mut self, is_over: impl Fn(&Open) -> bool, sink: &mut Sink<'_>) {
        let (over, open): (Vec<Open>, Vec<Open>) = std::mem::take(&mut self.open).into_iter().partition(is_over);
        self.open = open;
        for Open { number, block, .. } in over {
            let last = &mut self.last;
            block.stop(&mut Voice { number, last, sink });
        }
    }

    fn end(&mut self, end: Stop<'_>, sink: &mut Sink<'_>) {
        let Some(reason) = end.stop_reason.non_empty() else {
            return;
        };
        // Some servers never stop their blocks.
        self.stop_if(|_| true, sink);
        let finish = finish(&reason);
        match finish {
            Finish::Refused | Finish::Aborted | Finish::Other => {
                let details: StopDetails<'_> = object(end.stop_details);
                let about: Vec<String> = details
                    .category
                    .non_empty()
                    .as_deref()
                    .map(withheld::readable)
                    .into_iter()
                    .collect();
                let says = details.explanation.0.unwrap_or_default();
                sink(Piece::Reason(withheld::reason(&reason, &about, &says).into()));
            }
            Finish::Stop | Finish::ToolCalls | Finish::Paused | Finish::Length => {}
        }
        sink(Piece::Finish(finish));
    }

    fn usage(&mut self, raw: Option<&RawValue>, sink: &mut Sink<'_>) {
        let Some(raw) = raw.filter(|raw| raw.get().starts_with('{')) else {
            return;
        };
        let tokens: Tokens<'_> = object(Some(raw));
        let details: TokenDetails = object(tokens.output_tokens_details);
        let counts = &mut self.counts;
        counts.take([
            (|counts| &mut counts.fresh, tokens.input_tokens),
            (|counts| &mut counts.cached, tokens.cache_read_input_tokens),
            (|counts| &mut counts.cache_write, tokens.cache_creation_input_tokens),
        ]);
        counts.take([(|counts| &mut counts.output, tokens.output_tokens)]);
        counts.take([(|counts| &mut counts.reasoning, details.thinking_tokens)]);
        sink(Piece::Usage(Usage {
            input_tokens: counts
                .fresh
                .saturating_add(counts.cached)
                .saturating_add(counts.cache_write),
            output_tokens: counts.output,
            cached_tokens: counts.cached,
            cache_write_tokens: counts.cache_write,
            reasoning_tokens: counts.reasoning,
            model: None,
        }));
    }
}

/// A payload that is an error: in its `error`, or as a whole.
fn failed(text: &str, error: Option<&RawValue>, sink: &mut Sink<'_>) {
    let value = serde_json::from_str(error.map_or(text, RawValue::get)).unwrap_or_default();
    sink(Piece::Error(failure::of_stream(&value)));
}

fn broken(what: &str, text: &str, why: &str) -> ProviderError {
    crate::codec::broken(Format::Anthropic, what, text, why)
}

fn finish(reason: &str) -> Finish {
    match reason {
        "end_turn" | "stop_sequence" | "stop" => Finish::Stop,
        "tool_use" | "tool_calls" => Finish::ToolCalls,
        "max_tokens" | "model_context_window_exceeded" | "length" => Finish::Length,
        "pause_turn" => Finish::Paused,
        "refusal" => Finish::Refused,
        _ => Finish::Other,
    }
}
