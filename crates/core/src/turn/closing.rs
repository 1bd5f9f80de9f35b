//! How a turn is closed, whatever way out it takes: every open call gets a result and the conversation ends in assistant
//! text, so that the next request is valid for the strictest chat template (SPEC 3.7).

use super::step::INTERRUPTED;
use super::{Asking, Call, Last, StopReason, Turn};
use crate::event::{Assistant, Body, Cancelled, Draft, ReplyStop, ResultEnd, ToolResult, TurnEnded};
use serde_json::json;

/// What the model is told of a call that was never answered what it asked: what it did before it asked stands.
const LEFT_ASKING: &str =
    "interrupted: the call asked something of the user, and the turn was stopped before an answer";

impl Turn {
    /// The events that end the turn, all to be appended at once; none if it has ended. A turn that was cancelled ends as
    /// cancelled, whatever reason is given.
    pub fn closing(&self, reason: StopReason) -> Vec<Draft> {
        if self.ended.is_some() {
            return Vec::new();
        }
        let reason = if self.cancelled.is_some() {
            StopReason::Cancelled
        } else {
            reason
        };
        let mut drafts: Vec<Draft> = self
            .calls
            .iter()
            .filter(|call| call.is_open())
            .map(|call| self.cut_result(call))
            .collect();
        if let Some(text) = self.closing_words(reason, !drafts.is_empty()) {
            drafts.push(self.closing_text(&text));
        }
        let data = TurnEnded { reason };
        drafts.push(Draft::new(
            self.number,
            format!("turn ended: {}", reason.word()),
            Body::TurnEnded(data),
        ));
        drafts
    }

    /// The events that cancel the turn and end it, all to be appended at once; none if it is closed.
    pub fn cancelling(&self, reason: &str) -> Vec<Draft> {
        if self.is_closed() {
            return self.closing(StopReason::Cancelled);
        }
        let mut cancelled = self.clone();
        cancelled.cancelled = Some(reason.to_owned());
        let body = Body::Cancelled(Cancelled {
            reason: reason.to_owned(),
        });
        let mut drafts = vec![Draft::new(self.number, reason, body)];
        drafts.extend(cancelled.closing(StopReason::Cancelled));
        drafts
    }

    /// Whether the conversation ends in text if the turn ends now for this reason.
    pub(super) fn ends_in_text(&self, reason: StopReason) -> bool {
        self.closing_words(reason, false).is_none()
    }

    fn cut_result(&self, call: &Call) -> Draft {
        let (end, error) = match &call.asking {
            Asking::Waits | Asking::Refused(_) => (ResultEnd::Interrupted, LEFT_ASKING),
            Asking::Nothing if call.started => (ResultEnd::Interrupted, INTERRUPTED),
            Asking::Nothing => (ResultEnd::NotRun, "not run: the turn was stopped first"),
        };
        let data = ToolResult {
            tool_call_id: call.id.clone(),
            name: call.name.clone(),
            output: json!({ "error": error }).to_string(),
            success: false,
            end,
            parts: Vec::new(),
        };
        Draft::tool_result(self.number, error, data)
    }

    /// What closes the conversation where no text of the model's does.
    fn closing_words(&self, reason: StopReason, cut_calls: bool) -> Option<String> {
        let answered = matches!(&self.last, Last::Reply(reply) if reply.has_text && self.steered_seq <= reply.context_seq)
            && self.round().is_empty()
            && !cut_calls;
        if self.closing_text {
            return None;
        }
        match reason {
            StopReason::End | StopReason::Limit | StopReason::Declined if answered => None,
            StopReason::End | StopReason::Declined => Some("[stopped]".to_owned()),
            StopReason::Limit => Some("[stopped: tool call limit reached]".to_owned()),
            StopReason::ModelFailed | StopReason::Truncated => Some(format!("[stopped: {}]", self.how_it_broke())),
            StopReason::Cancelled => Some(format!(
                "[stopped: {}]",
                self.cancelled.as_deref().unwrap_or("interrupted by the user")
            )),
        }
    }

    /// How the last request came to no whole answer: a readable phrase, for the person and for the model.
    pub fn how_it_broke(&self) -> String {
        let reply = match &self.last {
            Last::Failed(failed) if failed.text_shown => return format!("the reply broke off: {}", failed.error),
            Last::Failed(failed) => return format!("no reply from the model: {}", failed.error),
            Last::Nothing => return "the model gave no answer".to_owned(),
            Last::Reply(reply) => reply,
        };
        let what = match (reply.stop, &reply.cut_call) {
            (ReplyStop::Length, Some(call)) => {
                format!("the reply reached its length limit in the middle of a call of {call}, which was not run")
            }
            (ReplyStop::Length, None) => "the reply reached its length limit".to_owned(),
            (ReplyStop::Truncated, Some(call)) => {
                format!("the reply was cut off in the middle of a call of {call}, which was not run")
            }
            (ReplyStop::Truncated, None) => "the reply was cut off".to_owned(),
            (ReplyStop::Refused, _) => "the model refused to answer".to_owned(),
            (ReplyStop::Paused, _) => "the provider paused more often than a turn may go on".to_owned(),
            (ReplyStop::End | ReplyStop::ToolCalls | ReplyStop::Interrupted | ReplyStop::Closing, _) => {
                "the model gave no answer".to_owned()
            }
        };
        match &reply.reason {
            Some(reason) => format!("{what}: {reason}"),
            None => what,
        }
    }

    fn closing_text(&self, text: &str) -> Draft {
        let data = Assistant {
            reply_id: self.next_reply_id(),
            parts: Vec::new(),
            model: None,
            attempt: 0,
            stop: ReplyStop::Closing,
            context_seq: 0,
            reason: None,
            fallback: None,
        };
        Draft::new(self.number, text, Body::Assistant(data))
    }
}
