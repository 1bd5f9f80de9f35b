//! `aish mcp import`: shows what a file of another client comes to, asks, and writes it into the user's configuration.

use super::change::{open_secrets, save};
use crate::agree::{Agreement, agreed};
use crate::app::App;
use crate::cli::Import;
use crate::config;
use crate::config::edit::NewServer;
use crate::failure::{DONE, Failure};
use crate::mcp::import;
use crate::oneshot::eprint_line;
use crate::sessions::print;
use aish_core::sanitize;

/// Which files are known.
const KNOWN: &str =
    "known: .mcp.json, claude_desktop_config.json, Cursor's and VS Code's mcp.json, Codex's config.toml";

/// Does it.
///
/// # Errors
/// The file is no such file or has nothing that can be taken over, nobody is there to say yes, or the configuration cannot be
/// written.
pub(super) fn run(app: &App, wanted: &Import) -> Result<u8, Failure> {
    let file = wanted.file.display();
    let wrong = |error: &dyn std::fmt::Display| Failure::usage(format!("cannot import {file}: {error}")).hint(KNOWN);
    let text = config::read_text(&wanted.file).map_err(|error| wrong(&error))?;
    let taken = |alias: &str| app.config().mcp.servers.iter().any(|server| server.alias == alias);
    let imported = import::read(&text, taken).map_err(|error| wrong(&error))?;
    let redactor = app.redactor();
    for remark in &imported.remarks {
        eprint_line(&redactor.redact(remark));
    }
    if imported.servers.is_empty() {
        return Err(Failure::failed(format!(
            "there is no server in {file} that can be taken over"
        )));
    }
    let shown: Vec<String> = imported.servers.iter().map(NewServer::shown).collect();
    let shown = redactor.redact(&shown.join("\n")).into_owned();
    let into = app.paths.config_file.display();
    if wanted.dry_run {
        print(&sanitize::multi_line(&shown))?;
        eprint_line(&format!("not written; without --dry-run it goes into {into}"));
        return Ok(DONE);
    }
    for server in &imported.servers {
        let open = open_secrets(server);
        if !open.is_empty() {
            let names = open.into_iter().collect::<Vec<_>>().join(", ");
            eprint_line(&format!(
                "{}: it is written as it stands, and may be a secret: {names}; '${{NAME}}' keeps one out of the file",
                server.alias
            ));
        }
    }
    if !wanted.yes {
        match agreed(&shown, &format!("write this into {into}?"))? {
            Agreement::Yes => {}
            Agreement::No => {
                eprint_line("nothing was written");
                return Ok(DONE);
            }
            Agreement::Nobody => {
                return Err(Failure::usage("nobody is here to say yes: nothing was written")
                    .hint("--yes writes without asking, --dry-run only shows"));
            }
        }
    }
    save(app, &imported.servers)?;
    let aliases: Vec<&str> = imported.servers.iter().map(|server| server.alias.as_str()).collect();
    eprint_line(&format!("written into {into}: {}", aliases.join(", ")));
    eprint_line("`aish mcp list` tries them");
    Ok(DONE)
}
