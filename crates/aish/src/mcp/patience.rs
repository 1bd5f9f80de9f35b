//! How long a server's question waits for a person: somebody who went away must not keep a call open for ever (SPEC 6.9).

use crate::term::tty::{Line, Person};
use aish_tools::{Cancel, cancelled};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// How long a line is waited for.
const LINE_WAIT_S: u64 = 300;

/// Somebody who is not waited for longer than that, line by line: a long form gets more time than a short one.
pub struct Patient<'a, P>(pub &'a P);

impl<P: Person> Person for Patient<'_, P> {
    /// Fails with [`io::ErrorKind::TimedOut`] where no line came in time.
    async fn ask_line(&self, prompt: String, mut cancel: Cancel) -> io::Result<Line> {
        let (take_back, taken_back) = watch::channel(false);
        let line = self.0.ask_line(prompt, taken_back);
        tokio::pin!(line);
        let is_late = tokio::select! {
            biased;
            line = &mut line => return line,
            () = cancelled(&mut cancel) => false,
            () = tokio::time::sleep(Duration::from_secs(LINE_WAIT_S)) => true,
        };
        take_back.send_replace(true);
        match line.await? {
            Line::Cancelled if is_late => Err(io::ErrorKind::TimedOut.into()),
            line @ (Line::Said(_) | Line::End | Line::Cancelled) => Ok(line),
        }
    }
}

/// Whether the person was there when they were last asked. Somebody who missed one question is not waited for again before they
/// typed something: a server with many questions must not hold its call open for as many waits.
#[derive(Default)]
pub struct Presence(AtomicBool);

impl Presence {
    /// They typed something.
    pub fn seen(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// They did not answer in time.
    pub fn missed(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether they missed a question, and typed nothing since.
    pub fn is_away(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    /// Somebody who says nothing until the question is taken back.
    struct Away;

    impl Person for Away {
        async fn ask_line(&self, _prompt: String, mut cancel: Cancel) -> io::Result<Line> {
            cancelled(&mut cancel).await;
            Ok(Line::Cancelled)
        }
    }

    /// SPEC 6.9: a question waits with a deadline, and no longer.
    #[tokio::test(start_paused = true)]
    async fn a_question_has_a_deadline() {
        let (_canceller, cancel) = watch::channel(false);
        let began = tokio::time::Instant::now();
        let line = Patient(&Away).ask_line("well? ".to_owned(), cancel).await;
        assert_eq!(line.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(began.elapsed().as_secs(), LINE_WAIT_S);
    }

    /// SPEC 6.9: one that is taken back before is not late.
    #[tokio::test(start_paused = true)]
    async fn taken_back() {
        let (canceller, cancel) = watch::channel(false);
        canceller.send_replace(true);
        let line = Patient(&Away).ask_line("well? ".to_owned(), cancel).await;
        assert_eq!(line.unwrap(), Line::Cancelled);
    }

    /// SPEC 6.9: somebody who let one question go by is not waited for again before they typed something.
    #[test]
    fn away_until_something_is_typed() {
        let presence = Presence::default();
        assert!(!presence.is_away());
        presence.missed();
        assert!(presence.is_away());
        presence.seen();
        assert!(!presence.is_away());
    }
}
