//! `aish mcp add` and `remove`: servers in the user's configuration.

use super::look::{PATIENCE_S, Troubles, ask};
use crate::app::App;
use crate::cli::Add;
use crate::config::edit::{EditError, Edited, NewServer, Place, Switch, add_servers, remove_server, switch_server};
use crate::failure::{DONE, Failure};
use crate::mcp::list::Written;
use crate::mcp::login::keyring;
use crate::mcp::pins;
use crate::oneshot::eprint_line;
use aish_core::redact::Redactor;
use aish_core::secret::Secret;
use aish_mcp::Alias;
use aish_mcp::servers::State;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

/// Writes a server into the configuration, connects to it once, and says how that went. The server stays, however it went.
///
/// # Errors
/// Nothing was written: the alias is none or is taken, or the file cannot be written or would be wrong.
pub(super) async fn add(app: &App, add: &Add) -> Result<u8, Failure> {
    if let Err(error) = Alias::parse(&add.alias) {
        return Err(Failure::usage(format!("{} is no alias: {error}", add.alias)));
    }
    if let Some(at) = Written::of(&app.resolved).place_of(&add.alias) {
        let message = format!("a server named {} is there already, at {at}", add.alias);
        return Err(Failure::usage(message).hint(format!("`aish mcp remove {}` takes it out", add.alias)));
    }
    let server = wanted(app, add)?;
    save(app, std::slice::from_ref(&server))?;
    let file = app.paths.config_file.display();
    eprint_line(&format!("written into {file} as [mcp.servers.{}]", add.alias));
    let open = open_secrets(&server);
    if !open.is_empty() {
        let names = open.into_iter().collect::<Vec<_>>().join(", ");
        eprint_line(&format!(
            "as it stands, a secret may be in the file: {names}; '${{NAME}}' keeps it out, --token-env a bearer token"
        ));
    }
    eprint_line(&attempt(app, &add.alias).await?);
    Ok(DONE)
}

fn wanted(app: &App, add: &Add) -> Result<NewServer, Failure> {
    let place = match &add.url {
        Some(url) => Place::Url(url.clone()),
        None => Place::Command(add.command.clone()),
    };
    let secrets = |pairs: &[(String, String)]| {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| (name.clone(), Secret::new(value.clone())))
            .collect()
    };
    let cwd = add.cwd.as_deref().map(|directory| whole(app, directory)).transpose()?;
    Ok(NewServer {
        auth_env: add.token_env.clone(),
        headers: secrets(&add.headers),
        env: secrets(&add.env),
        timeout_s: add.timeout,
        protocol: add.protocol.clone(),
        enabled_tools: add.only.clone(),
        disabled_tools: add.never.clone(),
        required: add.required,
        trusted: add.trusted,
        cwd,
        ..NewServer::at(add.alias.clone(), place)
    })
}

/// A directory as it is written into the file: seen from there, a relative one would be another.
fn whole(app: &App, directory: &Path) -> Result<String, Failure> {
    let text = directory.to_str().filter(|text| !text.is_empty());
    let text = text.ok_or_else(|| Failure::usage("--cwd: no name of a directory that a file can hold"))?;
    if text == "~" || text.starts_with("~/") || text.starts_with("${") {
        return Ok(text.to_owned());
    }
    let whole = app.cwd.join(text);
    let whole = whole.to_str().map(str::to_owned);
    whole.ok_or_else(|| Failure::usage("--cwd: the working directory has a name that no file can hold"))
}

/// Writes servers into the user's file, all or none.
///
/// # Errors
/// None was written.
pub(super) fn save(app: &App, servers: &[NewServer]) -> Result<(), Failure> {
    match add_servers(&app.paths.config_file, servers, &app.judged_environment()) {
        Ok(Edited::Written) => Ok(()),
        Ok(Edited::Unchanged) => {
            let message = format!(
                "{} has changed meanwhile: nothing was written",
                app.paths.config_file.display()
            );
            Err(Failure::failed(message).hint("try again"))
        }
        Err(error) => Err(failure(&error)),
    }
}

fn failure(error: &EditError) -> Failure {
    match error {
        EditError::Io { .. } => Failure::failed(error.to_string()),
        EditError::Malformed { .. } | EditError::Wrong { .. } => Failure::usage(error.to_string()),
    }
}

/// What of a server may be a secret that anybody finds who reads the file, by name.
pub(super) fn open_secrets(server: &NewServer) -> BTreeSet<String> {
    let shapes = Redactor::default();
    let looks_secret = |text: &str| shapes.redact(text) != text;
    let mut open: BTreeSet<String> = server
        .literals()
        .filter(|(name, value)| aish_provider::http::is_secret_name(name) || looks_secret(value.expose()))
        .map(|(name, _)| name.to_owned())
        .collect();
    let in_place = match &server.place {
        Place::Url(url) => {
            let secrets = aish_provider::http::secrets_of(url);
            secrets.iter().any(|secret| !secret.contains("${")).then_some("url")
        }
        Place::Command(words) => words.iter().any(|word| looks_secret(word)).then_some("command"),
    };
    open.extend(in_place.map(str::to_owned));
    open
}

/// Connects to one server of the configuration as it is written now: one line about how that went.
async fn attempt(app: &App, alias: &str) -> Result<String, Failure> {
    let mut now = app.again()?;
    now.resolved.config.mcp.servers.retain(|server| server.alias == alias);
    let list = ask(&now, Troubles::Kept, Duration::from_secs(PATIENCE_S), |_| true).await;
    let stays = format!("it stays configured; `aish mcp list` tries it again, `aish mcp remove {alias}` takes it out");
    let Some(server) = list.first() else {
        // Why it is not there was told by whoever set it up.
        return Ok(stays);
    };
    let line = match &server.status.state {
        State::Ready => match server.status.offer.tools.len() {
            1 => format!("{alias}: connected, 1 tool"),
            count => format!("{alias}: connected, {count} tools"),
        },
        State::Connecting => format!("{alias}: it has not answered yet; {stays}"),
        State::Waiting { problem, .. } | State::Failed(problem) => format!("{alias}: {}; {stays}", problem.message),
    };
    Ok(app.redactor().redact(&line).into_owned())
}

/// Why a server is not in the user's file, and what to do where it stands elsewhere.
fn not_here(app: &App, alias: &str, there: &str) -> Failure {
    let file = app.paths.config_file.display();
    match Written::of(&app.resolved).place_of(alias) {
        Some(at) => Failure::failed(format!("{alias} is configured at {at}: {there}")),
        None => {
            Failure::failed(format!("there is no server named {alias} in {file}")).hint("`aish mcp list` lists them")
        }
    }
}

/// Switches a server of the user's configuration on or off.
///
/// # Errors
/// There is none of that name, or the file cannot be written.
pub(super) fn switch(app: &App, alias: &str, switch: Switch) -> Result<u8, Failure> {
    let file = &app.paths.config_file;
    match switch_server(file, alias, switch, &app.judged_environment()) {
        Ok(Edited::Written) => {}
        Ok(Edited::Unchanged) => return Err(not_here(app, alias, "write `enabled` there")),
        Err(error) => return Err(failure(&error)),
    }
    eprint_line(&match switch {
        Switch::On => format!("{alias} is enabled"),
        Switch::Off => format!("{alias} is disabled: it stays in {}", file.display()),
    });
    Ok(DONE)
}

/// Takes a server out of the user's configuration, and what was remembered of it: its login, and what its tools were when they
/// were approved. Only where something of that name stays allowed the latter is kept: another server that gets the name would
/// run unasked.
///
/// # Errors
/// There is none of that name, or the file cannot be written.
pub(super) async fn remove(app: &App, alias: &str) -> Result<u8, Failure> {
    let file = &app.paths.config_file;
    match remove_server(file, alias, &app.judged_environment()) {
        Ok(Edited::Written) => {}
        Ok(Edited::Unchanged) => return Err(not_here(app, alias, "take it out there")),
        Err(error) => return Err(failure(&error)),
    }
    eprint_line(&format!("{alias} is taken out of {}", file.display()));
    let begins = format!("{alias}.");
    let config = app.config();
    let approvals = config.mcp.auto_approve.keys().cloned();
    let rules = config.approval.allow.iter().map(ToString::to_string);
    let left: Vec<String> = approvals
        .chain(rules)
        .filter(|rule| rule.starts_with(&begins))
        .collect();
    if left.is_empty() {
        match pins::forget(&app.paths.data_dir, alias) {
            Ok(0) => {}
            Ok(_) => eprint_line("what its tools were when they were approved is forgotten"),
            Err(problem) => eprint_line(&format!("what its tools were stays known: {problem}")),
        }
    } else {
        eprint_line(&format!(
            "what was allowed of it stays allowed if another server gets that name: {}",
            left.join(", ")
        ));
    }
    match keyring(app).forget(alias).await {
        Ok(false) => {}
        Ok(true) => eprint_line("the login there is forgotten"),
        Err(error) => eprint_line(&format!("the login there is kept, it cannot be forgotten: {error}")),
    }
    Ok(DONE)
}
