//! Keeps what may become a call from being shown.
//!
//! Text goes through until something begins that may be calls; from there on it is held back, until it cannot be calls any
//! more, becomes too long, or the reply ends. It only decides what is shown and when: what is a call is decided at the end,
//! by [`super::find`] over all of the text.

use super::reader::Miss;
use super::{Tools, forms};
use crate::assemble::lines::{Lines, Place};
use std::borrow::Cow;

/// Bytes that are held back.
pub(in crate::assemble) const HELD_BYTES_MAX: usize = 64 << 10;

/// Bytes up to which what is held is looked at with every piece; beyond that, whenever it has doubled.
const LOOK_BYTES: usize = 256;

/// The text that is held back, and where in the reply it stands.
#[derive(Debug, Default)]
pub(in crate::assemble) struct Hold {
    lines: Lines,
    held: String,
    /// Where what is held begins, while it may be calls.
    place: Option<Place>,
    /// How long it must be to be looked at again.
    look_at: usize,
}

impl Hold {
    /// Takes the next piece of text and returns what can be shown.
    pub(in crate::assemble) fn take<'p>(&mut self, text: &'p str, tools: Tools<'_>) -> Cow<'p, str> {
        if self.held.is_empty() {
            let Some((at, place)) = self.lines.next(text, forms::may_begin) else {
                return Cow::Borrowed(text);
            };
            self.place = Some(place);
            self.look_at = 0;
            let (before, rest) = text.split_at_checked(at).unwrap_or((text, ""));
            self.held.push_str(rest);
            let more = self.look(tools);
            return if more.is_empty() {
                Cow::Borrowed(before)
            } else {
                Cow::Owned(format!("{before}{more}"))
            };
        }
        self.held.push_str(text);
        Cow::Owned(self.look(tools))
    }

    /// Ends a block of text, after which another may come, and returns what is held.
    pub(in crate::assemble) fn release(&mut self) -> String {
        let held = self.end();
        self.lines.pass_block(&held);
        held
    }

    /// Ends the text and returns what is held.
    pub(in crate::assemble) fn end(&mut self) -> String {
        self.place = None;
        std::mem::take(&mut self.held)
    }

    /// What of the held text can be shown.
    fn look(&mut self, tools: Tools<'_>) -> String {
        let mut shown = String::new();
        while let Some(place) = self.place {
            if self.held.len() < self.look_at {
                break;
            }
            let is_short = self.held.len() <= HELD_BYTES_MAX;
            match forms::read(&self.held, place, tools) {
                Ok(_) | Err(Miss::NotYet) if is_short => {
                    self.look_at = if self.held.len() < LOOK_BYTES {
                        0
                    } else {
                        self.held.len() * 2
                    };
                    break;
                }
                Ok(_) | Err(Miss::NotYet | Miss::Never) => self.pass(&mut shown),
            }
        }
        shown
    }

    /// Shows the letter that began nothing, and the text up to the next beginning.
    fn pass(&mut self, shown: &mut String) {
        let letter = self.held.chars().next().map_or(0, char::len_utf8);
        let rest = self.held.split_off(letter);
        self.held.bytes().for_each(|byte| self.lines.pass(byte));
        shown.push_str(&self.held);
        self.held = rest;
        let next = self.lines.next(&self.held, forms::may_begin);
        self.place = next.map(|(_, place)| place);
        self.look_at = 0;
        let rest = self.held.split_off(next.map_or(self.held.len(), |(at, _)| at));
        shown.push_str(&std::mem::replace(&mut self.held, rest));
    }
}
