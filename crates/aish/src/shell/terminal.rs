//! The person's terminal, lent to a command: raw while it lasts, its size followed, given back as it was.
//!
//! The command runs on the shell's own terminal, which makes Ctrl-C a signal and a line of what is typed; the person's one only
//! passes bytes on. What a program leaves behind on it, e.g. when it is killed, is undone.

use crate::term::guard::{Guard, Quiet, WholeScreen};
use crate::term::screen::write_all;
use aish_shell::{Modes, Relay, Screen, Size};
use rustix::fd::{AsFd as _, OwnedFd};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A terminal that is lent. Dropping it takes it back.
pub struct Lent {
    keys: OwnedFd,
    screen: Arc<Mutex<Display>>,
    /// The last to be dropped: what is undone must not be echoed.
    _raw: Quiet,
}

/// The end of the lent terminal that the shell's thread writes to.
struct Shown {
    screen: Arc<Mutex<Display>>,
}

/// What is shown on, and in which state it is.
struct Display {
    /// `None` once it was taken back: what a command that runs on still prints must not change what was put right.
    output: Option<OwnedFd>,
    modes: Modes,
    whole: WholeScreen,
}

impl Lent {
    /// Takes the terminal on standard input and output from the prompt, which must not use it meanwhile.
    ///
    /// # Errors
    /// No descriptor is to be had.
    pub fn take(guard: &Guard) -> io::Result<Self> {
        Ok(Self {
            keys: rustix::stdio::stdin().try_clone_to_owned()?,
            screen: Arc::new(Mutex::new(Display {
                output: Some(rustix::stdio::stdout().try_clone_to_owned()?),
                modes: Modes::default(),
                whole: guard.whole_screen(),
            })),
            _raw: guard.raw(),
        })
    }

    /// What the command reads keys from and is shown on; `ahead` are those that were pressed before.
    ///
    /// # Errors
    /// No descriptor is to be had.
    pub fn relay(&self, ahead: Vec<u8>) -> io::Result<Relay> {
        Ok(Relay {
            keys: Some(self.keys.try_clone()?),
            ahead,
            screen: Box::new(Shown {
                screen: Arc::clone(&self.screen),
            }),
        })
    }

    /// True when a program had the whole screen since it was lent.
    pub fn was_full_screen(&self) -> bool {
        lock(&self.screen).modes.was_full_screen()
    }

    /// Where the cursor was left.
    pub fn cursor(&self) -> Cursor {
        if lock(&self.screen).modes.is_at_line_start() {
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
        let mut screen = lock(&self.screen);
        let undo = screen.modes.undo();
        if let Some(output) = screen.output.take() {
            // A terminal that is gone needs nothing undone.
            let _ = write_all(output.as_fd(), undo.as_bytes());
            screen.whole.ended();
        }
    }
}

impl Screen for Shown {
    fn show(&mut self, bytes: &[u8]) {
        let mut screen = lock(&self.screen);
        let Display { output, modes, whole } = &mut *screen;
        if let Some(output) = output {
            modes.read(bytes);
            if modes.is_full_screen() {
                whole.begins();
            } else {
                whole.ended();
            }
            let _ = write_all(output.as_fd(), bytes);
        }
    }
}

fn lock(screen: &Mutex<Display>) -> MutexGuard<'_, Display> {
    screen.lock().unwrap_or_else(PoisonError::into_inner)
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::io::Read as _;

    /// SPEC 8.7: what a command prints after the terminal was taken back changes it no more.
    #[test]
    fn nothing_is_shown_behind_the_end() {
        let (mut shown_to, output) = std::io::pipe().unwrap();
        let guard = Guard::install().unwrap();
        let screen = Arc::new(Mutex::new(Display {
            output: Some(output.into()),
            modes: Modes::default(),
            whole: guard.whole_screen(),
        }));
        let mut shown = Shown {
            screen: Arc::clone(&screen),
        };
        let lent = Lent {
            keys: rustix::stdio::stdin().try_clone_to_owned().unwrap(),
            screen,
            _raw: guard.raw(),
        };
        shown.show(b"\x1b[?25lin vim");
        drop(lent);
        shown.show(b"\x1b[?25lstill");
        let mut text = String::new();
        shown_to.read_to_string(&mut text).unwrap();
        assert_eq!(text, "\x1b[?25lin vim\x1b[?25h");
    }
}
