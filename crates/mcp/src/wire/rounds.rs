//! Requests that need several rounds (2026-07-28): a result that asks is answered by the same request again, with the
//! answers and the state that the server gave along, unchanged.

use super::answer::answer;
use super::call;
use super::session::Session;
use crate::asked::{INPUTS_MAX, InputRequired};
use crate::peer::Watch;
use crate::{ErrorKind, McpError};
use rmcp::RoleClient;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Rounds of one request.
const ROUNDS_MAX: usize = 10;
/// The one request that can be left waiting: whoever makes another one wants its result now.
const CAN_WAIT: &str = "tools/call";

/// Asks until the result is complete.
pub(super) async fn complete(
    session: &Arc<Session>,
    peer: &rmcp::Peer<RoleClient>,
    (method, mut params): (&str, Map<String, Value>),
    patience: Duration,
    watch: Option<Watch>,
) -> Result<Value, McpError> {
    for _ in 0..ROUNDS_MAX {
        let mut result = call::once(session, peer, (method, params.clone()), patience, watch.clone()).await?;
        let Some(required) = InputRequired::of(&mut result) else {
            return Ok(result);
        };
        if method == CAN_WAIT && !session.host.is_attended() && required.can_wait() {
            return Err(required.unanswered());
        }
        // The answers of an earlier round, and its state, are not sent twice.
        params.remove("inputResponses");
        params.remove("requestState");
        params.extend(answered(session, required).await?);
    }
    Err(McpError::new(
        ErrorKind::Protocol,
        format!("it asked again after {ROUNDS_MAX} rounds"),
    ))
}

/// Answers what was asked: the members that the same request has when it is made again.
pub(super) async fn answered(session: &Session, required: InputRequired) -> Result<Map<String, Value>, McpError> {
    let mut members = Map::new();
    if !required.requests.is_empty() {
        let answers = answers(session, required.requests).await?;
        members.insert("inputResponses".to_owned(), Value::Object(answers));
    }
    if let Some(state) = required.state {
        members.insert("requestState".to_owned(), state);
    }
    Ok(members)
}

/// Answers the questions of a round, one after the other, by their keys.
async fn answers(session: &Session, inputs: Map<String, Value>) -> Result<Map<String, Value>, McpError> {
    if inputs.len() > INPUTS_MAX {
        let message = format!("it asked {} questions at once, {INPUTS_MAX} are taken", inputs.len());
        return Err(McpError::new(ErrorKind::Protocol, message));
    }
    let mut answers = Map::new();
    for (key, mut input) in inputs {
        let method = input
            .get("method")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        let params = input.get_mut("params").map(Value::take).unwrap_or_default();
        let given = match method.as_str() {
            // No directories are offered; a server that asks all the same gets none.
            "roots/list" => json!({ "roots": [] }),
            _ => answer(session, &method, params).await.map_err(|refusal| {
                let what = format!("it asked for {method}, which was refused: {}", refusal.message);
                McpError::new(ErrorKind::Cancelled, what)
            })?,
        };
        answers.insert(key, given);
    }
    Ok(answers)
}
