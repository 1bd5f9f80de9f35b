//! A turn whose client is somewhere else (SPEC 9): begun for it, left waiting for it, and gone on with when it answers.
//!
//! The answer and the end of the waiting are one append: of racing answers, on one server or several, exactly one is written,
//! and what the others are told is read from the ledger.

use crate::append::Unseen;
use crate::clock::random;
use crate::driver::{Driver, Unwritten};
use crate::lease::Keeper;
use crate::model::Ask;
use crate::run::with_limit;
use crate::{Engine, EngineError, Notices, Outcome, Settings, now_ms};
use aish_core::Digest;
use aish_core::event::{
    Answer, AnswerScope, AnsweredBy, Body, CallAnswered, CallSource, Draft, RequestKey, ResultEnd, Resumed, Served,
    Suspended, ToolResult, TurnStarted,
};
use aish_core::id::{CallId, ContinuationId, SessionId};
use aish_core::message::ToolSpec;
use aish_core::turn::{Call, InvalidEvent, Turn};
use aish_store::{Durability, StoreError};
use aish_tools::Cancel;
use aish_tools::capture::Capture;
use std::sync::{Arc, RwLock};
use std::time::Duration;

/// Characters of a call's id that nobody knows, as the ledger quotes it.
const NAMED_CHARS_MAX: usize = 80;
/// What a turn that nobody answered in time says of itself.
pub(crate) const EXPIRED: &str = "nobody answered in time";

/// How often a turn gives way to others that begin and end before it.
const OVERTAKEN_MAX: usize = 16;

/// How long a turn waits for whoever holds the session: they have written what it goes on from, and are about to give it back. One
/// who keeps it drives this turn.
const LEASE_PATIENCE_MS: u64 = 5_000;
/// How often it is looked meanwhile.
const LEASE_LOOK_EVERY_MS: u64 = 20;

/// What a client begins a turn with.
#[derive(Clone, Debug, Default)]
pub(crate) struct Opening {
    pub(crate) text: String,
    /// Its instructions, where it gives any: they take the place of those it gave before.
    pub(crate) system: Option<String>,
    /// Its tools; `None` for those of the turn before.
    pub(crate) tools: Option<Vec<ToolSpec>>,
    pub(crate) request: Option<RequestKey>,
}

/// An answer to a suspension.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The call that it answers, as the client names it.
    pub call_id: Option<String>,
    /// What it answers.
    pub reply: Reply,
    /// The key under which it may be sent again.
    pub request: Option<RequestKey>,
}

/// What a client answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// What its tool gave.
    Result(String),
    /// Whether a call may run.
    Verdict {
        /// Of what was shown, whole or its first 12 digits at least.
        digest: String,
        /// Yes or no.
        answer: Answer,
        /// The reason for a no, told to the model.
        reason: Option<String>,
    },
}

impl Claim {
    /// What makes two answers the same one.
    pub(crate) fn digest(&self) -> Digest {
        Digest::of(&match &self.reply {
            Reply::Result(content) => format!("result\n{content}"),
            Reply::Verdict { answer, reason, .. } => {
                format!("{answer:?}\n{}", reason.as_deref().unwrap_or_default())
            }
        })
    }
}

/// Why a client is refused. What the store or the engine could not do is one of them.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// No such session or continuation.
    #[error("there is no session and no continuation {0}")]
    Unknown(String),
    /// The session waits for nothing.
    #[error("session {0} waits for no answer")]
    NotWaiting(SessionId),
    /// The suspension was answered, and not by this.
    #[error("{0} was answered otherwise already")]
    AnsweredOtherwise(ContinuationId),
    /// The turn ended before an answer came.
    #[error("the turn that waited under {0} has ended")]
    Ended(ContinuationId),
    /// It waited long enough.
    #[error("{0} has expired: nobody answered in time")]
    Expired(ContinuationId),
    /// The call named is not the one that is waited for.
    #[error("the turn waits for call {awaited}, not for {given}")]
    OtherCall {
        /// What was named.
        given: String,
        /// What is waited for.
        awaited: CallId,
    },
    /// The answer names no call, and has to.
    #[error("the answer has to name call {0}")]
    CallUnnamed(CallId),
    /// A result came where a yes or no is waited for, or the other way round.
    #[error("call {call} waits for {awaited}")]
    OtherAnswer {
        /// The call.
        call: CallId,
        /// What it waits for.
        awaited: &'static str,
    },
    /// What is quoted is not what was shown.
    #[error("the digest is not that of call {0} as it was shown")]
    Digest(CallId),
    /// What the call asks is no yes-or-no question.
    #[error("call {0} asks something that a yes does not answer; it can be declined here, or answered at a terminal")]
    Asks(CallId),
    /// A message to a conversation that waits.
    #[error("session {0} waits for an answer: give it, or cancel the turn")]
    Waiting(SessionId),
    /// A message to a conversation whose turn runs.
    #[error("a turn of session {0} is running: wait for it, or cancel it")]
    Running(SessionId),
    /// The same key was used for something else.
    #[error("the Idempotency-Key was used for another request")]
    KeyReused,
    /// As many turns run as may.
    #[error("{0} turns are running, as many as may; try again soon")]
    Busy(usize),
    /// This process is about to end.
    #[error("this server is stopping; the turn is in the ledger and goes on once a server runs")]
    Draining,
    /// The turn could not go on: what happened stands in the ledger.
    #[error("the turn could not go on: {0}")]
    Stopped(String),
    /// A declared tool has a name that means another one.
    #[error("tool {name}: {problem}")]
    ToolTaken {
        /// Its name, as declared.
        name: String,
        /// What has that name.
        problem: &'static str,
    },
    /// A declared tool cannot be taken.
    #[error("tool {name}: {problem}")]
    Tool {
        /// Its name, as declared.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// No such model, or it cannot be asked.
    #[error("{0}")]
    Model(String),
    /// The engine could not.
    #[error(transparent)]
    Engine(EngineError),
}

impl ServeError {
    /// Whether the same request, sent twice at once, may be what is in its own way.
    pub(crate) fn may_be_of_a_twin(&self) -> bool {
        matches!(
            self,
            Self::Running(_) | Self::Waiting(_) | Self::Busy(_) | Self::KeyReused
        )
    }
}

impl From<EngineError> for ServeError {
    fn from(error: EngineError) -> Self {
        if let EngineError::Model(problem) = error {
            Self::Model(problem)
        } else {
            Self::Engine(error)
        }
    }
}

impl From<StoreError> for ServeError {
    fn from(error: StoreError) -> Self {
        Self::Engine(EngineError::Store(error))
    }
}

impl Engine {
    /// This engine for one turn of a client's: what the turn began with holds, whatever is configured by now, and it shares the
    /// ledger, the models and the tools.
    pub(crate) fn for_client(&self, change: impl FnOnce(&mut Settings)) -> Arc<Self> {
        let mut settings = self.settings();
        change(&mut settings);
        Arc::new(Self {
            store: Arc::clone(&self.store),
            models: Arc::clone(&self.models),
            tools: Arc::clone(&self.tools),
            // What servers tell beside their calls is told to a person, and nobody is here.
            asides: Arc::default(),
            owner: self.owner.clone(),
            redactor: self.redactor.clone(),
            settings: RwLock::new(settings),
        })
    }
}

impl Driver {
    /// From here on nothing is said that is not written, and `pause` turning true leaves the turn to others.
    pub(crate) fn serve(&mut self, pause: Cancel) {
        self.unwritten = Unwritten::Refused;
        self.pause = Some(pause);
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.pause.as_ref().is_some_and(|pause| *pause.borrow())
    }

    /// As a request to a model takes long and leaves nothing behind, it is given up for whoever goes on.
    pub(crate) async fn call_model_until_paused(
        &mut self,
        ask: &Ask,
        notices: &Notices,
        stop: &Cancel,
    ) -> Result<(), EngineError> {
        let Some(mut pause) = self.pause.clone() else {
            return self.call_model(ask, notices, stop).await;
        };
        tokio::select! {
            biased;
            () = aish_tools::cancelled(&mut pause) => Ok(()),
            asked = self.call_model(ask, notices, stop) => asked,
        }
    }

    /// Begins a turn for a client.
    pub(crate) async fn start_for(&mut self, opening: Opening) -> Result<(), EngineError> {
        for _ in 1..OVERTAKEN_MAX {
            self.catch_up().await?;
            match self.start_next_for(opening.clone()).await {
                // Another turn began and ended meanwhile: this one comes after it.
                Err(EngineError::Invalid { .. }) if self.session.open_turn().is_none() => {}
                other => return other,
            }
        }
        self.start_next_for(opening).await
    }

    async fn start_next_for(&mut self, opening: Opening) -> Result<(), EngineError> {
        let settings = self.engine.settings();
        self.engine.models.model(&settings.model).map_err(EngineError::Model)?;
        let number = self.session.next_turn();
        let before = self.session.turn().and_then(Turn::served);
        let inherited = || before.map(|served| served.tools.clone()).unwrap_or_default();
        let data = TurnStarted {
            limits: settings.limits,
            mode: settings.mode,
            model: settings.model,
            directory: Some(settings.context.directory.to_string_lossy().into_owned()),
            served: Some(Served {
                tools: opening.tools.unwrap_or_else(inherited),
                request: opening.request,
            }),
        };
        let mut drafts = vec![Draft::turn_started(number, data), Draft::user(number, opening.text)];
        let told = self
            .session
            .events()
            .iter()
            .rev()
            .find_map(|event| matches!(event.body, Body::System(_)).then_some(event.content.as_str()));
        if let Some(system) = opening.system.filter(|system| told != Some(system.as_str())) {
            let body = Body::System(aish_core::event::Parts::default());
            drafts.push(Draft::new(number, system, body));
        }
        // A power cut may take it: nobody has been told anything yet, and the client asks again.
        self.append(drafts, Durability::Committed).await
    }

    /// Drives until the turn is over, or waits and says so in the ledger. What it waits for expires `ttl_ms` later.
    pub(crate) async fn drive_for(
        &mut self,
        notices: &Notices,
        cancel: Cancel,
        ttl_ms: Option<u64>,
    ) -> Result<Outcome, EngineError> {
        self.watch(notices);
        let number = self.session.turn().map(Turn::number);
        let (_keeper, stop) = self.take_lease_soon(cancel).await?;
        let driven = loop {
            if self.session.turn().map(Turn::number) != number {
                // Another turn began meanwhile, with a model and limits of its own: that one is not this drive's.
                break Ok(Outcome::Done(self.finished_turn(number.unwrap_or_default())));
            }
            let outcome = self.drive_on(notices, stop.clone()).await;
            match outcome {
                Ok(Outcome::Asking(_) | Outcome::Questions(_) | Outcome::AwaitingClient(_)) => {
                    match self.leave_waiting(ttl_ms).await {
                        Ok(Left::Waiting) => break outcome,
                        Ok(Left::Answered) => {}
                        Err(error) => break Err(error),
                    }
                }
                Ok(Outcome::Done(_)) | Err(_) => break outcome,
            }
        };
        self.give_lease_back().await;
        driven
    }

    /// Takes the lease; from somebody who has just come to the end of what was before, as soon as it is given back.
    async fn take_lease_soon(&mut self, cancel: Cancel) -> Result<(Keeper, Cancel), EngineError> {
        let deadline = tokio::time::Instant::now() + Duration::from_millis(LEASE_PATIENCE_MS);
        loop {
            match self.take_lease(cancel.clone()).await {
                Err(EngineError::Store(StoreError::Leased { .. }))
                    if tokio::time::Instant::now() < deadline && !*cancel.borrow() && !self.is_paused() =>
                {
                    tokio::time::sleep(Duration::from_millis(LEASE_LOOK_EVERY_MS)).await;
                }
                taken => return taken,
            }
        }
    }

    /// Writes down that the turn waits, unless that is written already.
    async fn leave_waiting(&mut self, ttl_ms: Option<u64>) -> Result<Left, EngineError> {
        loop {
            let Some(turn) = self.session.open_turn().filter(|turn| turn.suspended().is_none()) else {
                return Ok(Left::Waiting);
            };
            let number = turn.number();
            let now = now_ms();
            let expires = ttl_ms.map(|ttl_ms| now.saturating_add(ttl_ms));
            let id = continuation_id(now, self.session.last_seq());
            let Some(suspended) = self.suspension_now(id, expires) else {
                return Ok(Left::Answered);
            };
            let content = match &suspended.call_id {
                Some(call) => format!("waits for {call}"),
                None => "waits".to_owned(),
            };
            let draft = Draft::new(number, content, Body::Suspended(suspended));
            match self.append(vec![draft], Durability::Synced).await {
                Ok(()) => return Ok(Left::Waiting),
                // Somebody answered or cancelled meanwhile, or wrote down first that it waits.
                Err(EngineError::Invalid { .. }) => {}
                Err(other) => return Err(other),
            }
        }
    }

    /// Takes an answer: it ends the suspension and is the call's, in one append. Needs no lease: any process may take one.
    ///
    /// # Errors
    /// It is not the answer that is waited for, or somebody else was faster: then [`ServeError::AnsweredOtherwise`], and what
    /// was answered is for the caller to compare.
    pub(crate) async fn claim(
        &mut self,
        id: &ContinuationId,
        claim: &Claim,
        names: CallNames,
    ) -> Result<(), ServeError> {
        self.catch_up().await?;
        let now = now_ms();
        let Some((turn, suspended)) = self
            .session
            .open_turn()
            .and_then(|turn| Some((turn, turn.suspended()?.clone())))
            .filter(|(_, suspended)| suspended.continuation == *id)
        else {
            return Err(ServeError::AnsweredOtherwise(id.clone()));
        };
        if suspended.expires.is_some_and(|expires| expires <= now) {
            self.expire(&suspended).await?;
            return Err(ServeError::Expired(id.clone()));
        }
        let number = turn.number();
        let awaited = self.awaited(turn, &suspended, claim, names)?;
        let told = told_of(claim, &awaited.id);
        let resumed = Resumed {
            continuation: id.clone(),
            answer: Some(claim.digest()),
            request: claim.request.clone(),
        };
        let answer = match &claim.reply {
            Reply::Result(content) => self.result_of(turn, awaited, content)?,
            Reply::Verdict { digest, answer, reason } => {
                verdict_of(awaited, (digest, *answer, reason.as_ref()), number)?
            }
        };
        let drafts = vec![Draft::new(number, told, Body::Resumed(resumed)), answer];
        match self.append(drafts, Durability::Synced).await {
            Ok(()) => Ok(()),
            Err(EngineError::Invalid { .. } | EngineError::Store(StoreError::Claimed(_))) => {
                Err(ServeError::AnsweredOtherwise(id.clone()))
            }
            Err(other) => Err(other.into()),
        }
    }

    /// The call that the suspension waits for, if the answer may be meant for it.
    fn awaited<'t>(
        &self,
        turn: &'t Turn,
        suspended: &Suspended,
        claim: &Claim,
        names: CallNames,
    ) -> Result<&'t Call, ServeError> {
        let not_waiting = || ServeError::NotWaiting(self.session.id().clone());
        let awaited = suspended
            .call_id
            .as_ref()
            .and_then(|id| turn.call(id))
            .ok_or_else(not_waiting)?;
        if claim.call_id.is_none() && names == CallNames::Strict {
            return Err(ServeError::CallUnnamed(awaited.id.clone()));
        }
        let Some(given) = claim.call_id.as_deref().filter(|given| *given != awaited.id.as_str()) else {
            return Ok(awaited);
        };
        let is_another = self.session.call_event(&CallId::new(given)).is_some();
        if is_another || names == CallNames::Strict {
            return Err(ServeError::OtherCall {
                given: given.to_owned(),
                awaited: awaited.id.clone(),
            });
        }
        self.say(format!("a result came for an unknown call; taken for {}", awaited.id));
        Ok(awaited)
    }

    /// The result of a call that the client executed.
    fn result_of(&self, turn: &Turn, call: &Call, content: &str) -> Result<Draft, ServeError> {
        if call.source() != CallSource::Client || call.awaits_answer() || call.awaits_person() {
            return Err(ServeError::OtherAnswer {
                call: call.id.clone(),
                awaited: "a yes or a no (POST …/approval)",
            });
        }
        let mut capture = Capture::new(self.engine.settings().context.output_bytes_max);
        capture.push(content);
        let text = capture.finish();
        let summary = format!("{} characters from the client", content.chars().count());
        let data = ToolResult {
            tool_call_id: call.id.clone(),
            name: call.name.clone(),
            output: match turn.limit_note(&call.id) {
                Some(limit) => with_limit(&text, limit),
                None => text,
            },
            success: true,
            parts: Vec::new(),
            end: ResultEnd::Completed,
        };
        Ok(Draft::tool_result(turn.number(), summary, data))
    }

    /// Ends a turn that waited for long enough.
    pub(crate) async fn expire(&mut self, suspended: &Suspended) -> Result<(), EngineError> {
        loop {
            let open = self.session.open_turn();
            let Some(turn) = open.filter(|turn| turn.suspended() == Some(suspended)) else {
                return Ok(());
            };
            let drafts = turn.cancelling(EXPIRED);
            // An answer that came in between counts: it was accepted.
            match self.append_if_nothing_new(drafts, Durability::Synced).await? {
                Unseen::Nothing => return Ok(()),
                Unseen::News => {}
            }
        }
    }
}

/// What the ledger says of an answer: also how it named its call, where that is not its name (SPEC 9.3).
fn told_of(claim: &Claim, awaited: &CallId) -> String {
    match claim.call_id.as_deref() {
        Some(named) if named == awaited.as_str() => "answered".to_owned(),
        Some(named) => {
            let named: String = named.chars().take(NAMED_CHARS_MAX).collect();
            format!("answered for the unknown call {named:?}; taken for {awaited}")
        }
        None => format!("answered without a call_id; taken for {awaited}"),
    }
}

/// What becomes of the id of a call that no call of the session has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallNames {
    /// It is taken for the one that is waited for: some clients make up ids of their own (SPEC 9.3).
    Lenient,
    /// It is refused.
    Strict,
}

/// How a drive that came to a wait goes on.
enum Left {
    /// It is in the ledger that the turn waits.
    Waiting,
    /// The answer came before that: drive on.
    Answered,
}

/// The yes or no to a call.
fn verdict_of(
    call: &Call,
    (digest, answer, reason): (&str, Answer, Option<&String>),
    turn: u64,
) -> Result<Draft, ServeError> {
    let asks = call.awaits_person();
    if !call.awaits_answer() && !asks {
        return Err(ServeError::OtherAnswer {
            call: call.id.clone(),
            awaited: "the result of its tool (POST …/tool_result)",
        });
    }
    let shown = call.gated.as_ref().and_then(|gated| gated.digest.clone());
    let Some(shown) = shown.filter(|shown| shown.matches(digest)) else {
        return Err(ServeError::Digest(call.id.clone()));
    };
    if asks && answer == Answer::Approve {
        return Err(ServeError::Asks(call.id.clone()));
    }
    let word = match answer {
        Answer::Approve => "approved",
        Answer::Deny => "declined",
    };
    let data = CallAnswered {
        call_id: call.id.clone(),
        answer,
        digest: shown,
        by: AnsweredBy::Client,
        scope: AnswerScope::Once,
        grant: None,
        reason: reason.cloned(),
    };
    Ok(Draft::new(
        turn,
        format!("{} {word}", call.id),
        Body::CallAnswered(data),
    ))
}

/// `br-<time>-<seq>`: the milliseconds, and the event it follows with 64 random bits behind it (SPEC 9.2).
fn continuation_id(now: u64, seq: u64) -> ContinuationId {
    ContinuationId::new(format!("br-{now}-{seq:06}{:016x}", random() >> 64))
}

/// True for what an append could not do because somebody else was there before.
pub(crate) fn is_overtaken(error: &EngineError) -> bool {
    matches!(
        error,
        EngineError::Invalid {
            reason: InvalidEvent::AlreadyStarted | InvalidEvent::TurnOpen,
            ..
        }
    )
}
