//! Calls of clients: a few at a time, each in a lane, and those that wait for somebody's yes.
//!
//! A call that must be asked about leaves its lane waiting under a ticket. What was shown is what runs: the answer must come with
//! the very same call, and quotes the digest of its action (SPEC 3.3).

use super::lane::Lane;
use super::offer;
use aish_core::event::{Answer, AnswerScope, AnsweredBy};
use aish_core::policy::Rule;
use aish_core::projection::cut_result;
use aish_core::sanitize;
use aish_engine::{AnswerRequest, Engine, EngineError, Outcome, Pending, new_session_id};
use aish_mcp::serve::{Backend, Call, CallResult, Consent, Ended, Question, Tool};
use aish_tools::Cancel;
use aish_tools::set::error_json;
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::collections::HashMap;
use std::future::Future;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, watch};

/// Calls that run at once; more are refused.
const RUNNING_MAX: u32 = 16;
/// Bytes of arguments for which a call takes another of these places: a large one is in memory many times over while it runs.
const PLACE_BYTES: usize = 256 * 1024;
/// Lanes that are kept for the next calls.
const IDLE_MAX: usize = 4;
/// Calls that wait for a yes at once. A further one is refused: it must not cost somebody else's call its answer.
const WAITING_MAX: usize = 32;
/// Bytes of arguments and results of all lanes that wait, unless one waits alone.
const WAITING_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How long a call waits for a yes. Longer than a client is given to ask somebody.
const WAITING_TIMEOUT_S: u64 = 15 * 60;
/// How long the calls may take to end when the program does.
const CLOSE_TIMEOUT_MS: u64 = 3_000;

/// The built-in tools, for clients.
#[derive(Clone)]
pub(super) struct Calls(Arc<Shared>);

struct Shared {
    engine: Arc<Engine>,
    /// Where an allow rule would be written.
    config_file: PathBuf,
    /// Lanes in which nothing happens.
    idle: Mutex<Vec<Lane>>,
    /// Lanes that wait for a yes, by their tickets.
    waiting: Mutex<HashMap<String, Waiting>>,
    running: Semaphore,
    stop: watch::Sender<bool>,
}

struct Waiting {
    lane: Lane,
    pending: Pending,
    since: Instant,
}

impl Waiting {
    fn now(lane: Lane, pending: Pending) -> Self {
        Self {
            lane,
            pending,
            since: Instant::now(),
        }
    }
}

/// Whether this lane may wait beside those that do.
fn has_room(waiting: &HashMap<String, Waiting>, lane: &Lane) -> bool {
    let others: usize = waiting.values().map(|waiting| waiting.lane.content_bytes()).sum();
    waiting.is_empty() || (waiting.len() < WAITING_MAX && others + lane.content_bytes() <= WAITING_BYTES_MAX)
}

/// How much of what may run at once a call is.
fn places(call: &Call) -> u32 {
    let further = call.arguments.len() / PLACE_BYTES;
    u32::try_from(further).map_or(RUNNING_MAX, |further| further.saturating_add(1).min(RUNNING_MAX))
}

/// Nothing is awaited while one of these is held, and a panic between two of its steps leaves it whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Calls {
    pub(super) fn new(engine: Arc<Engine>, config_file: PathBuf) -> Self {
        Self(Arc::new(Shared {
            engine,
            config_file,
            idle: Mutex::default(),
            waiting: Mutex::default(),
            running: Semaphore::new(RUNNING_MAX as usize),
            stop: watch::Sender::new(false),
        }))
    }

    /// Ends every call, and waits (bounded) until what they started is ended and recorded.
    pub(super) async fn close(&self) {
        self.0.stop.send_replace(true);
        let patience = Duration::from_millis(CLOSE_TIMEOUT_MS);
        let _ = tokio::time::timeout(patience, self.0.running.acquire_many(RUNNING_MAX)).await;
        let waiting: Vec<Waiting> = lock(&self.0.waiting).drain().map(|(_, waiting)| waiting).collect();
        for waiting in waiting {
            give_up(waiting.lane).await;
        }
    }

    /// Runs to its end whoever still waits for it: a driver that is dropped in the middle would leave a turn open.
    fn to_its_end(
        &self,
        places: u32,
        work: impl Future<Output = Result<Ended, EngineError>> + Send + 'static,
    ) -> BoxFuture<'static, Ended> {
        let this = self.clone();
        let task = tokio::spawn(async move {
            let Ok(_places) = this.0.running.try_acquire_many(places) else {
                return failed(&format!(
                    "not run: {RUNNING_MAX} calls are running, or fewer large ones; try again"
                ));
            };
            work.await.unwrap_or_else(|error| failed(&format!("not run: {error}")))
        });
        Box::pin(async move { task.await.unwrap_or_else(|_| failed("a fault inside aish")) })
    }

    async fn begin(&self, call: Call) -> Result<Ended, EngineError> {
        self.give_up_overdue().await;
        let lane = lock(&self.0.idle).pop();
        let mut lane = lane.unwrap_or_else(|| Lane::new(&self.0.engine));
        lane.begin(&call).await?;
        self.go_on(lane, &call).await
    }

    async fn answered(&self, ticket: &str, call: Call, consent: Consent) -> Result<Ended, EngineError> {
        let waiting = lock(&self.0.waiting).remove(ticket);
        let Some(Waiting { mut lane, pending, .. }) = waiting else {
            return Ok(failed(
                "not run: nothing waits for that answer any more; call the tool again",
            ));
        };
        if !is_same(&pending, &call) {
            give_up(lane).await;
            return Ok(failed("not run: this is not the call that was asked about"));
        }
        let advice = self.advice(&lane, &pending, "this client could ask nobody");
        let (answer, by, reason) = match consent {
            Consent::Given => (Answer::Approve, AnsweredBy::Client, None),
            Consent::Refused => (Answer::Deny, AnsweredBy::Client, None),
            Consent::Nobody => (Answer::Deny, AnsweredBy::Rule, Some("nobody could be asked".to_owned())),
            Consent::Unclear => return Ok(Ended::Asks(self.wait(Waiting::now(lane, pending)))),
        };
        let request = AnswerRequest {
            call_id: pending.call_id.clone(),
            digest: Some(pending.digest.to_string()),
            answer,
            scope: AnswerScope::Once,
            by,
            reason,
        };
        lane.driver.answer(request).await?;
        let ended = self.go_on(lane, &call).await?;
        Ok(match consent {
            Consent::Nobody => failed(&advice),
            Consent::Given | Consent::Refused | Consent::Unclear => ended,
        })
    }

    /// Drives a call as far as it goes.
    async fn go_on(&self, mut lane: Lane, call: &Call) -> Result<Ended, EngineError> {
        let stop: Cancel = self.0.stop.subscribe();
        match lane.drive(call, &stop).await? {
            Outcome::Done(_) => {
                lane.driver.settle().await;
                let result = self.result(&mut lane);
                let mut idle = lock(&self.0.idle);
                if lane.has_room() && !lane.driver.is_unsaved() && idle.len() < IDLE_MAX {
                    idle.push(lane);
                }
                Ok(Ended::Result(result))
            }
            Outcome::Asking(pending) => match pending.into_iter().next() {
                Some(pending) => Ok(self.ask(lane, pending).await),
                None => {
                    give_up(lane).await;
                    Ok(failed("not run: nobody knows what to ask"))
                }
            },
            Outcome::Questions(_) => {
                give_up(lane).await;
                Ok(failed(
                    "not run to its end: it asks something of a person, who is not here",
                ))
            }
            Outcome::AwaitingClient(_) => {
                give_up(lane).await;
                Ok(failed("not run: no tool here is the client's own"))
            }
        }
    }

    /// Asks, if one more call may wait for its answer.
    async fn ask(&self, lane: Lane, pending: Pending) -> Ended {
        if has_room(&lock(&self.0.waiting), &lane) {
            return Ended::Asks(self.wait(Waiting::now(lane, pending)));
        }
        let advice = self.advice(&lane, &pending, "too many calls wait for an answer; try again later");
        give_up(lane).await;
        failed(&advice)
    }

    /// Keeps a lane until its question is answered.
    fn wait(&self, waiting: Waiting) -> Question {
        let pending = &waiting.pending;
        let message = format!(
            "call '{}'?\nasked because: {}\nin {}",
            sanitize::single_line(&pending.readable),
            sanitize::single_line(&pending.rule),
            sanitize::single_line(&self.0.engine.settings().context.directory.to_string_lossy()),
        );
        let ticket = new_session_id().to_string();
        lock(&self.0.waiting).insert(ticket.clone(), waiting);
        Question { message, ticket }
    }

    async fn give_up_overdue(&self) {
        let patience = Duration::from_secs(WAITING_TIMEOUT_S);
        let overdue: Vec<Waiting> = {
            let mut all = lock(&self.0.waiting);
            all.extract_if(|_, waiting| waiting.since.elapsed() > patience)
                .map(|(_, waiting)| waiting)
                .collect()
        };
        for waiting in overdue {
            give_up(waiting.lane).await;
        }
    }

    /// What a client is told of a call: no more than a model would see, and no secret of ours.
    fn result(&self, lane: &mut Lane) -> CallResult {
        let Some(result) = lane.result() else {
            return CallResult {
                text: error_json("the call came to nothing"),
                success: false,
            };
        };
        let engine = lane.driver.engine();
        let cut = cut_result(&result.output, engine.settings().limits.max_result_chars);
        CallResult {
            text: engine.redactor.redact(&cut).into_owned(),
            success: result.success,
        }
    }

    /// How a call could be allowed where nobody can be asked.
    fn advice(&self, lane: &Lane, pending: &Pending, obstacle: &str) -> String {
        let rule = lane
            .driver
            .action(&pending.call_id)
            .and_then(|action| Rule::allowing(&action));
        let how = match rule {
            Some(rule) => format!(
                "whoever runs aish can allow it in {}, under [approval]: allow = [{}]",
                self.0.config_file.display(),
                Value::String(rule.to_string()),
            ),
            None => "whoever runs aish can allow it with `--approval full`".to_owned(),
        };
        format!("not run: it must be approved ({}), and {obstacle}; {how}", pending.rule)
    }
}

/// Closes the turn of a call that nobody will answer.
async fn give_up(mut lane: Lane) {
    // A ledger that cannot be written keeps the turn open; it can be resumed and answered from there.
    let _ = lane.driver.cancel("nobody answered the client's question").await;
}

/// Whether a second call is the one that was shown: the same tool, the same values.
fn is_same(pending: &Pending, call: &Call) -> bool {
    let values = |text: &str| serde_json::from_str::<Value>(text).ok();
    pending.tool == call.tool
        && (pending.arguments == call.arguments
            || values(&pending.arguments).is_some_and(|shown| Some(shown) == values(&call.arguments)))
}

fn failed(message: &str) -> Ended {
    Ended::Result(CallResult {
        text: error_json(message),
        success: false,
    })
}

impl Backend for Calls {
    fn tools(&self) -> Vec<Tool> {
        offer::tools(&self.0.engine)
    }

    fn instructions(&self) -> String {
        offer::instructions(&self.0.engine)
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Ended> {
        let this = self.clone();
        self.to_its_end(places(&call), async move { this.begin(call).await })
    }

    fn answer<'a>(&'a self, ticket: &'a str, call: Call, consent: Consent) -> BoxFuture<'a, Ended> {
        let (this, ticket) = (self.clone(), ticket.to_owned());
        self.to_its_end(
            places(&call),
            async move { this.answered(&ticket, call, consent).await },
        )
    }
}
