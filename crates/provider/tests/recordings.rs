//! Recorded exchanges of a real llama.cpp server: replies decode as recorded however they arrive, and requests are
//! written as the server took them. Expectations come from a second, naive reading of the recordings.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm
)]

use aish_core::event::{ReplyStop, Usage};
use aish_core::id::CallId;
use aish_core::message::{Message, MessageCall, Part, ToolChoice, ToolSpec, text_of};
use aish_provider::assemble::{Assembler, Ending};
use aish_provider::codec::Codec;
use aish_provider::codec::names::WireNames;
use aish_provider::codec::openai_chat::OpenaiChat;
use aish_provider::profile::WireNaming;
use aish_provider::{ErrorKind, ModelProfile, Reply, Request, sse};
use serde_json::Value;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/llamacpp")
}

fn read(name: &str) -> String {
    std::fs::read_to_string(folder().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The recordings whose file ends like this, without that end.
fn recordings(end: &str) -> Vec<String> {
    let files = std::fs::read_dir(folder()).unwrap();
    let names = files.filter_map(|file| Some(file.unwrap().file_name().to_str()?.strip_suffix(end)?.to_owned()));
    let mut names: Vec<String> = names.collect();
    names.sort();
    assert!(!names.is_empty(), "no recording *{end}");
    names
}

fn assembler() -> Assembler {
    let tools = ["weather.get", "time.now"];
    let names = WireNames::new(WireNaming::Underscore, tools);
    Assembler::new(names, tools.map(str::to_owned).to_vec())
}

/// Decodes a stream that comes in these chunks.
fn decode<'c>(chunks: impl Iterator<Item = &'c [u8]>) -> Reply {
    let mut parser = sse::Parser::new();
    let mut assembler = assembler();
    let mut out = Vec::new();
    let mut sink = |event: sse::Event<'_>| {
        // A cut event is what some of these tests are about.
        let _broken = OpenaiChat
            .decoder()
            .event(&event, &mut |piece| assembler.push(piece, &mut out));
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

/// What a recording says, read the naive way.
#[derive(Debug, Default, PartialEq)]
struct Said {
    text: String,
    thinking: String,
    /// Id, name on the wire, arguments.
    calls: Vec<(String, String, String)>,
    finish: Option<String>,
    usage: Option<Usage>,
    error: Option<String>,
}

fn naive(stream: &str) -> Said {
    let mut said = Said::default();
    for line in stream.split('\n').filter_map(|line| line.strip_prefix("data: ")) {
        if line == "[DONE]" {
            continue;
        }
        let chunk: Value = serde_json::from_str(line).unwrap();
        naive_chunk(&chunk, "delta", &mut said);
    }
    said
}

fn naive_chunk(chunk: &Value, message: &str, said: &mut Said) {
    if let Some(text) = chunk["error"]["message"].as_str() {
        said.error = Some(text.to_owned());
    }
    for choice in chunk["choices"].as_array().into_iter().flatten() {
        let delta = &choice[message];
        said.text += delta["content"].as_str().unwrap_or_default();
        said.thinking += delta["reasoning_content"].as_str().unwrap_or_default();
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            if !call["id"].is_null() {
                said.calls
                    .push((text(&call["id"]), text(&call["function"]["name"]), String::new()));
            }
            said.calls.last_mut().unwrap().2 += call["function"]["arguments"].as_str().unwrap_or_default();
        }
        if let Some(reason) = choice["finish_reason"].as_str() {
            said.finish = Some(reason.to_owned());
        }
    }
    if chunk["usage"].is_object() {
        let count = |value: &Value| value.as_u64().unwrap();
        said.usage = Some(Usage {
            input_tokens: count(&chunk["usage"]["prompt_tokens"]),
            output_tokens: count(&chunk["usage"]["completion_tokens"]),
            cached_tokens: count(&chunk["usage"]["prompt_tokens_details"]["cached_tokens"]),
            model: chunk["model"].as_str().map(str::to_owned),
            ..Usage::default()
        });
    }
}

/// Asserts that a reply is what the naive reading found.
#[track_caller]
fn check(reply: &Reply, said: &Said, what: &str) {
    assert_eq!(text_of(&reply.parts), said.text, "{what}");
    let thinking = reply.parts.iter().filter_map(|part| match part {
        Part::Thinking { text, .. } => Some(text.as_str()),
        _ => None,
    });
    assert_eq!(thinking.collect::<String>(), said.thinking, "{what}");
    assert_eq!(reply.usage, said.usage, "{what}");
    let stop = match said.finish.as_deref() {
        Some("stop") => ReplyStop::End,
        Some("tool_calls") => ReplyStop::ToolCalls,
        Some("length") => ReplyStop::Length,
        None => ReplyStop::Truncated,
        Some(other) => panic!("{what}: {other}"),
    };
    assert_eq!(reply.stop, stop, "{what}");
    let people = |wire: &str| wire.replace("__", ".");
    let partial = reply.parts.iter().filter_map(|part| match part {
        Part::PartialCall { name, arguments } => Some((name.clone(), arguments.clone())),
        _ => None,
    });
    let expect: Vec<_> = said
        .calls
        .iter()
        .map(|call| (people(&call.1), call.2.clone()))
        .collect();
    if stop == ReplyStop::ToolCalls {
        let ids: Vec<_> = reply
            .calls
            .iter()
            .map(|call| call.provider_id.clone().unwrap())
            .collect();
        assert_eq!(
            ids,
            said.calls.iter().map(|call| call.0.clone()).collect::<Vec<_>>(),
            "{what}"
        );
        let calls = reply
            .calls
            .iter()
            .map(|call| (call.name.clone(), call.arguments.clone()));
        assert_eq!(calls.collect::<Vec<_>>(), expect, "{what}");
    } else {
        assert!(reply.calls.is_empty(), "{what}");
        assert_eq!(partial.collect::<Vec<_>>(), expect, "{what}");
    }
    assert_eq!(
        reply.error.as_ref().map(|error| error.message.clone()),
        said.error,
        "{what}"
    );
}

/// SPEC 7.2, 7.3: every recorded stream decodes as recorded.
#[test]
fn streams_decode_as_recorded() {
    for name in recordings(".response.sse") {
        let stream = read(&format!("{name}.response.sse"));
        check(&decode_whole(&stream), &naive(&stream), &name);
    }
}

/// The naive reading is no better than what it is compared with, so some of it is written out.
#[test]
fn what_some_recordings_say() {
    let reply = decode_whole(&read("a-chat-stream.response.sse"));
    assert_eq!(text_of(&reply.parts), "Hello, welcome to my world.");
    assert_eq!(reply.stop, ReplyStop::End);
    assert_eq!(reply.usage.unwrap().output_tokens, 8);

    let reply = decode_whole(&read("b-tools-auto-dunder.response.sse"));
    assert_eq!(reply.stop, ReplyStop::ToolCalls);
    assert_eq!(reply.calls.len(), 1);
    assert_eq!(reply.calls[0].name, "weather.get");
    assert_eq!(
        reply.calls[0].provider_id.as_deref(),
        Some("Wi3elUY6wjcNvK8NzXPfVT0SOUuvf7ub")
    );
    assert_eq!(
        reply.calls[0].arguments,
        "{\n  \"city\": \"Paris\",\n  \"unit\": \"celsius\"\n}"
    );

    let reply = decode_whole(&read("c-required-cut-by-length.response.sse"));
    assert_eq!((reply.stop, reply.calls.len()), (ReplyStop::Length, 0));
    let cut = reply.parts.last().unwrap();
    assert!(matches!(cut, Part::PartialCall { name, arguments } if name == "weather.get" && arguments == "{"));

    let reply = decode_whole(&read("g-reasoning-format-none.response.sse"));
    assert_eq!(reply.stop, ReplyStop::Truncated);
    assert_eq!(reply.error.unwrap().kind, ErrorKind::Stream);
}

/// SPEC 7.4: line ends, comments and the size of chunks make no difference.
#[test]
fn streams_decode_the_same_however_they_come() {
    for name in recordings(".response.sse") {
        let stream = read(&format!("{name}.response.sse"));
        let said = naive(&stream);
        check(
            &decode(stream.as_bytes().chunks(1)),
            &said,
            &format!("{name}, byte by byte"),
        );
        check(
            &decode(stream.as_bytes().chunks(61)),
            &said,
            &format!("{name}, in pieces"),
        );
        check(
            &decode_whole(&stream.replace('\n', "\r\n")),
            &said,
            &format!("{name}, CRLF"),
        );
        let crlf = stream.replace('\n', "\r\n");
        check(
            &decode(crlf.as_bytes().chunks(1)),
            &said,
            &format!("{name}, CRLF, byte by byte"),
        );
        check(
            &decode_whole(&stream.replace('\n', "\r")),
            &said,
            &format!("{name}, CR"),
        );
        let comments = stream.replace("\n\n", "\n: ping\n\n: ping\n\n");
        check(&decode_whole(&comments), &said, &format!("{name}, comments"));
        check(
            &decode_whole(&format!("\u{FEFF}{stream}")),
            &said,
            &format!("{name}, byte-order mark"),
        );
        let no_done = stream.replace("data: [DONE]", "");
        check(&decode_whole(&no_done), &said, &format!("{name}, no [DONE]"));
    }
}

/// SPEC 7.3, 12: wherever a stream is cut, a call counts only when all of it and its reason to finish came.
#[test]
fn cut_streams_never_have_calls() {
    for name in recordings(".response.sse") {
        let stream = read(&format!("{name}.response.sse"));
        let whole = decode_whole(&stream);
        let is_short = stream.len() < 6_000;
        let finish = stream.find("\"finish_reason\":\"").unwrap_or(stream.len());
        for cut in (0..stream.len()).filter(|cut| is_short || cut % 61 == 0 || cut.abs_diff(finish) < 300) {
            let reply = decode(std::iter::once(&stream.as_bytes()[..cut]));
            if reply.calls.is_empty() {
                let text = text_of(&reply.parts);
                assert!(text_of(&whole.parts).starts_with(&text), "{name} cut at {cut}");
            } else {
                assert!(cut > finish, "{name} cut at {cut}");
                assert_eq!(reply.calls, whole.calls, "{name} cut at {cut}");
            }
            let is_cut_text = cut <= finish;
            assert!(
                !is_cut_text || reply.stop == ReplyStop::Truncated,
                "{name} cut at {cut}: {:?}",
                reply.stop
            );
        }
    }
}

/// SPEC 7.4: a server that does not stream.
#[test]
fn whole_bodies_decode_as_recorded() {
    for name in ["a-chat-nonstream", "c-required-nonstream"] {
        let body = read(&format!("{name}.response.json"));
        let mut assembler = assembler();
        OpenaiChat
            .decoder()
            .body(&body, &mut |piece| assembler.push(piece, &mut Vec::new()))
            .unwrap();
        let mut said = Said::default();
        naive_chunk(&serde_json::from_str(&body).unwrap(), "message", &mut said);
        check(&assembler.finish(Ending::Read), &said, name);
    }
}

/// SPEC 7.6, 10.4: refusals keep the server's words and are told apart.
#[test]
fn refusals() {
    let mut seen = 0;
    for name in recordings(".response.json") {
        let head = read(&format!("{name}.response.http"));
        let status: u16 = head.split(' ').nth(1).unwrap().parse().unwrap();
        if status == 200 {
            continue;
        }
        let body = read(&format!("{name}.response.json"));
        let error = OpenaiChat.decode_error(status, &body);
        let value: Value = serde_json::from_str(&body).unwrap();
        let words: Vec<&str> = value["error"]["message"].as_str().unwrap().split_whitespace().collect();
        assert_eq!(error.message, words.join(" "), "{name}");
        let kind = if name.contains("context-overflow") {
            ErrorKind::ContextOverflow
        } else {
            ErrorKind::Status(status)
        };
        assert_eq!(error.kind, kind, "{name}");
        seen += 1;
    }
    assert!(seen >= 8, "{seen}");
}

fn user(text: &str) -> Message {
    Message::User {
        parts: vec![Part::text(text)],
    }
}

fn weather_call(n: usize, provider_id: &str, city: &str) -> MessageCall {
    MessageCall {
        id: CallId::nth(1, n),
        provider_id: Some(provider_id.to_owned()),
        name: "weather.get".to_owned(),
        arguments: format!("{{\"city\":\"{city}\"}}"),
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

/// Asserts that the encoder writes the recorded request, but for the fields that only the recording has.
#[track_caller]
fn check_request(name: &str, messages: &[Message], tool_choice: ToolChoice, not_ours: &[&str]) {
    let mut recorded: Value = serde_json::from_str(&read(&format!("{name}.request.json"))).unwrap();
    for field in not_ours {
        recorded.as_object_mut().unwrap().remove(*field).unwrap();
    }
    for message in recorded["messages"].as_array_mut().unwrap() {
        message.as_object_mut().unwrap().remove("reasoning_content");
    }
    let tools: Vec<ToolSpec> = recorded
        .get("tools")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(tool)
        .collect();
    let profile = ModelProfile {
        temperature: Some(0.0),
        ..ModelProfile::openai_chat("http://127.0.0.1:8080/v1", "smollm2")
    };
    let request = Request {
        model: "tested",
        system: "",
        messages,
        tools: &tools,
        tool_choice,
        max_output_tokens: recorded["max_tokens"].as_u64(),
        schema: None,
    };
    let encoded = OpenaiChat.encode(request, &profile).unwrap();
    let mut ours: Value = serde_json::from_slice(&encoded.body).unwrap();
    // The recordings wrote the integer 0.
    assert_eq!(ours["temperature"].take(), 0.0);
    recorded["temperature"].take();
    assert_eq!(ours, recorded, "{name}");
}

/// A recorded tool under its name for people.
fn tool(wire: &Value) -> ToolSpec {
    let function = &wire["function"];
    ToolSpec {
        name: function["name"].as_str().unwrap().replace("__", "."),
        description: function["description"].as_str().unwrap().to_owned(),
        input_schema: function["parameters"].clone(),
    }
}

/// SPEC 7.2, 6.1, 6.7: our requests are the ones the server took.
#[test]
fn requests_are_written_as_recorded() {
    let ask = [user("What is the weather in Paris? Use the tool.")];
    check_request("b-tools-auto-dunder", &ask, ToolChoice::Auto, &["seed"]);
    check_request("c-choice-none", &ask, ToolChoice::None, &["seed"]);
    check_request(
        "a-chat-stream",
        &[user("Say hello in five words.")],
        ToolChoice::Auto,
        &["seed"],
    );
    let called = |text: &str, calls: &[MessageCall]| Message::Assistant {
        parts: vec![Part::thinking("Two cities."), Part::text(text)],
        calls: calls.to_vec(),
        // What another model thought would be told in words.
        model: Some("tested".to_owned()),
    };
    let one = [
        user("What is the weather in Paris?"),
        called("", &[weather_call(1, "call_abc123", "Paris")]),
        result(1, "{\"temp_c\":18,\"sky\":\"clear\"}"),
    ];
    check_request("d-followup-content-empty", &one, ToolChoice::Auto, &["seed"]);
    let two = [
        user("What is the weather in Paris and in London?"),
        called(
            "I call a function:\n",
            &[
                weather_call(1, "call_abc123", "Paris"),
                weather_call(2, "call_def456", "London"),
            ],
        ),
        result(1, "18C clear"),
        result(2, "12C rain"),
    ];
    check_request(
        "d-followup-two-results-with-reasoning",
        &two,
        ToolChoice::Auto,
        &["seed"],
    );
}
