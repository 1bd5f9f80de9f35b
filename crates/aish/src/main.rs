//! aish: commands and natural language at one prompt, over one engine and one ledger.
//!
//! This file decides what was asked for and with which exit code the program ends; everything else has a room of its own.

mod agree;
mod app;
mod asking;
mod cli;
mod config;
mod directory;
mod doctor;
mod failure;
mod generated;
mod json;
mod mcp;
mod mentions;
mod models;
mod oneshot;
mod paths;
mod policy;
mod prices;
mod project;
mod repl;
mod schema;
mod serve;
mod sessions;
mod shell;
mod signals;
mod talk;
mod term;
mod token;
mod tools;
mod trust;
mod usage;

use crate::app::App;
use crate::cli::{Cli, Command, ConfigCommand, Models, Output};
use crate::doctor::Question;
use crate::failure::{DONE, FAILED, Failure, USAGE};
use crate::models::probe::Writing;
use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match cli::parse(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are errors to clap, with code 0.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(USAGE));
        }
    };
    quiet_panics();
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            oneshot::eprint_line(&format!("cannot start: {error}"));
            return ExitCode::from(FAILED);
        }
    };
    let code = match runtime.block_on(run(&cli)) {
        Ok(code) => code,
        Err(failure) => {
            if cli.wants_json() {
                oneshot::print_failure(&failure);
            }
            let _ = std::io::stderr().write_all(failure.lines().as_bytes());
            failure.code()
        }
    };
    // A thread that waits for a key must not keep the program from ending.
    runtime.shutdown_background();
    ExitCode::from(code)
}

/// A panic is a fault of ours: it is told in one line, without the inner workings, and where to look for them.
fn quiet_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if std::env::var_os("RUST_BACKTRACE").is_some_and(|value| value != "0") {
            usual(info);
            return;
        }
        let place = info
            .location()
            .map(|place| format!(" ({}:{})", place.file(), place.line()))
            .unwrap_or_default();
        oneshot::eprint_line(&format!(
            "a fault inside aish{place}; the ledger has everything up to here. RUST_BACKTRACE=1 shows more"
        ));
    }));
}

async fn run(cli: &Cli) -> Result<u8, Failure> {
    if let Some(Command::Config {
        what: Some(ConfigCommand::Reference),
    }) = &cli.command
    {
        return sessions::print(&config::reference());
    }
    if let Some(Command::Doctor { probe }) = &cli.command {
        let question = if *probe { Question::Asked } else { Question::Skipped };
        return doctor::run(&cli.common, question).await;
    }
    if let Some(Command::Completions { shell }) = &cli.command {
        return generated::completions(*shell);
    }
    if let Some(Command::Man { dir }) = &cli.command {
        return generated::man(dir.as_deref());
    }
    let app = App::load(&cli.common)?;
    match &cli.command {
        Some(Command::Sessions { served, what }) => {
            let whose = if *served {
                sessions::Whose::Apps
            } else {
                sessions::Whose::Persons
            };
            sessions::run(&app, whose, what).await
        }
        Some(Command::Models(Models::List)) => models::list::run(&app, cli.common.output).await,
        Some(Command::Models(Models::Probe { name, save, dry_run })) => {
            let writing = match (save, dry_run) {
                (true, _) => Writing::AtOnce,
                (false, true) => Writing::Never,
                (false, false) => Writing::Asked,
            };
            models::probe::run(&app, name.as_deref(), writing, cli.common.output).await
        }
        Some(Command::Serve(wanted)) => {
            remarks(&app);
            serve::run(&app, wanted).await
        }
        Some(Command::Policy(what)) => policy::run(&app, what),
        Some(Command::Mcp(what)) => mcp::command::run(&app, what, cli.common.output).await,
        // Answered above: they must work where nothing else does.
        Some(Command::Doctor { .. } | Command::Completions { .. } | Command::Man { .. }) => Ok(DONE),
        Some(Command::Config { what }) => match what.unwrap_or(ConfigCommand::Show) {
            ConfigCommand::Path => sessions::print(&format!("{}\n", app.paths.config_file.display())),
            ConfigCommand::Show => sessions::print(&config::show(&app.resolved.layers)),
            ConfigCommand::Reference => sessions::print(&config::reference()),
        },
        Some(Command::Trust { dir, remove }) => trust(&app, dir.clone(), *remove),
        Some(Command::Resume(resume)) => {
            remarks(&app);
            let answers = !resume.approve.is_empty() || !resume.deny.is_empty();
            let is_talk = !answers && cli.common.output == Output::Text;
            if is_talk && std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
                talk::open(&app, &cli::Start::Session(resume.id.clone())).await
            } else {
                oneshot::resume(&app, resume, cli.common.output).await
            }
        }
        None => {
            remarks(&app);
            match &cli.prompt {
                Some(prompt) => {
                    let schema = cli.schema.as_deref();
                    oneshot::prompt(&app, prompt, &cli.start(), cli.common.output, schema).await
                }
                None => talk::open(&app, &cli.start()).await,
            }
        }
    }
}

fn remarks(app: &App) {
    for remark in &app.remarks {
        oneshot::eprint_line(remark);
    }
}

fn trust(app: &App, dir: Option<PathBuf>, remove: bool) -> Result<u8, Failure> {
    let dir = match dir {
        Some(dir) => app.cwd.join(dir),
        None => {
            let home = app.environment.path("HOME");
            trust::project_dir(&app.cwd, home).unwrap_or_else(|| app.cwd.clone())
        }
    };
    let failed = |error: trust::TrustError| Failure::usage(error.to_string());
    if remove {
        let was = app.trust.untrust(&dir).map_err(failed)?;
        let what = if was { "is no longer trusted" } else { "was not trusted" };
        oneshot::eprint_line(&format!("{} {what}", dir.display()));
    } else {
        app.trust.trust(&dir).map_err(failed)?;
        oneshot::eprint_line(&format!(
            "{} is trusted: its .aish/config.toml and AGENTS.md are read",
            dir.display()
        ));
    }
    Ok(DONE)
}
