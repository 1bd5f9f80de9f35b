//! The signals that ask the program to end, where no prompt of its own handles them: Ctrl-C, `kill`, a terminal that goes away.
//! All of them end a turn the same way, so that no command outlives the program and the session can go on.

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::signal::unix::{SignalKind, signal};

/// Waits for the first signal that asks to end. One that was ignored when the program started (`nohup`) stays ignored.
pub async fn asked_to_end() {
    let ignored = ignored_mask();
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let mut first: FuturesUnordered<_> = kinds
        .into_iter()
        .filter(|kind| ignored & bit(*kind) == 0)
        .filter_map(|kind| signal(kind).ok())
        .map(|mut signal| async move { signal.recv().await })
        .collect();
    if first.next().await.is_none() {
        // None can be listened to: then none ever comes.
        std::future::pending::<()>().await;
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
