//! Replies: what the corpus of quirks does not hold already.

use aish_core::event::{ReplyStop, Usage};
use aish_core::id::CallId;
use aish_core::message::{Message, MessageCall, Part, ToolChoice};
use aish_provider::assemble::{Assembler, Ending};
use aish_provider::codec::Codec;
use aish_provider::codec::gemini::Gemini;
use aish_provider::codec::names::WireNames;
use aish_provider::profile::{Format, WireNaming};
use aish_provider::{ErrorKind, ModelProfile, Reply, Request, sse};
use proptest::prelude::*;
use serde_json::{Value, json};

/// How a reply comes.
#[derive(Clone, Copy)]
enum Coming {
    Events,
    Body,
}

fn read<'c>(coming: Coming, chunks: impl IntoIterator<Item = &'c [u8]>) -> Reply {
    let tools = ["srv.read", "roll"];
    let names = WireNames::new(WireNaming::Underscore, tools);
    let mut assembler = Assembler::new(names, tools.map(str::to_owned).to_vec());
    let mut decoder = Gemini.decoder();
    let mut shown = Vec::new();
    let mut failed = Vec::new();
    match coming {
        Coming::Body => {
            let body: Vec<u8> = chunks.into_iter().flatten().copied().collect();
            let text = String::from_utf8_lossy(&body);
            failed.extend(
                decoder
                    .body(&text, &mut |piece| assembler.push(piece, &mut shown))
                    .err(),
            );
        }
        Coming::Events => {
            let mut parser = sse::Parser::new();
            let mut sink = |event: sse::Event<'_>| {
                failed.extend(
                    decoder
                        .event(&event, &mut |piece| assembler.push(piece, &mut shown))
                        .err(),
                );
            };
            for chunk in chunks {
                parser.feed(chunk, &mut sink).unwrap();
            }
            parser.finish(&mut sink).unwrap();
        }
    }
    failed.into_iter().for_each(|error| assembler.fail(error));
    assembler.finish(Ending::Read)
}

/// A stream of these payloads.
fn events(payloads: &[Value]) -> String {
    payloads.iter().map(|payload| format!("data: {payload}\n\n")).collect()
}

fn stream(payloads: &[Value]) -> Reply {
    read(Coming::Events, [events(payloads).as_bytes()])
}

fn chunk(parts: Value) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}], "modelVersion": "gemini-3.8-flash"})
}

fn end(reason: &str) -> Value {
    json!({"candidates": [{"finishReason": reason, "index": 0}]})
}

fn a_call() -> Value {
    json!([{"functionCall": {"name": "srv__read", "args": {"p": "é"}}, "thoughtSignature": "S"}])
}

/// A reply with everything in it.
fn everything() -> Vec<Value> {
    let mut last = end("STOP");
    last["usageMetadata"] = json!({"promptTokenCount": 5, "toolUsePromptTokenCount": 2, "candidatesTokenCount": 3,
        "thoughtsTokenCount": 4, "cachedContentTokenCount": 1});
    last["candidates"][0]["groundingMetadata"] = json!({"webSearchQueries": ["q"]});
    vec![
        chunk(json!([{"text": "hm", "thought": true}])),
        chunk(json!([{"text": "m", "thought": true, "thoughtSignature": "S1"}, {"text": "again", "thought": true}])),
        chunk(json!([{"text": "Ye"}])),
        chunk(
            json!([{"text": "s.", "thoughtSignature": "S2"}, {"executableCode": {"code": "1"}, "thoughtSignature": "S3"}]),
        ),
        chunk(
            json!([{"functionCall": {"name": "srv__read", "args": {"b": 1, "a": "é"}, "id": "fc-1"}, "thoughtSignature": "S4"},
            {"functionCall": {"name": "roll"}}, {"thoughtSignature": "S5"}, {}, 7]),
        ),
        last,
    ]
}

/// SPEC 7.3, 7.4: text, thoughts, calls, signatures and foreign parts, in their order.
#[test]
fn blocks() {
    let reply = stream(&everything());
    let thinking = |text: &str, signature: Option<&str>| Part::Thinking {
        text: text.to_owned(),
        signature: signature.map(str::to_owned),
        format: signature.map(|_| "gemini".to_owned()),
    };
    let block = |block: Value| Part::Provider {
        format: "gemini".to_owned(),
        block,
    };
    assert_eq!(
        reply.parts,
        [
            thinking("hmm", Some("S1")),
            thinking("again", None),
            Part::text("Yes."),
            thinking("", Some("S2")),
            block(json!({"executableCode": {"code": "1"}, "thoughtSignature": "S3"})),
            Part::Call {
                index: 0,
                signature: Some("S4".to_owned())
            },
            Part::Call {
                index: 1,
                signature: None
            },
            thinking("", Some("S5")),
            block(json!({"groundingMetadata": {"webSearchQueries": ["q"]}})),
        ]
    );
    let calls: Vec<_> = reply.calls.iter().map(|call| (&*call.name, &*call.arguments)).collect();
    assert_eq!(calls, [("srv.read", r#"{"a":"é","b":1}"#), ("roll", "")]);
    assert_eq!(reply.calls[0].provider_id.as_deref(), Some("fc-1"));
    assert_eq!(reply.stop, ReplyStop::ToolCalls);
    assert_eq!(reply.model.as_deref(), Some("gemini-3.8-flash"));
    let usage = Usage {
        input_tokens: 7,
        output_tokens: 7,
        cached_tokens: 1,
        reasoning_tokens: 4,
        model: reply.model.clone(),
        ..Usage::default()
    };
    assert_eq!(reply.usage, Some(usage));
}

/// SPEC 7.4: the signature of a text of nothing is not that of the thought before it.
#[test]
fn a_signature_alone() {
    let reply = stream(&[
        chunk(json!([{"text": "hm", "thought": true}])),
        chunk(json!([{"text": "", "thoughtSignature": "S"}])),
        end("STOP"),
    ]);
    let alone = Part::Thinking {
        text: String::new(),
        signature: Some("S".to_owned()),
        format: Some("gemini".to_owned()),
    };
    assert_eq!(reply.parts, [Part::thinking("hm"), alone]);
}

/// SPEC 7.6: what a reply was signed with goes back as it came.
#[test]
fn round_trip() {
    let reply = stream(&everything());
    let calls = reply.calls.iter().enumerate().map(|(n, call)| MessageCall {
        id: CallId::nth(1, n),
        provider_id: call.provider_id.clone(),
        name: call.name.clone(),
        arguments: call.arguments.clone(),
    });
    let messages = [
        Message::User {
            parts: vec![Part::text("hi")],
        },
        Message::Assistant {
            parts: reply.parts.clone(),
            calls: calls.collect(),
            model: Some("tested".to_owned()),
        },
    ];
    let request = Request {
        model: "tested",
        system: "",
        messages: &messages,
        tools: &[],
        tool_choice: ToolChoice::Auto,
        max_output_tokens: None,
        schema: None,
    };
    let profile = ModelProfile::new(Format::Gemini, "http://127.0.0.1:1", "gemini-3.8-flash");
    let body: Value = serde_json::from_slice(&Gemini.encode(request, &profile).unwrap().body).unwrap();
    assert_eq!(
        body["contents"][1]["parts"],
        json!([
            {"text": "hmm", "thought": true, "thoughtSignature": "S1"},
            {"text": "Yes."},
            {"text": "", "thoughtSignature": "S2"},
            {"executableCode": {"code": "1"}, "thoughtSignature": "S3"},
            {"functionCall": {"name": "srv__read", "args": {"b": 1, "a": "é"}, "id": "fc-1"}, "thoughtSignature": "S4"},
            {"functionCall": {"name": "roll"}},
            {"text": "", "thoughtSignature": "S5"},
        ])
    );
}

/// SPEC 7.4: the same reply in one piece, as a list, byte by byte, with other line ends and comments, or in an envelope.
#[test]
fn however_it_comes() {
    let payloads = everything();
    let expect = stream(&payloads);
    let whole = events(&payloads);
    assert_eq!(read(Coming::Events, whole.as_bytes().chunks(1)), expect);
    let odd = format!("\u{FEFF}: hi\r\n{}", whole.replace("\n\n", "\r\n: x\r\n\r\n"));
    assert_eq!(read(Coming::Events, odd.as_bytes().chunks(3)), expect);
    let list = Value::from(payloads.clone()).to_string();
    assert_eq!(read(Coming::Body, [list.as_bytes()]), expect);
    let spaced = format!(
        "\u{FEFF}\n[{}\n]\n",
        list.trim_matches(['[', ']']).replace("}]},{", "}]}\n,\r\n{")
    );
    assert_eq!(read(Coming::Body, [spaced.as_bytes()]), expect);
    let wrapped: Vec<Value> = payloads
        .iter()
        .map(|payload| json!({"response": payload, "traceId": "t"}))
        .collect();
    assert_eq!(stream(&wrapped), expect);
    let done = format!("{whole}data: [DONE]\n\n");
    assert_eq!(read(Coming::Events, [done.as_bytes()]), expect);
}

/// SPEC 7.3, 12: a stream or a list that is cut anywhere runs nothing before the reason to finish was read.
#[test]
fn cut_anywhere() {
    for coming in [Coming::Events, Coming::Body] {
        let payloads = everything();
        let text = match coming {
            Coming::Events => events(&payloads),
            Coming::Body => Value::from(payloads).to_string(),
        };
        let whole_at = text.find("finishReason").unwrap();
        for cut in 0..text.len() {
            let reply = read(coming, [&text.as_bytes()[..cut]]);
            assert!(reply.calls.is_empty() || cut > whole_at, "{cut}");
            assert_eq!(reply.calls.is_empty(), reply.stop != ReplyStop::ToolCalls, "{cut}");
        }
    }
}

/// SPEC 7.3: what each reason means for a reply with text and for one with a call.
#[test]
fn reasons() {
    for (reason, with_text, with_call) in [
        ("STOP", ReplyStop::End, ReplyStop::ToolCalls),
        ("MAX_TOKENS", ReplyStop::Length, ReplyStop::Length),
        ("SAFETY", ReplyStop::Refused, ReplyStop::Refused),
        ("RECITATION", ReplyStop::Refused, ReplyStop::Refused),
        ("PROHIBITED_CONTENT", ReplyStop::Refused, ReplyStop::Refused),
        ("BLOCKLIST", ReplyStop::Refused, ReplyStop::Refused),
        ("SPII", ReplyStop::Refused, ReplyStop::Refused),
        ("MALFORMED_FUNCTION_CALL", ReplyStop::Truncated, ReplyStop::Truncated),
        ("UNEXPECTED_TOOL_CALL", ReplyStop::Truncated, ReplyStop::Truncated),
        ("MISSING_THOUGHT_SIGNATURE", ReplyStop::Truncated, ReplyStop::Truncated),
        ("OTHER", ReplyStop::Truncated, ReplyStop::Truncated),
        ("FINISH_REASON_UNSPECIFIED", ReplyStop::Truncated, ReplyStop::Truncated),
        ("", ReplyStop::Truncated, ReplyStop::Truncated),
        ("A_NEW_ONE", ReplyStop::End, ReplyStop::ToolCalls),
    ] {
        let text = stream(&[chunk(json!([{"text": "a"}])), end(reason)]);
        assert_eq!(text.stop, with_text, "{reason}");
        let call = stream(&[chunk(a_call()), end(reason)]);
        assert_eq!(call.stop, with_call, "{reason}");
        assert_eq!(call.calls.is_empty(), with_call != ReplyStop::ToolCalls, "{reason}");
    }
}

/// SPEC 7.3, 10.4: what was withheld, or came to nothing, says why: the reason, what it was rated for, what is said of it.
#[test]
fn reasons_are_told() {
    let rating = |category: &str, probability: &str| json!({"category": category, "probability": probability});
    let ratings = json!([rating("HARM_CATEGORY_HATE_SPEECH", "NEGLIGIBLE"), rating("HARM_CATEGORY_HARASSMENT", "HIGH"),
        {"category": "HARM_CATEGORY_CIVIC_INTEGRITY", "probability": "LOW", "blocked": true}, 7]);
    let ended =
        |reason: &str| json!({"candidates": [{"finishReason": reason, "finishMessage": "Print(1)", "index": 0}]});
    let withheld = json!({"candidates": [{"finishReason": "SAFETY", "safetyRatings": ratings}]});
    let blocked =
        json!({"promptFeedback": {"blockReason": "SAFETY", "blockReasonMessage": "No.", "safetyRatings": ratings}});
    for (payload, why) in [
        (
            ended("MALFORMED_FUNCTION_CALL"),
            Some("MALFORMED_FUNCTION_CALL: Print(1)"),
        ),
        (withheld, Some("SAFETY (harassment, civic integrity)")),
        (blocked, Some("SAFETY (harassment, civic integrity): No.")),
        (ended("STOP"), None),
        (ended("MAX_TOKENS"), None),
    ] {
        assert_eq!(stream(&[payload]).reason.as_deref(), why);
    }
}

/// SPEC 7.4: a prompt that was blocked is a refusal, and no reason to block it is none.
#[test]
fn blocked_prompts() {
    let blocked = |reason: &str| stream(&[json!({"promptFeedback": {"blockReason": reason}})]).stop;
    assert_eq!(blocked("SAFETY"), ReplyStop::Refused);
    assert_eq!(blocked("BLOCK_REASON_UNSPECIFIED"), ReplyStop::Truncated);
    assert_eq!(blocked(""), ReplyStop::Truncated);
}

/// SPEC 7.4: errors keep their meaning wherever they stand: in an event, in a list, as a whole body.
#[test]
fn errors() {
    let error = json!({"error": {"code": 429, "message": "no more", "status": "RESOURCE_EXHAUSTED"}});
    for reply in [
        stream(&[chunk(a_call()), error.clone(), end("STOP")]),
        stream(&[chunk(a_call()), json!([error.clone()]), end("STOP")]),
        read(
            Coming::Body,
            [Value::from(vec![chunk(a_call()), error.clone()]).to_string().as_bytes()],
        ),
        read(Coming::Body, [error.to_string().as_bytes()]),
        read(Coming::Events, [format!("event: error\ndata: {error}\n\n").as_bytes()]),
    ] {
        let failed = reply.error.expect("an error");
        assert_eq!((failed.kind, &*failed.message), (ErrorKind::Status(429), "no more"));
        assert_eq!((reply.stop, reply.calls.len()), (ReplyStop::Truncated, 0));
    }
    let plain = read(Coming::Events, [b"event: error\ndata: gone wrong\n\n".as_slice()]);
    assert_eq!(plain.error.map(|error| error.message).as_deref(), Some("gone wrong"));
    for broken in ["x", "{", "[{", "[1]", "7", "[", "[{}", "{}x"] {
        let error = read(Coming::Body, [broken.as_bytes()])
            .error
            .unwrap_or_else(|| panic!("{broken}"));
        assert_eq!(error.kind, ErrorKind::Protocol, "{broken}");
        assert!(error.message.contains("gemini"), "{}", error.message);
    }
}

/// SPEC 7.6, 10.4: a refused request, as the API words it, also as the list that a stream's method answers with.
#[test]
fn refused_requests() {
    let body = |message: &str| json!({"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}});
    let kind = |status: u16, body: &Value| Gemini.decode_error(status, &body.to_string()).kind;
    let too_long = body("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).");
    assert_eq!(kind(400, &too_long), ErrorKind::ContextOverflow);
    assert_eq!(kind(400, &json!([too_long])), ErrorKind::ContextOverflow);
    let no_key = body("API key not valid. Please pass a valid API key.");
    assert_eq!(kind(400, &json!([no_key])), ErrorKind::Auth);
    let error = Gemini.decode_error(
        503,
        &json!([{"error": {"code": 503, "message": "overloaded"}}]).to_string(),
    );
    assert_eq!((error.kind, &*error.message), (ErrorKind::Status(503), "overloaded"));
}

/// SPEC 7.4: fields of another type than promised count as missing; other candidates are not mixed in.
#[test]
fn wrong_types() {
    for part in [
        json!(null),
        json!("x"),
        json!([]),
        json!({"text": 7}),
        json!({"functionCall": "x"}),
        json!({"text": null}),
    ] {
        let reply = stream(&[chunk(json!([part, {"text": "a"}])), end("STOP")]);
        assert!(reply.error.is_none(), "{part}");
        assert_eq!(aish_core::message::text_of(&reply.parts), "a", "{part}");
        assert_eq!(reply.stop, ReplyStop::End, "{part}");
    }
    let odd = json!({"candidates": {"content": 1}, "usageMetadata": [], "modelVersion": 7, "promptFeedback": "x", "error": null});
    assert_eq!(stream(&[odd, end("STOP")]).stop, ReplyStop::End);
    let second = json!({"candidates": [{"index": 1, "content": {"parts": [{"text": "b"}]}, "finishReason": "SAFETY"}]});
    let reply = stream(&[chunk(json!([{"text": "a"}])), second, end("STOP")]);
    assert_eq!(
        (aish_core::message::text_of(&reply.parts).as_str(), reply.stop),
        ("a", ReplyStop::End)
    );
}

proptest! {
    /// SPEC 12: no bytes panic, whole or cut.
    #[test]
    fn any_payload(text in "[\\[\\]{}\":,a-c0-9 ]{0,40}", cut in 0usize..2000) {
        read(Coming::Body, [text.as_bytes()]);
        read(Coming::Events, [format!("data: {text}\n\n").as_bytes()]);
        let whole = Value::from(everything()).to_string();
        let mut bytes = whole.into_bytes();
        let at = cut % bytes.len();
        bytes.splice(at..at, text.bytes());
        let reply = read(Coming::Body, [bytes.as_slice()]);
        prop_assert_eq!(reply.calls.is_empty(), reply.stop != ReplyStop::ToolCalls);
    }
}
