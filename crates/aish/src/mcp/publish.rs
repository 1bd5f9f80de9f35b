//! What servers offer becomes what the engine offers, and how they do becomes status lines.

use super::host::Front;
use aish_core::sanitize;
use aish_engine::Engine;
use aish_mcp::servers::{Server, Servers, State};
use aish_mcp::tool::Caller;
use aish_mcp::{Host, McpTool};
use aish_tools::set::ToolSet;
use std::collections::HashMap;
use std::sync::Arc;

/// Characters of a problem that are told.
const PROBLEM_CHARS_MAX: usize = 300;

/// What is wrong with a server, as it is told: `mcp: alias: problem`.
pub(super) fn problem_of(server: &Server) -> Option<String> {
    match &server.status.state {
        State::Connecting | State::Ready => None,
        State::Waiting { problem, .. } | State::Failed(problem) => {
            let problem: String = sanitize::single_line(&problem.message)
                .chars()
                .take(PROBLEM_CHARS_MAX)
                .collect();
            Some(format!("mcp: {}: {problem}", server.config.alias))
        }
    }
}

/// Offers the built-in tools and those of every server, in the order of the configuration.
pub(super) fn publish(servers: &Arc<Servers>, builtin: &ToolSet, engine: &Engine) {
    let mut tools = builtin.clone();
    for server in servers.list() {
        for definition in &server.status.offer.tools {
            let caller = Arc::clone(servers) as Arc<dyn Caller>;
            let tool = McpTool::new(server.config.alias.clone(), definition, caller);
            // One name twice from one server was left out when its list was read.
            let _ = tools.append(Arc::new(tool));
        }
    }
    engine.tools.replace(tools);
}

/// Follows what servers offer and how they do. A problem is told when it is new; that it is over, when it had been told.
pub(super) async fn keep_published(servers: Arc<Servers>, builtin: ToolSet, engine: Arc<Engine>, host: Arc<Front>) {
    let mut changes = servers.changes();
    let mut told: HashMap<String, String> = HashMap::new();
    loop {
        publish(&servers, &builtin, &engine);
        for server in servers.list() {
            let alias = server.config.alias.to_string();
            match (problem_of(&server), &server.status.state) {
                (Some(problem), _) => {
                    if told.get(&alias) != Some(&problem) {
                        host.say(&problem);
                        told.insert(alias, problem);
                    }
                }
                (None, State::Ready) => {
                    if told.remove(&alias).is_some() {
                        host.say(&format!("mcp: {alias}: connected"));
                    }
                }
                (None, State::Connecting | State::Waiting { .. } | State::Failed(_)) => {}
            }
        }
        if changes.changed().await.is_err() {
            return;
        }
    }
}
