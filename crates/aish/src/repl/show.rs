//! `:show` and `:thinking`: the whole of what was cut on the screen (SPEC 8.5).

use crate::paths::Environment;
use crate::term::clean::Clean;
use crate::term::render::body_of;
use aish_core::event::{Body, ToolResult};
use aish_core::image::with_image_names;
use aish_core::message::Part;
use aish_core::redact::Redactor;
use aish_core::session::Session;
use std::process::Stdio;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

/// Shows a long text screen by screen, where nobody wants another program to.
const PAGER: &str = "less";
/// What it is called with. `-R` lets nothing through here: the text is escaped already.
const PAGER_ARGUMENTS: [&str; 1] = ["-R"];

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
            let body = with_image_names(&body_of(&result.output, ""), &result.parts);
            Ok(shown(&body, redactor))
        }
        (None, Some(call)) => Err(format!("no result of a call {call} in this session")),
        (None, None) => Err("no call has a result yet".to_owned()),
    }
}

/// What the model thought last, safe for a terminal and without secrets.
///
/// # Errors
/// It never did, in a sentence.
pub fn thinking_text(session: &Session, redactor: &Redactor) -> Result<String, String> {
    let thoughts = session.events().iter().rev().find_map(|event| {
        let Body::Assistant(reply) = &event.body else {
            return None;
        };
        let texts = reply.parts.iter().filter_map(|part| {
            if let Part::Thinking { text, .. } = part {
                Some(text.trim()).filter(|text| !text.is_empty())
            } else {
                None
            }
        });
        let texts: Vec<&str> = texts.collect();
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    });
    let thoughts = thoughts.ok_or("no reply of this session has thinking in it")?;
    Ok(shown(&thoughts, redactor))
}

fn shown(text: &str, redactor: &Redactor) -> String {
    let mut text = Clean::for_terminal(redactor.clone()).whole(text);
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// The program that pages, and its arguments: the one `PAGER` names, in words without quotes, else our own.
fn pager(environment: &Environment) -> (&str, Vec<&str>) {
    let mut words = environment.text("PAGER").unwrap_or_default().split_whitespace();
    match words.next() {
        Some(program) => (program, words.collect()),
        None => (PAGER, PAGER_ARGUMENTS.to_vec()),
    }
}

/// Shows a text in the pager; false if there is none. It is the person's own program, with all its keys: one that may not be stopped
/// (`LESSSECURE`) would go on reading what is typed into the shell that stopped aish.
pub async fn page(text: &str, environment: &Environment) -> bool {
    let (program, arguments) = pager(environment);
    let spawned = Command::new(program)
        .args(arguments)
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
    use crate::repl::replies::reply;
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
                parts: Vec::new(),
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

    /// SPEC 8.5: the rest is seen with the program the person pages with.
    #[test]
    fn pagers() {
        let check = |variable: &str, program: &str, arguments: &[&str]| {
            let environment = Environment::from_pairs([("PAGER", variable)]);
            assert_eq!(pager(&environment), (program, arguments.to_vec()));
        };
        check("", "less", &["-R"]);
        check("most", "most", &[]);
        check("less -FRX", "less", &["-FRX"]);
    }

    /// SPEC 6.5: the images of a result are named, with their size; their bytes are not for a screen.
    #[test]
    fn images_of_results() {
        let id = SessionId::from_parts(0, 7);
        let data = ToolResult {
            tool_call_id: CallId::nth(1, 1),
            name: "pics.draw".into(),
            output: "drawn".into(),
            success: true,
            parts: vec![Part::Image {
                media_type: "image/png".into(),
                data: "AAAA".repeat(4_000),
            }],
            end: ResultEnd::Completed,
        };
        let event = Draft::tool_result(0, "drawn", data).place(&id, 1, 0);
        let session = Session::load(id, vec![event]);
        let text = result_text(&session, None, &Redactor::default());
        assert_eq!(text.unwrap(), "drawn\n[image image/png, 12 KB]\n");
    }

    /// The last thinking is shown whole, escaped and without secrets; a reply without any is passed over.
    #[test]
    fn thinking_in_full() {
        let id = SessionId::from_parts(0, 7);
        let reply = |n, parts| reply(1, n, "said", parts);
        let session = |drafts: Vec<Draft>| {
            let events = (1..).zip(drafts).map(|(seq, draft)| draft.place(&id, seq, 0)).collect();
            Session::load(id.clone(), events)
        };
        let redactor = Redactor::new([("DESK_KEY".to_owned(), "hunter2hunter2".to_owned())]);
        let thought = |text: &str| Part::thinking(text);
        let drafts = vec![
            reply(1, vec![thought("first")]),
            reply(
                2,
                vec![thought("\n\x1b[2Jone"), thought(""), thought("hunter2hunter2\n")],
            ),
            reply(3, vec![Part::text("no thinking")]),
        ];
        assert_eq!(
            thinking_text(&session(drafts), &redactor).unwrap(),
            "\\x1b[2Jone\n\n[redacted:DESK_KEY]\n"
        );
        assert!(thinking_text(&session(Vec::new()), &redactor).is_err());
    }
}
