//! Waiting before a request is made again (SPEC 7.6): one line that counts down, the only one this front ever writes twice.

use super::look::{DIM, Look};
use super::render::STATUS_START;
use super::rows::width_of;
use super::{Output, Stream};
use std::time::Duration;

/// Back to the first column, and what stood there is gone from there on.
const REWRITE: (&str, &str) = ("\r", "\x1b[K");

/// Whether a status line may be written over: only where it goes to a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusLine {
    /// It is written once.
    Once,
    /// It is, while it counts down.
    Rewritten,
}

/// `the server is busy: trying again in 3 s (attempt 2)`.
pub fn retry_text(problem: &str, attempt: u32, left: Duration) -> String {
    format!("{problem}: {}", wait_text(attempt, seconds_of(left)))
}

fn wait_text(attempt: u32, seconds: u64) -> String {
    format!("trying again in {seconds} s (attempt {attempt})")
}

/// Begun seconds count: nobody waits for 0 s.
fn seconds_of(left: Duration) -> u64 {
    u64::try_from(left.as_millis().div_ceil(1_000)).unwrap_or(u64::MAX)
}

/// A line that counts down; it stays open.
pub(super) struct Countdown {
    /// What stands before the words that change; one row with them.
    problem: String,
    attempt: u32,
    until: Duration,
    shown_s: u64,
}

impl Countdown {
    /// From `now` on for `wait`. `problem` is safe, one line.
    pub(super) fn new(problem: &str, attempt: u32, now: Duration, wait: Duration) -> Self {
        Self {
            problem: problem.to_owned(),
            attempt,
            until: now + wait,
            shown_s: seconds_of(wait),
        }
    }

    /// Whether it fits one row; one that does not cannot be written over.
    pub(super) fn fits(&self, look: Look) -> bool {
        self.column() <= look.width()
    }

    /// The same without the problem.
    pub(super) fn shortened(self) -> Self {
        Self {
            problem: String::new(),
            ..self
        }
    }

    /// Writes it for the first time.
    pub(super) fn begin(&self, look: Look, out: &mut Output) {
        out.push(Stream::Status, &look.paint(DIM, &self.line()));
    }

    /// When it says something else; `None` once it has nothing more to say.
    pub(super) fn due(&self) -> Option<Duration> {
        let next_s = self.shown_s.checked_sub(1).filter(|next_s| *next_s > 0)?;
        Some(self.until.saturating_sub(Duration::from_secs(next_s)))
    }

    /// Writes it again, if it says something else now.
    pub(super) fn tick(&mut self, now: Duration, look: Look, out: &mut Output) {
        // When the time is up it is tried, not waited: whoever ticks for another reason may come that late.
        let seconds = seconds_of(self.until.saturating_sub(now)).max(1);
        if seconds < self.shown_s {
            self.shown_s = seconds;
            let (start, end) = REWRITE;
            out.push(Stream::Status, start);
            out.push(Stream::Status, &look.paint(DIM, &self.line()));
            out.push(Stream::Status, end);
        }
    }

    /// Columns of the row it stands in.
    pub(super) fn column(&self) -> usize {
        width_of(&self.line())
    }

    fn line(&self) -> String {
        let wait = wait_text(self.attempt, self.shown_s);
        match self.problem.as_str() {
            "" => format!("{STATUS_START}{wait}"),
            problem => format!("{STATUS_START}{problem}: {wait}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::render::Renderer;
    use super::super::{Colour, Form};
    use super::*;
    use aish_core::redact::Redactor;
    use aish_engine::Notice;

    fn look(columns: usize) -> Look {
        Look {
            columns,
            rows: 24,
            colour: Colour::Off,
            form: Form::Framed,
            ..Look::PLAIN
        }
    }

    /// All that is written when a wait of 2.5 s for the second attempt is looked at whenever it wants to be.
    fn waited(columns: usize, status_line: StatusLine, problem: &str) -> String {
        let mut renderer = Renderer::new(look(columns), Redactor::default());
        renderer.set_status_line(status_line);
        let mut out = Output::new();
        let notice = Notice::Retrying {
            attempt: 2,
            wait_ms: 2_500,
            problem: problem.to_owned(),
        };
        renderer.notice(&Notice::Text("half a li".into()), Duration::from_secs(6), &mut out);
        renderer.notice(&notice, Duration::from_secs(7), &mut out);
        while let Some(due) = renderer.tick_due() {
            renderer.tick(due, &mut out);
        }
        renderer.notice(&Notice::Text("ne".into()), Duration::from_secs(10), &mut out);
        renderer.turn_over(&mut out);
        out.text().replace('\r', "␍\n").replace('\x1b', "␛")
    }

    /// SPEC 7.6: the wait is seen to pass, on one line; what comes next has a line of its own.
    #[test]
    fn it_counts_down() {
        insta::assert_snapshot!(waited(80, StatusLine::Rewritten, "429 slow\x1b[2J"), @r"
        half a li
        [aish] 429 slow\x1b[2J: trying again in 3 s (attempt 2)␍
        [aish] 429 slow\x1b[2J: trying again in 2 s (attempt 2)␛[K␍
        [aish] 429 slow\x1b[2J: trying again in 1 s (attempt 2)␛[K
        ne
        ");
    }

    /// SPEC 10.4: a status line that goes to a file is written once.
    #[test]
    fn once_where_nobody_watches() {
        insta::assert_snapshot!(waited(80, StatusLine::Once, "429"), @"
        half a
        [aish] 429: trying again in 3 s (attempt 2)
        line
        ");
    }

    /// A row that is broken cannot be written over: what does not fit stands above.
    #[test]
    fn long_problems() {
        insta::assert_snapshot!(waited(40, StatusLine::Rewritten, "the server is rather busy"), @"
        half a li
        [aish] the server is rather busy
        [aish] trying again in 3 s (attempt 2)␍
        [aish] trying again in 2 s (attempt 2)␛[K␍
        [aish] trying again in 1 s (attempt 2)␛[K
        ne
        ");
    }

    /// A wait that is over as it begins, and one without end, are nothing to wake up for too often.
    #[test]
    fn odd_waits() {
        let at = |wait| Countdown::new("x", 1, Duration::from_secs(5), wait).due();
        assert_eq!(at(Duration::ZERO), None);
        assert_eq!(at(Duration::from_millis(999)), None);
        assert_eq!(at(Duration::from_secs(3)), Some(Duration::from_secs(6)));
        assert!(at(Duration::from_millis(u64::MAX)).is_some());
    }
}
