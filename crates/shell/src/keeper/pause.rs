//! The pause behind a command: a shell says that it is over, and reads nothing until it is told to go on.
//!
//! Nobody but the keeper reads the terminal in that time, and nobody writes to it: what no program took comes back whole and in
//! order, and nothing can come behind it. Two readers at once would each have some of the keys, and a line editor that was first
//! would run a line unseen.
//!
//! The shell is told by a pipe in its folder: the number that came with the mark, as a line. A number that nobody waits for any
//! more is passed over.

use super::Keeper;
use super::ahead::{comes_up, nonblocking};
use crate::phase::Phase;
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer};
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
use std::io;
use std::path::Path;

/// The pipe in a shell's folder.
const GO: &str = "go";
/// Bytes that a terminal keeps for who reads lines of it; what is behind them comes up once there is room.
const QUEUE_BYTES: usize = 2048;
/// How long that may take.
const COMES_UP_MS: i64 = 5;
/// What stands in the terminal's queue for the end of input (Ctrl-D).
const END_OF_INPUT: u8 = 0;

/// The pipe by which a shell is told to go on.
pub struct Pause {
    go: OwnedFd,
}

impl Pause {
    /// One in that folder. It is open for reading here as well, so that the shell finds an end to read from at any time.
    pub fn create(folder: &Path) -> io::Result<Self> {
        let path = folder.join(GO);
        rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let go = rustix::fs::open(&path, flags, Mode::empty())?;
        Ok(Self { go })
    }

    /// Whoever waits under that number goes on.
    fn over(&self, number: u32) {
        let line = format!("{number}\n");
        while rustix::io::write(&self.go, line.as_bytes()) == Err(Errno::AGAIN) {
            // It is full of numbers that nobody waits for.
            let mut old = [0; 4096];
            if rustix::io::read(&self.go, &mut old).is_err() {
                return;
            }
        }
    }
}

impl Keeper {
    /// A command is over, as is said under that number.
    pub(super) fn paused(&mut self, number: u32) {
        // Whoever says so while a program has the terminal is that program.
        if matches!(self.phase, Phase::Over(_)) && self.is_in_front() {
            self.take_back_keys();
        }
        self.pause.over(number);
    }

    /// Takes back the keys that no program took, before the shell's line editor reads them as commands.
    fn take_back_keys(&mut self) {
        let pressed_bytes = match &self.current {
            Some(current) if current.ahead.pressed_bytes() == 0 => return,
            Some(current) => current.ahead.pressed_bytes(),
            // It was told as over before, by somebody else: they are nobody's.
            None => 0,
        };
        // The shell's end of the terminal, opened for this only: while it is open the end of the shell does not show.
        let Ok(end) = ioctl_tiocgptpeer(&self.terminal, OpenptFlags::RDWR | OpenptFlags::NOCTTY) else {
            return;
        };
        if nonblocking(&end).is_err() {
            return;
        }
        let settings = tcgetattr(&end).ok();
        let of_lines = settings.filter(|settings| settings.local_modes.contains(LocalModes::ICANON));
        // The beginning of a line too: a prompt that takes its time would come too late with it.
        if let Some(settings) = &of_lines {
            let _ = tcsetattr(&end, OptionalActions::Now, &of_keys(settings));
        }
        let mut keys = Vec::new();
        let mut piece = [0; 4096];
        loop {
            while let Ok(len @ 1..) = rustix::io::read(&end, &mut piece) {
                keys.extend(piece.iter().take(len).filter(|key| **key != END_OF_INPUT));
            }
            if pressed_bytes < QUEUE_BYTES || !comes_up(&end, COMES_UP_MS) {
                break;
            }
        }
        if let Some(settings) = &of_lines {
            let _ = tcsetattr(&end, OptionalActions::Now, settings);
        }
        if let Some(current) = &mut self.current {
            current.ahead.handed_back(&keys);
        }
    }
}

/// The same terminal, which gives each key at once.
fn of_keys(settings: &Termios) -> Termios {
    let mut settings = settings.clone();
    settings.local_modes.remove(LocalModes::ICANON);
    settings.special_codes[SpecialCodeIndex::VMIN] = 1;
    settings.special_codes[SpecialCodeIndex::VTIME] = 0;
    settings
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::io::{BufRead as _, BufReader};

    /// SPEC 8.2: whoever waits finds its number, though nobody read thousands before.
    #[test]
    fn numbers() {
        let folder = tempfile::tempdir().unwrap();
        let pause = Pause::create(folder.path()).unwrap();
        let last = 100_000;
        (1..=last).for_each(|number| pause.over(number));
        let shell = std::fs::File::open(folder.path().join(GO)).unwrap();
        let mut lines = BufReader::new(shell).lines();
        assert!(lines.any(|line| line.unwrap() == last.to_string()));
    }
}
