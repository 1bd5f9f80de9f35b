//! Who may speak HTTP with us: the right `Host` and `Origin`, and the token.
//!
//! A page in a browser can send requests to any address of this machine. It cannot choose what its browser writes into `Host`
//! and `Origin`: after DNS rebinding, `Host` is a name of the attacker's (MCP, transports, security warning). So a `Host` must be
//! an address, `localhost` or a name that was said beforehand (of a proxy in front of us), and an `Origin`, if there is one, must be
//! this server itself or such a name over TLS.

use crate::Refusal;
use aish_core::secret::Secret;
use http::header::{AUTHORIZATION, HOST, ORIGIN};
use http::{HeaderMap, HeaderName, uri::Authority};
use sha2::{Digest as _, Sha256};
use std::io;
use std::net::{IpAddr, SocketAddr};

/// What is demanded of every request.
#[derive(Debug)]
pub struct Guard {
    address: SocketAddr,
    token: Option<Secret>,
    names: Vec<String>,
}

/// Whom a request comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admitted {
    /// Somebody who has the token, or there is none.
    Known,
    /// Somebody else, from the right place.
    Stranger,
}

impl Guard {
    /// For a server that listens at `address`. Without a token everybody on this machine is let in. `names` are further names it is
    /// known by, e.g. `aish.example` of a proxy that speaks TLS.
    ///
    /// # Errors
    /// There is no token, and others than this machine can reach the address.
    pub fn new(address: SocketAddr, token: Option<Secret>, names: Vec<String>) -> io::Result<Self> {
        if token.is_none() && !address.ip().is_loopback() {
            let problem = "without a token only this machine itself can be served";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        Ok(Self { address, token, names })
    }

    /// Whom a request with these headers comes from.
    ///
    /// # Errors
    /// It came to the wrong place, or from one.
    pub(crate) fn admit(&self, headers: &HeaderMap) -> Result<Admitted, Refusal> {
        let host = one(headers, &HOST).ok_or(Refusal::HostMissing)?;
        let authority: Authority = host.parse().map_err(|_| Refusal::HostUnreadable)?;
        if !self.is_ours(authority.host()) {
            return Err(Refusal::HostForeign);
        }
        if headers.contains_key(ORIGIN) && !one(headers, &ORIGIN).is_some_and(|origin| self.is_from_us(origin, host)) {
            return Err(Refusal::OriginForeign);
        }
        Ok(match &self.token {
            Some(token) if !is_same(bearer(headers).unwrap_or_default(), token.expose()) => Admitted::Stranger,
            Some(_) | None => Admitted::Known,
        })
    }

    fn is_ours(&self, host: &str) -> bool {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        match bare.parse::<IpAddr>() {
            Ok(address) => address.is_loopback() || !self.address.ip().is_loopback(),
            Err(_) => host.eq_ignore_ascii_case("localhost") || self.is_named(host),
        }
    }

    /// Whether a page at this origin is ours: one at the very host that is asked, or one that a proxy shows.
    fn is_from_us(&self, origin: &str, host: &str) -> bool {
        if let Some(plain) = origin.strip_prefix("http://") {
            return plain.eq_ignore_ascii_case(host);
        }
        let proxied = origin.strip_prefix("https://").map(str::parse::<Authority>);
        matches!(proxied, Some(Ok(proxied)) if self.is_named(proxied.host()))
    }

    fn is_named(&self, host: &str) -> bool {
        self.names.iter().any(|name| name.eq_ignore_ascii_case(host))
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
        let names = vec!["aish.example".to_owned()];
        let guard = Guard::new(address.parse().unwrap(), token.map(Secret::new), names).unwrap();
        let headers: HeaderMap = headers
            .iter()
            .map(|(name, value)| (name.parse::<HeaderName>().unwrap(), value.parse().unwrap()))
            .collect();
        match guard.admit(&headers) {
            Ok(Admitted::Known) => None,
            Ok(Admitted::Stranger) => Some(Refusal::Token.status().as_u16()),
            Err(refusal) => Some(refusal.status().as_u16()),
        }
    }

    /// SPEC 6.10, 9.8: a page that was rebound to this machine is refused, whatever it knows.
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
            "http://aish.example",
            "https://evil.aish.example",
            "https://user@evil.example",
            "https://aish.example.evil",
            "",
        ] {
            check(&[host, ("origin", origin)], Some(403));
        }
    }

    /// SPEC 9.8: behind a proxy that speaks TLS, whether it passes the `Host` on or not.
    #[test]
    fn names_of_a_proxy() {
        let check = |host: &str, origin: &str, expect: Option<u16>| {
            let headers = [("host", host), ("origin", origin)];
            assert_eq!(status("127.0.0.1:8765", None, &headers), expect, "{host} {origin}");
        };
        check("aish.example", "https://aish.example", None);
        check("AISH.example:8443", "https://aish.EXAMPLE:8443", None);
        check("127.0.0.1:8765", "https://aish.example", None);
        check("aish.example", "http://aish.example", None);
        check("aish.example", "https://evil.example", Some(403));
        check("evil.example", "https://aish.example", Some(403));
    }

    /// SPEC 9.8: everybody who can reach it is let in without a token, so that is for this machine alone.
    #[test]
    fn open_only_here() {
        let open = |address: &str| Guard::new(address.parse().unwrap(), None, Vec::new());
        assert!(open("127.0.0.1:1").is_ok() && open("[::1]:1").is_ok());
        assert!(open("0.0.0.0:1").is_err() && open("192.168.1.2:1").is_err());
    }

    /// SPEC 6.10, 9.8: on an address of the network, addresses are hosts; names still are not.
    #[test]
    fn on_the_network() {
        let check = |host, expect| assert_eq!(status("0.0.0.0:80", Some("t"), &[("host", host)]), expect, "{host}");
        check("192.168.1.2", Some(401));
        check("evil.example", Some(403));
    }

    /// SPEC 6.10, 9.8: the token, whole and nothing else.
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
