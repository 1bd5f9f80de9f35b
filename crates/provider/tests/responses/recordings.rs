//! Recorded exchanges. Expectations come from a second, naive reading of the recordings, and some are written out.

use super::*;
use aish_core::event::{ReplyStop, Usage};
use aish_core::message::text_of;
use aish_provider::ErrorKind;
use std::path::Path;

fn read(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/llamacpp-responses");
    std::fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

const STREAMS: [&str; 4] = ["stream", "tool-stream", "tool-cut-by-length", "tool-followup-stream"];

fn read_stream(name: &str) -> String {
    read(&format!("{name}.response.sse"))
}

/// Deltas of a kind in a stream, joined, read the naive way.
fn deltas(stream: &str, kind: &str) -> String {
    let payloads = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    let payloads = payloads.map(|data| serde_json::from_str::<Value>(data).unwrap());
    let deltas = payloads.filter(|payload| payload["type"] == kind);
    deltas
        .map(|payload| payload["delta"].as_str().unwrap().to_owned())
        .collect()
}

/// SPEC 7.2, 7.3: every recorded stream decodes as recorded, nothing twice.
#[test]
fn streams_decode_as_recorded() {
    for name in STREAMS {
        let stream = read_stream(name);
        let reply = decode_whole(&stream);
        assert_eq!(
            text_of(&reply.parts),
            deltas(&stream, "response.output_text.delta"),
            "{name}"
        );
        assert_eq!(
            thinking(&reply),
            deltas(&stream, "response.reasoning_text.delta"),
            "{name}"
        );
        let arguments = reply
            .calls
            .iter()
            .map(|call| call.arguments.as_str())
            .chain(cut_arguments(&reply));
        let expect = deltas(&stream, "response.function_call_arguments.delta");
        assert_eq!(arguments.collect::<String>(), expect, "{name}");
        assert_eq!(reply.model.as_deref(), Some("smollm2"), "{name}");
        assert_eq!(reply.error, None, "{name}");
    }
}

fn cut_arguments(reply: &Reply) -> impl Iterator<Item = &str> {
    reply.parts.iter().filter_map(|part| match part {
        Part::PartialCall { arguments, .. } => Some(arguments.as_str()),
        _ => None,
    })
}

/// The naive reading is no better than what it is compared with, so some of it is written out.
#[test]
fn what_some_recordings_say() {
    let reply = decode_whole(&read_stream("stream"));
    assert_eq!(reply.parts, [Part::text("Hello, welcome to my world.")]);
    assert_eq!(reply.stop, ReplyStop::End);
    let usage = Usage {
        input_tokens: 26,
        output_tokens: 8,
        cached_tokens: 14,
        model: Some("smollm2".to_owned()),
        ..Usage::default()
    };
    assert_eq!(reply.usage, Some(usage));

    let reply = decode_whole(&read_stream("tool-stream"));
    assert_eq!(reply.stop, ReplyStop::ToolCalls);
    assert_eq!(calls(&reply), [("weather.get", "{\n  \"city\": \"Paris\"\n}")]);
    assert_eq!(
        reply.calls[0].provider_id.as_deref(),
        Some("call_FPj7qijSgEQ2IJ2P0xOu88Mp50VwmNOe")
    );
    let said = Part::Thinking {
        text: "I call a function:\n<tool_call>\n{\"name\": \"...\", \"arguments\": {...}}\n</tool_call>\n".to_owned(),
        signature: Some("rs_5w49sxkXYUIHZOXPqghJwvHebKnGCtT5".to_owned()),
        format: Some("openai-responses".to_owned()),
    };
    assert_eq!(reply.parts, [said, Part::text("I call a function:\n")]);
}

/// SPEC 7.3, 7.4: a call that the limit cut never runs, though the server calls reply and call complete.
#[test]
fn a_call_cut_by_its_limit_never_runs() {
    let stream = read_stream("tool-cut-by-length");
    assert!(stream.contains(r#""status":"completed","arguments":"{""#));
    let reply = decode_whole(&stream);
    assert_eq!((reply.stop, reply.calls.len()), (ReplyStop::Length, 0));
    let cut = reply.parts.last().unwrap();
    assert!(matches!(cut, Part::PartialCall { name, arguments } if name == "weather.get" && arguments == "{"));
}

/// SPEC 7.4: line ends, comments, names of events and the size of chunks make no difference; SPEC 7.3: no cut stream has
/// a call.
#[test]
fn streams_decode_the_same_however_they_come() {
    for name in STREAMS {
        check_arrivals(&read_stream(name), name);
    }
}

/// SPEC 7.4: a server that does not stream.
#[test]
fn whole_bodies_decode_as_recorded() {
    let reply = decode_body(&read("nonstream.response.json"));
    let text = "Hello! I'm here to help with any kind of creative writing project. What";
    assert_eq!(reply.parts, [Part::text(text)]);
    assert_eq!(reply.stop, ReplyStop::End);
    assert_eq!(reply.usage.unwrap().cached_tokens, 22);
    for name in STREAMS {
        let stream = read_stream(name);
        let last = stream.lines().rfind(|line| line.starts_with("data: ")).unwrap();
        let event: Value = serde_json::from_str(last.strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(
            decode_body(&event["response"].to_string()),
            decode_whole(&stream),
            "{name}"
        );
    }
}

/// SPEC 7.6, 10.4: a refusal keeps the server's words.
#[test]
fn refusals() {
    let error = OpenaiResponses.decode_error(400, &read("bad-json.response.json"));
    assert_eq!(error.kind, ErrorKind::Status(400));
    assert!(
        error.message.starts_with("[json.exception.parse_error.101]"),
        "{}",
        error.message
    );
}
