//! What becomes of the shell's own process: somebody stops it (`suspend`), it becomes another program by `exec`, or it has not got
//! the terminal that its prompt is said to be on.

use super::patience::LOOK_MS;
use super::reading::gives_each_key;
use super::{Keeper, Next};
use crate::image::{self, Became};
use crate::live::End;
use crate::marks::{Mark, Piece};
use crate::phase::{Phase, Step};
use rustix::process::{Signal, WaitId, WaitIdOptions, kill_process, waitid};
use std::time::{Duration, Instant};

/// How long start-up files may have another program in the shell's place which may become a shell in turn, as `ssh-agent bash`
/// does.
const SETTLES_MS: u64 = 1_000;

/// How often it is looked whether the shell edits a line.
const IN_FRONT_MS: u64 = 10;

/// What is known of the process.
#[derive(Debug)]
pub struct Watched {
    looked_at: Instant,
    /// Since when it is no shell of ours.
    other_since: Option<Instant>,
    /// Why it is ended though it has not ended by itself.
    pub given_up: Option<End>,
    pub stops: Stops,
    prompt: Prompt,
}

/// Whether a prompt was marked while the shell did not edit a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Prompt {
    /// None was.
    Believed,
    /// One was: whoever marked it, keys would go to somebody else.
    Doubted,
}

/// Whether a shell was stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stops {
    /// It was not.
    #[default]
    None,
    /// It was, and goes on.
    Some,
}

impl Watched {
    /// One that was just started.
    pub fn new() -> Self {
        Self {
            looked_at: Instant::now(),
            other_since: None,
            given_up: None,
            stops: Stops::None,
            prompt: Prompt::Believed,
        }
    }
}

impl Keeper {
    /// Looks; to be called before what was written is read.
    pub(super) fn look_at_process(&mut self) -> Next {
        self.continue_stopped();
        if self.watched.given_up.is_some() {
            return Next::Leave;
        }
        let may_become = match self.phase {
            Phase::Starting | Phase::Running => true,
            Phase::Idle
            | Phase::Typed(_)
            | Phase::Accepted(_)
            | Phase::Questioned
            | Phase::Over(_)
            | Phase::Taking(..)
            | Phase::Withdrawn(_)
            | Phase::Ahead
            | Phase::Asked => false,
        };
        let is_due = self.watched.looked_at.elapsed() >= Duration::from_millis(LOOK_MS);
        if !may_become || !(is_due || self.is_in_front()) {
            return Next::GoOn;
        }
        self.watched.looked_at = Instant::now();
        self.has_become(image::became(self.shell(), self.folder.path()))
    }

    /// Whether it is still the shell that was started.
    pub(super) fn is_ours(&self) -> bool {
        image::became(self.shell(), self.folder.path()).is_none()
    }

    /// Whether the shell has the terminal, and no program that it runs.
    pub(super) fn is_in_front(&self) -> bool {
        rustix::termios::tcgetpgrp(&self.terminal) == Ok(self.shell())
    }

    /// Whether that is the prompt behind a command while the shell does not edit a line. One that is typed then would be another
    /// program's, or would be there before the prompt; so the mark waits.
    pub(super) fn is_doubtful(&mut self, piece: &Piece) -> bool {
        let is_over = matches!(self.phase, Phase::Over(_));
        // The shell itself says that the command is over: it was not before, and the prompt is still to come.
        if is_over && matches!(piece, Piece::Mark(Mark::Ended { .. })) && self.is_in_front() {
            self.watched.prompt = Prompt::Believed;
        }
        let ends = is_over && *piece == Piece::Mark(Mark::Ready);
        let is_doubtful = ends && !self.edits();
        if ends {
            self.watched.prompt = if is_doubtful { Prompt::Doubted } else { Prompt::Believed };
        }
        is_doubtful
    }

    /// The prompt that waits to be believed.
    pub(super) fn believed_prompt(&mut self) -> Option<Piece> {
        if self.watched.prompt == Prompt::Believed || !self.edits() {
            return None;
        }
        self.watched.prompt = Prompt::Believed;
        matches!(self.phase, Phase::Over(_)).then_some(Piece::Mark(Mark::Ready))
    }

    /// Whether the shell may be at its line editor, which has set the terminal to give each key. One that has only just got the
    /// terminal back prepares its prompt first.
    fn edits(&self) -> bool {
        self.is_in_front() && gives_each_key(&self.terminal)
    }

    /// When it is looked again whether the shell edits a line.
    pub(super) fn in_front_due(&self, now: Instant) -> Option<Instant> {
        match self.watched.prompt {
            Prompt::Believed => None,
            Prompt::Doubted => Some(now + Duration::from_millis(IN_FRONT_MS)),
        }
    }

    /// Nobody else is there to tell it to go on.
    fn continue_stopped(&mut self) {
        let shell = self.shell();
        let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
        if let Ok(Some(_)) = waitid(WaitId::Pid(shell), options) {
            let _ = kill_process(shell, Signal::CONT);
            self.watched.stops = Stops::Some;
        }
    }

    fn has_become(&mut self, became: Option<Became>) -> Next {
        let Some(became) = became else {
            self.watched.other_since = None;
            return Next::GoOn;
        };
        let since = *self.watched.other_since.get_or_insert_with(Instant::now);
        let is_given_up = match became {
            Became::Shell(_) => true,
            // What a person starts so they want. Of a shell nobody has seen yet nothing else is to be had.
            Became::Program(_) => self.phase == Phase::Starting && since.elapsed() >= Duration::from_millis(SETTLES_MS),
        };
        self.shared.became(became);
        if is_given_up {
            self.watched.given_up = Some(End::Became);
            return Next::Leave;
        }
        Next::GoOn
    }

    /// Shows what a command wrote before the shell became another one: what that says of itself is said again in its place.
    pub(super) fn show_before(&mut self) {
        while let Ok(len @ 1..) = rustix::io::read(&self.terminal, &mut *self.buffer) {
            let bytes = self.buffer.get(..len).unwrap_or_default();
            let end = bytes.iter().position(|byte| *byte == 0x1b).unwrap_or(len);
            let before = bytes.get(..end).unwrap_or_default().to_vec();
            if self.phase == Phase::Running {
                self.act(Step::Show(before));
            }
            if end < len {
                return;
            }
        }
    }
}
