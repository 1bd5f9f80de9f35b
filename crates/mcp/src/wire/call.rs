//! One request: sent, waited for with patience that progress renews, taken back when nobody waits any more.

use super::required::URL_REQUIRED_CODE;
use super::session::Session;
use super::{raw, required};
use crate::peer::Watch;
use crate::stdio::{TOO_LARGE_CODE, UNREADABLE_CODE};
use crate::{ErrorKind, McpError};
use rmcp::RoleClient;
use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientRequest, CustomRequest, ErrorData, RequestId,
};
use rmcp::service::{PeerRequestOptions, ServiceError};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The longest that a request may take however much progress it makes.
pub(super) const REQUEST_TOTAL_MAX_S: u64 = 3_600;
/// How long taking a request back may take.
const CANCEL_TIMEOUT_MS: u64 = 2_000;
/// Characters that are kept of a server's error message.
const MESSAGE_CHARS_MAX: usize = 2_000;

/// Asks once. The reply is the `result` as the server sent it.
pub(super) async fn once(
    session: &Arc<Session>,
    peer: &rmcp::Peer<RoleClient>,
    (method, params): (&str, Map<String, Value>),
    patience: Duration,
    watch: Option<Watch>,
) -> Result<Value, McpError> {
    let registering = session.registering().await;
    let request = ClientRequest::CustomRequest(CustomRequest::new(method, Some(Value::Object(params))));
    let sent = peer
        .send_request_with_option(request, PeerRequestOptions::no_options())
        .await;
    let mut handle = match sent {
        Ok(handle) => handle,
        Err(_) => return Err(session.ended().await),
    };
    let watched = session.watch(handle.progress_token.clone(), watch);
    drop(registering);
    let mut unanswered = Unanswered::new(peer.clone(), handle.id.clone());
    let total = Instant::now() + Duration::from_secs(REQUEST_TOTAL_MAX_S);
    let mut until = Instant::now() + patience;
    let mut questions = session.questions();
    loop {
        tokio::select! {
            biased;
            answer = &mut handle.rx => {
                unanswered.peer = None;
                return match answer {
                    Ok(Ok(result)) => Ok(raw::restore(result)),
                    Ok(Err(error)) => Err(told(session, &handle.id, error).await),
                    Err(_) => Err(session.ended().await),
                };
            }
            reason = session.ended() => return Err(session.trouble_of(&handle.id).unwrap_or(reason)),
            () = watched.renewed.notified() => until = Instant::now() + patience,
            // While a person thinks, the server waits for us; once it has its answer, it gets all of its time again.
            Ok(()) = questions.changed() => until = Instant::now() + patience,
            () = tokio::time::sleep_until(until.min(total)) => {
                let is_asked = *questions.borrow() > 0;
                if is_asked && Instant::now() < total {
                    until = Instant::now() + patience;
                } else {
                    let message = format!("no answer to {method} within {} s", patience.as_secs_f32());
                    return Err(McpError::new(ErrorKind::Timeout, message));
                }
            }
        }
    }
}

/// The failure of a request in our words.
#[expect(clippy::wildcard_enum_match_arm, reason = "the enum is the SDK's, and open")]
async fn told(session: &Session, id: &RequestId, error: ServiceError) -> McpError {
    if let Some(known) = session.trouble_of(id) {
        return known;
    }
    match error {
        ServiceError::McpError(error) if error.code.0 == URL_REQUIRED_CODE => required::refused(session, &error).await,
        ServiceError::McpError(error) => rpc_error(&error),
        ServiceError::TransportClosed => session.ended().await,
        ServiceError::TransportSend(error) => McpError::new(ErrorKind::Closed, format!("not sent: {error}")),
        ServiceError::Cancelled { .. } => McpError::new(ErrorKind::Cancelled, "the server took it as cancelled"),
        // What is left are options that are not used here; the enum is the SDK's, and open.
        other => McpError::new(ErrorKind::Protocol, other.to_string()),
    }
}

/// A JSON-RPC error of a server.
pub(crate) fn rpc_error(error: &ErrorData) -> McpError {
    let code = i64::from(error.code.0);
    let said: String = error.message.chars().take(MESSAGE_CHARS_MAX).collect();
    let message = if said.trim().is_empty() {
        format!("JSON-RPC error {code}")
    } else {
        said
    };
    let kind = match error.code.0 {
        // Replies that our own half put in the place of what it could not pass on.
        TOO_LARGE_CODE => ErrorKind::TooLarge,
        UNREADABLE_CODE => ErrorKind::Protocol,
        _ => ErrorKind::Rpc { code },
    };
    McpError::new(kind, message)
}

/// A request that the server is told of when it is dropped.
struct Unanswered {
    peer: Option<rmcp::Peer<RoleClient>>,
    id: RequestId,
}

impl Unanswered {
    fn new(peer: rmcp::Peer<RoleClient>, id: RequestId) -> Self {
        Self { peer: Some(peer), id }
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        let (Some(peer), Ok(runtime)) = (self.peer.take(), tokio::runtime::Handle::try_current()) else {
            return;
        };
        let reason = "nobody waits for it any more".to_owned();
        let params = CancelledNotificationParam::new(Some(self.id.clone()), Some(reason));
        let notification = CancelledNotification::new(params);
        runtime.spawn(async move {
            let limit = Duration::from_millis(CANCEL_TIMEOUT_MS);
            // A server that cannot be told finds out by itself.
            let _ = tokio::time::timeout(limit, peer.send_notification(notification.into())).await;
        });
    }
}
