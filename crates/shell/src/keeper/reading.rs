//! Whether a program reads the shell's terminal just now.
//!
//! No terminal tells of a reader that waits; the system does, of processes that are the user's own: which call each of them is in.
//! Where it does not, nobody is taken for a reader.
//!
//! How a terminal is set and who reads it are two looks, and between them a program may have put echo off, or a shell have begun
//! its line editor. So a [`Reader`] of lines is one for certain only where it is seen again, in the very same call.

use crate::processes;
use rustix::fd::OwnedFd;
use rustix::process::Pid;
use rustix::termios::{LocalModes, tcgetattr, tcgetpgrp};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// The number of the call that reads, as the system counts calls on this machine.
#[cfg(target_arch = "x86_64")]
const READ_CALL: u64 = 0;
#[cfg(any(target_arch = "aarch64", target_arch = "riscv64"))]
const READ_CALL: u64 = 63;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
const READ_CALL: u64 = u64::MAX;
/// How the line of a process's state begins that counts its sleeps.
const SLEEPS: &str = "voluntary_ctxt_switches:";
/// The name by which any program opens the terminal it has.
const OWN_TERMINAL: &str = "/dev/tty";

/// What somebody waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Nobody does, or a password is asked for: no key that was pressed before that is meant for it.
    Nothing,
    /// For a line, if it is the reader that was seen at the last look as well.
    Line(Reader),
    /// For keys, as they are.
    Keys,
}

/// A process in a call that reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reader {
    id: Pid,
    /// How often it has gone to sleep: one that is told so of it twice has not been awake between.
    sleeps: u64,
}

/// What the program that has the terminal waits for. The line editor of a shell does not count.
pub fn of(terminal: &OwnedFd, shell: Pid) -> Reading {
    let (Ok(settings), Ok(group)) = (tcgetattr(terminal), tcgetpgrp(terminal)) else {
        return Reading::Nothing;
    };
    let modes = settings.local_modes;
    match (modes.contains(LocalModes::ICANON), modes.contains(LocalModes::ECHO)) {
        (false, _) if group == shell => Reading::Nothing,
        (false, _) => Reading::Keys,
        (true, false) => Reading::Nothing,
        (true, true) => reader(terminal, group).map_or(Reading::Nothing, Reading::Line),
    }
}

/// Whether what is typed there is not shown, as a password.
pub fn is_secret(terminal: &OwnedFd) -> bool {
    let modes = tcgetattr(terminal).map(|settings| settings.local_modes);
    modes.is_ok_and(|modes| modes.contains(LocalModes::ICANON) && !modes.contains(LocalModes::ECHO))
}

/// Whether who reads there gets each key at once, as a line editor does, and not whole lines.
pub fn gives_each_key(terminal: &OwnedFd) -> bool {
    let modes = tcgetattr(terminal).map(|settings| settings.local_modes);
    modes.is_ok_and(|modes| !modes.contains(LocalModes::ICANON))
}

/// Whoever of the group reads the terminal, by either of its names.
fn reader(terminal: &OwnedFd, group: Pid) -> Option<Reader> {
    let name = rustix::pty::ptsname(terminal, Vec::new()).ok()?;
    let name = Path::new(OsStr::from_bytes(name.as_bytes()));
    let reader = |id: Pid| {
        let file = read_by(id)?;
        let is_terminal = file == name || file == Path::new(OWN_TERMINAL);
        // Counted last: what was seen before is true of the sleep that is counted.
        is_terminal.then_some(Reader {
            id,
            sleeps: sleeps(id)?,
        })
    };
    // Most often it is the first of the group.
    reader(group).or_else(|| processes::of_group(group).into_iter().find_map(reader))
}

/// How often a process has gone to sleep.
fn sleeps(id: Pid) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", id.as_raw_nonzero())).ok()?;
    let count = status.lines().find_map(|line| line.strip_prefix(SLEEPS))?;
    count.trim().parse().ok()
}

/// The file that a process reads just now.
fn read_by(id: Pid) -> Option<std::path::PathBuf> {
    let id = id.as_raw_nonzero();
    let call = fs::read_to_string(format!("/proc/{id}/syscall")).ok()?;
    let mut fields = call.split_whitespace();
    if fields.next()?.parse() != Ok(READ_CALL) {
        return None;
    }
    let descriptor = u64::from_str_radix(fields.next()?.strip_prefix("0x")?, 16).ok()?;
    fs::read_link(format!("/proc/{id}/fd/{descriptor}")).ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    /// SPEC 8.2: who waits for a line is the same reader as long as it waits, and another one behind the line it was given.
    #[test]
    fn readers() {
        let (pty, end) = pty_process::blocking::open().unwrap();
        let mut child = pty_process::blocking::Command::new("cat").spawn(end).unwrap();
        let terminal: OwnedFd = pty.into();
        let until = Instant::now() + Duration::from_secs(60);
        let reading_but = |before: Reading| {
            loop {
                let reading = of(&terminal, rustix::process::getpid());
                if matches!(reading, Reading::Line(_)) && reading != before {
                    return reading;
                }
                assert!(Instant::now() < until, "{reading:?} behind {before:?}");
                std::thread::yield_now();
            }
        };
        let first = reading_but(Reading::Nothing);
        assert_eq!(of(&terminal, rustix::process::getpid()), first);
        rustix::io::write(&terminal, b"line\r").unwrap();
        reading_but(first);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
