//! What some providers put beside the text of a reply and want back with it.
//!
//! `reasoning_details` (OpenRouter) is the thinking of the model behind it in that model's own form: signed, encrypted or
//! plain. It comes in pieces, to be joined by `index`, and goes back whole and in order; without it, models that sign their
//! thinking refuse the results of their calls. Kept as one [`Part::Provider`](aish_core::message::Part::Provider) block of
//! this format: `{"reasoning_details":[…]}`.

use serde_json::{Map, Value};

/// The one field there is.
const FIELD: &str = "reasoning_details";

/// Details of one reply; more are dropped, and a reply that needed them is then refused rather than unbounded.
const DETAILS_MAX: usize = 256;

/// Bytes of all details together.
const DETAIL_BYTES_MAX: usize = 4 << 20;

/// Keys whose text comes in pieces.
const PIECED: &[&str] = &["text", "summary", "data", "signature"];

/// True where the block holds only what this format sends back.
pub(super) fn are_known(fields: &Map<String, Value>) -> bool {
    fields.len() == 1 && fields.get(FIELD).is_some_and(Value::is_array)
}

/// The details of one reply so far.
#[derive(Debug, Default)]
pub(super) struct Details {
    list: Vec<Map<String, Value>>,
    bytes: usize,
}

impl Details {
    /// Takes the details of one chunk.
    pub(super) fn take(&mut self, details: Vec<Map<String, Value>>) {
        for detail in details {
            self.bytes += detail.values().map(bytes_of).sum::<usize>();
            if self.bytes > DETAIL_BYTES_MAX {
                return;
            }
            let has_room = self.list.len() < DETAILS_MAX;
            match self.list.last_mut().filter(|last| continues(last, &detail)) {
                Some(last) => join(last, detail),
                None if has_room => self.list.push(detail),
                None => return,
            }
        }
    }

    /// The block they make, once; none where there were none, or too many to be true.
    pub(super) fn block(&mut self) -> Option<Value> {
        let list = std::mem::take(&mut self.list);
        if list.is_empty() || self.bytes > DETAIL_BYTES_MAX {
            return None;
        }
        let list = list.into_iter().map(Value::Object).collect();
        Some(Value::Object(Map::from_iter([(FIELD.to_owned(), Value::Array(list))])))
    }
}

fn bytes_of(value: &Value) -> usize {
    value.as_str().map_or_else(|| value.to_string().len(), str::len)
}

/// Whether a detail goes on with the last one: of the same kind and place, and not one that is whole by itself.
fn continues(last: &Map<String, Value>, next: &Map<String, Value>) -> bool {
    let same = |key| last.get(key) == next.get(key);
    same("type") && same("index") && (same("id") || !next.contains_key("id")) && !next.contains_key("data")
}

fn join(last: &mut Map<String, Value>, next: Map<String, Value>) {
    for (key, value) in next {
        match (last.get_mut(&key), value) {
            (Some(Value::String(text)), Value::String(more)) if PIECED.contains(&key.as_str()) => text.push_str(&more),
            (Some(_), Value::Null) => {}
            (_, value) => {
                last.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn block(chunks: &[Value]) -> Option<Value> {
        let mut details = Details::default();
        for chunk in chunks {
            let list = chunk.as_array().into_iter().flatten();
            details.take(list.filter_map(|detail| detail.as_object().cloned()).collect());
        }
        details.block()
    }

    /// SPEC 7.4, 2.4: details are joined by kind and index, in order, and what is encrypted stays whole.
    #[test]
    fn pieces_are_joined() {
        let text = |text: &str| json!({"type": "reasoning.text", "index": 0, "format": "f", "text": text});
        let got = block(&[
            json!([text("Two ")]),
            json!([text("cities.")]),
            json!([{"type": "reasoning.text", "index": 0, "signature": "c2ln", "text": null}]),
            json!([{"type": "reasoning.encrypted", "index": 1, "data": "AA"}]),
            json!([{"type": "reasoning.encrypted", "index": 1, "data": "BB"}]),
        ]);
        let expect = json!({"reasoning_details": [
            {"type": "reasoning.text", "index": 0, "format": "f", "text": "Two cities.", "signature": "c2ln"},
            {"type": "reasoning.encrypted", "index": 1, "data": "AA"},
            {"type": "reasoning.encrypted", "index": 1, "data": "BB"},
        ]});
        assert_eq!(got, Some(expect));
        assert_eq!(block(&[json!([])]), None);
    }

    /// SPEC 12: what a peer sends beyond all measure is not kept.
    #[test]
    fn bounds() {
        let huge = json!([{"type": "reasoning.encrypted", "data": "x".repeat(DETAIL_BYTES_MAX + 1)}]);
        assert_eq!(block(&[huge]), None);
        let many: Vec<Value> = (0..DETAILS_MAX + 9).map(|n| json!([{"index": n}])).collect();
        let kept = block(&many).unwrap_or_default();
        assert_eq!(kept["reasoning_details"].as_array().map(Vec::len), Some(DETAILS_MAX));
    }
}
