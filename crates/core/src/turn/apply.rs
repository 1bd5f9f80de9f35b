//! Folding: which event may follow those before it, and what it changes. The decision half is in [`super::step`].
//!
//! Every rule that keeps a call from running twice, unapproved or out of turn is here and not in a driver, because a driver
//! may have lost a race: it appends what was legal when it looked, and only the fold knows whether it still is (SPEC 3.5b).

use super::step::{self, Step};
use super::{Asking, Call, InvalidEvent, Last, LastReply, Turn};
use crate::event::{
    Answer, Assistant, Body, CallAnswered, CallGated, CallStarted, CallSuspended, CallTakenUp, Cancelled, Event,
    ModelFailed, ReplyStop, ResultEnd, Resumed, Suspended, ToolCall, ToolResult, TurnEnded,
};
use crate::id::CallId;
use crate::message::Part;
use crate::policy::Verdict;
use crate::turn::StopReason;

impl Turn {
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
            Body::Assistant(data) if data.stop == ReplyStop::Closing => self.apply_closing_text(&event.content),
            Body::Assistant(data) => self.apply_reply(data, event),
            Body::ToolCall(data) => self.apply_call(data, event.seq),
            Body::CallGated(data) => self.apply_gated(data),
            Body::CallAnswered(data) => self.apply_answered(data),
            Body::CallStarted(data) => self.apply_started(data),
            Body::CallSuspended(data) => self.apply_call_suspended(data),
            Body::CallTakenUp(data) => self.apply_taken_up(data),
            Body::ToolResult(data) => self.apply_result(data, event.seq),
            Body::ModelFailed(data) => self.apply_failed(data),
            Body::Suspended(data) => self.apply_suspended(data),
            Body::Resumed(data) => self.apply_resumed(data),
            Body::Cancelled(data) => self.apply_cancelled(data),
            Body::TurnEnded(data) => self.apply_ended(data),
            Body::TurnStarted(_)
            | Body::System(_)
            | Body::Command(_)
            | Body::Usage(_)
            | Body::ServerAsked(_)
            | Body::ServerAnswered(_)
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

    /// A reply or a failure may come now: only where the model is to be asked. Of two drivers that both asked it, the
    /// second finds the turn past that point. Gives the model the turn was handed over to, if it was.
    fn expect_model(&self) -> Result<Option<String>, InvalidEvent> {
        self.expect_unclosed()?;
        match self.next() {
            Step::CallModel { model, .. } => Ok(model),
            Step::Gate(_) | Step::AskApproval(_) | Step::RunTools(_) | Step::AwaitPerson(_) | Step::AwaitClient(_) => {
                Err(InvalidEvent::OpenCalls)
            }
            Step::Done(_) => Err(InvalidEvent::TurnClosed),
        }
    }

    fn apply_user(&mut self, seq: u64) -> Result<(), InvalidEvent> {
        self.expect_unclosed()?;
        if !self.asked {
            self.asked = true;
            self.settled_seq = seq;
            return Ok(());
        }
        if self.is_waiting() {
            return Err(InvalidEvent::Waiting);
        }
        // A message no reply of this turn would see is refused, so that it can begin a turn of its own.
        let before = std::mem::replace(&mut self.steered_seq, seq);
        if self.is_after_limit() || matches!(self.next(), Step::Done(_)) {
            self.steered_seq = before;
            return Err(InvalidEvent::TurnClosed);
        }
        Ok(())
    }

    fn apply_closing_text(&mut self, text: &str) -> Result<(), InvalidEvent> {
        if self.ended.is_some() || self.closing_text {
            return Err(InvalidEvent::TurnClosed);
        }
        if self.calls.iter().any(Call::is_open) {
            return Err(InvalidEvent::OpenCalls);
        }
        if text.trim().is_empty() {
            return Err(InvalidEvent::NoClosingText);
        }
        self.closing_text = true;
        Ok(())
    }

    fn apply_reply(&mut self, data: &Assistant, event: &Event) -> Result<(), InvalidEvent> {
        let model = self.expect_model()?;
        // Zero: written without that knowledge, so the reply is taken to have seen everything before it.
        let context_seq = match data.context_seq {
            0 => event.seq.saturating_sub(1),
            seen => seen,
        };
        if context_seq < self.settled_seq {
            return Err(InvalidEvent::StaleReply);
        }
        if self.reply_ids.contains(&data.reply_id) {
            return Err(InvalidEvent::ReplyExists(data.reply_id.clone()));
        }
        if !self.round().is_empty() {
            self.rounds_before += 1;
            self.mcp_rounds_before += u32::from(self.round_has_mcp());
            self.previous_round_start = self.round_start;
            self.round_start = self.calls.len();
        }
        self.reply_ids.push(data.reply_id.clone());
        self.settled_seq = event.seq;
        self.pauses += u32::from(data.stop == ReplyStop::Paused);
        self.handed_over(model);
        self.last = Last::Reply(LastReply {
            id: data.reply_id.clone(),
            stop: data.stop,
            attempt: data.attempt.max(1),
            has_text: !event.content.trim().is_empty(),
            context_seq,
            fallback: data.fallback.clone(),
            reason: data.reason.clone(),
            cut_call: data.parts.iter().find_map(|part| match part {
                Part::PartialCall { name, .. } => Some(name.clone()),
                Part::Text { .. }
                | Part::Thinking { .. }
                | Part::Context { .. }
                | Part::Image { .. }
                | Part::Provider { .. }
                | Part::Call { .. } => None,
            }),
        });
        Ok(())
    }

    /// From here on the turn is with that model.
    fn handed_over(&mut self, model: Option<String>) {
        if let Some(model) = model.filter(|model| self.handed_to.last() != Some(model)) {
            self.handed_to.push(model);
        }
    }

    fn apply_failed(&mut self, data: &ModelFailed) -> Result<(), InvalidEvent> {
        if let Last::Reply(reply) = &self.last
            && data.text_shown
            && reply.stop.is_cut()
            && reply.attempt == data.attempt
        {
            // Why the reply that was kept broke off. Where a message was typed meanwhile the turn goes on all the same.
            self.expect_unclosed()?;
            if self.steered_seq <= reply.context_seq {
                self.last = Last::Failed(data.clone());
            }
            return Ok(());
        }
        let model = self.expect_model()?;
        self.handed_over(model);
        self.last = Last::Failed(data.clone());
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
        if reply.stop.is_cut() {
            return Err(problem("was cut off and can never run"));
        }
        if self.call(&data.id).is_some() {
            return Err(problem("exists already"));
        }
        if self.round().iter().any(|call| call.gated.is_some() || !call.is_open()) {
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
            asking: Asking::Nothing,
            end: None,
            same_as,
            arguments_key,
        });
        Ok(())
    }

    fn apply_gated(&mut self, data: &CallGated) -> Result<(), InvalidEvent> {
        self.expect_unclosed()?;
        let call = self.call_mut(&data.call_id)?;
        if call.same_as.is_some() {
            // It never runs, so there is nothing to judge; a verdict of its own would be a second way to run it.
            return Err(call.problem("repeats a call of the same reply"));
        }
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
        if let Some(outcome) = call.apply_refusal(data, closed) {
            if outcome.is_ok() {
                self.no_longer_waits_for(&data.call_id);
            }
            return outcome;
        }
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
        self.no_longer_waits_for(&data.call_id);
        Ok(())
    }

    fn apply_started(&mut self, data: &CallStarted) -> Result<(), InvalidEvent> {
        self.expect_unclosed()?;
        if self.round_is_unsettled() {
            return Err(InvalidEvent::Waiting);
        }
        let after_limit = self.is_after_limit();
        let blocked = self.must_wait_for_earlier(&data.call_id);
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
        if blocked {
            return Err(call.problem("comes after a call that has not ended"));
        }
        call.started = true;
        Ok(())
    }

    fn apply_call_suspended(&mut self, data: &CallSuspended) -> Result<(), InvalidEvent> {
        self.expect_unclosed()?;
        let call = self.call_mut(&data.call_id)?;
        if !call.is_in_doubt() {
            return Err(call.problem("does not run"));
        }
        call.asking = Asking::Waits;
        Ok(())
    }

    fn apply_taken_up(&mut self, data: &CallTakenUp) -> Result<(), InvalidEvent> {
        self.expect_unclosed()?;
        let call = self.call_mut(&data.call_id)?;
        if !call.awaits_person() {
            return Err(call.problem("does not wait for an answer"));
        }
        if call.digest() != Some(&data.digest) {
            return Err(InvalidEvent::Digest(data.call_id.clone()));
        }
        call.asking = Asking::Nothing;
        Ok(())
    }

    fn apply_result(&mut self, data: &ToolResult, seq: u64) -> Result<(), InvalidEvent> {
        // What would come next is worth finding out only where the answer matters: a long session is folded at every start.
        let never_started = self.call(&data.tool_call_id).is_some_and(|call| !call.started);
        let waited_for =
            never_started && matches!(self.next(), Step::AwaitClient(calls) if calls.contains(&data.tool_call_id));
        let original_open = self
            .call(&data.tool_call_id)
            .and_then(|call| self.call(call.same_as.as_ref()?))
            .is_some_and(Call::is_open);
        let call = self.call_mut(&data.tool_call_id)?;
        if call.end.is_some() {
            // A late result of a call that ran stays in the ledger; the first one is what counts (SPEC 3.5a).
            return if call.started {
                Ok(())
            } else {
                Err(call.problem("has a result already"))
            };
        }
        match data.end {
            ResultEnd::Completed if !call.started && !waited_for => return Err(call.problem("never ran")),
            ResultEnd::Interrupted if !call.started => return Err(call.problem("was never started")),
            ResultEnd::Duplicate if call.same_as.is_none() => return Err(call.problem("is no duplicate")),
            ResultEnd::Duplicate if original_open => return Err(call.problem("repeats a call that has not ended")),
            ResultEnd::Declined | ResultEnd::Denied | ResultEnd::Invalid | ResultEnd::NotRun | ResultEnd::Limit
                if call.started && !call.may_stop_as(data.end) =>
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
        self.settled_seq = seq;
        self.no_longer_waits_for(&data.tool_call_id);
        Ok(())
    }

    fn apply_suspended(&mut self, data: &Suspended) -> Result<(), InvalidEvent> {
        self.expect_unclosed()?;
        if !self.is_waiting() {
            // The answer landed first: whoever wanted to suspend must drive on.
            return Err(InvalidEvent::NotWaiting);
        }
        if self.suspended.is_some() {
            // One that waits is answered under the id that was given out: a second one would leave that for nothing.
            return Err(InvalidEvent::Waiting);
        }
        self.suspended = Some(data.clone());
        Ok(())
    }

    fn apply_resumed(&mut self, data: &Resumed) -> Result<(), InvalidEvent> {
        self.expect_unclosed()?;
        if self.continuation() != Some(&data.continuation) {
            return Err(InvalidEvent::Continuation(data.continuation.clone()));
        }
        self.suspended = None;
        Ok(())
    }

    /// What it waited for came by another way than its continuation: from a terminal, or from a page.
    fn no_longer_waits_for(&mut self, call: &CallId) {
        if self
            .suspended
            .as_ref()
            .is_some_and(|data| data.call_id.as_ref() == Some(call))
        {
            self.suspended = None;
        }
    }

    fn apply_cancelled(&mut self, data: &Cancelled) -> Result<(), InvalidEvent> {
        self.expect_unclosed()?;
        self.cancelled = Some(data.reason.clone());
        self.suspended = None;
        Ok(())
    }

    fn apply_ended(&mut self, data: &TurnEnded) -> Result<(), InvalidEvent> {
        if self.ended.is_some() || (self.cancelled.is_some() && data.reason != StopReason::Cancelled) {
            return Err(InvalidEvent::TurnClosed);
        }
        if self.calls.iter().any(Call::is_open) {
            return Err(InvalidEvent::OpenCalls);
        }
        if !self.ends_in_text(data.reason) {
            return Err(InvalidEvent::NoClosingText);
        }
        self.ended = Some(data.reason);
        self.suspended = None;
        Ok(())
    }

    /// True while a call of the round is not judged or not answered: none of it runs (SPEC 3.4).
    fn round_is_unsettled(&self) -> bool {
        self.round()
            .iter()
            .any(|call| call.awaits_answer() || call.needs_gate())
    }

    /// Calls run one after another, except that calls which only read may run side by side (SPEC 3.4).
    fn must_wait_for_earlier(&self, id: &CallId) -> bool {
        let reads = |call: &Call| !call.is_client() && call.gated.as_ref().is_some_and(|gated| gated.read_only);
        let Some(position) = self.round().iter().position(|call| call.id == *id) else {
            return false;
        };
        let (earlier, rest) = self.round().split_at(position);
        let reads_too = rest.first().is_some_and(reads);
        earlier
            .iter()
            .any(|call| call.is_open() && call.may_run() && !(reads_too && reads(call)))
    }

    fn call_mut(&mut self, id: &CallId) -> Result<&mut Call, InvalidEvent> {
        // From the end: it is nearly always one of the last round.
        let call = self.calls.iter_mut().rev().find(|call| call.id == *id);
        call.ok_or_else(|| InvalidEvent::UnknownCall(id.clone()))
    }
}

impl Call {
    fn problem(&self, problem: &'static str) -> InvalidEvent {
        InvalidEvent::Call {
            call: self.id.clone(),
            problem,
        }
    }

    /// The answer to what it asks in the middle, if this is one: only a no can be given in this way.
    fn apply_refusal(&mut self, data: &CallAnswered, closed: bool) -> Option<Result<(), InvalidEvent>> {
        match &self.asking {
            Asking::Waits if data.answer == Answer::Deny => {}
            Asking::Refused(earlier) if earlier.answer == data.answer && earlier.digest == data.digest => {
                return Some(Ok(()));
            }
            Asking::Refused(_) => return Some(Err(InvalidEvent::AnsweredOtherwise(data.call_id.clone()))),
            Asking::Nothing | Asking::Waits => return None,
        }
        Some(if closed || !self.is_open() {
            Err(InvalidEvent::TurnClosed)
        } else if self.digest() != Some(&data.digest) {
            Err(InvalidEvent::Digest(data.call_id.clone()))
        } else {
            self.asking = Asking::Refused(data.clone());
            Ok(())
        })
    }

    /// True for the ends of a started call that does not go on: nothing of it runs while it waits for an answer.
    fn may_stop_as(&self, end: ResultEnd) -> bool {
        match &self.asking {
            Asking::Nothing => false,
            // Rules are judged once more before it goes on, and its tool may be another by then.
            Asking::Waits => matches!(end, ResultEnd::Denied | ResultEnd::Invalid),
            Asking::Refused(_) => end == ResultEnd::Declined,
        }
    }

    /// True while the gate has not said anything of it. A duplicate shares the verdict of the call it repeats.
    pub(super) fn needs_gate(&self) -> bool {
        self.is_open() && self.gated.is_none() && self.same_as.is_none()
    }
}
