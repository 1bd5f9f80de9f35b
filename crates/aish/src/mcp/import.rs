//! MCP servers out of the configuration of another client (SPEC 6.9): read, translated, and nothing of it left out in silence.
//!
//! [`read`] is pure: a text becomes [`Imported`], servers that can be written into the user's file and remarks on what of them
//! cannot. The file is somebody else's: its size is bounded by whoever read it, the number of servers and of remarks here.
//! `json` knows the files with `mcpServers` and `servers`, `codex` those with `[mcp_servers]`, `variables` what stands in for
//! something else in a value.

use crate::config::edit::NewServer;
use aish_core::sanitize;
use aish_mcp::Alias;
use fields::Fields;

mod codex;
mod fields;
mod json;
mod variables;

/// Servers of one file.
const SERVERS_MAX: usize = 200;
/// Characters of a name that is repeated in a remark.
const NAME_CHARS_MAX: usize = 60;
/// Names that are repeated in one remark.
const NAMES_MAX: usize = 8;

/// What a file comes to.
#[derive(Debug, PartialEq)]
pub struct Imported {
    /// Servers, each with an alias that is not taken.
    pub servers: Vec<NewServer>,
    /// What a person should know: one line each, escaped.
    pub remarks: Vec<String>,
}

/// Why nothing was taken over from a file: one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// It is neither of the two languages.
    #[error("it is not {language}: {message}")]
    Syntax {
        /// What it looked like.
        language: &'static str,
        /// What the parser said.
        message: String,
    },
    /// It is something else.
    #[error(
        "it has no MCP servers that aish knows: neither `mcpServers` nor `servers` (JSON), nor `[mcp_servers]` (TOML)"
    )]
    OtherShape,
    /// There are more than anybody has.
    #[error("it has {0} servers; at most {SERVERS_MAX} are taken over")]
    TooMany(usize),
}

/// A server as the other client writes it.
struct Foreign {
    /// What it is called there.
    name: String,
    /// What is said of it.
    fields: Fields,
}

/// What a server of a file is here, or why it is left out.
type Translate = fn(&mut Fields) -> Result<NewServer, String>;

/// Reads such a file. `is_taken` says which aliases are.
///
/// # Errors
/// See [`ImportError`].
pub fn read(text: &str, is_taken: impl Fn(&str) -> bool) -> Result<Imported, ImportError> {
    let is_json = text.trim_start_matches('\u{feff}').trim_start().starts_with(['{', '/']);
    let (found, translate): (Vec<Foreign>, Translate) = if is_json {
        (json::servers(text)?, json::server)
    } else {
        (codex::servers(text)?, codex::server)
    };
    if found.len() > SERVERS_MAX {
        return Err(ImportError::TooMany(found.len()));
    }
    let mut imported = Imported {
        servers: Vec::new(),
        remarks: Vec::new(),
    };
    for Foreign { name, mut fields } in found {
        let shown = shown(&name);
        let server = translate(&mut fields);
        let remarks = fields.finish();
        match server {
            Err(why) => imported.remarks.push(format!("{shown} is left out: {why}")),
            Ok(server) => {
                let taken = |alias: &str| is_taken(alias) || imported.servers.iter().any(|other| other.alias == alias);
                let alias = Alias::of_name(&name, taken).to_string();
                let server = NewServer {
                    alias: alias.clone(),
                    ..server
                };
                if let Some(problem) = server.problem() {
                    imported.remarks.push(format!("{shown} is left out: {problem}"));
                    continue;
                }
                if alias != name {
                    let why = match Alias::parse(&name) {
                        Ok(_) => ", since that name is taken",
                        Err(_) => "",
                    };
                    imported.remarks.push(format!("{shown} becomes {alias}{why}"));
                }
                imported
                    .remarks
                    .extend(remarks.iter().map(|remark| format!("{alias}: {remark}")));
                imported.servers.push(server);
            }
        }
    }
    Ok(imported)
}

/// A name out of the file as it is repeated: escaped, and not for long.
fn shown(name: &str) -> String {
    let cut: String = name.chars().take(NAME_CHARS_MAX).collect();
    let more = if cut.len() < name.len() { "…" } else { "" };
    format!("{}{more}", sanitize::single_line(&cut))
}

/// Names in a remark, not too many.
fn listed(names: &[String]) -> String {
    let mut text: Vec<String> = names.iter().take(NAMES_MAX).map(|name| shown(name)).collect();
    if names.len() > NAMES_MAX {
        text.push(format!("and {} more", names.len() - NAMES_MAX));
    }
    text.join(", ")
}

#[cfg(test)]
mod tests;
