//! What there is: the sessions, and one of them with its events, page by page.

use super::Shared;
use super::conversation::{Id, known};
use crate::batches::Batches;
use crate::envelope::{Reply, SessionList, SessionPage, State as Doing, Summary};
use crate::error::{ApiError, ErrorKind};
use crate::json::answer;
use crate::query::Query;
use aish_core::id::SessionId;
use aish_engine::{Conversations, EngineError, ServeError, SessionFilter, SessionSummary, Standing};
use axum::extract::State;
use axum::response::Response;
use http::{StatusCode, Uri};
use serde_json::value::RawValue;
use std::collections::BTreeSet;

/// Sessions of one list, where nothing is said and at most.
pub(crate) const SESSIONS_USUAL: u64 = 50;
pub(crate) const SESSIONS_MAX: u64 = 500;
/// Places that a search looks at: more were not looked for closely enough.
const HITS_MAX: usize = 500;
/// Events of one page, where nothing is said and at most.
pub(crate) const EVENTS_USUAL: u64 = 200;
pub(crate) const EVENTS_MAX: u64 = 1_000;
/// A page is not begun with another event once it has so many bytes: a tool's output may be a megabyte.
const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The largest place that is asked for: what every ledger can count to.
pub(crate) const PLACE_MAX: u64 = i64::MAX.unsigned_abs();

/// `GET /api/sessions`
pub(super) async fn list(State(shared): State<Shared>, uri: Uri) -> Result<Response, ApiError> {
    let query = Query::read(uri.query(), &["query", "limit", "before"])?;
    let limit = query.number("limit", (1, SESSIONS_MAX))?.unwrap_or(SESSIONS_USUAL);
    let mut filter = SessionFilter {
        limit: usize::try_from(limit).ok(),
        before: query.text("before").map(SessionId::new),
        ..SessionFilter::default()
    };
    if let Some(words) = query.text("query") {
        let hits = shared.conversations.search(words, HITS_MAX).await?;
        let found: BTreeSet<SessionId> = hits.into_iter().map(|hit| hit.session).collect();
        filter.only = Some(found.into_iter().collect());
    }
    let found = shared.conversations.sessions(filter).await?;
    let sessions = found.into_iter().map(Summary::from).collect();
    Ok(answer(StatusCode::OK, &SessionList { sessions }))
}

/// `GET /api/sessions/{id}`
pub(super) async fn show(State(shared): State<Shared>, id: Id, uri: Uri) -> Result<Response, ApiError> {
    let query = Query::read(uri.query(), &["after", "limit"])?;
    let after = query.number("after", (0, PLACE_MAX))?.unwrap_or(0);
    let limit = query.number("limit", (1, EVENTS_MAX))?.unwrap_or(EVENTS_USUAL);
    let conversations = &shared.conversations;
    let session = conversations.session_of(&known(id)?).await?;
    let filter = SessionFilter {
        only: Some(vec![session.clone()]),
        ..SessionFilter::default()
    };
    let unknown = || ApiError::new(ErrorKind::NotFound, format!("there is no session {session}"));
    let summary = conversations.sessions(filter).await?.pop().ok_or_else(unknown)?;
    let standing = shared.standings.of(conversations, &session, summary.events);
    let (state, pending) = match standing.await {
        Ok(Standing::Told(envelope)) => (Doing::Pending, Some(Reply::from(*envelope))),
        Ok(Standing::Running) => (Doing::Running, None),
        // What a newer aish wrote can be shown.
        Ok(Standing::Idle) | Err(ServeError::Engine(EngineError::ReadOnly(_))) => (Doing::Idle, None),
        Err(error) => return Err(error.into()),
    };
    let (events, more) = events(conversations, &session, (after, usize::try_from(limit).unwrap_or(1))).await?;
    let page = SessionPage {
        session: summary.into(),
        state,
        pending,
        events,
        more,
    };
    Ok(answer(StatusCode::OK, &page))
}

/// The events after one place, at most `limit`, and whether there are more.
async fn events(
    conversations: &Conversations,
    session: &SessionId,
    (after, limit): (u64, usize),
) -> Result<(Vec<Box<RawValue>>, bool), ApiError> {
    let mut shown: Vec<Box<RawValue>> = Vec::new();
    let (mut last, mut bytes) = (after, 0);
    let mut batches = Batches::new();
    loop {
        // One more than is shown says whether there are more.
        let wanted = limit + 1 - shown.len();
        let batch = batches.next(conversations, (session, last), wanted).await?;
        for event in batch.events {
            if shown.len() == limit || bytes >= PAGE_BYTES_MAX {
                return Ok((shown, true));
            }
            last = event.seq;
            let line = conversations.exported(session, &event);
            bytes += line.len();
            let unreadable = |_| ApiError::new(ErrorKind::Internal, "an event cannot be shown");
            shown.push(RawValue::from_string(line).map_err(unreadable)?);
        }
        if batch.is_last {
            return Ok((shown, false));
        }
    }
}

impl From<SessionSummary> for Summary {
    fn from(summary: SessionSummary) -> Self {
        Self {
            id: summary.id.to_string(),
            title: summary.title,
            created: summary.created,
            updated: summary.updated,
            events: summary.events,
            waiting: summary.waiting,
            directory: Some(summary.directory).filter(|directory| !directory.is_empty()),
        }
    }
}
