//! What a server asks of the person, answered: the same in both eras, be it a request of its own or a part of a result.

use super::session::Session;
use crate::host::{Question, Reply};
use rmcp::model::ErrorCode;
use serde_json::{Value, json};

/// What the protocol has for "the person said no" where a model was asked for (the example of its chapter on sampling).
const DECLINED_CODE: i32 = -1;

/// Why there is no answer, as a JSON-RPC error.
pub(super) struct Refusal {
    pub(super) code: ErrorCode,
    pub(super) message: String,
}

impl Refusal {
    pub(super) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

/// Answers `elicitation/create` and `sampling/createMessage`; there is nothing else that a server may ask.
///
/// Ends with the connection: an open question of a server that is gone is withdrawn.
pub(super) async fn answer(session: &Session, method: &str, params: Value) -> Result<Value, Refusal> {
    let Some(_open) = session.open_question() else {
        return Err(Refusal::new(ErrorCode::INTERNAL_ERROR, "too many questions at once"));
    };
    tokio::select! {
        answer = by_the_person(session, method, params) => answer,
        _ = session.ended() => Err(Refusal::new(ErrorCode::INTERNAL_ERROR, "the connection ended")),
    }
}

/// Asks the person in the name of a request that was refused; `None` where that is not possible any more.
pub(super) async fn page(session: &Session, params: Value) -> Option<Reply> {
    let _open = session.open_question()?;
    let question = Question::read(params).ok()?;
    let Question::Url { id, .. } = question.clone() else {
        return None;
    };
    let reply = tokio::select! {
        reply = session.host.ask(&session.alias, question) => reply,
        _ = session.ended() => return None,
    };
    if matches!(reply, Reply::Accepted(_)) {
        session.page_opened(&id);
    }
    Some(reply)
}

async fn by_the_person(session: &Session, method: &str, params: Value) -> Result<Value, Refusal> {
    match method {
        "elicitation/create" => {
            let question =
                Question::read(params).map_err(|missing| Refusal::new(ErrorCode::INVALID_PARAMS, missing))?;
            Ok(elicit(session, question).await)
        }
        "sampling/createMessage" => {
            let sampled = session.host.sample(&session.alias, params).await;
            sampled.map_err(|reason| Refusal::new(ErrorCode(DECLINED_CODE), reason))
        }
        other => Err(Refusal::new(ErrorCode::METHOD_NOT_FOUND, other)),
    }
}

/// Asks, and gives the result of `elicitation/create`: an accepted page has no content; an accepted form has, even where nothing
/// is in it.
async fn elicit(session: &Session, question: Question) -> Value {
    let page = match &question {
        Question::Form { .. } => None,
        Question::Url { id, .. } => Some(id.clone()),
    };
    match (session.host.ask(&session.alias, question).await, page) {
        (Reply::Accepted(_), Some(page)) => {
            session.page_opened(&page);
            json!({ "action": "accept" })
        }
        (Reply::Accepted(values), None) => json!({ "action": "accept", "content": values }),
        (Reply::Declined | Reply::Unanswered(_), _) => json!({ "action": "decline" }),
        (Reply::Dismissed, _) => json!({ "action": "cancel" }),
    }
}
