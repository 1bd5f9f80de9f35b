//! The rules of the fold, each by an example.
//!
//! A script tells what happened, one event a line: `call a b` is a reply with two calls, `gate a ask`, `yes a`, `start a`,
//! `result a`. A line that begins with `!` must be refused. [`check`] folds it and compares what must happen next.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm
)]

use super::*;
use crate::action::Digest;
use crate::event::*;
use crate::id::SessionId;
use crate::limits::Limits;

/// A turn in the making: two rounds of tools, one with MCP calls, two attempts at a reply.
struct Script {
    turn: Turn,
    seq: u64,
    reply: ReplyId,
}

impl Script {
    fn play(script: &str) -> Self {
        let limits = Limits {
            max_tool_turns: 2,
            max_tool_depth: 1,
            max_model_attempts: 2,
            ..Limits::default()
        };
        let mut script_ = Self {
            turn: Turn::new(1),
            seq: 0,
            reply: ReplyId::nth(1, 1),
        };
        let started = TurnStarted {
            limits,
            ..TurnStarted::default()
        };
        script_.apply(Draft::turn_started(1, started)).unwrap();
        script_.apply(Draft::user(1, "a question")).unwrap();
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            script_.line(line);
        }
        script_
    }

    fn apply(&mut self, draft: Draft) -> Result<(), InvalidEvent> {
        let before = format!("{:?}", self.turn);
        let event = draft.place(&SessionId::new("s"), self.seq + 1, 0);
        let applied = self.turn.apply(&event);
        match applied {
            Ok(()) => self.seq += 1,
            Err(_) => assert_eq!(before, format!("{:?}", self.turn), "a refused event left a trace"),
        }
        applied
    }

    fn line(&mut self, line: &str) {
        let (refused, line) = match line.strip_prefix('!') {
            Some(rest) => (true, rest.trim()),
            None => (false, line),
        };
        for draft in self.drafts(line) {
            let applied = self.apply(draft);
            assert_eq!(applied.is_err(), refused, "{line}: {applied:?}");
        }
    }

    fn drafts(&mut self, line: &str) -> Vec<Draft> {
        let mut words = line.split(' ');
        let verb = words.next().unwrap();
        let words: Vec<&str> = words.collect();
        let has = |word: &str| words.contains(&word);
        let id = || CallId::new(words[0]);
        let digest = || Digest::new(if has("wrong") { "other" } else { "shown" });
        let draft = |body| Draft::new(1, line, body);
        vec![match verb {
            "call" => return self.call(&words),
            "say" => self.reply(ReplyStop::End, "text", has("unseen")),
            "empty" => or_else(self.reply(ReplyStop::End, " ", has("unseen")), &words),
            "cut" => or_else(
                self.reply(ReplyStop::Truncated, if has("shown") { "te" } else { "" }, false),
                &words,
            ),
            "long" => or_else(self.reply(ReplyStop::Length, "", false), &words),
            "pause" => self.reply(ReplyStop::Paused, "te", false),
            "refused" => self.reply(ReplyStop::Refused, "", false),
            "fail" => draft(Body::ModelFailed(ModelFailed {
                error: "http_500".into(),
                attempt: if has("second") { 2 } else { 1 },
                text_shown: has("shown"),
                retryable: !has("fatal"),
                retry_after_ms: has("later").then_some(700),
                model: None,
                fallback: stand_in(&words),
            })),
            "gate" => draft(Body::CallGated(self.gated(id(), &words))),
            "yes" | "no" => draft(Body::CallAnswered(CallAnswered {
                call_id: id(),
                answer: if verb == "yes" { Answer::Approve } else { Answer::Deny },
                digest: digest(),
                by: AnsweredBy::Terminal,
                scope: AnswerScope::Once,
                grant: None,
                reason: has("because").then(|| "too risky".to_owned()),
                request: None,
            })),
            "start" => draft(Body::CallStarted(CallStarted {
                call_id: id(),
                digest: digest(),
            })),
            "asks" => draft(Body::CallSuspended(CallSuspended {
                call_id: id(),
                asks: vec!["Which one?".into()],
                state: serde_json::Value::Null,
            })),
            "taken" => draft(Body::CallTakenUp(CallTakenUp {
                call_id: id(),
                digest: digest(),
            })),
            "result" => self.result(&words),
            "blank" => self.reply(ReplyStop::Closing, " ", false),
            "steer" => Draft::user(1, "and mind the tests"),
            "command" => draft(Body::Command(Command::default())),
            "suspend" => draft(Body::Suspended(Suspended {
                continuation: ContinuationId::new(words[0]),
                call_id: words.get(1).map(|call| CallId::new(*call)),
                expires: None,
            })),
            "resume" => draft(Body::Resumed(Resumed {
                continuation: ContinuationId::new(words[0]),
                answer: None,
                request: None,
            })),
            "cancelled" => draft(Body::Cancelled(Cancelled { reason: "^C".into() })),
            "cancel" => return self.turn.cancelling("interrupted by the user"),
            "close" => {
                let Step::Done(reason) = self.turn.next() else {
                    panic!("not done: {:?}", self.turn.next())
                };
                return self.turn.closing(reason);
            }
            "end" => draft(Body::TurnEnded(TurnEnded {
                reason: StopReason::End,
            })),
            other => panic!("no such line: {other}"),
        }]
    }

    fn reply(&mut self, stop: ReplyStop, text: &str, unseen: bool) -> Draft {
        let attempt = match self.turn.next() {
            Step::CallModel { attempt, .. } => attempt,
            _ => 1,
        };
        self.reply = self.turn.next_reply_id();
        let data = Assistant {
            reply_id: self.reply.clone(),
            parts: Vec::new(),
            model: None,
            attempt,
            stop,
            // `unseen`: the last event came after the request was built.
            context_seq: if unseen { self.seq - 1 } else { self.seq },
            reason: None,
            fallback: None,
        };
        Draft::new(1, text, Body::Assistant(data))
    }

    /// `call a b:x c:x`: three calls, the last two with the same arguments. `more` adds to the reply before.
    fn call(&mut self, words: &[&str]) -> Vec<Draft> {
        let mut drafts = Vec::new();
        if !words.contains(&"more") {
            drafts.push(self.reply(ReplyStop::ToolCalls, "", words.contains(&"unseen")));
        }
        for word in words.iter().filter(|word| !["more", "unseen"].contains(*word)) {
            let (id, arguments) = word.split_once(':').unwrap_or((word, word));
            let call = ToolCall {
                id: CallId::new(id),
                call_type: "function".into(),
                function: Function {
                    name: "bash".into(),
                    arguments: arguments.into(),
                },
                reply_id: Some(self.reply.clone()),
                provider_id: None,
            };
            drafts.push(Draft::tool_call(1, call));
        }
        drafts
    }

    fn gated(&self, call_id: CallId, words: &[&str]) -> CallGated {
        let verdict = match words[1] {
            "allow" => Verdict::Allow,
            "ask" => Verdict::Ask,
            "deny" => Verdict::Deny,
            "invalid" => Verdict::Invalid,
            other => panic!("no such verdict: {other}"),
        };
        CallGated {
            call_id,
            verdict,
            rule: "a rule".into(),
            digest: (verdict != Verdict::Invalid && !words.contains(&"undigested")).then(|| Digest::new("shown")),
            source: match () {
                () if words.contains(&"mcp") => CallSource::Mcp,
                () if words.contains(&"client") => CallSource::Client,
                () => CallSource::Builtin,
            },
            read_only: words.contains(&"reads"),
            error: (verdict == Verdict::Invalid).then(|| r#"{"error":"Unknown tool: x"}"#.to_owned()),
        }
    }

    fn result(&self, words: &[&str]) -> Draft {
        let end = match words.get(1).copied() {
            None => ResultEnd::Completed,
            Some("declined") => ResultEnd::Declined,
            Some("denied") => ResultEnd::Denied,
            Some("invalid") => ResultEnd::Invalid,
            Some("interrupted") => ResultEnd::Interrupted,
            Some("limit") => ResultEnd::Limit,
            Some("duplicate") => ResultEnd::Duplicate,
            Some(other) => panic!("no such end: {other}"),
        };
        let data = ToolResult {
            tool_call_id: CallId::new(words[0]),
            name: "bash".into(),
            output: "{}".into(),
            success: end == ResultEnd::Completed,
            end,
            parts: Vec::new(),
        };
        Draft::tool_result(1, "done", data)
    }
}

/// The model of an `else=` among the words.
fn stand_in(words: &[&str]) -> Option<String> {
    words
        .iter()
        .find_map(|word| word.strip_prefix("else="))
        .map(str::to_owned)
}

/// The same reply, naming the model that stands in.
fn or_else(mut draft: Draft, words: &[&str]) -> Draft {
    if let Body::Assistant(reply) = &mut draft.body {
        reply.fallback = stand_in(words);
    }
    draft
}

fn shown(step: &Step) -> String {
    let list = |ids: &[CallId]| ids.iter().map(CallId::as_str).collect::<Vec<_>>().join(" ");
    match step {
        Step::CallModel {
            attempt,
            tool_choice,
            wait_ms,
            model,
        } => {
            let tools = if *tool_choice == ToolChoice::None {
                " without tools"
            } else {
                ""
            };
            let wait = if *wait_ms > 0 {
                format!(" after {wait_ms} ms")
            } else {
                String::new()
            };
            let other = model.as_ref().map(|model| format!(" as {model}")).unwrap_or_default();
            format!("model {attempt}{tools}{wait}{other}")
        }
        Step::Gate(calls) => format!("gate {}", list(calls)),
        Step::AskApproval(calls) => format!("ask {}", list(calls)),
        Step::AwaitClient(calls) => format!("client {}", list(calls)),
        Step::AwaitPerson(jobs) => {
            let jobs: Vec<String> = jobs.iter().map(shown_job).collect();
            format!("person {}", jobs.join(", "))
        }
        Step::RunTools(jobs) => {
            let jobs: Vec<String> = jobs.iter().map(shown_job).collect();
            format!("do {}", jobs.join(", "))
        }
        Step::Done(reason) => format!("done {}", reason.word()),
    }
}

fn shown_job(job: &Job) -> String {
    let how = match &job.how {
        How::Run { read_only: true, .. } => "reads".to_owned(),
        How::Run { .. } => "run".to_owned(),
        How::Answer { end, output, .. } => format!("{end:?} {output}"),
        How::SameAs(other) => format!("same as {other}"),
    };
    let limit = job.limit.map(|limit| format!(" limit {limit}")).unwrap_or_default();
    format!("{} {how}{limit}", job.call)
}

#[track_caller]
fn check(script: &str, next: &str) {
    assert_eq!(shown(&Script::play(script).turn.next()), next, "after\n{script}");
}

mod approval;
mod asking;
mod calls;
mod ends;
mod handover;
mod served;
