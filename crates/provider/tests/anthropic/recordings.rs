//! Recorded exchanges of a real llama.cpp server on `/v1/messages`: replies decode as recorded however they arrive, and
//! requests are written as the server took them.

use super::*;
use aish_core::event::ReplyStop;
use aish_core::message::text_of;
use aish_provider::{ErrorKind, ReplyCall};
use std::path::Path;

const STREAMS: [&str; 3] = ["stream", "tool-stream", "tool-followup-stream"];

fn read(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/llamacpp-messages");
    std::fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn recorded(name: &str) -> String {
    read(&format!("{name}.response.sse"))
}

/// SPEC 7.2, 7.3: what the recordings say.
#[test]
fn streams_decode_as_recorded() {
    let reply = decode_whole(&recorded("stream"));
    assert_eq!(reply.parts, [Part::text("Hello, welcome to my world.")]);
    assert_eq!((reply.stop, reply.model.as_deref()), (ReplyStop::End, Some("smollm2")));
    let usage = reply.usage.unwrap();
    assert_eq!(
        (usage.input_tokens, usage.cached_tokens, usage.output_tokens),
        (26, 14, 8)
    );

    // All blocks start before any stops, and the thinking's empty signature comes last.
    let reply = decode_whole(&recorded("tool-stream"));
    let thought = "I call a function:\n<tool_call>\n{\"name\": \"...\", \"arguments\": {...}}\n</tool_call>\n";
    assert_eq!(
        reply.parts,
        [Part::thinking(thought), Part::text("I call a function:\n")]
    );
    assert_eq!(reply.stop, ReplyStop::ToolCalls);
    let call = ReplyCall {
        provider_id: Some("Xz3s6oj2udooECXRpuzePEcc6YLSO8wd".to_owned()),
        name: "weather.get".to_owned(),
        arguments: "{\n  \"city\": \"Paris\"\n}".to_owned(),
    };
    assert_eq!(reply.calls, [call]);

    let reply = decode_whole(&recorded("tool-followup-stream"));
    assert_eq!(text_of(&reply.parts), "18C clear\n</tool_response>");
    assert_eq!((reply.stop, reply.usage.unwrap().input_tokens), (ReplyStop::End, 190));

    let body: Value = serde_json::from_str(&read("nonstream.response.json")).unwrap();
    let reply = decode_body(&body);
    assert_eq!(reply.stop, ReplyStop::Length);
    assert!(text_of(&reply.parts).starts_with("Hello! I'm here"));
    assert_eq!(reply.usage.unwrap().input_tokens, 23);
}

/// SPEC 7.4: line ends, comments and the size of chunks make no difference.
#[test]
fn streams_decode_the_same_however_they_come() {
    for name in STREAMS {
        let stream = recorded(name);
        let whole = decode_whole(&stream);
        let crlf = stream.replace('\n', "\r\n");
        let comments = stream.replace("\n\n", "\n: ping\n\n: ping\n\n");
        let pings = stream.replace("\n\n", "\n\nevent: ping\ndata: {\"type\": \"ping\"}\n\n");
        let unnamed: String = stream
            .split_inclusive('\n')
            .filter(|line| !line.starts_with("event:"))
            .collect();
        for other in [
            &crlf,
            &comments,
            &pings,
            &unnamed,
            &stream.replace('\n', "\r"),
            &format!("\u{FEFF}{stream}"),
        ] {
            assert_eq!(decode_whole(other), whole, "{name}");
            assert_eq!(decode(other.as_bytes().chunks(1)), whole, "{name}, byte by byte");
        }
        assert_eq!(decode(stream.as_bytes().chunks(61)), whole, "{name}, in pieces");
    }
}

/// SPEC 7.3, 12: wherever a stream is cut, a call counts only when all of it and its reason to finish came.
#[test]
fn cut_streams_never_have_calls() {
    for name in STREAMS {
        let stream = recorded(name);
        let whole = decode_whole(&stream);
        let finish = stream.find("\"stop_reason\":\"").unwrap();
        for cut in 0..stream.len() {
            let reply = decode(std::iter::once(&stream.as_bytes()[..cut]));
            assert!(
                text_of(&whole.parts).starts_with(&text_of(&reply.parts)),
                "{name} cut at {cut}"
            );
            if reply.stop == ReplyStop::Truncated {
                assert!(reply.calls.is_empty(), "{name} cut at {cut}");
            } else {
                assert!(cut > finish, "{name} cut at {cut}");
                assert_eq!(
                    (&reply.calls, reply.stop),
                    (&whole.calls, whole.stop),
                    "{name} cut at {cut}"
                );
            }
        }
    }
}

/// SPEC 7.6, 10.4: refusals keep the server's words and are told apart.
#[test]
fn refusals() {
    for (name, status, kind) in [
        ("overflow", 400, ErrorKind::ContextOverflow),
        ("bad-json", 400, ErrorKind::Status(400)),
        ("no-messages", 500, ErrorKind::Status(500)),
    ] {
        let body = read(&format!("{name}.response.json"));
        let value: Value = serde_json::from_str(&body).unwrap();
        let error = Anthropic.decode_error(status, &body);
        assert_eq!(
            (error.kind, error.message.as_str()),
            (kind, value["error"]["message"].as_str().unwrap())
        );
    }
}

/// Content as a list of blocks, which a recording may write as text.
fn as_blocks(content: &mut Value) {
    if let Some(text) = content.as_str() {
        *content = json!([wire_text(text)]);
    }
}

/// SPEC 7.2, 6.1: our requests are the ones the server took.
#[test]
fn requests_are_written_as_recorded() {
    let question = || user("What is the weather in Paris? Use the tool.");
    let asked = [question()];
    let answered = [
        question(),
        assistant(vec![], vec![call(1, "toolu_1", "{\"city\":\"Paris\"}")]),
        result(1, "18C clear"),
    ];
    for (name, conversation) in [("tool-stream", &asked[..]), ("tool-followup-stream", &answered)] {
        let mut recorded: Value = serde_json::from_str(&read(&format!("{name}.request.json"))).unwrap();
        // This program never forces a call.
        recorded.as_object_mut().unwrap().remove("tool_choice");
        for message in recorded["messages"].as_array_mut().unwrap() {
            as_blocks(&mut message["content"]);
        }
        let profile = ModelProfile {
            temperature: Some(0.0),
            ..ModelProfile::new(Format::Anthropic, "http://127.0.0.1:8080", "smollm2")
        };
        let tools = [tool()];
        let asked = Request {
            max_output_tokens: recorded["max_tokens"].as_u64(),
            ..request(conversation, &tools)
        };
        let mut ours = body(asked, &profile);
        // The recordings wrote the integer 0.
        assert_eq!(ours["temperature"].take(), 0.0);
        recorded["temperature"].take();
        assert_eq!(ours, recorded, "{name}");
    }
}
