//! What a streamed reply and a request cost.
//!
//! `stream` takes 20,000 chunks of about 250 bytes through the parser, the codec and the assembler, as a long reply comes in
//! each format; `parse` is the parser's part of it alone, `markup` the same reply where tools could be called in text.
//! `request` writes a conversation in each format.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

use aish_core::id::CallId;
use aish_core::message::{Message, MessageCall, Part, ToolChoice, ToolSpec};
use aish_provider::assemble::{Assembler, Ending};
use aish_provider::codec::codec_of;
use aish_provider::codec::names::WireNames;
use aish_provider::profile::{Format, WireNaming};
use aish_provider::{ModelProfile, Reply, Request, sse};
use divan::counter::{BytesCount, ItemsCount};

const CHUNKS: usize = 20_000;

fn main() {
    divan::main();
}

/// A long reply as the format's own server writes it: llama.cpp for `openai-chat`.
fn stream_text(format: Format) -> Vec<u8> {
    let (begin, end) = match format {
        Format::OpenaiChat => (
            String::new(),
            "data: {\"choices\":[{\"finish_reason\":\"stop\",\"index\":0,\"delta\":{}}]}\n\ndata: [DONE]\n\n",
        ),
        Format::OpenaiResponses => (
            event(
                "response.output_item.added",
                "\"output_index\":0,\"item\":{\"id\":\"msg_1\",\"type\":\"message\"}",
            ),
            "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\"}}\n\n",
        ),
        Format::Anthropic => (
            event(
                "message_start",
                "\"message\":{\"model\":\"m\",\"usage\":{\"input_tokens\":9}}",
            ) + &event(
                "content_block_start",
                "\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}",
            ),
            "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n",
        ),
        Format::Gemini => (
            String::new(),
            "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"\"}]},\"finishReason\":\"STOP\"}]}\n\n",
        ),
    };
    let mut out = begin.into_bytes();
    for n in 0..CHUNKS {
        out.extend_from_slice(chunk(format, n).as_bytes());
    }
    out.extend_from_slice(end.as_bytes());
    out
}

fn event(name: &str, fields: &str) -> String {
    format!("event: {name}\ndata: {{\"type\":\"{name}\",{fields}}}\n\n")
}

fn chunk(format: Format, n: usize) -> String {
    match format {
        Format::OpenaiChat => format!(
            "data: {{\"choices\":[{{\"finish_reason\":null,\"index\":0,\"delta\":{{\"content\":\" word{n}\"}}}}],\
             \"created\":1795296016,\"id\":\"chatcmpl-auG9FtOcBmDkzNyWeXcqWA9JKEnrwxxn\",\"model\":\"smollm2\",\
             \"system_fingerprint\":\"b0-unknown\",\"object\":\"chat.completion.chunk\"}}\n\n"
        ),
        Format::OpenaiResponses => event(
            "response.output_text.delta",
            &format!(
                "\"sequence_number\":{n},\"item_id\":\"msg_68a1f0c2d4e881a0b7c6d5e4f3a2b1c0\",\"output_index\":0,\
                 \"content_index\":0,\"delta\":\" word{n}\",\"logprobs\":[],\"obfuscation\":\"k3JfUq9wZ1\""
            ),
        ),
        Format::Anthropic => event(
            "content_block_delta",
            &format!("\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\" word{n}\"}}"),
        ),
        Format::Gemini => format!(
            "data: {{\"candidates\": [{{\"content\": {{\"parts\": [{{\"text\": \" word{n}\"}}],\"role\": \"model\"}},\
             \"index\": 0}}],\"usageMetadata\": {{\"promptTokenCount\": 9,\"candidatesTokenCount\": {n},\
             \"totalTokenCount\": {n}}},\"modelVersion\": \"gemini-2.5-flash\",\"responseId\": \"abc\"}}\n\n"
        ),
    }
}

/// The bytes come in reads of this size; 241 is about one event, and never ends where one does.
const READ_BYTES: [usize; 3] = [241, 1_460, 65_536];

#[divan::bench(args = READ_BYTES)]
fn parse(bencher: divan::Bencher<'_, '_>, read_bytes: usize) {
    let stream = stream_text(Format::OpenaiChat);
    bencher
        .counter(ItemsCount::new(CHUNKS))
        .counter(BytesCount::new(stream.len()))
        .bench(|| {
            let mut parser = sse::Parser::new();
            let mut bytes = 0;
            for chunk in stream.chunks(read_bytes) {
                parser.feed(chunk, |event| bytes += event.data.len()).unwrap();
            }
            bytes
        });
}

/// Reads a reply that comes in reads of this size.
fn read(format: Format, stream: &[u8], read_bytes: usize, mut assembler: Assembler) -> Reply {
    let mut parser = sse::Parser::new();
    let mut decoder = codec_of(format).decoder();
    let mut out = Vec::new();
    for chunk in stream.chunks(read_bytes) {
        out.clear();
        let sink = |event: sse::Event<'_>| {
            decoder
                .event(&event, &mut |piece| assembler.push(piece, &mut out))
                .unwrap();
        };
        parser.feed(chunk, sink).unwrap();
    }
    let reply = assembler.finish(Ending::Read);
    assert!(reply.error.is_none());
    reply
}

#[divan::bench(args = READ_BYTES, consts = [0, 1, 2, 3])]
fn stream<const FORMAT: usize>(bencher: divan::Bencher<'_, '_>, read_bytes: usize) {
    let format = Format::ALL[FORMAT];
    let stream = stream_text(format);
    bencher
        .counter(ItemsCount::new(CHUNKS))
        .counter(BytesCount::new(stream.len()))
        .bench(|| read(format, &stream, read_bytes, Assembler::default()));
}

#[divan::bench]
fn markup(bencher: divan::Bencher<'_, '_>) {
    let stream = stream_text(Format::OpenaiChat);
    bencher.counter(ItemsCount::new(CHUNKS)).bench(|| {
        let tools = ["bash", "glob", "grep"];
        let names = WireNames::new(WireNaming::Underscore, tools);
        let assembler = Assembler::new(names, tools.map(str::to_owned).to_vec());
        read(Format::OpenaiChat, &stream, 1_460, assembler)
    });
}

/// A conversation of some rounds, with ten tools.
fn conversation() -> (Vec<Message>, Vec<ToolSpec>) {
    let mut messages = vec![Message::User {
        parts: vec![Part::text("Find the slow test and make it fast.")],
    }];
    for turn in 0..20 {
        let id = CallId::nth(turn, 1);
        messages.push(Message::Assistant {
            parts: vec![Part::text("I look.")],
            calls: vec![MessageCall {
                id: id.clone(),
                provider_id: None,
                name: "grep".to_owned(),
                arguments: r#"{"pattern":"sleep","path":"tests"}"#.to_owned(),
            }],
            model: None,
        });
        messages.push(Message::Tool {
            call_id: id,
            provider_id: None,
            name: "grep".to_owned(),
            output: "tests/a.rs:10: sleep(1)\n".repeat(200),
            success: true,
            parts: Vec::new(),
        });
    }
    let schema =
        serde_json::json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    let tools = (0..10).map(|n| ToolSpec {
        name: format!("srv.tool{n}"),
        description: "Does something to a path.".to_owned(),
        input_schema: schema.clone(),
    });
    (messages, tools.collect())
}

#[divan::bench(consts = [0, 1, 2, 3])]
fn request<const FORMAT: usize>(bencher: divan::Bencher<'_, '_>) {
    let format = Format::ALL[FORMAT];
    let (messages, tools) = conversation();
    let profile = ModelProfile::new(format, "http://127.0.0.1:8080/v1", "m");
    let request = Request {
        model: "tested",
        system: "You are a shell.",
        messages: &messages,
        tools: &tools,
        tool_choice: ToolChoice::Auto,
        max_output_tokens: None,
        schema: None,
    };
    let codec = codec_of(format);
    let bytes = codec.encode(request, &profile).unwrap().body.len();
    bencher
        .counter(BytesCount::new(bytes))
        .bench(|| codec.encode(request, &profile).unwrap());
}
