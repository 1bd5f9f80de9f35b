//! The signals that ask the program to end, where no prompt of its own handles them: Ctrl-C, `kill`, a terminal that goes away.
//! All of them end a turn the same way, so that no command outlives the program and the session can go on.

use crate::failure::Failure;
use aish_tools::Cancel;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use std::future::Future;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Turns true at the first signal that asks to end.
pub fn end_asked() -> Cancel {
    let (ask, asked) = watch::channel(false);
    // Listened for from now on, not from when the task is first polled: a signal in between would end the program at once.
    let first = asked_to_end();
    tokio::spawn(async move {
        first.await;
        let _ = ask.send(true);
        // The channel stays open: one that is closed looks like nobody who could cancel.
        std::future::pending::<()>().await;
    });
    asked
}

/// What `work` comes to, unless somebody asks to end first. For work before there is a turn that could be cancelled.
///
/// # Errors
/// Somebody asked to end.
pub async fn unless_ended<T>(cancel: &Cancel, work: impl Future<Output = T>) -> Result<T, Failure> {
    let mut cancel = cancel.clone();
    tokio::select! {
        biased;
        // Where nobody is left who could ask, only the work counts.
        Ok(_) = cancel.wait_for(|asked| *asked) => Err(Failure::interrupted()),
        done = work => Ok(done),
    }
}

/// Waits for the first signal that asks to end. One that was ignored when the program started (`nohup`) stays ignored.
fn asked_to_end() -> impl Future<Output = ()> {
    let ignored = ignored_mask();
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let mut first: FuturesUnordered<_> = kinds
        .into_iter()
        .filter(|kind| ignored & bit(*kind) == 0)
        .filter_map(|kind| signal(kind).ok())
        .map(|mut signal| async move { signal.recv().await })
        .collect();
    async move {
        if first.next().await.is_none() {
            // None can be listened to: then none ever comes.
            std::future::pending::<()>().await;
        }
    }
}

fn bit(kind: SignalKind) -> u64 {
    1 << (kind.as_raw_value() - 1)
}

/// The ignored signals, a bit each; none where the system does not tell.
fn ignored_mask() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}
