//! What `aish doctor` finds on this machine: files, the ledger, the terminal, programs, what could hold commands in.

use super::Finding;
use crate::app::App;
use crate::paths::{Environment, OTHERS_MODE_MASK, Paths};
use crate::serve::ledger::{Ledger, Looked};
use crate::term::{Colour, Look};
use crate::trust::{Trust, project_dir};
use aish_store::sqlite::{Pages, SqliteStore};
use rustix::fs::{Access, access};
use std::io::IsTerminal as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Fewer columns than this make boxes and lists hard to read.
const COLUMNS_COMFORTABLE: usize = 60;
/// Where the kernel names the security modules in force.
const SECURITY_MODULES: &str = "/sys/kernel/security/lsm";
/// How long the database of served conversations may take to answer.
const SERVED_TIMEOUT_S: u64 = 6;
const BYTES_OF_A_MEGABYTE: f64 = 1_000_000.0;

/// The configuration that was read.
pub(super) fn configuration(app: &App) -> Vec<Finding> {
    let file = &app.paths.config_file;
    let config = app.config();
    let mut findings = Vec::new();
    match std::fs::metadata(file) {
        Ok(metadata) => {
            let models = match config.models.len() {
                1 => "1 model".to_owned(),
                count => format!("{count} models"),
            };
            findings.push(Finding::ok("config", format!("{} ({models})", file.display())));
            let is_open = metadata.permissions().mode() & OTHERS_MODE_MASK != 0;
            if is_open && config.secrets().next().is_some() {
                let message = format!("{} holds secrets and others can read it", file.display());
                findings.push(Finding::warn(
                    "config",
                    message,
                    format!("chmod 600 {}", file.display()),
                ));
            }
        }
        Err(_) => findings.push(Finding::ok(
            "config",
            format!("none at {}; defaults hold", file.display()),
        )),
    }
    for remark in &app.remarks {
        findings.push(Finding::warn("config", remark.clone(), ""));
    }
    findings
}

/// The ledger that apps have, where it is another one. It may be shared: it is looked at, and nothing is made there.
pub(super) async fn served(app: &App) -> Option<Finding> {
    app.config().serve.store.as_ref()?;
    let limit = Duration::from_secs(SERVED_TIMEOUT_S);
    Some(match tokio::time::timeout(limit, Ledger::look(app)).await {
        Ok(Ok(Looked::There(ledger))) => Finding::ok("serve.store", format!("{} answers", ledger.place)),
        Ok(Ok(Looked::NotYet { place })) => Finding::ok(
            "serve.store",
            format!("{place} answers, and has no tables yet; `aish serve` makes them"),
        ),
        Ok(Err(failure)) => Finding::fail("serve.store", failure.message(), failure.hints().join("; ")),
        Err(_) => Finding::fail(
            "serve.store",
            format!("the database does not answer within {SERVED_TIMEOUT_S} s"),
            "check that it runs and lets this machine in, as `psql` does",
        ),
    })
}

/// The data directory and the ledger in it.
pub(super) async fn data(paths: &Paths) -> Vec<Finding> {
    let mut findings = vec![directory(&paths.data_dir)];
    if !paths.ledger.exists() {
        findings.push(Finding::ok("ledger", "none yet; the first session makes it"));
        return findings;
    }
    findings.push(match SqliteStore::new(&paths.ledger).health().await {
        Ok(health) => {
            let megabytes = health.bytes as f64 / BYTES_OF_A_MEGABYTE;
            let what = format!(
                "format {}, {} sessions, {megabytes:.1} MB, SQLite {}",
                health.format, health.sessions, health.sqlite
            );
            match health.pages {
                Pages::Sound => Finding::ok("ledger", what),
                Pages::NotChecked => Finding::ok("ledger", format!("{what}; too large to be looked through here")),
                Pages::Damaged(complaint) => Finding::fail(
                    "ledger",
                    format!("{} is damaged: {complaint}", paths.ledger.display()),
                    "save what can be read with `aish sessions export ID`, then move the file away",
                ),
            }
        }
        Err(error) => Finding::fail(
            "ledger",
            error.to_string(),
            "check the file and its folder, or set AISH_HOME to another",
        ),
    });
    findings
}

fn directory(dir: &Path) -> Finding {
    let there = dir.ancestors().find(|dir| dir.exists()).unwrap_or(Path::new("/"));
    let made = if there == dir { "" } else { " (it will be made)" };
    match access(there, Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) => Finding::ok("data", format!("{}{made}", dir.display())),
        Err(error) => Finding::fail(
            "data",
            format!("{} cannot be written to: {error}", there.display()),
            "make it yours, or set AISH_HOME to a folder that is",
        ),
    }
}

/// The terminal, the shell, and what could hold commands in.
pub(super) fn surroundings(environment: &Environment) -> Vec<Finding> {
    vec![
        terminal(environment),
        utf8(environment),
        bash(environment),
        sandbox(environment),
    ]
}

fn terminal(environment: &Environment) -> Finding {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Finding::ok("terminal", "none here; questions about calls need one, or --approve");
    }
    let look = Look::detect(environment, std::io::stdout());
    let colour = match look.colour {
        Colour::On => "colours",
        Colour::Off => "no colours",
    };
    let what = format!(
        "{} of {} columns and {} rows, {colour}",
        environment.text("TERM").unwrap_or("TERM unset"),
        look.columns,
        look.rows
    );
    if look.columns < COLUMNS_COMFORTABLE {
        return Finding::warn(
            "terminal",
            what,
            format!("{COLUMNS_COMFORTABLE} columns or more read better"),
        );
    }
    Finding::ok("terminal", what)
}

fn utf8(environment: &Environment) -> Finding {
    // As POSIX wants it: the first of these that is set counts.
    let set = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .find_map(|name| Some((name, environment.text(name)?)));
    match set {
        Some((name, value)) if value.to_ascii_lowercase().replace('-', "").contains("utf8") => {
            Finding::ok("locale", format!("{name}={value}"))
        }
        Some((name, value)) => Finding::warn(
            "locale",
            format!("{name}={value} is not UTF-8"),
            "export LC_ALL=C.UTF-8 if letters look wrong",
        ),
        None => Finding::warn("locale", "none is set", "export LC_ALL=C.UTF-8 if letters look wrong"),
    }
}

fn bash(environment: &Environment) -> Finding {
    match on_path(environment, "bash") {
        Some(path) => Finding::ok("bash", path.display().to_string()),
        None => Finding::fail(
            "bash",
            "not on the PATH",
            "install it: models run their commands with it",
        ),
    }
}

/// Informative: nothing depends on these yet, and not every kernel has them.
fn sandbox(environment: &Environment) -> Finding {
    let landlock = match crate::config::read_text(Path::new(SECURITY_MODULES)) {
        Ok(modules) if modules.trim().split(',').any(|module| module == "landlock") => "landlock in force",
        Ok(_) => "no landlock",
        Err(_) => "whether there is landlock cannot be told here",
    };
    let bwrap = match on_path(environment, "bwrap") {
        Some(path) => format!("bwrap at {}", path.display()),
        None => "no bwrap".to_owned(),
    };
    Finding::ok("sandbox", format!("{landlock}, {bwrap}"))
}

/// The program of that name, as a shell would find it.
fn on_path(environment: &Environment, program: &str) -> Option<PathBuf> {
    let runs = |path: &PathBuf| path.is_file() && access(path.as_path(), Access::EXEC_OK).is_ok();
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(runs);
    }
    std::env::split_paths(environment.path("PATH")?)
        .map(|dir| dir.join(program))
        .find(runs)
}

/// Whether the project here is trusted.
pub(super) fn project(app: &App) -> Option<Finding> {
    let dir = project_dir(&app.cwd, app.environment.path("HOME"))?;
    Some(match app.trust.check(&dir).map(|checked| checked.trust) {
        Ok(Trust::Trusted) => Finding::ok("project", format!("{} is trusted", dir.display())),
        Ok(Trust::Nothing) => Finding::ok("project", format!("nothing to read in {}", dir.display())),
        Ok(Trust::Unknown) => Finding::ok(
            "project",
            format!(
                "{} is not trusted, so nothing of it is read (`aish trust`)",
                dir.display()
            ),
        ),
        Ok(Trust::Changed) => Finding::warn(
            "project",
            format!(
                "{} has changed since it was trusted, so nothing of it is read",
                dir.display()
            ),
            "look at .aish/config.toml, then: aish trust",
        ),
        Err(error) => Finding::fail("project", error.to_string(), "repair it"),
    })
}
