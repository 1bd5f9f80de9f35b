//! What a server wants to know before it goes on with a request (2026-07-28, a result of `resultType` `input_required`).
//!
//! The server holds nothing open meanwhile: the questions and the state that it gave along are all that is needed to go on with
//! the very same request, over another connection and in another process. So they can be kept while nobody is here (SPEC 6.9).

use crate::host::{Question, SAMPLING_LINE};
use crate::{ErrorKind, McpError};
use serde_json::{Map, Value, json};

/// Questions of one result.
pub(crate) const INPUTS_MAX: usize = 8;
/// Bytes of questions and state, as JSON, that are kept: what is larger cannot wait, and is asked now or declined.
pub const KEPT_BYTES_MAX: usize = 64 * 1024;

/// What a server asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InputRequired {
    /// The questions, by the keys that their answers will have: a method and its parameters each.
    pub(crate) requests: Map<String, Value>,
    /// What the server is given back unchanged.
    pub(crate) state: Option<Value>,
}

impl InputRequired {
    /// Reads a result, if it asks.
    pub(crate) fn of(result: &mut Value) -> Option<Self> {
        if result.get("resultType").and_then(Value::as_str) != Some("input_required") {
            return None;
        }
        Some(Self::taken(result))
    }

    /// Reads what [`InputRequired::kept`] gave; nothing where it is not that.
    pub fn read(kept: &Value) -> Option<Self> {
        let read = Self::taken(&mut kept.clone());
        (!read.requests.is_empty()).then_some(read)
    }

    /// As JSON, in the words of the protocol: `{"inputRequests":{…},"requestState":…}`.
    pub fn kept(&self) -> Value {
        let mut kept = json!({ "inputRequests": self.requests });
        if let (Some(map), Some(state)) = (kept.as_object_mut(), &self.state) {
            map.insert("requestState".to_owned(), state.clone());
        }
        kept
    }

    /// A line for each question that is for a person, escaped and bounded.
    pub fn lines(&self) -> Vec<String> {
        self.requests.values().filter_map(line).flatten().collect()
    }

    /// True where it can be kept until somebody is here: it has questions for a person, all of them understood, and is small
    /// enough.
    pub(crate) fn can_wait(&self) -> bool {
        let lines: Option<Vec<Option<String>>> = self.requests.values().map(line).collect();
        lines.is_some_and(|lines| lines.iter().any(Option::is_some))
            && self.requests.len() <= INPUTS_MAX
            && self.kept().to_string().len() <= KEPT_BYTES_MAX
    }

    /// The failure of a request that has to wait for its answers.
    pub(crate) fn unanswered(self) -> McpError {
        let message = "it asks something of the user, and nobody is here to answer";
        McpError::new(ErrorKind::InputRequired(Box::new(self)), message)
    }

    fn taken(result: &mut Value) -> Self {
        let requests = match result.get_mut("inputRequests").map(Value::take) {
            Some(Value::Object(requests)) => requests,
            Some(_) | None => Map::new(),
        };
        Self {
            requests,
            state: result.get_mut("requestState").map(Value::take),
        }
    }
}

/// A question in one line; `None` in it for what no person is asked, `None` for one that is not understood.
fn line(request: &Value) -> Option<Option<String>> {
    let params = request.get("params").cloned().unwrap_or_default();
    match request.get("method").and_then(Value::as_str)? {
        "elicitation/create" => Question::read(params).ok().map(|question| Some(question.line())),
        "sampling/createMessage" => Some(Some(SAMPLING_LINE.to_owned())),
        "roots/list" => Some(None),
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn form(message: &str) -> Value {
        let params = json!({ "mode": "form", "message": message, "requestedSchema": { "type": "object" } });
        json!({ "method": "elicitation/create", "params": params })
    }

    fn asked(requests: Value, state: Value) -> InputRequired {
        let mut result = json!({ "resultType": "input_required", "inputRequests": requests, "requestState": state });
        InputRequired::of(&mut result).unwrap()
    }

    /// SPEC 6.9: what is kept of a question is all there is to it, and comes back as it was.
    #[test]
    fn kept_and_read() {
        let it = asked(json!({ "q": form("Which?") }), json!({ "sealed": [1, 2] }));
        assert_eq!(InputRequired::read(&it.kept()), Some(it.clone()));
        assert_eq!(it.lines(), ["Which?"]);
        assert!(it.can_wait());
        assert_eq!(InputRequired::read(&json!({})), None);
        assert_eq!(InputRequired::of(&mut json!({ "resultType": "complete" })), None);
    }

    /// SPEC 6.9, 12: what no person is asked, what is not understood and what is too large does not wait; lines are safe.
    #[test]
    fn what_cannot_wait() {
        let check = |requests: Value, state: &str| asked(requests, json!(state)).can_wait();
        let roots = json!({ "method": "roots/list" });
        assert!(!check(json!({}), ""));
        assert!(!check(json!({ "r": roots }), ""));
        assert!(check(json!({ "r": roots, "q": form("?") }), ""));
        assert!(!check(json!({ "q": form("?"), "x": { "method": "evil/one" } }), ""));
        assert!(!check(json!({ "q": form("?"), "x": 3 }), ""));
        assert!(!check(json!({ "q": form("?") }), &"x".repeat(KEPT_BYTES_MAX)));
        let many: Map<String, Value> = (0..=INPUTS_MAX).map(|n| (n.to_string(), form("?"))).collect();
        assert!(!check(Value::Object(many), ""));
        let lines = asked(json!({ "q": form(&"\u{1b}[2J".repeat(9_999)) }), Value::Null).lines();
        assert!(
            lines.iter().all(|line| !line.contains('\u{1b}') && line.len() < 2_000),
            "{lines:?}"
        );
    }
}
