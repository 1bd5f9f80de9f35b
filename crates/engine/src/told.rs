//! What a client is told of a turn at each of its waits and at its end, folded from the events one by one: nothing that comes later
//! changes it (SPEC 9.4).
//!
//! The fold keeps what the last reply called and how far that has got, and of all before it the names of the tools alone: it stays
//! small beside its turn, so that a reader of a session can have one of its own and needs no session in memory.

use crate::standing::{AnswerTo, Envelope, Final, Waited, Waiting};
use aish_core::event::{Answer, Body, CallGated, CallSource, Event, ReplyStop, Suspended, ToolCall};
use aish_core::id::{CallId, SessionId};
use aish_core::policy::Verdict;
use aish_core::projection::repaired_arguments;
use aish_core::turn::StopReason;
use aish_store::RawEvent;
use aish_tools::BegunBy;

/// What a client is told to do about a call that asks something in the middle.
const ANSWERED_ELSEWHERE: &str = "It can be declined here, and answered at a terminal (aish --resume)";

/// Whether an event of this kind says something to a client in every turn: that it waits, or is over.
pub fn tells(kind: &str) -> bool {
    matches!(kind, "suspended" | "turn_ended")
}

/// Whether one may: a turn at a terminal waits with the question itself.
pub fn may_tell(kind: &str) -> bool {
    tells(kind) || asks_or_answers(kind)
}

/// Whether it may be what a turn at a terminal waits with.
fn asks_or_answers(kind: &str) -> bool {
    matches!(kind, "call_gated" | "call_answered" | "call_suspended")
}

/// The latest turn of a session, as far as its events were taken.
#[derive(Clone, Debug, Default)]
pub struct Telling {
    turn: u64,
    seen: Seen,
    begun_by: BegunBy,
    model: String,
    /// Those of the last reply: all others have their results.
    calls: Vec<ToldCall>,
    /// The tools of the calls that ran or were handed to the client, in order.
    used: Vec<String>,
    text: ReplyText,
}

/// How much of a turn was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Seen {
    /// It may have begun before.
    #[default]
    Partly,
    /// All, from its beginning on.
    Whole,
}

/// A call, as far as it has got.
#[derive(Clone, Debug)]
struct ToldCall {
    call: ToolCall,
    gated: Option<CallGated>,
    answered: Option<Answer>,
    asks: Vec<String>,
    /// It ran, or was handed to the client.
    is_used: bool,
}

impl ToldCall {
    fn awaits_answer(&self) -> bool {
        let gated = self.gated.as_ref();
        self.answered.is_none() && gated.is_some_and(|gated| gated.verdict == Verdict::Ask)
    }

    /// It is the client's, and nobody has to say yes first.
    fn is_at_client(&self) -> bool {
        let gated = self.gated.as_ref();
        let is_clients = gated.is_some_and(|gated| gated.source == CallSource::Client);
        is_clients && !self.awaits_answer() && self.answered != Some(Answer::Deny)
    }

    /// What is told of it while it is waited for.
    fn waited(&self, (answer_to, expires): (AnswerTo, Option<u64>)) -> Waiting {
        let gated = self.gated.as_ref();
        let rule = gated.map(|gated| gated.rule.clone()).unwrap_or_default();
        let waited = Waited {
            answer_to,
            call_id: self.call.id.clone(),
            tool: self.call.function.name.clone(),
            input: repaired_arguments(&self.call.function.arguments),
            digest: gated.and_then(|gated| gated.digest.clone()),
            reason: if self.asks.is_empty() {
                rule
            } else {
                format!("it asks: {}. {ANSWERED_ELSEWHERE}", self.asks.join("; "))
            },
            expires,
        };
        if self.is_at_client() {
            Waiting::ForTool(waited)
        } else {
            Waiting::ForApproval(waited)
        }
    }

    /// It stopped in the middle to ask something, and nobody has declined it.
    fn is_asking(&self) -> bool {
        !self.asks.is_empty() && self.answered != Some(Answer::Deny)
    }
}

impl Telling {
    /// Takes the next event of the session. Those of turns before the latest are evidence only.
    pub fn take(&mut self, event: &Event) {
        if event.turn < self.turn || event.turn == 0 {
            return;
        }
        if event.turn > self.turn {
            *self = Self {
                turn: event.turn,
                seen: if matches!(event.body, Body::TurnStarted(_)) {
                    Seen::Whole
                } else {
                    Seen::Partly
                },
                ..Self::default()
            };
        }
        self.text.take(event);
        if let Body::TurnStarted(data) = &event.body {
            self.model.clone_from(&data.model);
            if data.served.is_some() {
                self.begun_by = BegunBy::Client;
            }
        } else if let Body::Assistant(data) = &event.body {
            self.calls.clear();
            if let Some(model) = &data.model {
                self.model.clone_from(model);
            }
        } else if let Body::ToolCall(call) = &event.body {
            self.calls.push(ToldCall {
                call: call.clone(),
                gated: None,
                answered: None,
                asks: Vec::new(),
                is_used: false,
            });
        } else if let Body::CallGated(data) = &event.body {
            self.with(&data.call_id, |call| call.gated = Some(data.clone()));
        } else if let Body::CallAnswered(data) = &event.body {
            self.with(&data.call_id, |call| call.answered = Some(data.answer));
        } else if let Body::CallSuspended(data) = &event.body {
            self.with(&data.call_id, |call| call.asks.clone_from(&data.asks));
        } else if let Body::CallTakenUp(data) = &event.body {
            self.with(&data.call_id, |call| call.asks.clear());
        } else if let Body::ToolResult(data) = &event.body {
            // Rules are judged once more before it goes on, and may end it without that.
            self.with(&data.tool_call_id, |call| call.asks.clear());
        } else if let Body::CallStarted(data) = &event.body {
            self.used(&data.call_id);
        } else if let Body::Suspended(data) = &event.body
            && let Some(id) = &data.call_id
            && self.call(id).is_some_and(ToldCall::is_at_client)
        {
            self.used(id);
        }
    }

    /// The same of an event as it is stored. One that cannot be read, of a newer aish, says nothing.
    pub fn take_raw(&mut self, session: &SessionId, raw: &RawEvent) -> Option<Envelope> {
        // What calls gave may be long, and says nothing here but that nothing is asked any more.
        if raw.kind == "tool_result" && self.calls.iter().all(|call| call.asks.is_empty()) {
            return None;
        }
        let event = decoded(session, raw)?;
        self.take(&event);
        self.at(&event)
    }

    /// What an event that is stored tells, where it was taken last.
    pub fn at_raw(&self, session: &SessionId, raw: &RawEvent) -> Option<Envelope> {
        self.at(&decoded(session, raw)?)
    }

    /// What the event that was taken last tells the client; `None` where it tells nothing, or the turn was not seen whole.
    pub fn at(&self, event: &Event) -> Option<Envelope> {
        let tells = self.is_whole() && event.turn == self.turn && (tells(event.body.kind()) || self.asks_with(event));
        tells.then(|| self.envelope(event))
    }

    /// Whether the turn of the events that were taken last was seen from its beginning on.
    pub fn is_whole(&self) -> bool {
        self.seen == Seen::Whole
    }

    /// Whether a turn at a terminal waits with that event: it asks about a call that comes first now.
    fn asks_with(&self, event: &Event) -> bool {
        if self.begun_by == BegunBy::Client {
            return false;
        }
        let Some(first) = self.asked_first() else {
            return false;
        };
        if let Body::CallGated(data) = &event.body {
            data.call_id == first.call.id
        } else if let Body::CallSuspended(data) = &event.body {
            data.call_id == first.call.id
        } else {
            asks_or_answers(event.body.kind())
        }
    }

    /// The call that somebody has to say something to before all others.
    fn asked_first(&self) -> Option<&ToldCall> {
        let unanswered = self.calls.iter().find(|call| call.awaits_answer());
        unanswered.or_else(|| self.calls.iter().find(|call| call.is_asking()))
    }

    pub(crate) fn envelope(&self, at: &Event) -> Envelope {
        let waited = if let Body::Suspended(data) = &at.body {
            self.waited(data)
        } else if tells(at.body.kind()) {
            None
        } else {
            let to = AnswerTo::Session(at.session.clone());
            self.asked_first().map(|call| call.waited((to, None)))
        };
        Envelope {
            session: at.session.clone(),
            turn: at.turn,
            model: self.model.clone(),
            tools_used: self.used.clone(),
            reply: waited.unwrap_or_else(|| {
                Waiting::ForNothing(Final {
                    reply: self.text.whole(),
                    reason: if let Body::TurnEnded(ended) = &at.body {
                        ended.reason
                    } else {
                        StopReason::Cancelled
                    },
                })
            }),
        }
    }

    fn with(&mut self, id: &CallId, change: impl FnOnce(&mut ToldCall)) {
        if let Some(call) = self.calls.iter_mut().rev().find(|call| call.call.id == *id) {
            change(call);
        }
    }

    fn call(&self, id: &CallId) -> Option<&ToldCall> {
        self.calls.iter().rev().find(|call| call.call.id == *id)
    }

    fn used(&mut self, id: &CallId) {
        let call = self.calls.iter_mut().rev().find(|call| call.call.id == *id);
        if let Some(call) = call.filter(|call| !call.is_used) {
            call.is_used = true;
            self.used.push(call.call.function.name.clone());
        }
    }

    /// What a suspension waits for, as it was asked then.
    fn waited(&self, suspended: &Suspended) -> Option<Waiting> {
        let call = self.call(suspended.call_id.as_ref()?)?;
        let to = AnswerTo::Continuation(suspended.continuation.clone());
        Some(call.waited((to, suspended.expires)))
    }
}

/// An event that is stored, if it can be read.
fn decoded(session: &SessionId, raw: &RawEvent) -> Option<Event> {
    Some(Event {
        session: session.clone(),
        seq: raw.seq,
        turn: raw.turn,
        time: raw.time,
        version: raw.version,
        content: raw.content.clone(),
        body: Body::decode(&raw.kind, &raw.data).ok()?,
    })
}

/// The text of a turn's last reply, and what closed the turn where no reply did.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReplyText {
    pub(crate) said: String,
    closing: String,
    is_paused: bool,
}

impl ReplyText {
    /// Takes the next event of the turn.
    pub(crate) fn take(&mut self, event: &Event) {
        if let Body::Assistant(data) = &event.body {
            let text = if data.stop == ReplyStop::Closing {
                &mut self.closing
            } else {
                &mut self.said
            };
            if !self.is_paused {
                text.clear();
            }
            // A reply that its provider paused goes on in the next one.
            self.is_paused = data.stop == ReplyStop::Paused;
            text.push_str(&event.content);
        } else if let Body::ToolCall(_) = &event.body {
            self.said.clear();
        }
    }

    /// Both, the reply first.
    pub(crate) fn whole(&self) -> String {
        let between = if self.said.is_empty() || self.closing.is_empty() {
            ""
        } else {
            "\n"
        };
        format!("{}{between}{}", self.said, self.closing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aish_core::action::Digest;
    use aish_core::event::{CallSuspended, Draft, Function, ResultEnd, ToolResult, TurnStarted};

    fn call(id: &str) -> Body {
        Body::ToolCall(ToolCall {
            id: CallId::new(id),
            call_type: "function".to_owned(),
            function: Function {
                name: "ask".to_owned(),
                arguments: "{}".to_owned(),
            },
            reply_id: None,
            provider_id: None,
        })
    }

    fn asks(id: &str) -> [Body; 2] {
        let gated = CallGated {
            call_id: CallId::new(id),
            verdict: Verdict::Allow,
            rule: String::new(),
            digest: Some(Digest::of(id)),
            source: CallSource::Mcp,
            read_only: false,
            error: None,
        };
        let suspended = CallSuspended {
            call_id: CallId::new(id),
            asks: vec!["Which one?".to_owned()],
            state: serde_json::Value::Null,
        };
        [Body::CallGated(gated), Body::CallSuspended(suspended)]
    }

    /// SPEC 6.9, 9.9: a call that stopped to ask and is denied before it goes on asks nothing any more: the next one that asks is told.
    #[test]
    fn a_call_that_asked_and_was_denied() {
        let session = SessionId::new("one");
        let denied = ToolResult {
            tool_call_id: CallId::new("first"),
            name: "ask".to_owned(),
            output: String::new(),
            success: false,
            parts: Vec::new(),
            end: ResultEnd::Denied,
        };
        let mut bodies = vec![Body::TurnStarted(TurnStarted::default()), call("first"), call("second")];
        bodies.extend(asks("first"));
        bodies.push(Body::ToolResult(denied));
        bodies.extend(asks("second"));
        let (mut live, mut stored) = (Telling::default(), Telling::default());
        let mut told = (Vec::new(), Vec::new());
        for (body, seq) in bodies.into_iter().zip(1..) {
            let event = Draft::new(1, "", body).place(&session, seq, 0);
            live.take(&event);
            let says = live.at(&event);
            assert!(says.is_none() || may_tell(event.body.kind()), "{event:?}");
            told.0.extend(says);
            told.1.extend(stored.take_raw(&session, &RawEvent::from(&event)));
        }
        assert_eq!(told.0, told.1);
        let asked: Vec<&str> = told
            .0
            .iter()
            .map(|envelope| match &envelope.reply {
                Waiting::ForApproval(waited) => waited.call_id.as_str(),
                Waiting::ForTool(_) | Waiting::ForNothing(_) => "another",
            })
            .collect();
        assert_eq!(asked, ["first", "second"]);
    }
}
