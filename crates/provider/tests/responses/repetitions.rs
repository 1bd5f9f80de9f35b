//! Any reply, said in any of the ways servers say it, is the same reply: random outputs, of which a random choice of the
//! format's repetitions is sent.

use super::*;
use aish_core::message::text_of;
use proptest::prelude::*;
use serde_json::json;

/// An item of a random output.
#[derive(Clone, Debug)]
enum Item {
    Reasoning(Vec<String>),
    Message(String),
    Call(String),
}

/// What of an item is sent beside its end, or beside the whole response.
#[derive(Clone, Copy, Debug)]
struct Ways {
    is_announced: bool,
    is_streamed: bool,
    is_part_ended: bool,
    is_ended: bool,
}

fn item() -> impl Strategy<Value = Item> {
    let text = "[a-z é\\n]{1,12}";
    prop_oneof![
        proptest::collection::vec(text, 1..3).prop_map(Item::Reasoning),
        text.prop_map(Item::Message),
        text.prop_map(Item::Call),
    ]
}

fn ways() -> impl Strategy<Value = Ways> {
    any::<[bool; 4]>().prop_map(|[is_announced, is_streamed, is_part_ended, is_ended]| Ways {
        is_announced,
        is_streamed,
        is_part_ended,
        is_ended,
    })
}

impl Item {
    fn wire(&self, nth: usize) -> Value {
        match self {
            Self::Reasoning(parts) => {
                let parts = parts.iter().map(|text| json!({"type": "summary_text", "text": text}));
                json!({"type": "reasoning", "id": format!("rs_{nth}"), "encrypted_content": format!("gAAA{nth}"),
                    "summary": parts.collect::<Vec<_>>()})
            }
            Self::Message(text) => json!({"type": "message", "id": format!("msg_{nth}"), "role": "assistant",
                "content": [{"type": "output_text", "text": text}]}),
            Self::Call(text) => json!({"type": "function_call", "id": format!("fc_{nth}"),
                "call_id": format!("call_{nth}"), "name": "weather__get", "arguments": arguments(text)}),
        }
    }

    /// The item as it is announced.
    fn begun(&self, nth: usize) -> Value {
        let mut wire = self.wire(nth);
        for (field, empty) in [("summary", json!([])), ("content", json!([])), ("arguments", json!(""))] {
            if let Some(value) = wire.get_mut(field) {
                *value = empty;
            }
        }
        wire.as_object_mut().unwrap().remove("encrypted_content");
        wire
    }

    /// Kind of event, field with the part's place, field with all of it, and the parts.
    fn parts(&self) -> (&'static str, &'static str, &'static str, Vec<String>) {
        match self {
            Self::Reasoning(parts) => ("reasoning_summary_text", "summary_index", "text", parts.clone()),
            Self::Message(text) => ("output_text", "content_index", "text", vec![text.clone()]),
            Self::Call(text) => (
                "function_call_arguments",
                "content_index",
                "arguments",
                vec![arguments(text)],
            ),
        }
    }

    fn events(&self, nth: usize, ways: Ways, out: &mut Vec<Value>) {
        let wire = self.wire(nth);
        if ways.is_announced {
            out.push(json!({"type": "response.output_item.added", "output_index": nth, "item": self.begun(nth)}));
        }
        let (kind, place, whole, parts) = self.parts();
        for (part, text) in parts.iter().enumerate() {
            let event = |what: &str, field: &str, text: &str| {
                json!({"type": format!("response.{kind}.{what}"), "output_index": nth, "item_id": wire["id"], place: part,
                    field: text})
            };
            if ways.is_streamed {
                let (head, tail) = text.split_at(text.char_indices().nth(1).map_or(text.len(), |(at, _)| at));
                out.extend([head, tail].map(|piece| event("delta", "delta", piece)));
            }
            if ways.is_part_ended {
                out.push(event("done", whole, text));
            }
        }
        if ways.is_ended {
            out.push(json!({"type": "response.output_item.done", "output_index": nth, "item": wire}));
        }
    }
}

fn arguments(text: &str) -> String {
    json!({ "city": text }).to_string()
}

proptest! {
    /// SPEC 7.4: whatever of its repetitions a server sends, nothing is missing and nothing is there twice.
    #[test]
    fn any_repetition(items in proptest::collection::vec((item(), ways()), 0..6)) {
        let mut events = Vec::new();
        let mut output = Vec::new();
        for (nth, (item, ways)) in items.iter().enumerate() {
            item.events(nth, *ways, &mut events);
            output.push(item.wire(nth));
        }
        let response = json!({"status": "completed", "output": output});
        events.push(json!({"type": "response.completed", "response": response}));
        let whole = decode_body(&response.to_string());
        let reply = decode_whole(&stream_of(&events));
        prop_assert_eq!(reply.stop, whole.stop);
        // What is told late comes late, and so do the calls among it.
        let sorted = |reply: &Reply| {
            let mut calls: Vec<_> = reply.calls.iter().map(|call| (call.provider_id.clone(), call.arguments.clone())).collect();
            calls.sort();
            calls
        };
        prop_assert_eq!(sorted(&reply), sorted(&whole));
        let bytes = |text: String| {
            let mut bytes = text.into_bytes();
            bytes.sort_unstable();
            bytes
        };
        prop_assert_eq!(bytes(text_of(&reply.parts)), bytes(text_of(&whole.parts)));
        prop_assert_eq!(bytes(thinking(&reply)), bytes(thinking(&whole)));
        if items.iter().all(|(_, ways)| ways.is_ended) {
            prop_assert_eq!(&reply.calls, &whole.calls);
            prop_assert_eq!(&reply.parts, &whole.parts);
        }
    }

    /// SPEC 12: no sequence of payloads makes the decoder panic, whatever stands in their fields.
    #[test]
    fn any_payload(payloads in proptest::collection::vec(payload(), 0..20)) {
        let reply = decode_whole(&stream_of(&payloads));
        prop_assert!(reply.error.is_none());
    }
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<u64>().prop_map(Value::from),
        "[a-c]{0,2}".prop_map(Value::from),
        prop_oneof![
            Just("message"),
            Just("reasoning"),
            Just("function_call"),
            Just("{\"a\":"),
            Just("{}")
        ]
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 12, 4, |inner| {
        let names = prop_oneof![
            Just("type"),
            Just("id"),
            Just("call_id"),
            Just("name"),
            Just("arguments"),
            Just("content"),
            Just("summary"),
            Just("text"),
            Just("encrypted_content"),
            Just("output"),
        ];
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::btree_map(names.prop_map(str::to_owned), inner, 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn payload() -> impl Strategy<Value = Value> {
    let kinds = prop_oneof![
        Just("output_item.added"),
        Just("output_item.done"),
        Just("output_text.delta"),
        Just("output_text.done"),
        Just("reasoning_text.delta"),
        Just("function_call_arguments.delta"),
        Just("function_call_arguments.done"),
        Just("content_part.done"),
        Just("completed"),
        Just("incomplete"),
    ];
    let fields = prop_oneof![
        Just("item"),
        Just("part"),
        Just("delta"),
        Just("text"),
        Just("arguments"),
        Just("output_index"),
        Just("item_id"),
        Just("response"),
        Just("content_index"),
    ];
    (
        kinds,
        proptest::collection::btree_map(fields.prop_map(str::to_owned), value(), 0..6),
    )
        .prop_map(|(kind, fields)| {
            let mut payload: serde_json::Map<String, Value> = fields.into_iter().collect();
            payload.insert("type".to_owned(), Value::from(format!("response.{kind}")));
            Value::Object(payload)
        })
}
