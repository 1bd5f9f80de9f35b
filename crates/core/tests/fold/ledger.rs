//! The ledger of the simulated world: append by compare-and-set, as a store does it, and what must hold of it always.

use aish_core::event::{Answer, Body, Draft, Event, ReplyStop};
use aish_core::id::{CallId, ReplyId, SessionId};
use aish_core::message::Message;
use aish_core::policy::Verdict;
use aish_core::projection::Projection;
use aish_core::session::Session;
use aish_core::turn::InvalidEvent;
use serde_json::Value;
use std::collections::HashSet;

/// The one truth all drivers and approvers race for.
pub struct Ledger {
    pub id: SessionId,
    pub events: Vec<Event>,
}

impl Ledger {
    pub fn new() -> Self {
        Self {
            id: SessionId::from_parts(1, 1),
            events: Vec::new(),
        }
    }

    /// Brings somebody's view up to date, event by event.
    pub fn catch_up(&self, view: &mut Session) {
        let seen = usize::try_from(view.last_seq()).unwrap();
        for event in &self.events[seen..] {
            view.apply(event.clone()).unwrap();
        }
    }

    /// What an honest writer does (SPEC 3.5b): appends if nobody was faster; else loads, folds, and appends if still legal.
    pub fn append(&mut self, view: &mut Session, drafts: Vec<Draft>) -> Result<(), InvalidEvent> {
        if view.last_seq() != self.events.len() as u64 {
            self.catch_up(view);
        }
        // Comparing states costs far more than folding: a sample of the appends is enough.
        let sampled = view.last_seq() % 8 == 3;
        let before = sampled.then(|| (view.last_seq(), view.turn().cloned(), view.check(&drafts)));
        let appended = view.append(7, drafts);
        if let Some((seq, turn, checked)) = before {
            assert_eq!(
                checked.as_ref().err(),
                appended.as_ref().err(),
                "check and append disagree"
            );
            if appended.is_err() {
                let after = format!("{:?}", (view.last_seq(), view.turn()));
                assert_eq!(
                    format!("{:?}", (seq, turn.as_ref())),
                    after,
                    "a refused append left a trace"
                );
            }
        }
        appended.map(|events| self.events.extend(events))
    }

    /// The state from the events alone; the same as anybody's who lived through them (SPEC 3.1).
    pub fn reload(&self) -> Session {
        let loaded = Session::load(self.id.clone(), self.events.clone());
        assert_eq!(
            loaded.passed_over(),
            0,
            "an honest writer wrote what may not stand there"
        );
        loaded
    }

    pub fn assert_same(&self, view: &Session) {
        if view.last_seq() == self.events.len() as u64 {
            let loaded = self.reload();
            assert_eq!(format!("{loaded:?}"), format!("{view:?}"));
            let next = |session: &Session| session.turn().map(aish_core::turn::Turn::next);
            assert_eq!(next(&loaded), next(view));
        }
    }

    /// Judges an execution by the raw events, without the fold: was it gated, asked, approved, and is it its turn?
    pub fn assert_may_execute(&self, id: &CallId) {
        let facts = self.facts(id);
        let round: Vec<Facts> = self
            .events
            .iter()
            .filter_map(Event::tool_call)
            .filter(|call| call.reply_id == facts.reply)
            .map(|call| self.facts(&call.id))
            .collect();
        assert!(!facts.closed, "{id} executes in a turn that was closed");
        assert!(facts.allowed, "{id} executes without leave");
        assert_eq!(facts.starts, 1, "{id} was started {} times", facts.starts);
        assert_eq!(
            facts.gated_digest, facts.started_digest,
            "{id} runs something else than was judged"
        );
        assert!(!facts.cut_reply, "{id} executes out of a reply that broke off");
        assert!(
            round.iter().all(|other| !other.open_question || other.ended),
            "{id} executes with a question open"
        );
        for (n, other) in round.iter().enumerate() {
            let repeats = round[..n].iter().any(|earlier| earlier.key == other.key);
            assert!(
                other.judged || other.ended || repeats,
                "{id} executes before {} was judged",
                other.id
            );
            assert!(other.id != *id || !repeats, "{id} repeats another call and executes");
        }
        for earlier in round.iter().take_while(|other| other.id != *id) {
            let beside = earlier.read_only && facts.read_only;
            assert!(
                !earlier.allowed || earlier.ended || beside,
                "{id} overtakes {}",
                earlier.id
            );
        }
    }

    fn facts(&self, id: &CallId) -> Facts {
        let mut facts = Facts {
            id: id.clone(),
            reply: None,
            key: None,
            judged: false,
            cut_reply: false,
            allowed: false,
            closed: false,
            open_question: false,
            read_only: false,
            gated_digest: None,
            started_digest: None,
            starts: 0,
            ended: false,
        };
        for event in &self.events {
            match &event.body {
                Body::ToolCall(call) if call.id == *id => {
                    facts.reply = call.reply_id.clone();
                    let text = call.function.arguments.as_str();
                    let value = serde_json::from_str(if text.is_empty() { "{}" } else { text });
                    facts.key = Some((call.function.name.clone(), value.map_err(|_| text.to_owned())));
                }
                Body::CallGated(gated) if gated.call_id == *id => {
                    facts.judged = true;
                    facts.allowed = gated.verdict == Verdict::Allow;
                    facts.open_question = gated.verdict == Verdict::Ask;
                    facts.read_only = gated.read_only;
                    facts.gated_digest = gated.digest.clone();
                }
                Body::CallAnswered(answered) if answered.call_id == *id => {
                    assert_eq!(Some(&answered.digest), facts.gated_digest.as_ref());
                    facts.allowed = answered.answer == Answer::Approve;
                    facts.open_question = false;
                }
                Body::CallStarted(started) if started.call_id == *id => {
                    facts.starts += 1;
                    facts.started_digest = Some(started.digest.clone());
                }
                Body::ToolResult(result) if result.tool_call_id == *id => facts.ended = true,
                // After its start, for the start is the last event there is when this is asked.
                Body::Cancelled(_) | Body::TurnEnded(_) if facts.reply.is_some() => facts.closed = true,
                _ => {}
            }
        }
        facts.cut_reply = self.events.iter().any(|event| {
            matches!(&event.body, Body::Assistant(data) if Some(&data.reply_id) == facts.reply.as_ref()
                && !matches!(data.stop, ReplyStop::End | ReplyStop::ToolCalls))
        });
        facts
    }
}

/// What the raw events say of one call.
struct Facts {
    id: CallId,
    reply: Option<ReplyId>,
    /// Name and arguments: what makes two calls of a reply the same.
    key: Option<(String, Result<Value, String>)>,
    judged: bool,
    cut_reply: bool,
    allowed: bool,
    closed: bool,
    open_question: bool,
    read_only: bool,
    gated_digest: Option<aish_core::Digest>,
    started_digest: Option<aish_core::Digest>,
    starts: usize,
    ended: bool,
}

/// Every call of the ledger that can be sent is, in call order, with the first result it got (SPEC 2.7, 3.5a).
pub fn assert_sends_all_calls(events: &[Event], projection: &Projection) {
    let cut: HashSet<_> = events
        .iter()
        .filter_map(|event| match &event.body {
            Body::Assistant(data) if !matches!(data.stop, ReplyStop::End | ReplyStop::ToolCalls) => {
                Some(&data.reply_id)
            }
            _ => None,
        })
        .collect();
    let expected: Vec<(CallId, Option<String>)> = events
        .iter()
        .filter_map(Event::tool_call)
        .filter(|call| call.reply_id.as_ref().is_none_or(|id| !cut.contains(id)))
        .map(|call| {
            let mut results = events.iter().filter_map(Event::tool_result);
            let result = results.find(|result| result.tool_call_id == call.id);
            (call.id.clone(), result.map(|result| result.output.clone()))
        })
        .collect();
    let sent = projection.messages.iter().filter_map(|message| match message {
        Message::Tool { call_id, output, .. } => Some((call_id.clone(), Some(output.clone()))),
        Message::User { .. } | Message::Assistant { .. } => None,
    });
    for ((call_id, output), (expected_id, expected_output)) in sent.clone().zip(&expected) {
        assert_eq!(call_id, *expected_id, "results are out of order");
        if expected_output.is_some() {
            assert_eq!(output, *expected_output, "not the first result of {call_id}");
        }
    }
    assert_eq!(sent.count(), expected.len(), "not every call has its result");
}
