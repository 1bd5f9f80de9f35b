//! One prompt and out: `aish -p`, and `aish resume` from a script (SPEC 10.3, 5.6).
//!
//! The reply goes to standard output and nothing else does; what happens around it is `[aish]` lines on standard error. When
//! a call must be approved, the controlling terminal is asked if there is one, even with piped input; if not, the turn is
//! left waiting in the ledger and the exit code is 3.

mod front;
mod input;
mod structured;
mod written;

use crate::app::App;
use crate::cli::{Output, Resume, Start};
use crate::directory;
use crate::failure::{DONE, Failure};
use crate::mcp::clerk::Clerk;
use crate::mcp::{Begin, Mcp, Say};
use crate::mentions::{self, Mentioned, Places};
use crate::models::Registry;
use crate::schema::Schema;
use crate::sessions;
use crate::signals::{end_asked, unless_ended};
use aish_core::event::{Answer, AnswerScope, AnsweredBy};
use aish_core::message::Part;
use aish_core::redact::Redactor;
use aish_core::sanitize;
use aish_engine::{AnswerRequest, Driver, Engine, Outcome};
use aish_tools::Cancel;
use front::Front;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use written::Written;

/// `aish -p`; with a schema, the reply must fit it.
///
/// # Errors
/// The prompt could not be put to a model at all.
pub async fn prompt(
    app: &App,
    prompt: &str,
    start: &Start,
    output: Output,
    schema: Option<&Path>,
) -> Result<u8, Failure> {
    let cancel = end_asked();
    let schema = schema.map(Schema::read).transpose()?;
    let (text, mut parts) = input::question(prompt, &cancel).await?;
    // What came down a pipe was perhaps written by somebody else: it names no files of the user's, and no resources.
    let names = if prompt == "-" { "" } else { text.as_str() };
    let mut mentioned = named_files(app, names)?;
    if text.trim().is_empty() && parts.is_empty() {
        return Err(Failure::usage("there is nothing to ask: the prompt is empty"));
    }
    let (engine, registry) = unless_ended(&cancel, app.engine()).await??;
    if engine.settings().model.is_empty() {
        return Err(registry.absence().failure(&engine.redactor));
    }
    engine.update(|settings| settings.schema = schema.as_ref().map(Schema::value));
    let driver = open(app, &engine, start).await?;
    with_servers(app, &engine, &registry, &cancel, async |mcp| {
        let read = unless_ended(&cancel, mcp.read_named(names, &mut mentioned)).await?;
        tell(app, &mut mentioned);
        read.map_err(Failure::usage)?;
        parts.append(&mut mentioned.parts);
        let front = Front::new(app, Arc::clone(&registry), output, cancel.clone())
            .with_schema(schema)
            .attending(clerk(app, &engine, &mcp));
        ask(driver, front, &engine, (&text, parts)).await
    })
    .await
}

/// Puts the question, after what was left of the last one.
async fn ask(
    mut driver: Driver,
    front: Front<'_>,
    engine: &Arc<Engine>,
    (text, parts): (&str, Vec<Part>),
) -> Result<u8, Failure> {
    driver.watch(&front.notices);
    if driver.session().open_turn().is_some_and(|turn| !turn.is_waiting()) {
        front.say("the last turn was cut off; finishing it first");
        let elsewhere = directory::enter(engine, driver.session())?;
        if let Some(elsewhere) = &elsewhere {
            front.say(&elsewhere.line());
        }
        let driven = front.drive(&mut driver).await;
        if let Some(elsewhere) = elsewhere {
            elsewhere.leave(engine);
        }
        driven?;
    }
    let front = front.counting_from_next_turn(&driver);
    driver.start(text, parts).await?;
    front.finish(&mut driver).await
}

/// Runs that with the MCP servers: it waits for those that come soon, and leaves none behind.
async fn with_servers(
    app: &App,
    engine: &Arc<Engine>,
    registry: &Arc<Registry>,
    cancel: &Cancel,
    run: impl AsyncFnOnce(Arc<Mcp>) -> Result<u8, Failure>,
) -> Result<u8, Failure> {
    let mcp = Arc::new(Mcp::start(app, engine, registry, Begin::AtOnce));
    mcp.listen(say(engine));
    let ended = match unless_ended(cancel, mcp.arrived()).await {
        Ok(Ok(())) => {
            mcp.tell_missing();
            let ended = run(Arc::clone(&mcp)).await;
            if ended.is_ok() {
                // Whoever asks to stop now has the answer.
                let _ = unless_ended(cancel, mcp.renewed()).await;
            }
            ended
        }
        Ok(Err(missing)) => Err(Failure::failed(missing).hint("the server is `required` in the configuration")),
        Err(ended) => Err(ended),
    };
    mcp.close().await;
    ended
}

/// Tells the person one line of servers.
fn say(engine: &Engine) -> Say {
    let redactor = engine.redactor.clone();
    Arc::new(move |line| eprint_line(&redactor.redact(line)))
}

/// Who answers servers at the terminal, if there is one.
fn clerk(app: &App, engine: &Arc<Engine>, mcp: &Mcp) -> Clerk {
    mcp.clerk(engine, app.environment.clone(), say(engine))
}

/// The files a prompt names; what a person should know of them is told.
fn named_files(app: &App, text: &str) -> Result<Mentioned, Failure> {
    let servers: Vec<String> = app
        .config()
        .mcp
        .servers
        .iter()
        .map(|server| server.alias.clone())
        .collect();
    let places = Places {
        directory: &app.cwd,
        home: app.environment.path("HOME"),
        servers: &servers,
    };
    let mut mentioned = mentions::gather(text, places).map_err(Failure::usage)?;
    tell(app, &mut mentioned);
    Ok(mentioned)
}

/// Tells a person what they should know of what their question names.
fn tell(app: &App, mentioned: &mut Mentioned) {
    for remark in std::mem::take(&mut mentioned.remarks) {
        eprint_line(&app.redactor().redact(&remark));
    }
}

/// `aish resume ID` with answers, or where there is no terminal to open the shell on.
///
/// # Errors
/// An answer does not fit, or the turn could not be driven.
pub async fn resume(app: &App, resume: &Resume, output: Output) -> Result<u8, Failure> {
    let cancel = end_asked();
    let (engine, registry) = unless_ended(&cancel, app.engine()).await??;
    let id = sessions::of_id(engine.store.as_ref(), app, &resume.id).await?;
    let driver = Driver::open(Arc::clone(&engine), id).await?;
    with_servers(app, &engine, &registry, &cancel, async |mcp| {
        let front = Front::new(app, Arc::clone(&registry), output, cancel.clone()).attending(clerk(app, &engine, &mcp));
        go_on(driver, front, &engine, resume).await
    })
    .await
}

/// Answers what waits, and drives on.
async fn go_on(mut driver: Driver, front: Front<'_>, engine: &Arc<Engine>, resume: &Resume) -> Result<u8, Failure> {
    let output = front.output;
    driver.watch(&front.notices);
    // Never left again: the program ends with this turn.
    if let Some(elsewhere) = directory::enter(engine, driver.session())? {
        front.say(&elsewhere.line());
    }
    for yes in &resume.approve {
        let request = answer(&yes.call, yes.digest.clone(), Answer::Approve, AnswerScope::Once, None);
        front.answered(driver.answer(request).await?, yes.call.as_str());
    }
    for no in &resume.deny {
        let request = answer(&no.call, None, Answer::Deny, AnswerScope::Once, no.reason.clone());
        front.answered(driver.answer(request).await?, no.call.as_str());
    }
    if driver.session().open_turn().is_none() {
        if !(resume.approve.is_empty() && resume.deny.is_empty()) {
            // Said again what was said before: accepted, without effect (SPEC 3.3). A script still gets its object.
            if output == Output::Json
                && let Outcome::Done(finished) = front.drive(&mut driver).await?
            {
                front.print_finished(&driver, &finished, None);
            }
            return Ok(DONE);
        }
        return Err(
            Failure::usage(format!("session {} waits for nothing", driver.session().id())).hint(format!(
                "say something in it: aish --resume {} -p '…'",
                driver.session().id()
            )),
        );
    }
    front.finish(&mut driver).await
}

/// The session a prompt goes to.
///
/// # Errors
/// There is no such session.
pub async fn open(app: &App, engine: &Arc<Engine>, start: &Start) -> Result<Driver, Failure> {
    let id = match start {
        Start::New => return Ok(Driver::create(Arc::clone(engine))),
        Start::Session(id) => sessions::of_id(engine.store.as_ref(), app, id).await?,
        // Without a terminal to choose at, the last one is what `--resume` without an id can mean.
        Start::Last | Start::Choose => {
            let last = engine.store.list(sessions::of_persons(1)).await?.into_iter().next();
            last.ok_or_else(|| Failure::usage("there is no session to go on with"))?
                .id
        }
    };
    let driver = Driver::open(Arc::clone(engine), id).await?;
    eprint_line(&format!(
        "session restored: {} messages",
        driver.session().context_len()
    ));
    Ok(driver)
}

/// An answer from a script on its user's behalf.
fn answer(
    call: &aish_core::CallId,
    digest: Option<String>,
    answer: Answer,
    scope: AnswerScope,
    reason: Option<String>,
) -> AnswerRequest {
    AnswerRequest {
        call_id: call.clone(),
        digest,
        answer,
        scope,
        by: AnsweredBy::Terminal,
        reason,
    }
}

/// Writes the one object of `--output json` for a failure before there was a turn to report of.
pub fn print_failure(failure: &Failure) {
    let mut written = Written::new(&Redactor::default());
    written.json(&failure.json().to_string());
    written.flush();
}

/// A line for the person.
pub fn eprint_line(text: &str) {
    // A closed standard error is nobody's problem but its reader's.
    // One write: lines of several processes do not mix, and nothing is written in pieces.
    let line = format!("[aish] {}\n", sanitize::single_line(text));
    let _ = std::io::stderr().write_all(line.as_bytes());
}
