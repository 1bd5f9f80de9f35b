//! What was held back stands where it was said: before the call, block or boundary that came behind it.

use super::*;
use serde_json::json;

/// The reply to these pieces, and the text that was shown.
fn reply(pieces: Vec<Piece<'_>>) -> (Reply, String) {
    let mut assembler = assembler();
    let mut out = Vec::new();
    pieces.into_iter().for_each(|piece| assembler.push(piece, &mut out));
    assembler.flush(&mut out);
    let shown = out.iter().filter_map(|delta| match delta {
        Delta::Text(text) => Some(text.as_str()),
        Delta::Thinking(_) | Delta::CallBegun { .. } => None,
    });
    let shown = shown.collect();
    (assembler.finish(Ending::Read), shown)
}

fn said(text: &str) -> Piece<'_> {
    Piece::Text(text.into())
}

fn glob() -> Piece<'static> {
    Piece::Call(CallFragment {
        index: Some(0),
        name: Some("glob".into()),
        arguments: Some("{}".into()),
        ..CallFragment::default()
    })
}

fn search() -> Piece<'static> {
    let format = Format::Anthropic;
    let block = json!({"type": "search"});
    Piece::Block { format, block }
}

const CALL: Part = Part::Call {
    index: 0,
    signature: None,
};

/// SPEC 7.2, 7.4: text that might have become markup stays before what came behind it.
#[test]
fn text_stays_before_calls_and_blocks() {
    for held in ["Is a <", "Is a <think", "Is a\n[", "Is a\n<tool_call>\n{\"na"] {
        let (call, shown) = reply(vec![said(held), glob(), said("tail"), Piece::Finish(Finish::ToolCalls)]);
        assert_eq!(call.parts, [Part::text(held), CALL, Part::text("tail")]);
        assert_eq!(shown, format!("{held}tail"));
        let (block, _) = reply(vec![said(held), search(), said("tail"), Piece::Finish(Finish::Stop)]);
        assert_eq!(block.parts.first(), Some(&Part::text(held)));
        assert_eq!(block.parts.last(), Some(&Part::text("tail")));
        let (blocks, _) = reply(vec![
            said(held),
            Piece::Boundary,
            said("tail"),
            Piece::Finish(Finish::Stop),
        ]);
        assert_eq!(blocks.parts, [Part::text(held), Part::text("tail")]);
    }
}

/// SPEC 7.4: the same for what the tags of thinking hold back, at the beginning, within and at the end.
#[test]
fn thinking_stays_before_calls() {
    let end = || Piece::Finish(Finish::ToolCalls);
    let (start, _) = reply(vec![said("\n\n<thi"), glob(), end()]);
    assert_eq!(start.parts, [Part::text("\n\n<thi")]);
    let (within, _) = reply(vec![said("<think>hm </th"), glob(), said("more</think>yes"), end()]);
    let expect = [
        Part::thinking("hm </th"),
        CALL,
        Part::thinking("more"),
        Part::text("yes"),
    ];
    assert_eq!(within.parts, expect);
    let (unopened, _) = reply(vec![said("hm\n</think>"), glob(), said("yes"), end()]);
    assert_eq!(unopened.parts, [Part::thinking("hm\n"), CALL, Part::text("yes")]);
}

/// SPEC 7.4: calls that were written as text are found before blocks in which nothing is said, and nowhere else.
#[test]
fn written_calls_before_silent_blocks() {
    let written = "Let me see.\n<tool_call>{\"name\":\"glob\",\"arguments\":{}}</tool_call>";
    let signature = |format| Piece::Signature {
        format,
        text: "c2ln".into(),
    };
    let stop = || Piece::Finish(Finish::Stop);
    for pieces in [
        vec![said(written), search(), stop()],
        vec![
            said(written),
            Piece::Boundary,
            signature(Format::Gemini),
            Piece::Boundary,
            stop(),
        ],
    ] {
        let (reply, _) = reply(pieces);
        assert_eq!((reply.stop, reply.calls.len()), (ReplyStop::ToolCalls, 1));
        assert_eq!(text_of(&reply.parts), "Let me see.");
        assert_eq!(reply.parts.len(), 2);
    }
    let (talk, _) = reply(vec![said(written), search(), said("That was one."), stop()]);
    assert!(talk.calls.is_empty());
    let (second, _) = reply(vec![said("Let me see."), Piece::Boundary, said(&written[12..]), stop()]);
    assert_eq!(
        (second.calls.len(), text_of(&second.parts).as_str()),
        (1, "Let me see.")
    );
}

/// SPEC 7.4: what is quoted in one block is quoted in the next.
#[test]
fn fences_reach_over_blocks() {
    let call = "<tool_call>{\"name\":\"glob\",\"arguments\":{}}</tool_call>";
    let (reply, shown) = reply(vec![
        said("One writes\n```\n"),
        Piece::Boundary,
        said(call),
        Piece::Finish(Finish::Stop),
    ]);
    assert!(reply.calls.is_empty());
    assert!(shown.ends_with(call));
}
