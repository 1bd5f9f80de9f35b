//! The conversational prompt: read a line, send it where it belongs, show what comes of it, until somebody leaves.
//!
//! [`Repl::run`] is all the rest of the program needs. Lines come from an editor on a terminal and from a plain reader
//! everywhere else ([`reader`]); where a line goes is decided by [`route`]; [`turns`] drives the engine and asks; [`front`]
//! shows; [`open`] sets all of them up. Nothing here knows how a model is reached or a rule is saved: that comes in with
//! [`ReplOptions`].

mod commands;
mod complete;
mod copy;
mod dispatch;
mod edit;
mod editor;
mod front;
mod mcp;
mod mentioned;
mod meta;
mod open;
mod options;
mod prompt;
mod proposals;
mod reader;
#[cfg(test)]
mod replies;
mod restore;
mod route;
mod router;
mod shell;
mod show;
mod turns;
mod typing;
mod welcome;
mod why;

use crate::shell::UserShell;
use crate::term::Stream;
use crate::term::columns::wrapped;
use crate::term::guard::Guard;
use aish_core::turn::{StopReason, Turn};
use aish_engine::{Driver, Engine};
use complete::Words;
use complete::desk::{Questions, attend};
pub use editor::Hinting;
use editor::recall::Recall;
use front::Front;
pub use options::{ModelChoice, ModelLine, ModelLines, Opened, ReplOptions, SaveRule};
use prompt::PromptText;
pub use proposals::Confirm;
use reader::{Input, Reader};
use router::Router;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use tokio::task::JoinHandle;
use turns::TurnEnd;
use welcome::Unmarked;
pub use welcome::{Listening, Visit, Welcome};

/// Exit codes (SPEC 10.2) of a session without a terminal, whose last turn is what it was run for.
const DONE: u8 = 0;
const FAILED: u8 = 1;
const APPROVAL_NEEDED: u8 = 3;
const INTERRUPTED: u8 = 130;

/// Why the prompt had to be left. Everything that happens in a turn is told at the prompt instead.
#[derive(Debug, thiserror::Error)]
pub enum ReplError {
    /// The terminal, a signal or a thread was not to be had.
    #[error("cannot open the prompt: {0}")]
    Open(#[source] io::Error),
    /// Lines cannot be read any more.
    #[error("cannot read what is typed: {0}")]
    Read(#[source] io::Error),
}

/// The prompt.
pub struct Repl {
    engine: Arc<Engine>,
    driver: Driver,
    options: ReplOptions,
    front: Front,
    reader: Reader,
    /// Shows lines above the one being edited.
    above: SyncSender<String>,
    kind: Kind,
    words: Words,
    /// What the editor's thread asks the shell.
    questions: Questions,
    /// What was typed before.
    recall: Recall,
    /// The user's own shell, at a terminal with an editor.
    shell: Option<UserShell>,
    /// Where lines without a mark go; without it they are questions.
    router: Option<Router>,
    previous_directory: Option<PathBuf>,
    last: Option<TurnEnd>,
    /// The last event of the session that was not of this process.
    began_after: u64,
    /// What the next line begins with, for the person to go on with.
    prefill: String,
    /// The person left their shell, with this status, and the prompt with it.
    left_shell: Option<u8>,
    /// The model is being chosen.
    choosing: Option<JoinHandle<()>>,
}

/// Where lines come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A terminal with an editor: it shows the prompt itself.
    Edited,
    /// A terminal without: the prompt is written before each line.
    Dumb,
    /// No terminal: no prompt, and the last turn decides the exit code.
    Piped,
}

/// How waiting for a model came to an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// There is nothing to wait for any more.
    Over,
    /// The person would not wait.
    Cancelled,
}

/// What comes after a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Prompt,
    Quit,
}

impl Repl {
    /// Runs the prompt at the terminal that is guarded until it is left; gives the exit code. The terminal is as it was found afterwards.
    ///
    /// # Errors
    /// There is nothing to read from or write to.
    pub async fn run(guard: Guard, engine: Arc<Engine>, driver: Driver, options: ReplOptions) -> Result<u8, ReplError> {
        let mut repl = Self::open(guard, engine, driver, options)?;
        let left = repl.loop_on().await;
        // Whatever still ends has time to, with the terminal given back.
        repl.front.guard.restore();
        repl.driver.settle().await;
        if let Some(shell) = &mut repl.shell {
            shell.close().await;
        }
        repl.front.catch_up().await;
        left.map(|()| repl.exit_code())
    }

    async fn loop_on(&mut self) -> Result<(), ReplError> {
        self.begin().await?;
        while self.front.leave_status().is_none() && self.left_shell.is_none() {
            self.front.renderer.expect_model(&self.engine.settings().model);
            self.front.catch_up().await;
            let next = match self.read().await? {
                Input::Line(line) => self.dispatch(&line).await?,
                Input::Why => self.dispatch_why().await?,
                // Whoever reads is given the line that came of it.
                Input::Interrupted | Input::Edit(_) => Next::Prompt,
                Input::End => self.leave().await?,
            };
            match next {
                Next::Prompt => {}
                Next::Quit => break,
            }
        }
        Ok(())
    }

    async fn begin(&mut self) -> Result<(), ReplError> {
        if let Some(welcome) = self.options.welcome.take().filter(|_| self.kind != Kind::Piped) {
            let lines = match self.router {
                Some(_) => Unmarked::Guessed,
                None => Unmarked::Questions,
            };
            let text = wrapped(&welcome.text(lines), self.front.renderer.look().width());
            self.front.print(&text).await;
        }
        match self.options.opened {
            Opened::New => Ok(()),
            Opened::Restored => self.restored().await,
        }
    }

    /// A turn that is open from before: what waits is asked at once; what was cut off is the person's to decide.
    async fn open_turn(&mut self) -> Result<(), ReplError> {
        let Some(is_waiting) = self.driver.session().open_turn().map(Turn::is_waiting) else {
            return Ok(());
        };
        if !is_waiting {
            self.front.say("the last turn was cut off before its end").await;
            self.driver.tell_doubt(&self.front.notices);
            self.front.catch_up().await;
            let answer = self.ask_line("go on with it? [Y/n] ").await;
            // Nobody there is not a yes: the turn stays as it is, for somebody who can decide.
            let Some(answer) = answer else {
                return Ok(());
            };
            if answer.trim_start().starts_with(['n', 'N']) {
                if let Err(error) = self.driver.cancel("not gone on with").await {
                    self.front.say(&error.to_string()).await;
                }
                return Ok(());
            }
        }
        self.last = Some(self.drive_on().await?);
        Ok(())
    }

    /// Calls with a result complete after `:show`.
    fn note_calls(&self) {
        let results = self
            .driver
            .session()
            .events()
            .iter()
            .filter_map(aish_core::Event::tool_result);
        let calls: Vec<String> = results.map(|result| result.tool_call_id.as_str().to_owned()).collect();
        self.words.update(|words| words.calls = calls);
    }

    /// What is typed next. A signal to leave ends the wait.
    async fn read_once(&mut self) -> Result<Input, ReplError> {
        let prompt = self.prompt();
        let directory = self.engine.settings().context.directory;
        if let Some(shell) = &self.shell {
            shell.known().enter(&directory);
        }
        self.recall.stand_in(&directory);
        self.words.update(|words| words.directory = directory);
        let mut leaving = self.front.leaving();
        let notices = self.front.notices.clone();
        if let Some(line) = self.typed_ahead(&prompt).await {
            return Ok(Input::Line(line));
        }
        self.show_prompt(&prompt).await;
        let prefill = std::mem::take(&mut self.prefill);
        let mut line = self.reader.begin(prompt.clone(), prefill);
        let drawn = shell::drawn_by();
        loop {
            let shell = self.shell.as_ref().map(UserShell::live);
            tokio::select! {
                biased;
                _ = leaving.wait_for(Option::is_some) => return Ok(Input::End),
                input = &mut line => {
                    let gone = || io::Error::other("the reader stopped");
                    let taken = input.unwrap_or_else(|_| Err(gone())).map_err(|error| {
                        self.front.guard.restore();
                        ReplError::Read(error)
                    })?;
                    // What waited was to come after the line that was given up; what was typed behind the Ctrl-C was not.
                    if taken.input == Input::Interrupted {
                        self.front.hold_back();
                    }
                    if let Some(ahead) = self.front.ahead() {
                        ahead.give_back(&taken.unread);
                    }
                    return Ok(taken.input);
                }
                () = self.front.interrupted() => {}
                () = notices.changed() => {
                    self.tell_above().await;
                    continue;
                }
                () = shell::wants_tending(shell, drawn) => {
                    self.tend_shell().await;
                    continue;
                }
                () = attend(self.shell.as_mut(), &mut self.questions) => {}
            }
            // An editor sees Ctrl-C as a key; here it was a signal, and the terminal has thrown the line away.
            match self.kind {
                Kind::Edited => {}
                Kind::Dumb => {
                    self.front.print("\n").await;
                    self.show_prompt(&prompt).await;
                }
                Kind::Piped => return Ok(self.interrupted_without_terminal()),
            }
        }
    }

    /// Shows what was told while a line is being typed: above it where there is an editor, at once elsewhere.
    async fn tell_above(&mut self) {
        match self.kind {
            Kind::Edited => {
                let text = self.front.told();
                // An editor that shows nothing any more has been left.
                if !text.is_empty() {
                    let _ = self.above.try_send(text);
                }
            }
            Kind::Dumb | Kind::Piped => self.front.catch_up().await,
        }
    }

    fn interrupted_without_terminal(&mut self) -> Input {
        self.last = Some(TurnEnd::Over(StopReason::Cancelled));
        Input::End
    }

    async fn show_prompt(&mut self, prompt: &PromptText) {
        match self.kind {
            Kind::Dumb => {
                let columns = self.front.renderer.look().columns;
                let text = format!("{}{}", prompt.left(columns), prompt::INDICATOR);
                self.front.draw(|_, out| out.push(Stream::Frame, &text)).await;
            }
            Kind::Edited | Kind::Piped => {}
        }
    }

    /// Waits until it is known which model to ask, which may still be being found out.
    async fn wait_for_model(&mut self) -> Wait {
        let Some(mut choosing) = self.choosing.take() else {
            return Wait::Over;
        };
        if !self.engine.settings().model.is_empty() {
            return Wait::Over;
        }
        let waited = self
            .front
            .watch(|_, mut cancel| async move {
                tokio::select! {
                    _ = &mut choosing => Ok(()),
                    _ = cancel.wait_for(|cancelled| *cancelled) => Err(choosing),
                }
            })
            .await;
        match waited {
            Ok(()) => {
                self.front.renderer.expect_model(&self.engine.settings().model);
                Wait::Over
            }
            Err(choosing) => {
                self.choosing = Some(choosing);
                self.front.say("stopped").await;
                Wait::Cancelled
            }
        }
    }

    fn exit_code(&self) -> u8 {
        match (self.front.leave_status(), self.kind) {
            (Some(status), _) => status,
            (None, Kind::Edited | Kind::Dumb) => self.left_shell.unwrap_or(DONE),
            (None, Kind::Piped) => match self.last {
                None | Some(TurnEnd::Over(StopReason::End | StopReason::Limit | StopReason::Declined)) => DONE,
                Some(TurnEnd::Over(StopReason::ModelFailed | StopReason::Truncated) | TurnEnd::Failed) => FAILED,
                Some(TurnEnd::Over(StopReason::Cancelled)) => INTERRUPTED,
                Some(TurnEnd::Waiting) => APPROVAL_NEEDED,
            },
        }
    }
}
