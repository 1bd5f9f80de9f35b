//! `GET /api/sessions/{id}/events`: a session as it goes on.

use super::Shared;
use super::conversation::{Id, known};
use super::sessions::PLACE_MAX;
use crate::error::{ApiError, ErrorKind};
use crate::query::Query;
use aish_core::id::SessionId;
use aish_engine::Conversations;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, HeaderName, Uri};

/// Where a reader that comes back goes on.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// `GET /api/sessions/{id}/events`
pub(super) async fn follow(
    State(shared): State<Shared>,
    id: Id,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let query = Query::read(uri.query(), &["after"])?;
    let after = match headers.get(&LAST_EVENT_ID) {
        Some(given) => place(given.to_str().unwrap_or_default())?,
        None => query.number("after", (0, PLACE_MAX))?.unwrap_or(0),
    };
    let session = shared.conversations.session_of(&known(id)?).await?;
    expect_there(&shared.conversations, &session, after).await?;
    let mut response = shared.streams.of_session((session.clone(), after));
    response.extensions_mut().insert(session);
    Ok(response)
}

fn place(given: &str) -> Result<u64, ApiError> {
    let read = given.trim().parse().ok().filter(|place| *place <= PLACE_MAX);
    let problem = "`Last-Event-ID` must be the id of an event, a whole number";
    read.ok_or_else(|| ApiError::new(ErrorKind::InvalidRequest, problem))
}

/// Whoever says to have an event that is not there has those of another session.
async fn expect_there(conversations: &Conversations, session: &SessionId, after: u64) -> Result<(), ApiError> {
    if after == 0 || !conversations.events(session, after - 1, 1).await?.is_empty() {
        return Ok(());
    }
    let problem = format!("session {session} has no event {after}");
    Err(ApiError::new(ErrorKind::InvalidRequest, problem).hint("without `Last-Event-ID` it begins with the first"))
}
