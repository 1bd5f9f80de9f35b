//! Hidden lines: what the shell is asked between two commands, by a key of ours that no history and no `$?` takes note of.

use super::{Asked, Keeper};
use crate::dialect::{ANSWER, ASK};
use crate::live::ANSWER_BYTES_MAX;
use crate::phase::{NotRun, Phase};
use std::fs::File;
use std::io::{self, Read as _};
use std::time::Instant;

impl Keeper {
    /// Asks the next, if the shell waits and no command does. Whoever asks while a command runs is told so at once.
    pub(super) fn ask_next(&mut self) {
        if self.phase == Phase::Running {
            self.asks.drain(..).for_each(not_answered);
        }
        if self.phase != Phase::Idle || self.current.is_some() || !self.queue.is_empty() {
            return;
        }
        while !self.asks.is_empty() {
            let asked = self.asks.remove(0);
            if asked.done.is_closed() || std::fs::write(self.folder.path().join(ASK), &asked.line).is_err() {
                not_answered(asked);
                continue;
            }
            self.pending.extend(self.dialect.ask());
            self.enter(Phase::Asked);
            self.asking = Some(asked);
            return;
        }
    }

    /// The hidden line was run.
    pub(super) fn answered(&mut self) {
        if let Some(asked) = self.asking.take() {
            // Whoever does not wait any more has no use for it.
            let _ = asked.done.send(self.answer().ok());
        }
    }

    fn answer(&self) -> io::Result<Vec<u8>> {
        let mut answer = Vec::new();
        let file = File::open(self.folder.path().join(ANSWER))?;
        file.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
        Ok(answer)
    }

    /// Gives up what takes too long. A shell that is still at it, or has lost our key, is brought back to its prompt.
    pub(super) fn give_up_asking(&mut self, now: Instant) {
        let late: Vec<Asked> = self.asks.extract_if(.., |asked| now >= asked.until).collect();
        late.into_iter().for_each(not_answered);
        if let Some(asked) = self.asking.take_if(|asked| now >= asked.until) {
            not_answered(asked);
            self.enter(Phase::Withdrawn(NotRun::NoAnswer));
            self.withdraw();
        }
    }

    /// When the first of them is given up.
    pub(super) fn ask_until(&self) -> Option<Instant> {
        self.asks.iter().chain(&self.asking).map(|asked| asked.until).min()
    }
}

fn not_answered(asked: Asked) {
    let _ = asked.done.send(None);
}
