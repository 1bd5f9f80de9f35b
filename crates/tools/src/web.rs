//! `web_get`: a page from the network as readable text (SPEC 4).
//!
//! [`WebGetTool`] fetches one address (`fetch`), however often it is redirected, within limits of size and time ([`WebLimits`]),
//! and makes text of what comes (`content`, `html`). No cookies and no credentials are kept or sent.
//!
//! **Who can be reached** (`address`, `reach`). Unless a person sets `tools.web_private`, only public addresses: a model that is
//! led by a page must not come to the services of this machine and its network, such as a router's settings or a cloud's
//! metadata. An address written as a number is judged when the call is; a name is judged by the very addresses a connection is
//! then made to, so that a name that means something else a moment later gains nothing. Through a proxy it is the proxy that
//! connects: names are then looked up here first and refused where this machine knows them as private, and what else the
//! proxy reaches is the proxy's to say.
//!
//! **Where a page may lead.** What was approved is one address. A redirect within its site is followed unless a rule speaks of
//! where it leads; one to another site only where a call of that address would run unasked ([`Ahead`]). Else the answer says where
//! it leads, and the model calls again, which is judged like any call.

mod address;
mod content;
mod fetch;
mod html;
mod reach;

pub use reach::{Ahead, Lookup, Proxies, WebAccess};

use crate::files::text_argument;
use crate::work::{CANCELLED, cancelled, run_blocking};
use crate::{Cancel, Progress, Tool, ToolContext, ToolOutput};
use aish_core::action::{Action, Effect, Reach};
use aish_core::message::ToolSpec;
use aish_core::redact::PLACEHOLDER_START;
use fetch::{Fetch, Fetched, Response};
use futures_util::future::BoxFuture;
use reach::Clients;
use reqwest::{ClientBuilder, Url};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

/// The tool's name.
const NAME: &str = "web_get";
/// Pages that are fetched at once; others wait. Each may be as large as the limit.
const FETCHES_MAX: usize = 4;
/// Pages that are made text of at once, which takes as much memory again, and a processor.
const READINGS_MAX: usize = 2;
/// Of an address from which a secret was taken before the model saw it (SPEC 10.5).
const REDACTED: &str =
    "Parameter url carries a redaction placeholder: the hidden value is not known to you, and is not sent";

/// How much, how long and how far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebLimits {
    /// For a connection.
    pub connect_timeout_ms: u64,
    /// For all of it, redirects included.
    pub total_timeout_ms: u64,
    /// Of a page, after it was unpacked; the rest is left out.
    pub body_bytes_max: usize,
    /// Redirects that are followed.
    pub redirects_max: usize,
}

impl Default for WebLimits {
    fn default() -> Self {
        Self {
            connect_timeout_ms: 10_000,
            total_timeout_ms: 30_000,
            body_bytes_max: 10 << 20,
            redirects_max: 10,
        }
    }
}

/// Fetches pages.
pub struct WebGetTool {
    spec: ToolSpec,
    limits: WebLimits,
    clients: Clients,
    fetches: Semaphore,
    readings: Semaphore,
}

#[derive(Serialize)]
struct PageResult<'a> {
    output: &'a str,
    status: u16,
    content_type: &'a str,
}

impl WebGetTool {
    /// The tool. `make` begins a client with what the process knows of the network: certificates, proxies, the name it goes by;
    /// it is called when a page is first fetched. What a page may do to the client is set here.
    pub fn new(make: impl Fn() -> Result<ClientBuilder, String> + Send + Sync + 'static, proxies: Proxies) -> Self {
        Self {
            spec: ToolSpec {
                name: NAME.into(),
                description: "Fetch a web page and read it as text. Only public addresses.".into(),
                input_schema: json!({
                    "type": "object",
                    "properties": {
                        "url": {"type": "string", "description": "Whole address, http or https"},
                    },
                    "required": ["url"],
                    "additionalProperties": false,
                }),
            },
            limits: WebLimits::default(),
            clients: Clients::new(Box::new(make), proxies),
            fetches: Semaphore::new(FETCHES_MAX),
            readings: Semaphore::new(READINGS_MAX),
        }
    }

    /// The tool within other limits.
    #[must_use]
    pub fn within(self, limits: WebLimits) -> Self {
        Self { limits, ..self }
    }

    /// The tool with names looked up by this instead of the system.
    #[must_use]
    pub fn looking_up(self, lookup: Lookup) -> Self {
        Self {
            clients: self.clients.looking_up(lookup),
            ..self
        }
    }

    /// What fetching that address is.
    fn action(&self, arguments: Value, url: &Url, reach: Reach) -> Action {
        Action {
            tool: self.spec.name.clone(),
            arguments,
            effects: vec![Effect::Fetch {
                url: url.to_string(),
                reach,
            }],
        }
    }

    async fn get(&self, action: &Action, context: &ToolContext, cancel: Cancel) -> ToolOutput {
        // Neither is ever closed.
        let _fetching = self.fetches.acquire().await;
        let response = match self.fetched(action, context).await {
            Err(message) => return ToolOutput::error(message),
            Ok(Fetched::Response(response)) => response,
            Ok(Fetched::Elsewhere { status, from, to }) => {
                let output = format!(
                    "[{from} redirects to {to}, which nobody was asked about: to go on, call {NAME} with that address]"
                );
                return result(&output, status, "", &format!("{status} redirects to {to}"));
            }
        };
        let _reading = self.readings.acquire().await;
        let (bytes_max, body_bytes_max) = (context.output_bytes_max, self.limits.body_bytes_max);
        run_blocking(cancel, move |stop| {
            match content::text(&response, body_bytes_max, bytes_max, stop) {
                _ if stop.is_set() => ToolOutput::error(CANCELLED),
                Err(message) => ToolOutput::error(message),
                Ok(text) => page(&response, &text),
            }
        })
        .await
    }

    async fn fetched(&self, action: &Action, context: &ToolContext) -> Result<Fetched, String> {
        let (start, reach) = target(action)?;
        let client = self.clients.client(reach, &self.limits)?;
        let judge = |url: &Url| {
            let next = self.action(json!({ "url": url.as_str() }), url, reach);
            context.web.ahead.judge(&next)
        };
        let fetch = Fetch {
            client: &client,
            clients: &self.clients,
            reach,
            limits: &self.limits,
            judge: &judge,
        };
        fetch.run(start).await
    }
}

/// The address of an action, and what may be there.
fn target(action: &Action) -> Result<(Url, Reach), String> {
    let found = action.effects.iter().find_map(|effect| match effect {
        Effect::Fetch { url, reach } => Url::parse(url).ok().map(|url| (url, *reach)),
        Effect::Read { .. }
        | Effect::Write { .. }
        | Effect::Execute { .. }
        | Effect::Remote
        | Effect::Delegate { .. }
        | Effect::Recall
        | Effect::Internal => None,
    });
    found.ok_or_else(|| format!("The action of {} names no address", action.tool))
}

impl Tool for WebGetTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn inspect(&self, arguments: &Value, context: &ToolContext) -> Result<Action, String> {
        let text = text_argument(arguments, "url")?;
        if text.contains(PLACEHOLDER_START) {
            return Err(REDACTED.to_owned());
        }
        let url = address::read(text)?;
        address::check(&url, context.web.reach)?;
        Ok(self.action(arguments.clone(), &url, context.web.reach))
    }

    fn run<'a>(
        &'a self,
        action: &'a Action,
        context: &'a ToolContext,
        _progress: &'a dyn Progress,
        mut cancel: Cancel,
    ) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let stopped = cancel.clone();
            tokio::select! {
                biased;
                () = cancelled(&mut cancel) => ToolOutput::error(CANCELLED),
                output = self.get(action, context, stopped) => output,
            }
        })
    }
}

fn page(response: &Response, text: &str) -> ToolOutput {
    let summary = format!(
        "{} {} ({} characters)",
        response.status,
        response.url,
        text.chars().count()
    );
    result(text, response.status, &response.content_type, &summary)
}

fn result(output: &str, status: u16, content_type: &str, summary: &str) -> ToolOutput {
    let result = PageResult {
        output,
        status,
        content_type,
    };
    ToolOutput {
        output: serde_json::to_string(&result).unwrap_or_default(),
        summary: summary.to_owned(),
        success: true,
        parts: Vec::new(),
    }
}
