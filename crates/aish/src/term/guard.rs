//! The terminal is given back as it was found (SPEC 8.7): at a normal end, while unwinding, and on signals.
//!
//! A [`Guard`] remembers the terminal's settings at start. `TERM`, `HUP` and `QUIT` restore them and ask the program to
//! leave ([`Guard::leaving`]); a program that does not within a grace period is ended with 128 + n all the same. `TSTP`
//! gives the terminal back while aish is stopped and takes it again afterwards; where nobody could continue aish it does nothing.
//! Signals that end a program at once, those of its own faults too, are about [`struck`].

mod struck;

use super::tty::{is_foreground, is_foreground_of};
use super::{footer, job};
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::termios::{InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
use signal_hook::consts::signal::{SIGHUP, SIGQUIT, SIGTERM, SIGTSTP};
use signal_hook::iterator::{Handle, Signals};
use signal_hook::low_level;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// How long the program may take to leave after a signal told it to: it ends its children and writes what it knows.
const LEAVE_MS_MAX: u64 = 2_000;
/// What is added to a signal's number to make the exit status shells expect.
const SIGNAL_STATUS_BASE: i32 = 128;
/// Stands for no key in a terminal's settings (`_POSIX_VDISABLE` of Linux).
const DISABLED_KEY: u8 = 0;
/// Ends every style, should one have been left on.
const STYLES_OFF: &str = "\x1b[0m";
/// Ends what a line editor that was struck down has switched on: styles, the marking of pastes, a hidden cursor.
const EDITOR_OFF: &str = "\x1b[0m\x1b[?2004l\x1b[?25h";

/// Gives up a sequence that was begun, and leaves the screen of a program that has all of it.
const FULL_SCREEN_OFF: &str = "\x18\x1b[?1049l";
/// Ends what programs change most: reports of the mouse, keys of their own, characters for drawing, a part that scrolls.
const PROGRAM_OFF: &str = "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1l\x1b>\x0f\x1b(B\x1b7\x1b[r\x1b8";

/// The status to leave with; `None` while nobody asked.
pub type Leaving = watch::Receiver<Option<u8>>;

/// Gives the terminal back.
pub struct Guard {
    found: Arc<Found>,
    leave: watch::Sender<Option<u8>>,
    signals: Handle,
}

/// Whether a program has the whole screen of the terminal that was lent to it: said for the case that aish is struck down meanwhile.
#[derive(Clone)]
pub struct WholeScreen(Arc<Found>);

impl WholeScreen {
    /// From now on a program has it.
    pub fn begins(&self) {
        self.0.has_whole_screen.store(true, Ordering::Relaxed);
    }

    /// It has it no more.
    pub fn ended(&self) {
        self.0.has_whole_screen.store(false, Ordering::Relaxed);
    }
}

/// How the terminal was found.
struct Found {
    terminal: Option<(OwnedFd, Termios)>,
    /// Our process group.
    group: i32,
    /// A command has all of the screen.
    has_whole_screen: AtomicBool,
    /// A line of ours is below the stream.
    has_footer: AtomicBool,
    /// A signal told the program to leave: nothing but the settings that were found is put back from now on.
    is_left: AtomicBool,
}

impl Guard {
    /// Remembers the terminal on standard input, if it is one, and watches the signals. To be called while the process has one
    /// thread only: a signal that comes meanwhile waits for this thread, and another one would let it go by.
    ///
    /// # Errors
    /// Signals cannot be watched.
    pub fn install() -> io::Result<Self> {
        Self::of_terminal(rustix::stdio::stdin())
    }

    fn of_terminal(fd: impl rustix::fd::AsFd) -> io::Result<Self> {
        let terminal = match tcgetattr(&fd) {
            Ok(settings) => Some((fd.as_fd().try_clone_to_owned()?, settings)),
            Err(_) => None,
        };
        let found = Arc::new(Found {
            terminal,
            group: job::own_group(),
            has_whole_screen: AtomicBool::new(false),
            has_footer: AtomicBool::new(false),
            is_left: AtomicBool::new(false),
        });
        struck::watch(&found)?;
        let (leave, _) = watch::channel(None);
        let mut signals = watched_signals()?;
        let handle = signals.handle();
        let (watched, leaver) = (Arc::clone(&found), leave.clone());
        // A thread, not a task: a runtime that is stuck in a write must not keep the terminal.
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            for signal in signals.forever() {
                if signal == SIGTSTP {
                    watched.stop();
                } else {
                    watched.leave(&leaver, signal);
                }
            }
        })?;
        Ok(Self {
            found,
            leave,
            signals: handle,
        })
    }

    /// Turns `Some(status)` when a signal told the program to leave.
    pub fn leaving(&self) -> Leaving {
        self.leave.subscribe()
    }

    /// Until the result is dropped, keys pressed do not end up in the text of a turn: they wait, as they are (Enter and
    /// Ctrl-D included), for whoever reads next. Ctrl-C and Ctrl-Z keep working.
    pub fn quiet(&self) -> Quiet {
        let before = self.before();
        if let Some((terminal, settings)) = &self.found.terminal
            && is_foreground(terminal)
        {
            let mut quiet = settings.clone();
            quiet
                .local_modes
                .remove(LocalModes::ECHO | LocalModes::ECHONL | LocalModes::ICANON);
            // As at the prompt of any shell, Ctrl-\ ends nothing.
            quiet.special_codes[SpecialCodeIndex::VQUIT] = DISABLED_KEY;
            // A signal must not throw away what is being drawn, nor what was typed before it.
            quiet.local_modes |= LocalModes::ISIG | LocalModes::NOFLSH;
            quiet.input_modes.remove(InputModes::ICRNL | InputModes::INLCR);
            // A terminal that refuses echoes: ugly, not wrong.
            let _ = tcsetattr(terminal, OptionalActions::Now, &quiet);
        }
        before
    }

    /// Until the result is dropped, every byte comes through as it is, Ctrl-C and Ctrl-Z too, in both directions: for a program
    /// that has a terminal of its own, to which this one is passed on.
    pub fn raw(&self) -> Quiet {
        let before = self.before();
        if let Some((terminal, settings)) = &self.found.terminal
            && is_foreground(terminal)
        {
            let mut raw = settings.clone();
            raw.make_raw();
            let _ = tcsetattr(terminal, OptionalActions::Now, &raw);
        }
        before
    }

    /// Until the result is dropped the terminal is as it was found: for a program that is started on it.
    pub fn as_found(&self) -> Quiet {
        let before = self.before();
        self.found.restore();
        before
    }

    /// To be told whether a command has the whole screen.
    pub fn whole_screen(&self) -> WholeScreen {
        WholeScreen(Arc::clone(&self.found))
    }

    /// From now on a line is drawn below the stream and pastes are bracketed: that is taken back with the settings.
    pub fn footer_begins(&self) {
        self.found.has_footer.store(true, Ordering::Relaxed);
    }

    /// That was taken back.
    pub fn footer_ended(&self) {
        self.found.has_footer.store(false, Ordering::Relaxed);
    }

    /// The terminal as it is now, to be put back.
    fn before(&self) -> Quiet {
        let now = self
            .found
            .terminal
            .as_ref()
            .and_then(|(terminal, _)| tcgetattr(terminal).ok());
        Quiet {
            found: Arc::clone(&self.found),
            before: now,
        }
    }

    /// Puts the settings back.
    pub fn restore(&self) {
        self.found.restore();
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.signals.close();
        self.found.restore();
    }
}

/// While it lives the terminal is as was said; then it is as it was before, which may be quiet as well.
pub struct Quiet {
    found: Arc<Found>,
    before: Option<Termios>,
}

impl Drop for Quiet {
    fn drop(&mut self) {
        if self.found.is_left.load(Ordering::Relaxed) {
            return self.found.restore();
        }
        if let (Some((terminal, _)), Some(before)) = (&self.found.terminal, &self.before)
            && is_foreground(terminal)
        {
            let _ = tcsetattr(terminal, OptionalActions::Now, before);
        }
    }
}

impl Found {
    fn restore(&self) {
        if let Some((terminal, settings)) = &self.terminal
            && is_foreground(terminal)
        {
            if self.has_footer.swap(false, Ordering::Relaxed) {
                self.tell(terminal, footer::GONE);
            }
            let _ = tcsetattr(terminal, OptionalActions::Now, settings);
        }
    }

    /// The process is about to die, wherever it is now: gives the terminal back by system calls alone.
    fn struck(&self) {
        if let Some((terminal, settings)) = &self.terminal
            && is_foreground_of(terminal, self.group)
        {
            if self.has_footer.load(Ordering::Relaxed) {
                self.tell(terminal, footer::GONE);
            }
            if self.has_whole_screen.load(Ordering::Relaxed) {
                self.tell(terminal, FULL_SCREEN_OFF);
            }
            self.tell(terminal, PROGRAM_OFF);
            self.tell(terminal, EDITOR_OFF);
            let _ = tcsetattr(terminal, OptionalActions::Now, settings);
        }
    }

    /// The thread that edits a line will not: it waits for a key that nobody presses any more.
    fn end_editor(&self) {
        if let Some((terminal, _)) = &self.terminal
            && is_foreground(terminal)
        {
            self.tell(terminal, EDITOR_OFF);
        }
    }

    /// Writes to the terminal, unless it stands still: nothing may wait for it here.
    fn tell(&self, terminal: &OwnedFd, text: &str) {
        let mut fds = [PollFd::new(terminal, PollFlags::OUT)];
        if matches!(poll(&mut fds, Some(&Timespec::default())), Ok(1..)) {
            let _ = rustix::io::write(terminal, text.as_bytes());
        }
    }

    /// Gives the terminal back, then asks the program to leave: whoever ends it must find that done.
    fn leave(&self, leave: &watch::Sender<Option<u8>>, signal: i32) {
        let status = SIGNAL_STATUS_BASE + signal;
        // A terminal that goes away often sends two signals at once: the first decides, and its time runs already.
        if leave.borrow().is_some() {
            return;
        }
        die_in_the_end(status);
        self.is_left.store(true, Ordering::Relaxed);
        self.restore();
        self.end_editor();
        leave.send_replace(Some(u8::try_from(status).unwrap_or(u8::MAX)));
    }

    /// As the terminal's stop key wants it: stopped, with the terminal as the shell expects it; then on as before.
    fn stop(&self) {
        if !job::can_be_continued() {
            return;
        }
        let during = self
            .terminal
            .as_ref()
            .and_then(|(terminal, _)| tcgetattr(terminal).ok());
        self.restore();
        if let Some((terminal, _)) = &self.terminal {
            self.tell(terminal, STYLES_OFF);
        }
        let _ = low_level::emulate_default_handler(SIGTSTP);
        if let (Some((terminal, _)), Some(during)) = (&self.terminal, during)
            && is_foreground(terminal)
        {
            let _ = tcsetattr(terminal, OptionalActions::Now, &during);
        }
    }
}

/// The signals, watched from now on. Between a handler's beginning to be called and its knowing what to do the library loses one
/// that comes; so they are held back meanwhile.
fn watched_signals() -> io::Result<Signals> {
    let held: SigSet = [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGTSTP]
        .into_iter()
        .collect();
    let before = held.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
    let signals = Signals::new([SIGTERM, SIGHUP, SIGQUIT, SIGTSTP]);
    before.thread_set_mask()?;
    signals
}

/// Ends the process with that status if it has not ended by itself in time.
fn die_in_the_end(status: i32) {
    let spawned = std::thread::Builder::new().name("leave".to_owned()).spawn(move || {
        std::thread::sleep(Duration::from_millis(LEAVE_MS_MAX));
        low_level::exit(status);
    });
    if spawned.is_err() {
        low_level::exit(status);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// SPEC 8.7: without a terminal there is nothing to give back, and nothing fails.
    #[test]
    fn no_terminal() {
        let file = tempfile::tempfile().unwrap();
        let guard = Guard::of_terminal(&file).unwrap();
        drop(guard.quiet());
        assert_eq!(*guard.leaving().borrow(), None);
    }
}
