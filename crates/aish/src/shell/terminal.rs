//! The person's terminal, lent to a command: raw while it lasts, its size followed, given back as it was.
//!
//! The command runs on the shell's own terminal, which makes Ctrl-C a signal and a line of what is typed; the person's one only
//! passes bytes on. What a program leaves behind on it, e.g. when it is killed, is undone.

use crate::term::guard::{Guard, Quiet};
use crate::term::screen::write_all;
use aish_shell::{Modes, Relay, Screen, Size};
use rustix::fd::{AsFd as _, OwnedFd};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A terminal that is lent. Dropping it takes it back.
pub struct Lent {
    keys: OwnedFd,
    screen: Arc<OwnedFd>,
    modes: Arc<Mutex<Modes>>,
    /// The last to be dropped: what is undone must not be echoed.
    _raw: Quiet,
}

/// The end of the lent terminal that the shell's thread writes to.
struct Shown {
    screen: Arc<OwnedFd>,
    modes: Arc<Mutex<Modes>>,
}

impl Lent {
    /// Takes the terminal on standard input and output from the prompt, which must not use it meanwhile.
    ///
    /// # Errors
    /// No descriptor is to be had.
    pub fn take(guard: &Guard) -> io::Result<Self> {
        Ok(Self {
            keys: rustix::stdio::stdin().try_clone_to_owned()?,
            screen: Arc::new(rustix::stdio::stdout().try_clone_to_owned()?),
            modes: Arc::default(),
            _raw: guard.raw(),
        })
    }

    /// What the command reads keys from and is shown on.
    ///
    /// # Errors
    /// No descriptor is to be had.
    pub fn relay(&self) -> io::Result<Relay> {
        Ok(Relay {
            keys: Some(self.keys.try_clone()?),
            screen: Box::new(Shown {
                screen: Arc::clone(&self.screen),
                modes: Arc::clone(&self.modes),
            }),
        })
    }

    /// True when a program had the whole screen since it was lent.
    pub fn was_full_screen(&self) -> bool {
        lock(&self.modes).was_full_screen()
    }

    /// Where the cursor was left.
    pub fn cursor(&self) -> Cursor {
        if lock(&self.modes).is_at_line_start() {
            Cursor::AtLineStart
        } else {
            Cursor::WithinLine
        }
    }
}

/// Where a command leaves the cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cursor {
    /// The next text begins a line.
    AtLineStart,
    /// It would stand behind what the command wrote.
    WithinLine,
}

impl Drop for Lent {
    fn drop(&mut self) {
        let undo = lock(&self.modes).undo();
        // A terminal that is gone needs nothing undone.
        let _ = write_all(self.screen.as_fd(), undo.as_bytes());
    }
}

impl Screen for Shown {
    fn show(&mut self, bytes: &[u8]) {
        lock(&self.modes).read(bytes);
        let _ = write_all(self.screen.as_fd(), bytes);
    }
}

fn lock(modes: &Mutex<Modes>) -> MutexGuard<'_, Modes> {
    modes.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The size of the person's terminal now; zeros where it does not tell.
pub fn size() -> Size {
    match rustix::termios::tcgetwinsize(rustix::stdio::stdout()) {
        Ok(size) => Size {
            rows: size.ws_row,
            columns: size.ws_col,
        },
        Err(_) => Size { rows: 0, columns: 0 },
    }
}
