//! A driver gone mad: it tries whatever it likes, a start above all, and only the fold stands between it and the ledger.
//!
//! An honest driver does what `next` says and would never find out that a rule of `apply` is missing; a driver that lost a
//! race, or has a bug, would.

use super::driver::{Executions, digest, result, suspended};
use super::ledger::Ledger;
use super::support::rng::Rng;
use aish_core::event::{Body, CallGated, CallSource, CallStarted, CallTakenUp, Draft, Function, ResultEnd, ToolCall};
use aish_core::id::{CallId, ReplyId};
use aish_core::policy::Verdict;
use aish_core::session::Session;

/// One attempt at anything. What is let through and starts a call really runs it.
pub fn try_anything(ledger: &mut Ledger, view: &mut Session, rng: &mut Rng, executions: &mut Executions) {
    ledger.catch_up(view);
    let Some(turn) = view.turn() else { return };
    let number = turn.number();
    let calls: Vec<CallId> = turn.calls().iter().map(|call| call.id.clone()).collect();
    let replies = ledger
        .events
        .iter()
        .filter(|event| event.turn == number)
        .filter_map(|event| match &event.body {
            Body::Assistant(data) => Some(data.reply_id.clone()),
            _ => None,
        });
    let replies: Vec<ReplyId> = replies.collect();
    if rng.percent(15) && !replies.is_empty() {
        let function = Function {
            name: "bash".into(),
            arguments: rng.pick(&["{}", "{\"a\":9}"]).to_owned(),
        };
        let data = ToolCall {
            id: turn.next_call_id(0),
            call_type: "function".into(),
            function,
            reply_id: Some(rng.pick(&replies)),
            provider_id: None,
        };
        let _refused = ledger.append(view, vec![Draft::tool_call(number, data)]);
        return;
    }
    if calls.is_empty() {
        return;
    }
    let call_id = rng.pick(&calls);
    let draft = match rng.below(12) {
        9 => suspended(number, &call_id),
        10 => {
            let gated = turn.call(&call_id).and_then(|call| call.gated.clone());
            let digest = gated.and_then(|gated| gated.digest).unwrap_or_else(|| digest(0));
            let call_id = call_id.clone();
            Draft::new(number, "", Body::CallTakenUp(CallTakenUp { call_id, digest }))
        }
        0..6 => {
            let gated = turn.call(&call_id).and_then(|call| call.gated.clone());
            let shown = gated.and_then(|gated| gated.digest).filter(|_| rng.percent(80));
            let digest = shown.unwrap_or_else(|| digest(rng.below(3)));
            let call_id = call_id.clone();
            Draft::new(number, "", Body::CallStarted(CallStarted { call_id, digest }))
        }
        6..9 => Draft::new(
            number,
            "",
            Body::CallGated(CallGated {
                call_id: call_id.clone(),
                verdict: rng.pick(&[Verdict::Allow, Verdict::Ask, Verdict::Deny]),
                rule: "none".into(),
                digest: Some(digest(rng.below(3))),
                source: CallSource::Builtin,
                read_only: rng.percent(30),
                error: None,
            }),
        ),
        _ => {
            let end = rng.pick(&[
                ResultEnd::Completed,
                ResultEnd::Duplicate,
                ResultEnd::Interrupted,
                ResultEnd::Denied,
            ]);
            result(number, view, &call_id, "made up", end, true)
        }
    };
    let starts = matches!(draft.body, Body::CallStarted(_));
    if ledger.append(view, vec![draft]).is_ok() && starts {
        ledger.assert_may_execute(&call_id);
        *executions.entry(call_id).or_default() += 1;
    }
}
