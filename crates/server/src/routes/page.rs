//! `GET /` and the files of the page.

use super::Shared;
use crate::error::{ApiError, ErrorKind};
use crate::page::{self, INDEX, PageFile};
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use http::header::{CONTENT_TYPE, ETAG, HeaderValue, IF_NONE_MATCH};
use http::{HeaderMap, HeaderName, StatusCode};

/// `GET /`
pub(super) async fn index(State(shared): State<Shared>, headers: HeaderMap) -> Result<Response, ApiError> {
    sent(&shared, INDEX, &headers)
}

/// `GET /page/{name}`
pub(super) async fn file(
    State(shared): State<Shared>,
    name: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    // A name that is no text is no file's.
    let name = name.map(|Path(name)| name).unwrap_or_default();
    sent(&shared, &name, &headers)
}

fn sent(shared: &Shared, name: &str, headers: &HeaderMap) -> Result<Response, ApiError> {
    let Some(file) = shared.page.file(name) else {
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
