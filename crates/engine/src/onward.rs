//! What follows from a reply alone: the verdicts on its calls, and that the turn waits for its client now, or is over. It is written
//! with the reply, in one append. Nobody can tell the difference but the disk, which is waited for once, and a crash, which finds one
//! place less to come between.

use crate::EngineError;
use crate::append::{Drive, Unseen};
use crate::driver::{Driver, Unwritten};
use crate::gate::{Judged, durability_of};
use aish_core::event::{Body, Draft, Function};
use aish_core::id::CallId;
use aish_core::turn::{Step, StopReason, Turn};
use aish_store::Durability;
use futures_util::future::FutureExt as _;

/// How a reply and what follows from it are written.
struct Onward {
    /// Told once it is written.
    remarks: Vec<String>,
    durability: Durability,
    drive: Drive,
}

impl Driver {
    /// Appends a reply, and what follows from it.
    pub(crate) async fn append_reply(&mut self, mut drafts: Vec<Draft>) -> Result<(), EngineError> {
        // First: what is written by that may be another's, and what follows from the reply follows from that as well.
        self.save_unsaved().await?;
        let reply = drafts.len();
        let onward = self.go_onward(&mut drafts);
        if drafts.len() == reply {
            return self.append(drafts, Durability::Committed).await;
        }
        match self
            .append_if_nothing_new(onward.drive, &drafts, onward.durability)
            .await?
        {
            Unseen::Nothing => {
                onward.remarks.into_iter().for_each(|remark| self.say(remark));
                Ok(())
            }
            // Somebody spoke, cancelled or ended it meanwhile: what follows now is for the fold to say.
            Unseen::News => {
                drafts.truncate(reply);
                self.append(drafts, Durability::Committed).await
            }
        }
    }

    /// Adds to a reply what follows from it.
    fn go_onward(&self, drafts: &mut Vec<Draft>) -> Onward {
        let mut onward = Onward {
            remarks: Vec::new(),
            durability: Durability::Committed,
            drive: Drive::GoesOn,
        };
        let mut after = self.turn_after(drafts);
        if let Some(turn) = &after
            && let Step::Gate(calls) = turn.next()
            && let Some(judged) = self.judge_at_once(&calls, drafts)
        {
            onward.durability = durability_of(&judged);
            onward.remarks = judged.iter().filter_map(Judged::remark).map(str::to_owned).collect();
            drafts.extend(judged.into_iter().map(|judged| judged.into_draft(turn.number())));
            after = self.turn_after(drafts);
        }
        // A person at a terminal is still there, and may have something to say to it. And a client listens until it is told that the
        // turn waits: what is remarked comes before that.
        let is_open = self.unwritten == Unwritten::Kept || !onward.remarks.is_empty();
        let Some(turn) = after.filter(|_| !is_open) else {
            return onward;
        };
        let seq = self.session.last_seq() + u64::try_from(drafts.len()).unwrap_or(u64::MAX);
        let last = match turn.next() {
            // Somebody stopped it, and is yet to write why.
            Step::Done(StopReason::Cancelled) => Vec::new(),
            Step::Done(reason) => turn.closing(reason),
            Step::CallModel { .. }
            | Step::Gate(_)
            | Step::AskApproval(_)
            | Step::RunTools(_)
            | Step::AwaitPerson(_)
            | Step::AwaitClient(_) => self.suspension(&turn, seq).into_iter().collect(),
        };
        if !last.is_empty() {
            drafts.extend(last);
            onward.durability = Durability::Synced;
            onward.drive = Drive::Ends;
        }
        onward
    }

    fn turn_after(&self, drafts: &[Draft]) -> Option<Turn> {
        self.session.turn_after(drafts).ok().flatten()
    }

    /// The verdicts on the calls of a reply; `None` if a tool is yet to arrive (see [`Driver::await_tools`]).
    fn judge_at_once(&self, calls: &[CallId], reply: &[Draft]) -> Option<Vec<Judged>> {
        let settings = self.engine.settings();
        calls
            .iter()
            .map(|id| {
                let call = called(id, reply)?;
                let is_known = !settings.tools || !self.is_in_doubt(call, &settings);
                // It may be known at once that it does not come: it is the client's own, say.
                let is_settled = is_known || self.engine.tools.arrive(&call.name).now_or_never().is_some();
                is_settled.then(|| self.judge(id, call, &settings))
            })
            .collect()
    }
}

fn called<'d>(id: &CallId, reply: &'d [Draft]) -> Option<&'d Function> {
    reply.iter().find_map(|draft| {
        let Body::ToolCall(call) = &draft.body else {
            return None;
        };
        (call.id == *id).then_some(&call.function)
    })
}
