//! What a body or an event says: JSON-RPC messages, repaired where servers are known to be careless, matched with the request.

use crate::wire::{VALUES_MAX, count_values, raw};
use rmcp::model::{RequestId, ServerJsonRpcMessage};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Characters of a server's text that an error quotes.
const EXCERPT_CHARS_MAX: usize = 100;
/// JSON-RPC's code for an error without one of its own.
const INTERNAL_ERROR: i64 = -32603;

/// One message, as it came and as the SDK reads it.
#[derive(Debug)]
pub(super) struct Message {
    /// The repaired JSON.
    pub(super) value: Value,
    /// The same, read.
    pub(super) parsed: ServerJsonRpcMessage,
}

/// What a message is to whoever waits for an answer.
#[derive(Debug)]
pub(super) enum Piece {
    /// The answer to the request.
    Answer(Message),
    /// An answer, where no request of ours is known to be the one: the SDK finds it by its id.
    SomeAnswer(Message),
    /// A request or a notification of the server.
    Aside(Message),
    /// Nothing that can be used, and why.
    Nonsense(String),
}

/// Reads a text as messages: one, or an array of them (a batch of 2025-03-26).
///
/// # Errors
/// It is no JSON, or has too many values; in words.
pub(super) fn messages(text: &str) -> Result<Vec<Value>, String> {
    let text = text.trim_start_matches('\u{feff}');
    if count_values(text.as_bytes()) > VALUES_MAX {
        return Err(format!("it has more than {VALUES_MAX} values"));
    }
    match serde_json::from_str(text) {
        Ok(Value::Array(messages)) => Ok(messages),
        Ok(message) => Ok(vec![message]),
        Err(_) => Err(format!("it is no JSON: {}", excerpt(text))),
    }
}

/// What a message is, for whoever waits for the answer to `request`; `None` on streams that belong to no request.
pub(super) fn piece(value: Value, request: Option<&RequestId>) -> Piece {
    let Value::Object(mut message) = value else {
        return Piece::Nonsense(format!("it is no message: {}", excerpt(&value.to_string())));
    };
    message.insert("jsonrpc".to_owned(), Value::from("2.0"));
    let is_aside = message.get("method").is_some_and(Value::is_string);
    let mut is_ours = false;
    if !is_aside {
        repair_outcome(&mut message);
        if !message.contains_key("result") && !message.contains_key("error") {
            return Piece::Nonsense(format!(
                "it is no message: {}",
                excerpt(&Value::Object(message).to_string())
            ));
        }
        if let Some(request) = request {
            if !is_answer_to(&message, request) {
                let id = message.get("id").map_or_else(|| "none".to_owned(), Value::to_string);
                return Piece::Nonsense(format!("it answers another request ({})", excerpt(&id)));
            }
            message.insert("id".to_owned(), request.clone().into_json_value());
            is_ours = true;
        }
    }
    let value = raw::keep(Value::Object(message));
    match ServerJsonRpcMessage::deserialize(&value) {
        Ok(parsed) => {
            let message = Message { value, parsed };
            match (is_aside, is_ours) {
                (true, _) => Piece::Aside(message),
                (false, true) => Piece::Answer(message),
                (false, false) => Piece::SomeAnswer(message),
            }
        }
        Err(_) => Piece::Nonsense(format!("it is no message: {}", excerpt(&value.to_string()))),
    }
}

/// Ids are the same when they are equal, or when a server made the number a text; an error may have none, because a server that
/// could not read the request did not know it.
fn is_answer_to(message: &Map<String, Value>, request: &RequestId) -> bool {
    match message.get("id") {
        None | Some(Value::Null) => message.contains_key("error"),
        Some(Value::String(id)) => *id == request.to_string(),
        Some(id) => *id == request.clone().into_json_value(),
    }
}

/// Of `result` and `error` one is left: an `error` of null is none. An error gets the form that JSON-RPC asks for.
fn repair_outcome(message: &mut Map<String, Value>) {
    match message.remove("error") {
        None | Some(Value::Null) => {}
        Some(error) => {
            let code = error.get("code").and_then(Value::as_i64);
            let code = code
                .filter(|code| i32::try_from(*code).is_ok())
                .unwrap_or(INTERNAL_ERROR);
            let text = match error.get("message") {
                Some(Value::String(text)) => text.clone(),
                Some(other) => other.to_string(),
                None => error.as_str().unwrap_or("an error without a message").to_owned(),
            };
            let mut repaired = json!({ "code": code, "message": text });
            if let (Some(repaired), Some(data)) = (repaired.as_object_mut(), error.get("data")) {
                repaired.insert("data".to_owned(), data.clone());
            }
            message.remove("result");
            message.insert("error".to_owned(), repaired);
        }
    }
}

/// The beginning of a server's text, on one line.
pub(crate) fn excerpt(text: &str) -> String {
    let mut words = String::new();
    for word in text.split_whitespace() {
        if !words.is_empty() {
            words.push(' ');
        }
        words.extend(word.chars().take(EXCERPT_CHARS_MAX + 1));
        if words.chars().count() > EXCERPT_CHARS_MAX {
            let mut cut: String = words.chars().take(EXCERPT_CHARS_MAX).collect();
            cut.push('…');
            return cut;
        }
    }
    words
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;

    const OURS: RequestId = RequestId::Number(3);

    fn answer(text: &str) -> Value {
        let value = messages(text).unwrap().pop().unwrap();
        match piece(value, Some(&OURS)) {
            Piece::Answer(message) => message.value,
            other @ (Piece::SomeAnswer(_) | Piece::Aside(_) | Piece::Nonsense(_)) => panic!("{text}: {other:?}"),
        }
    }

    /// SPEC 6.2: careless answers are understood.
    #[test]
    fn repairs() {
        let whole = crate::wire::raw::keep(json!({"jsonrpc": "2.0", "id": 3, "result": {"a": 1}}));
        for text in [
            r#"{"jsonrpc":"2.0","id":3,"result":{"a":1}}"#,
            r#"{"id":3,"result":{"a":1}}"#,
            r#"{"jsonrpc":"1.0","id":"3","result":{"a":1},"error":null}"#,
            "\u{feff}[{\"id\":3,\"result\":{\"a\":1}}]",
        ] {
            assert_eq!(answer(text), whole, "{text}");
        }
        for (text, code, words) in [
            (r#"{"id":null,"error":{"code":-32000,"message":"no"}}"#, -32000, "no"),
            (r#"{"error":"broken"}"#, INTERNAL_ERROR, "broken"),
            (
                r#"{"id":3,"result":null,"error":{"code":99999999999,"message":7}}"#,
                INTERNAL_ERROR,
                "7",
            ),
        ] {
            let error = json!({"jsonrpc": "2.0", "id": 3, "error": {"code": code, "message": words}});
            assert_eq!(answer(text), error, "{text}");
        }
    }

    /// SPEC 6.6: what is no answer to the request is not taken for one.
    #[test]
    fn nonsense() {
        for text in [
            r#"{"id":4,"result":{}}"#,
            r#"{"id":"x","result":{}}"#,
            r#"{"result":{}}"#,
            r#"{"id":[[1]],"error":{}}"#,
            "{}",
            "7",
            "\"x\"",
        ] {
            let value = messages(text).unwrap().pop().unwrap();
            assert!(matches!(piece(value, Some(&OURS)), Piece::Nonsense(_)), "{text}");
        }
        for text in ["", "<html>", "{", "nul"] {
            assert!(messages(text).is_err(), "{text}");
        }
    }

    /// SPEC 12: a text whose values would be far larger in memory than its bytes is not read.
    #[test]
    fn dense_texts() {
        let dense = format!("[{}0]", "0,".repeat(VALUES_MAX));
        assert!(messages(&dense).unwrap_err().contains("values"));
        let text = format!("{{\"id\":3,\"result\":{{\"t\":\"{}\"}}}}", ",[{\\\"".repeat(VALUES_MAX));
        assert_eq!(messages(&text).unwrap().len(), 1);
        let deep = "[".repeat(10_000);
        assert!(messages(&deep).is_err());
    }

    /// An excerpt is short and stays on its line.
    #[test]
    fn excerpts() {
        assert_eq!(excerpt(" a\n\tb "), "a b");
        assert_eq!(excerpt(&"ä".repeat(1000)).chars().count(), EXCERPT_CHARS_MAX + 1);
    }
}
