//! The Responses API: recorded exchanges of a real llama.cpp server, streams as OpenAI documents them and as other servers
//! get them wrong, and the requests that both take.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm
)]

use aish_core::message::Part;
use aish_provider::assemble::{Assembler, Ending};
use aish_provider::codec::names::WireNames;
use aish_provider::codec::openai_responses::OpenaiResponses;
use aish_provider::codec::{Codec, Decoder};
use aish_provider::profile::WireNaming;
use aish_provider::{Reply, sse};
use serde_json::Value;

#[path = "responses/marks.rs"]
mod marks;
#[path = "responses/recordings.rs"]
mod recordings;
#[path = "responses/repetitions.rs"]
mod repetitions;
#[path = "responses/requests.rs"]
mod requests;
#[path = "responses/streams.rs"]
mod streams;

const TOOLS: [&str; 2] = ["weather.get", "time.now"];

/// Where the bytes of a reply go: parser, decoder, assembler, as over HTTP.
struct Reading {
    parser: sse::Parser,
    decoder: Box<dyn Decoder>,
    assembler: Assembler,
}

impl Reading {
    fn new() -> Self {
        let names = WireNames::new(WireNaming::Underscore, TOOLS);
        Self {
            parser: sse::Parser::new(),
            decoder: OpenaiResponses.decoder(),
            assembler: Assembler::new(names, TOOLS.map(str::to_owned).to_vec()),
        }
    }

    fn feed(&mut self, chunk: &[u8]) {
        let (decoder, assembler) = (&mut self.decoder, &mut self.assembler);
        self.parser
            .feed(chunk, |event| take(decoder, assembler, &event))
            .unwrap();
    }

    fn finish(mut self) -> Reply {
        let (decoder, assembler) = (&mut self.decoder, &mut self.assembler);
        self.parser.finish(|event| take(decoder, assembler, &event)).unwrap();
        self.assembler.finish(Ending::Read)
    }
}

fn take(decoder: &mut Box<dyn Decoder>, assembler: &mut Assembler, event: &sse::Event<'_>) {
    // A cut event is what some of these tests are about.
    let _broken = decoder.event(event, &mut |piece| assembler.push(piece, &mut Vec::new()));
}

/// Decodes a stream that comes in these chunks.
fn decode<'c>(chunks: impl Iterator<Item = &'c [u8]>) -> Reply {
    let mut reading = Reading::new();
    chunks.for_each(|chunk| reading.feed(chunk));
    reading.finish()
}

fn decode_whole(stream: &str) -> Reply {
    decode(std::iter::once(stream.as_bytes()))
}

/// Decodes a reply that came as one JSON body.
fn decode_body(body: &str) -> Reply {
    let mut reading = Reading::new();
    let assembler = &mut reading.assembler;
    reading
        .decoder
        .body(body, &mut |piece| assembler.push(piece, &mut Vec::new()))
        .unwrap();
    reading.assembler.finish(Ending::Read)
}

/// A stream of these payloads, as OpenAI writes it.
fn stream_of(payloads: &[Value]) -> String {
    let event = |payload: &Value| format!("event: {}\ndata: {payload}\n\n", payload["type"].as_str().unwrap());
    payloads.iter().map(event).collect()
}

/// A reply's thinking, joined.
fn thinking(reply: &Reply) -> String {
    let thinking = reply.parts.iter().filter_map(|part| match part {
        Part::Thinking { text, .. } => Some(text.as_str()),
        _ => None,
    });
    thinking.collect()
}

/// Name and arguments of the calls that may run.
fn calls(reply: &Reply) -> Vec<(&str, &str)> {
    let calls = reply.calls.iter();
    calls
        .map(|call| (call.name.as_str(), call.arguments.as_str()))
        .collect()
}

/// Asserts that line ends, comments and the size of chunks make no difference, and that no cut stream has a call.
#[track_caller]
fn check_arrivals(stream: &str, what: &str) {
    let whole = decode_whole(stream);
    let crlf = stream.replace('\n', "\r\n");
    let comments = stream.replace("\n\n", "\n: ping\n\n: ping\n\n");
    for (way, reply) in [
        ("byte by byte", decode(stream.as_bytes().chunks(1))),
        ("in pieces", decode(stream.as_bytes().chunks(61))),
        ("CRLF", decode_whole(&crlf)),
        ("CRLF, byte by byte", decode(crlf.as_bytes().chunks(1))),
        ("CR", decode_whole(&stream.replace('\n', "\r"))),
        ("comments", decode_whole(&comments)),
        ("byte-order mark", decode_whole(&format!("\u{FEFF}{stream}"))),
        ("with [DONE]", decode_whole(&format!("{stream}data: [DONE]\n\n"))),
    ] {
        assert_eq!(reply, whole, "{what}, {way}");
    }
    // Without their names, and with nothing but their names, events say the same.
    let unnamed: String = lines_without(stream, |line| line.starts_with("event: "));
    assert_eq!(decode_whole(&unnamed), whole, "{what}, without names");
    let untyped = stream
        .lines()
        .map(|line| format!("{}\n", untyped(line)))
        .collect::<String>();
    assert_eq!(decode_whole(&untyped), whole, "{what}, without types");
    check_cuts(stream, &whole, what);
}

/// SPEC 7.3, 12: wherever a stream is cut, nothing of it may run before the event that says it is whole.
#[track_caller]
fn check_cuts(stream: &str, whole: &Reply, what: &str) {
    let last = stream.rfind("data: {").unwrap();
    for cut in 0..stream.len() {
        let reply = decode(std::iter::once(&stream.as_bytes()[..cut]));
        if cut <= last {
            assert!(reply.calls.is_empty(), "{what} cut at {cut}");
            assert_eq!(
                reply.stop,
                aish_core::event::ReplyStop::Truncated,
                "{what} cut at {cut}"
            );
        } else if !reply.calls.is_empty() {
            assert_eq!(reply.calls, whole.calls, "{what} cut at {cut}");
        }
    }
}

fn lines_without(stream: &str, is_out: impl Fn(&str) -> bool) -> String {
    let lines = stream.lines().filter(|line| !is_out(line));
    lines.map(|line| format!("{line}\n")).collect()
}

/// A data line whose payload does not say its type.
fn untyped(line: &str) -> String {
    let Some(data) = line.strip_prefix("data: ") else {
        return line.to_owned();
    };
    let mut payload: Value = serde_json::from_str(data).unwrap();
    payload.as_object_mut().unwrap().remove("type");
    format!("data: {payload}")
}
