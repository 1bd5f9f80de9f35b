//! Whom servers ask and tell: status lines are kept until somebody listens.

use super::Say;
use super::desk::{Answer, Desk, Matter};
use super::evidence;
use super::log::Logs;
use super::shelf::Shelf;
use super::troubles::Troubles;
use crate::term::tty::Tty;
use aish_engine::Asides;
use aish_mcp::host::{News, Question, Reply};
use aish_mcp::{Alias, Host};
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Who hears of servers: lines are kept until somebody listens.
#[derive(Default)]
pub(super) struct Front {
    say: Mutex<Option<Say>>,
    waiting: Mutex<Vec<String>>,
    /// Where their questions wait for the person.
    pub(super) desk: Arc<Desk>,
    asides: Arc<Asides>,
    questions: AtomicU64,
    /// What they wrote.
    pub(super) logs: Logs,
    /// What they offer beyond tools.
    pub(super) shelf: Shelf,
    /// Which of their troubles were told.
    pub(super) troubles: Troubles,
}

impl Front {
    /// One whose servers' questions are recorded there.
    pub(super) fn recording(asides: Arc<Asides>) -> Self {
        Self {
            asides,
            ..Self::default()
        }
    }

    /// Puts a question before the person, and into the ledger with its answer (SPEC 6.9).
    async fn asked(&self, server: &Alias, matter: Matter) -> Answer {
        let number = self.questions.fetch_add(1, Ordering::Relaxed) + 1;
        let alias = server.as_str();
        let (content, asked) = evidence::of_question(number, alias, &matter);
        let is_recorded = self.asides.record(alias, content, asked).await;
        let told = evidence::line(&matter);
        let mut open = OpenQuestion {
            asides: &self.asides,
            number,
            alias,
            is_answered: false,
        };
        let answer = self.desk.put(server, matter).await;
        open.is_answered = true;
        let (content, answered) = evidence::of_answer(number, alias, &answer);
        if !self.asides.record(alias, content, answered).await && is_recorded && matches!(answer, Answer::Given(_)) {
            // The ledger has it that the call ended without an answer: then nothing is sent.
            return Answer::Over;
        }
        if let Some(why) = evidence::why_not(&answer) {
            self.say(&format!("mcp: {alias} asks: {told}; {why}"));
        }
        answer
    }

    /// Tells that one from now on, and what was kept.
    pub(super) fn listen(&self, say: Say) {
        for line in std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner)) {
            say(&line);
        }
        *self.say.lock().unwrap_or_else(PoisonError::into_inner) = Some(say);
    }
}

/// A question that waits for its answer; one that is dropped before was taken back, and the ledger says so.
struct OpenQuestion<'a> {
    asides: &'a Asides,
    number: u64,
    alias: &'a str,
    is_answered: bool,
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            let (content, body) = evidence::of_answer(self.number, self.alias, &Answer::Withdrawn);
            self.asides.tell(self.alias, content, body);
        }
    }
}

impl Host for Front {
    fn ask<'a>(&'a self, server: &'a Alias, question: Question) -> BoxFuture<'a, Reply> {
        Box::pin(async move {
            match self.asked(server, Matter::Elicit(question)).await {
                Answer::Given(given) => Reply::Accepted(given.members),
                Answer::Dismissed | Answer::Over | Answer::Withdrawn => Reply::Dismissed,
                Answer::Declined => Reply::Declined,
                unasked @ (Answer::Nobody | Answer::Untimely | Answer::Crowded | Answer::Late | Answer::Failed(_)) => {
                    Reply::Unanswered(evidence::why_not(&unasked).unwrap_or_default())
                }
            }
        })
    }

    fn sample<'a>(&'a self, server: &'a Alias, params: Value) -> BoxFuture<'a, Result<Value, String>> {
        Box::pin(async move {
            match self.asked(server, Matter::Sample(params)).await {
                Answer::Given(given) => Ok(Value::Object(given.members)),
                Answer::Declined | Answer::Late => Err("the user declined".to_owned()),
                Answer::Over | Answer::Withdrawn => Err("the call it belonged to is over".to_owned()),
                Answer::Crowded => Err("too many questions wait".to_owned()),
                Answer::Dismissed => Err("the user dismissed the request".to_owned()),
                Answer::Nobody | Answer::Untimely => Err("nobody is here to allow it".to_owned()),
                Answer::Failed(problem) => Err(problem),
            }
        })
    }

    fn is_attended(&self) -> bool {
        Tty::open().is_some()
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
