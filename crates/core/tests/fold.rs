//! The property the whole product rests on: whatever a model says, whoever answers, cancels, races or crashes, and between
//! whichever two appends, the fold of the events is the state, nothing runs twice or unapproved, every call gets one result and
//! every turn closes (SPEC 3.1 to 3.7).
//!
//! Tens of thousands of small random worlds: two drivers that do not know of each other, a person, a client and somebody
//! else at another shell, over one ledger with compare-and-set. A world is its seed; a failure prints it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::wildcard_enum_match_arm
)]

#[path = "fold/driver.rs"]
mod driver;
#[path = "fold/ledger.rs"]
mod ledger;
#[path = "fold/rogue.rs"]
mod rogue;
mod support;

use aish_core::event::{
    Answer, AnswerScope, AnsweredBy, Body, CallAnswered, Cancelled, Command, Draft, ResultEnd, TurnStarted,
};
use aish_core::id::CallId;
use aish_core::limits::Limits;
use aish_core::session::Session;
use aish_core::turn::{Asking, Step, Turn};
use driver::{Driver, Executions, digest, result};
use ledger::{Ledger, assert_sends_all_calls};
use std::collections::{HashMap, HashSet};
use support::request::{assert_ends_in_text, assert_well_formed};
use support::rng::{Rng, SeedOnPanic};

const WORLDS: u64 = 20_000;
const THREADS: u64 = 2;
/// How long the outside interferes.
const RANDOM_TICKS_MAX: usize = 40;
/// How long a lone driver may take after that, its answers at hand. Three rounds of three calls, two attempts each, and
/// three appends a call are well below.
const LONE_TICKS_MAX: usize = 150;

struct World {
    rng: Rng,
    /// Whether anybody ever cancels: worlds where nobody does get further.
    is_calm: bool,
    /// Whether a driver gone mad is about.
    has_rogue: bool,
    ledger: Ledger,
    drivers: [Driver; 2],
    /// What everybody but the drivers sees: possibly old.
    outside: Session,
    executions: Executions,
    /// What was answered first, by whoever was first.
    answers: HashMap<CallId, Answer>,
}

impl World {
    fn new(seed: u64) -> Self {
        let ledger = Ledger::new();
        let mut rng = Rng::new(seed);
        Self {
            is_calm: rng.percent(60),
            has_rogue: rng.percent(40),
            rng,
            drivers: [Driver::new(&ledger), Driver::new(&ledger)],
            outside: ledger.reload(),
            ledger,
            executions: Executions::new(),
            answers: HashMap::new(),
        }
    }

    fn start_turn(&mut self) {
        self.ledger.catch_up(&mut self.outside);
        let number = self.outside.next_turn();
        let limits = Limits {
            max_tool_turns: 1 + self.rng.below(3) as u32,
            max_tool_depth: 1 + self.rng.below(2) as u32,
            max_model_attempts: 1 + self.rng.below(2) as u32,
            max_result_chars: 6000,
        };
        let started = TurnStarted {
            limits,
            ..TurnStarted::default()
        };
        let drafts = vec![Draft::turn_started(number, started), Draft::user(number, "a question")];
        self.ledger.append(&mut self.outside, drafts).unwrap();
    }

    fn is_open(&self) -> bool {
        let ended = self
            .ledger
            .events
            .iter()
            .filter(|event| matches!(event.body, Body::TurnEnded(_)));
        let started = self
            .ledger
            .events
            .iter()
            .filter(|event| matches!(event.body, Body::TurnStarted(_)));
        ended.count() < started.count()
    }

    fn tick(&mut self) {
        if self.rng.percent(30) {
            self.ledger.catch_up(&mut self.outside);
        }
        if self.has_rogue && self.rng.percent(25) {
            rogue::try_anything(&mut self.ledger, &mut self.outside, &mut self.rng, &mut self.executions);
            return;
        }
        let n = self.rng.below(2);
        match self.rng.below(100) {
            0..70 => {
                self.drivers[n].advance(&mut self.ledger, &mut self.rng, &mut self.executions);
            }
            70..84 => self.answer(),
            84..88 => self.steer(),
            88..91 if self.is_calm => {}
            88..91 => self.cancel(),
            91..94 => self.clear_or_command(),
            94..96 => self.ledger.assert_same(&self.drivers[n].view),
            _ => self.drivers[n].crash(&self.ledger),
        }
    }

    /// Somebody answers what they see waiting, or answers again, rightly or not.
    fn answer(&mut self) {
        let Some(turn) = self.outside.turn() else { return };
        let number = turn.number();
        let waiting = match turn.next() {
            Step::AwaitPerson(jobs) if self.rng.percent(90) => {
                let calls = jobs.into_iter().map(|job| job.call);
                Some((calls.collect(), true))
            }
            Step::AskApproval(calls) if self.rng.percent(90) => Some((calls, true)),
            Step::AwaitClient(calls) if self.rng.percent(90) => Some((calls, false)),
            _ => None,
        };
        let any: Vec<CallId> = turn.calls().iter().map(|call| call.id.clone()).collect();
        let (calls, approval) = waiting.unwrap_or((any, self.rng.percent(70)));
        if calls.is_empty() {
            return;
        }
        let id = self.rng.pick(&calls);
        if approval {
            self.approve(number, &id);
        } else {
            let draft = result(
                number,
                &self.outside,
                &id,
                "from the client",
                ResultEnd::Completed,
                true,
            );
            let _refused = self.ledger.append(&mut self.outside, vec![draft]);
        }
    }

    fn approve(&mut self, turn: u64, id: &CallId) {
        let gated = self
            .outside
            .turn()
            .and_then(|turn| turn.call(id))
            .and_then(|call| call.gated.clone());
        let shown = gated.and_then(|gated| gated.digest).unwrap_or_else(|| digest(0));
        let quoted = if self.rng.percent(90) { shown.clone() } else { digest(7) };
        let answer = self.rng.pick(&[Answer::Approve, Answer::Approve, Answer::Deny]);
        let answered = CallAnswered {
            call_id: id.clone(),
            answer,
            digest: quoted.clone(),
            by: self.rng.pick(&[AnsweredBy::Terminal, AnsweredBy::Client]),
            scope: AnswerScope::Once,
            grant: None,
            reason: None,
            request: None,
        };
        let draft = Draft::new(turn, "", Body::CallAnswered(answered));
        let accepted = self.ledger.append(&mut self.outside, vec![draft]).is_ok();
        let call = self.outside.turn().and_then(|turn| turn.call(id));
        let is_refused = call.is_some_and(|call| matches!(call.asking, Asking::Refused(_)));
        if accepted && is_refused && answer == Answer::Deny {
            // A no to what it asks in the middle, whatever was said to its start.
            assert_eq!(quoted, shown, "a wrong digest declined {id}");
            self.answers.insert(id.clone(), answer);
        } else if let Some(first) = self.answers.get(id) {
            // SPEC 3.3: the same answer again is accepted, another one is not.
            let gated = self
                .outside
                .turn()
                .and_then(|turn| turn.call(id))
                .and_then(|call| call.gated.clone());
            let same = *first == answer && gated.and_then(|gated| gated.digest) == Some(quoted);
            assert_eq!(accepted, same, "{answer:?} after {first:?}");
        } else if accepted {
            assert_eq!(quoted, shown, "a wrong digest approved {id}");
            self.answers.insert(id.clone(), answer);
        }
    }

    fn steer(&mut self) {
        let Some(number) = self.outside.turn().map(Turn::number) else {
            return;
        };
        let _refused = self
            .ledger
            .append(&mut self.outside, vec![Draft::user(number, "and mind the tests")]);
    }

    /// At once, or only the word, leaving the closing to whoever drives.
    fn cancel(&mut self) {
        self.ledger.catch_up(&mut self.outside);
        let Some(turn) = self.outside.open_turn() else { return };
        let drafts = if self.rng.percent(60) {
            turn.cancelling("interrupted by the user")
        } else if turn.is_closed() {
            return;
        } else {
            let reason = "from another shell".to_owned();
            vec![Draft::new(turn.number(), "", Body::Cancelled(Cancelled { reason }))]
        };
        // SPEC 3.7: a turn can be cancelled wherever it stands.
        self.ledger.append(&mut self.outside, drafts).unwrap();
    }

    fn clear_or_command(&mut self) {
        let open = self.is_open();
        if self.rng.percent(50) {
            let draft = Draft::new(0, "ls", Body::Command(Command::default()));
            self.ledger.append(&mut self.outside, vec![draft]).unwrap();
        } else if open {
            let cleared = self
                .ledger
                .append(&mut self.outside, vec![Draft::new(0, "", Body::Clear)]);
            assert!(cleared.is_err(), "the context went from under a running turn");
        }
    }

    /// Nobody interferes any more and every question is answered: the turn must end.
    fn finish_turn(&mut self) {
        self.drivers[0].crash(&self.ledger);
        for _ in 0..LONE_TICKS_MAX {
            if !self.is_open() {
                return;
            }
            if !self.drivers[0].advance(&mut self.ledger, &mut self.rng, &mut self.executions) {
                self.ledger.catch_up(&mut self.outside);
                self.answer();
            }
        }
        panic!("the turn does not end: {:?}", self.outside.turn().map(Turn::next));
    }

    /// What still runs somewhere is told in the end, and changes nothing.
    fn tell_late_results(&mut self) {
        let before = self.drivers[0].view.clone();
        for _ in 0..30 {
            self.drivers[1].advance(&mut self.ledger, &mut self.rng, &mut self.executions);
        }
        let (before, after) = (before.projection(), self.ledger.reload().projection());
        assert_eq!(before, after, "a late result shows");
    }

    fn assert_closed_properly(&self) {
        let session = self.ledger.reload();
        let projection = session.projection();
        assert!(session.open_turn().is_none());
        assert_well_formed(&projection);
        assert_ends_in_text(&projection);
        assert_sends_all_calls(session.events(), &projection);
        for (id, times) in &self.executions {
            assert_eq!(*times, 1, "{id} executed {times} times");
        }
        self.assert_goes_on_once();
        self.assert_limits();
    }

    /// SPEC 6.9, by the raw events: what a call asks is answered once at most.
    fn assert_goes_on_once(&self) {
        let mut waits: HashSet<&CallId> = HashSet::new();
        for event in &self.ledger.events {
            match &event.body {
                Body::CallSuspended(data) => {
                    assert!(waits.insert(&data.call_id), "{} asks twice at once", data.call_id)
                }
                Body::CallTakenUp(data) => assert!(waits.remove(&data.call_id), "{} goes on twice", data.call_id),
                _ => {}
            }
        }
    }

    /// SPEC 3.6, by the raw events: no more rounds execute than the limits allow.
    fn assert_limits(&self) {
        let (mut limits, mut rounds, mut mcp_rounds) = (Limits::default(), HashSet::new(), HashSet::new());
        let mut replies = HashMap::new();
        let mut sources = HashMap::new();
        for event in &self.ledger.events {
            match &event.body {
                Body::TurnStarted(started) => {
                    limits = started.limits.clone();
                    rounds.clear();
                    mcp_rounds.clear();
                }
                Body::ToolCall(call) => {
                    replies.insert(&call.id, call.reply_id.clone());
                }
                Body::CallGated(gated) => {
                    sources.insert(&gated.call_id, gated.source);
                }
                Body::CallStarted(started) => {
                    let reply = replies[&started.call_id].clone();
                    if sources[&started.call_id] == aish_core::event::CallSource::Mcp {
                        mcp_rounds.insert(reply.clone());
                    }
                    rounds.insert(reply);
                }
                _ => {}
            }
            assert!(rounds.len() <= limits.max_tool_turns as usize, "too many rounds");
            assert!(
                mcp_rounds.len() <= limits.max_tool_depth as usize,
                "too many rounds with MCP calls"
            );
        }
    }
}

fn live(seed: u64) {
    let _seed = SeedOnPanic(seed);
    let mut world = World::new(seed);
    for _ in 0..1 + world.rng.below(2) {
        world.start_turn();
        for _ in 0..world.rng.below(RANDOM_TICKS_MAX) {
            world.tick();
        }
        world.finish_turn();
        if world.rng.percent(50) {
            world.ledger.catch_up(&mut world.drivers[0].view);
            world.tell_late_results();
        }
        world.assert_closed_properly();
    }
    for driver in &mut world.drivers {
        world.ledger.catch_up(&mut driver.view);
        world.ledger.assert_same(&driver.view);
    }
}

/// SPEC 3.1, 3.2, 3.3, 3.4, 3.5b, 3.6, 3.7, 2.6, 2.7, 2.11.
#[test]
fn the_fold_is_the_state_and_nothing_runs_twice_or_unapproved() {
    std::thread::scope(|scope| {
        for first in 0..THREADS {
            scope.spawn(move || (first..WORLDS).step_by(THREADS as usize).for_each(live));
        }
    });
}

/// The worlds are worth living in: all that is to be survived does happen in them.
#[test]
fn the_worlds_are_varied() {
    let mut seen: HashMap<String, usize> = HashMap::new();
    for seed in 0..1500 {
        let _seed = SeedOnPanic(seed);
        let mut world = World::new(seed);
        world.start_turn();
        for _ in 0..RANDOM_TICKS_MAX {
            world.tick();
        }
        world.finish_turn();
        for event in &world.ledger.events {
            let word = match &event.body {
                Body::ToolResult(result) => format!("{:?}", result.end),
                Body::TurnEnded(ended) => ended.reason.word().to_owned(),
                other => other.kind().to_owned(),
            };
            *seen.entry(word).or_default() += 1;
        }
    }
    let expected = [
        "Completed",
        "Declined",
        "Denied",
        "Invalid",
        "NotRun",
        "Interrupted",
        "Limit",
        "Duplicate",
        "end",
        "limit",
        "declined",
        "model_failed",
        "truncated",
        "cancelled",
        "suspended",
        "resumed",
        "call_suspended",
        "call_taken_up",
        "call_answered",
    ];
    for word in expected {
        assert!(
            seen.get(word).copied().unwrap_or_default() > 2,
            "{word} hardly happens: {seen:?}"
        );
    }
}
