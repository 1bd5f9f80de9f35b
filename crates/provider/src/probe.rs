//! Finding out what a model behind an endpoint can do, by asking it: a short battery of questions through the very code that
//! asks in earnest ([`HttpProvider`]).
//!
//! Each [`Step`] is a request or two and comes to a [`Finding`]. What an endpoint refuses in words that are known, the provider
//! learns by itself and goes on; the battery keeps what it learned, and tries what it would not. The outcome is a
//! [`ModelProfile`] that the endpoint takes. Replies, time and number of requests are bounded.

use crate::client::Timeouts;
use crate::discover::Endpoint;
use crate::profile::{Alternation, CallsPerReply, ModelProfile, Support, SystemRole, ToolRole, WireCallIds};
use crate::{Delta, ErrorKind, HttpProvider, Provider as _, ProviderError, Reply, Request};
use aish_core::event::ReplyStop;
use aish_core::message::{Part, ToolChoice, text_of};
use std::time::{Duration, Instant};

mod context;
mod finding;
mod questions;

pub use finding::{Finding, Outcome, Step};

use questions::Question;

/// How long one request may take: a small machine reads and writes slowly.
pub const STEP_TIMEOUT_S: u64 = 90;
/// How long all of it may take; what is left then is not asked.
pub const TOTAL_TIMEOUT_S: u64 = 600;
/// The pause before a question is put again, unless the server asks for another.
const RETRY_PAUSE_MS: u64 = 500;
/// What a server asks for is honoured up to this.
const RETRY_PAUSE_MS_MAX: u64 = 20_000;
/// Tokens a reply may have: enough for a model that thinks first.
const REPLY_TOKENS_MAX: u64 = 300;
/// Calls of one reply beyond which a model is taken to go on and on; three were asked for.
const CALLS_SENSIBLE_MAX: usize = 6;

/// What the battery came to.
#[derive(Clone, Debug)]
pub struct Probed {
    /// How to talk to the model.
    pub profile: ModelProfile,
    /// Every answer, in order.
    pub findings: Vec<Finding>,
    /// Why there are no more answers, where the model did not even answer the first question.
    pub failure: Option<ProviderError>,
}

/// Asks a model everything. `tell` hears of each finding as it is made.
pub async fn run(
    client: &reqwest::Client,
    profile: ModelProfile,
    key: Option<&str>,
    tell: &mut (dyn FnMut(&Finding) + Send),
) -> Probed {
    let mut battery = Battery {
        client,
        key,
        provider: HttpProvider::new(client.clone(), profile, key.map(str::to_owned), Timeouts::default()),
        begun: Instant::now(),
        findings: Vec::new(),
        tell,
    };
    let failure = battery.all().await.err();
    Probed {
        profile: battery.profile(),
        findings: battery.findings,
        failure,
    }
}

/// A reply and how it came.
struct Answer {
    reply: Reply,
    /// Pieces the text came in.
    texts: usize,
    thinks: bool,
}

struct Battery<'a> {
    client: &'a reqwest::Client,
    key: Option<&'a str>,
    provider: HttpProvider,
    begun: Instant,
    findings: Vec<Finding>,
    tell: &'a mut (dyn FnMut(&Finding) + Send),
}

impl Battery<'_> {
    async fn all(&mut self) -> Result<(), ProviderError> {
        self.answers().await?;
        self.system_role().await;
        if self.tools().await == Outcome::Yes {
            self.parallel_calls().await;
        }
        if self.profile().tools.is_yes() {
            self.results().await;
            self.free_turns().await;
        }
        self.context().await;
        self.images().await;
        self.structured_output().await;
        Ok(())
    }

    /// The profile as far as it is known.
    fn profile(&self) -> ModelProfile {
        self.provider.learned().as_ref().clone()
    }

    /// Asks with another profile from now on.
    fn change(&mut self, change: impl FnOnce(&mut ModelProfile)) {
        let mut profile = self.profile();
        change(&mut profile);
        self.provider = self.provider_of(profile);
    }

    fn provider_of(&self, profile: ModelProfile) -> HttpProvider {
        let key = self.key.map(str::to_owned);
        HttpProvider::new(self.client.clone(), profile, key, Timeouts::default())
    }

    fn find(&mut self, step: Step, outcome: Outcome, note: impl Into<String>) -> Outcome {
        let note = note.into();
        let finding = Finding { step, outcome, note };
        (self.tell)(&finding);
        self.findings.push(finding);
        outcome
    }

    /// What a refusal of the request itself says about a step; anything else (a busy server, a timeout) says nothing.
    fn refused(&mut self, step: Step, error: &ProviderError) -> Outcome {
        let outcome = if is_refusal(error) {
            Outcome::No
        } else {
            Outcome::Unclear
        };
        self.find(step, outcome, error.message.clone())
    }

    async fn ask(&self, question: &Question) -> Result<Answer, ProviderError> {
        ask(&self.provider, question, self.begun).await
    }

    async fn answers(&mut self) -> Result<(), ProviderError> {
        let answer = match self.ask(&questions::count()).await {
            Ok(answer) => answer,
            Err(error) => {
                self.find(Step::Answers, Outcome::No, error.message.clone());
                return Err(error);
            }
        };
        let text = text_of(&answer.reply.parts);
        let (outcome, note) = match (text.trim().is_empty(), answer.thinks) {
            (false, _) => (Outcome::Yes, ""),
            (true, true) => (Outcome::Yes, "it only thought, and ran into the limit"),
            (true, false) => (Outcome::Unclear, "its reply was empty"),
        };
        self.find(Step::Answers, outcome, note);
        match answer.texts {
            _ if !self.profile().streaming.is_yes() => self.find(Step::Streams, Outcome::No, "the server refuses to"),
            0 => self.find(Step::Streams, Outcome::Unclear, "there was no text"),
            // A fast server's pieces arrive together, so one piece proves nothing.
            1 => self.find(Step::Streams, Outcome::Unclear, "the text came in one piece"),
            pieces => self.find(Step::Streams, Outcome::Yes, format!("{pieces} pieces")),
        };
        let thinks = if answer.thinks { Outcome::Yes } else { Outcome::No };
        self.find(Step::Thinks, thinks, if answer.thinks { "" } else { "none was seen" });
        Ok(())
    }

    async fn system_role(&mut self) {
        let step = Step::SystemRole;
        let asked = self.ask(&questions::instructed()).await;
        let in_the_user_s_name = || "instructions go into the first message";
        match asked {
            Ok(_) if self.profile().system_role == SystemRole::User => {
                self.find(step, Outcome::No, in_the_user_s_name());
            }
            Ok(_) => {
                self.find(step, Outcome::Yes, "");
            }
            Err(error) if is_refusal(&error) => {
                let profile = ModelProfile {
                    system_role: SystemRole::User,
                    ..self.profile()
                };
                let other = self.provider_of(profile);
                if ask(&other, &questions::instructed(), self.begun).await.is_ok() {
                    self.provider = other;
                    self.find(step, Outcome::No, in_the_user_s_name());
                } else {
                    self.refused(step, &error);
                }
            }
            Err(error) => {
                self.refused(step, &error);
            }
        }
    }

    async fn tools(&mut self) -> Outcome {
        match self.ask(&questions::one_call()).await {
            Ok(_) if !self.profile().tools.is_yes() => self.find(Step::Tools, Outcome::No, "the server refuses them"),
            Ok(answer) => match answer.reply.calls.first() {
                Some(call) if call.name == questions::TOOL => self.find(
                    Step::Tools,
                    Outcome::Yes,
                    call.arguments.chars().take(40).collect::<String>(),
                ),
                Some(call) => self.find(Step::Tools, Outcome::Unclear, format!("it called {}", call.name)),
                None => self.find(Step::Tools, Outcome::Unclear, "it was offered one and did not call it"),
            },
            Err(error) => {
                let outcome = self.refused(Step::Tools, &error);
                if outcome == Outcome::No {
                    self.change(|profile| profile.tools = Support::No);
                }
                outcome
            }
        }
    }

    async fn parallel_calls(&mut self) {
        let step = Step::ParallelCalls;
        let answer = match self.ask(&questions::three_calls()).await {
            Ok(answer) => answer,
            Err(error) => {
                self.refused(step, &error);
                return;
            }
        };
        let begun = |part: &&Part| matches!(part, Part::PartialCall { .. });
        let count = answer.reply.calls.len() + answer.reply.parts.iter().filter(begun).count();
        let is_endless = count > CALLS_SENSIBLE_MAX || count > 1 && answer.reply.stop == ReplyStop::Length;
        if is_endless {
            self.change(|profile| profile.calls = CallsPerReply::One);
            self.find(
                step,
                Outcome::No,
                format!("it goes on and on ({count} calls): held to one"),
            );
        } else {
            match count {
                0 => self.find(step, Outcome::Unclear, "it made none"),
                1 => self.find(step, Outcome::No, "it makes one at a time"),
                count => self.find(step, Outcome::Yes, format!("{count} calls")),
            };
        }
    }

    /// Whether the results of calls are taken, and if not as they are, in which other way.
    async fn results(&mut self) {
        let question = questions::result();
        let mut outcome = self.ask(&question).await.map(|_| ());
        let ways: [fn(&mut ModelProfile); 3] = [
            |profile| profile.wire_call_ids = WireCallIds::NineCharacters,
            |profile| profile.alternation = Alternation::Strict,
            |profile| profile.tool_role = ToolRole::Text,
        ];
        // The error that counts is the first: the others are about ways the endpoint was never asked to know.
        for way in ways {
            if !outcome.as_ref().is_err_and(is_refusal) {
                break;
            }
            let mut profile = self.profile();
            way(&mut profile);
            let other = self.provider_of(profile);
            if ask(&other, &question, self.begun).await.is_ok() {
                self.provider = other;
                outcome = Ok(());
            }
        }
        match outcome {
            Ok(()) => {
                let profile = self.profile();
                match profile.tool_role {
                    ToolRole::Native => self.find(Step::Results, Outcome::Yes, ""),
                    ToolRole::Text => self.find(Step::Results, Outcome::No, "they are told as text"),
                };
                match (profile.tool_role, profile.wire_call_ids) {
                    (ToolRole::Text, _) => {}
                    (ToolRole::Native, WireCallIds::Own) => {
                        self.find(Step::CallIds, Outcome::Yes, "");
                    }
                    (ToolRole::Native, WireCallIds::NineCharacters) => {
                        self.find(Step::CallIds, Outcome::No, "nine letters and digits are sent");
                    }
                }
            }
            Err(error) => {
                self.refused(Step::Results, &error);
            }
        }
    }

    async fn free_turns(&mut self) {
        let step = Step::FreeTurns;
        let question = questions::result_then_user();
        let strict = "an assistant line is put in between";
        match self.ask(&question).await {
            Ok(_) if self.profile().alternation == Alternation::Strict => {
                self.find(step, Outcome::No, strict);
            }
            Ok(_) => {
                self.find(step, Outcome::Yes, "");
            }
            Err(error) if is_refusal(&error) => {
                let profile = ModelProfile {
                    alternation: Alternation::Strict,
                    ..self.profile()
                };
                let other = self.provider_of(profile);
                if ask(&other, &question, self.begun).await.is_ok() {
                    self.provider = other;
                    self.find(step, Outcome::No, strict);
                } else {
                    self.refused(step, &error);
                }
            }
            Err(error) => {
                self.refused(step, &error);
            }
        }
    }

    async fn context(&mut self) {
        let profile = self.profile();
        let endpoint = Endpoint {
            format: profile.format,
            base_url: &profile.base_url,
            key: self.key,
        };
        let told = context::window(self.client, endpoint, &profile.model).await;
        match told.or(profile.context_window) {
            Some(tokens) => {
                self.change(|profile| profile.context_window = Some(tokens));
                self.find(Step::Context, Outcome::Yes, format!("{tokens} tokens"));
            }
            None => {
                self.find(
                    Step::Context,
                    Outcome::Unclear,
                    "the server does not say; set context_window",
                );
            }
        }
    }

    async fn images(&mut self) {
        let step = Step::Images;
        if !self.profile().images.is_yes() {
            self.find(step, Outcome::No, "configured so");
            return;
        }
        match self.ask(&questions::image()).await {
            Ok(_) if !self.profile().images.is_yes() => {
                self.find(step, Outcome::No, "the server refuses them");
            }
            // Other remarks came with earlier questions: the server could not read the image, and was told of it in words.
            Ok(answer) if !answer.reply.remarks.is_empty() => {
                self.change(|profile| profile.images = Support::No);
                self.find(step, Outcome::No, "the server refuses one");
            }
            Ok(_) => {
                self.find(step, Outcome::Yes, "one was taken");
            }
            Err(error) => {
                if self.refused(step, &error) == Outcome::No {
                    self.change(|profile| profile.images = Support::No);
                }
            }
        }
    }

    async fn structured_output(&mut self) {
        let step = Step::StructuredOutput;
        match self.ask(&questions::structured()).await {
            Ok(_) if !self.profile().structured_output.is_yes() => {
                self.find(step, Outcome::No, "the schema is told in words");
            }
            Ok(answer) if questions::fits(&text_of(&answer.reply.parts)) => {
                self.find(step, Outcome::Yes, "");
            }
            // What was cut, or never came, says nothing of the schema.
            Ok(answer) if answer.reply.stop == ReplyStop::Length => {
                self.find(step, Outcome::Unclear, "the reply was too long");
            }
            Ok(_) => {
                self.change(|profile| profile.structured_output = Support::No);
                self.find(step, Outcome::No, "the reply did not keep to the schema");
            }
            Err(error) => {
                if self.refused(step, &error) == Outcome::No {
                    self.change(|profile| profile.structured_output = Support::No);
                }
            }
        }
    }
}

/// Whether the request itself was refused, as against a server that is away, busy or not ours to ask.
fn is_refusal(error: &ProviderError) -> bool {
    match error.kind {
        ErrorKind::Status(status) => matches!(status, 400 | 404 | 422 | 500 | 501),
        ErrorKind::Connect
        | ErrorKind::Broken
        | ErrorKind::Timeout
        | ErrorKind::ContextOverflow
        | ErrorKind::Auth
        | ErrorKind::Protocol
        | ErrorKind::TooLarge
        | ErrorKind::Stream => false,
    }
}

/// Asks, and once more after a failure that says nothing of the request: small servers close connections that were to be kept.
async fn ask(provider: &HttpProvider, question: &Question, begun: Instant) -> Result<Answer, ProviderError> {
    match ask_once(provider, question, begun).await {
        Err(error) if error.kind.is_retryable() && !is_refusal(&error) && error.kind != ErrorKind::Timeout => {
            let asked_to = error.retry_after.unwrap_or(Duration::from_millis(RETRY_PAUSE_MS));
            tokio::time::sleep(asked_to.min(Duration::from_millis(RETRY_PAUSE_MS_MAX))).await;
            ask_once(provider, question, begun).await
        }
        answered => answered,
    }
}

async fn ask_once(provider: &HttpProvider, question: &Question, begun: Instant) -> Result<Answer, ProviderError> {
    let left = Duration::from_secs(TOTAL_TIMEOUT_S).saturating_sub(begun.elapsed());
    let limit = left.min(Duration::from_secs(STEP_TIMEOUT_S));
    let request = Request {
        model: questions::MODEL,
        system: question.system,
        messages: &question.messages,
        tools: &question.tools,
        tool_choice: ToolChoice::Auto,
        max_output_tokens: Some(REPLY_TOKENS_MAX),
        schema: question.schema.as_ref(),
    };
    let asked = async {
        let mut stream = provider.send(request).await?;
        let (mut texts, mut thinks, mut deltas) = (0, false, Vec::new());
        loop {
            let more = stream.next(&mut deltas).await;
            for delta in deltas.drain(..) {
                match delta {
                    Delta::Text(_) => texts += 1,
                    Delta::Thinking(_) => thinks = true,
                    Delta::CallBegun { .. } => {}
                }
            }
            if !more {
                break;
            }
        }
        let mut reply = stream.finish();
        match reply.error.take() {
            Some(error) => Err(error),
            None => Ok(Answer { reply, texts, thinks }),
        }
    };
    match tokio::time::timeout(limit, asked).await {
        Ok(answer) => answer,
        Err(_) => Err(ProviderError {
            kind: ErrorKind::Timeout,
            message: format!("no answer within {} s", limit.as_secs()),
            retry_after: None,
        }),
    }
}

#[cfg(test)]
mod tests;
