//! Keys that were pressed while a command ran and that no program took.
//!
//! They come back from the terminal's queue ([`super::pause`]), or from a line editor that was faster; whole lines were sent by
//! whoever pressed Enter. What stands in a line editor may come from a program too, so a line counts as sent only where the keys of
//! it were pressed; what else comes back is a draft: nothing runs it by itself.

use super::{Current, Keeper};
use crate::dialect::Dialect;
use crate::live::Ended;
use crate::phase::{NotRun, Outcome, Phase};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::OFlags;
use rustix::termios::{SpecialCodeIndex, tcgetattr};

/// Bytes of keys that are kept of a command: more than can wait on their way to it.
const AHEAD_BYTES_MAX: usize = 256 * 1024;

/// The keys of one command, and what of them came back.
#[derive(Debug, Default)]
pub struct Ahead {
    /// The last that went to it.
    pressed: Vec<u8>,
    /// Lines that no program took, and the beginning of one.
    back: Vec<u8>,
    /// A line that the shell has put back.
    draft: Vec<u8>,
}

/// Whether the line editor gives what stands in it when it is told to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taking {
    /// It does, as far as anybody knows.
    Answered,
    /// It did not: it has lost our keys.
    Lost,
}

/// The keys that change what was typed before them, as a terminal is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Erasing {
    character: u8,
    word: u8,
    line: u8,
}

impl Ahead {
    /// Keys go to the command.
    pub fn pressed(&mut self, keys: &[u8]) {
        self.pressed.extend(keys);
        let over = self.pressed.len().saturating_sub(AHEAD_BYTES_MAX);
        self.pressed.drain(..over);
    }

    /// How many there were.
    pub fn pressed_bytes(&self) -> usize {
        self.pressed.len()
    }

    /// Keys come back; Enter as such, where a program left the terminal raw.
    pub fn handed_back(&mut self, keys: &[u8]) {
        if self.back.len() + keys.len() <= AHEAD_BYTES_MAX {
            let is_enter = |key: &u8| *key == b'\r';
            self.back
                .extend(keys.iter().map(|key| if is_enter(key) { b'\n' } else { *key }));
        }
    }

    /// What was sent, in whole lines, and what was not.
    pub fn told(self, terminal: &OwnedFd) -> (String, String) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (sent, draft) = self.sorted(Erasing::of(terminal));
        (text(&sent), text(&draft))
    }

    fn sorted(mut self, erasing: Erasing) -> (Vec<u8>, Vec<u8>) {
        let end = self.back.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let mut draft = self.back.split_off(end);
        draft.extend(self.draft);
        if has_lines(&erasing.lines_of(&self.pressed), &self.back) {
            return (self.back, draft);
        }
        self.back.extend(draft);
        (Vec::new(), self.back)
    }
}

impl Erasing {
    fn of(terminal: &OwnedFd) -> Self {
        let codes = tcgetattr(terminal).ok().map(|settings| settings.special_codes);
        let code = |index, usual| codes.as_ref().map_or(usual, |codes| codes[index]);
        Self {
            character: code(SpecialCodeIndex::VERASE, 0x7f),
            word: code(SpecialCodeIndex::VWERASE, 0x17),
            line: code(SpecialCodeIndex::VKILL, 0x15),
        }
    }

    /// The lines that a terminal makes of keys; what is behind the last end of a line is none yet.
    fn lines_of(self, keys: &[u8]) -> Vec<u8> {
        let mut lines = Vec::new();
        let mut line: Vec<u8> = Vec::new();
        for key in keys {
            match *key {
                b'\r' | b'\n' => {
                    lines.append(&mut line);
                    lines.push(b'\n');
                }
                // A signal takes the line with it: Ctrl-C, Ctrl-\, Ctrl-Z.
                0x03 | 0x1c | 0x1a => line.clear(),
                key if key == self.line => line.clear(),
                key if key == self.character => {
                    // All bytes of a character: those that go on with one begin with 10.
                    while line.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {}
                }
                key if key == self.word => {
                    let word = line.trim_ascii_end();
                    let kept = word.iter().rposition(|byte| *byte == b' ').map_or(0, |at| at + 1);
                    line.truncate(kept);
                }
                key => line.push(key),
            }
        }
        lines
    }
}

/// Whether these whole lines are among those, one behind the other.
fn has_lines(all: &[u8], lines: &[u8]) -> bool {
    let starts = std::iter::once(0).chain(
        all.iter()
            .enumerate()
            .filter(|(_, byte)| **byte == b'\n')
            .map(|(at, _)| at + 1),
    );
    starts
        .into_iter()
        .any(|at| all.get(at..).is_some_and(|rest| rest.starts_with(lines)))
}

impl Keeper {
    /// The prompt is there: what stands in it is taken first. That may be keys that no program took, or what the shell put there
    /// itself: bash a line that it did not run, the others any (`print -z`, `commandline`). Behind a Ctrl-C of ours it says as well
    /// that the shell reads keys again: one that is still dealing with it would lose the next line.
    pub(super) fn prompted(&mut self, outcome: Outcome) {
        let were_pressed = |current: &Current| !current.ahead.pressed.is_empty();
        let may_be_filled = match (self.dialect, outcome) {
            (Dialect::Zsh | Dialect::Fish, _) | (Dialect::Bash, Outcome::Refused(_) | Outcome::Withdrawn(_)) => true,
            (Dialect::Bash, Outcome::Ran(_)) => self.current.as_ref().is_some_and(were_pressed),
        };
        if may_be_filled && self.taking == Taking::Answered {
            self.enter(Phase::Taking(outcome, Vec::new()));
            self.pending.extend(self.dialect.take());
        } else {
            self.finish(outcome.into());
        }
    }

    /// The line editor is empty again; that stood in it.
    pub(super) fn taken(&mut self, outcome: Outcome, text: Vec<u8>) {
        let is_empty = text.is_empty();
        let ended = match outcome {
            Outcome::Refused(_) if !is_empty => Ended::PutBack,
            Outcome::Ran(_) | Outcome::Refused(_) | Outcome::Withdrawn(_) => outcome.into(),
        };
        if let Some(current) = &mut self.current {
            match outcome {
                // A fish has whole lines in it as well.
                Outcome::Ran(_) => current.ahead.handed_back(&text),
                Outcome::Refused(_) => current.ahead.draft = text,
                Outcome::Withdrawn(_) => {}
            }
        }
        self.finish(ended);
    }
}

/// Whether there is something to read, waiting for it that long; less than a second.
pub fn comes_up(end: &OwnedFd, wait_ms: i64) -> bool {
    let wait = Timespec {
        tv_sec: 0,
        tv_nsec: wait_ms * 1_000_000,
    };
    let mut sources = [PollFd::new(end, PollFlags::IN)];
    let _ = poll(&mut sources, Some(&wait));
    sources.iter().any(|source| source.revents().contains(PollFlags::IN))
}

/// Reading from it waits for nothing.
pub fn nonblocking(end: impl AsFd) -> rustix::io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(&end)?;
    rustix::fs::fcntl_setfl(&end, flags | OFlags::NONBLOCK)
}

impl From<Outcome> for Ended {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Ran(status) | Outcome::Refused(Some(status)) => Self::Exited(status),
            Outcome::Refused(None) => Self::NotRun(NotRun::Malformed),
            Outcome::Withdrawn(why) => Self::NotRun(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: Erasing = Erasing {
        character: 0x7f,
        word: 0x17,
        line: 0x15,
    };

    /// SPEC 8.2, 8.8: a line is sent by itself only where its keys were pressed: who knows the secret of the marks can put lines
    /// before a person's eyes, not run them.
    #[test]
    fn only_what_was_pressed_is_sent() {
        let check = |pressed: &str, lines: &str, sent: &str, draft: &str| {
            let mut ahead = Ahead::default();
            ahead.pressed(pressed.as_bytes());
            ahead.handed_back(lines.as_bytes());
            ahead.handed_back(b"part");
            let (found, left) = ahead.sorted(USUAL);
            assert_eq!(String::from_utf8_lossy(&found), sent, "{pressed:?} {lines:?}");
            assert_eq!(
                String::from_utf8_lossy(&left),
                format!("{draft}part"),
                "{pressed:?} {lines:?}"
            );
        };
        check("", "", "", "");
        check("for it\recho ahead\rpart", "echo ahead\n", "echo ahead\n", "");
        check("a\rb\rc\r", "b\nc\n", "b\nc\n", "");
        check("", "rm -rf x\n", "", "rm -rf x\n");
        check("y\r", "rm -rf x\n", "", "rm -rf x\n");
        check("don't rm -rf x\r", "rm -rf x\n", "", "rm -rf x\n");
        check("a\rb\rc\r", "a\nc\n", "", "a\nc\n");
        check("echo unsent", "echo unsent\n", "", "echo unsent\n");
        check("lx\x7fs\r", "ls\n", "ls\n", "");
        check("é\x7fa b c\x17d\r", "a b d\n", "a b d\n", "");
        check("no\x15yes\r", "yes\n", "yes\n", "");
        check("no\x03yes\r", "yes\n", "yes\n", "");
        check("ls\r", "ls\r", "ls\n", "");
    }
}
