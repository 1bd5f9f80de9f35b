//! Anthropic Messages: what requests look like, what replies mean, and that a reply goes back as it came.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm
)]

use aish_core::id::CallId;
use aish_core::message::{Message, MessageCall, Part, ToolChoice, ToolSpec};
use aish_provider::assemble::{Assembler, Ending};
use aish_provider::codec::anthropic::Anthropic;
use aish_provider::codec::names::WireNames;
use aish_provider::codec::{Codec, Encoded};
use aish_provider::profile::{Format, WireNaming};
use aish_provider::{ModelProfile, Reply, Request, sse};
use serde_json::{Value, json};

mod decode;
mod fields;
mod messages;
mod recordings;
mod round_trip;
mod thinking;

/// The model asked, by its configured name.
const MODEL: &str = "tested";

fn profile() -> ModelProfile {
    ModelProfile::new(Format::Anthropic, "http://127.0.0.1:8080", "m")
}

fn user(text: &str) -> Message {
    Message::User {
        parts: vec![Part::text(text)],
    }
}

fn assistant(parts: Vec<Part>, calls: Vec<MessageCall>) -> Message {
    Message::Assistant {
        parts,
        calls,
        model: Some(MODEL.to_owned()),
    }
}

fn call(n: usize, provider_id: &str, arguments: &str) -> MessageCall {
    MessageCall {
        id: CallId::nth(1, n),
        provider_id: (!provider_id.is_empty()).then(|| provider_id.to_owned()),
        name: "weather.get".to_owned(),
        arguments: arguments.to_owned(),
    }
}

fn result(n: usize, output: &str) -> Message {
    Message::Tool {
        call_id: CallId::nth(1, n),
        provider_id: None,
        name: "weather.get".to_owned(),
        output: output.to_owned(),
        success: true,
        parts: Vec::new(),
    }
}

fn signed(text: &str, signature: &str) -> Part {
    Part::Thinking {
        text: text.to_owned(),
        signature: Some(signature.to_owned()),
        format: Some("anthropic".to_owned()),
    }
}

fn own_block(block: Value) -> Part {
    Part::Provider {
        format: "anthropic".to_owned(),
        block,
    }
}

fn tool() -> ToolSpec {
    ToolSpec {
        name: "weather.get".to_owned(),
        description: "Get weather".to_owned(),
        input_schema: json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}),
    }
}

fn request<'a>(messages: &'a [Message], tools: &'a [ToolSpec]) -> Request<'a> {
    Request {
        model: MODEL,
        system: "",
        messages,
        tools,
        tool_choice: ToolChoice::Auto,
        max_output_tokens: None,
        schema: None,
    }
}

fn encoded(request: Request<'_>, profile: &ModelProfile) -> Encoded {
    Anthropic.encode(request, profile).unwrap()
}

fn body(request: Request<'_>, profile: &ModelProfile) -> Value {
    serde_json::from_slice(&encoded(request, profile).body).unwrap()
}

/// The messages of a request that offers the one tool.
fn messages(messages: &[Message]) -> Value {
    body(request(messages, &[tool()]), &profile())["messages"].take()
}

fn wire_call(id: &str, input: &Value) -> Value {
    json!({"type": "tool_use", "id": id, "name": "weather__get", "input": input})
}

fn wire_result(id: &str, content: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": content})
}

fn wire_text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn assembler() -> Assembler {
    let tools = ["weather.get", "time.now"];
    let names = WireNames::new(WireNaming::Underscore, tools);
    Assembler::new(names, tools.map(str::to_owned).to_vec())
}

/// Decodes a stream that comes in these chunks.
fn decode<'c>(chunks: impl Iterator<Item = &'c [u8]>) -> Reply {
    let (mut parser, mut assembler) = (sse::Parser::new(), assembler());
    let mut decoder = Anthropic.decoder();
    let mut out = Vec::new();
    let mut sink = |event: sse::Event<'_>| {
        // A cut event is what some of these tests are about.
        let _broken = decoder.event(&event, &mut |piece| assembler.push(piece, &mut out));
    };
    for chunk in chunks {
        parser.feed(chunk, &mut sink).unwrap();
    }
    parser.finish(&mut sink).unwrap();
    assembler.finish(Ending::Read)
}

fn decode_whole(stream: &str) -> Reply {
    decode(std::iter::once(stream.as_bytes()))
}

/// Decodes a reply that came as one body.
fn decode_body(body: &Value) -> Reply {
    let mut assembler = assembler();
    Anthropic
        .decoder()
        .body(&body.to_string(), &mut |piece| assembler.push(piece, &mut Vec::new()))
        .unwrap();
    assembler.finish(Ending::Read)
}

/// A stream of these payloads, each under the name of its type.
fn stream(payloads: &[Value]) -> String {
    let events = payloads.iter().map(|payload| {
        format!(
            "event: {}\ndata: {payload}\n\n",
            payload["type"].as_str().unwrap_or("x")
        )
    });
    events.collect()
}

fn begin() -> Value {
    json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant", "content": [],
        "model": "claude-x", "stop_reason": null, "usage": {"input_tokens": 10, "cache_read_input_tokens": 3,
        "cache_creation_input_tokens": 5, "output_tokens": 1}}})
}

fn start(index: u64, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: u64, delta: Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn text_delta(index: u64, text: &str) -> Value {
    delta(index, json!({"type": "text_delta", "text": text}))
}

fn input_delta(index: u64, json: &str) -> Value {
    delta(index, json!({"type": "input_json_delta", "partial_json": json}))
}

fn stop(index: u64) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

/// The two payloads that end a stream.
fn end(reason: &str) -> [Value; 2] {
    [
        json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null},
            "usage": {"output_tokens": 20}}),
        json!({"type": "message_stop"}),
    ]
}

/// A whole stream of these payloads between its beginning and its end.
fn whole_stream(payloads: &[Value], reason: &str) -> String {
    let mut all = vec![begin()];
    all.extend_from_slice(payloads);
    all.extend(end(reason));
    stream(&all)
}
