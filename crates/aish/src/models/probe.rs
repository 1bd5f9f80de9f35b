//! `aish models probe`: asks a model a few short questions ([`mod@aish_provider::probe`]), says what it can do, and writes what
//! the configuration should know of it under `[models.NAME]`.
//!
//! Only what differs from what is known already is written: what a preset or the configuration says need not be said twice.

use super::{Choice, Key, Known, Registry, missing_key};
use crate::app::App;
use crate::cli::Output;
use crate::config::{self, ModelSetting};
use crate::failure::{DONE, FAILED, Failure};
use crate::json;
use crate::oneshot::eprint_line;
use crate::sessions::print;
use aish_core::sanitize;
use aish_provider::ModelProfile;
use aish_provider::codec::schema::SchemaDialect;
use aish_provider::preset;
use aish_provider::probe::{self, Finding, Probed};
use aish_provider::profile::{
    Alternation, CallsPerReply, Support, SystemRole, ThinkingBack, ToolRole, WireCallIds, WireNaming,
};
use serde_json::{Value, json};
use std::io::{BufRead as _, IsTerminal as _, Write as _};

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
    let name = chosen.ok_or_else(|| {
        let failure = Failure::usage("there is no model to probe: none is configured and none was found");
        super::NO_MODEL
            .iter()
            .fold(failure, |failure, line| failure.hint(*line))
    })?;
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
    if output != Output::Text {
        let report = redactor
            .redact(&as_json(&name, &choice, &probed).to_string())
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
    write(app, &choice, &probed.profile, writing)
}

fn write(app: &App, choice: &Choice, profile: &ModelProfile, writing: Writing) -> Result<u8, Failure> {
    let settings = settings(choice, profile);
    let file = &app.paths.config_file;
    if settings.is_empty() {
        eprint_line("the configuration says all of this already");
        return Ok(DONE);
    }
    let block: String = settings
        .iter()
        .map(|(key, value)| format!("{key} = {value}\n"))
        .collect();
    let block = format!("[models.{}]\n{block}", toml_name(&choice.name));
    let is_wanted = match writing {
        Writing::AtOnce => true,
        Writing::Never => false,
        Writing::Asked => agreed(&block, file)?,
    };
    if !is_wanted {
        let said = block.lines().map(|line| format!("  {line}\n")).collect::<String>();
        let said = format!("not written; with --save this goes into {}:\n{said}", file.display());
        let _ = std::io::stderr().write_all(format!("[aish] {}", sanitize::multi_line(&said)).as_bytes());
        return Ok(DONE);
    }
    config::set_model(file, &choice.name, &settings).map_err(|error| Failure::failed(error.to_string()))?;
    eprint_line(&format!(
        "written into {} as [models.{}]",
        file.display(),
        toml_name(&choice.name)
    ));
    Ok(DONE)
}

fn toml_name(name: &str) -> String {
    config::value::toml_path(&[name])
}

/// Asks at a terminal; elsewhere nobody can say yes.
fn agreed(block: &str, file: &std::path::Path) -> Result<bool, Failure> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Ok(false);
    }
    let question = format!(
        "{}\nwrite this into {}? [y/N] ",
        sanitize::multi_line(block),
        file.display()
    );
    let failed = |error: std::io::Error| Failure::failed(format!("cannot ask: {error}"));
    std::io::stderr().write_all(question.as_bytes()).map_err(failed)?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).map_err(failed)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
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

fn as_json(name: &str, choice: &Choice, probed: &Probed) -> Value {
    let findings: Vec<Value> = probed
        .findings
        .iter()
        .map(|finding| json!({"step": finding.step.words(), "outcome": finding.outcome.word(), "note": finding.note}))
        .collect();
    let settings: serde_json::Map<String, Value> = settings(choice, &probed.profile)
        .into_iter()
        .map(|(key, value)| (key.to_owned(), as_plain(&value)))
        .collect();
    json!({
        "name": name,
        "answers": probed.failure.is_none(),
        "findings": findings,
        "settings": settings,
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

/// What the configuration must be told, so that this profile comes of it.
fn settings(choice: &Choice, found: &ModelProfile) -> Vec<ModelSetting> {
    let mut settings = match choice.known {
        Known::Configured => Vec::new(),
        Known::Found => introduction(choice),
    };
    let known = &choice.profile;
    // A found model is told its context by its server each time; written down it holds without.
    if let Some(tokens) = found.context_window
        && (choice.known == Known::Found || known.context_window != found.context_window)
    {
        settings.push(("context_window", i64::try_from(tokens).unwrap_or(i64::MAX).into()));
    }
    if found.calls == CallsPerReply::One && (choice.known == Known::Found || known.calls != found.calls) {
        settings.push(("parallel_calls", false.into()));
    }
    settings.extend(changed(known, found));
    settings
}

/// What makes a found model a configured one.
fn introduction(choice: &Choice) -> Vec<ModelSetting> {
    let profile = &choice.profile;
    let owner = preset::split(&choice.name).map(|(preset, _)| preset);
    let owner = owner.or_else(|| preset::of_address(&profile.base_url));
    let is_usual = owner.is_some_and(|preset| preset.base_url == profile.base_url);
    let mut settings: Vec<ModelSetting> = Vec::new();
    if let Some(preset) = owner {
        settings.push(("preset", preset.name.into()));
    }
    if owner.is_none_or(|preset| preset.format != profile.format) {
        settings.push(("provider", profile.format.name().into()));
    }
    if !is_usual {
        settings.push(("base_url", profile.base_url.as_str().into()));
    }
    settings.push(("model", profile.model.as_str().into()));
    // At the usual address the usual variable is used; elsewhere it must be named.
    if let Some(variable) = choice.key_env.as_deref().filter(|_| !is_usual) {
        settings.push(("key_env", variable.into()));
    }
    settings
}

/// What differs, as settings.
fn changed(known: &ModelProfile, found: &ModelProfile) -> Vec<ModelSetting> {
    let mut settings: Vec<ModelSetting> = Vec::new();
    for (key, known, found) in [
        ("tools", known.tools, found.tools),
        ("images", known.images, found.images),
        ("stream", known.streaming, found.streaming),
        ("structured_output", known.structured_output, found.structured_output),
        ("prompt_cache", known.cache_marks, found.cache_marks),
    ] {
        if known != found {
            settings.push((key, (found == Support::Yes).into()));
        }
    }
    if known.tool_role != found.tool_role {
        settings.push(("use_tool_role", (found.tool_role == ToolRole::Native).into()));
    }
    if known.alternation != found.alternation {
        settings.push(("strict_alternation", (found.alternation == Alternation::Strict).into()));
    }
    if known.thinking_back != found.thinking_back {
        let is_sent = found.thinking_back == ThinkingBack::ReasoningContent;
        settings.push(("thinking_back", is_sent.into()));
    }
    if known.system_role != found.system_role {
        let role = match found.system_role {
            SystemRole::System => "system",
            SystemRole::Developer => "developer",
            SystemRole::User => "user",
        };
        settings.push(("system_role", role.into()));
    }
    if known.wire_call_ids != found.wire_call_ids {
        let ids = match found.wire_call_ids {
            WireCallIds::Own => "own",
            WireCallIds::NineCharacters => "nine",
        };
        settings.push(("call_ids", ids.into()));
    }
    if known.wire_names != found.wire_names {
        let names = match found.wire_names {
            WireNaming::Underscore => "underscore",
            WireNaming::Dot => "dot",
        };
        settings.push(("wire_names", names.into()));
    }
    if known.schemas != found.schemas {
        let dialect = match found.schemas {
            SchemaDialect::Full => "full",
            SchemaDialect::Grammar => "grammar",
            SchemaDialect::Gemini => "gemini",
        };
        settings.push(("schema", dialect.into()));
    }
    settings
}
