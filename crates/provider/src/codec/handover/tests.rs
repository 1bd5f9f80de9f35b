//! The handover table, row by row.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use aish_core::id::CallId;
use aish_core::message::MessageCall;
use serde_json::{Value, json};

fn said(model: Option<&str>, parts: Vec<Part>) -> Message {
    Message::Assistant {
        parts,
        calls: Vec::new(),
        model: model.map(str::to_owned),
    }
}

fn user() -> Message {
    Message::User {
        parts: vec![Part::text("and now?")],
    }
}

fn signed(format: Format, text: &str) -> Part {
    Part::Thinking {
        text: text.to_owned(),
        signature: Some("sig".to_owned()),
        format: Some(format.name().to_owned()),
    }
}

fn block(format: Format, block: Value) -> Part {
    Part::Provider {
        format: format.name().to_owned(),
        block,
    }
}

/// Asserts what a reply of that model becomes for `asked`.
#[track_caller]
fn check(model: Option<&str>, parts: &[Part], format: Format, expect: &[Part]) {
    let messages = [said(model, parts.to_vec()), user()];
    let out = for_model(&messages, "asked", format);
    assert_eq!(out.as_ref(), [said(model, expect.to_vec()), user()]);
    let is_changed = matches!(out, Cow::Owned(_));
    assert_eq!(is_changed, parts != expect, "borrowed where nothing changes");
    assert_eq!(for_model(&out, "asked", format), out, "a second pass changes nothing");
}

/// SPEC 7.6: what a model thought goes back to it as it was, in its own format.
#[test]
fn its_own() {
    for format in Format::ALL {
        let parts = [
            signed(format, "hm"),
            Part::text("a"),
            block(format, json!({"type": "any", "text": "t"})),
            Part::Call {
                index: 0,
                signature: Some("s".to_owned()),
            },
            Part::thinking("unsigned"),
        ];
        check(Some("asked"), &parts, format, &parts);
    }
}

/// SPEC 7.6: for another model, and for another format under the same name, thinking becomes text where it stood.
#[test]
fn thinking_of_others() {
    for (model, of) in [
        (Some("asked"), Format::Anthropic),
        (Some("other"), Format::Gemini),
        (None, Format::Gemini),
    ] {
        check(
            model,
            &[Part::text("a"), signed(of, " hm\n"), Part::text("b"), signed(of, "")],
            Format::Gemini,
            &[Part::text("a\n\n<thinking>\nhm\n</thinking>\n\nb")],
        );
    }
    check(
        Some("other"),
        &[Part::thinking("hm")],
        Format::OpenaiChat,
        &[Part::text("<thinking>\nhm\n</thinking>")],
    );
}

/// Text that was there before is not joined to each other.
#[test]
fn text_stays() {
    let parts = [Part::text("a"), Part::text("b")];
    check(None, &parts, Format::OpenaiChat, &parts);
    check(Some("other"), &parts, Format::Anthropic, &parts);
}

/// SPEC 7.6: calls keep their places, signatures do not outlive the model.
#[test]
fn calls() {
    let place = |signature: Option<&str>| Part::Call {
        index: 1,
        signature: signature.map(str::to_owned),
    };
    let text = Part::text("t");
    check(
        Some("other"),
        &[place(Some("s")), text.clone()],
        Format::Gemini,
        &[place(None), text],
    );
    let message = Message::Assistant {
        parts: vec![Part::thinking("x")],
        calls: vec![MessageCall {
            id: CallId::nth(1, 0),
            provider_id: Some("p".to_owned()),
            name: "ls".to_owned(),
            arguments: "{}".to_owned(),
        }],
        model: None,
    };
    let out = for_model(&[message.clone(), user()], "asked", Format::Gemini).into_owned();
    let (Some(Message::Assistant { calls: before, .. }), Some(Message::Assistant { calls: after, .. })) =
        (Some(&message), out.first())
    else {
        panic!("{out:?}")
    };
    assert_eq!(before, after);
}

/// SPEC 7.6: of a provider's block another model is told what can be read.
#[test]
fn provider_blocks() {
    let cases = [
        (
            json!({"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "rust 1.95"}}),
            "[web search: rust 1.95]",
        ),
        (
            json!({"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [
                {"type": "web_search_result", "title": "Notes", "url": "https://a.example", "encrypted_content": "XX"},
                {"type": "web_search_result", "url": "https://b.example"}]}),
            "- Notes https://a.example\n- https://b.example",
        ),
        (
            json!({"type": "web_search_tool_result",
                "content": {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}}),
            "max_uses_exceeded",
        ),
        (
            json!({"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search",
                "query": "q", "queries": ["q", "r"], "sources": [{"type": "url", "url": "https://c.example"}]}}),
            "[web search: q]\n[web search: r]\n- https://c.example",
        ),
        (
            json!({"groundingMetadata": {"webSearchQueries": ["q"],
                "groundingChunks": [{"web": {"uri": "https://d.example", "title": "D"}}],
                "groundingSupports": [{"segment": {"text": "the answer again"}}]}}),
            "[web search: q]\n- D https://d.example",
        ),
        (
            json!({"executableCode": {"id": "x", "language": "PYTHON", "code": "print(1)"}}),
            "print(1)",
        ),
        (
            json!({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1\n"}}),
            "1",
        ),
        (
            json!({"type": "reasoning", "encrypted_content": "XX", "summary": [{"type": "summary_text", "text": "hm"}]}),
            "<thinking>\nhm\n</thinking>",
        ),
        (
            json!({"type": "reasoning", "encrypted_content": "XX", "summary": []}),
            "",
        ),
        (json!({"type": "redacted_thinking", "data": "XX"}), ""),
        (json!("text"), ""),
    ];
    for (raw, text) in cases {
        let expect: Vec<Part> = (!text.is_empty()).then(|| Part::text(text)).into_iter().collect();
        check(
            Some("other"),
            &[block(Format::Anthropic, raw.clone())],
            Format::Anthropic,
            &expect,
        );
        check(
            Some("asked"),
            &[block(Format::OpenaiResponses, raw)],
            Format::Gemini,
            &expect,
        );
    }
}

/// A block is told of by its beginning, cut between characters, however long and deep it is.
#[test]
fn bounds() {
    let long = "é".repeat(BLOCK_TEXT_BYTES_MAX);
    let results: Vec<Value> = (0..10_000)
        .map(|n| json!({"url": format!("https://{n}.example")}))
        .collect();
    let mut deep = json!({"text": "bottom"});
    for _ in 0..100 {
        deep = json!([deep]);
    }
    for part in [
        Part::thinking(&long),
        block(Format::Anthropic, json!({"text": long})),
        block(Format::Anthropic, json!(results)),
        block(Format::Anthropic, deep),
    ] {
        let messages = [said(None, vec![part]), user()];
        let out = for_model(&messages, "asked", Format::Gemini);
        let Some(Message::Assistant { parts, .. }) = out.first() else {
            panic!("{out:?}")
        };
        let bytes = aish_core::message::text_of(parts).len();
        assert!(bytes < BLOCK_TEXT_BYTES_MAX + 100, "{bytes}");
    }
}

/// SPEC 7.5: no template sees an answer begun by us; SPEC 7.6: a paused reply is sent back as it is.
#[test]
fn last_words() {
    for format in Format::ALL {
        for model in [Some("asked"), Some("other"), None] {
            let messages = [user(), said(model, vec![Part::text("a")])];
            let out = for_model(&messages, "asked", format);
            let goes_back = format == Format::Anthropic && model == Some("asked");
            assert_eq!(out.len(), if goes_back { 2 } else { 3 }, "{format:?} {model:?}");
            if !goes_back {
                let go_on = Message::User {
                    parts: vec![Part::text(GO_ON)],
                };
                assert_eq!(out.last(), Some(&go_on));
            }
        }
        assert!(for_model(&[], "asked", format).is_empty());
    }
}

/// SPEC 7.6: reasoning that came as thinking and as its provider's item is told once.
#[test]
fn reasoning_is_told_once() {
    let item = json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "x",
        "summary": [{"type": "summary_text", "text": "Below src."}]});
    let item = block(Format::OpenaiResponses, item);
    let told = [Part::text("<thinking>\nBelow src.\n</thinking>")];
    check(
        Some("other"),
        &[Part::thinking("Below src."), item.clone()],
        Format::Anthropic,
        &told,
    );
    check(Some("other"), &[item], Format::Anthropic, &told);
}
