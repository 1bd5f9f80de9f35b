//! Messages and answers: each begins a turn or goes on with one, and is answered with where that turn stands then.
//!
//! A turn belongs to no connection (SPEC 9.5): what was begun is gone on with when the client has hung up, and the same request
//! again is told what came of it.

use super::{APPROVAL, CHAT, Shared, TOOL_RESULT};
use crate::envelope::Reply as Told;
use crate::error::{ApiError, ErrorKind};
use crate::json::{Json, answer, nothing};
use crate::request::{ApprovalBody, ChatBody, Decision, ToolResultBody, key_of};
use crate::stream;
use crate::telemetry::TurnOf;
use aish_core::event::Answer;
use aish_core::id::SessionId;
use aish_engine::{ChatRequest, Claim, Reply, Ticket};
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use http::{HeaderMap, StatusCode};

/// What stands in a path for a session or a continuation.
pub(super) type Id = Result<Path<String>, PathRejection>;

/// `POST /api/chat`
pub(super) async fn chat(
    State(shared): State<Shared>,
    headers: HeaderMap,
    body: Json<ChatBody>,
) -> Result<Response, ApiError> {
    let tools = body.value.check()?;
    let form = Form::of(&headers, body.value.stream);
    let request = key_of(&headers, CHAT, &body.bytes)?;
    let asked = body.value;
    let chat = ChatRequest {
        message: asked.message,
        conversation: asked.conversation_id.map(SessionId::new),
        model: asked.model,
        system: asked.system,
        tools,
        request,
    };
    let conversation = chat.conversation.clone();
    let ticket = shared.conversations.chat(chat).await.map_err(|error| {
        let error = ApiError::from(error);
        match &conversation {
            Some(session) => error.of_session(session),
            None => error,
        }
    })?;
    told(&shared, ticket, form).await
}

/// `POST /api/sessions/{id}/tool_result`
pub(super) async fn tool_result(
    State(shared): State<Shared>,
    id: Id,
    headers: HeaderMap,
    body: Json<ToolResultBody>,
) -> Result<Response, ApiError> {
    let id = known(id)?;
    let form = Form::of(&headers, body.value.stream);
    let claim = Claim {
        request: key_of(&headers, &TOOL_RESULT.replace("{id}", &id), &body.bytes)?,
        call_id: body.value.call_id,
        reply: Reply::Result(body.value.content),
    };
    answered(&shared, (id, claim), form).await
}

/// `POST /api/sessions/{id}/approval`
pub(super) async fn approval(
    State(shared): State<Shared>,
    id: Id,
    headers: HeaderMap,
    body: Json<ApprovalBody>,
) -> Result<Response, ApiError> {
    let id = known(id)?;
    body.value.check()?;
    let reply = Reply::Verdict {
        digest: body.value.digest,
        answer: match body.value.answer {
            Decision::Approve => Answer::Approve,
            Decision::Deny => Answer::Deny,
        },
        reason: body.value.reason,
    };
    let form = Form::of(&headers, body.value.stream);
    let claim = Claim {
        request: key_of(&headers, &APPROVAL.replace("{id}", &id), &body.bytes)?,
        call_id: Some(body.value.call_id),
        reply,
    };
    answered(&shared, (id, claim), form).await
}

/// `POST /api/sessions/{id}/cancel`
pub(super) async fn cancel(State(shared): State<Shared>, id: Id, request: Request) -> Result<Response, ApiError> {
    let id = known(id)?;
    nothing(request).await?;
    let envelope = shared.conversations.cancel(&id).await?;
    Ok(answer(StatusCode::OK, &Told::from(envelope)))
}

async fn answered(shared: &Shared, (id, claim): (String, Claim), form: Form) -> Result<Response, ApiError> {
    let ticket = shared.conversations.answer(&id, claim).await?;
    told(shared, ticket, form).await
}

/// How a request wants to be answered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// With where the turn stands then.
    Envelope,
    /// With what happens until then as well.
    Stream,
}

impl Form {
    /// What the body says counts, where it says anything.
    fn of(headers: &HeaderMap, said: Option<bool>) -> Self {
        match said.unwrap_or_else(|| stream::is_wanted(headers)) {
            true => Self::Stream,
            false => Self::Envelope,
        }
    }
}

/// What the turn came to, once it waits or is over.
async fn told(shared: &Shared, ticket: Ticket, form: Form) -> Result<Response, ApiError> {
    let turn = TurnOf(ticket.session.clone(), ticket.turn);
    let mut response = match form {
        Form::Stream => shared.streams.of_turn(ticket),
        Form::Envelope => match shared.conversations.told(ticket).await {
            Ok(envelope) => answer(StatusCode::OK, &Told::from(envelope)),
            Err(error) => return Err(ApiError::from(error).of_session(&turn.0)),
        },
    };
    response.extensions_mut().insert(turn.0.clone());
    response.extensions_mut().insert(turn);
    Ok(response)
}

/// The id in a path; one that is no text names nothing.
pub(super) fn known(id: Id) -> Result<String, ApiError> {
    let named = id.map(|Path(id)| id);
    named.map_err(|_| {
        ApiError::new(
            ErrorKind::NotFound,
            "there is no session and no continuation of that id",
        )
    })
}
