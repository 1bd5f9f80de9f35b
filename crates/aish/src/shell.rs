//! The user's own shell beside the prompt: started behind it, typed into, restarted when it dies, asked what it knows.
//!
//! [`UserShell`] owns the one [`Shell`] of a session (crate `aish-shell`, which knows how a shell is driven). It decides when the
//! shell starts and what becomes of its end; [`known`] is what the shell can run, for routing and completion; [`program`] is which
//! shell it is; [`terminal`] lends the person's terminal to a command; [`variables`] is what it has exported.

pub mod known;
pub mod program;
pub mod terminal;
pub mod variables;

use crate::mcp::Say;
use crate::paths::Environment;
use aish_core::event::Command;
use aish_shell::{Capture, Dialect, End, Ended, Ending, NotRun, Setup, Shell, ShellError, Stage, StartUp};
use known::Knowledge;
use rustix::termios::Termios;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use terminal::Lent;
use tokio::signal::unix::{SignalKind, signal};
use variables::{Exported, Withheld};

/// What is kept of a program's output that had the whole screen.
const SCREEN_REMARK: &str = "[it had the whole screen, which is not kept]";

/// How long an answer of the shell's is waited for.
const ASK_MAX: Duration = Duration::from_millis(1_000);

/// How long a turn waits for what the shell has exported: one that is still starting has nothing to say yet.
const EXPORTED_MAX: Duration = Duration::from_millis(500);
/// How long a shell that is hung up may take to end.
const CLOSE_MAX: Duration = Duration::from_millis(1_000);

/// How the shell is begun, and begun again.
pub struct ShellSetup {
    /// Its program: `$SHELL`, or the nearest that can be driven.
    pub program: PathBuf,
    /// What a person should know of that choice, one line.
    pub remark: Option<String>,
    /// Where it starts.
    pub directory: PathBuf,
    /// All its variables.
    pub environment: Environment,
    /// How the person's terminal is set.
    pub settings: Option<Termios>,
    /// What is not passed on of what it exports.
    pub withheld: Withheld,
}

/// What became of a line that was typed into the shell.
#[derive(Debug)]
pub enum Typed {
    /// It ran.
    Ran(Command),
    /// The shell would not run it: nothing happened.
    NotRun(NotRun),
    /// The person left the shell by it (`exit`).
    Left(Command),
    /// The shell died of it or beside it; another one was started, and that was said.
    Died(Command),
    /// The shell had died before; another one was started, that was said, and nothing was typed into it: what the line meant in
    /// the one that is gone (its variables, its directory) it may not mean in this one.
    Replaced,
}

/// Whether a shell has jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jobs {
    /// None, or it cannot tell.
    None,
    /// Running or stopped ones.
    Some,
}

/// The user's shell.
pub struct UserShell {
    setup: ShellSetup,
    say: Say,
    shell: Option<Arc<Shell>>,
    known: Knowledge,
    /// What it had exported when it was asked last, until the next command.
    exported: Option<Exported>,
    /// What was typed while the last command ran, and that it did not take.
    typed_ahead: String,
}

impl UserShell {
    /// Nothing runs yet; `say` tells the person what becomes of the shell, `beside` shows what it prints while no command runs,
    /// in whole lines of clean text.
    pub fn new(setup: ShellSetup, say: Say, beside: Say) -> Self {
        Self {
            known: Knowledge::default(),
            setup,
            say,
            shell: None,
    beside: Say,
            exported: None,
            typed_ahead: String::new(),
        }
    }

    /// What it can run; follows the shell while it lives.
    pub fn known(&self) -> Knowledge {
        self.known.clone()
    }

    /// Its language; `None` where nobody knows.
    pub fn dialect(&self) -> Option<Dialect> {
        Dialect::of(&self.setup.program)
    }

    /// The shell that was started last, if one was.
    pub fn live(&self) -> Option<Arc<Shell>> {
            beside,
        self.shell.clone()
    }

    /// Where it works.
    pub fn directory(&self) -> PathBuf {
        match &self.shell {
            Some(shell) => shell.directory(),
            None => self.setup.directory.clone(),
        }
    }

    /// The shell that runs, started where none does; returns at once. One that has ended is replaced, and that is said.
    ///
    /// # Errors
    /// There is none that can be driven.
    pub fn start(&mut self) -> Result<Arc<Shell>, ShellError> {
        let ending = match &self.shell {
            Some(shell) => match shell.ending() {
                None => return Ok(Arc::clone(shell)),
                Some(ending) => Some(ending),
            },
            None => None,
        };
        let directory = nearest(&self.directory());
        let files = match ending.map(|ending| ending.stage) {
            Some(Stage::Starting) => StartUp::None,
            Some(Stage::Started) | None => StartUp::Own,
        };
        let shell = self.begin(&directory, files)?;
        match ending {
            Some(ending) => (self.say)(&replaced(ending, &directory)),
            None => self.setup.remark.take().iter().for_each(|remark| (self.say)(remark)),
        }
        Ok(shell)
    }

    /// True when the shell that was there has ended, and no other one was started since.
    pub fn has_ended(&self) -> bool {
        self.shell.as_ref().is_some_and(|shell| shell.ending().is_some())
    }

    /// Types a line and waits for its end, the terminal lent to it meanwhile.
    ///
    /// # Errors
    /// There is no shell to be had, or the line cannot be typed.
    pub async fn run(&mut self, line: &str, terminal: &Lent) -> Result<Typed, ShellError> {
        if self.has_ended() {
            self.start()?;
            return Ok(Typed::Replaced);
        }
        let shell = self.start()?;
        self.exported = None;
        let directory = shell.directory();
        let relay = terminal.relay().map_err(|_| ShellError::Ended)?;
        let ran = match followed(&shell, shell.run(line, relay)).await {
            Ok(ran) => ran,
            // It died just now, before it took the line.
            Err(ShellError::Ended) => {
                self.start()?;
                return Ok(Typed::Replaced);
            }
            Err(error) => return Err(error),
        };
        self.typed_ahead.push_str(&ran.typed_ahead);
        let command = |status| Command {
            line: line.to_owned(),
            directory: directory.to_string_lossy().into_owned(),
            status,
            duration_ms: u64::try_from(ran.elapsed.as_millis()).unwrap_or(u64::MAX),
            output: kept(&ran.output, terminal),
            ..Command::default()
        };
        Ok(match ran.ended {
            Ended::Exited(status) => Typed::Ran(command(Some(status))),
            Ended::NotRun(why) => Typed::NotRun(why),
            Ended::ShellEnded(End::Exited(status)) => Typed::Left(command(Some(status))),
            Ended::ShellEnded(End::Killed(_) | End::Unknown) => {
                let command = command(None);
                self.start()?;
                Typed::Died(command)
            }
        })
    }

    /// Runs a line of our own that nobody sees, and gives what it printed, as it was (no clean-up, bounded); `None` where the
    /// shell is busy, still starting, or does not answer in time. It is in no history and changes no `$?`.
    pub async fn ask(&mut self, line: &str) -> Option<Vec<u8>> {
        let shell = self.shell.as_ref()?;
        shell.ask(line, ASK_MAX).await
    }

    /// Takes what was typed while the last command ran, and that nobody took: whole lines, and the beginning of one.
    pub fn take_typed_ahead(&mut self) -> String {
        std::mem::take(&mut self.typed_ahead)
    }

    /// What it has exported, for commands that run beside it (SPEC 4.4); `None` where it cannot tell now.
    pub async fn exported(&mut self) -> Option<&Exported> {
        if self.exported.is_none() {
            let shell = self.shell.as_ref()?;
            let answer = shell.ask(&variables::question()?, EXPORTED_MAX).await?;
            let exported = variables::read(&answer, &self.setup.withheld);
            // There is always something: else it was no answer.
            self.exported = Some(exported).filter(|exported| !exported.lent.is_empty());
        }
        self.exported.as_ref()
    }

    /// Whether it has jobs, which end with it.
    pub async fn jobs(&mut self) -> Jobs {
        let Some(dialect) = self.shell.as_ref().map(|shell| shell.dialect()) else {
            return Jobs::None;
        };
        let question = match dialect {
            Dialect::Bash | Dialect::Fish => "jobs",
            // Whoever has seen a list of them is not warned of them any more.
            Dialect::Zsh => "print -rn -- \"${jobstates[*]}\"",
        };
        match self.ask(question).await {
            Some(listed) if !listed.trim_ascii().is_empty() => Jobs::Some,
            Some(_) | None => Jobs::None,
        }
    }

    /// Hangs up, as closing a terminal does, and waits until it has ended.
    pub async fn close(&mut self) {
        let Some(shell) = self.shell.take() else { return };
        // One that has ended cannot be hung up.
        let _ = shell.hang_up();
        let _ = tokio::time::timeout(CLOSE_MAX, shell.ended()).await;
    }

    fn begin(&mut self, directory: &Path, files: StartUp) -> Result<Arc<Shell>, ShellError> {
        let setup = Setup {
            program: self.setup.program.clone(),
            directory: directory.to_owned(),
            environment: self
                .setup
                .environment
                .pairs()
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            size: terminal::size(),
            settings: self.setup.settings.clone(),
            files,
        };
        let beside = Arc::clone(&self.beside);
        let shell = Arc::new(Shell::start(&setup, move |text: &str| beside(text))?);
        self.shell = Some(Arc::clone(&shell));
        Ok(shell)
    }
}

/// What is kept of a command's output, as clean text.
fn kept(output: &Capture, terminal: &Lent) -> String {
    let text = output.text(Some(terminal::size()));
    if !terminal.was_full_screen() {
        return text;
    }
    // Of a part nobody can say which screen it was on.
    if text.is_empty() || !output.is_whole() {
        return SCREEN_REMARK.to_owned();
    }
    format!("{text}\n{SCREEN_REMARK}")
}

/// Drives a command, with the shell's terminal following the size of the person's.
async fn followed<T>(shell: &Shell, running: impl Future<Output = T>) -> T {
    let fit = || {
        // A shell that has ended has no size.
        let _ = shell.resize(terminal::size());
    };
    let Ok(mut resized) = signal(SignalKind::window_change()) else {
        fit();
        return running.await;
    };
    fit();
    tokio::pin!(running);
    loop {
        tokio::select! {
            biased;
            done = &mut running => return done,
            _ = resized.recv() => fit(),
        }
    }
}

/// The directory, or the nearest above it that is still there.
fn nearest(directory: &Path) -> PathBuf {
    let there = directory.ancestors().find(|directory| directory.is_dir());
    there.unwrap_or(Path::new("/")).to_owned()
}

/// What a person is told of a shell that is no more.
fn replaced(ending: Ending, directory: &Path) -> String {
    let how = match ending.how {
        End::Exited(status) => format!("exit {status}"),
        End::Killed(signal) => format!("killed by signal {signal}"),
        End::Unknown => "nobody knows how".to_owned(),
    };
    let place = directory.display();
    match ending.stage {
        Stage::Starting => format!(
            "the shell ended while it read its start-up files ({how}); a new one was started in {place} without them"
        ),
        Stage::Started => {
            format!("the shell ended ({how}); a new one was started in {place}; its variables and jobs are gone")
        }
    }
}
