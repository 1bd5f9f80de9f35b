//! The name of one request, in its answer and in the log.

use http::{HeaderMap, HeaderName, HeaderValue};
use std::fmt::{self, Write as _};
use std::sync::Arc;

/// The header that carries it, both ways.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Characters of one that a client, or a proxy, gives.
const GIVEN_CHARS_MAX: usize = 128;
/// Random bytes of one that is made here.
const MADE_BYTES: usize = 16;

/// The name of one request: as its client gave it, or made here. Letters, digits and `-._` only, so that it may be written anywhere.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RequestId(Arc<str>);

impl RequestId {
    /// The one that these headers give; anything that is no such id is passed over and one is made.
    pub fn of(headers: &HeaderMap) -> Self {
        let given = headers.get(&REQUEST_ID).and_then(|given| given.to_str().ok());
        given
            .filter(|given| is_id(given))
            .map_or_else(made, |given| Self(given.into()))
    }

    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// As the value of a header.
    pub fn header(&self) -> HeaderValue {
        // It is made of characters that every header takes.
        HeaderValue::from_str(&self.0).unwrap_or(HeaderValue::from_static(""))
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_id(given: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    (1..=GIVEN_CHARS_MAX).contains(&given.len()) && given.bytes().all(is_plain)
}

fn made() -> RequestId {
    let mut bytes = [0; MADE_BYTES];
    // It names, it does not protect: without randomness requests have one name.
    let _ = getrandom::fill(&mut bytes);
    let mut text = String::with_capacity(2 * MADE_BYTES);
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    RequestId(text.into())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// SPEC 9.8: what a client calls its request is kept; what could break a line of a log is not.
    #[test]
    fn given_or_made() {
        let id = |given: &str| {
            let headers = HeaderMap::from_iter([(REQUEST_ID, given.parse().unwrap())]);
            RequestId::of(&headers)
        };
        assert_eq!(id("a-1.b_2").as_str(), "a-1.b_2");
        assert_eq!(id("a-1.b_2").header(), "a-1.b_2");
        for strange in ["", "a b", "\"", "é", &"x".repeat(GIVEN_CHARS_MAX + 1)] {
            assert_eq!(id(strange).as_str().len(), 2 * MADE_BYTES, "{strange}");
        }
        assert_ne!(id(""), id(""));
    }
}
