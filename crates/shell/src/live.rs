//! A running shell, as the rest of the program holds it.

use crate::capture::Capture;
use crate::dialect::{Dialect, Start, StartUp};
use crate::folder::Folder;
use crate::image::Became;
use crate::keeper::{Asked, Keeper, Kept, Order, Pause, Stops, Typed};
use crate::marks::Keys;
use crate::phase::NotRun;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use rustix::termios::{OptionalActions, Termios, tcsetattr};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{oneshot, watch};

/// Bytes of an answer of [`Shell::ask`]; a longer one is cut.
pub const ANSWER_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Bytes of a secret that is in marks.
const KEY_BYTES: usize = 16;

/// A terminal's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Lines; 0 for not known.
    pub rows: u16,
    /// Characters in a line; 0 for not known.
    pub columns: u16,
}

/// How a shell is started.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Its program, absolute, or found in `PATH`.
    pub program: PathBuf,
    /// Where it starts.
    pub directory: PathBuf,
    /// All its variables.
    pub environment: Vec<(OsString, OsString)>,
    /// The terminal it is shown on.
    pub size: Size,
    /// How that terminal is set: which key erases, whether it is UTF-8; the system's usual settings without.
    pub settings: Option<Termios>,
    /// Whether it reads the user's own start-up files.
    pub files: StartUp,
}

impl Setup {
    fn variable(&self, wanted: &str) -> Option<&OsStr> {
        let found = self.environment.iter().find(|(name, _)| name == wanted);
        found.map(|(_, value)| value.as_os_str())
    }
}

/// Where a command's output goes.
pub trait Screen: Send {
    /// Shows bytes, as they are. Slow terminals may block it.
    fn show(&mut self, bytes: &[u8]);
}

/// The person's end of a command: keys come from there, output goes there.
pub struct Relay {
    /// Where keys come from: a terminal in raw mode, or nothing.
    pub keys: Option<OwnedFd>,
    /// Keys that were pressed before: the command is given them where it reads.
    pub ahead: Vec<u8>,
    /// Where output goes.
    pub screen: Box<dyn Screen>,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It ran; its status as `$?`. One that was stopped (Ctrl-Z) counts as ended, and is a job of the shell.
    Exited(i32),
    /// It was no command, or no whole one: nothing ran.
    NotRun(NotRun),
    /// The shell has put it back to be looked at, perhaps changed (`histverify`): nothing ran. It is the [`Ran::draft`].
    PutBack,
    /// The shell itself ended.
    ShellEnded(End),
}

/// How a shell ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself (`exit`), with this status.
    Exited(i32),
    /// By this signal.
    Killed(i32),
    /// It became another program (`exec`), which [`Shell::became`] names, and was ended for another shell to take its place.
    Became,
    /// Its start-up files did not end, and the person would not wait: it was ended.
    GivenUp,
    /// Nobody could be asked.
    Unknown,
}

impl End {
    pub(crate) fn of(status: io::Result<ExitStatus>) -> Self {
        match status.map(|status| (status.code(), status.signal())) {
            Ok((Some(code), _)) => Self::Exited(code),
            Ok((None, Some(signal))) => Self::Killed(signal),
            Ok((None, None)) | Err(_) => Self::Unknown,
        }
    }
}

/// A shell that is no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    /// How it ended.
    pub how: End,
    /// Whether it ever waited for a command: one that did not was ended by its start-up files.
    pub stage: Stage,
}

/// How far a shell has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It reads its start-up files.
    Starting,
    /// It has waited for a command.
    Started,
}

/// What a shell and its keeper both know.
#[derive(Debug)]
pub(crate) struct Shared {
    pub directory: Mutex<PathBuf>,
    became: Mutex<Option<Became>>,
    /// Its start-up files read something that is not to be seen.
    asks_unseen: AtomicBool,
    pub ending: watch::Sender<Option<Ending>>,
}

impl Shared {
    fn new(directory: PathBuf) -> Self {
        Self {
            directory: Mutex::new(directory),
            became: Mutex::new(None),
            asks_unseen: AtomicBool::new(false),
            ending: watch::Sender::new(None),
        }
    }

    pub fn directory(&self) -> PathBuf {
        self.directory.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn moved(&self, directory: &Path) {
        directory.clone_into(&mut self.directory.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub fn became(&self, became: Became) {
        *self.became.lock().unwrap_or_else(PoisonError::into_inner) = Some(became);
    }

    pub fn asks_unseen(&self, asks: bool) {
        self.asks_unseen.store(asks, Ordering::Relaxed);
    }

    pub fn ended(&self, ending: Ending) {
        self.ending.send_replace(Some(ending));
    }
}

/// A command that was run.
#[derive(Debug)]
pub struct Ran {
    /// How it ended.
    pub ended: Ended,
    /// What it printed.
    pub output: Capture,
    /// How long it took.
    pub elapsed: Duration,
    /// Where the shell is now.
    pub directory: PathBuf,
    /// Whether the shell was stopped meanwhile (`suspend`); it was told to go on.
    pub stops: Stops,
    /// What was typed and sent meanwhile, and that no program took: whole lines, each with its end.
    pub typed_ahead: String,
    /// What nobody has sent: the beginning of a line that was typed meanwhile, or a line that the shell itself has put into its
    /// line editor.
    pub draft: String,
    /// Keys behind those that never came to a program: of [`Relay::ahead`], and such as there was no room for.
    pub unread: Vec<u8>,
}

impl Ran {
    /// A command that never came to the shell.
    pub(crate) fn nothing(ended: Ended, directory: PathBuf) -> Self {
        Self {
            ended,
            output: Capture::new(),
            elapsed: Duration::ZERO,
            directory,
            stops: Stops::None,
            typed_ahead: String::new(),
            draft: String::new(),
            unread: Vec::new(),
        }
    }
}

/// Why there is no shell, or no command.
#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    /// No shell we can drive.
    #[error("{} is no shell that can be kept running; bash, zsh and fish are", .0.display())]
    Unsupported(PathBuf),
    /// It could not be started.
    #[error("cannot start {}: {source}", .program.display())]
    Start {
        /// Which.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A line with control characters cannot be typed.
    #[error("the command has a control character in it")]
    ControlCharacter,
    /// It has ended.
    #[error("the shell has ended")]
    Ended,
}

/// A running shell. It can be asked and typed into from several threads; one line after the other is run. Dropping it hangs up, as
/// closing a terminal does: it ends, and its jobs with it.
pub struct Shell {
    dialect: Dialect,
    orders: Sender<Order>,
    wake: Arc<OwnedFd>,
    shared: Arc<Shared>,
    process: u32,
}

impl Shell {
    /// Starts it, and returns at once: it reads its start-up files meanwhile. `beside` is told, in whole lines of clean text,
    /// what appears while no command runs: jobs, messages of start-up files.
    ///
    /// # Errors
    /// It is none we can drive, or cannot be started.
    pub fn start(setup: &Setup, beside: impl FnMut(&str) + Send + 'static) -> Result<Self, ShellError> {
        let program = &setup.program;
        let dialect = Dialect::of(program).ok_or_else(|| ShellError::Unsupported(program.clone()))?;
        let failed = |source: io::Error| ShellError::Start {
            program: program.clone(),
            source,
        };
        let keys = Keys {
            open: key().map_err(failed)?,
            closed: key().map_err(failed)?,
        };
        let folder = Folder::create().map_err(failed)?;
        let pause = Pause::create(folder.path()).map_err(failed)?;
        let launch = dialect
            .launch(&Start {
                folder: folder.path(),
                keys: &keys,
                zdotdir: setup.variable("ZDOTDIR"),
                files: setup.files,
            })
            .map_err(failed)?;
        let (pty, terminal) = pty_process::blocking::open().map_err(|error| failed(io::Error::other(error)))?;
        if setup.size.rows > 0 && setup.size.columns > 0 {
            let size = pty_process::Size::new(setup.size.rows, setup.size.columns);
            pty.resize(size).map_err(|error| failed(io::Error::other(error)))?;
        }
        if let Some(settings) = &setup.settings {
            tcsetattr(&pty, OptionalActions::Now, settings).map_err(|error| failed(error.into()))?;
        }
        let command = pty_process::blocking::Command::new(program)
            .args(launch.arguments)
            .env_clear()
            .envs(setup.environment.iter().cloned())
            .envs(launch.environment)
            .current_dir(&setup.directory);
        let child = command
            .spawn(terminal)
            .map_err(|error| failed(io::Error::other(error)))?;
        let process = child.id();
        let wake =
            Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(|error| failed(error.into()))?);
        let shared = Arc::new(Shared::new(setup.directory.clone()));
        let (orders, taken) = channel();
        let keeper = Keeper::new(Kept {
            terminal: pty.into(),
            child,
            dialect,
            keys,
            folder,
            pause,
            shared: Arc::clone(&shared),
            beside: Box::new(beside),
        });
        keeper
            .and_then(|keeper| keeper.keep(taken, Arc::clone(&wake)))
            .map_err(failed)?;
        Ok(Self {
            dialect,
            orders,
            wake,
            shared,
            process,
        })
    }

    /// Types a command and waits until it is over, passing keys and output through; while the start-up files are still read,
    /// for their end first.
    ///
    /// # Errors
    /// The command cannot be typed, or the shell has ended.
    pub async fn run(&self, command: &str, relay: Relay) -> Result<Ran, ShellError> {
        if command.chars().any(|c| c.is_control() && c != '\n' && c != '\t') {
            return Err(ShellError::ControlCharacter);
        }
        let (done, ran) = oneshot::channel();
        self.order(Order::Type(Typed {
            command: command.to_owned(),
            relay,
            done,
        }))?;
        ran.await.map_err(|_| ShellError::Ended)
    }

    /// Runs a line that nobody sees, between two commands, and gives what it printed on its standard output, as it was, up to
    /// [`ANSWER_BYTES_MAX`]. It is in no history, and `$?`, `$_`, `$!` and the jobs stay as they are; a `cd` or an `export` in it
    /// lasts. `None` where a command runs, or the shell does not answer within `patience`.
    pub async fn ask(&self, line: &str, patience: Duration) -> Option<Vec<u8>> {
        let (done, answer) = oneshot::channel();
        let asked = Asked {
            line: line.to_owned(),
            until: Instant::now() + patience,
            done,
        };
        self.order(Order::Ask(asked)).ok()?;
        answer.await.ok()?
    }

    /// Tells it the terminal's size.
    ///
    /// # Errors
    /// The shell has ended.
    pub fn resize(&self, size: Size) -> Result<(), ShellError> {
        self.order(Order::Resize(size))
    }

    /// Hangs up: it ends, and its jobs with it.
    ///
    /// # Errors
    /// The shell has ended.
    pub fn hang_up(&self) -> Result<(), ShellError> {
        self.order(Order::HangUp)
    }

    /// Where it works.
    pub fn directory(&self) -> PathBuf {
        self.shared.directory()
    }

    /// How it ended; `None` while it lives.
    pub fn ending(&self) -> Option<Ending> {
        *self.shared.ending.borrow()
    }

    /// The program that it has become by `exec`; `None` while it is the shell that was started.
    pub fn became(&self) -> Option<Became> {
        self.shared
            .became
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Whether its start-up files read something that is not to be seen, a password perhaps. The next command gives them the terminal.
    pub fn asks_unseen(&self) -> bool {
        self.shared.asks_unseen.load(Ordering::Relaxed)
    }

    /// Waits until it has ended.
    pub async fn ended(&self) {
        // The sender lives as long as this does.
        let _ = self.shared.ending.subscribe().wait_for(Option::is_some).await;
    }

    /// Which language it speaks.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Its process.
    pub fn process(&self) -> u32 {
        self.process
    }

    fn order(&self, order: Order) -> Result<(), ShellError> {
        self.orders.send(order).map_err(|_| ShellError::Ended)?;
        ring(&self.wake);
        Ok(())
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.hang_up();
    }
}

/// Wakes whoever sleeps at that descriptor.
fn ring(wake: &OwnedFd) {
    // A counter that is full is awake enough.
    let _ = rustix::io::write(wake, &1u64.to_ne_bytes());
}

/// A secret of letters and digits.
fn key() -> io::Result<String> {
    let mut bytes = [0; KEY_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
