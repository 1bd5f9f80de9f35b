//! The driver: one session, its lease, and the loop that performs steps.

use crate::append::Drive;
use crate::client::Joined;
use crate::context::Learned;
use crate::kept::ended;
use crate::model::Ask;
use crate::run::Running;
use crate::{Engine, EngineError, Finished, Notice, Notices, Outcome, new_session_id, now_ms};
use aish_core::event::{Body, Command, Draft};
use aish_core::id::{CallId, SessionId};
use aish_core::message::Part;
use aish_core::session::Session;
use aish_core::turn::{InvalidEvent, Step, StopReason, Turn};
use aish_store::{Durability, Lease};
use aish_tools::{Cancel, Progress};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long a process that is about to end waits for what cancelled calls left behind.
const SETTLE_MS: u64 = 2_000;
/// Lines that are remembered as told: a server may word each refusal anew, and then they are told again.
const TOLD_MAX: usize = 256;
/// What a turn says of itself that was stopped by whoever sits in front of it.
const INTERRUPTED_BY_USER: &str = "interrupted by the user";
/// How often a cancel gives way to what others write before it gives up.
const CANCELS_MAX: usize = 100;

/// One session being driven.
pub struct Driver {
    pub(crate) engine: Arc<Engine>,
    pub(crate) session: Session,
    pub(crate) lease: Option<Lease>,
    /// The last event folded, for the keeper that listens beside a drive.
    pub(crate) seen: Arc<AtomicU64>,
    /// Whether an append gives the lease back or has: the keeper, who may be renewing it, has not lost it then.
    pub(crate) gives_back: Arc<AtomicBool>,
    /// Events that could not be written, with their times.
    pub(crate) unsaved: Vec<(u64, Draft)>,
    /// Calls that a cancelled turn left behind and that are still being ended.
    pub(crate) leftover: Vec<Running>,
    /// Whether somebody is here who can be asked what calls ask: said once, good for one time.
    pub(crate) attended: bool,
    /// Calls cut by a crash that the person was told of.
    pub(crate) doubts_told: Vec<CallId>,
    pub(crate) notices: Notices,
    /// True once the person was told that another model answers than was asked for.
    pub(crate) told_of_model: AtomicBool,
    /// Lines that are told once.
    told: Mutex<HashSet<String>>,
    /// What models have refused as too long, by their names.
    pub(crate) rooms: HashMap<String, Learned>,
    /// The tools of a turn whose client has some of its own.
    pub(crate) joined: Mutex<Option<Joined>>,
    /// What becomes of events that the disk does not take.
    pub(crate) unwritten: Unwritten,
    /// Turns true when this process is to leave the turn as it stands, for another one to go on with.
    pub(crate) pause: Option<Cancel>,
    /// How long what a client is asked for waits, in milliseconds; `None` for ever.
    pub(crate) pending_ttl_ms: Option<u64>,
    /// What a turn says of itself that is told to stop while it is driven.
    pub(crate) stopped_as: &'static str,
}

/// What becomes of events that cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unwritten {
    /// The session goes on in memory (SPEC 2.5): somebody looks at it, and is told.
    Kept,
    /// The drive fails: nobody elsewhere may be told of what is not written.
    Refused,
}

impl Driver {
    /// A new session. Nothing is written until something is said in it.
    pub fn create(engine: Arc<Engine>) -> Self {
        Self::of(engine, Session::new(new_session_id()))
    }

    /// An existing session, folded from the ledger.
    ///
    /// # Errors
    /// It cannot be read.
    pub async fn open(engine: Arc<Engine>, id: SessionId) -> Result<Self, EngineError> {
        let events = engine.store.load(&id, 0).await?;
        Ok(Self::of(engine, Session::load(id, events)))
    }

    /// A session that is folded already.
    pub(crate) fn of(engine: Arc<Engine>, session: Session) -> Self {
        let seen = Arc::new(AtomicU64::new(session.last_seq()));
        Self {
            engine,
            session,
            lease: None,
            seen,
            gives_back: Arc::default(),
            unsaved: Vec::new(),
            leftover: Vec::new(),
            attended: false,
            doubts_told: Vec::new(),
            notices: Notices::new(),
            told_of_model: AtomicBool::new(false),
            told: Mutex::default(),
            rooms: HashMap::new(),
            joined: Mutex::default(),
            unwritten: Unwritten::Kept,
            pause: None,
            pending_ttl_ms: None,
            stopped_as: INTERRUPTED_BY_USER,
        }
    }

    /// Its fold.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The engine.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// True while events could not be written and are kept in memory (SPEC 2.5).
    pub fn is_unsaved(&self) -> bool {
        !self.unsaved.is_empty()
    }

    /// Who is told what happens from now on, a drive's own notices included.
    pub fn watch(&mut self, notices: &Notices) {
        self.notices = notices.clone();
    }

    /// Begins a turn: appends `turn_started` and the user's message.
    ///
    /// # Errors
    /// The last turn is open: answer, drive or cancel it first. Or the model cannot be asked at all; then nothing is written.
    pub async fn start(&mut self, text: &str, parts: Vec<Part>) -> Result<(), EngineError> {
        self.catch_up().await?;
        let settings = self.engine.settings();
        let model = self.engine.models.model(&settings.model).map_err(EngineError::Model)?;
        let turn = self.session.next_turn();
        let mut all = self.kept_commands(&model);
        all.extend(parts);
        let began = Draft::turn_started(turn, settings.turn_started(None));
        let drafts = vec![began, Draft::user_with(turn, text, all)];
        self.append(drafts, Durability::Committed).await
    }

    /// Says that somebody is here who can be asked: the next drive puts the questions of calls to them, once (SPEC 6.9).
    pub fn attend(&mut self) {
        self.attended = true;
    }

    /// Performs steps until the turn is over or waits for somebody. `cancel` turning true cancels the turn.
    ///
    /// # Errors
    /// The session is driven by somebody else, or cannot be written at all.
    pub async fn drive(&mut self, notices: &Notices, cancel: Cancel) -> Result<Outcome, EngineError> {
        self.notices = notices.clone();
        let (_keeper, stop) = self.take_lease(cancel).await?;
        let driven = self.drive_on(notices, stop).await;
        self.give_lease_back().await;
        driven
    }

    pub(crate) async fn drive_on(&mut self, notices: &Notices, stop: Cancel) -> Result<Outcome, EngineError> {
        self.tell_doubt(notices);
        let Some(number) = self.session.turn().map(Turn::number) else {
            return Err(EngineError::NoOpenTurn(self.session.id().clone()));
        };
        loop {
            if *stop.borrow() {
                return self.stopped(number).await;
            }
            if self.is_paused() {
                return Err(EngineError::Paused(self.session.id().clone()));
            }
            let Some(turn) = self.session.turn().filter(|turn| turn.number() == number) else {
                // Somebody else ended this turn and began another: that one is not ours to drive.
                return Ok(Outcome::Done(self.finished_turn(number)));
            };
            let step = turn.next();
            let before = self.session.last_seq();
            let result = match step {
                Step::CallModel {
                    attempt,
                    tool_choice,
                    wait_ms,
                    model,
                } => {
                    let ask = Ask {
                        attempt,
                        tool_choice,
                        wait_ms,
                        handed_to: model,
                    };
                    self.call_model_until_paused(&ask, notices, &stop).await
                }
                Step::Gate(calls) => {
                    self.await_tools(&calls, &stop).await;
                    self.gate(&calls).await
                }
                Step::RunTools(jobs) => self.run_jobs(jobs, notices, &stop).await,
                Step::AskApproval(calls) => return Ok(Outcome::Asking(self.pending_of(&calls))),
                Step::AwaitPerson(jobs) if std::mem::take(&mut self.attended) => {
                    self.put_questions(&jobs, notices, &stop).await
                }
                Step::AwaitPerson(jobs) => return Ok(Outcome::Questions(self.questions_of(&jobs))),
                Step::AwaitClient(calls) => return Ok(Outcome::AwaitingClient(self.pending_of(&calls))),
                Step::Done(reason) => match self.close(reason).await {
                    Ok(()) => return Ok(Outcome::Done(self.finished_turn(number))),
                    other => other,
                },
            };
            match result {
                Ok(()) => {}
                // The turn's beginning could not be saved, and another's took its place: there is nothing to go on with.
                Err(
                    lost @ EngineError::Invalid {
                        reason: InvalidEvent::AlreadyStarted,
                        ..
                    },
                ) => return Err(lost),
                // What this step made no longer follows: somebody cancelled, answered, steered or drove meanwhile. What is to be
                // done now is for the fold to say (SPEC 3.5b). Without news, asking it again would give the same.
                Err(EngineError::Invalid { .. }) if self.has_news_since(before).await? => {}
                Err(other) => return Err(other),
            }
        }
    }

    async fn has_news_since(&mut self, seq: u64) -> Result<bool, EngineError> {
        self.catch_up().await?;
        Ok(self.session.last_seq() > seq)
    }

    /// Somebody asked to stop: the person here, or a `cancelled` of another process.
    async fn stopped(&mut self, number: u64) -> Result<Outcome, EngineError> {
        self.cancel_turn(number, self.stopped_as).await?;
        Ok(Outcome::Done(self.finished_turn(number)))
    }

    async fn close(&mut self, reason: StopReason) -> Result<(), EngineError> {
        let drafts = self.session.turn().map(|turn| turn.closing(reason)).unwrap_or_default();
        if drafts.is_empty() {
            return Ok(());
        }
        match self.append_as(Drive::Ends, drafts, Durability::Synced).await {
            // Two that close the same turn: one is enough.
            Err(EngineError::Invalid { .. }) if self.session.open_turn().is_none() => Ok(()),
            other => other,
        }
    }

    /// Cancels the open turn: every open call is answered and the turn closed, at once. Without an open turn, says how the
    /// last one ended.
    ///
    /// # Errors
    /// The ledger refuses.
    pub async fn cancel(&mut self, reason: &str) -> Result<Finished, EngineError> {
        self.catch_up().await?;
        let number = self.session.turn().map_or(0, Turn::number);
        self.cancel_turn(number, reason).await?;
        Ok(self.finished_turn(number))
    }

    /// Cancels that turn while it is open, and never another that somebody began after it.
    pub(crate) async fn cancel_turn(&mut self, number: u64, reason: &str) -> Result<(), EngineError> {
        let mut overtaken = 0;
        loop {
            self.catch_up().await?;
            let open = self.session.open_turn().filter(|turn| turn.number() == number);
            let drafts = open.map(|turn| turn.cancelling(reason)).unwrap_or_default();
            // Somebody else may have closed it: then there is nothing left to do.
            if drafts.is_empty() {
                return Ok(());
            }
            match self.append(drafts, Durability::Synced).await {
                // A reply with more calls came in between: they are to be answered as well.
                Err(EngineError::Invalid { .. }) if overtaken < CANCELS_MAX => overtaken += 1,
                other => return other,
            }
        }
    }

    /// Empties the context, not the ledger.
    ///
    /// # Errors
    /// A turn is open, or the ledger refuses.
    pub async fn clear(&mut self) -> Result<(), EngineError> {
        self.catch_up().await?;
        if self.session.open_turn().is_some() {
            let session = self.session.id().clone();
            return Err(EngineError::Invalid {
                session,
                reason: InvalidEvent::Waiting,
            });
        }
        if self.session.last_seq() == 0 {
            return Ok(());
        }
        self.append(
            vec![Draft::new(0, "context cleared", Body::Clear)],
            Durability::Committed,
        )
        .await
    }

    /// Runs a command line of the user's own (no gate: the person typed it) through the `bash` tool's executor and records
    /// it as a `command` event; its output is kept for the next question (SPEC 8.3).
    ///
    /// # Errors
    /// The ledger refuses.
    pub async fn run_command(&mut self, line: &str, notices: &Notices, cancel: Cancel) -> Result<Command, EngineError> {
        self.notices = notices.clone();
        let settings = self.engine.settings();
        let began = now_ms();
        let ran = match self.engine.tools.now().get("bash") {
            Some(bash) => {
                let arguments = serde_json::json!({ "command": line, "timeout_s": 3600 });
                let progress = TypedCommand(notices.clone());
                match bash.inspect(&arguments, &settings.context) {
                    Ok(action) => bash.run(&action, &settings.context, &progress, cancel).await,
                    Err(message) => aish_tools::ToolOutput::error(message),
                }
            }
            None => aish_tools::ToolOutput::error("there is no bash tool here"),
        };
        let result: serde_json::Value = serde_json::from_str(&ran.output).unwrap_or_default();
        let text = |key: &str| {
            result
                .get(key)
                .and_then(serde_json::Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let mut output = text("output");
        if !text("error").is_empty() {
            output.push_str(&text("error"));
        }
        let command = Command {
            line: line.to_owned(),
            directory: settings.context.directory.to_string_lossy().into_owned(),
            status: result
                .get("exit_code")
                .and_then(serde_json::Value::as_i64)
                .and_then(|code| i32::try_from(code).ok()),
            duration_ms: now_ms().saturating_sub(began),
            output,
            proposed: None,
        };
        self.record_command(&command).await?;
        Ok(command)
    }

    /// Records a command that the user ran in a shell of their own; its output is kept for the next question (SPEC 8.3).
    ///
    /// # Errors
    /// The ledger refuses.
    pub async fn record_command(&mut self, command: &Command) -> Result<(), EngineError> {
        let end = ended(command);
        let draft = Draft::new(0, format!("{} ({end})", command.line), Body::Command(command.clone()));
        self.append(vec![draft], Durability::Committed).await
    }

    /// Waits (bounded) for what cancelled calls left behind and records it, and tries once more to write what could not be
    /// written. To be called before the process ends.
    pub async fn settle(&mut self) {
        self.settle_leftover(Duration::from_millis(SETTLE_MS)).await;
        // Whoever took the session over has written what counts: nothing more can be done from here.
        let _ = self.save_unsaved().await;
    }

    /// Tells the front end, and the person behind it, one line.
    pub(crate) fn say(&self, text: String) {
        self.notices
            .push(Notice::Status(self.engine.redactor.redact(&text).into_owned()));
    }

    /// The same, but a line that was told before is not told again.
    pub(crate) fn say_once(&self, text: &str) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() == TOLD_MAX {
            told.clear();
        }
        if told.insert(text.to_owned()) {
            self.say(text.to_owned());
        }
    }
}

/// Output of a command the person typed: it belongs to no call.
struct TypedCommand(Notices);

impl Progress for TypedCommand {
    fn output(&self, text: &str) {
        self.0.push(Notice::CommandOutput(text.to_owned()));
    }
}
