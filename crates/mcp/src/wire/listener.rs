//! Hears a server: its requests are answered or refused, its notifications passed on. Nothing it says decides anything here.

use super::answer::{Refusal, answer};
use super::session::Session;
use super::{news, raw};
use rmcp::RoleClient;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ClientResult, CustomResult, ElicitationCapability, ErrorCode, ErrorData,
    FormElicitationCapability, Implementation, ProtocolVersion, SamplingCapability, ServerNotification, ServerRequest,
    UrlElicitationCapability,
};
use rmcp::service::{NotificationContext, RequestContext, Service};
use serde_json::Value;
use std::sync::Arc;

/// The ear of one connection.
pub(crate) struct Listener {
    pub(crate) session: Arc<Session>,
    pub(crate) config: ClientConfig,
    /// Since 2026-07-28 a server asks only in its results; what it sends as a request is refused.
    pub(crate) may_ask: MayAsk,
}

/// Whether a server's requests are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MayAsk {
    Yes,
    No,
}

/// What aish says of itself: it can put forms and addresses before a person and ask a model; it offers no directories.
pub(crate) fn client_config(version: ProtocolVersion) -> ClientConfig {
    let elicitation = ElicitationCapability::new()
        .with_form(FormElicitationCapability::default())
        .with_url(UrlElicitationCapability::default());
    let mut capabilities = ClientCapabilities::default();
    capabilities.elicitation = Some(elicitation);
    capabilities.sampling = Some(SamplingCapability::default());
    let client = Implementation::new("aish", env!("CARGO_PKG_VERSION"));
    ClientConfig::new(capabilities, client).with_protocol_version(version)
}

impl Service<RoleClient> for Listener {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the enum is the SDK's, and open")]
    async fn handle_request(
        &self,
        request: ServerRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<ClientResult, ErrorData> {
        let (method, params) = match request {
            ServerRequest::PingRequest(_) => return Ok(ClientResult::empty(())),
            ServerRequest::CustomRequest(request) => (request.method, request.params.unwrap_or_default()),
            // What the SDK reads itself is nothing that was offered (`roots/list`). The enum is the SDK's, and open.
            _ => (String::new(), Value::Null),
        };
        if self.may_ask == MayAsk::No {
            return Err(refused(Refusal::new(
                ErrorCode::METHOD_NOT_FOUND,
                "requests of servers ended with 2025-11-25",
            )));
        }
        tokio::select! {
            answer = answer(&self.session, raw::called(&method), params) => {
                answer.map(|result| ClientResult::CustomResult(CustomResult(result))).map_err(refused)
            }
            // The SDK sends no answer to a request that the server took back.
            () = context.ct.cancelled() => Err(refused(Refusal::new(ErrorCode::INTERNAL_ERROR, "cancelled"))),
        }
    }

    async fn handle_notification(
        &self,
        notification: ServerNotification,
        _context: NotificationContext<RoleClient>,
    ) -> Result<(), ErrorData> {
        if let ServerNotification::ProgressNotification(progress) = notification {
            self.session.progressed(progress.params).await;
        } else if let Some(id) = news::page_done(&notification) {
            self.session.page_done(id);
        } else if let Some(news) = news::of(notification) {
            self.session.news(news);
        }
        Ok(())
    }

    fn get_info(&self) -> ClientConfig {
        self.config.clone()
    }
}

fn refused(refusal: Refusal) -> ErrorData {
    ErrorData::new(refusal.code, refusal.message, None)
}
