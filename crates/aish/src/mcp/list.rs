//! What `:mcp` and `aish mcp` show: servers, their tools, one tool in full; for people, and as JSON for programs.
//!
//! Nothing here holds a credential: a server's place is shown as the configuration writes it, with `${VARIABLE}` and not with
//! what was put in for it, and without the query of an address.

use crate::cli::Output;
use crate::json::printable;
use crate::term::columns::cut;
use crate::term::quote::{indented, quoted};
use aish_core::sanitize;
use aish_mcp::Definition;
use aish_mcp::servers::Server;
use serde_json::{Value, json};

mod row;
mod written;

pub use row::{Row, table};
pub use written::Written;

/// Characters of a description in a list.
const DESCRIPTION_CHARS_MAX: usize = 120;

/// A line for each server: alias, where it is, how many tools, how it is doing (SPEC 6.4). What is wrong with one, and who
/// configures it where that is not the user's own file, are on lines below it. Those that are `disabled` come last. `columns` are
/// those of the terminal.
pub fn servers(list: &[Server], disabled: &[String], written: &Written, columns: usize) -> String {
    let disabled = disabled.iter().filter_map(|alias| Row::disabled(alias, written));
    let rows: Vec<Row> = list
        .iter()
        .map(|server| Row::of(server, written))
        .chain(disabled)
        .collect();
    if rows.is_empty() {
        return "no MCP server; `:mcp connect URL` connects to one, `aish mcp add` keeps one\n".to_owned();
    }
    row::table(&rows, columns)
}

/// `alias.name: description`, a line each, cut where it is wider than that.
pub fn tools(list: &[Server], columns: usize) -> String {
    let lines = list.iter().flat_map(|server| {
        let offered = server.status.offer.tools.iter();
        offered.map(move |tool| tool_line(server.config.alias.as_str(), tool))
    });
    let text: String = lines.map(|line| format!("{}\n", cut(&line, columns))).collect();
    if text.is_empty() {
        return "no MCP tools\n".to_owned();
    }
    text
}

fn tool_line(alias: &str, tool: &Definition) -> String {
    let first = tool.description.trim().lines().next().unwrap_or_default();
    let short: String = first.chars().take(DESCRIPTION_CHARS_MAX).collect();
    let more = if short.len() < first.len() { "…" } else { "" };
    sanitize::single_line(&format!("{alias}.{}: {short}{more}", tool.name)).into_owned()
}

/// The server and the tool of a name that is split at its first dot (SPEC 6.4).
fn find<'a>(list: &'a [Server], name: &str) -> Option<(&'a Server, &'a Definition)> {
    let (alias, bare) = name.split_once('.')?;
    let server = list.iter().find(|server| server.config.alias.as_str() == alias)?;
    let tool = server.status.offer.tools.iter().find(|tool| tool.name == bare)?;
    Some((server, tool))
}

/// A tool in full: description, hints, schemas; what the server wrote stands behind a mark. `None` when there is none of that name,
/// split at the first dot.
pub fn tool(list: &[Server], name: &str, columns: usize) -> Option<String> {
    let (server, tool) = find(list, name)?;
    let name = format!("{}.{}", server.config.alias, sanitize::single_line(&tool.name));
    let mut text = indented(&name, columns) + &quoted(tool.description.trim(), columns);
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
    let schemas = [
        ("arguments", Some(&tool.input_schema)),
        ("result", tool.output_schema.as_ref()),
    ];
    for (what, schema) in schemas {
        if let Some(schema) = schema {
            let schema = serde_json::to_string_pretty(schema).unwrap_or_default();
            text.push_str(&format!("{what}:\n{}", quoted(&schema, columns)));
        }
    }
    Some(text)
}

/// Every tool as an object of `--output json`.
pub fn tools_json(list: &[Server]) -> Vec<Value> {
    let each = list
        .iter()
        .flat_map(|server| server.status.offer.tools.iter().map(move |tool| as_json(server, tool)));
    each.collect()
}

/// One tool as such an object; `None` when there is none of that name.
pub fn tool_json(list: &[Server], name: &str) -> Option<Value> {
    let (server, tool) = find(list, name)?;
    Some(as_json(server, tool))
}

fn as_json(server: &Server, tool: &Definition) -> Value {
    let hint = |value: Option<bool>| value.map_or(Value::Null, Value::from);
    json!({
        "name": format!("{}.{}", server.config.alias, tool.name),
        "description": tool.description,
        "read_only": hint(tool.hints.read_only),
        "destructive": hint(tool.hints.destructive),
        "idempotent": hint(tool.hints.idempotent),
        "believed": server.config.is_trusted,
        "input_schema": tool.input_schema,
        "output_schema": tool.output_schema,
    })
}

/// Objects as `--output` writes them: one list on one line, or one object a line. `None` for text.
pub fn objects(all: &[Value], output: Output) -> Option<String> {
    match output {
        Output::Text => None,
        Output::Json => Some(format!("{}\n", printable(&Value::from(all.to_vec()).to_string()))),
        Output::Jsonl => {
            let lines = all.iter().map(|object| format!("{}\n", printable(&object.to_string())));
            Some(lines.collect())
        }
    }
}
