//! Why a request is not answered, before anybody looked at what it wants.

use http::header::{CONNECTION, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use http::{Response, StatusCode};

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its head is longer than is taken.
    HeadTooLong,
    /// It has no `Host`, or more than one.
    HostMissing,
    /// Its `Host` cannot be read.
    HostUnreadable,
    /// Its `Host` is not this server: a page in a browser may be behind it.
    HostForeign,
    /// Its `Origin` is not this server.
    OriginForeign,
    /// The bearer token is missing or wrong.
    Token,
    /// Its body is longer than is taken.
    BodyTooLong,
    /// Its body broke off.
    BodyBroken,
    /// Its body did not arrive in time.
    BodyLate,
    /// There is no room for its body now.
    Busy,
}

impl Refusal {
    /// The status that says so.
    pub fn status(self) -> StatusCode {
        match self {
            Self::HeadTooLong => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::HostMissing | Self::HostUnreadable | Self::BodyBroken => StatusCode::BAD_REQUEST,
            Self::HostForeign | Self::OriginForeign => StatusCode::FORBIDDEN,
            Self::Token => StatusCode::UNAUTHORIZED,
            Self::BodyTooLong => StatusCode::PAYLOAD_TOO_LARGE,
            Self::BodyLate => StatusCode::REQUEST_TIMEOUT,
            Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// What is wrong, one line.
    pub fn message(self) -> &'static str {
        match self {
            Self::HeadTooLong => "the head of the request is too long",
            Self::HostMissing => "the request has no Host",
            Self::HostUnreadable => "the Host cannot be read",
            Self::HostForeign => "the Host is not this server",
            Self::OriginForeign => "the Origin is not this server",
            Self::Token => "the bearer token is missing or wrong",
            Self::BodyTooLong => "the body is too long",
            Self::BodyBroken => "the body broke off",
            Self::BodyLate => "the body did not arrive in time",
            Self::Busy => "too much is being sent at once",
        }
    }

    /// An answer that says so with this body, as plain text unless its type is set to something else. The connection ends with it:
    /// what the client still sends is not looked at.
    pub fn answer<B>(self, body: B) -> Response<B> {
        let mut answer = Response::new(body);
        *answer.status_mut() = self.status();
        let headers = answer.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
        if self == Self::Token {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        answer
    }
}
