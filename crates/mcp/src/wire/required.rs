//! A request that was refused because the person has to open a page first (2025-11-25, error -32042): they are asked, and the
//! request is not made again by us: whoever made it is told that it may be.

use super::answer;
use super::session::Session;
use crate::host::Reply;
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
        Put::PartlyOpened(why) => format!(
            "the server wants the user to do something in a browser first. A page was opened, another one that it named was \
             not ({why}); call again once the user says it is done"
        ),
        Put::Declined => "the server wants the user to open a page first, and the user declined".to_owned(),
        Put::Unasked(why) => {
            format!(
                "the server wants the user to open a page first, which was not opened; it was not the user who declined: {why}"
            )
        }
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
    /// One was; why another was not.
    PartlyOpened(String),
    Declined,
    /// None was, and not because the person said no; why.
    Unasked(String),
    Nothing,
}

async fn put(session: &Session, pages: &[Value]) -> Put {
    let mut is_opened = false;
    let mut unasked = None;
    // Nothing but a page is asked for in this way.
    let is_page = |page: &&Value| page.get("mode").and_then(Value::as_str) == Some("url");
    for page in pages.iter().take(PAGES_MAX).filter(is_page) {
        match answer::page(session, page.clone()).await {
            Some(Reply::Accepted(_)) => is_opened = true,
            Some(Reply::Declined | Reply::Dismissed) => return Put::Declined,
            Some(Reply::Unanswered(why)) => unasked = Some(why),
            None => unasked = Some("it could not be asked for".to_owned()),
        }
    }
    match (is_opened, unasked) {
        (true, None) => Put::Opened,
        (true, Some(why)) => Put::PartlyOpened(why),
        (false, Some(why)) => Put::Unasked(why),
        (false, None) => Put::Nothing,
    }
}
