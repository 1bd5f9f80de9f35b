//! The rows about replies: what a stream may do, and what must come of it.

use super::histories::{assistant, on_the_wire, turn_of, user};
use super::reading::{Ear, Heard, read};
use super::stream::{End, Say, stream};
use super::wire::{self, name_of, profile, send};
use aish_core::event::ReplyStop;
use aish_core::message::{Part, text_of};
use aish_provider::Reply;
use aish_provider::assemble::Ending;
use aish_provider::profile::Format;
use serde_json::{Value, json};

/// A reply that says something and calls twice, the calls under way at once.
pub const TWO_CALLS: &[Say<'static>] = &[
    Say::Text("I look."),
    Say::Open {
        call: 0,
        id: "call_a",
        name: "glob",
    },
    Say::Arguments {
        call: 0,
        piece: "{\"path\":",
    },
    Say::Open {
        call: 1,
        id: "call_b",
        name: "srv__read",
    },
    Say::Arguments {
        call: 1,
        piece: "{\"path\":\"ž",
    },
    Say::Arguments {
        call: 0,
        piece: "\"a {}\"}",
    },
    Say::Close { call: 0 },
    Say::Arguments {
        call: 1,
        piece: "🦀\"}",
    },
    Say::Close { call: 1 },
];

/// One script after another.
pub fn with<'s>(script: &[Say<'s>], more: &[Say<'s>]) -> Vec<Say<'s>> {
    [script, more].concat()
}

fn tools() -> Vec<String> {
    wire::tools().into_iter().map(|tool| tool.name).collect()
}

/// The reply of a script.
pub fn heard(format: Format, script: &[Say<'_>]) -> Heard {
    read(format, &tools(), [stream(format, script).as_slice()])
}

/// Name and arguments of the calls.
pub fn calls(reply: &Reply) -> Vec<(String, Value)> {
    let calls = reply.calls.iter();
    calls
        .map(|call| (call.name.clone(), serde_json::from_str(&call.arguments).unwrap()))
        .collect()
}

fn partial(reply: &Reply) -> Vec<&str> {
    let cut = reply.parts.iter().filter_map(|part| match part {
        Part::PartialCall { name, .. } => Some(name.as_str()),
        Part::Text { .. }
        | Part::Thinking { .. }
        | Part::Context { .. }
        | Part::Image { .. }
        | Part::Provider { .. }
        | Part::Call { .. } => None,
    });
    cut.collect()
}

/// Both calls of [`TWO_CALLS`].
pub fn both() -> Vec<(String, Value)> {
    vec![
        ("glob".to_owned(), json!({"path": "a {}"})),
        ("srv.read".to_owned(), json!({"path": "ž🦀"})),
    ]
}

/// Nothing is no reply; a reply of nothing is one.
pub fn empty_reply(format: Format) {
    let said_nothing = heard(format, &[Say::End(End::Stop)]).reply;
    assert_eq!(said_nothing.stop, ReplyStop::End);
    assert_eq!(
        (said_nothing.parts.len(), said_nothing.calls.len()),
        (0, 0),
        "{said_nothing:?}"
    );
    for nothing in ["", "\n", ": ping\n\n"] {
        let reply = read(format, &tools(), [nothing.as_bytes()]).reply;
        assert_eq!(reply.stop, ReplyStop::Truncated, "{nothing:?}");
        assert_eq!(reply.parts.len(), 0);
    }
    // An empty reply in the history leaves no empty message behind.
    let history = [user("a"), assistant(format, Vec::new(), Vec::new()), user("b")];
    let sent = send(name_of(format), &profile(format), &history);
    assert!(sent.words.contains('a') && sent.words.contains('b'), "{sent:?}");
}

/// What was cut is kept as evidence, never run, never sent.
pub fn abort_mid_call(format: Format) {
    // One call is whole, the other is not, and then the connection is gone.
    let bytes = stream(format, &TWO_CALLS[..TWO_CALLS.len() - 1]);
    for ending in [Ending::Read, Ending::Cut] {
        let mut ear = Ear::new(format, &tools());
        ear.hear(&bytes);
        let heard = ear.end(ending);
        assert!(!heard.has_calls());
        assert_eq!(heard.reply.stop, ReplyStop::Truncated);
        assert_eq!(text_of(&heard.reply.parts), "I look.");
        assert_eq!(heard.shown_text(), "I look.", "what was shown is what is kept");
        assert_eq!(partial(&heard.reply)[0], "glob", "{heard:?}");
        // What was cut is evidence, and is never sent.
        let history = [user("a"), assistant(format, heard.reply.parts, Vec::new()), user("b")];
        let sent = send(name_of(format), &profile(format), &history);
        assert_eq!((sent.calls.len(), sent.results.len()), (0, 0));
        assert!(sent.words.contains("I look."));
    }
}

/// A call counts only once the stream said that the reply is whole.
pub fn truncated_anywhere(format: Format) {
    let bytes = stream(format, &with(TWO_CALLS, &[Say::End(End::Calls)]));
    let end = stream(format, TWO_CALLS).len();
    let mut whole = 0;
    for cut in 0..=bytes.len() {
        let heard = read(format, &tools(), [&bytes[..cut]]);
        if heard.has_calls() {
            assert!(cut > end, "a call counted at byte {cut} of {}", bytes.len());
            assert_eq!(calls(&heard.reply), both());
            whole += 1;
        } else {
            assert_ne!(heard.reply.stop, ReplyStop::ToolCalls);
            assert!("I look.".starts_with(&text_of(&heard.reply.parts)));
        }
    }
    assert!(whole >= 1, "the whole stream has its calls");
    let mut ear = Ear::new(format, &tools());
    ear.hear(&bytes);
    assert!(
        !ear.end(Ending::Cut).has_calls(),
        "a reply cut short has none, whatever it said"
    );
}

/// A character may come in any number of pieces.
pub fn split_utf8(format: Format) {
    let script = with(
        &[
            Say::Thinking {
                text: "žluť 🦀",
                signature: "s",
            },
            Say::Text("příliš 🦀 "),
        ],
        &[&TWO_CALLS[1..], &[Say::End(End::Calls)]].concat(),
    );
    let bytes = stream(format, &script);
    let whole = read(format, &tools(), [bytes.as_slice()]).reply;
    assert_eq!(text_of(&whole.parts), "příliš 🦀 ");
    assert_eq!(calls(&whole), both());
    for size in 1..=5 {
        let pieces = read(format, &tools(), bytes.chunks(size));
        assert_eq!(pieces.reply, whole, "in chunks of {size}");
    }
    // Bytes that are no character spoil one character, not the reply.
    let mut broken = stream(format, &[Say::Text("a#b"), Say::End(End::Stop)]);
    let at = broken.windows(3).position(|window| window == b"a#b").unwrap();
    broken[at + 1] = 0xFF;
    let reply = read(format, &tools(), broken.chunks(2)).reply;
    assert_eq!(
        (text_of(&reply.parts).as_str(), reply.stop),
        ("a\u{FFFD}b", ReplyStop::End)
    );
}

/// Each call keeps its own arguments, and its result.
pub fn parallel_calls_interleaved(format: Format) {
    let reply = heard(format, &with(TWO_CALLS, &[Say::End(End::Calls)])).reply;
    assert_eq!(reply.stop, ReplyStop::ToolCalls);
    assert_eq!(calls(&reply), both());
    // Put back with their results, they stand in order, each with its own.
    let sent = send(name_of(format), &profile(format), &turn_of(format, &reply));
    assert_eq!(sent.calls, on_the_wire());
    assert_eq!(sent.results.len(), 2);
    assert!(
        sent.results[0].contains("result 1") && sent.results[1].contains("result 2"),
        "{sent:?}"
    );
}

/// A reply that was withheld runs nothing, and says in the provider's word why.
pub fn refusal(format: Format) {
    let reply = heard(format, &with(TWO_CALLS, &[Say::End(End::Refused)])).reply;
    assert_eq!(reply.stop, ReplyStop::Refused);
    assert!(reply.calls.is_empty());
    assert_eq!(partial(&reply), ["glob", "srv.read"]);
    assert!(reply.error.is_none(), "{reply:?}");
    assert!(reply.reason.is_some(), "{reply:?}");
}

/// A failure ends the reply; what was said stays.
pub fn error_in_the_middle(format: Format) {
    let script = with(
        TWO_CALLS,
        &[
            Say::Error("the model fell over"),
            Say::Text("never"),
            Say::End(End::Calls),
        ],
    );
    let reply = heard(format, &script).reply;
    assert_eq!(reply.stop, ReplyStop::Truncated);
    assert!(reply.calls.is_empty());
    assert_eq!(
        text_of(&reply.parts),
        "I look.",
        "what was said before the failure is kept, what follows is not looked at"
    );
    let error = reply.error.unwrap();
    assert!(error.message.contains("the model fell over"), "{error:?}");
    assert!(error.kind.is_retryable(), "{error:?}");
}

/// What nobody knows changes nothing.
pub fn unknown_events(format: Format) {
    let script = with(TWO_CALLS, &[Say::End(End::Calls)]);
    let known = heard(format, &script).reply;
    let mixed: Vec<Say<'_>> = script.iter().flat_map(|say| [Say::Unknown, *say]).collect();
    assert_eq!(heard(format, &mixed).reply, known);
    assert_eq!(calls(&known), both());
}
