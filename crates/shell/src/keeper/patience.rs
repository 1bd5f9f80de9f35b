//! What has to happen though the shell says nothing, and the keys of a person who waits for it.
//!
//! | the shell | keys | after a while |
//! |---|---|---|
//! | reads its start-up files | theirs: one may ask for a password | Ctrl-C gives the waiting command up; a second one, at another command, the shell |
//! | runs a command | the command's | |
//! | has accepted a line, and says something | the shell's: it may ask whether the line is meant so | |
//! | is at its prompt, and does not give what stands in it | | the line is taken away ([`TAKEN_MAX_MS`]) |
//! | is anywhere else | kept for the command, from [`PATIENCE_MS`] on | Ctrl-C gives the command up |
//! | is at its prompt, without a mark | as before | it is asked for the marks ([`super::mend`]) |
//! | has run a command, without a prompt yet | left in the terminal | the command is told as over ([`OVER_GRACE_MS`]) |
//! | has not run one, without a prompt yet | left in the terminal | the same, later: it may put the line back ([`REFUSED_GRACE_MS`]) |

use super::ahead::Taking;
use super::reading::is_secret;
use super::{CTRL_C, KEYS_WAITING_MAX, Keeper};
use crate::live::{End, Ended, Ran};
use crate::phase::{NotRun, Outcome, Phase, Step};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use std::time::{Duration, Instant};

/// How long a typed command may take to begin. A shell that does not react never begins.
const BEGIN_MAX_MS: u64 = 10_000;
/// How long the prompt behind a command is waited for. Hooks of the user's that take longer go on behind ours.
const OVER_GRACE_MS: u64 = 100;
/// The same behind a line that did not run: it may be put back, and would be lost where nobody waits for it.
const REFUSED_GRACE_MS: u64 = 5_000;
/// How long the shell may take to give what stands in its line editor: it may have lost our keys.
const TAKEN_MAX_MS: u64 = 1_000;
/// How long a line that is withdrawn may take to be gone, before it is told as not run all the same.
const WITHDRAWN_GRACE_MS: u64 = 1_000;
/// How long the shell may take over a command before the person's keys are looked at.
const PATIENCE_MS: u64 = 150;
/// So many commands may be given up for start-up files that do not end.
const START_INTERRUPTS_MAX: u32 = 2;
/// How often Ctrl-C is pressed to withdraw a line: one that comes while the shell sets its terminal up is lost.
const WITHDRAW_AGAIN_MS: u64 = 30;
/// The same for a shell that does not seem to mind.
const WITHDRAW_SELDOM_MS: u64 = 1_000;
/// How often it is looked whether the shell is still there, and what it is, while nothing happens.
pub const LOOK_MS: u64 = 500;

impl Keeper {
    /// When something has to happen though nothing did.
    pub(super) fn next_look(&self, now: Instant) -> Instant {
        let after = |at: Instant, wait_ms: u64| at + Duration::from_millis(wait_ms);
        let look = after(now, LOOK_MS);
        let patience = after(self.since, PATIENCE_MS);
        let keys = (self.is_waited_for() && patience > now).then_some(patience);
        [
            self.aside_due(),
            self.phase_due(),
            self.withdraw_due(),
            self.taken_due(),
            self.ask_until(),
            self.interrupt_due(now),
            self.in_front_due(now),
            self.mark_due(),
            self.held_due(),
            keys,
        ]
        .into_iter()
        .flatten()
        .fold(look, Instant::min)
    }

    pub(super) fn look_at_the_clock(&mut self) {
        let now = Instant::now();
        self.shared
            .asks_unseen(self.phase == Phase::Starting && is_secret(&self.terminal));
        let is_due = |due: Option<Instant>| due.is_some_and(|due| now >= due);
        if is_due(self.phase_due()) {
            match self.phase {
                Phase::Typed(_) | Phase::Accepted(_) => self.give_up(NotRun::NoAnswer),
                Phase::Over(outcome) => self.finish(outcome.into()),
                Phase::Withdrawn(why) => self.finish(Ended::NotRun(why)),
                Phase::Starting
                | Phase::Idle
                | Phase::Questioned
                | Phase::Running
                | Phase::Taking(..)
                | Phase::Ahead
                | Phase::Asked => {}
            }
        }
        if is_due(self.question_due()) {
            let said = self.phase.question();
            if said != Step::None {
                self.entered();
                self.act(said);
            }
        }
        if is_due(self.taken_due()) {
            if let Phase::Taking(outcome, _) = self.phase {
                self.finish(outcome.into());
            }
            self.taking = Taking::Lost;
            self.enter(Phase::Withdrawn(NotRun::NoAnswer));
            self.withdraw();
        }
        if is_due(self.withdraw_due()) {
            self.withdraw();
        }
        if is_due(self.mark_due()) {
            self.ask_for_marks();
        }
        self.give_up_asking(now);
        self.interrupt_again();
        if is_due(self.aside_due()) {
            self.tell_aside();
        }
    }

    /// When the command at the shell has had its time in this phase.
    fn phase_due(&self) -> Option<Instant> {
        let wait_ms = match self.phase {
            Phase::Typed(_) | Phase::Accepted(_) => BEGIN_MAX_MS,
            Phase::Over(Outcome::Ran(_) | Outcome::Withdrawn(_)) => OVER_GRACE_MS,
            Phase::Over(Outcome::Refused(_)) => REFUSED_GRACE_MS,
            Phase::Withdrawn(_) => WITHDRAWN_GRACE_MS,
            Phase::Starting
            | Phase::Idle
            | Phase::Questioned
            | Phase::Running
            | Phase::Taking(..)
            | Phase::Ahead
            | Phase::Asked => return None,
        };
        let waits = self.current.is_some();
        waits.then(|| self.since + Duration::from_millis(wait_ms))
    }

    /// When what the shell says of a line is shown, as long as there is any.
    fn question_due(&self) -> Option<Instant> {
        let Phase::Accepted(_) = self.phase else { return None };
        self.current.as_ref()?;
        Some(self.since + Duration::from_millis(PATIENCE_MS))
    }

    /// When the line editor has had its time to give what stands in it.
    fn taken_due(&self) -> Option<Instant> {
        let Phase::Taking(..) = self.phase else { return None };
        Some(self.since + Duration::from_millis(TAKEN_MAX_MS))
    }

    fn withdraw_due(&self) -> Option<Instant> {
        let Phase::Withdrawn(_) = self.phase else { return None };
        let is_slow = self.since.elapsed() > Duration::from_millis(WITHDRAWN_GRACE_MS);
        let again_ms = if is_slow { WITHDRAW_SELDOM_MS } else { WITHDRAW_AGAIN_MS };
        self.withdrawn_at.map(|at| at + Duration::from_millis(again_ms))
    }

    /// Whether somebody waits for a command that does not run yet.
    fn is_waited_for(&self) -> bool {
        match self.phase {
            Phase::Typed(_) | Phase::Accepted(_) | Phase::Withdrawn(_) => self.current.is_some(),
            Phase::Starting | Phase::Idle | Phase::Over(_) | Phase::Taking(..) | Phase::Ahead | Phase::Asked => {
                self.current.is_none() && !self.queue.is_empty()
            }
            Phase::Questioned | Phase::Running => false,
        }
    }

    /// Where keys come from now.
    pub(super) fn keys(&self) -> Option<&OwnedFd> {
        let is_patient = self.since.elapsed() < Duration::from_millis(PATIENCE_MS);
        let looks = match self.phase {
            Phase::Questioned | Phase::Running => true,
            Phase::Starting => self.is_waited_for(),
            Phase::Idle
            | Phase::Typed(_)
            | Phase::Accepted(_)
            | Phase::Over(_)
            | Phase::Taking(..)
            | Phase::Withdrawn(_)
            | Phase::Ahead
            | Phase::Asked => self.is_waited_for() && !is_patient,
        };
        let current = self.current.as_ref().map(|current| &current.typed.relay);
        let relay = current.or_else(|| self.queue.front().map(|typed| &typed.relay));
        let has_room = self.pending.len() < KEYS_WAITING_MAX;
        relay
            .and_then(|relay| relay.keys.as_ref())
            .filter(|_| looks && has_room)
    }

    pub(super) fn take_keys(&mut self) {
        let Some(keys) = self.keys() else { return };
        let mut sources = [PollFd::new(keys, PollFlags::IN)];
        let now = Timespec::default();
        let _ = poll(&mut sources, Some(&now));
        let [source] = &sources;
        if source.revents().is_empty() {
            return;
        }
        let mut pressed = [0; 4096];
        match rustix::io::read(keys, &mut pressed) {
            // The person's terminal has hung up, or is not ours to read from: nothing more comes.
            Ok(0) => self.no_more_keys(),
            Ok(len) => self.pressed(pressed.get(..len).unwrap_or_default()),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
            Err(_) => self.no_more_keys(),
        }
    }

    fn no_more_keys(&mut self) {
        let current = self.current.iter_mut().map(|current| &mut current.typed);
        if let Some(typed) = current.chain(&mut self.queue).next() {
            typed.relay.keys = None;
        }
    }

    fn pressed(&mut self, keys: &[u8]) {
        let gives_up = keys.contains(&CTRL_C);
        match (&self.phase, &mut self.current) {
            (Phase::Running, _) => self.press(keys),
            (Phase::Questioned, Some(current)) if !gives_up => {
                current.ahead.pressed(keys);
                self.pending.extend(keys);
            }
            (Phase::Starting, _) => {
                self.pending.extend(keys);
                if gives_up {
                    self.give_up_starting();
                }
            }
            _ if gives_up => self.give_up(NotRun::GivenUp),
            (_, Some(current)) => current.early.extend(keys),
            (_, None) => {}
        }
    }

    /// The start-up files were interrupted for a command. Those that go on all the same may do so for ever.
    fn give_up_starting(&mut self) {
        self.start_interrupts += 1;
        if self.start_interrupts >= START_INTERRUPTS_MAX {
            self.watched.given_up = Some(End::GivenUp);
        }
        self.give_up(NotRun::Starting);
    }

    /// The command that is waited for is not run.
    fn give_up(&mut self, why: NotRun) {
        if self.current.is_some() {
            self.enter(Phase::Withdrawn(why));
            self.withdraw();
            if why == NotRun::GivenUp {
                self.finish(Ended::NotRun(why));
            }
            return;
        }
        if let Some(typed) = self.queue.pop_front() {
            let _ = typed
                .done
                .send(Ran::nothing(Ended::NotRun(why), self.shared.directory()));
        }
    }
}
