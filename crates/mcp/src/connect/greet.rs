//! The first exchange of a connection: `server/discover` or `initialize`, read leniently and within a deadline.
//!
//! It is not the SDK's own: that one cannot tell a slow server from a silent one, and ends the connection where another
//! question on it would have been answered.

use crate::wire::{Session, Tap, client_config, news_of, raw, rpc_error};
use crate::{About, ErrorKind, McpError};
use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ClientResult, DiscoverRequest, DiscoverRequestParams,
    ErrorCode, ErrorData, InitializeRequest, InitializedNotification, ProtocolVersion, RequestId, RequestMetaObject,
    ServerCapabilities, ServerJsonRpcMessage, ServerPeerInfo, ServerRequest,
};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::time::Instant;

/// The ids of the two requests: far from those that the SDK counts from nought, so that a late answer answers nothing else.
const DISCOVER_ID: i64 = 1_000_000_001;
const INITIALIZE_ID: i64 = 1_000_000_002;
/// Characters of a server's name and version.
const NAME_CHARS_MAX: usize = 200;
/// Characters of its instructions.
const INSTRUCTIONS_CHARS_MAX: usize = 16_000;
/// Where 2026-07-28 has the server's name.
const SERVER_INFO_KEY: &str = "io.modelcontextprotocol/serverInfo";

/// What a handshake came to.
pub(super) struct Greeting {
    pub(super) about: About,
    pub(super) info: ServerPeerInfo,
}

/// Which request an answer is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Discover,
    /// After `server/discover` went unanswered, or alone. A late answer to the former is taken too: a server that gives one
    /// speaks the newer protocol from then on, and refuses `initialize`.
    Initialize,
}

/// Asks, waits for the answer until `deadline`, and completes the handshake. `version` is offered.
///
/// # Errors
/// There is no answer, it is an error, or it makes no sense. The connection can be asked again unless the session ended.
pub(super) async fn ask<T: Transport<RoleClient> + 'static>(
    tap: &mut Tap<T>,
    asked: Asked,
    version: ProtocolVersion,
    deadline: Instant,
) -> Result<Greeting, McpError> {
    let exchange = async {
        send(tap, asked, version.clone()).await?;
        match answered(tap, asked).await {
            // A server that names the version which it refuses is taken at its word, once.
            Err(Refused::ButSpeaksIt(_)) => {
                send(tap, asked, version).await?;
                answered(tap, asked).await.map_err(Refused::into_error)
            }
            other => other.map_err(Refused::into_error),
        }
    };
    let answer = tokio::time::timeout_at(deadline, exchange).await;
    answer.unwrap_or_else(|_| {
        Err(McpError::new(
            ErrorKind::Timeout,
            format!("no answer to {} in time", asked.method()),
        ))
    })
}

impl Asked {
    fn method(self) -> &'static str {
        match self {
            Self::Discover => "server/discover",
            Self::Initialize => "initialize",
        }
    }

    fn request(self, version: ProtocolVersion) -> ClientRequest {
        let config = client_config(version);
        match self {
            Self::Discover => {
                let mut request = DiscoverRequest::new(DiscoverRequestParams {});
                request.extensions.insert(RequestMetaObject::with_client_context(
                    config.protocol_version,
                    config.client_info,
                    config.capabilities,
                ));
                ClientRequest::DiscoverRequest(request)
            }
            Self::Initialize => ClientRequest::InitializeRequest(InitializeRequest::new(config)),
        }
    }

    fn id(self) -> i64 {
        match self {
            Self::Discover => DISCOVER_ID,
            Self::Initialize => INITIALIZE_ID,
        }
    }
}

/// Why a request was not answered as it was asked to be.
enum Refused {
    /// There is nothing more to ask.
    Finally(McpError),
    /// It refused the version (-32022), and names it as one that it speaks (2026-07-28, versioning).
    ButSpeaksIt(McpError),
}

impl Refused {
    fn into_error(self) -> McpError {
        match self {
            Self::Finally(error) | Self::ButSpeaksIt(error) => error,
        }
    }
}

impl From<McpError> for Refused {
    fn from(error: McpError) -> Self {
        Self::Finally(error)
    }
}

async fn send<T: Transport<RoleClient> + 'static>(
    tap: &mut Tap<T>,
    asked: Asked,
    version: ProtocolVersion,
) -> Result<(), McpError> {
    let message = ClientJsonRpcMessage::request(asked.request(version), RequestId::Number(asked.id()));
    let sent = tap.send(message).await;
    sent.map_err(|error| lost(&tap.session, asked.id(), &error.to_string()))
}

async fn answered<T: Transport<RoleClient> + 'static>(tap: &mut Tap<T>, asked: Asked) -> Result<Greeting, Refused> {
    loop {
        let (id, outcome) = next_answer(tap, asked).await?;
        if id == INITIALIZE_ID {
            let greeting = initialized(&outcome?)?;
            let notification = ClientNotification::InitializedNotification(InitializedNotification::default());
            let sent = tap.send(ClientJsonRpcMessage::notification(notification)).await;
            return match sent {
                Ok(()) => Ok(greeting),
                Err(error) => Err(lost(&tap.session, INITIALIZE_ID, &error.to_string()).into()),
            };
        }
        let greeting = outcome.and_then(|result| Ok(discovered(&result)?));
        if greeting.is_ok() || asked == Asked::Discover {
            return greeting;
        }
    }
}

/// The next answer to a request of ours. A server may ping and log before the handshake is over; all else is passed over.
async fn next_answer<T: Transport<RoleClient> + 'static>(
    tap: &mut Tap<T>,
    asked: Asked,
) -> Result<(i64, Result<Value, Refused>), McpError> {
    loop {
        let Some(message) = tap.receive().await else {
            return Err(lost(&tap.session, asked.id(), "the connection ended"));
        };
        match message {
            ServerJsonRpcMessage::Response(response) => {
                if let Some(id) = own_id(&response.id) {
                    return Ok((id, Ok(raw::restore(response.result))));
                }
            }
            // An error without an id is the answer of a server that could not read the request.
            ServerJsonRpcMessage::Error(error) => {
                if let Some(id) = error.id.as_ref().map_or(Some(asked.id()), own_id) {
                    let known = tap.session.trouble_of(&RequestId::Number(id));
                    let refused = known.map_or_else(|| refused(&error.error), Refused::Finally);
                    return Ok((id, Err(refused)));
                }
            }
            ServerJsonRpcMessage::Request(request) => {
                if let ServerRequest::PingRequest(_) = request.request {
                    let pong = ClientJsonRpcMessage::response(ClientResult::empty(()), request.id);
                    // Where the answer to a ping cannot be sent, the next message cannot be had either, and says why.
                    let _ = tap.send(pong).await;
                }
            }
            ServerJsonRpcMessage::Notification(notification) => {
                if let Some(news) = news_of(notification.notification) {
                    tap.session.news(news);
                }
            }
        }
    }
}

/// What an error says of the version that was asked for.
fn refused(error: &ErrorData) -> Refused {
    let supported = error.data.as_ref().and_then(|data| data.get("supported")?.as_array());
    let newest = ProtocolVersion::V_2026_07_28;
    let speaks_it = supported.is_some_and(|all| all.iter().any(|it| it.as_str() == Some(newest.as_str())));
    let told = rpc_error(error);
    if error.code == ErrorCode::UNSUPPORTED_PROTOCOL_VERSION && speaks_it {
        Refused::ButSpeaksIt(told)
    } else {
        Refused::Finally(told)
    }
}

/// Some servers answer with the id as text.
fn own_id(id: &RequestId) -> Option<i64> {
    let number = match id {
        RequestId::Number(number) => *number,
        RequestId::String(text) => text.parse().ok()?,
    };
    [DISCOVER_ID, INITIALIZE_ID].contains(&number).then_some(number)
}

fn lost(session: &Session, id: i64, otherwise: &str) -> McpError {
    session
        .trouble_of(&RequestId::Number(id))
        .or_else(|| session.trouble_of_connection())
        .unwrap_or_else(|| McpError::new(ErrorKind::Closed, otherwise))
}

/// Reads the result of `initialize` (2025-11-25, lifecycle). Only the version must be there.
fn initialized(result: &Value) -> Result<Greeting, McpError> {
    let Some(said) = result.get("protocolVersion").and_then(Value::as_str) else {
        return Err(McpError::new(
            ErrorKind::Protocol,
            "its answer to initialize names no version of the protocol",
        ));
    };
    let known = ProtocolVersion::KNOWN_VERSIONS
        .iter()
        .find(|version| version.as_str() == said);
    let version = known.cloned().ok_or_else(|| unknown_version(said))?;
    Ok(greeting(result, result.get("serverInfo"), version))
}

/// Reads the result of `server/discover` (2026-07-28).
fn discovered(result: &Value) -> Result<Greeting, McpError> {
    let Some(versions) = result.get("supportedVersions").and_then(Value::as_array) else {
        return Err(McpError::new(
            ErrorKind::Protocol,
            "its answer to server/discover names no versions of the protocol",
        ));
    };
    let version = ProtocolVersion::V_2026_07_28;
    if !versions.iter().any(|it| it.as_str() == Some(version.as_str())) {
        let said: Vec<&str> = versions.iter().filter_map(Value::as_str).collect();
        return Err(unknown_version(&said.join(", ")));
    }
    let meta = result.get("_meta").and_then(|meta| meta.get(SERVER_INFO_KEY));
    Ok(greeting(result, meta, version))
}

fn unknown_version(said: &str) -> McpError {
    let said: String = said.chars().take(NAME_CHARS_MAX).collect();
    let message = format!("it speaks version {said} of the protocol, which aish does not");
    McpError::new(ErrorKind::Version, message)
}

fn greeting(result: &Value, server: Option<&Value>, version: ProtocolVersion) -> Greeting {
    let text = |value: Option<&Value>, max: usize| -> Option<String> {
        value
            .and_then(Value::as_str)
            .map(|text| text.chars().take(max).collect())
    };
    let of_server = |name: &str| text(server.and_then(|it| it.get(name)), NAME_CHARS_MAX).unwrap_or_default();
    let capabilities = result.get("capabilities").and_then(Value::as_object);
    let about = About {
        name: of_server("name"),
        version: of_server("version"),
        protocol: version.as_str().to_owned(),
        instructions: text(result.get("instructions"), INSTRUCTIONS_CHARS_MAX),
        capabilities: capabilities.cloned().unwrap_or_default(),
    };
    // The SDK asks only for the version.
    let info = ServerPeerInfo::new(version, ServerCapabilities::default());
    Greeting { about, info }
}
