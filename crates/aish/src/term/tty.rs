//! The person at the controlling terminal.
//!
//! A question goes to `/dev/tty`, not to standard input: what was piped in, or typed before the question was there, must
//! never answer it (SPEC 5.6, 10.2). While it waits the terminal is in cooked mode with echo, whatever it was in before,
//! and is put back afterwards.

use super::job;
use aish_tools::{Cancel, cancelled};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, OutputModes, QueueSelector, Termios, tcflush, tcgetattr, tcsetattr,
};
use std::fs::{File, OpenOptions};
use std::future::Future;
use std::io::{self, Write as _};
use std::time::Duration;
use tokio::sync::oneshot;

/// Where the controlling terminal is.
const TTY_PATH: &str = "/dev/tty";
/// Bytes of an answer that are kept; a terminal's own line buffer is not larger.
const ANSWER_BYTES_MAX: usize = 4096;

/// What came of asking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// A line, without its end.
    Said(String),
    /// The end of input (Ctrl-D, a terminal that hung up).
    End,
    /// The turn was cancelled meanwhile.
    Cancelled,
}

/// How keys were passed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passed {
    /// For the whole time.
    Over,
    /// The turn was cancelled meanwhile.
    Cancelled,
}

/// Whether the terminal shows what is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Echo {
    Shown,
    Hidden,
}

/// Somebody who can be asked for a line.
pub trait Person {
    /// Shows `prompt` (safe text, complete) and waits for a line or for `cancel`.
    ///
    /// # Errors
    /// The terminal failed.
    fn ask_line(&self, prompt: String, cancel: Cancel) -> impl Future<Output = io::Result<Line>>;
}

/// The controlling terminal.
pub struct Tty {
    file: File,
}

impl Tty {
    /// The controlling terminal, if there is one and this process is in its foreground: a background job that asked
    /// would be stopped, and nobody would know why.
    pub fn open() -> Option<Self> {
        let file = OpenOptions::new().read(true).write(true).open(TTY_PATH).ok()?;
        is_foreground(&file).then_some(Self { file })
    }

    /// Its file descriptor, e.g. to ask for its size.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Throws away what was typed, and what is typed for so long, unseen; Ctrl-C still stops the turn.
    ///
    /// # Errors
    /// The terminal failed.
    pub async fn pass_over(&self, time: Duration, mut cancel: Cancel) -> io::Result<Passed> {
        // Leaving the mode throws the keys away.
        let _cooked = Cooked::enter(&self.file, Echo::Hidden)?;
        Ok(tokio::select! {
            biased;
            () = cancelled(&mut cancel) => Passed::Cancelled,
            () = tokio::time::sleep(time) => Passed::Over,
        })
    }

    /// Any terminal, controlling or not.
    #[cfg(test)]
    pub fn of_file(file: File) -> Self {
        Self { file }
    }
}

impl Person for Tty {
    async fn ask_line(&self, prompt: String, mut cancel: Cancel) -> io::Result<Line> {
        let file = self.file.try_clone()?;
        let (wake, waker) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let (answered, mut answer) = oneshot::channel();
        // A thread of its own, not the runtime's pool: leaving the program must never wait for a person.
        std::thread::Builder::new().name("ask".to_owned()).spawn(move || {
            // Nobody waiting any more is as good as an answer.
            let _ = answered.send(ask(&file, &prompt, &wake));
        })?;
        let gone = || io::Error::other("the question was given up");
        tokio::select! {
            line = &mut answer => return line.unwrap_or_else(|_| Err(gone())),
            // A sender that is gone can no longer cancel: then only the answer counts.
            () = cancelled(&mut cancel) => {}
        }
        // Closing the pipe wakes the thread. It is waited for, so that the terminal is back in its mode.
        drop(waker);
        answer.await.unwrap_or_else(|_| Err(gone()))
    }
}

/// True when this process may read from that terminal without being stopped.
pub fn is_foreground(tty: impl AsFd) -> bool {
    is_foreground_of(tty, job::own_group())
}

/// The same for a process group, as [`job::own_group`] gives it; one system call.
pub fn is_foreground_of(tty: impl AsFd, own: i32) -> bool {
    match rustix::termios::tcgetpgrp(tty) {
        Ok(group) => group.as_raw_pid() == own,
        // The library's word for a group outside this container, which ours may be as well (`unshare --pid`, a container's `exec`).
        Err(Errno::OPNOTSUPP) => own == 0,
        Err(_) => false,
    }
}

/// Cooked mode for as long as it lives.
struct Cooked<'a> {
    file: &'a File,
    before: Termios,
}

impl<'a> Cooked<'a> {
    fn enter(file: &'a File, echo: Echo) -> io::Result<Self> {
        let before = tcgetattr(file)?;
        let mut cooked = before.clone();
        cooked.local_modes |= LocalModes::ICANON | LocalModes::ECHOE | LocalModes::ISIG;
        cooked.local_modes.set(LocalModes::ECHO, echo == Echo::Shown);
        cooked.input_modes |= InputModes::ICRNL;
        cooked.output_modes |= OutputModes::OPOST | OutputModes::ONLCR;
        // Typed-ahead keys are thrown away: nothing typed before the question was shown may answer it.
        tcsetattr(file, OptionalActions::Flush, &cooked)?;
        Ok(Self { file, before })
    }
}

impl Drop for Cooked<'_> {
    fn drop(&mut self) {
        // What was typed after the answer was meant for no question.
        let _ = tcflush(self.file, QueueSelector::IFlush);
        let _ = tcsetattr(self.file, OptionalActions::Now, &self.before);
    }
}

fn ask(file: &File, prompt: &str, wake: &OwnedFd) -> io::Result<Line> {
    let _cooked = Cooked::enter(file, Echo::Shown)?;
    let mut writer = file;
    writer.write_all(prompt.as_bytes())?;
    let line = read_line(file, wake)?;
    if !matches!(line, Line::Said(_)) {
        // Nobody pressed Enter: the next text would stand behind the question.
        writer.write_all(b"\n")?;
    }
    Ok(line)
}

fn read_line(file: &File, wake: &OwnedFd) -> io::Result<Line> {
    let mut line = Vec::new();
    loop {
        let mut ready = [PollFd::new(file, PollFlags::IN), PollFd::new(wake, PollFlags::IN)];
        match poll(&mut ready, None) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        let [terminal, woken] = &ready;
        if !woken.revents().is_empty() {
            return Ok(Line::Cancelled);
        }
        if terminal.revents().is_empty() {
            continue;
        }
        let mut buffer = [0u8; ANSWER_BYTES_MAX];
        let bytes = match rustix::io::read(file, &mut buffer) {
            Ok(0) | Err(Errno::IO) => return Ok(Line::End),
            Ok(bytes) => buffer.get(..bytes).unwrap_or_default(),
            Err(Errno::INTR | Errno::AGAIN) => continue,
            Err(error) => return Err(error.into()),
        };
        // Cooked mode gives one line at a time; Ctrl-D in the middle of one gives it without an end.
        match bytes.split(|byte| *byte == b'\n').next() {
            Some(first) if first.len() < bytes.len() => {
                line.extend_from_slice(first);
                return Ok(Line::Said(String::from_utf8_lossy(&line).into_owned()));
            }
            Some(_) | None if line.len() + bytes.len() > ANSWER_BYTES_MAX => return Ok(Line::End),
            Some(_) | None => line.extend_from_slice(bytes),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use tokio::sync::watch;

    /// A terminal and the person's side of it.
    fn terminal() -> (pty_process::blocking::Pty, Tty) {
        let (master, slave) = pty_process::blocking::open().unwrap();
        let name = rustix::pty::ptsname(&master, Vec::new()).unwrap();
        let open = OpenOptions::new()
            .read(true)
            .write(true)
            .open(name.to_str().unwrap())
            .unwrap();
        drop(slave);
        (master, Tty::of_file(open))
    }

    /// Waits until the terminal shows that text.
    fn wait_for(master: &mut pty_process::blocking::Pty, text: &str) {
        let mut seen = String::new();
        let mut buffer = [0u8; 256];
        while !seen.contains(text) {
            let n = master.read(&mut buffer).unwrap();
            assert_ne!(n, 0, "the terminal closed after {seen:?}");
            seen.push_str(&String::from_utf8_lossy(&buffer[..n]));
        }
    }

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
    }

    fn check(early: &str, typed: &'static str, expect: Line) {
        let (mut master, tty) = terminal();
        master.write_all(early.as_bytes()).unwrap();
        // Its echo tells that the terminal has it.
        wait_for(&mut master, &early.replace('\n', "\r\n"));
        let person = std::thread::spawn(move || {
            wait_for(&mut master, "sure? ");
            master.write_all(typed.as_bytes()).unwrap();
            master
        });
        let (_keep, cancel) = watch::channel(false);
        let line = runtime().block_on(tty.ask_line("sure? ".to_owned(), cancel)).unwrap();
        assert_eq!(line, expect);
        drop(person.join().unwrap());
    }

    /// SPEC 5.3: a line is an answer, the end of input is its own.
    #[test]
    fn answers() {
        check("", "y\r", Line::Said("y".to_owned()));
        check("", "\r", Line::Said(String::new()));
        check("", "\x04", Line::End);
        check("", "ab\x7fc\n", Line::Said("ac".to_owned()));
    }

    /// SPEC 5.6: what was typed before the question was shown does not answer it.
    #[test]
    fn typed_ahead_is_thrown_away() {
        check("y\ny\n", "n\n", Line::Said("n".to_owned()));
    }

    /// SPEC 3.3: keys that are passed over answer nothing afterwards, and are not shown.
    #[test]
    fn keys_are_passed_over() {
        let (mut master, tty) = terminal();
        let before = tcgetattr(&tty.file).unwrap();
        let (_keep, cancel) = watch::channel(false);
        let (over, stop) = watch::channel(false);
        let passed = runtime().block_on(async {
            let passing = tty.pass_over(Duration::from_secs(3600), stop);
            tokio::pin!(passing);
            assert!(futures_util::poll!(passing.as_mut()).is_pending());
            master.write_all(b"y\n").unwrap();
            over.send_replace(true);
            passing.await.unwrap()
        });
        assert_eq!(passed, Passed::Cancelled);
        let after = tcgetattr(&tty.file).unwrap();
        assert_eq!(after.local_modes, before.local_modes);
        let mut ready = [PollFd::new(&tty.file, PollFlags::IN)];
        let now = rustix::time::Timespec::default();
        assert_eq!(poll(&mut ready, Some(&now)).unwrap(), 0, "the keys are still there");
        let asked = std::thread::spawn(move || {
            let mut seen = String::new();
            let mut buffer = [0u8; 256];
            while !seen.ends_with("sure? ") {
                let n = master.read(&mut buffer).unwrap();
                seen.push_str(&String::from_utf8_lossy(&buffer[..n]));
            }
            master.write_all(b"n\n").unwrap();
            (seen, master)
        });
        let line = runtime().block_on(tty.ask_line("sure? ".to_owned(), cancel)).unwrap();
        assert_eq!(line, Line::Said("n".to_owned()));
        assert_eq!(asked.join().unwrap().0, "sure? ");
    }

    /// SPEC 8.7: a cancelled turn takes its question back at once and leaves the terminal as it was.
    #[test]
    fn a_question_is_taken_back() {
        let (mut master, tty) = terminal();
        let mut raw = tcgetattr(&tty.file).unwrap();
        raw.make_raw();
        tcsetattr(&tty.file, OptionalActions::Now, &raw).unwrap();
        let (canceller, cancel) = watch::channel(false);
        let person = std::thread::spawn(move || {
            wait_for(&mut master, "sure? ");
            canceller.send_replace(true);
            master
        });
        let line = runtime().block_on(tty.ask_line("sure? ".to_owned(), cancel)).unwrap();
        assert_eq!(line, Line::Cancelled);
        let after = tcgetattr(&tty.file).unwrap();
        assert_eq!(after.local_modes, raw.local_modes);
        drop(person.join().unwrap());
    }

    /// SPEC 5.6: a terminal whose foreground somebody else has is nobody's to ask.
    #[test]
    fn background_jobs_do_not_ask() {
        let (_master, tty) = terminal();
        assert!(!is_foreground(&tty.file));
    }
}
