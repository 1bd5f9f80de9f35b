//! What strikes aish down: a fault of its own (a bad address, a stack that is full, an abort), or a signal that nobody expects and
//! whose effect is death. The terminal is given back in the signal's handler, and aish dies of the signal, as whoever started it
//! expects. Against `KILL` nothing helps.
//!
//! A handler is given nothing but the signal's number, so what it needs is in a static; and as it may have interrupted anything, a
//! lock or an allocation included, it makes nothing but system calls.

use super::Found;
use nix::libc::c_int;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, raise, sigaction};
use std::io;
use std::sync::{Arc, OnceLock};

/// Told of a fault, on standard error.
const FAULT: &[u8] = b"\r\n[aish] a fault inside aish ended it; the ledger has everything up to here\r\n";

/// What a program does to itself.
const FAULTS: [Signal; 6] = [
    Signal::SIGSEGV,
    Signal::SIGBUS,
    Signal::SIGABRT,
    Signal::SIGILL,
    Signal::SIGFPE,
    Signal::SIGSYS,
];
/// What comes from outside, and ends whoever does not expect it.
const UNEXPECTED: [Signal; 8] = [
    Signal::SIGTRAP,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGALRM,
    Signal::SIGVTALRM,
    Signal::SIGPROF,
    Signal::SIGXCPU,
    Signal::SIGXFSZ,
];

/// The terminal to give back, as the handler finds it; set once, before there is a handler.
static FOUND: OnceLock<Arc<Found>> = OnceLock::new();

/// From now on the terminal is given back by whatever ends the process; of several calls the first counts.
///
/// # Errors
/// A signal cannot be handled.
pub(super) fn watch(found: &Arc<Found>) -> io::Result<()> {
    if FOUND.set(Arc::clone(found)).is_err() {
        return Ok(());
    }
    FAULTS.into_iter().chain(UNEXPECTED).try_for_each(handle)
}

#[expect(
    unsafe_code,
    reason = "no library offers this for faults: what a handler does must be safe anywhere in the program; this one reads what is \
              set once, and calls the system"
)]
fn handle(signal: Signal) -> io::Result<()> {
    // A stack that is full has no room for a handler: it runs on the one that the language's runtime keeps for that. What it
    // raises again finds the usual effect.
    let flags = SaFlags::SA_ONSTACK | SaFlags::SA_RESETHAND;
    let action = SigAction::new(SigHandler::Handler(struck), flags, SigSet::empty());
    // SAFETY: the handler reads a static that is set by now, and makes system calls.
    let before = unsafe { sigaction(signal, &action) }?;
    if matches!(before.handler(), SigHandler::SigIgn) {
        // Whoever started aish wants it to be ignored.
        // SAFETY: it is what was there before.
        unsafe { sigaction(signal, &before) }?;
    }
    Ok(())
}

extern "C" fn struck(number: c_int) {
    if let Some(found) = FOUND.get() {
        found.struck();
    }
    if FAULTS.iter().any(|fault| *fault as c_int == number) {
        let _ = rustix::io::write(rustix::stdio::stderr(), FAULT);
    }
    if let Ok(signal) = Signal::try_from(number) {
        // It waits until this handler is over, and then ends the process.
        let _ = raise(signal);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use crate::term::guard::Guard;
    use rustix::termios::{LocalModes, tcgetattr};
    use std::io::Read as _;
    use std::os::unix::process::ExitStatusExt as _;

    /// Set for the process that is to run out of stack.
    const STRUCK: &str = "AISH_TEST_STRUCK";

    fn deeper(depth: u64) -> u64 {
        let room = std::hint::black_box([depth; 128]);
        if depth == u64::MAX {
            return 0;
        }
        deeper(depth + 1).wrapping_add(room.iter().sum())
    }

    /// SPEC 8.7, 12: a stack that is full leaves no room for a handler, and the terminal is given back all the same. This test is
    /// what it strikes down as well, in a process of its own on a terminal of its own.
    #[test]
    fn a_full_stack() {
        if std::env::var_os(STRUCK).is_some() {
            let guard = Guard::install().unwrap();
            let _raw = guard.raw();
            let settings = tcgetattr(rustix::stdio::stdin()).unwrap();
            assert!(!settings.local_modes.contains(LocalModes::ECHO), "it is not raw");
            deeper(0);
        }
        let (mut person, terminal) = pty_process::blocking::open().unwrap();
        let before = tcgetattr(&person).unwrap();
        let program = pty_process::blocking::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "term::guard::struck::tests::a_full_stack", "--nocapture"])
            .env(STRUCK, "1");
        let mut process = program.spawn(terminal).unwrap();
        let mut written = Vec::new();
        // The end of a terminal that nobody has open any more is an error.
        let _ = person.read_to_end(&mut written);
        let status = process.wait().unwrap();
        let written = String::from_utf8_lossy(&written);
        assert_eq!(status.signal(), Some(nix::libc::SIGSEGV), "{written}");
        assert!(written.contains("a fault inside aish"), "{written}");
        assert_eq!(tcgetattr(&person).unwrap().local_modes, before.local_modes, "{written}");
    }
}
