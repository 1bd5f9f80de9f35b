//! What is said of the server itself: that it lives, that it is ready, what it offers, and the page.

use super::Shared;
use crate::error::{ApiError, ErrorKind};
use crate::json::answer;
use crate::page::{self, PageFile};
use aish_engine::ServeError;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::header::{CONTENT_TYPE, ETAG, HeaderValue, IF_NONE_MATCH};
use http::{HeaderMap, HeaderName, StatusCode, Uri};
use serde::Serialize;
use std::time::Duration;

/// The description of the API. It is generated from the types of this crate; a test says when it is not theirs any more.
const OPENAPI_DOCUMENT: &str = include_str!("../../../../docs/openapi.json");
/// A name that no continuation has: looking for it reads the ledger and nothing else.
const NO_CONTINUATION: &str = "br-0-0";
/// How long the ledger may take to be called ready.
const LEDGER_TIMEOUT_S: u64 = 2;

/// `GET /healthz`, `GET /readyz`
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Probe {
    /// `ok`.
    status: &'static str,
}

/// `GET /healthz`
pub(super) async fn healthz() -> Response {
    answer(StatusCode::OK, &Probe { status: "ok" })
}

/// `GET /readyz`: requests are taken, and the ledger can be read.
pub(super) async fn readyz(State(shared): State<Shared>) -> Result<Response, ApiError> {
    if shared.conversations.is_draining() {
        return Err(ServeError::Draining.into());
    }
    let timeout = Duration::from_secs(LEDGER_TIMEOUT_S);
    match tokio::time::timeout(timeout, shared.conversations.session_of(NO_CONTINUATION)).await {
        Ok(Ok(_) | Err(ServeError::Unknown(_))) => Ok(answer(StatusCode::OK, &Probe { status: "ok" })),
        Ok(Err(error)) => Err(error.into()),
        Err(_) => Err(ApiError::new(ErrorKind::Unavailable, "the ledger does not answer")),
    }
}

/// `GET /metrics`
pub(super) async fn metrics(State(shared): State<Shared>) -> Response {
    let text = shared.telemetry.text(&shared.conversations).await;
    let mut response = Response::new(Body::from(text));
    let plain = HeaderValue::from_static(crate::metrics::CONTENT_TYPE);
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}

/// `GET /openapi.json`
pub(super) async fn openapi() -> Response {
    let mut response = Response::new(Body::from(OPENAPI_DOCUMENT));
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

/// `GET /` and the files of the page.
pub(super) async fn page(State(shared): State<Shared>, uri: Uri, headers: HeaderMap) -> Result<Response, ApiError> {
    let Some(file) = shared.page.file(uri.path()) else {
        return Err(ApiError::new(ErrorKind::NotFound, "the page has no such file"));
    };
    let is_known = headers
        .get(IF_NONE_MATCH)
        .is_some_and(|known| known == file.etag.as_str());
    let mut response = Response::new(if is_known {
        Body::empty()
    } else {
        Body::from(file.bytes)
    });
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    describe(response.headers_mut(), file);
    Ok(response)
}

fn describe(headers: &mut HeaderMap, file: &PageFile) {
    for (name, value) in page::HEADERS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(file.content_type));
    if let Ok(tag) = HeaderValue::from_str(&file.etag) {
        headers.insert(ETAG, tag);
    }
}
