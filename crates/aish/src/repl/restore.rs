//! A restored session on the screen: the conversation so far, from the ledger's own words (SPEC 2.8).

use crate::mentions::image_names;
use crate::term::Output;
use crate::term::render::Renderer;
use aish_core::event::{Body, Event, readable_call};
use aish_core::id::CallId;
use aish_core::image::{decoded_bytes, with_image_names};
use aish_core::message::Part;
use aish_core::projection;
use aish_core::session::Session;
use aish_engine::Notice;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Events of the context that are shown again: more would scroll past unread, and cost time before the prompt.
const EVENTS_SHOWN_MAX: usize = 200;
/// Before what the person said.
const SAID_MARK: &str = "❯";

/// Shows the conversation again, as it looked.
pub fn conversation(session: &Session, renderer: &mut Renderer, out: &mut Output) {
    let context = projection::context(session.events());
    let hidden = context.len().saturating_sub(EVENTS_SHOWN_MAX);
    let (before, shown) = context.split_at(hidden);
    let earlier = before.iter().filter(|event| event.body.is_conversation()).count();
    if earlier > 0 {
        let id = session.id();
        renderer.status(
            &format!("{earlier} earlier messages are not shown; `aish sessions show {id}` shows them"),
            out,
        );
    }
    // A result may stand below the cut of its call; of the calls of a long session, few have a result that is shown.
    let results: BTreeSet<&CallId> = shown
        .iter()
        .filter_map(Event::tool_result)
        .map(|result| &result.tool_call_id)
        .collect();
    let mut calls: BTreeMap<&CallId, String> = BTreeMap::new();
    for call in context.iter().filter_map(Event::tool_call) {
        if results.contains(&call.id) {
            calls.insert(&call.id, readable_call(&call.function.name, &call.function.arguments));
        }
    }
    for event in shown {
        again(event, &calls, renderer, out);
    }
    renderer.turn_over(out);
}

fn again(event: &Event, calls: &BTreeMap<&CallId, String>, renderer: &mut Renderer, out: &mut Output) {
    match &event.body {
        Body::User(data) => {
            let images = images(&event.content, &data.parts);
            renderer.said(SAID_MARK, &format!("{}{images}", event.content), out);
        }
        Body::Assistant(_) => {
            renderer.notice(&Notice::Text(event.content.clone()), Duration::ZERO, out);
            renderer.notice(&Notice::ReplyEnded, Duration::ZERO, out);
        }
        Body::ToolResult(result) => {
            let call = result.tool_call_id.clone();
            let notice = Notice::CallEnded {
                readable: calls.get(&call).cloned().unwrap_or_else(|| result.name.clone()),
                call,
                output: with_image_names(&result.output, &result.parts),
                summary: event.content.clone(),
                success: result.success,
                end: result.end,
            };
            renderer.notice(&notice, Duration::ZERO, out);
        }
        Body::Command(command) => {
            renderer.command_begun(&command.line, out);
            renderer.command_ended(command, out);
        }
        // A call is shown with its result; the rest is not conversation.
        Body::System(_)
        | Body::ToolCall(_)
        | Body::TurnStarted(_)
        | Body::CallGated(_)
        | Body::CallAnswered(_)
        | Body::CallStarted(_)
        | Body::ModelFailed(_)
        | Body::Suspended(_)
        | Body::Resumed(_)
        | Body::Cancelled(_)
        | Body::TurnEnded(_)
        | Body::Usage(_)
        | Body::ServerAsked(_)
        | Body::ServerAnswered(_)
        | Body::CallSuspended(_)
        | Body::CallTakenUp(_)
        | Body::Clear
        | Body::Mark(_)
        | Body::Rewind(_)
        | Body::Fork(_)
        | Body::Compaction(_)
        | Body::Memory(_)
        | Body::Note(_)
        | Body::Unknown { .. } => {}
    }
}

/// A line for each image that went along with a question: `[image a.png, 12 KB]`.
fn images(text: &str, parts: &[Part]) -> String {
    let mut names = image_names(text, parts).into_iter();
    let lines = parts.iter().filter_map(|part| {
        let Part::Image { media_type, data } = part else {
            return None;
        };
        let name = names.next().unwrap_or(media_type.as_str());
        Some(format!("\n[image {name}, {} KB]", decoded_bytes(data).div_ceil(1_000)))
    });
    lines.collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::repl::replies::reply;
    use crate::term::Look;
    use aish_core::event::{Command, Draft, Function, ResultEnd, ToolCall, ToolResult};
    use aish_core::id::SessionId;
    use aish_core::redact::Redactor;

    fn session(drafts: Vec<Draft>) -> Session {
        let id = SessionId::from_parts(0, 7);
        let events = (1..).zip(drafts).map(|(seq, draft)| draft.place(&id, seq, 0)).collect();
        Session::load(id, events)
    }

    fn shown(session: &Session) -> String {
        let mut renderer = Renderer::new(Look::PLAIN, Redactor::default());
        let mut out = Output::new();
        conversation(session, &mut renderer, &mut out);
        out.text()
    }

    fn assistant(text: &str) -> Draft {
        reply(1, 1, text, Vec::new())
    }

    fn round() -> Vec<Draft> {
        let call = ToolCall {
            id: CallId::nth(1, 1),
            call_type: "function".into(),
            function: Function {
                name: "glob".into(),
                arguments: r#"{"pattern":"*.c"}"#.into(),
            },
            reply_id: None,
            provider_id: None,
        };
        let result = ToolResult {
            tool_call_id: CallId::nth(1, 1),
            name: "glob".into(),
            output: r#"{"output":"a.c\nb.c","count":2}"#.into(),
            success: true,
            end: ResultEnd::Completed,
            parts: Vec::new(),
        };
        let command = Command {
            line: "make".into(),
            status: Some(0),
            output: "cc a.c\n".into(),
            ..Command::default()
        };
        vec![
            Draft::user(1, "find the sources\nplease"),
            assistant("I'll look."),
            Draft::tool_call(1, call),
            Draft::tool_result(1, "2 files found", result),
            assistant("Two files."),
            Draft::new(0, "make (exit 0)", Body::Command(command)),
        ]
    }

    /// SPEC 2.8: the screen is rebuilt from the ledger's content.
    #[test]
    fn a_session_is_shown_again() {
        insta::assert_snapshot!(shown(&session(round())), @r#"
        ❯ find the sources
          please
        I'll look.
        call: glob(pattern="*.c")
            a.c
            b.c
        done: 2 files found
        Two files.
        command: make
            cc a.c
        done: exit 0
        "#);
    }

    /// SPEC 2.8: images that went along are named, with their size; their bytes are not for a screen.
    #[test]
    fn images_are_named() {
        let image = |bytes: usize| Part::Image {
            media_type: "image/png".into(),
            data: "AAAA".repeat(bytes / 3),
        };
        let named = Draft::user_with(1, "compare @a.png, @b.png", vec![image(12_000), image(300)]);
        let unnamed = Draft::user_with(2, "look at @a.png and @gone", vec![image(3_000)]);
        insta::assert_snapshot!(shown(&session(vec![named, unnamed])), @"
        ❯ compare @a.png, @b.png
          [image a.png, 12 KB]
          [image b.png, 1 KB]
        ❯ look at @a.png and @gone
          [image image/png, 3 KB]
        ");
    }

    /// SPEC 2.8, 6.5: so are images of results.
    #[test]
    fn images_of_results_are_named() {
        let mut drafts = round();
        for draft in &mut drafts {
            if let Body::ToolResult(result) = &mut draft.body {
                result.output = "drawn".into();
                result.parts = vec![Part::Image {
                    media_type: "image/png".into(),
                    data: "AAAA".repeat(100),
                }];
            }
        }
        let text = shown(&session(drafts));
        assert!(
            text.contains("    drawn\n    [image image/png, 1 KB]\ndone: 2 files found"),
            "{text}"
        );
    }

    /// SPEC 2.8: a long session shows its end and says so; SPEC 2.9: what was cleared is not shown.
    #[test]
    fn long_and_cleared_sessions() {
        let many = (0..150).flat_map(|n| [Draft::user(1, format!("question {n}")), assistant("answer")]);
        let text = shown(&session(many.collect()));
        assert!(text.starts_with("[aish] 100 earlier messages are not shown"), "{text}");
        assert!(
            !text.contains("question 49\n") && text.contains("question 50\n"),
            "{text}"
        );
        let mut cleared = round();
        cleared.push(Draft::new(0, "context cleared", Body::Clear));
        cleared.push(Draft::user(2, "anew"));
        assert_eq!(shown(&session(cleared)), "❯ anew\n");
    }
}
