//! What `aish doctor` finds of MCP servers: each is connected to as at every start, all at once.

use super::Finding;
use crate::app::App;
use crate::mcp::command::{End, Tried, try_all};
use aish_mcp::ErrorKind;
use std::time::Duration;

/// How long servers may take to connect.
const CONNECT_TIMEOUT_MS: u64 = 5_000;
/// How long all of it may take, ending them included.
const TOTAL_TIMEOUT_MS: u64 = 8_500;

/// A finding for each configured server.
pub(super) async fn all(app: &App) -> Vec<Finding> {
    if app.config().mcp.servers.is_empty() {
        return Vec::new();
    }
    let tried = try_all(app, Duration::from_millis(CONNECT_TIMEOUT_MS));
    match tokio::time::timeout(Duration::from_millis(TOTAL_TIMEOUT_MS), tried).await {
        Ok(tried) => {
            let each = tried
                .iter()
                .flat_map(|it| std::iter::once(finding(it)).chain(left_out(it)));
            each.chain(variables(app)).collect()
        }
        Err(_) => vec![Finding::fail(
            "mcp",
            format!("the servers were not done within {TOTAL_TIMEOUT_MS} ms"),
            "`aish mcp list` waits longer",
        )],
    }
}

fn finding(tried: &Tried) -> Finding {
    let alias = &tried.alias;
    match &tried.end {
        End::Connected | End::Disabled => Finding::ok("mcp", format!("{alias}: {}", tried.facts)),
        End::Silent => Finding::warn(
            "mcp",
            format!("{alias}: it did not answer within {CONNECT_TIMEOUT_MS} ms"),
            "`aish mcp list` waits longer",
        ),
        End::Trouble(kind, message) => {
            Finding::fail("mcp", format!("{alias}: {message}"), advice(alias, kind.as_ref()))
        }
    }
}

/// What a server offers and aish does not, and what the configuration wants of it that it does not offer.
fn left_out(tried: &Tried) -> Option<Finding> {
    let said = match tried.remarks.as_slice() {
        [] => return None,
        [one] => one.clone(),
        [first, more @ ..] => format!("{first} (and {} more)", more.len()),
    };
    let advice = "`aish mcp list` shows all of it";
    Some(Finding::warn("mcp", format!("{}: {said}", tried.alias), advice))
}

/// What to do; empty where the message says it.
fn advice(alias: &str, kind: Option<&ErrorKind>) -> String {
    match kind {
        Some(ErrorKind::Unauthorized { .. }) => {
            format!("set its token in [mcp.servers.{alias}], or: aish mcp login {alias}")
        }
        Some(ErrorKind::Forbidden) => "use an account that may".to_owned(),
        Some(ErrorKind::Unreachable | ErrorKind::Closed | ErrorKind::Timeout) => {
            format!("start it, or correct [mcp.servers.{alias}]")
        }
        Some(ErrorKind::Unusable) => format!("correct [mcp.servers.{alias}]"),
        Some(
            ErrorKind::SessionLost
            | ErrorKind::Status(_)
            | ErrorKind::Protocol
            | ErrorKind::TooLarge
            | ErrorKind::Rpc { .. }
            | ErrorKind::Version
            | ErrorKind::Cancelled
            | ErrorKind::InputRequired(_),
        ) => format!("is it an MCP server? see [mcp.servers.{alias}]"),
        None => String::new(),
    }
}

/// Tokens that are to come from a variable that is not set.
fn variables(app: &App) -> impl Iterator<Item = Finding> + '_ {
    let servers = app.config().mcp.servers.iter().filter(|server| server.enabled);
    servers.filter_map(|server| {
        let variable = server.auth_env.as_deref()?;
        let is_unset = app.environment.text(variable).is_none();
        let message = format!("{}: {variable} is not set", server.alias);
        is_unset.then(|| Finding::warn("mcp", message, format!("export {variable}=…")))
    })
}
