//! The turn as a pure fold over its events (SPEC 3.1).
//!
//! [`Turn::apply`] folds one event in; [`Turn::next`] says what must happen next. Whoever drives performs the step, appends
//! what came of it to the ledger, applies those events and asks again: call `next` after each append, never while a
//! tool of yours still runs. At [`Step::AskApproval`], [`Step::AwaitPerson`] and [`Step::AwaitClient`] a driver returns;
//! resuming is to fold and drive on. There is nothing to save besides the events.
//!
//! A call goes `tool_call` → `call_gated` → (`call_answered`) → `call_started` → `tool_result`. Only a driver that holds the
//! session's lease calls `next`, so a call it finds started and unfinished was cut by a crash: its step says
//! [`How::Answer`] with [`ResultEnd::Interrupted`], never to run it again.
//!
//! A call may stop in the middle to ask something (SPEC 6.9): `call_started` → `call_suspended` → `call_taken_up` → …, as often
//! as it asks. Between `call_suspended` and `call_taken_up` nothing of it runs, so no crash puts it in doubt. From
//! `call_taken_up` on it is a started call like any other: the answers may have reached its server, and what the server did
//! with them is not known.

use crate::action::Digest;
use crate::event::{
    Answer, CallAnswered, CallGated, CallSource, ModelFailed, ReplyStop, ResultEnd, Served, Suspended, TurnStarted,
};
use crate::id::{CallId, ContinuationId, ReplyId};
use crate::message::ToolChoice;
use crate::policy::Verdict;
use serde::{Deserialize, Serialize};

mod apply;
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
    /// The session's context cannot change under a running turn.
    #[error("a turn is still open: answer it, wait for it or cancel it first")]
    TurnOpen,
    /// The turn does not wait for anybody: there is nothing to suspend on.
    #[error("the turn does not wait for an answer")]
    NotWaiting,
    /// A reply to a request that was built before the last results came: another driver has gone on since.
    #[error("the reply has not seen the last results")]
    StaleReply,
    /// A reply of that id is there already.
    #[error("reply {0} exists already")]
    ReplyExists(ReplyId),
    /// The turn may not end yet: the conversation would not end in text (SPEC 3.7).
    #[error("the turn has no closing text")]
    NoClosingText,
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
    /// Whether it waits for an answer in the middle.
    pub asking: Asking,
    /// How it ended; `None` while it is open.
    pub end: Option<ResultEnd>,
    /// An earlier call of the same reply with the same name and arguments.
    pub same_as: Option<CallId>,
    arguments_key: step::ArgumentsKey,
}

/// How a started call stands with what it asks in the middle (SPEC 6.9).
#[derive(Clone, Debug, PartialEq)]
pub enum Asking {
    /// It asks nothing, or what it asked is answered: it runs.
    Nothing,
    /// It waits for an answer.
    Waits,
    /// Somebody declined to answer: it does not go on.
    Refused(CallAnswered),
}

impl Call {
    /// True while it waits for somebody to answer what it asks.
    pub fn awaits_person(&self) -> bool {
        self.is_open() && self.asking == Asking::Waits
    }

    /// True for a started call of which it is not known how far it got, if nobody runs it now.
    pub fn is_in_doubt(&self) -> bool {
        self.is_open() && self.started && self.asking == Asking::Nothing
    }

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

impl ReplyStop {
    /// True for a reply that broke off or was paused: whatever calls it had can never run, nor be sent (SPEC 7.3).
    pub(crate) fn is_cut(self) -> bool {
        match self {
            Self::Paused | Self::Length | Self::Truncated | Self::Refused | Self::Interrupted => true,
            Self::End | Self::ToolCalls | Self::Closing => false,
        }
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
    fallback: Option<String>,
    /// Why it was withheld or broke off, in the provider's words.
    reason: Option<String>,
    /// The call it broke off in.
    cut_call: Option<String>,
}

/// The state of one turn: what folding its events gives.
#[derive(Clone, Debug)]
pub struct Turn {
    number: u64,
    started: Option<TurnStarted>,
    /// True once the user's question is there: before it there is nothing to ask a model.
    asked: bool,
    /// The last message typed while the turn ran; 0 when there was none.
    steered_seq: u64,
    /// The last event a new reply must have seen: the question, the last reply, the last result.
    settled_seq: u64,
    last: Last,
    reply_ids: Vec<ReplyId>,
    calls: Vec<Call>,
    /// Where the calls of the current round begin in `calls`.
    round_start: usize,
    /// Where the calls of the round before it began.
    previous_round_start: usize,
    /// Rounds before the current one.
    rounds_before: u32,
    mcp_rounds_before: u32,
    /// Replies that their provider paused: each is another request, so they are counted against the limit of rounds.
    pauses: u32,
    /// The models the turn was handed to after another had failed, in order: it stays with the last one.
    handed_to: Vec<String>,
    suspended: Option<Suspended>,
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
            settled_seq: 0,
            last: Last::Nothing,
            reply_ids: Vec::new(),
            calls: Vec::new(),
            round_start: 0,
            previous_round_start: 0,
            rounds_before: 0,
            mcp_rounds_before: 0,
            pauses: 0,
            handed_to: Vec::new(),
            suspended: None,
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

    /// True from `cancelled`, the closing text or `turn_ended` on: nothing but the rest of the closing may follow, and
    /// what a call that was running came to.
    pub fn is_closed(&self) -> bool {
        self.ended.is_some() || self.cancelled.is_some() || self.closing_text
    }

    /// True while it waits for somebody: a person's answer or a client's result.
    pub fn is_waiting(&self) -> bool {
        matches!(
            self.next(),
            Step::AskApproval(_) | Step::AwaitPerson(_) | Step::AwaitClient(_)
        )
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
        ReplyId::nth(self.number, self.reply_ids.len() + 1)
    }

    /// The id for the `offset`th call (from 0) of the next reply.
    pub fn next_call_id(&self, offset: usize) -> CallId {
        CallId::nth(self.number, self.calls.len() + offset + 1)
    }

    /// The continuation the turn is suspended under, if it is.
    pub fn continuation(&self) -> Option<&ContinuationId> {
        self.suspended.as_ref().map(|data| &data.continuation)
    }

    /// What it is suspended on, if it is.
    pub fn suspended(&self) -> Option<&Suspended> {
        self.suspended.as_ref()
    }

    /// What its client declared when it began; `None` at a terminal.
    pub fn served(&self) -> Option<&Served> {
        self.started.as_ref()?.served.as_ref()
    }

    /// Why the last request to the model failed, if it did.
    pub fn last_failure(&self) -> Option<&ModelFailed> {
        match &self.last {
            Last::Failed(failed) => Some(failed),
            Last::Nothing | Last::Reply(_) => None,
        }
    }

    /// The models the turn was handed over to after another had failed, in order.
    pub fn handed_to(&self) -> &[String] {
        &self.handed_to
    }

    /// Rounds of tool calls so far, the current one included.
    pub fn rounds(&self) -> u32 {
        self.rounds_before + u32::from(!self.round().is_empty())
    }

    /// The calls of the last reply.
    fn round(&self) -> &[Call] {
        self.calls.get(self.round_start..).unwrap_or_default()
    }

    fn round_has_mcp(&self) -> bool {
        self.round().iter().any(|call| call.source() == CallSource::Mcp)
    }
}
