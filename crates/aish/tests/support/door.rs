//! Who is let in by those who serve over HTTP, and which heads of requests they read: the same rows for every server of ours.

use super::http::{self, Response};

/// Bytes of a head, or fields of one, that nobody sends who means well.
const HEAD_BYTES_TOO_MANY: usize = 1 << 20;
const FIELDS_TOO_MANY: usize = 2_000;

/// A place where something is posted.
pub struct Door<'a> {
    /// At 127.0.0.1.
    pub port: u16,
    /// Where it is posted.
    pub path: &'a str,
    /// The token that lets in.
    pub token: &'a str,
    /// Headers that it needs besides those that say who comes.
    pub headers: &'a [(&'a str, &'a str)],
    /// What is posted: whoever is let in is answered with 200.
    pub body: &'a str,
}

impl Door<'_> {
    /// Posts with these headers, and the needed ones.
    fn post(&self, headers: &[(&str, &str)]) -> Response {
        http::ask(
            self.port,
            "POST",
            self.path,
            &[headers, self.headers].concat(),
            self.body,
        )
        .unwrap()
    }

    /// No token, a wrong one, another host or origin: refused. `look` is shown each answer.
    pub fn assert_lets_in_its_own(&self, look: impl Fn(&Response)) {
        let host = format!("127.0.0.1:{}", self.port);
        let (origin, good) = (format!("http://{host}"), format!("Bearer {}", self.token));
        let (host, good) = (("Host", host.as_str()), ("Authorization", good.as_str()));
        let check = |headers: &[(&str, &str)], expect: u16| {
            let response = self.post(headers);
            assert_eq!(response.status, expect, "{headers:?}: {response:?}");
            let challenge = response.header("www-authenticate");
            assert_eq!(challenge, (expect == 401).then_some("bearer"), "{response:?}");
            look(&response);
        };
        check(&[host], 401);
        check(&[host, ("Authorization", "Bearer another-token-entirely")], 401);
        check(&[host, ("Authorization", &good.1[..good.1.len() - 1])], 401);
        check(&[host, ("Authorization", self.token)], 401);
        check(&[("Host", "evil.example"), good], 403);
        check(&[good], 400);
        check(&[host, good, ("Origin", "http://evil.example")], 403);
        check(&[host, good, ("Origin", "null")], 403);
        check(&[host, good, ("Origin", &origin)], 200);
        check(&[host, good], 200);
    }

    /// Heads that are too long or have too many fields: refused, and whoever comes next is answered.
    pub fn assert_bounds_heads(&self) {
        let (host, token) = (format!("127.0.0.1:{}", self.port), format!("Bearer {}", self.token));
        let good = [("Host", host.as_str()), ("Authorization", token.as_str())];
        let long = "x".repeat(HEAD_BYTES_TOO_MANY);
        let many = vec![("X-Many", "x"); FIELDS_TOO_MANY];
        for further in [vec![("X-Long", long.as_str())], vec![(long.as_str(), "x")], many] {
            let response = self.post(&[good.as_slice(), &further].concat());
            assert_eq!(response.status, 431, "{response:?}");
        }
        let path = format!("{}?{long}", self.path);
        let response = http::ask(self.port, "POST", &path, &good, self.body).unwrap();
        assert!(matches!(response.status, 414 | 431), "{response:?}");
        assert_eq!(self.post(&good).status, 200);
    }
}
