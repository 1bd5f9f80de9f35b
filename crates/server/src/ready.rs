//! Whether this server should be sent requests: whether its ledger takes what is written (`GET /readyz`, SPEC 9.8).
//!
//! A ledger that can be read may still not be written: its disk is full, its database read-only. So the probe writes, the lease of a
//! session that there is not. It is done at most once every few seconds, however often somebody asks, and whoever asks meanwhile is
//! told what it found. And since a small write may fit where a turn does not, a server whose ledger failed a request is not ready for
//! a while either.

use crate::error::{ApiError, ErrorKind};
use crate::metrics::Metrics;
use aish_engine::{Conversations, Fault};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Mutex as Turnstile;
use tokio::time::Instant;

/// How long what was found is good.
const FOUND_KEPT_S: u64 = 2;
/// How long the ledger may take to be called ready.
const LEDGER_TIMEOUT_S: u64 = 2;
/// How long after a request that the ledger failed this server is not ready.
const FAILED_KEPT_S: u64 = 10;

/// What is known of the ledger.
#[derive(Default)]
pub(crate) struct Readiness {
    failed: Mutex<Option<Instant>>,
    found: Turnstile<Option<(Instant, Result<(), ApiError>)>>,
}

impl Readiness {
    /// The ledger failed a request, or a turn.
    pub(crate) fn failed(&self) {
        *self.last_failed() = Some(Instant::now());
    }

    /// Looks whether the ledger takes what is written, or remembers it. A failure is counted when it is found, once.
    pub(crate) async fn look(&self, conversations: &Conversations, metrics: &Metrics) -> Result<(), ApiError> {
        let mut known = self.found.lock().await;
        let found = match known.take().filter(|(at, _)| is_within(*at, FOUND_KEPT_S)) {
            Some(found) => found,
            None => {
                let tried = try_it(conversations).await;
                let cause = tried.as_ref().err().and_then(ApiError::cause);
                if cause.is_some_and(|cause| cause.fault == Fault::Ledger) {
                    metrics.store_failed();
                }
                (Instant::now(), tried)
            }
        };
        let result = found.1.clone();
        *known = Some(found);
        result?;
        let is_recent = self.last_failed().is_some_and(|at| is_within(at, FAILED_KEPT_S));
        if is_recent {
            return Err(ApiError::new(ErrorKind::Unavailable, "the ledger failed a moment ago"));
        }
        Ok(())
    }

    fn last_failed(&self) -> MutexGuard<'_, Option<Instant>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_within(at: Instant, seconds: u64) -> bool {
    at.elapsed() < Duration::from_secs(seconds)
}

async fn try_it(conversations: &Conversations) -> Result<(), ApiError> {
    let timeout = Duration::from_secs(LEDGER_TIMEOUT_S);
    match tokio::time::timeout(timeout, conversations.try_ledger()).await {
        Ok(tried) => Ok(tried?),
        Err(_) => {
            let problem = format!("the ledger took nothing that was written within {LEDGER_TIMEOUT_S} s");
            Err(ApiError::new(ErrorKind::Unavailable, "the ledger does not answer").caused(Fault::Ledger, problem))
        }
    }
}
