//! Opens the conversational prompt: what the program knows becomes what the prompt needs.
//!
//! The prompt waits for nobody (SPEC 11): where a provider must be asked which models it has, that goes on behind it, and the
//! first question waits for the answer.

use crate::app::{App, begin_with};
use crate::cli::Start;
use crate::failure::Failure;
use crate::mcp::{Begin, Mcp};
use crate::models::absence::{Absence, Silence};
use crate::models::{Registry, list};
use crate::oneshot;
use crate::repl::{
    Confirm, Hinting, Listening, ModelChoice, ModelLine, ModelLines, Opened, Repl, ReplOptions, Visit, Welcome,
};
use crate::shell::{ShellSetup, program};
use crate::term::guard::Guard;
use aish_core::redact::Redactor;
use aish_engine::Engine;
use std::sync::Arc;
use std::time::Duration;

/// How long the prompt may wait to be told its model: servers of this machine answer within it, and nobody sees it.
const PROMPT_WAIT_MS: u64 = 10;

/// What is known of the model when the prompt appears.
enum Begun {
    /// This is it.
    With(String),
    /// There is none.
    Without(Absence),
    /// Somebody is being asked.
    Asking,
}

/// Opens the prompt on a session.
///
/// # Errors
/// The session or the terminal cannot be opened, or a model was named that is not there.
pub async fn open(app: &App, start: &Start) -> Result<u8, Failure> {
    // Before there is another thread, see there.
    let guard = Guard::install().map_err(|error| Failure::failed(format!("cannot watch the terminal: {error}")))?;
    let (engine, registry) = app.engine_without_model();
    let wanted = app.wanted_model().map(str::to_owned);
    let is_named = wanted.is_some();
    let max_result_chars = app.config().tools.max_result_chars;
    let mut choosing = Box::pin(choose(
        Arc::clone(&engine),
        Arc::clone(&registry),
        wanted,
        max_result_chars,
    ));
    let (begun, choice): (Begun, Option<ModelChoice>) =
        match tokio::time::timeout(Duration::from_millis(PROMPT_WAIT_MS), &mut choosing).await {
            Ok(Err(absence)) if is_named => return Err(absence.failure(&engine.redactor)),
            Ok(Err(absence)) => (Begun::Without(absence), None),
            Ok(Ok(remarks)) => {
                for remark in remarks {
                    oneshot::eprint_line(&engine.redactor.redact(&remark));
                }
                (Begun::With(engine.settings().model), None)
            }
            Err(_) => {
                // Why there is none is said to whoever asks it something.
                let remarks = async move { choosing.await.unwrap_or_default() };
                (Begun::Asking, Some(Box::pin(remarks)))
            }
        };
    // The ledger comes with the first thing that is said or run.
    let visit = if app.paths.ledger.exists() {
        Visit::Again
    } else {
        Visit::First
    };
    let driver = oneshot::open(app, &engine, start).await?;
    let mcp = Arc::new(Mcp::start(app, &engine, &registry, Begin::BehindPrompt));
    let opened = if driver.session().last_seq() == 0 {
        Opened::New
    } else {
        Opened::Restored
    };
    let advising = Arc::clone(&registry);
    let options = ReplOptions {
        environment: app.environment.clone(),
        data_dir: app.paths.data_dir.clone(),
        opened,
        welcome: match opened {
            Opened::New => Some(Welcome {
                listening: listening(&begun, &engine.redactor),
                visit,
            }),
            Opened::Restored => None,
        },
        wishes: app.config().ui.wishes(),
        choice,
        advice: Box::new(move |failed| advising.advice(failed)),
        prices: app.prices(Arc::clone(&registry)),
        model_names: app.config().models.iter().map(|model| model.name.clone()).collect(),
        models: Box::new(move || {
            let registry = Arc::clone(&registry);
            Box::pin(async move { models(&registry).await })
        }),
        save_rule: app.rule_saver(),
        confirm: if app.config().shell.confirm_cmd {
            Confirm::Always
        } else {
            Confirm::WherePolicyAsks
        },
        mcp: Arc::clone(&mcp),
        edit_mode: app.config().shell.edit_mode,
        hints: if app.config().ui.hints {
            Hinting::On
        } else {
            Hinting::Off
        },
        shell: shell(app),
    };
    let left = Repl::run(guard, engine, driver, options).await;
    mcp.close().await;
    left.map_err(|error| Failure::failed(error.to_string()))
}

/// The user's shell, with the environment that is the user's; `None` where there is none that can be kept running.
fn shell(app: &App) -> Option<ShellSetup> {
    let chosen = program::choose(app.config().shell.program.as_deref(), &app.environment)?;
    Some(ShellSetup {
        program: chosen.program,
        remark: chosen.remark,
        directory: app.cwd.clone(),
        environment: app.environment.clone(),
        settings: rustix::termios::tcgetattr(rustix::stdio::stdin()).ok(),
        withheld: app.withheld(),
    })
}

/// Lets the session begin with the model there is; gives what a person should know of how it was found.
async fn choose(
    engine: Arc<Engine>,
    registry: Arc<Registry>,
    wanted: Option<String>,
    max_result_chars: Option<usize>,
) -> Result<Vec<String>, Absence> {
    let chosen = registry.choose(wanted.as_deref()).await.unwrap_or_default();
    let chosen = chosen.ok_or_else(|| registry.absence())?;
    let remarks = chosen.remarks();
    begin_with(&engine, chosen.name, max_result_chars);
    Ok(remarks)
}

fn told(absence: Absence) -> Vec<String> {
    std::iter::once(absence.message).chain(absence.advice).collect()
}

/// What `:models` shows.
async fn models(registry: &Registry) -> ModelLines {
    let choices = registry.choices().await;
    let remarks = if choices.is_empty() {
        told(registry.absence())
    } else {
        registry.silences().iter().map(Silence::line).collect()
    };
    let (shown, left_out) = list::shortened(choices, None);
    let lines = shown.into_iter().map(|choice| ModelLine {
        origin: list::origin(registry, &choice),
        name: choice.name,
    });
    let more = left_out.into_iter().map(|(provider, count)| ModelLine {
        name: String::new(),
        origin: list::more(&provider, count),
    });
    ModelLines {
        lines: lines.chain(more).collect(),
        remarks,
    }
}

/// Who is there to listen.
fn listening(begun: &Begun, redactor: &Redactor) -> Listening {
    match begun {
        Begun::With(model) => Listening::Model(model.clone()),
        Begun::Asking => Listening::Unknown,
        Begun::Without(absence) => {
            let lines = std::iter::once(&absence.message).chain(&absence.advice);
            Listening::Nobody(lines.map(|line| redactor.redact(line).into_owned()).collect())
        }
    }
}
