//! A Ctrl-C that strikes while the shell starts a program.
//!
//! Between two programs of a line the terminal is the shell's, or that of a child that has not become its program yet; a signal
//! that comes in that moment is taken by the shell's own handler and stops nothing: the program that is just being started runs
//! on, in bash alone on a terminal as well. So it is remembered who had the terminal when the key went there, and the program
//! that did not get its signal gets it once.

use super::{CTRL_C, Keeper};
use crate::phase::Phase;
use crate::processes;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use std::time::{Duration, Instant};

/// How often it is looked who has the terminal now.
const LOOK_MS: u64 = 10;
/// After that long a child of the shell that has not become another program is none that will: it is a part of the shell's line.
const BECOMES_MS: u64 = 60;
/// How long a program that is being started may take to have the terminal, on a machine with much else to do.
const STARTS_MS: u64 = 5_000;

/// A Ctrl-C that nobody may have got.
#[derive(Clone, Copy, Debug)]
pub struct Pressed {
    at: Instant,
    /// Never a program that is quite there.
    to: Possessor,
    /// The child that was told by us while it was no other program yet: it may have lost that too.
    told: Option<Pid>,
}

/// Who has the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Possessor {
    /// The shell.
    Shell,
    /// A child of its that is no other program yet.
    Child(Pid),
    /// Another program.
    Program(Pid),
}

impl Keeper {
    /// To be called before keys are written.
    pub(super) fn note_interrupt(&mut self) {
        if self.phase != Phase::Running || !self.pending.contains(&CTRL_C) {
            return;
        }
        // Whoever presses it again was not heard, or is now.
        self.pressed = match self.possessor() {
            None | Some(Possessor::Program(_)) => None,
            Some(to @ (Possessor::Shell | Possessor::Child(_))) => Some(Pressed {
                at: Instant::now(),
                to,
                told: None,
            }),
        };
    }

    /// When it is looked again; `None` where nothing can have been lost.
    pub(super) fn interrupt_due(&self, now: Instant) -> Option<Instant> {
        self.pressed.map(|_| now + Duration::from_millis(LOOK_MS))
    }

    /// Interrupts the program that was being started when Ctrl-C was pressed.
    pub(super) fn interrupt_again(&mut self) {
        let Some(pressed) = self.pressed else { return };
        let waited = pressed.at.elapsed();
        if self.phase != Phase::Running || waited > Duration::from_millis(STARTS_MS) {
            self.pressed = None;
            return;
        }
        // Looked at once: who is told is who was seen there, though another may have the terminal by now.
        let (group, told) = match (self.possessor(), pressed.to) {
            (None | Some(Possessor::Shell), _) => return,
            (Some(Possessor::Child(child)), to) => {
                let is_its = to == Possessor::Shell || to == Possessor::Child(child);
                let is_due = waited > Duration::from_millis(BECOMES_MS) && pressed.told != Some(child);
                if !is_its || !is_due {
                    return;
                }
                (child, Some(child))
            }
            (Some(Possessor::Program(program)), Possessor::Child(child)) if child != program => return,
            (Some(Possessor::Program(program)), _) => (program, None),
        };
        // Once a program is there it cannot be lost any more.
        self.pressed = told.map(|_| Pressed { told, ..pressed });
        // One that has ended meanwhile needs none.
        let _ = kill_process_group(group, Signal::INT);
    }

    /// `None` where nobody can tell.
    fn possessor(&self) -> Option<Possessor> {
        let group = rustix::termios::tcgetpgrp(&self.terminal).ok()?;
        let shell = self.shell();
        // Nobody has it where a program has just ended; the shell takes it next.
        if group == shell || test_kill_process_group(group) == Err(Errno::SRCH) {
            return Some(Possessor::Shell);
        }
        let is_shell = processes::program(group).is_some_and(|program| Some(program) == processes::program(shell));
        Some(if is_shell {
            Possessor::Child(group)
        } else {
            Possessor::Program(group)
        })
    }
}
