//! Commands that run in the background: `j1`, `j2`, … until they end, are stopped, or the tool set is dropped.

use super::process::{Running, Urgency};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Jobs that may run at once.
pub(super) const JOBS_RUNNING_MAX: usize = 16;
/// Ended jobs that can still be read; older ones are forgotten.
const JOBS_ENDED_MAX: usize = 32;
/// How long dropping the tool set waits for what it killed.
const DROP_WAIT_MS: u64 = 1_000;

/// The jobs, and every command that is being run or ended.
#[derive(Default)]
pub(super) struct Jobs {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    jobs: Vec<(String, Arc<Running>)>,
    started: u64,
    live: Vec<Weak<Running>>,
}

impl Jobs {
    /// Remembers a command, so that it ends with the tool set whoever else has forgotten it.
    pub(super) fn watch(&self, running: &Arc<Running>) {
        let mut state = self.lock();
        state
            .live
            .retain(|live| live.upgrade().is_some_and(|live| live.end().is_none()));
        state.live.push(Arc::downgrade(running));
    }

    /// Gives a command the next name.
    pub(super) fn add(&self, running: Arc<Running>) -> String {
        let mut state = self.lock();
        state.started += 1;
        let name = format!("j{}", state.started);
        state.jobs.push((name.clone(), running));
        let ended = state.jobs.iter().filter(|(_, job)| job.end().is_some()).count();
        let mut surplus = ended.saturating_sub(JOBS_ENDED_MAX);
        state.jobs.retain(|(_, job)| {
            let is_forgotten = surplus > 0 && job.end().is_some();
            surplus -= usize::from(is_forgotten);
            !is_forgotten
        });
        name
    }

    /// True when no more jobs may be started.
    pub(super) fn is_full(&self) -> bool {
        let state = self.lock();
        state.jobs.iter().filter(|(_, job)| job.end().is_none()).count() >= JOBS_RUNNING_MAX
    }

    /// The job of that name.
    ///
    /// # Errors
    /// `No such job: j9`, with the names there are.
    pub(super) fn get(&self, name: &str) -> Result<Arc<Running>, String> {
        let state = self.lock();
        match state.jobs.iter().find(|(known, _)| known == name) {
            Some((_, job)) => Ok(Arc::clone(job)),
            None if state.jobs.is_empty() => Err(format!("No such job: {name} (no job was started)")),
            None => {
                let names: Vec<&str> = state.jobs.iter().map(|(name, _)| name.as_str()).collect();
                Err(format!("No such job: {name} (there are {})", names.join(", ")))
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Jobs {
    /// Kills what is left and waits a moment: after this the process may exit, and with it the threads that clean up.
    fn drop(&mut self) {
        let live: Vec<Arc<Running>> = self.lock().live.iter().filter_map(Weak::upgrade).collect();
        for running in &live {
            running.stop(Urgency::Kill);
        }
        let deadline = Instant::now() + Duration::from_millis(DROP_WAIT_MS);
        for running in &live {
            running.wait_until(deadline);
        }
    }
}
