//! Programs on a pseudo-terminal, as a person would see them.
//!
//! A [`Terminal`] runs one program; a thread feeds what it writes to an emulator, so tests assert *screens*:
//!
//! ```ignore
//! let mut terminal = sandbox.terminal(&[]).start();
//! terminal.wait_for_text("fake ❯");
//! terminal.send("list the files\r");
//! terminal.wait_for("the question", |screen| screen.contents().contains("[y/N/a/s/?]"));
//! terminal.send(key::CTRL_C);
//! assert_eq!(terminal.wait_exit().code(), Some(0));
//! ```
//!
//! The emulator answers the questions a terminal is asked (cursor position, device attributes), else line editors
//! would wait for an answer. The bytes are kept as well ([`Terminal::transcript`]) for what a screen cannot show.

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use pty_process::Size;
use pty_process::blocking::{Command, Pty, open};
pub use rustix::process::Signal;
use rustix::process::{Pid, kill_process, kill_process_group};
use rustix::termios::{Termios, tcgetattr, tcgetpgrp};

use super::{default_wait, poll_until};

/// Rows kept above the screen.
pub const SCROLLBACK_ROWS_MAX: usize = 5000;

/// What a prompt ends with, by where its line goes: to the model, to the shell, to a meta command; or after a command that failed.
pub const INDICATORS: [&str; 4] = ["❯", "$", ":", "✗"];

/// What keys send.
pub mod key {
    pub const ENTER: &str = "\r";
    pub const TAB: &str = "\t";
    pub const ESCAPE: &str = "\x1b";
    pub const BACKSPACE: &str = "\x7f";
    pub const UP: &str = "\x1b[A";
    pub const DOWN: &str = "\x1b[B";
    pub const CTRL_C: &str = "\x03";
    pub const CTRL_D: &str = "\x04";
    pub const CTRL_L: &str = "\x0c";
    pub const CTRL_U: &str = "\x15";
    pub const CTRL_Z: &str = "\x1a";
    pub const CTRL_BACKSLASH: &str = "\x1c";
}

/// A program about to be run on a terminal; the environment starts out empty.
pub struct TerminalCommand {
    program: OsString,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    directory: Option<PathBuf>,
    rows: u16,
    columns: u16,
}

impl TerminalCommand {
    /// Any program, e.g. `bash`, on 24 rows of 80 columns.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
        let command = Self {
            program: program.as_ref().to_owned(),
            arguments: Vec::new(),
            environment: Vec::new(),
            directory: None,
            rows: 24,
            columns: 80,
        };
        command
            .env("PATH", path)
            .env("TERM", "xterm-256color")
            .env("LANG", "C.UTF-8")
    }

    /// The program under test.
    pub fn aish(arguments: &[&str]) -> Self {
        Self::new(env!("CARGO_BIN_EXE_aish")).args(arguments)
    }

    /// Adds arguments.
    pub fn args(mut self, arguments: &[&str]) -> Self {
        self.arguments.extend(arguments.iter().map(OsString::from));
        self
    }

    /// Sets a variable; a later one of the same name wins.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.environment
            .push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Sets the working directory.
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Sets the size of the terminal.
    pub fn size(mut self, rows: u16, columns: u16) -> Self {
        (self.rows, self.columns) = (rows, columns);
        self
    }

    /// Runs it as leader of a session whose controlling terminal is the new one.
    pub fn start(self) -> Terminal {
        let (master, slave) = open().expect("open a pseudo-terminal");
        master
            .resize(Size::new(self.rows, self.columns))
            .expect("size the terminal");
        let settings_at_start = Settings::of(&master);
        let mut command = Command::new(&self.program).args(&self.arguments).env_clear();
        for (name, value) in &self.environment {
            command = command.env(name, value);
        }
        if let Some(directory) = &self.directory {
            command = command.current_dir(directory);
        }
        // `spawn` takes the slave, so that its end shows here once the program and its children have closed it.
        let child = command
            .spawn(slave)
            .unwrap_or_else(|error| panic!("run {}: {error}", self.program.display()));
        let (rows, columns) = (non_zero(self.rows), non_zero(self.columns));
        let emulator = vt100::Parser::new_with_callbacks(rows, columns, SCROLLBACK_ROWS_MAX, Answers::default());
        let seen = Seen {
            emulator,
            transcript: Vec::new(),
            closed: false,
        };
        let shared = Arc::new(Shared {
            seen: Mutex::new(seen),
            changed: Condvar::new(),
        });
        let master = Arc::new(master);
        let (reading, watching) = (Arc::clone(&master), Arc::clone(&shared));
        std::thread::spawn(move || read_all(&reading, &watching));
        Terminal {
            child,
            master,
            shared,
            settings_at_start,
        }
    }
}

fn non_zero(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).expect("a terminal has rows and columns")
}

/// What the emulator must answer to the program.
#[derive(Default)]
struct Answers {
    bytes: Vec<u8>,
}

impl vt100::Callbacks for Answers {
    fn unhandled_csi(
        &mut self,
        screen: &mut vt100::Screen,
        intermediate: Option<u8>,
        _second: Option<u8>,
        parameters: &[&[u16]],
        last: char,
    ) {
        let first = parameters.first().and_then(|group| group.first()).copied().unwrap_or(0);
        match (intermediate, first, last) {
            (None, 6, 'n') => {
                let (row, column) = screen.cursor_position();
                self.bytes.extend(format!("\x1b[{};{}R", row + 1, column + 1).bytes());
            }
            (None, 5, 'n') => self.bytes.extend(b"\x1b[0n"),
            (None, 0, 'c') => self.bytes.extend(b"\x1b[?62;22c"),
            _ => {}
        }
    }
}

struct Seen {
    emulator: vt100::Parser<Answers>,
    transcript: Vec<u8>,
    closed: bool,
}

struct Shared {
    seen: Mutex<Seen>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

fn read_all(mut master: &Pty, shared: &Shared) {
    let mut buffer = [0; 16 << 10];
    loop {
        // An error (EIO) is how Linux tells that nobody has the other side open any more.
        let count = master.read(&mut buffer).unwrap_or(0);
        let mut seen = shared.lock();
        let bytes = buffer.get(..count).unwrap_or_default();
        seen.transcript.extend_from_slice(bytes);
        seen.emulator.process(bytes);
        seen.closed = count == 0;
        let answer = std::mem::take(&mut seen.emulator.callbacks_mut().bytes);
        drop(seen);
        shared.changed.notify_all();
        if count == 0 {
            return;
        }
        // The program may have ended without waiting for the answer.
        let _ = master.write_all(&answer);
    }
}

/// Modes and special characters of a terminal, comparable: the same before and after means nothing was left raw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    input: String,
    output: String,
    control: String,
    local: String,
    characters: String,
}

impl Settings {
    fn of(master: &Pty) -> Self {
        let termios: Termios = tcgetattr(master).expect("read the terminal's settings");
        Self {
            input: format!("{:?}", termios.input_modes),
            output: format!("{:?}", termios.output_modes),
            control: format!("{:?}", termios.control_modes),
            local: format!("{:?}", termios.local_modes),
            characters: format!("{:?}", termios.special_codes),
        }
    }

    /// Whether typed characters are echoed and lines are edited by the terminal itself, as in a fresh one.
    pub fn is_cooked(&self) -> bool {
        self.local.contains("ICANON") && self.local.contains("ECHO")
    }
}

/// A program on a terminal. Dropping it kills the program.
pub struct Terminal {
    child: Child,
    master: Arc<Pty>,
    shared: Arc<Shared>,
    settings_at_start: Settings,
}

impl Terminal {
    /// Types text or [`key`]s.
    pub fn send(&self, text: &str) {
        (&*self.master)
            .write_all(text.as_bytes())
            .expect("type into the terminal");
    }

    /// Types a line and Enter.
    pub fn send_line(&self, line: &str) {
        self.send(line);
        self.send(key::ENTER);
    }

    /// Types a line, waits for the prompt behind what comes of it, and gives what came.
    pub fn said(&self, line: &str) -> String {
        let typed = format!("{} {}\n", INDICATORS[0], line.trim_end());
        // Wherever the line goes.
        let alike = |text: &str| {
            let others = INDICATORS.iter().map(|other| format!("{other} {}\n", line.trim_end()));
            others.fold(text.to_owned(), |text, other| text.replace(&other, &typed))
        };
        let before = alike(&self.screen_text()).matches(&typed).count();
        self.send_line(line);
        let behind = |text: &str| {
            let text = alike(text);
            let is_there = text.matches(&typed).count() > before;
            let behind = text.rsplit_once(&typed).map(|(_, behind)| behind.to_owned());
            behind.filter(|behind| is_there && behind.trim_end().ends_with('❯'))
        };
        let what = format!("the prompt after {line}");
        let screen = self.wait_for(&what, |screen| behind(&screen.contents()).is_some());
        behind(&screen).unwrap_or_default()
    }

    /// Types on at a line that was begun below what runs, key by key, each once the one before is seen.
    pub fn types_below(&self, begun: &str, rest: &str) {
        let mut typed = begun.to_owned();
        for key in rest.chars() {
            self.send(&key.to_string());
            typed.push(key);
            self.wait_for_text(&format!("{typed}▏"));
        }
    }

    /// Waits until the screen is as wanted and gives its text; fails showing the screen.
    pub fn wait_for(&self, what: &str, wanted: impl Fn(&vt100::Screen) -> bool) -> String {
        self.wait_for_within(default_wait(), what, wanted)
    }

    /// Like [`Self::wait_for`], with a limit of its own.
    pub fn wait_for_within(&self, within: Duration, what: &str, wanted: impl Fn(&vt100::Screen) -> bool) -> String {
        let seen = self.wait_until(within, what, |seen| wanted(seen.emulator.screen()));
        seen.emulator.screen().contents()
    }

    /// Waits until aish's prompt is the last thing on the screen. A key that is pressed earlier meets the terminal in another
    /// mode, and Ctrl-D means nothing there.
    pub fn wait_for_prompt(&self) -> String {
        self.wait_for("the prompt", |screen| screen.contents().trim_end().ends_with('❯'))
    }

    /// Waits until that many prompts of the fake model stand on the screen, with a line behind them or not.
    pub fn wait_for_prompts(&self, times: usize) -> String {
        let is_prompt = |row: &&str| {
            row.split_once("fake ")
                .is_some_and(|(_, behind)| INDICATORS.iter().any(|indicator| behind.starts_with(indicator)))
        };
        self.wait_for("the prompt", |screen| {
            screen.contents().lines().filter(is_prompt).count() == times
        })
    }

    /// Waits until the screen holds that text.
    pub fn wait_for_text(&self, text: &str) -> String {
        self.wait_for(&format!("the text {text:?}"), |screen| screen.contents().contains(text))
    }

    /// Waits until the raw output, with all that has scrolled away, holds those bytes that many times.
    pub fn wait_for_bytes(&self, bytes: &[u8], times: usize) {
        let what = format!("{times} times {:?}", String::from_utf8_lossy(bytes));
        drop(self.wait_until(default_wait(), &what, |seen| count(&seen.transcript, bytes) >= times));
    }

    fn wait_until(&self, within: Duration, what: &str, holds: impl Fn(&Seen) -> bool) -> MutexGuard<'_, Seen> {
        let deadline = Instant::now() + within;
        let mut seen = self.shared.lock();
        while !holds(&seen) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || seen.closed {
                let why = if seen.closed {
                    "the terminal closed"
                } else {
                    "the time was up"
                };
                let screen = framed(seen.emulator.screen());
                drop(seen);
                panic!("waited {within:?} for {what}, but {why}; the screen was:\n{screen}");
            }
            seen = self
                .shared
                .changed
                .wait_timeout(seen, left)
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .0;
        }
        seen
    }

    /// The text on the screen, trailing blanks removed.
    pub fn screen_text(&self) -> String {
        self.shared.lock().emulator.screen().contents()
    }

    /// Everything that was ever shown and not overwritten: what scrolled away, then the screen.
    pub fn history_text(&self) -> String {
        let mut seen = self.shared.lock();
        let screen = seen.emulator.screen_mut();
        let columns = screen.size().1.get();
        let mut rows = Vec::new();
        for offset in (1..=screen.scrollback_len()).rev() {
            screen.set_scrollback(offset);
            rows.extend(screen.rows(0, columns).next());
        }
        screen.set_scrollback(0);
        rows.push(screen.contents());
        rows.join("\n")
    }

    /// Looks at the screen: colours, cursor, alternate screen, bracketed paste.
    pub fn look<T>(&self, look: impl FnOnce(&vt100::Screen) -> T) -> T {
        look(self.shared.lock().emulator.screen())
    }

    /// Every byte the program wrote, in order.
    pub fn transcript(&self) -> Vec<u8> {
        self.shared.lock().transcript.clone()
    }

    /// Fails if these bytes were ever written to the terminal: for escapes out of untrusted text.
    pub fn assert_never_wrote(&self, bytes: &[u8]) {
        let times = count(&self.transcript(), bytes);
        assert_eq!(times, 0, "wrote {:?} to the terminal", String::from_utf8_lossy(bytes));
    }

    /// Changes the size; the program gets SIGWINCH.
    pub fn resize(&self, rows: u16, columns: u16) {
        self.shared.lock().emulator.set_size(non_zero(rows), non_zero(columns));
        self.master
            .resize(Size::new(rows, columns))
            .expect("resize the terminal");
    }

    /// Sends a signal to the program itself, not to its children.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("signal the program");
    }

    /// Process id of the program.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The settings the terminal was born with.
    pub fn settings_at_start(&self) -> &Settings {
        &self.settings_at_start
    }

    /// The settings in force now; they can still be read after the program has ended.
    pub fn settings(&self) -> Settings {
        Settings::of(&self.master)
    }

    /// Whether a program reads single keys: the terminal makes neither lines nor signals of them.
    pub fn reads_keys(&self) -> bool {
        !self.settings().is_cooked()
    }

    /// Waits for the program's end and for the last of its output.
    pub fn wait_exit(&mut self) -> ExitStatus {
        let (child, shared) = (&mut self.child, &self.shared);
        let until = Instant::now() + default_wait();
        let status = loop {
            if let Some(status) = child.try_wait().expect("wait for it") {
                break status;
            }
            let is_late = Instant::now() >= until;
            let screen = is_late.then(|| framed(shared.lock().emulator.screen()));
            assert!(
                !is_late,
                "it has not ended; the screen was:\n{}",
                screen.unwrap_or_default()
            );
            std::thread::sleep(super::poll_pause());
        };
        poll_until("the terminal to close", default_wait(), || {
            shared.lock().closed.then_some(())
        });
        status
    }

    /// Whether nobody has the terminal open any more.
    pub fn is_closed(&self) -> bool {
        self.shared.lock().closed
    }

    /// Whether the program still runs.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("look at the program").is_none()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let leader = Pid::from_child(&self.child);
        // Errors here mean that it has ended already, which is what is wanted.
        if let Ok(foreground) = tcgetpgrp(&*self.master) {
            let _ = kill_process_group(foreground, Signal::KILL);
        }
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = kill_process_group(leader, Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

fn count(haystack: &[u8], needle: &[u8]) -> usize {
    haystack
        .windows(needle.len().max(1))
        .filter(|window| *window == needle)
        .count()
}

/// The screen with a border, so that blank lines and the size show in a failure.
fn framed(screen: &vt100::Screen) -> String {
    let columns = screen.size().1.get();
    let rule = "-".repeat(usize::from(columns));
    let rows: Vec<String> = screen.rows(0, columns).map(|row| format!("|{row}")).collect();
    let (row, column) = screen.cursor_position();
    format!("+{rule}\n{}\n+{rule} cursor {row},{column}", rows.join("\n"))
}
