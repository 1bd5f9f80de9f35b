//! Failures, retries and the ways out.

use super::{Script, check};
use crate::event::{Body, Draft, ResultEnd};
use crate::turn::StopReason;

/// SPEC 3.5: what failed, was empty or was cut is asked again within limits where no text was shown.
#[test]
fn a_reply_that_showed_nothing_is_asked_for_again() {
    check("fail", "model 2");
    check("fail later", "model 2 after 700 ms");
    check("fail\n fail second", "done model_failed");
    check("fail fatal", "done model_failed");
    check("fail shown", "done model_failed");
    check("empty", "model 2");
    check("empty\n empty", "done model_failed");
    check("cut", "model 2");
    check("cut\n cut", "done truncated");
    check("cut shown", "done truncated");
    check("long", "done truncated");
    check("long else=b", "model 1 as b");
    check("refused", "done model_failed");
    check("fail\n call a\n gate a allow\n start a\n result a", "model 1");
}

/// SPEC 3.5: why a reply broke off may be told after it, and by nobody else.
#[test]
fn a_cut_reply_is_followed_by_its_failure() {
    check("cut shown\n fail shown fatal", "done model_failed");
    check("cut shown\n !fail", "done truncated");
    check("say\n !fail shown", "done end");
    check("cut shown\n steer\n fail shown fatal", "model 1");
}

/// The closing of each way out, as (kind, content) of its events.
#[track_caller]
fn check_closing(script: &str, expected: &[&str]) {
    let mut played = Script::play(script);
    let drafts = match played.turn.next() {
        crate::turn::Step::Done(reason) => played.turn.closing(reason),
        _ => played.turn.cancelling("interrupted by the user"),
    };
    let shown = |draft: &Draft| match &draft.body {
        Body::ToolResult(result) => format!("{} {:?}", result.tool_call_id, result.end),
        Body::TurnEnded(ended) => ended.reason.word().to_owned(),
        _ => draft.content.clone(),
    };
    assert_eq!(
        drafts.iter().map(shown).collect::<Vec<_>>(),
        expected,
        "after\n{script}"
    );
    for draft in drafts {
        played.apply(draft).unwrap();
    }
    assert!(played.turn.ended().is_some());
    assert!(played.turn.calls().iter().all(|call| !call.is_open()));
    assert!(played.turn.closing(StopReason::End).is_empty(), "it closes twice");
}

/// SPEC 3.7: every way out answers all open calls and ends in the assistant's text.
#[test]
fn every_way_out_closes_the_turn() {
    check_closing("say", &["end"]);
    check_closing(
        "fail fatal",
        &["[stopped: no reply from the model: http_500]", "model_failed"],
    );
    check_closing(
        "cut shown\n fail shown",
        &["[stopped: the reply broke off: http_500]", "model_failed"],
    );
    check_closing("cut shown", &["[stopped: the reply was cut off]", "truncated"]);
    check_closing("long", &["[stopped: the reply reached its length limit]", "truncated"]);
    check_closing("refused", &["[stopped: the model refused to answer]", "model_failed"]);
    let limit = "call a\n gate a allow mcp\n start a\n result a\n call b\n result b limit";
    check_closing(limit, &["[stopped: tool call limit reached]", "limit"]);
    check_closing("cancelled", &["[stopped: ^C]", "cancelled"]);
}

/// SPEC 3.5a, 3.7: cancelling closes at once wherever the turn stands; what ran is in doubt, what did not run never will.
#[test]
fn a_cancel_closes_at_once() {
    let word = "interrupted by the user";
    let text = "[stopped: interrupted by the user]";
    check_closing("", &[word, text, "cancelled"]);
    check_closing("call a\n gate a ask", &[word, "a NotRun", text, "cancelled"]);
    let running = "call a b\n gate a allow\n gate b allow\n start a";
    check_closing(running, &[word, "a Interrupted", "b NotRun", text, "cancelled"]);
    check("call a\n cancelled\n !gate a allow\n !say", "done cancelled");
}

/// SPEC 3.5b: a result after `call_started` is always legal, even after `cancelled`; the first one is what counts.
#[test]
fn a_late_result_is_kept_and_changes_nothing() {
    let running = "call a\n gate a allow\n start a\n";
    check(&format!("{running} cancelled\n result a\n close"), "done cancelled");
    let mut late = Script::play(&format!("{running} cancel"));
    late.line("result a");
    assert_eq!(late.turn.calls()[0].end, Some(ResultEnd::Interrupted));
    check("call a\n gate a allow client\n cancel\n !result a", "done cancelled");
}

/// SPEC 3.7: a turn does not end with calls open, with nothing said, or with a message unanswered.
#[test]
fn a_turn_does_not_end_unfinished() {
    check("call a\n !end", "gate a");
    check("!end", "model 1");
    check("call a\n gate a allow\n start a\n result a\n !end", "model 1");
    check("say\n steer\n !end", "model 1");
    check("cancelled\n !end\n !blank", "done cancelled");
    check("say\n close\n !end\n !cancelled", "done end");
}
