//! What MCP servers do wrong, over both transports, and what is left of it: an error for the model, a line for the person, a prompt
//! that answers, bounded memory and no process (SPEC 6.6, 12).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "mcp_faults/check.rs"]
mod check;
#[path = "mcp_faults/connecting.rs"]
mod connecting;
#[path = "mcp_faults/ends.rs"]
mod ends;
#[path = "mcp_faults/hostile.rs"]
mod hostile;
#[path = "mcp_faults/statuses.rs"]
mod statuses;
mod support;

use check::{Expect, at_a_prompt};
use serde_json::{Value, json};
use support::mcp::{Say, Script, TRANSPORTS, Transport};

/// Bytes of a piece of something large.
const PIECE_BYTES: usize = 1_000_000;

/// What bounds a call that is not answered: short, but longer than a busy machine takes to connect.
const IMPATIENT: &str = "timeout_s = 6\n";
/// What is said of such a call.
const NO_ANSWER: &str = "no answer to tools/call within 6 s";

/// Messages of a flood that is read to its end.
const FLOOD: usize = 50_000;
/// What leaves it the time.
const PATIENT: &str = "timeout_s = 120\n";

/// More messages than anybody reads in the time.
const ENDLESS: usize = 1_000_000_000;

fn script(answer: impl Fn(&Value) -> Vec<Say> + Send + Sync + 'static) -> Script {
    Script::with_tool("t").on_call(answer)
}

/// A line of a log.
fn log_line() -> Value {
    let params = json!({"level": "info", "data": "working"});
    json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params})
}

/// SPEC 6.6, 12: a call that is never answered ends at the server's limit.
#[test]
fn never_answers() {
    for transport in TRANSPORTS {
        at_a_prompt(
            transport,
            script(|_| vec![Say::Nothing]),
            IMPATIENT,
            &Expect::error(NO_ANSWER),
        );
    }
}

/// SPEC 6.6: a server that prints what is no message before its answer is understood.
#[test]
fn garbage_on_stdout() {
    let garbage = |id: &Value| {
        let noise = b"Listening\xff\x00 on stdio\r\n{\"level\":\"info\"}\n[]\n{]\n\n".to_vec();
        vec![Say::Garbage(noise), Say::text(id, "after all")]
    };
    at_a_prompt(Transport::Stdio, script(garbage), "", &Expect::result("after all"));
}

/// SPEC 6.6: an answer that is no JSON is an error, and names what it was.
#[test]
fn garbage_for_an_answer() {
    for body in ["<html>no</html>", "{\"jsonrpc\":\"2.0\"", "\u{0}\u{0}", "42", "[]"] {
        let garbage = move |_: &Value| vec![Say::Garbage(body.as_bytes().to_vec())];
        check::in_a_pipe(
            Transport::Http,
            script(garbage),
            "",
            &Expect::error("200 with application/json: "),
        );
    }
}

/// SPEC 6.6: a server that dies during a call: the call is an error, and is not made again.
#[test]
fn dies_during_a_call() {
    at_a_prompt(
        Transport::Stdio,
        script(|_| vec![Say::Death]),
        "",
        &Expect::error("its program ended (exit status: 7)"),
    );
    at_a_prompt(
        Transport::Http,
        script(|_| vec![Say::Death]),
        "",
        &Expect::error("the connection ended before an answer"),
    );
}

/// SPEC 6.6: an answer to another request is none; the one that was asked for is still waited for.
#[test]
fn wrong_id() {
    let wrong = |_: &Value| vec![Say::text(&json!(4_711), "for somebody else"), Say::Nothing];
    for transport in TRANSPORTS {
        at_a_prompt(transport, script(wrong), IMPATIENT, &Expect::error(NO_ANSWER));
    }
    let then_right = |id: &Value| vec![Say::text(&json!("4711"), "for somebody else"), Say::text(id, "for us")];
    for transport in TRANSPORTS {
        at_a_prompt(transport, script(then_right), "", &Expect::result("for us"));
    }
}

/// SPEC 6.6: of two answers to one request the first counts, and the second is nobody's.
#[test]
fn duplicate_id() {
    let twice = |id: &Value| vec![Say::text(id, "first"), Say::text(id, "second")];
    for transport in TRANSPORTS {
        at_a_prompt(transport, script(twice), "", &Expect::result("first"));
    }
}

/// SPEC 12: a result of 100 MB is an error and is not kept, also in small pieces and inside a stream.
#[test]
fn a_huge_result() {
    let huge = |id: &Value| {
        let before = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":""#);
        vec![Say::Long(before, vec![b'x'; PIECE_BYTES], 100, "\"}]}}".to_owned())]
    };
    at_a_prompt(
        Transport::Stdio,
        script(huge),
        "",
        &Expect::error("its answer is longer than"),
    );
    at_a_prompt(
        Transport::Http,
        script(huge),
        "",
        &Expect::error("it sent an answer of more than"),
    );
    let streamed = move |id: &Value| [vec![Say::Message(log_line())], huge(id)].concat();
    at_a_prompt(Transport::Http, script(streamed), "", &Expect::error(" of more than "));
}

/// SPEC 12: more notifications than anybody wants, before the answer.
#[test]
fn a_flood_of_notifications() {
    let flood = |id: &Value| vec![Say::Many(log_line(), FLOOD), Say::text(id, "after all")];
    at_a_prompt(Transport::Stdio, script(flood), PATIENT, &Expect::result("after all"));
    at_a_prompt(Transport::Http, script(flood), PATIENT, &Expect::result("after all"));
}

/// SPEC 6.6, 12: news without end and never an answer: the call ends at its limit, or at that of a stream.
#[test]
fn an_endless_stream() {
    let endless = |_: &Value| vec![Say::Many(log_line(), ENDLESS)];
    at_a_prompt(Transport::Stdio, script(endless), IMPATIENT, &Expect::error(NO_ANSWER));
    at_a_prompt(Transport::Http, script(endless), IMPATIENT, &Expect::error(""));
}

/// SPEC 6.6: a server whose tools change all the time is not asked for them all the time, and its calls are answered.
#[test]
fn the_list_of_tools_changes_without_end() {
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    let flood = move |id: &Value| vec![Say::Many(changed.clone(), FLOOD / 5), Say::text(id, "changed")];
    for transport in TRANSPORTS {
        at_a_prompt(transport, script(flood.clone()), "", &Expect::result("changed"));
    }
}
