//! Which path is answered by whom (SPEC 9.1, 9.3, 9.8). Every path has its line here, and nowhere else.

mod conversation;
mod events;
mod page;
pub(crate) mod probes;
pub(crate) mod sessions;

use crate::error::{ApiError, ErrorKind};
use crate::page::Page;
use crate::standings::Standings;
use crate::stream::Streams;
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
pub(crate) const PAGE: &str = "/";
/// A file of the page.
pub(crate) const PAGE_FILE: &str = "/page/{name}";
/// What a path is called that leads nowhere.
const NO_ROUTE: &str = "none";
/// All of them.
pub(crate) const ROUTES: [&str; 13] = [
    CHAT,
    SESSIONS,
    SESSION,
    TOOL_RESULT,
    APPROVAL,
    EVENTS,
    CANCEL,
    HEALTHZ,
    READYZ,
    METRICS,
    OPENAPI,
    PAGE,
    PAGE_FILE,
];
/// Characters of an id in a path that is written down.
const ID_CHARS_MAX: usize = 80;

/// What all routes share.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) conversations: Arc<Conversations>,
    pub(crate) page: Arc<Page>,
    pub(crate) telemetry: Arc<Telemetry>,
    pub(crate) streams: Streams,
    pub(crate) standings: Arc<Standings>,
}

/// All routes.
pub(crate) fn router(conversations: Arc<Conversations>, telemetry: Arc<Telemetry>) -> Router {
    let shared = Shared {
        streams: Streams::new(Arc::clone(&conversations), Arc::clone(&telemetry)),
        conversations,
        page: Arc::default(),
        standings: Arc::default(),
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
        .route(PAGE, get(page::index))
        .route(PAGE_FILE, get(page::file))
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        .with_state(shared)
}

/// Whether a path needs no token: probes say nothing of anybody, and the page holds no data.
pub(crate) fn is_open(path: &str) -> bool {
    matches!(pattern(path), HEALTHZ | READYZ | PAGE | PAGE_FILE)
}

/// Which of the routes a path is of, for what is counted and written down: never the path itself.
pub(crate) fn pattern(path: &str) -> &'static str {
    let found = ROUTES.into_iter().find(|pattern| is_of(pattern, path));
    found.unwrap_or(NO_ROUTE)
}

/// Whether a path is of a pattern: part by part the same, where a name in braces is any part.
fn is_of(pattern: &str, path: &str) -> bool {
    let mut parts = path.split('/');
    let mut known = pattern.split('/');
    known.all(|known| {
        let part = parts.next();
        part.is_some_and(|part| part == known || (known.starts_with('{') && !part.is_empty()))
    }) && parts.next().is_none()
}

/// The id of a session or a continuation in a path, as far as it looks like one.
pub(crate) fn id_in(path: &str) -> Option<&str> {
    let id = path.strip_prefix(SESSIONS)?.strip_prefix('/')?.split('/').next()?;
    let is_plain = id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    (is_plain && (1..=ID_CHARS_MAX).contains(&id.len())).then_some(id)
}

async fn unknown(uri: Uri) -> ApiError {
    ApiError::new(ErrorKind::NotFound, format!("there is nothing at {}", uri.path()))
        .hint("GET /openapi.json says what there is")
}

async fn wrong_method(uri: Uri) -> ApiError {
    let problem = format!("not by this method: {}", uri.path());
    ApiError::new(ErrorKind::MethodNotAllowed, problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC 9.8: what is counted and written down of a path is which route it is of, and an id that looks like one.
    #[test]
    fn patterns() {
        let check = |path: &str, expect: &str, id: Option<&str>| {
            assert_eq!((pattern(path), id_in(path)), (expect, id), "{path}");
        };
        for route in ROUTES {
            check(
                &route.replace("{id}", "br-1-a").replace("{name}", "app.js"),
                route,
                route.contains("{id}").then_some("br-1-a"),
            );
        }
        for nowhere in [
            "",
            "//",
            "/api/sessions/",
            "/api/chat/",
            "/page/",
            "/page/a/b",
            "/api/sessions/a/b",
            "/apix",
        ] {
            assert_eq!(pattern(nowhere), NO_ROUTE, "{nowhere}");
            assert!(!is_open(nowhere), "{nowhere}");
        }
        check("/api/sessions/a%20b", SESSION, None);
        check(
            &format!("/api/sessions/{}", "x".repeat(ID_CHARS_MAX + 1)),
            SESSION,
            None,
        );
    }
}
