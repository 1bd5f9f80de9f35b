//! Between the listener and the routes: the body is read within its bounds, refusals get the shape of all errors, and a fault in
//! an answer is an answer.

use crate::error::{ApiError, ErrorKind};
use crate::json::BODY_BYTES_MAX;
use crate::telemetry::Telemetry;
use aish_listen::{Bodies, Refusal, RequestId, Service};
use axum::Router;
use axum::body::Body;
use axum::response::IntoResponse as _;
use futures_util::FutureExt as _;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Request, Response};
use hyper::body::{Body as _, Incoming};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tower_service::Service as _;

/// How long a body may take to arrive.
const BODY_TIMEOUT_S: u64 = 30;
/// Bytes of all bodies that are on their way at once.
const BODIES_BYTES_MAX: usize = 40 * 1024 * 1024;

/// Answers what the listener lets in.
pub(crate) struct Gateway {
    router: Router,
    bodies: Bodies,
    is_open: fn(&str) -> bool,
    telemetry: Arc<Telemetry>,
}

impl Gateway {
    /// Before these routes, of which some need no token.
    pub(crate) fn new(router: Router, is_open: fn(&str) -> bool, telemetry: Arc<Telemetry>) -> Self {
        let timeout = Duration::from_secs(BODY_TIMEOUT_S);
        Self {
            router,
            bodies: Bodies::new(BODY_BYTES_MAX, BODIES_BYTES_MAX, timeout),
            is_open,
            telemetry,
        }
    }

    async fn read(&self, request: Request<Incoming>) -> Result<Request<Body>, Refusal> {
        if !(self.is_open)(request.uri().path()) {
            let read = self.bodies.read(request).await;
            return read.map(|request| request.map(Body::from));
        }
        // Anybody may ask for this: nothing is kept for them that they were not asked for.
        match request.body().is_end_stream() {
            true => Ok(request.map(|_| Body::empty())),
            false => Err(Refusal::BodyTooLong),
        }
    }
}

impl Service for Gateway {
    type Body = Body;

    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let asked = self.telemetry.asked(&request);
        let response = match self.read(request).await {
            Ok(request) => routed(self.router.clone(), request).await,
            Err(refusal) => refused(refusal),
        };
        asked.answer(response)
    }

    fn refuse(&self, refusal: Refusal, id: &RequestId) -> Response<Body> {
        self.telemetry.turned_away(id).answer(refused(refusal))
    }

    fn connections(&self, count: usize) {
        self.telemetry.connections(count);
    }

    fn is_open(&self, path: &str) -> bool {
        (self.is_open)(path)
    }
}

/// Asks the routes, which are always ready. What panics there has lost one request and nothing else.
async fn routed(mut router: Router, request: Request<Body>) -> Response<Body> {
    let answering = AssertUnwindSafe(router.call(request)).catch_unwind();
    let response = match answering.await {
        Ok(Ok(response)) => response,
        Ok(Err(never)) => match never {},
        Err(_) => ApiError::new(ErrorKind::Internal, "this request could not be answered").into_response(),
    };
    private(response)
}

/// An answer is what it says it is, and nobody keeps it for others, unless it says otherwise itself.
fn private(mut response: Response<Body>) -> Response<Body> {
    let headers = response.headers_mut();
    let nosniff = (HeaderName::from_static("x-content-type-options"), "nosniff");
    let no_store = (CACHE_CONTROL, "no-store");
    for (name, value) in [nosniff, no_store] {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

fn refused(refusal: Refusal) -> Response<Body> {
    let kind = match refusal {
        Refusal::HeadTooLong => ErrorKind::HeadTooLarge,
        Refusal::HostMissing | Refusal::HostUnreadable | Refusal::BodyBroken => ErrorKind::BadRequest,
        Refusal::HostForeign | Refusal::OriginForeign => ErrorKind::Forbidden,
        Refusal::Token => ErrorKind::Unauthorized,
        Refusal::BodyTooLong => ErrorKind::TooLarge,
        Refusal::BodyLate => ErrorKind::Timeout,
        Refusal::Busy => ErrorKind::Unavailable,
    };
    let mut error = ApiError::new(kind, refusal.message());
    if kind == ErrorKind::Unauthorized {
        error = error.hint("Authorization: Bearer TOKEN; `aish serve` says where the token is");
    } else if kind == ErrorKind::Forbidden {
        error = error.hint("a proxy's name has to be among `serve.hosts`");
    }
    let (mut head, body) = error.into_response().into_parts();
    // The listener knows what else such an answer says.
    for (name, value) in refusal.answer(()).headers() {
        if name != CONTENT_TYPE {
            head.headers.insert(name, value.clone());
        }
    }
    private(Response::from_parts(head, body))
}
