//! Keys that were pressed before a command ran, e.g. `vim x`, Enter, `ihello` in one go.
//!
//! In a terminal of its own a shell would leave them where they are, for whoever reads next. Here they wait with the keeper and go
//! to the command once it reads ([`reading`]): written to the shell's terminal at once, a command that reads nothing would have all
//! of them echoed. A key that is pressed while it runs goes behind them. What it has not read comes back.

use super::reading::{self, Reader, Reading};
use super::{CTRL_C, Keeper};
use crate::phase::Phase;
use std::time::{Duration, Instant};

const CTRL_D: u8 = 0x04;
/// How soon it is looked again whether the command reads: at first, behind who was seen to, and behind a line that it was given.
const LOOK_MS: u64 = 5;
/// The same for a command that does not seem to: the pauses double until then.
const LOOK_MS_MAX: u64 = 160;

/// The keys, and when to look whether they are wanted.
#[derive(Debug)]
pub struct Held {
    keys: Vec<u8>,
    next_look: Instant,
    pause_ms: u64,
    /// Who was seen to wait for a line at the last look.
    seen: Option<Reader>,
}

impl Held {
    /// These, to be looked at from now on.
    pub fn new(keys: Vec<u8>, now: Instant) -> Self {
        Self {
            keys,
            next_look: now,
            pause_ms: LOOK_MS,
            seen: None,
        }
    }

    /// Takes all of them.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.keys)
    }

    /// Takes the first line, with its end, or with the end of input.
    fn take_line(&mut self) -> Vec<u8> {
        let end = self.keys.iter().position(|key| matches!(*key, b'\r' | b'\n' | CTRL_D));
        let rest = self.keys.split_off(end.map_or(self.keys.len(), |end| end + 1));
        std::mem::replace(&mut self.keys, rest)
    }

    fn due(&self) -> Option<Instant> {
        let waits = !self.keys.is_empty();
        waits.then_some(self.next_look)
    }

    fn look_in(&mut self, now: Instant, pause_ms: u64) {
        self.next_look = now + Duration::from_millis(pause_ms);
        self.pause_ms = pause_ms;
    }

    /// Nobody read: what is looked at in vain is looked at less often.
    fn not_read(&mut self, now: Instant) {
        self.look_in(now, (self.pause_ms * 2).min(LOOK_MS_MAX));
    }
}

impl Keeper {
    /// When it is to be looked whether the command reads; `None` where no keys wait for that.
    pub(super) fn held_due(&self) -> Option<Instant> {
        let current = self.current.as_ref().filter(|_| self.phase == Phase::Running)?;
        current.held.due()
    }

    /// Gives the command what it reads of the keys that were pressed before it ran.
    pub(super) fn give_held(&mut self, now: Instant) {
        if self.held_due().is_none_or(|due| now < due) {
            return;
        }
        let shell = self.shell();
        let Some(current) = &mut self.current else { return };
        let seen = current.held.seen.take();
        let keys = match reading::of(&self.terminal, shell) {
            Reading::Nothing => return current.held.not_read(now),
            Reading::Line(reader) if seen == Some(reader) => current.held.take_line(),
            // A line in the wrong hands is worse than one that waits: a password prompt would take it for the password.
            Reading::Line(reader) => {
                current.held.seen = Some(reader);
                Vec::new()
            }
            Reading::Keys => current.held.take(),
        };
        current.held.look_in(now, LOOK_MS);
        current.ahead.pressed(&keys);
        self.pending.extend(keys);
    }

    /// Keys are pressed while the command runs: they go to it at once, behind those that are held. Neither who stops it nor who is
    /// asked for a password meant those.
    pub(super) fn press(&mut self, keys: &[u8]) {
        let is_apart = keys.contains(&CTRL_C) || reading::is_secret(&self.terminal);
        let Some(current) = &mut self.current else { return };
        if !is_apart {
            let held = current.held.take();
            current.ahead.pressed(&held);
            self.pending.extend(held);
        }
        current.ahead.pressed(keys);
        self.pending.extend(keys);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 8.2: a program that reads lines is given one at a time: what it does not read is nobody's yet.
    #[test]
    fn line_by_line() {
        let mut held = Held::new(b"one\r\x04two\nthree".to_vec(), Instant::now());
        let lines: Vec<Vec<u8>> = (0..5).map(|_| held.take_line()).collect();
        assert_eq!(
            lines,
            [
                b"one\r".to_vec(),
                b"\x04".to_vec(),
                b"two\n".to_vec(),
                b"three".to_vec(),
                Vec::new()
            ]
        );
        assert_eq!(held.due(), None);
    }
}
