//! Progress of a call, told to a client that asked for it: the last line that was printed, at most once in a while.

use aish_core::sanitize;
use aish_tools::Progress;
use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::Peer;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// The least time between two notifications of one call.
const PAUSE_MS: u64 = 200;
/// Characters of a line that are told.
const LINE_CHARS_MAX: usize = 200;

/// Holds what was printed last until it is told.
#[derive(Default)]
pub(super) struct Latest {
    line: Mutex<String>,
    changed: Notify,
}

impl Progress for Latest {
    fn output(&self, text: &str) {
        let Some(line) = text.lines().rfind(|line| !line.trim().is_empty()) else {
            return;
        };
        let line: String = sanitize::single_line(line.trim_end())
            .chars()
            .take(LINE_CHARS_MAX)
            .collect();
        *self.line.lock().unwrap_or_else(PoisonError::into_inner) = line;
        self.changed.notify_one();
    }
}

impl Latest {
    /// Tells the client for as long as this is polled; never returns.
    pub(super) async fn tell(&self, peer: &Peer<RoleServer>, token: Option<ProgressToken>) {
        let Some(token) = token else {
            return std::future::pending().await;
        };
        let mut told = 0.0;
        loop {
            self.changed.notified().await;
            let line = std::mem::take(&mut *self.line.lock().unwrap_or_else(PoisonError::into_inner));
            told += 1.0;
            let news = ProgressNotificationParam::new(token.clone(), told).with_message(line);
            // A client that is gone hears nothing; that its call is to end is told otherwise.
            let _ = peer.notify_progress(news).await;
            tokio::time::sleep(Duration::from_millis(PAUSE_MS)).await;
        }
    }
}
