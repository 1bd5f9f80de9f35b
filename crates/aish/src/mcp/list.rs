//! What `:mcp` and `aish mcp` show: servers, their tools, one tool in full.

use aish_core::sanitize;
use aish_mcp::servers::{Server, State};
use aish_mcp::{Definition, Endpoint};

/// Characters of a description in a list.
const DESCRIPTION_CHARS_MAX: usize = 120;

/// A line for each server: alias, where it is, how many tools, how it is doing (SPEC 6.4).
pub fn servers(list: &[Server]) -> String {
    if list.is_empty() {
        return "no MCP server; `:mcp connect URL` connects to one, [mcp.servers.NAME] in the configuration keeps it\n"
            .to_owned();
    }
    list.iter()
        .map(|server| {
            let count = server.status.offer.tools.len();
            let line = format!(
                "{}  {}  {count} tools  {}",
                server.config.alias,
                address(&server.config.endpoint),
                state(&server.status.state)
            );
            format!("{}\n", sanitize::single_line(&line))
        })
        .collect()
}

/// `alias.name: description`, a line each.
pub fn tools(list: &[Server]) -> String {
    let lines = list.iter().flat_map(|server| {
        let offered = server.status.offer.tools.iter();
        offered.map(move |tool| tool_line(server.config.alias.as_str(), tool))
    });
    let text: String = lines.collect();
    if text.is_empty() {
        return "no MCP tools\n".to_owned();
    }
    text
}

fn tool_line(alias: &str, tool: &Definition) -> String {
    let first = tool.description.trim().lines().next().unwrap_or_default();
    let short: String = first.chars().take(DESCRIPTION_CHARS_MAX).collect();
    let more = if short.len() < first.len() { "…" } else { "" };
    format!(
        "{}\n",
        sanitize::single_line(&format!("{alias}.{}: {short}{more}", tool.name))
    )
}

/// A tool in full: description, hints, schemas. `None` when there is none of that name, split at the first dot.
pub fn tool(list: &[Server], name: &str) -> Option<String> {
    let (alias, bare) = name.split_once('.')?;
    let server = list.iter().find(|server| server.config.alias.as_str() == alias)?;
    let tool = server.status.offer.tools.iter().find(|tool| tool.name == bare)?;
    let mut text = format!("{alias}.{}\n", sanitize::single_line(&tool.name));
    if !tool.description.trim().is_empty() {
        text.push_str(&format!("{}\n", sanitize::multi_line(tool.description.trim())));
    }
    let hints = [
        ("only reads", tool.hints.read_only),
        ("destructive", tool.hints.destructive),
        ("may be repeated", tool.hints.idempotent),
    ];
    let said: Vec<String> = hints
        .iter()
        .filter_map(|(what, value)| Some(format!("{what}: {}", if (*value)? { "yes" } else { "no" })))
        .collect();
    if !said.is_empty() {
        let belief = if server.config.is_trusted {
            ""
        } else {
            " (not believed)"
        };
        text.push_str(&format!("the server says{belief}: {}\n", said.join(", ")));
    }
    text.push_str(&format!("arguments: {}\n", schema(&tool.input_schema)));
    if let Some(output) = &tool.output_schema {
        text.push_str(&format!("result: {}\n", schema(output)));
    }
    Some(text)
}

fn schema(value: &serde_json::Value) -> String {
    sanitize::multi_line(&serde_json::to_string_pretty(value).unwrap_or_default()).into_owned()
}

/// Where a server is, without what may be secret in it.
fn address(endpoint: &Endpoint) -> String {
    match endpoint {
        Endpoint::Http(http) => aish_provider::http::without_credentials(&http.url),
        Endpoint::Stdio(stdio) => stdio.command.join(" "),
    }
}

fn state(state: &State) -> String {
    match state {
        State::Connecting => "connecting".to_owned(),
        State::Ready => "connected".to_owned(),
        State::Waiting { problem, again_in_ms } => {
            format!("{}; trying again in {} s", problem.message, again_in_ms.div_ceil(1_000))
        }
        State::Failed(problem) => problem.message.clone(),
    }
}
