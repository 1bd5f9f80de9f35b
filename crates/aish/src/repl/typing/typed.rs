//! What a person typed ahead: the lines that wait for the end of the turn, and the one that is not done.

use super::draft::Draft;
use super::keys::Key;
use crate::repl::complete::{Behind, Whole};
use crate::repl::editor::face::indicator_of;
use crate::repl::prompt::INDICATOR;
use crate::repl::router::Router;
use crate::term::footer;
use std::collections::VecDeque;

/// Bytes of all the lines that wait; a line that does not fit is dropped, and that is said.
const QUEUED_BYTES_MAX: usize = 1 << 20;
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
    /// Bytes of them: tens of thousands may be pasted, and each is held against the limit.
    queued_bytes: usize,
    /// Says whether Enter ends a line, as it does at the prompt.
    whole: Whole,
    /// Bytes of lines there was no room for.
    dropped_bytes: usize,
}

impl Typed {
    /// Nothing is typed yet.
    pub fn new(whole: Whole) -> Self {
        Self {
            whole,
            ..Self::default()
        }
    }

    /// One key, with what came behind it; what it asks for.
    pub fn key(&mut self, key: &Key, behind: Behind) -> Option<Wish> {
        match key {
            Key::Enter if !self.whole.is_whole(self.draft.text(), behind) => self.insert(&Key::Text('\n')),
            Key::Enter => {
                if !self.is_blank() {
                    let line = self.draft.take();
                    self.put(line);
                }
            }
            Key::AltEnter => {
                return (!self.is_blank()).then(|| Wish::Steer(self.draft.take()));
            }
            Key::Up if self.draft.text().is_empty() => {
                if let Some(last) = self.queued.pop_back() {
                    self.queued_bytes -= last.len();
                    self.draft = Draft::new(last);
                }
            }
            Key::Stop => return Some(Wish::Stop),
            Key::Text(_) | Key::Pasted(_) => self.insert(key),
            Key::Up
            | Key::Backspace
            | Key::Delete
            | Key::DeleteWord
            | Key::DeleteToStart
            | Key::DeleteToEnd
            | Key::Left
            | Key::Right
            | Key::Home
            | Key::End => {
                self.draft.key(key);
            }
        }
        None
    }

    /// A line that could not go where it was sent waits for the end of the turn.
    pub fn put(&mut self, line: String) {
        if self.queued_bytes + line.len() > QUEUED_BYTES_MAX {
            self.dropped_bytes += line.len();
        } else {
            self.queued_bytes += line.len();
            self.queued.push_back(line);
        }
    }

    /// Takes the number of bytes there was no room for.
    pub fn take_dropped(&mut self) -> usize {
        std::mem::take(&mut self.dropped_bytes)
    }

    /// What was stopped takes what was to come after it along: the lines that wait are the person's again, to be edited.
    pub fn hold_back(&mut self) {
        let mut lines: Vec<String> = self.queued.drain(..).collect();
        self.queued_bytes = 0;
        if lines.is_empty() {
            return;
        }
        if !self.is_blank() {
            lines.push(self.draft.take());
        }
        self.draft = Draft::new(lines.join("\n"));
    }

    /// The first line that waits, which goes on waiting.
    pub fn first(&self) -> Option<&str> {
        self.queued.front().map(String::as_str)
    }

    /// Takes the first line that waits.
    pub fn next(&mut self) -> Option<String> {
        let line = self.queued.pop_front()?;
        self.queued_bytes -= line.len();
        Some(line)
    }

    /// Takes the line that is not done.
    pub fn take_draft(&mut self) -> String {
        self.draft.take()
    }

    /// Whether there is a line that is not done.
    pub fn has_draft(&self) -> bool {
        !self.draft.text().is_empty()
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

    /// A key that is text, as much of it as there is room for.
    fn insert(&mut self, key: &Key) {
        self.dropped_bytes += self.draft.key(key);
    }

    fn is_blank(&self) -> bool {
        self.draft.text().trim().is_empty()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::shell::known::Knowledge;
    use aish_shell::route::Corrections;

    fn typed(typed: &mut Typed, text: &str) {
        for c in text.chars() {
            let key = if c == '\n' { Key::Enter } else { Key::Text(c) };
            assert_eq!(typed.key(&key, Behind::Nothing), None);
        }
    }

    fn routed() -> Typed {
        let known = Knowledge::of_bash(["cat", "ls", "echo"]);
        Typed::new(Whole {
            router: Some(Router::new(known, Corrections::default())),
        })
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
        ahead.key(&Key::Up, Behind::Nothing);
        typed(&mut ahead, "!");
        ahead.key(&Key::Up, Behind::Nothing);
        check(&mut ahead, &["one"], "two!");
        ahead.key(&Key::Pasted("x\ny\n".into()), Behind::Nothing);
        check(&mut ahead, &[], "x\ny\n");
    }

    /// SPEC 8.7: whoever stops a turn is not overrun by what was to come after it.
    #[test]
    fn stopping_holds_back() {
        let mut ahead = Typed::default();
        typed(&mut ahead, "one\ntwo\nthr");
        assert_eq!(ahead.key(&Key::Stop, Behind::Nothing), Some(Wish::Stop));
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
        assert_eq!(ahead.key(&Key::AltEnter, Behind::Nothing), None);
        typed(&mut ahead, "in French");
        assert_eq!(
            ahead.key(&Key::AltEnter, Behind::Nothing),
            Some(Wish::Steer("in French".into()))
        );
        ahead.put("late".into());
        check(&mut ahead, &["late"], "");
    }

    /// SPEC 8.9: what is one line at the prompt is one line here: a here-document, a loop, an open quote; a question is what it was.
    #[test]
    fn lines_of_several_rows() {
        let mut ahead = routed();
        let document = "cat <<E\nyou there\nE";
        let block = "for i in 1 2; do\necho $i\ndone";
        typed(
            &mut ahead,
            &format!("{document}\n{block}\necho 'a\nb'\ndon't ask\nls |\n"),
        );
        check(&mut ahead, &[document, block, "echo 'a\nb'", "don't ask"], "ls |\n");
    }

    /// SPEC 8.9: an empty row of a text that came in one piece is a part of it; who waits at one is not held in the line.
    #[test]
    fn empty_rows() {
        let mut ahead = routed();
        for c in "cat <<E\n\nE\n".chars() {
            let key = if c == '\n' { Key::Enter } else { Key::Text(c) };
            ahead.key(&key, Behind::More);
        }
        check(&mut ahead, &["cat <<E\n\nE"], "");
        typed(&mut ahead, "cat <<E\n\n");
        check(&mut ahead, &["cat <<E\n"], "");
    }

    /// SPEC 12: what waits is bounded by its bytes, each line on its own, and what was dropped is known.
    #[test]
    fn bounded() {
        let mut ahead = Typed::default();
        typed(&mut ahead, &"x\n".repeat(1_000));
        assert_eq!((ahead.shown(None).queued, ahead.take_dropped()), (1_000, 0));
        ahead.put("y".repeat(QUEUED_BYTES_MAX - 1_000));
        ahead.put("much".into());
        assert_eq!((ahead.shown(None).queued, ahead.take_dropped()), (1_001, 4));
        ahead.key(&Key::Pasted("z".repeat(2 * QUEUED_BYTES_MAX)), Behind::Nothing);
        assert_eq!(ahead.take_dropped(), QUEUED_BYTES_MAX);
    }
}
