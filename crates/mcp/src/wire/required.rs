//! A request that was refused because the person has to open a page first (2025-11-25, error -32042): they are asked, and the
//! request is not made again by us: whoever made it is told that it may be.

use super::answer::answer;
use super::session::Session;
use crate::{ErrorKind, McpError};
use rmcp::model::ErrorData;
use serde_json::Value;

/// What the protocol has for "a page must be opened first".
pub(super) const URL_REQUIRED_CODE: i32 = -32042;
/// Pages that one refusal may ask for.
const PAGES_MAX: usize = 4;

/// Puts the pages before the person; the failure of the request, in our words.
pub(super) async fn refused(session: &Session, error: &ErrorData) -> McpError {
    let asked = error.data.as_ref().and_then(|data| data.get("elicitations"));
    let pages = asked.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let message = match put(session, pages).await {
        Put::Opened => {
            "the server wants the user to do something in a browser first. The page was opened; call again once the \
                        user says it is done"
                .to_owned()
        }
        Put::Declined => "the server wants the user to open a page first, and the user declined".to_owned(),
        Put::Nothing => format!(
            "the server wants a page opened first and does not say which: {}",
            error.message
        ),
    };
    let code = i64::from(URL_REQUIRED_CODE);
    McpError::new(ErrorKind::Rpc { code }, message)
}

/// What came of it.
enum Put {
    Opened,
    Declined,
    Nothing,
}

async fn put(session: &Session, pages: &[Value]) -> Put {
    let mut outcome = Put::Nothing;
    for page in pages.iter().take(PAGES_MAX) {
        // Nothing but a page is asked for in this way.
        if page.get("mode").and_then(Value::as_str) != Some("url") {
            continue;
        }
        let answer = answer(session, "elicitation/create", page.clone()).await;
        let is_accepted = answer.is_ok_and(|answer| answer.get("action").and_then(Value::as_str) == Some("accept"));
        if !is_accepted {
            return Put::Declined;
        }
        outcome = Put::Opened;
    }
    outcome
}
