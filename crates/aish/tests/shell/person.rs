//! A person at the prompt, with one of the three shells beneath it: types a line, waits for the next prompt, leaves, and then
//! reads in the ledger what each command was.

use crate::support::fake_server::FakeServer;
use crate::support::ledger::{of_kind, only_export, session_ids};
use crate::support::pty::{SCROLLBACK_ROWS_MAX, Settings, Terminal, key};
use crate::support::reply::Reply;
use crate::support::sandbox::Sandbox;
use crate::support::{default_wait, poll_until};
use serde_json::Value;
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// The time between two presses of a key that is pressed until something happens.
const PRESS_PAUSE: Duration = Duration::from_millis(50);

/// So many characters of the end of what was typed are looked for on the screen.
const ECHO_CHARS: usize = 12;

/// A shell that can run beneath the prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inner {
    Bash,
    Zsh,
    Fish,
}

/// All of them.
pub const ALL: &[Inner] = &[Inner::Bash, Inner::Zsh, Inner::Fish];
/// Those whose language is that of `sh`.
pub const POSIX: &[Inner] = &[Inner::Bash, Inner::Zsh];
/// The one that has a language of its own.
pub const FISH: &[Inner] = &[Inner::Fish];
/// The one most people have.
pub const BASH: &[Inner] = &[Inner::Bash];

impl Inner {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Zsh => "zsh",
            Self::Fish => "fish",
        }
    }

    /// Where it is installed.
    pub fn program(self) -> PathBuf {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut places = std::env::split_paths(&path).map(|folder| folder.join(self.name()));
        places
            .find(|program| program.exists())
            .unwrap_or_else(|| panic!("{} is not installed", self.name()))
    }

    /// The start-up file of an interactive one, below the home directory.
    pub fn start_up_file(self) -> &'static str {
        match self {
            Self::Bash => ".bashrc",
            Self::Zsh => ".zshrc",
            Self::Fish => ".config/fish/config.fish",
        }
    }
}

/// Where a script is played, before anybody sits down.
pub struct Desk {
    inner: Inner,
    replies: Vec<Reply>,
    sandbox: Box<dyn FnOnce(Sandbox) -> Sandbox>,
    start_up: String,
    size: (u16, u16),
}

impl Desk {
    /// With a model that is asked nothing, and no start-up file.
    pub fn with(inner: Inner) -> Self {
        Self {
            inner,
            replies: Vec::new(),
            sandbox: Box::new(|sandbox| sandbox),
            start_up: String::new(),
            size: (24, 80),
        }
    }

    /// What the model replies, in order.
    pub fn replies(mut self, replies: impl IntoIterator<Item = Reply>) -> Self {
        self.replies = replies.into_iter().collect();
        self
    }

    /// What the shell's own start-up file says.
    pub fn start_up(mut self, text: &str) -> Self {
        text.clone_into(&mut self.start_up);
        self
    }

    /// Files, variables and settings.
    pub fn sandbox(mut self, prepare: impl FnOnce(Sandbox) -> Sandbox + 'static) -> Self {
        self.sandbox = Box::new(prepare);
        self
    }

    /// The size of the terminal: rows, columns.
    pub fn size(mut self, rows: u16, columns: u16) -> Self {
        self.size = (rows, columns);
        self
    }

    /// Starts the program and waits for the prompt.
    pub fn sit_down(self) -> Person {
        let person = self.start();
        person.wait_for_prompt();
        person
    }

    /// Starts the program.
    pub fn start(self) -> Person {
        let server = FakeServer::script(self.replies);
        let program = self.inner.program();
        let sandbox = Sandbox::with_model(&server).env("SHELL", &program.to_string_lossy());
        let sandbox = (self.sandbox)(sandbox);
        let start_up = sandbox.user().join(self.inner.start_up_file());
        std::fs::create_dir_all(start_up.parent().expect("a path below home")).expect("a folder of the user's");
        std::fs::write(start_up, self.start_up).expect("write a start-up file");
        let terminal = sandbox.terminal(&[]).size(self.size.0, self.size.1).start();
        Person {
            inner: self.inner,
            server,
            sandbox,
            terminal,
            sent_at: Cell::default(),
        }
    }
}

/// Somebody at the prompt.
pub struct Person {
    pub inner: Inner,
    pub server: FakeServer,
    pub sandbox: Sandbox,
    pub terminal: Terminal,
    /// Where the last line was sent: that prompt is not the next.
    sent_at: Cell<Option<usize>>,
}

/// The row of the cursor, counted from the first that was ever shown.
pub fn place(screen: &vt100::Screen) -> usize {
    screen.scrollback_len() + usize::from(screen.cursor_position().0)
}

/// Whether the cursor stands behind the prompt, with nothing typed.
pub fn is_at_prompt(screen: &vt100::Screen) -> bool {
    let (row, column) = screen.cursor_position();
    let before = screen.contents_between(row, 0, row, column);
    !screen.alternate_screen() && before.trim_end().ends_with('❯')
}

impl Person {
    /// Waits for an empty prompt, another than that at which the last line was sent, and for somebody who reads keys there.
    pub fn wait_for_prompt(&self) -> String {
        let sent_at = self.sent_at.get();
        let what = format!("the prompt ({})", self.inner.name());
        let screen = self.terminal.wait_for(&what, |screen| {
            let is_elsewhere = Some(place(screen)) != sent_at || screen.scrollback_len() == SCROLLBACK_ROWS_MAX;
            is_at_prompt(screen) && is_elsewhere
        });
        poll_until("keys to be read at the prompt", default_wait(), || {
            self.terminal.reads_keys().then_some(())
        });
        screen
    }

    /// Throws away the line being typed by Ctrl-C, and waits for the next prompt. The line is to be seen there first: before that
    /// the key is a signal to nobody.
    pub fn gives_up(&self) -> String {
        self.sent_at.set(Some(self.terminal.look(place)));
        self.terminal.send(key::CTRL_C);
        self.wait_for_prompt()
    }

    /// Types what is no line yet, and waits until all of it shows.
    pub fn begins(&self, text: &str) {
        self.terminal.send(text);
        let end: String = text.chars().rev().take(ECHO_CHARS).collect();
        let end: String = end.chars().rev().collect();
        let end = end.lines().last().unwrap_or_default().trim();
        self.terminal.wait_for(&format!("{text:?} at the prompt"), |screen| {
            let (row, column) = screen.cursor_position();
            // It may have come round the corner of the row.
            let typed = screen.contents_between(row.saturating_sub(1), 0, row, column);
            typed.trim_end().ends_with(end)
        });
    }

    /// Types a line and Enter.
    pub fn enters(&self, line: &str) {
        self.begins(line);
        self.sends();
    }

    /// Presses Enter at what was typed.
    pub fn sends(&self) {
        self.sent_at.set(Some(self.terminal.look(place)));
        self.terminal.send(key::ENTER);
    }

    /// Types a line and waits for the prompt after it; gives the screen.
    pub fn types(&self, line: &str) -> String {
        self.enters(line);
        self.wait_for_prompt()
    }

    /// Pastes text, as a terminal does for a program that asked to be told of pastes.
    pub fn pastes(&self, text: &str) {
        self.terminal.send(&format!("\x1b[200~{text}\x1b[201~"));
        self.terminal
            .wait_for("what was pasted", |screen| !is_at_prompt(screen));
    }

    /// Like [`presses_until`].
    pub fn presses_until(&self, key: &str, what: &str, wanted: impl Fn(&vt100::Screen) -> bool) -> String {
        presses_until(&self.terminal, key, what, wanted)
    }

    /// Presses a key until the prompt is there.
    pub fn presses_until_prompt(&self, key: &str) -> String {
        self.presses_until(key, "the prompt after the key", is_at_prompt)
    }

    /// Waits until the screen holds that text.
    pub fn sees(&self, text: &str) -> String {
        self.terminal.wait_for_text(text)
    }

    /// Waits until a line of the screen is that text.
    pub fn sees_line(&self, text: &str) -> String {
        self.terminal.wait_for(&format!("the line {text:?}"), |screen| {
            screen.contents().lines().any(|line| line.trim() == text)
        })
    }

    /// The commands in the ledger so far.
    pub fn commands(&self) -> Vec<Ran> {
        if session_ids(&self.sandbox).is_empty() {
            return Vec::new();
        }
        let events = only_export(&self.sandbox);
        of_kind(&events, "command").into_iter().map(Ran::of).collect()
    }

    /// The last command in the ledger; fails when it is another line.
    pub fn last(&self, line: &str) -> Ran {
        let commands = self.commands();
        let last = commands
            .last()
            .unwrap_or_else(|| panic!("no command was recorded, not even {line}"));
        assert_eq!(last.line, unmarked(line), "{commands:#?}");
        last.clone()
    }

    /// Types a line after the shell has died, and once more where it is handed back because the shell it was meant for is gone.
    pub fn types_to_the_next(&self, line: &str) -> String {
        self.enters(line);
        let is_handed_back = |screen: &vt100::Screen| {
            let (row, column) = screen.cursor_position();
            let text = screen.contents();
            screen.contents_between(row, 0, row, column).trim_end().ends_with(line) && text.contains("not run")
        };
        let until = Instant::now() + default_wait();
        while !self.terminal.look(is_at_prompt) && Instant::now() < until {
            if self.terminal.look(is_handed_back) {
                self.terminal.send(key::ENTER);
            }
            std::thread::sleep(PRESS_PAUSE);
        }
        self.wait_for_prompt()
    }

    /// Types a line, and gives what the ledger has of it.
    pub fn runs(&self, line: &str) -> Ran {
        self.types(line);
        self.last(line)
    }

    /// The process of the shell beneath.
    pub fn inner_process(&self) -> u32 {
        let shells: Vec<u32> = children_of(self.terminal.pid())
            .into_iter()
            .filter(|pid| name_of(*pid) == self.inner.name())
            .collect();
        assert_eq!(shells.len(), 1, "shells beneath aish");
        shells[0]
    }

    /// Leaves by Ctrl-D; the terminal is as it was found and nothing is left behind.
    pub fn leaves(mut self) {
        self.wait_for_prompt();
        self.terminal.send(key::CTRL_D);
        assert_eq!(self.is_gone().code(), Some(0), "{}", self.inner.name());
        assert_eq!(self.server.problems(), Vec::<String>::new());
    }

    /// Waits for the program's end: the terminal is as it was found, nothing runs any more.
    pub fn is_gone(&mut self) -> ExitStatus {
        let status = self.terminal.wait_exit();
        eprintln!("aish above {} ended: {status}", self.inner.name());
        self.sandbox.assert_nothing_runs();
        let settings: Settings = self.terminal.settings();
        assert_eq!(settings, *self.terminal.settings_at_start(), "{}", self.inner.name());
        self.terminal.look(|screen| {
            assert!(!screen.alternate_screen(), "left in the alternate screen");
            assert!(!screen.bracketed_paste(), "left with bracketed paste on");
            assert!(!screen.hide_cursor(), "left without a cursor");
        });
        status
    }
}

/// Presses a key over and over until the screen is as wanted: a program may not read keys yet when it says that it is there. While
/// nobody reads keys none is pressed: it would be a signal, to aish, and to nobody in it.
pub fn presses_until(terminal: &Terminal, key: &str, what: &str, wanted: impl Fn(&vt100::Screen) -> bool) -> String {
    let until = Instant::now() + default_wait();
    loop {
        let (is_wanted, text) = terminal.look(|screen| (wanted(screen), screen.contents()));
        if is_wanted {
            return text;
        }
        assert!(Instant::now() < until, "pressed {key:?} in vain for {what}:\n{text}");
        if terminal.reads_keys() {
            terminal.send(key);
        }
        std::thread::sleep(PRESS_PAUSE);
    }
}

/// The processes that a process has started and that still run.
pub fn children_of(parent: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten();
    let children = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("children")).ok());
    children
        .flat_map(|text| {
            text.split_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .collect::<Vec<u32>>()
        })
        .collect()
}

/// A process's name; empty when it has gone.
pub fn name_of(pid: u32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim().to_owned()
}

/// A command as the ledger has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    pub line: String,
    pub directory: PathBuf,
    pub status: Option<i64>,
    pub output: String,
}

impl Ran {
    fn of(event: &Value) -> Self {
        let text = |field: &str| event["data"][field].as_str().unwrap_or_default().to_owned();
        Self {
            line: text("line"),
            directory: text("directory").into(),
            status: event["data"]["status"].as_i64(),
            output: text("output").trim_end().to_owned(),
        }
    }
}

/// A line without the mark that sends it to the shell.
pub fn unmarked(line: &str) -> &str {
    line.strip_prefix('!').unwrap_or(line)
}

/// What is expected of a line.
#[derive(Clone, Copy, Debug)]
pub enum Expected {
    /// Exactly this output, and success.
    Prints(&'static str),
    /// This among its output, whatever the status.
    Mentions(&'static str),
    /// This status.
    Exits(i64),
    /// To be run in this folder below the project, and to succeed.
    In(&'static str),
    /// Success.
    Succeeds,
}

/// A line and what is expected of it.
pub type Line = (&'static str, Expected);

/// Plays a script in each of these shells: sits down, types its lines one after the other, leaves, and compares what the ledger
/// says of each.
pub fn play(shells: &[Inner], start_up: &str, lines: &[Line]) {
    for inner in shells {
        let files = |sandbox: Sandbox| sandbox.file("below/deep/marker", "x");
        let person = Desk::with(*inner).start_up(start_up).sandbox(files).sit_down();
        for (line, _) in lines {
            person.types(line);
        }
        let project = person.sandbox.project();
        let ran = person.commands();
        let name = inner.name();
        let typed: Vec<&str> = ran.iter().map(|ran| ran.line.as_str()).collect();
        let wanted: Vec<&str> = lines.iter().map(|(line, _)| unmarked(line)).collect();
        assert_eq!(typed, wanted, "{name}: commands in the ledger; {ran:#?}");
        for (ran, (_, expected)) in ran.iter().zip(lines) {
            expected.check(name, ran, &project);
        }
        person.leaves();
    }
}

impl Expected {
    fn check(self, name: &str, ran: &Ran, project: &Path) {
        let status = match self {
            Self::Exits(status) => Some(status),
            Self::Mentions(_) => ran.status,
            Self::Prints(_) | Self::In(_) | Self::Succeeds => Some(0),
        };
        assert_eq!(ran.status, status, "{name}: {ran:#?}");
        match self {
            Self::Prints(output) => assert_eq!(ran.output, output, "{name}: {ran:#?}"),
            Self::Mentions(text) => assert!(ran.output.contains(text), "{name}: no {text:?} in {ran:#?}"),
            Self::In(folder) => assert_eq!(ran.directory, project.join(folder), "{name}: {ran:#?}"),
            Self::Exits(_) | Self::Succeeds => {}
        }
    }
}
