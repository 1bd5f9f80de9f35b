//! Which path is answered by whom (SPEC 9.1, 9.3, 9.8). Every path has its line here, and nowhere else.

mod conversation;
pub(crate) mod probes;
pub(crate) mod sessions;

use crate::error::{ApiError, ErrorKind};
use crate::page::Page;
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
/// Where a turn is cancelled.
pub(crate) const CANCEL: &str = "/api/sessions/{id}/cancel";
/// Whether this process lives.
pub(crate) const HEALTHZ: &str = "/healthz";
/// Whether it should be sent requests.
pub(crate) const READYZ: &str = "/readyz";
/// What all this is, for programs.
pub(crate) const OPENAPI: &str = "/openapi.json";
/// The page.
const PAGE: &str = "/";
/// A file of the page.
const PAGE_FILE: &str = "/page/{name}";

/// What all routes share.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) conversations: Arc<Conversations>,
    pub(crate) page: Arc<Page>,
}

/// All routes.
pub(crate) fn router(conversations: Arc<Conversations>) -> Router {
    let shared = Shared {
        conversations,
        page: Arc::default(),
    };
    Router::new()
        .route(CHAT, post(conversation::chat))
        .route(SESSIONS, get(sessions::list))
        .route(SESSION, get(sessions::show))
        .route(TOOL_RESULT, post(conversation::tool_result))
        .route(APPROVAL, post(conversation::approval))
        .route(CANCEL, post(conversation::cancel))
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

async fn unknown(uri: Uri) -> ApiError {
    ApiError::new(ErrorKind::NotFound, format!("there is nothing at {}", uri.path()))
        .hint("GET /openapi.json says what there is")
}

async fn wrong_method(uri: Uri) -> ApiError {
    let problem = format!("not by this method: {}", uri.path());
    ApiError::new(ErrorKind::MethodNotAllowed, problem)
}
