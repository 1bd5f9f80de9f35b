//! What a driver tells of its session: views of the fold, nothing remembered beside it.

use crate::driver::Driver;
use crate::told::ReplyText;
use crate::{ContextFill, Finished, Notices, Pending, Questioned};
use aish_core::event::{Body, Event, Usage};
use aish_core::turn::{Call, Job, Step, StopReason, Turn};

impl Driver {
    /// The calls that wait for a person; empty when none do.
    pub fn pending(&self) -> Vec<Pending> {
        match self.session.open_turn().map(Turn::next) {
            Some(Step::AskApproval(calls)) => self.pending_of(&calls),
            Some(
                Step::CallModel { .. }
                | Step::Gate(_)
                | Step::RunTools(_)
                | Step::AwaitPerson(_)
                | Step::AwaitClient(_)
                | Step::Done(_),
            )
            | None => Vec::new(),
        }
    }

    /// What these calls ask, as a person is shown it.
    pub(crate) fn questions_of(&self, jobs: &[Job]) -> Vec<Questioned> {
        let questioned = jobs.iter().filter_map(|job| {
            let call = self.pending_of(std::slice::from_ref(&job.call)).pop()?;
            let asks = self.session.suspension(&job.call).map(|data| data.asks.clone());
            Some(Questioned {
                call,
                asks: asks.unwrap_or_default(),
            })
        });
        questioned.collect()
    }

    /// Tells of calls that a crash cut: they are not run again, and their effect is in doubt (SPEC 2.6). Each is told once,
    /// whether a front asks for it before it drives or driving does.
    pub fn tell_doubt(&mut self, notices: &Notices) {
        let Some(turn) = self.session.open_turn() else { return };
        for call in turn.calls().iter().filter(|call| Call::is_in_doubt(call)) {
            if self.doubts_told.contains(&call.id) {
                continue;
            }
            let readable = self
                .session
                .call_event(&call.id)
                .map(|event| aish_core::event::readable_call(&event.function.name, &event.function.arguments));
            notices.status(format!(
                "in doubt: {} was started and cut off before its end was known; it is not run again",
                readable.unwrap_or_else(|| call.name.clone())
            ));
            self.doubts_told.push(call.id.clone());
        }
    }

    /// Why the last request came to no whole answer, one line for a person: what failed, or how the reply broke off.
    pub(crate) fn problem(&self) -> String {
        let Some(turn) = self.session.turn() else {
            return String::new();
        };
        let failed = |event: &&Event| matches!(event.body, Body::ModelFailed(_));
        let failure = turn
            .last_failure()
            .and_then(|_| self.session.events().iter().rev().find(failed));
        failure.map_or_else(|| turn.how_it_broke(), |event| event.content.clone())
    }

    /// How full the context was with the last reply; `None` before the first one, after `:clear`, and where the provider does
    /// not count.
    pub fn context_fill(&self) -> Option<ContextFill> {
        let mut usage = None;
        for event in self.session.events().iter().rev() {
            if let Body::Clear = &event.body {
                return None;
            } else if let Body::Usage(counted) = &event.body {
                usage = usage.or(Some(counted));
            } else if let (Body::Assistant(reply), Some(counted)) = (&event.body, usage) {
                let model = reply
                    .model
                    .as_deref()
                    .and_then(|name| self.engine.models.model(name).ok());
                return Some(ContextFill {
                    // A server may count anything.
                    used_tokens: counted.input_tokens.saturating_add(counted.output_tokens),
                    window_tokens: model.and_then(|model| model.context_window),
                });
            }
        }
        None
    }

    /// What a turn came to; one that has not ended counts as cancelled.
    pub(crate) fn finished_turn(&self, turn: u64) -> Finished {
        let mut reason = StopReason::Cancelled;
        let mut text = ReplyText::default();
        let mut usage = Usage::default();
        let mut model = None;
        for event in self.session.events().iter().filter(|event| event.turn == turn) {
            text.take(event);
            if let Body::Assistant(data) = &event.body {
                model = data.model.clone().or(model);
            } else if let Body::Usage(more) = &event.body {
                usage.add(more);
            } else if let Body::TurnEnded(ended) = &event.body {
                reason = ended.reason;
            }
        }
        let problem = match reason {
            StopReason::ModelFailed | StopReason::Truncated => Some(self.problem()),
            StopReason::End | StopReason::Limit | StopReason::Declined | StopReason::Cancelled => None,
        };
        Finished {
            reason,
            reply: text.whole(),
            said: text.said,
            usage,
            model,
            problem,
        }
    }
}
