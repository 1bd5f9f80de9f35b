//! Codex's `config.toml`: `[mcp_servers.NAME]` with a command or a url, their variables named rather than written as `${…}`.

use super::fields::Fields;
use super::variables::{Dialect, Variables};
use super::{Foreign, ImportError};
use crate::config::edit::{NewServer, Place};
use aish_core::secret::Secret;

/// Seconds that `timeout_s` may be at most.
const TIMEOUT_S_MAX: f64 = 3_600.0;
const MS_PER_S: f64 = 1_000.0;

/// The servers of a file, by their names.
///
/// # Errors
/// It is not TOML, or not such a file.
pub(super) fn servers(text: &str) -> Result<Vec<Foreign>, ImportError> {
    let text = text.trim_start_matches('\u{feff}');
    let document: toml::Table = text.parse().map_err(|error: toml::de::Error| ImportError::Syntax {
        language: "TOML",
        message: error.message().to_owned(),
    })?;
    let found = document.get("mcp_servers").and_then(toml::Value::as_table);
    let each = found.ok_or(ImportError::OtherShape)?.iter().map(|(name, server)| {
        // Dates become texts, which no field here is.
        let fields = serde_json::to_value(server).ok();
        let fields = fields
            .and_then(|fields| fields.as_object().cloned())
            .unwrap_or_default();
        Foreign {
            name: name.clone(),
            fields: Fields::new(fields, Variables::new(Dialect::Literal)),
        }
    });
    Ok(each.collect())
}

/// What a server of the file is here.
pub(super) fn server(fields: &mut Fields) -> Result<NewServer, String> {
    let mut server = NewServer::at("", fields.place(&["url"])?);
    let (mut headers, mut env) = (fields.pairs("http_headers")?, fields.pairs("env")?);
    let by_name = |(header, variable): (String, Secret)| (header, Secret::new(format!("${{{}}}", variable.expose())));
    headers.extend(fields.pairs("env_http_headers")?.into_iter().map(by_name));
    for name in fields.words("env_vars").unwrap_or_default() {
        // Codex passes on what is set, and starts the server without what is not.
        let value = Secret::new(format!("${{{name}:-}}"));
        if !env.iter().any(|(other, _)| *other == name) {
            env.push((name, value));
        }
    }
    fields.give(&mut server, headers, env);
    match server.place {
        Place::Url(_) => {
            server.auth_env = fields.word("bearer_token_env_var");
            server.auth_token = fields.word("bearer_token").map(Secret::new);
        }
        Place::Command(_) => {
            for name in ["bearer_token_env_var", "bearer_token"] {
                fields.refuse(name, "a command has no token");
            }
        }
    }
    server.timeout_s = timeout(fields);
    server.enabled_tools = fields.words("enabled_tools").unwrap_or_default();
    server.disabled_tools = fields.words("disabled_tools").unwrap_or_default();
    server.required = fields.flag("required").unwrap_or_default();
    server.enabled = fields.flag("enabled").unwrap_or(true);
    fields.starts_in(&mut server)?;
    for name in ["default_tools_approval_mode", "tools"] {
        fields.refuse(name, "aish asks itself; [mcp.auto_approve] allows");
    }
    for name in ["scopes", "oauth", "oauth_resource"] {
        fields.refuse(name, "aish mcp login finds it out");
    }
    fields.forget(&["name"]);
    Ok(server)
}

/// One limit for every request, where Codex has one for the start and one for calls: the longer of them.
fn timeout(fields: &mut Fields) -> Option<u64> {
    let start = fields.number("startup_timeout_sec");
    let start = start.or(fields.number("startup_timeout_ms").map(|ms| ms / MS_PER_S));
    let call = fields.number("tool_timeout_sec");
    if start.is_some() && call.is_some() && start != call {
        let remark = "its limits for the start and for calls become one, the longer";
        fields.remarks.push(remark.to_owned());
    }
    let seconds = start.into_iter().chain(call).reduce(f64::max)?;
    let seconds = seconds.ceil().clamp(1.0, TIMEOUT_S_MAX);
    // In range, and whole.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let seconds = seconds as u64;
    Some(seconds)
}
