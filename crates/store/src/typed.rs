//! What was typed: of the lines that a store finds, newest first, those that are given (see [`crate::Store::typed`]).

use crate::{TYPED_BYTES_MAX, TYPED_CHARS_MAX, TypedLine};
use std::collections::HashSet;

/// Lines a store looks at for each that is asked for: people repeat themselves, but nobody waits for all they ever typed.
const LOOKED_AT_PER_LINE: usize = 8;

/// Takes lines until there are enough of them.
pub(crate) struct Gathered {
    lines: Vec<TypedLine>,
    known: HashSet<String>,
    lines_max: usize,
    bytes: usize,
    looked_at: usize,
}

impl Gathered {
    /// None yet.
    pub(crate) fn new(lines_max: usize) -> Self {
        Self {
            lines: Vec::new(),
            known: HashSet::new(),
            lines_max,
            bytes: 0,
            looked_at: 0,
        }
    }

    /// True once no more lines are wanted.
    pub(crate) fn is_full(&self) -> bool {
        self.lines.len() >= self.lines_max
            || self.bytes >= TYPED_BYTES_MAX
            || self.looked_at >= self.lines_max.saturating_mul(LOOKED_AT_PER_LINE)
    }

    /// The next older line is not wanted.
    pub(crate) fn pass_over(&mut self) {
        self.looked_at += 1;
    }

    /// Looks at the next older line; `make` is called for one that is taken.
    pub(crate) fn look_at(&mut self, text: &str, make: impl FnOnce(String) -> TypedLine) {
        self.pass_over();
        // Whoever begins a line with a space does not want to see it again.
        let is_line = !text.trim().is_empty() && !text.starts_with(' ') && text.chars().nth(TYPED_CHARS_MAX).is_none();
        if self.is_full() || !is_line || self.known.contains(text) {
            return;
        }
        if self.bytes.saturating_add(text.len()) > TYPED_BYTES_MAX {
            // The end: older lines that happen to be short would be a history with holes.
            self.bytes = TYPED_BYTES_MAX;
            return;
        }
        self.bytes += text.len();
        self.known.insert(text.to_owned());
        self.lines.push(make(text.to_owned()));
    }

    /// What was taken, the newest first.
    pub(crate) fn into_lines(self) -> Vec<TypedLine> {
        self.lines
    }
}
