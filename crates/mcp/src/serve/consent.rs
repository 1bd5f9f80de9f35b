//! Asking the person behind a client: one form with one field, and how its answer is read.
//!
//! Only a form that was accepted *with* the field set is a yes. Everything else is a no, or nobody.

use super::{Consent, Question};
use rmcp::RoleServer;
use rmcp::model::{
    BooleanSchema, ClientCapabilities, ElicitRequest, ElicitRequestParams, ElicitationAction, ElicitationSchema,
    InputRequest, InputRequiredResult, InputResponses,
};
use rmcp::service::Peer;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// The field of the form.
const FIELD: &str = "approve";
/// The name of the question in a result that asks.
const KEY: &str = "approval";
/// How long the person has where the request waits for them.
const ANSWER_TIMEOUT_S: u64 = 600;

/// Whether a client can put a form before a person. One that names no mode means forms (2025-06-18, elicitation).
pub(super) fn can_ask(capabilities: Option<&ClientCapabilities>) -> bool {
    capabilities
        .and_then(|capabilities| capabilities.elicitation.as_ref())
        .is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
}

/// Asks inside a call (up to 2025-11-25).
pub(super) async fn ask(peer: &Peer<RoleServer>, question: &Question) -> Consent {
    let patience = Duration::from_secs(ANSWER_TIMEOUT_S);
    let answered = peer
        .create_elicitation_with_timeout(form(question), Some(patience))
        .await;
    match answered {
        Ok(result) => consent(&result.action, result.content.as_ref()),
        Err(_) => Consent::Nobody,
    }
}

/// A result that asks (2026-07-28).
pub(super) fn asking(question: &Question) -> InputRequiredResult {
    let request = InputRequest::Elicitation(ElicitRequest::new(form(question)));
    InputRequiredResult::new(
        Some(BTreeMap::from([(KEY.to_owned(), request)])),
        Some(question.ticket.clone()),
    )
}

/// What the second call answers; `None` when it does not, so that it is asked again.
pub(super) fn answered(responses: &InputResponses) -> Option<Consent> {
    let answer = responses.get(KEY)?;
    let action: ElicitationAction = serde_json::from_value(answer.get("action")?.clone()).ok()?;
    Some(consent(&action, answer.get("content")))
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the enum is the SDK's, and open")]
fn consent(action: &ElicitationAction, content: Option<&Value>) -> Consent {
    let is_set = content.and_then(|content| content.get(FIELD)).and_then(Value::as_bool);
    match action {
        ElicitationAction::Accept if is_set == Some(true) => Consent::Given,
        ElicitationAction::Accept | ElicitationAction::Decline => Consent::Refused,
        // Dismissed, and whatever a later protocol adds: nobody has said yes.
        _ => Consent::Nobody,
    }
}

fn form(question: &Question) -> ElicitRequestParams {
    let field = BooleanSchema::new()
        .title("Allow this call")
        .description("Whether aish runs it, this once");
    let schema = ElicitationSchema::builder()
        .required_bool_property(FIELD, |_| field)
        .build_unchecked();
    ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: question.message.clone(),
        requested_schema: schema,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    /// SPEC 5.3, 6.10: only a whole yes is a yes.
    #[test]
    fn only_yes_is_yes() {
        let check = |answer: Value, expect: Option<Consent>| {
            let responses = InputResponses::from([(KEY.to_owned(), answer.clone())]);
            assert_eq!(answered(&responses), expect, "{answer}");
        };
        check(
            json!({"action":"accept","content":{"approve":true}}),
            Some(Consent::Given),
        );
        check(
            json!({"action":"accept","content":{"approve":false}}),
            Some(Consent::Refused),
        );
        check(
            json!({"action":"accept","content":{"approve":"true"}}),
            Some(Consent::Refused),
        );
        check(json!({"action":"accept","content":{}}), Some(Consent::Refused));
        check(json!({"action":"accept"}), Some(Consent::Refused));
        check(
            json!({"action":"decline","content":{"approve":true}}),
            Some(Consent::Refused),
        );
        check(json!({"action":"cancel"}), Some(Consent::Nobody));
        check(json!({"action":"whatever","content":{"approve":true}}), None);
        check(json!({"content":{"approve":true}}), None);
        check(json!("yes"), None);
        assert_eq!(answered(&InputResponses::new()), None);
    }

    /// SPEC 6.10: who can be asked.
    #[test]
    fn who_can_be_asked() {
        let check = |capabilities: Value, expect: bool| {
            let read: ClientCapabilities = serde_json::from_value(capabilities.clone()).unwrap();
            assert_eq!(can_ask(Some(&read)), expect, "{capabilities}");
        };
        check(json!({}), false);
        check(json!({"elicitation":{}}), true);
        check(json!({"elicitation":{"form":{}}}), true);
        check(json!({"elicitation":{"form":{},"url":{}}}), true);
        check(json!({"elicitation":{"url":{}}}), false);
        assert!(!can_ask(None));
    }
}
