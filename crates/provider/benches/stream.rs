//! What a streamed reply and a request cost.
//!
//! `stream` takes 20,000 chunks of about 250 bytes through the parser, the codec and the assembler, as a long reply of a
//! local server comes; the parts of that path are measured alone beside it. `request` writes a conversation.
#![allow(clippy::unwrap_used, missing_docs)]

use aish_core::id::CallId;
use aish_core::message::{Message, MessageCall, Part, ToolChoice, ToolSpec};
use aish_provider::assemble::{Assembler, Ending};
use aish_provider::codec::Codec;
use aish_provider::codec::names::WireNames;
use aish_provider::codec::openai_chat::OpenaiChat;
use aish_provider::{ModelProfile, Request, sse};
use divan::counter::{BytesCount, ItemsCount};

const CHUNKS: usize = 20_000;

fn main() {
    divan::main();
}

/// A stream as llama.cpp writes it.
fn stream_text() -> Vec<u8> {
    let mut out = Vec::new();
    for n in 0..CHUNKS {
        let chunk = format!(
            "data: {{\"choices\":[{{\"finish_reason\":null,\"index\":0,\"delta\":{{\"content\":\" word{n}\"}}}}],\
             \"created\":1795296016,\"id\":\"chatcmpl-auG9FtOcBmDkzNyWeXcqWA9JKEnrwxxn\",\"model\":\"smollm2\",\
             \"system_fingerprint\":\"b0-unknown\",\"object\":\"chat.completion.chunk\"}}\n\n"
        );
        out.extend_from_slice(chunk.as_bytes());
    }
    out.extend_from_slice(
        b"data: {\"choices\":[{\"finish_reason\":\"stop\",\"index\":0,\"delta\":{}}]}\n\ndata: [DONE]\n\n",
    );
    out
}

/// The bytes come in reads of this size; 241 is about one event, and never ends where one does.
const READ_BYTES: [usize; 3] = [241, 1_460, 65_536];

#[divan::bench(args = READ_BYTES)]
fn parse(bencher: divan::Bencher<'_, '_>, read_bytes: usize) {
    let stream = stream_text();
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

#[divan::bench(args = READ_BYTES)]
fn stream(bencher: divan::Bencher<'_, '_>, read_bytes: usize) {
    let stream = stream_text();
    bencher
        .counter(ItemsCount::new(CHUNKS))
        .counter(BytesCount::new(stream.len()))
        .bench(|| {
            let mut parser = sse::Parser::new();
            let mut assembler = Assembler::new(WireNames::default(), Vec::new());
            let mut out = Vec::new();
            for chunk in stream.chunks(read_bytes) {
                out.clear();
                let sink = |event: sse::Event<'_>| {
                    OpenaiChat
                        .decoder()
                        .event(&event, &mut |piece| assembler.push(piece, &mut out))
                        .unwrap();
                };
                parser.feed(chunk, sink).unwrap();
            }
            assembler.finish(Ending::Read)
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

#[divan::bench]
fn request(bencher: divan::Bencher<'_, '_>) {
    let (messages, tools) = conversation();
    let profile = ModelProfile::openai_chat("http://127.0.0.1:8080/v1", "m");
    let request = Request {
        model: "tested",
        system: "You are a shell.",
        messages: &messages,
        tools: &tools,
        tool_choice: ToolChoice::Auto,
        max_output_tokens: None,
        schema: None,
    };
    let bytes = OpenaiChat.encode(request, &profile).unwrap().body.len();
    bencher
        .counter(BytesCount::new(bytes))
        .bench(|| OpenaiChat.encode(request, &profile).unwrap());
}
