//! Which path is answered by whom (SPEC 9.1, 9.3, 9.8). Every path has its line here, and nowhere else.

mod conversation;
mod events;
pub(crate) mod probes;
pub(crate) mod sessions;

use crate::error::{ApiError, ErrorKind};
use crate::page::Page;
use crate::telemetry::Telemetry;
use aish_engine::Conversations;
use axum::Router;
use axum::routing::{get, post};
use http::Uri;
use std::sync::Arc;

/// Where a conversation is begun and gone on with.
pub(crate) const CHAT: &str = "/api/chat";
/// The sessions there are.
pub(crate) const SESSIONS: &str = "/api/sessions";
/// One of them, by its id or that of a continuation.
pub(crate) const SESSION: &str = "/api/sessions/{id}";
/// Where the result of a client's call goes.
pub(crate) const TOOL_RESULT: &str = "/api/sessions/{id}/tool_result";
/// Where a yes or no goes.
pub(crate) const APPROVAL: &str = "/api/sessions/{id}/approval";
/// Where it is followed as it goes on.
pub(crate) const EVENTS: &str = "/api/sessions/{id}/events";
/// Where a turn is cancelled.
pub(crate) const CANCEL: &str = "/api/sessions/{id}/cancel";
/// Whether this process lives.
pub(crate) const HEALTHZ: &str = "/healthz";
/// Whether it should be sent requests.
pub(crate) const READYZ: &str = "/readyz";
/// What is counted.
pub(crate) const METRICS: &str = "/metrics";
/// What all this is, for programs.
pub(crate) const OPENAPI: &str = "/openapi.json";
/// The page.
const PAGE: &str = "/";
/// What a path is called that leads nowhere.
const NO_ROUTE: &str = "none";
/// A file of the page.
const PAGE_FILE: &str = "/page/{name}";

/// What all routes share.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) conversations: Arc<Conversations>,
    pub(crate) page: Arc<Page>,
    pub(crate) telemetry: Arc<Telemetry>,
}

/// All routes.
pub(crate) fn router(conversations: Arc<Conversations>, telemetry: Arc<Telemetry>) -> Router {
    let shared = Shared {
        conversations,
        page: Arc::default(),
        telemetry,
    };
    Router::new()
        .route(CHAT, post(conversation::chat))
        .route(SESSIONS, get(sessions::list))
        .route(SESSION, get(sessions::show))
        .route(TOOL_RESULT, post(conversation::tool_result))
        .route(APPROVAL, post(conversation::approval))
        .route(CANCEL, post(conversation::cancel))
        .route(EVENTS, get(events::follow))
        .route(METRICS, get(probes::metrics))
        .route(HEALTHZ, get(probes::healthz))
        .route(READYZ, get(probes::readyz))
        .route(OPENAPI, get(probes::openapi))
        .route(PAGE, get(probes::page))
        .route(PAGE_FILE, get(probes::page))
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        .with_state(shared)
}

/// Whether a path needs no token: probes say nothing of anybody, and the page holds no data.
pub(crate) fn is_open(path: &str) -> bool {
    matches!(path, HEALTHZ | READYZ | PAGE) || path.starts_with("/page/")
}

/// Which of the routes a path is of, for what is counted and written down: never the path itself.
pub(crate) fn pattern(path: &str) -> &'static str {
    let of_a_session = |rest: &str| match rest.split_once('/').map(|(_, what)| what) {
        None => SESSION,
        Some("tool_result") => TOOL_RESULT,
        Some("approval") => APPROVAL,
        Some("cancel") => CANCEL,
        Some("events") => EVENTS,
        Some(_) => NO_ROUTE,
    };
    let fixed = [CHAT, SESSIONS, HEALTHZ, READYZ, METRICS, OPENAPI, PAGE];
    if let Some(found) = fixed.into_iter().find(|fixed| *fixed == path) {
        return found;
    }
    if let Some(rest) = path.strip_prefix("/api/sessions/") {
        return of_a_session(rest);
    }
    if path.starts_with("/page/") {
        PAGE_FILE
    } else {
        NO_ROUTE
    }
}

async fn unknown(uri: Uri) -> ApiError {
    ApiError::new(ErrorKind::NotFound, format!("there is nothing at {}", uri.path()))
        .hint("GET /openapi.json says what there is")
}

async fn wrong_method(uri: Uri) -> ApiError {
    let problem = format!("not by this method: {}", uri.path());
    ApiError::new(ErrorKind::MethodNotAllowed, problem)
}
