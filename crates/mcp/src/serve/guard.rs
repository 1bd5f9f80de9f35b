//! Who may speak HTTP with us: the right `Host` and `Origin`, and the token.
//!
//! A page in a browser can send requests to any address of this machine. It cannot choose what its browser writes into `Host`
//! and `Origin`: after DNS rebinding, `Host` is a name of the attacker's (MCP, transports, security warning). So a `Host` must be
//! an address or `localhost`, never another name, and an `Origin`, if there is one, must be this server itself.

use aish_core::secret::Secret;
use http::header::{AUTHORIZATION, HOST, ORIGIN};
use http::{HeaderMap, HeaderName, StatusCode, uri::Authority};
use sha2::{Digest as _, Sha256};
use std::net::{IpAddr, SocketAddr};

/// What is demanded of every request.
#[derive(Debug)]
pub(super) struct Guard {
    /// Where the server listens.
    pub(super) address: SocketAddr,
    /// The bearer token; `None` lets everybody in who is on this machine.
    pub(super) token: Option<Secret>,
}

impl Guard {
    /// Whether a request with these headers is let in.
    ///
    /// # Errors
    /// The status it is refused with, and why.
    pub(super) fn admit(&self, headers: &HeaderMap) -> Result<(), (StatusCode, &'static str)> {
        let host = one(headers, &HOST).ok_or((StatusCode::BAD_REQUEST, "the request has no Host"))?;
        let authority: Authority = host
            .parse()
            .map_err(|_| (StatusCode::BAD_REQUEST, "the Host cannot be read"))?;
        if !self.is_ours(authority.host()) {
            return Err((StatusCode::FORBIDDEN, "the Host is not this server"));
        }
        if headers.contains_key(ORIGIN) {
            let origin = one(headers, &ORIGIN).and_then(|origin| origin.strip_prefix("http://"));
            if !origin.is_some_and(|origin| origin.eq_ignore_ascii_case(host)) {
                return Err((StatusCode::FORBIDDEN, "the Origin is not this server"));
            }
        }
        match &self.token {
            Some(token) if !is_same(bearer(headers).unwrap_or_default(), token.expose()) => {
                Err((StatusCode::UNAUTHORIZED, "the bearer token is missing or wrong"))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn is_ours(&self, host: &str) -> bool {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        match bare.parse::<IpAddr>() {
            Ok(address) => address.is_loopback() || !self.address.ip().is_loopback(),
            Err(_) => host.eq_ignore_ascii_case("localhost"),
        }
    }
}

/// The value of a header that is there once and is text.
fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next().filter(|_| values.next().is_none())?;
    first.to_str().ok()
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = one(headers, &AUTHORIZATION)?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Compares in a time that tells nothing of how much was right: digests have one length, and every byte is looked at.
fn is_same(given: &str, expected: &str) -> bool {
    let (given, expected) = (Sha256::digest(given), Sha256::digest(expected));
    let pairs = given.iter().zip(expected.iter());
    pairs.fold(0, |differing, (left, right)| differing | (left ^ right)) == 0
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn status(address: &str, token: Option<&str>, headers: &[(&str, &str)]) -> Option<u16> {
        let guard = Guard {
            address: address.parse().unwrap(),
            token: token.map(Secret::new),
        };
        let headers: HeaderMap = headers
            .iter()
            .map(|(name, value)| (name.parse::<HeaderName>().unwrap(), value.parse().unwrap()))
            .collect();
        guard.admit(&headers).err().map(|(status, _)| status.as_u16())
    }

    /// SPEC 6.10: a page that was rebound to this machine is refused, whatever it knows.
    #[test]
    fn hosts_and_origins() {
        let check = |headers: &[(&str, &str)], expect: Option<u16>| {
            assert_eq!(status("127.0.0.1:8080", None, headers), expect, "{headers:?}");
        };
        for host in [
            "127.0.0.1:8080",
            "localhost:8080",
            "LOCALHOST",
            "[::1]:8080",
            "127.0.0.1",
        ] {
            check(&[("host", host)], None);
        }
        for host in [
            "evil.example:8080",
            "127.0.0.1.evil.example",
            "192.168.1.2:8080",
            "localhost.evil",
        ] {
            check(&[("host", host)], Some(403));
        }
        check(&[], Some(400));
        check(&[("host", "a b")], Some(400));
        let host = ("host", "127.0.0.1:8080");
        check(&[host, ("origin", "http://127.0.0.1:8080")], None);
        for origin in [
            "http://evil.example",
            "null",
            "https://127.0.0.1:8080",
            "http://127.0.0.1:9",
            "",
        ] {
            check(&[host, ("origin", origin)], Some(403));
        }
    }

    /// SPEC 6.10: on an address of the network, addresses are hosts; names still are not.
    #[test]
    fn on_the_network() {
        let check = |host, expect| assert_eq!(status("0.0.0.0:80", Some("t"), &[("host", host)]), expect, "{host}");
        check("192.168.1.2", Some(401));
        check("evil.example", Some(403));
    }

    /// SPEC 6.10: the token, whole and nothing else.
    #[test]
    fn tokens() {
        let check = |value: &str, expect: Option<u16>| {
            let headers = [("host", "localhost"), ("authorization", value)];
            assert_eq!(status("127.0.0.1:1", Some("secret"), &headers), expect, "{value}");
        };
        check("Bearer secret", None);
        check("bearer secret", None);
        for wrong in [
            "Bearer secre",
            "Bearer secrets",
            "Bearer",
            "Bearer ",
            "Basic secret",
            "secret",
            "",
        ] {
            check(wrong, Some(401));
        }
        assert_eq!(
            status("127.0.0.1:1", Some("secret"), &[("host", "localhost")]),
            Some(401)
        );
    }
}
