//! Notifications of a server as [`News`], bounded.

use super::raw;
use crate::host::News;
use rmcp::model::ServerNotification;
use serde_json::Value;

/// Characters of one line of a server's log, and of an address.
const TEXT_CHARS_MAX: usize = 4_000;

/// What a notification tells the host; `None` for what is not for it.
#[expect(clippy::wildcard_enum_match_arm, reason = "the enum is the SDK's, and open")]
pub(crate) fn of(notification: ServerNotification) -> Option<News> {
    match notification {
        ServerNotification::ToolListChangedNotification(_) => Some(News::ToolsChanged),
        ServerNotification::PromptListChangedNotification(_) => Some(News::PromptsChanged),
        ServerNotification::ResourceListChangedNotification(_) => Some(News::ResourcesChanged),
        ServerNotification::ResourceUpdatedNotification(updated) => Some(News::ResourceUpdated {
            uri: bounded(&updated.params.uri),
        }),
        ServerNotification::CustomNotification(custom) if raw::called(&custom.method) == "notifications/message" => {
            let params = custom.params.unwrap_or_default();
            let member = |name: &str| params.get(name).unwrap_or(&Value::Null);
            Some(logged(member("level"), member("data")))
        }
        // Cancellations and progress are the session's; the rest is nothing that was asked for. The enum is the SDK's, and open.
        _ => None,
    }
}

/// The question about a page that is done with, as the server names it.
pub(crate) fn page_done(notification: &ServerNotification) -> Option<&str> {
    let ServerNotification::CustomNotification(custom) = notification else {
        return None;
    };
    let params = custom
        .params
        .as_ref()
        .filter(|_| custom.method == "notifications/elicitation/complete");
    params?.get("elicitationId")?.as_str()
}

fn logged(level: &Value, data: &Value) -> News {
    let level = level.as_str().map_or_else(|| "info".to_owned(), bounded);
    let text = match data {
        Value::String(text) => bounded(text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            bounded(&data.to_string())
        }
    };
    News::Log { level, text }
}

/// One line of at most [`TEXT_CHARS_MAX`] characters.
fn bounded(text: &str) -> String {
    let line = text.chars().take(TEXT_CHARS_MAX);
    line.map(|c| if c == '\n' || c == '\r' { ' ' } else { c }).collect()
}
