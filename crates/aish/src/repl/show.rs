//! `:show`: the whole of a result that was cut on the screen (SPEC 8.5).

use crate::term::render::body_of;
use aish_core::event::ToolResult;
use aish_core::sanitize;
use aish_core::session::Session;
use std::process::Stdio;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

/// Shows a long text screen by screen. `-R` lets nothing through here: the text is escaped already.
const PAGER: &str = "less";

/// The whole result of a call, safe for a terminal; of the last call with a result when none is named.
///
/// # Errors
/// There is none, in a sentence.
pub fn result_text(session: &Session, call: Option<&str>) -> Result<String, String> {
    let mut results = session.events().iter().rev().filter_map(|event| event.tool_result());
    let result: Option<&ToolResult> = match call {
        // The first result of a call is the one that counts.
        Some(call) => results.rfind(|result| result.tool_call_id.as_str() == call),
        None => results.next(),
    };
    match (result, call) {
        (Some(result), _) => {
            let mut text = sanitize::multi_line(&body_of(&result.output, "")).into_owned();
            if !text.ends_with('\n') {
                text.push('\n');
            }
            Ok(text)
        }
        (None, Some(call)) => Err(format!("no result of a call {call} in this session")),
        (None, None) => Err("no call has a result yet".to_owned()),
    }
}

/// Shows a text in the pager; false if there is none.
pub async fn page(text: &str) -> bool {
    let spawned = Command::new(PAGER)
        .arg("-R")
        // The pager's own commands could run programs and write files.
        .env("LESSSECURE", "1")
        .stdin(Stdio::piped())
        .kill_on_drop(true)
        .spawn();
    let Ok(mut pager) = spawned else {
        return false;
    };
    if let Some(mut input) = pager.stdin.take() {
        // A pager that was left early no longer reads.
        let _ = input.write_all(text.as_bytes()).await;
        drop(input);
    }
    pager.wait().await.is_ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use aish_core::event::{Draft, ResultEnd};
    use aish_core::id::{CallId, SessionId};

    /// SPEC 8.5: the whole result is to be seen; SPEC 8.8: escaped.
    #[test]
    fn whole_results() {
        let id = SessionId::from_parts(0, 7);
        let result = |n, output: &str| {
            let data = ToolResult {
                tool_call_id: CallId::nth(1, n),
                name: "bash".into(),
                output: output.into(),
                success: true,
                end: ResultEnd::Completed,
            };
            Draft::tool_result(0, "done", data)
        };
        let drafts = vec![
            result(1, r#"{"output":"one\ntwo","exit_code":0}"#),
            result(2, "\x1b[2Jx\n"),
        ];
        let events = (1..).zip(drafts).map(|(seq, draft)| draft.place(&id, seq, 0)).collect();
        let session = Session::load(id, events);
        assert_eq!(result_text(&session, Some("call_1_1")).unwrap(), "one\ntwo\n");
        assert_eq!(result_text(&session, None).unwrap(), "\\x1b[2Jx\n");
        assert!(
            result_text(&session, Some("call_9_9"))
                .unwrap_err()
                .contains("call_9_9")
        );
    }
}
