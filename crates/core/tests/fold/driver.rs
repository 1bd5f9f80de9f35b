//! A driver of the simulated world: performs steps, one append at a time, so that a crash or somebody else's event may fall
//! between any two.

use super::ledger::Ledger;
use super::support::request::assert_well_formed;
use super::support::rng::Rng;
use aish_core::event::{
    Assistant, Body, CallGated, CallSource, CallStarted, CallSuspended, CallTakenUp, Draft, Function, ModelFailed,
    ReplyStop, ResultEnd, Resumed, Suspended, ToolCall, ToolResult, Usage,
};
use aish_core::id::{CallId, ContinuationId};
use aish_core::message::{Message, Part, ToolChoice};
use aish_core::policy::Verdict;
use aish_core::session::Session;
use aish_core::turn::{How, Job, Step, Turn};
use aish_core::{Action, Digest};
use serde_json::json;
use std::collections::{HashMap, VecDeque};

/// What a driver is in the middle of. None of it survives a crash.
#[derive(Debug)]
pub enum Doing {
    Nothing,
    /// A request is under way; these events will come of it.
    Asking(Vec<Draft>),
    /// Jobs to do, and calls that run beside each other right now.
    Working {
        turn: u64,
        jobs: VecDeque<Job>,
        running: Vec<CallId>,
    },
}

pub struct Driver {
    pub view: Session,
    pub doing: Doing,
}

/// What calls really did, whoever ran them.
pub type Executions = HashMap<CallId, usize>;

impl Driver {
    pub fn new(ledger: &Ledger) -> Self {
        Self {
            view: ledger.reload(),
            doing: Doing::Nothing,
        }
    }

    /// Loses everything but the ledger.
    pub fn crash(&mut self, ledger: &Ledger) {
        *self = Self::new(ledger);
    }

    /// One append at most. True when something happened.
    pub fn advance(&mut self, ledger: &mut Ledger, rng: &mut Rng, executions: &mut Executions) -> bool {
        match std::mem::replace(&mut self.doing, Doing::Nothing) {
            Doing::Nothing => {
                // Looking at an old state is what a driver does that does not know somebody was faster.
                if rng.percent(70) {
                    ledger.catch_up(&mut self.view);
                }
                self.begin(ledger, rng)
            }
            Doing::Asking(drafts) => {
                let _refused = ledger.append(&mut self.view, drafts);
                true
            }
            Doing::Working { turn, jobs, running } => {
                self.work(turn, (jobs, running), ledger, rng, executions);
                true
            }
        }
    }

    fn begin(&mut self, ledger: &mut Ledger, rng: &mut Rng) -> bool {
        let Some(turn) = self.view.open_turn() else {
            let behind = self.view.last_seq() != ledger.events.len() as u64;
            ledger.catch_up(&mut self.view);
            return behind;
        };
        match turn.next() {
            Step::CallModel {
                attempt, tool_choice, ..
            } => {
                let drafts = model(turn, self.view.last_seq(), attempt, tool_choice, rng);
                let projection = self.view.projection();
                assert_well_formed(&projection);
                let last = projection.messages.last();
                let number = turn.number();
                let goes_on = self.view.events().iter().any(|event| {
                    let paused = |reply: &Assistant| reply.stop == ReplyStop::Paused;
                    event.turn == number && matches!(&event.body, Body::Assistant(reply) if paused(reply))
                });
                assert!(
                    !matches!(last, Some(Message::Assistant { .. }) | None) || goes_on,
                    "the model is asked after {last:?}"
                );
                self.doing = Doing::Asking(drafts);
            }
            Step::Gate(calls) => {
                assert!(!calls.is_empty());
                // A crash may fall between two verdicts.
                let some = 1 + rng.below(calls.len());
                let gated: Vec<Draft> = calls.iter().take(some).map(|id| gate(turn, id, rng)).collect();
                let _refused = ledger.append(&mut self.view, gated);
            }
            Step::AskApproval(calls) | Step::AwaitClient(calls) => {
                assert!(!calls.is_empty());
                let behind = self.view.last_seq() != ledger.events.len() as u64;
                if rng.percent(20) {
                    self.suspend_or_resume(ledger, rng);
                }
                ledger.catch_up(&mut self.view);
                return behind;
            }
            Step::AwaitPerson(jobs) => {
                assert!(!jobs.is_empty());
                let number = turn.number();
                let behind = self.view.last_seq() != ledger.events.len() as u64;
                // Somebody is here, and has the answers, or nobody is.
                if rng.percent(50) {
                    return self.take_up(number, rng.pick(&jobs), ledger);
                }
                ledger.catch_up(&mut self.view);
                return behind;
            }
            Step::RunTools(jobs) => {
                assert!(!jobs.is_empty());
                self.doing = Doing::Working {
                    turn: turn.number(),
                    jobs: jobs.into(),
                    running: Vec::new(),
                };
            }
            Step::Done(reason) => {
                let drafts = turn.closing(reason);
                assert!(!drafts.is_empty());
                let _refused = ledger.append(&mut self.view, drafts);
            }
        }
        true
    }

    fn take_up(&mut self, turn: u64, job: Job, ledger: &mut Ledger) -> bool {
        let How::Run { digest, .. } = job.how else {
            panic!("{job:?} cannot go on");
        };
        let call_id = job.call.clone();
        let body = Body::CallTakenUp(CallTakenUp { call_id, digest });
        if ledger.append(&mut self.view, vec![Draft::new(turn, "", body)]).is_ok() {
            self.doing = Doing::Working {
                turn,
                jobs: VecDeque::new(),
                running: vec![job.call],
            };
        }
        true
    }

    fn suspend_or_resume(&mut self, ledger: &mut Ledger, rng: &mut Rng) {
        let Some(turn) = self.view.open_turn() else { return };
        let fresh = Suspended {
            continuation: ContinuationId::new(format!("br-{}", rng.below(1000))),
            call_id: turn
                .calls()
                .iter()
                .find(|call| call.is_open())
                .map(|call| call.id.clone()),
            expires: None,
        };
        let body = match turn.continuation() {
            Some(continuation) if rng.percent(50) => Body::Resumed(Resumed {
                continuation: continuation.clone(),
                answer: None,
                request: None,
            }),
            Some(_) | None => Body::Suspended(fresh),
        };
        let draft = Draft::new(turn.number(), "", body);
        let _refused = ledger.append(&mut self.view, vec![draft]);
    }

    fn work(
        &mut self,
        turn: u64,
        (mut jobs, mut running): (VecDeque<Job>, Vec<CallId>),
        ledger: &mut Ledger,
        rng: &mut Rng,
        executions: &mut Executions,
    ) {
        let reads = |job: &Job| matches!(&job.how, How::Run { read_only: true, .. });
        let may_start = running.is_empty() || (jobs.front().is_some_and(reads) && rng.percent(60));
        if !may_start || jobs.is_empty() {
            if running.is_empty() {
                return;
            }
            let done = running.swap_remove(rng.below(running.len()));
            if rng.percent(15) {
                // Refused where the turn was closed meanwhile: nobody will answer it.
                let _refused = ledger.append(&mut self.view, vec![suspended(turn, &done)]);
                if !running.is_empty() {
                    let jobs = VecDeque::new();
                    self.doing = Doing::Working { turn, jobs, running };
                }
                return;
            }
            let result = result(turn, &self.view, &done, "done", ResultEnd::Completed, rng.percent(80));
            // SPEC 3.5b: what ran may always be told, whatever came in between.
            ledger.append(&mut self.view, vec![result]).unwrap();
            self.doing = Doing::Working { turn, jobs, running };
            return;
        }
        let Some(job) = jobs.pop_front() else { return };
        let is_reader = reads(&job);
        let draft = match job.how {
            How::Run { digest, .. } => {
                let call_id = job.call.clone();
                Draft::new(turn, "", Body::CallStarted(CallStarted { call_id, digest }))
            }
            How::Answer { output, end, .. } => result(turn, &self.view, &job.call, &output, end, false),
            How::SameAs(original) => {
                let first = self.view.result_event(&original).unwrap();
                result(
                    turn,
                    &self.view,
                    &job.call,
                    &first.output.clone(),
                    ResultEnd::Duplicate,
                    first.success,
                )
            }
        };
        let starts = matches!(draft.body, Body::CallStarted(_));
        if ledger.append(&mut self.view, vec![draft]).is_err() {
            // Somebody was faster. What runs is still told.
            jobs.clear();
        } else if starts {
            ledger.assert_may_execute(&job.call);
            *executions.entry(job.call.clone()).or_default() += 1;
            running.push(job.call);
            if !is_reader {
                assert_eq!(running.len(), 1, "a call that may change things runs beside others");
            }
        }
        if !(jobs.is_empty() && running.is_empty()) {
            self.doing = Doing::Working { turn, jobs, running };
        }
    }
}

/// A call that stops in the middle to ask something.
pub fn suspended(turn: u64, id: &CallId) -> Draft {
    let data = CallSuspended {
        call_id: id.clone(),
        asks: vec!["Which one?".into()],
        state: json!({ "of": id.as_str() }),
    };
    Draft::new(turn, "", Body::CallSuspended(data))
}

/// The result of a call as a draft.
pub fn result(turn: u64, view: &Session, id: &CallId, output: &str, end: ResultEnd, success: bool) -> Draft {
    let name = view.call_event(id).map(|call| call.function.name.clone());
    let data = ToolResult {
        tool_call_id: id.clone(),
        name: name.unwrap_or_default(),
        output: format!("{output} of {id} at {}", view.last_seq()),
        success,
        end,
        parts: Vec::new(),
    };
    Draft::tool_result(turn, output, data)
}

/// Any reply a model may give, or a failure.
fn model(turn: &Turn, context_seq: u64, attempt: u32, choice: ToolChoice, rng: &mut Rng) -> Vec<Draft> {
    let number = turn.number();
    if rng.percent(12) {
        let failed = ModelFailed {
            error: "http_500".into(),
            attempt,
            text_shown: rng.percent(20),
            retryable: rng.percent(80),
            retry_after_ms: None,
            model: None,
            fallback: rng.percent(30).then(|| rng.pick(&["b", "c"]).to_owned()),
        };
        return vec![Draft::new(number, "failed", Body::ModelFailed(failed))];
    }
    let cut = [
        ReplyStop::Length,
        ReplyStop::Truncated,
        ReplyStop::Refused,
        ReplyStop::Interrupted,
    ];
    let is_cut = rng.percent(10);
    let stop = if is_cut {
        rng.pick(&cut)
    } else {
        rng.pick(&[ReplyStop::End, ReplyStop::ToolCalls, ReplyStop::Paused])
    };
    let text = rng.pick(&["", "  ", "I will look.", "There."]);
    let parts = match rng.below(4) {
        0 => vec![Part::text(text)],
        1 => vec![Part::thinking("hm"), Part::text(text)],
        2 => vec![Part::PartialCall {
            name: "bash".into(),
            arguments: "{\"co".into(),
        }],
        _ => Vec::new(),
    };
    let reply_id = turn.next_reply_id();
    let data = Assistant {
        reply_id: reply_id.clone(),
        parts,
        model: Some(rng.pick(&["desk", "cloud"]).to_owned()),
        attempt,
        stop,
        context_seq: if rng.percent(95) { context_seq } else { 0 },
        reason: None,
        fallback: None,
    };
    let mut drafts = vec![Draft::new(number, text, Body::Assistant(data))];
    let calls_percent = if choice == ToolChoice::None { 25 } else { 65 };
    if !is_cut && stop != ReplyStop::Paused && rng.percent(calls_percent) {
        for n in 0..1 + rng.below(3) {
            let function = Function {
                name: rng.pick(&["bash", "glob"]).to_owned(),
                arguments: rng
                    .pick(&["", "{}", "{\"a\":1}", "{ \"a\": 1 }", "{\"a\":2}", "{bad"])
                    .to_owned(),
            };
            let call = ToolCall {
                id: turn.next_call_id(n),
                call_type: "function".into(),
                function,
                reply_id: Some(reply_id.clone()),
                provider_id: Some("call_0".into()),
            };
            drafts.push(Draft::tool_call(number, call));
        }
    }
    drafts.push(Draft::new(number, "", Body::Usage(Usage::default())));
    drafts
}

/// Any verdict.
fn gate(turn: &Turn, id: &CallId, rng: &mut Rng) -> Draft {
    let verdict = rng.pick(&[
        Verdict::Allow,
        Verdict::Allow,
        Verdict::Ask,
        Verdict::Ask,
        Verdict::Deny,
        Verdict::Invalid,
    ]);
    let gated = CallGated {
        call_id: id.clone(),
        verdict,
        rule: "a rule".into(),
        digest: (verdict != Verdict::Invalid).then(|| digest(rng.below(3))),
        source: rng.pick(&[
            CallSource::Builtin,
            CallSource::Builtin,
            CallSource::Mcp,
            CallSource::Client,
        ]),
        read_only: rng.percent(50),
        error: None,
    };
    Draft::new(turn.number(), "", Body::CallGated(gated))
}

/// The digest of one of a few actions.
pub fn digest(n: usize) -> Digest {
    let action = Action {
        tool: "bash".into(),
        arguments: json!({ "n": n }),
        effects: Vec::new(),
    };
    action.digest()
}
