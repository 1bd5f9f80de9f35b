//! The turn as a pure fold over its events (SPEC 3.1).
//!
//! [`Turn::apply`] folds one event in; [`Turn::next`] says what must happen next. Whoever drives performs the step, appends
//! what came of it to the ledger, applies those events and asks again: call `next` after each append, never while a
//! tool of yours still runs. At [`Step::AskApproval`] and [`Step::AwaitClient`] a driver returns; resuming is to fold
//! and drive on. There is nothing to save besides the events.
//!
//! A call goes `tool_call` → `call_gated` → (`call_answered`) → `call_started` → `tool_result`. Only a driver that holds the
//! session's lease calls `next`, so a call it finds started and unfinished was cut by a crash: its step says
//! [`How::Answer`] with [`ResultEnd::Interrupted`], never to run it again.

use crate::action::Digest;
use crate::event::{
    Answer, Assistant, Body, CallAnswered, CallGated, CallSource, CallStarted, Event, ModelFailed, ReplyStop,
    ResultEnd, ToolCall, ToolResult, TurnStarted,
};
use crate::id::{CallId, ContinuationId, ReplyId};
use crate::message::ToolChoice;
use crate::policy::Verdict;
use serde::{Deserialize, Serialize};

mod closing;
mod step;
#[cfg(test)]
mod tests;

pub use step::{How, Job, Step};

/// Why a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model answered.
    End,
    /// A limit was reached and the model summed up.
    Limit,
    /// Every call of the last round was refused, and the model answered.
    Declined,
    /// No reply could be had.
    ModelFailed,
    /// The reply was cut off.
    Truncated,
    /// Somebody cancelled it.
    Cancelled,
}

impl StopReason {
    /// The word written into the ledger and into `--output json`.
    pub fn word(self) -> &'static str {
        match self {
            Self::End => "end",
            Self::Limit => "limit",
            Self::Declined => "declined",
            Self::ModelFailed => "model_failed",
            Self::Truncated => "truncated",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Why an event may not follow those before it. The ledger is not to be given such an event; one that is found in it all
/// the same is passed over.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidEvent {
    /// The turn has not begun.
    #[error("the turn has not started")]
    NotStarted,
    /// The turn has begun already.
    #[error("the turn has started already")]
    AlreadyStarted,
    /// The turn is over or cancelled.
    #[error("the turn is over")]
    TurnClosed,
    /// An event of a turn that is not this session's last one.
    #[error("the event belongs to turn {0}, which is not the current one")]
    WrongTurn(u64),
    /// A sequence number out of order.
    #[error("event {got} does not follow event {last}")]
    OutOfOrder {
        /// Its number.
        got: u64,
        /// The last one folded.
        last: u64,
    },
    /// No such call in this turn.
    #[error("no call {0} in this turn")]
    UnknownCall(CallId),
    /// The call was not expected to do that now.
    #[error("call {call} {problem}")]
    Call {
        /// Which call.
        call: CallId,
        /// What is wrong, e.g. `was not approved`.
        problem: &'static str,
    },
    /// What is quoted is not what was shown.
    #[error("the digest does not match what was shown for call {0}")]
    Digest(CallId),
    /// It was answered otherwise before.
    #[error("call {0} was answered otherwise already")]
    AnsweredOtherwise(CallId),
    /// A reply came while calls of the last one are open.
    #[error("calls are still open")]
    OpenCalls,
    /// The turn waits for an answer: answer or cancel first.
    #[error("the turn waits for an answer: answer or cancel it first")]
    Waiting,
    /// A continuation that is not the current one.
    #[error("continuation {0} is not the current one")]
    Continuation(ContinuationId),
}

/// A call and how far it got.
#[derive(Clone, Debug)]
pub struct Call {
    /// Its id.
    pub id: CallId,
    /// The tool's name as people see it.
    pub name: String,
    /// The place of its `tool_call` event, where its arguments are.
    pub seq: u64,
    /// What the gate said.
    pub gated: Option<CallGated>,
    /// What a person said.
    pub answered: Option<CallAnswered>,
    /// True once `call_started` is in the ledger.
    pub started: bool,
    /// How it ended; `None` while it is open.
    pub end: Option<ResultEnd>,
    /// An earlier call of the same reply with the same name and arguments.
    pub same_as: Option<CallId>,
    arguments_key: Digest,
}

impl Call {
    /// True while it has no result.
    pub fn is_open(&self) -> bool {
        self.end.is_none()
    }

    /// True while a person's answer is missing.
    pub fn awaits_answer(&self) -> bool {
        self.is_open()
            && self.answered.is_none()
            && self.gated.as_ref().is_some_and(|gated| gated.verdict == Verdict::Ask)
    }

    /// True when the gate or a person allowed it.
    pub fn may_run(&self) -> bool {
        match (&self.gated, &self.answered) {
            (
                Some(CallGated {
                    verdict: Verdict::Allow,
                    ..
                }),
                _,
            ) => true,
            (
                Some(CallGated {
                    verdict: Verdict::Ask, ..
                }),
                Some(answered),
            ) => answered.answer == Answer::Approve,
            (None | Some(_), _) => false,
        }
    }

    /// Where it runs, as the gate said.
    pub fn source(&self) -> CallSource {
        self.gated.as_ref().map_or(CallSource::Builtin, |gated| gated.source)
    }

    fn is_client(&self) -> bool {
        self.source() == CallSource::Client
    }

    fn digest(&self) -> Option<&Digest> {
        self.gated.as_ref().and_then(|gated| gated.digest.as_ref())
    }
}

/// What the model did last.
#[derive(Clone, Debug)]
enum Last {
    Nothing,
    Reply(LastReply),
    Failed(ModelFailed),
}

#[derive(Clone, Debug)]
struct LastReply {
    id: ReplyId,
    stop: ReplyStop,
    attempt: u32,
    has_text: bool,
    context_seq: u64,
}

/// The state of one turn: what folding its events gives.
#[derive(Clone, Debug)]
pub struct Turn {
    number: u64,
    started: Option<TurnStarted>,
    asked: bool,
    steered_seq: u64,
    last: Last,
    replies: usize,
    calls: Vec<Call>,
    /// Where the calls of the current round begin in `calls`.
    round_start: usize,
    /// Where the calls of the round before it began.
    previous_round_start: usize,
    /// Rounds before the current one.
    rounds_before: u32,
    mcp_rounds_before: u32,
    continuation: Option<ContinuationId>,
    cancelled: Option<String>,
    closing_text: bool,
    ended: Option<StopReason>,
}

impl Turn {
    /// A turn before its first event, `turn_started`.
    pub fn new(number: u64) -> Self {
        Self {
            number,
            started: None,
            asked: false,
            steered_seq: 0,
            last: Last::Nothing,
            replies: 0,
            calls: Vec::new(),
            round_start: 0,
            previous_round_start: 0,
            rounds_before: 0,
            mcp_rounds_before: 0,
            continuation: None,
            cancelled: None,
            closing_text: false,
            ended: None,
        }
    }

    /// Its number in the session, from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Limits, mode and model in force; the defaults before the turn began.
    pub fn settings(&self) -> TurnStarted {
        self.started.clone().unwrap_or_default()
    }

    /// How it ended, once it has.
    pub fn ended(&self) -> Option<StopReason> {
        self.ended
    }

    /// True from `turn_ended` or `cancelled` on.
    pub fn is_closed(&self) -> bool {
        self.ended.is_some() || self.cancelled.is_some()
    }

    /// True while it waits for somebody: a person's answer or a client's result.
    pub fn is_waiting(&self) -> bool {
        matches!(self.next(), Step::AskApproval(_) | Step::AwaitClient(_))
    }

    /// Every call of the turn so far, in call order.
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// One call.
    pub fn call(&self, id: &CallId) -> Option<&Call> {
        self.calls.iter().find(|call| call.id == *id)
    }

    /// The id for the next reply's event.
    pub fn next_reply_id(&self) -> ReplyId {
        ReplyId::nth(self.number, self.replies + 1)
    }

    /// The id for the `offset`th call (from 0) of the next reply.
    pub fn next_call_id(&self, offset: usize) -> CallId {
        CallId::nth(self.number, self.calls.len() + offset + 1)
    }

    /// The continuation the turn is suspended under, if it is.
    pub fn continuation(&self) -> Option<&ContinuationId> {
        self.continuation.as_ref()
    }

    /// Why the last request to the model failed, if it did.
    pub fn last_failure(&self) -> Option<&ModelFailed> {
        match &self.last {
            Last::Failed(failed) => Some(failed),
            Last::Nothing | Last::Reply(_) => None,
        }
    }

    /// Folds one event. An error leaves the turn as it was.
    ///
    /// # Errors
    /// The event may not follow those before it.
    pub fn apply(&mut self, event: &Event) -> Result<(), InvalidEvent> {
        if event.turn != self.number {
            return Err(InvalidEvent::WrongTurn(event.turn));
        }
        if let Body::TurnStarted(data) = &event.body {
            if self.started.is_some() {
                return Err(InvalidEvent::AlreadyStarted);
            }
            self.started = Some(data.clone());
            return Ok(());
        }
        if self.started.is_none() {
            return Err(InvalidEvent::NotStarted);
        }
        match &event.body {
            Body::User(_) => self.apply_user(event.seq),
            Body::Assistant(data) => self.apply_assistant(data, &event.content),
            Body::ToolCall(data) => self.apply_call(data, event.seq),
            Body::CallGated(data) => self.apply_gated(data),
            Body::CallAnswered(data) => self.apply_answered(data),
            Body::CallStarted(data) => self.apply_started(data),
            Body::ToolResult(data) => self.apply_result(data),
            Body::ModelFailed(data) => {
                self.expect_model()?;
                self.last = Last::Failed(data.clone());
                Ok(())
            }
            Body::Suspended(data) => {
                self.expect_unclosed()?;
                self.continuation = Some(data.continuation.clone());
                Ok(())
            }
            Body::Resumed(data) => {
                self.expect_unclosed()?;
                if self.continuation.as_ref() != Some(&data.continuation) {
                    return Err(InvalidEvent::Continuation(data.continuation.clone()));
                }
                self.continuation = None;
                Ok(())
            }
            Body::Cancelled(data) => {
                self.expect_unclosed()?;
                self.cancelled = Some(data.reason.clone());
                self.continuation = None;
                Ok(())
            }
            Body::TurnEnded(data) => {
                if self.ended.is_some() {
                    return Err(InvalidEvent::TurnClosed);
                }
                if self.calls.iter().any(Call::is_open) {
                    return Err(InvalidEvent::OpenCalls);
                }
                self.ended = Some(data.reason);
                self.continuation = None;
                Ok(())
            }
            Body::TurnStarted(_)
            | Body::System(_)
            | Body::Command(_)
            | Body::Usage(_)
            | Body::Clear
            | Body::Mark(_)
            | Body::Rewind(_)
            | Body::Fork(_)
            | Body::Compaction(_)
            | Body::Memory(_)
            | Body::Note(_)
            | Body::Unknown { .. } => Ok(()),
        }
    }

    fn expect_unclosed(&self) -> Result<(), InvalidEvent> {
        if self.is_closed() {
            Err(InvalidEvent::TurnClosed)
        } else {
            Ok(())
        }
    }

    /// A reply or a failure may come now.
    fn expect_model(&self) -> Result<(), InvalidEvent> {
        self.expect_unclosed()?;
        if self.round().iter().any(Call::is_open) {
            return Err(InvalidEvent::OpenCalls);
        }
        Ok(())
    }

    fn apply_user(&mut self, seq: u64) -> Result<(), InvalidEvent> {
        self.expect_unclosed()?;
        if self.asked {
            if self.is_waiting() {
                return Err(InvalidEvent::Waiting);
            }
            self.steered_seq = seq;
        }
        self.asked = true;
        Ok(())
    }

    fn apply_assistant(&mut self, data: &Assistant, content: &str) -> Result<(), InvalidEvent> {
        if data.stop == ReplyStop::Closing {
            if self.ended.is_some() {
                return Err(InvalidEvent::TurnClosed);
            }
            self.closing_text = true;
            return Ok(());
        }
        self.expect_model()?;
        if !self.round().is_empty() {
            self.rounds_before += 1;
            self.mcp_rounds_before += u32::from(self.round_has_mcp());
            self.previous_round_start = self.round_start;
            self.round_start = self.calls.len();
        }
        self.replies += 1;
        self.last = Last::Reply(LastReply {
            id: data.reply_id.clone(),
            stop: data.stop,
            attempt: data.attempt.max(1),
            has_text: !content.trim().is_empty(),
            context_seq: data.context_seq,
        });
        Ok(())
    }

    fn apply_call(&mut self, data: &ToolCall, seq: u64) -> Result<(), InvalidEvent> {
        self.expect_unclosed()?;
        let problem = |problem| InvalidEvent::Call {
            call: data.id.clone(),
            problem,
        };
        let Last::Reply(reply) = &self.last else {
            return Err(problem("belongs to no reply"));
        };
        if data.reply_id.as_ref() != Some(&reply.id) {
            return Err(problem("belongs to another reply"));
        }
        if !matches!(reply.stop, ReplyStop::End | ReplyStop::ToolCalls) {
            return Err(problem("was cut off and can never run"));
        }
        if self.call(&data.id).is_some() {
            return Err(problem("exists already"));
        }
        if self.round().iter().any(|call| call.gated.is_some()) {
            return Err(problem("comes after its reply was gated"));
        }
        let arguments_key = step::arguments_key(&data.function.arguments);
        let same_as = self
            .round()
            .iter()
            .find(|call| call.name == data.function.name && call.arguments_key == arguments_key)
            .map(|call| call.same_as.clone().unwrap_or_else(|| call.id.clone()));
        self.calls.push(Call {
            id: data.id.clone(),
            name: data.function.name.clone(),
            seq,
            gated: None,
            answered: None,
            started: false,
            end: None,
            same_as,
            arguments_key,
        });
        Ok(())
    }

    fn apply_gated(&mut self, data: &CallGated) -> Result<(), InvalidEvent> {
        self.expect_unclosed()?;
        let call = self.call_mut(&data.call_id)?;
        if call.gated.is_some() || !call.is_open() {
            return Err(call.problem("was gated already"));
        }
        if data.digest.is_none() && data.verdict != Verdict::Invalid {
            return Err(call.problem("was gated without a digest"));
        }
        call.gated = Some(data.clone());
        Ok(())
    }

    fn apply_answered(&mut self, data: &CallAnswered) -> Result<(), InvalidEvent> {
        let closed = self.is_closed();
        let call = self.call_mut(&data.call_id)?;
        if let Some(earlier) = &call.answered {
            // The same answer again is accepted and changes nothing (SPEC 3.3).
            return if earlier.answer == data.answer && earlier.digest == data.digest {
                Ok(())
            } else {
                Err(InvalidEvent::AnsweredOtherwise(data.call_id.clone()))
            };
        }
        if closed {
            return Err(InvalidEvent::TurnClosed);
        }
        if !call.awaits_answer() {
            return Err(call.problem("was not asked about"));
        }
        if call.digest() != Some(&data.digest) {
            return Err(InvalidEvent::Digest(data.call_id.clone()));
        }
        call.answered = Some(data.clone());
        Ok(())
    }

    fn apply_started(&mut self, data: &CallStarted) -> Result<(), InvalidEvent> {
        self.expect_unclosed()?;
        if self
            .round()
            .iter()
            .any(|call| call.awaits_answer() || call.needs_gate())
        {
            return Err(InvalidEvent::Waiting);
        }
        let after_limit = self.is_after_limit();
        let call = self.call_mut(&data.call_id)?;
        if call.started || !call.is_open() {
            return Err(call.problem("was started already"));
        }
        if !call.may_run() || call.is_client() || after_limit {
            return Err(call.problem("was not approved"));
        }
        if call.digest() != Some(&data.digest) {
            return Err(InvalidEvent::Digest(data.call_id.clone()));
        }
        call.started = true;
        Ok(())
    }

    fn apply_result(&mut self, data: &ToolResult) -> Result<(), InvalidEvent> {
        let waits = self
            .round()
            .iter()
            .any(|call| call.awaits_answer() || call.needs_gate());
        let closed = self.is_closed();
        let call = self.call_mut(&data.tool_call_id)?;
        if call.end.is_some() {
            // A late result of a call that ran stays in the ledger; the first one is what counts (SPEC 3.5a).
            return if call.started {
                Ok(())
            } else {
                Err(call.problem("has a result already"))
            };
        }
        let ran_here = call.started;
        let ran_at_client = call.is_client() && call.may_run() && !waits && !closed;
        match data.end {
            ResultEnd::Completed if !ran_here && !ran_at_client => return Err(call.problem("never ran")),
            ResultEnd::Interrupted if !ran_here => return Err(call.problem("was never started")),
            ResultEnd::Duplicate if call.same_as.is_none() => return Err(call.problem("is no duplicate")),
            ResultEnd::Declined | ResultEnd::Denied | ResultEnd::Invalid | ResultEnd::NotRun | ResultEnd::Limit
                if ran_here =>
            {
                return Err(call.problem("was started"));
            }
            ResultEnd::Completed
            | ResultEnd::Interrupted
            | ResultEnd::Duplicate
            | ResultEnd::Declined
            | ResultEnd::Denied
            | ResultEnd::Invalid
            | ResultEnd::NotRun
            | ResultEnd::Limit => {}
        }
        call.end = Some(data.end);
        Ok(())
    }

    fn call_mut(&mut self, id: &CallId) -> Result<&mut Call, InvalidEvent> {
        self.calls
            .iter_mut()
            .find(|call| call.id == *id)
            .ok_or_else(|| InvalidEvent::UnknownCall(id.clone()))
    }

    /// The calls of the last reply.
    fn round(&self) -> &[Call] {
        self.calls.get(self.round_start..).unwrap_or_default()
    }

    fn round_has_mcp(&self) -> bool {
        self.round().iter().any(|call| call.source() == CallSource::Mcp)
    }
}

impl Call {
    fn problem(&self, problem: &'static str) -> InvalidEvent {
        InvalidEvent::Call {
            call: self.id.clone(),
            problem,
        }
    }

    /// True while the gate has not said anything of it. A duplicate shares the verdict of the call it repeats.
    fn needs_gate(&self) -> bool {
        self.is_open() && self.gated.is_none() && self.same_as.is_none()
    }
}
