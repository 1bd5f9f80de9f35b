//! Lines for the shell: typed into the user's own, which has the terminal meanwhile (SPEC 8.2), and recorded (SPEC 8.3).
//!
//! Where there is no terminal to lend, `!command` runs through the engine as the `bash` tool runs one, without the gate, since the
//! person typed it; a bare `cd` moves the session there.

use super::route::cd_target;
use super::typing::TypeAhead;
use super::{Next, Repl, ReplError};
use crate::shell::terminal::{Cursor, Lent};
use crate::shell::{Jobs, Typed, UserShell};
use crate::term::command;
use aish_core::event::{Command, Proposed};
use aish_core::sanitize;
use aish_shell::{NotRun, Shell, ShellError};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Leaves a shell, in all of them.
const EXIT: &str = "exit";

/// The status of a command that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

/// The prompt is drawn by then: what the shell does at its start must not hold it up (SPEC 11).
const DRAWN_MS: u64 = 30;

/// When the prompt that is shown now will be there.
pub(super) fn drawn_by() -> Instant {
    Instant::now() + Duration::from_millis(DRAWN_MS)
}

/// Resolves when the shell is to be started: behind the first prompt, or when the one that was there has ended. Never, where there
/// is to be none.
pub(super) async fn wants_tending(shell: Option<Option<Arc<Shell>>>, drawn: Instant) {
    match shell {
        None => std::future::pending().await,
        Some(None) => tokio::time::sleep_until(drawn).await,
        Some(Some(shell)) => shell.ended().await,
    }
}

impl Repl {
    /// A line the person typed for the shell.
    pub(super) async fn run_shell(&mut self, line: &str) -> Result<(), ReplError> {
        if self.shell.is_none() {
            return self.run_beside(line).await;
        }
        self.run_live(line, None).await.map(|_| ())
    }

    /// Types a line into the live shell and records it, with how it came to be run where a reply proposed it. `None` where it
    /// did not run, which was said.
    pub(super) async fn run_live(
        &mut self,
        line: &str,
        proposed: Option<Proposed>,
    ) -> Result<Option<Command>, ReplError> {
        self.front.draw(|renderer, out| renderer.finish(out)).await;
        let (typed, cursor) = match self.type_line(line).await {
            Ok(Some(typed)) => typed,
            // The program is told to leave.
            Ok(None) => return Ok(None),
            Err(error) => {
                self.front.say(&format!("not run: {error}")).await;
                return Ok(None);
            }
        };
        if cursor == Cursor::WithinLine {
            let end = command::line_end(self.front.renderer.look());
            self.front.print(&end).await;
        }
        let (mut command, status) = match typed {
            Typed::Ran(command) | Typed::Died(command) => (command, None),
            Typed::Left(command) => {
                let status = command.status;
                (command, status)
            }
            // It stands in the next prompt.
            Typed::PutBack => {
                return Ok(None);
            }
            Typed::NotRun(why) => {
                self.not_run(why).await;
                // What a reply proposed is not the person's to mend.
                if proposed.is_none() {
                    line.clone_into(&mut self.prefill);
                }
                return Ok(None);
            }
            Typed::Replaced => {
                self.front.catch_up().await;
                self.front
                    .say("not run, since it was meant for the one that is gone")
                    .await;
                line.clone_into(&mut self.prefill);
                return Ok(None);
            }
        };
        command.proposed = proposed;
        self.left_shell = status.map(|status| u8::try_from(status & 0xff).unwrap_or(u8::MAX));
        // The window may have changed while the command had it.
        self.front.fit();
        if status.is_none()
            && let Some(foot) = command::foot(self.front.renderer.look(), &command)
        {
            self.front.print(&foot).await;
        }
        if let Err(error) = self.driver.record_command(&command).await {
            self.front.say(&error.to_string()).await;
        }
        self.shell_moved().await;
        Ok(Some(command))
    }

    /// Lends the terminal to a line; `None` where the program has to leave before it is over.
    pub(super) async fn type_line(&mut self, line: &str) -> Result<Option<(Typed, Cursor)>, ShellError> {
        let typed = self.lend_to(line).await;
        self.keep_typed_ahead(typed.as_ref().ok().and_then(Option::as_ref).map(|(typed, _)| typed));
        typed
    }

    async fn lend_to(&mut self, line: &str) -> Result<Option<(Typed, Cursor)>, ShellError> {
        let Some(shell) = &mut self.shell else {
            return Err(ShellError::Ended);
        };
        let no_terminal = |source: io::Error| ShellError::Start {
            program: "the terminal".into(),
            source,
        };
        let lent = Lent::take(&self.front.guard).map_err(no_terminal)?;
        let mut leaving = self.front.leaving();
        let ahead = self.front.ahead().map(TypeAhead::unread).unwrap_or_default();
        let running = shell.run(line, ahead, &lent);
        tokio::select! {
            biased;
            _ = leaving.wait_for(Option::is_some) => Ok(None),
            typed = running => {
                let cursor = lent.cursor();
                typed.map(|typed| Some((typed, cursor)))
            }
        }
    }

    async fn not_run(&mut self, why: NotRun) {
        let said = match why {
            NotRun::Incomplete => "not run: it is not whole; a quote, a bracket or a block is still open",
            NotRun::Malformed => "not run: the shell does not understand it",
            NotRun::GivenUp => "not run: the shell was not ready yet",
            NotRun::Starting => {
                "not run: the start-up files of the shell were interrupted; a Ctrl-C at the next command ends the shell with them"
            }
            NotRun::NoAnswer => "not run: the shell does not answer",
        };
        self.front.say(said).await;
    }

    /// What runs beside the shell follows it: the session's directory is the shell's.
    pub(super) async fn shell_moved(&mut self) {
        let Some(shell) = &self.shell else { return };
        // As the rest of the program writes a directory: links resolved. One that is gone is kept by its last name.
        if let Ok(directory) = shell.directory().canonicalize() {
            self.engine.update(|settings| settings.context.directory = directory);
        }
    }

    /// The commands of a turn are given what the shell has exported (SPEC 4.4).
    pub(super) async fn lend_environment(&mut self) {
        let Some(shell) = &mut self.shell else { return };
        let Some(exported) = shell.exported().await else { return };
        for (name, key) in &exported.keys {
            self.engine.redactor.learn(name, key.trim());
        }
        if *self.engine.settings().context.environment != exported.lent {
            let lent = Arc::new(exported.lent.clone());
            self.engine.update(|settings| settings.context.environment = lent);
        }
    }

    /// What was typed while the command ran, and that it did not take, is typed ahead at this prompt. Whoever stopped the command is
    /// not overrun by what was to come after it.
    fn keep_typed_ahead(&mut self, typed: Option<&Typed>) {
        let unused = self.shell.as_mut().map(UserShell::take_ahead).unwrap_or_default();
        if let Some(ahead) = self.front.ahead() {
            ahead.give_back(&unused.sent);
            ahead.go_on_with(&unused.draft);
            ahead.give_back(&unused.unread);
        }
        match typed {
            Some(Typed::Ran(command)) if command.status == Some(INTERRUPTED) => self.front.hold_back(),
            Some(
                Typed::Ran(_) | Typed::Left(_) | Typed::Died(_) | Typed::NotRun(_) | Typed::PutBack | Typed::Replaced,
            )
            | None => {}
        }
    }

    /// The person wants to leave (Ctrl-D). A shell with jobs is left by its own way, and has the last word.
    pub(super) async fn leave(&mut self) -> Result<Next, ReplError> {
        let jobs = match &mut self.shell {
            Some(shell) if self.front.leave_status().is_none() => shell.jobs().await,
            Some(_) | None => Jobs::None,
        };
        match jobs {
            Jobs::None => Ok(Next::Quit),
            Jobs::Some => {
                self.run_live(EXIT, None).await?;
                Ok(Next::Prompt)
            }
        }
    }

    /// Starts the shell where it does not run. The prompt does not wait for it.
    pub(super) async fn tend_shell(&mut self) {
        let Some(shell) = &mut self.shell else { return };
        if let Err(error) = shell.start() {
            self.front.say(&error.to_string()).await;
            self.shell = None;
        }
    }

    /// Runs a command beside the prompt, without a terminal of its own.
    async fn run_beside(&mut self, command: &str) -> Result<(), ReplError> {
        let directory = self.engine.settings().context.directory;
        let home = self.options.environment.path("HOME");
        if let Some(target) = cd_target(command, &directory, home, self.previous_directory.as_deref()) {
            return self.change_directory(target).await;
        }
        self.front
            .draw(|renderer, out| renderer.command_begun(command, out))
            .await;
        let driver = &mut self.driver;
        let ran = self
            .front
            .watch(|notices, cancel| async move { driver.run_command(command, &notices, cancel).await })
            .await;
        match ran {
            Ok(ran) => self.front.draw(|renderer, out| renderer.command_ended(&ran, out)).await,
            Err(error) => self.front.say(&error.to_string()).await,
        }
        Ok(())
    }

    async fn change_directory(&mut self, target: PathBuf) -> Result<(), ReplError> {
        let moved = std::fs::canonicalize(&target).and_then(|path| {
            // Only a directory that may be listed or passed through is one to work in.
            std::fs::metadata(path.join("."))?;
            Ok(path)
        });
        match moved {
            Ok(path) => {
                let before = self.engine.settings().context.directory;
                self.engine.update(|settings| settings.context.directory = path);
                self.previous_directory = Some(before);
            }
            Err(error) => {
                let shown = target.display().to_string();
                self.front
                    .say(&format!("cd {}: {error}", sanitize::single_line(&shown)))
                    .await;
            }
        }
        Ok(())
    }
}
