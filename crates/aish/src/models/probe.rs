//! `aish models probe`: asks a model a few short questions ([`mod@aish_provider::probe`]), says what it can do, and writes what
//! the configuration should know of it under `[models.NAME]`.
//!
//! Only what differs from what is known already is written ([`plan`]): what a preset or the configuration says need not be
//! said twice.

use super::{Key, Known, Registry, missing_key};
use crate::agree::{Agreement, agreed};
use crate::app::App;
use crate::cli::Output;
use crate::config;
use crate::failure::{DONE, FAILED, Failure};
use crate::json;
use crate::oneshot::eprint_line;
use crate::sessions::print;
use aish_core::sanitize;
use aish_provider::probe::{self, Finding, Probed};
use serde_json::{Value, json};
use std::io::Write as _;

mod plan;

use plan::{Otherwise, Plan};

/// Columns of a step's name.
const STEP_COLUMNS: usize = 22;
/// Characters of a note that are shown.
const NOTE_CHARS_MAX: usize = 160;

/// Whether what was found is written into the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writing {
    /// A person is asked.
    Asked,
    /// It is.
    AtOnce,
    /// It is not.
    Never,
}

/// Probes a model, tells what was found as it is found, and writes it down.
///
/// # Errors
/// There is no such model, its key is missing, or the configuration cannot be written.
pub async fn run(app: &App, name: Option<&str>, writing: Writing, output: Output) -> Result<u8, Failure> {
    let registry = Registry::new(app.config(), &app.environment);
    let wanted = name.or(app.wanted_model());
    let chosen = registry.choose(wanted).await.map_err(Failure::usage)?;
    let Some(chosen) = chosen else {
        return Err(registry.absence().failure(&app.redactor()));
    };
    let name = chosen.name;
    let choice = registry.resolve(&name).map_err(Failure::usage)?;
    let key = match registry.key_of(&choice) {
        Key::NotNeeded => None,
        Key::Set(variable) => registry.key(Some(variable)),
        Key::Missing(variable) => return Err(Failure::usage(missing_key(&name, variable))),
    };
    let client = registry.client().map_err(Failure::failed)?;
    let redactor = app.redactor();
    if output == Output::Text {
        eprint_line(&format!(
            "probing {name}: {} at {}",
            choice.profile.model,
            choice.profile.shown_address()
        ));
    }
    let mut tell = |finding: &Finding| {
        if output == Output::Text {
            // Somebody who reads no further is no reason to stop asking.
            let _ = print(&redactor.redact(&line(finding)));
        }
    };
    let probed = probe::run(&client, choice.profile.clone(), key, &mut tell).await;
    let found = registry.found(&name).filter(|_| choice.known == Known::Found);
    let plan = Plan::new(
        app.config(),
        &app.resolved.layers,
        &choice,
        found.as_ref(),
        &probed.profile,
    );
    if output != Output::Text {
        let report = redactor
            .redact(&as_json(&name, &plan, &probed).to_string())
            .into_owned();
        print(&format!("{}\n", json::printable(&report)))?;
    }
    if let Some(error) = &probed.failure {
        return match output {
            Output::Text => Err(Failure::failed(format!("{name} did not answer: {}", error.message))
                .hint("`aish doctor` says what is wrong with its server")),
            Output::Json | Output::Jsonl => Ok(FAILED),
        };
    }
    write(app, &plan, writing)
}

fn write(app: &App, plan: &Plan, writing: Writing) -> Result<u8, Failure> {
    let file = &app.paths.config_file;
    for Otherwise { key, said, found } in &plan.otherwise {
        let line = format!("the configuration says otherwise, and stays: {key} = {said}, found {found}");
        eprint_line(&line);
    }
    if plan.settings.is_empty() {
        let all = if plan.otherwise.is_empty() {
            "all of this"
        } else {
            "the rest"
        };
        eprint_line(&format!("the configuration says {all} already"));
        return Ok(DONE);
    }
    if let Some(obstacle) = &plan.obstacle {
        let failure = Failure::usage(format!("nothing was saved: {obstacle}"));
        return match writing {
            Writing::AtOnce => Err(failure),
            Writing::Asked | Writing::Never => {
                eprint_line(&format!("this cannot be saved: {obstacle}"));
                Ok(DONE)
            }
        };
    }
    let block = plan.block();
    let is_wanted = match writing {
        Writing::AtOnce => true,
        Writing::Never => false,
        Writing::Asked => {
            let question = format!("write this into {}?", file.display());
            agreed(&block, &question)? == Agreement::Yes
        }
    };
    if !is_wanted {
        let said = block.lines().map(|line| format!("  {line}\n")).collect::<String>();
        let said = format!("not written; with --save this goes into {}:\n{said}", file.display());
        let _ = std::io::stderr().write_all(format!("[aish] {}", sanitize::multi_line(&said)).as_bytes());
        return Ok(DONE);
    }
    config::set_model(file, &plan.name, &plan.settings, &app.judged_environment())
        .map_err(|error| Failure::failed(error.to_string()))?;
    eprint_line(&format!(
        "written into {} as [models.{}]",
        file.display(),
        plan.toml_name()
    ));
    Ok(DONE)
}

fn line(finding: &Finding) -> String {
    let note: String = finding.note.chars().take(NOTE_CHARS_MAX).collect();
    let note = if note.is_empty() { note } else { format!("  ({note})") };
    let line = format!(
        "{:<STEP_COLUMNS$} {}{note}",
        finding.step.words(),
        finding.outcome.word()
    );
    format!("{}\n", sanitize::single_line(&line))
}

fn as_json(name: &str, plan: &Plan, probed: &Probed) -> Value {
    let findings: Vec<Value> = probed
        .findings
        .iter()
        .map(|finding| json!({"step": finding.step.words(), "outcome": finding.outcome.word(), "note": finding.note}))
        .collect();
    let settings: serde_json::Map<String, Value> = plan
        .settings
        .iter()
        .filter(|_| plan.obstacle.is_none())
        .map(|(key, value)| ((*key).to_owned(), as_plain(value)))
        .collect();
    let otherwise: Vec<&str> = plan.otherwise.iter().map(|otherwise| otherwise.key).collect();
    json!({
        "name": name,
        "saved_as": plan.name,
        "answers": probed.failure.is_none(),
        "findings": findings,
        "settings": settings,
        "otherwise": otherwise,
    })
}

fn as_plain(value: &toml_edit::Value) -> Value {
    if let Some(text) = value.as_str() {
        return Value::from(text);
    }
    value
        .as_bool()
        .map(Value::from)
        .or(value.as_integer().map(Value::from))
        .unwrap_or_default()
}
