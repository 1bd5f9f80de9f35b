//! What servers ask and what they are answered, as the ledger keeps it and as status lines say it (SPEC 2.4, 6.9).
//!
//! The values of a form are kept: they left this machine, as the arguments of a call do, and the ledger is the record of
//! that. The value of a field that seems to ask for a secret is not, since no later reader has any use for it.

use super::desk::{Answer, Given, Matter};
use aish_core::event::{Body, ServerAnswered, ServerAsked, ServerOutcome, ServerWants};
use aish_core::id::CallId;
use aish_core::sanitize;
use aish_mcp::host::{Question, SAMPLING_LINE};
use serde_json::{Value, json};

/// Bytes of a question that are kept as they came; of a larger one only its beginning is, as text.
const ASKED_BYTES_MAX: usize = 64 * 1024;
/// Characters of a problem that are told.
const PROBLEM_CHARS_MAX: usize = 300;
/// What is kept in the place of a value that is not.
const NOT_KEPT: &str = "[not kept]";

/// Makes the body of an event, told which call it belongs to.
pub(super) type MakeBody = Box<dyn Fn(Option<CallId>) -> Body + Send + Sync>;

/// The event of a question.
pub(super) fn of_question(question: u64, server: &str, matter: &Matter) -> (String, MakeBody) {
    let (wants, asked) = match matter {
        Matter::Elicit(Question::Form { message, schema }) => (
            ServerWants::Form,
            json!({ "message": message, "requestedSchema": schema }),
        ),
        Matter::Elicit(Question::Url { message, url, id }) => (
            ServerWants::Url,
            json!({ "message": message, "url": url, "elicitationId": id }),
        ),
        Matter::Sample(params) => (ServerWants::Sampling, params.clone()),
    };
    let data = ServerAsked {
        question,
        server: server.to_owned(),
        call_id: None,
        wants,
        asked: bounded(asked),
    };
    let body = move |call_id| {
        Body::ServerAsked(ServerAsked {
            call_id,
            ..data.clone()
        })
    };
    (format!("{server} asks: {}", line(matter)), Box::new(body))
}

/// The event of an answer.
pub(super) fn of_answer(question: u64, server: &str, answer: &Answer) -> (String, MakeBody) {
    let (outcome, word) = match answer {
        Answer::Given(_) => (ServerOutcome::Accepted, "answered"),
        Answer::Declined | Answer::Nobody | Answer::Untimely | Answer::Crowded | Answer::Late => {
            (ServerOutcome::Declined, "declined")
        }
        Answer::Dismissed | Answer::Over | Answer::Withdrawn => (ServerOutcome::Dismissed, "dismissed"),
        Answer::Failed(_) => (ServerOutcome::Failed, "not answered"),
    };
    let (sent, usage) = match answer {
        Answer::Given(given) => (bounded(kept(given)), given.usage.clone()),
        Answer::Declined
        | Answer::Nobody
        | Answer::Untimely
        | Answer::Crowded
        | Answer::Over
        | Answer::Withdrawn
        | Answer::Late
        | Answer::Dismissed
        | Answer::Failed(_) => (Value::Null, None),
    };
    let data = ServerAnswered {
        question,
        server: server.to_owned(),
        call_id: None,
        outcome,
        sent,
        reason: why_not(answer),
        usage,
    };
    let body = move |call_id| {
        Body::ServerAnswered(ServerAnswered {
            call_id,
            ..data.clone()
        })
    };
    (format!("{server}: {word}"), Box::new(body))
}

/// A question as one safe line, without who asks.
pub(super) fn line(matter: &Matter) -> String {
    match matter {
        Matter::Elicit(question) => question.line(),
        Matter::Sample(_) => SAMPLING_LINE.to_owned(),
    }
}

/// Why a question was not answered, where the person did not say so themselves.
pub(super) fn why_not(answer: &Answer) -> Option<String> {
    match answer {
        Answer::Given(_) | Answer::Declined | Answer::Dismissed => None,
        Answer::Nobody => Some("nobody is here to answer, declined".to_owned()),
        Answer::Untimely => Some("it came while nothing was asked of it, declined".to_owned()),
        Answer::Crowded => Some("too many others wait, declined".to_owned()),
        Answer::Over => Some("its call is over, dismissed".to_owned()),
        Answer::Withdrawn => Some("the server took it back".to_owned()),
        Answer::Late => Some("no answer came in time, declined".to_owned()),
        Answer::Failed(problem) => Some(format!("{problem}; declined")),
    }
}

/// A problem as one safe line, for the person and for the server.
pub(super) fn shortened(problem: &str) -> String {
    sanitize::single_line(problem).chars().take(PROBLEM_CHARS_MAX).collect()
}

fn kept(given: &Given) -> Value {
    let members = given.members.iter().map(|(name, value)| {
        let value = if given.unkept.contains(name) {
            json!(NOT_KEPT)
        } else {
            value.clone()
        };
        (name.clone(), value)
    });
    Value::Object(members.collect())
}

fn bounded(value: Value) -> Value {
    let text = value.to_string();
    if text.len() <= ASKED_BYTES_MAX {
        return value;
    }
    let mut end = ASKED_BYTES_MAX;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    json!({ "cut": text.get(..end).unwrap_or_default() })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use serde_json::Map;

    /// SPEC 6.9, 10.5: what was sent is kept, but for what seems to be a secret.
    #[test]
    fn secrets_typed_into_a_form_are_not_kept() {
        let given = Given {
            members: Map::from_iter([("name".to_owned(), json!("x")), ("token".to_owned(), json!("hunter22"))]),
            unkept: vec!["token".to_owned()],
            usage: None,
        };
        let (_, body) = of_answer(1, "one", &Answer::Given(given));
        let Body::ServerAnswered(data) = body(None) else {
            panic!("another event");
        };
        assert_eq!(data.sent, json!({ "name": "x", "token": NOT_KEPT }));
    }

    /// SPEC 6.9: what a server asks is bounded in the ledger, and one safe line in a status.
    #[test]
    fn questions_are_bounded() {
        let message = "\u{1b}[2J\n".to_owned() + &"é".repeat(ASKED_BYTES_MAX);
        let matter = Matter::Elicit(Question::Form {
            message,
            schema: json!({}),
        });
        let line = line(&matter);
        assert!(line.starts_with("\\x1b[2J\\n") && line.ends_with('…') && line.chars().count() < 300);
        let (_, body) = of_question(7, "one", &matter);
        let Body::ServerAsked(data) = body(Some(CallId::nth(1, 2))) else {
            panic!("another event");
        };
        assert!(data.asked["cut"].as_str().unwrap().len() <= ASKED_BYTES_MAX);
        assert_eq!((data.question, data.call_id), (7, Some(CallId::nth(1, 2))));
    }
}
