//! The user's own shell beside the prompt: started behind it, typed into, restarted when it dies, asked what it knows.
//!
//! [`UserShell`] owns the one [`Shell`] of a session (crate `aish-shell`, which knows how a shell is driven). It decides when the
//! shell starts and what becomes of its end ([`ending`]); [`known`] is what the shell can run, for routing and completion;
//! [`program`] is which shell it is; [`terminal`] lends the person's terminal to a command; [`variables`] is what it has exported.

pub mod ending;
pub mod known;
pub mod program;
pub mod terminal;
pub mod variables;

use crate::mcp::Say;
use crate::paths::Environment;
use aish_core::event::Command;
use aish_shell::{
    Became, Capture, Dialect, End, Ended, Ending, NotRun, Ran, Setup, Shell, ShellError, Stage, StartUp, Stops,
};
use known::{Beginning, Knowledge};
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
    /// Nor did it here: the line is typed ahead again, as the shell has it now, to be looked at.
    PutBack,
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

/// What was typed while a command ran, and that it did not take.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ahead {
    /// What was sent: whole lines, as bytes of a terminal.
    pub sent: Vec<u8>,
    /// What nobody has sent, behind them.
    pub draft: String,
    /// Keys behind both, which came to nobody.
    pub unread: Vec<u8>,
}

/// The user's shell.
pub struct UserShell {
    setup: ShellSetup,
    say: Say,
    beside: Say,
    shell: Option<Arc<Shell>>,
    known: Knowledge,
    /// What it had exported when it was asked last, until the next command.
    exported: Option<Exported>,
    /// What was typed while the last command ran, and that it did not take.
    ahead: Ahead,
    /// So many shells in a row have become another one while they read their start-up files.
    handovers: u32,
}

impl UserShell {
    /// Nothing runs yet; `say` tells the person what becomes of the shell, `beside` shows what it prints while no command runs,
    /// in whole lines of clean text.
    pub fn new(setup: ShellSetup, say: Say, beside: Say) -> Self {
        Self {
            known: Knowledge::default(),
            setup,
            say,
            beside,
            shell: None,
            exported: None,
            ahead: Ahead::default(),
            handovers: 0,
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
        self.shell.clone()
    }

    /// Whether its start-up files wait for something that is not to be seen.
    pub fn asks_unseen(&self) -> bool {
        self.live().is_some_and(|shell| shell.asks_unseen())
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
        let Some(shell) = &self.shell else {
            let started = self.begin(&ending::nearest(&self.directory()), StartUp::Own)?;
            self.setup.remark.take().iter().for_each(|remark| (self.say)(remark));
            return Ok(started);
        };
        match shell.ending() {
            None => Ok(Arc::clone(shell)),
            Some(ending) => {
                let became = shell.became();
                self.replace(ending, became.as_ref())
            }
        }
    }

    /// Another shell in the place of one that has ended.
    fn replace(&mut self, ending: Ending, became: Option<&Became>) -> Result<Arc<Shell>, ShellError> {
        let files = ending::files(ending, became, self.handovers);
        self.handovers = match ending.stage {
            Stage::Starting => self.handovers.saturating_add(1),
            Stage::Started => 0,
        };
        let mut directory = self.directory();
        if let (End::Became, Some(Became::Shell(next))) = (ending.how, became) {
            next.program.clone_into(&mut self.setup.program);
            next.directory.clone_into(&mut directory);
            self.setup.environment = Environment::from_pairs(next.environment.iter().cloned());
            self.known.begin(&Beginning {
                program: &self.setup.program,
                path: self.setup.environment.path("PATH"),
                home: self.setup.environment.path("HOME"),
            });
        }
        let directory = ending::nearest(&directory);
        let shell = self.begin(&directory, files)?;
        (self.say)(&ending::told(ending, became, files, &directory));
        Ok(shell)
    }

    /// True when the shell that was there has ended, and no other one was started since.
    pub fn has_ended(&self) -> bool {
        self.shell.as_ref().is_some_and(|shell| shell.ending().is_some())
    }

    /// Types a line and waits for its end, the terminal lent to it meanwhile; `ahead` are the keys that were pressed before, which
    /// it may read. What it does not read is [`UserShell::take_ahead`].
    ///
    /// # Errors
    /// There is no shell to be had, or the line cannot be typed.
    pub async fn run(&mut self, line: &str, ahead: Vec<u8>, terminal: &Lent) -> Result<Typed, ShellError> {
        let directory = self.directory();
        let taken = self.type_into(line, &ahead, terminal).await;
        if !matches!(taken, Ok(Some(_))) {
            self.ahead.unread.extend(ahead);
        }
        let Some((shell, ran)) = taken? else {
            self.start()?;
            return Ok(Typed::Replaced);
        };
        if ran.stops == Stops::Some {
            (self.say)("the shell was stopped, and nobody above it could have it go on: it was told to");
        }
        self.ahead.sent.extend(ran.typed_ahead.as_bytes());
        self.ahead.draft.push_str(&ran.draft);
        self.ahead.unread.extend(&ran.unread);
        let command = Command {
            line: line.to_owned(),
            directory: directory.to_string_lossy().into_owned(),
            duration_ms: u64::try_from(ran.elapsed.as_millis()).unwrap_or(u64::MAX),
            output: kept(&ran.output, terminal),
            ..Command::default()
        };
        self.typed(&shell, ran.ended, command)
    }

    /// Types a line into the shell, or into the one that its start-up files put in its place: that is the one it was meant for.
    /// `None` where the shell ended before it took the line.
    async fn type_into(
        &mut self,
        line: &str,
        ahead: &[u8],
        terminal: &Lent,
    ) -> Result<Option<(Arc<Shell>, Ran)>, ShellError> {
        if self.has_ended() {
            return Ok(None);
        }
        self.exported = None;
        loop {
            let shell = self.start()?;
            let relay = terminal.relay(ahead.to_vec()).map_err(|_| ShellError::Ended)?;
            match followed(&shell, shell.run(line, relay)).await {
                Ok(ran) => return Ok(Some((shell, ran))),
                Err(ShellError::Ended) if has_handed_over(&shell) => {}
                Err(ShellError::Ended) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }

    /// What became of a line, by how it ended.
    fn typed(&mut self, shell: &Shell, ended: Ended, command: Command) -> Result<Typed, ShellError> {
        let how = match ended {
            Ended::Exited(status) => {
                let status = Some(status);
                return Ok(Typed::Ran(Command { status, ..command }));
            }
            Ended::NotRun(why) => return Ok(Typed::NotRun(why)),
            Ended::PutBack => return Ok(Typed::PutBack),
            Ended::ShellEnded(how) => how,
        };
        let became = shell.became();
        let may_leave = || ending::may_leave(&command.line, |word| self.known.is_own(word));
        let (status, is_meant) = match how {
            End::Exited(status) => (Some(status), status == 0 || became.is_some() || may_leave()),
            End::Became => (Some(0), false),
            End::Killed(_) | End::GivenUp | End::Unknown => (None, false),
        };
        let command = Command { status, ..command };
        if is_meant {
            ending::left(became.as_ref()).iter().for_each(|said| (self.say)(said));
            return Ok(Typed::Left(command));
        }
        self.start()?;
        Ok(Typed::Died(command))
    }

    /// Runs a line of our own that nobody sees, and gives what it printed, as it was (no clean-up, bounded); `None` where the
    /// shell is busy, still starting, or does not answer in time. It is in no history and changes no `$?`.
    pub async fn ask(&mut self, line: &str) -> Option<Vec<u8>> {
        let shell = self.shell.as_ref()?;
        shell.ask(line, ASK_MAX).await
    }

    /// Takes what was typed while the last command ran, and that nobody took.
    pub fn take_ahead(&mut self) -> Ahead {
        std::mem::take(&mut self.ahead)
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

/// Whether a shell has become another one while it read its start-up files.
fn has_handed_over(shell: &Shell) -> bool {
    let is_starting = shell.ending().is_some_and(|ending| ending.stage == Stage::Starting);
    is_starting && matches!(shell.became(), Some(Became::Shell(_)))
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
