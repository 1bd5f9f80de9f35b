//! What must happen next in a turn: the decision half of the fold.

use super::{Asking, Call, Last, LastReply, StopReason, ToolChoice, Turn};
use crate::action::{Digest, canonical_json};
use crate::event::{CallAnswered, CallSource, ReplyStop, ResultEnd};
use crate::id::CallId;
use crate::policy::Verdict;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// What must happen next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Ask the model; append its `assistant` and `tool_call` events, or `model_failed`.
    CallModel {
        /// Which attempt at this reply, from 1.
        attempt: u32,
        /// Whether it may call tools.
        tool_choice: ToolChoice,
        /// Wait this long first, in milliseconds.
        wait_ms: u64,
        /// The model to ask, by its configured name, where the turn was handed over to it (SPEC 7.6); `None` leaves it to the
        /// settings in force.
        model: Option<String>,
    },
    /// Judge these calls; append a `call_gated` for each.
    Gate(Vec<CallId>),
    /// Return: a person must answer these; each answer is a `call_answered`.
    AskApproval(Vec<CallId>),
    /// Do these in order, each ending in a `tool_result`.
    RunTools(Vec<Job>),
    /// Return, unless whoever is there can be asked: these stopped in the middle to ask something. Each goes on after a
    /// `call_taken_up`, in order, or ends in a `tool_result`.
    AwaitPerson(Vec<Job>),
    /// Return: the remote client executes these; each ends in a `tool_result`.
    AwaitClient(Vec<CallId>),
    /// Nothing but closing remains: append what [`Turn::closing`] gives, if anything.
    Done(StopReason),
}

/// One call to bring to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Which call.
    pub call: CallId,
    /// How it comes to its end.
    pub how: How,
    /// When set, this result is the last before the turn's limit, which it must mention (SPEC 3.6).
    pub limit: Option<u32>,
}

/// How a call comes to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum How {
    /// By running it: append `call_started`, then run. In [`Step::AwaitPerson`]: `call_taken_up`, then go on.
    Run {
        /// The digest that was approved; what runs must have the same.
        digest: Digest,
        /// True when it may run beside others of its kind.
        read_only: bool,
    },
    /// By this result, without running it.
    Answer {
        /// The output, `{"error":"…"}` as text.
        output: String,
        /// The readable summary.
        summary: String,
        /// What kind of end it is.
        end: ResultEnd,
    },
    /// By the result of an earlier call of the same reply that was the same.
    SameAs(CallId),
}

impl How {
    fn error(message: impl Into<String>, end: ResultEnd) -> Self {
        let summary = message.into();
        Self::Answer {
            output: json!({ "error": summary }).to_string(),
            summary,
            end,
        }
    }
}

impl Turn {
    /// What must happen next.
    pub fn next(&self) -> Step {
        if let Some(reason) = self.ended {
            return Step::Done(reason);
        }
        if self.cancelled.is_some() {
            return Step::Done(StopReason::Cancelled);
        }
        let step = self.next_while_open();
        if self.closing_text && !matches!(step, Step::Done(_)) {
            // A closing text without its `turn_ended`: no driver writes that, a copied ledger may hold it.
            return Step::Done(StopReason::Cancelled);
        }
        step
    }

    fn next_while_open(&self) -> Step {
        if !self.asked {
            // Its question never came: there is nothing to ask a model.
            return Step::Done(StopReason::Cancelled);
        }
        if self.round().iter().any(Call::is_open) {
            return self.next_in_round();
        }
        match &self.last {
            Last::Nothing => self.call_model(1, 0),
            Last::Failed(failed) if failed.retryable && !failed.text_shown => {
                match self.attempt_after(failed.attempt) {
                    Some(attempt) => self.call_model(attempt, failed.retry_after_ms.unwrap_or(0)),
                    None => self.hand_over(failed.fallback.as_ref(), StopReason::ModelFailed),
                }
            }
            // What was shown is not asked for again from anybody without the person knowing.
            Last::Failed(failed) if failed.text_shown => Step::Done(StopReason::ModelFailed),
            Last::Failed(failed) => self.hand_over(failed.fallback.as_ref(), StopReason::ModelFailed),
            Last::Reply(reply) => self.next_after_reply(reply),
        }
    }

    /// Calls of the last reply are open.
    fn next_in_round(&self) -> Step {
        let open = || self.round().iter().filter(|call| call.is_open());
        let ids = |calls: Vec<&Call>| calls.into_iter().map(|call| call.id.clone()).collect::<Vec<_>>();
        if self.is_after_limit() {
            return Step::RunTools(open().map(|call| self.job(call, self.limit_answer(call))).collect());
        }
        let ungated = ids(open().filter(|call| call.needs_gate()).collect());
        if !ungated.is_empty() {
            return Step::Gate(ungated);
        }
        let unanswered = ids(open().filter(|call| call.awaits_answer()).collect());
        if !unanswered.is_empty() {
            return Step::AskApproval(unanswered);
        }
        let asking: Vec<Job> = open()
            .filter(|call| call.awaits_person())
            .map(|call| self.job(call, self.how_allowed(call)))
            .collect();
        if !asking.is_empty() {
            return Step::AwaitPerson(asking);
        }
        let client = |call: &&Call| call.is_client() && call.may_run();
        let waiting = ids(open().take_while(client).collect());
        if !waiting.is_empty() {
            return Step::AwaitClient(waiting);
        }
        Step::RunTools(
            open()
                .take_while(|call| !client(call))
                .map(|call| self.job(call, self.how(call)))
                .collect(),
        )
    }

    fn next_after_reply(&self, reply: &LastReply) -> Step {
        if !self.round().is_empty() {
            return if self.is_after_limit() {
                Step::Done(StopReason::Limit)
            } else {
                self.call_model(1, 0)
            };
        }
        if self.steered_seq > reply.context_seq {
            return self.call_model(1, 0);
        }
        if reply.stop == ReplyStop::Paused {
            return if self.pauses <= self.started.as_ref().map_or(0, |started| started.limits.max_tool_turns) {
                self.call_model(1, 0)
            } else {
                Step::Done(StopReason::Truncated)
            };
        }
        let settled = match (reply.stop, reply.has_text) {
            (ReplyStop::End | ReplyStop::ToolCalls | ReplyStop::Paused | ReplyStop::Closing, true) => {
                Some(self.answered_reason())
            }
            (ReplyStop::End | ReplyStop::ToolCalls | ReplyStop::Paused | ReplyStop::Closing, false) => None,
            (ReplyStop::Length | ReplyStop::Truncated, true) => Some(StopReason::Truncated),
            // The same request would reach the same limit again.
            (ReplyStop::Length, false) => return self.hand_over(reply.fallback.as_ref(), StopReason::Truncated),
            (ReplyStop::Truncated, false) => None,
            (ReplyStop::Refused, _) => Some(StopReason::ModelFailed),
            (ReplyStop::Interrupted, _) => Some(StopReason::Cancelled),
        };
        match (settled, self.attempt_after(reply.attempt)) {
            (Some(reason), _) => Step::Done(reason),
            (None, Some(attempt)) => self.call_model(attempt, 0),
            (None, None) if matches!(reply.stop, ReplyStop::Length | ReplyStop::Truncated) => {
                self.hand_over(reply.fallback.as_ref(), StopReason::Truncated)
            }
            (None, None) => self.hand_over(reply.fallback.as_ref(), StopReason::ModelFailed),
        }
    }

    /// The next model of the chain, or the end where there is none. A turn is never handed to the same model twice, so that
    /// two that name each other do not go on for ever.
    fn hand_over(&self, to: Option<&String>, otherwise: StopReason) -> Step {
        match to.filter(|to| !self.handed_to.contains(to)) {
            Some(to) => Step::CallModel {
                attempt: 1,
                tool_choice: self.tool_choice(),
                wait_ms: 0,
                model: Some(to.clone()),
            },
            None => Step::Done(otherwise),
        }
    }

    fn tool_choice(&self) -> ToolChoice {
        if self.limit_reached().is_some() {
            ToolChoice::None
        } else {
            ToolChoice::Auto
        }
    }

    fn call_model(&self, attempt: u32, wait_ms: u64) -> Step {
        Step::CallModel {
            attempt,
            tool_choice: self.tool_choice(),
            wait_ms,
            model: self.handed_to.last().cloned(),
        }
    }

    fn attempt_after(&self, attempt: u32) -> Option<u32> {
        let max = self
            .started
            .as_ref()
            .map_or(1, |started| started.limits.max_model_attempts);
        (attempt < max).then(|| attempt.saturating_add(1))
    }

    /// How a turn ends whose model has answered in text.
    fn answered_reason(&self) -> StopReason {
        let refused = |call: &Call| {
            // A repeated call came to whatever the call came to that it repeats.
            let original = call.same_as.as_ref().and_then(|id| self.call(id)).unwrap_or(call);
            matches!(original.end, Some(ResultEnd::Declined | ResultEnd::Denied))
        };
        // The calls of the last round that had any: a reply without calls begins no round.
        let last_round = self.calls.get(self.last_round_start()..).unwrap_or_default();
        if self.limit_reached().is_some() {
            StopReason::Limit
        } else if !last_round.is_empty() && last_round.iter().all(refused) {
            StopReason::Declined
        } else {
            StopReason::End
        }
    }

    /// The limit that is reached with the current round, if one is: rounds allowed.
    pub(super) fn limit_reached(&self) -> Option<u32> {
        let current = u32::from(!self.round().is_empty());
        let mcp = u32::from(self.round_has_mcp());
        // A round after the limit is not counted against another one: what stopped the loop is what was reached first.
        self.limit_before_round()
            .or_else(|| self.limit_at(self.rounds_before + current, self.mcp_rounds_before + mcp))
    }

    /// True when the current round was asked for after the limit had been reached: none of it runs.
    pub(super) fn is_after_limit(&self) -> bool {
        !self.round().is_empty() && self.limit_before_round().is_some()
    }

    fn limit_before_round(&self) -> Option<u32> {
        self.limit_at(self.rounds_before, self.mcp_rounds_before)
    }

    fn limit_at(&self, rounds: u32, mcp_rounds: u32) -> Option<u32> {
        let limits = &self.started.as_ref()?.limits;
        if rounds >= limits.max_tool_turns {
            Some(limits.max_tool_turns)
        } else if mcp_rounds > 0 && mcp_rounds >= limits.max_tool_depth {
            Some(limits.max_tool_depth)
        } else {
            None
        }
    }

    /// What the result of this call must say of the turn's limit: set for the last call of the round that reaches it. For
    /// results that do not come by a [`Job`] (a client's).
    pub fn limit_note(&self, call: &CallId) -> Option<u32> {
        let is_last = self.round().last().is_some_and(|last| last.id == *call);
        if is_last && !self.is_after_limit() {
            self.limit_reached()
        } else {
            None
        }
    }

    fn job(&self, call: &Call, how: How) -> Job {
        Job {
            call: call.id.clone(),
            how,
            limit: self.limit_note(&call.id),
        }
    }

    fn limit_answer(&self, call: &Call) -> How {
        if call.started {
            return self.how(call);
        }
        let limit = self.limit_reached().unwrap_or_default();
        How::error(
            format!("Tool call limit reached ({limit}). Stopping tool loop."),
            ResultEnd::Limit,
        )
    }

    fn how(&self, call: &Call) -> How {
        match &call.asking {
            Asking::Refused(answered) => return declined(answered),
            Asking::Nothing | Asking::Waits if call.started => {
                return How::error(INTERRUPTED, ResultEnd::Interrupted);
            }
            Asking::Nothing | Asking::Waits => {}
        }
        if let Some(same) = &call.same_as {
            return How::SameAs(same.clone());
        }
        self.how_allowed(call)
    }

    /// What gate and person made of a call that has not come to an end.
    fn how_allowed(&self, call: &Call) -> How {
        let Some(gated) = &call.gated else {
            return How::error("Not run: it was never judged", ResultEnd::NotRun);
        };
        match (gated.verdict, &gated.digest, &call.answered) {
            (Verdict::Invalid, _, _) => {
                let output = gated
                    .error
                    .clone()
                    .unwrap_or_else(|| json!({ "error": gated.rule }).to_string());
                How::Answer {
                    output,
                    summary: gated.rule.clone(),
                    end: ResultEnd::Invalid,
                }
            }
            (Verdict::Deny, _, _) => How::error(format!("denied by policy: {}", gated.rule), ResultEnd::Denied),
            (Verdict::Ask, _, Some(answered)) if !call.may_run() => declined(answered),
            (Verdict::Allow | Verdict::Ask, Some(digest), _) if gated.source != CallSource::Client => How::Run {
                digest: digest.clone(),
                read_only: gated.read_only,
            },
            (Verdict::Allow | Verdict::Ask, _, _) => How::error("Not run: it was never approved", ResultEnd::NotRun),
        }
    }

    fn last_round_start(&self) -> usize {
        // Within one turn, calls of one reply follow each other; the last reply that had calls began at `round_start`
        // unless a reply without calls has moved it to the end.
        if self.round().is_empty() {
            self.previous_round_start
        } else {
            self.round_start
        }
    }
}

/// What the model is told of a person's no.
fn declined(answered: &CallAnswered) -> How {
    match answered.reason.as_deref() {
        Some(reason) if !reason.is_empty() => {
            How::error(format!("declined by the user: {reason}"), ResultEnd::Declined)
        }
        Some(_) | None => How::error("declined by the user", ResultEnd::Declined),
    }
}

/// What the model is told of a call that was cut: never that it failed, for it may have succeeded.
pub(super) const INTERRUPTED: &str =
    "interrupted: the call was started and its end is not known; it may have taken effect";

/// What [`arguments_key`] gives.
pub(super) type ArgumentsKey = [u8; 32];

/// A key under which calls of one reply count as the same: name aside, equal JSON, or equal text where it is no JSON.
pub(super) fn arguments_key(arguments: &str) -> ArgumentsKey {
    let mut text = String::new();
    let trimmed = arguments.trim();
    match serde_json::from_str::<Value>(if trimmed.is_empty() { "{}" } else { trimmed }) {
        Ok(value) => canonical_json(&value, &mut text),
        Err(_) => text.push_str(arguments),
    }
    Sha256::digest(text.as_bytes()).into()
}
