//! Which tools a request offers (SPEC 6.9): all of them, until those of servers take too much of the model's context. From then
//! on a request has a search among them instead, and what the conversation has found or called.
//!
//! It is a view of the ledger, the tools of this moment and the model's window, so that requests stay the same from round to round
//! and after a resume.

use crate::context::{CHARS_PER_TOKEN, spec_chars};
use aish_core::event::{Body, CallSource};
use aish_core::message::ToolSpec;
use aish_core::session::Session;
use aish_provider::codec::names::WireNames;
use aish_provider::profile::WireNaming;
use aish_tools::finder::{SEARCH_TOOLS, found};
use aish_tools::set::ToolSet;
use std::collections::HashSet;

/// The part of a model's window that the tools of servers may take unasked: a tenth.
const WINDOW_PART: u64 = 10;
/// The tokens they may take where the window is not known.
const UNKNOWN_WINDOW_TOKENS: u64 = 20_000;
/// How much more those may take that were found: a model that searched needs them.
const FOUND_TIMES: usize = 2;

/// The tools for a request, in an order that changes only at its end.
pub(crate) fn offered(tools: &ToolSet, session: &Session, window_tokens: Option<u64>) -> Vec<ToolSpec> {
    let all = || tools.iter().map(|tool| (tool.source(), tool.spec()));
    let is_deferrable = |source: CallSource| match source {
        CallSource::Mcp => true,
        CallSource::Builtin | CallSource::Client => false,
    };
    let chars = all()
        .filter(|(source, _)| is_deferrable(*source))
        .map(|(_, spec)| spec_chars(spec));
    let tokens_max = window_tokens.map_or(UNKNOWN_WINDOW_TOKENS, |window| window / WINDOW_PART);
    let chars_max = usize::try_from(tokens_max)
        .unwrap_or(usize::MAX)
        .saturating_mul(CHARS_PER_TOKEN);
    let Some(search) = tools.search().filter(|_| chars.sum::<usize>() > chars_max) else {
        return tools.specs();
    };
    let kept = all()
        .filter(|(source, _)| !is_deferrable(*source))
        .map(|(_, spec)| spec);
    let mut specs: Vec<ToolSpec> = kept.chain([search]).cloned().collect();
    let listed: HashSet<String> = specs.iter().map(|spec| spec.name.clone()).collect();
    let wanted = wanted(session).into_iter().filter(|name| !listed.contains(name));
    let wanted = wanted.filter_map(|name| tools.get(&name).map(|tool| tool.spec().clone()));
    specs.extend(newest(wanted.collect(), chars_max.saturating_mul(FOUND_TIMES)));
    specs
}

/// The tool that a model means by a name. One that was left out of the request it answers has no name on its wire; where the model
/// knows it all the same, it writes what it would be there, `alias__tool` (SPEC 6.1).
pub(crate) fn meant(tools: &ToolSet, name: String) -> String {
    if tools.get(&name).is_some() {
        return name;
    }
    wire_names(tools).people(&name).to_owned()
}

/// What tools are called on the wire, as a model that knows them from before writes it.
pub(crate) fn wire_names(tools: &ToolSet) -> WireNames {
    let names = tools.iter().map(|tool| tool.spec().name.as_str());
    WireNames::new(WireNaming::Underscore, names)
}

/// What the conversation has found or called since it was last emptied, each once, in the order it came up.
fn wanted(session: &Session) -> Vec<String> {
    let mut names = Vec::new();
    let mut seen = HashSet::new();
    for event in session.events() {
        let more = if let Body::ToolCall(call) = &event.body {
            vec![call.function.name.clone()]
        } else if let Body::ToolResult(result) = &event.body
            && result.name == SEARCH_TOOLS
        {
            found(&result.output)
        } else if let Body::Clear = &event.body {
            names.clear();
            seen.clear();
            continue;
        } else {
            continue;
        };
        names.extend(more.into_iter().filter(|name| seen.insert(name.clone())));
    }
    names
}

/// Those that came up last, as far as there is room; the very last one always.
fn newest(specs: Vec<ToolSpec>, chars_max: usize) -> Vec<ToolSpec> {
    let mut room = chars_max;
    let mut fitting = specs.iter().rev().enumerate().take_while(|(n, spec)| {
        let chars = spec_chars(spec);
        let fits = *n == 0 || chars <= room;
        room = room.saturating_sub(chars);
        fits
    });
    let kept = fitting.by_ref().count();
    let first = specs.len() - kept;
    specs.into_iter().skip(first).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use aish_core::action::{Action, Effect};
    use aish_core::event::{Draft, Event, Function, ResultEnd, ToolCall, ToolResult};
    use aish_core::id::{CallId, SessionId};
    use aish_tools::{Cancel, Progress, Tool, ToolContext, ToolOutput};
    use futures_util::future::BoxFuture;
    use serde_json::{Value, json};
    use std::sync::Arc;

    struct Remote(ToolSpec);

    impl Tool for Remote {
        fn spec(&self) -> &ToolSpec {
            &self.0
        }
        fn source(&self) -> CallSource {
            CallSource::Mcp
        }
        fn inspect(&self, arguments: &Value, _context: &ToolContext) -> Result<Action, String> {
            Ok(Action {
                tool: self.0.name.clone(),
                arguments: arguments.clone(),
                effects: vec![Effect::Remote],
            })
        }
        fn run<'a>(
            &'a self,
            _action: &'a Action,
            _context: &'a ToolContext,
            _progress: &'a dyn Progress,
            _cancel: Cancel,
        ) -> BoxFuture<'a, ToolOutput> {
            Box::pin(std::future::ready(ToolOutput::error("never run")))
        }
    }

    /// The built-in tools and that many of a server, each of some 1,000 characters.
    fn tools(count: usize) -> ToolSet {
        let specs: Vec<ToolSpec> = (0..count)
            .map(|n| ToolSpec {
                name: format!("desk.tool{n}"),
                description: "x".repeat(1_000),
                input_schema: json!({"type": "object"}),
            })
            .collect();
        let mut set = ToolSet::builtin();
        for spec in &specs {
            set.append(Arc::new(Remote(spec.clone()))).unwrap();
        }
        set.add_search();
        set
    }

    fn session(bodies: Vec<Draft>) -> Session {
        let id = SessionId::new("00000000-0000-7000-8000-000000000001");
        let events = bodies.into_iter().zip(1..).map(|(draft, seq)| draft.place(&id, seq, 0));
        Session::load(id.clone(), events.collect::<Vec<Event>>())
    }

    fn call(name: &str) -> Draft {
        Draft::tool_call(
            1,
            ToolCall {
                id: CallId::nth(1, 1),
                call_type: "function".into(),
                function: Function {
                    name: name.into(),
                    arguments: "{}".into(),
                },
                reply_id: None,
                provider_id: None,
            },
        )
    }

    fn search_found(names: &[&str]) -> Draft {
        let tools: Vec<Value> = names.iter().map(|name| json!({ "name": name })).collect();
        Draft::tool_result(
            1,
            "found",
            ToolResult {
                tool_call_id: CallId::nth(1, 1),
                name: SEARCH_TOOLS.into(),
                output: json!({ "tools": tools }).to_string(),
                success: true,
                end: ResultEnd::Completed,
                parts: Vec::new(),
            },
        )
    }

    fn names(set: &ToolSet, session: &Session, window_tokens: Option<u64>) -> Vec<String> {
        offered(set, session, window_tokens)
            .into_iter()
            .map(|spec| spec.name)
            .skip(6)
            .collect()
    }

    /// SPEC 6.9: schemas are deferred once they exceed a share of the context, and not before.
    #[test]
    fn a_share_of_the_context() {
        let (few, many, empty) = (tools(20), tools(100), session(Vec::new()));
        assert_eq!(names(&few, &empty, None).len(), 20);
        assert_eq!(names(&many, &empty, None), [SEARCH_TOOLS]);
        assert_eq!(names(&many, &empty, Some(1_000_000)).len(), 100);
        assert_eq!(names(&few, &empty, Some(32_768)), [SEARCH_TOOLS]);
        assert!(names(&tools(0), &empty, Some(8)).is_empty());
    }

    /// SPEC 6.9: what was found or called is offered from then on, at the end and once; a cleared context begins anew, and what
    /// no server has any more is left out.
    #[test]
    fn what_was_found() {
        let set = tools(100);
        let found = |drafts: Vec<Draft>| names(&set, &session(drafts), None);
        let first = || search_found(&["desk.tool7", "desk.tool3", "desk.gone"]);
        assert_eq!(found(vec![first()]), [SEARCH_TOOLS, "desk.tool7", "desk.tool3"]);
        assert_eq!(
            found(vec![first(), call("desk.tool9"), call("bash"), call("desk.tool3")]),
            [SEARCH_TOOLS, "desk.tool7", "desk.tool3", "desk.tool9"]
        );
        let clear = Draft::new(0, "", Body::Clear);
        assert_eq!(
            found(vec![first(), clear, call("desk.tool1")]),
            [SEARCH_TOOLS, "desk.tool1"]
        );
    }

    /// SPEC 6.1, 6.9: a tool that is left out is known by the name it would have on the wire; any other name is itself.
    #[test]
    fn names_of_tools_left_out() {
        let set = tools(100);
        for (written, expect) in [
            ("desk__tool7", "desk.tool7"),
            ("desk.tool7", "desk.tool7"),
            ("bash", "bash"),
            ("desk__nothing", "desk__nothing"),
            ("", ""),
        ] {
            assert_eq!(meant(&set, written.to_owned()), expect);
        }
    }

    /// SPEC 6.9, 7.1: what was found has a bound too: the newest stay, the last one always.
    #[test]
    fn what_was_found_is_bounded() {
        let set = tools(100);
        let all: Vec<String> = (0..100).map(|n| format!("desk.tool{n}")).collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let session = session(vec![search_found(&all)]);
        assert_eq!(names(&set, &session, Some(10)), [SEARCH_TOOLS, "desk.tool99"]);
        let kept = names(&set, &session, Some(20_000));
        assert_eq!(kept.last().unwrap(), "desk.tool99");
        assert!((5..20).contains(&kept.len()), "{kept:?}");
    }
}
