//! Whether a program reads the shell's terminal just now.
//!
//! No terminal tells of a reader that waits; the system does, of processes that are the user's own: which call each of them is in.
//! Where it does not, nobody is taken for a reader.

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
/// The name by which any program opens the terminal it has.
const OWN_TERMINAL: &str = "/dev/tty";

/// What somebody waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Nobody does, or a password is asked for: no key that was pressed before that is meant for it.
    Nothing,
    /// For a line.
    Line,
    /// For keys, as they are.
    Keys,
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
        (true, true) if is_read(terminal, group, shell) => Reading::Line,
        (true, true) => Reading::Nothing,
    }
}

/// Whether what is typed there is not shown, as a password.
pub fn is_secret(terminal: &OwnedFd) -> bool {
    let modes = tcgetattr(terminal).map(|settings| settings.local_modes);
    modes.is_ok_and(|modes| modes.contains(LocalModes::ICANON) && !modes.contains(LocalModes::ECHO))
}

/// By that name our own hooks in the shell look for lines that nobody took: the shell reads by the other one only.
fn is_read(terminal: &OwnedFd, group: Pid, shell: Pid) -> bool {
    let Ok(name) = rustix::pty::ptsname(terminal, Vec::new()) else {
        return false;
    };
    let name = Path::new(OsStr::from_bytes(name.as_bytes()));
    // Most often it is the first of the group.
    let reads =
        |id: Pid| read_by(id).is_some_and(|file| file == name || (id != shell && file == Path::new(OWN_TERMINAL)));
    reads(group) || processes::of_group(group).into_iter().any(reads)
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
