//! Completing what servers offer while a line is typed: aliases and tools at once, prompts and resources as soon as their
//! server has said them, which is waited for only a moment.

use super::table::{Follows, ROWS};
use crate::mcp::Mcp;
use crate::mcp::prompts::shortened;
use crate::mentions::{mention_of_file, open_reference};
use aish_core::sanitize::{is_hostile, single_line};
use std::future::Future;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;
use tokio::runtime::Handle;

/// How long a key may wait for a server. What comes later is there for the next key.
const WAIT_MS: u64 = 500;

/// What may stand where a line ends: the words, and what each of them is.
pub type Candidates = Vec<(String, String)>;

/// The servers, as they can be reached from the thread that reads lines.
#[derive(Clone)]
pub struct Reach {
    mcp: Arc<Mcp>,
    runtime: Handle,
}

impl Reach {
    /// From any thread, through that runtime.
    pub fn new(mcp: Arc<Mcp>, runtime: Handle) -> Self {
        Self { mcp, runtime }
    }

    /// What may follow `:mcp `: where in `typed` the word begins, and its candidates.
    pub fn commands(&self, typed: &str) -> (usize, Candidates) {
        let Some((name, rest)) = typed.split_once(' ') else {
            let rows = ROWS.iter().filter(|row| row.name.starts_with(typed));
            let rows = rows.map(|row| (row.name.to_owned(), row.help.to_owned()));
            return (0, rows.collect());
        };
        let at = typed.len() - rest.len();
        let follows = ROWS.iter().find(|row| row.name == name).map(|row| row.follows);
        let words = match follows {
            Some(Follows::Alias) => self
                .mcp
                .aliases()
                .into_iter()
                .map(|alias| (alias, String::new()))
                .collect(),
            Some(Follows::Tool) => self.tools(),
            Some(Follows::Nothing) | None => Vec::new(),
        };
        (at, fitting(words, rest))
    }

    fn tools(&self) -> Candidates {
        let servers = self.mcp.servers().list();
        let tools = servers.iter().flat_map(|server| {
            let alias = &server.config.alias;
            let tools = server.status.offer.tools.iter();
            tools.map(move |tool| (format!("{alias}.{}", tool.name), shortened(&tool.description)))
        });
        tools.collect()
    }

    /// Prompts behind a colon: servers that have some, then those of the one that was named, then the arguments of the one.
    pub fn prompts(&self, typed: &str) -> (usize, Candidates) {
        let Some((alias, rest)) = typed.split_once('.') else {
            let aliases = self.mcp.offering("prompts").into_iter();
            let words = aliases.map(|alias| (format!("{alias}."), format!("prompts of {alias}")));
            return (0, fitting(words.collect(), typed));
        };
        let (mcp, name) = (Arc::clone(&self.mcp), alias.to_owned());
        let fetch = async move { mcp.prompts(&name).await.ok() };
        if self.mcp.servers().get(alias).is_none() {
            return (0, Vec::new());
        }
        let Some(prompts) = self.soon(fetch).flatten() else {
            return (0, Vec::new());
        };
        let Some((name, _)) = rest.split_once(' ') else {
            let prompts = prompts.items.iter();
            let words = prompts.map(|prompt| (format!("{alias}.{}", prompt.name), shortened(&prompt.description)));
            return (0, fitting(words.collect(), typed));
        };
        let at = typed.rfind(' ').map_or(typed.len(), |space| space + 1);
        let prompt = prompts.items.iter().find(|prompt| prompt.name == name);
        let arguments = prompt.map_or(&[][..], |prompt| &prompt.arguments).iter();
        let words = arguments.map(|argument| (format!("{}=", argument.name), shortened(&argument.description)));
        (at, fitting(words.collect(), typed.get(at..).unwrap_or_default()))
    }

    /// Resources, where the line ends in a mention of one: where it begins, and its candidates.
    pub fn resources(&self, line: &str) -> Option<(usize, Candidates)> {
        let (at, typed) = open_reference(line)?;
        let Some((alias, _)) = typed.split_once(':') else {
            let aliases = self.mcp.offering("resources").into_iter();
            let aliases = aliases.filter(|alias| alias.starts_with(&typed));
            let words = aliases.map(|alias| (format!("@{alias}:"), format!("resources of {alias}")));
            return Some((at, words.collect()));
        };
        self.mcp.servers().get(alias)?;
        let (mcp, name) = (Arc::clone(&self.mcp), alias.to_owned());
        let fetch = async move {
            let resources = mcp.resources(&name).await.ok();
            (resources, mcp.templates(&name).await.ok())
        };
        let (resources, templates) = self.soon(fetch)?;
        let resources = resources.iter().flat_map(|listing| &listing.items);
        let resources = resources.map(|it| (format!("{alias}:{}", it.uri), shortened(&it.name)));
        let templates = templates.iter().flat_map(|listing| &listing.items);
        // As far as it goes without what has to be filled in.
        let templates = templates.map(|it| {
            let (literal, _) = it.uri_template.split_once('{').unwrap_or((&it.uri_template, ""));
            (format!("{alias}:{literal}"), shortened(&it.name))
        });
        let fitting = resources
            .chain(templates)
            .filter(|(address, _)| address.starts_with(&typed));
        let words = fitting.filter_map(|(address, help)| Some((mention_of_file(&address)?, escaped(&help))));
        Some((at, words.collect()))
    }

    /// What that comes to, if it does soon; it goes on behind it.
    fn soon<T: Send + 'static>(&self, run: impl Future<Output = T> + Send + 'static) -> Option<T> {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.runtime.spawn(async move {
            // Nobody may be waiting any more.
            let _ = sender.send(run.await);
        });
        receiver.recv_timeout(Duration::from_millis(WAIT_MS)).ok()
    }
}

/// Those that begin so and can be typed, with their help escaped.
fn fitting(words: Candidates, typed: &str) -> Candidates {
    let can_be_typed = |word: &str| {
        !word
            .chars()
            .any(|c| is_hostile(c) || c.is_whitespace() || matches!(c, '\'' | '"' | '\\'))
    };
    let fitting = words
        .into_iter()
        .filter(|(word, _)| word.starts_with(typed) && can_be_typed(word));
    fitting.map(|(word, help)| (word, escaped(&help))).collect()
}

fn escaped(help: &str) -> String {
    single_line(help).into_owned()
}
