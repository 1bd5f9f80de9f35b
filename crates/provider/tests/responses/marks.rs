//! Streams whose items are marked wrongly: which item is meant must be found out all the same.

use super::*;
use aish_core::message::text_of;
use aish_provider::ErrorKind;
use serde_json::json;

const PARIS: &str = "{\"city\":\"Paris\"}";
const ROME: &str = "{\"city\":\"Rome\"}";

fn completed() -> Value {
    json!({"type": "response.completed", "response": {"status": "completed", "output": []}})
}

/// The marks of an event: the item's id, the call's, the place.
type Marks = [Value; 3];

/// Which marks an event has, given its call (0 or 1) and how many events of that call came before.
type Marker<'m> = &'m dyn Fn(usize, usize) -> Marks;

/// An event about an item.
fn of_item(kind: &str, [id, call_id, index]: Marks, arguments: &str) -> Value {
    json!({"type": kind, "output_index": index, "item": {"type": "function_call", "id": id, "call_id": call_id,
        "name": "weather__get", "arguments": arguments}})
}

/// An event about a fragment.
fn of_fragment([id, call_id, index]: Marks, delta: &str) -> Value {
    json!({"type": "response.function_call_arguments.delta", "output_index": index, "item_id": id, "call_id": call_id,
        "delta": delta})
}

/// Two calls, their fragments interleaved, the second over before the first.
fn two_calls(marks: Marker<'_>) -> String {
    stream_of(&[
        of_item("response.output_item.added", marks(0, 0), ""),
        of_item("response.output_item.added", marks(1, 0), ""),
        of_fragment(marks(0, 1), "{\"city\":"),
        of_fragment(marks(1, 1), "{\"city\":"),
        of_fragment(marks(0, 2), "\"Paris\"}"),
        of_fragment(marks(1, 2), "\"Rome\"}"),
        of_item("response.output_item.done", marks(1, 3), ROME),
        of_item("response.output_item.done", marks(0, 3), PARIS),
        completed(),
    ])
}

/// SPEC 7.4: any mark that is right is enough.
#[test]
fn one_right_mark_is_enough() {
    let id = |nth: usize| json!(format!("fc_{nth}"));
    let call_id = |nth: usize| json!(format!("call_{nth}"));
    let ways: [(&str, Marker<'_>); 6] = [
        // https://github.com/BerriAI/litellm/issues/30071
        ("another id in each event", &|nth, before| {
            [json!(format!("{nth}{before}").repeat(200)), Value::Null, json!(nth)]
        }),
        // As llama.cpp writes it, see the recordings.
        ("no places", &|nth, _| [id(nth), call_id(nth), Value::Null]),
        // https://github.com/BerriAI/litellm/pull/36375
        ("one place for all", &|nth, _| [id(nth), call_id(nth), json!(0)]),
        ("one id for all", &|nth, _| [json!("fc_0"), call_id(nth), json!(nth)]),
        ("places from one", &|nth, _| [Value::Null, json!(""), json!(nth + 1)]),
        // https://github.com/lidge-jun/opencodex/pull/1361
        ("the call's id only", &|nth, _| [Value::Null, call_id(nth), Value::Null]),
    ];
    for (what, marks) in ways {
        let reply = decode_whole(&two_calls(marks));
        assert_eq!(calls(&reply), [("weather.get", PARIS), ("weather.get", ROME)], "{what}");
    }
}

/// SPEC 7.4: one call, nothing marked at all.
#[test]
fn no_marks() {
    let item = |arguments: &str| json!({"type": "function_call", "name": "weather__get", "arguments": arguments});
    let one = |text: &str| {
        [
            json!({"type": "response.output_item.added", "item": item("")}),
            json!({"type": "response.function_call_arguments.delta", "delta": text}),
            json!({"type": "response.function_call_arguments.done", "arguments": text}),
            json!({"type": "response.output_item.done", "item": item(text)}),
        ]
    };
    let reply = decode_whole(&stream_of(&[&one(PARIS)[..], &one(ROME), &[completed()]].concat()));
    assert_eq!(calls(&reply), [("weather.get", PARIS), ("weather.get", ROME)]);
}

/// SPEC 7.4: the whole response has other ids than the stream had; <https://github.com/vllm-project/vllm/pull/47916>. The
/// call is the same one, and keeps the id it was announced with.
#[test]
fn other_ids_in_the_whole_response() {
    let item = |id: &str, arguments: &str| {
        json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": format!("call_{id}"), "name": "weather__get",
            "arguments": arguments})
    };
    let text = |id: &str| {
        json!({"type": "message", "id": format!("msg_{id}"), "role": "assistant",
            "content": [{"type": "output_text", "text": "Hi."}]})
    };
    let stream = stream_of(&[
        json!({"type": "response.output_text.delta", "item_id": "msg_a", "output_index": 0, "delta": "Hi."}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": text("a")}),
        json!({"type": "response.output_item.added", "output_index": 1, "item": item("a", "")}),
        json!({"type": "response.function_call_arguments.delta", "item_id": "fc_a", "output_index": 1, "delta": PARIS}),
        json!({"type": "response.output_item.done", "output_index": 1, "item": item("b", PARIS)}),
        json!({"type": "response.completed", "response": {"status": "completed",
            "output": [text("b"), item("c", "{\"city\": \"Paris\"}")]}}),
    ]);
    let reply = decode_whole(&stream);
    assert_eq!(calls(&reply), [("weather.get", PARIS)]);
    assert_eq!(reply.calls[0].provider_id.as_deref(), Some("call_a"));
    assert_eq!(reply.parts, [Part::text("Hi.")]);
}

/// SPEC 7.4: text and thinking of items that nobody announced, each delta with an id of its own;
/// <https://github.com/BerriAI/litellm/pull/36375>.
#[test]
fn items_nobody_announced() {
    let delta = |kind: &str, nth: usize, text: &str| json!({"type": format!("response.{kind}.delta"), "item_id": format!("{kind}_{nth}"), "delta": text});
    let deltas: Vec<Value> = (0..3000)
        .map(|nth| delta("reasoning_summary_text", nth, "hm "))
        .collect();
    let texts: Vec<Value> = (0..3000).map(|nth| delta("output_text", nth, "so ")).collect();
    let reply = decode_whole(&stream_of(&[deltas, texts, vec![completed()]].concat()));
    assert_eq!(thinking(&reply), "hm ".repeat(3000));
    assert_eq!(text_of(&reply.parts), "so ".repeat(3000));
    assert_eq!((reply.parts.len(), reply.error), (2, None));
}

/// SPEC 12: a peer's items are bounded, and a place of 10^18 costs nothing.
#[test]
fn items_are_bounded() {
    let message =
        |index: u64| json!({"type": "response.output_item.added", "output_index": index, "item": {"type": "message"}});
    let far: Vec<Value> = (0..100).map(|nth| message(1_000_000_000_000_000_000 + nth)).collect();
    assert_eq!(decode_whole(&stream_of(&far)).error, None);
    let mut decoder = OpenaiResponses.decoder();
    let mut failed = None;
    for index in 0..5000 {
        let event = sse::Event {
            name: "".into(),
            data: message(index).to_string().into(),
            id: "".into(),
        };
        if let Err(error) = decoder.event(&event, &mut |_| {}) {
            failed = Some((index, error.kind));
            break;
        }
    }
    assert_eq!(failed, Some((1024, ErrorKind::TooLarge)));
}

/// SPEC 7.2: messages of one reply stay apart, and so do their places among its calls.
#[test]
fn several_messages() {
    let text = |id: &str, text: &str| json!({"type": "response.output_text.delta", "item_id": id, "output_index": 0, "delta": text});
    let added = |index: u64, id: &str, kind: &str| {
        json!({"type": "response.output_item.added", "output_index": index,
            "item": {"type": kind, "id": id, "call_id": id, "name": "weather__get"}})
    };
    let stream = stream_of(&[
        added(0, "msg_1", "message"),
        text("msg_1", "I look."),
        added(1, "fc_1", "function_call"),
        json!({"type": "response.function_call_arguments.done", "item_id": "fc_1", "output_index": 1, "arguments": PARIS}),
        added(2, "msg_2", "message"),
        text("msg_2", "Mean"),
        text("msg_2", "while."),
        added(3, "msg_3", "message"),
        text("msg_3", "Bye."),
        completed(),
    ]);
    let reply = decode_whole(&stream);
    let place = Part::Call {
        index: 0,
        signature: None,
    };
    let parts = [
        Part::text("I look."),
        place,
        Part::text("Meanwhile."),
        Part::text("Bye."),
    ];
    assert_eq!(reply.parts, parts);
}
