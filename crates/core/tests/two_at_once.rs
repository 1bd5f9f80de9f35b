//! Two at one session: somebody else's events fall between a driver's appends (SPEC 2.11, 2.12, 3.5a, 3.5b).
//!
//! Everybody has a view of the session and a store with compare-and-set. Who is late loads, folds, and appends only what is
//! still legal.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use aish_core::action::Digest;
use aish_core::event::{
    Answer, AnswerScope, AnsweredBy, Assistant, Body, CallAnswered, CallGated, CallSource, CallStarted, Draft, Event,
    Function, ReplyStop, ResultEnd, Suspended, ToolCall, ToolResult, TurnStarted,
};
use aish_core::id::{CallId, ContinuationId, SessionId};
use aish_core::message::Message;
use aish_core::policy::{Grant, Verdict};
use aish_core::session::Session;
use aish_core::turn::{InvalidEvent, Step, StopReason, Turn};

/// A store: it knows sequence numbers and nothing else.
#[derive(Default)]
struct Store(Vec<Event>);

struct Conflict;

impl Store {
    fn append(&mut self, session: &SessionId, expected_seq: u64, drafts: Vec<Draft>) -> Result<Vec<Event>, Conflict> {
        if expected_seq != self.0.len() as u64 {
            return Err(Conflict);
        }
        let placed = drafts
            .into_iter()
            .zip(expected_seq + 1..)
            .map(|(draft, seq)| draft.place(session, seq, 0));
        let placed: Vec<Event> = placed.collect();
        self.0.extend(placed.clone());
        Ok(placed)
    }
}

/// A driver, an approver, somebody at another shell.
struct Writer(Session);

impl Writer {
    fn new() -> Self {
        Self(Session::new(SessionId::new("s")))
    }

    /// SPEC 3.5b: on a conflict loads, folds and appends again if still legal.
    fn append(&mut self, store: &mut Store, drafts: Vec<Draft>) -> Result<(), InvalidEvent> {
        loop {
            self.0.check(&drafts)?;
            match store.append(self.0.id(), self.0.last_seq(), drafts.clone()) {
                Ok(events) => {
                    events.into_iter().for_each(|event| self.0.apply(event).unwrap());
                    return Ok(());
                }
                Err(Conflict) => self.catch_up(store),
            }
        }
    }

    fn catch_up(&mut self, store: &Store) {
        let seen = usize::try_from(self.0.last_seq()).unwrap();
        store.0[seen..]
            .iter()
            .for_each(|event| self.0.apply(event.clone()).unwrap());
    }

    fn turn(&self) -> &Turn {
        self.0.turn().unwrap()
    }

    fn cancel(&mut self, store: &mut Store) {
        self.catch_up(store);
        let drafts = self.turn().cancelling("interrupted by the user");
        self.append(store, drafts).unwrap();
    }
}

fn call(n: usize) -> CallId {
    CallId::nth(1, n)
}

fn digest() -> Digest {
    Digest::new("shown")
}

/// A turn with two calls, judged so, that two writers have in view.
fn two_calls(verdict: Verdict, source: CallSource) -> (Store, Writer, Writer) {
    let (mut store, mut driver, mut other) = (Store::default(), Writer::new(), Writer::new());
    let question = vec![
        Draft::turn_started(1, TurnStarted::default()),
        Draft::user(1, "a question"),
    ];
    driver.append(&mut store, question).unwrap();
    let reply_id = driver.turn().next_reply_id();
    let mut drafts = vec![reply(&driver, "", ReplyStop::ToolCalls)];
    for n in [1, 2] {
        let function = Function {
            name: "bash".into(),
            arguments: format!("{{\"command\":\"make {n}\"}}"),
        };
        let data = ToolCall {
            id: call(n),
            call_type: "function".into(),
            function,
            reply_id: Some(reply_id.clone()),
            provider_id: None,
        };
        drafts.push(Draft::tool_call(1, data));
    }
    for n in [1, 2] {
        let data = CallGated {
            call_id: call(n),
            verdict,
            rule: "a rule".into(),
            digest: Some(digest()),
            source,
            read_only: false,
            error: None,
        };
        drafts.push(Draft::new(1, "", Body::CallGated(data)));
    }
    driver.append(&mut store, drafts).unwrap();
    other.catch_up(&store);
    (store, driver, other)
}

fn reply(writer: &Writer, text: &str, stop: ReplyStop) -> Draft {
    let data = Assistant {
        reply_id: writer.turn().next_reply_id(),
        parts: Vec::new(),
        model: None,
        attempt: 1,
        stop,
        context_seq: writer.0.last_seq(),
        reason: None,
        fallback: None,
    };
    Draft::new(1, text, Body::Assistant(data))
}

fn answer(n: usize, answer: Answer) -> Vec<Draft> {
    let data = CallAnswered {
        call_id: call(n),
        answer,
        digest: digest(),
        by: AnsweredBy::Terminal,
        scope: AnswerScope::Once,
        grant: None,
        reason: None,
        request: None,
    };
    vec![Draft::new(1, "", Body::CallAnswered(data))]
}

fn start(n: usize) -> Vec<Draft> {
    let data = CallStarted {
        call_id: call(n),
        digest: digest(),
    };
    vec![Draft::new(1, "", Body::CallStarted(data))]
}

fn result(n: usize, output: &str) -> Vec<Draft> {
    let data = ToolResult {
        tool_call_id: call(n),
        name: "bash".into(),
        output: output.into(),
        success: true,
        end: ResultEnd::Completed,
        parts: Vec::new(),
    };
    vec![Draft::tool_result(1, output, data)]
}

fn sent_results(session: &Session) -> Vec<String> {
    let results = session
        .projection()
        .messages
        .into_iter()
        .filter_map(|message| match message {
            Message::Tool { output, .. } => Some(output),
            Message::User { .. } | Message::Assistant { .. } => None,
        });
    results.collect()
}

/// SPEC 2.11: of two writers with the same view one gets a conflict, and then nothing of it is written.
#[test]
fn one_of_two_writers_gets_a_conflict() {
    let (mut store, driver, other) = two_calls(Verdict::Allow, CallSource::Builtin);
    let seq = driver.0.last_seq();
    assert!(store.append(driver.0.id(), seq, start(1)).is_ok());
    assert!(store.append(other.0.id(), seq, start(1)).is_err());
    assert_eq!(store.0.len() as u64, seq + 1);
}

/// SPEC 2.12, 3.2: two drivers that both believe the lease is theirs start a call once.
#[test]
fn two_drivers_start_a_call_once() {
    let (mut store, mut driver, mut other) = two_calls(Verdict::Allow, CallSource::Builtin);
    driver.append(&mut store, start(1)).unwrap();
    assert!(matches!(
        other.append(&mut store, start(1)),
        Err(InvalidEvent::Call { .. })
    ));
    assert!(matches!(
        other.append(&mut store, start(2)),
        Err(InvalidEvent::Call { .. })
    ));
}

/// SPEC 3.5a, 3.5b: a cancel between start and result closes the turn; the result is kept in the ledger, not projected.
#[test]
fn a_cancel_lands_while_a_call_runs() {
    let (mut store, mut driver, mut other) = two_calls(Verdict::Allow, CallSource::Builtin);
    driver.append(&mut store, start(1)).unwrap();
    other.cancel(&mut store);
    let before = other.0.projection();
    assert_eq!(other.turn().ended(), Some(StopReason::Cancelled));

    driver.append(&mut store, result(1, "built")).unwrap();
    assert_eq!(driver.0.projection(), before);
    assert!(sent_results(&driver.0).iter().all(|output| output.contains("error")));
    assert_eq!(
        store
            .0
            .last()
            .and_then(Event::tool_result)
            .map(|result| result.output.as_str()),
        Some("built")
    );
    assert_eq!(driver.append(&mut store, start(2)), Err(InvalidEvent::TurnClosed));
}

/// SPEC 3.5a: the late result may come when the next turn is under way.
#[test]
fn a_late_result_lands_in_the_next_turn() {
    let (mut store, mut driver, mut other) = two_calls(Verdict::Allow, CallSource::Builtin);
    driver.append(&mut store, start(1)).unwrap();
    other.cancel(&mut store);
    let question = vec![
        Draft::turn_started(2, TurnStarted::default()),
        Draft::user(2, "another"),
    ];
    other.append(&mut store, question).unwrap();
    let before = other.0.projection();
    driver.append(&mut store, result(1, "built")).unwrap();
    assert_eq!(driver.0.projection(), before);
    assert!(matches!(driver.turn().next(), Step::CallModel { .. }));
    assert!(
        driver
            .0
            .result_event(&call(1))
            .is_some_and(|result| result.end == ResultEnd::Interrupted)
    );
}

/// SPEC 3.5b: the driver was about to start the call when the turn was cancelled: it never runs.
#[test]
fn a_cancel_lands_before_the_start() {
    let (mut store, mut driver, mut other) = two_calls(Verdict::Allow, CallSource::Builtin);
    other.cancel(&mut store);
    assert_eq!(driver.append(&mut store, start(1)), Err(InvalidEvent::TurnClosed));
    assert_eq!(driver.turn().next(), Step::Done(StopReason::Cancelled));
    assert!(driver.turn().closing(StopReason::End).is_empty());
}

/// SPEC 3.3: of two approvers the first counts; the same answer again is accepted, a different one is a conflict.
#[test]
fn two_approvers() {
    let (mut store, mut terminal, mut page) = two_calls(Verdict::Ask, CallSource::Builtin);
    terminal.append(&mut store, answer(1, Answer::Approve)).unwrap();
    page.append(&mut store, answer(1, Answer::Approve)).unwrap();
    let conflict = page.append(&mut store, answer(1, Answer::Deny));
    assert_eq!(conflict, Err(InvalidEvent::AnsweredOtherwise(call(1))));
    assert_eq!(page.turn().next(), Step::AskApproval(vec![call(2)]));
}

/// SPEC 3.3: the same answer again has no effect: it cannot widen what was approved. Nor does a no approve anything.
#[test]
fn a_second_answer_grants_nothing() {
    let grant = Grant {
        tool: "bash".into(),
        command: None,
    };
    let with_grant = |n, word| {
        let mut drafts = answer(n, word);
        if let Some(Body::CallAnswered(answered)) = drafts.first_mut().map(|draft| &mut draft.body) {
            answered.scope = AnswerScope::Session;
            answered.grant = Some(grant.clone());
        }
        drafts
    };
    let (mut store, mut terminal, mut page) = two_calls(Verdict::Ask, CallSource::Builtin);
    terminal.append(&mut store, answer(1, Answer::Approve)).unwrap();
    page.append(&mut store, with_grant(1, Answer::Approve)).unwrap();
    page.append(&mut store, with_grant(2, Answer::Deny)).unwrap();
    assert_eq!(page.0.grants(), []);
    let (mut store, mut terminal, _) = two_calls(Verdict::Ask, CallSource::Builtin);
    terminal.append(&mut store, with_grant(1, Answer::Approve)).unwrap();
    assert_eq!(terminal.0.grants(), [grant]);
    assert_eq!(
        Session::load(SessionId::new("s"), store.0).grants(),
        terminal.0.grants()
    );
}

/// SPEC 3.5b, 9.4: the answer lands before the driver suspends: it must drive on, not say that it waits.
#[test]
fn an_answer_lands_before_the_turn_is_suspended() {
    let (mut store, mut driver, mut other) = two_calls(Verdict::Ask, CallSource::Builtin);
    let both = [answer(1, Answer::Approve), answer(2, Answer::Deny)].concat();
    other.append(&mut store, both).unwrap();
    let suspended = Suspended {
        continuation: ContinuationId::new("br-1"),
        call_id: Some(call(1)),
        expires: None,
    };
    let suspend = vec![Draft::new(1, "", Body::Suspended(suspended))];
    assert_eq!(driver.append(&mut store, suspend), Err(InvalidEvent::NotWaiting));
    assert!(matches!(driver.turn().next(), Step::RunTools(_)));
}

/// SPEC 9.4: of two results of a client one counts.
#[test]
fn two_client_results() {
    let (mut store, mut page, mut script) = two_calls(Verdict::Allow, CallSource::Client);
    page.append(&mut store, result(1, "from the page")).unwrap();
    assert!(script.append(&mut store, result(1, "from the script")).is_err());
    assert_eq!(script.turn().next(), Step::AwaitClient(vec![call(2)]));
    assert_eq!(
        sent_results(&script.0).first().map(String::as_str),
        Some("from the page")
    );
}

/// SPEC 3.5a, 3.5b: a message typed just before the turn would have ended is answered in it: the end is no longer legal.
#[test]
fn steering_lands_before_the_end() {
    let (mut store, mut driver, mut other) = (Store::default(), Writer::new(), Writer::new());
    let question = vec![
        Draft::turn_started(1, TurnStarted::default()),
        Draft::user(1, "a question"),
    ];
    driver.append(&mut store, question).unwrap();
    let said = reply(&driver, "an answer", ReplyStop::End);
    driver.append(&mut store, vec![said]).unwrap();
    let ending = driver.turn().closing(StopReason::End);
    other.catch_up(&store);
    other
        .append(&mut store, vec![Draft::user(1, "and mind the tests")])
        .unwrap();
    assert_eq!(driver.append(&mut store, ending), Err(InvalidEvent::NoClosingText));
    assert!(matches!(driver.turn().next(), Step::CallModel { .. }));
}

/// SPEC 2.12: the reply of a driver that slept through its lease has not seen what came since.
#[test]
fn a_reply_arrives_after_the_turn_went_on() {
    let (mut store, mut driver, _) = two_calls(Verdict::Allow, CallSource::Builtin);
    let mut sleeper = Writer::new();
    for event in &store.0[..2] {
        sleeper.0.apply(event.clone()).unwrap();
    }
    let late = reply(&sleeper, "I cannot find it.", ReplyStop::End);
    for n in [1, 2] {
        driver.append(&mut store, start(n)).unwrap();
        driver.append(&mut store, result(n, "built")).unwrap();
    }
    assert_eq!(sleeper.append(&mut store, vec![late]), Err(InvalidEvent::StaleReply));
}

/// SPEC 3.5b: a shell command, whoever typed it, stands between any two events; clearing does not.
#[test]
fn a_command_may_land_anywhere_and_a_clear_may_not() {
    let (mut store, mut driver, mut other) = two_calls(Verdict::Allow, CallSource::Builtin);
    driver.append(&mut store, start(1)).unwrap();
    let command = vec![Draft::new(0, "ls", Body::Command(aish_core::event::Command::default()))];
    other.append(&mut store, command).unwrap();
    assert_eq!(
        other.append(&mut store, vec![Draft::new(0, "", Body::Clear)]),
        Err(InvalidEvent::TurnOpen)
    );
    assert_eq!(
        other.append(&mut store, vec![Draft::user(0, "hello?")]),
        Err(InvalidEvent::TurnOpen)
    );
    driver.append(&mut store, result(1, "built")).unwrap();
    other.cancel(&mut store);
    other.append(&mut store, vec![Draft::new(0, "", Body::Clear)]).unwrap();
    assert_eq!(other.0.projection().messages, []);
}
