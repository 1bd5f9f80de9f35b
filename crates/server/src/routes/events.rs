//! `GET /api/sessions/{id}/events`: a session as it goes on.

use super::Shared;
use super::conversation::{Id, known};
use super::sessions::PLACE_MAX;
use crate::error::{ApiError, ErrorKind};
use crate::query::Query;
use crate::stream::{OF_ENVELOPE, Place};
use aish_core::id::SessionId;
use aish_engine::{Conversations, RawEvent};
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
    let (after, is_told) = match headers.get(&LAST_EVENT_ID) {
        Some(given) => read(given.to_str().unwrap_or_default())?,
        None => (query.number("after", (0, PLACE_MAX))?.unwrap_or(0), false),
    };
    let session = shared.conversations.session_of(&known(id)?).await?;
    let event = event_at(&shared.conversations, &session, after).await?;
    let place = Place {
        last: after,
        untold: event.filter(|_| !is_told),
    };
    let mut response = shared.streams.of_session(session.clone(), place);
    response.extensions_mut().insert(session);
    Ok(response)
}

/// The event that a reader has last, and whether it has the envelope of that as well.
fn read(given: &str) -> Result<(u64, bool), ApiError> {
    let given = given.trim();
    let of_envelope = given.strip_suffix(OF_ENVELOPE);
    let read = of_envelope.unwrap_or(given).parse().ok();
    let problem = "`Last-Event-ID` must be the id of an event, a whole number, or of its envelope";
    match read.filter(|place| *place <= PLACE_MAX) {
        Some(place) => Ok((place, of_envelope.is_some())),
        None => Err(ApiError::new(ErrorKind::InvalidRequest, problem)),
    }
}

/// The event at a place; none before the first. Whoever says to have one that is not there has those of another session.
async fn event_at(
    conversations: &Conversations,
    session: &SessionId,
    place: u64,
) -> Result<Option<RawEvent>, ApiError> {
    let Some(before) = place.checked_sub(1) else {
        return Ok(None);
    };
    let event = conversations.events(session, before, 1).await?.pop();
    let problem = || {
        ApiError::new(
            ErrorKind::InvalidRequest,
            format!("session {session} has no event {place}"),
        )
    };
    let event = event.ok_or_else(|| problem().hint("without `Last-Event-ID` it begins with the first"))?;
    Ok(Some(event))
}
