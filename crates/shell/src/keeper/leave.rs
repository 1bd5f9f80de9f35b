//! The end of a shell: by itself, or hung up as by a terminal that is closed.
//!
//! A shell that is hung up in the moment in which it starts a program does not know of it yet, and the program has not yet
//! forgotten the shell's own handler: the signal is lost, and the program would run for ever with nobody left to see it. So what
//! the line at the shell had just started is hung up after the shell, until it is gone. A job that was let go (`disown`) stays.

use super::ahead::comes_up;
use super::{Keeper, Next};
use crate::live::{End, Ended, Ending, Stage};
use crate::phase::{Phase, Step};
use crate::processes::{self, Process, TICKS_PER_S};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// Between hanging up and killing.
const HANG_UP_GRACE_MS: u64 = 500;
/// How often it is looked whether what was hung up is gone.
const LOOK_MS: u64 = 5;
/// How long what the shell has just started may take to end.
const LEFT_GRACE_MS: u64 = 300;
/// What began no longer ago than this, in ticks, may not have been known to the shell.
const JUST_STARTED_TICKS: u64 = TICKS_PER_S;

/// How a shell that was hung up ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hung {
    /// By itself, after it had hung up its jobs.
    Up,
    /// It did not mind, and was killed.
    Killed,
}

impl Keeper {
    pub(super) fn has_exited(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)) | Err(_))
    }

    /// Takes what the shell still wrote, ends it if it is still there, and tells whoever waits.
    pub(super) fn end(mut self) {
        if !self.has_exited() {
            self.hang_up();
        }
        if self.watched.given_up == Some(End::Became) {
            self.show_before();
        }
        while self.read_rest() {}
        let rest = self.marks.rest();
        if matches!(self.phase, Phase::Running | Phase::Questioned) {
            self.act(Step::Show(rest));
        }
        let stage = match self.phase {
            Phase::Starting => Stage::Starting,
            Phase::Idle
            | Phase::Typed(_)
            | Phase::Accepted(_)
            | Phase::Questioned
            | Phase::Running
            | Phase::Over(_)
            | Phase::Taking(..)
            | Phase::Withdrawn(_)
            | Phase::Ahead
            | Phase::Asked => Stage::Started,
        };
        let by_itself = End::of(self.child.wait());
        let how = self.watched.given_up.unwrap_or(by_itself);
        self.shared.ended(Ending { how, stage });
        self.tell_aside();
        self.finish(Ended::ShellEnded(how));
    }

    fn read_rest(&mut self) -> bool {
        comes_up(&self.terminal, 0) && self.read() == Next::GoOn
    }

    /// As a terminal that is closed does; a shell that does not mind is killed.
    fn hang_up(&mut self) {
        let shell = self.shell();
        let just_now = processes::now_ticks().saturating_sub(JUST_STARTED_TICKS);
        let _ = kill_process(shell, Signal::HUP);
        let since = match hung_up(shell) {
            // It has told its jobs, if it was not in the middle of a line.
            Hung::Up if self.phase == Phase::Idle => return,
            Hung::Up => just_now,
            Hung::Killed => 0,
        };
        end_left(shell, since);
    }
}

/// Waits for the end of a shell that was hung up. It is not reaped yet: its number must be nobody else's.
fn hung_up(shell: Pid) -> Hung {
    let until = Instant::now() + Duration::from_millis(HANG_UP_GRACE_MS);
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    while matches!(waitid(WaitId::Pid(shell), options), Ok(None)) {
        if Instant::now() >= until {
            let _ = kill_process_group(shell, Signal::KILL);
            return Hung::Killed;
        }
        std::thread::sleep(Duration::from_millis(LOOK_MS));
    }
    Hung::Up
}

/// Hangs up what is left of the session, each program once: one that has been another meanwhile has lost it.
fn end_left(shell: Pid, since_ticks: u64) {
    let until = Instant::now() + Duration::from_millis(LEFT_GRACE_MS);
    let mut told: HashSet<Process> = HashSet::new();
    loop {
        let mut left = processes::of_session(shell, since_ticks);
        left.retain(|process| !processes::ignores_hang_up(process.id));
        if left.is_empty() || Instant::now() >= until {
            return;
        }
        for process in left {
            let id = process.id;
            if told.insert(process) {
                processes::hang_up(id);
            }
        }
        std::thread::sleep(Duration::from_millis(LOOK_MS));
    }
}
