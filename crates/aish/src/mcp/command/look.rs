//! `aish mcp list`, `tools` and `tool`: connects to what is configured, and shows it. Needs no model and no ledger.

use crate::app::App;
use crate::cli::Output;
use crate::failure::Failure;
use crate::mcp::list::{self, Row, Written};
use crate::mcp::setup::Setup;
use crate::mcp::{Begin, Mcp, Say};
use crate::oneshot::eprint_line;
use crate::sessions::print;
use crate::term::Look;
use aish_mcp::ErrorKind;
use aish_mcp::servers::{Server, State};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// How long servers are waited for before what came is shown: whoever typed the command is waiting too.
pub(super) const PATIENCE_S: u64 = 10;

/// Lists the servers.
///
/// # Errors
/// Standard output is gone.
pub(super) async fn servers(app: &App, output: Output) -> Result<u8, Failure> {
    // What is wrong is in the list.
    let patience = Duration::from_secs(PATIENCE_S);
    let rows = rows(app, &ask(app, Troubles::Kept, patience, |_| true).await);
    let objects: Vec<Value> = rows.iter().map(Row::json).collect();
    let redactor = app.redactor();
    match list::objects(&objects, output) {
        Some(json) => print(&redactor.redact(&json)),
        None if rows.is_empty() => print("no MCP server; `aish mcp add` adds one\n"),
        None => print(&redactor.redact(&list::table(&rows, columns(app)))),
    }
}

/// A row for each configured server, in the order of the configuration: those that were tried, and those that cannot or shall
/// not be.
fn rows(app: &App, tried: &[Server]) -> Vec<Row> {
    let written = Written::of(&app.resolved);
    let Setup { unusable, disabled, .. } = Setup::of(app);
    let row = |alias: &str| {
        let server = tried.iter().find(|server| server.config.alias.as_str() == alias);
        let problem = unusable.iter().find(|(other, _)| other == alias);
        match (server, problem) {
            (Some(server), _) => Some(Row::of(server, &written)),
            (None, Some((_, problem))) => Row::unusable(alias, problem, &written),
            (None, None) if disabled.iter().any(|other| other == alias) => Row::disabled(alias, &written),
            (None, None) => None,
        }
    };
    let servers = app.config().mcp.servers.iter();
    servers.filter_map(|server| row(&server.alias)).collect()
}

/// Columns of the terminal that standard output is; as many as one likes where it is none.
fn columns(app: &App) -> usize {
    Look::detect(&app.environment, std::io::stdout()).width()
}

/// Lists the tools of all servers.
///
/// # Errors
/// Standard output is gone.
pub(super) async fn tools(app: &App, output: Output) -> Result<u8, Failure> {
    let list = ask(app, Troubles::Told, Duration::from_secs(PATIENCE_S), |_| true).await;
    let text = list::objects(&list::tools_json(&list), output).unwrap_or_else(|| list::tools(&list, columns(app)));
    print(&app.redactor().redact(&text))
}

/// Shows one tool. Only its server is waited for.
///
/// # Errors
/// There is no such tool, or standard output is gone.
pub(super) async fn tool(app: &App, name: &str, output: Output) -> Result<u8, Failure> {
    let alias = name.split_once('.').map_or(name, |(alias, _)| alias);
    let is_its = |server: &Server| server.config.alias.as_str() == alias;
    let list = ask(app, Troubles::Kept, Duration::from_secs(PATIENCE_S), is_its).await;
    let text = match output {
        Output::Text => list::tool(&list, name, columns(app)),
        Output::Json | Output::Jsonl => {
            list::tool_json(&list, name).and_then(|tool| list::objects(&[tool], Output::Jsonl))
        }
    };
    let Some(text) = text else {
        return Err(Failure::failed(absence(app, &list, name)).hint("`aish mcp tools` lists them"));
    };
    print(&app.redactor().redact(&text))
}

/// How connecting to a server went.
#[derive(Clone, Debug)]
pub struct Tried {
    /// What it is called.
    pub alias: String,
    /// Where it is and what it has: one line, not redacted.
    pub facts: String,
    /// What was left out of what it offers: a line each, escaped.
    pub remarks: Vec<String>,
    /// What came of it.
    pub end: End,
}

/// What came of connecting to a server.
#[derive(Clone, Debug)]
pub enum End {
    /// It is there.
    Connected,
    /// It has not answered yet.
    Silent,
    /// It is not to be connected to.
    Disabled,
    /// What went wrong, and of which kind it is where a connection was tried at all; not redacted.
    Trouble(Option<ErrorKind>, String),
}

/// Connects to every configured server once, all at the same time.
pub async fn try_all(app: &App, patience: Duration) -> Vec<Tried> {
    let list = ask(app, Troubles::Silent, patience, |_| true).await;
    let rows = rows(app, &list);
    let tried = rows.iter().map(|row| {
        let server = list.iter().find(|server| server.config.alias.as_str() == row.alias());
        let end = match server.map(|server| &server.status.state) {
            Some(State::Waiting { problem, .. } | State::Failed(problem)) => {
                End::Trouble(Some(problem.kind.clone()), problem.message.clone())
            }
            Some(State::Ready) => End::Connected,
            Some(State::Connecting) => End::Silent,
            None => match row.problem() {
                Some(problem) => End::Trouble(None, problem.to_owned()),
                None => End::Disabled,
            },
        };
        Tried {
            alias: row.alias().to_owned(),
            facts: row.facts(),
            remarks: row.remarks().to_vec(),
            end,
        }
    });
    tried.collect()
}

/// Why there is no such tool: one line.
fn absence(app: &App, list: &[Server], name: &str) -> String {
    let Some((alias, _)) = name.split_once('.') else {
        return format!("there is no tool {name}: the name of a tool is ALIAS.NAME");
    };
    let configured = app.config().mcp.servers.iter().find(|server| server.alias == alias);
    let server = list.iter().find(|server| server.config.alias.as_str() == alias);
    match server.map(|server| &server.status.state) {
        None => match configured {
            Some(server) if server.enabled => format!("there is no tool {name}: the server is not set up"),
            Some(_) => format!("there is no tool {name}: {alias} is disabled"),
            None => format!("there is no tool {name}: no server is named {alias}"),
        },
        Some(State::Ready) => format!("there is no tool {name}: {alias} offers no such tool"),
        Some(State::Connecting) => format!("there is no tool {name}: {alias} has not answered yet"),
        Some(State::Waiting { problem, .. } | State::Failed(problem)) => {
            let problem = app.redactor().redact(&problem.message).into_owned();
            format!("there is no tool {name}: {alias} is not connected: {problem}")
        }
    }
}

/// What becomes a status line of what is wrong with servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::mcp) enum Troubles {
    /// All of it.
    Told,
    /// What the configuration has wrong; the caller shows how servers do.
    Kept,
    /// Nothing; the caller shows all.
    Silent,
}

/// Connects to every configured server, waits for those that concern the caller, and gives all of them. Waits no longer than
/// the slowest of them may take, nor than `patience`; leaves nothing running.
pub(in crate::mcp) async fn ask(
    app: &App,
    troubles: Troubles,
    patience: Duration,
    concerns: impl Fn(&Server) -> bool,
) -> Vec<Server> {
    let (engine, registry) = app.engine_without_model();
    let mcp = Mcp::start(app, &engine, &registry, Begin::AtOnce);
    let redactor = engine.redactor.clone();
    let told: Say = Arc::new(move |line| eprint_line(&redactor.redact(line)));
    // What the configuration has wrong is known by now, before anybody waited for a server.
    if troubles != Troubles::Silent {
        mcp.listen(told);
    }
    if troubles != Troubles::Told {
        mcp.listen(Arc::new(|_| {}));
    }
    // Whoever is late is shown as it is.
    let _ = tokio::time::timeout(patience, mcp.settled(concerns)).await;
    let list = mcp.servers().list();
    mcp.close().await;
    list
}
