//! Bodies read as JSON: what is wrong with one, where, and what was probably meant.

use crate::error::{ApiError, ErrorKind};
use axum::body::{Body, to_bytes};
use axum::extract::{FromRequest, Request};
use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, StatusCode};
use hyper::body::Bytes;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::error::Category;
use std::fmt;
use std::marker::PhantomData;

/// Bytes of a body (SPEC 9.8).
pub(crate) const BODY_BYTES_MAX: usize = 10 * 1024 * 1024;
/// Characters of a name that is compared with others.
const NAME_CHARS_MAX: usize = 200;

/// A body of this shape, and the bytes it was read from.
#[derive(Debug)]
pub(crate) struct Json<T> {
    pub(crate) value: T,
    pub(crate) bytes: Bytes,
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        if !is_json(request.headers()) {
            return Err(not_json());
        }
        let bytes = whole(request).await?;
        let value = parse(&bytes)?;
        Ok(Self { value, bytes })
    }
}

/// A request without a body, or with one that says nothing.
pub(crate) async fn nothing(request: Request) -> Result<(), ApiError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Nothing {}
    let is_json = is_json(request.headers());
    let bytes = whole(request).await?;
    match (bytes.is_empty(), is_json) {
        (true, _) => Ok(()),
        (false, true) => parse::<Nothing>(&bytes).map(|_| ()),
        (false, false) => Err(not_json()),
    }
}

/// The body: the listener has read it already, within the same bound.
async fn whole(request: Request) -> Result<Bytes, ApiError> {
    let bytes = to_bytes(request.into_body(), BODY_BYTES_MAX).await;
    bytes.map_err(|_| ApiError::new(ErrorKind::TooLarge, "the body is too long"))
}

fn not_json() -> ApiError {
    ApiError::new(ErrorKind::UnsupportedMediaType, "the body must be JSON").hint("Content-Type: application/json")
}

/// An answer in JSON.
pub(crate) fn answer(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(bytes) => {
            let mut response = Response::new(Body::from(bytes));
            *response.status_mut() = status;
            let headers = response.headers_mut();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            response
        }
        Err(_) => ApiError::new(ErrorKind::Internal, "the answer could not be written").into_response(),
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let named = headers.get(CONTENT_TYPE).and_then(|named| named.to_str().ok());
    let essence = named.and_then(|named| named.split(';').next()).map(str::trim);
    essence.is_some_and(|essence| essence.eq_ignore_ascii_case("application/json"))
}

/// Reads an object of a shape.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    let read = serde_json::from_slice::<Object<T>>(bytes);
    read.map(|Object(value)| value).map_err(|error| refusal(&error))
}

/// Something that is written as an object. Derived readers take an array of the fields' values as well, which nobody was told.
#[derive(Clone, Debug)]
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
            type Value = T;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map))
            }
        }
        deserializer.deserialize_map(Fields(PhantomData)).map(Self)
    }
}

fn refusal(error: &serde_json::Error) -> ApiError {
    let said = error.to_string();
    match error.classify() {
        Category::Data => {
            let refused = ApiError::new(ErrorKind::InvalidRequest, &said);
            match meant(&said) {
                Some(name) => refused.hint(format!("did you mean `{name}`?")),
                None => refused,
            }
        }
        Category::Syntax | Category::Eof | Category::Io => ApiError::new(ErrorKind::MalformedJson, &said),
    }
}

/// Which of the names that serde lists (``unknown field `a`, expected one of `b`, `c` ``) is nearest to the one it does not know.
fn meant(said: &str) -> Option<&str> {
    let rest = said
        .strip_prefix("unknown field `")
        .or_else(|| said.strip_prefix("unknown variant `"))?;
    // What the client wrote may hold these words, too; what serde adds comes last.
    let (unknown, known) = rest.rsplit_once("`, expected ")?;
    nearest(unknown, known.split('`').skip(1).step_by(2))
}

/// The name that a misspelt one is nearest to, if any is near.
pub(crate) fn nearest<'a>(unknown: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    /// Below it nothing reads alike.
    const LIKENESS_MIN: f64 = 0.7;
    let unknown: String = unknown.chars().take(NAME_CHARS_MAX).collect();
    let likeness = known.map(|name| (strsim::jaro_winkler(&unknown.to_lowercase(), name), name));
    let best = likeness.max_by(|left, right| left.0.total_cmp(&right.0))?;
    (best.0 >= LIKENESS_MIN).then_some(best.1)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;
    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Two {
        message: String,
        conversation_id: Option<String>,
    }

    fn check(body: &str, kind: ErrorKind, says: &str) {
        let error = parse::<Two>(body.as_bytes()).unwrap_err();
        assert_eq!(error.kind(), kind, "{body}");
        let shown = format!("{error:?}");
        assert!(shown.contains(says), "{body}: {shown}");
        assert!(shown.len() < 1_500, "{} bytes", shown.len());
    }

    /// SPEC 9.8: what is no JSON is said with its place; what has another shape is named, with what was meant.
    #[test]
    fn what_is_wrong() {
        use ErrorKind::{InvalidRequest, MalformedJson};
        check("{\"message\": \n", MalformedJson, "line 2 column 0");
        check("", MalformedJson, "line 1 column 0");
        check("{\"message\":\"a\"} x", MalformedJson, "column 17");
        check("\u{feff}{}", MalformedJson, "column 1");
        check(&"[".repeat(100_000), InvalidRequest, "expected an object");
        check(
            &format!("{{\"message\":{}", "[".repeat(100_000)),
            InvalidRequest,
            "expected a string",
        );
        check("[]", InvalidRequest, "expected an object at line 1");
        check("[\"a\",null]", InvalidRequest, "expected an object");
        check("{}", InvalidRequest, "missing field `message`");
        check("{\"message\":7}", InvalidRequest, "integer `7`");
        check("{\"mesage\":\"a\"}", InvalidRequest, "did you mean `message`?");
        check(
            "{\"message\":\"a\",\"conversationId\":\"b\"}",
            InvalidRequest,
            "did you mean `conversation_id`?",
        );
        check(
            "{\"message\":\"a\",\"message\":\"b\"}",
            InvalidRequest,
            "duplicate field `message`",
        );
        check("{\"`, expected `conversation_i\":1}", InvalidRequest, "unknown field");
        check(
            &format!("{{\"{}\":1}}", "x".repeat(100_000)),
            InvalidRequest,
            "unknown field",
        );
    }
}
