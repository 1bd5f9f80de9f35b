//! Work that blocks (file systems, searches) on a thread of its own, ended by a call's cancel or by dropping its future.

use crate::{Cancel, ToolOutput};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long a cancelled piece of work may take to come to its own end, e.g. to say that a file was written after all.
const CANCEL_GRACE_MS: u64 = 50;

/// What a call that was asked to stop answers.
pub const CANCELLED: &str = "Cancelled";

/// The flag a piece of work polls between steps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// True when nobody waits for the result any more.
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Sets the flag when the future that waits is dropped.
struct StopOnDrop(Stop);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.set();
    }
}

/// Waits until a call is asked to stop; for ever when nobody can ask any more.
pub async fn cancelled(cancel: &mut Cancel) {
    if cancel.wait_for(|cancel| *cancel).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Runs `work` on a blocking thread. When cancelled, its own result counts if it comes at once.
pub(crate) async fn run_blocking(
    mut cancel: Cancel,
    work: impl FnOnce(&Stop) -> ToolOutput + Send + 'static,
) -> ToolOutput {
    if *cancel.borrow() {
        return ToolOutput::error(CANCELLED);
    }
    let guard = StopOnDrop(Stop::default());
    let stop = guard.0.clone();
    let mut handle = tokio::task::spawn_blocking(move || work(&stop));
    tokio::select! {
        biased;
        result = &mut handle => result.unwrap_or_else(|error| ToolOutput::error(format!("The tool failed: {error}"))),
        () = cancelled(&mut cancel) => {
            guard.0.set();
            match tokio::time::timeout(Duration::from_millis(CANCEL_GRACE_MS), handle).await {
                Ok(Ok(output)) => output,
                Ok(Err(_)) | Err(_) => ToolOutput::error(CANCELLED),
            }
        }
    }
}
