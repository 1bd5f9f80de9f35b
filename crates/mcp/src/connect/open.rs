//! The two halves as transports that can be opened again, and what each knows of its failures.

use crate::http::{self, Failures, HttpClient};
use crate::oauth::{Bearer, Keyring};
use crate::stdio::{Child, Process};
use crate::wire::Trouble;
use crate::{Alias, Host, HttpEndpoint, McpError, StdioEndpoint};
use rmcp::RoleClient;
use rmcp::model::RequestId;
use rmcp::transport::{StreamableHttpClientTransport, Transport};
use std::sync::Arc;

/// Opens one more connection to the same server.
pub(super) trait Open: Send + Sync {
    type Transport: Transport<RoleClient> + 'static;

    /// What a connection is good for after a question that went unanswered.
    const AFTER_SILENCE: AfterSilence;

    /// The transport, and who tells what went wrong with it.
    fn open(&self) -> impl Future<Output = Result<(Self::Transport, Box<dyn Trouble>), McpError>> + Send;
}

/// Whether a second question can follow an unanswered first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterSilence {
    /// On the same connection: messages go both ways independently. A server that is only slow to start is not started twice.
    Ask,
    /// On a fresh connection: this one waits for the first answer.
    Reconnect,
}

/// A server over HTTP.
pub(super) struct OverHttp<'a> {
    pub(super) alias: &'a Alias,
    pub(super) endpoint: &'a HttpEndpoint,
    pub(super) client: &'a reqwest::Client,
    pub(super) keyring: &'a Keyring,
}

impl Open for OverHttp<'_> {
    type Transport = StreamableHttpClientTransport<HttpClient>;

    const AFTER_SILENCE: AfterSilence = AfterSilence::Reconnect;

    async fn open(&self) -> Result<(Self::Transport, Box<dyn Trouble>), McpError> {
        let (transport, failures) = http::transport_with(self.endpoint, self.client, self.bearer())?;
        Ok((transport, Box::new(failures)))
    }
}

impl OverHttp<'_> {
    /// Who gives the token: none where no token may go.
    fn bearer(&self) -> Option<Bearer> {
        let url = url::Url::parse(&self.endpoint.url).ok()?;
        Bearer::new(self.alias, &url, self.client, self.keyring)
    }
}

impl Trouble for Failures {
    fn of_request(&self, id: &RequestId) -> Option<McpError> {
        self.take(id)
    }

    fn of_connection(&self) -> Option<McpError> {
        self.take_latest()
    }
}

/// A server that is a child process.
pub(super) struct OverStdio<'a> {
    pub(super) alias: &'a Alias,
    pub(super) endpoint: &'a StdioEndpoint,
    pub(super) host: Arc<dyn Host>,
}

impl Open for OverStdio<'_> {
    type Transport = Child;

    const AFTER_SILENCE: AfterSilence = AfterSilence::Ask;

    async fn open(&self) -> Result<(Self::Transport, Box<dyn Trouble>), McpError> {
        let child = Child::start(self.alias, self.endpoint, Arc::clone(&self.host)).await?;
        let process = ChildTrouble(Arc::clone(child.process()));
        Ok((child, Box::new(process)))
    }
}

/// A child's requests fail with the child.
struct ChildTrouble(Arc<Process>);

impl Trouble for ChildTrouble {
    fn of_request(&self, _id: &RequestId) -> Option<McpError> {
        None
    }

    fn of_connection(&self) -> Option<McpError> {
        Some(self.0.why())
    }
}
