//! Tests of the assembly: the quirks of servers, through the codec where the shape of a payload matters.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use crate::codec::openai_chat::OpenaiChat;
use crate::codec::{CallFragment, Codec};
use crate::profile::{Format, WireNaming};
use crate::sse;
use aish_core::message::text_of;
use std::borrow::Cow;

mod order;

const DONE: &str = "[DONE]";
const STOP: &str = r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#;
const CALLS: &str = r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#;

fn assembler() -> Assembler {
    let tools = ["glob", "srv.read", "now"];
    let names = WireNames::new(WireNaming::Underscore, tools);
    Assembler::new(names, tools.map(str::to_owned).to_vec())
}

fn text(content: &str) -> String {
    serde_json::json!({"choices": [{"index": 0, "delta": {"content": content}}]}).to_string()
}

/// A chunk of one call fragment, written as it is on the wire.
fn call(json: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{{"tool_calls":[{json}]}},"finish_reason":null}}]}}"#)
}

/// The reply to these payloads, and what was shown.
fn run<S: AsRef<str>>(payloads: &[S]) -> (Reply, Vec<Delta>) {
    let mut assembler = assembler();
    let mut out = Vec::new();
    for payload in payloads {
        let event = sse::Event {
            name: Cow::Borrowed(""),
            data: Cow::Borrowed(payload.as_ref()),
            id: Cow::Borrowed(""),
        };
        let read = OpenaiChat
            .decoder()
            .event(&event, &mut |piece| assembler.push(piece, &mut out));
        if let Err(error) = read {
            assembler.fail(error);
        }
    }
    assembler.flush(&mut out);
    (assembler.finish(Ending::Read), out)
}

/// The calls of a reply to fragments: `name(arguments)#id`.
fn calls(fragments: &[&str]) -> Vec<String> {
    let mut payloads: Vec<String> = fragments.iter().map(|json| call(json)).collect();
    payloads.push(CALLS.to_owned());
    let (reply, _) = run(&payloads);
    assert_eq!(reply.stop, ReplyStop::ToolCalls, "{reply:?}");
    reply.calls.iter().map(readable).collect()
}

fn readable(call: &ReplyCall) -> String {
    let id = call.provider_id.as_deref().unwrap_or("-");
    format!("{}({})#{id}", call.name, call.arguments)
}

/// SPEC 7.3: fragments are put together by index, also when they alternate.
#[test]
fn fragments_by_index() {
    let got = calls(&[
        r#"{"index":0,"id":"a","type":"function","function":{"name":"glob","arguments":"{\"pat"}}"#,
        r#"{"index":1,"id":"b","function":{"name":"srv__read","arguments":""}}"#,
        r#"{"index":1,"function":{"arguments":"{\"p\":1}"}}"#,
        r#"{"index":0,"function":{"arguments":"tern\":\"é\\n\"}"}}"#,
    ]);
    assert_eq!(got, ["glob({\"pattern\":\"é\\n\"})#a", "srv.read({\"p\":1})#b"]);
}

/// SPEC 7.4: any first index will do, and a huge one costs nothing.
#[test]
fn odd_indices() {
    for (first, second) in [("1", "2"), ("1000000000", "18446744073709551615"), ("\"7\"", "8.0")] {
        let got = calls(&[
            &format!(r#"{{"index":{first},"id":"a","function":{{"name":"glob","arguments":"{{"}}}}"#),
            &format!(r#"{{"index":{second},"id":"b","function":{{"name":"now","arguments":"{{"}}}}"#),
            &format!(r#"{{"index":{first},"function":{{"arguments":"}}"}}}}"#),
            &format!(r#"{{"index":{second},"function":{{"arguments":"}}"}}}}"#),
        ]);
        assert_eq!(got, ["glob({})#a", "now({})#b"], "{first}");
    }
}

/// SPEC 7.4: without indices, ids tell calls apart, and fragments without either go on with the last one.
#[test]
fn missing_index() {
    let got = calls(&[
        r#"{"id":"a","function":{"name":"glob","arguments":"{\"a\""}}"#,
        r#"{"function":{"arguments":":1}"}}"#,
        r#"{"id":"b","function":{"name":"glob","arguments":"{"}}"#,
        r#"{"id":"b","function":{"arguments":"}"}}"#,
    ]);
    assert_eq!(got, ["glob({\"a\":1})#a", "glob({})#b"]);
    // Whole calls, one after the other, with nothing at all to tell them apart.
    let got = calls(&[
        r#"{"function":{"name":"glob","arguments":{"a": 1}}}"#,
        r#"{"function":{"name":"glob","arguments":{"a": 2}}}"#,
        r#"{"function":{"name":"now","arguments":{}}}"#,
    ]);
    assert_eq!(got, ["glob({\"a\": 1})#-", "glob({\"a\": 2})#-", "now({})#-"]);
}

/// SPEC 7.4: all calls with the same index.
#[test]
fn one_index_for_all() {
    let got = calls(&[
        r#"{"index":0,"id":"a","function":{"name":"glob","arguments":"{\"a\":1}"}}"#,
        r#"{"index":0,"id":"b","function":{"name":"glob","arguments":"{\"a\":2}"}}"#,
        r#"{"index":0,"id":"c","function":{"name":"now"}}"#,
    ]);
    assert_eq!(got, ["glob({\"a\":1})#a", "glob({\"a\":2})#b", "now()#c"]);
    let got = calls(&[
        r#"{"index":0,"id":"","function":{"name":"glob","arguments":"{\"a\":1}"}}"#,
        r#"{"index":0,"id":"","function":{"name":"glob","arguments":"{\"a\":2}"}}"#,
    ]);
    assert_eq!(got, ["glob({\"a\":1})#-", "glob({\"a\":2})#-"]);
}

/// SPEC 7.4: ids that are missing, empty, null, late, or new with each fragment.
#[test]
fn odd_ids() {
    for (id, expect) in [
        ("", "-"),
        (r#""id":"","#, "-"),
        (r#""id":null,"#, "-"),
        (r#""id":7,"#, "-"),
    ] {
        let one = format!(r#"{{"index":0,{id}"function":{{"name":"now","arguments":"{{"}}}}"#);
        let got = calls(&[&one, r#"{"index":0,"function":{"arguments":"}"}}"#]);
        assert_eq!(got, [format!("now({{}})#{expect}")]);
    }
    let late = calls(&[
        r#"{"index":0,"function":{"name":"now","arguments":"{"}}"#,
        r#"{"index":0,"id":"late","function":{"arguments":"}"}}"#,
    ]);
    assert_eq!(late, ["now({})#late"]);
    let late = calls(&[
        r#"{"function":{"name":"now","arguments":"{"}}"#,
        r#"{"id":"late","function":{"arguments":"}"}}"#,
    ]);
    assert_eq!(late, ["now({})#late"]);
    let changing = calls(&[
        r#"{"index":0,"id":"a","function":{"name":"now","arguments":"{"}}"#,
        r#"{"index":0,"id":"b","function":{"arguments":"}"}}"#,
        r#"{"index":0,"id":"c","function":{"name":"now","arguments":""}}"#,
    ]);
    assert_eq!(changing, ["now({})#a"]);
}

/// SPEC 7.4: names that are repeated or come in pieces.
#[test]
fn odd_names() {
    let repeated = calls(&[
        r#"{"index":0,"id":"a","function":{"name":"glob","arguments":"{\"a\":"}}"#,
        r#"{"index":0,"id":"a","function":{"name":"glob","arguments":"{}"}}"#,
        r#"{"index":0,"id":"a","function":{"name":"glob","arguments":"}"}}"#,
    ]);
    assert_eq!(repeated, ["glob({\"a\":{}})#a"]);
    let pieces = calls(&[
        r#"{"index":0,"id":"a","function":{"name":"srv_"}}"#,
        r#"{"index":0,"function":{"name":"_read"}}"#,
        r#"{"index":0,"function":{"arguments":"{}"}}"#,
    ]);
    assert_eq!(pieces, ["srv.read({})#a"]);
    let unknown = calls(&[r#"{"index":0,"id":"a","function":{"name":"rm__rf","arguments":"{}"}}"#]);
    assert_eq!(unknown, ["rm__rf({})#a"]);
}

/// SPEC 7.4: arguments as an object, null, missing, or repeated at the end.
#[test]
fn odd_arguments() {
    let object = calls(&[r#"{"index":0,"id":"a","function":{"name":"glob","arguments":{"b": [1,"\u00e9"],"a":1}}}"#]);
    assert_eq!(object, [r#"glob({"b": [1,"\u00e9"],"a":1})#a"#]);
    let none = calls(&[r#"{"index":0,"id":"a","function":{"name":"now","arguments":null}}"#]);
    assert_eq!(none, ["now()#a"]);
    let repeated = calls(&[
        r#"{"index":0,"id":"a","function":{"name":"now","arguments":"{\"x\":\"}\"}"}}"#,
        r#"{"index":0,"function":{"arguments":"{\"x\":\"}\"}"}}"#,
    ]);
    assert_eq!(repeated, [r#"now({"x":"}"})#a"#]);
    let empty = calls(&[
        "{}",
        r#"{"index":0}"#,
        r#"{"index":0,"id":"a","function":{"name":"now","arguments":"{}"}}"#,
    ]);
    assert_eq!(empty, ["now({})#a"]);
}

/// SPEC 7.4: the same call twice stays twice; running it once is the turn's business.
#[test]
fn duplicates_are_kept() {
    let twice = r#"{"id":"a","function":{"name":"now","arguments":"{\"a\":1}"}}"#;
    assert_eq!(calls(&[twice, twice]), ["now({\"a\":1})#a", "now({\"a\":1})#a"]);
}

/// SPEC 7.4: `stop` with calls pending is `tool_calls`.
#[test]
fn stop_with_calls() {
    let one = call(r#"{"index":0,"id":"a","function":{"name":"now","arguments":"{}"}}"#);
    let (reply, shown) = run(&[text("I look."), one, STOP.to_owned(), DONE.to_owned()]);
    assert_eq!(reply.stop, ReplyStop::ToolCalls);
    assert_eq!(reply.calls.len(), 1);
    assert_eq!(text_of(&reply.parts), "I look.");
    let begun = Delta::CallBegun { name: "now".to_owned() };
    assert_eq!(shown, [Delta::Text("I look.".to_owned()), begun]);
}

/// SPEC 7.3, 7.4, 12: a reply without a proper end never has calls; they are kept as evidence.
#[test]
fn cut_calls_are_partial() {
    let whole = call(r#"{"index":0,"id":"a","function":{"name":"srv__read","arguments":"{}"}}"#);
    let cut = call(r#"{"index":0,"id":"a","function":{"name":"srv__read","arguments":"{"}}"#);
    let ended = |reason: &str| format!(r#"{{"choices":[{{"delta":{{}},"finish_reason":"{reason}"}}]}}"#);
    let error = r#"{"error":{"code":500,"message":"out of memory"}}"#.to_owned();
    let cases = [
        (vec![whole.clone()], ReplyStop::Truncated),
        (vec![whole.clone(), DONE.to_owned()], ReplyStop::Truncated),
        (
            vec![whole.clone(), error.clone(), CALLS.to_owned()],
            ReplyStop::Truncated,
        ),
        (vec![whole.clone(), CALLS.to_owned(), error], ReplyStop::Truncated),
        (vec![whole.clone(), ended("length")], ReplyStop::Length),
        (vec![whole.clone(), ended("content_filter")], ReplyStop::Refused),
        (vec![whole.clone(), ended("abort")], ReplyStop::Truncated),
        (vec![cut.clone(), ended("novel_reason")], ReplyStop::Truncated),
        (vec![cut, ended("length"), DONE.to_owned()], ReplyStop::Length),
        (vec![CALLS.to_owned(), whole], ReplyStop::Truncated),
    ];
    for (payloads, stop) in cases {
        let (reply, _) = run(&payloads);
        assert_eq!((reply.stop, reply.calls.len()), (stop, 0), "{payloads:?}");
        assert!(
            matches!(reply.parts.as_slice(), [Part::PartialCall { name, .. }] if name == "srv.read"),
            "{payloads:?}"
        );
    }
}

/// SPEC 7.4: reasons we do not know end a reply whose calls are whole.
#[test]
fn unknown_reason() {
    let whole = call(r#"{"index":0,"id":"a","function":{"name":"now","arguments":"{}"}}"#);
    let ended = r#"{"choices":[{"delta":{},"finish_reason":"novel_reason"}]}"#.to_owned();
    assert_eq!(run(&[whole, ended.clone()]).0.stop, ReplyStop::ToolCalls);
    assert_eq!(run(&[text("a"), ended]).0.stop, ReplyStop::End);
}

/// SPEC 7.3, 7.4: text is whole with a reason or with `[DONE]`, else cut.
#[test]
fn ends_of_text() {
    let stop = |payloads: &[String]| run(payloads).0.stop;
    assert_eq!(stop(&[text("a"), STOP.to_owned()]), ReplyStop::End);
    assert_eq!(stop(&[text("a"), DONE.to_owned()]), ReplyStop::End);
    assert_eq!(stop(&[text("a")]), ReplyStop::Truncated);
    assert_eq!(stop(&[]), ReplyStop::Truncated);
    let mut cut = assembler();
    cut.push(Piece::Finish(Finish::Stop), &mut Vec::new());
    assert_eq!(cut.finish(Ending::Cut).stop, ReplyStop::Truncated);
}

/// SPEC 7.4: null content, a usage chunk without choices, other choices, the model's own name.
#[test]
fn odd_chunks() {
    let (reply, shown) = run(&[
        r#"{"model":"other","choices":[{"index":0,"delta":{"role":"assistant","content":null,"tool_calls":null}}]}"#,
        r#"{"choices":[{"index":1,"delta":{"content":"second choice"}}]}"#,
        r#"{"choices":[{"delta":{"content":"a"}},{"delta":null}],"error":null}"#,
        r#"{"choices":null}"#,
        r#"{"choices":[{"delta":{"content":[{"type":"text","text":"b"}]},"finish_reason":""}]}"#,
        STOP,
        r#"{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2.0,"prompt_tokens_details":{"cached_tokens":3}}}"#,
        DONE,
    ]);
    assert_eq!(shown, [Delta::Text("ab".to_owned())]);
    assert_eq!(reply.model.as_deref(), Some("other"));
    let usage = reply.usage.unwrap();
    assert_eq!(
        (usage.input_tokens, usage.output_tokens, usage.cached_tokens),
        (5, 2, 3)
    );
    assert_eq!(usage.model.as_deref(), Some("other"));
    assert_eq!(reply.stop, ReplyStop::End);
}

/// SPEC 7.4: reasoning in its three places is thinking.
#[test]
fn reasoning() {
    for payload in [
        r#"{"choices":[{"delta":{"reasoning_content":"hm"}}]}"#,
        r#"{"choices":[{"delta":{"reasoning":"hm"}}]}"#,
        r#"{"choices":[{"delta":{"reasoning":"hm","reasoning_content":"hm"}}]}"#,
        r#"{"choices":[{"delta":{"content":"<think>hm</think>\n\n"}}]}"#,
    ] {
        let (reply, shown) = run(&[payload.to_owned(), text("yes"), STOP.to_owned()]);
        let thinking = Part::thinking("hm");
        assert_eq!(reply.parts, [thinking, Part::text("yes")], "{payload}");
        assert_eq!(shown, [Delta::Thinking("hm".to_owned()), Delta::Text("yes".to_owned())]);
    }
}

/// SPEC 7.4: a call written as text is a call and leaves the text.
#[test]
fn calls_as_text() {
    let written = "I look.\n<tool_call>{\"name\":\"srv__read\",\"arguments\":{\"p\":1}}</tool_call>";
    let (reply, _) = run(&[text(written), STOP.to_owned()]);
    assert_eq!(reply.stop, ReplyStop::ToolCalls);
    assert_eq!(
        reply.calls.iter().map(readable).collect::<Vec<_>>(),
        ["srv.read({\"p\":1})#-"]
    );
    assert_eq!(reply.parts, [Part::text("I look.")]);
    // Cut by length, or with real calls beside it, it is text.
    let (reply, _) = run(&[text(written)]);
    assert_eq!(
        (reply.stop, reply.calls.len(), text_of(&reply.parts).as_str()),
        (ReplyStop::Truncated, 0, written)
    );
    let real = call(r#"{"index":0,"id":"a","function":{"name":"now","arguments":"{}"}}"#);
    assert_eq!(run(&[text(written), real, STOP.to_owned()]).0.calls.len(), 1);
}

/// SPEC 7.4: an error with status 200, and one in the middle; what came before stays.
#[test]
fn errors_in_the_stream() {
    for (error, kind) in [
        (r#"{"error":{"code":500,"message":"no\nluck"}}"#, ErrorKind::Stream),
        (r#"{"error":"no luck"}"#, ErrorKind::Stream),
        (
            r#"{"object":"error","message":"no luck","code":400}"#,
            ErrorKind::Status(400),
        ),
    ] {
        let (reply, _) = run(&[text("so far"), error.to_owned(), text("ignored"), STOP.to_owned()]);
        let failure = reply.error.unwrap();
        assert_eq!((failure.kind, failure.message.as_str()), (kind, "no luck"));
        assert_eq!(reply.stop, ReplyStop::Truncated);
        assert_eq!(text_of(&reply.parts), "so far");
    }
    let (reply, _) = run(&[text("a"), "{\"choices\":[{".to_owned()]);
    assert_eq!(reply.error.unwrap().kind, ErrorKind::Protocol);
}

fn fragment(index: u64, arguments: &str) -> Piece<'_> {
    Piece::Call(CallFragment {
        index: Some(index),
        id: None,
        name: Some("now".into()),
        arguments: Some(arguments.into()),
        signature: None,
    })
}

/// SPEC 12: neither text nor calls grow beyond their bounds.
#[test]
fn bounds() {
    let mut long = assembler();
    let mebibyte = "x".repeat(1 << 20);
    for _ in 0..100 {
        long.push(Piece::Text(mebibyte.as_str().into()), &mut Vec::new());
    }
    let reply = long.finish(Ending::Read);
    assert_eq!(reply.error.unwrap().kind, ErrorKind::TooLarge);
    assert!(text_of(&reply.parts).len() <= REPLY_BYTES_MAX);

    let mut many = assembler();
    (0..1000).for_each(|index| many.push(fragment(index, "{"), &mut Vec::new()));
    let reply = many.finish(Ending::Read);
    assert_eq!(reply.error.unwrap().kind, ErrorKind::TooLarge);
    assert_eq!(reply.parts.len(), CALLS_MAX);

    let mut big = assembler();
    (0..100).for_each(|_| big.push(fragment(0, &mebibyte), &mut Vec::new()));
    let reply = big.finish(Ending::Read);
    assert_eq!(reply.error.unwrap().kind, ErrorKind::TooLarge);

    let mut restless = assembler();
    for _ in 0..PARTS_MAX {
        restless.push(Piece::Text("a".into()), &mut Vec::new());
        restless.push(Piece::Thinking("b".into()), &mut Vec::new());
    }
    let reply = restless.finish(Ending::Read);
    assert_eq!(reply.parts.len(), PARTS_MAX);
    assert_eq!(text_of(&reply.parts).len(), PARTS_MAX);
}

/// SPEC 7.4: a reply held to one call ends where another begins, the first being whole; before that nothing is lost.
#[test]
fn held_to_one_call() {
    let push = |assembler: &mut Assembler, json: &str| {
        let payload = call(json);
        let event = sse::Event {
            name: Cow::Borrowed(""),
            data: Cow::Borrowed(&payload),
            id: Cow::Borrowed(""),
        };
        OpenaiChat
            .decoder()
            .event(&event, &mut |piece| assembler.push(piece, &mut Vec::new()))
            .unwrap();
    };
    let mut assembler = assembler().with_calls_max(1);
    push(
        &mut assembler,
        r#"{"index":0,"id":"a","function":{"name":"glob","arguments":"{\"p\""}}"#,
    );
    push(&mut assembler, r#"{"index":0,"function":{"arguments":":1}"}}"#);
    assert!(!assembler.has_enough());
    push(
        &mut assembler,
        r#"{"index":1,"id":"b","function":{"name":"now","arguments":"{"}}"#,
    );
    assert!(assembler.has_enough());
    push(
        &mut assembler,
        r#"{"index":2,"id":"c","function":{"name":"now","arguments":"{}"}}"#,
    );
    let reply = assembler.finish(Ending::Read);
    assert_eq!(reply.stop, ReplyStop::ToolCalls);
    assert_eq!(
        reply.calls.iter().map(readable).collect::<Vec<_>>(),
        ["glob({\"p\":1})#a"]
    );
}

/// SPEC 7.3: a first call that is not whole when another begins is waited for.
#[test]
fn held_to_one_call_that_is_not_whole() {
    let mut assembler = assembler().with_calls_max(1);
    let fragment = |index, name: Option<&'static str>, arguments: &'static str| CallFragment {
        index: Some(index),
        name: name.map(Cow::Borrowed),
        arguments: Some(Cow::Borrowed(arguments)),
        ..CallFragment::default()
    };
    for piece in [
        fragment(0, Some("glob"), "{"),
        fragment(1, Some("now"), "{}"),
        fragment(0, None, "}"),
    ] {
        assembler.push(Piece::Call(piece), &mut Vec::new());
    }
    assert!(!assembler.has_enough());
    assembler.push(Piece::Finish(Finish::ToolCalls), &mut Vec::new());
    assert_eq!(assembler.finish(Ending::Read).calls.len(), 2);
}
