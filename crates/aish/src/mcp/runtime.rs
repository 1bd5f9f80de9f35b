//! Servers that come and go while the program runs (SPEC 6.4): connecting to an address, and how that went.

use super::Mcp;
use super::publish::problem_of;
use aish_mcp::servers::{Server, State};
use aish_mcp::{Alias, Endpoint, Era, HttpEndpoint, Offer, ServerConfig};
use reqwest::Url;
use std::sync::Arc;
use std::time::Duration;

/// How long a server that was named at the prompt may take to answer.
const TIMEOUT_S: u64 = 30;
/// What a server has beyond its own limit to be known to have missed it.
const GRACE_MS: u64 = 500;

/// How connecting went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Connected {
    /// It is there: so many tools, and what was left out of them, one line each, escaped.
    Ready { tools: usize, remarks: Vec<String> },
    /// It is not there. What went wrong, as it is told, unless it has been told already.
    Trouble { news: Option<String>, again: Again },
    /// It has not answered yet.
    Silent,
    /// It was taken away meanwhile.
    Gone,
}

/// What happens to a server that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// It is tried again by itself.
    ByItself,
    /// It is tried again when somebody says so.
    WhenAsked,
}

/// How a server was doing before something was done about it.
pub struct Before {
    changes: u64,
    /// What it offered, where it was there.
    offer: Option<Arc<Offer>>,
    is_new: bool,
}

impl Mcp {
    /// Begins to connect to a server that is in no configuration, over HTTP, and returns at once. Without an alias it gets one
    /// made from its address.
    ///
    /// # Errors
    /// The address or the alias is none, or the alias is taken: one line, in which the address is not repeated, since there may
    /// be a password in it.
    pub fn connect(&self, address: &str, alias: Option<&str>) -> Result<(Alias, Before), String> {
        let url = Url::parse(address).ok();
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let url = url.ok_or("an address begins with http:// or https://, e.g. http://127.0.0.1:8080/mcp")?;
        let alias = match alias {
            Some(alias) => Alias::parse(alias).map_err(|error| error.to_string())?,
            None => Alias::of_url(&url, |name| {
                self.servers().get(name).is_some() || self.configured.contains_key(name)
            }),
        };
        let is_there = self.servers().get(alias.as_str()).is_some();
        if let Some(why) = self.switched_off(alias.as_str()).filter(|_| !is_there) {
            return Err(format!("{alias} {why}: take another name"));
        }
        if !is_there && self.configured.contains_key(alias.as_str()) {
            return Err(format!(
                "{alias} is the configuration's: :mcp reconnect {alias} connects to it"
            ));
        }
        let before = Before {
            is_new: true,
            ..self.before(alias.as_str())
        };
        let config = ServerConfig {
            alias: alias.clone(),
            endpoint: Endpoint::Http(HttpEndpoint {
                url: url.into(),
                token: None,
                headers: Vec::new(),
            }),
            timeout: Duration::from_secs(TIMEOUT_S),
            era: Era::Unknown,
            enabled_tools: Vec::new(),
            disabled_tools: Vec::new(),
            is_required: false,
            is_trusted: false,
        };
        self.servers().add(config).map_err(|taken| taken.to_string())?;
        Ok((alias, before))
    }

    /// Ends the connection to a server and forgets it; false when there is none of that alias.
    pub async fn disconnect(&self, alias: &str) -> bool {
        let was_there = self.servers().remove(alias).await;
        self.host.troubles.is_over(alias);
        self.host.shelf.forget(alias);
        was_there
    }

    /// Fetches what a server offers anew, or connects to it now if it is not connected; also to one of the configuration that was
    /// disconnected. Returns at once; `None` when there is no such server.
    pub fn reconnect(&self, alias: &str) -> Option<Before> {
        let before = self.before(alias);
        if self.servers().get(alias).is_some() {
            self.servers().refresh(alias);
            return Some(before);
        }
        let config = self.configured.get(alias)?.clone()?;
        self.servers().add(config).ok()?;
        Some(Before { is_new: true, ..before })
    }

    fn before(&self, alias: &str) -> Before {
        let server = self.servers().get(alias);
        let ready = server.filter(|server| server.status.state == State::Ready);
        Before {
            changes: *self.servers().changes().borrow(),
            offer: ready.map(|server| server.status.offer),
            is_new: false,
        }
    }

    /// Waits until it is known how a server does after what was done about it, no longer than its own limit.
    pub async fn outcome(&self, alias: &str, before: Before) -> Connected {
        let Some(timeout) = self.servers().get(alias).map(|server| server.config.timeout) else {
            return Connected::Gone;
        };
        let mut changes = self.servers().changes();
        let mut has_begun = before.is_new;
        let known = async {
            loop {
                let count = *changes.borrow_and_update();
                let Some(server) = self.servers().get(alias) else {
                    return Connected::Gone;
                };
                has_begun |= server.status.state == State::Connecting;
                // It may have begun and failed before anybody looked.
                has_begun |= count.saturating_sub(before.changes) >= 2;
                match connected(&server, &before, has_begun) {
                    Some(Connected::Trouble { again, .. }) => {
                        let news = problem_of(&server).filter(|line| self.host.troubles.is_news(alias, line));
                        return Connected::Trouble { news, again };
                    }
                    Some(connected) => return connected,
                    None => {}
                }
                if changes.changed().await.is_err() {
                    return Connected::Gone;
                }
            }
        };
        let limit = timeout + Duration::from_millis(GRACE_MS);
        tokio::time::timeout(limit, known).await.unwrap_or(Connected::Silent)
    }
}

/// What is known by now; `has_begun` says that what is seen came after what was done.
fn connected(server: &Server, before: &Before, has_begun: bool) -> Option<Connected> {
    let offer = &server.status.offer;
    let has_begun = has_begun || before.offer.is_some();
    let trouble = |again| Some(Connected::Trouble { news: None, again });
    match &server.status.state {
        State::Connecting => None,
        State::Ready if before.offer.as_ref().is_some_and(|old| Arc::ptr_eq(old, offer)) => None,
        State::Ready => Some(Connected::Ready {
            tools: offer.tools.len(),
            remarks: offer.remarks.clone(),
        }),
        State::Waiting { .. } if has_begun => trouble(Again::ByItself),
        State::Failed(_) if has_begun => trouble(Again::WhenAsked),
        State::Waiting { .. } | State::Failed(_) => None,
    }
}
