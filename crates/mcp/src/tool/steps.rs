//! How far a call has come, on its way to a screen: what is newest, and no more often than an eye can follow. The last step is
//! always shown.

use super::progress_line;
use crate::peer::{Progressed, Watch};
use aish_tools::Progress;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// The least time between two steps that are shown.
const PAUSE_MS: u64 = 100;

/// The newest step, and how many there were.
#[derive(Default)]
struct Newest {
    count: u64,
    step: Option<Progressed>,
}

/// The steps of one call.
pub(super) struct Steps {
    newest: watch::Sender<Newest>,
}

impl Steps {
    pub(super) fn new() -> Self {
        let newest = watch::Sender::new(Newest::default());
        Self { newest }
    }

    /// Who is told of each step. Never blocks, and holds no more than one.
    pub(super) fn watch(&self) -> Watch {
        let newest = self.newest.clone();
        Arc::new(move |step| {
            newest.send_modify(|newest| {
                newest.count += 1;
                newest.step = Some(step);
            });
        })
    }

    /// Shows them while a call runs; gives what it came to.
    pub(super) async fn shown_while<T>(self, call: impl Future<Output = T>, progress: &dyn Progress) -> T {
        let mut newest = self.newest.subscribe();
        let mut shown = 0;
        let mut show = |newest: &Newest| {
            if let Some(step) = newest.step.as_ref().filter(|_| newest.count > shown) {
                progress.step(&progress_line(step));
                shown = newest.count;
            }
        };
        tokio::pin!(call);
        let mut next = Instant::now();
        let output = loop {
            let due = async {
                // The sender is ours: it is not gone.
                let _ = newest.changed().await;
                tokio::time::sleep_until(next).await;
            };
            tokio::select! {
                biased;
                () = due => {
                    show(&newest.borrow_and_update());
                    next = Instant::now() + Duration::from_millis(PAUSE_MS);
                }
                output = &mut call => break output,
            }
        };
        show(&newest.borrow_and_update());
        output
    }
}
