//! Calls that stop in the middle to ask something (SPEC 6.9): left waiting in the ledger, and gone on with when somebody is there.
//!
//! A person's answers are had before `call_taken_up` is written, and told to the server after: a process that dies while they
//! think leaves the call waiting as it was, and one that dies later leaves it in doubt, never told twice.

use crate::driver::Driver;
use crate::run::{Portion, Running, launch};
use crate::{EngineError, Notices};
use aish_core::event::{Body, CallSuspended, CallTakenUp, Draft};
use aish_core::id::CallId;
use aish_core::turn::{Job, Step, Turn};
use aish_store::Durability;
use aish_tools::{Asks, Cancel};
use serde_json::Value;

impl Driver {
    /// Leaves a call waiting for whoever comes next. One whose turn is over by now is left as it was closed.
    pub(crate) async fn suspend(&mut self, call: &Running, asks: Asks) -> Result<(), EngineError> {
        let content = format!("{} asks: {}", call.name, asks.lines.join("; "));
        let data = CallSuspended {
            call_id: call.call.clone(),
            asks: asks.lines,
            state: asks.state,
        };
        let draft = Draft::new(call.turn, content, Body::CallSuspended(data));
        match self.append(vec![draft], Durability::Synced).await {
            Err(EngineError::Invalid { .. }) => Ok(()),
            other => other,
        }
    }

    /// Puts what these calls ask to the person who is here, one call after the other; each goes on once it is answered.
    pub(crate) async fn put_questions(
        &mut self,
        jobs: &[Job],
        notices: &Notices,
        stop: &Cancel,
    ) -> Result<(), EngineError> {
        for job in jobs {
            let settings = self.engine.settings();
            let turn = self.session.turn().map_or(0, Turn::number);
            let state = self.session.suspension(&job.call).map(|data| data.state.clone());
            let portion = Portion::Question(state.unwrap_or_default());
            match self.prepare(job, portion, &settings) {
                Err(ending) => self.record(*ending, notices).await?,
                Ok(ready) => {
                    let mut running = vec![launch(ready, turn, &settings, notices, stop)];
                    self.collect(&mut running, notices, stop).await?;
                }
            }
            if *stop.borrow() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Goes on with a call that has its answers: nothing to run where it may not go on any more, or where somebody else
    /// declined it or closed the turn meanwhile.
    pub(crate) async fn take_up(
        &mut self,
        call: &CallId,
        answers: Value,
        notices: &Notices,
        stop: &Cancel,
    ) -> Result<Option<Running>, EngineError> {
        self.catch_up().await?;
        let Some(job) = self.waiting_job(call).filter(|_| !*stop.borrow()) else {
            return Ok(None);
        };
        // The person may have thought for long: the rules of now hold.
        let settings = self.engine.settings();
        let ready = match self.prepare(&job, Portion::Rest(answers), &settings) {
            Ok(ready) => ready,
            Err(ending) => {
                self.record(*ending, notices).await?;
                return Ok(None);
            }
        };
        let turn = self.session.turn().map_or(0, Turn::number);
        let data = CallTakenUp {
            call_id: call.clone(),
            digest: ready.digest.clone(),
        };
        let draft = Draft::new(turn, format!("{call} goes on"), Body::CallTakenUp(data));
        self.append(vec![draft], Durability::Synced).await?;
        Ok(Some(launch(ready, turn, &settings, notices, stop)))
    }

    fn waiting_job(&self, call: &CallId) -> Option<Job> {
        match self.session.open_turn()?.next() {
            Step::AwaitPerson(jobs) => jobs.into_iter().find(|job| job.call == *call),
            Step::CallModel { .. }
            | Step::Gate(_)
            | Step::AskApproval(_)
            | Step::RunTools(_)
            | Step::AwaitClient(_)
            | Step::Done(_) => None,
        }
    }
}
