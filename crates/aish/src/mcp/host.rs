//! Whom servers ask and tell: status lines are kept until somebody listens.

use super::Say;
use super::log::Logs;
use super::shelf::Shelf;
use aish_mcp::host::{News, Question, Reply};
use aish_mcp::{Alias, Host};
use futures_util::future::BoxFuture;
use std::sync::{Mutex, PoisonError};

/// Who hears of servers: lines are kept until somebody listens.
#[derive(Default)]
pub(super) struct Front {
    say: Mutex<Option<Say>>,
    waiting: Mutex<Vec<String>>,
    /// What they wrote.
    pub(super) logs: Logs,
    /// What they offer beyond tools.
    pub(super) shelf: Shelf,
}

impl Front {
    /// Tells that one from now on, and what was kept.
    pub(super) fn listen(&self, say: Say) {
        for line in std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner)) {
            say(&line);
        }
        *self.say.lock().unwrap_or_else(PoisonError::into_inner) = Some(say);
    }
}

impl Host for Front {
    fn ask<'a>(&'a self, _server: &'a Alias, _question: Question) -> BoxFuture<'a, Reply> {
        Box::pin(std::future::ready(Reply::Dismissed))
    }

    fn sample<'a>(
        &'a self,
        _server: &'a Alias,
        _params: serde_json::Value,
    ) -> BoxFuture<'a, Result<serde_json::Value, String>> {
        Box::pin(std::future::ready(Err("nobody is here to allow it".to_owned())))
    }

    fn news(&self, server: &Alias, news: News) {
        self.logs.hear(server, &news);
        self.shelf.hear(server, &news);
    }

    fn say(&self, line: &str) {
        let say = self.say.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match say {
            Some(say) => say(line),
            None => self
                .waiting
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(line.to_owned()),
        }
    }
}
