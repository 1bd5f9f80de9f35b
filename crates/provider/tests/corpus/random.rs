//! Streams nobody sends: any bytes, and those of the corpus taken apart and put together wrongly.

use super::case::Case;
use super::reading::{Heard, read};
use aish_core::message::Part;
use aish_provider::assemble::{ARGUMENT_BYTES_MAX, CALLS_MAX, PARTS_MAX, REPLY_BYTES_MAX};
use aish_provider::profile::Format;
use proptest::prelude::*;
use proptest::sample::Index;

/// Bytes of text besides what the bounds count: names, ids, and the words of an error.
const SLACK_BYTES: usize = 1 << 20;

/// The events of every case of every format; a server may be configured as what it is not.
fn events() -> Vec<Vec<u8>> {
    let mut events = Vec::new();
    for case in Case::all() {
        let text = String::from_utf8(case.body).unwrap();
        events.extend(text.split_inclusive("\n\n").map(|event| event.as_bytes().to_vec()));
    }
    events
}

/// What is done to a stream of events.
#[derive(Clone, Debug)]
enum Change {
    /// One byte is another.
    Flip(Index, u8),
    /// A piece is left out.
    Drop(Index, usize),
    /// A piece comes twice.
    Repeat(Index, usize),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Change::Flip(at, byte)),
        (any::<Index>(), 1..60usize).prop_map(|(at, bytes)| Change::Drop(at, bytes)),
        (any::<Index>(), 1..60usize).prop_map(|(at, bytes)| Change::Repeat(at, bytes)),
    ]
}

fn changed(mut stream: Vec<u8>, changes: &[Change]) -> Vec<u8> {
    for change in changes {
        if stream.is_empty() {
            break;
        }
        match change {
            Change::Flip(at, byte) => {
                let at = at.index(stream.len());
                stream[at] = *byte;
            }
            Change::Drop(at, bytes) => {
                let at = at.index(stream.len());
                stream.drain(at..(at + bytes).min(stream.len()));
            }
            Change::Repeat(at, bytes) => {
                let at = at.index(stream.len());
                let piece = stream[at..(at + bytes).min(stream.len())].to_vec();
                stream.splice(at..at, piece);
            }
        }
    }
    stream
}

/// Asserts that a reply keeps within the bounds, and that only a whole one has calls.
fn check_bounds(heard: &Heard) {
    let reply = &heard.reply;
    heard.has_calls();
    assert!(reply.error.is_none() || reply.calls.is_empty());
    assert!(reply.calls.len() <= CALLS_MAX);
    assert!(
        reply.parts.len() <= PARTS_MAX + CALLS_MAX + CALLS_MAX,
        "{} blocks",
        reply.parts.len()
    );
    assert!(
        reply
            .calls
            .iter()
            .all(|call| call.arguments.len() <= ARGUMENT_BYTES_MAX)
    );
    let in_calls: usize = reply
        .calls
        .iter()
        .map(|call| call.name.len() + call.arguments.len())
        .sum();
    let in_parts: usize = reply.parts.iter().map(bytes_of).sum();
    assert!(in_calls + in_parts <= REPLY_BYTES_MAX + SLACK_BYTES);
}

/// Bytes a block holds.
pub fn bytes_of(part: &Part) -> usize {
    match part {
        Part::Text { text } | Part::Context { text, .. } => text.len(),
        Part::Thinking { text, signature, .. } => text.len() + signature.as_ref().map_or(0, String::len),
        Part::Image { data, .. } => data.len(),
        Part::Provider { block, .. } => block.to_string().len(),
        Part::Call { signature, .. } => signature.as_ref().map_or(0, String::len),
        Part::PartialCall { name, arguments } => name.len() + arguments.len(),
    }
}

fn tools() -> Vec<String> {
    ["bash", "get_weather", "srv.read"].map(str::to_owned).to_vec()
}

/// Whatever comes, in whatever pieces: no panic, the bounds hold, and the pieces make no difference.
fn means_the_same(format: Format, stream: &[u8], cuts: &[Index]) {
    let whole = read(format, &tools(), [stream]);
    check_bounds(&whole);
    let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
    at.sort_unstable();
    at.push(stream.len());
    let mut from = 0;
    let mut pieces = Vec::new();
    for to in at {
        pieces.push(&stream[from..to]);
        from = to;
    }
    let in_pieces = read(format, &tools(), pieces);
    assert_eq!(in_pieces.reply, whole.reply, "{}", String::from_utf8_lossy(stream));
    assert_eq!(in_pieces.shown_text(), whole.shown_text());
}

fn format() -> impl Strategy<Value = Format> {
    proptest::sample::select(Format::ALL.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// SPEC 12: any bytes at all.
    #[test]
    fn bytes(format in format(), stream in proptest::collection::vec(any::<u8>(), 0..400), cuts in proptest::collection::vec(any::<Index>(), 0..6)) {
        means_the_same(format, &stream, &cuts);
    }

    /// SPEC 12: any text as the data of an event.
    #[test]
    fn data(format in format(), data in "[\\PC]{0,80}", cuts in proptest::collection::vec(any::<Index>(), 0..6)) {
        means_the_same(format, format!("data: {data}\n\ndata: {{{data}}}\n\n").as_bytes(), &cuts);
    }
}

/// SPEC 7.4, 12: real events in any order, of any format, damaged or not.
#[test]
fn events_of_the_corpus() {
    let events = events();
    let picked = proptest::collection::vec(any::<Index>(), 1..12);
    let changes = proptest::collection::vec(change(), 0..4);
    let cuts = proptest::collection::vec(any::<Index>(), 0..6);
    proptest!(ProptestConfig::with_cases(2_000), |(format in format(), picked in picked, changes in changes, cuts in cuts)| {
        let stream: Vec<u8> = picked.iter().flat_map(|at| at.get(&events).clone()).collect();
        means_the_same(format, &changed(stream, &changes), &cuts);
    });
}
