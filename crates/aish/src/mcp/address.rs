//! Addresses that servers want opened: what may be opened at all, and what a person should see of one before.

use aish_core::sanitize;
use reqwest::Url;

/// Characters of an address; longer ones are for no person to judge.
const CHARS_MAX: usize = 2_000;

/// An address that may be put before a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// As it is opened: ASCII, with the host as it is looked up.
    pub url: String,
    /// The host as it is looked up, with its port; international names in their ASCII form.
    pub host: String,
    /// What makes it suspicious; lines of ours, safe.
    pub warnings: Vec<String>,
}

impl Address {
    /// Reads an address: only `http` and `https` are ever opened (SPEC 6.11).
    ///
    /// # Errors
    /// It is none of those; one line, safe.
    pub fn read(text: &str) -> Result<Self, String> {
        if text.chars().nth(CHARS_MAX).is_some() {
            return Err(format!("its address is longer than {CHARS_MAX} characters"));
        }
        let url = Url::parse(text.trim()).map_err(|_| "what it wants opened is no address".to_owned())?;
        let Some(name) = url.host_str().filter(|_| matches!(url.scheme(), "http" | "https")) else {
            let scheme = sanitize::single_line(url.scheme()).into_owned();
            return Err(format!("it wants {scheme}: opened; only http and https are"));
        };
        let mut warnings = Vec::new();
        if url.scheme() == "http" && !is_loopback(&url) {
            warnings.push("http: what is typed there can be read on the way".to_owned());
        }
        if !url.username().is_empty() || url.password().is_some() {
            warnings.push("what stands before the @ is no host".to_owned());
        }
        if name.split('.').any(|label| label.starts_with("xn--")) {
            let (reads_as, _) = idna::domain_to_unicode(name);
            warnings.push(format!(
                "an international name, which reads as {}: letters of other scripts can look like others",
                sanitize::single_line(&reads_as)
            ));
        }
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        Ok(Self {
            host: format!("{name}{port}"),
            url: url.to_string(),
            warnings,
        })
    }

    /// All of it, escaped.
    pub fn shown(&self) -> String {
        sanitize::single_line(&self.url).into_owned()
    }
}

fn is_loopback(url: &Url) -> bool {
    let name = url.host_str().unwrap_or_default();
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    let address = bare.parse::<std::net::IpAddr>();
    name == "localhost" || name.ends_with(".localhost") || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    fn check(text: &str, host: &str, warnings: &[&str]) {
        let address = Address::read(text).unwrap();
        assert_eq!(address.host, host, "{text}");
        assert_eq!(address.warnings.len(), warnings.len(), "{:?}", address.warnings);
        for (warning, expect) in address.warnings.iter().zip(warnings) {
            assert!(warning.contains(expect), "{warning}");
        }
    }

    /// SPEC 6.9: the host is shown as it is looked up, and what is odd about it is said.
    #[test]
    fn hosts() {
        check("https://example.com/a?b=c", "example.com", &[]);
        check("https://example.com:8443/", "example.com:8443", &[]);
        check("http://127.0.0.1:9/x", "127.0.0.1:9", &[]);
        check("http://[::1]/x", "[::1]", &[]);
        check("http://localhost:1/", "localhost:1", &[]);
        check("http://example.com/", "example.com", &["http:"]);
        check("https://example.com@evil.example/", "evil.example", &["before the @"]);
        check("https://аррӏе.com/", "xn--80ak6aa92e.com", &["reads as аррӏе.com"]);
    }

    /// SPEC 6.11: nothing but http and https is ever opened.
    #[test]
    fn other_schemes() {
        for text in [
            "file:///etc/passwd",
            "javascript:alert(1)",
            "ssh://host",
            "x",
            "",
            "-v",
            "https://",
        ] {
            assert!(Address::read(text).is_err(), "{text}");
        }
        assert!(Address::read(&format!("https://a.example/{}", "x".repeat(CHARS_MAX))).is_err());
    }

    /// SPEC 8.8: nothing in an address acts on the terminal.
    #[test]
    fn hostile() {
        let address = Address::read("https://a.example/\u{1b}]0;x\u{7}\u{202e}").unwrap();
        assert!(
            address.shown().is_ascii() && !address.shown().contains('\u{1b}'),
            "{address:?}"
        );
    }
}
