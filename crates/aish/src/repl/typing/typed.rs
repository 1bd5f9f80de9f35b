//! What a person typed ahead: the lines that wait for the end of the turn, and the one that is not done.

use super::draft::Draft;
use super::keys::Key;
use crate::repl::editor::face::indicator_of;
use crate::repl::prompt::INDICATOR;
use crate::repl::route::is_unfinished;
use crate::repl::router::Router;
use crate::term::footer;
use std::collections::VecDeque;

/// Lines that wait at a time; the next one stays where it is typed.
const QUEUED_MAX: usize = 64;
/// Bytes of a line that it is shown where it goes: it is guessed anew with each time it is drawn.
const GUESSED_BYTES_MAX: usize = 4096;

/// What a key asks for beyond the line itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// What runs is to stop.
    Stop,
    /// This is to be told to the model now.
    Steer(String),
}

/// Lines typed ahead.
#[derive(Default)]
pub struct Typed {
    draft: Draft,
    queued: VecDeque<String>,
}

impl Typed {
    /// One key; what it asks for.
    pub fn key(&mut self, key: &Key) -> Option<Wish> {
        match key {
            Key::Enter if is_unfinished(self.draft.text()) => self.draft.insert("\n"),
            Key::Enter => self.queue(),
            Key::AltEnter => {
                return (!self.is_blank()).then(|| Wish::Steer(self.draft.take()));
            }
            Key::Up if self.draft.text().is_empty() => {
                if let Some(last) = self.queued.pop_back() {
                    self.draft = Draft::new(last);
                }
            }
            Key::Stop => return Some(Wish::Stop),
            Key::Up
            | Key::Text(_)
            | Key::Pasted(_)
            | Key::Backspace
            | Key::Delete
            | Key::DeleteWord
            | Key::DeleteToStart
            | Key::DeleteToEnd
            | Key::Left
            | Key::Right
            | Key::Home
            | Key::End => self.draft.key(key),
        }
        None
    }

    /// A line that could not go where it was sent waits for the end of the turn.
    pub fn put(&mut self, line: String) {
        self.queued.push_back(line);
    }

    /// The line that is not done is this one.
    pub fn go_on_with(&mut self, text: String) {
        self.draft = Draft::new(text);
    }

    /// What was stopped takes what was to come after it along: the lines that wait are the person's again, to be edited.
    pub fn hold_back(&mut self) {
        let mut lines: Vec<String> = self.queued.drain(..).collect();
        if lines.is_empty() {
            return;
        }
        if !self.is_blank() {
            lines.push(self.draft.take());
        }
        self.draft = Draft::new(lines.join("\n"));
    }

    /// The first line that waits.
    pub fn next(&mut self) -> Option<String> {
        self.queued.pop_front()
    }

    /// Takes the line that is not done.
    pub fn take_draft(&mut self) -> String {
        self.draft.take()
    }

    /// As the footer shows it.
    pub fn shown(&self, router: Option<&Router>) -> footer::Typed<'_> {
        let (before, behind) = self.draft.parts();
        let text = self.draft.text();
        let router = router.filter(|_| !text.is_empty() && text.len() <= GUESSED_BYTES_MAX);
        footer::Typed {
            mark: router.map_or(INDICATOR, |router| indicator_of(router, text)),
            before,
            behind,
            queued: self.queued.len(),
        }
    }

    fn queue(&mut self) {
        if !self.is_blank() && self.queued.len() < QUEUED_MAX {
            self.queued.push_back(self.draft.take());
        }
    }

    fn is_blank(&self) -> bool {
        self.draft.text().trim().is_empty()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn typed(typed: &mut Typed, text: &str) {
        for c in text.chars() {
            let key = if c == '\n' { Key::Enter } else { Key::Text(c) };
            assert_eq!(typed.key(&key), None);
        }
    }

    fn check(typed: &mut Typed, queued: &[&str], draft: &str) {
        let lines: Vec<String> = std::iter::from_fn(|| typed.next()).collect();
        assert_eq!(lines, queued);
        assert_eq!(typed.take_draft(), draft);
    }

    /// SPEC 3.5a: lines typed while a turn runs wait in their order; what is not done is kept.
    #[test]
    fn lines_wait_in_order() {
        let mut ahead = Typed::default();
        typed(&mut ahead, "one\n\n  \ntwo\nthr");
        check(&mut ahead, &["one", "  two"], "thr");
        typed(&mut ahead, "a \\\nb\n");
        check(&mut ahead, &["a \\\nb"], "");
    }

    /// SPEC 3.5a: the last line can be had back, and what is pasted sends nothing.
    #[test]
    fn back_for_editing() {
        let mut ahead = Typed::default();
        typed(&mut ahead, "one\ntwo\n");
        ahead.key(&Key::Up);
        typed(&mut ahead, "!");
        ahead.key(&Key::Up);
        check(&mut ahead, &["one"], "two!");
        ahead.key(&Key::Pasted("x\ny\n".into()));
        check(&mut ahead, &[], "x\ny\n");
    }

    /// SPEC 8.7: whoever stops a turn is not overrun by what was to come after it.
    #[test]
    fn stopping_holds_back() {
        let mut ahead = Typed::default();
        typed(&mut ahead, "one\ntwo\nthr");
        assert_eq!(ahead.key(&Key::Stop), Some(Wish::Stop));
        ahead.hold_back();
        check(&mut ahead, &[], "one\ntwo\nthr");
        typed(&mut ahead, "x");
        ahead.hold_back();
        check(&mut ahead, &[], "x");
    }

    /// SPEC 3.5a: a line can be told to the model at once; nothing is nothing to tell.
    #[test]
    fn steering() {
        let mut ahead = Typed::default();
        assert_eq!(ahead.key(&Key::AltEnter), None);
        typed(&mut ahead, "in French");
        assert_eq!(ahead.key(&Key::AltEnter), Some(Wish::Steer("in French".into())));
        ahead.put("late".into());
        check(&mut ahead, &["late"], "");
    }

    /// SPEC 12: what waits is bounded; the line that does not fit is not lost.
    #[test]
    fn bounded() {
        let mut ahead = Typed::default();
        for _ in 0..QUEUED_MAX {
            typed(&mut ahead, "x\n");
        }
        typed(&mut ahead, "last\n");
        assert_eq!(ahead.shown(None).queued, QUEUED_MAX);
        assert_eq!(ahead.take_draft(), "last");
    }
}
