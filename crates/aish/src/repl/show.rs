//! `:show`: the whole of a result that was cut on the screen (SPEC 8.5).

use crate::term::clean::Clean;
use crate::term::render::body_of;
use aish_core::event::ToolResult;
use aish_core::redact::Redactor;
use aish_core::session::Session;
use std::process::Stdio;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

/// Shows a long text screen by screen. `-R` lets nothing through here: the text is escaped already.
const PAGER: &str = "less";

/// The whole result of a call, safe for a terminal and without secrets; of the last call with a result when none is named.
///
/// # Errors
/// There is none, in a sentence.
pub fn result_text(session: &Session, call: Option<&str>, redactor: &Redactor) -> Result<String, String> {
    let mut results = session.events().iter().rev().filter_map(|event| event.tool_result());
    let result: Option<&ToolResult> = match call {
        // The first result of a call is the one that counts.
        Some(call) => results.rfind(|result| result.tool_call_id.as_str() == call),
        None => results.next(),
    };
    match (result, call) {
        (Some(result), _) => {
            let mut text = Clean::for_terminal(redactor.clone()).whole(&body_of(&result.output, ""));
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

    /// SPEC 8.5: the whole result is to be seen; SPEC 8.8: escaped; SPEC 10.5: without secrets.
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
            result(2, "\x1b[2Jx hunter2hunter2\n"),
        ];
        let events = (1..).zip(drafts).map(|(seq, draft)| draft.place(&id, seq, 0)).collect();
        let session = Session::load(id, events);
        let redactor = Redactor::new([("DESK_KEY".to_owned(), "hunter2hunter2".to_owned())]);
        let text = |call| result_text(&session, call, &redactor);
        assert_eq!(text(Some("call_1_1")).unwrap(), "one\ntwo\n");
        assert_eq!(text(None).unwrap(), "\\x1b[2Jx [redacted:DESK_KEY]\n");
        assert!(text(Some("call_9_9")).unwrap_err().contains("call_9_9"));
    }
}
