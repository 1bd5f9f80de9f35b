//! MCP at the prompt (SPEC 6.4, 6.9): `:mcp …`, prompts of servers as commands, and the completion of both.
//!
//! Every wait for a server is one that Ctrl-C ends. What a server says is escaped before it is shown, and cut where it is long.

mod complete;
mod prompt;
mod table;
mod words;

pub use complete::{Candidates, Reach};

use super::{Repl, ReplError};
use crate::mcp::runtime::{Again, Before, Connected};
use crate::mcp::{Mcp, Say, list, prompts, resources};
use aish_core::sanitize;
use aish_mcp::McpError;
use aish_mcp::oauth::Identity;
use aish_mcp::servers::State;
use std::future::Future;
use std::sync::Arc;
use table::What;

/// Characters of a server's problem that are told.
const PROBLEM_CHARS_MAX: usize = 300;

impl Repl {
    /// Does what follows `:mcp`.
    pub(super) async fn mcp(&mut self, line: &str) -> Result<(), ReplError> {
        let what = match table::parse(line) {
            Ok(what) => what,
            Err(mistake) => {
                self.front.say(&mistake).await;
                return Ok(());
            }
        };
        let mcp = Arc::clone(&self.options.mcp);
        match what {
            What::Help => self.front.print(&table::help(self.front.renderer.look().width())).await,
            What::List => {
                let text = mcp.list(self.front.renderer.look().width());
                self.show_servers_words(text).await;
            }
            What::Connect { address, alias } => match mcp.connect(&address, alias.as_deref()) {
                Ok((alias, before)) => self.connected(alias.as_str(), before).await,
                Err(problem) => self.front.say(&problem).await,
            },
            What::Disconnect(alias) => self.disconnect(alias).await,
            What::Reconnect(alias) => match mcp.reconnect(&alias) {
                Some(before) => self.connected(&alias, before).await,
                None => self.unknown_server(&alias).await,
            },
            What::Tools(alias) => {
                let mut servers = mcp.servers().list();
                if let Some(alias) = alias {
                    servers.retain(|server| server.config.alias.as_str() == alias);
                    if servers.is_empty() {
                        self.unknown_server(&alias).await;
                        return Ok(());
                    }
                }
                let columns = self.front.renderer.look().width();
                self.show_servers_words(list::tools(&servers, columns)).await;
            }
            What::Tool(name) => match list::tool(&mcp.servers().list(), &name, self.front.renderer.look().width()) {
                Some(text) => self.show_servers_words(text).await,
                None => {
                    let line = format!("there is no tool {name}; :mcp tools lists them");
                    self.front.say(&line).await;
                }
            },
            What::Prompts(alias) => self.list_prompts(alias).await,
            What::Resources(alias) => self.list_resources(alias).await,
            What::Login(alias) => self.log_in(&alias).await,
            What::Log(alias) => self.show_log(&alias).await,
        }
        Ok(())
    }

    /// Waits for the outcome of connecting, and tells it. Ctrl-C stops waiting, not connecting.
    async fn connected(&mut self, alias: &str, before: Before) {
        let mcp = Arc::clone(&self.options.mcp);
        let (outcome, name) = (Arc::clone(&mcp), alias.to_owned());
        let connected = self
            .unless_cancelled(async move { outcome.outcome(&name, before).await })
            .await;
        let line = match connected {
            Some(Connected::Ready { tools, remarks }) => {
                for remark in remarks {
                    self.front.say(&format!("mcp: {alias}: {remark}")).await;
                }
                let plural = if tools == 1 { "" } else { "s" };
                format!("mcp: {alias}: {tools} tool{plural}")
            }
            Some(Connected::Trouble { news, again }) => {
                if let Some(news) = news {
                    self.front.say(&news).await;
                }
                match again {
                    Again::ByItself => {
                        format!("mcp: {alias} is tried again by itself; :mcp disconnect {alias} forgets it")
                    }
                    Again::WhenAsked => {
                        format!(
                            "mcp: {alias} is not tried again before :mcp reconnect {alias}; :mcp disconnect {alias} forgets it"
                        )
                    }
                }
            }
            Some(Connected::Silent) | None => {
                format!("mcp: {alias} is still being connected to; :mcp list says how it does")
            }
            Some(Connected::Gone) => format!("mcp: {alias} is disconnected"),
        };
        self.front.say(&line).await;
    }

    async fn disconnect(&mut self, alias: String) {
        let mcp = Arc::clone(&self.options.mcp);
        if mcp.servers().get(&alias).is_none() {
            return self.unknown_server(&alias).await;
        }
        let name = alias.clone();
        // A task of its own: it goes on behind the prompt when nobody waits for it any more.
        let ending = tokio::spawn(async move { mcp.disconnect(&name).await });
        let line = match self.unless_cancelled(ending).await {
            Some(_) => format!("mcp: {alias} is disconnected"),
            None => format!("mcp: {alias} is being disconnected"),
        };
        self.front.say(&line).await;
    }

    async fn list_prompts(&mut self, alias: Option<String>) {
        let columns = self.front.renderer.look().width();
        self.list_offered("prompts", alias, async move |mcp, alias| {
            let prompts = mcp.prompts(alias).await?;
            let text = prompts::list(alias, &prompts.items, columns);
            Ok((text, prompts.remarks.clone()))
        })
        .await;
    }

    async fn list_resources(&mut self, alias: Option<String>) {
        let columns = self.front.renderer.look().width();
        self.list_offered("resources", alias, async move |mcp, alias| {
            let resources = mcp.resources(alias).await?;
            // Older servers know resources and no templates.
            let templates = mcp.templates(alias).await.ok();
            let holes = templates.as_ref().map_or(&[][..], |it| &it.items);
            let text = resources::list(alias, &resources.items, holes, columns);
            let more = templates.iter().flat_map(|it| &it.remarks);
            Ok((text, resources.remarks.iter().chain(more).cloned().collect()))
        })
        .await;
    }

    /// Shows what one server, or each that may have things of that kind, lists; all are asked at once.
    async fn list_offered(
        &mut self,
        capability: &str,
        alias: Option<String>,
        list: impl AsyncFn(&Mcp, &str) -> Result<Listed, McpError>,
    ) {
        let Some(aliases) = self.servers_with(capability, alias).await else {
            return;
        };
        let mcp = Arc::clone(&self.options.mcp);
        let (mcp, list) = (&*mcp, &list);
        let each = aliases.into_iter().map(async |alias| {
            let listed = list(mcp, &alias).await;
            (alias, listed)
        });
        let fetched = self.unless_cancelled(futures_util::future::join_all(each)).await;
        self.show_lists(&format!("no {capability}"), fetched).await;
    }

    /// The server that was named, or all that have things of that kind or may yet have; nothing when it was said that there is
    /// none of that name.
    async fn servers_with(&mut self, capability: &str, alias: Option<String>) -> Option<Vec<String>> {
        let mcp = &self.options.mcp;
        match alias {
            Some(alias) if mcp.servers().get(&alias).is_some() => Some(vec![alias]),
            Some(alias) => {
                self.unknown_server(&alias).await;
                None
            }
            None => {
                let offering = mcp.offering(capability);
                let servers = mcp.servers().list();
                let may_offer = servers.iter().filter(|server| {
                    let is_offering = offering.iter().any(|alias| alias == server.config.alias.as_str());
                    is_offering || server.status.state == State::Connecting
                });
                Some(may_offer.map(|server| server.config.alias.to_string()).collect())
            }
        }
    }

    async fn show_lists(&mut self, none: &str, fetched: Option<Vec<(String, Result<Listed, McpError>)>>) {
        let Some(fetched) = fetched else {
            return self.front.say("stopped").await;
        };
        let mut all = String::new();
        for (alias, listed) in fetched {
            match listed {
                Ok((text, remarks)) => {
                    all.push_str(&text);
                    for remark in remarks {
                        self.front.say(&format!("mcp: {alias}: {remark}")).await;
                    }
                }
                Err(error) => self.server_problem(&alias, &error.message).await,
            }
        }
        if all.is_empty() {
            self.front.say(none).await;
        } else {
            self.show_servers_words(all).await;
        }
    }

    async fn log_in(&mut self, alias: &str) {
        if self.options.mcp.servers().get(alias).is_none() {
            return self.unknown_server(alias).await;
        }
        let mcp = Arc::clone(&self.options.mcp);
        let (name, environment) = (alias.to_owned(), self.engine.settings().context.environment);
        let servers = Arc::clone(mcp.servers());
        let say: Say = Arc::new(move |line| servers.host().say(line));
        let login = async move { mcp.log_in(&name, &Identity::Unknown, &environment, &say).await };
        match self.unless_cancelled(login).await {
            Some(Ok(())) => {
                if let Some(before) = self.options.mcp.reconnect(alias) {
                    self.connected(alias, before).await;
                }
            }
            Some(Err(problem)) => self.server_problem(alias, &problem).await,
            None => self.server_problem(alias, "stopped").await,
        }
    }

    async fn show_log(&mut self, alias: &str) {
        let mcp = Arc::clone(&self.options.mcp);
        let is_there = mcp.servers().get(alias).is_some();
        match mcp.logs().text(alias, &self.engine.redactor) {
            Some(text) => self.show(Ok(text)).await,
            None if is_there => self.front.say(&format!("mcp: {alias} has written nothing")).await,
            None => self.unknown_server(alias).await,
        }
    }

    async fn unknown_server(&mut self, alias: &str) {
        let line = match self.options.mcp.switched_off(alias) {
            Some(why) => format!("mcp: {alias} {why}"),
            None => unknown_server(alias),
        };
        self.front.say(&line).await;
    }

    /// One line on what went wrong at a server.
    async fn server_problem(&mut self, what: &str, problem: &str) {
        let problem: String = sanitize::single_line(problem).chars().take(PROBLEM_CHARS_MAX).collect();
        self.front.say(&format!("mcp: {what}: {problem}")).await;
    }

    /// Shows a text that is escaped already, without secrets, by pages where it is long.
    async fn show_servers_words(&mut self, text: String) {
        let text = self.engine.redactor.redact(&text).into_owned();
        self.show(Ok(text)).await;
    }

    /// What that comes to; nothing when Ctrl-C came first, or a signal to leave.
    pub(super) async fn unless_cancelled<F: Future>(&mut self, run: F) -> Option<F::Output> {
        self.front
            .watch(|_, mut cancel| async move {
                tokio::select! {
                    output = run => Some(output),
                    _ = cancel.wait_for(|cancelled| *cancelled) => None,
                }
            })
            .await
    }
}

/// One line for an alias that is no server's (SPEC 6.4).
fn unknown_server(alias: &str) -> String {
    format!("there is no MCP server {alias}; :mcp list says which there are")
}

/// A list of one server as text, and what was left out of it.
type Listed = (String, Vec<String>);
