//! What a client asks for, answered: the list of tools, and calls.

use super::progress::Latest;
use super::sessions::SessionEnd;
use super::{Backend, Call, CallResult, Consent, Ended, Question, Tool, consent};
use aish_core::sanitize;
use aish_tools::{Cancel, Progress};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestMethod, CompleteRequestParams,
    CompleteResult, ConstString, ContentBlock, ErrorCode, ErrorData, Implementation, JsonObject,
    ListPromptsRequestMethod, ListPromptsResult, ListResourceTemplatesRequestMethod, ListResourceTemplatesResult,
    ListResourcesRequestMethod, ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProtocolVersion,
    ServerCapabilities, ServerConfig, Tool as WireTool, ToolAnnotations, ToolsCapability,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde_json::Value;
use std::future::{Future, ready};
use std::sync::Arc;
use tokio::sync::watch;

/// Questions of one call: a client that answers past them is told no.
const QUESTIONS_MAX: usize = 3;
/// Characters of what a client calls itself.
const CLIENT_CHARS_MAX: usize = 80;

/// One client's side of a backend.
#[derive(Clone)]
pub(super) struct Handler {
    backend: Arc<dyn Backend>,
    /// Turns true when nobody listens any more: every call is to end.
    hung_up: Cancel,
}

/// Tells a call to end when whoever waited for it is gone.
struct EndOnDrop(watch::Sender<bool>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.send_replace(true);
    }
}

impl Handler {
    pub(super) fn new(backend: Arc<dyn Backend>, hung_up: Cancel) -> Self {
        Self { backend, hung_up }
    }

    /// Performs a call, asking in between.
    async fn perform(
        &self,
        call: Call,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> CallToolResponse {
        let is_stateless = context
            .protocol_version()
            .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str());
        let can_ask = consent::can_ask(context.client_capabilities().as_ref());
        let mut ended = match request.request_state.as_deref() {
            Some(ticket) => {
                let given = request.input_responses.as_ref().and_then(consent::answered);
                let given = given.unwrap_or(Consent::Unclear);
                self.backend.answer(ticket, call.clone(), given).await
            }
            None => self.backend.call(call.clone()).await,
        };
        for _ in 0..QUESTIONS_MAX {
            let question = match ended {
                Ended::Result(result) => return wire_result(result).into(),
                Ended::Asks(question) => question,
            };
            if can_ask && is_stateless {
                return consent::asking(&question).into();
            }
            let given = if can_ask {
                asked(context, &question, &call.cancel).await
            } else {
                Consent::Nobody
            };
            ended = self.backend.answer(&question.ticket, call.clone(), given).await;
        }
        let text = "not run: it was asked about too often".to_owned();
        wire_result(CallResult { text, success: false }).into()
    }
}

/// Asks, for no longer than the client wants the call.
async fn asked(context: &RequestContext<RoleServer>, question: &Question, cancel: &Cancel) -> Consent {
    let mut cancel = cancel.clone();
    tokio::select! {
        given = consent::ask(&context.peer, question) => given,
        () = aish_tools::cancelled(&mut cancel) => Consent::Nobody,
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let mut capabilities = ServerCapabilities::default();
        capabilities.tools = Some(ToolsCapability::default());
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("aish", env!("CARGO_PKG_VERSION")))
            .with_instructions(self.backend.instructions())
    }

    fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<ListToolsResult, ErrorData>> + Send + '_ {
        let tools = self.backend.tools().into_iter().map(wire_tool);
        ready(Ok(ListToolsResult::with_all_items(tools.collect())))
    }

    fn get_tool(&self, name: &str) -> Option<WireTool> {
        let tools = self.backend.tools().into_iter();
        tools.filter(|tool| tool.spec.name == name).map(wire_tool).next()
    }

    async fn call_tool(
        &self,
        mut request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let (end, cancel) = watch::channel(false);
        let end = EndOnDrop(end);
        let latest = Arc::new(Latest::default());
        let arguments = request
            .arguments
            .take()
            .map_or(String::new(), |arguments| Value::Object(arguments).to_string());
        let call = Call {
            tool: request.name.to_string(),
            arguments,
            client: client_name(&context),
            progress: Arc::clone(&latest) as Arc<dyn Progress>,
            cancel,
        };
        let token = context.meta.get_progress_token();
        let mut hung_up = self.hung_up.clone();
        let mut session_end = session_end(&context).unwrap_or_else(|| hung_up.clone());
        let mut performing = std::pin::pin!(self.perform(call, request, &context));
        tokio::select! {
            response = &mut performing => return Ok(response),
            () = latest.tell(&context.peer, token) => {}
            () = context.ct.cancelled() => {}
            () = aish_tools::cancelled(&mut hung_up) => {}
            () = aish_tools::cancelled(&mut session_end) => {}
        }
        // Nobody reads the answer; what runs is still seen to its end.
        drop(end);
        Ok(performing.await)
    }

    // What is not offered is not there. The SDK would answer with empty lists.

    fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<ListPromptsResult, ErrorData>> + Send + '_ {
        ready(Err(not_offered::<ListPromptsRequestMethod>()))
    }

    fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<ListResourcesResult, ErrorData>> + Send + '_ {
        ready(Err(not_offered::<ListResourcesRequestMethod>()))
    }

    fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<ListResourceTemplatesResult, ErrorData>> + Send + '_ {
        ready(Err(not_offered::<ListResourceTemplatesRequestMethod>()))
    }

    fn complete(
        &self,
        _request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<CompleteResult, ErrorData>> + Send + '_ {
        ready(Err(not_offered::<CompleteRequestMethod>()))
    }
}

fn not_offered<M: ConstString>() -> ErrorData {
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, M::VALUE, None)
}

/// Turns true when the call's session ends, where it has one.
fn session_end(context: &RequestContext<RoleServer>) -> Option<Cancel> {
    let head = context.extensions.get::<http::request::Parts>()?;
    let SessionEnd(end) = head.extensions.get()?;
    Some(end.clone())
}

fn client_name(context: &RequestContext<RoleServer>) -> String {
    let name = context
        .client_info()
        .map(|client| format!("{} {}", client.name, client.version))
        .unwrap_or_default();
    let name: String = sanitize::single_line(&name).chars().take(CLIENT_CHARS_MAX).collect();
    if name.trim().is_empty() {
        "unnamed".to_owned()
    } else {
        name
    }
}

fn wire_result(result: CallResult) -> CallToolResult {
    let content = vec![ContentBlock::text(result.text)];
    if result.success {
        CallToolResult::success(content)
    } else {
        CallToolResult::error(content)
    }
}

fn wire_tool(tool: Tool) -> WireTool {
    let schema = match tool.spec.input_schema {
        Value::Object(schema) => schema,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => JsonObject::new(),
    };
    let mut annotations = ToolAnnotations::default();
    annotations.read_only_hint = tool.hints.read_only;
    annotations.destructive_hint = tool.hints.destructive;
    annotations.idempotent_hint = tool.hints.idempotent;
    WireTool::new(tool.spec.name, tool.spec.description, Arc::new(schema)).with_annotations(annotations)
}
