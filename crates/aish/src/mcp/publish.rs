//! What servers offer becomes what the engine offers, and how they do becomes status lines.

use super::host::Front;
use super::pins::pinned_endpoint;
use aish_core::sanitize;
use aish_engine::{Engine, Supply};
use aish_mcp::pin::Pins;
use aish_mcp::servers::{Server, Servers, State};
use aish_mcp::tool::Caller;
use aish_mcp::{Host, McpTool, ServerConfig};
use aish_tools::set::ToolSet;
use futures_util::future::BoxFuture;
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

impl Supply for Publisher {
    fn arrive<'a>(&'a self, tool: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(self.await_server(tool))
    }

    fn is_of_server(&self, tool: &str) -> bool {
        self.servers
            .list()
            .iter()
            .any(|server| is_of(server.config.alias.as_str(), tool))
    }
}

/// Whether a tool is of the server of that alias, by its name here or on the wire to a model.
fn is_of(alias: &str, tool: &str) -> bool {
    let rest = tool.strip_prefix(alias);
    rest.is_some_and(|rest| rest.starts_with('.') || rest.starts_with("__"))
}

/// Makes tools of what servers offer.
pub(super) struct Publisher {
    pub(super) servers: Arc<Servers>,
    /// The tools beside theirs.
    pub(super) builtin: ToolSet,
    pub(super) engine: Arc<Engine>,
    pub(super) host: Arc<Front>,
    /// What their tools were when they were approved.
    pub(super) pins: Arc<dyn Pins>,
}

impl Publisher {
    /// Offers the built-in tools and those of every server, in the order of the configuration.
    pub(super) fn publish(&self) {
        let mut tools = self.builtin.clone();
        for server in self.servers.list() {
            let config = ServerConfig {
                endpoint: pinned_endpoint(&server.config.endpoint),
                ..ServerConfig::clone(&server.config)
            };
            for definition in &server.status.offer.tools {
                let caller = Arc::clone(&self.servers) as Arc<dyn Caller>;
                let tool = McpTool::new(&config, definition, caller, Arc::clone(&self.pins));
                // One name twice from one server was left out when its list was read.
                let _ = tools.append(Arc::new(tool));
            }
        }
        tools.add_search();
        self.engine.tools.replace(tools);
    }

    /// Waits for the server that a tool is of, by its name here or on the wire to a model; not for one that is no server's, nor
    /// for one that is known not to come.
    async fn await_server(&self, tool: &str) {
        for server in self.servers.list() {
            let alias = server.config.alias.as_str();
            if is_of(alias, tool) {
                if server.status.state == State::Connecting {
                    // How it does is told like that of any other.
                    let _ = self.servers.peer(alias).await;
                }
                // Offered here, before anybody looks: the task that follows them may not have come to it yet.
                self.publish();
            }
        }
    }

    /// Follows what servers offer and how they do, for as long as there are any. A problem is told when it is new; that it is
    /// over, when it had been told.
    pub(super) async fn follow(self: Arc<Self>) {
        let mut changes = self.servers.changes();
        loop {
            self.publish();
            self.tell();
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    fn tell(&self) {
        for server in self.servers.list() {
            let alias = server.config.alias.as_str();
            match (problem_of(&server), &server.status.state) {
                (Some(problem), _) => {
                    if self.host.troubles.is_news(alias, &problem) {
                        self.host.say(&problem);
                    }
                }
                (None, State::Ready) => {
                    if self.host.troubles.is_over(alias) {
                        self.host.say(&format!("mcp: {alias}: connected"));
                    }
                }
                (None, State::Connecting | State::Waiting { .. } | State::Failed(_)) => {}
            }
        }
    }
}
