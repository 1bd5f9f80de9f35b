//! Completion at the prompt (SPEC 8.9): of commands as the user's own shell does it, of lines of ours by what we have.
//!
//! [`Completion`] is what the editor calls, on its thread. Most of what it offers is known there ([`words`], [`path`]); what only
//! the shell knows ([`ask`]) it is asked by way of the loop ([`desk`]). A key waits for that a moment only: what comes later is
//! shown when it comes, and until then there are the paths.

mod ask;
mod command;
pub mod desk;
mod path;
pub mod typed;
mod whole;
mod words;

pub use whole::{Behind, Whole};
pub use words::Words;

use super::route::{Mark, mark};
use super::router::{Router, Way};
use ask::Offer;
use command::{Asking, Candidate};
use desk::Desk;
use reedline::{Completer, CompletionOrigin, CompletionResult, CompletionStatus, Partial, Span, Suggestion};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

/// Candidates shown at once; more are no choice. What is inserted of them is what *all* have in common, shown or not.
const SHOWN_MAX: usize = 200;
/// How long keys may wait for one answer of the shell.
const WAIT_MS: u64 = 300;
/// What comes later than this is not waited for any more.
const PATIENCE_S: u64 = 10;

/// What completes, as the editor calls it.
pub struct Completion {
    words: Words,
    /// Where lines go; without it they are questions, unless they have a mark.
    router: Option<Router>,
    desk: Option<Desk>,
    asked: Option<Asked>,
    answer: Option<Answer>,
}

/// A question the shell has not answered yet.
struct Asked {
    asking: Asking,
    since: Instant,
    reply: Receiver<Vec<u8>>,
}

/// What it answered.
struct Answer {
    asking: Asking,
    offers: Vec<Offer>,
}

/// What is known of an answer.
enum Heard {
    Offers(Vec<Offer>),
    /// It may still come.
    Later,
}

impl Completion {
    /// Of these words, and of what the shell says where there is one.
    pub fn new(words: Words, router: Option<Router>, desk: Option<Desk>) -> Self {
        Self {
            words,
            router,
            desk,
            asked: None,
            answer: None,
        }
    }

    /// Where the command in that line begins, if it is one.
    fn command_at(&self, line: &str) -> Option<usize> {
        let marked = mark(line).map(|(mark, _)| mark);
        let behind_mark = line.len() - line.trim_start().len() + 1;
        match (marked, &self.router) {
            (Some(Mark::Shell), _) => Some(behind_mark),
            (Some(Mark::Meta | Mark::Model), _) | (None, None) => None,
            (None, Some(router)) => {
                // Tab may come in one piece with the line, which then was not shown yet.
                router.shown(line);
                match router.seen().way {
                    Way::Shell | Way::Mistyped(_) => Some(0),
                    Way::Nothing | Way::Meta => None,
                    // One word, or one behind a command, may become anything.
                    Way::Model => command::may_be_command(line, &router.known()).then_some(0),
                }
            }
        }
    }

    fn command(&mut self, line: &str, at: usize) -> CompletionResult {
        let text = line.get(at..).unwrap_or_default();
        let known = self.router.as_ref().map(Router::known).unwrap_or_default();
        let (candidates, asking) = self.words.with_places(|from| command::local(text, from, &known));
        let Some(asking) = asking else {
            return fresh(&candidates, line, at);
        };
        match self.hear(&asking, known.grammar()) {
            Heard::Offers(offers) => {
                let told = self.words.with_places(|from| command::of_shell(text, from, &offers));
                let best = if told.is_empty() { &candidates } else { &told };
                fresh(best, line, at)
            }
            Heard::Later => {
                let shown = suggestions(&candidates, at, line.len());
                CompletionResult::stale_or_pending(shown.into(), CompletionOrigin::new(line, line.len()))
                    .with_partial(common(&candidates, line, at))
            }
        }
    }

    /// What the shell says to that, if it is known now or soon.
    fn hear(&mut self, asking: &Asking, grammar: aish_command::Grammar) -> Heard {
        if let Some(answer) = self.answer.as_ref().filter(|answer| answer.asking.covers(asking)) {
            return Heard::Offers(answer.offers.clone());
        }
        let is_asked = self.asked.as_ref().is_some_and(|asked| asked.asking.covers(asking));
        if !is_asked {
            let question = ask::question(asking, grammar);
            let reply = self.desk.as_ref().and_then(|desk| desk.ask(question));
            self.asked = reply.map(|reply| Asked {
                asking: asking.clone(),
                since: Instant::now(),
                reply,
            });
        }
        let Some(asked) = self.asked.take() else {
            return Heard::Offers(Vec::new());
        };
        // A key that comes while it is asked does not wait anew.
        let wait = Duration::from_millis(WAIT_MS).saturating_sub(asked.since.elapsed());
        match asked.reply.recv_timeout(wait) {
            Ok(output) => Heard::Offers(self.learn(asked.asking, &output)),
            Err(RecvTimeoutError::Disconnected) => Heard::Offers(Vec::new()),
            Err(RecvTimeoutError::Timeout) => {
                self.asked = Some(asked);
                Heard::Later
            }
        }
    }

    fn learn(&mut self, asking: Asking, output: &[u8]) -> Vec<Offer> {
        let offers = ask::offers(output);
        self.answer = Some(Answer {
            asking,
            offers: offers.clone(),
        });
        offers
    }
}

impl Completer for Completion {
    fn complete(&mut self, line: &str, pos: usize) -> CompletionResult {
        let typed = line.get(..pos).unwrap_or(line);
        if let Some(at) = self.command_at(line) {
            return self.command(typed, at.min(typed.len()));
        }
        let (start, candidates) = self.words.candidates(typed);
        let candidates: Vec<Candidate> = candidates.into_iter().map(Candidate::of_ours).collect();
        fresh(&candidates, typed, start)
    }

    fn poll_completion(&mut self) -> CompletionStatus {
        let Some(asked) = self.asked.take() else {
            return CompletionStatus::Idle;
        };
        match asked.reply.try_recv() {
            Ok(output) => {
                self.learn(asked.asking, &output);
                CompletionStatus::Ready
            }
            Err(TryRecvError::Empty) if asked.since.elapsed() < Duration::from_secs(PATIENCE_S) => {
                self.asked = Some(asked);
                CompletionStatus::Pending
            }
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => {
                self.learn(asked.asking, b"");
                CompletionStatus::Ready
            }
        }
    }
}

/// `at` is where the text they belong to begins in the line, which ends at the cursor.
fn fresh(candidates: &[Candidate], line: &str, at: usize) -> CompletionResult {
    CompletionResult::fresh(suggestions(candidates, at, line.len())).with_partial(common(candidates, line, at))
}

/// What may be inserted before one is chosen: the beginning that all have that stand where the first stands.
fn common(candidates: &[Candidate], line: &str, at: usize) -> Option<Partial> {
    let first = candidates.first()?;
    let span = span(first, at, line.len());
    let mut insert = first.value.as_str();
    for other in candidates.iter().filter(|other| other.start == first.start) {
        let pairs = insert.char_indices().zip(other.value.chars());
        let same = pairs.take_while(|((_, one), other)| one == other).last();
        let bytes = same.map_or(0, |((at, c), _)| at + c.len_utf8());
        insert = insert.get(..bytes).unwrap_or_default();
    }
    let typed = line.get(span.start..span.end).unwrap_or_default();
    // Without more than what is typed, that is what stays.
    let insert = if insert.starts_with(typed) { insert } else { typed };
    Some(Partial {
        span,
        insert: insert.to_owned(),
    })
}

/// Those that are shown, as the editor takes them; `end` is where the cursor is.
fn suggestions(candidates: &[Candidate], at: usize, end: usize) -> Vec<Suggestion> {
    let suggestions = candidates.iter().take(SHOWN_MAX).map(|candidate| Suggestion {
        value: candidate.value.clone(),
        display_override: candidate.shown.clone(),
        description: Some(candidate.help.clone()).filter(|help| !help.is_empty()),
        append_whitespace: candidate.end == command::End::Space,
        span: span(candidate, at, end),
        ..Suggestion::default()
    });
    suggestions.collect()
}

/// What a candidate takes the place of.
fn span(candidate: &Candidate, at: usize, end: usize) -> Span {
    Span {
        start: (at + candidate.start).min(end),
        end,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// SPEC 8.9: what Tab inserts is what all that fit begin with, however many are shown.
    #[test]
    fn what_all_have_in_common() {
        let folder = tempfile::tempdir().unwrap();
        for n in 100..=320 {
            std::fs::write(folder.path().join(format!("img1_{n}")), "").unwrap();
        }
        std::fs::write(folder.path().join("img2_final"), "").unwrap();
        let words = Words::default();
        words.update(|lists| lists.directory = folder.path().to_owned());
        let mut completion = Completion::new(words, None, None);
        let mut check = |line: &str, expect: Option<(usize, &str)>| {
            let completed = completion.complete(line, line.len());
            assert!(completed.suggestions().len() <= SHOWN_MAX);
            let partial = completed.partial().map(|it| (it.span.start, it.insert.as_str()));
            assert_eq!(partial, expect, "{line:?}");
        };
        check("!ls im", Some((4, "img")));
        check("!ls img", Some((4, "img")));
        check("!ls img1", Some((4, "img1_")));
        check("!ls img2", Some((4, "img2_final")));
        check("see @im", Some((4, "@img")));
        check("!ls x", None);
    }
}
