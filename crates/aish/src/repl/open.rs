//! Opening the prompt: the terminal is taken, and what goes with it begins. Nothing is waited for: whatever takes its time (the
//! shell, the history, the choice of a model) goes on while the first line is typed.

use super::complete::desk::desk;
use super::complete::{Completion, Words};
use super::editor::recall::Recall;
use super::editor::{Editor, EditorSetup};
use super::front::Front;
use super::reader::{Lines, Reader};
use super::router::{Router, kept};
use super::{Kind, ModelChoice, Repl, ReplError, ReplOptions, mcp};
use crate::mcp::Say;
use crate::paths::Environment;
use crate::shell::known::Beginning;
use crate::shell::{ShellSetup, UserShell};
use crate::term::Form;
use crate::term::guard::Guard;
use crate::usage::Gauge;
use aish_engine::{Driver, Engine, Notice, Notices};
use reedline::ExternalPrinter;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The name of the file of `:` lines in the data directory.
const HISTORY_NAME: &str = "history";
/// Pieces of text that may wait to be shown above the line being edited.
const LINES_ABOVE_MAX: usize = 64;

impl Repl {
    /// Sets everything up at the terminal that is guarded. To be called within the runtime.
    ///
    /// # Errors
    /// The terminal, a signal or a thread is not to be had.
    pub(super) fn open(
        guard: Guard,
        engine: Arc<Engine>,
        mut driver: Driver,
        mut options: ReplOptions,
    ) -> Result<Self, ReplError> {
        let mut front = front(guard, &engine, &mut driver, &options)?;
        let able = front.renderer.look();
        let kind = kind(able.form);
        front.renderer.set_look(able.wished(options.wishes));
        let shell = options.shell.take().filter(|_| kind == Kind::Edited);
        let shell = shell.map(|setup| user_shell(setup, &options.environment, &front.notices));
        let router = shell
            .as_ref()
            .map(|shell| router(shell, &options.data_dir, &front.notices));
        if kind == Kind::Edited {
            front.keep_quiet();
            let typed = front.type_ahead(engine.redactor.clone(), router.clone());
            typed.map_err(ReplError::Open)?;
        }
        let words = words(&options);
        let (desk, questions) = desk();
        let above = ExternalPrinter::new(LINES_ABOVE_MAX);
        let to_above = above.sender();
        let recall = Recall::new(options.data_dir.join(HISTORY_NAME), router.clone());
        let reader = match kind {
            Kind::Edited => {
                recall.look_back(Arc::clone(&engine.store), front.notices.clone());
                let servers = Arc::clone(&options.mcp);
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
                    drawn: Arc::new(move || servers.begin()),
                };
                Reader::start(move || Editor::new(setup))
            }
            Kind::Dumb | Kind::Piped => {
                options.mcp.begin();
                Reader::start(|| Lines::new(io::stdin().lock()))
            }
        };
        let choice = options.choice.take();
        Ok(Self {
            choosing: choice.map(|choice| tokio::spawn(tell_choice(choice, front.notices.clone()))),
            reader: reader.map_err(ReplError::Open)?,
            above: to_above,
            began_after: driver.session().last_seq(),
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
            prefill: String::new(),
            left_shell: None,
        })
    }
}

/// The person's side, to which the engine and the servers speak from now on.
fn front(guard: Guard, engine: &Arc<Engine>, driver: &mut Driver, options: &ReplOptions) -> Result<Front, ReplError> {
    let gauge = Gauge::new(Arc::clone(&engine.models));
    let mut front =
        Front::take(guard, &options.environment, engine.redactor.clone(), gauge).map_err(ReplError::Open)?;
    driver.watch(&front.notices);
    let notices = front.notices.clone();
    let say: Say = Arc::new(move |line| notices.status(line.to_owned()));
    options.mcp.listen(Arc::clone(&say));
    front.attend(options.mcp.clerk(engine, options.environment.clone(), say));
    Ok(front)
}

/// Where lines come from, with an output that can show things in that form.
fn kind(form: Form) -> Kind {
    match (rustix::termios::isatty(rustix::stdio::stdin()), form) {
        (true, Form::Framed) => Kind::Edited,
        (true, Form::Plain) => Kind::Dumb,
        (false, Form::Framed | Form::Plain) => Kind::Piped,
    }
}

/// The user's shell; what it knows is guessed from the environment until it can be asked.
fn user_shell(setup: ShellSetup, environment: &Environment, notices: &Notices) -> UserShell {
    let (own, shells) = (notices.clone(), notices.clone());
    let program = setup.program.clone();
    let say = Arc::new(move |line: &str| own.status(line.to_owned()));
    let beside = Arc::new(move |text: &str| shells.push(Notice::Beside(text.to_owned())));
    let shell = UserShell::new(setup, say, beside);
    shell.known().begin(&Beginning {
        program: &program,
        path: environment.path("PATH"),
        home: environment.path("HOME"),
    });
    shell
}

/// Who decides about lines without a mark, with what the person taught them before.
fn router(shell: &UserShell, data_dir: &Path, notices: &Notices) -> Router {
    let (corrections, remark) = kept::load(&kept::path(data_dir));
    remark.into_iter().for_each(|remark| notices.status(remark));
    Router::new(shell.known(), corrections)
}

/// What completes from the start.
fn words(options: &ReplOptions) -> Words {
    let words = Words::default();
    let names = options.model_names.clone();
    let home = options.environment.path("HOME").map(Path::to_owned);
    let servers = mcp::Reach::new(Arc::clone(&options.mcp), tokio::runtime::Handle::current());
    words.update(|words| {
        words.models = names;
        words.home = home;
        words.servers = Some(servers);
    });
    words
}

/// Waits for the choice of a model, and tells what a person should know of it.
async fn tell_choice(choice: ModelChoice, notices: Notices) {
    for remark in choice.await {
        notices.status(remark);
    }
}
