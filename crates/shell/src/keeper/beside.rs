//! What is written to the shell's terminal while no command runs: jobs, start-up files, a line editor that draws.

use super::Keeper;
use crate::capture::Capture;
use crate::dialect::Dialect;
use crate::phase::Phase;
use std::time::{Duration, Instant};

/// Quiet after which what a job printed is told, and how long what never is quiet may wait.
const QUIET_MS: u64 = 40;
const ASIDE_MAX_MS: u64 = 1_000;
/// What the line editor of zsh draws a prompt behind: all attributes off, the rest of the screen cleared.
const ZLE_DRAWS: &[u8] = b"\x1b[0m\x1b[27m\x1b[24m\x1b[J";
/// So long what comes behind that is drawn.
const DRAWS_MS: u64 = 50;
/// In the names of what we put into a shell: a line that has it is of no interest to a person, e.g. one of `set -x`.
const OWN_NAMES: &str = "__aish_";

/// What came while no command ran, and was not told yet.
#[derive(Default)]
pub struct Aside {
    text: Capture,
    /// When the first and the last of it came.
    times: Option<(Instant, Instant)>,
    /// When a zsh drew its prompt again, as its user's hooks have it do at any time.
    drawn_at: Option<Instant>,
}

impl Keeper {
    /// What comes while no command runs. While start-up files are read and somebody waits, it is theirs to see at once.
    pub(super) fn beside(&mut self, bytes: &[u8]) {
        if self.phase == Phase::Starting
            && let Some(waiting) = self.queue.front_mut()
        {
            waiting.relay.screen.show(bytes);
            return;
        }
        let now = Instant::now();
        let bytes = match (self.dialect, &self.phase) {
            (Dialect::Zsh, Phase::Idle | Phase::Asked) => self.aside.without_drawing(bytes, now),
            (Dialect::Bash | Dialect::Zsh | Dialect::Fish, _) => bytes,
        };
        self.aside.text.push(bytes);
        self.aside.times = Some((self.aside.times.map_or(now, |(first, _)| first), now));
    }

    /// Tells it, in whole lines.
    pub(super) fn tell_aside(&mut self) {
        self.aside.times = None;
        let aside = std::mem::take(&mut self.aside.text);
        let text = aside.text(self.size);
        let lines: Vec<&str> = text.lines().filter(|line| !line.contains(OWN_NAMES)).collect();
        let mut text = lines.join("\n");
        for keys in [self.dialect.ask(), self.dialect.take()] {
            text = text.replace(&echoed(keys), "");
        }
        if !text.trim().is_empty() {
            (self.beside)(&text);
        }
    }

    /// When it is told. What start-up files print may be a prompt that they take away again: it waits for the end of the files, if
    /// that is soon.
    pub(super) fn aside_due(&self) -> Option<Instant> {
        let (first, last) = self.aside.times?;
        let latest = first + Duration::from_millis(ASIDE_MAX_MS);
        if self.phase == Phase::Starting {
            return Some(latest);
        }
        Some(latest.min(last + Duration::from_millis(QUIET_MS)))
    }
}

impl Aside {
    /// What is not drawn by a line editor.
    fn without_drawing<'a>(&mut self, bytes: &'a [u8], now: Instant) -> &'a [u8] {
        let draws = Duration::from_millis(DRAWS_MS);
        if self.drawn_at.is_some_and(|drawn_at| now < drawn_at + draws) {
            return &[];
        }
        let at = bytes.windows(ZLE_DRAWS.len()).position(|window| window == ZLE_DRAWS);
        self.drawn_at = at.map(|_| now);
        at.and_then(|at| bytes.get(..at)).unwrap_or(bytes)
    }
}

/// Keys as a terminal shows them while no line editor reads: one that was interrupted takes a while to be there again.
fn echoed(keys: &[u8]) -> String {
    String::from_utf8_lossy(keys).replace('\x1b', "^[")
}
