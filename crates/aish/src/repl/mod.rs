//! The conversational prompt: read a line, send it where it belongs, show what comes of it, until somebody leaves.
//!
//! [`Repl::run`] is all the rest of the program needs. Lines come from an editor on a terminal and from a plain reader
//! everywhere else ([`reader`]); where a line goes is decided by [`route`]; [`turns`] drives the engine and asks; [`front`]
//! shows. Nothing here knows how a model is reached or a rule is saved: that comes in with [`ReplOptions`].

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
mod prompt;
mod proposals;
mod reader;
mod restore;
mod route;
mod router;
mod shell;
mod show;
mod turns;
mod typing;
mod welcome;
mod why;

use crate::config::resolved::EditMode;
use crate::mcp::{Mcp, Say};
use crate::paths::Environment;
use crate::prices::Prices;
use crate::shell::known::Beginning;
use crate::shell::{ShellSetup, UserShell};
use crate::term::columns::wrapped;
use crate::term::guard::Guard;
use crate::term::{Form, Stream, Wishes};
use crate::usage::Gauge;
use aish_core::event::ModelFailed;
use aish_core::turn::{StopReason, Turn};
use aish_engine::{Driver, Engine};
use complete::desk::{Questions, attend, desk};
use complete::{Completion, Words};
pub use editor::Hinting;
use editor::recall::Recall;
use editor::{Editor, EditorSetup};
use front::Front;
use futures_util::future::BoxFuture;
use prompt::PromptText;
pub use proposals::Confirm;
use reader::{Input, Lines, Reader};
use reedline::ExternalPrinter;
use router::{Router, kept};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use tokio::task::JoinHandle;
use turns::TurnEnd;
use welcome::Unmarked;
pub use welcome::{Listening, Visit, Welcome};

/// The name of the file of `:` lines in the data directory.
const HISTORY_NAME: &str = "history";
/// Pieces of text that may wait to be shown above the line being edited.
const LINES_ABOVE_MAX: usize = 64;
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

/// A model that can be chosen, for `:models`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelLine {
    /// What it is called here; empty for a line about those that are left out.
    pub name: String,
    /// Where it is and where that is known from, one line.
    pub origin: String,
}

/// All models that can be chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelLines {
    /// A line each.
    pub lines: Vec<ModelLine>,
    /// What a person should know of the search, line by line: who did not tell, why there is none.
    pub remarks: Vec<String>,
}

/// Saves an allow rule; says in which file, or why not.
pub type SaveRule = Box<dyn FnMut(&str) -> Result<PathBuf, String> + Send>;
/// Finds all models there are; may look around on the network.
pub type ListModels = Box<dyn Fn() -> BoxFuture<'static, ModelLines> + Send>;
/// Lets the session begin with a model, once somebody has said which there are; gives what a person should know, line by line.
pub type ModelChoice = BoxFuture<'static, Vec<String>>;

/// Whether the session had a life before this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opened {
    /// It is new.
    New,
    /// It was restored, and whoever opened it has said so: it is shown again, and what waits in it is asked.
    Restored,
}

/// What to do about a failure of a model, where somebody knows.
pub type Advice = Box<dyn Fn(&ModelFailed) -> Option<String> + Send>;

/// What the prompt needs besides the engine.
pub struct ReplOptions {
    /// The variables of the process: `HOME`, `TERM`, `NO_COLOR`.
    pub environment: Environment,
    /// Where the history is kept.
    pub data_dir: PathBuf,
    /// Whether the session had a life before.
    pub opened: Opened,
    /// Said first, at a terminal only.
    pub welcome: Option<Welcome>,
    /// How the person wants things to look.
    pub wishes: Wishes,
    /// What still has to be awaited before a model can be asked.
    pub choice: Option<ModelChoice>,
    /// For models that give no answer.
    pub advice: Advice,
    /// Names that complete after `:model` before the models were listed.
    pub model_names: Vec<String>,
    /// For `:models`.
    pub models: ListModels,
    /// For the answer `s`.
    pub save_rule: SaveRule,
    /// Whether a command that a reply proposes is asked about where policy allows it.
    pub confirm: Confirm,
    /// What replies cost.
    pub prices: Prices,
    /// The MCP servers; closed by whoever opened them.
    pub mcp: Arc<Mcp>,
    /// Which keys edit the line.
    pub edit_mode: EditMode,
    /// Whether what was typed before is hinted at.
    pub hints: Hinting,
    /// The user's shell, for a terminal; `None` where there is none that can be driven.
    pub shell: Option<ShellSetup>,
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

    fn open(
        guard: Guard,
        engine: Arc<Engine>,
        mut driver: Driver,
        mut options: ReplOptions,
    ) -> Result<Self, ReplError> {
        let gauge = Gauge::new(Arc::clone(&engine.models));
        let mut front =
            Front::take(guard, &options.environment, engine.redactor.clone(), gauge).map_err(ReplError::Open)?;
        driver.watch(&front.notices);
        let notices = front.notices.clone();
        let say: Say = Arc::new(move |line| notices.status(line.to_owned()));
        options.mcp.listen(Arc::clone(&say));
        front.attend(options.mcp.clerk(&engine, options.environment.clone(), say));
        let stdin_is_terminal = rustix::termios::isatty(rustix::stdio::stdin());
        let able = front.renderer.look();
        let kind = match (stdin_is_terminal, able.form) {
            (true, Form::Framed) => Kind::Edited,
            (true, Form::Plain) => Kind::Dumb,
            (false, _) => Kind::Piped,
        };
        front.renderer.set_look(able.wished(options.wishes));
        let shell = options.shell.take().filter(|_| kind == Kind::Edited).map(|setup| {
            let notices = front.notices.clone();
            let program = setup.program.clone();
            let shell = UserShell::new(setup, Arc::new(move |line| notices.status(line.to_owned())));
            shell.known().begin(&Beginning {
                program: &program,
                path: options.environment.path("PATH"),
                home: options.environment.path("HOME"),
            });
            shell
        });
        let router = shell.as_ref().map(|shell| {
            let (corrections, remark) = kept::load(&kept::path(&options.data_dir));
            remark.into_iter().for_each(|remark| front.notices.status(remark));
            Router::new(shell.known(), corrections)
        });
        if kind == Kind::Edited {
            front.keep_quiet();
        }
        // A line that is drawn again and again says nothing to who listens.
        if kind == Kind::Edited && front.renderer.look().form == Form::Framed {
            front
                .type_ahead(engine.redactor.clone(), router.clone())
                .map_err(ReplError::Open)?;
        }
        let began_after = driver.session().last_seq();
        let words = Words::default();
        let (desk, questions) = desk();
        let names = options.model_names.clone();
        let home = options.environment.path("HOME").map(std::path::Path::to_owned);
        words.update(|words| {
            words.models = names;
            words.home = home;
            words.servers = Some(mcp::Reach::new(
                Arc::clone(&options.mcp),
                tokio::runtime::Handle::current(),
            ));
        });
        let above = ExternalPrinter::new(LINES_ABOVE_MAX);
        let to_above = above.sender();
        let recall = Recall::new(options.data_dir.join(HISTORY_NAME), router.clone());
        let reader = match kind {
            Kind::Edited => {
                recall.look_back(Arc::clone(&engine.store), front.notices.clone());
                let setup = EditorSetup {
                    recall: recall.clone(),
                    edit_mode: options.edit_mode,
                    hints: options.hints,
                    completion: Completion::new(words.clone(), router.clone(), Some(desk)),
                    colour: front.renderer.look().colour,
                    background: front.renderer.look().background,
                    notices: front.notices.clone(),
                    above,
                    router: router.clone(),
                };
                Reader::start(move || Editor::new(setup))
            }
            Kind::Dumb | Kind::Piped => Reader::start(|| Lines::new(io::stdin().lock())),
        };
        let choosing = options.choice.take().map(|choice| {
            let notices = front.notices.clone();
            tokio::spawn(async move {
                for remark in choice.await {
                    notices.status(remark);
                }
            })
        });
        Ok(Self {
            choosing,
            reader: reader.map_err(ReplError::Open)?,
            above: to_above,
            engine,
            driver,
            options,
            front,
            kind,
            words,
            questions,
            recall,
            shell,
            router,
            previous_directory: None,
            last: None,
            began_after,
            prefill: String::new(),
            left_shell: None,
        })
    }

    async fn loop_on(&mut self) -> Result<(), ReplError> {
        self.begin().await?;
        while self.front.leave_status().is_none() && self.left_shell.is_none() {
            self.front.renderer.expect_model(&self.engine.settings().model);
            self.front.catch_up().await;
            let next = match self.read().await? {
                Input::Line(line) => self.dispatch(&line).await?,
                Input::Interrupted => {
                    self.front.hold_back();
                    Next::Prompt
                }
                Input::Why => self.dispatch_why().await?,
                // Whoever reads is given the line that came of it.
                Input::Edit(_) => Next::Prompt,
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
                    let input = input.unwrap_or_else(|_| Err(gone()));
                    return input.map_err(|error| {
                        self.front.guard.restore();
                        ReplError::Read(error)
                    });
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
