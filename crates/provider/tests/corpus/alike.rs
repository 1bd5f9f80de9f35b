//! Payloads that are like the one before but for their text are read faster (`codec::template`), and mean the same: an event
//! that says nothing in between makes each of them be read in full.

use super::case::Case;
use super::reading::{Heard, read};
use aish_provider::profile::Format;
use proptest::prelude::*;

/// An event that says nothing, and that no other is like.
const NOTHING: &str = "data: {\"choices\":[]}\n\n";

/// Payloads of servers with a gap for a string, and such as differ from them in little.
const SHAPES: &[&str] = &[
    r#"{"id":"c","created":1,"model":"m","choices":[{"index":0,"delta":{"content":@},"finish_reason":null}]}"#,
    r#"{"id":"c","created":2,"model":"m","choices":[{"index":0,"delta":{"content":@},"finish_reason":null}]}"#,
    r#"{"id":"c","created":1,"model":"n","choices":[{"index":0,"delta":{"content":@},"finish_reason":null}]}"#,
    r#"{"id":"c","created":1,"model":"m","choices":[{"index":1,"delta":{"content":@},"finish_reason":null}]}"#,
    r#"{"id":"c","created":1,"model":"m","choices":[{"index":0,"delta":{"content":@},"finish_reason":"stop"}]}"#,
    r#"{"choices":[{"delta":{"content":@,"reasoning_content":"t"}}]}"#,
    r#"{"choices":[{"delta":{"content":"t","reasoning_content":@}}]}"#,
    r#"{"choices":[{"delta":{"content":null,"reasoning_content":@,"reasoning":"r"}}]}"#,
    r#"{"choices":[{"delta":{"content":"","reasoning_content":"","reasoning":@}}]}"#,
    r#"{"choices":[{"delta":{"content":[{"type":"text","text":@}]}}]}"#,
    r#"{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"text":@}]}]}}]}"#,
    r#"{"model":"n","choices":[{"delta":{"content":@,"refusal":"no"}}]}"#,
    r#"{"model":"n","choices":[{"delta":{"refusal":@}}]}"#,
    r#"{"choices":[{"delta":{"content":@,"tool_calls":[{"index":0,"id":"1","function":{"name":"bash","arguments":""}}]}}]}"#,
    r#"{"choices":[{"delta":{"content":null,"tool_calls":[{"index":0,"function":{"arguments":@}}]}}]}"#,
    r#"{"choices":[{"delta":{"content":@,"reasoning_details":[{"type":"reasoning.text","text":"d"}]}}]}"#,
    r#"{"model":"n","choices":[{"delta":{"content":@},"usage":{"prompt_tokens":7}}]}"#,
    r#"{"model":"n","choices":[{"delta":{"content":@}}],"usage":{"prompt_tokens":9}}"#,
    r#"{"choices":[{"delta":{"content":@}},{"delta":{"content":@}}]}"#,
    r#"{"model":"n","choices":[{"message":{"content":@}}]}"#,
    r#"{"object":"error","choices":[{"delta":{"content":@}}],"message":"broken"}"#,
    r#"{"error":{"message":"broken"},"choices":[{"delta":{"content":@}}]}"#,
    "null",
    "[DONE]",
];

/// What stands in the gap; not all of it is a string.
const FILLED: &[&str] = &[
    r#""a""#,
    r#""word ""#,
    r#""\n""#,
    r#""<think>""#,
    r#""</think>""#,
    r#""é \" \u00e9""#,
    r#""""#,
    "null",
    "7",
    r#"["a"]"#,
    r#""a","content":"b""#,
    r#""a"},"finish_reason":"length""#,
    r#""a"#,
];

/// The stream with nothing said between any two events.
fn apart(stream: &str) -> String {
    stream
        .split_inclusive("\n\n")
        .map(|event| format!("{event}{NOTHING}"))
        .collect()
}

#[track_caller]
fn means_the_same(stream: &str, tools: &[String]) {
    let [heard, apart]: [Heard; 2] =
        [stream, &apart(stream)].map(|stream| read(Format::OpenaiChat, tools, [stream.as_bytes()]));
    assert_eq!(heard.reply, apart.reply, "{stream}");
    assert_eq!(heard.shown_text(), apart.shown_text(), "{stream}");
}

/// SPEC 7.4: in what real servers send.
#[test]
fn in_the_corpus() {
    let mut streams = 0;
    for case in Case::of(Format::OpenaiChat) {
        let stream = String::from_utf8_lossy(&case.body);
        if stream.starts_with("data:") && !stream.contains('\r') {
            means_the_same(&stream, &case.tools);
            streams += 1;
        }
    }
    assert!(streams > 40, "{streams} streams");
}

/// SPEC 7.4: a payload is like the one before it, not like an earlier one: the last model that was named counts.
#[test]
fn like_the_one_before() {
    let said = |model: &str, more: &str| {
        format!("data: {{\"model\":\"{model}\",\"choices\":[{{\"delta\":{{\"content\":\"a\"{more}}}}}]}}\n\n")
    };
    let stream = [said("m", ""), said("n", ",\"refusal\":\"b\""), said("m", "")].concat();
    let heard = read(Format::OpenaiChat, &[], [stream.as_bytes()]);
    assert_eq!(
        (heard.shown_text().as_str(), heard.reply.model.as_deref()),
        ("aaba", Some("m"))
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    /// SPEC 7.4: in any order, each shape some times in a row.
    #[test]
    fn in_any_order(
        events in proptest::collection::vec((0..SHAPES.len(), proptest::collection::vec(0..FILLED.len(), 1..4), 0..12usize), 1..8),
    ) {
        let mut stream = String::new();
        for (shape, filled, name) in events {
            for filled in filled {
                if name == 0 {
                    stream.push_str("event: error\n");
                }
                stream.push_str(&format!("data: {}\n\n", SHAPES[shape].replace('@', FILLED[filled])));
            }
        }
        means_the_same(&stream, &["bash".to_owned()]);
    }
}
