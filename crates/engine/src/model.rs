//! Asking the model: one attempt at one reply, watched as it streams, recorded when it is whole.

use crate::choice::Choice;
use crate::clock::random;
use crate::context;
use crate::defer::meant;
use crate::driver::Driver;
use crate::lease::asked;
use crate::{EngineError, Model, Notice, Notices, Settings};
use aish_core::Turn;
use aish_core::event::{Assistant, Body, Draft, Function, ModelFailed, ReplyStop, ToolCall, Usage};
use aish_core::message::{Part, ToolChoice, text_of};
use aish_core::sanitize::single_line;
use aish_provider::{Delta, ErrorKind, ProviderError, Reply, Request};
use aish_store::Durability;
use aish_tools::Cancel;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The first pause before a request is made again; it doubles with each attempt.
const BACKOFF_START_MS: u64 = 500;
/// The longest pause of our own making. What a server asks for (`Retry-After`) is honoured up to `RETRY_AFTER_MAX_MS`.
const BACKOFF_MAX_MS: u64 = 8_000;
/// The pause before a reply is asked for again that was there and said nothing.
const EMPTY_WAIT_MS: u64 = 250;
/// Characters of a model's name that are shown.
const MODEL_NAME_CHARS_MAX: usize = 80;
/// A server that asks for more than this is not waited for: the turn ends and says so.
const RETRY_AFTER_MAX_MS: u64 = 120_000;

/// How one attempt went.
enum Attempt {
    Replied(Reply),
    Failed(ProviderError),
    Stopped(Option<Reply>),
}

/// Whether text of a reply was shown before it failed: then it is not asked for again silently.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TextShown {
    Yes,
    No,
}

/// Where an attempt came from.
struct Came<'m> {
    model: &'m Model,
    attempt: u32,
    context_seq: u64,
}

/// What the fold wants of a model.
pub(crate) struct Ask {
    /// Which attempt at this reply, from 1.
    pub(crate) attempt: u32,
    pub(crate) tool_choice: ToolChoice,
    /// Wait this long first, in milliseconds.
    pub(crate) wait_ms: u64,
    /// The model the turn was handed over to, if it was.
    pub(crate) handed_to: Option<String>,
}

impl Driver {
    /// Waits if it must, asks, and records what came of it.
    pub(crate) async fn call_model(&mut self, ask: &Ask, notices: &Notices, stop: &Cancel) -> Result<(), EngineError> {
        let attempt = ask.attempt;
        if attempt > 1 {
            // A reply of nothing is asked for again after a short pause: nobody said how long, and nobody saw it fail.
            let wait_ms = if ask.wait_ms > 0 { ask.wait_ms } else { EMPTY_WAIT_MS };
            notices.push(Notice::Retrying {
                attempt,
                wait_ms,
                problem: self.problem(),
            });
            let mut stop = stop.clone();
            tokio::select! {
                () = asked(&mut stop) => return Ok(()),
                () = tokio::time::sleep(Duration::from_millis(wait_ms)) => {}
            }
        }
        let settings = self.engine.settings();
        let mut choice = self.choose_model(&settings, ask.tool_choice, ask.handed_to.as_deref())?;
        self.tell_of_hand_over(ask, &choice.model);
        let context_seq = self.session.last_seq();
        let outcome = self
            .attempt(&mut choice, &settings, ask.tool_choice, notices, stop)
            .await;
        let model = choice.model;
        let came = Came {
            model: &model,
            attempt,
            context_seq,
        };
        match outcome {
            Attempt::Replied(reply) => self.record_reply(reply, &came, notices).await,
            Attempt::Failed(error) => {
                let draft = self.failure(&error, &came, TextShown::No);
                self.append(vec![draft], Durability::Committed).await
            }
            Attempt::Stopped(Some(reply)) if !text_of(&reply.parts).is_empty() => {
                let reply = Reply {
                    stop: ReplyStop::Interrupted,
                    calls: Vec::new(),
                    error: None,
                    ..reply
                };
                self.record_reply(reply, &came, notices).await
            }
            Attempt::Stopped(_) => Ok(()),
        }
    }

    /// Says that another model is asked now, and why: the first time it is.
    fn tell_of_hand_over(&self, ask: &Ask, model: &Model) {
        let handed_to = self.session.turn().map(Turn::handed_to).unwrap_or_default();
        if ask.attempt == 1 && ask.handed_to.is_some() && handed_to.last() != ask.handed_to.as_ref() {
            self.say(format!("{}; asking {} instead", self.problem(), model.name));
        }
    }

    /// What a model is sent, as far as is known of its room.
    pub(crate) fn prompt_for(&self, model: &Model, settings: &Settings) -> context::Prompt {
        let room = context::Room::of(model, self.rooms.get(&model.name));
        context::build(&self.session, settings, &self.engine, (&self.tools(settings), room))
    }

    /// Asks, with as much of the conversation as fits. Where the server says that it does not fit after all, less is sent,
    /// while there is something that can be left out.
    async fn attempt(
        &mut self,
        choice: &mut Choice,
        settings: &Settings,
        tool_choice: ToolChoice,
        notices: &Notices,
        stop: &Cancel,
    ) -> Attempt {
        let model = &choice.model;
        let mut refusal = None;
        loop {
            let ready = choice.prompt.take();
            let prompt = ready.unwrap_or_else(|| self.prompt_for(model, settings));
            if prompt.is_too_long && (refusal.is_some() || self.stand_in(model).is_some()) {
                return Attempt::Failed(refusal.unwrap_or_else(|| too_long(model)));
            }
            if prompt.left_out > 0 {
                self.say_once(&format!(
                    "what is older no longer fits the context of {} and is left out of requests; the ledger keeps it",
                    model.name
                ));
            }
            if model.images && prompt.images_left_out > 0 {
                self.say_once("only the newest images of results go along in requests; the ledger keeps the others");
            }
            if !model.images && prompt.has_images() {
                self.say_once(&format!("{} takes no images: they are named in words", model.name));
                for image in prompt.new_result_images() {
                    self.say_once(&format!("not shown to {}: {image}", model.name));
                }
            }
            let came = self.ask(model, settings, tool_choice, &prompt, notices, stop).await;
            let Attempt::Failed(error) = came else {
                return came;
            };
            // A model that was only routed to gives way to the session's own, which may have room for all of it.
            if error.kind != ErrorKind::ContextOverflow || !prompt.can_shrink() || choice.is_routed {
                return Attempt::Failed(error);
            }
            self.learn_room(model, &prompt, &error);
            refusal = Some(error);
        }
    }

    /// Remembers how much a model takes, from the words it refused more with.
    fn learn_room(&mut self, model: &Model, prompt: &context::Prompt, error: &ProviderError) {
        let window = error.context_window();
        let hint = match (window, model.context_window) {
            (Some(window), None) => format!(" (`context_window = {window}` for this model says so at once)"),
            (Some(_) | None, _) => String::new(),
        };
        self.say_once(&format!("{}; sending less of the conversation{hint}", error.message));
        let learned = context::Learned {
            window_tokens: window,
            refused_chars: prompt.chars(),
            fixed_chars: prompt.fixed_chars(),
        };
        self.rooms.insert(model.name.clone(), learned);
    }

    /// One request.
    async fn ask(
        &mut self,
        model: &Model,
        settings: &Settings,
        tool_choice: ToolChoice,
        prompt: &context::Prompt,
        notices: &Notices,
        stop: &Cancel,
    ) -> Attempt {
        let request = Request {
            model: &model.name,
            system: &prompt.system,
            messages: &prompt.messages,
            tools: &prompt.tools,
            tool_choice,
            max_output_tokens: model.max_output_tokens,
            schema: settings.schema.as_deref(),
        };
        notices.push(Notice::Asking {
            model: model.name.clone(),
        });
        let mut stop = stop.clone();
        let sent = tokio::select! {
            biased;
            () = asked(&mut stop) => return Attempt::Stopped(None),
            sent = model.provider.send(request) => sent,
        };
        let mut stream = match sent {
            Ok(stream) => stream,
            Err(error) => return Attempt::Failed(error),
        };
        let mut deltas = Vec::new();
        loop {
            let more = tokio::select! {
                biased;
                () = asked(&mut stop) => {
                    show(&mut deltas, notices);
                    notices.push(Notice::ReplyEnded);
                    return Attempt::Stopped(Some(stream.finish()));
                }
                more = stream.next(&mut deltas) => more,
            };
            show(&mut deltas, notices);
            if !more {
                break;
            }
        }
        notices.push(Notice::ReplyEnded);
        let reply = stream.finish();
        for remark in &reply.remarks {
            self.say_once(remark);
        }
        self.tell_of_another_model(model.asked_for.as_deref(), reply.model.as_deref());
        match reply.error.clone() {
            // An error inside a stream that had shown nothing is as if the request had failed: it may be made again.
            Some(error) if text_of(&reply.parts).trim().is_empty() => Attempt::Failed(error),
            Some(_) | None => Attempt::Replied(reply),
        }
    }

    /// One line, once, when the reply says that another model gave it than was asked for (SPEC 7.4). Dates and paths that
    /// providers add to a name make no other model of it.
    fn tell_of_another_model(&self, asked: Option<&str>, said: Option<&str>) {
        let last = |name: &str| name.rsplit('/').next().unwrap_or_default().to_lowercase();
        let (Some(asked), Some(said)) = (asked, said.filter(|said| !said.is_empty())) else {
            return;
        };
        let (asked_last, said_last) = (last(asked), last(said));
        let is_same = said_last.starts_with(&asked_last) || asked_last.starts_with(&said_last);
        if !is_same && !self.told_of_model.swap(true, Ordering::Relaxed) {
            // A name with a line break in it would forge a line of ours.
            let [asked, said] = [asked, said].map(|name| {
                let name: String = name.chars().take(MODEL_NAME_CHARS_MAX).collect();
                single_line(&name).into_owned()
            });
            self.say(format!("{asked} was asked, {said} answered"));
        }
    }

    async fn record_reply(&mut self, reply: Reply, came: &Came<'_>, notices: &Notices) -> Result<(), EngineError> {
        let Some(turn) = self.session.open_turn() else {
            return Ok(());
        };
        let number = turn.number();
        let reply_id = turn.next_reply_id();
        let reply = whole_or_cut(reply);
        let text = text_of(&reply.parts);
        let says_nothing = text.trim().is_empty() && reply.calls.is_empty() && reply.stop != ReplyStop::Paused;
        let fallback = says_nothing.then(|| self.stand_in(came.model)).flatten();
        let tools = self.tools(&self.engine.settings());
        let calls: Vec<Draft> = reply
            .calls
            .into_iter()
            .enumerate()
            .map(|(n, call)| {
                let data = ToolCall {
                    id: turn.next_call_id(n),
                    call_type: "function".to_owned(),
                    function: Function {
                        name: meant(&tools, call.name),
                        arguments: call.arguments,
                    },
                    reply_id: Some(reply_id.clone()),
                    provider_id: call.provider_id,
                };
                Draft::tool_call(number, data)
            })
            .collect();
        let data = Assistant {
            reply_id,
            // Plain text stands in `content` already: only blocks that say more are kept beside it.
            parts: if is_plain(&reply.parts) {
                Vec::new()
            } else {
                reply.parts
            },
            model: Some(came.model.name.clone()),
            attempt: came.attempt,
            stop: reply.stop,
            context_seq: came.context_seq,
            reason: reply.reason,
            fallback,
        };
        let mut drafts = vec![Draft::new(number, text, Body::Assistant(data))];
        drafts.extend(calls);
        if let Some(usage) = reply.usage {
            let usage = Usage {
                model: Some(reply.model.clone().unwrap_or_else(|| came.model.name.clone())),
                ..usage
            };
            let content = format!("{} tokens in, {} out", usage.input_tokens, usage.output_tokens);
            drafts.push(Draft::new(number, content, Body::Usage(usage.clone())));
            notices.push(Notice::Usage(usage));
        }
        // In one append with the reply that broke off: a crash between the two would lose why.
        if let Some(error) = &reply.error {
            drafts.push(if error.kind.is_lost() {
                self.lost(error)
            } else {
                self.failure(error, came, TextShown::Yes)
            });
        }
        self.append_reply(drafts).await
    }

    /// The peer went away in the middle: the reply is cut, which it says itself; why is a remark (SPEC 7.3).
    fn lost(&self, error: &ProviderError) -> Draft {
        let turn = self.session.turn().map_or(0, Turn::number);
        let message = self.engine.redactor.redact(&error.message).into_owned();
        self.say(message.clone());
        Draft::new(
            turn,
            message,
            Body::Note(serde_json::json!({ "problem": error.kind.word() })),
        )
    }

    fn failure(&self, error: &ProviderError, came: &Came<'_>, shown: TextShown) -> Draft {
        let turn = self.session.turn().map_or(0, Turn::number);
        let asked_ms = error
            .retry_after
            .map(|after| u64::try_from(after.as_millis()).unwrap_or(u64::MAX));
        let fallback = self.stand_in(came.model).filter(|_| shown == TextShown::No);
        // A server that is not there seldom comes back while one waits: with another at hand it is asked twice, no more.
        let is_given_up = fallback.is_some() && error.kind == ErrorKind::Connect && came.attempt > 1;
        let data = ModelFailed {
            error: error.kind.word(),
            attempt: came.attempt,
            text_shown: shown == TextShown::Yes,
            retryable: error.kind.is_retryable() && !is_given_up && asked_ms.is_none_or(|ms| ms <= RETRY_AFTER_MAX_MS),
            // A server that asks for no pause at all, or for one that is over (its clock is slow), gets ours.
            retry_after_ms: Some(
                asked_ms
                    .filter(|ms| *ms > 0)
                    .unwrap_or_else(|| backoff_ms(came.attempt)),
            ),
            model: Some(came.model.name.clone()),
            fallback,
        };
        let mut message = self.engine.redactor.redact(&error.message).into_owned();
        if let Some(seconds) = asked_ms.filter(|ms| *ms > RETRY_AFTER_MAX_MS).map(|ms| ms / 1_000) {
            message.push_str(&format!("; it wants to be left alone for {seconds} s"));
        }
        Draft::new(turn, message, Body::ModelFailed(data))
    }
}

/// A conversation of which even the last question and round do not fit, while another model may take it.
fn too_long(model: &Model) -> ProviderError {
    let window = model.context_window.unwrap_or_default();
    ProviderError {
        kind: ErrorKind::ContextOverflow,
        message: format!("the conversation does not fit the {window} tokens of {}", model.name),
        retry_after: None,
    }
}

/// A reply as the fold takes it, whatever a provider made of it: one that ended in an error was cut, and one that was cut has
/// no calls that could run (SPEC 7.3); they are kept as evidence.
fn whole_or_cut(mut reply: Reply) -> Reply {
    let is_cut = match reply.stop {
        ReplyStop::Length | ReplyStop::Truncated | ReplyStop::Refused | ReplyStop::Interrupted => true,
        ReplyStop::End | ReplyStop::ToolCalls | ReplyStop::Paused | ReplyStop::Closing => false,
    };
    if !is_cut && reply.error.is_some() {
        reply.stop = ReplyStop::Truncated;
    }
    if is_cut || reply.error.is_some() {
        let calls = std::mem::take(&mut reply.calls).into_iter();
        reply.parts.extend(calls.map(|call| Part::PartialCall {
            name: call.name,
            arguments: call.arguments,
        }));
    }
    reply
}

/// Text alone, without thinking, provider blocks or anything cut.
fn is_plain(parts: &[Part]) -> bool {
    parts.iter().all(|part| matches!(part, Part::Text { .. }))
}

fn show(deltas: &mut Vec<Delta>, notices: &Notices) {
    for delta in deltas.drain(..) {
        notices.push(match delta {
            Delta::Text(text) => Notice::Text(text),
            Delta::Thinking(text) => Notice::Thinking(text),
            Delta::CallBegun { name } => Notice::CallBegun { name },
        });
    }
}

/// The pause after the `attempt`th failure: doubling, with up to a quarter more or less so that many clients spread out.
fn backoff_ms(attempt: u32) -> u64 {
    let doubled = BACKOFF_START_MS.saturating_mul(1 << (attempt.saturating_sub(1)).min(16));
    let base = doubled.min(BACKOFF_MAX_MS);
    let spread = base / 2;
    base - spread / 2 + u64::try_from(random() % u128::from(spread.max(1))).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 7.6: backoff doubles, is bounded and jittered.
    #[test]
    fn backoff() {
        for attempt in 1..40 {
            let ms = backoff_ms(attempt);
            assert!(
                (BACKOFF_START_MS * 3 / 4..=BACKOFF_MAX_MS * 5 / 4).contains(&ms),
                "{attempt}: {ms}"
            );
        }
    }
}
