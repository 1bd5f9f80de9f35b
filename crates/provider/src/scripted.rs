//! A provider that answers from a script, for tests of whatever needs a model.
//!
//! Each request takes the next [`Act`] of the script and is kept, so that a test can look at what the model was asked.

use crate::{Delta, ErrorKind, Provider, ProviderError, Reply, ReplyCall, ReplyStream, Request};
use aish_core::event::ReplyStop;
use aish_core::message::{Message, Part, ToolChoice, ToolSpec};
use futures_util::future::BoxFuture;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What the model does when it is asked.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "a script has a few acts")]
pub enum Act {
    /// It shows these deltas, one at a time, and the reply is this one.
    Reply {
        /// What is shown.
        deltas: Vec<Delta>,
        /// What it comes to.
        reply: Reply,
    },
    /// The request fails.
    Fail(ProviderError),
    /// It shows these deltas and then says nothing more until the reply is dropped.
    Hang(Vec<Delta>),
}

impl Act {
    /// A reply of text.
    pub fn text(text: &str) -> Self {
        Self::reply_of(text, Vec::new())
    }

    /// A reply of calls: names as people see them, and argument texts.
    pub fn calls(calls: &[(&str, &str)]) -> Self {
        Self::text_and_calls("", calls)
    }

    /// A reply of text and calls.
    pub fn text_and_calls(text: &str, calls: &[(&str, &str)]) -> Self {
        let calls = calls.iter().map(|(name, arguments)| ReplyCall {
            provider_id: None,
            name: (*name).to_owned(),
            arguments: (*arguments).to_owned(),
        });
        Self::reply_of(text, calls.collect())
    }

    /// A failure of this kind.
    pub fn fail(kind: ErrorKind) -> Self {
        Self::Fail(ProviderError {
            kind,
            message: format!("scripted failure: {}", kind.word()),
            retry_after: None,
        })
    }

    fn reply_of(text: &str, calls: Vec<ReplyCall>) -> Self {
        let mut deltas = Vec::new();
        let mut parts = Vec::new();
        if !text.is_empty() {
            deltas.push(Delta::Text(text.to_owned()));
            parts.push(Part::text(text));
        }
        deltas.extend(calls.iter().map(|call| Delta::CallBegun {
            name: call.name.clone(),
        }));
        let stop = if calls.is_empty() {
            ReplyStop::End
        } else {
            ReplyStop::ToolCalls
        };
        let reply = Reply {
            parts,
            calls,
            stop,
            usage: None,
            model: None,
            error: None,
            reason: None,
            remarks: Vec::new(),
        };
        Self::Reply { deltas, reply }
    }
}

/// A request as it was asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// The model's configured name.
    pub model: String,
    /// Standing instructions.
    pub system: String,
    /// The conversation.
    pub messages: Vec<Message>,
    /// The tools offered.
    pub tools: Vec<ToolSpec>,
    /// Whether tools may be called.
    pub tool_choice: ToolChoice,
    /// Tokens the reply may have.
    pub max_output_tokens: Option<u64>,
}

/// The provider.
#[derive(Debug, Default)]
pub struct Scripted {
    acts: Mutex<VecDeque<Act>>,
    asked: Mutex<Vec<Asked>>,
}

impl Scripted {
    /// A provider that does these acts, one for each request. After the last one, requests fail.
    pub fn new(acts: impl IntoIterator<Item = Act>) -> Self {
        Self {
            acts: Mutex::new(acts.into_iter().collect()),
            asked: Mutex::default(),
        }
    }

    /// Adds an act to the end of the script.
    pub fn push(&self, act: Act) {
        lock(&self.acts).push_back(act);
    }

    /// The requests so far.
    pub fn asked(&self) -> Vec<Asked> {
        lock(&self.asked).clone()
    }

    /// How many acts are left.
    pub fn remaining(&self) -> usize {
        lock(&self.acts).len()
    }
}

/// A test that panicked elsewhere does not make the script unreadable.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Provider for Scripted {
    fn send<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Box<dyn ReplyStream>, ProviderError>> {
        lock(&self.asked).push(Asked {
            model: request.model.to_owned(),
            system: request.system.to_owned(),
            messages: request.messages.to_vec(),
            tools: request.tools.to_vec(),
            tool_choice: request.tool_choice,
            max_output_tokens: request.max_output_tokens,
        });
        let act = lock(&self.acts).pop_front();
        Box::pin(async move {
            let (deltas, reply) = match act {
                Some(Act::Reply { deltas, reply }) => (deltas, Some(reply)),
                Some(Act::Hang(deltas)) => (deltas, None),
                Some(Act::Fail(error)) => return Err(error),
                None => {
                    return Err(ProviderError {
                        kind: ErrorKind::Protocol,
                        message: "the script is over".to_owned(),
                        retry_after: None,
                    });
                }
            };
            Ok(Box::new(ScriptedStream {
                left: deltas.into(),
                shown: Vec::new(),
                reply,
                is_over: false,
            }) as Box<dyn ReplyStream>)
        })
    }
}

struct ScriptedStream {
    left: VecDeque<Delta>,
    shown: Vec<Delta>,
    /// The reply; none for one that hangs.
    reply: Option<Reply>,
    is_over: bool,
}

impl ReplyStream for ScriptedStream {
    fn next<'a>(&'a mut self, out: &'a mut Vec<Delta>) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            if let Some(delta) = self.left.pop_front() {
                self.shown.push(delta.clone());
                out.push(delta);
                return true;
            }
            if self.reply.is_none() {
                std::future::pending::<()>().await;
            }
            self.is_over = true;
            false
        })
    }

    fn finish(self: Box<Self>) -> Reply {
        match self.reply {
            Some(reply) if self.is_over => reply,
            reply => cut_short(&self.shown, reply),
        }
    }
}

/// What a reply comes to that was not read to its end: the text that was shown, and no call that counts.
fn cut_short(shown: &[Delta], whole: Option<Reply>) -> Reply {
    let mut parts = Vec::new();
    for delta in shown {
        parts.push(match delta {
            Delta::Text(text) => Part::text(text),
            Delta::Thinking(text) => Part::thinking(text.as_str()),
            Delta::CallBegun { name } => Part::PartialCall {
                name: name.clone(),
                arguments: String::new(),
            },
        });
    }
    Reply {
        parts,
        calls: Vec::new(),
        stop: ReplyStop::Truncated,
        usage: None,
        model: whole.and_then(|reply| reply.model),
        error: None,
        reason: None,
        remarks: Vec::new(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;

    const REQUEST: Request<'_> = Request {
        model: "scripted",
        system: "s",
        messages: &[],
        tools: &[],
        tool_choice: ToolChoice::Auto,
        max_output_tokens: None,
        schema: None,
    };

    #[tokio::test]
    async fn acts_in_order() {
        let model = Scripted::new([
            Act::fail(ErrorKind::Status(429)),
            Act::text_and_calls("a", &[("glob", "{}")]),
        ]);
        assert!(model.send(REQUEST).await.is_err());
        let mut stream = model.send(REQUEST).await.unwrap();
        let mut out = Vec::new();
        while stream.next(&mut out).await {}
        let name = "glob".to_owned();
        assert_eq!(out, [Delta::Text("a".to_owned()), Delta::CallBegun { name }]);
        let reply = stream.finish();
        assert_eq!((reply.stop, reply.calls.len()), (ReplyStop::ToolCalls, 1));
        assert_eq!((model.asked().len(), model.remaining()), (2, 0));
        assert_eq!(model.asked()[0].system, "s");
        assert!(model.send(REQUEST).await.is_err());
    }

    /// SPEC 7.3: a scripted reply that is given up is cut short like a real one.
    #[tokio::test]
    async fn a_reply_given_up() {
        let hanging = Act::Hang(vec![Delta::Text("so far".to_owned())]);
        let model = Scripted::new([hanging, Act::calls(&[("glob", "{}")])]);
        let mut stream = model.send(REQUEST).await.unwrap();
        let mut out = Vec::new();
        assert!(stream.next(&mut out).await);
        tokio::select! {
            biased;
            _ = stream.next(&mut out) => panic!("it hangs"),
            () = std::future::ready(()) => {}
        }
        let reply = stream.finish();
        assert_eq!(
            (reply.stop, reply.parts),
            (ReplyStop::Truncated, vec![Part::text("so far")])
        );
        let unread = model.send(REQUEST).await.unwrap().finish();
        assert_eq!((unread.stop, unread.calls.len()), (ReplyStop::Truncated, 0));
    }
}
