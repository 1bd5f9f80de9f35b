//! What is said of the server itself: that it lives, that it is ready, what it counts and what it offers.

use super::Shared;
use crate::error::ApiError;
use crate::json::answer;
use aish_engine::ServeError;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderValue};
use serde::Serialize;

/// The description of the API. It is generated from the types of this crate; a test says when it is not theirs any more.
const OPENAPI_DOCUMENT: &str = include_str!("../../../../docs/openapi.json");

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

/// `GET /readyz`: requests are taken, and the ledger takes what is written.
pub(super) async fn readyz(State(shared): State<Shared>) -> Result<Response, ApiError> {
    if shared.conversations.is_draining() {
        return Err(ServeError::Draining.into());
    }
    shared.telemetry.look_at_ledger(&shared.conversations).await?;
    Ok(answer(StatusCode::OK, &Probe { status: "ok" }))
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
